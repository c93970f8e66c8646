"""The panel: one root widget, made once and kept up to date by two threads.

One reads the run folder and tells how far the sweep is, four times a second. The other draws, which takes longer; so
that a slow chart never delays what Stop did, they hold different locks.
"""

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import ipywidgets as widgets

from workbench.panels import cells, live, pages, picture
from workbench.panels.chart import ChartView
from workbench.panels.form import LABELLED, Form, Guard
from workbench.panels.profile_view import ProfileView
from workbench.panels.profiling import Profiling
from workbench.panels.results import Shown
from workbench.panels.state import LabState
from workbench.panels.style import SHEET
from workbench.panels.watcher import Watcher

STILL = "The panel as it was last, for readers without a kernel"
HINT = "The panel needs a running kernel. Its last state is below."
VIEWS = ("Latest trials", "Break-evens", "Why", "Numbers of the chart")


class Panel:
    """Widgets for one study. Nothing runs until `watch`; `step` does by hand what its threads do again and again."""

    def __init__(self, state: LabState, clock: Callable[[], float] = monotonic) -> None:
        self.state = state
        quick, slow = (self._guard(threading.RLock()) for _ in range(2))  # thread and user may come at the same time
        self.form, self.live = Form(state, quick), live.Live(state)
        self.profiling = Profiling(state)
        self.profile = ProfileView(self.profiling, quick)
        self.chart = ChartView(state, slow, clock)
        self.run = _button("Run", "Measure what is not measured yet", quick("Starting", state.start), "primary")
        self.stop = _button("Stop", "End the sweep; finished trials stay", quick("Stopping", state.stop), "warning")
        exports = "Write report.html and rows.csv into the run folder"
        self.export = _button("Export", exports, slow("Exporting", state.export))
        self.cells, self.verdict, self.page = (widgets.HTML() for _ in range(3))
        self.view = widgets.ToggleButtons(options=VIEWS, description="Show", style=LABELLED, tooltip="Table to show")
        self.root = widgets.VBox(self._children())
        self.root.add_class("workbench-lab")
        self.threads = Watcher(quick("Watching the run", self._look)), Watcher(slow("Drawing", self.paint))
        self._update_still: Callable[[Shown], Any] = lambda _: None
        self._still_of = len(state.rows)
        self.view.observe(slow("Showing a table", self._turn), names=["value"])
        state.observe(lambda _: self._enable(), names=["progress", "problem", "rows", "stopping"])
        state.observe(lambda _: self._fade(), names=["outdated"])
        self._enable()
        self._fade()
        self._fill()

    def _children(self) -> list[widgets.Widget]:
        lines = self.live.lines
        buttons = widgets.HBox([self.run, self.stop, self.export, lines[live.status_line]])
        progress = widgets.HBox([self.live.bar, lines[live.progress_line]])
        for row in (buttons, progress):
            row.add_class("wb-row")
        asked = [self.form.box, self.profile.box, lines[live.plan_line], lines[live.command_line]]
        above = [widgets.HTML(SHEET), *asked, buttons, progress, self.cells]
        below = [lines[live.trouble_box], lines[live.exported_line], lines[live.outdated_line]]
        return [*above, *below, self.verdict, self.chart.box, self.view, self.page]

    def _fade(self) -> None:
        """Show results of other settings paler than those of the present ones."""
        for widget in (self.verdict, self.chart.box, self.page):
            if self.state.outdated:
                widget.add_class("wb-old")
            else:
                widget.remove_class("wb-old")

    def _guard(self, lock: threading.RLock) -> Guard:
        """Makes callbacks of actions: under the lock, and with an exception shown instead of lost."""

        def guard(what: str, action: Callable[[], Any]) -> Callable[..., None]:
            def call(*_: Any) -> None:
                with lock:
                    try:
                        action()
                    except Exception as error:
                        self.state.tell(error, what)

            return call

        return guard

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
        self.cells.value = cells.of_run(self.state)
        if self.state.rows is not self._shown and self.view.value == VIEWS[0]:
            self._turn()
        self.chart.refresh(self._fill)
        if not self.state.alive and len(self.state.rows) != self._still_of:
            self._still_of = len(self.state.rows)
            self._update_still(self.still())

    def _enable(self) -> None:
        state = self.state
        self.run.disabled = state.alive or bool(state.problem)
        self.stop.disabled = not state.alive or state.stopping
        self.export.disabled = not state.rows

    def _fill(self) -> None:
        """Verdict and table, of the rows that the chart shows."""
        self.verdict.value = pages.verdict(self.chart.frame)
        self._turn()

    def _turn(self) -> None:
        """The table that is asked for."""
        state, self._shown = self.state, self.state.rows
        tables = {
            "Latest trials": lambda: pages.latest_rows(state.rows),
            "Break-evens": lambda: pages.break_evens(self.chart.frame),
            "Why": lambda: pages.grounds(self.chart.frame),
            "Numbers of the chart": lambda: self.chart.numbers,
        }
        self.page.value = tables[self.view.value]()

    def watch(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """End the threads and take the widgets away; the run goes on."""
        for thread in self.threads:
            thread.stop()
        self.profiling.stop()
        for widget in _tree(self.root):
            widget.close()

    def still(self) -> Shown:
        """The panel as it is now, for readers without a kernel."""
        state = self.state
        drawn = picture.draw(self.chart.picker.value, state.frame, **self.chart.chosen)
        lines = (live.status_line, live.progress_line, live.outdated_line)
        parts = [*(line(state) for line in lines), self.verdict.value, drawn.html]
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


def _tree(widget: widgets.Widget) -> list[widgets.Widget]:
    """A widget and all below it."""
    children = getattr(widget, "children", ())
    return [widget, *(inner for child in children for inner in _tree(child))]
