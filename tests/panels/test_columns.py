"""The columns of a table in the panel: kinds are guessed from the first rows, changed by a press, kept in a file."""

import gzip
import tomllib
from pathlib import Path

import pytest

from workbench import data
from workbench.panels import columns, lab, tabs
from workbench.panels.lab import Start

LINES = "".join(
    f"{row + 20},{('Rome', 'Paris', 'Bonn')[row % 3]},{('a|b', 'b|c')[row % 2]},{row % 2}\n" for row in range(60)
)
TEXT = f"age,city,tags,clicked\n{LINES}"


@pytest.fixture
def table(here) -> Path:
    """A table in the current folder."""
    Path("clicks.csv").write_text(TEXT)
    return Path("clicks.csv")


def test_kinds_and_first_values_are_shown(table):
    found = columns.preview(table)
    assert {name: found.kind(name) for name in found.names} == {
        "age": "number", "city": "category", "tags": "category", "clicked": "label"}  # fmt: skip
    assert found.values["city"] == ["Rome", "Paris", "Bonn", "Rome"]


def test_only_the_beginning_of_a_large_file_is_read(table, monkeypatch):
    monkeypatch.setattr(columns, "BYTES", 200)
    packed = Path("clicks.csv.gz")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    for path in (table, packed):
        found = columns.preview(path)
        assert found.names == ("age", "city", "tags", "clicked")
        assert next(iter(found.columns)).found.rows < 20


def test_what_is_no_table_has_no_columns(here):
    Path("a.svm").write_text("1 1:1\n0 2:1\n")
    assert columns.preview(Path("a.svm")) is None
    assert columns.preview(Path("none.csv")) is None


@pytest.mark.parametrize("kind", columns.KINDS)
def test_each_kind_that_can_be_chosen_is_what_the_file_is_read_with(table, kind):
    file = columns.write_kinds(table, "", {"tags": kind})
    assert file == Path("runs/columns/clicks.csv.toml")
    found = columns.preview(table, str(file))
    assert found.kind("tags") == kind
    features = {"ignore": 5, "category": 8, "values a|b|c": 9}.get(kind)  # an unknown value has a column, too
    if features:
        assert data.load("table", path=str(table), columns=str(file)).x.shape[1] == features


def test_choices_add_up_and_a_new_label_replaces_the_old(table):
    first = columns.write_kinds(table, "", {"clicked": "label", "city": "ignore"})
    second = columns.write_kinds(table, str(first), {"age": "label"})
    assert tomllib.loads(second.read_text())["columns"].keys() == {"city", "age"}
    assert columns.preview(table, str(second)).kind("age") == "label"


def test_a_press_on_a_kind_changes_the_request_and_the_labels_are_listed(table):
    shown = Start(tabs.RequestState(source="clicks.csv"), "advise")
    try:
        view = shown.view.columns
        assert tuple(shown.view.label.options) == ("age", "city", "tags", "clicked")
        view.kinds["age"].value = "category"
        assert shown.asked.columns == "runs/columns/clicks.csv.toml"
        assert shown.view.columns.kinds["age"].value == "category"
        assert shown.trouble.value == ""
        shown.asked.source = "uniform"
        assert (view.box.layout.display, tuple(shown.view.label.options)) == ("none", ())
    finally:
        shown.close()


def test_the_form_of_a_sweep_has_them_too(table, opened):
    form = opened(lab.study(dataset="table", path="clicks.csv")).form
    assert list(form.columns.kinds) == ["age", "city", "tags", "clicked"]
    form.columns.kinds["city"].value = "ignore"
    assert form.state.choices["columns"] == "runs/columns/clicks.csv.toml"
    assert not form.state.problem
