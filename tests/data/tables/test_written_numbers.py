"""Numbers as people write them: with a currency, groups of digits, percent or a decimal comma; rare separators."""

import numpy as np
import pytest

from workbench import data
from workbench.data.files import types

pa = pytest.importorskip("pyarrow")


def read(folder, text, **parameters):
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    return data.load("table", path=folder / "rows.csv", cache=False, **parameters)


AMOUNTS = {
    "$3,123.00": 3123.0, "-$5": -5.0, "($1,200.50)": -1200.5, "1,234,567": 1234567.0, "12,34,567": 1234567.0,
    "US$ 12": 12.0, "USD 7.5": 7.5, "9 EUR": 9.0, "19.50 €": 19.5, "£.5": 0.5, "45%": 45.0, "+3 %": 3.0,
    "1'234.5": 1234.5, "1 234": 1234.0, "Rs. 5,000": 5000.0, "-12 kr": -12.0, "5": 5.0, "1e3": 1000.0,
    "10,000+": 10_000.0,
    "3,5": None, "12,34": None, "a5": None, "$": None, "1,2345": None, "5 apples": None, "1 23": None, "(5": None,
    "10-12": None, "%": None, "$1.5M": None, "2024-01-05": None, "12:30": None, "": None,
}  # fmt: skip


def test_numbers_with_a_currency_groups_of_digits_or_percent_are_read():
    from workbench.data.tables.texts import Texts, read_amounts

    found, _ = read_amounts(Texts(pa.array(list(AMOUNTS))))
    assert [None if np.isnan(value) else value for value in found] == list(AMOUNTS.values())


def amounts(count, write):
    return "".join(f"{write(row)};{row % 3}.5;{'ab'[row % 2]}\n" for row in range(count))


def test_a_column_of_amounts_is_a_number_and_the_guess_says_so(tmp_path):
    made = read(tmp_path, "cost;size;y\n" + amounts(120, lambda row: f"${1000 + 7 * row:,}.00"))
    plain = read(tmp_path, "cost;size;y\n" + amounts(120, lambda row: f"{1000 + 7 * row}.00"))
    assert (made.x != plain.x).nnz == 0
    (note,) = (guess for guess in made.facts["guesses"] if "cost" in guess)
    assert note.startswith("The column cost is a number, written as '$1,000.00'. As a category: ")
    assert '{"cost": {"kind": "category"}}' in note
    asked = read(
        tmp_path,
        "cost;size;y\n" + amounts(120, lambda row: f"${row % 40:,}"),
        columns={"columns": {"cost": {"kind": "category"}}},
    )
    assert len(next(iter(asked.facts["reread"]["columns"]["columns"].values()))["values"]) == 40


def test_labels_that_are_amounts_of_few_values_are_names(tmp_path):
    made = read(tmp_path, "size;y\n" + "".join(f"{row / 7};{10 * (row % 3)}%\n" for row in range(90)))
    assert made.labels.classes == ("0%", "10%", "20%")


def test_amounts_in_a_column_named_as_an_id_are_a_category(tmp_path):
    lines = "".join(f"{110 + row // 9} {100 + row},{row % 7}.5,{row % 2}\n" for row in range(120))
    made = read(tmp_path, f"zip,size,y\n{lines}")
    assert made.facts["reread"]["columns"]["columns"]["zip"]["kind"] == "category"


def test_labels_that_are_amounts_of_many_values_are_numbers(tmp_path):
    lines = "".join(f'{row % 9},"${100_000 + 37 * row:,}"\n' for row in range(200))
    made = read(tmp_path, f"rooms,price\n{lines}")
    assert made.labels.kind == "numbers"
    assert made.y[:2].tolist() == [100_000, 100_037]
    lines = "".join(f'{row % 9},"${row % 5:,}"\n' for row in range(200))
    assert read(tmp_path, f"rooms,price\n{lines}", kind="numbers").y[:3].tolist() == [0, 1, 2]


