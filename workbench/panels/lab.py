"""The lab: one study in a notebook, by a panel or without.

In a notebook::

    from workbench.panels import lab

    study = lab.study(dataset="stdlib", density=[0.01, 0.1])
    panel = lab.show(study)      # widgets, if somebody is there to click
    lab.run(study, panel)        # without a panel: measure now, and wait
    lab.verdict(study)
"""

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernels.registry import unknown_name
from workbench.panels import tabs
from workbench.panels.results_view import said, verdict
from workbench.panels.state import LabState, choices_of_run, left
from workbench.study import suited
from workbench.study.suited import name_of, spec_of
from workbench.sweeps import run_folder
from workbench.sweeps.spec import SpecError

if TYPE_CHECKING:
    from workbench.panels.panel import Panel
import ipywidgets as widgets

from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard
from workbench.panels.live import trouble
from workbench.panels.state import trouble_of
from workbench.panels.style import SHEET, Watcher
from workbench.panels.tabs import RequestState, View
from workbench.panels.widget_trees import close_tree, send_less

# The first panel: one question, "What do you want to know?", and an answer for each button.


QUESTION = "What do you want to know?"
HINT = "The panel needs a running kernel. The cells below answer without it."


class Start:
    """Buttons, and the view of the selected one, created on first use. Nothing runs until `watch`."""

    def __init__(self, asked: RequestState, answer: str = "advise") -> None:
        """Make the buttons for all answers and open that named `answer`; ValueError for an unknown name.

        `asked` is the request that all answers share. No thread is started before `watch`.
        """
        tabs.get(answer)
        self.asked, self.views = asked, dict[str, View]()
        self.guard = Guard(self._tell, self._forget)
        options = [(tabs.get(name).label, name) for name in tabs.names()]
        meanings = [tabs.get(name).meaning for name in tabs.names()]
        self.buttons = widgets.ToggleButtons(
            options=options, value=answer, tooltips=meanings, description=QUESTION, tooltip=QUESTION, style=LABELLED
        )
        self.meaning, self.trouble, self.content = widgets.HTML(), widgets.HTML(), widgets.VBox()
        self.root = widgets.VBox([widgets.HTML(SHEET), self.buttons, self.meaning, self.trouble, self.content])
        self.root.add_class("workbench-lab")
        self.content.add_class("wb-answer")
        send_less(self.root)
        self.buttons.observe(self.guard("Opening the answer", self.open), names=["value"])
        self.watcher = Watcher(self.guard.passive_callback("Showing the answer", self.paint))
        self.guard("Opening the answer", self.open)()

    @property
    def view(self) -> View | None:
        """The view that is shown; None while the first one is being made."""
        return self.views.get(self.buttons.value)

    def open(self) -> None:
        """Show the answer whose button is pressed, making its view on first use."""
        name = self.buttons.value
        self.meaning.value, self.content.children = tabs.get(name).meaning, ()
        if name not in self.views:
            self.content.children = (opening := widgets.HTML('<p role="status">Opening.</p>'),)
            self.views[name] = tabs.get(name).view(self.asked, self.guard)
            send_less(self.views[name].box)
            close_tree(opening)
        self.content.children = (self.views[name].box,)

    def paint(self) -> None:
        """Update the shown view; called repeatedly by the thread."""
        if self.view is not None:
            self.view.paint()

    def _forget(self) -> None:
        """Clear the error message, since the user acts again."""
        self.trouble.value = ""

    def _tell(self, error: Exception, what: str) -> None:
        """Show an exception above the view; `what` names the action that failed."""
        self.trouble.value = trouble(trouble_of(error, what))

    def watch(self) -> None:
        """Start the thread that repaints the shown view until `close`."""
        self.watcher.start()

    def close(self) -> None:
        """End the thread, close all views with what they started, and the widget."""
        self.watcher.stop()
        for view in self.views.values():
            view.close()
            close_tree(view.box)
        close_tree(self.root)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """Return the widget's MIME bundle, with a hint for viewers without widgets."""
        bundle = self.root._repr_mimebundle_(**options) or {}
        return dict(bundle) | {"text/html": f"<p>{HINT}</p>", "text/plain": HINT}


