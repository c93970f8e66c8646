"""Text by its words, values such as a|b|c by their parts, and hashing: said, and without buckets that never occur."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench import data
from workbench.data import DataError
from workbench.data.tables.schema import Column

DRAWN = np.random.default_rng(0)
WORDS = np.array([f"word{number}" for number in range(200)])
TAGS = np.array(["red", "green", "blue", "Dark Grey"])


def rows(count=300, seed=0):
    source = np.random.default_rng(seed)
    made = []
    for row in range(count):
        text = " ".join(source.choice(WORDS, 6)) if row % 10 else ""
        tags = "|".join(source.choice(TAGS, source.integers(1, 4), replace=False)) if row % 7 else ""
        made.append({"review": text, "tags": tags, "price": float(source.normal()), "y": row % 2})
    return pd.DataFrame(made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("text")
    rows().to_csv(made / "a.csv", index=False)
    rows().to_parquet(made / "a.parquet")
    return made


def load(path, **parameters):
    return data.load("table", path=path, cache=False, **parameters)


def columns_of(made):
    return made.facts["reread"]["columns"]["columns"]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_text_column_has_a_column_for_each_word(folder, name):
    made = load(folder / name)
    frame = rows()
    words = sorted({word for text in frame.review for word in text.split()})
    assert columns_of(made)["review"]["values"] == words
    x = made.x.toarray()
    expected = np.array([[text.split().count(word) for word in words] for text in frame.review])
    np.testing.assert_array_equal(x[:, : len(words)], expected)
    np.testing.assert_array_equal(x[:, len(words)], frame.review == "")
    assert f"The column review is text: counts of {len(words)} words." in made.facts["guesses"]
    assert "hashed" not in made.facts


def test_values_between_bars_are_several_a_row(folder):
    made = load(folder / "a.csv")
    assert columns_of(made)["tags"] == {
        "kind": "category", "encoding": "multi-hot", "separator": "|", "values": sorted(TAGS.tolist())
    }  # fmt: skip
    first = len(columns_of(made)["review"]["values"]) + 1
    expected = [[tag in text.split("|") for tag in sorted(TAGS)] + [text == ""] for text in rows().tags]
    np.testing.assert_array_equal(made.x[:, first : first + 5].toarray(), np.array(expected, float))
    assert any("tags holds several values a row, between '|': 4 different" in note for note in made.facts["guesses"])


def test_unknown_words_and_parts_of_a_later_file_count_nothing(folder):
    first = load(folder / "a.csv")
    later = pd.DataFrame(
        {"review": ["word1 unknown word1", "never"], "tags": ["red|pink", "pink"], "price": 0.5, "y": [0, 1]}
    )
    later.to_csv(folder / "later.csv", index=False)
    made = data.load("table", path=folder / "later.csv", like=first, cache=False)
    width = len(columns_of(first)["review"]["values"]) + 1
    assert made.features == first.features
    assert made.x[:, :width].toarray().sum(axis=1).tolist() == [2, 0]
    assert made.x[:, width : width + 5].toarray().sum(axis=1).tolist() == [1, 0]


def test_another_separator_is_declared(folder):
    frame = rows().assign(tags=[text.replace("|", ";") for text in rows().tags])
    frame.to_csv(folder / "b.csv", index=False)
    declared = {"columns": {"tags": {"kind": "category", "encoding": "multi-hot", "separator": ";"}}}
    np.testing.assert_array_equal(
        load(folder / "b.csv", columns=declared).x.toarray(), load(folder / "a.csv").x.toarray()
    )
    assert columns_of(load(folder / "b.csv"))["tags"]["encoding"] == "one-hot"


@pytest.mark.parametrize("value", ["a|", "|", "x || y", "a"])
def test_a_bar_that_is_not_between_values_is_part_of_the_value(tmp_path, value):
    pd.DataFrame({"c": ["b", value] * 20, "n": np.arange(40) / 7, "y": [0, 1, 1, 0] * 10}).to_csv(
        tmp_path / "c.csv", index=False
    )
    assert columns_of(load(tmp_path / "c.csv"))["c"]["encoding"] == "one-hot"


def test_more_words_than_have_a_column_each_are_hashed_into_buckets_that_occur(folder, monkeypatch):
    monkeypatch.setattr("workbench.data.tables.assembly.MOST_WORDS", 50)
    made = load(folder / "a.csv")
    column = columns_of(made)["review"]
    assert column["encoding"] == "hashed"
    assert len(column["kept"]) <= 200
    used = np.diff(made.x[:, : len(column["kept"])].tocsc().indptr)
    assert used.min() > 0
    words = sum(len(text.split()) for text in rows().review)
    assert made.x[:, : len(column["kept"])].sum() == words
    said = (
        f"The words of the column review are hashed into 65,536 buckets, of which the {len(column['kept'])} that occur"
    )
    assert said in made.facts["hashed"]
    assert any(note.startswith(said) for note in made.facts["guesses"])
    again = data.load("table", path=folder / "a.csv", like=made, cache=False)
    assert (again.x != made.x).nnz == 0


def test_categories_beyond_the_most_one_hot_have_the_buckets_that_occur(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.data.tables.guessing.MOST_ONE_HOT", 20)
    frame = pd.DataFrame(
        {"site": [f"s{number % 60}" for number in range(600)], "n": DRAWN.normal(size=600), "y": [0, 1] * 300}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    made = load(tmp_path / "a.csv")
    kept = columns_of(made)["site"]["kept"]
    assert 0 < len(kept) <= 60
    assert made.x[:, : len(kept)].sum() == 600
    assert not made.x[:, len(kept)].sum()
    assert "The values of the column site are hashed into 128 buckets" in made.facts["hashed"]


def test_hashing_that_was_asked_for_keeps_all_buckets_and_is_said(folder):
    declared = {"columns": {"review": {"kind": "text", "buckets": 512}}}
    made = load(folder / "a.csv", columns=declared, hashed=64)
    assert "kept" not in columns_of(made)["review"]
    assert made.facts["hashed"].startswith(
        "The words of the column review are hashed into 512 buckets; some share one."
    )


@pytest.mark.parametrize("door", [wb.profile, wb.load, lambda path: wb.train(path, random_state=0)])
def test_hashing_is_said_at_every_door(folder, monkeypatch, capsys, door):
    monkeypatch.setattr("workbench.data.tables.assembly.MOST_WORDS", 50)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    door(str(folder / "a.csv"))
    assert "The words of the column review are hashed into 65,536 buckets" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [[-1], [3, 3], [2, 1], [8], "all", [0.5]])
def test_kept_buckets_are_ascending_and_in_range(kept):
    with pytest.raises(DataError, match=r"kept of column 'a' is .*; it is a list of buckets"):
        Column("a", "category", buckets=8, kept=kept)


def test_columns_are_saved_and_read_again(folder, tmp_path):
    data.guess_columns(folder / "a.csv").save(tmp_path / "columns.toml")
    text = (tmp_path / "columns.toml").read_text()
    assert re.search(r'encoding = "multi-hot"\nseparator = "\|"', text)
    made = load(folder / "a.csv", columns=tmp_path / "columns.toml")
    assert (made.x != load(folder / "a.csv").x).nnz == 0
    assert json.dumps(made.facts["reread"])
