"""Loading: one function for files, data sets by name, and what is in memory."""

import difflib
import hashlib
import itertools
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from kernels.registry import nearest, unknown_name
from workbench import atomic_files, data
from workbench.advising.source import settings_of
from workbench.api import inputs
from workbench.data import Dataset, contract
from workbench.data.content import cache_folder
from workbench.data.dataset.targets import labels_as_named
from workbench.data.errors import DataError, MissingLabelsError
from workbench.data.files.nearest import nearest_file
from workbench.data.files.reading import path_exists
from workbench.data.labels import NONE, Wanted, read_labels
from workbench.data.sources.table import encoded
from workbench.data.tables import columns as columns_file
from workbench.data.tables.columns import Columns
from workbench.data.tables.frames import frame_table, in_pandas, is_frame
from workbench.data.tables.guessing import LABELS, refuse_label
from workbench.data.tables.sparse_fields import is_sparse
from workbench.data.tables.texts import is_number
from workbench.formats.arrays import computed, has_sparse_columns, library_of
from workbench.option_text import worded
from workbench.sweeps.problem import is_synthetic, parameters_of_file
from workbench.sweeps.spec import FILES

PAIRS = (("X", "y"), ("x", "y"), ("data", "target"))
"""Keys under which dicts, such as the data sets of scikit-learn, hold a matrix and its labels."""


RANDOM = "random_labels"
"""Fact of a data set whose labels were drawn, because it has none."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """Data as a function of `wb` received it: the data set, the settings that read it again, what estimators take.

    `settings` are those of a configuration and are empty for data in memory. `x` and `y` are as the user gave them, of
    a file its matrix and labels. `columns` make the matrix of later frames, None if a frame is its matrix.
    """

    dataset: Dataset
    settings: Mapping[str, Any] = field(default_factory=dict)
    x: Any = None
    y: Any = None
    columns: Columns | None = None

    @property
    def is_labelled(self) -> bool:
        """Whether the labels are the user's rather than random."""
        return not self.dataset.facts.get(RANDOM)


_origins: "weakref.WeakKeyDictionary[Dataset, dict[str, Any]]" = weakref.WeakKeyDictionary()
"""Fields of `Loaded` of data sets that `load` made, so that a file is read by its path when it is measured.

All but `dataset`: a value that holds its own key would keep it until the process ends.
"""


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
        "numbers" or "multilabel"), `dataset` (the name of the reader). Frames take those of tables: `columns`, `bins`,
        `hashed`, `unlabelled`; they are read as a file with their columns is.

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
    return receive(source, y, label, reading).dataset


def receive(source: Any, y: Any = None, label: str | None = None, reading: Mapping[str, Any] | None = None) -> Loaded:
    """Return data of any kind that `load` takes, with its origin; remembered, so that a file is measured by its path.

    Raises FileNotFoundError or DataError, as `load` does.
    """
    given = {name: value for name, value in (reading or {}).items() if value is not None}
    if library_of(source) == "polars" and hasattr(source, "collect"):
        raise inputs.InputTypeError("X is a LazyFrame, which holds no rows yet; expected a frame.\nType X.collect().")
    if y is None:
        source, y = _pair_of(source)
    source = _frame_of(computed(source))
    if isinstance(source, str | Path):
        loaded = _load_path(source, y, label, given)
    elif isinstance(source, Dataset):
        known = _origins.get(source)
        if known is None or (known["settings"] and is_synthetic(known["settings"]["dataset"])):
            # By its name a synthetic set would be measured at the sizes that a sweep asks for, not at these.
            known = {"x": source.x, "y": labels_as_named(source)}
        loaded = Loaded(source, **known)
    else:
        loaded = _load_memory(source, y, label, given)
    _origins[loaded.dataset] = {name: value for name, value in vars(loaded).items() if name != "dataset"}
    return loaded


def _pair_of(source: Any) -> tuple[Any, Any]:
    """Return (matrix, labels) of a pair or of a dict with both.

    (table, None) for rows or columns in dicts, or anything else.
    """
    if isinstance(source, list | tuple) and len(source) == 2:
        is_matrix = len(getattr(source[0], "shape", ())) == 2
        if isinstance(source, tuple) or is_matrix:
            return source[0], source[1]
    if isinstance(source, Mapping) and not scipy.sparse.issparse(source):  # SciPy's dok is a dict of its entries
        for x, y in PAIRS:
            if x in source and y in source:
                return source[x], source[y]
    return source, None


