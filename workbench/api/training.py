"""Training of one estimator, the fastest way that trains the same model as dense training does."""

import functools
import inspect
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernels.registry import format_count, unknown_name
from workbench import models
from workbench.advising.candidates import is_lazy_exact
from workbench.advising.source import model_note, settings_of, suggest_model
from workbench.api import inputs
from workbench.api.frame_encoder import FrameEncoder
from workbench.api.live_losses import live_losses
from workbench.api.loading import Loaded, pop_reading, receive
from workbench.bridges.sklearn import SparseClassifier, SparseRegressor
from workbench.bridges.sklearn_base import NO_SEARCH
from workbench.data import Dataset, StoredRows, contract
from workbench.data.dataset.targets import refuse_constant
from workbench.data.errors import DataError, MissingLabelsError
from workbench.data.files.reading import path_exists
from workbench.data.labels import Wanted
from workbench.data.stored.converting import OF_LABELS
from workbench.data.tables.frames import is_frame
from workbench.formats.arrays import library_of
from workbench.formats.compressed import with_native_order
from workbench.option_text import worded
from workbench.recommend.recommender import MODELS as RECOMMENDERS
from workbench.recommend.recommender import Recommender
from workbench.settings import train_command
from workbench.sweeps.problem import parameters_of_file
from workbench.sweeps.spec import FILES, Configuration, validate_spec
from workbench.training.trained import TrainedModel
from workbench.watching import tell

ESTIMATORS = {"binary": SparseClassifier, "classes": SparseClassifier, "numbers": SparseRegressor}
"""Estimator that trains models with each kind of target."""
ESTIMATOR_PARAMETERS = frozenset(
    name for made in (SparseClassifier, SparseRegressor) for name in inspect.signature(made).parameters
)
LINEAR_MODELS = ("logistic", "softmax", "linear")
OF_STEPS = {*NO_SEARCH, "max_iter", "epochs"} - {"alpha"}
"""Parameters with which an optimizer trains linear models, too, whose updates may be lazy."""
MOST_SCORED = 20_000
"""Rows that the loss is computed on after training, at most."""


STREAM = ("passes", "held_out", "memory", "bits", "optimizer", "learning_rate")
"""Parameters of `train` that are taken with `stream`, besides settings of the reader."""


def train(
    X: Any,
    y: Any = None,
    *,
    model: str | None = None,
    label: str | None = None,
    stream: bool = False,
    progress: bool = True,
    **parameters: Any,
) -> Any:
    """Train a model and return the fitted estimator; one line says what was trained, how long it took and its loss.

    Parameters
    ----------
    X : anything that `load` takes
        A matrix `[rows, features]`, a frame, the path of a file, or a `Dataset`.
    y : array of shape [rows], optional
        Labels of a matrix in memory, numbers or text.
    model : str, optional
        Registered model, such as "logistic"; by default the linear model for the labels, of ratings a factorization
        machine. "als" and "ease" fit a `Recommender` to X, who took what.
    label : str, optional
        Name of the column of labels, of a frame or a table in a file.
    stream : bool, default False
        Read the file X block by block and train a linear model a row at a time, in memory that does not grow with the
        file. Parameters are then `passes` (1), `held_out` (0.1, a share of the rows), `memory` (33,554,432 bytes for
        blocks), `bits` (hash columns to 2**bits), `optimizer`, `learning_rate` (chosen on the first rows), and
        settings of the reader. Ctrl-C ends the training; the model so far is returned.
    progress : bool, default True
        Show the losses so far, the time, and what is expected to come while a training takes longer than half a second:
        as a bar in a terminal, a line in a notebook, and lines in a log.
    **parameters
        Parameters of `SparseClassifier` or `SparseRegressor`, such as `search`, `optimizer`, `learning_rate`, of "als"
        and "ease" those of `Recommender`,
        `random_state`. With none of them set a linear model on more than 100 rows chooses `alpha` from 8 values on
        held-out rows; the line says which. `search=N` chooses from N, `search=0` trains one setting. Settings of the
        reader of a file, as of `load`, such as `labels="FILE"`.

    Returns
    -------
    SparseClassifier, SparseRegressor, a Pipeline with one as its last step, or a Recommender
        With `predict`, `predict_proba` of classes, and `save(folder)`, whose folder `load_model` reads. A pipeline
        encodes the columns of a frame first, where these are not just numbers; it predicts frames with these columns.
        With `stream` what `load_model` returns, whose `apply` predicts a file.

    Raises
    ------
    ValueError
        If the data or a parameter cannot be used; the message says what to type.

    Examples
    --------
    >>> import numpy as np, workbench as wb
    >>> model = wb.train(np.eye(4), ["a", "b", "a", "b"], random_state=0)
    >>> model.predict(np.eye(4)).tolist()
    ['a', 'b', 'a', 'b']
    """
    if model in RECOMMENDERS:
        with live_losses(is_shown=progress):
            return fit_recommender(X, y, str(model), parameters)
    if stream:
        if y is not None:
            raise DataError("With stream=True labels are read from the file.\nLeave y out.")
        with live_losses(is_shown=progress):
            return train_on_stream(X, model, label, parameters)
    reading = pop_reading(parameters, ESTIMATOR_PARAMETERS)
    try:
        loaded = receive(X, y, label, reading)
    except MissingLabelsError as error:  # which says how to go on without labels
        raise MissingLabelsError(str(error).replace(', or kind="none" to go on without', "")) from None
    if not loaded.is_labelled:
        raise DataError('X came without labels.\nType wb.train(X, y), or label="NAME" to name a column of a frame.')
    return fit_estimator(loaded, model, parameters, progress)


