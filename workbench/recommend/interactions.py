"""What users took, as one matrix: from frames of user, item and value, files of ratings, and matrices of any kind."""

import itertools
import mmap
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from workbench import data
from workbench.data import contract
from workbench.data.errors import DataError
from workbench.data.files.nearest import nearest_file
from workbench.data.files.opened import compression_of
from workbench.data.sources import ratings
from workbench.data.tables import dialect
from workbench.data.text import separated
from workbench.formats.arrays import computed, host_array, library_of

COLUMNS = {
    "user": (
        *("user", "user_id", "userid", "username", "customer", "customer_id"),
        *("reader", "viewer", "listener", "visitor", "member", "member_id"),
    ),
    "item": (
        *("item", "item_id", "itemid", "movieid", "movie_id", "product", "product_id", "artist", "track"),
        *("movie", "film", "book", "book_id", "isbn", "song", "song_id"),
    ),
    "value": ("value", "rating", "count", "plays", "weight", "quantity", "stars", "score"),
    "time": ("timestamp", "time", "date", "datetime", "when", "rated_at", "created_at"),
    "title": ("title", "item_title", "item_name", "name"),
}
"""Usual names of columns, in lower case; otherwise user, item and value are the first three. Without a column of items
the titles are the items."""
TABLES = (".csv", ".tsv")
"""Suffixes of text that has columns; in other text a line may also be a user and what that user took."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
MATRICES = ("npz", "matrix_market", "matlab", "anndata", "binsparse")
"""Readers of files of a matrix [users, items]."""
FIRST_TIME = 1e8
"""Numbers above it, the seconds since 1970 of the year 1973, are times in a column that has no name."""
PADDED = re.compile(rb"0[0-9](?<=[,\t\n\" ]0[0-9])")
"""A number that begins with 0: read as numbers, the ids 01 and 1 would be the same. The pattern begins with the 0
itself, which is found faster than what stands before it."""


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
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns of a frame by what they are: user, item, value, time, title; of another source none."""


def read(source: Any, negative: str = "") -> Interactions:
    """Return the interactions in a matrix, a frame, an AnnData object, a path, a `Dataset` or `Interactions`.

    Repeated pairs are summed. `negative` says why values below 0 are refused; "" takes them, and explicit zeros, too.
    Raises DataError for NaN, infinite or refused values, missing ids, and fewer than two users.
    """
    if isinstance(source, str | Path):
        source = _read_file(Path(source).expanduser())
    source = computed(source)
    if isinstance(source, Interactions):
        found = source
    elif isinstance(source, data.Dataset):
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
        found = replace(found, matrix=matrix, times=times)
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
    source = host_array(source)
    if not scipy.sparse.issparse(source):
        try:
            source = np.asarray(source)
        except ValueError as error:
            raise DataError(f"The ratings are not a matrix: {error}.\nGive rows of equal length.") from None
    if source.ndim != 2 or source.dtype.kind not in "biuf":
        raise DataError(
            f"The ratings have the shape {list(source.shape)} and the type {source.dtype}; expected a matrix "
            "[users, items] of numbers, a frame with the columns user and item, or the path of a file."
        )
    matrix = scipy.sparse.csr_array(source.astype(np.float32) if source.dtype == np.float16 else source)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    with np.errstate(over="ignore"):  # infinite values are refused
        values = matrix.data.astype(np.float32, copy=False)
    return scipy.sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def _read_file(path: Path) -> Any:
    """Return the frame in Parquet, the interactions in text, the matrix in another file, or the `Dataset` of lists."""
    import pandas

    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.{nearest_file(path)}")
    if path.suffix.lower() == ".parquet":
        return pandas.read_parquet(path)
    kind, _, _ = contract.guess_reader_options(path, {})
    if kind in MATRICES:
        return data.load(kind, path=str(path), kind="none").x
    name = path.with_suffix("").name if path.suffix.lower() in COMPRESSED else path.name
    layout = separated.layout(path)
    if not name.lower().endswith(TABLES) and ratings.has_lists(path, layout):
        return data.load("ratings", path=str(path))
    return _of_text(path, layout)