def _frame_of(table: Any) -> Any:
    """Return rows or columns in dicts as a pandas frame, anything else unchanged; fields that a row lacks are missing.

    Raises DataError if columns differ in length, or rows have few fields of many names.
    """
    import pandas

    are_rows = isinstance(table, list) and bool(table) and all(isinstance(row, Mapping) for row in table)
    is_dict = isinstance(table, Mapping) and not scipy.sparse.issparse(table) and bool(table)
    if not are_rows and not (is_dict and all(np.ndim(column) == 1 for column in table.values())):
        return table

    if are_rows and is_sparse(len(table), len({*itertools.chain(*table)}), sum(map(len, table))):
        raise DataError(
            "The rows have few fields each, of many names; expected a frame, most of whose values are there.\n"
            "Type from sklearn.feature_extraction import DictVectorizer; X = DictVectorizer().fit_transform(X), "
            "which stores no field that a row lacks."
        )
    try:
        return pandas.DataFrame(table)
    except ValueError as error:
        raise DataError(f"The dict is not a table: {error}.\nGive columns of equal length.") from None


def pop_reading(given: dict[str, Any], others: Collection[str]) -> dict[str, Any]:
    """Remove reader settings from keyword arguments in place, and return them; names in `others` stay."""
    known = reader_settings()
    return {name: given.pop(name) for name in [*given] if name in known and name not in others}


def reader_settings() -> set[str]:
    """Return the names of all settings of all readers, except `path`."""
    return {"dataset", "reading", *FILES, *(name for each in data.names() for name in data.get(each).parameters)} - {
        "path"
    }


def refuse_misspelled(given: Collection[str], known: Collection[str]) -> None:
    """Raise InputTypeError, naming `advise`, for a name that is no reader setting but near one in `known`."""
    for name in given:
        near = "" if name in reader_settings() else nearest(name, known)
        if near:
            raise inputs.InputTypeError(f"advise has no parameter {name!r}.{near}")


def _load_path(source: str | Path, y: Any, label: str | None, given: dict[str, Any]) -> Loaded:
    """Load a file, or a data set by name, `given` being reader settings; prints remarks on what was guessed.

    Raises FileNotFoundError, or DataError with what to type.
    """
    name = str(source)
    if y is not None:
        raise DataError(
            f"Both the file {name} and y were given; labels of a file come from the file.\n"
            f'Type labels="FILE" for labels in another file, or load the matrix first: X = wb.load({name!r}).x.'
        )
    if not name or (isinstance(source, Path) and not source.parts):
        raise DataError("The path is empty; expected the path of a file.\nCheck the path.")
    if "://" in name:
        target = name.rsplit("/", 1)[-1] or "data"
        fetch = f'Type import urllib.request; urllib.request.urlretrieve("{name}", "{target}")'
        fetch = fetch if name.startswith(("http:", "https:", "ftp:", "file:")) else "Download it"
        raise FileNotFoundError(f"{name} is an address, and data is read from files.\n{fetch} and load that file.")
    if name not in data.names() and not path_exists(name):
        near = "" if Path(name).suffix or "/" in name else f" Data sets: {', '.join(data.names())}."
        near = nearest_file(name, data.names()) or near
        raise FileNotFoundError(f"There is no file {name!r}, seen from {Path.cwd()}.{near}\nCheck the path.")
    dataset, options = str(given.pop("dataset", "")), contract.reader_options(given.pop("reading", None))
    of_configuration = {key: given.pop(key) for key in ("labels", "columns", "kind") if key in given}
    if isinstance(of_configuration.get("columns"), Mapping | Columns):
        of_configuration["columns"] = _written_columns(of_configuration["columns"])
    if label is not None:
        given["label"] = label
    settings, why = settings_of(
        name, dataset, {**options, **given}, **{key: str(value) for key, value in of_configuration.items()}
    )
    settings = {
        key: str(Path(value).resolve()) if key in ("path", "labels", "columns") else value
        for key, value in settings.items()
    }
    made = data.load(settings["dataset"], **parameters_of_file(settings))
    if why:
        inputs.say(f'{name} is read by "{settings["dataset"]}": {why}. Type dataset="NAME" for another reader.')
    for guess in made.facts.get("guesses", ()):
        inputs.say(worded(guess))
    if made.labels.are_missing:
        return Loaded(_with_random_labels(made.x, made.name, made.source), {}, made.x, None)
    is_own = "reading" in settings and is_synthetic(settings["dataset"])  # trials generate it without options
    return Loaded(made, {} if is_own else settings, made.x, labels_as_named(made))