def test_points_between_groups_of_digits_are_no_fractions_beside_a_decimal_comma(tmp_path):
    lines = "".join(f"{1 + row % 9}.{100 + row},5{row % 10};{row}.000;{row % 7},5 €;{row % 2}\n" for row in range(120))
    made = read(tmp_path, f"a;b;c;y\n{lines}")
    columns = made.facts["reread"]["columns"]["columns"]
    assert columns["a"]["kind"] == "number"
    assert made.x[:, [0]].max() > 1000
    assert any("decimal comma" in guess for guess in made.facts["guesses"])


SIGNS = {"caret": "^", "tilde": "~", "control-a": "\x01", "colon": ":", "bang": "!"}


@pytest.mark.parametrize(("name", "sign"), SIGNS.items())
def test_rare_separators_are_seen_where_columns_hold_numbers(name, sign, tmp_path):
    lines = [["age", "town", "y"], *([str(20 + row % 50), "abc"[row % 3], str(row % 2)] for row in range(60))]
    (tmp_path / "rows.txt").write_text("".join(f"{sign.join(line)}\n" for line in lines))
    reader, options, why = types.guess(tmp_path / "rows.txt")
    assert (reader, options, why) == ("table", {"separator": name}, f"it looks like {name}-separated text")
    assert data.load(reader, path=tmp_path / "rows.txt", **options).rows == 60
    (tmp_path / "rows.txt").write_text("info: all is well\nwarning: it is not\n")
    assert types.guess(tmp_path / "rows.txt")[0] == "text"


def test_a_first_line_that_says_the_separator_is_heeded(tmp_path):
    lines = "".join(f"{row % 50};{'abc'[row % 3]};{row % 2}\n" for row in range(60))
    for first in ("sep=;\n", '\ufeff"sep=;"\r\n'):
        made = read(tmp_path, f"{first}age;town;y\n{lines}")
        assert made.rows == 60
        assert list(made.facts["reread"]["columns"]["columns"]) == ["age", "town", "y"]
        assert types.guess(tmp_path / "rows.csv")[:2] == ("table", {})
    with pytest.raises(data.DataError, match=r"rows.csv:4: this row has 2 fields"):
        read(tmp_path, "sep=;\na;b;y\n1;2;3\n1;2\n")


def test_times_in_a_table_are_no_entries_of_svmlight(tmp_path):
    lines = "".join(f"2024-03-01 {row % 24:02}:00:00,{row % 7},{row % 2}\n" for row in range(60))
    (tmp_path / "rows.csv").write_text(f"when,v,y\n{lines}")
    assert types.guess(tmp_path / "rows.csv")[0] == "table"
    for line in ("1 3:0.5", "-1,2 1:x", "+1.5e-3 qid:3 1:1 # said", "1,2,3 7:1"):
        (tmp_path / "rows.txt").write_text(f"{line}\n")
        assert types.guess(tmp_path / "rows.txt")[0] == "svmlight", line


def test_archives_say_how_to_unpack_them_and_which_member_to_give(tmp_path):
    import tarfile
    import zipfile

    (tmp_path / "rows.csv").write_text("a,b\n" * 99)
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "rows.csv", "rows.csv")
        archive.add(tmp_path / "rows.csv", "more.csv")
    with pytest.raises(data.DataError, match=r"a tar archive.*tar -xf FILE"):
        data.load("table", path=tmp_path / "x.tar.gz", cache=False)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("README", "x")
        archive.write(tmp_path / "rows.csv", "rows.csv")
    with pytest.raises(data.DataError, match=r"such as 'rows\.csv'"):
        types.guess(tmp_path / "x.zip")


@pytest.mark.parametrize("unit", ["M", " kg", "cm"])
def test_numbers_with_a_unit_are_categories_and_the_guess_says_so(tmp_path, unit):
    made = read(tmp_path, "size,y\n" + "".join(f"{row % 40}{unit},{row % 2}\n" for row in range(200)))
    assert made.features == 41  # one for values that were not seen
    note = f"The column size is a category: numbers with a unit, such as '0{unit}'. As numbers: leave the unit out"
    assert any(guess.startswith(note) for guess in made.facts["guesses"])


def test_codes_of_digits_and_letters_in_a_small_number_are_no_units(tmp_path):
    made = read(tmp_path, "size,y\n" + "".join(f"{row % 4}XL,{row % 2}\n" for row in range(200)))
    assert not any("unit" in guess for guess in made.facts["guesses"])