def train_on_stream(path: Any, model: str | None, label: str | None, parameters: dict[str, Any]) -> TrainedModel:
    """Train a linear model on a file block by block, print a summary, and return it.

    Raises DataError for what is no file, unknown parameters, and rows that cannot be trained on.
    """
    from workbench.training.streaming import USUAL_MEMORY, FileTraining, Options, interruptible

    if not isinstance(path, str | Path) or not path_exists(path):
        raise DataError(f"stream=True reads a file, and X is {type(path).__name__} {path!r:.80}; expected its path.")
    given = {name: parameters.pop(name) for name in STREAM if name in parameters}
    reading = pop_reading(parameters, ())
    if parameters:
        raise DataError(unknown_name("parameter with stream=True", next(iter(parameters)), STREAM))
    reader = str(reading.pop("dataset", ""))
    settings, _ = settings_of(str(path), reader, contract.with_label(reading, label or ""))
    options = parameters_of_file(settings)
    wanted = Wanted(**{name: options.pop(name) for name in OF_LABELS if name in options})
    rate = given.pop("learning_rate", None)
    memory, bits = given.pop("memory", USUAL_MEMORY), given.pop("bits", None)
    chosen = Options(wanted=wanted, model=model, options={} if rate is None else {"learning_rate": rate}, **given)
    made = FileTraining(settings["dataset"], options, chosen, memory, bits)
    for line in made.stream.facts.get("guesses", ()):
        inputs.say(worded(line))
    with interruptible() as is_interrupted:
        for reached in made.training.events():
            if reached.note:
                inputs.say(reached.note)
            losses = {"loss": reached.loss, "held-out loss": reached.held_out}
            tell(f"pass {reached.number + 1}, row", reached.rows, None, losses)
            if is_interrupted():
                inputs.say(f"Interrupted after {reached.rows:,} rows of pass {reached.number + 1}.")
                break
    training = made.training
    qualities = "; ".join(f"{name} {value:.4f}" for name, value in training.held_out_quality().items())
    rows, columns = format_count(training.rows_all, "row"), format_count(training.features, "feature")
    inputs.say(f"Trained on {rows} x {columns} in {training.seconds:.3g} s; held-out {qualities or 'rows: none'}.")
    if warning := training.warning():
        inputs.say(worded(warning))
    return made.model()


def fit_recommender(source: Any, y: Any, model: str, parameters: dict[str, Any]) -> Recommender:
    """Fit a recommender to what users took, and print a summary. Raises DataError for labels or unknown parameters."""
    if y is not None:
        raise DataError(
            f'{model} takes no y.\nType wb.train(ratings, model="{model}"), with the values in the ratings.'
        )
    known = [name for name in inspect.signature(Recommender).parameters if name != "model"]
    if unknown := [name for name in parameters if name not in known]:
        raise DataError(unknown_name("parameter", unknown[0], known))
    start = time.perf_counter()
    made = Recommender(model, **parameters).fit(source)
    users, items = made.seen_.shape
    inputs.say(
        f"Trained {model} on {format_count(users, 'user')} x {format_count(items, 'item')}, "
        f"{format_count(made.seen_.nnz, 'entry')}: {format_count(made.n_iter_, 'iteration')} in "
        f"{time.perf_counter() - start:.3g} s."
    )
    return made


