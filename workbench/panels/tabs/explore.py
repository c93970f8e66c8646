"""Explore: any run that is stored: verdict, charts and records, of all or of one format, density and device."""

import html
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pandas as pd
import traitlets

from kernels.registry import unknown_name
from workbench import store
from workbench.analysis import configurations, formatting
from workbench.panels.form import LABELLED, RunPicker, runs
from workbench.panels.guard import Guard
from workbench.panels.results_view import ResultsView, Shown, said, verdict_of
from workbench.panels.state import file_stamp
from workbench.panels.tabs import Answer, RequestState, grid_of, register
from workbench.panels.widget_trees import close_tree, send_less
from workbench.sweeps import run_folder
from workbench.sweeps.spec import SpecError

ALL = "all"
FILTERS = {"format": "Sparse format", "density": "Density", "device": "Device"}
"""Label of each column that records are filtered by; dense candidates of every format stay, as the baseline."""
NONE = "There is no run in this folder yet. Sweep or Advise makes one."


class Exploration(traitlets.HasTraits):
    """Exploration of the rows in `run`, a run folder or a file of rows (`run_folder.RunError` where it is none).

    `rows` are the records that pass every filter; `chosen` has the chosen options by filter name.
    """

    run = traitlets.Unicode()
    every = traitlets.Tuple()
    chosen = traitlets.Dict()
    rows = traitlets.Tuple()
    outdated = traitlets.Unicode()

    def __init__(self, run: str) -> None:
        """Read the records of `run`, a run folder or a .jsonl file; RunError if it is none."""
        super().__init__()
        self.run, self.folder = run, Path(run)
        self._read: tuple[tuple[int, int], ...] = ()
        self.answered = configurations.pool_rounds(store.frame())
        if not self.folder.is_file():
            run_folder.read_progress(self.folder)
        self.poll()

    def poll(self) -> None:
        """Read the records again if the files of the run have changed since the last call; updates all traits."""
        stamp = tuple(map(file_stamp, (self.folder, self.folder / store.FILE, self.folder / run_folder.PLAN)))
        if stamp != self._read:
            self._read = stamp
            is_run = self.folder.is_dir()
            every = run_folder.read_current_records(self.folder) if is_run else store.read(self.folder)
            answered = run_folder.predict_missing(self.folder, every) if is_run else every
            self.answered, self.every = configurations.pool_rounds(store.frame(answered)), tuple(every)
            self._filter()

    @property
    def alive(self) -> bool:
        """Whether the sweep of the run is running; False for a file."""
        return self.folder.is_dir() and run_folder.read_progress(self.folder).alive

    @property
    def is_timed(self) -> bool:
        """Whether a trial of the sweep is being timed, so that nothing else should compute."""
        return self.folder.is_dir() and run_folder.read_progress(self.folder).is_timed

    @property
    def filters(self) -> dict[str, list[str]]:
        """The options of each filter whose column has several values; densities ascend."""
        ordered = sorted(self.every, key=lambda row: (row["density"] is not None, row["density"] or 0.0))
        found = {name: list(dict.fromkeys(filter(None, (_text(row, name) for row in ordered)))) for name in FILTERS}
        return {name: options for name, options in found.items() if len(options) > 1}

    def choose(self, name: str, option: str) -> None:
        """Set the filter `name` to an option ("all" removes it), and update `rows`.

        SpecError, listing the known ones, for an unknown filter or option. Dense configurations always stay.
        """
        known = self.filters
        if name not in known:
            raise SpecError(unknown_name("filter", name, known))
        if option not in (ALL, *known[name]):
            raise SpecError(f"{FILTERS[name]}: {option!r} is none of {', '.join(known[name])}.")
        self.chosen = {key: value for key, value in {**self.chosen, name: option}.items() if value != ALL}
        self._filter()

    def _filter(self) -> None:
        """Set `rows` to the records that pass the filters."""
        self.rows = tuple(filter(self._passes, self.every))

    def _passes(self, row: Mapping[str, Any]) -> bool:
        """Return whether a record has the chosen values, or no value where one is chosen."""
        return all(_text(row, name) in (option, "") for name, option in self.chosen.items())

    @property
    def left(self) -> str:
        """Sentence on how many records are shown and by which filters."""
        every = formatting.format_count(len(self.every), "record")
        if not self.chosen:
            return f"All {every} of {self.run}."
        chosen = ", ".join(f"{FILTERS[name]} {option}" for name, option in self.chosen.items())
        kept = "; dense stays" if "format" in self.chosen else ""
        return f"{len(self.rows)} of {every} of {self.run}: {chosen}{kept}."

    @property
    def frame(self) -> pd.DataFrame:
        """Data frame of the filtered records, pooled; its estimates are those of all records."""
        return configurations.part_of(self.answered, self._passes)


