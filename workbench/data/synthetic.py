"""What synthetic data is drawn with: row lengths, distinct columns by popularity, and a teacher that labels them."""

import numpy as np

import kernels
from workbench.data.dataset import ROW_NORM, DataError, Dataset, class_numbers
from workbench.formats.compressed import assemble
from workbench.formats.indices import index_dtype

LONGEST = 10
"""No row is longer than this many times the mean."""
DENSE_FROM = 1 / 64
"""Mean share of the columns in a row from which on drawing a number for every element is faster than redrawing."""
BLOCK = 1 << 22
"""Elements drawn at once."""
ROUNDS = 24
"""Redraws before the rows that still lack columns are drawn element by element."""
RANK = 16
"""Most directions that the teacher's weights span."""


def draw(
    name: str,
    rows: int,
    features: int,
    density: float,
    seed: int,
    sigma: float,
    slope: float,
    shift: float,
    classes: int | None,
    width: int,
    noise: float,
    values: str,
) -> Dataset:
    """A data set of [rows, features] at that density, drawn from the seed; the parameters are those of `power_law`."""
    _check(rows, features, density, sigma, slope, shift, classes, width, values)
    rng = np.random.default_rng(seed)
    lengths = row_lengths(rows, features, density, sigma, rng)
    keys = distinct_columns(lengths, features, slope, shift, rng)
    indptr = np.searchsorted(keys, np.arange(rows + 1) * features)
    dtype = index_dtype(rows, features, len(keys))
    data = _values(values, indptr, rng)
    x = assemble("csr", indptr.astype(dtype), (keys % features).astype(dtype), data, (rows, features))
    names, y = _labels(x, classes, width, noise, rng)
    facts = {"density_asked": density, "density": len(keys) / (rows * features)}
    return Dataset(name, x, y, names, "drawn from a seed by Sparse Workbench", "none needed", None, facts)


