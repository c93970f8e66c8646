"""Loading: one function for files, data sets by name, and what is in memory."""

import re
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workbench import data
from workbench.advising.source import settings_of
from workbench.api import frames, inputs
from workbench.data import Dataset
from workbench.data.errors import DataError
from workbench.data.labels import Wanted, read_labels
from workbench.sweeps.problem import parameters_of_file
from workbench.sweeps.spec import FILES

RANDOM = "random_labels"
"""Fact of a data set whose labels were drawn, because it has none."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """Data as a function of `wb` received it: the data set, the settings that read it again, what estimators take.

    `settings` are those of a configuration and are empty for data in memory. `x` and `y` are as the user gave them, of
    a file its matrix and labels. `encoder` has made the matrix of a frame.
    """

    dataset: Dataset
    settings: Mapping[str, Any] = field(default_factory=dict)
    x: Any = None
    y: Any = None
    encoder: Any = None

    @property
    def is_labelled(self) -> bool:
        """Whether the labels are the user's, and not drawn."""
        return not self.dataset.facts.get(RANDOM)


_loaded: "weakref.WeakKeyDictionary[Dataset, Loaded]" = weakref.WeakKeyDictionary()
"""Everything known of data sets that `load` made, so that a file is read by its path when it is measured."""


def load(source: Any, y: Any = None, *, label: str | None = None, **reading: Any) -> Dataset:
    """Load data from a file, a data set by name, or objects in memory.

    Parameters
    ----------
    source : path, name, array, sparse array or matrix, frame, tensor, AnnData, (X, y), or Dataset
        A path is read by the reader that fits; a name is that of a built-in data set. A matrix is `[rows, features]`.
    y : array of shape [rows] or [rows, outputs], optional
        Labels of a matrix in memory, numbers or text.
    label : str, optional
        Name of the column of labels, of a frame or a table in a file.
    **reading
        Settings of the reader by name, such as `labels` (a file with a label for each row), `kind` ("classes",
        "numbers" or "multilabel"), `dataset` (the name of the reader).

    Returns
    -------
    Dataset
        The matrix as float32 csr with its labels. Without labels it has random ones, which only serve to time training.

    Raises
    ------
    FileNotFoundError
        If `source` is text that is neither a file nor the name of a data set.
    DataError
        If the data cannot be trained on; a `ValueError` that ends with what to type.

    Examples
    --------
    >>> import workbench as wb
    >>> wb.load(([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]], ["yes", "no", "yes"]))
    Dataset memory: 3 rows x 2 features, 1 entries a row, density 0.5, 2 classes
    """
    return received(source, y, label, reading).dataset


def received(source: Any, y: Any = None, label: str | None = None, reading: Mapping[str, Any] | None = None) -> Loaded:
    """Return data of any of the kinds that `load` takes, with what is known of its origin."""
    given = {name: value for name, value in (reading or {}).items() if value is not None}
    if isinstance(source, tuple) and len(source) == 2 and y is None:
        source, y = source
    if isinstance(source, str | Path):
        loaded = _of_path(source, y, label, given)
    elif isinstance(source, Dataset):
        loaded = _loaded.get(source) or Loaded(source, {}, source.x, labels_as_named(source))
    else:
        loaded = _of_memory(source, y, label, given)
    _loaded[loaded.dataset] = loaded
    return loaded


def pop_reading(given: dict[str, Any], others: Collection[str]) -> dict[str, Any]:
    """Remove the settings of readers from keyword arguments and return them; names in `others` mean something else."""
    known = {name for dataset in data.names() for name in data.get(dataset).parameters} - {"path"}
    known |= {"dataset", "reading", *FILES} - {"path"}
    return {name: given.pop(name) for name in [*given] if name in known and name not in others}


def labels_as_named(dataset: Dataset) -> np.ndarray:
    """Return the labels of a data set as its file has them: numbers, or the names of the classes.

    >>> labels_as_named(load(([[1], [2]], [5, 7]))).tolist()
    [5, 7]
    """
    if dataset.kind != "classes":
        return dataset.y
    values = dataset.labels.values
    if values is None:
        return np.array(dataset.classes)[dataset.y]
    are_whole = (values == np.round(values)).all() and np.abs(values).max() < 2**53
    return (values.astype(np.int64) if are_whole else values)[dataset.y]