def fit_estimator(loaded: Loaded, model: str | None, parameters: dict[str, Any], progress: bool = True) -> Any:
    """Train an estimator on loaded data, with the losses shown live, print a summary, and return it with a `save`.

    A Pipeline for frames with text. Raises DataError for constant labels, rows stored on disk, or an unusable model.
    """
    estimator = estimator_for(loaded, model, parameters)
    refuse_constant(loaded.dataset)
    if "path" in loaded.settings and model is None:
        inputs.say(worded(model_note(loaded.dataset, guess_model(loaded.dataset))))
    if isinstance(loaded.x, StoredRows):
        raise DataError(
            "The rows are read from disk as they are trained on, and an estimator needs them in memory.\n"
            f"Type wb.train(wb.load({str(loaded.settings.get('path', 'PATH'))!r}, whole=True)), or workbench train "
            f"{shlex.quote(str(loaded.settings.get('path', 'PATH')))} on the command line."
        )
    x = with_native_order(loaded.x if hasattr(loaded.x, "shape") and frames_or_arrays(loaded.x) else loaded.dataset.x)
    start = time.perf_counter()
    with live_losses(is_shown=progress):
        estimator.fit(x, loaded.y)
    seconds = time.perf_counter() - start
    inputs.say(_summary(estimator, x, loaded, seconds) + _loading(seconds))
    trained = estimator
    if loaded.columns is not None:
        trained = Pipeline([("encode", FrameEncoder(loaded.columns)), ("train", estimator)])
    trained.save = Saver(estimator, loaded)
    return trained


def frames_or_arrays(x: Any) -> bool:
    """Return whether scikit-learn takes this object as it is: a frame, or a NumPy or SciPy array."""
    return is_frame(x) or library_of(x) in ("numpy", "scipy")


def has_estimator(model: str) -> bool:
    """Return whether an estimator trains this model: it has its target, and the model reads rows and labels alone."""
    return models.get(model).target in ESTIMATORS and not models.get(model).needs


def estimator_for(loaded: Loaded, model: str | None, parameters: dict[str, Any]) -> Any:
    """Return an unfitted estimator for the model (None: guessed from the labels) with these parameters.

    If `lazy` is not given and lazy updates would train another model, they are exact. Raises DataError or SpecError for
    a model or optimizer that does not fit.
    """
    if model is not None and model not in models.names():
        raise DataError(unknown_name("model", model, [*models.names(), *RECOMMENDERS]))
    is_guessed, model = model is None, model or guess_model(loaded.dataset)
    target = models.get(model).target
    if not has_estimator(model):
        able = [name for name in models.names() if has_estimator(name)]
        needed = f"{model} has the target {target}, which no estimator has"
        if target in ESTIMATORS:
            needed = f"{model} needs {models.NEEDS[models.get(model).needs[0]]}, which no estimator takes"
        command = train_command({**(loaded.settings or {"path": "FILE"}), "model": model})
        raise DataError(f"{needed}; expected one of: {', '.join(able)}.\nType {command}.")
    if not is_guessed and target != "numbers" and loaded.dataset.kind == "numbers":
        raise DataError(f'{model} predicts classes, and the labels are {loaded.dataset.labels}.\nType model="linear".')
    chosen = dict(parameters)
    optimizer, decay = chosen.get("optimizer") or "adagrad", chosen.get("alpha") or chosen.get("decay")
    decay = decay if isinstance(decay, int | float) and 0 < decay < float("inf") else None  # the estimator refuses it
    validate_spec({"name": "train", "axes": {"optimizer": optimizer}})
    is_by_steps = model not in LINEAR_MODELS or not set(chosen).isdisjoint(OF_STEPS)
    if is_by_steps and "lazy" not in chosen and not is_lazy_exact(Configuration(optimizer=optimizer, decay=decay)):
        chosen["lazy"] = "exact"
    is_usual = is_guessed and model in LINEAR_MODELS  # which an estimator takes by itself
    return ESTIMATORS[target](**({} if is_usual else {"model": model}), **chosen)


