"""Text files as they are opened: packed in every way, and refused by file and line where they are no text."""

import bz2
import codecs
import gzip
import lzma
import os

import pytest

from workbench.data import DataError
from workbench.data.files import opened
from workbench.data.files.opened import BLOCK, NotTextError

LINES = [b"row %d " % number + b"x" * (number % 90) + b"\n" for number in range(4000)]
TEXT = b"".join(LINES)


def packed_by_zstd(content):
    return pytest.importorskip("pyarrow").compress(content, codec="zstd", asbytes=True)


PACKERS = {"": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": packed_by_zstd}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.txt"


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("content", [TEXT, b"", b"a", b"no end", "né\r\nç\n".encode() * BLOCK], ids=len)
def test_what_was_packed_is_read_whatever_the_name(path, packing, content):
    path.write_bytes(PACKERS[packing](content))
    assert opened.compression_of(path) == packing
    with opened.open_text(path) as file:
        assert file.read() == content
    with opened.open_text(path) as file:
        assert b"".join(file) == content
    path.write_bytes(PACKERS[packing](codecs.BOM_UTF8 + content))
    with opened.open_text(path) as file:
        assert file.read() == content
    assert opened.read_head(path, 5) == (codecs.BOM_UTF8 + content)[:5]
    path.write_bytes(PACKERS[packing](content) + PACKERS[packing](b"more"))  # one archive behind another
    with opened.open_text(path) as file:
        assert file.read() == content + b"more"


def test_text_that_begins_as_bzip2_does_is_text(path):
    path.write_bytes(b"BZh9 is a word\n")
    with opened.open_text(path) as file:
        assert file.readline() == b"BZh9 is a word\n"


DIGITS = os.urandom(40_000).hex().encode().replace(b"0", b"\n")


@pytest.mark.parametrize("packing", ["gzip", "bzip2", "xz", "zstd"])
def test_an_archive_that_is_cut_short_is_told_with_its_line(path, packing):
    packed = PACKERS[packing](DIGITS)
    path.write_bytes(packed[: len(packed) // 2])
    reason = rf"some.txt:\d+: the {packing} file is truncated or corrupt: .*Download it again"
    with pytest.raises(DataError, match=reason), opened.open_text(path) as file:
        file.read()


@pytest.mark.parametrize("packing", ["gzip", "bzip2", "xz"])  # zstd has a sum only where it was asked for
def test_a_damaged_archive_is_told_with_its_line(path, packing):
    packed = bytearray(PACKERS[packing](DIGITS))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xa5" * 40
    path.write_bytes(packed)
    with pytest.raises(DataError, match=r"some.txt:\d+: .* (corrupt|damaged)"), opened.open_text(path) as file:
        file.read()


@pytest.mark.parametrize("packing", ["", "gzip"])
@pytest.mark.parametrize("before", [0, 10, 3000])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (b"a\0b", "a NUL byte, which no text holds"),
        (b"caf\xe9 au lait", "the byte 0xe9 is not utf-8; save it as UTF-8"),
        (b"\xff", "the byte 0xff is not utf-8"),
        (b"\xc3\n", "the byte 0xc3 is not utf-8"),
    ],
)
def test_what_is_no_text_is_told_with_its_line(path, packing, before, wrong, message):
    path.write_bytes(PACKERS[packing](b"".join(LINES[:before]) + wrong + b"\n" + TEXT))
    with pytest.raises(NotTextError, match=rf"some.txt:{before + 1}: {message}"), opened.open_text(path) as file:
        file.read()


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("at", [0, 1, 2, 3, BLOCK - 1, BLOCK, 3 * BLOCK + 5])
def test_lines_are_counted_from_the_first_one_with_and_without_a_mark(path, mark, at):
    text = b"\n" * at + b"\0"
    path.write_bytes(mark + text)
    with opened.open_text(path) as file, pytest.raises(NotTextError, match=rf"some.txt:{at + 1}: a NUL byte"):
        list(iter(lambda: file.read(7), b""))


def test_a_character_cut_off_at_the_end_is_told(path):
    path.write_bytes("ab\nç".encode()[:-1])
    with pytest.raises(NotTextError, match=r"some.txt:2: the byte 0xc3"), opened.open_text(path) as file:
        file.read()


def test_other_encodings_come_as_utf_8(path):
    text = "né ç\nü\n" * 30_000
    for encoding in ("latin-1", "utf-16", "utf-32-be", "cp1252"):
        path.write_bytes(text.encode(encoding))
        with opened.open_text(path, encoding) as file:
            assert file.read().decode() == text


def test_an_endless_line_is_refused(path, monkeypatch):
    monkeypatch.setattr(opened, "LONGEST_LINE", 3 * BLOCK)
    path.write_bytes(b"a\n" + b"b" * 3 * BLOCK + b"\n")
    with opened.open_text(path) as file:
        assert len(file.readlines()) == 2
    path.write_bytes(b"a\n" + b"b" * 6 * BLOCK + b"\n")
    with (
        pytest.raises(DataError, match=r"some.txt:2: a line of more than 196,608 bytes"),
        opened.open_text(path) as file,
    ):
        file.readlines()


@pytest.mark.parametrize("packing", ["gzip", "bzip2", "xz", "zstd"])
def test_an_archive_that_unpacks_to_far_more_than_it_is_is_refused(path, monkeypatch, packing):
    monkeypatch.setattr(opened, "FREE_BYTES", 4 * BLOCK)
    monkeypatch.setattr(opened, "MOST_RATIO", 50)
    path.write_bytes(PACKERS[packing](b"1 1:1\n" * 600_000))
    reason = rf"came of the first [\d,]+ packed by {packing}; more than 50 times as many are not taken: unpack the file"
    with pytest.raises(DataError, match=reason), opened.open_text(path) as file:
        file.read()
    path.write_bytes(PACKERS[packing](b"1 1:1\n" * 9000))  # below what is free
    with opened.open_text(path) as file:
        assert len(file.read()) == 54_000


def test_a_file_that_changes_while_it_is_read_is_told(path):
    path.write_bytes(TEXT)
    with opened.open_text(path) as file:
        file.readline()
        path.write_bytes(TEXT[: BLOCK // 2])
        with pytest.raises(DataError, match=r"some.txt has changed while it was read"):
            file.readlines()


def test_the_line_of_a_row_passes_over_lines_without_one(path):
    path.write_bytes(b"a\n\n \nb\n# c\nd\n")
    place = opened.place_in(path)
    assert [place(row) for row in range(4)] == [f"{path}:{line}" for line in (1, 4, 5, 6)]
    assert opened.place_in(path, lambda text: text.strip() and text[:1] != b"#")(2) == f"{path}:6"


def test_a_row_that_is_gone_says_that_the_file_changed(path):
    path.write_bytes(b"a\nb\n")
    place = opened.place_in(path)
    path.write_bytes(b"a\n")
    with pytest.raises(DataError, match=f"{path.name} has changed while it was read"):
        place(1)


def test_a_stream_that_was_not_opened_can_be_closed_as_python_does_when_it_is_let_go(tmp_path):
    file = tmp_path / "rows.txt"
    file.write_bytes(b"1 1:1\n")
    text = opened.CheckedText.__new__(opened.CheckedText)
    with pytest.raises(LookupError, match="unknown encoding"):
        text.__init__(file, "no-such-encoding", "")
    text.close()
    assert text.closed