def _of_text(path: Path, layout: separated.Layout) -> Interactions:
    """Return the interactions in text of a few columns, with a header or without."""
    import pandas

    sign = separated.SIGNS[layout.separator]
    options: dict[str, Any] = {"sep": {"colons": ":", "space": r"\s+"}.get(layout.separator, sign)}
    if sign in dialect.SEPARATORS:
        known = dialect.dialect_of(path, sign)
        has_header, skipped, options["decimal"] = known.header, known.comments, known.decimal
    else:
        lines = itertools.islice(separated.lines_of(path, layout), dialect.ROWS_SEEN)
        first, *rest = [separated.fields(line.decode("utf-8"), layout.separator) for _, line in lines]
        has_header, skipped = dialect.is_header(first, rest), layout.skipped
    # An item may be called NA; pieces of a column, read one by one, could get different types.
    options |= {"skiprows": skipped, "header": 0 if has_header else None, "low_memory": False}
    try:
        frame = pandas.read_csv(path, keep_default_na=False, na_values=[""], **options)
        if layout.separator == "colons":  # between two colons there is nothing
            frame = frame.iloc[:, ::2].copy()
        known_ids = (*COLUMNS["user"], *COLUMNS["item"])
        ids = [name for place, name in enumerate(frame) if place < 2 or str(name).lower() in known_ids]
        whole = [name for name in ids if frame[name].dtype.kind in "iu"]
        if whole and _has_padded(path):
            texts = pandas.read_csv(path, usecols=whole, dtype=str, keep_default_na=False, **options)
            for name in whole:
                if texts[name].str.match(r"\s*0\d").any():
                    frame[name] = texts[name]
    except pandas.errors.ParserError as error:
        raise DataError(f"{path} cannot be read as columns of users and items: {error}") from None
    if has_header:
        return _of_frame(frame)
    frame = frame.set_axis([f"column {place + 1}" for place in range(frame.shape[1])], axis=1)
    return _of_roles(frame, _roles_by_place(frame))


def _has_padded(path: Path) -> bool:
    """Return whether a number in a file, not an empty one, begins with 0; True also if the file is compressed."""
    if compression_of(path):
        return True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return bool(PADDED.search(text))


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
    if times is None:
        # sums are float64; int32 positions halve what is sorted
        index = np.int32 if max(values.size, *shape) < 2**31 else np.int64
        pairs = users.astype(index, copy=False), items.astype(index, copy=False)
        matrix = scipy.sparse.coo_array((values, pairs), shape=shape).tocsr()
        matrix.sum_duplicates()
        return Interactions(_matrix(matrix))
    order = np.lexsort((items, users))
    users, items, values = users[order], items[order], values[order]
    starts = np.flatnonzero(np.r_[True, (users[1:] != users[:-1]) | (items[1:] != items[:-1])][: len(users)])
    latest = None if times is None or not len(starts) else np.maximum.reduceat(times[order], starts)
    sums = np.add.reduceat(values, starts) if len(starts) else values
    return Interactions(_compressed(users[starts], items[starts], sums, shape), times=latest)


def _coded(column: Any) -> tuple[np.ndarray, Any]:
    """Return (codes [rows], labels) of a column, labels sorted where they can be; the code of what is missing is -1."""
    import pandas

    try:
        return pandas.factorize(column, sort=True)
    except TypeError:  # numbers and text
        return pandas.factorize(column)


def _numbers(column: Any) -> np.ndarray:
    """Return a column of a pandas frame as float64; DataError, with the first row that is none, if it holds text."""
    import pandas

    numbers = pandas.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if (is_text := np.isnan(numbers) & column.notna().to_numpy(bool)).any():
        row = int(np.argmax(is_text))
        raise DataError(f"Row {row} has {column.iloc[row]!r} in the column {column.name!r}; expected a number.")
    return numbers


def _of_frame(frame: Any) -> Interactions:
    """Return the interactions of a frame with a row for each: user, item, and where there are such, value and time."""
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"The frame has the column {twice!r} more than once; expected different names.")
    return _of_roles(frame, _roles_by_name(frame))


