"""Tables in JSON: an object a line, or an array of objects."""

import bz2
import json

import numpy as np
import pandas as pd
import pytest

from workbench import data
from workbench.data import DataError

ROWS = [
    {"age": 20 + row % 7 + 0.5 * (row % 2), "colour": ["red", "blü", None][row % 3], "ok": row % 5 > 1, "y": row % 2}
    for row in range(60)
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


def load(path, text, **parameters):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return data.load("table", path=path, cache=False, **parameters)


FORMS = {
    "lines": LINES,
    "with a mark, blank lines and other ends": "\ufeff" + LINES.replace("\n", "\r\n\r\n"),
    "packed": bz2.compress(LINES.encode()),
    "an array": json.dumps(ROWS, ensure_ascii=False),
    "an array in many lines": json.dumps(ROWS, indent=1),
    "columns": json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}),
    "columns by row number, as pandas writes them": json.dumps(
        {name: {str(number): row[name] for number, row in enumerate(ROWS)} for name in ROWS[0]}
    ),
    "rows by row number": json.dumps({str(number): row for number, row in enumerate(ROWS)}),
    "fields in another order, and without those that are null": "".join(
        json.dumps({name: row[name] for name in reversed(row) if row[name] is not None}) + "\n" for row in ROWS
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_json_gives_the_matrix_of_the_same_table_as_csv(tmp_path, form):
    pd.DataFrame(ROWS).replace({True: "true", False: "false"}).to_csv(tmp_path / "rows.csv", index=False)
    expected = data.load("table", path=tmp_path / "rows.csv", cache=False)
    made = load(tmp_path / "rows.json", FORMS[form])
    assert made.y.tolist() == expected.y.tolist()
    assert made.classes == expected.classes == ("0", "1")
    by_column = np.sort(made.x.toarray().sum(axis=0))
    np.testing.assert_array_equal(by_column, np.sort(expected.x.toarray().sum(axis=0)))
    if "another order" not in form:
        assert (made.x != expected.x).nnz == 0


def test_the_label_is_named_and_a_later_file_is_read_like_the_first(tmp_path):
    first = load(tmp_path / "rows.jsonl", LINES, label="ok")
    assert first.classes == ("false", "true")
    (tmp_path / "later.csv").write_text("ok,y,colour,age\ntrue,1,red,21\n")
    later = data.load("table", path=tmp_path / "later.csv", like=first, cache=False)
    assert later.x.shape == (1, first.features)


def test_json_is_converted_and_its_columns_are_listed(tmp_path):
    (tmp_path / "rows.jsonl").write_text(LINES)
    assert data.guess_columns(tmp_path / "rows.jsonl").names == ("age", "colour", "ok", "y")
    data.convert("table", tmp_path / "X.sparse", path=tmp_path / "rows.jsonl")
    assert data.load("sparse", path=tmp_path / "X.sparse", whole=True).rows == 60


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n "a": 1,\n "y": 2\n}\n3\n', r":1: no JSON in one line.*\nType jq -c \. FILE > NEW"),
        ('{"a": 1}\n3\n', r':2: this is no object, such as \{"age"'),
        ('[{"a": 1}, 3]', r", row 1: this is no object"),
        ('[{"a": 1}', r"cannot be read as JSON"),
        ('{"a": 1, "y": 0}\n{"a": 1', r":2: no JSON in one line"),
        ("{}\n{}\n", "holds no fields"),
        (
            '{"rows": [{"a": 1, "y": 0}], "more": [{"a": 2}]}',
            r":1: there are rows in several fields, 'rows', 'more'.\nType jq -c '\.\[\"rows\"\]\[\]'",
        ),
        ('{"columns": ["a", "y"], "data": [[1, 0], [2]]}', r":1, row 1: 1 values for 2 columns"),
        ('{"a": [1, 2], "y": [0]}', r"column 'y' holds lists or structures"),
    ],
)
def test_what_is_no_flat_record_is_refused_with_what_to_type(tmp_path, text, message):
    with pytest.raises(DataError, match=f"(?s)rows.json.*{message}"):
        load(tmp_path / "rows.json", text, label="y")


NESTED = [
    {"user": {"age": 20 + row % 7, "town": "abc"[row % 3]}, "tags": ["x"] * (row % 3), "y": row % 2}
    for row in range(60)
]
NESTED_FORMS = {
    "a line each": "".join(f"{json.dumps(row)}\n" for row in NESTED),
    "an array": json.dumps(NESTED),
    "an array on many lines": json.dumps(NESTED, indent=1),
    "in a field": json.dumps({"count": 60, "rows": NESTED}),
    "in a field, on many lines": json.dumps({"count": 60, "rows": NESTED}, indent=2),
    "as pandas splits it": json.dumps(
        {
            "columns": ["user.age", "user.town", "tags", "y"],
            "index": [*range(60)],
            "data": [[*row["user"].values(), row["tags"], row["y"]] for row in NESTED],
        }
    ),
}


@pytest.mark.parametrize("form", NESTED_FORMS)
def test_objects_within_rows_are_columns_and_arrays_are_several_values_in_every_form(tmp_path, form):
    made = load(tmp_path / "rows.json", NESTED_FORMS[form], label="y")
    columns = made.facts["reread"]["columns"]["columns"]
    assert {name: column["kind"] for name, column in columns.items() if column["kind"] != "ignored"} == {
        "user.age": "number", "user.town": "category", "tags": "category", "y": "label",
    }  # fmt: skip
    assert made.rows == 60
    assert any("The column tags holds several values a row" in note for note in made.facts["guesses"])
