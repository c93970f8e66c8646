"""Loading: one function for files, data sets by name, and what is in memory."""

import difflib
import hashlib
import re
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from kernels.registry import format_count, nearest, unknown_name
from workbench import atomic_files, data
from workbench.advising.source import settings_of
from workbench.api import inputs
from workbench.data import Dataset, contract
from workbench.data.content import cache_folder
from workbench.data.dataset.targets import labels_as_named
from workbench.data.errors import DataError, MissingLabelsError
from workbench.data.files.reading import path_exists
from workbench.data.labels import Wanted, read_labels
from workbench.data.tables import columns as columns_file
from workbench.data.tables.columns import Columns
from workbench.data.tables.guessing import LABELS, MOSTLY_SEVERAL, WORDS_OF_TEXT
from workbench.formats.arrays import computed, has_sparse_columns, host_array, library_of, matrix_of_sparse_frame
from workbench.sweeps.problem import is_synthetic, parameters_of_file
from workbench.sweeps.spec import FILES

# Conversion of tables with named columns into a matrix: numbers stay numbers, text and categories are one-hot.
#
# The encoder is scikit-learn's, so that what is fitted on one table takes the next one, with values it has not seen.


WORDS, PARTS = r"\w+", r"[^|]+"
"""Words of a text, and parts of a value such as a|b|c."""
IDS = ("user", "item", "id")
"""Words in the name of a column of whole numbers that make it a category."""
MOST_IN_ORDER = 32
"""Different whole numbers that a column of a category's name has at least."""
WRITTEN_NUMBER = r"[^\w.]*(\d[\d,' \u00a0]*\.?\d*|\.\d+)[^\w.]*"
"""A number between signs that are no letters, with groups of digits."""
MOSTLY = 0.9
"""Share of the values of a category of numbers, written as text, from which on that is said."""
PAIRS = (("X", "y"), ("x", "y"), ("data", "target"))
"""Keys under which dicts, such as the data sets of scikit-learn, hold a matrix and its labels."""


def is_frame(value: Any) -> bool:
    """Return whether a value is a table with named columns (pandas, Arrow or Polars).

    >>> is_frame([[1, 2]])
    False
    """
    return hasattr(value, "columns") and (hasattr(value, "iloc") or hasattr(value, "to_pandas"))


def as_pandas(table: Any) -> Any:
    """Return a pandas, Arrow or Polars table as a pandas frame; DataError without columns, or with duplicate names."""
    frame = table
    if not hasattr(table, "iloc"):
        frame = table.to_pandas()
        frame.attrs[PREPARE] = "frame = frame.to_pandas(); "
    names = [str(name) for name in frame.columns]
    if not names:
        raise DataError("The frame has no columns; expected one or more.\nCheck how it was made.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(
            f"The frame has the column {twice[0]!r} more than once; expected different names.\n"
            f"Type {frame.attrs.get(PREPARE, '')}frame = frame.loc[:, ~frame.columns.map(str).duplicated()] "
            "to keep the first of each."
        )
    return frame


def with_numbers(frame: Any) -> Any:
    """Return a frame whose columns of Python objects are numbers if all their values are, decimal ones included.

    >>> import pandas
    >>> with_numbers(pandas.DataFrame({"a": [1.5, 2], "b": ["x", 3]}, dtype=object)).dtypes.tolist()
    [dtype('float64'), dtype('O')]
    """
    from pandas.api.types import infer_dtype

    if "object" not in map(str, frame.dtypes):
        return frame
    frame = frame.infer_objects()
    decimals = [name for name in frame if frame[name].dtype == object and infer_dtype(frame[name]) == "decimal"]
    return frame.astype(dict.fromkeys(decimals, np.float64)) if decimals else frame


def take_label(frame: Any, label: str | None) -> tuple[Any, Any, str]:
    """Split a frame into (features, labels, how the column was guessed); "" if `label` names it.

    Raises
    ------
    DataError
        If there is no such column; the message lists the columns.
    """
    names = list(frame.columns)
    if label is not None and label not in names:
        near = difflib.get_close_matches(str(label), map(str, names), 1)
        meant = next((name for name in names if str(name) in near), names[-1])  # 5 for "5"
        hint = f'label="{meant}"' if isinstance(meant, str) else f"label={meant!r}"
        shown = ", ".join(map(str, names[:20])) + (f", and {len(names) - 20} more" if len(names) > 20 else "")
        raise DataError(f"The frame has no column {label!r}; expected one of: {shown}.\nType {hint}.")
    chosen, why = (label, "") if label is not None else guess_label(frame)
    return frame.drop(columns=[chosen]), frame[chosen], why