def _written_columns(columns: Mapping[str, Any] | Columns) -> Path:
    """Return the path of a file of column kinds in the cache folder, by which trials read what these columns declare.

    Raises DataError if a declaration is invalid.
    """
    text = columns_file.load(columns).toml()
    path = cache_folder() / "columns" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.write(path, text)
    return path


def _with_random_labels(x: Any, name: str, source: str) -> Dataset:
    """Return a data set of `x` with random labels of two classes, which only serve to time training."""
    drawn = np.random.default_rng(0).integers(0, 2, x.shape[0])
    drawn[:2] = 0, 1
    labels = data.Labels("classes", ("0", "1"), guess="drawn at random")
    return Dataset(name, x, drawn[: x.shape[0]], labels, source, "yours", facts={RANDOM: True})


def _load_memory(source: Any, y: Any, label: str | None, given: dict[str, Any]) -> Loaded:
    """Load arrays, frames or tensors with their labels; random labels without any.

    `given` are reader settings, of which "kind" is removed; DataError for others and for data that cannot be used.
    """
    is_anndata = library_of(source) == "anndata" and hasattr(source, "obs")  # X of a selection is of that library, too
    if is_frame(source) and not is_anndata and not is_matrix(source):
        return _load_frame(source, y, label, given)
    kind = given.pop("kind", None)
    layer = given.pop("layer", None) if is_anndata else None
    _refuse_settings(given)
    if is_anndata:
        source, y = _split_anndata(source, y, label, layer)
    elif is_frame(source):
        source, y = _split_sparse_frame(source, y, label)
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
    return Loaded(Dataset("memory", x, numbers, labels, "memory", "yours"), {}, source, y)


def _refuse_settings(given: Mapping[str, Any], taken: Sequence[str] = ("y", "label", "kind")) -> None:
    """Raise DataError for reader settings, InputTypeError for unknown ones: data in memory takes those in `taken`."""
    for name, value in given.items():
        if name in ("labels", "target"):
            hint = f'Type label="{value}".' if isinstance(value, str) else "Type wb.load(X, y), y being the labels."
        elif name in reader_settings():
            hint = "Leave it out, or give the path of the file."
        else:
            raise inputs.InputTypeError(unknown_name("setting", name, taken))
        raise DataError(f"{name} is a setting of a reader of files; this takes {', '.join(taken)}.\n{hint}")


def _split_anndata(source: Any, y: Any, label: str | None, layer: str | None) -> tuple[Any, Any]:
    """Return (X or a layer, labels from obs or obsm, or y) of an AnnData object; DataError if it has no such part."""
    from workbench.data.sources.anndata import labels_in, matrix_in

    source = source.to_memory() if source.isbacked else source
    try:
        return matrix_in(source, layer, "adata"), y if label is None else labels_in(source, label, "adata")
    except MissingLabelsError as error:
        raise DataError(f"{str(error).splitlines()[0]}\n{_near_label(label, [*source.obs, *source.obsm])}") from None


def _near_label(label: Any, names: list[Any]) -> str:
    """Return what to type for labels of an AnnData object that has none called `label`."""
    close = difflib.get_close_matches(str(label), names, 1)
    return f'Type label="{(close or names)[0]}".' if names else "Type wb.load(adata, y)."


def is_matrix(frame: Any) -> bool:
    """Return whether a frame is a matrix whose columns have names: numbers, of which some columns are sparse."""
    return has_sparse_columns(frame) and all(
        getattr(getattr(dtype, "subtype", dtype), "kind", "O") in "biufc" for dtype in frame.dtypes
    )


