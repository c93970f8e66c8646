"""The panel in a notebook, on a file, a data set, or what is in memory."""

from pathlib import Path
from typing import Any

from workbench.api import sweeping
from workbench.api.inputs import in_notebook
from workbench.api.loading import pop_reading, receive
from workbench.api.results import Result
from workbench.data.errors import DataError
from workbench.settings import CHOICES
from workbench.sweeps.spec import SpecError

OUTSIDE = (
    "wb.lab shows its panel in a notebook, and this is none.\n"
    "Type workbench lab in a shell to open JupyterLab, or wb.advise(X, y) for an answer here."
)
UNATTENDED = "No front end is attached, so there is no panel. Type wb.sweep(X, y) to measure the same in a cell."


class ShownPanel:
    """The panel that `lab` has shown: as the last line of a cell it is not shown a second time."""

    def __init__(self, panel: Any, state: Any = None) -> None:
        """Store the displayed panel, and the state of its sweep (None for a panel of questions)."""
        self.panel, self._state = panel, state

    @property
    def result(self) -> Result:
        """What the panel's run has measured so far; DataError for a panel of questions, which has no run."""
        if self._state is None:
            raise DataError("A panel of questions has no run.\nType wb.runs() to see what was measured.")
        self._state.poll()
        return Result(self._state.folder)

    def __getattr__(self, name: str) -> Any:
        """Return the panel's attribute of that name; AttributeError if it has none."""
        return getattr(self.panel, name)

    def __repr__(self) -> str:
        """Return a note that the panel is displayed above."""
        return "The panel is shown above."

    def _ipython_display_(self) -> None:
        """Display nothing, as the panel is displayed already."""


def lab(
    X: Any = None,
    y: Any = None,
    *,
    label: str | None = None,
    question: str | None = None,
    run: str | Path | None = None,
    show_widgets: bool | None = None,
    **settings: Any,
) -> Any:
    """Show the panel: choose model and densities, start a sweep, watch the chart grow, and open it again later.

    Parameters
    ----------
    X : anything that `load` takes, optional
        Data that the panel begins with; by default a built-in data set.
    y : array of shape [rows], optional
        Labels of a matrix in memory.
    label : str, optional
        Name of the column of labels, of a frame or a table in a file.
    question : str, optional
        "advise", "sweep", "explore", "compare" or "inspect": show the panel with a button for each of these questions,
        this one pressed. If nobody is there to click, the question is answered at once.
    run : path, optional
        Run folder of the sweep: without data and settings the panel begins with those of that run. Of the questions
        "explore" and "compare" the run to look at.
    show_widgets : bool, optional
        Whether to show widgets; by default only if somebody is there to click.
    **settings
        Settings of the sweep that the panel begins with, as of `sweep`, such as `density=[0.01, 0.1]`; with a question
        `model`, `budget` (seconds of advice) and `other_run` (to compare with); and settings of the reader, as of
        `load`.

    Returns
    -------
    ShownPanel, answer or None
        The panel, which is shown already; its `result` is what it has measured. Without a front end the answer to
        `question`, else None, and one line says what to type.

    Raises
    ------
    ValueError
        If a setting is unknown, or the data cannot be used; the message says what to type.

    Examples
    --------
    >>> import workbench as wb
    >>> wb.lab()
    wb.lab shows its panel in a notebook, and this is none.
    Type workbench lab in a shell to open JupyterLab, or wb.advise(X, y) for an answer here.
    """
    try:
        from workbench.panels import lab as panels
    except ImportError as error:
        print(f"The panel needs ipywidgets ({error}).\nType pip install 'sparse-workbench[lab]'.")
        return None
    panels.refuse_unknown_parameters()
    if X is None and y is not None:
        raise DataError("y has labels, and X is None; expected the matrix that they are of.\nType wb.lab(X, y).")
    is_shown = panels.has_front_end() if show_widgets is None else show_widgets
    if not is_shown and not in_notebook():
        print(OUTSIDE)
        return None
    if question is not None:
        request = _request(X, y, label, run, settings)
        return ShownPanel(panels.start(question, True, **request)) if is_shown else panels.answered(question, **request)
    if not is_shown:
        print(UNATTENDED)
        return None
    study = panels.study(**_choices(X, y, label, run, settings))
    return ShownPanel(panels.show(study, True), study)


def _choices(X: Any, y: Any, label: str | None, run: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the choices {name: text} that the sweep panel starts with; data in memory is written to its run folder.

    Raises SpecError for unknown settings.
    """
    reading = pop_reading(settings, {*CHOICES} - {*sweeping.OF_DATA})
    sweeping.refuse_unknown(settings)
    chosen = sweeping.choices_of({name: value for name, value in settings.items() if value is not None})
    placed = {} if run is None else {"run_dir": str(run)}
    if X is None:
        return chosen | placed
    loaded = receive(X, y, label, reading)
    folder = sweeping.run_of(loaded)
    sweeping.write_once(loaded, folder)
    read = {name: str(value) for name, value in sweeping.settings_of(loaded, folder).items()}
    return {"name": folder.name, **read, **chosen, **placed}


def _request(X: Any, y: Any, label: str | None, run: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of the panel of questions; data in memory is written to its run folder."""
    if "seconds" in settings:
        raise SpecError("Unknown setting 'seconds'. Did you mean 'budget'?\nType budget=60.")
    budget = settings.pop("budget", None)
    asked = {"label": label, "run": run and str(run), "seconds": budget and float(budget), **settings}
    if isinstance(X, str | Path):
        asked["source"] = str(X)
    elif X is not None:
        loaded = receive(X, y, label)
        folder = sweeping.run_of(loaded)
        sweeping.write_once(loaded, folder)
        read = sweeping.settings_of(loaded, folder)
        asked |= {"source": read["path"], "reading": str(read["reading"]), "label": None}
    return {name: value for name, value in asked.items() if value is not None}
