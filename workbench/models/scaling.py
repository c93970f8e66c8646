"""Scaling of columns and targets: values of any size and offset are trained as values near 0, of about 1.

Of a linear model a column that (nearly) all rows have is shifted by its mean, which keeps a sparse matrix as sparse as
it is; the intercept takes that back, as it has no penalty. If two columns have very different scales, each is divided
by its own. Of a model with products of pairs of values each column is divided by a power of 2, with which products are
exact, and a column whose mean exceeds its deviation is shifted. Parameters are returned for columns and targets as
they came, and the penalty of a linear model is on these: it is `penalty` times as large for each squared weight inside.

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array([[1990.0, 0.0], [2010.0, 3.0]])
>>> scaling = linear_scaling(x, np.float64([[1.0], [2.0]]), None, "squared", has_intercept=True)
>>> scaling.rows(x).toarray().tolist(), scaling.targets(np.float64([[1.0], [2.0]])).tolist()
([[-10.0, 0.0], [10.0, 3.0]], [[-1.0], [1.0]])
>>> scaling.outside(np.array([[0.1], [0.0], [0.0]])).tolist()
[[0.05], [0.0], [-98.5]]
>>> pairs = pair_scaling(np.float64([[1990, 0], [2010, 8], [2000, 0], [2020, 0]]), None, has_intercept=True)
>>> pairs.center.tolist(), pairs.scale.tolist()
([2005.0, 0.0], [8.0, 8.0])
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from kernels.moments import Moments, column_moments, largest_sizes, root_mean_squares
from workbench.formats.compressed import assemble, index_dtype

UNLIKE = 30
"""Ratio of the root mean squares of two columns' entries from which on dual ascent hardly moves the smaller one."""
UNLIKE_IN_SEARCH = 5
"""The same ratio from which on a search by dual ascent takes too strong a decay, as of one price among categories."""
FAR = 2
"""Mean of a column of a linear model, in its deviations, from which on it is shifted."""
PIECES, PIECE = 32, 2048
"""Pieces of the entries, and entries of each, from which the scales of columns are estimated in large data: to add up
all entries by column takes as long as an epoch of dual ascent."""
FILLED, SOME, SURE = 0.99, 128, 0.95
"""Share of the rows that have an entry of a column that is shifted; rows that tell which ones may be, by what share."""
FAR_IN_FLOAT32, TINY, HUGE = 1000, 1e-15, 1e15
"""Mean of a column or target, in its deviations, from which on float32 would lose what float64 has of it; and sizes of
numbers whose squares are none of float32."""
FULL, LONGEST = 0.5, 8.0
"""Of pairs: share of the rows that have an entry from which on a column may be shifted, which then has one in all rows;
and the length of a row at most, by whose square terms of pairs grow."""
COARSE, FARTHEST = 64.0, 2e6
"""Mean of a column, by its deviation, from which on float32 is too coarse for terms of pairs, and from which on float64
is: that column stays where it is."""
MOST_EXPONENT, MOST_NARROW = 1000.0, 30.0
"""Scales of pairs are 2 to the power of at most so much; in float32, which holds squares of what is divided by them, so
much."""

PENALTIES = ("decay", "decoupled", "l1", "clip_weights")
"""Options of optimizers that limit weights, so that scaled columns would change what they mean."""


def has_penalty(options: Mapping[str, Any]) -> bool:
    """Return whether options of an optimizer limit weights."""
    return any(options.get(name) for name in PENALTIES)


