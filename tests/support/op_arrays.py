"""Arrays for the tests of operators: drawn by kind, held as unkindly as each format allows, taken apart."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench import formats

Shape = tuple[int, ...]


def draw(kind: str, shape: Shape, rng: np.random.Generator, other: Shape = ()) -> np.ndarray:
    """Values of the kind, float64 (numbers of rows and classes int64); some of the real ones are zero."""
    if kind in ("rows", "classes"):
        most = min(other) if kind == "rows" else other[-1]
        return rng.integers(0, max(most, 1), shape)
    size = rng.uniform(0.2, 0.9, shape)
    signed = size * rng.choice([-1.0, 1.0], shape)
    if kind == "apart":
        return signed + np.sign(signed)
    value = {"real": 3 * signed, "unit": signed, "positive": 3 * size, "above": 1 + size}[kind]
    return np.where(rng.random(shape) < 0.5, value, 0.0) if kind in ("real", "unit", "positive") else value


def messy(dense: np.ndarray, form: str, rng: np.random.Generator, index: type = np.int32) -> Any:
    """`dense` in a format, as unkindly as that allows: stored zeros; csr, csc and coo unsorted, with duplicates."""
    if form == "dense":
        return np.asarray(dense)
    if form == "row_sparse":
        held = (dense != 0).any(axis=tuple(range(1, dense.ndim))) | (rng.random(len(dense)) < 0.3)
        return formats.RowSparse(dense[held].copy(), np.flatnonzero(held), dense.shape)
    row, col = np.nonzero((dense != 0) | (rng.random(dense.shape) < 0.2))
    value = dense[row, col]
    twice = np.flatnonzero(rng.random(len(value)) < 0.3)
    more = np.where(np.isfinite(value[twice]), -value[twice], 0)  # v as 2v - v, which is exact
    value[twice] -= more
    row, col, value = np.append(row, row[twice]), np.append(col, col[twice]), np.append(value, more)
    order = rng.permutation(len(value))
    return _assembled(form, row[order], col[order], value[order].astype(dense.dtype), dense.shape, index)


def _assembled(form: str, row: np.ndarray, col: np.ndarray, value: np.ndarray, shape: Shape, index: type) -> Any:
    if form == "coo":
        return formats.get(form).build({"data": value, "row": row.astype(index), "col": col.astype(index)}, shape)
    major, minor, count = (row, col, shape[0]) if form == "csr" else (col, row, shape[1])
    order = np.argsort(major, kind="stable")
    indptr = np.searchsorted(major[order], np.arange(count + 1)).astype(index)
    return formats.get(form).build(
        {"data": value[order], "indices": minor[order].astype(index), "indptr": indptr}, shape
    )


def parts_of(x: Any) -> Mapping[str, np.ndarray]:
    """Copies of all arrays that `x` is made of."""
    return {name: part.copy() for name, part in formats.get(formats.format_of(x)).parts(x).items()}


def dense_of(x: Any) -> np.ndarray:
    return x if isinstance(x, np.ndarray) else x.toarray()


def stored_places(x: Any) -> np.ndarray:
    """Whether each element is stored."""
    if isinstance(x, np.ndarray):
        return np.ones(x.shape, bool)
    parts = formats.get(x.format).parts(x)
    ones = {
        name: np.ones(part.shape, np.float32) if name == next(iter(parts)) else part for name, part in parts.items()
    }
    return formats.get(x.format).build(ones, x.shape).toarray() != 0


def csr(data: list, indices: list, indptr: list, shape: Shape, index: type = np.int32, dtype: type = np.float32) -> Any:
    """A csr array of these parts, invalid or not."""
    parts = {"data": np.array(data, dtype), "indices": np.array(indices, index), "indptr": np.array(indptr, index)}
    return formats.get("csr").build(parts, shape)
