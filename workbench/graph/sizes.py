"""Bytes of values that do not exist yet: exact for dense ones, from a density or an upper bound for sparse ones."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench import formats


class Size(NamedTuple):
    """Bytes of a value, how well known (`kind`: exact, estimated, at most, unknown), and the density they follow."""

    bytes: int | None
    kind: str
    density: float | None = None


UNKNOWN = Size(None, "unknown")


def dense_bytes(shape: Sequence[int], dtype: np.dtype) -> int:
    """Bytes of a dense array."""
    return math.prod(shape) * dtype.itemsize


def of_value(value: Any) -> Size:
    """The size of an array that exists."""
    stored = getattr(value, "nnz", value.size if isinstance(value, np.ndarray) else 0)
    return Size(formats.nbytes(value), "exact", stored / max(math.prod(value.shape), 1))


def of_array(format: str, shape: Sequence[int | None] | None, dtype: np.dtype, density: float | None) -> Size:
    """The size of an array of that density; of the largest there can be where none is given."""
    if shape is None or None in shape:
        return UNKNOWN
    if format == "dense":
        return Size(dense_bytes(shape, dtype), "exact")
    if density is not None and not 0 <= density <= 1:
        raise ValueError(f"density is {density}. Allowed: from 0 to 1.")
    used = 1.0 if density is None else density
    rows, width = shape[0], math.prod(shape[1:])
    stored_rows = math.ceil(used * rows)
    nnz = stored_rows * width if format == "row_sparse" else math.ceil(used * rows * width)
    bytes_all = formats.predicted_bytes(format, rows, width, nnz, dtype, np.int32, stored_rows=stored_rows)
    return Size(bytes_all, "at most" if density is None else "estimated", density)


def of_result(
    format: str, shape: Sequence[int], dtype: np.dtype, inputs: Sequence[tuple[str, Sequence[int], Size]]
) -> Size:
    """The size of an operator's result: as dense as the only input of its format and shape, else at most everything."""
    alike = [size for form, of, size in inputs if form == format and tuple(of) == tuple(shape)]
    only = len(alike) == 1 and alike[0].density is not None
    return of_array(format, shape, dtype, alike[0].density if only else None)
