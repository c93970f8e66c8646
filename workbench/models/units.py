"""Units that columns and targets are trained in: values of any size and offset become values around 1.

>>> import numpy as np
>>> x = np.float64([[1990, 0], [2010, 8], [2000, 0], [2020, 0]])
>>> units = Units.of_rows(x, None, centred=True)
>>> units.shift.tolist(), units.scale.tolist(), units.rows(x)[0].tolist()
([2005.0, 0.0], [8.0, 8.0], [-1.875, 0.0])
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.formats.compressed import assemble, index_dtype

FULL = 0.5
"""Share of the rows that have an entry from which on a column may be centred: it has an entry in all rows then."""
LONGEST = 8.0
"""Length of a row at most: terms of pairs grow by its square."""
FAR, FARTHEST = 64.0, 2e6
"""Mean of a column, by its deviation, from which on float32 is too coarse for terms of pairs, and from which on float64
is: that column stays where it is."""
MOST_EXPONENT, MOST_NARROW = 1000.0, 30.0
"""Scales are 2 to the power of at most so much; in float32, which holds squares of what is divided by them, so much."""


def power(size: float | np.ndarray, base: float = 2.0) -> Any:
    """Return the power of `base` that is nearest to each size; 1 for 0. Products with it are exact.

    >>> power(np.float64([3, 0, 0.1])).tolist()
    [4.0, 1.0, 0.125]
    """
    size = np.asarray(size, np.float64)
    most, exponent = MOST_EXPONENT / np.log2(base), np.log2(np.where(size > 0, size, 1)) / np.log2(base)
    return base ** np.clip(np.rint(exponent), -most, most)


@dataclass
class Units:
    """X is trained on as (X - shift) / scale, targets as (y - target_shift) / target_scale.

    `shift` and `scale` [D] are float64; a scale is a power of 2, 0 for a column without entries so far, and 1 where
    values are around 1. Only columns with entries in most rows have a shift, which has entries in all rows.
    `target_scale` is a power of 4. `row` is a factor of all scales that bounds the length of rows. `held` are the
    parameters that a change of units rounds, as they are trained.
    """

    shift: np.ndarray
    scale: np.ndarray
    row: float = 1.0
    is_wide: bool = False
    """Whether float32 is too coarse for the parameters of values as they are."""
    too_far: tuple[int, ...] = ()
    """Columns whose mean exceeds `FARTHEST` deviations, which are not moved."""
    target_shift: float = 0.0
    target_scale: float = 1.0
    held: Mapping[str, np.ndarray] | None = None

    @classmethod
    def of_rows(cls, x: Any, weights: np.ndarray | None, centred: bool) -> "Units":
        """Return units for rows like x [R, D], csr or dense, weights [R]; columns are moved only if `centred`."""
        units = cls(np.zeros(x.shape[1]), np.zeros(x.shape[1]))
        if centred and x.shape[0]:
            units._centre(x, weights)
        units.add_columns(x, weights)
        row, _, data = _entries(units.rows(x))
        lengths = np.bincount(row, data**2, x.shape[0])
        units.row = float(max(1.0, 2.0 ** np.ceil(np.log2(np.sqrt(lengths.max(initial=1e-300)) / LONGEST))))
        units.scale *= units.row
        units.is_wide |= bool((np.abs(np.log2(units.scales)) > MOST_NARROW).any())
        return units

    def _centre(self, x: Any, weights: np.ndarray | None) -> None:
        """Set shift and scale of the columns whose mean exceeds their deviation and that have entries in most rows."""
        row, column, data = _entries(x)
        share = np.ones(x.shape[0]) / x.shape[0] if weights is None else weights / weights.sum(dtype=np.float64)
        present = np.bincount(column, share[row], x.shape[1])
        largest = _largest(column, data, x.shape[1])
        part = data / largest[column]
        means = np.bincount(column, share[row] * part, x.shape[1])
        squares = np.bincount(column, share[row] * (part - means[column]) ** 2, x.shape[1])
        deviations = np.sqrt(squares + np.maximum(1 - present, 0) * means**2)
        sizes = np.abs(means)
        moved = (present >= FULL) & (deviations > 0) & (sizes > deviations)
        is_too_far = moved & (sizes >= FARTHEST * deviations)
        moved &= ~is_too_far
        far = np.flatnonzero(is_too_far).tolist()
        self.too_far = tuple(place for place in far if np.ptp(data[column == place]) > 0)  # no rounding of a constant
        self.is_wide = bool((sizes[moved] > FAR * deviations[moved]).any())
        self.shift[moved] = (means * largest)[moved]
        self.scale[moved] = power((deviations * largest)[moved])

    def add_columns(self, x: Any, weights: np.ndarray | None) -> None:
        """Set the scale of columns that x [R, D] has entries in and no rows before had: their root mean square."""
        row, column, data = _entries(x)
        if not len(new := np.flatnonzero(self.scale[column] == 0)):
            return
        row, column, data = row[new], column[new], data[new]
        largest, share = _largest(column, data, len(self.scale)), np.ones(len(new)) if weights is None else weights[row]
        squares = np.bincount(column, share * (data / largest[column]) ** 2)
        seen = np.flatnonzero(squares)
        means = squares[seen] / np.bincount(column, share)[seen]
        self.scale[seen] = power(largest[seen] * np.sqrt(means)) * self.row

    def centre_targets(self, y: np.ndarray, weights: np.ndarray | None, centred: bool) -> None:
        """Set shift and scale of targets for those like y [R, 1]; they are moved only if `centred`."""
        y = y[:, 0].astype(np.float64)
        largest = float(np.abs(y).max(initial=0)) or 1.0
        mean = float(np.average(y / largest, weights=weights)) if centred else 0.0
        deviation = float(np.sqrt(np.average((y / largest - mean) ** 2, weights=weights)))
        self.target_shift, self.target_scale = mean * largest, float(power((deviation or abs(mean)) * largest, 4.0))

    @property
    def scales(self) -> np.ndarray:
        """The scale of each column [D], 1 for those without entries so far."""
        return np.where(self.scale > 0, self.scale, 1)

    def rows(self, x: Any) -> Any:
        """Return x [R, D], csr or dense, in these units, in its dtype; x itself if nothing changes."""
        scales, moved, dtype = self.scales, np.flatnonzero(self.shift), x.dtype
        if not len(moved) and (scales == 1).all():
            return x
        if isinstance(x, np.ndarray):
            return ((x - self.shift) / scales).astype(dtype)
        if len(moved):  # entries of zero where rows have none in a column that is moved
            count, wide = x.shape[0], index_dtype(x.shape[0] * len(moved) + x.nnz, x.shape[1])
            indptr = np.arange(0, count * len(moved) + 1, len(moved), dtype=wide)
            indices, shifts = np.tile(moved.astype(wide), count), np.tile(self.shift[moved], count)
            x = x.astype(np.float64) - assemble("csr", indptr, indices, shifts, x.shape)
        data = (x.data / scales[x.indices]).astype(dtype)
        return assemble("csr", x.indptr, x.indices, data, x.shape)

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Return targets y [R, 1] in these units, in their dtype."""
        return ((y.astype(np.float64) - self.target_shift) / self.target_scale).astype(y.dtype)


def _entries(x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row, column and float64 value of each entry of x, csr or dense, that is not 0."""
    if isinstance(x, np.ndarray):
        row, column = np.nonzero(x)
        return row, column, x[row, column].astype(np.float64)
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    kept = np.flatnonzero(x.data)
    return row[kept], x.indices[kept], x.data[kept].astype(np.float64)


def _largest(column: np.ndarray, data: np.ndarray, count: int) -> np.ndarray:
    """Return a power of 2 near the largest size of the entries of each column [count], 1 without any."""
    largest = np.zeros(count)
    np.maximum.at(largest, column, np.abs(data))
    return np.ldexp(1.0, np.where(largest > 0, np.minimum(np.frexp(largest)[1], 1023), 0))
