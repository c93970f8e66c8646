"""Parts of a data set: fewer rows or features, another order, a held-out part, another density."""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

import kernels
from kernels.registry import format_count
from workbench.data.batches.slicing import gather_rows, slice_range
from workbench.data.dataset.record import Dataset, StoredRows
from workbench.data.errors import DataError
from workbench.data.labels import some_of_each_class
from workbench.formats.compressed import assemble, index_dtype, kept_or_widened

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
    """Return the data set with `positive`, a class name, as its positive class; DataError if there is no such class."""
    return dataclasses.replace(dataset, labels=dataclasses.replace(dataset.labels, positive=positive))


def _renumber_classes(dataset: Dataset, kept: np.ndarray, number_of: np.ndarray) -> Dataset:
    """Return the data set with labels `number_of[y]`; classes not in `kept` become the last one, "other (N classes)".

    `number_of` is int [classes], `kept` the old indices of the classes kept, in new order.
    """
    labels = dataset.labels
    names = tuple(labels.classes[number] for number in kept)
    rare = tuple(name for name, number in zip(labels.classes, number_of, strict=True) if number == len(kept))
    if labels.merged and labels.classes[-1] in rare:  # merged before: its last class stands for others already
        rare = (*(name for name in rare if name != labels.classes[-1]), *labels.merged)
    positive = labels.positive or (names[0] if len(names) == 1 else None)
    last = f"other ({format_count(len(rare), 'class')})"
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
    x = gather_rows("csr", x, np.asarray(rows, np.int64))
    groups = None if dataset.groups is None else dataset.groups[rows]
    graph = None if dataset.graph is None else subgraph(dataset.graph, rows)
    return dataclasses.replace(dataset, x=x, y=dataset.y[rows], groups=groups, graph=graph)