def guess_label(frame: Any) -> tuple[Any, str]:
    """Choose the column of labels: by name, else the only one of two values, else the last; with the reason.

    Examples
    --------
    >>> import pandas
    >>> guess_label(pandas.DataFrame({"age": [1, 2, 3], "clicked": [0, 1, 0]}))[0]
    'clicked'
    """
    names = list(frame.columns)
    by_name = sorted((LABELS.index(str(name).lower()), name) for name in names if str(name).lower() in LABELS)
    two = [name for name in names if frame[name].nunique() == 2] if not by_name else []
    if by_name:
        chosen, reason, several = by_name[0][1], "by its name", [name for _, name in by_name]
    elif len(two) == 1:
        chosen, reason, several = two[0], "the only column of two values", []
    else:
        chosen, reason, several = names[-1], "the last column", two
    others = [name for name in several if name != chosen]
    others_text = f"; others would fit: {', '.join(map(str, others[:5]))}" if others else ""
    return chosen, f'label="{chosen}" was guessed ({reason}{others_text}). Type label="NAME" to change it.'


def categories_of(frame: Any) -> list[Any]:
    """Return the names of a frame's columns that are categories: text, and whole numbers named like ids."""
    return [name for name in frame.columns if _is_category(name, frame[name])]


def _is_category(name: Any, column: Any) -> bool:
    """Return whether a frame's column becomes one-hot: text, categories, or many whole numbers with an id's name."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "fc" or (kind in "biu" and str(column.dtype).startswith("Sparse")):
        return False
    if kind in "biu":
        words = str(name).lower().replace("-", "_").split("_")
        return kind != "b" and any(word in IDS for word in words) and column.nunique() >= MOST_IN_ORDER
    return True


def words_of(frame: Any, categories: list[Any]) -> dict[Any, str]:
    """Return {name: regular expression of its words or parts} of the categories that are text or values as a|b|c."""
    found = {}
    for name in categories:
        texts = frame[name].drop_duplicates()
        if not isinstance(name, str) or not all(isinstance(text, str) for text in texts):
            continue
        texts = texts.astype(object).astype(str)  # of categories and of sparse values, too
        several = texts.str.contains(r"[^|]\|[^|]").mean()
        if several >= MOSTLY_SEVERAL and texts.str.split("|").explode().nunique() < len(texts):
            found[name] = PARTS
        elif texts.str.split().map(len).mean() >= WORDS_OF_TEXT:
            found[name] = WORDS
    return found


def encoder_of(frame: Any) -> Any:
    """Return an unfitted scikit-learn ColumnTransformer: categories one-hot, texts by their words, numbers kept.

    Unknown categories and words are ignored.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    categories = categories_of(frame)
    numbers = [name for name in frame.columns if name not in categories]
    texts = words_of(frame, categories)
    categories = [name for name in categories if name not in texts]
    kept = FunctionTransformer(host_array) if has_sparse_columns(frame) else "passthrough"
    parts = [("categories", OneHotEncoder(handle_unknown="ignore"), categories), ("numbers", kept, numbers)]
    parts = [part for part in parts if part[2]]
    for name, pattern in texts.items():
        is_several = pattern == PARTS
        counts = CountVectorizer(token_pattern=pattern, lowercase=not is_several, binary=is_several)
        parts.append((f"words of {name}", counts, name))
    return ColumnTransformer(parts, sparse_threshold=1.0)


PREPARE, LABEL = "prepare", "label"
"""Attributes of a frame: the Python code that makes it of the user's object; the column of labels taken from it."""


def _missing_counts(frame: Any) -> dict[Any, int]:
    """Return {name: number of missing values} of the columns that have such."""
    counts = {name: int(frame[name].isna().sum()) for name in frame.columns}
    return {name: count for name, count in counts.items() if count}


