"""Dense arrays of a smaller type, if it has every value exactly.

>>> narrowed(np.float32([[0, 3], [255, 1]]), np.dtype(np.uint8)).tolist()
[[0, 3], [255, 1]]
"""

from typing import Any

import numpy as np

from workbench.formats.arrays import to_format
from workbench.formats.contract import admit, refuse

VALUES_AT_ONCE = 1 << 20
"""Values that are converted at once: a few MB beside the result."""


def narrowed(x: Any, dtype: np.dtype) -> np.ndarray:
    """The matrix x [rows, columns], of any format, as a dense array of that type; x itself if it is one.

    A value that the type does not have exactly is refused (`FormatError`). O(size), beside the result a few MB.
    """
    _, x = admit(x)
    if isinstance(x, np.ndarray) and x.dtype == dtype:
        return x
    rows, columns = x.shape
    out = np.empty((rows, columns), dtype)
    step = max(VALUES_AT_ONCE // max(columns, 1), 1)
    source = x if isinstance(x, np.ndarray) else to_format(x, "csr")
    for start in range(0, rows, step):
        part = to_format(source[start : start + step], "dense")
        with np.errstate(invalid="ignore", over="ignore"):  # what does not fit is told below
            out[start : start + step] = part
        _refuse_inexact(part, out[start : start + step], start)
    return out


def _refuse_inexact(part: np.ndarray, out: np.ndarray, first: int) -> None:
    """Refuse values that were changed: `part` are rows from `first` on, `out` is what became of them."""
    if (wrong := np.argwhere(out != part)).size:
        row, column = wrong[0].tolist()
        raise refuse(
            f"The value {part[row, column]:.9g} at row {first + row}, column {column} is not exact in {out.dtype}",
            "whole numbers from 0 to 255 in uint8, numbers of 11 binary digits up to 65504 in float16",
            "Hold the data as csr or in the format's own type: hold = csr or hold = format",
        )