def _split_sparse_frame(frame: Any, y: Any, label: str | None) -> tuple[Any, Any]:
    """Return (features, labels) of a frame with sparse columns of numbers; without a y, the labels have a usual name.

    Raises DataError if no column is the label.
    """
    if y is not None and label is None:
        return frame, y
    by_name = {str(name): name for name in frame.columns}
    if label is None:
        lower = {name.casefold(): name for name in reversed(by_name)}
        label = next((lower[name] for name in LABELS if name in lower), None)
    if label is None:
        raise DataError('X has no column of labels by its name.\nType label="NAME" for one, or wb.load(X, y).')
    refuse_label("The frame", str(label), by_name)
    return frame.drop(columns=[by_name[str(label)]]), frame[by_name[str(label)]]


FRAME_SETTINGS = ("columns", "hashed", "bins", "unlabelled")
"""Settings of the reader of tables that frames take, too."""


def _load_frame(frame: Any, y: Any, label: str | None, given: dict[str, Any]) -> Loaded:
    """Load a frame by the guesses and the encoding of tables in files, `given` being reader settings; says the guesses.

    Raises DataError with what to type for settings that frames do not take, and columns that cannot be used.
    """
    settings = {name: given.pop(name) for name in FRAME_SETTINGS if given.get(name) is not None}
    wanted = Wanted(**{name: given.pop(name) for name in ("kind", "positive", "classes", "unseen") if name in given})
    _refuse_settings(given, ("y", "label", "kind", *FRAME_SETTINGS))
    table, has_y = frame_table(frame), y is not None and label is None
    label = None if label is None else str(label)
    try:
        made = encoded(table, Wanted(NONE) if has_y else wanted, settings.pop("columns", None), label, **settings)
    except MissingLabelsError as error:
        advice = 'Type label="NAME" for a column of it, kind="none" to go on without, or wb.load(frame, y).'
        raise MissingLabelsError(f"{str(error).splitlines()[0]}\n{advice}") from None
    for guess in made.facts["guesses"]:
        inputs.say(worded(guess))
    columns = columns_file.load(made.facts["reread"]["columns"])
    made = replace(made, name="memory", source="memory", licence="yours")
    is_plain = _is_plain(columns, table.schema) and len(frame) == made.rows
    own: Any = made.x
    if is_plain:
        own = in_pandas(frame)
        names = [column.name for column in columns if column.kind == "label"]
        own = own.drop(columns=[name for name in own.columns if str(name) in names])
    if has_y:
        y = inputs.labels_of(y, made.rows)
        labels, numbers = read_labels(y, wanted, lambda row: f"y[{row}]")
        made = replace(made, y=numbers, labels=labels)
    elif made.labels.are_missing:
        drawn = _with_random_labels(made.x, "memory", "memory")
        return Loaded(replace(drawn, facts={**made.facts, **drawn.facts}), {}, own, None)
    else:
        y = _labels_as_given(made, table, columns)
    return Loaded(made, {}, own, y, None if is_plain else columns)


def _is_plain(columns: Columns, schema: Any) -> bool:
    """Return whether the matrix of a frame is its numbers as they are, so that estimators take it itself."""
    return all(
        column.kind == "label"
        or (
            (column.encoding, column.scaling, column.optional) == ("keep", "none", True)
            and is_number(schema.field(column.name).type)
        )
        for column in columns
    )


def _labels_as_given(made: Dataset, table: Any, columns: Columns) -> np.ndarray:
    """Return the labels of a frame in the type of their column, so that a model predicts such, else as they are named.

    Numbers stay numbers, and rows that are left out leave out their labels.
    """
    named = labels_as_named(made)
    assert columns.label is not None
    name = columns.label.name
    texts = next(iter(table.blocks([name])))[name]
    if made.kind != "classes" or len(texts.codes) != made.rows or (texts.codes < 0).any():
        return named
    given = texts.values.to_numpy(zero_copy_only=False)
    given = (given.astype(str) if given.dtype == object else given)[texts.codes]
    if str(table.schema.field(name).type) == "bool":
        return given == "True"
    return given if len(np.unique(given)) == len(made.classes) else named


__all__ = ["Loaded", "labels_as_named", "load", "receive"]