def _without_dates(frame: Any, names: list[Any]) -> str:
    """Return the Python code that makes numbers of columns of dates, durations or periods."""
    codes = []
    for name in names:
        kind, column = str(frame[name].dtype), f"frame[{name!r}]"
        if kind.startswith("period"):
            column = f"{column}.dt.to_timestamp()"
        made = f"{column}.dt.total_seconds()" if kind.startswith("timedelta") else f'{column}.astype("int64")'
        if kind.startswith(("date32", "date64", "timestamp", "duration")):
            make = "to_timedelta" if kind.startswith("duration") else "to_datetime"
            made = f'pandas.{make}({column}).astype("int64")'
        codes.append(f"frame[{name!r}] = {made}")
    return "; ".join(codes)


def _filled(frame: Any, names: list[Any]) -> str:
    """Return the Python code that fills the missing values of these columns: 0 for numbers, else "missing"."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    fills: dict[Any, Any] = {}
    casts = []
    for name in names:
        column = frame[name]
        is_number = is_numeric_dtype(column.dtype)
        fills[name] = False if is_bool_dtype(column.dtype) else 0 if is_number else "missing"
        is_text = all(isinstance(value, str) for value in column.dropna()) and str(column.dtype) != "category"
        if not is_number and not is_text:
            casts.append(name)  # categories take no new value, and objects may be of several types
    cast = f".astype(dict.fromkeys({casts!r}, str))" if casts else ""
    return f"frame = frame{cast}.fillna({fills!r})"


def matrix_of_frame(frame: Any, has_labels: bool = False) -> tuple[Any, Any, str]:
    """Return (matrix, fitted encoder or None, remark) of the features of a frame.

    `has_labels` says that its rows have labels beside it, in y.

    Raises
    ------
    DataError
        If a value is missing, with the columns that have such.

    Examples
    --------
    >>> import pandas
    >>> matrix, encoder, remark = matrix_of_frame(pandas.DataFrame({"color": ["red", "blue"], "size": [3.0, 4.0]}))
    >>> matrix.shape, remark
    ((2, 3), 'Categories, one column a value: color; numbers as they are: size.')
    """
    if not len(frame):
        raise DataError("The frame has no rows; expected one or more.\nCheck how it was made.")
    is_sparse = has_sparse_columns(frame)
    counts = _missing_counts(frame)
    if counts:
        named = ", ".join(f"{name} ({count:,})" for name, count in [*counts.items()][:5])
        more = f", and {len(counts) - 5} more" if len(counts) > 5 else ""
        rows = "frame = frame.dropna()"
        if has_labels:
            rows = "keep = frame.notna().all(axis=1).to_numpy(); frame, y = frame[keep], np.asarray(y)[keep]"
        prepare, rest = frame.attrs.get(PREPARE, ""), _filled(frame, list(counts))
        leave_out = f"{prepare}{rows} to leave these rows out, or {prepare}"
        if empty := [name for name, count in counts.items() if count == len(frame)]:
            leave_out, rest = prepare, f"frame = frame.drop(columns={empty!r})"
        elif undated := [name for name in counts if _is_time(frame[name].dtype)]:
            rest = f"frame = frame.drop(columns={undated!r})"
        raise DataError(
            f"The frame has missing values in {format_count(len(counts), 'column')}: {named}{more}; expected none.\n"
            f"Type {leave_out}{rest}."
        )
    if times := [name for name in frame.columns if _is_time(frame[name].dtype)]:
        raise DataError(
            f"The column {str(times[0])!r} holds dates; expected numbers or categories.\n"
            f"Type {_without_dates(frame, times)}, or frame = frame.drop(columns={times!r})."
        )
    categories = categories_of(frame)
    if not categories:
        if is_sparse:
            return matrix_of_sparse_frame(frame), None, ""
        numbers = frame.to_numpy()  # objects, if columns that may have missing values have several dtypes
        return (frame.to_numpy(np.float64) if numbers.dtype == object else numbers), None, ""
    encoder = encoder_of(frame)
    try:
        matrix = encoder.fit_transform(frame)
    except TypeError:
        _refuse_mixed(frame, categories)
        raise
    numbers = [str(name) for name in frame.columns if name not in categories]
    others_text = f"; numbers as they are: {_list_names(numbers)}" if numbers else ""
    texts = words_of(frame, categories)
    kinds = {
        "Categories, one column a value": [name for name in categories if name not in texts],
        "Text, counts of its words": [name for name, pattern in texts.items() if pattern == WORDS],
        "Several values a row, between '|'": [name for name, pattern in texts.items() if pattern == PARTS],
    }
    remark = "; ".join(f"{kind}: {_list_names(names)}" for kind, names in kinds.items() if names) + f"{others_text}."
    return matrix, encoder, f"{remark}{_numbers_as_text(frame, categories)}"


def _refuse_mixed(frame: Any, categories: list[Any]) -> None:
    """Raise DataError for the first category that has lists or other objects, or text next to numbers; else nothing."""
    for name in categories:
        kinds = sorted({type(value).__name__ for value in frame[name]})
        if len(kinds) > 1 or kinds[0] in ("list", "dict", "set", "ndarray"):
            raise DataError(
                f"The column {name!r} holds values of the types {', '.join(kinds)}; expected text or numbers.\n"
                f"Type frame[{name!r}] = frame[{name!r}].map(str) for categories, or "
                f"frame = frame.drop(columns=[{name!r}])."
            )


def _is_time(dtype: Any) -> bool:
    """Return whether a column's dtype is one of dates, durations or periods."""
    return getattr(dtype, "kind", "") in "mM" or str(dtype).startswith(("period", "date", "timestamp"))


