"""Results of a study as widgets: the verdict in numbers, a chart of its rows, words, and a table that is asked for."""

from collections.abc import Callable, Mapping
from time import monotonic
from types import MappingProxyType

import ipywidgets as widgets

from workbench.panels import pages
from workbench.panels.chart import ChartView, Drawn, Rows, as_image
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard

VIEWS = ("Latest trials", "Break-evens", "Why", "Numbers of the chart")


class ResultsView:
    """Shows the rows of a state; `paint` brings it up to date: the latest trials at once, the rest when it is due.

    `more` are widgets that can be shown in the place of the tables, by name; whoever made them keeps them up to date.
    """

    def __init__(
        self,
        state: Rows,
        guard: Guard,
        clock: Callable[[], float] = monotonic,
        drawn: Drawn = as_image,
        more: Mapping[str, widgets.Widget] = MappingProxyType({}),
    ) -> None:
        self.state, self.more = state, more
        self.chart = ChartView(state, guard, clock, drawn)
        self.verdict, self.told, self.page = widgets.HTML(), widgets.HTML(), widgets.HTML()
        options = (*more, *VIEWS)
        self.view = widgets.ToggleButtons(options=options, description="Show", style=LABELLED, tooltip="What to show")
        self.box = widgets.VBox([self.verdict, self.chart.box, self.told, self.view, self.page, *more.values()])
        self.view.observe(guard("Showing a table", self.turn), names=["value"])
        state.observe(lambda _: self._fade(), names=["outdated"])
        self._fade()
        self.fill()
        self.chart.stale = False  # it was drawn when it was made

    def _fade(self) -> None:
        """Show results of other settings paler than those of the present ones."""
        for widget in (self.verdict, self.chart.box, self.told, self.page):
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
        """Verdict and table, of the rows that the chart shows; without rows there is nothing to see."""
        self.verdict.value, self.told.value = pages.numbers(self.chart.frame), pages.told(self.chart.frame)
        for widget in (self.verdict, self.chart.box, self.told, self.view):
            widget.layout.display = None if self.state.rows else "none"
        self.turn()

    def turn(self) -> None:
        """The table that is asked for, or what else is shown in its place."""
        state, self._shown = self.state, self.state.rows
        for name, widget in self.more.items():
            widget.layout.display = None if name == self.view.value and state.rows else "none"
        self.page.layout.display = None if self.view.value not in self.more and state.rows else "none"
        if self.view.value in self.more:
            return
        tables = {
            "Latest trials": lambda: pages.latest_rows(state.rows),
            "Break-evens": lambda: pages.break_evens(self.chart.frame),
            "Why": lambda: pages.grounds(self.chart.frame),
            "Numbers of the chart": lambda: self.chart.numbers,
        }
        self.page.value = tables[self.view.value]()