def row_lengths(rows: int, features: int, density: float, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Entries of each row, int64 [rows]: lognormal with that sigma, capped, with a sum of density * rows * features."""
    mean = density * features
    cap = min(features, LONGEST * mean)
    weights = np.exp(sigma * rng.standard_normal(rows))
    low, high = mean / weights.mean(), cap / weights.min()  # capping shortens some rows, which lengthens the others
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * weights, cap).mean() < mean else (low, middle)
    ends = np.round(np.cumsum(np.minimum(high * weights, cap))).astype(np.int64)  # rounding the ends keeps the sum
    return np.minimum(np.diff(ends, prepend=0), features)


def distinct_columns(
    lengths: np.ndarray, features: int, slope: float, shift: float, rng: np.random.Generator
) -> np.ndarray:
    """row * features + column of every entry, int64 [nnz], sorted.

    Each row draws columns one after the other, column j with a chance proportional to the integral of
    (t + shift)**-slope from j to j + 1, and redraws those it has, until it has `lengths` distinct ones.
    """
    if lengths.mean() > DENSE_FROM * features:
        return _by_element(np.arange(len(lengths)), lengths, features, slope, shift, rng)
    keys, missing, head = np.empty(0, np.int64), lengths, np.zeros(len(lengths), np.int64)
    for _ in range(ROUNDS):
        rows = np.repeat(np.arange(len(lengths)), missing)
        drawn = np.sort(rows * features + _draw_columns(head[rows], features, slope, shift, rng))
        keys = np.sort(np.concatenate([keys, drawn]), kind="stable")  # a merge of two sorted runs
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]]
        missing, head = _progress(keys, lengths, features)
        if not missing.any():
            return keys
    late = np.flatnonzero(missing)
    keys = keys[missing[keys // features] == 0]
    return np.sort(np.concatenate([keys, _by_element(late, lengths, features, slope, shift, rng)]))


def _progress(keys: np.ndarray, lengths: np.ndarray, features: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row how many columns it lacks, and how many of the most popular columns it has without a gap."""
    rows, columns = np.divmod(keys, features)
    starts = np.searchsorted(keys, np.arange(len(lengths) + 1) * features)
    gapless = columns == np.arange(len(keys)) - starts[rows]
    return lengths - np.diff(starts), np.bincount(rows, gapless, len(lengths)).astype(np.int64)


def _integral(t: np.ndarray, slope: float, shift: float) -> np.ndarray:
    """Integral of (t + shift)**-slope, up to a constant."""
    return np.log(t + shift) if slope == 1 else (t + shift) ** (1 - slope) / (1 - slope)


def _draw_columns(head: np.ndarray, features: int, slope: float, shift: float, rng: np.random.Generator) -> np.ndarray:
    """For each entry of `head` a column from there on, by popularity: the inverse of the integral."""
    first, last = _integral(head.astype(np.float64), slope, shift), _integral(np.float64(features), slope, shift)
    area = first + rng.random(len(head)) * (last - first)
    t = np.exp(area) if slope == 1 else (area * (1 - slope)) ** (1 / (1 - slope))
    return np.clip((t - shift).astype(np.int64), head, features - 1)


def _by_element(
    rows: np.ndarray, lengths: np.ndarray, features: int, slope: float, shift: float, rng: np.random.Generator
) -> np.ndarray:
    """The same draw, by a race: each column arrives after an exponential time, and the first ones win. O(size)."""
    chance = np.diff(_integral(np.arange(features + 1.0), slope, shift))
    chance = (chance / chance.mean()).astype(np.float32)
    found = []
    step = max(1, BLOCK // features)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        times = rng.standard_exponential((len(block), features), np.float32) / chance
        limit = np.sort(times, axis=1)[np.arange(len(block)), np.maximum(lengths[block], 1) - 1]
        limit[lengths[block] == 0] = -1
        at, column = np.nonzero(times <= limit[:, None])
        found.append(block[at] * features + column)
    return np.concatenate(found)


def _values(values: str, indptr: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`ones`, or `normal`: |N(0, 1)|, each row scaled to 2-norm `ROW_NORM`; float32 [nnz]."""
    nnz = int(indptr[-1])
    if values == "ones":
        return np.ones(nnz, np.float32)
    data = np.abs(rng.standard_normal(nnz, np.float32)) + np.float32(1e-3)
    sums = np.diff(np.concatenate([[0], np.cumsum(data.astype(np.float64) ** 2)])[indptr])
    return data * np.repeat(ROW_NORM / np.sqrt(np.maximum(sums, 1e-6)), np.diff(indptr)).astype(np.float32)


def _labels(
    x: object, classes: int | None, width: int, noise: float, rng: np.random.Generator
) -> tuple[tuple[str, ...], np.ndarray]:
    """Classes by the largest, or targets by the value, of a linear function of low rank plus noise."""
    outputs = width if classes is None else classes
    rank = min(outputs, RANK)
    hidden = np.empty((x.shape[0], rank), np.float32)
    weights = rng.standard_normal((x.shape[1], rank), np.float32)
    weights *= np.sqrt(np.bincount(x.indices, minlength=x.shape[1]), dtype=np.float32)[:, None]  # teach what is seen
    kernels.get("csr_dense").cpu(x.indptr, x.indices, x.data, weights, hidden)
    scores = _standardised(hidden) @ rng.standard_normal((rank, outputs), np.float32)
    scores = _standardised(scores)
    scores += np.float32(noise) * rng.standard_normal(scores.shape, np.float32)
    if classes is None:
        return (), scores[:, 0].copy() if width == 1 else scores
    names, y = class_numbers(np.concatenate([scores.argmax(axis=1), np.arange(classes)]))  # every class has its name
    return names, y[: len(scores)]


def _standardised(scores: np.ndarray) -> np.ndarray:
    deviation = scores.std(axis=0)
    return (scores - scores.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


def _check(
    rows: int,
    features: int,
    density: float,
    sigma: float,
    slope: float,
    shift: float,
    classes: int | None,
    width: int,
    values: str,
) -> None:
    for name, value in (("rows", rows), ("features", features), ("width", width)):
        if value < 1:
            raise DataError(f"{name} is {value}; it is 1 or more.")
    if not 0 < density <= 1:
        raise DataError(f"density is {density}; it is nnz / size, above 0 and at most 1.")
    if rows * features >= 2**63:
        raise DataError(f"rows * features is {rows * features}; it is below 2**63, the range of 64-bit numbers.")
    if sigma < 0 or slope < 0 or shift <= 0:
        came = f"sigma is {sigma}, slope is {slope} and shift is {shift}"
        raise DataError(f"{came}; sigma and slope are 0 or more, shift is above 0.")
    if classes is not None and classes < 2:
        raise DataError(f"classes is {classes}; it is 2 or more, or None for float targets.")
    if values not in ("normal", "ones"):
        raise DataError(f"values is {values!r}; it is one of normal, ones.")
