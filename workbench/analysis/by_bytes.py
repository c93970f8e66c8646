"""Break-even in memory by bytes: from the predicted bytes of rows, which the formulas of the formats give.

An entry of CSR takes its value and an index, a place of a dense array its value: 8 bytes against 4 for float32 values
and int32 indices, so half of the places. Indptr, batches, weights and states move that, and are in the predictions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.analysis import configurations, formatting
from workbench.analysis.intervals import number_or_none

Record = Mapping[str, Any]
PREDICTED = "bytes_predicted"
ALIKE = 0.02
"""Predicted bytes that differ by less than this share at every density have no crossing worth naming."""


class ByBytes(NamedTuple):
    """Density up to which a sparse configuration has fewer predicted bytes than the dense candidate of fewest.

    `density` is None if there is none up to 100 %; then `is_less` says whether sparse has fewer everywhere.
    `is_beyond` tells that it lies beyond the densities of the rows, on the line through the last two. `is_level` tells
    that the two differ by less than 2 % at each of these.
    """

    density: float | None
    is_less: bool
    is_beyond: bool
    is_level: bool
    dense: Record

    @property
    def place(self) -> str:
        """The density in words, as it goes on a sentence, or that there is none."""
        if self.density is None:
            return self.text
        return f"it is at {self.text}{', beyond what was measured' if self.is_beyond else ''}"

    @property
    def text(self) -> str:
        """The density in words, or that there is none."""
        if self.is_level:
            return "the two are alike within 2 %"
        if self.density is None:
            return "sparse is smaller up to 100 %" if self.is_less else "dense is smaller at every density"
        return f"{formatting.format_density(self.density, 2)} density"


def breakeven_by_bytes(sparse: Iterable[Record], dense: Iterable[Record]) -> ByBytes | None:
    """Return the break-even in memory by bytes of one sparse configuration against the best of dense candidates.

    None without predictions at two densities of both. O(rows).
    """
    mine = _predicted(sparse)
    heads = {line: rows[0] for line, rows in configurations.dense_lines(dense).items()}
    sizes = {line: _predicted(rows) for line, rows in configurations.dense_lines(dense).items()}
    sizes = {line: own for line, own in sizes.items() if own.keys() >= mine.keys()}
    if len(mine) < 2 or not sizes:
        return None
    asked = sorted(mine, key=lambda density: mine[density][0])
    at = [mine[density][0] for density in asked]
    best = [min(sizes, key=lambda line: sizes[line][density][1]) for density in asked]
    gaps = [mine[density][1] - sizes[line][density][1] for density, line in zip(asked, best, strict=True)]
    changes = [k for k in range(1, len(at)) if gaps[k - 1] < 0 <= gaps[k]]
    last = changes[0] if changes else len(at) - 1
    density = _zero_crossing(at[last - 1 : last + 1], gaps[last - 1 : last + 1])
    is_level = all(abs(gap) < ALIKE * mine[one][1] for gap, one in zip(gaps, asked, strict=True))
    is_known = not is_level and (bool(changes) or (gaps[-1] < 0 and density is not None and density <= 1))
    return ByBytes(density if is_known else None, gaps[-1] < 0, not changes, is_level, heads[best[last]])


def breakeven_by_bytes_clause(sparse: Sequence[Record], dense: Sequence[Record]) -> str:
    """Return break-even by bytes against a dense array, and against the dense candidate of fewest bytes if that is
    another.

    Data that are held as CSR on both sides differ by their batches alone, so the array comes first. "" without
    predictions.
    """
    best = breakeven_by_bytes(sparse, dense)
    if best is None:
        return ""
    array = breakeven_by_bytes(sparse, [row for row in dense if configurations.storage_of(row) == configurations.HELD])
    text = _sentence(array or best, sparse[0])
    if array is None or configurations.storage_of(best.dense) == configurations.HELD:
        return text
    return f"{text}; against {formatting.name_configuration(best.dense)} {best.place}"


def _zero_crossing(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return the crossing of zero by the line through two points; None if it does not rise."""
    if y[1] <= y[0]:
        return None
    return float(x[0] - y[0] * (x[1] - x[0]) / (y[1] - y[0]))


def _predicted(rows: Iterable[Record]) -> dict[float | None, tuple[float, float]]:
    """Return the density measured and the least predicted bytes, by the density asked for."""
    found: dict[float | None, tuple[float, float]] = {}
    for row in rows:
        density, size = configurations.density_of(row), number_or_none(row.get(PREDICTED))
        if density and size:
            least = found.get(row["density"], (density, np.inf))[1]
            found[row["density"]] = density, min(size, least)
    return found


def _sentence(found: ByBytes, row: Record) -> str:
    """Return clause about a break-even by bytes, with the bytes of an entry and of a place of the row's types."""
    value = 8 if row.get("dtype") == "float64" else 4
    index = 8 if row.get("index_dtype") == "int64" else 4
    rule = f"by bytes, {value + index} an entry against {value} a place of a dense array"
    against = (
        ""
        if configurations.storage_of(found.dense) == configurations.HELD
        else f", against {formatting.name_configuration(found.dense)}"
    )
    return f"{rule}, {found.place}{against}"
