"""The panel: one root widget, made once and kept up to date by a watcher that reads the run folder."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import ipywidgets as widgets

from workbench.panels import live, pages, picture
from workbench.panels.chart import ChartView
from workbench.panels.form import LABELLED, Form
from workbench.panels.results import Shown
from workbench.panels.state import LabState
from workbench.panels.style import SHEET
from workbench.panels.watcher import Watcher

STILL = "The panel as it was last, for readers without a kernel"
VIEWS = ("Latest trials", "Break-evens", "Why", "Numbers of the chart")


class Panel:
    """Widgets for one study. Nothing runs until `watch`; `step` does by hand what the watcher does again and again."""

    def __init__(self, state: LabState, clock: Callable[[], float] = monotonic) -> None:
        self.state = state
        self.lock = threading.RLock()  # the watcher and the user may come at the same time
        self.form = Form(state, self.guard)
        self.live = live.Live(state)
        self.run = self._button("Run", "Measure what is not measured yet", "Starting", state.start, "primary")
        self.stop = self._button("Stop", "End the sweep; finished trials stay", "Stopping", state.stop, "warning")
        self.export = self._button(
            "Export", "Write report.html and rows.csv into the run folder", "Exporting", state.export
        )
        self.chart = ChartView(state, self.guard, clock)
        self.verdict, self.page = widgets.HTML(), widgets.HTML()
        self.view = widgets.ToggleButtons(
            options=VIEWS, description="Show", style=LABELLED, tooltip="Which table to show"
        )
        self.view.observe(self.guard("Showing a table", self._turn), names=["value"])
        state.observe(lambda _: self._enable(), names=["progress", "problem", "rows", "stopping"])
        state.observe(lambda _: self.view.value == VIEWS[0] and self._turn(), names=["rows"])
        self.root = widgets.VBox(self._children())
        self.root.add_class("workbench-lab")
        self.watcher = Watcher(self.guard("Watching the run", self.step))
        self.keep_still(lambda _: None)
        self._enable()
        self._fill()

    def _children(self) -> list[widgets.Widget]:
        lines = self.live.lines
        buttons = widgets.HBox([self.run, self.stop, self.export, lines[live.status_line]])
        progress = widgets.HBox([self.live.bar, lines[live.progress_line]])
        for row in (buttons, progress):
            row.add_class("wb-row")
        return [
            widgets.HTML(SHEET),
            self.form.box,
            lines[live.plan_line],
            buttons,
            progress,
            lines[live.trouble_box],
            lines[live.exported_line],
            self.verdict,
            self.chart.box,
            self.view,
            self.page,
        ]

    def _button(self, name: str, tooltip: str, what: str, action: Callable[[], Any], style: str = "") -> widgets.Button:
        button = widgets.Button(description=name, tooltip=tooltip, button_style=style)
        button.on_click(self.guard(what, action))
        return button

    def guard(self, what: str, action: Callable[[], Any]) -> Callable[..., None]:
        """The action as a callback: one at a time, and an exception is shown instead of lost."""

        def call(*_: Any) -> None:
            with self.lock:
                try:
                    action()
                except Exception as error:
                    self.state.tell(error, what)

        return call

    def step(self) -> None:
        """Read the run folder, and show what changed."""
        self.state.poll()
        if self.chart.refresh():
            self._fill()
        if self._still_due():
            self._still_of = len(self.state.rows)
            self._update_still(self.still())

    def _enable(self) -> None:
        state = self.state
        self.run.disabled = state.alive or bool(state.problem)
        self.stop.disabled = not state.alive or state.stopping
        self.export.disabled = not state.rows

    def _fill(self) -> None:
        """Verdict and table."""
        self.verdict.value = pages.verdict(self.state.frame)
        self._turn()

    def _turn(self) -> None:
        """The table that is asked for."""
        state = self.state
        made = {
            "Latest trials": lambda: pages.latest_rows(state.rows),
            "Break-evens": lambda: pages.break_evens(state.frame),
            "Why": lambda: pages.grounds(state.frame),
            "Numbers of the chart": lambda: self.chart.numbers,
        }
        self.page.value = made[self.view.value]()

    def watch(self) -> None:
        """Start the watcher."""
        self.watcher.start()

    def close(self) -> None:
        """End the watcher and take the widgets away; the run goes on."""
        self.watcher.stop()
        for widget in _tree(self.root):
            widget.close()

    def still(self) -> Shown:
        """The panel as it is now, for readers without a kernel."""
        state = self.state
        drawn = picture.draw(self.chart.picker.value, state.frame, **self.chart.chosen)
        parts = [live.status_line(state), live.progress_line(state), self.verdict.value, drawn.html]
        inside = "".join([*parts, pages.latest_rows(state.rows)])
        return Shown(f"<details><summary>{STILL}</summary>{inside}</details>", f"{STILL}: {state.status}")

    def keep_still(self, update: Callable[[Shown], Any]) -> None:
        """Call `update` with a new still whenever a run is over: an exported notebook then shows the last state."""
        self._update_still, self._still_of = update, len(self.state.rows)

    def _still_due(self) -> bool:
        return not self.state.alive and len(self.state.rows) != self._still_of

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widgets, and a hint for front ends and exports that have none."""
        made = self.root._repr_mimebundle_(**options) or {}
        hint = "The panel needs a running kernel. Its last state is below."
        return dict(made) | {"text/html": f"<p>{hint}</p>", "text/plain": hint}


def _tree(widget: widgets.Widget) -> list[widgets.Widget]:
    """A widget and all below it."""
    children = getattr(widget, "children", ())
    return [widget, *(found for child in children for found in _tree(child))]
