"""JSON lines whose rows have a few fields each of many names: what is absent is not stored, and costs nothing."""

import json

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench import data
from workbench.data import DataError
from workbench.data.tables.sparse_fields import SparseTable

NAMES = 60


def words(rows=300, seed=0):
    """Rows of three counts each, a text that some have, and a label."""
    source = np.random.default_rng(seed)
    made = []
    for row in range(rows):
        chosen = source.choice(NAMES, 3, replace=False)
        fields = {f"w{name}": int(source.integers(1, 4)) for name in chosen}
        fields |= {"shop": source.choice(["a", "b"]).item()} if row % 5 == 0 else {}
        made.append({"y": int(chosen.min() < 12)} | fields)
    return made


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def load(path, **parameters):
    return data.load("table", path=path, cache=False, **{"label": "y"} | parameters)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("fields")
    write(made / "a.jsonl", words())
    return made


def test_absent_fields_are_not_stored(folder):
    made = load(folder / "a.jsonl")
    assert made.x.nnz == sum(len(row) - 1 for row in words())
    assert made.features == NAMES + 2
    assert made.x.has_canonical_format


def test_counts_stand_in_the_column_of_their_name(folder):
    made = load(folder / "a.jsonl").x.toarray()
    names = list(dict.fromkeys(name for row in words() for name in row if name != "y"))
    first = np.cumsum([0] + [2 if name == "shop" else 1 for name in names])
    expected = np.zeros_like(made)
    for row, fields in zip(expected, words(), strict=True):
        for name, value in fields.items():
            if name != "y":
                row[first[names.index(name)] + (value == "b")] = 1 if name == "shop" else value
    np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_the_same_table_as_csv_gives_the_same_matrix(folder):
    frame = pd.DataFrame(words())
    frame.to_csv(folder / "a.csv", index=False)
    made, expected = load(folder / "a.jsonl"), load(folder / "a.csv")
    np.testing.assert_array_equal(made.x.toarray(), expected.x.toarray())
    np.testing.assert_array_equal(made.y, expected.y)


@pytest.mark.parametrize("bounds", [(1, 1.0), (1000, 0.0)])
def test_tables_held_by_rows_and_by_fields_give_one_matrix(folder, monkeypatch, bounds):
    expected = load(folder / "a.jsonl").x.toarray()
    monkeypatch.setattr("workbench.data.tables.sparse_fields.FEWEST_NAMES", bounds[0])
    monkeypatch.setattr("workbench.data.tables.sparse_fields.FULLEST", bounds[1])
    np.testing.assert_array_equal(load(folder / "a.jsonl").x.toarray(), expected)


def test_a_later_file_may_lack_names_and_have_others(folder):
    first = load(folder / "a.jsonl")
    later = [{"y": 1, "w3": 2, "new": 5}, {"y": 0, "shop": "c"}, {"y": 0, "shop": "b", "w9": 1}]
    made = data.load("table", path=write(folder / "later.jsonl", later), like=first, cache=False)
    assert made.x.shape == (3, first.features)
    assert np.diff(made.x.indptr).tolist() == [1, 0, 2]
    again = data.load("table", path=folder / "a.jsonl", like=first, cache=False)
    np.testing.assert_array_equal(again.x.toarray(), first.x.toarray())


def test_a_model_of_such_rows_is_applied_to_later_ones(folder, monkeypatch):
    monkeypatch.chdir(folder)
    wb.train("a.jsonl", label="y", random_state=0).save("model", force=True)
    write(folder / "later.jsonl", words(40, seed=1))
    answers = wb.load_model("model").apply("later.jsonl")
    assert len(answers.values) == 40


def test_rows_without_a_label_are_refused_by_line_or_left_out(folder):
    rows = words()
    del rows[7]["y"]
    path = write(folder / "gap.jsonl", rows)
    with pytest.raises(DataError, match=r"gap\.jsonl:8: column 'y' has no label here"):
        load(path)
    made = load(path, unlabelled="skip")
    assert made.rows == 299
    assert made.x.nnz == sum(len(row) - 1 for place, row in enumerate(rows) if place != 7)


def test_text_in_a_field_of_numbers_is_refused_by_its_line(folder):
    rows = [row | {"w0": 1.5 + place} for place, row in enumerate(words())]
    rows[199]["w0"] = "many"
    with pytest.raises(DataError, match=r"odd\.jsonl:200: column 'w0' holds numbers, and 'many'"):
        load(write(folder / "odd.jsonl", rows))


def test_only_labels_are_held_for_all_rows(folder, monkeypatch):
    held, every = [], SparseTable.every
    monkeypatch.setattr(SparseTable, "every", lambda self, name: held.append(name) or every(self, name))
    rows = [{"y": row % 2} | {f"u{row * 5 + place}": 1 for place in range(5)} for row in range(200)]
    made = load(write(folder / "unique.jsonl", rows))
    assert made.x.shape == (200, 1000)
    assert made.x.nnz == 1000
    assert set(held) == {"y"}
