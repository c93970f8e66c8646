"""Synthetic click log: categories of skewed popularity, and clicks by single values and by pairs of them.

A row is one time that something was shown: in each of some columns one value, hashed into that column's part of the
features, as advertisement logs are. The log odds of a click are main effects of the values plus products of factors of
each two of them (Rendle 2010), so a model of pairs has something to find that a linear one cannot.
"""

import numpy as np

from kernels import structure
from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import DataError
from workbench.data.labels import Labels
from workbench.data.synthetic import LICENCE, ORIGIN, Popularity, require_at_least
from workbench.formats.compressed import assemble, index_dtype

FEWEST = 10
"""Values of the column that has the fewest."""
SHIFT = 3.0
"""Shift of the ranks by which values are popular, as of `power_law`."""
HALVINGS = 60


def make(
    rows: int = 40_000,
    columns: int = 8,
    values: int = 10_000,
    hashed: int | None = None,
    slope: float = 1.1,
    rate: float = 0.1,
    main: float = 0.7,
    pairs: float = 0.7,
    rank: int = 2,
    seed: int = 0,
) -> Dataset:
    """Return a synthetic click log, CSR [rows, features] of ones, `columns` in each row; class "1" is a click.

    The columns have 10 to `values` values, in equal steps of the logarithm, of popularity (j + 3)**-`slope`. With
    `hashed` each column has so many features, and values may share one; without it each value has its own. The rows and
    clicks are the same whatever `hashed` is. `rate` is the share of clicks that the log odds are shifted to; `main` and
    `pairs` are the standard deviations of the main effects and of all products of factors of length `rank`. Facts: the
    numbers of `values` of the columns, and the scores of the true probabilities: `log_loss_truth` in nats, and
    `auc_truth`. Raises DataError for parameters out of range. O(rows * columns * rank).
    """
    require_at_least(1, rows=rows, columns=columns, values=values, rank=rank, hashed=1 if hashed is None else hashed)
    _check_rate(rate, slope, main, pairs)
    generator = np.random.default_rng(seed)
    counts = np.geomspace(min(FEWEST, values), values, columns).round().astype(np.int64)
    taken = np.empty((columns, rows), np.int64)
    for of_column, count in zip(taken, counts, strict=True):
        popular = Popularity(count, slope, SHIFT).draw(np.zeros(rows, np.int64), generator)
        of_column[:] = generator.permutation(count)[popular]  # which values are popular is random, too
    effects = (generator.standard_normal(count)[of_row] for count, of_row in zip(counts, taken, strict=True))
    odds = main * _standardise(sum(effects, np.zeros(rows))) + pairs * _pair_effects(taken, counts, rank, generator)
    chance = _chances(odds, rate)
    y = (generator.random(rows) < chance).astype(np.int64)
    facts = {"values": counts.tolist(), **_truth(chance, y)}
    labels = Labels("classes", ("0", "1"), positive="1")
    return Dataset("clicks", _one_hot(taken, counts, hashed), y, labels, ORIGIN, LICENCE, facts=facts)


def _check_rate(rate: float, slope: float, main: float, pairs: float) -> None:
    """Raise DataError unless `rate` lies in (0, 1) and no other parameter is negative."""
    if not 0 < rate < 1:
        raise DataError(f"rate is {rate}; it is a share of clicks, above 0 and below 1.")
    if min(slope, main, pairs) < 0:
        raise DataError(f"slope is {slope}, main is {main} and pairs is {pairs}; each is 0 or more.")


def _pair_effects(taken: np.ndarray, counts: np.ndarray, rank: int, generator: np.random.Generator) -> np.ndarray:
    """Return the sum of products of each two random factors of a row, float64 [rows], standardised.

    `taken` is int [columns, rows], `counts` the number of values per column, `rank` the length of a factor. A single
    column gives zeros. The sum over pairs is half of (sum of all, squared, less the sum of the squares) (Rendle 2010,
    lemma 3.1).
    """
    whole, squares = np.zeros((taken.shape[1], rank)), np.zeros((taken.shape[1], rank))
    for count, of_row in zip(counts, taken, strict=True):
        factors = generator.standard_normal((count, rank))[of_row]
        whole += factors
        squares += factors**2
    return _standardise(((whole**2 - squares) / 2).sum(axis=1))


def _standardise(scores: np.ndarray) -> np.ndarray:
    """Return the scores [rows] shifted to mean 0 and scaled to deviation 1; zeros if all are equal."""
    deviation = scores.std()
    return (scores - scores.mean()) / deviation if deviation > 1e-9 else np.zeros_like(scores)


def _chances(odds: np.ndarray, rate: float) -> np.ndarray:
    """Return the probabilities of these log odds [rows], shifted by a constant so that their mean is `rate`."""
    low, high = -50.0 - odds.max(), 50.0 - odds.min()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _logistic(odds + middle).mean() < rate else (low, middle)
    return _logistic(odds + high)


def _logistic(odds: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-odds))."""
    return 0.5 * (1 + np.tanh(odds / 2))


def _truth(chance: np.ndarray, y: np.ndarray) -> dict[str, float | None]:
    """Return the scores of the true probabilities for classes y: mean log loss (nats) and area under ROC.

    The area (Hanley 1982) is None if there is only one class.
    """
    loss = -np.log(np.where(y == 1, chance, 1 - chance)).mean()
    clicks, others = int(y.sum()), int((1 - y).sum())
    _, place, counts = np.unique(chance, return_inverse=True, return_counts=True)
    ranks = float((counts.cumsum() - (counts - 1) / 2)[place][y == 1].sum())  # of equal ones their mean
    auc = (ranks - clicks * (clicks + 1) / 2) / (clicks * others) if clicks and others else None
    return {"log_loss_truth": float(loss), "auc_truth": auc}


def _hash(numbers: np.ndarray, seed: int) -> np.ndarray:
    """Return a uint64 hash of each integer, same shape, one-to-one per seed (SplitMix64, Steele, Lea, Flood 2014)."""
    return structure.mix_bits(numbers.astype(np.uint64) + np.uint64((seed + 1) * int(structure.PLACE) % 2**64))


def _one_hot(taken: np.ndarray, counts: np.ndarray, hashed: int | None):
    """Return CSR float32 [rows, features] of ones, the features of the columns side by side.

    `taken` is int [columns, rows]; `counts` are the values per column, replaced by `hashed` buckets if not None.
    """
    widths = counts if hashed is None else np.full(len(counts), hashed)
    starts = np.cumsum(widths) - widths
    places = taken
    if hashed is not None:
        hashes = np.stack([_hash(of_row, column) for column, of_row in enumerate(taken)])
        places = (hashes % np.uint64(hashed)).astype(np.int64)
    (columns, rows), features = taken.shape, int(widths.sum())
    dtype = index_dtype(rows, features, rows * columns)
    indices = (places + starts[:, None]).T.astype(dtype).reshape(-1)
    indptr = columns * np.arange(rows + 1, dtype=dtype)
    return assemble("csr", indptr, indices, np.ones(rows * columns, np.float32), (rows, features))


register(Source("clicks", make, ORIGIN, LICENCE))
