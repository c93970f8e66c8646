"""A table is the same matrix from a file, pandas, Polars and Arrow: entries, labels, names of features and notes."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import workbench as wb
from workbench import option_text
from workbench.data.errors import MissingLabelsError
from workbench.data.tables.assembly import feature_names
from workbench.data.tables.columns import load
from workbench.data.tables.frames import encode, frame_table

ROWS = 240
DRAWN = np.random.default_rng(7)


def picked(*values):
    """Values at random, `ROWS` of them."""
    return [values[place] for place in DRAWN.integers(0, len(values), ROWS)]


TWO = picked(0, 1)
FLOATS = np.round(DRAWN.normal(size=ROWS), 3).tolist()
TABLES = {
    "numbers": {"a": FLOATS, "b": picked(-3, 0, 2), "y": TWO},
    "ids": {"user_id": (DRAWN.integers(0, 50, ROWS) + 1000).tolist(), "a": FLOATS, "y": TWO},
    "ids of many values": {"shop": (DRAWN.integers(0, 60, ROWS) * 7919).tolist(), "a": FLOATS, "y": TWO},
    "beyond 2**53": {"code": [2**53 + int(row) for row in DRAWN.integers(0, 40, ROWS)], "y": TWO},
    "currencies": {"price": [f"${row * 37 % 90 + 1000:,}.00" for row in range(ROWS)], "a": FLOATS, "y": TWO},
    "units": {"size": [f"{row % 40}M" for row in range(ROWS)], "a": FLOATS, "y": TWO},
    "dates": {"day": [str(datetime.date(2024, 1, 1 + row % 20)) for row in range(ROWS)], "a": FLOATS, "y": TWO},
    "truth": {"is_new": picked(True, False), "a": FLOATS, "y": TWO},
    "labels of truth": {"a": FLOATS, "clicked": picked(True, False)},
    "missing numbers": {"a": picked(1.5, None, -2.25), "b": picked(None, None, None, 0.5), "c": FLOATS, "y": TWO},
    "missing whole numbers": {"a": picked(1, None, 7), "c": FLOATS, "y": TWO},
    "missing text": {"a": picked("u", None, "v"), "b": picked(None, None, None, "w"), "c": FLOATS, "y": TWO},
    "words for missing": {"a": picked("u", "?", "v"), "b": picked("n/a", "1", "2"), "c": FLOATS, "y": TWO},
    "without a value": {"a": [None] * ROWS, "c": FLOATS, "y": TWO},
    "categories": {"city": picked("Ulm", "Köln", " Bonn"), "kind": picked("x", "y", "z"), "y": picked("no", "yes")},
    "text": {"review": picked("a quick brown fox", "the lazy dog sleeps well", "Füchse, rote, sind da"), "y": TWO},
    "several": {"genres": picked("a|b", "b", "c|a|d", "d"), "a": FLOATS, "y": TWO},
    "constant": {"one": [3] * ROWS, "word": ["same"] * ROWS, "a": FLOATS, "y": TWO},
    "counting": {"row": list(range(ROWS)), "name": [f"n{row}" for row in range(ROWS)], "a": FLOATS, "y": TWO},
    "timestamp last": {"a": FLOATS, "owner": picked("no", "yes"), "timestamp": [*range(10**9, 10**9 + ROWS)]},
    "two values": {"a": FLOATS, "owner": picked("u", "v"), "b": picked(1, 2, 3)},
    "last column": {"a": picked(1, 2, 3), "b": picked("u", "v", "w"), "cost": FLOATS},
    "labels of few amounts": {"a": FLOATS, "y": picked("$1,000", "$2,000", "$3,000")},
    "labels of many amounts": {"a": FLOATS, "y": [f"${row * 37 % 90 + 1000:,}" for row in range(ROWS)]},
}  # fmt: skip


def columns_of(made):
    return load(made.facts["reread"]["columns"])


def seen(made):
    """What a data set is by its parts, which are compared one by one."""
    columns = columns_of(made)
    return {
        "indptr": made.x.indptr.tolist(),
        "indices": made.x.indices.tolist(),
        "data": made.x.data.tolist(),
        "dtypes": (made.x.data.dtype, made.x.indices.dtype, made.y.dtype),
        "y": made.y.tolist(),
        "labels": (made.labels.kind, made.labels.classes, made.labels.positive),
        "names": feature_names(columns.columns),
        "notes": [option_text.worded(note) for note in made.facts["guesses"]],
    }


HOLDERS = {
    "pandas": lambda table: table.to_pandas(),
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas that holds missing values": lambda table: table.to_pandas().convert_dtypes(),
    "Arrow": lambda table: table,
    "Arrow in chunks": lambda table: pa.concat_tables([table[:70], table[70:71], table[71:]]),
    "Polars": lambda table: pytest.importorskip("polars").from_arrow(table),
    "dict": lambda table: table.to_pydict(),
    "rows": lambda table: table.to_pylist(),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_same_from_files_and_frames(name, tmp_path, capsys):
    table = pa.table(TABLES[name])
    written = {}
    for key, column in TABLES[name].items():  # as pandas writes truth
        written[key] = [str(value) if isinstance(value, bool) else value for value in column]
    pa.csv.write_csv(pa.table(written), tmp_path / "t.csv", pa.csv.WriteOptions(quoting_style="needed"))
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    pa.table(written).to_pandas().to_json(tmp_path / "t.jsonl", orient="records", lines=True, double_precision=15)
    expected = seen(wb.load(tmp_path / "t.csv"))
    assert expected["indptr"][-1]
    assert seen(wb.load(tmp_path / "t.parquet")) == expected
    assert seen(wb.load(tmp_path / "t.jsonl")) == expected
    for holder, make in HOLDERS.items():
        if holder == "Polars":
            continue
        assert seen(wb.load(make(table))) == expected, holder


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_same_from_polars(name):
    table = pa.table(TABLES[name])
    assert seen(wb.load(HOLDERS["Polars"](table))) == seen(wb.load(table))


TYPED = {
    "categories": pd.Series(picked("1", "2", "3")).astype("category"),
    "whole categories": pd.Series(picked(1, 2, 3)).astype("category"),
    "ranges": pd.cut(pd.Series(FLOATS), 5),
    "dates": pd.Series(pd.to_datetime([f"2024-01-{1 + row % 9:02}" for row in range(ROWS)])),
    "times of a zone": pd.Series(pd.to_datetime([f"2024-01-01 {row % 9:02}:30+00:00" for row in range(ROWS)])),
    "periods": pd.Series(pd.period_range("2020", periods=ROWS, freq="D")).map(lambda day: day.asfreq("M")),
    "lists": pd.Series(picked(["a", "b"], ["b"], [], ["c", "a", "a"])),
    "lists of numbers": pd.Series(picked([1, 2], [2], None, [3])),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPED)
def test_types_of_a_frame_decide_what_a_column_is(name, tmp_path):
    frame = pd.DataFrame({"a": FLOATS, "typed": TYPED[name], "y": TWO})
    made = wb.load(frame)
    (column,) = (column for column in columns_of(made) if column.name == "typed")
    assert (column.kind, column.encoding) == ("category", "multi-hot" if "lists" in name else "one-hot")
    if name not in ("ranges", "periods", "whole categories"):  # which Parquet does not hold
        frame.to_parquet(tmp_path / "t.parquet")
        assert seen(wb.load(tmp_path / "t.parquet")) == seen(made)
        assert seen(wb.load(pa.Table.from_pandas(frame))) == seen(made)


def test_numbers_of_any_type_are_numbers():
    values = picked(0.5, 3, 2, 1)
    frame = pd.DataFrame(
        {
            "float16": np.float16(values),
            "longdouble": np.longdouble(values),
            "decimal": [Decimal(str(value)) for value in values],
            "object": pd.Series(values, dtype=object),
            "Float64": pd.array(values, "Float64"),
            "duration": pd.to_timedelta(values, unit="s"),
            "sparse": pd.arrays.SparseArray(values),
            "text": ["u", "v"] * (ROWS // 2),
        }
    )
    x = wb.load(frame, TWO).x.toarray()
    for column in range(7):
        np.testing.assert_array_equal(x[:, column], np.float32(values))
    assert x.shape == (ROWS, 7 + 3)


DATES = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"] * 3))
GAPS = {
    "numbers": pd.Series([1.5, None, 3, 4, 5, 6]),
    "whole numbers": pd.Series([1, None, 3, 4, 5, 6], dtype="Int64"),
    "truth": pd.Series([True, None, False, True, True, False], dtype="boolean"),
    "text": pd.Series(["u", None, "v", "u", "v", "u"]),
    "text objects": pd.Series(["u", None, "v", "u", "v", "u"], dtype=object),
    "objects of truth": pd.Series([True, None, False, True, False, True], dtype=object),
    "categories": pd.Categorical(["u", None, "v", "u", "v", "u"]),
    "categories of numbers": pd.Categorical([1, None, 2, 1, 2, 1]),
    "sparse numbers": pd.Series(pd.arrays.SparseArray([1.0, np.nan, 0, 0, 3, 4])),
    "dates": DATES.mask(DATES.index == 1),
    "durations": (DATES - DATES[0]).mask(DATES.index == 1),
    "periods": DATES.dt.to_period("M").mask(DATES.index == 1),
}


@pytest.mark.parametrize("name", GAPS)
def test_missing_values_of_any_type_have_a_column(name):
    made = wb.load(pd.DataFrame({"gap": GAPS[name], "city": list("abcabc")}), ["no", "yes"] * 3)
    place = feature_names(columns_of(made).columns).index("gap missing")
    assert made.x.toarray()[:, place].tolist() == [0, 1, 0, 0, 0, 0]


def test_lists_are_several_values_in_json_lines_as_in_frames_and_text(tmp_path):
    lists = picked(["a", "b"], ["b"], [], ["c", "a"], None)
    frame = pd.DataFrame({"a": FLOATS, "tags": lists, "y": TWO})
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    expected = seen(wb.load(frame))
    assert seen(wb.load(tmp_path / "t.jsonl")) == expected
    texts = frame.assign(tags=["|".join(values or []) for values in lists])
    declared = {"columns": {"tags": {"kind": "category", "encoding": "multi-hot"}}}
    assert seen(wb.load(texts, columns=declared))["indices"] == expected["indices"]


@pytest.mark.parametrize("make", [lambda frame: frame, pa.Table.from_pandas, lambda frame: frame.convert_dtypes()])
def test_later_frames_are_encoded_by_the_columns_of_the_first(make):
    frame = pd.DataFrame({"city": ["Ulm", "Bonn"] * 20, "size": np.arange(40) / 8, "y": [0, 1] * 20})
    model = wb.train(make(frame), random_state=0, search=0, max_iter=3)
    assert model["encode"].get_feature_names_out().tolist() == ["city=Bonn", "city=Ulm", "city missing", "size"]
    later = pd.DataFrame({"more": [1, 2], "size": [0.25, None], "city": ["Ulm", "Rom"]})
    expected = [[0, 1, 0, 0.25], [0, 0, 1, 0]]
    np.testing.assert_array_equal(encode(make(later), model["encode"].columns).toarray(), expected)
    assert model.predict(make(later)).tolist() == model["train"].predict(np.array(expected)).tolist()
    with pytest.raises(ValueError, match="has no column 'size', which the model was trained on; its columns are city"):
        model.predict(make(later[["city"]]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda frame: frame.to_numpy(),
            r"X is a ndarray; expected a frame.*: color, size\.\nType X = pandas.DataFrame",
        ),
        (lambda frame: frame.iloc[0], r"X is a Series named 0; .*\nType X = X\.to_frame\(\)\.T"),
        (lambda frame: frame.iloc[0].to_dict(), "X is a dict"),
    ],
)
def test_what_is_no_frame_is_refused_by_a_model_of_a_frame(make, message):
    frame = pd.DataFrame({"color": ["red", "blue"] * 20, "size": np.arange(40.0)})
    model = wb.train(frame, [0, 1] * 20, max_iter=1)
    with pytest.raises(ValueError, match=message):
        model.predict(make(frame))
    assert len(model.predict(frame.iloc[0].to_frame().T)) == 1


def test_a_model_of_a_frame_is_saved_and_takes_files_and_frames(tmp_path):
    frame = pd.DataFrame({"city": ["Ulm", "Bonn"] * 20, "size": np.arange(40) / 8, "y": ["no", "yes"] * 20})
    model = wb.train(frame, random_state=0)
    model.save(tmp_path / "model")
    again = wb.load_model(tmp_path / "model")
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert again.predict(frame).tolist() == model.predict(frame).tolist() == frame["y"].tolist()
    assert again.apply(tmp_path / "t.csv").values.tolist() == frame["y"].tolist()


@pytest.mark.parametrize("labels", [["1", "2"], [1, 2], [True, False], [0.5, 1.5], ["no", "yes"]])
def test_a_model_predicts_labels_of_the_type_of_their_column(labels):
    frame = pd.DataFrame({"city": ["Ulm", "Bonn"] * 20, "size": np.arange(40) / 8, "y": labels * 20})
    made = wb.train(frame, label="y", random_state=0)
    assert made.predict(frame).dtype.kind == np.array(labels).dtype.kind
    assert made.score(frame, frame["y"]) > 0.9


def test_settings_of_tables_are_those_of_frames():
    frame = pd.DataFrame({"city": picked("a", "b", "c"), "size": FLOATS, "y": picked(0, 1, None)})
    made = wb.load(frame, unlabelled="skip", hashed=4, bins=3)
    assert made.rows == int(frame["y"].notna().sum())
    assert made.features == 4 + 1 + 3
    with pytest.raises(ValueError, match=r'has no label here.*\nType unlabelled="skip"'):
        wb.load(frame)
    assert wb.load(frame[["city", "size"]], kind="none").facts["random_labels"]


def test_a_time_in_the_last_column_is_the_label_of_no_table(tmp_path):
    frame = pd.DataFrame({"a": FLOATS, "timestamp": DRAWN.permutation(ROWS)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for source in (tmp_path / "t.csv", frame, frame.rename(columns={"timestamp": "when"}).astype({"when": "M8[s]"})):
        with pytest.raises(MissingLabelsError, match=r"which column is the label.*\n.*label=\"NAME\""):
            wb.load(source)


def test_fields_that_rows_lack_are_missing_as_in_json_lines(tmp_path):
    rows = [{"a": row / 4, "y": row % 2} | ({"city": "Ulm"} if row % 3 else {}) for row in range(60)]
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert seen(wb.load(rows)) == seen(wb.load(tmp_path / "t.jsonl"))


def test_columns_are_read_as_they_are_named():
    table = frame_table(pd.DataFrame({1: [1.5, 2], "b": ["u", None]}))
    assert table.names == ("1", "b")
    assert table.place(1) == "The frame, row 1"
