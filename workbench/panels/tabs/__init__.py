"""Answers to what a person may want to know, one a file: a widget that asks for little, and a function for batch runs.

An entry registers an `Answer`. Its `view` is made when somebody asks for it; `shown` answers without a front end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import ipywidgets as widgets
import traitlets

from kernels.registry import Registry
from workbench import models
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard


class View(Protocol):
    """The widgets of an answer; `paint` is called again and again and brings them up to date, `close` ends its work."""

    box: widgets.Widget

    def paint(self) -> None:
        """Show what is new."""

    def close(self) -> None:
        """End what it started, but for runs, which go on."""


class Still:
    """View that changes only where its button is pressed: `paint` and `close` have nothing to do."""

    def paint(self) -> None:
        """Nothing changes by itself."""

    def close(self) -> None:
        """Nothing was started."""


class RequestState(traitlets.HasTraits):
    """Subject of the questions: data, model, two runs, seconds for advice. What is typed once is there for all."""

    source = traitlets.Unicode("stdlib")
    model = traitlets.Unicode()
    run = traitlets.Unicode()
    other_run = traitlets.Unicode()
    seconds = traitlets.Float(60.0)


def fields_of(asked: RequestState, *more: widgets.Widget) -> widgets.Box:
    """Return the fields for data and model, linked with what is asked, and `more` beside them."""
    source = widgets.Text(description="Data", tooltip="Your file, or the name of a data set", style=LABELLED)
    options = [("what suits the labels", ""), *((name, name) for name in models.names())]
    model = widgets.Dropdown(options=options, description="Model", tooltip="What is trained", style=LABELLED)
    traitlets.link((asked, "source"), (source, "value"))
    traitlets.link((asked, "model"), (model, "value"))
    return grid_of(source, model, *more)


def grid_of(*fields: widgets.Widget) -> widgets.Box:
    """Return fields beside each other, labels above them."""
    box = widgets.Box(fields)
    box.add_class("wb-grid")
    return box


@dataclass(frozen=True)
class Answer:
    """`label` is the question in a word, `meaning` in a sentence; `place` orders the buttons."""

    name: str
    label: str
    meaning: str
    place: int
    view: Callable[[RequestState, Guard], View]
    shown: Callable[[RequestState], Any]


class AnswerError(LookupError):
    """Unknown answer; the message lists those there are."""


_answers: Registry[Answer] = Registry("answer", (__name__,), AnswerError, is_named_by_files=True)
register, get = _answers.register, _answers.get


def names() -> tuple[str, ...]:
    """Return the names of all answers, in the order of their buttons."""
    return tuple(sorted(_answers.names(), key=lambda name: get(name).place))


__all__ = ["Answer", "AnswerError", "RequestState", "Still", "View", "fields_of", "get", "grid_of", "names", "register"]
