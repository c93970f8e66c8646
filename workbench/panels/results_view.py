"""Results of a study as widgets: the verdict in numbers, a chart of its rows, words, and a table that is asked for."""

import html
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Protocol

import ipywidgets as widgets
import pandas as pd

from workbench import plots
from workbench.analysis.configurations import configuration_of, pool_rounds, records
from workbench.panels import pages, picture
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard
from workbench.panels.state import LabState
from workbench.panels.widget_trees import close_tree, send_less
from workbench.plots import interactive

# Results of a study as static outputs of cells: they stay in the notebook, and need no kernel to be read.


NOTHING = "Nothing was measured yet. Press Run in the panel, and run this cell again when trials have ended."


@dataclass(frozen=True)
class Shown:
    """HTML for notebooks, text for the rest."""

    html: str
    text: str

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        """Return {"text/html": ..., "text/plain": ...}, of which Jupyter displays one."""
        return {"text/html": self.html, "text/plain": self.text}


def said(text: str) -> Shown:
    """Return a sentence as a `Shown`: a paragraph of HTML (escaped), and text."""
    return Shown(f"<p>{html.escape(text)}</p>", text)


def verdict(study: LabState) -> Shown:
    """Return whether sparse training pays for the study's records, with the reasons and a note if they are outdated.

    A hint to press Run if there are no records yet.
    """
    study.poll()
    if not study.rows:
        return said(NOTHING)
    shown, note = verdict_of(study.frame), f"{pages.OUTDATED} The run has {study.outdated}."
    if not study.outdated:
        return shown
    return Shown(f"<p><strong>{html.escape(note)}</strong></p>{shown.html}", f"{note}\n{shown.text}")


def verdict_of(frame: pd.DataFrame) -> Shown:
    """Return whether sparse training pays for the records of a data frame, with the reasons."""
    return Shown(*pages.answer(frame))


# The live chart: a picker, the chart's own controls as widgets, the picture, and the numbers behind it.


SECONDS_BETWEEN = 1.0
EMPTY = "The chart appears with the first trial."
LABELS = {"crossings": "Break-evens", "group": "Settings"}
"""What controls are called where their own names are words of ours."""
SHARE = 10
"""Drawing takes at most a tenth of the time."""
SECONDS_PATIENCE = 20.0
"""How long new rows wait for a moment in which no trial is timed, before they are drawn during one."""


class Rows(Protocol):
    """A state that has rows: all that charts and tables of results ask for."""

    @property
    def rows(self) -> Any:
        """Records of trials; another object whenever they change."""

    @property
    def frame(self) -> pd.DataFrame:
        """The records as a data frame, or as a part of a pooled one."""

    @property
    def answered(self) -> pd.DataFrame:
        """All records that the answer is made of, also those that are not shown."""

    @property
    def alive(self) -> bool:
        """Whether trials are running, which drawing must not disturb."""

    @property
    def is_timed(self) -> bool:
        """Whether a trial is being timed now."""

    @property
    def outdated(self) -> Any:
        """Text on how the records differ from the present settings; "" if they do not."""

    def observe(self, handler: Any, names: Any = ...) -> None:
        """Call `handler(change)` whenever one of the named traits changes."""


class PictureView:
    """The widgets of a drawn chart.

    In wide panels it answers to the pointer (`live`), in narrow ones and without Plotly it is a picture (`image`): the
    style sheet decides.
    """

    def __init__(self) -> None:
        """Make the widgets, empty."""
        self.image, self.live = widgets.HTML(), widgets.Output()
        self.live.add_class("wb-live")
        self.box = widgets.VBox([self.live, self.image])

    def show(self, drawn: picture.Picture | None, otherwise: str = "") -> None:
        """Show a drawn chart; the sentence `otherwise` if it is None."""
        described = drawn.described if drawn else None
        self.image.value = drawn.html if drawn else f"<p>{otherwise}</p>" if otherwise else ""
        data = {interactive.MIME: described, "text/plain": drawn.sentence} if drawn and described else {}
        self.live.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},) if data else ()
        (self.box.add_class if data else self.box.remove_class)("wb-has-live")