@final
@dataclass(eq=False)
class Scaling:
    """X is trained on as (X - center) / scale, targets as (y - target_center) / target_scale.

    `center` and `scale` [D] are float64, None for zeros and ones; a scale of 0 is that of a column without entries so
    far, which counts as 1. The target's are numbers or [N]. Of pairs, `row` is a factor of all scales that bounds the
    length of rows, and `held` are the parameters that a change of units rounds, as they are trained.
    """

    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    target_center: np.ndarray | float = 0.0
    target_scale: np.ndarray | float = 1.0
    row: float = 1.0
    held: Mapping[str, np.ndarray] | None = None
    is_wide: bool = False
    """Whether float32 is too coarse for the parameters of values as they are."""
    too_far: tuple[int, ...] = ()
    """Columns whose mean exceeds `FARTHEST` deviations, which are not shifted."""

    @property
    def is_plain(self) -> bool:
        """Return whether rows and targets stay as they are."""
        is_same = self.center is None and self.scale is None
        return is_same and not np.any(self.target_center) and bool(np.all(self.target_scale == 1))

    @property
    def penalty(self) -> np.ndarray | None:
        """Return what multiplies the decay of each squared weight inside [D], None for 1."""
        return None if self.scale is None else self.scale**-2.0

    @property
    def scales(self) -> np.ndarray:
        """Return the scale of each column [D], 1 for those without entries so far; [1.0] if nothing is scaled."""
        return np.ones(1) if self.scale is None else np.where(self.scale > 0, self.scale, 1.0)

    @property
    def moved(self) -> np.ndarray:
        """Return the indices of the shifted columns."""
        return np.zeros(0, np.int64) if self.center is None else np.flatnonzero(self.center)

    def with_targets_as_they_are(self) -> "Scaling":
        """Return a copy that changes targets only if their mean or deviation is far from 0 and 1."""
        center, scale = np.abs(self.target_center), np.asarray(self.target_scale)
        is_near = (center < UNLIKE * np.maximum(scale, 1)) & (scale < UNLIKE) & (scale * UNLIKE > 1)
        return replace(self, target_center=0.0, target_scale=1.0) if is_near.all() else self

    def rows(self, x: Any) -> Any:
        """Return x [R, D], csr or dense, shifted and scaled in its dtype; itself if nothing changes."""
        scales = self.scales
        if not len(self.moved) and (scales == 1).all():
            return x
        made = x
        if self.center is not None and len(self.moved):
            made = _shifted(x.astype(np.float64), self.center)
        if isinstance(made, np.ndarray):
            return (made / scales).astype(x.dtype)
        data = made.data if self.scale is None else made.data / scales[made.indices]
        return assemble(made.format, made.indptr, made.indices, data.astype(x.dtype), made.shape)

    def targets(self, y: np.ndarray, dtype: Any = None) -> np.ndarray:
        """Return targets [R, N] shifted and scaled, in `dtype` or their own; themselves if nothing changes."""
        if np.any(self.target_center) or np.any(self.target_scale != 1):
            return ((y.astype(np.float64) - self.target_center) / self.target_scale).astype(dtype or y.dtype)
        return y if dtype is None else np.ascontiguousarray(y, dtype)

    def outside(self, point: np.ndarray) -> np.ndarray:
        """Return weights and intercept [D + 1, N] of a linear model, float64, for rows and targets as they came."""
        point = point * self.target_scale
        if self.scale is not None:
            point[:-1] /= self.scale[:, None]
        point[-1] += self.target_center
        if self.center is not None:
            point[-1] -= self.center @ point[:-1]
        return point

    def inside(self, point: np.ndarray) -> np.ndarray:
        """Return weights and intercept [D + 1, N], float64, for shifted and scaled rows: the inverse of `outside`."""
        point = np.array(point, np.float64)
        if self.center is not None:
            point[-1] += self.center @ point[:-1]
        point[-1] -= self.target_center
        if self.scale is not None:
            point[:-1] *= self.scale[:, None]
        return point / self.target_scale

    def take_targets_of_pairs(self, y: np.ndarray, weights: np.ndarray | None, has_intercept: bool) -> None:
        """Set center and scale, a power of 4, of targets for numbers like y [R, 1], weights [R] or None."""
        _, _, _, means, deviations = column_moments(y.reshape(-1, 1), _shares(weights))
        center = float(means[0]) if has_intercept else 0.0
        size = float(deviations[0] if has_intercept else np.hypot(means[0], deviations[0]))
        self.target_center, self.target_scale = center, float(power(size or abs(center), 4.0))

    def add_columns(self, x: Any, weights: np.ndarray | None) -> None:
        """Set the scale of columns that x [R, D] has entries in and no rows before had: their root mean square."""
        assert self.scale is not None
        row, column, data = _entries(x)
        if not len(new := np.flatnonzero(self.scale[column] == 0)):
            return
        seen = np.unique(column[new])
        shares = None if weights is None else weights[row[new]].astype(np.float64)
        sizes = root_mean_squares(column[new], data[new], len(self.scale), shares)
        self.scale[seen] = power(sizes[seen]) * self.row


def linear_scaling(
    x: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    loss: str,
    *,
    has_intercept: bool,
    scales: bool = True,
    for_steps: bool = False,
) -> Scaling:
    """Return how rows x [R, D], csr or dense, and targets of a linear model are trained; x may be csc without `scales`.

    `weights` [R] are those of the rows, or None. Columns are scaled only if `scales`, and `for_steps` of an optimizer
    also if one has a scale unlike 1; nothing is shifted without an intercept.
    """
    center, known, x = None, None, _as_dense(x)
    if has_intercept:
        full, moments = _filled_columns(x, weights)
        is_far = np.abs(moments.means) > FAR * moments.deviations
        if is_far.any():
            center = np.zeros(x.shape[1])
            center[full[is_far]] = moments.means[is_far]
        elif weights is None and len(full) == x.shape[1]:
            known = moments
    shifted = x if center is None else _shifted(x.astype(np.float64), center)
    scale = _scales(shifted, center is not None if for_steps else None, known) if scales else None
    if loss != "squared":
        return Scaling(center, scale)
    return Scaling(center, scale, *_of_targets(y, weights, has_intercept))


