"""A trained model on disk: weights, labels and reader in one folder, which `load_model` reads and `apply` uses.

The folder holds `model.json`, what the model is and how data for it is read, and `weights.npz`, its arrays. Nothing in
it is a pickle, and nothing in it is run. A damaged folder or a folder of a newer version is refused in one line.

>>> import tempfile
>>> from workbench import data, training
>>> made = data.load("uniform", rows=64, features=32, density=0.1, classes=3, seed=0)
>>> run = training.make_run(training.Setup(model="softmax", batch_rows=16), made.x, made.y, width=3)
>>> _ = list(run.events(epochs=1))
>>> with tempfile.TemporaryDirectory() as folder:
...     TrainedModel.of_run(run, made).save(f"{folder}/model")
...     again = load_model(f"{folder}/model")
>>> again.predict_proba(made.x).shape, again.predict(made.x)[0] in again.labels.classes
((64, 3), True)
"""

import csv
import dataclasses
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import scipy.sparse

from kernels.registry import format_count, with_known_parameters
from workbench import atomic_files, data, formats, models, ops, spreadsheets
from workbench.data.dataset.record import compressed, with_known_values
from workbench.data.errors import MissingLabelsError
from workbench.data.labels import NONE, Labels, Wanted, name_of, read_labels
from workbench.data.tables.columns import load
from workbench.data.tables.frames import encode, is_frame
from workbench.formats.compressed import with_native_order
from workbench.json_text import Fields, are_whole, check_fields, is_object, is_optional, is_text, is_whole, parsed
from workbench.models import Model
from workbench.models.softmax import log_sigmoids
from workbench.option_text import typed, worded
from workbench.recommend import is_recommender
from workbench.training.run import Run
from workbench.training.setup import Setup
from workbench.training.training import Training

FORM, VERSION = "sparse-workbench model", 2
ABOUT, WEIGHTS = "model.json", "weights.npz"
KEPT = ("model", "model_options", "dtype", "intercept")
"""Settings of a setup that predictions depend on."""
LABEL_DTYPE = "label_dtype"
"""Fact: the dtype by name of labels that were numbers or booleans in memory, which `predict` returns again."""
LABEL_DTYPES = (
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
    "longdouble",
)
ONE_AGAINST_REST = "one_against_rest"
"""Fact of a model whose score of each class is that of a logistic model of this class against the rest."""
FACTS = ("fields", "implicit", LABEL_DTYPE, ONE_AGAINST_REST)
"""Facts of the data that a model may need to predict."""
READ = ("reread", "features_kept", "features_before", "columns_kept")
"""Facts of the data that say how a file was read."""
STREAMED_BYTES = 1 << 20
"""Bytes of text that are predicted at once."""
STORED, STORED_ROWS = "sparse", 1 << 14
"""The reader of folders of stored rows, and how many of them are predicted at once."""
NOT_OF_READER = ("path", "labels", "columns", "kind", "positive", "classes", "unseen", "label")
"""Parameters of a reader that a later file does not share, or that the labels of the model stand for."""


_SIZE = (lambda value: is_whole(value, 1, 2**47 - 1), "a whole number from 1")
CONTENT: Fields = {
    "version": (lambda value: value == VERSION, f"{VERSION}"),
    "setup": (is_object, "an object"),
    "features": _SIZE,
    "width": _SIZE,
    "labels": (is_object, "an object"),
    "facts": (is_object, "an object"),
    "reader": (lambda value: value == "" or value in data.names(), "the name of a data set, or an empty text"),
    "parameters": (is_object, "an object"),
    "weights_sha256": (is_text, "the SHA-256 of the weights"),
}
"""Fields of model.json."""
SETUP: Fields = {
    "model": (lambda value: value in models.names(), "the name of a model"),
    "model_options": (is_optional(is_text), "a text such as hidden=64, or null"),
    "dtype": (lambda value: value in ("float32", "float64"), "float32 or float64"),
    "intercept": (is_optional(lambda value: isinstance(value, bool)), "true, false or null"),
}
FACTS_EXPECTED: Fields = {
    "fields": (are_whole, "a list of whole numbers"),
    LABEL_DTYPE: (lambda value: value in LABEL_DTYPES, "the name of a type of numbers"),
    ONE_AGAINST_REST: (lambda value: value is True, "true"),
    "reread": (is_object, "an object"),
    "features_kept": (is_whole, "a whole number"),
    "features_before": _SIZE,
    "columns_kept": (are_whole, "a list of whole numbers"),
}
"""Facts that may be absent."""


class ModelFolderError(ValueError):
    """A folder that holds no model, a damaged one or one of a newer version, or a model that cannot be kept."""


