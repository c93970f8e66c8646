"""The problem of a configuration.

Its data at the rows, features and density asked for, and the targets of its model.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from workbench import data, formats, models, settings
from workbench.data import cache, content
from workbench.data.dataset.selection import split_rows, subgraph
from workbench.models import NEEDS, Model
from workbench.models.nodes import Nodes
from workbench.sweeps.spec import FILES, Configuration
from workbench.training import Setup
from workbench.training.training import batches_of, convert_storage, feed_of

SYNTHETIC_ROWS, SYNTHETIC_FEATURES, SYNTHETIC_DENSITY, SYNTHETIC_CLASSES = 16_384, 16_384, 0.01, 10
HELD_OUT = 0.2
OF_FILE = (*FILES, "kind", "reading")
"""Settings that say what is read, and how."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Training data of a configuration: X csr [rows, D], targets y, width N; held-out rows if it trains epochs."""

    dataset: data.Dataset
    x: scipy.sparse.csr_array
    y: np.ndarray
    width: int
    rows_total: int
    x_held_out: scipy.sparse.csr_array | None = None
    y_held_out: np.ndarray | None = None

    @property
    def held_out(self) -> tuple[Any, Any]:
        """(X, targets) of the validation rows, which are not trained on; (None, None) if there are none."""
        return self.x_held_out, self.y_held_out

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """Facts of the data that models may need besides X and y, {name: value}, as of `facts_of`; computed once."""
        return facts_of(self.dataset)

    def held(self, configuration: Configuration) -> np.ndarray | scipy.sparse.csr_array:
        """Return X as the training of the configuration stores it, by its setting `storage`.

        With "format" dense float `[rows, features]` for dense candidates and CSR for others; else as `convert_storage`
        gives. Rows stored on disk, and X of models whose rows depend on each other, are not made dense.
        """
        is_cut = not isinstance(self.x, data.StoredRows) and models.get(configuration.model).rows_apart
        if configuration.storage != "same":
            return convert_storage(configuration.storage, self.x)
        is_dense = configuration.format == "dense" and is_cut
        return formats.to_format(self.x, "dense") if is_dense else self.x


