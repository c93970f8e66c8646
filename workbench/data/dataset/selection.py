"""Parts of a data set: fewer rows, fewer features, another order, a held-out part."""

import dataclasses

import numpy as np
import scipy.sparse

import kernels
from workbench.data.dataset.record import Dataset, StoredRows
from workbench.data.errors import DataError
from workbench.data.labels.meaning import some_of_each_class
from workbench.formats.compressed import assemble, kept_or_widened

# Other classes: the rarest of them as one, for a model with fewer outputs, and another one as the positive one.


def merge_rare_classes(dataset: Dataset, width: int) -> Dataset:
    """Return the data set with at most `width` classes: the most frequent keep name and order, the others become the
    last one.

    The last class is called after how many it stands for, and `labels.merged` names them. Do this before `split`, so
    that both parts have the same classes; `load(..., like=merged_set)` reads a second file so. The positive class is
    kept. A set that has no more classes than that is given back. Refused (`DataError`): a width below 2, and labels
    that are not one class a row.
    """
    if dataset.kind != "classes":
        raise DataError(f"{dataset.name} has {dataset.labels}; only classes, one a row, can be merged.")
    if width < 2:
        raise DataError(f"width is {width}; merging leaves two classes or more.")
    classes = dataset.classes
    if width >= len(classes):
        return dataset
    counts = np.bincount(dataset.y, minlength=len(classes)).astype(np.float64)
    if dataset.labels.positive is not None:
        counts[classes.index(dataset.labels.positive)] = np.inf
    kept = np.sort(np.argsort(-counts, kind="stable")[: width - 1])
    number_of = np.full(len(classes), width - 1)
    number_of[kept] = np.arange(width - 1)
    return _renumber_classes(dataset, kept, number_of)


def with_positive(dataset: Dataset, positive: str) -> Dataset:
    """Return the data set with another positive class; raises DataError if there is no such class."""
    return dataclasses.replace(dataset, labels=dataclasses.replace(dataset.labels, positive=positive))


def _renumber_classes(dataset: Dataset, kept: np.ndarray, number_of: np.ndarray) -> Dataset:
    """Return the data set with labels numbered by `number_of` [classes]; classes that are not kept become "other"."""
    labels = dataset.labels
    names = tuple(labels.classes[number] for number in kept)
    rare = tuple(name for name, number in zip(labels.classes, number_of, strict=True) if number == len(kept))
    if labels.merged and labels.classes[-1] in rare:  # merged before: its last class stands for others already
        rare = (*(name for name in rare if name != labels.classes[-1]), *labels.merged)
    positive = labels.positive or (names[0] if len(names) == 1 else None)
    last = f"other ({len(rare)} classes)"
    fewer = dataclasses.replace(labels, classes=(*names, last), positive=positive, merged=rare)
    return dataclasses.replace(dataset, y=number_of[dataset.y], labels=fewer)


def take(dataset: Dataset, rows: np.ndarray) -> Dataset:
    """Return rows by index, and the edges among them. O(entries taken).

    Parameters
    ----------
    dataset : Dataset
        Data set to take from. Of stored rows only consecutive ones can be taken; nothing is read.
    rows : ndarray
        Indices of rows, int [R], in the order of the result.

    Returns
    -------
    Dataset
        The rows, with their labels and groups.

    Examples
    --------
    >>> from workbench import data
    >>> dataset = data.load("uniform", rows=10, features=4, density=0.5, seed=0)
    >>> data.take(dataset, [3, 1]).rows
    2
    """
    x = dataset.x
    if isinstance(x, StoredRows) and len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return rows_between(dataset, int(rows[0]), int(rows[0]) + len(rows))
    cut = kernels.get("slice_rows").trusted
    assert cut is not None  # it has a CPU implementation
    indptr, indices, data = cut(x.indptr, x.indices, x.data, np.asarray(rows, np.int64))
    x = assemble("csr", indptr, indices, data, (len(rows), dataset.features))
    groups = None if dataset.groups is None else dataset.groups[rows]
    graph = None if dataset.graph is None else subgraph(dataset.graph, rows)
    return dataclasses.replace(dataset, x=x, y=dataset.y[rows], groups=groups, graph=graph)


