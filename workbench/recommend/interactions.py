"""What users took, as one matrix: from frames of user, item and value, files of ratings, and matrices of any kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from workbench import data
from workbench.data.errors import DataError
from workbench.formats.arrays import library_of

COLUMNS = {
    "user": ("user", "user_id", "userid", "username", "customer", "customer_id"),
    "item": ("item", "item_id", "itemid", "movieid", "movie_id", "product", "product_id", "artist", "track"),
    "value": ("value", "rating", "count", "plays", "weight", "quantity"),
    "time": ("timestamp", "time", "date", "datetime"),
    "title": ("title", "item_title", "item_name", "name"),
}
"""Usual names of columns, in lower case; otherwise user, item and value are the first three."""
TABLES = (".csv", ".tsv", ".parquet")
"""Suffixes of files that are read as frames, with a header."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """Entries [users, items] in CSR form, each pair once; labels of rows and columns (None: their positions).

    `times` [entries] are the latest of each pair, in the order of the entries; `titles` [items] are texts.
    """

    matrix: scipy.sparse.csr_array
    users: np.ndarray | None = None
    items: np.ndarray | None = None
    times: np.ndarray | None = None
    titles: np.ndarray | None = None


def read(source: Any, negative: str = "") -> Interactions:
    """Return the interactions in a matrix, a frame, an AnnData object, a path of ratings or a `Dataset` of these.

    Repeated pairs are summed. `negative` says why values below 0 are refused; "" takes them, and explicit zeros, too.
    Raises DataError for NaN, infinite or refused values, missing ids, and fewer than two users.
    """
    if isinstance(source, str | Path):
        source = _read_file(Path(source).expanduser())
    if isinstance(source, data.Dataset):
        found = _of_dataset(source)
    elif library_of(source) == "anndata":
        found = Interactions(_matrix(source.X), source.obs_names.to_numpy(), source.var_names.to_numpy())
    elif hasattr(source, "to_pandas") and hasattr(source, "columns"):
        found = _of_frame(source.to_pandas())
    elif hasattr(source, "iloc") and hasattr(source, "columns"):
        found = _of_frame(source)
    else:
        found = Interactions(_matrix(source))
    values = found.matrix.data
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"Entry {place} of the ratings is {values[place]}; expected finite numbers.")
    if negative and values.size and (least := values.min()) < 0:
        raise DataError(f"A value of the ratings is {least:g}; {negative}")
    if negative and not values.all():  # nothing was taken
        kept = values != 0
        rows = np.repeat(np.arange(found.matrix.shape[0]), np.diff(found.matrix.indptr))[kept]
        matrix = _compressed(rows, found.matrix.indices[kept], values[kept], found.matrix.shape)
        times = None if found.times is None else found.times[kept]
        found = Interactions(matrix, found.users, found.items, times, found.titles)
    return found


def require_users(found: Interactions) -> None:
    """Raise DataError unless there are two users or more, an item and an entry."""
    users, items = found.matrix.shape
    if users < 2 or items < 1 or not found.matrix.nnz:
        raise DataError(
            f"The ratings have {users} users, {items} items and {found.matrix.nnz} entries; expected at least 2 users, "
            "1 item and 1 entry."
        )


def _compressed(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> Any:
    """Return float32 values at sorted, distinct (row, column) as a CSR array with int32 or int64 indices."""
    index = np.int32 if max(values.size, *shape) < 2**31 else np.int64
    starts = np.concatenate(([0], np.bincount(rows, minlength=shape[0]).cumsum())).astype(index)
    return scipy.sparse.csr_array((values.astype(np.float32), columns.astype(index), starts), shape=shape)


def _matrix(source: Any) -> Any:
    """Return a matrix [users, items] as canonical float32 CSR, a new one unless it is that; DataError if it is none."""
    if not scipy.sparse.issparse(source):
        source = np.asarray(source)
        if source.ndim != 2 or source.dtype.kind not in "biuf":
            raise DataError(
                f"The ratings have the shape {list(source.shape)} and the type {source.dtype}; expected a matrix "
                "[users, items] of numbers, a frame with the columns user and item, or the path of a file."
            )
    matrix = scipy.sparse.csr_array(source)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return scipy.sparse.csr_array(
        (matrix.data.astype(np.float32, copy=False), matrix.indices, matrix.indptr), shape=matrix.shape
    )


def _read_file(path: Path) -> Any:
    """Return the frame in a CSV, TSV or Parquet file, or the `Dataset` in another file of ratings."""
    import pandas

    if path.suffix.lower() not in TABLES:
        return data.load("ratings", path=str(path))
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.suffix.lower() == ".parquet":
        return pandas.read_parquet(path)
    return pandas.read_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")


def _of_dataset(dataset: data.Dataset) -> Interactions:
    """Return the interactions of a data set of ratings, whose rows have a user and an item one-hot."""
    fields = dataset.facts.get("fields", ())
    if len(fields) != 2:
        raise DataError(f"The data set {dataset.name} has no users and items; expected ratings.")
    pairs = dataset.x.tocsr().indices.reshape(-1, 2)
    values, ids = np.asarray(dataset.y, np.float64), dataset.facts.get("reread", {})
    found = _of_pairs(pairs.min(axis=1), pairs.max(axis=1) - fields[0], values, tuple(fields))
    users, items = (np.asarray(ids[name]) if ids.get(name) else None for name in ("user_ids", "item_ids"))
    return Interactions(found.matrix, users, items)


def _of_pairs(
    users: np.ndarray, items: np.ndarray, values: np.ndarray, shape: tuple[int, int], times: np.ndarray | None = None
) -> Interactions:
    """Return interactions from positions of users and items, values and times [pairs]; repeated pairs are summed."""
    order = np.lexsort((items, users))
    users, items, values = users[order], items[order], values[order]
    starts = np.flatnonzero(np.r_[True, (users[1:] != users[:-1]) | (items[1:] != items[:-1])][: len(users)])
    latest = None if times is None or not len(starts) else np.maximum.reduceat(times[order], starts)
    sums = np.add.reduceat(values, starts) if len(starts) else values
    return Interactions(_compressed(users[starts], items[starts], sums, shape), times=latest)


def _of_frame(frame: Any) -> Interactions:
    """Return the interactions of a frame with a row for each: user, item, and where there are such, value and time."""
    import pandas

    lower = {str(name).lower(): name for name in reversed(frame.columns)}
    named = {role: lower[known[0]] for role, names in COLUMNS.items() if (known := [n for n in names if n in lower])}
    free = [name for name in frame.columns if name not in named.values()]
    for role in ("user", "item"):
        if role not in named:
            if not free:
                raise DataError(
                    f"The frame has the columns {list(frame.columns)}; expected user, item and, if there is one, value."
                )
            named[role] = free.pop(0)
    if "value" not in named and free and pandas.api.types.is_numeric_dtype(frame[free[0]]):
        named["value"] = free[0]
    codes, labels = [], []
    for role in ("user", "item"):
        code, label = pandas.factorize(frame[named[role]], sort=True)
        if (code < 0).any():
            raise DataError(f"Row {int(np.argmin(code))} has no {role} in the column {named[role]!r}; expected an id.")
        codes.append(code.astype(np.int64))
        labels.append(np.asarray(label))
    values = np.ones(len(frame)) if "value" not in named else frame[named["value"]].to_numpy(np.float64)
    times = None
    if "time" in named:
        column = frame[named["time"]]
        if not pandas.api.types.is_numeric_dtype(column):
            column = pandas.to_datetime(column).astype("int64")
        times = column.to_numpy(np.float64)
    found = _of_pairs(codes[0], codes[1], values, (len(labels[0]), len(labels[1])), times)
    titles = None
    if "title" in named:
        titles = np.empty(len(labels[1]), object)
        titles[codes[1]] = frame[named["title"]].to_numpy()
        titles = titles.astype(str)
    return Interactions(found.matrix, labels[0], labels[1], found.times, titles)


def positions(labels: np.ndarray | None, count: int, asked: Any, what: str) -> np.ndarray:
    """Return the positions int64 of labels, by themselves if there are none. Raises DataError for an unknown one."""
    given = np.atleast_1d(np.asarray(asked))
    if labels is None:
        wrong = given[(given < 0) | (given >= count)] if given.dtype.kind in "iu" else given
        if wrong.size:
            raise DataError(f"Unknown {what} {wrong[0].item()!r}; expected a position from 0 to {count - 1}.")
        return given.astype(np.int64)
    order = np.argsort(labels, kind="stable")
    try:
        found = order[np.minimum(np.searchsorted(labels, given, sorter=order), count - 1)]
        is_wrong = labels[found] != given
    except TypeError:
        found, is_wrong = np.zeros(len(given), np.int64), np.ones(len(given), bool)
    if is_wrong.any():
        some: Sequence[Any] = labels[:3].tolist()
        raise DataError(f"Unknown {what} {given[is_wrong][0].item()!r}; expected one of {count}, such as {some}.")
    return found