@final
@dataclass(frozen=True)
class Predictions:
    """Predictions for the rows of a file.

    `values` are class names (text), or numbers [rows] or [rows, outputs]; `probabilities` [rows, classes] in the order
    of `classes`, None for numbers. `quality` has measures by name if the file has labels; else `note` says why not.
    """

    values: np.ndarray
    probabilities: np.ndarray | None
    classes: tuple[str, ...]
    quality: Mapping[str, float]
    note: str = ""


def lines_of_predictions(predictions: Predictions, most: int | None = None, first: int = 0) -> list[list[str]]:
    """Return the rows of a CSV table as texts: a header, then row index, prediction, probability of each class.

    `most` is the largest number of rows below the header, None for all; `first` is the index of the first row.
    """
    values, chances = predictions.values[:most], predictions.probabilities
    table = values if values.ndim == 2 else values[:, np.newaxis]
    heads = [f"prediction_{place}" for place in range(table.shape[1])] if values.ndim == 2 else ["prediction"]
    columns: list[Iterable[str]] = [map(str, range(first, first + len(values)))]
    for column in table.T.tolist():
        columns.append([f"{one:.9g}" if isinstance(one, float) else str(one) for one in column])
    if chances is not None:
        columns += [[f"{chance:.6g}" for chance in column] for column in chances[:most].T.tolist()]
    head = ["row", *heads, *(f"probability_{name}" for name in predictions.classes)]
    return [head, *map(list, zip(*columns, strict=True))]


def write_predictions(out: Path, parts: Iterable[Predictions], force: bool = True, quote_formulas: bool = False) -> int:
    """Write the table of `lines_of_predictions` of consecutive rows to a CSV file atomically; return their count.

    An existing file is replaced; without `force`, FileExistsError. Names of classes that a spreadsheet would run begin
    with an apostrophe if `quote_formulas`; else a warning tells them.
    """
    count, texts = 0, dict[str, str]()
    with atomic_files.replacing(out, force=force) as new, new.open("w", encoding="utf-8", newline="") as file:
        for part in parts:
            if not count:
                csv.writer(file).writerows(lines_of_predictions(part, 0))
            if part.values.dtype.kind == "U" and (names := sorted(set(part.values.tolist()) - texts.keys())):
                shown = spreadsheets.guard_columns({"prediction": names}, out, quote_formulas)["prediction"]
                texts |= zip(names, map(_quoted, shown), strict=True)
            file.write(_csv_rows(part, count, texts))
            count += len(part.values)
    return count


def _quoted(text: str) -> str:
    """Return a text as a cell of a CSV file."""
    cell = io.StringIO()
    csv.writer(cell).writerow(["", text])
    return cell.getvalue()[1:-2]


def _csv_rows(part: Predictions, first: int, texts: Mapping[str, str]) -> str:
    """Return the rows of `lines_of_predictions` as CSV text, from row index `first`; `texts` has the cells of names."""
    table = part.values if part.values.ndim == 2 else part.values[:, np.newaxis]
    columns: list[Iterable[Any]] = [range(first, first + len(table))]
    kind = table.dtype.kind
    columns += [map(texts.__getitem__, column) if kind == "U" else column for column in table.T.tolist()]
    form = ["{}", *["{:.9g}" if kind == "f" else "{}"] * table.shape[1]]
    if part.probabilities is not None:
        columns += part.probabilities.T.tolist()
        form += ["{:.6g}"] * part.probabilities.shape[1]
    return "".join(map((",".join(form) + "\r\n").format, *columns))


