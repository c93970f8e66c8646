"""Input of estimators: rows, targets and weights as users hold them, checked and made arrays that are trained on."""

import os
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import _check_sample_weight

from workbench import formats
from workbench.bridges.contracts import require_sound
from workbench.formats.arrays import host_array
from workbench.formats.compressed import with_native_order
from workbench.training.learner import with_one_width

FLOATS: list[type] = [np.float32, np.float64]
EXACT = 2**24
"""Whole numbers up to this size are exact in float32."""
CSR = scipy.sparse.csr_array, scipy.sparse.csr_matrix
PLAIN = (np.ndarray, *CSR)
"""Types of data that scikit-learn's validation does not convert."""


def rows_that_count(x: Any, y: np.ndarray, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return x, y and weights float64 [rows] of the rows whose weight is above 0; all, and None, without weights.

    Raises ValueError for weights below 0, that are not finite, all 0, or of another length.
    """
    if sample_weight is None:
        return x, y, None
    weights = _check_sample_weight(sample_weight, x, dtype=np.float64)
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`; weights are 0 or more.")
    if not are_finite(weights):  # a number for all rows, which scikit-learn does not check
        raise ValueError(f"sample_weight is {sample_weight}; expected finite numbers of 0 or more.")
    return without_zeros(x, y, weights, "samples")


def without_zeros(x: Any, y: np.ndarray, weights: np.ndarray, what: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return x, y and weights of the rows whose weight is above 0; ValueError, on weights of `what`, if none is."""
    kept = np.flatnonzero(weights > 0)
    if not len(kept):
        raise ValueError(f"All weights of {what} are 0; at least one is above 0.")
    if len(kept) == len(weights):
        return x, y, weights
    return x[kept], np.ascontiguousarray(y[kept]), weights[kept]


def with_weights(
    x: Any, targets: np.ndarray, weights: np.ndarray, dtype: np.dtype, is_whole: bool
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return the rows whose weight is above 0, their targets and weights, of a whole training with the mean 1.

    The loss is then the mean over the sum of the weights: a weight of 2 is the row twice. Weights that are all 1 are
    None. Raises ValueError if all are 0, as those of classes may be.
    """
    x, targets, weights = without_zeros(x, targets, weights, "classes and samples")
    if is_whole:
        weights = weights / weights.max()
        weights *= len(weights) / weights.sum()
    if (weights == 1).all():
        return x, targets, None
    with np.errstate(over="ignore"):  # what is infinite as float32 ends in weights that are refused
        return x, targets, np.ascontiguousarray(weights, dtype)


def canonical(x: Any) -> Any:
    """Return x, csr, csc or dense: sparse x sorted, each place once, whatever SciPy remembers of it."""
    return x if isinstance(x, np.ndarray) else formats.arrays.canonical(with_one_width(x))


def float_types(x: Any) -> list[type]:
    """Return the dtypes that X may have; values of others become the first: float32 if it holds them, else float64.

    Lists and frames, whose values are not seen here, become float64 unless all columns are of small types.
    """
    if isinstance(x, np.ndarray) or scipy.sparse.issparse(x):
        values = x
        if scipy.sparse.issparse(x):
            values = (x.tocoo() if x.format in ("dok", "lil") else x).data
        is_small = np.can_cast(x.dtype, np.float32) or not values.size
        if not is_small and x.dtype.kind in "iu":
            is_small = int(values.min()) >= -EXACT and int(values.max()) <= EXACT
    else:
        dtypes = list(getattr(x, "dtypes", []))
        is_small = bool(dtypes) and all(isinstance(one, np.dtype) and np.can_cast(one, np.float32) for one in dtypes)
    return FLOATS if is_small else FLOATS[::-1]


def refuse_path(x: Any, method: str) -> None:
    """Raise TypeError, with what to type, if x is text or a path instead of a matrix; `method` is what was called."""
    if not isinstance(x, str | os.PathLike):
        return
    name = os.fspath(x)
    if method == "fit":
        todo = f"model = wb.train({name!r}), or X = wb.load({name!r}).x for its matrix"
    else:
        todo = f'model.save("model") of what wb.train returned, then wb.load_model("model").apply({name!r})'
    raise TypeError(f"X is the path {name!r}; expected a matrix [rows, features].\nType {todo}.")


def is_plain(x: Any) -> bool:
    """Return whether x is a dense or csr array [rows, columns], neither 0, of finite float32 or float64.

    `validate_data` returns such arrays unchanged; it takes 200 us, several times as long as a step of 100 rows.
    """
    if type(x) not in PLAIN or len(x.shape) != 2 or 0 in x.shape or x.dtype not in FLOATS:
        return False
    return are_finite(x if type(x) is np.ndarray else x.data)


def is_plain_target(y: Any, rows: int, kinds: str) -> bool:
    """Return whether y is a finite array [rows] of these dtype kinds, which `validate_data` returns as it is."""
    is_vector = type(y) is np.ndarray and y.shape == (rows,) and y.dtype.kind in kinds
    return is_vector and (y.dtype.kind != "f" or are_finite(y))


def are_finite(values: np.ndarray) -> bool:
    """Return whether all values are finite: counted, which is faster than their sum and gives no warning."""
    return bool(np.count_nonzero(np.isfinite(values)) == values.size)


def refuse_masked(array: Any, name: str) -> None:
    """Raise ValueError if the array `name` has masked values."""
    if isinstance(array, np.ma.MaskedArray) and (count := int(np.ma.count_masked(array))):
        raise ValueError(
            f"{name} is a masked array with {count:,} masked values; expected a value everywhere.\n"
            f"Type {name}.filled(0), or the value that stands for a missing one."
        )


def sound(x: Any, boundary: str) -> Any:
    """Return `x` as an array on the host, sparse ones in the byte order of this machine; lists and frames unchanged.

    Raises ContractError for invalid sparse arrays: SciPy's conversions follow indices wherever they lead. ValueError
    for masked values, which scikit-learn reads as if they were there.
    """
    refuse_masked(x, "X")
    x = host_array(x)
    if scipy.sparse.issparse(x):
        x = with_native_order(x)
        require_sound(x, boundary)
    return x