def guess_model(dataset: Dataset) -> str:
    """Return the name of the model that suits the labels, among the models that need only X and y.

    Users and items get the factorization machine, which on these is matrix factorization with biases; nodes of a graph
    a linear classifier.
    """
    suggested = suggest_model(dataset)
    if not models.get(suggested).needs or models.get(suggested).target == "implicit":
        return suggested
    if models.get(suggested).target == "numbers":
        return "factorization_machine"
    return models.default_model("binary" if len(dataset.classes) == 2 else "classes")


class Saver:
    """The method `save` of what `train` returned: writes the estimator to a folder, without pickle.

    It keeps what the labels mean and how the file or frame was read, and none of the rows.
    """

    def __init__(self, estimator: Any, loaded: Loaded) -> None:
        """Store the estimator, and what saving needs of the data: labels, facts and reader settings, but no rows."""
        self.estimator, self.reader = estimator, ""
        self.facts, self.parameters = dict(loaded.dataset.facts), {}
        self.labels = loaded.dataset.labels
        if loaded.settings:
            self.reader = str(loaded.settings["dataset"])
            self.parameters = parameters_of_file(dict.fromkeys(FILES) | dict(loaded.settings))
        elif "columns" in self.facts.get("reread", {}):
            self.reader = "table"

    def __call__(self, folder: str | Path, force: bool = False) -> None:
        """Write the model to a new folder; ModelFolderError if it exists, unless `force` replaces a model."""
        known = self.labels, self.facts, self.reader, self.parameters
        TrainedModel.of_estimator(self.estimator, *known).save(folder, force)


@functools.cache
def _is_first() -> list[bool]:
    """Return the list, cached for the process, that contains True until the first training has been reported."""
    return [True]


def _loading(seconds: float) -> str:
    """Return a remark that the time includes loading compiled code, once per process if over 1 s; else ""."""
    is_first = bool(_is_first()) and _is_first().pop()
    return " The time includes loading compiled code, once a process." if is_first and seconds > 1 else ""


def _summary(estimator: Any, x: Any, loaded: Loaded, seconds: float) -> str:
    """Return the sentences on what was trained: model, size, epochs, seconds, quality on at most `MOST_SCORED` rows."""
    rows, features = loaded.dataset.rows, loaded.dataset.features
    name, epochs = estimator._learner.model.name, estimator.n_iter_
    few = slice(0, MOST_SCORED)
    sample = x.iloc[few] if hasattr(x, "iloc") else x.tocsr()[few] if hasattr(x, "tocsr") else x[few]
    labels = np.asarray(loaded.y)[few]
    labels = labels.ravel() if hasattr(estimator, "classes_") else labels  # one column is one label a row
    where = "training rows" if rows <= MOST_SCORED else f"the first {MOST_SCORED:,} training rows"
    return (
        f"Trained {name} on {format_count(rows, 'row')} x {format_count(features, 'feature')}: "
        f"{format_count(epochs, 'epoch')} in {seconds:.3g} s; "
        f"on {where} {_quality(estimator, sample, labels)}.{_choice(estimator)}"
    )


def _choice(estimator: Any) -> str:
    """Return the line on what a search chose and how to change it, or why none took place; "" if neither applies."""
    if estimator.search_ is not None:
        return f"\nalpha {estimator.search_}. To change it: search=N for N settings, or alpha=VALUE for one."
    if estimator.search == "auto" and (given := estimator.parameters_set()):
        return f" No alpha was searched, because {given[0]} is set."
    return ""


def _quality(estimator: Any, x: Any, labels: np.ndarray) -> str:
    """Return loss and score on some rows as text, compared with the most frequent class or the mean."""
    if not hasattr(estimator, "classes_"):
        error = float(np.mean((estimator.predict(x) - labels) ** 2))
        return f"mean squared error {error:.4g}, of the mean {float(np.var(labels)):.4g}"
    places = np.searchsorted(estimator.classes_, labels)
    chances = estimator.predict_proba(x)[np.arange(len(labels)), places]
    loss = float(-np.log(np.clip(chances, 1e-15, None)).mean())
    accuracy = float(np.mean(estimator.predict(x) == labels))
    names, counts = np.unique(labels, return_counts=True)
    most = counts.max() / counts.sum()
    worse = "; this model is worse: try more epochs or another learning_rate" if accuracy < most else ""
    frequent = f"always predicting {names[counts.argmax()].item()!r} gets {most:.3g}{worse}"
    return f"loss {loss:.4g}, accuracy {accuracy:.3g}; {frequent}"