def pair_scaling(x: Any, weights: np.ndarray | None, *, has_intercept: bool) -> Scaling:
    """Return how rows x [R, D], csr or dense, of a model of pairs are trained; targets as they are.

    `weights` [R] are those of the rows, or None; nothing is shifted without an intercept. Scales are powers of 2.
    """
    scale = np.zeros(x.shape[1])
    scaling = Scaling(np.zeros(x.shape[1]), scale)
    if has_intercept and x.shape[0]:
        _shift_pairs(scaling, x, weights)
    scaling.add_columns(x, weights)
    row, _, data = _entries(scaling.rows(x))
    lengths = np.bincount(row, data**2, x.shape[0])
    scaling.row = float(max(1.0, 2.0 ** np.ceil(np.log2(np.sqrt(lengths.max(initial=1e-300)) / LONGEST))))
    scale *= scaling.row
    scaling.is_wide |= bool((np.abs(np.log2(scaling.scales)) > MOST_NARROW).any())
    return scaling


def _shift_pairs(scaling: Scaling, x: Any, weights: np.ndarray | None) -> None:
    """Set center and scale of the columns whose mean exceeds their deviation and that have entries in most rows."""
    assert scaling.center is not None and scaling.scale is not None  # noqa: PT018 - arrays of `pair_scaling`
    row, column, data = _entries(x)
    share = np.ones(x.shape[0]) / x.shape[0] if weights is None else weights / weights.sum(dtype=np.float64)
    present = np.bincount(column, share[row], x.shape[1])
    largest = largest_sizes(column, data, x.shape[1])
    part = data / largest[column]
    means = np.bincount(column, share[row] * part, x.shape[1])
    squares = np.bincount(column, share[row] * (part - means[column]) ** 2, x.shape[1])
    deviations = np.sqrt(squares + np.maximum(1 - present, 0) * means**2)
    sizes = np.abs(means)
    moved = (present >= FULL) & (deviations > 0) & (sizes > deviations)
    is_too_far = moved & (sizes >= FARTHEST * deviations)
    moved &= ~is_too_far
    far = np.flatnonzero(is_too_far).tolist()
    scaling.too_far = tuple(place for place in far if np.ptp(data[column == place]) > 0)  # no rounding of a constant
    scaling.is_wide = bool((sizes[moved] > COARSE * deviations[moved]).any())
    scaling.center[moved] = (means * largest)[moved]
    scaling.scale[moved] = power((deviations * largest)[moved])


def needs_float64(x: Any, y: np.ndarray | None) -> bool:
    """Return whether float32 weights and scores of a linear model of rows x and numbers y (None: classes) would lose
    what these tell.
    """
    _, moments = _filled_columns(_as_dense(x), None)
    if ((moments.deviations > 0) & (np.abs(moments.means) > FAR_IN_FLOAT32 * moments.deviations)).any():
        return True
    if y is None or not y.size:
        return False
    means, scales = _of_targets(y, None, has_intercept=True)
    largest = float(np.abs(y).max())
    return bool((np.abs(means) > FAR_IN_FLOAT32 * scales).any()) or not (TINY < largest < HUGE or largest == 0)


def power(size: float | np.ndarray, base: float = 2.0) -> Any:
    """Return the power of `base` that is nearest to each size; 1 for 0. Products with it are exact.

    >>> power(np.float64([3, 0, 0.1])).tolist()
    [4.0, 1.0, 0.125]
    """
    size = np.asarray(size, np.float64)
    most, exponent = MOST_EXPONENT / np.log2(base), np.log2(np.where(size > 0, size, 1)) / np.log2(base)
    return base ** np.clip(np.rint(exponent), -most, most)


