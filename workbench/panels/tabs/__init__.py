"""Answers to what a person may want to know, one a file: a widget that asks for little, and a function for batch runs.

An entry registers an `Answer`. Its `view` is made when somebody asks for it; `shown` answers without a front end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import ipywidgets as widgets
import traitlets

from kernels.registry import Registry
from workbench import data, models
from workbench.advising import settings_of
from workbench.data import contract
from workbench.panels import form
from workbench.panels.columns import ColumnsView
from workbench.panels.form import FileChooser
from workbench.panels.guard import Guard
from workbench.settings import CHOICES
from workbench.study import options_of, suited
from workbench.study.suited import files_of


class View(Protocol):
    """The widgets of an answer; `paint` is called again and again and brings them up to date, `close` ends its work."""

    box: widgets.Widget

    def paint(self) -> None:
        """Update the widgets; called repeatedly while the view is shown."""

    def close(self) -> None:
        """Stop threads and processes that the view started; sweeps go on."""


class Still:
    """View that changes only where its button is pressed: `paint` and `close` have nothing to do."""

    def paint(self) -> None:
        """Do nothing: this view changes only when its button is pressed."""

    def close(self) -> None:
        """Do nothing: this view started no thread and no process."""


class RequestState(traitlets.HasTraits):
    """Subject of the questions: data, how they are read, model, two runs, seconds for advice. What is typed once is
    there for all.

    `source` is a file, a folder or the name of a data set; `label` names the column of labels; `labels` and `columns`
    are files; `dataset` is the reader, empty if it is guessed; `reading` has parameters of the reader.
    """

    source = traitlets.Unicode("stdlib")
    label = traitlets.Unicode()
    labels = traitlets.Unicode()
    columns = traitlets.Unicode()
    kind = traitlets.Unicode()
    dataset = traitlets.Unicode()
    reading = traitlets.Unicode()
    model = traitlets.Unicode()
    run = traitlets.Unicode()
    other_run = traitlets.Unicode()
    seconds = traitlets.Float(60.0)


OF_DATA = ("source", "label", "labels", "columns", "kind", "dataset", "reading")
"""Parts of a question that say which data is meant."""


def settings_of_data(asked: RequestState) -> dict[str, Any]:
    """Return the settings of the requested data as a dict, with "model" if one is chosen.

    DataError if there is no such data or no reader for it.
    """
    reading = contract.with_label(contract.reader_options(asked.reading), asked.label.strip())
    files = {"labels": asked.labels.strip(), "columns": asked.columns.strip(), "kind": asked.kind}
    settings, _ = settings_of(asked.source.strip(), asked.dataset, reading, **files)
    return settings | ({"model": asked.model} if asked.model else {})


class Fields(NamedTuple):
    """The widgets that ask for data and model: all of them in `box`, the field of the label, the table's columns."""

    box: widgets.Widget
    label: widgets.Combobox
    columns: ColumnsView


def fields_of(asked: RequestState, guard: Guard, *more: widgets.Widget) -> Fields:
    """Return the fields for data and model, bound to the traits of `asked`, followed by the widgets `more`.

    Fields that few files need are behind a button, which is pressed if one of them is filled.
    """
    source = _text(asked, "source", "Data", "Your file or folder, or the name of a data set")
    model = _menu(
        asked,
        "model",
        "Model",
        "What is trained",
        {"what suits the labels": "", **{name: name for name in models.names()}},
    )
    label = form.label_field()
    traitlets.link((asked, "label"), (label, "value"))
    readers = {"guessed from the file": "", **{name: name for name in data.names() if files_of(name)}}
    kinds = {"guessed from the file": "", **{name: name for name in options_of(CHOICES["kind"]) if name != "guessed"}}
    rest = [
        FileChooser(_text(asked, "labels", CHOICES["labels"].label, CHOICES["labels"].help), guard).box,
        FileChooser(_text(asked, "columns", CHOICES["columns"].label, CHOICES["columns"].help), guard).box,
        _menu(asked, "dataset", "Reader", "The data set that reads the file", readers),
        _menu(asked, "kind", CHOICES["kind"].label, CHOICES["kind"].help, kinds),
        _text(asked, "reading", CHOICES["reading"].label, CHOICES["reading"].help),
    ]
    shown = grid_of(*rest)
    reads = widgets.ToggleButton(description="How the file is read", tooltip="Labels file, columns, reader")
    reads.observe(lambda change: setattr(shown.layout, "display", None if change["new"] else "none"), "value")
    shown.layout.display = "none"
    reads.value = any(getattr(asked, name) for name in OF_DATA[2:])
    columns = ColumnsView(
        guard,
        lambda file: setattr(asked, "columns", file),
        lambda names: label.set_trait("options", names),
    )
    show = lambda *_: columns.show(_table_of(asked), asked.columns, _reading_of(asked))  # noqa: E731
    asked.observe(guard("Looking at the columns", show), names=["source", "columns", "reading", "label", "dataset"])
    show()
    fields = grid_of(FileChooser(source, guard, takes_folder=True).box, label, model, *more)
    return Fields(widgets.VBox([fields, columns.box, reads, shown]), label, columns)


def _table_of(asked: RequestState) -> str:
    """Return the path of the requested data if it may be a table, else ""."""
    return asked.source if asked.dataset in ("", "table") and asked.source not in data.names() else ""


def _reading_of(asked: RequestState) -> str:
    """Return the reader options of the request with its label."""
    return suited.replace_label(asked.reading, asked.label.strip())


def _text(asked: RequestState, name: str, label: str, help: str) -> widgets.Text:
    """Return a text field bound both ways to the trait `name` of the request."""
    field = widgets.Text(description=label, tooltip=help, continuous_update=False, style=form.LABELLED)
    traitlets.link((asked, name), (field, "value"))
    return field


def _menu(asked: RequestState, name: str, label: str, help: str, options: dict[str, str]) -> widgets.Dropdown:
    """Return a drop-down bound both ways to the trait `name` of the request; `options` is {text: value}."""
    field = widgets.Dropdown(options=list(options.items()), description=label, tooltip=help, style=form.LABELLED)
    traitlets.link((asked, name), (field, "value"))
    return field


def grid_of(*fields: widgets.Widget) -> widgets.Box:
    """Return a box in which fields stand in columns, labels above them."""
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


__all__ = [
    "Answer",
    "AnswerError",
    "RequestState",
    "Still",
    "View",
    "fields_of",
    "get",
    "grid_of",
    "names",
    "register",
    "settings_of_data",
]
