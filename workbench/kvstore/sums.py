"""Sums of what several workers push, and rows written or brought up to date where they stand."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench import formats
from workbench.formats import RowSparse
from workbench.ops.products import Unsummed
from workbench.optimizers import Updater


def caught_up(updater: Updater, weights: Mapping[str, Any], rows: Mapping[str, np.ndarray | None]) -> None:
    """Bring these rows of the weights up to date, None for all rows, where the optimizer is lazy and exact."""
    if updater.lazy != "exact":
        return
    updater.catch_up({name: weights[name] for name, touched in rows.items() if touched is None})
    some = {name: touched for name, touched in rows.items() if touched is not None}
    updater.catch_up({name: weights[name] for name in some}, some)


def put_rows(out: np.ndarray | RowSparse, rows: RowSparse) -> None:
    """Write rows to a dense array, which keeps its others, or let a row_sparse one hold them and no others."""
    if isinstance(out, RowSparse):
        formats.assign(out, rows)
    else:
        out[rows.indices] = rows.values


def added(arrays: Sequence[Any]) -> Any:
    """The sum of dense and row_sparse arrays of one shape and type, in their order; row_sparse where all of them are.

    The same arrays in the same order give the same bits.
    """
    arrays = [computed(array) for array in arrays]
    if all(isinstance(array, RowSparse) for array in arrays):
        indices, values = (np.concatenate([getattr(array, part) for array in arrays]) for part in ("indices", "values"))
        return RowSparse.from_rows(indices, values, arrays[0].shape)
    total = np.zeros(arrays[0].shape, arrays[0].dtype)
    for array in arrays:
        if isinstance(array, RowSparse):
            total[array.indices] += array.values
        else:
            total += array
    return total


def computed(array: Any) -> Any:
    """An array as its values, where it was left as its factors."""
    return array.compute() if isinstance(array, Unsummed) else array