def subgraph(graph: scipy.sparse.csr_array, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return graph[rows][:, rows], indices sorted: the edges among the nodes `rows`, int [n], renumbered."""
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
    x = dataset.x
    x = x.between(start, stop) if isinstance(x, StoredRows) else slice_range("csr", x, start, stop)
    return dataclasses.replace(dataset, x=x, y=dataset.y[start:stop], groups=groups, graph=graph)


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
    """Return the entries of CSR `x` where `mask`, bool [nnz], is true, with the columns `indices`, int [nnz].

    `x` is unchanged. The columns are not sorted or checked against `shape`.
    """
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
    """Return (rows to train on, rows held out) of `split` as int64 indices.

    Raises DataError if `held_out` is not between 0 and 1, a part would be empty, or stored rows are not shuffled.
    """
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
        _, first, inverse = np.unique(dataset.groups[order], return_index=True, return_inverse=True)
        order = order[np.argsort(first[inverse], kind="stable")]  # rows of a group adjacent, groups by their first row
    cut = _count_held_out(dataset, order, held_out)
    test, train = order[:cut], order[cut:]
    if dataset.groups is not None:  # mix the rows of different groups again
        rng = np.random.default_rng((seed, 1))
        test, train = rng.permutation(test), rng.permutation(train)
    return train, test


def _count_held_out(dataset: Dataset, order: np.ndarray, held_out: float) -> int:
    """Return how many rows of `order` are held out: the share `held_out` to the nearest row, or border of groups.

    `order` is int [rows]; rows of a group follow each other in it. Raises DataError if a part would be empty.
    """
    cut = round(held_out * dataset.rows)
    if dataset.groups is not None and dataset.rows:
        borders = np.flatnonzero(np.diff(dataset.groups[order])) + 1
        cut = int(borders[np.argmin(np.abs(borders - cut))]) if len(borders) else 0
    if not 0 < cut < dataset.rows:
        what = "rows" if dataset.groups is None else "groups of rows"
        raise DataError(
            f"{format_count(dataset.rows, 'row')} cannot be split with held_out={held_out}: "
            f"too few {what} for two parts.\n"
            "Give more rows, or type --held-out 0 to 'workbench train', which then trains on all of them."
        )
    return cut


def _refuse_stored_order(x: StoredRows) -> None:
    """Raise DataError if stored rows were not shuffled when they were written."""
    if not x.is_shuffled:
        advice = "Convert it with shuffle, a seed"
        raise DataError(f"{x.place} stands in the order it came in: a part of it may be unlike the rest. {advice}.")


def _check_count(what: str, count: int, total: int) -> None:
    """Raise DataError unless 1 <= count <= total; `what` ("rows" or "features") names them in the message."""
    if not 1 <= count <= total:
        raise DataError(f"{count} {what} are asked for; the data set has {total}, so 1 to {total} can be kept.")


PARTS_OF_NUMBERS = 8
"""Parts, equal in rows, that numbers are ranked into where rows of like labels are joined."""

ENTRIES_AT_ONCE = 2**22
"""Entries that are thinned at a time: bounds the memory in addition to the result."""


def with_density(dataset: Dataset, density: float, seed: int = 0) -> Dataset:
    """Return the data set with exactly this density, up to rounding of the number of entries, with the same number of
    rows.

    Each row's length is scaled by the same factor, up or down to a whole number, so the lengths keep their coefficient
    of variation; it changes where rows are cut to one or no entry, or would need more columns than can be joined, and
    `facts` has both, `row_length_cv_natural` and `row_length_cv`. Row i keeps its labels and its group.

    Below the natural density, a row keeps entries spread evenly over it from a random start, each with the same
    chance, values as they were. Above it, a row is joined with random rows of its label, twice as many each time, until
    it is long enough, and then thinned: its columns are stored in some of these rows, a value is in
    proportion to their sum, and the row has the 2-norm it had, so that one learning rate serves all densities. The
    same rows are drawn again and again: rows of a dense set resemble each other. Rows of one label are those of the
    same class; of several classes, those with the same most frequent one; of numbers, those whose number, or mean of
    numbers, is in the same eighth of the rows.

    Refused (`DataError`): a density outside (0, 1], and a density that all rows of a label together do not reach; the
    message says the highest. O(nnz + entries made * log of the rows joined), memory about four times the result.
    """
    if not 0 < density <= 1:
        raise DataError(f"density is {density}; it is nnz / size, above 0 and at most 1.")
    x, count = dataset.x, round(density * dataset.rows * dataset.features)
    if count == x.nnz:
        return dataset
    own, random = np.diff(x.indptr).astype(np.int64), np.random.default_rng(seed)
    facts: dict[str, Any] = {}
    if count < x.nnz:
        made = _thin_rows(x, _scale_lengths(own, own, count, random), random)
    else:
        labels, unions = _unions(dataset)
        most = np.where(own > 0, np.diff(unions.indptr)[labels], 0)
        if count > most.sum():
            highest = int(most.sum()) / (dataset.rows * dataset.features)
            raise DataError(
                f"{dataset.name} cannot reach density {density}: with all rows of their label joined, rows reach "
                f"{highest:.4g} at most. Ask for less, or keep fewer features."
            )
        made, facts["rows_joined"] = _join_rows(x, labels, unions, _scale_lengths(own, most, count, random), random)
    facts |= {"row_length_cv_natural": _variation(own), "row_length_cv": _variation(np.diff(made.indptr))}
    return dataclasses.replace(dataset, x=made, facts={**dataset.facts, **facts})


def _variation(lengths: np.ndarray) -> float:
    """Return the coefficient of variation of row lengths [rows]: standard deviation / mean; 0.0 if all are 0."""
    return float(lengths.std() / lengths.mean()) if lengths.any() else 0.0


def _label_of_rows(dataset: Dataset) -> np.ndarray:
    """Return the index, from 0, of the label that rows must share to be joined, int64 [rows].

    Multilabel rows count by their most frequent class, numbers by the eighth of the rows that their rank is in.
    """
    y = dataset.y
    if dataset.kind == "multilabel":
        frequent = np.argsort(-y.sum(0, dtype=np.int64), kind="stable")
        y = np.where(y.any(1), y[:, frequent].argmax(1), -1)
    elif dataset.kind == "numbers":
        ranks = np.argsort(np.argsort(y if y.ndim == 1 else y.mean(1), kind="stable"))
        y = ranks * PARTS_OF_NUMBERS // max(len(y), 1)
    return np.unique(y, return_inverse=True)[1]


def _unions(dataset: Dataset) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """Return (label index of each row [rows], mean of the rows of each label, CSR [labels, features])."""
    labels = _label_of_rows(dataset)
    counts = np.bincount(labels)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return labels, _means(dataset.x, starts, np.argsort(labels, kind="stable"), np.repeat(1 / counts, counts))


def _means(x: scipy.sparse.csr_array, starts: np.ndarray, rows: np.ndarray, weights: np.ndarray):
    """Return CSR row i as the weighted sum of the rows rows[starts[i]:starts[i + 1]] of `x`.

    `weights` belong to `rows`. Entries that cancel to 0 stay stored.
    """
    index = x.indptr.dtype
    product: Any = kernels.get("csr_csr").trusted
    indptr, indices, data = product(
        *(starts.astype(index), rows.astype(index), weights.astype(x.dtype)), *(x.indptr, x.indices, x.data)
    )
    return assemble("csr", indptr, indices, data, (len(starts) - 1, x.shape[1]))


def _scale_lengths(own: np.ndarray, most: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Return row lengths proportional to `own`, at most `most`, that sum to `count`, int64 [rows].

    Rows that would exceed `most` get `most`, and the factor grows for the others. Rounding starts at a random offset,
    in integers, since float rounding could give a row more than there is.
    """
    rows = np.flatnonzero(own)
    rows = rows[np.argsort(most[rows] / own[rows], kind="stable")]
    entries_left = own.sum() - np.cumsum(own[rows]) + own[rows]
    count_left = count - np.cumsum(most[rows]) + most[rows]
    fits = own[rows] * count_left <= most[rows] * entries_left
    full = int(fits.argmax()) if fits.any() else len(rows)
    lengths = np.zeros(len(own), np.int64)
    lengths[rows[:full]] = most[rows[:full]]
    if full < len(rows):
        rest, whole = np.sort(rows[full:]), int(entries_left[full])
        reached = np.cumsum(own[rest]) * int(count_left[full]) + int(random.integers(whole))
        lengths[rest] = np.diff(reached // whole, prepend=0)
    return lengths


def _thin_rows(x: scipy.sparse.csr_array, lengths: np.ndarray, random: np.random.Generator) -> scipy.sparse.csr_array:
    """Return `x` with lengths[i] entries in row i, each entry kept with the same chance. O(nnz).

    `lengths` int64 [rows] must not exceed the stored ones. Systematic sampling (Madow 1949): of c entries the r-th is
    kept if (r * length + start) mod c < length.
    """
    own, kind = np.diff(x.indptr), index_dtype(x.shape[1] ** 2, x.nnz)  # of all that is computed here
    starts = random.integers(0, np.maximum(own, 1)).astype(kind)
    places = np.arange(x.nnz, dtype=kind) - np.repeat(x.indptr[:-1].astype(kind), own)
    kept = np.repeat(lengths.astype(kind), own)
    places *= kept
    places += np.repeat(starts, own)
    places %= np.repeat(own.astype(kind), own)
    return with_entries(x, places < kept, x.indices, x.shape)


def _join_rows(x, labels, unions, lengths, random) -> tuple[scipy.sparse.csr_array, int]:
    """Return (CSR whose row i has lengths[i] entries, the most rows joined into one).

    Rows of `x` are averaged with random rows of the same label, twice as many each round, until long enough, then
    thinned and scaled to their former 2-norm. `labels` int [rows]; `unions` CSR [labels, features].
    """
    made, norms, of_label = _room(x, lengths), _norms(x), np.bincount(labels)
    rows, doubled, joined, most = np.arange(x.shape[0]), x, 1, 1
    while len(rows):
        enough = np.diff(doubled.indptr) >= lengths[rows]
        spent = ~enough & (joined >= of_label[labels[rows]])  # what is left to join is all rows of the label
        for source, of_source, ended in (
            (doubled, np.flatnonzero(enough), rows[enough]),
            (unions, labels[rows[spent]], rows[spent]),
        ):
            for part in _parts(np.diff(source.indptr)[of_source]):
                numbers = ended[part]
                piece = _thin_rows(gather_rows("csr", source, of_source[part]), lengths[numbers], random)
                _put(made, numbers, _with_norms(piece, norms[numbers]))
            most = max(most, min(joined, int(of_label[labels[ended]].max(initial=1))))
        rest = ~(enough | spent)
        rows, doubled, joined = rows[rest], gather_rows("csr", doubled, np.flatnonzero(rest)), 2 * joined
        doubled = _with_partners(doubled, labels[rows], random)
    return made, most


def _with_partners(x: scipy.sparse.csr_array, labels: np.ndarray, random: np.random.Generator):
    """Return each row averaged with the next one in a random cycle of the rows of its label.

    Alone only if it is single.
    """
    order = np.lexsort((random.random(len(labels)), labels))
    counts = np.unique(labels, return_counts=True)[1]
    ends = np.cumsum(counts)
    following = np.append(order[1:], order[:1])
    following[ends - 1] = order[ends - counts]
    pairs = np.empty((len(labels), 2), np.int64)
    pairs[order] = np.stack([order, following], axis=1)
    return _means(x, np.arange(0, pairs.size + 1, 2), pairs.ravel(), np.full(pairs.size, 0.5))


def _parts(lengths: np.ndarray) -> list[np.ndarray]:
    """Return consecutive row indices in groups of about `ENTRIES_AT_ONCE` entries, given the row lengths [rows]."""
    return np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(np.cumsum(lengths) // ENTRIES_AT_ONCE)) + 1)


def _room(x: scipy.sparse.csr_array, lengths: np.ndarray) -> scipy.sparse.csr_array:
    """Return a CSR array of the shape and dtype of `x` with these row lengths, int [rows].

    Its entries are undefined.
    """
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    index = kept_or_widened(x.indptr.dtype, int(indptr[-1]))
    entries = int(indptr[-1])
    return assemble("csr", indptr.astype(index), np.empty(entries, index), np.empty(entries, x.dtype), x.shape)


def _put(made: scipy.sparse.csr_array, numbers: np.ndarray, piece: scipy.sparse.csr_array) -> None:
    """Write the rows of `piece` over the rows `numbers` of `made`, in place; they must have the same lengths."""
    shifts = made.indptr[numbers] - piece.indptr[:-1]
    places = np.arange(piece.nnz) + np.repeat(shifts, np.diff(piece.indptr))
    made.indices[places], made.data[places] = piece.indices, piece.data


def _with_norms(x: scipy.sparse.csr_array, norms: np.ndarray) -> scipy.sparse.csr_array:
    """Scale the rows of `x` in place to the 2-norms `norms` [rows], rows of norm 0 left alone, and return it."""
    now = _norms(x)
    factors = np.divide(norms, now, out=np.ones_like(now), where=now > 0).astype(x.dtype)
    x.data *= np.repeat(factors, np.diff(x.indptr))
    return x


def _norms(x: scipy.sparse.csr_array) -> np.ndarray:
    """Return the 2-norm of each row, float64 [rows]."""
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    return np.sqrt(np.bincount(rows, x.data.astype(np.float64) ** 2, minlength=x.shape[0]))
