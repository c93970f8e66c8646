"""Compare: two runs, and what is faster, slower or the same in the second."""

import html
from typing import Any

import ipywidgets as widgets

from workbench.analysis import changes
from workbench.analysis.changes import Changes, compare_runs
from workbench.panels import pages
from workbench.panels.form import RunPicker, runs
from workbench.panels.guard import Guard
from workbench.panels.results_view import Shown, said
from workbench.panels.tabs import Answer, RequestState, grid_of, register
from workbench.panels.tabs.explore import NONE
from workbench.reports import export

TWO = "Two runs are compared; there are fewer. Sweep or Advise makes them."


def page(found: Changes) -> Shown:
    """Return the headline, a table of the configurations that changed, and the reasons."""
    headline, grounds = changes.headline(found), list(changes.sentences(found))
    rows = [row for row in changes.table(found.configurations) if row[1] != "same"]
    table = pages.table(changes.COLUMNS, rows, "Settings that are not the same") if rows else ""
    said = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in grounds)
    strong = f'<p class="verdict"><strong>{html.escape(headline)}</strong></p>'
    return Shown(f"{strong}{table}<ul>{said}</ul>", "\n".join([headline, *grounds]))


def of_runs(before: str, after: str) -> Shown:
    """Return the comparison of two runs, given by the paths of run folders or files of records.

    CompareError if they cannot be compared.
    """
    return page(compare_runs(export.frame_of(before), export.frame_of(after)))


class _Compare:
    """Two runs are chosen, and a button compares them."""

    def __init__(self, asked: RequestState, guard: Guard) -> None:
        """Make the lists of runs, before and after, and the button; the named runs come first."""
        self.first = RunPicker("Before", "The run to compare with", [asked.run, asked.other_run])
        self.second = RunPicker("After", "The run that is judged", [asked.other_run, asked.run])
        self.button = widgets.Button(description="Compare", tooltip="Say what changed", button_style="primary")
        self.answer = widgets.HTML()
        self.button.on_click(guard("Comparing", self._compare))
        self.box = widgets.VBox([grid_of(self.first.widget, self.second.widget), self.button, self.answer])
        self._offer()

    def _offer(self) -> None:
        """Enable the button if there are two runs; if both lists select the same, select the two newest."""
        self.button.disabled = is_missing = len(self.first.known) < 2
        if is_missing:
            self.answer.value = f"<p>{TWO}</p>"
        elif self.answer.value == f"<p>{TWO}</p>":
            self.answer.value = ""
        if not is_missing and self.first.value == self.second.value:
            self.second.widget.value, self.first.widget.value = self.first.known[:2]

    def _compare(self) -> None:
        """Compare the two selected runs and show the result; raises CompareError."""
        self.answer.value = of_runs(self.first.value, self.second.value).html

    def paint(self) -> None:
        """Offer runs that are new since the last call."""
        if self.first.refresh() | self.second.refresh():
            self._offer()

    def close(self) -> None:
        """Do nothing: this view started no thread and no process."""


def _shown(asked: RequestState) -> Any:
    """Return the comparison of the named runs, else of the two newest, the older one first.

    A sentence if there are fewer than two.
    """
    before, after = (asked.run, asked.other_run) if asked.other_run else (*runs()[1::-1], "", "")[:2]
    return of_runs(before, after) if before and after else said(TWO if runs() else NONE)


register(Answer("compare", "Compare", "Compare two runs: faster, slower or the same.", 3, _Compare, _shown))
