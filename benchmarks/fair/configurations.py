"""Configurations of `benchmarks fair`: a covering array over sizes, the usual size by name; their drawn rows."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from kernels import aligned
from workbench.advising.frameworks.training import Problem, Sizes
from workbench.formats.compressed import assemble

# Covering arrays: few combinations of values in which every pair of values of two axes occurs.


Pair = tuple[tuple[str, Any], tuple[str, Any]]


def pairs_of(combination: Mapping[str, Any]) -> list[Pair]:
    """Return all pairs of (axis, value) in a combination.

    >>> pairs_of({"a": 1, "b": 2})
    [(('a', 1), ('b', 2))]
    """
    return list(itertools.combinations(combination.items(), 2))


def covering_array(
    axes: Mapping[str, Sequence[Any]],
    times: int = 1,
    is_possible: Callable[[Mapping[str, Any]], bool] = lambda values: True,
    chosen: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return combinations of axis values in which every pair of values of two axes occurs `times` times.

    Deterministic and greedy: next is the combination with most pairs not covered yet; of several the one whose pairs
    were covered least, then the first. The result begins with `chosen`. Combinations for which `is_possible` is False
    are left out; pairs are covered less often where possible combinations run out. O(combinations * count); the count
    is near `times` times the product of the two longest axes, the least possible.

    >>> len(covering_array({"a": (1, 2), "b": (1, 2), "c": (1, 2)}))
    4
    """
    every = (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))
    left = [values for values in every if is_possible(values)]
    ids: dict[Pair, int] = {}
    pairs = np.array([[ids.setdefault(pair, len(ids)) for pair in pairs_of(one)] for one in left])
    covered, is_left = np.zeros(len(ids), np.int64), np.ones(len(left), bool)
    found: list[dict[str, Any]] = []

    def take(place: int) -> None:
        """Append combination number `place` to the result, mark it used and count its pairs as covered."""
        np.add.at(covered, pairs[place], 1)
        is_left[place] = False
        found.append(left[place])

    for one in chosen:
        take(left.index(dict(one)))
    while is_left.any() and (covered[np.unique(pairs[is_left])] < times).any():
        worth = covered[pairs]
        new, old = (worth < times).sum(axis=1), worth.sum(axis=1)
        places = np.flatnonzero(is_left)
        take(int(places[np.lexsort((old[places], -new[places]))[0]]))
    return found


AXES: dict[str, tuple] = {
    "features": (64, 256, 1024, 4096, 16_384),
    "batch_rows": (1, 32, 256, 4096),
    "width": (1, 4, 16, 64),
    "density": (0.001, 0.01, 0.05, 0.15, 0.3, 0.6),
}
TIMES = 2
"""How often the array covers each pair."""
BYTES_DENSE = 96 * 2**20
"""Bytes that X has dense, about: three times a last-level cache of 32 MB, so that rows come from memory."""
BATCHES_LEAST = 2
"""Batches of an epoch at least; with 4,096 rows of 16,384 columns X then has 512 MB."""
USUAL = {"features": 2048, "batch_rows": 256}
USUAL_POINTS = ((16, 0.0113), (16, 0.15), (4, 0.0113), (4, 0.1))
"""Outputs and density at the usual size: that of text, and one near the break-even."""


@dataclass(frozen=True)
class Configuration(Sizes):
    """Sizes of a training on as many rows as fit in `bytes_dense` when dense."""

    bytes_dense: int = BYTES_DENSE

    @property
    def name(self) -> str:
        """Name of the configuration from its sizes, such as "D2048-B256-N16-15%"."""
        return f"D{self.features}-B{self.batch_rows}-N{self.width}-{100 * self.density:g}%"

    @property
    def rows(self) -> int:
        """Number of rows: whole batches, as many as fit in `bytes_dense`, at least two."""
        batch = 4 * self.features * self.batch_rows
        return self.batch_rows * max(BATCHES_LEAST, self.bytes_dense // batch)

    @property
    def bytes_needed(self) -> int:
        """Bytes of X dense and as CSR, with what drawing it takes, an estimate."""
        dense = 4 * self.rows * self.features
        return dense + int(3 * dense * self.density) + 2**28

    def columns(self) -> dict[str, Any]:
        """Return {record column: value} for all columns that the configuration determines."""
        known = {"model": self.model, "rows": self.rows}
        return known | {name: getattr(self, name) for name in (*AXES, "seed")}


def all_configurations() -> list[Configuration]:
    """Return the four configurations of the usual size, then those of the covering array, in its order."""
    usual = [Configuration(**USUAL, width=width, density=density) for width, density in USUAL_POINTS]
    return usual + [Configuration(**values) for values in covering_array(AXES, TIMES)]


def quick_configurations() -> list[Configuration]:
    """Return the usual size at two densities, and eight of the covering array at equal distances."""
    configurations = all_configurations()
    usual, rest = configurations[: len(USUAL_POINTS)], configurations[len(USUAL_POINTS) :]
    return usual[::2] + rest[:: len(rest) // 8][:8]


# Rows of a configuration, drawn, dense and as CSR; and what training on them should come to, in float64.

NOISE = 0.1
"""Share of the labels that are drawn whatever the row."""
ELEMENTS_DRAWN = 2**24
"""Values of X that are drawn at once."""


def draw(configuration: Configuration, threads: int = 1) -> Problem:
    """Return a synthetic problem: normal values, each stored with probability `density`, rows of length about 1.

    Labels come from a random linear teacher, a tenth of them at random. Allocates X dense [R, D] and as CSR.
    """
    rng = np.random.default_rng(configuration.seed)
    rows, features = configuration.rows, configuration.features
    dense = aligned.empty((rows * features,), np.float32).reshape(rows, features)
    indptr: list[Any] = [0]
    indices: list[np.ndarray] = []
    data: list[np.ndarray] = []
    scale = np.float32(1 / np.sqrt(max(configuration.density * features, 1.0)))
    at_once = max(1, ELEMENTS_DRAWN // features)
    for first in range(0, rows, at_once):
        part = dense[first : first + at_once]
        stored = rng.random(part.shape, np.float32) < configuration.density
        values = rng.standard_normal(np.count_nonzero(stored), np.float32) * scale
        part[...] = 0
        part[stored] = values
        indptr.append(np.cumsum(stored.sum(axis=1)) + sum(map(len, data)))
        indices.append((np.flatnonzero(stored) % features).astype(np.int32))
        data.append(values)
    starts = np.hstack(indptr).astype(np.int32)
    csr = assemble("csr", starts, np.concatenate(indices), np.concatenate(data), (rows, features))
    labels = _labels(csr, max(configuration.width, 2), rng)
    return Problem(configuration, dense, csr, labels, threads)


def _labels(csr: scipy.sparse.csr_array, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Return class labels, int64 [rows], by a random linear teacher; a tenth is drawn at random."""
    scores = csr @ rng.standard_normal((csr.shape[1], classes)).astype(np.float32)
    by_chance = rng.integers(0, classes, csr.shape[0])
    return np.where(rng.random(csr.shape[0]) < NOISE, by_chance, scores.argmax(axis=1)).astype(np.int64)
