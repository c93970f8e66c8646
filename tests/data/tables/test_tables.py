"""The reader of tables: every encoding against a plain reference, layouts, labels, and files read like a first one."""

import json
import random
import subprocess
import sys

import numpy as np
import pytest

from tests.support import table_reference as reference
from tests.support.small_sets import same
from workbench import data, formats
from workbench.data import DataError
from workbench.data.tables import guess
from workbench.data.tables.texts import Texts, hashed, numbers_of

pa = pytest.importorskip("pyarrow")

ROWS = 200


def written(folder, text, name="rows.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder, text, **parameters):
    return data.load("table", path=written(folder, text), cache=False, **parameters)


def table(**columns):
    """Text of a table with these columns, and y, a label."""
    count = len(next(iter(columns.values())))
    columns["y"] = [str(row % 2) for row in range(count)]
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    return "\n".join(lines) + "\n"


def small_blocks(monkeypatch, count):
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES", count)
    monkeypatch.setattr("workbench.data.tables.blocks.BLOCK_BYTES_COLUMN", 0)


def drawn(choices, seed=0, count=ROWS):
    source = random.Random(seed)
    return [source.choice(choices) for _ in range(count)]


COLOURS = drawn(["red", " red", "green ", "blue", "", "NA", "?", "ünï", "7"])
NUMBERS = drawn(["0", "1.5", "-2", "3e2", "+4", ".5", " 6 ", "", "nan", "1e-3", "-0"])
TEXTS = drawn(["a quick, brown fox", "the fox THE fox", "", "über Öl 42 a_b", "!!!", "NULL"])
ENCODED = {
    "one-hot": ({"kind": "category"}, COLOURS, reference.one_hot(COLOURS)),
    "given values": (
        {"kind": "category", "values": ["NA", "red"]},
        COLOURS,
        reference.one_hot(COLOURS, known=["NA", "red"]),
    ),
    "hashed": ({"kind": "category", "buckets": 5}, COLOURS, reference.hashed(COLOURS, 5)),
    "binned": ({"kind": "number", "bins": 4}, NUMBERS, reference.binned(NUMBERS, 4)),
    "keep": ({"kind": "number", "encoding": "keep"}, NUMBERS, reference.kept(NUMBERS)),
    "largest": (
        {"kind": "number", "encoding": "keep", "scaling": "largest"},
        NUMBERS,
        reference.kept(NUMBERS, "largest"),
    ),
    "deviation": (
        {"kind": "number", "encoding": "keep", "scaling": "deviation"},
        NUMBERS,
        reference.kept(NUMBERS, "deviation"),
    ),
    "log": ({"kind": "number", "encoding": "log"}, NUMBERS, reference.kept(NUMBERS, log=True)),
    "words": ({"kind": "text", "buckets": 64}, TEXTS, reference.words(TEXTS, 64)),
}


@pytest.mark.parametrize("name", ENCODED)
def test_an_encoding_is_what_plain_python_makes_of_each_value(name, tmp_path, monkeypatch):
    small_blocks(monkeypatch, 256)  # so that values of several blocks are joined
    said, values, expected = ENCODED[name]
    quoted = [f'"{value}"' for value in values]
    text = table(x=quoted, other=drawn(["a", "b"], seed=1))
    made = read(tmp_path, text, columns={"columns": {"x": said, "other": {"kind": "category"}}})
    beside = reference.one_hot(drawn(["a", "b"], seed=1))
    np.testing.assert_allclose(made.x.toarray(), reference.side_by_side(expected, beside), rtol=1e-6)
    formats.check(made.x, full=True)
    assert made.x.has_canonical_format
    assert (made.x.dtype, made.x.indices.dtype) == (np.float32, np.int32)
    assert (made.y == np.arange(ROWS) % 2).all()


@pytest.mark.parametrize("name", ENCODED)
def test_a_file_read_like_another_has_its_columns(name, tmp_path):
    said, values, _ = ENCODED[name]
    first = read(tmp_path, table(x=[f'"{v}"' for v in values]), columns={"columns": {"x": said}})
    reread = json.loads(json.dumps(first.facts["reread"]))
    part = table(x=[f'"{v}"' for v in values[10:20]])
    second = data.load("table", path=written(tmp_path, part, "second.csv"), like=first, cache=False)
    np.testing.assert_array_equal(second.x.toarray(), first.x.toarray()[10:20])
    assert reread == json.loads(json.dumps(second.facts["reread"]))
    assert second.labels == first.labels


def test_values_unseen_in_training_count_as_missing_ones(tmp_path):
    first = read(tmp_path, table(x=["a", "b", "a", "b"]))
    second = data.load("table", path=written(tmp_path, table(x=["c", "", "b"]), "b.csv"), like=first, cache=False)
    assert second.x.toarray().tolist() == [[0, 0, 1], [0, 0, 1], [0, 1, 0]]


def test_columns_that_a_second_file_has_beside_those_of_the_first_are_ignored(tmp_path):
    first = read(tmp_path, table(x=["a", "b", "a", "b"]))
    text = table(new=["u", "v", "w"], x=["b", "a", "b"])
    second = data.load("table", path=written(tmp_path, text, "b.csv"), like=first, cache=False)
    assert second.x.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    with pytest.raises(DataError, match=r"b.csv has no column 'x'; its columns are z, y"):
        data.load("table", path=written(tmp_path, table(z=["b"]), "b.csv"), like=first, cache=False)


PARQUET_TYPES = {
    "string": pa.array(["a", "b", None, "a"]),
    "int": pa.array([1, 2, None, 1]),
    "float": pa.array([1.5, float("nan"), None, -2.25]),
    "half": pa.array(np.float16([1.5, 2, 0, 1])),
    "bool": pa.array([True, False, None, True]),
    "decimal": pa.array([1, 2, None, 1]).cast(pa.decimal128(25, 2)),
    "date": pa.array([1, 2, None, 1], pa.date32()),
    "dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "large": pa.array(["a", "b", None, "a"], pa.large_string()),
    "bytes": pa.array([b"a", b"b", None, b"a"]),
}


def test_parquet_gives_what_the_same_values_give_as_text(tmp_path):
    columns = pa.table({**PARQUET_TYPES, "label": pa.array(["no", "yes", "no", "no"])})
    pa.parquet.write_table(columns, tmp_path / "x.parquet")
    as_text = "string,int,float,half,bool,decimal,date,dictionary,large,bytes,label\n"
    as_text += "a,1,1.5,1.5,true,1.00,1970-01-02,a,a,a,no\nb,2,,2,false,2.00,1970-01-03,b,b,b,yes\n"
    as_text += ",,,0,,,,,,,no\na,1,-2.25,1,true,1.00,1970-01-02,a,a,a,no\n"
    of_parquet = data.load("table", path=tmp_path / "x.parquet", cache=False)
    assert same(of_parquet, read(tmp_path, as_text))


def test_values_of_a_dictionary_that_no_row_has_are_none(tmp_path):
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["3", "7", "unused"]))
    pa.parquet.write_table(pa.table({"x": coded, "label": coded}), tmp_path / "x.parquet")
    made = data.load(
        "table", path=tmp_path / "x.parquet", cache=False, columns={"columns": {"x": {"kind": "category"}}}
    )
    assert (made.x.toarray().tolist(), made.classes) == ([[1, 0, 0], [0, 1, 0], [1, 0, 0]], ("3", "7"))


