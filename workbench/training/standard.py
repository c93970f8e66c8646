"""Columns far from zero or of unlike scales, and targets of any size, as solvers train them: near 0, of about 1.

A column that (nearly) all rows have is shifted by its mean, which keeps a sparse matrix as sparse as it is; the
intercept takes that back, as it has no penalty. If two columns have very different scales, each is divided by its own.
Numbers are shifted and scaled in float64 before they are narrowed. Weights are returned for the columns and targets as
they came, and the penalty is on these weights: it is `penalty` times as large for each squared weight inside.

>>> import numpy as np, scipy.sparse
>>> x = scipy.sparse.csr_array([[1990.0, 0.0], [2010.0, 3.0]])
>>> standard = standard_of(x, np.float64([[1.0], [2.0]]), None, "squared", has_intercept=True)
>>> standard.rows(x).toarray().tolist(), standard.targets(np.float64([[1.0], [2.0]])).tolist()
([[-10.0, 0.0], [10.0, 3.0]], [[-1.0], [1.0]])
>>> standard.outside(np.array([[0.1], [0.0], [0.0]])).tolist()
[[0.05], [0.0], [-98.5]]
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

UNLIKE = 30
"""Ratio of the root mean squares of two columns' entries from which on dual ascent hardly moves the smaller one."""
FAR = 2
"""Mean of a column, in its deviations, from which on it is shifted."""
PIECES, PIECE = 32, 2048
"""Pieces of the entries, and entries of each, from which the scales of columns are estimated in large data: to add up
all entries by column takes as long as an epoch of dual ascent."""
FILLED, SOME, SURE = 0.99, 128, 0.95
"""Share of the rows that have an entry of a column that is shifted; rows that tell which ones may be, by what share."""
FAR_IN_FLOAT32, TINY, HUGE = 1000, 1e-15, 1e15
"""Mean of a column or target, in its deviations, from which on float32 would lose what float64 has of it; and sizes of
numbers whose squares are none of float32."""


PENALTIES = ("decay", "decoupled", "l1", "clip_weights")
"""Options of optimizers that limit weights, so that scaled columns would change what they mean."""


def has_penalty(options: Mapping[str, Any]) -> bool:
    """Return whether options of an optimizer limit weights."""
    return any(options.get(name) for name in PENALTIES)


class Standard(NamedTuple):
    """Center and scale of each column [D], None if all are 0 or 1, and of each target [N]."""

    center: np.ndarray | None
    scale: np.ndarray | None
    target_center: np.ndarray | float = 0.0
    target_scale: np.ndarray | float = 1.0

    @property
    def is_plain(self) -> bool:
        """Return whether rows and targets stay as they are."""
        is_same = self.center is None and self.scale is None
        return is_same and not np.any(self.target_center) and bool(np.all(self.target_scale == 1))

    @property
    def penalty(self) -> np.ndarray | None:
        """Return what multiplies the decay of each squared weight inside [D], None for 1."""
        return None if self.scale is None else self.scale**-2.0

    def with_targets_as_they_are(self) -> "Standard":
        """Return a copy that changes targets only if their mean or deviation is far from 0 and 1."""
        center, scale = np.abs(self.target_center), np.asarray(self.target_scale)
        is_near = (center < UNLIKE * np.maximum(scale, 1)) & (scale < UNLIKE) & (scale * UNLIKE > 1)
        return self._replace(target_center=0.0, target_scale=1.0) if is_near.all() else self

    def rows(self, x: Any) -> Any:
        """Return x [R, D], csr or dense, shifted and scaled in its dtype; itself if nothing changes."""
        if self.center is None and self.scale is None:
            return x
        made = x.astype(np.float64)
        if self.center is not None:
            made = _shifted(made, self.center)
        if self.scale is not None and isinstance(made, np.ndarray):
            made /= self.scale
        elif self.scale is not None:
            made.data /= self.scale[made.indices]
        return made.astype(x.dtype)

    def targets(self, y: np.ndarray, dtype: Any = None) -> np.ndarray:
        """Return targets [R, N] shifted and scaled, in `dtype` or their own; themselves if nothing changes."""
        if np.any(self.target_center) or np.any(self.target_scale != 1):
            return ((y.astype(np.float64) - self.target_center) / self.target_scale).astype(dtype or y.dtype)
        return y if dtype is None else np.ascontiguousarray(y, dtype)

    def outside(self, point: np.ndarray) -> np.ndarray:
        """Return weights and intercept [D + 1, N], float64, for rows and targets as they came."""
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


def standard_of(
    x: Any,
    y: np.ndarray,
    weights: np.ndarray | None,
    loss: str,
    *,
    has_intercept: bool,
    scales: bool = True,
    for_steps: bool = False,
) -> Standard:
    """Return how rows x [R, D], csr or dense, and targets are trained; `weights` [R] are those of the rows, or None.

    Columns are scaled only if `scales`, and `for_steps` of an optimizer also if one has a scale unlike 1; nothing is
    shifted without an intercept.
    """
    center = None
    if has_intercept:
        far, means, _ = _far_columns(x, weights)
        if len(far):
            center = np.zeros(x.shape[1])
            center[far] = means
    shifted = x if center is None else _shifted(x.astype(np.float64), center)
    scale = _scales(shifted, center is not None if for_steps else None) if scales else None
    if loss != "squared":
        return Standard(center, scale)
    return Standard(center, scale, *_of_targets(y, weights, has_intercept))


