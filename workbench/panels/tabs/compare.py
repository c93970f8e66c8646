"""Compare: two runs, and what is faster, slower or the same in the second."""

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pandas as pd

from workbench.analysis import changes
from workbench.analysis.changes import Changes, compare_runs
from workbench.panels import pages, picture
from workbench.panels.form import LABELLED, RunPicker, runs
from workbench.panels.guard import Guard
from workbench.panels.results_view import PictureView, Shown, said
from workbench.panels.tabs import Answer, RequestState, grid_of, register
from workbench.panels.tabs.explore import NONE
from workbench.reports import export
from workbench.sweeps import run_notes

COLUMNS = ("Run", "Date", "Trials", "State", "Note", "Tags")
ORDERS: dict[str, Callable[[run_notes.Described], Any]] = {
    "newest first": lambda run: -run.time,
    "name": lambda run: run.name,
    "most trials first": lambda run: -run.trials,
    "tags": lambda run: (not run.note.tags, run.note.tags, run.name),
}
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


def overlay(before: str, after: str) -> picture.Picture:
    """Return the chart of the best candidates of two runs, given as for `of_runs`, over each other."""
    names = [Path(before).name, Path(after).name]
    names = [f"{name} ({side})" for name, side in zip(names, ("before", "after"), strict=True)]
    frames = [export.frame_of(run).assign(of_run=name) for run, name in zip((before, after), names, strict=True)]
    return picture.draw("runs", pd.concat(frames, ignore_index=True))


class RunList:
    """A table of the runs with date, trials, state, note and tags, in an order that is chosen, and fields to note more.

    Notes are kept in the run folder.
    """

    def __init__(self, guard: Guard) -> None:
        """Make the table and the fields; `guard` wraps the callbacks."""
        self.order = widgets.Dropdown(options=list(ORDERS), description="Sort by", tooltip="Order of the runs",
                                      style=LABELLED)  # fmt: skip
        self.run = RunPicker("Run to note", "The run that the note is about", [], self._fill)
        self.note = widgets.Text(description="Note", tooltip="What this run was about", style=LABELLED)
        self.tags = widgets.Text(description="Tags", tooltip="Words between commas", style=LABELLED)
        self.save = widgets.Button(description="Save note", tooltip="Keep note and tags in the run folder")
        self.table = widgets.HTML()
        fields = grid_of(self.order, self.run.widget, self.note, self.tags)
        self.box = widgets.VBox([fields, self.save, self.table])
        self.order.observe(guard("Sorting", self.show), names=["value"])
        self.save.on_click(guard("Saving the note", self._save))
        self._fill()
        self.show()

    def _fill(self) -> None:
        """Fill the fields with the note of the chosen run."""
        kept = run_notes.read(Path(self.run.value)) if self.run.value else run_notes.Note()
        self.note.value, self.tags.value = kept.note, ", ".join(kept.tags)

    def _save(self) -> None:
        """Keep note and tags of the chosen run, and show them in the table."""
        if self.run.value:
            run_notes.write(Path(self.run.value), self.note.value, self.tags.value)
            self.show()

    def show(self) -> None:
        """Show the runs in the chosen order; nothing if there are none."""
        known = sorted(map(run_notes.describe, map(Path, runs())), key=ORDERS[self.order.value])
        rows = [
            (one.name, one.date, f"{one.trials}", one.state, one.note.note, ", ".join(one.note.tags)) for one in known
        ]
        self.table.value = pages.wrapped(pages.table(COLUMNS, rows)) if rows else ""
        self.box.layout.display = None if rows else "none"


class _Compare:
    """Two runs are chosen, and a button compares them; below are all runs with their notes."""

    def __init__(self, asked: RequestState, guard: Guard) -> None:
        """Make the lists of runs, before and after, and the button; the named runs come first."""
        self.first = RunPicker("Before", "The run to compare with", [asked.run, asked.other_run])
        self.second = RunPicker("After", "The run that is judged", [asked.other_run, asked.run])
        self.button = widgets.Button(description="Compare", tooltip="Say what changed", button_style="primary")
        self.answer = widgets.HTML()
        self.button.on_click(guard("Comparing", self._compare))
        self.chart, self.list = PictureView(), RunList(guard)
        asking = grid_of(self.first.widget, self.second.widget)
        self.box = widgets.VBox([asking, self.button, self.answer, self.chart.box, self.list.box])
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
        self.chart.show(overlay(self.first.value, self.second.value))

    def paint(self) -> None:
        """Offer runs that are new since the last call."""
        if self.first.refresh() | self.second.refresh() | self.list.run.refresh():
            self._offer()
            self.list.show()

    def close(self) -> None:
        """Do nothing: this view started no thread and no process."""


def _shown(asked: RequestState) -> Any:
    """Return the comparison of the named runs, else of the two newest, the older one first.

    A sentence if there are fewer than two.
    """
    before, after = (asked.run, asked.other_run) if asked.other_run else (*runs()[1::-1], "", "")[:2]
    return of_runs(before, after) if before and after else said(TWO if runs() else NONE)


register(Answer("compare", "Compare", "Compare two runs: faster, slower or the same.", 3, _Compare, _shown))