@pytest.mark.parametrize("lists", [[[0.5], [1.5, 2.5]], [[["u"]], []], [{"a": 1}, {"a": 2}]])
def test_other_lists_in_parquet_are_ignored_unless_they_are_asked_for(lists, tmp_path):
    columns = {"x": pa.array(["a", "b"]), "tags": pa.array(lists), "y": pa.array([0, 1])}
    pa.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    made = data.load("table", path=tmp_path / "x.parquet", cache=False)
    assert made.features == 3
    assert "The column 'tags' holds lists and is left out." in made.facts["guesses"]
    with pytest.raises(DataError, match="column 'tags' holds lists or structures"):
        data.load("table", path=tmp_path / "x.parquet", cache=False, columns={"columns": {"tags": {"kind": "text"}}})


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separator_line_ends_and_a_mark_are_seen(separator, end, tmp_path):
    text = "\ufeff" + end.join(["size of it,colour,y", "1.5,a,0", '2.5,"a ""b"";",1', "3.5,a,0", "", "4.5,?,1", ""])
    text = text.replace(",", separator)
    made = read(tmp_path, text)
    expected = [reference.kept(["1.5", "2.5", "3.5", "4.5"]), reference.one_hot(["a", 'a "b";', "a", "?"])]
    np.testing.assert_array_equal(made.x.toarray(), reference.side_by_side(*expected))
    assert made.y.tolist() == [0, 1, 0, 1]


def test_separators_and_line_ends_within_quotes_are_text(tmp_path):
    made = read(tmp_path, 'x,y\n"a,\nb",0\n"a\n\nb",1\n"a,\nb",0\n')
    assert made.x.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("before", ["", "# made on a day\n", '\n# of 2, "no more\n\n# rows, and\n'])
