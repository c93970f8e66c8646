"""Compiled code splits text into columns as pyarrow does, and leaves to it what is not plain."""

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.support.small_sets import same
from workbench import data
from workbench.data.errors import DataError
from workbench.data.sources.table import HeldTable
from workbench.data.tables import guessing
from workbench.data.tables.arrow import MISSING_WORDS, Texts, each_number
from workbench.data.tables.blocks import table_of
from workbench.data.tables.compiled import are_dressed, are_printed
from workbench.data.tables.splitting import PADDING, Buffers, Fields
from workbench.data.tables.vocabulary import Vocabulary

ROWS = 90
LINES = [f"{row / 7:.3f},{'uvw'[row % 3]},{row % 2}" for row in range(ROWS)]
PLAIN = {
    "plain": "a,b,y\n" + "\n".join(LINES) + "\n",
    "without the last line end": "a,b,y\n" + "\n".join(LINES),
    "line ends of two signs": "a,b,y\r\n" + "\r\n".join(LINES) + "\r\n",
    "both line ends": "a,b,y\r\n" + "\n".join(LINES) + "\r\n",
    "blank lines at the end": "a,b,y\n" + "\n".join(LINES) + "\n\n\r\n\n",
    "quotes around all": '"a","b","y"\n' + "".join(f'"{row}","","{row % 2}"\n' for row in range(ROWS)),
    "quotes around some": "a,b,y\n" + "".join(f'{row},{"uv"[row % 2]},"{row % 2}"\r\n' for row in range(ROWS)),
    "quotes within": "a,b,y\n" + "".join(f'{row},5" {row % 3},{row % 2}\n' for row in range(ROWS)),
    "empty fields": "a,b,y\n" + "".join(f"{row if row % 3 else ''},,{row % 2}\n" for row in range(ROWS)),
    "a mark at the start": "\ufeffa,b,y\n" + "\n".join(LINES),
    "texts of any length": "a,b,y\n"
    + "".join(f"{'ab' * (row % 12)},{'x' * 8}{row % 5},ü{row % 3}\n" for row in range(ROWS)),
    "texts that differ in one byte": "a,b,y\n"
    + "".join(
        f"{'x' * (row % 31)}{'uv'[place % 2]}{'x' * (place % 23)},{'y' * 9}{row % 7},{row % 2}\n"
        for row in range(ROWS)
        for place in range(6)
    ),
    "a single column": "a\n" + "".join(f"{row % 4}.5\n" for row in range(ROWS)),
}
OTHER = {
    "line ends of the old kind": PLAIN["plain"].replace("\n", "\r"),
    "a separator in quotes": "a,b,y\n" + "".join(f'{row},"u,{row % 2}",{row % 2}\n' for row in range(ROWS)),
    "a quote in quotes": "a,b,y\n" + "".join(f'{row},"u""{row % 2}",{row % 2}\n' for row in range(ROWS)),
    "a line end in quotes": "a,b,y\n" + "".join(f'{row},"u\n{row % 2}",{row % 2}\n' for row in range(ROWS)),
    "a line end in a name": '"a\nb",b,y\n' + "\n".join(LINES),
    "a line end in quotes, late": PLAIN["plain"] + '5,"u\nv",1\n' + "\n".join(LINES),
    "text behind quotes": "a,b,y\n" + "".join(f'{row},"u"v{row % 2},{row % 2}\n' for row in range(ROWS)),
    "blank lines": PLAIN["plain"].replace("\n", "\n\n"),
    "blank lines of a single column": "a\n" + "".join(f"{row % 4}.5\n\n" for row in range(ROWS)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES", 256)
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES_COLUMN", 0)


def written(folder, text):
    path = folder / "rows.csv"
    path.write_bytes(text.encode())
    return path


def blocks_of(table, names):
    """Return the distinct texts and the numbers of the rows of each block."""
    return [
        {name: (texts.distinct.to_pylist(), texts.numbers.tolist()) for name, texts in block.items()}
        for block in table.blocks(names)
    ]


@pytest.mark.parametrize("name", [*PLAIN, *OTHER])
def test_blocks_are_those_of_pyarrow(name, tmp_path):
    path = written(tmp_path, (PLAIN | OTHER)[name])
    table, other = table_of(path), table_of(path)
    other._is_plain = False
    for names in (list(table.names), list(table.names[-1:])):
        expected = blocks_of(other, names)
        assert len(expected) > 1
        assert blocks_of(table, names) == expected
    assert table._is_plain == (name in PLAIN)


def test_what_is_refused_is_what_pyarrow_refuses(tmp_path):
    for wrong in ("1,2\n", "1,2,3,4\n", '1,"2,3\n'):
        path = written(tmp_path, PLAIN["plain"] + wrong + "\n".join(LINES))
        with pytest.raises(DataError, match=rf"rows\.csv:{ROWS + 2}: "):
            list(table_of(path).blocks(["a"]))


def fields(texts):
    """Return texts in a block, between commas."""
    encoded = [text.encode() for text in texts]
    stops = np.cumsum([len(text) + 1 for text in encoded]) - 1
    starts = stops - [len(text) for text in encoded]
    block = np.frombuffer(b",".join(encoded) + b"\n" + bytes(PADDING), np.uint8)
    return Fields(block, starts.astype(np.int32), stops.astype(np.int32))


def test_numbers_have_the_bits_that_python_gives():
    source = random.Random(0)
    texts = [repr(source.gauss(0, 1) * 10.0 ** source.randint(-320, 300)) for _ in range(2000)]
    texts += [f"{source.random():.{digits}f}" for digits in range(30)]
    texts += ["+1", "-0", "01", "1.", ".5", "1e5", "1E-400", "1e400", "9007199254740993", "1" * 40, "5e-324"]
    np.testing.assert_array_equal(fields(texts).numbers(), [float(text) for text in texts])
    wrong = ["", "+", ".", "e5", "1e", "1e+", "0x1", "1_0", "inf", "nan", " 1", "1 ", "1-", "--1", "1,5", "١"]
    assert np.isnan(fields(wrong).numbers()).all()


@pytest.mark.parametrize("odd", ["\u00a0x", "x\u2003", "\x1fx", "ü"])
def test_blanks_and_words_for_missing_values_are_found_in_a_block_as_in_an_array(odd):
    texts = ["x", " x", "\tx ", "", " ", "NA", " null", "nullx", "N", "0"]
    for one in (texts, [*texts, odd]):
        numbers = each_number(len(one))
        found = [
            column.cleaned(MISSING_WORDS) for column in (Texts(fields(one), numbers), Texts(pa.array(one), numbers))
        ]
        assert found[0].distinct.to_pylist() == found[1].distinct.to_pylist()
        assert found[0].numbers.tolist() == found[1].numbers.tolist()
        assert found[0].cleaned(MISSING_WORDS) is found[0]


def test_a_vocabulary_numbers_texts_in_the_order_in_which_they_appear():
    source = random.Random(0)
    vocabulary, expected = Vocabulary(("first", "")), {"first": 0, "": 1}
    for _ in range(30):
        texts = [source.choice("aü\0") * source.randint(0, 20) + str(source.randint(0, 400)) for _ in range(97)]
        texts += ["\0" * source.randint(0, 18) for _ in range(3)]
        column = Texts(pa.array(texts), each_number(100))
        assert vocabulary.find(column).tolist() == [expected.get(text, -1) for text in texts]
        assert vocabulary.add(column).tolist() == [expected.setdefault(text, len(expected)) for text in texts]
    assert vocabulary.array().to_pylist() == list(expected)
    assert vocabulary.in_order() == tuple(sorted(expected))
    assert len(vocabulary) == len(expected)
    vocabulary.close()
    assert vocabulary.texts().distinct.to_pylist() == list(expected)
    with pytest.raises(AssertionError, match="closed"):
        vocabulary.find(column)


def test_texts_that_are_kept_are_held_once_for_all_blocks(tmp_path, monkeypatch):
    kept, held = [], HeldTable._held
    monkeypatch.setattr(
        HeldTable, "_held", lambda self, *texts: kept.append((texts[0], held(self, *texts))) or kept[-1][1]
    )
    rows = "".join(f"{'uvw'[row % 3] * 20},{row % 2}\n" for row in range(ROWS))
    data.load("table", path=written(tmp_path, f"a,y\n{rows}"), cache=False)
    stores = {texts.known.store for name, texts in kept if name == "a"}
    assert len(kept) > 2
    assert [store.texts().distinct.to_pylist() for store in stores] == [["u" * 20, "v" * 20, "w" * 20]]


def test_memory_of_a_piece_is_taken_again_when_no_view_of_it_is_left():
    buffers = Buffers()
    first, second = buffers.take(100), buffers.take(100)
    assert first.letters is not second.letters
    view, letters = first.text[3:5], first.letters
    del first
    assert buffers.take(100).letters is not letters
    del view
    assert buffers.take(100).letters is letters
    assert len(buffers.take(len(letters) + 1).letters) > len(letters)


FRACTIONS = [f"{random.Random(row).random():.6f}" for row in range(300)]
COLUMNS = {
    "numbers": (FRACTIONS, {}),
    "words for missing values": (["NA" if row % 9 == 0 else text for row, text in enumerate(FRACTIONS)], {}),
    "a number that means missing": (
        ["-999" if row % 9 == 0 else text for row, text in enumerate(FRACTIONS)],
        {"kind": "number", "missing": ["-999"]},
    ),
    "texts at last": ([text if row < 99 else f"name{row % 7}" for row, text in enumerate(FRACTIONS)], {}),
    "a wrong one": ([text if row != 200 else "wrong" for row, text in enumerate(FRACTIONS)], {}),
    "categories": (FRACTIONS, {"kind": "category"}),
    "labels": (FRACTIONS, {"kind": "label"}),
    "whole numbers": ([str(37 * row - 500) for row in range(300)], {}),
    "whole numbers as categories": ([str(37 * row - 500) for row in range(300)], {"kind": "category"}),
    "whole numbers in two writings": ([f"{37 * row:05d}"[row % 2 :] for row in range(300)], {"kind": "category"}),
    "whole numbers, one of which means missing": (
        [str(row - 500) for row in range(300)],
        {"kind": "number", "missing": ["-499"]},
    ),
    "ids that are guessed": ([f"{row // 2}" for row in range(300)], {}),
    "texts of many lengths": ([f"{'ab' * (row % 17)}{row % 23}" for row in range(300)], {}),
    "texts of many lengths in buckets": (
        [f"{'ab' * (row % 17)}{row % 23}" for row in range(300)],
        {"kind": "category", "buckets": 7},
    ),
    "few at first": (["0.5" if row < 99 else text for row, text in enumerate(FRACTIONS)], {}),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_that_are_kept_give_what_passes_over_the_file_give(name, tmp_path, monkeypatch):
    texts, kind = COLUMNS[name]
    other = "label" if kind.get("kind") != "label" else "b"
    path = written(
        tmp_path, f"a,{other},c\n" + "".join(f"{text},{row % 2},{row % 5}.5\n" for row, text in enumerate(texts))
    )
    columns = {"columns": {"a": kind}} if kind else None

    def read():
        """Return what is read, or the message of the error."""
        try:
            return data.load("table", path=path, columns=columns, cache=False)
        except DataError as error:
            return str(error)

    kept = read()
    monkeypatch.setattr(HeldTable, "_held", lambda self, name, texts: texts)
    monkeypatch.setattr("workbench.data.sources.table.BYTES_VALUE", 0)
    expected = read()
    assert kept == expected if isinstance(expected, str) else same(kept, expected)
    assert isinstance(expected, str) == (name == "a wrong one")


def test_fractions_are_counted_where_the_guess_is_shown(tmp_path):
    path = written(tmp_path, "a,y\n" + "".join(f"{text},{row % 2}\n" for row, text in enumerate(FRACTIONS)))
    assert guessing.guess_columns(path).columns[0].found.distinct == 300
    table = table_of(path)
    assert guessing.survey(table, ["a"], counts_all=False)["a"].distinct == guessing.MANY


@pytest.mark.parametrize("length", [1, 7, 8, 9, 20])
def test_signs_are_found_wherever_they_stand(length):
    signs = [*range(1, 256)]
    for place in range(length):
        letters = np.full((len(signs), length), ord("7"), np.uint8)
        letters[:, place] = signs
        for sign, row in zip(signs, letters, strict=True):
            offsets = np.array([0, length], np.int32)
            assert are_printed(offsets, row) == (33 <= sign <= 126)
            is_marked = chr(sign) in " $%'(," or sign > 126
            assert are_dressed(offsets, row)[0] == (is_marked and (length > 1 or chr(sign).isdecimal()))
