"""Explore: any run that is stored: filters, verdict and charts, gains at any density, rows behind a point, outliers."""

import html
from functools import partial
from typing import Any

import ipywidgets as widgets

from workbench.analysis import formatting
from workbench.panels import explored, picture
from workbench.panels.exploring import ALL, GAINS, Exploration, Filter
from workbench.panels.form import LABELLED, SliderWithText, tree
from workbench.panels.guard import Guard
from workbench.panels.results import Shown, said, verdict_of
from workbench.panels.results_view import ResultsView
from workbench.panels.run_picker import RunPicker, runs
from workbench.panels.tabs import Answer, RequestState, grid_of, register

NONE = "There is no run in this folder yet. Sweep or Advise makes one."
GAIN, BEHIND, OFF = "Gain at a density", "Rows behind a point", "Outliers"


class Explored:
    """The widgets of one exploration."""

    def __init__(self, state: Exploration, guard: Guard) -> None:
        self.state, self.guard, self._is_filling = state, guard, False
        self.filters: dict[str, widgets.Dropdown] = {}
        self.bar, self.left = grid_of(), widgets.HTML()
        self.density = SliderWithText(
            "Density", "Stored entries / size, as 0.03 or 3 %", formatting.format_density, self._asks("density")
        )
        self.factor = SliderWithText("Gain", "How many times better than dense at least", _times, self._asks("factor"))
        self.cell = widgets.Dropdown(description="Point", tooltip="The setting whose rows are shown", style=LABELLED)
        self.cell.add_class(picture.PICKER)
        self.cell.observe(guard("Showing rows", self._pick), names=["value"])
        self.pages = {name: widgets.HTML() for name in (GAIN, BEHIND, OFF)}
        asked = grid_of(self.density.slider, self.density.text, widgets.Box(), self.factor.slider, self.factor.text)
        more = {
            GAIN: widgets.VBox([asked, self.pages[GAIN]]),
            BEHIND: widgets.VBox([self.cell, self.pages[BEHIND]]),
            OFF: self.pages[OFF],
        }
        self.results = ResultsView(state, guard, drawn=self._drawn, more=more)
        self.results.view.observe(guard("Showing a table", self._fill_page), names=["value"])
        self.box = widgets.VBox([self.bar, self.left, *self.results.box.children])
        state.observe(lambda _: self.fill(), names=["rows"])
        state.observe(lambda _: self._fill_page(), names=["density", "factor", "cell"])
        self.fill()

    def _asks(self, name: str) -> Any:
        """Return the callback of the text field for density or factor."""
        ask = {"density": self.state.ask_density, "factor": self.state.ask_factor}[name]
        return lambda text: self.guard("Asking", partial(ask, text))()

    def _pick(self) -> None:
        """Show the rows of the cell that was chosen, also by a click into the chart."""
        if self._is_filling or not self.cell.value:
            return
        self.state.cell = self.cell.value
        self.results.view.value = BEHIND

    def _drawn(self, name: str, frame: Any, **controls: Any) -> str:
        """Return the HTML of a chart of the filtered rows."""
        return picture.drawn(name, frame, [cell.pooled for cell in self.state.cells.values()], **controls)

    def fill(self) -> None:
        """Bring filters, cells and the page that is shown up to date."""
        self._is_filling = True
        try:
            for filter in self.state.filters:
                self._fill_filter(filter)
            self.bar.children = tuple(self.filters.values())
            self.left.value = f'<p role="status">{html.escape(self.state.left)}</p>'
            names = tuple(self.state.cells)
            if tuple(self.cell.options) != names:
                self.cell.options = names
            self.cell.value = self.state.cell or None
        finally:
            self._is_filling = False
        self._fill_page()

    def _fill_filter(self, filter: Filter) -> None:
        """Create or update the drop-down of a filter."""
        if filter.name not in self.filters:
            shown = widgets.Dropdown(
                description=filter.label, tooltip=f"Show rows of one {filter.label}", style=LABELLED
            )
            shown.observe(lambda change: self._filter(filter.name, change["new"]), names=["value"])
            self.filters[filter.name] = shown
        shown, options = self.filters[filter.name], (ALL, *filter.options)
        if tuple(shown.options) != options:
            shown.options = options
        shown.value = self.state.chosen.get(filter.name, ALL)

    def _filter(self, name: str, option: str) -> None:
        """Apply the option that the user has chosen in a filter."""
        if not self._is_filling:
            self.guard("Filtering", partial(self.state.choose, name, option))()

    def _fill_page(self) -> None:
        """The page that is shown, and the controls beside it."""
        self.density.show(self.state.density, self.state.places())
        self.factor.show(self.state.factor, GAINS)
        made = {GAIN: explored.gains_table, BEHIND: explored.behind, OFF: explored.outliers_table}
        if (view := self.results.view.value) in made:
            self.pages[view].value = made[view](self.state)


def _times(factor: float) -> str:
    """Return a factor as text, "3 x"."""
    return f"{formatting.format_number(factor)} x"


class _Explore:
    """A run is chosen, or a file of rows is named."""

    explored: Explored | None

    def __init__(self, asked: RequestState, guard: Guard) -> None:
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
        """Show the run that was picked; what was typed is over."""
        self.file.value = ""
        self._open(self.picker.value)

    def _open(self, run: str) -> None:
        """Show a stored run, or a hint without one."""
        if not run:
            self.content.children = self.content.children or [widgets.HTML(f"<p>{NONE}</p>")]
            return
        before, self.explored = self.explored, Explored(Exploration(run), self.guard)
        self.picker.show(run)
        self.content.children = [self.explored.box]
        for widget in tree(before.box) if before is not None else ():
            widget.close()

    def paint(self) -> None:
        """Read the run's folder, where rows may be new, and show them; the first run that comes is opened."""
        if self.picker.refresh() and self.explored is None:
            self._open(self.picker.value)
        if self.explored is not None:
            self.explored.state.poll()
            self.explored.results.paint()

    def close(self) -> None:
        """Nothing was started."""


def _shown(asked: RequestState) -> Any:
    """Return verdict, gains and outliers of the run that was named, else of the newest."""
    named = [asked.run] if asked.run else runs()
    if not named:
        return said(NONE)
    state = Exploration(named[0])
    verdict = verdict_of(state.frame)
    more = f"{explored.gains_table(state)}{explored.outliers_table(state)}"
    return Shown(f"<p>{html.escape(state.left)}</p>{verdict.html}{more}", f"{state.left}\n{verdict.text}")


register(Answer("explore", "Explore", "Look at any run: verdict, charts, break-evens, rows.", 2, _Explore, _shown))