@final
class Application:
    """Predictions of the rows of a file by a model, block by block; `quality` and `note` are known at the end."""

    def __init__(self, model: "TrainedModel", path: str | os.PathLike, labels: str | os.PathLike | None) -> None:
        """Store the model and the paths; nothing is read."""
        self._model, self._path, self._labels = model, path, labels
        self.quality: dict[str, float] = {}
        self.note = ""

    def __iter__(self) -> Iterator[Predictions]:
        """Yield the predictions of some rows, then of the next ones; DataError for what cannot be read."""
        model, run, scores, targets = self._model, self._model._run(), list[np.ndarray](), list[np.ndarray]()
        for x, y in self._blocks():
            scores.append(model._scores(x, run))
            targets += [] if y is None else [y]
            if self.note:
                targets.clear()
            probabilities = model._probabilities(scores[-1]) if model.classes else None
            yield Predictions(model._values(scores[-1]), probabilities, model.classes, {}, self.note)
            if self.note:
                scores.clear()
        if model.model.rank is not None:
            self.note = "the order of items is measured without the pairs trained on, which a saved model does not keep"
        if not self.note:
            both = np.concatenate(scores), np.concatenate(targets)
            measures = {model.model.quality_name: model.model.quality, **model.model.measures}
            self.quality = {name: float(measure(*both)) for name, measure in measures.items()}

    def _blocks(self) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Yield (X, targets or None) of consecutive rows, in memory that may be used again; sets `note`."""
        model = self._model
        stream = model._stream(self._path, self._labels)
        count = 0
        if stream is not None:
            try:
                for x, targets in self._streamed(stream):
                    yield x, targets
                    count += x.shape[0]
                return
            except data.DataError:  # of a label, perhaps, without which the rows are read whole
                pass
        rows, note = model.read(self._path, self._labels)
        self.note = self.note or note
        targets = None if self.note else model._targets(rows)
        if not isinstance(rows.x, data.StoredRows):
            yield rows.x[count:], None if targets is None else targets[count:]
            return
        for first in range(0, rows.x.shape[0], STORED_ROWS):
            last = min(first + STORED_ROWS, rows.x.shape[0])
            yield rows.x.read(first, last), None if targets is None else targets[first:last]

    def _streamed(self, stream: data.Stream) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Yield (X, targets or None) of the rows of a stream; sets `note` if labels are none that the model knows."""
        model = self._model
        like, count, entries = model._like(), 0, 0
        wanted = Wanted(like.kind, None if like.kind == "numbers" else like.labels.positive)
        if like.kind != "numbers":
            wanted = dataclasses.replace(wanted, classes=like.classes)
        for block in stream.blocks(0):
            if not len(block.labels):
                continue
            targets = None
            if not self.note:
                try:
                    before = count
                    _, y = read_labels(block.labels, wanted, lambda row: stream.place(before + row))  # noqa: B023
                    x = scipy.sparse.csr_array((len(y), model.features), dtype=np.float32)
                    targets = model._targets(dataclasses.replace(like, x=x, y=y))
                except data.DataError as error:
                    self.note = str(error).splitlines()[0]
            yield block.x, targets
            count, entries = count + len(block.labels), entries + block.x.nnz
        if not count:
            raise data.DataError(f"{self._path} holds no rows; a data set has at least one.")
        if not entries:
            raise data.DataError(
                f"{self._path} has labels without features: none of its {count} rows stores an entry to learn from."
            )