def _text(row: Mapping[str, Any], name: str) -> str:
    """Return the value of a record that a filter compares, as text; "" if the record passes whatever is chosen."""
    if name == "density":
        return configurations.density_label(row)
    return "" if name == "format" and configurations.is_dense(row) else str(row[name] or "")


class Explored:
    """The widgets of one exploration."""

    def __init__(self, state: Exploration, guard: Guard) -> None:
        """Make the widgets of the exploration `state` and keep them up to date; `guard` wraps callbacks."""
        self.state, self.guard, self._is_filling = state, guard, False
        self.filters: dict[str, widgets.Dropdown] = {}
        self.bar, self.left = grid_of(), widgets.HTML()
        self.results = ResultsView(state, guard)
        self.box = widgets.VBox([self.bar, self.left, *self.results.parts])
        state.observe(lambda _: self.fill(), names=["rows"])
        self.fill()

    def fill(self) -> None:
        """Update the filters and what is left from the state, without triggering the filters' callbacks."""
        self._is_filling = True
        try:
            for name, known in self.state.filters.items():
                if name not in self.filters:
                    help = f"Show records of one {FILTERS[name].lower()}"
                    shown = widgets.Dropdown(description=FILTERS[name], tooltip=help, style=LABELLED)
                    shown.observe(partial(self._filter, name), names=["value"])
                    self.filters[name] = shown
                self.filters[name].options = (ALL, *known)
                self.filters[name].value = self.state.chosen.get(name, ALL)
            self.bar.children = tuple(self.filters.values())
            self.left.value = f'<p role="status">{html.escape(self.state.left)}</p>'
        finally:
            self._is_filling = False

    def _filter(self, name: str, change: Mapping[str, Any]) -> None:
        """Apply the option that the user has chosen in the filter `name`, showing errors."""
        if not self._is_filling:
            self.guard("Filtering", partial(self.state.choose, name, change["new"]))()


class _Explore:
    """A run is chosen, or a file of rows is named."""

    explored: Explored | None

    def __init__(self, asked: RequestState, guard: Guard) -> None:
        """Make the fields for run and file, and open `asked.run` or the newest run, if there is one."""
        self.guard, self.explored = guard, None
        self.picker = RunPicker("Run", "Which run to show", [asked.run], guard("Opening the run", self._pick))
        help = "A run folder elsewhere, or a .jsonl file of rows"
        self.file = widgets.Text(
            description="Another run or file", tooltip=help, continuous_update=False, style=LABELLED
        )
        self.content = widgets.VBox()
        self.box = widgets.VBox([grid_of(self.picker.widget, self.file), self.content])
        self.file.observe(guard("Opening the run", lambda: self._open(self.file.value)), names=["value"])
        self._open(self.picker.value)

    def _pick(self) -> None:
        """Open the run selected in the list, and clear the text field."""
        self.file.value = ""
        self._open(self.picker.value)

    def _open(self, run: str) -> None:
        """Show the run or file `run`, closing the widgets of the former; for "" a hint if nothing is shown.

        Raises RunError if it is neither.
        """
        if not run:
            self.content.children = self.content.children or [widgets.HTML(f"<p>{NONE}</p>")]
            return
        before, self.explored = self.explored, Explored(Exploration(run), self.guard)
        self.picker.show(run)
        send_less(self.explored.box)
        self.content.children = [self.explored.box]
        if before is not None:
            close_tree(before.box)

    def paint(self) -> None:
        """Show records that are new since the last call; open the first run if none was there before."""
        if self.picker.refresh() and self.explored is None:
            self._open(self.picker.value)
        if self.explored is not None:
            self.explored.state.poll()
            self.explored.results.paint()

    def close(self) -> None:
        """Do nothing: this view started no thread and no process."""


def _shown(asked: RequestState) -> Any:
    """Return the verdict of `asked.run`, else of the newest run, as a result of a cell."""
    named = [asked.run] if asked.run else runs()
    if not named:
        return said(NONE)
    state = Exploration(named[0])
    verdict = verdict_of(state.answered)
    return Shown(f"<p>{html.escape(state.left)}</p>{verdict.html}", f"{state.left}\n{verdict.text}")


register(Answer("explore", "Explore", "Look at any run: verdict, charts, break-evens, records.", 2, _Explore, _shown))