def needs_float64(x: Any, y: np.ndarray | None) -> bool:
    """Return whether float32 weights and scores of rows x and numbers y (None: classes) would lose what these tell."""
    _, means, deviations = _far_columns(x, None)
    if ((deviations > 0) & (np.abs(means) > FAR_IN_FLOAT32 * deviations)).any():
        return True
    if y is None or not y.size:
        return False
    means, scales = _of_targets(y.reshape(len(y), -1), None, has_intercept=True)
    largest = float(np.abs(y).max())
    return bool((np.abs(means) > FAR_IN_FLOAT32 * scales).any()) or not (TINY < largest < HUGE or largest == 0)


def _of_targets(y: np.ndarray, weights: np.ndarray | None, has_intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return center and scale [N] of targets [R, N]: mean, 0 without an intercept, and deviation, 1 if that is 0."""
    means, deviations = _means_and_deviations(y, weights)
    if not has_intercept:
        deviations, means = np.hypot(means, deviations), np.zeros_like(means)
    return means, np.where(deviations > 0, deviations, 1.0)


def _far_columns(x: Any, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (indices, means, deviations) [K] of the filled columns of x, csr or dense, that are far from 0.

    `weights` [R] are those of the rows, None for ones.
    """
    full = _filled_columns(x)
    columns = x[:, full] if len(full) else np.zeros((0, 0))
    means, deviations = _means_and_deviations(
        columns if isinstance(columns, np.ndarray) else columns.toarray(), weights
    )
    is_far = np.abs(means) > FAR * deviations
    return full[is_far], means[is_far], deviations[is_far]


def _filled_columns(x: Any) -> np.ndarray:
    """Return the indices of the columns of x [R, D], csr or dense, that have entries in nearly all rows."""
    rows, features = x.shape
    if isinstance(x, np.ndarray):
        return np.flatnonzero(np.count_nonzero(x, axis=0) >= FILLED * rows) if rows else np.zeros(0, np.int64)
    some = np.linspace(0, rows - 1, SOME if rows else 0).astype(np.int64)
    found = np.concatenate([x.indices[x.indptr[row] : x.indptr[row + 1]] for row in some] or [[]])
    columns, counts = np.unique(found, return_counts=True)
    columns = columns[counts >= SURE * len(some)]
    if not len(columns):  # as of most sparse data: to count all entries takes as long as a pass
        return columns
    return columns[np.bincount(x.indices, minlength=features)[columns] >= FILLED * rows]


def _shifted(x: Any, center: np.ndarray) -> Any:
    """Return x [R, D] less `center` [D] in each row, in the form of x; entries are stored for all columns shifted."""
    if isinstance(x, np.ndarray):
        return x - center
    columns = np.flatnonzero(center)
    indptr = (np.arange(x.shape[0] + 1) * len(columns)).astype(x.indptr.dtype)
    indices = np.tile(columns, x.shape[0]).astype(x.indices.dtype)
    return x - type(x)((np.tile(center[columns], x.shape[0]), indices, indptr), shape=x.shape)


def _means_and_deviations(columns: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation [K], float64, of columns [R, K], of constant ones exactly their value and 0."""
    columns = np.asarray(columns, np.float64)
    if not columns.size:
        return np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    low, high = columns.min(axis=0), columns.max(axis=0)
    largest = np.maximum(np.maximum(np.abs(low), np.abs(high)), np.finfo(np.float64).tiny)
    means = np.where(low == high, low, np.average(columns / largest, axis=0, weights=weights) * largest)
    return means, np.sqrt(np.average(((columns - means) / largest) ** 2, axis=0, weights=weights)) * largest


def _scales(x: Any, is_shifted: bool | None) -> np.ndarray | None:
    """Return the root mean square of the entries other than 0 of each column [D] of x, csr or dense, 1 if it has none.

    None if those of two columns differ by at most `UNLIKE` times and their squares are numbers of float32. Of more
    entries than the `PIECES`, None also if the columns of these do not differ. For steps of an optimizer `is_shifted`
    is whether x is: its columns are scaled then, and if the largest entry is far from 1.
    """
    is_csr = not isinstance(x, np.ndarray)
    sizes = np.abs(x.data if is_csr else x)
    largest = float(sizes.max(initial=0.0))
    if not largest:
        return None
    is_near = TINY < largest < HUGE if is_shifted is None else not is_shifted and 1 / UNLIKE < largest < UNLIKE
    if is_csr:
        if is_near and largest <= UNLIKE * sizes.min():
            return None
        if is_near and x.nnz > 2 * PIECES * PIECE:
            starts = np.linspace(0, x.nnz - PIECE, PIECES).astype(np.int64)
            places = (starts[:, None] + np.arange(PIECE)).reshape(-1)
            if not _are_unlike(_root_mean_squares(x.indices[places], x.data[places])):
                return None
        scale = _root_mean_squares(x.indices, x.data, x.shape[1])
    else:
        squares = np.square(x / largest, dtype=np.float64).sum(axis=0) / np.maximum(np.count_nonzero(x, axis=0), 1)
        scale = np.sqrt(squares) * largest
    return np.where(scale > 0, scale, 1.0) if not is_near or _are_unlike(scale) else None


def _root_mean_squares(columns: np.ndarray, data: np.ndarray, features: int = 0) -> np.ndarray:
    """Return the root mean square of the entries `data` [z] in each of their `columns` [z]."""
    largest = float(np.abs(data).max()) or 1.0
    squares = np.bincount(columns, weights=np.square(data / largest, dtype=np.float64), minlength=features)
    return np.sqrt(squares / np.maximum(np.bincount(columns, minlength=features), 1)) * largest


def _are_unlike(scale: np.ndarray) -> bool:
    """Return whether two of the scales that are not 0 differ by more than `UNLIKE` times."""
    scale = scale[scale > 0]
    return bool(len(scale)) and bool(scale.max() > UNLIKE * scale.min())