def subgraph(graph: scipy.sparse.csr_array, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return the edges among the nodes of those numbers, int [n], renumbered in that order: graph[rows][:, rows]."""
    part = graph[rows][:, rows]
    part.sort_indices()
    return part


def rows_between(dataset: Dataset, start: int, stop: int) -> Dataset:
    """Return consecutive rows; they share memory with the data set, and of stored rows nothing is read. O(rows).

    Parameters
    ----------
    dataset : Dataset
        Data set to take from.
    start, stop : int
        First row, and the row after the last one.

    Returns
    -------
    Dataset
        The rows, with their labels and groups.

    Examples
    --------
    >>> from workbench import data
    >>> dataset = data.load("uniform", rows=10, features=4, density=0.5, seed=0)
    >>> data.rows_between(dataset, 2, 5).rows
    3
    """
    groups = None if dataset.groups is None else dataset.groups[start:stop]
    graph = None if dataset.graph is None else subgraph(dataset.graph, np.arange(start, stop))
    x = dataset.x.between(start, stop) if isinstance(dataset.x, StoredRows) else _between(dataset.x, start, stop)
    return dataclasses.replace(dataset, x=x, y=dataset.y[start:stop], groups=groups, graph=graph)


def _between(x: scipy.sparse.csr_array, start: int, stop: int) -> scipy.sparse.csr_array:
    """Return rows start to stop of a csr array, over its memory."""
    indptr = x.indptr[start : stop + 1]
    entries = slice(int(indptr[0]), int(indptr[-1]))
    return assemble("csr", indptr - indptr[0], x.indices[entries], x.data[entries], (stop - start, x.shape[1]))


def keep_rows(dataset: Dataset, n: int, seed: int = 0) -> Dataset:
    """Return some rows drawn at random, in the order they had.

    Parameters
    ----------
    dataset : Dataset
        Data set to draw from. Of stored rows, which are shuffled, the first ones are kept.
    n : int
        Count of rows.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    Dataset
        The rows, with their labels and groups.

    Raises
    ------
    DataError
        If the data set has fewer rows, or rows that were stored without being shuffled.

    Examples
    --------
    >>> from workbench import data
    >>> dataset = data.load("uniform", rows=10, features=4, density=0.5, seed=0)
    >>> data.keep_rows(dataset, 3).rows
    3
    """
    _check_count("rows", n, dataset.rows)
    if isinstance(dataset.x, StoredRows):
        _refuse_stored_order(dataset.x)
        return rows_between(dataset, 0, n)
    return take(dataset, np.sort(np.random.default_rng(seed).permutation(dataset.rows)[:n]))


def shuffle_rows(dataset: Dataset, seed: int = 0) -> Dataset:
    """Return all rows in random order, so that contiguous mini-batches mix classes.

    Parameters
    ----------
    dataset : Dataset
        Data set in memory.
    seed : int, default 0
        Seed of the order.

    Returns
    -------
    Dataset
        The rows in another order, with their labels and groups.

    Examples
    --------
    >>> from workbench import data
    >>> dataset = data.load("uniform", rows=10, features=4, density=0.5, seed=0)
    >>> data.shuffle_rows(dataset, seed=1).rows
    10
    """
    return take(dataset, np.random.default_rng(seed).permutation(dataset.rows))


def keep_features(dataset: Dataset, k: int) -> Dataset:
    """Return the columns that are stored in the most rows, in the order they had. O(nnz + features).

    Rows may become empty, and stay. Do this before `split`, or the parts keep different columns. No second file
    can be read `like` the result, whose columns have other indices.

    Parameters
    ----------
    dataset : Dataset
        Data set in memory.
    k : int
        Count of columns; ties go to the earlier column.

    Returns
    -------
    Dataset
        All rows with `k` columns; `facts` names the columns kept.

    Raises
    ------
    DataError
        If the data set has fewer columns.

    Examples
    --------
    >>> from workbench import data
    >>> dataset = data.load("uniform", rows=10, features=4, density=0.5, seed=0)
    >>> data.keep_features(dataset, 2).features
    2
    """
    _check_count("features", k, dataset.features)
    x = dataset.x
    counts = np.bincount(x.indices, minlength=dataset.features)
    kept = np.sort(np.argsort(-counts, kind="stable")[:k])
    number = np.full(dataset.features, -1, x.indices.dtype)
    number[kept] = np.arange(k)
    indices = number[x.indices]
    of_columns = {"features_kept": k, "features_before": dataset.features, "columns_kept": kept.tolist()}
    facts = dataset.facts if k == dataset.features else {**dataset.facts, **of_columns}
    if "fields" in facts:
        of_field = np.searchsorted(np.cumsum(facts["fields"]), kept, side="right")
        facts = {**facts, "fields": np.bincount(of_field, minlength=len(facts["fields"])).tolist()}
    return dataclasses.replace(dataset, x=with_entries(x, indices >= 0, indices, (dataset.rows, k)), facts=facts)


def with_entries(
    x: scipy.sparse.csr_array, mask: np.ndarray, indices: np.ndarray, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """Return the entries of `x` where `mask`, bool [nnz], is true, with `indices`, int [nnz], for its own."""
    before = np.concatenate([[0], np.cumsum(mask)])  # int64 [nnz + 1]
    dtype = kept_or_widened(x.indices.dtype, before[-1])
    return assemble("csr", before[x.indptr].astype(dtype), indices[mask].astype(dtype), x.data[mask], shape)


def split(dataset: Dataset, held_out: float = 0.2, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Split a data set into a part to train on and a part held out, both in random order.

    Rows of one group stay together, so that what is held out was not half seen; the share is then met to the nearest
    group. Edges from one part to the other are in neither; `split_rows` gives the rows for a training that sees them.
    If `facts` has `trained_per_class`, that many rows of each class are trained on, whatever the share.

    Parameters
    ----------
    dataset : Dataset
        Data set to split. Of stored rows, which were shuffled when they were converted, the last share is held out.
    held_out : float, default 0.2
        Share of rows held out, above 0 and below 1, met to the nearest row.
    seed : int, default 0
        Seed of the order; without effect on stored rows.

    Returns
    -------
    tuple of Dataset
        The rows to train on, and those held out.

    Raises
    ------
    DataError
        If a part would be empty, or rows were stored without being shuffled.

    Examples
    --------
    >>> from workbench import data
    >>> dataset = data.load("uniform", rows=10, features=4, density=0.5, seed=0)
    >>> [part.rows for part in data.split(dataset, held_out=0.3)]
    [7, 3]
    """
    train, test = split_rows(dataset, held_out, seed)
    return take(dataset, train), take(dataset, test)


def split_rows(dataset: Dataset, held_out: float = 0.2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the rows of both parts of `split`, int64."""
    if not 0 < held_out < 1:
        raise DataError(f"held_out is {held_out}; it is a share of the rows, above 0 and below 1, such as 0.2.")
    if (per_class := dataset.facts.get("trained_per_class")) is not None:
        return some_of_each_class(dataset.kind, dataset.y, per_class, seed)
    if isinstance(dataset.x, StoredRows):
        _refuse_stored_order(dataset.x)
        order = np.arange(dataset.rows)[::-1]
        cut = dataset.rows - _count_held_out(dataset, order, held_out)
        return order[::-1][:cut], order[::-1][cut:]
    order = np.random.default_rng(seed).permutation(dataset.rows)
    if dataset.groups is not None:
        order = _by_group(dataset.groups, order)
    cut = _count_held_out(dataset, order, held_out)
    test, train = order[:cut], order[cut:]
    if dataset.groups is not None:  # mix the rows of different groups again
        rng = np.random.default_rng((seed, 1))
        test, train = rng.permutation(test), rng.permutation(train)
    return train, test


def _count_held_out(dataset: Dataset, order: np.ndarray, held_out: float) -> int:
    """Return the number of rows of the order that are held out.

    The share to the nearest row, or the nearest border of groups.
    """
    cut = round(held_out * dataset.rows)
    if dataset.groups is not None and dataset.rows:
        borders = np.flatnonzero(np.diff(dataset.groups[order])) + 1
        cut = int(borders[np.argmin(np.abs(borders - cut))]) if len(borders) else 0
    if not 0 < cut < dataset.rows:
        what = "rows" if dataset.groups is None else "groups of rows"
        raise DataError(f"{dataset.rows} rows cannot be split with held_out={held_out}: too few {what} for two parts.")
    return cut


def _refuse_stored_order(x: StoredRows) -> None:
    """Raise DataError if stored rows were not shuffled when they were written."""
    if not x.is_shuffled:
        advice = "Convert it with shuffle, a seed"
        raise DataError(f"{x.place} stands in the order it came in: a part of it may be unlike the rest. {advice}.")


def _by_group(groups: np.ndarray, order: np.ndarray) -> np.ndarray:
    """`order` rearranged so that rows of a group follow each other, groups in the order of their first row."""
    _, first, inverse = np.unique(groups[order], return_index=True, return_inverse=True)
    return order[np.argsort(first[inverse], kind="stable")]


def _check_count(what: str, count: int, total: int) -> None:
    """Raise DataError unless 1 <= count <= total; `what` names rows or features in the message."""
    if not 1 <= count <= total:
        raise DataError(f"{count} {what} are asked for; the data set has {total}, so 1 to {total} can be kept.")
