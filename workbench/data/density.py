"""Data at another density: thinned by dropping entries, or made denser by joining rows of one class."""

import dataclasses

import numpy as np
import scipy.sparse

from workbench import formats
from workbench.data.dataset import Dataset, with_entries
from workbench.data.errors import DataError


def with_density(dataset: Dataset, density: float, seed: int = 0, rows_least: int = 1) -> Dataset:
    """The data set at exactly that density, up to the rounding of the number of entries.

    Below its own density, entries are dropped at random, each with the same chance. Above it, rows of the same class
    are first joined, m neighbours to one with the smallest m that suffices, and then thinned: **rows become fewer**, as
    many as `rows_least` at least. A joined row holds the columns of all its rows, their values added and then scaled
    to the mean length (2-norm) that the rows had, so that one learning rate serves all densities. Its group is that
    of its first row.

    Refused (`DataError`): a density outside (0, 1], one above the natural density for a set without classes, and one
    that joining cannot reach; the message says the most it can. O(nnz * log nnz * log rows).
    """
    if not 0 < density <= 1:
        raise DataError(f"density is {density}; it is nnz / size, above 0 and at most 1.")
    if _entries(dataset, density) > dataset.x.nnz:
        dataset = _densified(dataset, density, rows_least)
    return _thinned(dataset, density, seed)


def highest_density(dataset: Dataset, rows_least: int = 1) -> float:
    """The most that `with_density` can reach with at least `rows_least` rows left."""
    if dataset.kind != "classes" or not dataset.x.nnz:
        return dataset.density
    return max(float(_density_joined(dataset, m)) for m in _doubling(_most_joined(dataset, rows_least)))


def _entries(dataset: Dataset, density: float) -> int:
    return round(density * dataset.rows * dataset.features)


def _thinned(dataset: Dataset, density: float, seed: int) -> Dataset:
    x, count = dataset.x, _entries(dataset, density)
    if count == x.nnz:
        return dataset
    mask = np.zeros(x.nnz, bool)
    mask[np.random.default_rng(seed).permutation(x.nnz)[:count]] = True
    return dataclasses.replace(dataset, x=with_entries(x, mask, x.indices, x.shape))


def _densified(dataset: Dataset, density: float, rows_least: int) -> Dataset:
    if dataset.kind != "classes":
        above = f"density {density} is above the natural {dataset.density:.3g}"
        raise DataError(f"{above}, and {dataset.name} has no classes to join rows of; ask for less.")
    low = 1
    for high in _doubling(_most_joined(dataset, rows_least)):  # then halving: density grows with m
        if _density_joined(dataset, high) >= density:
            break
        low = high + 1
    else:
        raise _unreachable(dataset, density, rows_least)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _density_joined(dataset, middle) >= density else (middle + 1, high)
    return _joined(dataset, high)


def _doubling(most: int) -> list[int]:
    """1, 2, 4, ... and `most` itself."""
    return [*(2**k for k in range(most.bit_length()) if 2**k < most), most]


def _unreachable(dataset: Dataset, density: float, rows_least: int) -> DataError:
    most = highest_density(dataset, rows_least)
    beyond = f"{dataset.name} cannot reach density {density} with at least {rows_least} rows left"
    return DataError(f"{beyond}; joining rows reaches {most:.4g} at most. Ask for less, or keep fewer features.")


def _most_joined(dataset: Dataset, rows_least: int) -> int:
    """The most rows that may be joined to one: up to the largest class, as long as enough rows are left."""
    counts = np.bincount(dataset.y)
    rows_left = [(-(-counts // m)).sum() for m in range(1, int(counts.max()) + 1)]
    return max(1, sum(bool(left >= rows_least) for left in rows_left))


def _new_rows(y: np.ndarray, m: int) -> np.ndarray:
    """For each row the number of the joined row it goes to, numbered by their first rows. O(rows log rows)."""
    counts = np.bincount(y)
    order = np.argsort(y, kind="stable")
    position = np.empty(len(y), np.int64)
    position[order] = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    pieces = -(-counts // m)
    piece = position * pieces[y] // counts[y]  # equal pieces, none larger than m
    piece += (np.cumsum(pieces) - pieces)[y]
    _, first, inverse = np.unique(piece, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _keys(dataset: Dataset, new_rows: np.ndarray) -> np.ndarray:
    """joined row * features + column of each entry, int64 [nnz]."""
    return np.repeat(new_rows * dataset.features, np.diff(dataset.x.indptr)) + dataset.x.indices


def _density_joined(dataset: Dataset, m: int) -> float:
    new_rows = _new_rows(dataset.y, m)
    keys = np.sort(_keys(dataset, new_rows))
    distinct = np.count_nonzero(keys[1:] != keys[:-1]) + 1
    return distinct / ((int(new_rows.max()) + 1) * dataset.features)


def _joined(dataset: Dataset, m: int) -> Dataset:
    new_rows = _new_rows(dataset.y, m)
    _, first = np.unique(new_rows, return_index=True)
    x = dataset.x
    entry_rows = np.repeat(new_rows, np.diff(x.indptr))
    shape = (len(first), dataset.features)
    joined = formats.to_format(scipy.sparse.coo_array((x.data, (entry_rows, x.indices)), shape=shape), "csr")
    joined.sum_duplicates()
    joined.data *= np.repeat(_scales(x, joined, new_rows), np.diff(joined.indptr))
    groups = None if dataset.groups is None else dataset.groups[first]
    facts = {**dataset.facts, "rows_joined": m}
    return dataclasses.replace(dataset, x=joined, y=dataset.y[first], groups=groups, facts=facts)


def _scales(x: scipy.sparse.csr_array, joined: scipy.sparse.csr_array, new_rows: np.ndarray) -> np.ndarray:
    """Factors that give each joined row the mean 2-norm of its rows, float32."""
    mean_norms = np.bincount(new_rows, _norms(x)) / np.bincount(new_rows)
    norms = _norms(joined)
    return np.divide(mean_norms, norms, out=np.ones_like(norms), where=norms > 0).astype(np.float32)


def _norms(x: scipy.sparse.csr_array) -> np.ndarray:
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    return np.sqrt(np.bincount(rows, x.data.astype(np.float64) ** 2, minlength=x.shape[0]))
