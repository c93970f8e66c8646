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


@pytest.mark.parametrize(("width", "is_shown"), [(200, True), (60, False)])
def test_the_legend_explains_the_signs_that_the_table_shows(width, is_shown):
    """A table of the best of each side alone has no candidates that equal the winner."""
    alike = (maker.DENSE, maker.SPARSE, replace(maker.SPARSE, gradient="dense"))
    console = Console(width=width)
    with console.capture() as printed:
        console.print(
            terminal.format_verdict(terminal.make_conclusion(store.frame(maker.sweep(alike))), console, width)
        )
    assert ("≈" in printed.get()) is is_shown


def test_the_verdict_without_rows_is_a_sentence():
    console = Console(width=80)
    with console.capture() as printed:
        console.print(terminal.format_verdict(terminal.make_conclusion(store.frame()), console, 80))
    assert printed.get().strip() == "There is no answer yet: no rows were given."


def test_break_evens_are_those_of_the_best_sparse_configurations_and_the_rest_is_counted():
    """Eight sentences of five lines each, most of them of configurations that nobody would take, hid the verdict."""
    slower = replace(maker.SPARSE, update="lazy", fixed=1.0, bytes_fixed=1e9)
    found = terminal.make_conclusion(store.frame(maker.sweep((*COMPETITORS, slower))))
    assert all("standard update" in sentence and "lazy" not in sentence for sentence in found.breakevens[:-1])
    assert len(found.breakevens) == 3
    assert found.breakevens[-1].startswith("The report has 2 more break-evens")


def test_how_both_sides_were_executed_is_said_once():
    console = Console(width=200)
    ended = terminal.make_conclusion(store.frame(maker.sweep(COMPETITORS)))
    alike = replace(ended, headlines=tuple(one._replace(executed="Both alike.") for one in ended.headlines))
    apart = replace(ended, headlines=tuple(one._replace(executed=f"Of {one.measure}.") for one in ended.headlines))
    for told, times in ((alike, 1), (apart, 2)):
        with console.capture() as printed:
            console.print(terminal.format_verdict(told, console, 200))
        said = printed.get()
        assert said.count("Both alike.") + said.count("Of ") == times


def test_what_has_nothing_to_be_compared_with_is_said_once_for_time_and_memory():
    frame = store.frame(maker.sweep((maker.SPARSE,)))
    (text,) = terminal.make_conclusion(frame).breakevens
    assert text.endswith("has nothing to be compared with: dense was not measured.")