def _of_path(source: str | Path, y: Any, label: str | None, given: dict[str, Any]) -> Loaded:
    """Load a file, or a data set by its name; FileNotFoundError or DataError with what to type."""
    name = str(source)
    if y is not None:
        raise DataError(
            f"Both the file {name} and y were given; labels of a file come from the file.\n"
            'Type labels="FILE" for labels in another file, or load the matrix first: X = wb.load(path).x.'
        )
    if name not in data.names() and not Path(name).expanduser().exists():
        near = "" if Path(name).suffix or "/" in name else f" Data sets: {', '.join(data.names())}."
        raise FileNotFoundError(f"There is no file {name!r}, seen from {Path.cwd()}.{near}\nCheck the path.")
    dataset, text = str(given.pop("dataset", "")), str(given.pop("reading", ""))
    of_cell = {key: given.pop(key) for key in ("labels", "columns", "kind") if key in given}
    if label is not None:
        given["label"] = label
    if given:
        from workbench import option_text

        text = option_text.written({**option_text.parsed(text, "reading"), **given})
    try:
        settings, why = settings_of(name, dataset, text, **{key: str(value) for key, value in of_cell.items()})
        settings = {
            key: str(Path(value).resolve()) if key in ("path", "labels", "columns") else value
            for key, value in settings.items()
        }
        made = data.load(settings["dataset"], **parameters_of_file(settings))
    except DataError as error:
        raise type(error)(as_typed(str(error))) from None
    if why:
        inputs.say(f'{name} is read by "{settings["dataset"]}": {why}. Type dataset="NAME" for another reader.')
    for guess in made.facts.get("guesses", ()):
        inputs.say(as_typed(guess))
    if made.labels.are_missing:
        return Loaded(_with_random_labels(made.x, made.name, made.source), {}, made.x, None)
    return Loaded(made, settings, made.x, labels_as_named(made))


def _with_random_labels(x: Any, name: str, source: str) -> Dataset:
    """Return data with drawn labels of two classes, which only serve to time training."""
    drawn = np.random.default_rng(0).integers(0, 2, x.shape[0])
    drawn[:2] = 0, 1
    labels = data.Labels("classes", ("0", "1"), guess="drawn at random")
    return Dataset(name, x, drawn[: x.shape[0]], labels, source, "yours", facts={RANDOM: True})


def as_typed(text: str) -> str:
    """Say in the words of Python what a message of a reader says to type.

    >>> as_typed('Another one: --label NAME (in Python label="NAME").')
    'Another one: label="NAME".'
    """
    text = re.sub(
        r"(?<=[ :.])[^:.\n]*--[^()\n]*\(in Python ([^)]*)\)", r" \1", text.replace(" (in the setting reading)", "")
    )
    return re.sub(r"\bType +", "Type ", text.replace(":  ", ": "))


def _of_memory(source: Any, y: Any, label: str | None, given: dict[str, Any]) -> Loaded:
    """Load arrays, frames or tensors with their labels; DataError for settings that only files have."""
    kind = given.pop("kind", None)
    if given:
        raise DataError(
            f"{next(iter(given))} is a setting of a reader of files; data in memory takes y, label and kind.\n"
            "Leave it out, or give the path of the file."
        )
    encoder = frame = None
    if inputs.library_of(source) == "anndata":
        source, y = _of_anndata(source, y, label)
    elif frames.is_frame(source):
        frame, source, encoder, y = _of_frame(source, y, label)
    elif label is not None:
        raise DataError(
            f'label="{label}" names a column, and X is a {type(source).__name__} without names.\n'
            "Give the labels as the second argument, or a pandas frame."
        )
    x = inputs.matrix_of(source)
    if y is None:
        return Loaded(_with_random_labels(x, "memory", "memory"), {}, source, None)
    y = inputs.labels_of(y, x.shape[0])
    labels, numbers = read_labels(y, Wanted(kind), lambda row: f"y[{row}]")
    made = Dataset("memory", x, numbers, labels, "memory", "yours")
    own = x if encoder is not None else source if frame is None else frame
    return Loaded(made, {}, own, y, encoder)


def _of_anndata(source: Any, y: Any, label: str | None) -> tuple[Any, Any]:
    """Return (X, labels) of an AnnData object; DataError if obs has no column `label`."""
    if label is not None and label not in source.obs.columns:
        raise DataError(f"obs has no column {label!r}; expected one of: {', '.join(source.obs.columns)}.")
    return source.X, source.obs[label].to_numpy() if label is not None else y


def _of_frame(source: Any, y: Any, label: str | None) -> tuple[Any, Any, Any, Any]:
    """Return (features, matrix, encoder, labels) of a frame; a column of labels is guessed if none is named."""
    frame = frames.as_pandas(source)
    if y is None or label is not None:
        frame, y, why = frames.take_label(frame, label)
        if why:
            inputs.say(why)
    matrix, encoder, remark = frames.matrix_of_frame(frame)
    if remark:
        inputs.say(remark)
    return frame, matrix, encoder, y


__all__ = ["Loaded", "labels_as_named", "load", "received"]