@final
@dataclass(frozen=True, eq=False, repr=False)
class TrainedModel:
    """A model with its weights, what its labels mean, and how a file is read for it.

    Parameters
    ----------
    setup : Setup
        Model, its options, type of values, intercept.
    arrays : mapping of str to array
        Parameters by name, dense or csr.
    features, width : int
        D, columns of X, and N, outputs or factors.
    labels : Labels
        Meaning of the labels.
    facts : mapping
        What the reader learned of the first file, such as values of categories (`reread`), and what the model needs.
    reader : str
        Data set that reads files for it, "" for data that came from memory.
    parameters : mapping
        Parameters of the reader.
    format : str
        Format of the batches that it was trained on, which no prediction depends on; "" if unknown.

    Examples
    --------
    >>> made = data.load("uniform", rows=20, features=9, density=0.2, classes=2, seed=0)
    >>> run = Run(Setup(model="logistic"), made.x, data.targets(made, "binary"), width=1)
    >>> TrainedModel.of_run(run, made).predict_proba(made.x).shape
    (20, 2)
    """

    setup: Setup
    arrays: Mapping[str, Any]
    features: int
    width: int
    labels: Labels
    facts: Mapping[str, Any]
    reader: str = ""
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    format: str = ""

    def __repr__(self) -> str:
        """Return model, features, width and reader as one line."""
        read = f", files read as {self.reader}" if self.reader else ""
        return f"TrainedModel({self.setup.model}, {format_count(self.features, 'feature')}, width {self.width}{read})"

    @classmethod
    def of_run(
        cls, run: Training, dataset: data.Dataset, reader: str = "", parameters: Mapping[str, Any] | None = None
    ) -> "TrainedModel":
        """Copy a trained run; `ModelFolderError` for a model whose predictions depend on the rows trained on.

        Parameters
        ----------
        run : Training
            The training.
        dataset : Dataset
            Training data: its labels and facts are kept.
        reader : str
            Name of the data set that read the file.
        parameters : mapping, optional
            What the reader was given.

        Returns
        -------
        TrainedModel
            The model, apart from the run.
        """
        if reason := why_not_kept(run.model):
            raise ModelFolderError(reason)
        run.catch_up()
        own = run.state_dict() if isinstance(run, Run) else {}
        arrays = {name.removeprefix("parameter:"): own[name] for name in own if name.startswith("parameter:")}
        if not arrays:
            arrays = {
                parameter.name: run.read_rows(np.arange(parameter.shape[0]), parameter.name)
                for parameter in run.parameters
            }
        known = {"intercept": run.setup.has_intercept} | {name: getattr(run.setup, name) for name in KEPT[:-1]}
        facts = {name: dataset.facts[name] for name in (*FACTS, *READ) if name in dataset.facts}
        given = {name: value for name, value in (parameters or {}).items() if name not in NOT_OF_READER}
        sizes, format = (run.features, run.width), run.setup.format
        return cls(Setup(**known), arrays, *sizes, dataset.labels, facts, reader, given, format)

    @classmethod
    def of_estimator(
        cls, estimator: Any, labels: Labels, facts: Mapping[str, Any], reader: str, parameters: Mapping[str, Any]
    ) -> "TrainedModel":
        """Copy a fitted estimator of `workbench.bridges.sklearn`; ModelFolderError for a model that cannot be kept.

        `labels` are for an estimator without classes; the rest is as of `of_run`.
        """
        run, facts = estimator._learner.run, dict(facts)
        if hasattr(estimator, "classes_"):
            names = tuple(name_of(label) for label in estimator.classes_)
            labels = Labels("classes", names, positive=names[1] if len(names) == 2 else None)
            if estimator.classes_.dtype.kind in "biuf":
                facts[LABEL_DTYPE] = estimator.classes_.dtype.name
        if getattr(estimator, "_is_one_against_rest", False):
            facts[ONE_AGAINST_REST] = True
        x = scipy.sparse.csr_array((0, run.features), dtype=np.float32)
        y = np.zeros(0, np.int64 if labels.kind == "classes" else np.float64)
        stand_in = data.Dataset("model", x, y, labels, "the data trained on", "", facts=facts)
        return cls.of_run(run, stand_in, reader, parameters)

    @property
    def model(self) -> Model:
        """The registered model that was trained."""
        return models.get(self.setup.model)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of the probabilities, the positive last for binary; () for numbers."""
        if self.model.target == "binary":
            positive = str(self.labels.positive)
            others = [name for name in self.labels.classes if name != positive]
            return (others[0] if len(others) == 1 else f"not {positive}", positive)
        return self.labels.classes if self.model.target in ("classes", "multilabel") else ()

    # What scikit-learn's estimators have

    @property
    def classes_(self) -> np.ndarray:
        """Class labels [classes] as `predict` returns them; AttributeError for regression."""
        if not self.classes:
            raise AttributeError(f"The model {self.model.name} predicts numbers and has no classes_.")
        return self._typed(np.array(self.classes, np.str_))

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X."""
        return self.features

    @property
    def coef_(self) -> np.ndarray:
        """Weights [outputs, features] of a linear model, of one number [features]; AttributeError for others."""
        if "w" not in self.arrays:
            raise AttributeError(f"The model {self.model.name} has no coef_; its arrays are {', '.join(self.arrays)}.")
        weights = formats.to_format(self.arrays["w"], "dense").T
        return weights[0] if not self.classes and len(weights) == 1 else weights

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts [outputs]; zeros if the model has none."""
        return self.arrays["b"] if "b" in self.arrays else np.zeros(self.model.outputs or self.width, self.setup.dtype)

    def decision_function(self, x: Any) -> np.ndarray:
        """Return scores: of two classes [rows], positive for the second, of others [rows, outputs]."""
        scores = self.scores(x)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores[:, 1] - scores[:, 0] if len(self.classes) == 2 and self.model.target == "classes" else scores

    def score(self, x: Any, y: Any) -> float:
        """Return the share of right labels, of numbers R squared (mean over outputs); DataError if sizes differ."""
        predicted, y = self.predict(x), np.asarray(formats.arrays.dense_target(y))
        if y.size != predicted.size:
            raise data.DataError(f"y has the shape {list(y.shape)}; the predictions have {list(predicted.shape)}.")
        y = y.reshape(predicted.shape)
        if self.classes:
            return float(np.mean(predicted == y))
        squares = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
        return float(np.mean(1 - ((y - predicted) ** 2).sum(axis=0) / squares))

    # Predictions

    def scores(self, x: Any) -> np.ndarray:
        """Return scores [rows, outputs] of an array, tensor or frame X; DataError for another number of features.

        A frame is encoded by its columns as the table that was trained on.
        """
        return self._scores(x, self._run())

    def _run(self) -> Run:
        """Return a training with the arrays of the model, which predicts."""
        is_class, dtype = self.model.target == "classes", np.dtype(self.setup.dtype)
        y = np.zeros(1, np.int64) if is_class else np.zeros((1, self.model.outputs or self.width), dtype)
        run = Run(self.setup, self._valid_row(), y, self.width, self.facts)
        state = run.state_dict() | {f"parameter:{name}": array for name, array in self.arrays.items()}
        run.load_state_dict(state)
        return run

    def _scores(self, x: Any, run: Run) -> np.ndarray:
        """Return scores as `scores` does, by a training of `_run`."""
        if is_frame(x) and "columns" in self.facts.get("reread", {}):
            x = encode(x, load(self.facts["reread"]["columns"]))
            x = x[:, np.array(self.facts["columns_kept"])] if "columns_kept" in self.facts else x
        x = formats.arrays.host_array(x)
        x = with_native_order(compressed(x) if hasattr(x, "toarray") else np.asarray(x))
        if x.ndim == 2 and self.features != x.shape[1] == self.facts.get("features_before"):
            x = self._kept_columns(x)
        if x.ndim != 2 or x.shape[1] != self.features:
            raise data.DataError(f"X has the shape {list(x.shape)}; the model expects [rows, {self.features}].")
        dtype = np.dtype(self.setup.dtype)
        x = x if x.dtype.kind in "cUS" else with_known_values(x, dtype)  # those are refused
        x = formats.arrays.canonical(formats.astype(formats.to_format(x, "csr"), dtype, copy=False))
        if not np.isfinite(x.data).all():
            raise data.DataError("X has values that are NaN or infinite; expected finite numbers.")
        return run.predict(x)

    def _valid_row(self) -> scipy.sparse.csr_array:
        """Return one row [1, features] that a training of the model takes: an entry in each field, if it has fields."""
        columns = np.cumsum([0, *self.facts.get("fields", ())])[:-1]
        values = np.ones(len(columns), self.setup.dtype)
        return scipy.sparse.csr_array((values, columns, [0, len(columns)]), shape=(1, self.features))

    def predict_proba(self, x: Any) -> np.ndarray:
        """Return the probability of each class, [rows, classes] in the order of `classes`.

        ModelFolderError for regression.
        """
        return self._probabilities(self.scores(x))

    def predict(self, x: Any) -> np.ndarray:
        """Return classes [rows], or numbers [rows] or [rows, outputs]; DataError for another number of features.

        Classes have the dtype of the labels that were given to `wb.train`; of other models they are names as text,
        joined by commas for multilabel.
        """
        return self._typed(self._values(self.scores(x)))

    def _typed(self, values: np.ndarray) -> np.ndarray:
        """Return class names, or numbers, in the dtype of the labels that were given to `wb.train`."""
        dtype = self.facts.get(LABEL_DTYPE)
        if dtype is None:
            return values
        return values == "True" if np.dtype(dtype) == np.bool_ else values.astype(dtype)

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return class probabilities [rows, classes] of scores; ModelFolderError for regression."""
        if not self.classes:
            raise ModelFolderError(f"The model {self.model.name} predicts numbers, which have no probabilities.")
        if self.model.target == "binary":
            positive = _sigmoid(scores)
            return np.hstack([1 - positive, positive])
        if self.model.target == "multilabel":
            return _sigmoid(scores)[:, : len(self.classes)]
        scores = log_sigmoids(scores) if self.facts.get(ONE_AGAINST_REST) else scores
        return ops.softmax(scores)[:, : len(self.classes)]

    def _values(self, scores: np.ndarray) -> np.ndarray:
        """Return the predictions of scores: class names, for multilabel joined by commas, or numbers."""
        names = np.array(self.classes, np.str_)
        if self.model.target == "binary":
            return names[(scores[:, 0] > 0).astype(int)]
        if self.model.target == "classes":
            return names[scores[:, : len(names)].argmax(axis=1)]
        if self.model.target == "multilabel":
            chosen = scores[:, : len(names)] > 0
            return np.array([",".join(names[row]) for row in chosen], np.str_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    # Files

    def read(self, path: str | os.PathLike, labels: str | os.PathLike | None = None) -> tuple[data.Dataset, str]:
        """Read a file as the one trained on: its features, categories and classes; with labels if it has some.

        Parameters
        ----------
        path : path
            File or folder.
        labels : path, optional
            File of labels, for data that has none in itself.

        Returns
        -------
        (Dataset, str)
            The rows, and why their labels are not read, "" if they are.

        Raises
        ------
        DataError
            What cannot be read, and other features than the model has, with a list.
        """
        name = self._reader_of(path)
        if name == STORED:
            return self._read_stored(path)
        source = data.get(name)
        own = {key: value for key, value in self.parameters.items() if key in source.parameters}
        given = own | {"path": path} | ({} if labels is None else {"labels": labels})
        if "unknown" in source.parameters:
            given["unknown"] = "empty"
        like = self._like()
        try:
            return self._narrowed(data.load(name, like=like, cache=False, **given)), ""
        except data.DataError as error:
            if labels is not None or "kind" not in source.parameters:
                raise
            reason = str(error).splitlines()[0] if not isinstance(error, MissingLabelsError) else "it has no labels"
        known = like.facts.get("reread", {})
        given |= {"label": "none"} if known.get("label") == "first" else {}
        given |= {"label_column": None} if "label_column" in known else {}
        rows = data.load(name, like=like, cache=False, **given, kind=NONE)
        return self._narrowed(rows), reason

    def _reader_of(self, path: str | os.PathLike) -> str:
        """Return the name of the data set that reads a file: that of the one trained on, unless it was stored rows."""
        if self.reader in ("", STORED) or (Path(path) / "indptr.npy").is_file():
            return data.guess(path)[0]
        return self.reader

    def _read_stored(self, path: str | os.PathLike) -> tuple[data.Dataset, str]:
        """Return the stored rows of a folder, not read yet, and why their labels are none of the model, or ""."""
        rows = data.load(STORED, path=path, cache=False)
        expected = self.facts.get("features_before", self.features)
        if rows.x.shape[1] != expected:
            raise data.DataError(f"{path} has {rows.x.shape[1]} features; the model expects {expected}.")
        are_same = (rows.labels.kind, rows.labels.classes) == (self.labels.kind, self.labels.classes)
        return rows, "" if are_same else "its classes are not those of the model"

    def _like(self) -> data.Dataset:
        """Return a data set without rows that stands for the file trained on, as `like` of a reader."""
        facts = {"reread": self.facts["reread"]} if "reread" in self.facts else {}
        features = self.facts.get("features_before", self.features)
        x = scipy.sparse.csr_array((0, features), dtype=np.float32)
        dtype = {"numbers": np.float64, "classes": np.int64, "multilabel": np.uint8}[self.labels.kind]
        y = np.zeros((0, len(self.labels.classes)) if self.labels.kind == "multilabel" else 0, dtype)
        return data.Dataset(self.reader or "model", x, y, self.labels, "the file trained on", "", facts=facts)

    def _targets(self, rows: data.Dataset) -> np.ndarray:
        """Return the targets of labelled rows as the model's measures take them."""
        return data.targets(rows, self.model.target, self.model.outputs or self.width, self.setup.dtype)

    def _narrowed(self, rows: data.Dataset) -> data.Dataset:
        """Return the rows with only the columns that were kept in training; unchanged if all were."""
        if "columns_kept" not in self.facts:
            return rows
        return dataclasses.replace(rows, x=self._kept_columns(rows.x), facts={})

    def _kept_columns(self, x: Any) -> Any:
        """Return X with the columns that were kept in training: of csr rows in time and memory of their entries."""
        columns = np.asarray(self.facts["columns_kept"])
        if not scipy.sparse.issparse(x) or x.format != "csr" or (np.diff(columns) <= 0).any():
            return x[:, columns]
        places = np.minimum(np.searchsorted(columns, x.indices), max(len(columns) - 1, 0))
        is_kept = columns[places] == x.indices if len(columns) else np.zeros(x.nnz, bool)
        ends = np.concatenate([[0], np.cumsum(is_kept)])[x.indptr]
        shape = x.shape[0], len(columns)
        return scipy.sparse.csr_array((x.data[is_kept], places[is_kept], ends), shape=shape)

    def apply(self, path: str | os.PathLike, labels: str | os.PathLike | None = None) -> Predictions:
        """Predict each row of a file, and measure the quality if it has labels.

        Parameters
        ----------
        path, labels : path
            As of `read`.

        Returns
        -------
        Predictions
            Values, probabilities, quality.
        """
        applied = self.apply_in_blocks(path, labels)
        parts = list(applied)
        values = np.concatenate([part.values for part in parts])
        chances = [part.probabilities for part in parts if part.probabilities is not None]
        return Predictions(
            values, np.concatenate(chances) if chances else None, self.classes, applied.quality, applied.note
        )

    def apply_in_blocks(self, path: str | os.PathLike, labels: str | os.PathLike | None = None) -> "Application":
        """Return the predictions of a file as an iterable of `Predictions` of consecutive rows.

        svmlight text and tables are read block by block, in memory that holds some blocks, and 8 bytes a row for the
        quality; other files, and those without labels, are read whole.

        Parameters
        ----------
        path, labels : path
            As of `read`.

        Returns
        -------
        Application
            An iterable whose `quality` and `note` are those of `Predictions`, once it was iterated.
        """
        return Application(self, path, labels)

    def _stream(self, path: str | os.PathLike, labels: str | os.PathLike | None) -> data.Stream | None:
        """Return the rows of a file as a stream; None if they are read whole."""
        name = self._reader_of(path)
        source, reread = data.get(name), self.facts.get("reread", {})
        is_whole = labels is not None or "columns_kept" in self.facts or self.labels.kind == "multilabel"
        if source.stream is None or is_whole:
            return None
        own = {key: value for key, value in self.parameters.items() if key in source.parameters}
        given = {**own, **reread, "path": path}
        if "zero_based" in source.parameters and given.get("zero_based", "auto") == "auto":
            return None  # the model is of a matrix, and all rows tell whether columns of the text count from 0
        if "features" in source.parameters:
            given["features"] = self.facts.get("features_before", self.features)
        if "unknown" in source.parameters:
            given["unknown"] = "empty"
        try:
            return source.open_stream(STREAMED_BYTES, given)
        except data.DataError:  # what reading it whole takes, or refuses in other words
            return None

    # The folder

    def save(
        self, folder: str | os.PathLike, force: bool = False, also: Callable[[Path], None] = lambda folder: None
    ) -> None:
        """Write the model into a new folder; a model that is there is replaced only with `force`.

        Parameters
        ----------
        folder : path
            Folder to make.
        force : bool
            Whether a folder of a model may be replaced.
        also : callable
            Writes further files into the folder before it appears.

        Raises
        ------
        ModelFolderError
            A folder that is there.
        """
        target = Path(folder).expanduser()
        refuse_taken(target, force)
        try:
            with atomic_files.replacing_folder(target, force) as new:
                formats.save(new / WEIGHTS, self.arrays)
                also(new)
                about = self._about(hashlib.sha256((new / WEIGHTS).read_bytes()).hexdigest())
                atomic_files.write(new / ABOUT, json.dumps(about, indent=1, default=plain_value), durable=True)
        except FileExistsError:
            refuse_taken(target, force)  # made meanwhile
            raise

    def _about(self, sha256: str) -> dict[str, Any]:
        """Return the content of model.json; `sha256` is that of the weights file."""
        setup = {name: getattr(self.setup, name) for name in KEPT} | ({"format": self.format} if self.format else {})
        setup["model_options"] = setup["model_options"] and str(setup["model_options"])
        about = {"form": FORM, "version": VERSION, "setup": setup}
        about |= {"features": self.features, "width": self.width, "labels": dataclasses.asdict(self.labels)}
        about |= {"facts": dict(self.facts), "reader": self.reader, "parameters": dict(self.parameters)}
        return about | {"weights_sha256": sha256}


def why_not_kept(model: Model) -> str:
    """Return why a model cannot be saved, as a sentence (it predicts from its training rows); "" if it can."""
    if model.rows_apart and "graph" not in model.needs:
        return ""
    return f"The {model.name} model predicts from the graph that it was trained on; it cannot be saved for other files."


def refuse_taken(folder: Path, force: bool) -> None:
    """Raise ModelFolderError if the folder has content, is below a file or read-only; not for a model with `force`."""
    if "\0" in os.fspath(folder):
        raise ModelFolderError(f"{os.fspath(folder)!r} has a NUL character; name another folder.")
    taken = next((part for part in (folder, *folder.parents) if part.exists()), None)
    if taken is not None and not os.access(taken, os.W_OK):
        raise ModelFolderError(f"{taken} cannot be written to; name another folder.")
    if taken is None or (taken.is_dir() and (taken != folder or not any(taken.iterdir()))):
        return
    if not (taken / ABOUT).is_file():
        raise ModelFolderError(f"{taken} is there and holds no model; choose another folder.")
    if not force:
        raise ModelFolderError(f"{folder} holds a model already.\nType {worded(typed(force=True))} to replace it.")


@with_known_parameters
def load_model(folder: str | os.PathLike) -> Any:
    """Load a model that `save` of a trained model, an estimator of `wb.train` or a `Recommender` wrote.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    TrainedModel or Recommender
        The model.

    Raises
    ------
    ModelFolderError
        A folder that holds no model, a damaged one, or one of a newer version.

    Examples
    --------
    >>> load_model("nowhere")
    Traceback (most recent call last):
    workbench.training.trained.ModelFolderError: There is no model in nowhere; expected a folder with model.json.
    """
    folder = Path(folder).expanduser()
    if "\0" not in os.fspath(folder) and is_recommender(folder):
        from workbench.recommend.recommender import Recommender

        return Recommender.load(folder)
    about, content = _read_folder(folder)
    setup = about["setup"]
    try:
        made = TrainedModel(
            setup=Setup(**{name: setup[name] for name in KEPT}),
            arrays={},
            features=about["features"],
            width=about["width"],
            labels=Labels.of_json(about["labels"]),
            facts=about["facts"],
            reader=about["reader"],
            parameters=about["parameters"],
            format=str(setup.get("format", "")),
        )
        if made.model.target in ("classes", "multilabel") and len(made.labels.classes) > made.width:
            raise ValueError(f"labels has {format_count(len(made.labels.classes), 'class')}, and width is {made.width}")
        made = dataclasses.replace(made, arrays=_arrays(content, made))
        if made.reader:
            data.get(made.reader)
        made.predict(made._valid_row())
    except ModelFolderError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        MemoryError,
        zipfile.BadZipFile,
    ) as error:
        raise ModelFolderError(_damaged(folder, f"{ABOUT}: {str(error) or type(error).__name__}")) from None
    return made


