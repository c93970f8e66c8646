"""The verdict in a terminal: numbers and a table before the words, the winner marked, in the width that there is."""

from dataclasses import replace

import pytest
from rich.console import Console

from tests.support import rows as maker
from workbench import store
from workbench.command import terminal

COMPETITORS = (maker.DENSE, maker.SERIAL, maker.SPARSE)


@pytest.mark.parametrize(("width", "columns"), [(200, ("dense, 1 thread", "CSR ours")), (60, terminal.SIDES)])
def test_the_verdict_has_numbers_then_a_table_that_fits_then_words(width, columns):
    console = Console(width=width)
    with console.capture() as printed:
        console.print(
            terminal.format_verdict(terminal.make_conclusion(store.frame(maker.sweep(COMPETITORS))), console, width)
        )
    lines = printed.get().splitlines()
    said = " ".join(" ".join(lines).split())
    order = [
        "Time: Sparse is ",
        "Memory: Sparse needs ",
        "Time a step",
        "✓",
        "Peak memory",
        "For time, go sparse",
        "How sure",
    ]
    assert sorted(map(said.index, order)) == [*map(said.index, order)]
    assert all(word in said for column in columns for word in column.split())
    assert max(map(len, lines)) <= width


def test_what_several_trainers_gain_is_among_the_last_words(monkeypatch):
    """Only the report said so, of a sweep that was made to ask it."""
    laws = (maker.DENSE, maker.SPARSE, replace(maker.SPARSE, trainers=2, fixed=3e-3))
    console = Console(width=200)
    monkeypatch.setattr(terminal, "console", console)
    with console.capture() as printed:
        terminal.conclude(terminal.make_conclusion(store.frame(maker.sweep(laws=laws))))
    said = printed.get()
    assert "one process is" in said.partition("Devices and trainers")[2].partition("Mind")[0]
    with console.capture() as printed:
        terminal.conclude(terminal.make_conclusion(store.frame(maker.sweep(COMPETITORS))))
    assert "Devices and trainers" not in printed.get()


def test_the_verdict_without_rows_is_a_sentence():
    console = Console(width=80)
    with console.capture() as printed:
        console.print(terminal.format_verdict(terminal.make_conclusion(store.frame()), console, 80))
    assert printed.get().strip() == "There is no answer yet: no rows were given."