def _roles_by_name(frame: Any) -> dict[str, Any]:
    """Return {role: column} of a frame by the names of its columns; user, item and value may be the first three."""
    lower = {str(name).lower(): name for name in reversed(frame.columns)}
    named = {role: lower[known[0]] for role, names in COLUMNS.items() if (known := [n for n in names if n in lower])}
    free = [name for name in frame.columns if name not in named.values()]
    for role in ("user", "item"):
        if role not in named:
            if role == "item" and "title" in named and not (free and _has_one_title(frame, free[0], named["title"])):
                named["item"] = named.pop("title")
                continue
            if not free:
                raise DataError(
                    f"The frame has the columns {list(frame.columns)}; expected user, item and, if there is one, value."
                )
            named[role] = free.pop(0)
    third = frame.columns[2] if len(frame.columns) > 2 else None
    if "value" not in named and third in free and _is_numeric(frame[third]):
        named["value"] = third
    return named


def _roles_by_place(frame: Any) -> dict[str, Any]:
    """Return {role: column} of a frame without names: user, item, then a title, a value and a time, if they are there.

    Titles are text. A title that the column of items does not identify is the item.
    """
    if frame.shape[1] < 2:
        raise DataError(f"The file has {frame.shape[1]} column; expected user, item and, if there is one, value.")
    user, item, *others = frame.columns
    named = {"user": user, "item": item}
    numbers = [name for name in others if _is_numeric(frame[name])]
    if texts := [name for name in others if name not in numbers]:
        is_known = frame[item].notna().all() and _has_one_title(frame, item, texts[0])
        named["title" if is_known else "item"] = texts[0]
    times = [name for name in numbers[1:] if frame[name].min() > FIRST_TIME]
    return named | dict(zip(("value", "time"), [*numbers[:1], *times[:1]], strict=False))


def _is_numeric(column: Any) -> bool:
    """Return whether a column of a frame holds numbers."""
    import pandas

    return pandas.api.types.is_numeric_dtype(column)


def _of_roles(frame: Any, named: Mapping[str, Any]) -> Interactions:
    """Return the interactions of a frame whose columns are {role: column}."""
    import pandas

    codes, labels = [], []
    for role in ("user", "item"):
        code, label = _coded(frame[named[role]])
        if (code < 0).any():
            raise DataError(f"Row {int(np.argmin(code))} has no {role} in the column {named[role]!r}; expected an id.")
        codes.append(code.astype(np.int32 if len(label) < 2**31 else np.int64))
        labels.append(np.asarray(label))
    values = np.ones(len(frame)) if "value" not in named else _numbers(frame[named["value"]])
    times = None
    if "time" in named:
        column = frame[named["time"]]
        if not pandas.api.types.is_numeric_dtype(column):
            try:
                column = pandas.to_datetime(column)
            except ValueError as error:
                raise DataError(f"The column {named['time']!r} holds no times: {error}; expected times.") from None
        if column.isna().any():
            raise DataError(f"Row {int(np.argmax(column.isna()))} has no time in the column {named['time']!r}.")
        times = column.astype("int64" if column.dtype.kind == "M" else "float64").to_numpy(np.float64)
    found = _of_pairs(codes[0], codes[1], values, (len(labels[0]), len(labels[1])), times)
    titles = None
    if "title" in named:
        titles = np.empty(len(labels[1]), object)
        titles[codes[1]] = frame[named["title"]].to_numpy()
        titles = titles.astype(str)
    columns = {role: str(named[role]) for role in COLUMNS if role in named}
    return Interactions(found.matrix, labels[0], labels[1], found.times, titles, columns)


def _has_one_title(frame: Any, item: Any, title: Any) -> bool:
    """Return whether all rows with a value in the column `item` have the same title, so that it may identify items."""
    return bool((frame.groupby(item)[title].nunique() <= 1).all())


def positions(labels: np.ndarray | None, count: int, asked: Any, what: str) -> np.ndarray:
    """Return the positions int64 of labels, by themselves if there are none. Raises DataError for an unknown one."""
    import pandas

    given = pandas.Index(list(asked) if np.iterable(asked) and not isinstance(asked, str | bytes) else [asked])
    if labels is not None:
        found = pandas.Index(labels).get_indexer(given).astype(np.int64)
        expected = f"one of {count}, such as {labels[:3].tolist()}"
    else:
        expected = f"a position from 0 to {count - 1}"
        is_position = given.dtype.kind in "iu"
        found = given.to_numpy().astype(np.int64) if is_position else np.full(len(given), -1)
    if (is_wrong := (found < 0) | (found >= count)).any():
        raise DataError(f"Unknown {what} {given[is_wrong].tolist()[0]!r}; expected {expected}.")
    return found
