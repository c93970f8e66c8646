"""The profile of a data set: the numbers that decide what sparse formats can save.

`profile` counts them, `column_counts` how popular columns are, `row_hashes` find equal rows.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from kernels import structure
from workbench import formats
from workbench.data.dataset.record import Dataset
from workbench.formats.compressed import index_dtype

ROWS_AT_ONCE = 1 << 20
"""Entries that are hashed at once."""


def row_hashes(x: scipy.sparse.csr_array) -> np.ndarray:
    """Return a hash of each row of a canonical CSR array, uint64 [rows]: equal for equal rows, 0 for rows of zeros.

    Among n different rows two share a hash with a chance of about n**2 / 2**65. A hash is the sum of those of the row's
    entries, modulo 2**64, so that entries are read once and in parts. O(entries) and O(rows) memory.
    """
    before = np.zeros(x.shape[0] + 1, np.uint64)  # sums of all entries before each row
    total = np.zeros(1, np.uint64)
    for start in range(0, x.nnz, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, x.nnz)
        sums = np.cumsum(_hash_entries(x.indices[start:stop], x.data[start:stop])) + total
        first, last = np.searchsorted(x.indptr, (start, stop), side="right")
        before[first:last] = sums[x.indptr[first:last] - start - 1]
        total = sums[-1:]
    return np.diff(before)


def _hash_entries(indices: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a hash of each (index, value) entry, uint64 [entries]; 0 for a stored zero, as if it were absent."""
    bits = values.astype(np.float64).view(np.uint64)
    bits ^= structure.mix_bits(indices.astype(np.uint64) + structure.PLACE)
    return np.where(values == 0, np.uint64(0), structure.mix_bits(bits + structure.PLACE))


# Rows that store each column, and what follows from them: skew, Zipf's line, the columns that a batch touches.


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
    """Return the number of rows that store each used column of a canonical CSR array, int64, descending.

    Unused columns are left out. O(entries + features log features) and O(features) memory; O(entries log entries) and
    O(entries) if the matrix is very wide.
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
    """Return (rank, rows) at up to `POINTS` ranks, evenly spaced on a log axis, of descending counts int64 [columns].

    Ranks are counted from 1, from `first` to `last` inclusive (None: the last count). () without counts.
    """
    if not counts.size:
        return ()
    ranks = np.unique(np.round(np.geomspace(first, last or counts.size, POINTS)).astype(np.int64))
    return tuple((int(rank), int(counts[rank - 1])) for rank in ranks)


def zipf_line(counts: np.ndarray) -> ZipfLine | None:
    """Fit log(rows) against log(rank) by least squares for descending counts int64 [columns]; None for fewer than two.

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


def expected_active_columns(counts: np.ndarray, rows: int, batch_rows: int) -> float:
    """Return the expected number of columns with an entry in a batch of `batch_rows` different rows out of `rows`.

    It is exact: the sum over columns of 1 - C(rows - count, batch_rows) / C(rows, batch_rows), `counts` int [columns]
    being the rows that store each. Hurlbert, The Nonconcept of Species Diversity, Ecology 52 (1971), 577-586.
    O(distinct counts * batch_rows), with fewer than 2 * sqrt(entries) distinct counts.
    """
    different, columns = np.unique(counts, return_counts=True)
    return float(columns @ (1 - _miss_probability(different, rows, batch_rows)))


def _miss_probability(counts: np.ndarray, rows: int, batch_rows: int) -> np.ndarray:
    """Return the probability, float64, that a batch of `batch_rows` of `rows` rows misses a column, by `counts`.

    C(rows - count, batch_rows) / C(rows, batch_rows) is the product of 1 - count / (rows - i) over i < batch_rows, and
    of 1 - batch_rows / (rows - i) over i < count; logarithms of binomials would lose half of the digits.
    """
    missed = np.empty(counts.size)
    rare = counts <= batch_rows
    missed[rare] = np.exp(np.cumsum(_log_factors(batch_rows, rows, int(counts[rare].max(initial=0)))))[counts[rare] - 1]
    missed[~rare] = [np.exp(_log_factors(count, rows, batch_rows).sum()) for count in counts[~rare]]
    return missed


def _log_factors(many: int, rows: int, few: int) -> np.ndarray:
    """Return log(1 - many / (rows - i)) for i < few, float64 [few], whose sum is a log probability of missing."""
    with np.errstate(divide="ignore"):  # what cannot be missed
        return np.log1p(-np.minimum(many / (rows - np.arange(few)), 1.0))


BATCHES = (64, 256, 1024, 4096)
"""Rows of the batches whose active columns are told; all rows in place of the sizes that a set is too small for."""
BINS_OCTAVE = 3
"""Bins of the distribution of row lengths from one length to its double."""
FEW = 24
"""Different lengths that have a bin each."""
CLASSES_SHOWN = 10
"""Classes that are told by name, the most frequent ones."""

