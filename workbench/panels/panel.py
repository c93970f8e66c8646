"""The panel: one root widget, made once and kept up to date by two threads.

One reads the run folder and tells how far the sweep is, ten times a second. The other draws, which takes longer; so
that a slow chart never delays what Stop did, they hold different locks.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any

import ipywidgets as widgets

from workbench.panels import cells, live, pages, picture
from workbench.panels.form import Form, tree
from workbench.panels.guard import Guard
from workbench.panels.profile_view import ProfileView
from workbench.panels.profiling import Profiling
from workbench.panels.results import Shown
from workbench.panels.results_view import ResultsView
from workbench.panels.state import LabState, file_stamp
from workbench.panels.style import SHEET
from workbench.panels.watcher import Watcher
from workbench.sweep import run_folder

SECONDS_BETWEEN = 0.1
"""Time between two looks, short beside the start of a trial, in which there is time to draw."""
STILL = "The panel as it was last, for readers without a kernel"
HINT = "The panel needs a running kernel. Its last state is below."


class Panel:
    """Widgets for one study. Nothing runs until `watch`; `step` does by hand what its threads do again and again."""

    def __init__(self, state: LabState, clock: Callable[[], float] = monotonic) -> None:
        self.state = state
        quick, slow = (Guard(state.tell) for _ in range(2))
        self.form, self.live = Form(state, quick), live.Live(state)
        self.profiling = Profiling(state)
        self.profile = ProfileView(self.profiling, quick)
        self.results = ResultsView(state, slow, clock)
        self.run = _button("Run", "Measure what is not measured yet", quick("Starting", state.start), "primary")
        self.stop = _button("Stop", "End the sweep; finished trials stay", quick("Stopping", state.stop), "warning")
        exports = "Write report.html and rows.csv into the run folder"
        self.export = _button("Export", exports, slow("Exporting", state.export))
        self.cells, self._told_of_cells = widgets.HTML(), ()
        self.root = widgets.VBox(self._children())
        self.root.add_class("workbench-lab")
        self.threads = tuple(
            Watcher(step, SECONDS_BETWEEN)
            for step in (quick("Watching the run", self._look), slow("Drawing", self.paint))
        )
        self._update_still: Callable[[Shown], Any] = lambda _: None
        self._still_of = len(state.rows)
        state.observe(lambda _: self._enable(), names=["progress", "problem", "rows", "stopping", "outdated"])
        self._enable()

    def _children(self) -> list[widgets.Widget]:
        lines = self.live.lines
        buttons = widgets.HBox([self.run, self.stop, self.export, lines[live.status_line]])
        progress = widgets.HBox([self.live.bar, lines[live.progress_line]])
        for row in (buttons, progress):
            row.add_class("wb-row")
        asked = [self.form.box, self.profile.box, lines[live.plan_line], lines[live.command_line]]
        above = [widgets.HTML(SHEET), *asked, buttons, progress, self.cells]
        below = [lines[live.trouble_box], lines[live.exported_line], lines[live.outdated_line]]
        return [*above, *below, *self.results.box.children]

    def step(self) -> None:
        """Read the run folder, and show what changed: one look of each thread."""
        for thread in self.threads:
            thread.step()

    def _look(self) -> None:
        self.state.poll()
        self.profiling.poll()

    def paint(self) -> None:
        """Show a profile and rows that are new: the latest trials at once, the rest when the chart is due."""
        self.profile.paint()
        if (known := self._known_of_cells()) != self._told_of_cells:
            self._told_of_cells, self.cells.value = known, cells.of_run(self.state)
        self.results.paint()
        if not self.state.alive and len(self.state.rows) != self._still_of:
            self._still_of = len(self.state.rows)
            self._update_still(self.still())

    def _known_of_cells(self) -> tuple:
        """Everything that the grid of cells depends on; the grid is made again when it changes."""
        state = self.state
        now = state.progress.current_key if state.progress and state.alive else ""
        return state.rows, state.folder, file_stamp(state.folder / run_folder.SPEC), state.alive, now

    def _enable(self) -> None:
        state = self.state
        self.run.description = "Resume" if state.is_resumable else "Run"
        self.run.disabled = state.alive or bool(state.problem)
        self.stop.disabled = not state.alive or state.stopping
        self.export.disabled = not state.rows

    def watch(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """End the threads and take the widgets away; the run goes on."""
        for thread in self.threads:
            thread.stop()
        self.profiling.stop()
        for widget in tree(self.root):
            widget.close()

    def still(self) -> Shown:
        """The panel as it is now, for readers without a kernel."""
        state = self.state
        chart = self.results.chart
        drawn = picture.draw(chart.picker.value, state.frame, **chart.chosen)
        lines = (live.status_line, live.progress_line, live.outdated_line)
        shown = (self.results.verdict.value, drawn.html, self.results.told.value)
        parts = [*(line(state) for line in lines), *shown]
        inside = "".join([*parts, pages.latest_rows(state.rows)])
        return Shown(f"<details><summary>{STILL}</summary>{inside}</details>", f"{STILL}: {state.status}")

    def keep_still(self, update: Callable[[Shown], Any]) -> None:
        """Call `update` with a new still whenever a run is over: an exported notebook then shows the last state."""
        self._update_still, self._still_of = update, len(self.state.rows)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widgets, and a hint for front ends and exports that have none."""
        bundle = self.root._repr_mimebundle_(**options) or {}
        return dict(bundle) | {"text/html": f"<p>{HINT}</p>", "text/plain": HINT}


def _button(name: str, tooltip: str, clicked: Callable[..., None], style: str = "") -> widgets.Button:
    button = widgets.Button(description=name, tooltip=tooltip, button_style=style)
    button.on_click(clicked)
    return button
