"""Data at another density, everything else kept: entries are dropped, or rows are joined with rows drawn anew.

Both work towards lengths drawn first: those of the rows, scaled by one factor. A row that becomes shorter keeps that
many of its entries; a row that becomes longer is joined with others until it has enough, and then keeps that many.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from workbench.data.dataset.record import Dataset
from workbench.data.dataset.selection import with_entries
from workbench.data.errors import DataError
from workbench.formats import numpy_conversions
from workbench.formats.compressed import assemble, index_dtype, kept_or_widened

PARTS_OF_NUMBERS = 8
"""Parts, equal in rows, that numbers are ranked into where rows of like labels are joined."""

ENTRIES_AT_ONCE = 2**22
"""Entries that are thinned at a time: bounds the memory beside the result."""


def with_density(dataset: Dataset, density: float, seed: int = 0) -> Dataset:
    """Return the data set with exactly this density, up to rounding of the number of entries, with the same number of
    rows.

    Each row's length is scaled by the same factor, up or down to a whole number, so the lengths keep their coefficient
    of variation; it changes where rows are cut to one or no entry, or would need more columns than can be joined, and
    `facts` has both, `row_length_cv_natural` and `row_length_cv`. Row i keeps its labels and its group.

    Below the natural density, a row keeps entries spread evenly over it from a random start, each with the same
    chance, values as they were. Above it, a row is joined with random rows of its label, twice as many each time, until
    it is long enough, and then thinned: a stored column is one that some of these rows store, its value is in
    proportion to their sum, and the row has the 2-norm it had, so that one learning rate serves all densities. The
    same rows are drawn again and again: rows of a dense set resemble each other. Rows of one label are those of the
    same class; of several classes, those with the same most frequent one; of numbers, those whose number, or mean of
    numbers, is in the same eighth of the rows.

    Refused (`DataError`): a density outside (0, 1], and one that all rows of a label together do not reach; the
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
        made = _thinned(x, _scaled(own, own, count, random), random)
    else:
        labels, unions = _unions(dataset)
        most = np.where(own > 0, np.diff(unions.indptr)[labels], 0)
        if count > most.sum():
            raise _unreachable(dataset, density, int(most.sum()))
        made, facts["rows_joined"] = _joined(x, labels, unions, _scaled(own, most, count, random), random)
    facts |= {"row_length_cv_natural": _variation(own), "row_length_cv": _variation(np.diff(made.indptr))}
    return dataclasses.replace(dataset, x=made, facts={**dataset.facts, **facts})


def highest_density(dataset: Dataset) -> float:
    """Return the most that `with_density` can reach.

    Every row that has an entry gets all columns of its label's rows.
    """
    if not dataset.x.nnz:
        return dataset.density
    labels, unions = _unions(dataset)
    most = np.diff(unions.indptr)[labels].sum(where=np.diff(dataset.x.indptr) > 0, dtype=np.int64)
    return int(most) / (dataset.rows * dataset.features)


def _unreachable(dataset: Dataset, density: float, most: int) -> DataError:
    """Return the error for a density above what joining all rows of a label reaches."""
    highest = most / (dataset.rows * dataset.features) if most else 0.0
    beyond = f"{dataset.name} cannot reach density {density}: with all rows of their label joined, rows reach"
    return DataError(f"{beyond} {highest:.4g} at most. Ask for less, or keep fewer features.")


def _variation(lengths: np.ndarray) -> float:
    """Return standard deviation / mean."""
    return float(lengths.std() / lengths.mean()) if lengths.any() else 0.0


def _label_of_rows(dataset: Dataset) -> np.ndarray:
    """Return number, from 0, of the label that rows must share to be joined, int64 [rows]."""
    y = dataset.y
    if dataset.kind == "multilabel":
        frequent = np.argsort(-y.sum(0, dtype=np.int64), kind="stable")
        y = np.where(y.any(1), y[:, frequent].argmax(1), -1)
    elif dataset.kind == "numbers":
        ranks = np.argsort(np.argsort(y if y.ndim == 1 else y.mean(1), kind="stable"))
        y = ranks * PARTS_OF_NUMBERS // max(len(y), 1)
    return np.unique(y, return_inverse=True)[1]


def _unions(dataset: Dataset) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """Return labels [rows], and of each label the mean of its rows, csr [labels, features]."""
    labels = _label_of_rows(dataset)
    counts = np.bincount(labels)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return labels, _means(dataset.x, starts, np.argsort(labels, kind="stable"), np.repeat(1 / counts, counts))


