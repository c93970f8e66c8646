"""Compare: two runs, and what is faster, slower or the same in the second."""

import html
from typing import Any

import ipywidgets as widgets

from workbench.analysis import changes_told
from workbench.analysis.changes import Changes, compared
from workbench.panels import pages
from workbench.panels.answers import Answer, Asked, Still, grid_of, register
from workbench.panels.answers.explore import NONE, runs
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard
from workbench.panels.results import Shown, said
from workbench.reports import export

TWO = "Two runs are compared; there are fewer. Sweep or Advise makes them."


def page(found: Changes) -> Shown:
    """The headline, the cells that are not the same, and the grounds."""
    headline, grounds = changes_told.headline(found), list(changes_told.sentences(found))
    rows = [row for row in changes_told.table(found.cells) if row[1] != "same"]
    table = pages.table(changes_told.COLUMNS, rows, "Cells that are not the same") if rows else ""
    said = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in grounds)
    strong = f'<p class="verdict"><strong>{html.escape(headline)}</strong></p>'
    return Shown(f"{strong}{table}<ul>{said}</ul>", "\n".join([headline, *grounds]))


def of_runs(before: str, after: str) -> Shown:
    """The page of two run folders or files of rows (`analysis.pairs.CompareError` where they cannot be compared)."""
    return page(compared(export.frame_of(before), export.frame_of(after)))


class _Compare(Still):
    """Two runs are chosen, and a button compares them."""

    def __init__(self, asked: Asked, guard: Guard) -> None:
        known = list(dict.fromkeys([*filter(None, [asked.run, asked.other_run]), *runs()]))
        self.first, self.second = (
            widgets.Dropdown(options=known, description=label, tooltip=help, style=LABELLED)
            for label, help in (("Before", "The run to compare with"), ("After", "The run that is judged"))
        )
        if len(known) > 1:
            self.second.value = known[1] if not asked.other_run else asked.other_run
        self.button = widgets.Button(description="Compare", tooltip="Say what changed", button_style="primary")
        self.button.disabled = len(known) < 2
        self.answer = widgets.HTML("" if len(known) > 1 else f"<p>{TWO}</p>")
        self.button.on_click(guard("Comparing", self._compare))
        self.box = widgets.VBox([grid_of(self.first, self.second), self.button, self.answer])

    def _compare(self) -> None:
        self.answer.value = of_runs(self.first.value, self.second.value).html


def _shown(asked: Asked) -> Any:
    """The comparison of the runs that were named, else of the two newest, the older one first."""
    before, after = (asked.run, asked.other_run) if asked.other_run else (*runs()[1::-1], "", "")[:2]
    return of_runs(before, after) if before and after else said(TWO if runs() else NONE)


register(Answer("compare", "Compare", "Hold one run against another: faster, slower or the same.", 3, _Compare, _shown))
