"""The verdict in a terminal: numbers and a table before the words, the winner marked, in the width that there is."""

import pytest
from rich.console import Console

from tests.support import rows as maker
from workbench import store
from workbench.command import conclusion, verdict

RIVALS = (maker.DENSE, maker.SERIAL, maker.SPARSE)


@pytest.mark.parametrize(("width", "columns"), [(200, ("dense, 1 thread", "CSR ours")), (60, verdict.SIDES)])
def test_the_verdict_has_numbers_then_a_table_that_fits_then_words(width, columns):
    console = Console(width=width)
    with console.capture() as printed:
        console.print(verdict.shown(conclusion.of(store.frame(maker.sweep(RIVALS))), console, width))
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


def test_the_verdict_without_rows_is_a_sentence():
    console = Console(width=80)
    with console.capture() as printed:
        console.print(verdict.shown(conclusion.of(store.frame()), console, 80))
    assert printed.get().strip() == "There is no answer yet: no rows were given."
