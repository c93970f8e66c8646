"""Runs that come while a panel is open are offered in it, and what was chosen stays."""

import os

import pytest

from tests.support import rows as made
from tests.support.panel_runs import write_run
from workbench.panels import tabs
from workbench.panels.guard import Guard


def view_of(answer):
    """The view of an answer; what goes wrong in it fails the test."""
    return tabs.get(answer).view(tabs.RequestState(), Guard(lambda error, what: pytest.fail(f"{what}: {error}")))


def test_runs_that_come_are_offered_and_what_was_chosen_stays(here):
    explore, compare = view_of("explore"), view_of("compare")
    for number, name in enumerate(("first", "second", "third")):
        write_run(here / "runs" / name, made.sweep(), "finished", name=name)
        os.utime(here / "runs" / name / "progress.json", (number, number))
        for view in (explore, compare):
            view.paint()
        assert compare.button.disabled == (number == 0)
    assert explore.explored.state.run == "runs/first", "the first that came was opened, and stays"
    assert explore.picker.known == ("runs/third", "runs/second", "runs/first")
    assert (compare.first.value, compare.second.value) == ("runs/first", "runs/second")
    assert compare.answer.value == ""
    newer = view_of("compare")
    assert (newer.first.value, newer.second.value) == ("runs/second", "runs/third"), "the older one is before"
