"""Explore: any run that is stored, with its verdict, its charts and the rows behind them."""

from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.panels.answers import Answer, Asked, grid_of, register
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard
from workbench.panels.results import said, verdict
from workbench.panels.results_view import ResultsView
from workbench.panels.state import LabState
from workbench.sweep import run_folder

NONE = "There is no run in this folder yet. Sweep or Advise makes one."


def runs() -> list[str]:
    """The run folders below `runs`, the newest first."""
    return [str(path) for path in run_folder.runs()]


def state_of(run: str) -> LabState:
    """The study that a run folder holds (`run_folder.RunError` where there is none)."""
    folder = Path(run)
    run_folder.read(folder)
    return LabState(folder.name, None, folder, run_folder.read_spec(folder))


class _Explore:
    """A run is chosen, and shown as the panel shows its own."""

    def __init__(self, asked: Asked, guard: Guard) -> None:
        self.guard = guard
        known = list(dict.fromkeys([*filter(None, [asked.run]), *runs()]))
        self.picker = widgets.Dropdown(options=known, description="Run", tooltip="Which run to show", style=LABELLED)
        self.content = widgets.VBox()
        self.box = widgets.VBox([grid_of(self.picker), self.content])
        self.results: ResultsView | None = None
        self.picker.observe(guard("Opening the run", self._open), names=["value"])
        self._open()

    def _open(self) -> None:
        if not self.picker.value:
            self.content.children = [widgets.HTML(f"<p>{NONE}</p>")]
            return
        state = state_of(self.picker.value)
        self.results = ResultsView(state, self.guard)
        self.content.children = self.results.box.children

    def paint(self) -> None:
        """Read the run's folder, where rows may be new, and show them."""
        if self.results is not None:
            self.results.state.poll()
            self.results.paint()

    def close(self) -> None:
        """Nothing was started."""


def _shown(asked: Asked) -> Any:
    """The verdict of the run that was named, else of the newest."""
    named = [asked.run] if asked.run else runs()
    return verdict(state_of(named[0])) if named else said(NONE)


register(Answer("explore", "Explore", "Look at any run: verdict, charts, break-evens, rows.", 2, _Explore, _shown))
