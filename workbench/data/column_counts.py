"""How many rows store each column, and what follows: skew, the line of Zipf, the columns that a batch touches."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import scipy.special

TOP = 100
"""The most frequent columns that are told apart are one of so many."""
PART = 1 << 22
"""Entries that are counted at once."""
WIDE = 4
"""Features an entry from which on used columns are found by sorting, and not by a counter for each feature."""
POINTS = 200
"""Most ranks that a line or a chart goes through."""


@dataclass(frozen=True)
class ZipfLine:
    """Rows that store the column of that rank, about: `scale` * rank**-`slope`."""

    slope: float
    scale: float


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


def points_by_rank(counts: np.ndarray) -> tuple[tuple[int, int], ...]:
    """(rank, rows) of descending counts, ranks from 1 on, at most `POINTS` equally far apart on a logarithmic axis."""
    if not counts.size:
        return ()
    ranks = np.unique(np.round(np.geomspace(1, counts.size, POINTS)).astype(np.int64))
    return tuple((int(rank), int(counts[rank - 1])) for rank in ranks)


def zipf_line(counts: np.ndarray) -> ZipfLine | None:
    """Least squares through log(rows) against log(rank), at the ranks of `points_by_rank`; None of one rank alone.

    Ranks that are equally far apart on the logarithmic axis weigh each decade alike; all ranks would fit the last one
    alone. Zipf, Human Behavior and the Principle of Least Effort, 1949.
    """
    if counts.size < 2:
        return None
    rank, rows = np.log(np.array(points_by_rank(counts), np.float64)).T
    beyond = rank - rank.mean()
    slope = -(beyond @ rows) / (beyond @ beyond)
    return ZipfLine(float(slope), float(np.exp(rows.mean() + slope * rank.mean())))


def expected_touched(counts: np.ndarray, rows: int, batch_rows: int) -> float:
    """Columns in which a batch stores an entry, on average over all batches of different rows of the set; exact.

    The sum over columns of 1 - C(rows - count, batch_rows) / C(rows, batch_rows): a column is missed by the batches
    drawn from the rows that lack it. Hurlbert, The Nonconcept of Species Diversity, Ecology 52 (1971), 577-586.
    O(different counts); binomials are beta functions, exact to about 1e-10.
    """
    different, columns = np.unique(counts, return_counts=True)
    left = rows - different
    missed = np.zeros(different.size)
    can_miss = left >= batch_rows
    missed[can_miss] = np.exp(_log_choose(left[can_miss], batch_rows) - _log_choose(np.array([rows]), batch_rows))
    return float(columns @ (1 - missed))


def _log_choose(n: np.ndarray, k: int) -> np.ndarray:
    return -np.log1p(n) - scipy.special.betaln(n - k + 1.0, k + 1.0)
