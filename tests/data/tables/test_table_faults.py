"""Tables that are not as they should be: an error with file and line, or a meaning that is stated."""

import bz2
import gzip
import lzma

import pytest

from workbench import data
from workbench.data import DataError
from workbench.data.sources import table
from workbench.data.tables import guess
from workbench.data.tables.blocks import table_of

pa = pytest.importorskip("pyarrow")

HEAD = "size,colour,y\n"
ROWS = "1.5,red,0\n2.5,blue,1\n"
NUMBER, CATEGORY = {"kind": "number"}, {"kind": "category"}


def read(folder, content, **parameters):
    path = folder / "rows.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return data.load("table", path=path, cache=False, **parameters)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "rows.csv holds no rows"),
        ("\n\n", "rows.csv holds no rows"),
        (HEAD, "rows.csv holds a header and no rows"),
        (HEAD + ROWS + "3.5,red\n", "rows.csv:4: this row has 2 fields and the first 3, separated by comma"),
        (HEAD + ROWS + "3.5,red,1,9\n" + ROWS, "rows.csv:4: this row has 4 fields and the first 3"),
        (HEAD + '1.5,"red\n\nor so",0\n3.5,red\n', "rows.csv:5: this row has 2 fields"),
        (HEAD + ROWS + '3.5,"red,1\n' + ROWS, "rows.csv:4: a double quote opens a field .* quotes = false"),
        (HEAD + ROWS + '3.5,5",1\n4.5,"red,1\n' + ROWS * 9, "rows.csv:5: a double quote opens"),
        (HEAD + ROWS + "3.5,red,\n", "rows.csv:4: column 'y' has no label here"),
        (HEAD + ROWS * 20 + "3.5,red,maybe\n", "rows.csv:42: the label in column 'y' is 'maybe', and others are num"),
        (HEAD + ROWS + "3.5,red,NaN\n", "rows.csv:4: the label in column 'y' is 'NaN', and others are numbers"),
        (HEAD + ROWS + "3.5,red,1e400\n", "rows.csv:4: the label 'inf' is no finite number"),
        (HEAD + ROWS + "3.5,red," + "x" * 300 + "\n", "rows.csv:4: the label has 300 characters, at most 200"),
        (
            HEAD + ROWS * 20 + "big,red,1\n",
            r"(?s)rows.csv:42: column 'size' holds numbers, and 'big' .* .missing.: \[.big.\]",
        ),
        (HEAD + ROWS + "1e400,red,1\n", "rows.csv:4: column 'size' holds numbers, and '1e400' is no finite one"),
        (
            (HEAD + ROWS).encode() + b"3.5,r\xe9d,1\n",
            "rows.csv:4: the byte 0xe9 is not utf-8; say which encoding it is",
        ),
        (
            (HEAD + ROWS).encode() + b"3.5,r\0d,1\n",
            "rows.csv:4: a NUL byte|rows.csv cannot be read as a table .*: it looks like a binary file",
        ),
        ("x\n1\n2\n", "rows.csv has one column, 'x', and no column of labels.\nType labels=\"FILE\""),
        ("y\n1\n2\n", "rows.csv has no column to learn from: all but 'y' are ignored"),
        ("x,y\n1,0\n1,1\n", "rows.csv has no column to learn from: all but 'y' are ignored"),
        (gzip.compress((HEAD + ROWS * 99).encode(), mtime=0)[:-20], "the gzip file is truncated or corrupt"),
        (b"PAR1" + b"\0" * 99, "cannot be read as a table"),
        (gzip.compress(b"PAR1" + b"\0" * 99, mtime=0), "is a Parquet file packed by gzip; unpack it"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(content, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read(tmp_path, content)


@pytest.mark.parametrize("word", ["inf", "-Infinity", "NaN0", "1_0", "0x10", "1,5", "--1", "1e", "٣"])
def test_a_word_that_is_no_number_is_refused_in_a_column_of_numbers(word, tmp_path):
    with pytest.raises(DataError, match=r"rows\.csv:3: column 'size' holds numbers, and "):
        read(tmp_path, f'{HEAD}1.5,red,0\n"{word}",red,1\n', columns={"columns": {"size": NUMBER}})


def test_a_number_beyond_float32_is_refused_where_it_is_kept(tmp_path):
    content = HEAD + ROWS + "1e300,red,0\n"
    kept = {"columns": {"size": {"kind": "number", "encoding": "keep", "scaling": "none"}, "colour": CATEGORY}}
    with pytest.raises(DataError, match=r"rows.csv:4: column .size. holds 1e\+300, which float32 does not\.\nBy log"):
        read(tmp_path, content, columns=kept)
    for encoding in ("binned", "log"):
        kept["columns"]["size"] = {"kind": "number", "encoding": encoding}
        assert read(tmp_path, content, columns=kept).rows == 3


def test_too_many_values_for_one_column_each_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.data.tables.assembly.MOST_VALUES", 2)
    with pytest.raises(DataError, match=r"(?s)rows\.csv:4: column 'colour' has more than 2 values\..*hashed"):
        read(tmp_path, HEAD + ROWS + "1,green,0\n", columns={"columns": {"colour": CATEGORY}})


def test_one_row_is_a_table(tmp_path):
    made = read(tmp_path, HEAD + "1.5,red,0\n", columns={"columns": {"size": NUMBER, "colour": CATEGORY}})
    assert made.x.toarray().tolist() == [[1.5, 0, 1, 0]]


def test_quotes_may_be_signs_like_others(tmp_path):
    made = read(tmp_path, 'x,y\n"a,0\nb",1\n"a,0\n', quotes=False)
    assert made.facts["reread"]["columns"]["columns"]["x"]["values"] == ['"a', 'b"']
    assert data.load("table", path=tmp_path / "rows.csv", like=made, cache=False).rows == 3


def test_a_row_that_no_block_holds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES", 64)
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES_COLUMN", 0)
    with pytest.raises(DataError, match=r"rows\.csv has a row of more than 64 bytes; is it a table"):
        read(tmp_path, HEAD + ROWS + f"3.5,{'x' * 200},1\n" + ROWS)


@pytest.mark.parametrize("name", ["", "gzip", "bz2", "xz", "zstd"])
def test_packed_tables_are_told_by_what_they_hold(name, tmp_path):
    pack = {"": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    pack["zstd"] = lambda text: pa.compress(text, "zstd", asbytes=True)
    assert read(tmp_path, pack[name]((HEAD + ROWS).encode())).rows == 2


def test_a_guess_names_the_file_that_is_missing(tmp_path):
    with pytest.raises(DataError, match=r"There is no file .*none\.csv; give the path of a table"):
        guess(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", HEAD + ROWS),
        ("rows.arff", "@relation r\n@attribute size numeric\n@attribute y {0,1}\n@data\n1.5,0\n2.5,1\n"),
        ("rows.jsonl", '{"size": 1.5, "y": 0}\n{"size": 2.5, "y": 1}\n'),
    ],
)
def test_the_place_of_a_row_that_is_gone_says_that_the_file_changed(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    table = table_of(path)
    last = len(content.splitlines())
    assert table.place(1) == f"{path}:{last}"
    path.write_text(content.rsplit("\n", 2)[0])
    with pytest.raises(DataError, match=f"{name} has changed while it was read"):
        table.place(1)


def test_labels_that_become_text_after_the_first_pass_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,label\n" + "1.5,1\n2.5,0\n" * 9)
    made = table.blocks(path)
    path.write_text("a,label\n" + "1.5,b\n2.5,c\n" * 9)
    reason = r"x.csv:2: the labels in column 'label' were numbers when the file was read first, and are text now"
    with pytest.raises(DataError, match=reason):
        list(made.blocks)
