"""Making a matrix dense on the way to a framework: asked for with a budget, or told, never silently.

>>> import scipy.sparse
>>> x = scipy.sparse.csr_array((3, 2))
>>> densify(x, budget_bytes=48, why="to print it").shape
(3, 2)
>>> densify(x, budget_bytes=40, why="to print it")
Traceback (most recent call last):
    ...
workbench.ops.fallback.DensifyError: densify, to print it: making (3, 2) of csr dense takes 48 bytes, and \
budget_bytes is 40. Give it more, or take fewer rows.
"""

from typing import Any

import numpy as np

from workbench import formats
from workbench.ops import fallback


def densify(x: Any, budget_bytes: int, why: str) -> np.ndarray:
    """The dense array [rows, columns] of x; a copy, but for one that is dense already. O(size).

    It is meant, so `ops.settings(strict=True)` does not refuse it; `ops.recording` has it with `why`. Above
    `budget_bytes` it is refused (`DensifyError`) before any memory is taken; malformed arrays are, too (`FormatError`).
    """
    held, x = formats.get(formats.format_of(x)), formats.check(x, canonical=False)
    if held.name == "dense":
        return x
    fallback.allow(f"densify, {why}", held.name, x, budget_bytes)
    return formats.to_format(x, "dense")


def made_dense(x: Any, op: str) -> np.ndarray:
    """The dense array of x for `op`, which takes no other, where nobody asked for one: recorded, warned of once a line.

    `DensifyError` with `ops.settings(strict=True)` or above its budget, as for operators without a rule.
    """
    name = formats.format_of(x)
    if name != "dense":
        fallback.report(op, [name], [x])
    return formats.to_format(x, "dense")
