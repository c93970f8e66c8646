"""Configurations of `bench fair`: a covering array over sizes, and the usual size by name."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.bench import experiment
from workbench.bench.shapes import BenchError

# Covering arrays: few combinations of values in which every pair of values of two axes occurs.


Pair = tuple[tuple[str, Any], tuple[str, Any]]


def pairs_of(combination: Mapping[str, Any]) -> list[Pair]:
    """Return the pairs of (axis, value) that a combination has.

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
    """Different combinations that cover all pairs of values of any two axes so often, the same ones at every call.

    Greedy: next is the combination with the most pairs that are not covered yet; of several the one whose pairs were
    covered least, then the first. O(combinations * count). The count is near `times` times the product of the two
    longest axes, which is the least possible. Combinations that are not possible are left out, with pairs that only
    these have, which are covered less often where possible combinations run out. The first ones are those `chosen`.

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
        """Append the candidate at this index to the result and count its pairs as covered."""
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
class Configuration:
    """Sizes of a training: D `features`, rows a batch, N outputs (`width`), and the share of values that are stored."""

    features: int
    batch_rows: int
    width: int
    density: float
    seed: int = 0
    bytes_dense: int = BYTES_DENSE

    @property
    def name(self) -> str:
        """Sizes as the configuration is asked for."""
        return f"D{self.features}-B{self.batch_rows}-N{self.width}-{100 * self.density:g}%"

    @property
    def rows(self) -> int:
        """Number of rows: whole batches, as many as fit in `bytes_dense`, at least `BATCHES_LEAST`."""
        batch = 4 * self.features * self.batch_rows
        return self.batch_rows * max(BATCHES_LEAST, self.bytes_dense // batch)

    @property
    def model(self) -> str:
        """Logistic regression of one output, softmax of several."""
        return "logistic" if self.width == 1 else "softmax"

    @property
    def bytes_needed(self) -> int:
        """Bytes of X dense and as CSR, with what drawing it takes."""
        dense = 4 * self.rows * self.features
        return dense + int(3 * dense * self.density) + 2**28

    def columns(self) -> dict[str, Any]:
        """Return the columns of a record that the configuration settles."""
        return {
            "configuration": self.name,
            "model": self.model,
            "features": self.features,
            "batch_rows": self.batch_rows,
            "width": self.width,
            "density": self.density,
            "rows": self.rows,
            "seed": self.seed,
        }


def all_configurations() -> list[Configuration]:
    """Return the usual size, then the covering array, small batches first."""
    usual = [Configuration(**USUAL, width=width, density=density) for width, density in USUAL_POINTS]
    return usual + [Configuration(**values) for values in covering_array(AXES, TIMES)]


def quick_configurations() -> list[Configuration]:
    """Return the usual size at two densities, and eight of the covering array at equal distances."""
    configurations = all_configurations()
    usual, rest = configurations[: len(USUAL_POINTS)], configurations[len(USUAL_POINTS) :]
    return usual[::2] + rest[:: len(rest) // 8][:8]


def choose_configurations(
    names: Iterable[str] = (), is_quick: bool = False, only: Mapping[str, Any] | None = None
) -> list[Configuration]:
    """Return the configurations of these names, or all or the quick ones, with these values.

    `BenchError` lists the known.
    """
    every = all_configurations()
    found = experiment.find_by_name(every, names) or (quick_configurations() if is_quick else list(every))
    for axis, value in (only or {}).items():
        if value is not None and value not in {getattr(one, axis) for one in found}:
            values = ", ".join(f"{each:g}" for each in sorted({getattr(one, axis) for one in found}))
            raise BenchError(f"No configuration has {axis} {value:g}. Expected one of: {values}.")
        found = [one for one in found if value is None or getattr(one, axis) == value]
    if not found:
        raise BenchError("No configuration has all of these values; give fewer of them.")
    return found
