"""The answer in a terminal: what to do, times and memory before the densities, in the width that there is."""

import pytest
from rich.console import Console

from tests.support import rows as maker
from workbench import store
from workbench.command import terminal


def printed(rows, monkeypatch, width=100):
    """The lines that a sweep of these records ends with."""
    monkeypatch.setattr(terminal, "console", console := Console(width=width))
    with console.capture() as shown:
        terminal.conclude(store.frame(rows))
    return shown.get().splitlines()


@pytest.mark.parametrize("width", [200, 80])
def test_a_sweep_ends_with_an_answer_of_at_most_25_lines(monkeypatch, width):
    lines = printed(maker.sweep((maker.DENSE, maker.SERIAL, maker.SPARSE)), monkeypatch, width)
    said = " ".join(" ".join(lines).split())
    order = ("Go sparse. ", "faster", "Peak memory: ", "A step of ", "best sparse", "✓ S1", "sparse: rows are kept")
    assert sorted(map(said.index, order)) == [*map(said.index, order)]
    assert max(map(len, lines)) <= width
    assert len(lines) <= 25


def test_long_lists_are_cut_and_counted(monkeypatch):
    rows = maker.sweep(densities=[0.01 * k for k in range(1, 12)])
    said = " ".join(printed(rows, monkeypatch))
    assert "3 more lines in the report." in said


def test_the_answer_without_rows_is_a_sentence(monkeypatch):
    assert "There is no answer yet. Nothing was measured." in " ".join(printed([], monkeypatch))
