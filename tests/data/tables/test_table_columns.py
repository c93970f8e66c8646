"""Kinds of columns: what is guessed and why, the file that says them, and what is refused in it."""

import random

import pytest

from workbench import data
from workbench.data import DataError
from workbench.data.tables import Column, Columns, guess

pytest.importorskip("pyarrow")

COUNT = 400


def drawn(choices):
    source = random.Random(len(choices))
    return [source.choice(choices) for _ in range(COUNT)]


CELLS = {
    "id": [str(10**17 + row) for row in range(COUNT)],
    "age": [f"{row % 90}.5" for row in range(COUNT)],
    "floor": drawn(["1", "2", "3", ""]),
    "visits": [str(row % 100) for row in range(COUNT)],
    "city": drawn(["Ulm", "Oslo", "Rome"]),
    "serial": [f"k{row:05}" for row in range(COUNT)],
    "remark": drawn(["it was a good day", "it was not so good", "I do not know at all"]),
    "constant": ["same"] * COUNT,
    "empty": ["", "NA"] * (COUNT // 2),
    "mixed": ["7", "8.5"] * (COUNT // 2 - 1) + ["9", "oops"],
    "step": [str(row + 7) for row in range(COUNT)],
    "flag": drawn(["0", "0", "0", "0", "1", ""]),
    "bought": ["0", "0", "0", "17"] * (COUNT // 4),
    "share": ["0", "0", "0.5", "-2"] * (COUNT // 4),
    "weight": drawn(['"1,5"', '"-22,75"']),
    "click": drawn(["0", "1"]),
}
GUESSES = {
    "id": ("ignored", "", "numbers of rows, by its name"),
    "age": ("number", "keep", "numbers"),
    "floor": ("number", "keep", "whole numbers"),
    "visits": ("number", "keep", "whole numbers"),
    "city": ("category", "one-hot", "text"),
    "serial": ("ignored", "", "another value in every row, as a name of the row"),
    "remark": ("text", "words", "5.3 words a value"),
    "constant": ("ignored", "", "one value in all rows"),
    "empty": ("ignored", "", "no value"),
    "mixed": ("number", "keep", "99.8% numbers, but 'oops' in row 399"),
    "step": ("ignored", "", "counts the rows"),
    "flag": ("number", "keep", "whole numbers"),
    "bought": ("number", "keep", "whole numbers"),
    "share": ("number", "keep", "numbers"),
    "weight": ("category", "one-hot", "text: a point is read in numbers, and no comma"),
    "click": ("label", "", "its name"),
}


@pytest.fixture
def path(tmp_path):
    rows = [",".join(CELLS), *(",".join(row) for row in zip(*CELLS.values(), strict=True))]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "rows.csv"


@pytest.mark.parametrize("name", GUESSES)
def test_what_a_column_is_guessed_to_be(name, path):
    column = next(column for column in guess(path) if column.name == name)
    kind, encoding, why = GUESSES[name]
    assert (column.kind, column.encoding, column.why) == (kind, encoding, why)
    values = {value for value in CELLS[name] if value not in ("", "NA")}
    assert column.found.distinct == len(values)
    assert column.found.missing == sum(value in ("", "NA") for value in CELLS[name])


def test_text_with_many_values_is_hashed(path, monkeypatch):
    monkeypatch.setattr("workbench.data.tables.guessing.MOST_ONE_HOT", 2)
    column = next(column for column in guess(path) if column.name == "city")
    assert (column.encoding, column.buckets) == ("hashed", 8)


def test_distinct_values_are_counted_up_to_a_limit(path, monkeypatch):
    monkeypatch.setattr("workbench.data.tables.guessing.MOST_DISTINCT", 50)
    visits = next(column for column in guess(path) if column.name == "visits")
    assert (visits.found.distinct, visits.found.is_least, visits.kind) == (50, True, "number")


def test_a_guess_is_shown_as_a_table(path):
    lines = guess(path).text().splitlines()
    assert lines[0].endswith("rows.csv: separated by ',', a header")
    assert lines[1].split() == ["column", "kind", "encoding", "distinct", "missing", "why"]
    floor = next(line.split() for line in lines if line.startswith("floor"))
    missing = CELLS["floor"].count("") / COUNT
    assert floor == ["floor", "number", "keep", "3", f"{missing:.1%}", "whole", "numbers"]
    without = guess(path, label=None, columns={"columns": {"click": {"kind": "ignored"}}}).label
    assert without.why.startswith("the last column; of two values are: ")


def test_a_guess_that_is_saved_and_edited_is_what_is_read(path, tmp_path):
    chosen = data.guess_columns(path)
    chosen.save(tmp_path / "columns.toml")
    again = guess(path, columns=tmp_path / "columns.toml")
    assert again.mapping() == chosen.mapping()
    text = (tmp_path / "columns.toml").read_text()
    text = text.replace("[columns.mixed]", '[columns.mixed]\nmissing = ["oops"]')
    (tmp_path / "columns.toml").write_text(text)
    made = data.load("table", path=path, columns=tmp_path / "columns.toml", cache=False)
    assert made.rows == COUNT
    before = made.features
    (tmp_path / "columns.toml").write_text(text.replace('kind = "text"\nencoding = "words"', 'kind = "ignored"'))
    words = {word for remark in CELLS["remark"] for word in remark.lower().split()}
    assert (
        data.load("table", path=path, columns=tmp_path / "columns.toml", cache=False).features
        == before - len(words) - 1
    )


def test_another_file_of_column_kinds_is_not_taken_for_the_cached_one(path, tmp_path):
    file = tmp_path / "columns.toml"
    file.write_text('others = "ignored"\n[columns.click]\nkind = "label"\n[columns.city]\nkind = "category"\n')
    cache = tmp_path / "cache"
    assert data.load("table", path=path, columns=file, cache=cache).features == 4
    file.write_text(file.read_text() + '[columns.floor]\nkind = "category"\n')
    assert data.load("table", path=path, columns=file, cache=cache).features == 8


def test_any_name_and_value_survives_a_file(tmp_path):
    odd = ('a "b"\\\n\x7f\u2028ü', "plain-name", "with space", "[x]", "", "1.5")
    named = (Column(name, "category", values=odd[:2], missing=("-",)) for name in odd)
    edges = Column("n", "number", edges=(-1e300, 0.1, 1e22))
    divided = Column("k", "number", encoding="keep", divisor=1e-7)
    columns = Columns((*named, edges, divided), {"separator": "\t", "header": False, "quotes": True})
    columns.save(tmp_path / "columns.toml")
    from workbench.data.tables.columns import load

    assert load(tmp_path / "columns.toml").mapping() == columns.mapping()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns.aeg]\nkind = 'number'", r"no column 'aeg'; its columns are id, age, floor"),
        ("[columns.age]\nkind = 'numbers'", "kind of column 'age' is 'numbers'; it is one of category, number, text"),
        (
            "[columns.age]\nkind = 'number'\nbin = 3",
            r"column 'age': Unknown key 'bin'. Did you mean 'bins'\? Expected one of: kind",
        ),
        ("[columns.age]\nencoding = 'log'", "column 'age' has no kind; it is one of category"),
        (
            "[columns.age]\nkind = 'number'\nencoding = 'one-hot'",
            "encoding .*'one-hot'; of the kind number it is keep, binned, log",
        ),
        (
            "[columns.age]\nkind = 'number'\nbuckets = 3",
            "buckets .* is 3; a column of number keep takes scaling, divisor",
        ),
        ("[columns.age]\nkind = 'number'\nbins = 0", "bins of column 'age' is 0; it is a whole number from 1"),
        ("[columns.age]\nkind = 'number'\nbins = true", "bins of column 'age' is True; it is a whole number from 1"),
        (
            "[columns.age]\nkind = 'number'\nedges = [2, 1]",
            "edges .*; it is a list of numbers, each above the one before",
        ),
        ("[columns.age]\nkind = 'number'\nedges = [nan]", "edges .*; it is a list of numbers"),
        ("[columns.age]\nkind = 'number'\nencoding = 'keep'\ndivisor = 0", "divisor .* is 0; it is a number above 0"),
        (
            "[columns.age]\nkind = 'number'\nencoding = 'keep'\nscaling = 'z'",
            "scaling .*'z'; it is one of deviation, largest, none",
        ),
        ("[columns.city]\nkind = 'category'\nvalues = [1]", "values .* is \\[1\\]; it is a list of texts"),
        ("[columns.city]\nkind = 'category'\nvalues = ['a', 'a ']", "values of column 'city' holds 'a' twice"),
        ("[columns.age]\nkind = 'label'\n[columns.city]\nkind = 'label'", "age, city are of kind label; one column is"),
        ("columns = 3", "columns is 3; it holds a table for each column"),
        ("[columns]\nage = 3", "column 'age' is 3; it is a table"),
        ("others = 'x'", "others is 'x'; columns that are not named are 'guessed' or 'ignored'"),
        ("header = 1", "header is 1; it is true or false"),
        ("separator = 'ab'", "separator is 'ab'; it is one sign, or one of comma, tab"),
        (
            "other = 1",
            r"key 'other'. Did you mean 'others'\? Expected one of: separator, header, quotes, decimal, encoding, o",
        ),
        ("= 1", "cannot be read as a file of column kinds"),
    ],
)
def test_what_a_file_of_column_kinds_must_not_say(text, message, path, tmp_path):
    (tmp_path / "columns.toml").write_text(text)
    with pytest.raises(DataError, match=message):
        data.load("table", path=path, columns=tmp_path / "columns.toml", cache=False)


def test_a_missing_file_of_column_kinds_says_how_to_make_one(path, tmp_path):
    with pytest.raises(DataError, match=r"no file .*none.toml; 'workbench data columns SOURCE --out none.toml' writes"):
        data.load("table", path=path, columns=tmp_path / "none.toml", cache=False)
    with pytest.raises(DataError, match="columns is a int; it is the path"):
        guess(path, columns=3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"label": "clik"}, "rows.csv has no column 'clik'; expected one of: id, age"),
        (
            {"label": "age", "columns": {"columns": {"click": {"kind": "label"}}}},
            "label is 'age', and in 'click' of the",
        ),
        ({"separator": "ab"}, "separator is 'ab'"),
        ({"hashed": 0}, "buckets of column 'city' is 0"),
        ({"bins": 0}, "bins of column 'age' is 0"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, message, path):
    with pytest.raises(DataError, match=message):
        data.load("table", path=path, cache=False, **parameters)