# Runner of a notebook: a person at a front end, or papermill; and which parameters it was given.


INJECTED = "# Parameters"
"""First line of the cell that papermill adds."""


def has_front_end() -> bool:
    """Return whether a user may click: front ends accept requests for input, papermill and nbclient do not.

    False outside IPython.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(getattr(kernel, "_allow_stdin", False))  # ipykernel keeps it for the cell that runs


def injected(sources: Iterable[str]) -> list[str]:
    """Return the names that papermill set, from the sources of the cells that ran.

    >>> injected(["density = [0.1]", "# Parameters\\nwidth = [4]\\n"])
    ['width']
    """
    cells = [ast.parse(source) for source in sources if source.startswith(INJECTED)]
    assigned = [node for cell in cells for node in cell.body if isinstance(node, ast.Assign)]
    return [target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)]


def sources(namespace: Mapping[str, Any]) -> list[str]:
    """Return the sources of the cells that ran in a notebook, from its namespace's list `In`; [] without one."""
    return [source for source in namespace.get("In", ()) if isinstance(source, str)]


def refuse_unknown_parameters() -> None:
    """Raise SpecError if papermill set a name that no earlier cell of this notebook assigns.

    papermill itself only warns. Does nothing outside IPython.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return
    names = unknown_parameters(sources(getattr(get_ipython(), "user_ns", {})))
    if names:
        unknown, known = next(iter(names.items()))
        raise SpecError(unknown_name("parameter", unknown, known))


def unknown_parameters(cells: Iterable[str]) -> dict[str, list[str]]:
    """Return the names that papermill set and that no cell before assigns, each with the names that are assigned.

    >>> unknown_parameters(["rows: int = 3", "# Parameters\\nrows = 4\\nrwos = 4\\n"])
    {'rwos': ['rows']}
    """
    assigned, unknown = list[str](), dict[str, list[str]]()
    for source in cells:
        if source.startswith(INJECTED):
            unknown |= {name: [*assigned] for name in injected([source]) if name not in assigned}
        else:
            assigned += re.findall(r"^(\w+)(?: *:[^=\n]*)? *=(?!=)", source, re.MULTILINE)
    return unknown


__all__ = [
    "LabState",
    "SpecError",
    "answered",
    "has_front_end",
    "refuse_unknown_parameters",
    "run",
    "show",
    "start",
    "study",
    "verdict",
]

NAME = "can_sparse_reduce_training_time"
SECONDS_BETWEEN = 5.0
_shown: dict[str, "Panel"] = {}
"""The panel of each run folder."""
_started: dict[tuple, "Start"] = {}
"""The first panel of this kernel, by what it was asked."""


def study(*, name: str = NAME, run_dir: str = "", smoke: bool = False, **chosen: Any) -> LabState:
    """Return a study with these choices, attached to its run if there is one; SpecError if they are invalid.

    The records are in `run_dir`, which is `runs/NAME` where not given, and `runs/NAME-2` and so on where that has
    records of other settings, none of which answers; without a name it is that of the data. A run in `run_dir` gives
    the choices if there are no others. `smoke` makes everything small: it is done in seconds and shows that all works;
    its numbers answer nothing.
    """
    if run_dir and not chosen:
        chosen = dict(choices_of_run(Path(run_dir)))
    values = suited.complete_with_suggestions(chosen)
    if smoke:
        name, values = f"{name}-smoke", suited.reduce_for_file(values)
    spec_of(values, name or name_of(values))
    return LabState(name, values, run_dir)


def show(study: LabState, show_widgets: bool | None = None) -> "Panel | None":
    """Display the panel of a study and return it; None if there is no front end.

    `show_widgets` True or False decides instead of the front end. Another panel of the same run in this kernel is
    closed; the threads of the new one are started.
    """
    if not (has_front_end() if show_widgets is None else show_widgets):
        print("No front end, so no panel: the next cell measures.")
        return None
    from IPython.display import display

    from workbench.panels.panel import Panel

    if (before := _shown.pop(str(study.folder), None)) is not None:
        before.close()
    panel = _shown[str(study.folder)] = Panel(study)
    display(panel)
    if (handle := display(panel.still(), display_id=True)) is not None:  # None outside IPython, where text is printed
        panel.keep_snapshot(handle.update)
    panel.watch()
    return panel


def start(answer: str = "advise", show_widgets: bool | None = None, **asked: Any) -> "Start | None":
    """Display the first panel with one of its answers open: advise, sweep, explore, compare or inspect.

    `asked` is what is known already: source (a file or a data set), model, run, other_run, seconds. The same call again
    shows the same panel with its contents; another one closes it. Returns None without a front end; `answered` gives
    the same answers to cells. Raises SpecError for unknown names.
    """
    about, question = _asked(asked), (answer, *sorted(asked.items()))
    tabs.get(answer)
    if not (has_front_end() if show_widgets is None else show_widgets):
        print("No front end, so no panel: the next cell answers.")
        return None
    from IPython.display import display

    panel = _started.get(question)
    if panel is None or panel.root.comm is None:
        for before in _started.values():
            before.close()
        _started.clear()
        panel = _started[question] = Start(about, answer)
    display(panel)
    panel.watch()
    return panel


def answered(answer: str, panel: "Start | None" = None, **asked: Any) -> Any:
    """Compute and return an answer as the result of a cell; with a panel only a sentence that refers to it.

    `asked` is as of `start`; SpecError for unknown names.
    """
    if panel is not None:
        return said("Ask in the panel above.")
    return tabs.get(answer).shown(_asked(asked))


def _asked(given: Mapping[str, Any]) -> tabs.RequestState:
    """Return the request with the given settings; SpecError, with the nearest known name, for an unknown one."""
    known = tabs.RequestState.class_own_traits()
    for name in given:
        if name not in known:
            raise SpecError(unknown_name("part of a question", name, list(known)))
    return tabs.RequestState(**given)


def run(study: LabState, panel: "Panel | None" = None, tell: Callable[[str], None] = print) -> None:
    """Measure what is not measured yet and wait until it is done; with a panel only say how to start it.

    `tell(line)` gets the plan and progress every few seconds. KeyboardInterrupt stops the sweep and is raised again;
    records stay. SpecError if the choices are invalid.
    """
    study.poll()
    if panel is not None:
        tell("Press Run in the panel. Run the cells below whenever you want their results as they are.")
        return
    planned = study.planned
    if planned is None:
        raise SpecError(study.problem)
    sentences = filter(None, (str(planned), planned.without, study.following))
    tell(" ".join([*sentences, f"The rows are kept in {study.target}."]))
    if not study.is_current:
        study.start()
    try:
        _wait(study, tell)
    except KeyboardInterrupt:
        study.stop()
        tell("Stopped. Run this cell again to measure the rest.")
        raise


def _wait(study: LabState, tell: Callable[[str], None]) -> None:
    """Wait until the run ends, calling `tell(line)` with its progress every few seconds and at the end."""
    due, last = SECONDS_BETWEEN, ""
    for progress in run_folder.watch_progress(study.folder):
        line = ", ".join(filter(None, (f"{progress.done} of {progress.total} trials done", left(progress))))
        if progress.alive and progress.seconds >= due and line != last:
            due, last = progress.seconds + SECONDS_BETWEEN, line
            tell(line)
    study.poll()
    tell(f"{progress.state.capitalize()}: {progress.done} of {progress.total} trials. {progress.message}".strip())
