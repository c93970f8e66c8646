"""The Chart record and its controls; how to add one.

A chart is one file in this folder that ends in `register_chart(...)`. `draw(frame, figure, **controls)` draws on the
Matplotlib figure it is given and returns one sentence that says what is seen; `table(frame, **controls)` returns the
numbers behind it. Controls are keyword arguments of both, declared once; panels make widgets of them, the command line
options, the report pictures. `table_size.py` is a small one to copy.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from kernels.registry import Registry

Choices = Callable[[pd.DataFrame], tuple[str, ...]]


@dataclass(frozen=True)
class Control:
    """One thing a reader may choose. `choices` and `default` may depend on the frame, then they are functions of it.

    Without a `default` it is the first choice.
    """

    name: str
    help: str
    choices: tuple[str, ...] | Choices
    default: str | Callable[[pd.DataFrame], str | None] | None = None

    def options(self, frame: pd.DataFrame) -> tuple[str, ...]:
        """Return the choices for this frame; empty if the frame is."""
        return self.choices(frame) if callable(self.choices) else self.choices

    def initial(self, frame: pd.DataFrame) -> str | None:
        """Return the initial value for these records; None if it depends on them and there are none."""
        if callable(self.default):
            return None if frame.empty else self.default(frame)
        return self.default or next(iter(self.options(frame)), None)


@dataclass(frozen=True)
class Chart:
    """A named picture of rows. `draw` and `table` take exactly the declared controls; that is checked here.

    `rows` names what it reads: trials; sizes, which are trials at several sizes of a model's tables; runs, which are
    trials with the name of the run that each is of; or profile, of which a row is the profile of a data set as JSON
    keeps it. For other records, `pool` makes the frame have one row a configuration.
    """

    name: str
    title: str
    draw: Callable[..., str]
    table: Callable[..., pd.DataFrame]
    controls: tuple[Control, ...] = ()
    rows: str = "trials"
    pool: Callable[[pd.DataFrame], pd.DataFrame] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless `draw` and `table` take exactly the declared controls as further parameters."""
        declared = [control.name for control in self.controls]
        for function, given in ((self.draw, 2), (self.table, 1)):
            takes = list(inspect.signature(function).parameters)[given:]
            if takes != declared:
                raise ValueError(
                    f"The chart {self.name} declares the controls {declared}; {function.__name__} takes {takes}."
                )

    def chosen(self, frame: pd.DataFrame, given: dict[str, Any]) -> dict[str, Any]:
        """Return {control: value} for every control: given ones, else (also for None) the initial values.

        ValueError, listing what is allowed, for an unknown control or value.
        """
        names = [control.name for control in self.controls]
        if unknown := [name for name in given if name not in names]:
            known = ", ".join(names) or "none"
            raise ValueError(f"The chart {self.name} has no control {unknown[0]!r}; it has: {known}.")
        return {control.name: _value(self, control, frame, given.get(control.name)) for control in self.controls}


charts: Registry[Chart] = Registry("chart", ("workbench.plots",), ValueError, is_named_by_files=True)
register = charts.register


def register_chart(module: str, title: str, controls: tuple[Control, ...] = (), rows: str = "trials") -> None:
    """Register the chart that a file draws by its functions `draw` and `table`; `module` is the file's `__name__`.

    The chart has the file's name; the other parameters are fields of `Chart`. ValueError if the functions do not take
    exactly the controls.
    """
    register(chart_of_module(module, title, controls, rows))


def chart_of_module(module: str, title: str, controls: tuple[Control, ...], rows: str, **more: Any) -> Chart:
    """Return the chart, named after the file, of the functions `draw` and `table` of an imported module."""
    functions = vars(sys.modules[module])
    return Chart(module.rpartition(".")[2], title, functions["draw"], functions["table"], controls, rows, **more)


def _value(chart: Chart, control: Control, frame: pd.DataFrame, given: Any) -> Any:
    """Return a control's value, its initial one for None; ValueError, with the options, if not allowed."""
    if given is None:
        return control.initial(frame)
    if (options := control.options(frame)) and given not in options:
        raise ValueError(f"The chart {chart.name}: {control.name} is {given!r}; allowed: {'; '.join(options)}.")
    return given


MESSAGE = "message"
"""Mark of axes that hold a text instead of a chart."""


def is_message(figure: Figure) -> bool:
    """Return whether a figure holds only a text, which a page shows as a paragraph instead of a picture."""
    return any(axes.get_gid() == MESSAGE for axes in figure.axes)


def message(figure: Figure, text: str) -> str:
    """Write the text on the figure instead of a chart, mark it for `is_message`, and return the text."""
    axes = figure.add_subplot()
    axes.set_gid(MESSAGE)
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=11, wrap=True)
    return text