def _numbers_as_text(frame: Any, categories: list[Any]) -> str:
    """Return the remark on the first category that is numbers written as text, such as "$3,123.00"; "" if none."""
    for name in categories:
        if getattr(frame[name].dtype, "kind", "O") in "biu":
            continue
        texts = frame[name].astype(str).drop_duplicates()
        share = texts.str.fullmatch(WRITTEN_NUMBER).mean()
        if len(texts) > MOST_IN_ORDER and share >= MOSTLY:
            digits = f'frame[{name!r}].astype(str).str.replace(r"[^0-9.-]", "", regex=True)'
            convert = f'frame[{name!r}] = pandas.to_numeric({digits}, errors="coerce").fillna(0).astype(float)'
            return f"\n{name} holds numbers as text, such as {texts.iloc[0]!r}. Type {convert} to take them as numbers."
    return ""


def _list_names(names: list[Any]) -> str:
    """Return the first eight names joined by commas, with the number of the others."""
    return ", ".join(map(str, names[:8])) + (f", and {len(names) - 8} more" if len(names) > 8 else "")


RANDOM = "random_labels"
"""Fact of a data set whose labels were drawn, because it has none."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """Data as a function of `wb` received it: the data set, the settings that read it again, what estimators take.

    `settings` are those of a configuration and are empty for data in memory. `x` and `y` are as the user gave them, of
    a file its matrix and labels. `encoder` has made the matrix of a frame, and `label` is the column of it that the
    labels were taken from.
    """

    dataset: Dataset
    settings: Mapping[str, Any] = field(default_factory=dict)
    x: Any = None
    y: Any = None
    encoder: Any = None
    label: Any = None

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
    """Return rows or columns in dicts as a pandas frame, anything else unchanged.

    Raises DataError if columns differ in length, or rows in their fields.
    """
    import pandas

    are_rows = isinstance(table, list) and bool(table) and all(isinstance(row, Mapping) for row in table)
    is_dict = isinstance(table, Mapping) and not scipy.sparse.issparse(table) and bool(table)
    if not are_rows and not (is_dict and all(np.ndim(column) == 1 for column in table.values())):
        return table

    if are_rows and any(row.keys() != table[0].keys() for row in table):
        raise DataError(
            "The rows have different fields; expected the same in each.\n"
            "Type from sklearn.feature_extraction import DictVectorizer; X = DictVectorizer().fit_transform(X), "
            "which stores no field that a row lacks."
        )
    try:
        frame = pandas.DataFrame(table)
        frame.attrs[PREPARE] = "frame = pandas.DataFrame(X); "
        return frame
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
        raise FileNotFoundError(f"There is no file {name!r}, seen from {Path.cwd()}.{near}\nCheck the path.")
    dataset, options = str(given.pop("dataset", "")), contract.reader_options(given.pop("reading", None))
    of_configuration = {key: given.pop(key) for key in ("labels", "columns", "kind") if key in given}
    if isinstance(of_configuration.get("columns"), Mapping | Columns):
        of_configuration["columns"] = _written_columns(of_configuration["columns"])
    if label is not None:
        given["label"] = label
    try:
        settings, why = settings_of(
            name, dataset, {**options, **given}, **{key: str(value) for key, value in of_configuration.items()}
        )
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


IN_PYTHON = r'(?:"[^"\n]*"|[^()"\n])*'
"""What a message says to type in Python: text in quotes may have parentheses."""


def as_typed(text: str) -> str:
    """Return a reader's message with what to type in Python only, in place of the command line.

    >>> as_typed('Another one: --label NAME (in Python label="NAME").')
    'Another one: label="NAME".'
    """
    text = text.replace(" (in the setting reading)", "")
    text = re.sub(rf"(?<=[ :.])[^:.\n]*--[^()\n]*\(in Python ({IN_PYTHON})\)", r" \1", text)
    return re.sub(r"\bType +", "Type ", text.replace(":  ", ": "))


def _load_memory(source: Any, y: Any, label: str | None, given: dict[str, Any]) -> Loaded:
    """Load arrays, frames or tensors with their labels; random labels without any.

    `given` are reader settings, of which "kind" is removed; DataError for others and for data that cannot be used.
    """
    kind = given.pop("kind", None)
    is_anndata = library_of(source) == "anndata" and hasattr(source, "obs")  # X of a selection is of that library, too
    layer = given.pop("layer", None) if is_anndata else None
    _refuse_settings(given)
    encoder = frame = None
    if is_anndata:
        source, y = _split_anndata(source, y, label, layer)
    elif is_frame(source):
        frame, source, encoder, y = _split_frame(source, y, label)
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
    return Loaded(made, {}, own, y, encoder, None if frame is None else frame.attrs.get(LABEL))


def _refuse_settings(given: Mapping[str, Any]) -> None:
    """Raise DataError for reader settings, InputTypeError for unknown ones: data in memory takes neither."""
    for name, value in given.items():
        if name in ("labels", "target"):
            hint = f'Type label="{value}".' if isinstance(value, str) else "Type wb.load(X, y), y being the labels."
        elif name in reader_settings():
            hint = "Leave it out, or give the path of the file."
        else:
            raise inputs.InputTypeError(unknown_name("setting", name, ("y", "label", "kind")))
        raise DataError(f"{name} is a setting of a reader of files; data in memory takes y, label and kind.\n{hint}")


def _split_anndata(source: Any, y: Any, label: str | None, layer: str | None) -> tuple[Any, Any]:
    """Return (X or a layer, labels from obs or obsm, or y) of an AnnData object; DataError if it has no such part."""
    from workbench.data.sources.anndata import labels_in, matrix_in

    source = source.to_memory() if source.isbacked else source
    try:
        return matrix_in(source, layer, "adata"), y if label is None else labels_in(source, label, "adata")
    except MissingLabelsError as error:
        raise DataError(f"{str(error).splitlines()[0]}\n{_near_label(label, [*source.obs, *source.obsm])}") from None
    except DataError as error:
        raise DataError(as_typed(str(error))) from None


def _near_label(label: Any, names: list[Any]) -> str:
    """Return what to type for labels of an AnnData object that has none called `label`."""
    close = difflib.get_close_matches(str(label), names, 1)
    return f'Type label="{(close or names)[0]}".' if names else "Type wb.load(adata, y)."


def _split_frame(source: Any, y: Any, label: str | None) -> tuple[Any, Any, Any, Any]:
    """Return (features, matrix, encoder or None, labels) of a frame.

    A label column is guessed if there is no y or label. Prints how columns were read. Raises DataError for unusable
    columns.
    """
    frame = as_pandas(source)
    has_labels = y is not None
    if y is None or label is not None:
        frame, y, why = take_label(frame, label)
        frame.attrs[LABEL] = y.name
        if why:
            inputs.say(why)
        if missing := int(y.isna().sum()):
            hint = f"{frame.attrs.get(PREPARE, '')}frame = frame[frame[{y.name!r}].notna()]"
            raise DataError(
                f"The column {y.name!r} has {format_count(missing, 'missing label')}; expected a label for each row.\n"
                f"Type {hint} to leave these rows out."
            )
    frame = with_numbers(frame)
    matrix, encoder, remark = matrix_of_frame(frame, has_labels)
    if remark:
        inputs.say(remark)
    return frame, matrix, encoder, y


__all__ = ["Loaded", "labels_as_named", "load", "receive"]
