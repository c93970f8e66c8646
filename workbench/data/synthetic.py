"""Generators of synthetic data: row lengths, distinct columns by popularity, and a teacher that labels the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import kernels
from workbench.data.dataset.record import ROW_NORM, Dataset
from workbench.data.errors import DataError
from workbench.data.labels import Labels
from workbench.formats.compressed import assemble, index_dtype

LONGEST = 10
"""No row is longer than this many times the mean."""
DENSE_FROM = 1 / 64
"""Mean share of the columns in a row from which on drawing a number for every element is faster than redrawing."""
BLOCK = 1 << 22
"""Elements drawn at once."""
ROUNDS = 24
"""Redraws before the rows that still lack columns are completed element by element."""
RANK = 16
"""Most directions that the teacher's weights span."""

ORIGIN = "generated from a seed by Sparse Workbench"
LICENCE = "none needed"


@dataclass(frozen=True)
class Popularity:
    """Column j of `features` has a chance proportional to the integral of (t + shift)**-slope from j to j + 1."""

    features: int
    slope: float
    shift: float

    def integral(self, t: np.ndarray | np.float64) -> Any:
        """Return the antiderivative of (t + shift)**-slope at each t, float64, same shape."""
        if self.slope == 1:
            return np.log(t + self.shift)
        return (t + self.shift) ** (1 - self.slope) / (1 - self.slope)

    def draw(self, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a random column >= first[i] for each entry of `first`, int64, drawn by popularity."""
        low, high = self.integral(first.astype(np.float64)), self.integral(np.float64(self.features))
        area = low + rng.random(len(first)) * (high - low)
        t = np.exp(area) if self.slope == 1 else (area * (1 - self.slope)) ** (1 / (1 - self.slope))
        return np.clip((t - self.shift).astype(np.int64), first, self.features - 1)

    def chances(self) -> np.ndarray:
        """Return the probability of each column relative to their mean, float32 [features]."""
        chances = np.diff(self.integral(np.arange(self.features + 1.0)))
        return (chances / chances.mean()).astype(np.float32)


@dataclass(frozen=True)
class Recipe:
    """Parameters of a synthetic data set, those of `mixed`. Impossible ones are refused (`DataError`)."""

    rows: int
    features: int
    density: float
    seed: int
    sigma: float
    slope: float
    shift: float
    classes: int | None
    width: int
    noise: float
    values: str
    present: float = 0.0

    def __post_init__(self) -> None:
        """Raise DataError for the first parameter that is out of range."""
        require_at_least(1, rows=self.rows, features=self.features, width=self.width)
        if self.rows * self.features >= 2**63:
            raise DataError(f"rows * features is {self.rows * self.features}; it is below 2**63, the range of int64.")
        if not 0 < self.density <= 1:
            raise DataError(f"density is {self.density}; it is nnz / size, above 0 and at most 1.")
        if self.sigma < 0 or self.slope < 0 or self.shift <= 0:
            figures = f"sigma is {self.sigma}, slope is {self.slope} and shift is {self.shift}"
            raise DataError(f"{figures}; sigma and slope are 0 or more, shift is above 0.")
        if not 0 <= self.present <= 1:
            raise DataError(f"present is {self.present}; it is a share of the entries, from 0 to 1.")
        if self.classes is not None and self.classes < 2:
            raise DataError(f"classes is {self.classes}; it is 2 or more, or None for float targets.")
        if self.values not in ("normal", "ones"):
            raise DataError(f"values is {self.values!r}; it is one of normal, ones.")

    @property
    def columns_present(self) -> int:
        """Number of columns that every row has: the share `present` of a mean row's entries, rounded down."""
        return int(self.present * self.density * self.features + 1e-9)


def require_at_least(least: int, **values: float) -> None:
    """Raise DataError for the first of the parameters `values` that is below `least`."""
    for name, value in values.items():
        if value < least:
            raise DataError(f"{name} is {value}; it is {least} or more.")


def draw(name: str, recipe: Recipe) -> Dataset:
    """Return the synthetic data set `name` of shape [rows, features]; the same for the same recipe.

    O(nnz), or O(rows * features) from a density of 1/64 on.
    """
    rng = np.random.default_rng(recipe.seed)
    rows, features = recipe.rows, recipe.features
    keys = _keys(recipe, rng)
    indptr = np.searchsorted(keys, np.arange(rows + 1) * features)
    dtype = index_dtype(rows, features, len(keys))
    columns = (keys % features).astype(dtype)
    data = _values(recipe, indptr, columns, rng)
    x = assemble("csr", indptr.astype(dtype), columns, data, (rows, features))
    labels, y = _labels(x, recipe, rng)
    facts = {"density_asked": recipe.density, "density": len(keys) / (rows * features)}
    return Dataset(name, x, y, labels, ORIGIN, LICENCE, None, facts)


def _keys(recipe: Recipe, rng: np.random.Generator) -> np.ndarray:
    """Return row * features + column of every entry, sorted, int64 [nnz]; columns that every row has come first."""
    rows, features, present = recipe.rows, recipe.features, recipe.columns_present
    rare = features - present
    if not rare:
        return np.arange(rows * features)
    density = min((recipe.density * features - present) / rare, 1.0)
    lengths = row_lengths(rows, rare, density, recipe.sigma, rng)
    keys = distinct_columns(lengths, Popularity(rare, recipe.slope, recipe.shift), rng)
    if not present:
        return keys
    always = np.arange(rows)[:, None] * features + np.arange(present)
    row, column = np.divmod(keys, rare)
    return np.sort(np.concatenate([always.ravel(), row * features + present + column]), kind="stable")


def row_lengths(rows: int, features: int, density: float, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Return random entries per row, int64 [rows], that sum to density * rows * features.

    They are lognormal with standard deviation `sigma` of the logarithm, capped at ten times the mean.
    """
    mean = density * features
    cap = min(features, LONGEST * mean)
    weights = np.exp(sigma * rng.standard_normal(rows))
    low, high = mean / weights.mean(), cap / weights.min()  # capping shortens some rows, which lengthens the others
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * weights, cap).mean() < mean else (low, middle)
    ends = np.round(np.cumsum(np.minimum(high * weights, cap))).astype(np.int64)  # rounding the ends keeps the sum
    return np.minimum(np.diff(ends, prepend=0), features)


def distinct_columns(lengths: np.ndarray, popularity: Popularity, rng: np.random.Generator) -> np.ndarray:
    """Return row * features + column of every entry, sorted, int64 [nnz], with lengths[row] distinct columns per row.

    Columns are drawn by popularity, and drawn again if the row has them. A row that has all most popular columns draws
    only from the others, and what is left after `ROUNDS` rounds is drawn element by element.
    """
    features, rows = popularity.features, np.arange(len(lengths))
    keys, missing, head = np.empty(0, np.int64), lengths, np.zeros(len(lengths), np.int64)
    if lengths.mean() > DENSE_FROM * features:
        return _race(rows, keys, lengths, popularity, rng)
    for _ in range(ROUNDS):
        drawing = np.repeat(rows, missing)
        drawn = np.sort(drawing * features + popularity.draw(head[drawing], rng))
        keys = np.sort(np.concatenate([keys, drawn]), kind="stable")  # a merge of two sorted runs
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]]
        missing, head = _progress(keys, lengths, features)
        if not missing.any():
            return keys
    done = missing[keys // features] == 0
    late = _race(np.flatnonzero(missing), keys[~done], lengths, popularity, rng)
    return np.sort(np.concatenate([keys[done], late]))


def _progress(keys: np.ndarray, lengths: np.ndarray, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, int64 [rows] each, how many columns a row lacks, and how many popular ones it has without a gap.

    `keys` are the sorted row * features + column so far, `lengths` int64 [rows] the columns wanted. Column 0 is the
    most popular.
    """
    rows, columns = np.divmod(keys, features)
    starts = np.searchsorted(keys, np.arange(len(lengths) + 1) * features)
    gapless = columns == np.arange(len(keys)) - starts[rows]
    return lengths - np.diff(starts), np.bincount(rows, gapless, len(lengths)).astype(np.int64)


def _race(
    rows: np.ndarray, owned: np.ndarray, lengths: np.ndarray, popularity: Popularity, rng: np.random.Generator
) -> np.ndarray:
    """Return the sorted keys of all entries of `rows` after drawing their missing columns. O(len(rows) * features).

    `owned` are the keys they have already. Each column arrives after an exponential time with its popularity as rate,
    and the first lengths[row] win; owned ones have arrived.
    """
    features, chances = popularity.features, popularity.chances()
    winners = [np.empty(0, np.int64)]
    for start in range(0, len(rows), step := max(1, BLOCK // features)):
        block = rows[start : start + step]
        times = rng.standard_exponential((len(block), features), np.float32) / chances
        first, last = np.searchsorted(owned, [block[0] * features, (block[-1] + 1) * features])
        row, column = np.divmod(owned[first:last], features)
        times[np.searchsorted(block, row), column] = -1
        limits = np.sort(times, axis=1)[np.arange(len(block)), np.maximum(lengths[block], 1) - 1]
        limits[lengths[block] == 0] = -2
        place, column = np.nonzero(times <= limits[:, None])
        winners.append(block[place] * features + column)
    return np.concatenate(winners)


def _values(recipe: Recipe, indptr: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the values of the entries, float32 [nnz]: ones, or |N(0, 1)| with each row scaled to 2-norm `ROW_NORM`.

    With ones, columns that every row has get |N(0, 1)|, as ones would carry no information there.
    """
    nnz = int(indptr[-1])
    if recipe.values == "ones":
        data = np.ones(nnz, np.float32)
        always = columns < recipe.columns_present
        data[always] = np.abs(rng.standard_normal(int(always.sum()), np.float32)) + np.float32(1e-3)
        return data
    data = np.abs(rng.standard_normal(nnz, np.float32)) + np.float32(1e-3)
    sums = np.diff(np.concatenate([[0], np.cumsum(data.astype(np.float64) ** 2)])[indptr])
    return data * np.repeat(ROW_NORM / np.sqrt(np.maximum(sums, 1e-6)), np.diff(indptr)).astype(np.float32)


def _labels(x: scipy.sparse.csr_array, recipe: Recipe, rng: np.random.Generator) -> tuple[Labels, np.ndarray]:
    """Return (meaning, y) from a random linear function of low rank of the rows, plus noise.

    y is the class of the largest score, int64 [rows], the last class being positive, or the scores, float32 [rows] or
    [rows, width].
    """
    outputs = recipe.width if recipe.classes is None else recipe.classes
    rank = min(outputs, RANK)
    hidden = np.empty((x.shape[0], rank), np.float32)
    weights = rng.standard_normal((x.shape[1], rank), np.float32)
    weights *= np.sqrt(np.bincount(x.indices, minlength=x.shape[1]), dtype=np.float32)[:, None]  # teach what is seen
    kernels.get("csr_dense").trusted(x.indptr, x.indices, x.data, weights, hidden)
    scores = _standardise(_standardise(hidden) @ rng.standard_normal((rank, outputs), np.float32))
    scores += np.float32(recipe.noise) * rng.standard_normal(scores.shape, np.float32)
    if recipe.classes is None:
        return Labels("numbers"), scores[:, 0].copy() if recipe.width == 1 else scores
    names = tuple(map(str, range(recipe.classes)))
    return Labels("classes", names, positive=names[-1]), scores.argmax(axis=1).astype(np.int64)


def _standardise(scores: np.ndarray) -> np.ndarray:
    """Return each column of scores [rows, outputs] shifted to mean 0 and scaled to deviation 1.

    Constant ones become 0.
    """
    deviation = scores.std(axis=0)
    return (scores - scores.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