def test_lines_of_comments_before_a_table_are_passed_over(before, tmp_path):
    expected = read(tmp_path, "a,b,y\nred,1,0\nblue,2.5,1\n")
    made = read(tmp_path, f"{before}a,b,y\nred,1,0\nblue,2.5,1\n")
    assert same(made, expected)
    assert same(read(tmp_path, f"{before}#a,b,y\nred,1,0\nblue,2.5,1\n"), expected)
    with pytest.raises(DataError, match=rf"rows.csv:{before.count(chr(10)) + 3}: this row has 2 fields"):
        read(tmp_path, f"{before}a,b,y\nred,1,0\nblue,2.5\n")


def test_without_a_header_columns_are_numbered(tmp_path):
    text = "1,a,2.5\n0,b,3.5\n1,a,4.5\n"
    assert read(tmp_path, text).facts["guesses"][0].startswith("The label is the column 'c2' (the last column; of two")
    made = read(tmp_path, text, label="c0")
    assert (made.features, made.y.tolist()) == (3 + 1, [1, 0, 1])
    assert guess(tmp_path / "rows.csv", header=True).names == ("1", "a", "2.5")


def test_a_table_of_words_alone_has_a_header_where_its_names_come_once(tmp_path):
    assert guess(written(tmp_path, "size,colour\nbig,red\nsmall,red\nbig,blue\n")).names == ("size", "colour")
    assert guess(written(tmp_path, "e,p\np,e\ne,e\n")).names == ("c0", "c1")


NUMBERED = {
    "pandas": ("0,1,2,3,4", "0.5,1,2,{0},{1}"),
    "pandas and a label": ("0,1,label", "{0},1.5,{1}"),
    "pandas, a text and a label": ("0,1,2,city,label", "{0},1.5,2,Rome,{1}"),
    "pandas with an index": (",0,1,2,label", "{0},1.5,2,{0},{1}"),
    "years above numbers": ("1990,1995,2000,y", "{0},1,2,{1}"),
    "years behind names": ("country,1990,1991,1992,1993", "land {0},1,2,3,{1}"),
    "whole numbers of many columns": (",".join(map(str, range(12))), "{0},{0},1,2,3,4,5,6,7,8,9,{1}"),
}
NO_NAMES = {
    "fractions": ("0.5,1,a", "{0},2,b"),
    "numbers that do not rise": ("3,1,2,a", "{0},1,2,b"),
    "few numbers behind a text": ("land,1,2,3", "land {0},1,2,{1}"),
    "few numbers": ("0,1,2", "{0},1.5,{1}"),
    "whole numbers from 0": ("0,1,2,3", "{0},1,2,{1}"),
    "rows that count on": ("0,1,2,3,4,5,6,7,8,9", "10,11,12,13,14,15,16,17,18,19"),
    "a missing value": ("NA,1,2,3,4", "{0},1,2,3,{1}"),
    "a name again": ("a,1,2,3,4", "a,{0},2,3,{1}"),
}


@pytest.mark.parametrize("name", NUMBERED)
def test_numbers_that_count_on_are_names(name, tmp_path):
    head, row = NUMBERED[name]
    text = "".join(row.format(number, number % 2) + "\n" for number in range(20))
    made = read(tmp_path, f"{head}\n{text}")
    assert same(made, read(tmp_path, f"{head}\n{text}", header=True))
    assert (made.rows, made.classes) == (20, ("0", "1"))


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_first_row_with_other_numbers_is_a_row(name, tmp_path):
    head, row = NO_NAMES[name]
    rows = "".join(row.format(number, number % 2) + "\n" for number in range(5))
    assert guess(written(tmp_path, f"{head}\n{rows}")).names == tuple(f"c{at}" for at in range(head.count(",") + 1))


@pytest.mark.parametrize("name", ["timestamp", "createdAt", "signup_date", "Time"])
def test_a_time_in_the_last_column_is_no_label(name, tmp_path):
    with pytest.raises(DataError, match="which column is the label"):
        read(tmp_path, f"a,b,{name}\n" + "".join(f"{at % 5},{at % 3}.5,{at * at}\n" for at in range(20)))


def test_text_that_differs_in_most_rows_is_no_label_and_another_column_is_proposed(tmp_path):
    rows = [f"r{at % 40},{at % 9},{at % 5},on day {at}" for at in range(200)]
    with pytest.raises(
        DataError, match=r"which column is the label.*label=\"stars\".*model=\"als\", which needs no label"
    ):
        read(tmp_path, "reader,book,stars,bought\n" + "\n".join(rows) + "\n")
    days = [f"{row.rpartition(',')[0]},2026-0{1 + at % 9}-03" for at, row in enumerate(rows)]
    with pytest.raises(DataError, match=r"which column is the label.*such as label=\"stars\""):
        read(tmp_path, "reader,book,stars,bought_on\n" + "\n".join(days) + "\n")
    made = read(tmp_path, "reader,book,stars,bought\n" + "\n".join(rows[:50]) + "\n")
    assert len(made.classes) == 50, "of few rows each may be a class"