def _read_folder(folder: Path) -> tuple[dict[str, Any], bytes]:
    """Return what model.json says and the bytes of the weights, both of one model; ModelFolderError otherwise.

    They are read again if the model was replaced meanwhile.
    """
    about = _read_about(folder)
    while True:
        try:
            content, problem = (
                (folder / WEIGHTS).read_bytes(),
                f"{WEIGHTS} does not hold what was written: {ABOUT} has another SHA-256",
            )
        except OSError as error:
            content, problem = b"", f"{WEIGHTS}: {error.strerror or error}"
        if content and hashlib.sha256(content).hexdigest() == about["weights_sha256"]:
            return about, content
        before, about = about, _read_about(folder)
        if about == before:
            raise ModelFolderError(_damaged(folder, problem))


def _read_about(folder: Path) -> dict[str, Any]:
    """Return the parsed model.json of a folder; ModelFolderError if it is absent, damaged or of a newer version."""
    if "\0" in os.fspath(folder):
        raise ModelFolderError(f"There is no model in {os.fspath(folder)!r}: a path has no NUL character.")
    try:
        about = parsed((folder / ABOUT).read_bytes())
    except OSError:
        raise ModelFolderError(f"There is no model in {folder}; expected a folder with {ABOUT}.") from None
    except ValueError as error:
        raise ModelFolderError(_damaged(folder, f"{ABOUT}: {error}")) from None
    if not isinstance(about, dict) or about.get("form") != FORM:
        raise ModelFolderError(f"There is no model in {folder}: {ABOUT} does not describe one.")
    version = about.get("version")
    if isinstance(version, int) and version != VERSION:
        how = "Update sparse-workbench" if version > VERSION else "Train and save it again"
        raise ModelFolderError(f"{folder} is of version {version}; version {VERSION} is read. {how}.")
    try:
        check_fields(about, CONTENT)
        check_fields(about["setup"], SETUP, "setup")
        facts = about["facts"]
        check_fields(facts, {name: expected for name, expected in FACTS_EXPECTED.items() if name in facts}, "facts")
    except ValueError as error:
        raise ModelFolderError(_damaged(folder, f"{ABOUT}: {error}")) from None
    return about