def columns_of_data(problem: Problem, configuration: Configuration, setup: Setup) -> dict[str, Any]:
    """Return the record columns about a configuration's data, {column: value}.

    Sizes, measured density, "nnz_batch" and "touched" (entries and active columns of the first batch, which is made for
    it), "hashed", which columns of a table are hashed, and "row_length_cv", the coefficient of variation of entries per
    row, None without entries. `setup` is that of `configuration`.
    """
    x, lengths = problem.x, data.row_lengths(problem.x)
    size, batch_rows = max(x.shape[0] * x.shape[1], 1), min(configuration.batch_rows, x.shape[0])
    model = models.get(configuration.model)
    given = model.given(x.shape[1], problem.width, configuration.model_options, problem.facts)
    batch = next(iter(feed_of(batches_of(setup, x, problem.y, as_held=True), model, given).epoch(0))).x
    return {
        "rows_total": problem.rows_total,
        "rows_trained": x.shape[0],
        "features": x.shape[1],
        "width": problem.width,
        "density_measured": x.nnz / size,
        "nnz_batch": float(x.nnz / max(x.shape[0], 1) * batch_rows if model.rows_apart else batch.nnz),
        "touched": float(np.unique(batch.indices).size),
        "hashed": problem.dataset.facts.get("hashed"),
        "row_length_cv": float(lengths.std() / lengths.mean()) if x.nnz else None,
        "steps_epoch": -(-x.shape[0] // configuration.batch_rows),
    }


def facts_of(dataset: data.Dataset) -> dict[str, Any]:
    """Return {"fields": column groups or None, "graph": Nodes or None}, what models may need besides X and labels."""
    graph = None if dataset.graph is None else Nodes(dataset.x, dataset.graph)
    return {"fields": dataset.facts.get("fields"), "graph": graph}


def is_synthetic(dataset: str) -> bool:
    """Return whether the data set of this name is generated at any density, rather than read from files."""
    return "density" in data.get(dataset).parameters


def missing_facts_reason(model: Model, dataset: str) -> str:
    """Return a sentence on what the model needs that the data set named `dataset` never has.

    "" if nothing is missing.
    """
    if missing := [name for name in model.needs if name not in data.get(dataset).gives]:
        having = ", ".join(name for name in data.names() if missing[0] in data.get(name).gives) or "none"
        return f"The {model.name} model needs data with {NEEDS[missing[0]]}; {dataset} has none. There is: {having}."
    return ""


def synthetic_name_for(model: Model) -> str:
    """Return the name of a synthetic data set that has all the model needs: "uniform" if that is X and labels alone."""
    if not model.needs:
        return "uniform"
    able = [name for name in data.names() if set(model.needs) <= set(data.get(name).gives)]
    return next(name for name in able if "path" not in data.get(name).parameters)


def synthetic_parameters_for(model: Model, width: int | None, **sizes: Any) -> data.Dataset:
    """Generate a synthetic data set that suits the model with `width` outputs (None for its default).

    `sizes` are parameters of its source, such as rows, features, density and seed; those it does not have are ignored.
    Nothing is cached.
    """
    name = synthetic_name_for(model)
    parameters = {**sizes, **synthetic_label_kind(model, width)}
    known = data.get(name).parameters
    return data.load(name, cache=False, **{key: value for key, value in parameters.items() if key in known})


def make_problem(configuration: Configuration, held_out: float = HELD_OUT) -> Problem:
    """Load or generate the data of a configuration and make its targets; data sets are cached on disk.

    If the configuration trains epochs, the share `held_out` of the rows is split off for validation, 0 for none. X and
    targets have the configuration's dtype. Raises data.DataError if the data cannot be read, has no entries, or suits
    no such model.
    """
    dataset, model, dtype = (
        _load_cached(_parameters(configuration, held_out)),
        models.get(configuration.model),
        np.dtype(configuration.dtype),
    )
    if dataset.labels.are_missing:
        dataset = with_random_labels(dataset, model, configuration.width, configuration.seed)
    if configuration.positive is not None:
        dataset = data.with_positive(dataset, configuration.positive)
    if configuration.merge and model.target == "classes" and configuration.width:
        dataset = data.merge_rare_classes(dataset, configuration.width)
    width = configuration.width or model.width or data.natural_width(dataset, model.target)
    train, rest = split_held_out(dataset)
    if not train.x.nnz:
        raise data.DataError(_without_entries(train, configuration))
    x, y = _cast_targets(train.x, dtype), targets(train, model, width, dtype)
    if rest is None:
        return Problem(dataset, x, y, width, dataset.rows)
    return Problem(dataset, x, y, width, dataset.rows, _cast_targets(rest.x, dtype), targets(rest, model, width, dtype))


def with_random_labels(dataset: data.Dataset, model: Model, width: int | None, seed: int) -> data.Dataset:
    """Return the data set with random labels that suit the model, for timing data that has none.

    Drawn with `seed`: normal targets, uniform classes (`width` of them, at least 2) or 0/1 per output; `labels.guess`
    says that they are random.
    """
    generator, guess = np.random.default_rng(seed), "random, for timing alone: the data has no labels"
    if model.target in ("numbers", "implicit"):
        y = generator.standard_normal(dataset.rows)
        labels = data.Labels("numbers", guess=guess, span=(float(y.min()), float(y.max())))
        return dataclasses.replace(dataset, y=y, labels=labels)
    count = 2 if model.target == "binary" else max(width or 2, 2)
    names = tuple(map(str, range(count)))
    if model.target == "multilabel":
        y = generator.integers(0, 2, (dataset.rows, count)).astype(np.uint8)
        return dataclasses.replace(dataset, y=y, labels=data.Labels("multilabel", names, guess=guess))
    classes = generator.integers(0, count, dataset.rows)
    return dataclasses.replace(dataset, y=classes, labels=data.Labels("classes", names, guess=guess))


def _without_entries(train: data.Dataset, configuration: Configuration) -> str:
    """Return the message that the training rows store no entry, with the lowest density that gives one."""
    what = f"The {train.rows:,} rows x {train.features:,} features that are trained on have no entry to learn from"
    if configuration.density is None:
        return f"{what}. Take more rows or features."
    least = 1 / max(train.rows * train.features, 1)
    more = f"Ask for density = {least:.1g} or more, or for more rows or features."
    return f"{what} at density {configuration.density:g}. {more}"


def targets(dataset: data.Dataset, model: Model, width: int, dtype: DTypeLike) -> np.ndarray:
    """Return the targets of the model with `width` outputs, in `dtype` or as integer classes.

    Raises DataError if the labels cannot give them: for implicit ratings and another model, or a label type that
    differs.
    """
    if dataset.facts.get("implicit") and model.target != "implicit":
        able = [name for name in models.names() if models.get(name).target == "implicit"]
        what = f"{dataset.source} says what users took and rates nothing, so each label is 1"
        advice = f"Models that learn the order of items from it: {', '.join(able)} (model = {able[0]})"
        raise data.DataError(f"{what[:1].upper()}{what[1:]}: {model.name} has nothing to tell apart. {advice}.")
    return data.targets(dataset, model.target, model.outputs or width, dtype)


def _cast_targets(x, dtype: np.dtype):
    """Return the array `x` (targets or X) in `dtype`; `x` itself if it has that dtype."""
    return x if x.dtype == dtype else x.astype(dtype)


def _parameters(configuration: Configuration, held_out: float) -> dict:
    """Return the settings that determine a configuration's data, {argument of `_make`: value}; also its cache key.

    `held_out` is the share of rows for validation; None in the result if the configuration trains no epochs.
    """
    needed = ("dataset", "rows", "features", "density", "seed")
    is_made = is_synthetic(configuration.dataset)
    values = {name: getattr(configuration, name) for name in settings.names(goes_to="data")}
    shared = {name: values.pop(name) for name in needed}
    kept = ("model", "width") if is_made else tuple(values.keys() - {"model", "width"})
    shared["held_out"] = held_out if configuration.epochs and held_out else None
    return shared | {name: value if name in kept else None for name, value in values.items()}


def _load_cached(parameters: dict) -> data.Dataset:
    """Return the data set that `_make` gives for `parameters`, cached on disk while files and this code are unchanged.

    Sources that are never cached (rows stored on disk) are read directly.
    """
    origin = data.get(parameters["dataset"])
    if not origin.is_cached:
        return _make(**parameters)

    of_file = {} if is_synthetic(origin.name) else parameters_of_file(parameters)
    files = tuple(origin.files(**of_file))
    fingerprint = origin.fingerprint(**of_file) + _code()  # of the folder of data the cache sees itself
    name, about = f"{origin.name}-derived", (origin.origin, origin.licence)
    derived = data.Source(name, _make, *about, lambda **_: files, lambda **_: fingerprint)
    return cache.load_or_make(derived, parameters)


@functools.cache
def _code() -> str:
    """Return the hash of this file's source; part of cache keys, since the code decides how data is prepared."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def parameters_of_file(settings_of_configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the data source for a configuration that reads a file.

    Those of its file settings that are not None and those of the mapping `reading`. Raises DataError if one is given
    twice, or the source has no such option.
    """
    source = data.get(settings_of_configuration["dataset"])
    named = {name: settings_of_configuration.get(name) for name in OF_FILE if name in source.parameters}
    named = {name: value for name, value in named.items() if value is not None}
    options = settings_of_configuration.get("reading") or {}
    source.refuse_unknown(options)
    if twice := sorted(set(named) & set(options)):
        raise data.DataError(f"{twice[0]} is set, and named in reading too; keep one of the two.")
    return named | options


def _make(dataset: str, rows, features, density, seed, held_out, model, width, **of_file) -> data.Dataset:
    """Load or generate the data set for these settings, shuffled by `seed` and reduced to the density.

    `rows`, `features` and `density` None leave the sizes as they are; `model` and `width` choose the labels of
    synthetic data; `of_file` are file settings. Rows stored on disk are not shuffled. With the share `held_out`, the
    last facts["rows_held_out"] rows are for validation.
    """
    if is_synthetic(dataset):
        whole = _draw_data(dataset, rows, features, density, seed, models.get(model), width)
        density = None
    else:
        whole = data.load(dataset, **parameters_of_file({"dataset": dataset, **of_file}))
        if rows is not None:
            whole = data.keep_rows(whole, rows, seed)
        if features is not None:
            whole = data.keep_features(whole, features)
        if not isinstance(whole.x, data.StoredRows):  # which were shuffled when they were converted
            whole = data.shuffle_rows(whole, seed)
    if held_out is None:
        return whole if density is None else data.with_density(whole, density, seed)
    return join_held_out(whole, held_out, seed, density)


def join_held_out(whole: data.Dataset, share: float, seed: int, density: float | None = None) -> data.Dataset:
    """Return the data set with the training rows first, then those held out, whose count is facts["rows_held_out"].

    `share` (0 to 1) of the rows are held out, drawn with `seed`; `density` thins both parts separately. Edges of a
    graph are kept among all rows. `split_held_out` is the inverse.
    """
    rows = split_rows(whole, share, seed)
    train, rest = (data.take(whole, part) for part in rows)
    if density is not None:  # of each part apart: rows that are joined across them would be seen in training
        train, rest = (data.with_density(part, density, seed) for part in (train, rest))
    if isinstance(whole.x, data.StoredRows):  # the parts are its first rows and its last
        return dataclasses.replace(whole, facts={**whole.facts, "rows_held_out": rest.rows})
    return _join_held_out(train, rest, None if whole.graph is None else subgraph(whole.graph, np.concatenate(rows)))


def _join_held_out(
    train: data.Dataset, rest: data.Dataset, graph: scipy.sparse.csr_array | None = None
) -> data.Dataset:
    """Return training rows and held-out rows concatenated into one data set, in this order; X becomes CSR.

    facts["rows_held_out"] has the number of the latter. `graph` is the adjacency matrix among all rows in the new
    order, None without one.
    """
    x = scipy.sparse.vstack([train.x, rest.x], format="csr")
    groups = None if train.groups is None else np.concatenate([train.groups, rest.groups])
    facts = {**train.facts, "rows_held_out": rest.rows}
    y = np.concatenate([train.y, rest.y])
    return dataclasses.replace(train, x=x, y=y, groups=groups, facts=facts, graph=graph)


def split_held_out(dataset: data.Dataset) -> tuple[data.Dataset, data.Dataset | None]:
    """Return (training rows, validation rows) of a data set as views; None for the latter if there are none."""
    if not (held_out := dataset.facts.get("rows_held_out")):
        return dataset, None
    trained = dataset.rows - held_out
    return data.rows_between(dataset, 0, trained), data.rows_between(dataset, trained, dataset.rows)


def synthetic_label_kind(model: Model, width: int | None) -> dict[str, Any]:
    """Return the arguments that give a synthetic data set labels that suit the model, {"classes": ..., "width": ...}.

    For regression targets "classes" is None and "width" the number of targets; else only "classes", their number.
    """
    if model.target == "numbers":
        return {"classes": None, "width": model.outputs or width or 1}
    return {"classes": 2 if model.target == "binary" else (width or SYNTHETIC_CLASSES)}


def _draw_data(dataset: str, rows, features, density, seed, model: Model, width: int | None) -> data.Dataset:
    """Generate the synthetic data set `dataset` with labels that suit the model with `width` outputs, by `seed`.

    Sizes that are None take the module's defaults. Nothing is cached here.
    """
    return data.load(
        dataset,
        rows=rows or SYNTHETIC_ROWS,
        features=features or SYNTHETIC_FEATURES,
        density=density or SYNTHETIC_DENSITY,
        seed=seed,
        **synthetic_label_kind(model, width),
    )


# Content of the files that a sweep measures: a part of the keys of its records, compared again around every trial.


NOT_READ = "not read"
"""Content of large files in plans that are made without reading them: no record has a key with it."""


class DataChangedError(RuntimeError):
    """A data file whose content changed while a sweep measured it."""

    def __init__(self, name: str) -> None:
        """Make the message from `name`, the file whose content changed."""
        super().__init__(
            f"{name} changed while the sweep ran. The records of its content before stay; that of the trial at work is "
            "left out."
        )


class _Seen(NamedTuple):
    states: content.States
    hash: str


@final
class Contents:
    """Content of the files of configurations; files that several configurations read are read once.

    With `is_quick`, files that take longer than a moment are not read: their content is `NOT_READ` unless it is stored.
    """

    def __init__(self, is_quick: bool = False) -> None:
        """Start with no file read; with `is_quick`, `of` will not read large files."""
        self._is_quick = is_quick
        self._seen: dict[tuple, _Seen] = {}

    def of(self, configuration: Configuration) -> str:
        """Return the hash of the content of the files that a configuration reads; each file set is read once.

        "" if it reads none, or one is missing; `NOT_READ` for large files if `is_quick` and no stored hash exists.
        """
        if is_synthetic(configuration.dataset):
            return ""
        name = _name(configuration)
        if name not in self._seen:
            self._seen[name] = self._read(configuration)
        return self._seen[name].hash

    def _read(self, configuration: Configuration) -> _Seen:
        """Return the present states (sizes and times) and the content hash of a configuration's files.

        May read them.
        """
        states = content.states_of(_files(configuration))
        stored = content.stored_hash(states)
        if stored is None:
            stored = NOT_READ if self._is_quick and not content.is_quick(states) else content.hash_of(states)
        return _Seen(states, stored)

    def require_unchanged(self, configuration: Configuration) -> None:
        """Raise DataChangedError if the files do not hold what they held when `of` was first called.

        Files with unchanged size and time are not read; a file written again with the same content is accepted.
        """
        hash_before = self.of(configuration)
        if is_synthetic(configuration.dataset):
            return
        states = content.states_of(_files(configuration))
        if not (name := content.first_changed_file(self._seen[_name(configuration)].states, states)):
            return
        if content.hash_of(states) != hash_before:
            raise DataChangedError(name)
        self._seen[_name(configuration)] = _Seen(states, hash_before)


def _name(configuration: Configuration) -> tuple:
    """Return the tuple of settings that identify the files of a configuration; used as a dict key."""
    return configuration.dataset, *(getattr(configuration, name) for name in OF_FILE)


def _files(configuration: Configuration) -> content.Paths:
    """Return the paths of the files that a configuration reads; raises DataError if a parameter is given twice."""
    return data.get(configuration.dataset).files(**parameters_of_file(vars(configuration)))
