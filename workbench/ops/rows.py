"""Row indices, and the operator that keeps rows: retain.

>>> import numpy as np
>>> from workbench import formats, ops
>>> x = formats.RowSparse(np.float32([[1], [2]]), [1, 4], (6, 1))
>>> ops.retain(x, np.array([4, 0])).indices.tolist()
[0, 4]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench import formats, ops
from workbench.ops.contract import ANY, Op, OpError, Rule, Shape, register
from workbench.ops.like import type_of_first

SPARSE = ("csr", "csc", "coo", "row_sparse")
MODES = ("raise", "clip", "wrap")


def row_numbers(numbers: np.ndarray, rows: int, mode: str = "raise") -> np.ndarray:
    """Return row indices in [0, rows), int64; others raise OpError, are clipped or wrapped, as `mode` says."""
    whole = numbers.astype(np.int64)
    if numbers.dtype.kind == "f" and not np.array_equal(whole, numbers):
        raise OpError("Row numbers are whole; a fraction or NaN came. Round them first.")
    if not rows and whole.size:
        raise OpError(f"There are no rows to take; {whole.size} row numbers came.")
    if mode == "clip":
        return whole.clip(0, rows - 1)
    if mode == "wrap":
        return whole % max(rows, 1)
    if whole.size and not (whole.min() >= 0 and whole.max() < rows):
        at = int(np.argmax((whole < 0) | (whole >= rows)))
        raise OpError(
            f"Row number {at} of those asked for is {whole.flat[at]}; allowed are 0 to {rows - 1}. Correct it, or say "
            "what is meant: mode='clip' or 'wrap'."
        )
    return whole


def _retain(x, rows, out=None):
    """Keep rows of a row_sparse array."""
    return x.retain(rows)


def _retain_shape(shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
    """Return the shape of the first input."""
    return tuple(shapes[0])


def _meaning(x, rows, out=None):
    """Return the rows selected, zeros elsewhere."""
    out = np.empty_like(x) if out is None else out
    out[...] = 0
    numbers = row_numbers(rows, x.shape[0])
    out[numbers] = x[numbers]
    return out


register(
    Op(
        "retain",
        ("x", "rows"),
        _meaning,
        _retain_shape,
        "The rows asked for of a row_sparse x, and no others: as stored there, or zeros. Where x stores nothing, so "
        "does the result. `rows` are whole numbers in any order.",
        rules=(
            Rule(("row_sparse", "dense"), "row_sparse", _retain, "retain_rows"),
            *(
                Rule(
                    (form, ANY),
                    "row_sparse",
                    refusal="retain takes a row_sparse x and dense row numbers. Convert x with to_format.",
                )
                for form in ("dense", *SPARSE)
            ),
        ),
        dtype=type_of_first,
        gradient=lambda head, output, inputs, params: (ops.rows_of(head, inputs[1]), None),
        family="selection",
    )
)


def _rows_of(x, rows, out=None):
    """Keep rows of a dense array."""
    numbers = np.unique(row_numbers(rows, x.shape[0]))
    return formats.RowSparse.assemble(x[numbers], numbers, x.shape)


register(
    Op(
        "rows_of",
        ("x", "rows"),
        _meaning,
        _retain_shape,
        "The rows asked for of an array, as row_sparse: the gradient of `retain`, of which dense heads come, too.",
        rules=(
            Rule(("row_sparse", "dense"), "row_sparse", _retain, "retain_rows"),
            Rule(("dense", "dense"), "row_sparse", _rows_of, "numpy"),
        ),
        dtype=type_of_first,
        gradient=lambda head, output, inputs, params: (ops.rows_of(head, inputs[1]), None),
        family="selection",
    )
)