def _damaged(folder: Path, what: str) -> str:
    """Return the error message for a damaged model folder; `what` says what is wrong."""
    what = what.splitlines()[0].removesuffix(".")
    return f"The model in {folder} is damaged: {what:.200}. Train and save it again."


def _arrays(content: bytes, made: TrainedModel) -> dict[str, Any]:
    """Return {name: array} of the bytes of a weights file; ValueError if they are not those of the model, or finite."""
    arrays = formats.load(io.BytesIO(content))  # none is larger than the file
    given = made.model.given(made.features, made.width, made.setup.model_options, made.facts)
    wanted = {
        parameter.name: f"{'csr' if parameter.matrix else 'dense'} {made.setup.dtype} "
        f"{list(parameter.matrix or parameter.shape)}"
        for parameter in made.model.trained(given, made.setup.has_intercept)
    }
    came = {name: f"{formats.format_of(array)} {array.dtype} {list(array.shape)}" for name, array in arrays.items()}
    if came != wanted:
        raise ValueError(f"{WEIGHTS} has {came}; the model has {wanted}")
    for name, array in arrays.items():
        if not np.isfinite(array if isinstance(array, np.ndarray) else array.data).all():
            raise ValueError(f"the array {name} holds values that are not finite")
    return arrays


def plain_value(value: Any) -> Any:
    """Return NumPy numbers, arrays and paths as JSON values; TypeError for other types."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} cannot be kept in {ABOUT}")


def _sigmoid(scores: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-scores)) elementwise, by NumPy: `ops.sigmoid` imports `scipy.special`, which takes 80 ms."""
    small = np.exp(-np.abs(scores))
    return np.where(scores >= 0, 1, small) / (1 + small)