def _means(x: scipy.sparse.csr_array, starts: np.ndarray, rows: np.ndarray, weights: np.ndarray):
    """Weighted sums of the rows `rows[starts[i]:starts[i + 1]]` of x; what cancels stays stored."""
    index = x.indptr.dtype
    product: Callable = numpy_conversions.get("csr_csr", x.dtype)
    indptr, indices, data = product(
        *(starts.astype(index), rows.astype(index), weights.astype(x.dtype)), *(x.indptr, x.indices, x.data)
    )
    return assemble("csr", indptr, indices, data, (len(starts) - 1, x.shape[1]))


def _taken(x: scipy.sparse.csr_array, rows: np.ndarray) -> scipy.sparse.csr_array:
    """Return the rows `rows` of x as a new CSR array; duplicates allowed."""
    slice_rows: Callable = numpy_conversions.get("slice_rows", x.dtype)
    indptr, indices, data = slice_rows(x.indptr, x.indices, x.data, rows)
    return assemble("csr", indptr, indices, data, (len(rows), x.shape[1]))


def _scaled(own: np.ndarray, most: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Return the lengths in proportion to `own`, none above `most`, that are `count` together, int64 [rows].

    Rows that the factor would make too long get their `most`, and the factor grows for the others. In whole numbers,
    since rounding could give a row more than there is.
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


def _thinned(x: scipy.sparse.csr_array, lengths: np.ndarray, random: np.random.Generator) -> scipy.sparse.csr_array:
    """x with `lengths` entries a row, every one of the entries with the same chance. O(nnz).

    Systematic sampling (Madow 1949): of c entries the r-th is kept where (r * length + start) mod c < length.
    """
    own, kind = np.diff(x.indptr), index_dtype(x.shape[1] ** 2, x.nnz)  # of all that is computed here
    starts = random.integers(0, np.maximum(own, 1)).astype(kind)
    places = np.arange(x.nnz, dtype=kind) - np.repeat(x.indptr[:-1].astype(kind), own)
    kept = np.repeat(lengths.astype(kind), own)
    places *= kept
    places += np.repeat(starts, own)
    places %= np.repeat(own.astype(kind), own)
    return with_entries(x, places < kept, x.indices, x.shape)


def _joined(x, labels, unions, lengths, random) -> tuple[scipy.sparse.csr_array, int]:
    """Return rows joined until they have `lengths` entries and thinned to them, and the most rows that one is made
    of."""
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
                piece = _thinned(_taken(source, of_source[part]), lengths[numbers], random)
                _put(made, numbers, _with_norms(piece, norms[numbers]))
            most = max(most, min(joined, int(of_label[labels[ended]].max(initial=1))))
        rest = ~(enough | spent)
        rows, doubled, joined = rows[rest], _taken(doubled, np.flatnonzero(rest)), 2 * joined
        doubled = _with_partners(doubled, labels[rows], random)
    return made, most


def _with_partners(x: scipy.sparse.csr_array, labels: np.ndarray, random: np.random.Generator):
    """Return each row joined with the next one in a random cycle of the rows of its label.

    Never with itself but alone.
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
    """Return the numbers of rows of those lengths, in parts of about `ENTRIES_AT_ONCE` entries."""
    return np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(np.cumsum(lengths) // ENTRIES_AT_ONCE)) + 1)


def _room(x: scipy.sparse.csr_array, lengths: np.ndarray) -> scipy.sparse.csr_array:
    """Return the rows of those lengths in the shape of x, to be filled."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    index = kept_or_widened(x.indptr.dtype, int(indptr[-1]))
    entries = int(indptr[-1])
    return assemble("csr", indptr.astype(index), np.empty(entries, index), np.empty(entries, x.dtype), x.shape)


def _put(made: scipy.sparse.csr_array, numbers: np.ndarray, piece: scipy.sparse.csr_array) -> None:
    """Write the rows of `piece` over those numbers of `made`, which have the same lengths."""
    shifts = made.indptr[numbers] - piece.indptr[:-1]
    places = np.arange(piece.nnz) + np.repeat(shifts, np.diff(piece.indptr))
    made.indices[places], made.data[places] = piece.indices, piece.data


def _with_norms(x: scipy.sparse.csr_array, norms: np.ndarray) -> scipy.sparse.csr_array:
    """x, its rows scaled in place to those 2-norms."""
    now = _norms(x)
    factors = np.divide(norms, now, out=np.ones_like(now), where=now > 0).astype(x.dtype)
    x.data *= np.repeat(factors, np.diff(x.indptr))
    return x


def _norms(x: scipy.sparse.csr_array) -> np.ndarray:
    """2-norms of the rows, float64."""
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    return np.sqrt(np.bincount(rows, x.data.astype(np.float64) ** 2, minlength=x.shape[0]))