PREPARATIONS = (
    ("centring", True),
    ("standardising with the mean", True),
    ("scaling by the standard deviation alone", False),
    ("scaling by the largest magnitude", False),
    ("tf-idf", False),
    ("log(1 + x)", False),
)
"""What is done to data before training, and whether it makes dense what is sparse: whatever moves zero does."""


@dataclass(frozen=True)
class RowLengths:
    """Entries a row. `cv` is standard deviation / mean, 0 without entries; percentiles between two rows are linear.

    `bins` are (least length, largest length, rows that have one of these), of rows with entries.
    """

    mean: float
    median: float
    p99: float
    most: int
    cv: float
    empty: int
    bins: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Columns:
    """Inequality in how often columns are stored. A column is frequent by the rows that store it.

    `top` is 1 % of the used columns, at least one, and `top_share` the share of the entries that so many most frequent
    ones hold; `most_rows` the share of the rows that store the most frequent one; `zipf` the line through `ranks`,
    which are (rank, rows) of used columns, from 1 on, at most 200 of them.
    """

    used: int
    unused: int
    top: int
    top_share: float
    most_rows: float
    zipf: ZipfLine | None
    ranks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Touched:
    """Columns U that a batch of that many rows stores entries in, and its entries z, both means over random batches."""

    batch_rows: int
    columns: float
    entries: float

    @property
    def share(self) -> float:
        """Ratio U / z of active columns to entries; 0 without entries."""
        return self.columns / self.entries if self.entries else 0.0


@dataclass(frozen=True)
class Values:
    """Stored values: least and largest, and how many of them are zero. Equal ends mean that all are the same."""

    least: float
    most: float
    zeros: int


@dataclass(frozen=True)
class LabelBalance:
    """Distribution of labels. `shown` are (class, rows) of the most frequent ten, the `others` come to `rows_others`.

    `quartiles` are those of numbers, least and largest included, over all targets. `labels_a_row` is the mean number of
    classes that a row has.
    """

    kind: str
    classes: int
    shown: tuple[tuple[str, int], ...] = ()
    others: int = 0
    rows_others: int = 0
    quartiles: tuple[float, ...] = ()
    labels_a_row: float = 1.0


@dataclass(frozen=True)
class Preparation:
    """Transformation common before training, whether it makes the data dense, and the bytes that they then take."""

    name: str
    is_dense: bool
    bytes_: int


@dataclass(frozen=True)
class Profile:
    """The profile of one data set; `dataclasses.asdict` makes JSON of it.

    `duplicate_entries` were summed when the set was read, None if its reader cannot tell. `duplicate_rows` equal an
    earlier row in all values; rows of zeros are left out. `groups` are (number, rows of the largest).
    """

    name: str
    source: str
    rows: int
    features: int
    entries: int
    density: float
    dtype: str
    index_dtype: str
    lengths: RowLengths
    columns: Columns
    touched: tuple[Touched, ...]
    values: Values | None
    bytes_format: dict[str, int]
    preparations: tuple[Preparation, ...]
    duplicate_entries: int | None
    duplicate_rows: int
    labels: LabelBalance
    groups: tuple[int, int] | None


def profile(dataset: Dataset) -> Profile:
    """Return the profile of a data set in memory, computed from all entries, so that it is deterministic.

    O(entries + rows log rows + features log features), with O(rows + features) extra memory and parts of 32 MiB; if
    there are many more features than entries, O(entries log entries) and O(entries) replace those of features. Raises
    DataError for rows that are stored on disk.
    """
    x = dataset.x
    lengths = np.diff(x.indptr).astype(np.int64)
    counts = column_counts(x)
    stored_rows = int(np.count_nonzero(lengths))
    sizes = (dataset.rows, dataset.features, x.nnz)
    index = index_dtype(*sizes)
    bytes_format = {
        name: formats.predicted_bytes(name, *sizes, x.dtype, index, stored_rows) for name in formats.names()
    }
    duplicates = dataset.facts.get("duplicate_entries")
    return Profile(
        name=dataset.name,
        source=dataset.source,
        rows=dataset.rows,
        features=dataset.features,
        entries=int(x.nnz),
        density=dataset.density,
        dtype=str(x.dtype),
        index_dtype=str(index),
        lengths=row_lengths(lengths),
        columns=_columns(counts, dataset),
        touched=_active_columns_of_batches(counts, dataset),
        values=_values(x),
        bytes_format=bytes_format,
        preparations=_preparations(bytes_format),
        duplicate_entries=None if duplicates is None else int(duplicates),
        duplicate_rows=_duplicate_rows(x),
        labels=label_balance(dataset),
        groups=_groups(dataset.groups),
    )