def test_lists_in_a_label_are_refused_without_a_hint_that_it_cannot_be(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": 1, "y": [1]}\n{"a": 2, "y": [0]}\n')
    with pytest.raises(DataError, match="column 'y' holds lists or structures; expected a label in each row"):
        data.load("table", path=tmp_path / "a.jsonl", label="y")


def test_labels_keep_their_meaning(tmp_path):
    names = read(tmp_path, "x,y\na,<=50K\nb,>50K\na,<=50K\n")
    assert (names.classes, names.labels.positive) == (("<=50K", ">50K"), ">50K")
    numbers = read(tmp_path, "x,y\na,0.5\nb,2\na,-1\n")
    assert (numbers.kind, numbers.y.tolist()) == ("numbers", [0.5, 2, -1])
    several = read(
        tmp_path, 'x,y\na,"u,v"\nb,v\na,""\n', kind="multilabel", columns={"columns": {"x": {"kind": "category"}}}
    )
    assert (several.classes, several.y.tolist()) == (("u", "v"), [[1, 1], [0, 1], [0, 0]])


def test_hashed_and_bins_are_those_of_guessed_columns(tmp_path):
    text = table(x=COLOURS, z=drawn(["1.5", "2.5", "3.5", ""]), w=COLOURS)
    made = read(tmp_path, text, hashed=8, bins=2, columns={"columns": {"w": {"kind": "category"}}})
    assert made.features == 9 + 3 + reference.one_hot(COLOURS)[0]


MEASURED = """
import sys
import pyarrow as pa
from workbench.data.sources import table as source
from workbench.data.tables import blocks
blocks.BLOCK_BYTES, blocks.BLOCK_BYTES_COLUMN = 1 << 16, 0
pool = pa.default_memory_pool()
print(max(pool.bytes_allocated() for _ in source.blocks(sys.argv[1]).blocks))
"""


def test_a_file_is_read_in_blocks_of_which_memory_holds_a_few(tmp_path):
    rows, texts = 20_000, ["x" * 400 + str(number) for number in range(50)]
    path = written(tmp_path, table(a=drawn(texts, count=rows), b=drawn(texts, 1, count=rows)))
    made = subprocess.run([sys.executable, "-c", MEASURED, path], capture_output=True, text=True, check=True)
    assert int(made.stdout) < path.stat().st_size / 3


def test_blocks_hold_the_rows_of_the_whole_table(tmp_path, monkeypatch):
    from workbench.data.sources import table as source

    small_blocks(monkeypatch, 256)
    late = ["1.25"] * (ROWS - 2) + ["2,000.5", "7"]  # fractions until the last block
    text = table(x=COLOURS, z=[f'"{value}"' for value in late], w=NUMBERS, t=[f'"{value}"' for value in TEXTS])
    made = read(tmp_path, text)
    parts = [block.x.toarray() for block in source.blocks(tmp_path / "rows.csv").blocks]
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate(parts), made.x.toarray())


def test_texts_are_numbers_and_have_hashes_as_regular_expressions_and_pandas_say():
    import re

    from pandas.util import hash_array

    texts = ["".join(drawn("01+-.eE x", seed, seed % 8)) for seed in range(2000)]
    texts += ["", "12345678", "123456789", "über" * 5, "inf", "nan", "Infinity"]
    number = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
    expected = [float(text) if number.fullmatch(text) else np.nan for text in texts]
    np.testing.assert_array_equal(numbers_of(pa.array(texts)), expected)
    buckets = hash_array(np.array(texts, object), categorize=False) % np.uint64(1 << 20)
    np.testing.assert_array_equal(hashed(pa.array(texts), 1 << 20), buckets)


def test_missing_words_are_those_that_python_finds():
    words = ("", "?", "NA", "N/A", "null", "\u2014", "\\N")
    texts = ["NA", "NAN", "N", "", "null", "nul", "NULL", " ", "\u2014", "?", "x" * 40, "N/A", "\\N", "a/b"]
    column = Texts(pa.array(texts)).cleaned(words)
    kept = [None if number < 0 else column.text(number) for number in column.codes]
    assert kept == [None if text.strip() in words else text.strip() for text in texts]
    assert not len(Texts(pa.array([], pa.string())).cleaned(words))
