"""Results of a study as widgets: the verdict, a chart of its rows, and a table that is asked for."""

from collections.abc import Callable
from time import monotonic

import ipywidgets as widgets

from workbench.panels import pages
from workbench.panels.chart import ChartView
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard
from workbench.panels.state import LabState

VIEWS = ("Latest trials", "Break-evens", "Why", "Numbers of the chart")


class ResultsView:
    """Shows the rows of a state; `paint` brings it up to date: the latest trials at once, the rest when it is due."""

    def __init__(self, state: LabState, guard: Guard, clock: Callable[[], float] = monotonic) -> None:
        self.state = state
        self.chart = ChartView(state, guard, clock)
        self.verdict, self.page = widgets.HTML(), widgets.HTML()
        self.view = widgets.ToggleButtons(options=VIEWS, description="Show", style=LABELLED, tooltip="Table to show")
        self.box = widgets.VBox([self.verdict, self.chart.box, self.view, self.page])
        self.view.observe(guard("Showing a table", self.turn), names=["value"])
        state.observe(lambda _: self._fade(), names=["outdated"])
        self._fade()
        self.fill()

    def _fade(self) -> None:
        """Show results of other settings paler than those of the present ones."""
        for widget in (self.verdict, self.chart.box, self.page):
            if self.state.outdated:
                widget.add_class("wb-old")
            else:
                widget.remove_class("wb-old")

    def paint(self) -> None:
        """Show rows that are new."""
        if self.state.rows is not self._shown and self.view.value == VIEWS[0]:
            self.turn()
        self.chart.refresh(self.fill)

    def fill(self) -> None:
        """Verdict and table, of the rows that the chart shows."""
        self.verdict.value = pages.verdict(self.chart.frame)
        self.turn()

    def turn(self) -> None:
        """The table that is asked for."""
        state, self._shown = self.state, self.state.rows
        tables = {
            "Latest trials": lambda: pages.latest_rows(state.rows),
            "Break-evens": lambda: pages.break_evens(self.chart.frame),
            "Why": lambda: pages.grounds(self.chart.frame),
            "Numbers of the chart": lambda: self.chart.numbers,
        }
        self.page.value = tables[self.view.value]()
