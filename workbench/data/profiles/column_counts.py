"""Rows that store each column, and what follows from them: skew, Zipf's line, the columns that a batch touches."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

TOP = 100
"""The most frequent columns that are told apart are one of so many."""
PART = 1 << 22
"""Entries that are counted at once."""
WIDE = 4
"""Features an entry from which on used columns are found by sorting, and not by a counter for each feature."""
POINTS = 200
"""Most ranks that a line or a chart goes through."""
HEAD, TAIL, LEAST_ZIPF = 10, 4, 100
"""First rank of the line of Zipf, of how many used columns one is its last, and the fewest that both are taken for."""


@dataclass(frozen=True)
class ZipfLine:
    """Rows that store the column of a rank from `first` to `last`, about: `scale` * rank**-`slope`."""

    slope: float
    scale: float
    first: int
    last: int


def column_counts(x: scipy.sparse.csr_array) -> np.ndarray:
    """Rows that store each used column of a canonical matrix, int64, descending; unused columns are left out.

    O(entries + features log features) and O(features) memory; O(entries log entries) and O(entries) where the matrix is
    very wide.
    """
    features = x.shape[1]
    if features > WIDE * max(x.nnz, PART):
        counts = np.unique(x.indices, return_counts=True)[1]
    else:
        counts = np.zeros(features, np.int64)
        part = max(PART, features)
        for start in range(0, x.nnz, part):
            counts += np.bincount(x.indices[start : start + part], minlength=features)
        counts = counts[counts > 0]
    return np.sort(counts)[::-1].astype(np.int64, copy=False)


def points_by_rank(counts: np.ndarray, first: int = 1, last: int | None = None) -> tuple[tuple[int, int], ...]:
    """(rank, rows) of descending counts int64 [columns], at most `POINTS` ranks, equally far apart on a log axis.

    Ranks count from 1; `last` is included, None for that of the last count.
    """
    if not counts.size:
        return ()
    ranks = np.unique(np.round(np.geomspace(first, last or counts.size, POINTS)).astype(np.int64))
    return tuple((int(rank), int(counts[rank - 1])) for rank in ranks)


def zipf_line(counts: np.ndarray) -> ZipfLine | None:
    """Least squares through log(rows) against log(rank) of descending counts int64 [columns]; None for one alone.

    Ranks are those of `points_by_rank`, so that each decade weighs alike, from 10 to a quarter of the used columns: the
    most frequent columns are about level (Mandelbrot's shift), and the rare ones fall in steps of whole rows. Of fewer
    than 100 used columns all ranks are taken. Zipf, Human Behavior and the Principle of Least Effort, 1949.
    """
    if counts.size < 2:
        return None
    first, last = (HEAD, counts.size // TAIL) if counts.size >= LEAST_ZIPF else (1, counts.size)
    rank, rows = np.log(np.array(points_by_rank(counts, first, last), np.float64)).T
    beyond = rank - rank.mean()
    slope = -(beyond @ rows) / (beyond @ beyond)
    return ZipfLine(float(slope), float(np.exp(rows.mean() + slope * rank.mean())), first, last)


def expected_touched(counts: np.ndarray, rows: int, batch_rows: int) -> float:
    """Columns in which a batch stores an entry, on average over all batches of different rows of the set; exact.

    The sum over columns of 1 - C(rows - count, batch_rows) / C(rows, batch_rows): a column is missed by the batches
    drawn from the rows that lack it. Hurlbert, The Nonconcept of Species Diversity, Ecology 52 (1971), 577-586.
    O(different counts * batch_rows), different ones being fewer than 2 * sqrt(entries).
    """
    different, columns = np.unique(counts, return_counts=True)
    return float(columns @ (1 - _missed(different, rows, batch_rows)))


def _missed(counts: np.ndarray, rows: int, batch_rows: int) -> np.ndarray:
    """The share of batches that miss a column, by its count: a product of as many factors as the smaller of both has.

    C(rows - count, batch_rows) / C(rows, batch_rows) is the product of 1 - count / (rows - i) over i < batch_rows, and
    of 1 - batch_rows / (rows - i) over i < count; logarithms of binomials would lose half of the digits.
    """
    missed = np.empty(counts.size)
    rare = counts <= batch_rows
    missed[rare] = np.exp(np.cumsum(_log_factors(batch_rows, rows, int(counts[rare].max(initial=0)))))[counts[rare] - 1]
    missed[~rare] = [np.exp(_log_factors(count, rows, batch_rows).sum()) for count in counts[~rare]]
    return missed


def _log_factors(many: int, rows: int, few: int) -> np.ndarray:
    with np.errstate(divide="ignore"):  # what cannot be missed
        return np.log1p(-np.minimum(many / (rows - np.arange(few)), 1.0))