def _of_targets(y: np.ndarray, weights: np.ndarray | None, has_intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return center and scale [N] of targets [R, N]: mean, 0 without an intercept, and deviation, 1 if that is 0."""
    _, _, _, means, deviations = column_moments(y.reshape(len(y), -1), _shares(weights))
    if not has_intercept:
        deviations, means = np.hypot(means, deviations), np.zeros_like(means)
    return means, np.where(deviations > 0, deviations, 1.0)


def _shares(weights: np.ndarray | None) -> np.ndarray | None:
    """Return the weights [R] of rows as float64 shares of their sum; None for None."""
    return None if weights is None else weights / np.sum(weights, dtype=np.float64)


def _as_dense(x: Any) -> Any:
    """Return x as a dense array that shares its memory if it is one, or csr or csc that stores all places; else x."""
    if isinstance(x, np.ndarray) or x.nnz != x.shape[0] * x.shape[1] or not x.has_canonical_format:
        return x
    return x.data.reshape(x.shape, order="F" if x.format == "csc" else "C")


def _filled_columns(x: Any, weights: np.ndarray | None) -> tuple[np.ndarray, Moments]:
    """Return the indices [K] of the columns of x [R, D] with entries in nearly all rows, and moments of these columns.

    `x` is csr, csc or dense.

    `weights` [R] are those of the rows, None for ones.
    """
    rows, features = x.shape
    if isinstance(x, np.ndarray):
        moments = column_moments(x, _shares(weights))
        full = np.flatnonzero(moments.counts >= FILLED * max(rows, 1))
        return full, moments if len(full) == features else Moments(*(each[full] for each in moments))
    if x.format == "csc":
        full = np.flatnonzero(np.diff(x.indptr) >= FILLED * max(rows, 1))
        return full, column_moments(x[:, full].toarray(), _shares(weights))
    some = np.linspace(0, rows - 1, SOME if rows else 0).astype(np.int64)
    found = np.concatenate([x.indices[x.indptr[row] : x.indptr[row + 1]] for row in some] or [[]])
    found.sort()
    least = max(int(np.ceil(SURE * len(some))), 1)
    full = found[least - 1 :][found[least - 1 :] == found[: max(len(found) - least + 1, 0)]]
    if not len(full):  # as of most sparse data: to count all entries takes as long as a pass
        return full, column_moments(np.zeros((0, 0)))
    full = np.unique(full)
    full = full[np.bincount(x.indices, minlength=features)[full] >= FILLED * rows]
    return full, column_moments(x[:, full].toarray(), _shares(weights))


def _shifted(x: Any, center: np.ndarray) -> Any:
    """Return x [R, D] less `center` [D] in each row, in the form of x; entries are stored for all columns shifted."""
    if isinstance(x, np.ndarray):
        return x - center
    rows, columns = x.shape[0], np.flatnonzero(center)
    dtype = index_dtype(rows * len(columns) + x.nnz, x.shape[1])
    indptr, indices = np.arange(rows + 1, dtype=dtype) * len(columns), np.tile(columns.astype(dtype), rows)
    return x - assemble("csr", indptr, indices, np.tile(center[columns], rows), x.shape)


def _scales(x: Any, is_shifted: bool | None, known: Moments | None) -> np.ndarray | None:
    """Return the root mean square of the entries other than 0 of each column [D] of x, csr or dense, 1 if it has none.

    None if those of two columns differ by at most `UNLIKE_IN_SEARCH` times and their squares are numbers of float32. Of
    more entries than the `PIECES`, None also if the columns of these do not differ. For steps of an optimizer
    `is_shifted` is whether x is: its columns are scaled then, and if the largest entry is far from 1, and may differ
    by `UNLIKE` times. `known` are the moments of the columns of a dense x, if they are known.
    """
    most = UNLIKE_IN_SEARCH if is_shifted is None else UNLIKE
    is_csr = not isinstance(x, np.ndarray)
    if is_csr:
        sizes = np.abs(x.data)
        largest = float(sizes.max(initial=0.0))
    else:
        moments = known or column_moments(x)
        largest = float(np.maximum(-moments.low, moments.high).max(initial=0.0))
    if not largest:
        return None
    is_near = TINY < largest < HUGE if is_shifted is None else not is_shifted and 1 / UNLIKE < largest < UNLIKE
    if is_csr:
        if is_near and largest <= most * sizes.min():
            return None
        if is_near and x.nnz > 2 * PIECES * PIECE:
            starts = np.linspace(0, x.nnz - PIECE, PIECES).astype(np.int64)
            places = (starts[:, None] + np.arange(PIECE)).reshape(-1)
            if not _are_unlike(root_mean_squares(x.indices[places], x.data[places], x.shape[1]), most):
                return None
        scale = root_mean_squares(x.indices, x.data, x.shape[1])
    else:
        scale = np.hypot(moments.means, moments.deviations) * np.sqrt(x.shape[0] / np.maximum(moments.counts, 1))
    return np.where(scale > 0, scale, 1.0) if not is_near or _are_unlike(scale, most) else None


def _are_unlike(scale: np.ndarray, most: float) -> bool:
    """Return whether two of the scales that are not 0 differ by more than `most` times."""
    scale = scale[scale > 0]
    return bool(len(scale)) and bool(scale.max() > most * scale.min())


def _entries(x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row, column and float64 value of each entry of x, csr or dense, that is not 0."""
    if isinstance(x, np.ndarray):
        row, column = np.nonzero(x)
        return row, column, x[row, column].astype(np.float64)
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    kept = np.flatnonzero(x.data)
    return row[kept], x.indices[kept], x.data[kept].astype(np.float64)