class ChartView:
    """Shows one chart of the state's rows, drawn again when they changed, and at once when the user chose."""

    def __init__(self, state: Rows, guard: Guard, clock: Callable[[], float] = monotonic) -> None:
        """Make the widgets and draw the first chart of `state`; `guard` wraps callbacks, `clock()` gives seconds."""
        self.state, self.guard, self.clock = state, guard, clock
        options = [(plots.get(name).title, name) for name in _ordered()]
        self.picker = widgets.Dropdown(
            options=options, description="Chart", tooltip="Which chart to show", style=LABELLED
        )
        self.controls: dict[str, widgets.Dropdown] = {}
        self.chosen: dict[str, str] = {}
        self.bar = widgets.HBox([self.picker])
        self.bar.add_class("wb-grid")
        self.drawn = PictureView()
        self.image = self.drawn.image
        self.box = widgets.VBox([self.bar, self.drawn.box])
        self.picker.observe(guard("Drawing", self._pick), names=["value"])
        state.observe(lambda _: self._age(), names=["rows"])
        self.stale, self.due, self.aged, self._setting = True, 0.0, self.clock(), False
        self._pick()

    def _age(self) -> None:
        """Mark the chart as out of date, and keep since when it is."""
        if not self.stale:
            self.stale, self.aged = True, self.clock()

    def _pick(self) -> None:
        """Replace the controls by those of the selected chart, and draw it."""
        for control in self.controls.values():
            close_tree(control)
        self.controls, self.chosen = {}, {}
        for control in plots.get(self.picker.value).controls:
            label = LABELS.get(control.name, control.name.capitalize())
            dropdown = widgets.Dropdown(description=label, tooltip=control.help, style=LABELLED)
            dropdown.observe(self.guard("Drawing", partial(self._choose, control.name)), names=["value"])
            self.controls[control.name] = dropdown
        self.bar.children = (self.picker, *self.controls.values())
        send_less(self.bar)
        self.draw()

    def _choose(self, name: str) -> None:
        """Keep the value of the control `name` that the user has changed, and draw the chart again."""
        if not self._setting:
            self.chosen[name] = self.controls[name].value
            self.draw()

    def refresh(self, after: Callable[[], None]) -> None:
        """Draw again if the records changed and drawing is due, then call `after()`.

        While trials run drawing is limited to a tenth of the time, and avoids timed trials for some seconds.
        """
        if not self.stale or (self.state.alive and self._must_wait()):
            return
        started, self.stale = self.clock(), False
        self.draw()
        after()
        self.due = self.clock() + max(SECONDS_BETWEEN, SHARE * (self.clock() - started))

    def _must_wait(self) -> bool:
        """Return whether drawing would take too much of the time, or disturb a trial that is being timed."""
        now = self.clock()
        return now < self.due or (self.state.is_timed and now < self.aged + SECONDS_PATIENCE)

    def draw(self) -> None:
        """Draw the selected chart from the present records; sets `frame` and the image's HTML."""
        self.frame = frame = self.state.frame
        self._offer(pool_rounds(frame))
        self.drawn.show(None if frame.empty else picture.draw(self.picker.value, frame, **self.chosen), EMPTY)

    def _offer(self, frame: pd.DataFrame) -> None:
        """Set the options of the controls from these pooled records; a choice of the user stays while it is available.

        A control with fewer than two options is hidden.
        """
        self._setting = True
        try:
            for control in plots.get(self.picker.value).controls:
                options, shown = control.options(frame), self.controls[control.name]
                if self.chosen.get(control.name) not in options:
                    self.chosen.pop(control.name, None)
                if tuple(shown.options) != tuple(options):
                    shown.options = options
                shown.value = self.chosen.get(control.name) or control.initial(frame)
                shown.layout.display = None if len(options) > 1 else "none"
        finally:
            self._setting = False

    @property
    def numbers(self) -> str:
        """HTML table of the numbers behind the chart."""
        frame = plots.table(self.picker.value, self.frame, **self.chosen)
        return frame.to_html(index=False, border=0) if len(frame) else f"<p>{plots.EMPTY}</p>"


FIRST = ("time_density", "memory_density", "phases", "learning")


def _ordered() -> list[str]:
    """Return the names of all charts, those of `FIRST` first, the rest in alphabetical order."""
    return sorted(plots.names(), key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))


VIEWS = ("Latest trials", "Break-evens", "Numbers of the chart")


class ResultsView:
    """Shows the rows of a state; `paint` brings it up to date: the latest trials at once, the rest when it is due."""

    def __init__(self, state: Rows, guard: Guard, clock: Callable[[], float] = monotonic) -> None:
        """Make the widgets of verdict, chart and tables for the records of `state`; arguments as of `ChartView`."""
        self.state = state
        self.chart = ChartView(state, guard, clock)
        self.verdict, self.page = widgets.HTML(), widgets.HTML()
        self.view = widgets.ToggleButtons(options=VIEWS, description="Show", style=LABELLED, tooltip="What to show")
        self.parts = [self.verdict, self.chart.box, self.view, self.page]
        self.view.observe(guard("Showing a table", self.turn), names=["value"])
        state.observe(lambda _: self._fade(), names=["outdated"])
        self._fade()
        self.fill()
        self.chart.stale = False  # it was drawn when it was made

    def _fade(self) -> None:
        """Show results paler if they are outdated, else normally."""
        for widget in (self.verdict, self.chart.box, self.page):
            if self.state.outdated:
                widget.add_class("wb-old")
            else:
                widget.remove_class("wb-old")

    def paint(self) -> None:
        """Update the table and the chart if the records changed since the last call, the chart only when it is due."""
        if self.state.rows is not self._shown and self.view.value == VIEWS[0]:
            self.turn()
        self.chart.refresh(self.fill)

    def fill(self) -> None:
        """Update verdict and table from the records that the chart shows; hide all widgets if there are none."""
        answered, pooled = pool_rounds(self.state.answered), pool_rounds(self.chart.frame)
        shown = {configuration_of(row) for row in records(pooled)}
        self.verdict.value = pages.answer(answered, shown)[0]
        for widget in (self.verdict, self.chart.box, self.view):
            widget.layout.display = None if self.state.rows else "none"
        self.turn()

    def turn(self) -> None:
        """Show the selected table; hide it without records."""
        state, self._shown = self.state, self.state.rows
        self.page.layout.display = None if state.rows else "none"
        tables = {
            "Latest trials": lambda: pages.latest_rows(state.rows),
            "Break-evens": lambda: pages.break_evens(self.chart.frame),
            "Numbers of the chart": lambda: self.chart.numbers,
        }
        self.page.value = tables[self.view.value]()