def row_lengths(lengths: np.ndarray) -> RowLengths:
    """Return mean, percentiles, spread and histogram of row lengths, int64 [rows]. O(rows log rows)."""
    if not lengths.size:
        return RowLengths(0.0, 0.0, 0.0, 0, 0.0, 0, ())
    mean, most = float(lengths.mean()), int(lengths.max())
    median, p99 = (float(value) for value in np.percentile(lengths, (50, 99)))
    cv = float(lengths.std()) / mean if mean else 0.0
    return RowLengths(mean, median, p99, most, cv, int(np.count_nonzero(lengths == 0)), _bins(lengths[lengths > 0]))


def _bins(lengths: np.ndarray) -> tuple[tuple[int, int, int], ...]:
    """Return (least length, largest length, rows) per bin of positive row lengths, int64.

    There is a bin for each length if at most `FEW` differ, else bins of equal width on a log axis; empty ones are left
    out.
    """
    if not lengths.size:
        return ()
    different, rows = np.unique(lengths, return_counts=True)
    if different.size <= FEW:
        return tuple((int(length), int(length), int(count)) for length, count in zip(different, rows, strict=True))
    octaves = np.log2(different[-1]) + 1
    edges = np.unique(np.round(2 ** (np.arange(int(BINS_OCTAVE * octaves) + 2) / BINS_OCTAVE)).astype(np.int64))
    rows = np.histogram(lengths, edges)[0]
    return tuple(
        (int(low), int(high) - 1, int(count))
        for low, high, count in zip(edges[:-1], edges[1:], rows, strict=True)
        if count
    )


def _columns(counts: np.ndarray, dataset: Dataset) -> Columns:
    """Return the column statistics of a data set; `counts`, int64 descending, are the rows with each used column."""
    unused, top = dataset.features - counts.size, max(1, counts.size // TOP)
    if not counts.size:
        return Columns(0, unused, top, 0.0, 0.0, None, ())
    top_share, most_rows = float(counts[:top].sum() / counts.sum()), float(counts[0] / dataset.rows)
    return Columns(counts.size, unused, top, top_share, most_rows, zipf_line(counts), points_by_rank(counts))


def _active_columns_of_batches(counts: np.ndarray, dataset: Dataset) -> tuple[Touched, ...]:
    """Return the expected active columns and entries of a batch, for each size in `BATCHES`; () without rows."""
    if not dataset.rows:
        return ()
    sizes = dict.fromkeys(min(size, dataset.rows) for size in BATCHES)
    mean = dataset.x.nnz / dataset.rows
    return tuple(Touched(size, expected_active_columns(counts, dataset.rows, size), size * mean) for size in sizes)


def _values(x: scipy.sparse.csr_array) -> Values | None:
    """Return (smallest, largest, explicit zeros) of the stored values; None if there are none."""
    if not x.nnz:
        return None
    return Values(float(x.data.min()), float(x.data.max()), int(x.nnz - np.count_nonzero(x.data)))


def _preparations(bytes_format: dict[str, int]) -> tuple[Preparation, ...]:
    """Return each common transformation with the bytes the data then takes, from the bytes per format."""
    return tuple(Preparation(name, dense, bytes_format["dense" if dense else "csr"]) for name, dense in PREPARATIONS)


def _duplicate_rows(x: scipy.sparse.csr_array) -> int:
    """Return the number of rows that repeat an earlier row, compared by hash; rows of zeros are not counted."""
    hashes = row_hashes(x)
    hashes = hashes[hashes != 0]
    return int(hashes.size - np.unique(hashes).size)


def label_balance(dataset: Dataset) -> LabelBalance:
    """Return the label distribution: rows per class, most frequent first, or quartiles of numbers.

    O(labels), for numbers O(labels log labels).
    """
    y = dataset.y
    if dataset.kind == "numbers":
        quartiles = np.percentile(y, (0, 25, 50, 75, 100)) if y.size else ()
        return LabelBalance("numbers", 0, quartiles=tuple(float(value) for value in quartiles))
    several = dataset.kind == "multilabel"
    counts = y.sum(axis=0, dtype=np.int64) if several else np.bincount(y, minlength=len(dataset.classes))
    order = np.argsort(-counts, kind="stable")
    shown = tuple((dataset.classes[place], int(counts[place])) for place in order[:CLASSES_SHOWN])
    rest = order[CLASSES_SHOWN:]
    a_row = float(counts.sum() / max(dataset.rows, 1)) if several else 1.0
    return LabelBalance(dataset.kind, counts.size, shown, rest.size, int(counts[rest].sum()), labels_a_row=a_row)


def _groups(groups: np.ndarray | None) -> tuple[int, int] | None:
    """Return (number of groups, rows of the largest); None without groups."""
    if groups is None or not groups.size:
        return None
    sizes = np.unique(groups, return_counts=True)[1]
    return int(sizes.size), int(sizes.max())
