"""Recorded cases of formats: conversion, retaining, slicing, copying, assigning, casting, and what is refused."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from tests.support import golden_cases
from workbench import formats, ops, optimizers
from workbench.formats import RowSparse
from workbench.formats.compressed import assemble

REFUSALS = (ValueError, TypeError, IndexError, RuntimeError)


def run(case, arrays, differs):
    """Compute the case and compare; a case that was refused must be refused."""
    compute = globals()[f"_{case['op']}"]
    inputs = [_own(golden_cases.read(arrays, reference)) for reference in case["inputs"]]
    if case.get("raises"):
        try:
            came = compute(*inputs, **_refused(case))
        except REFUSALS:
            return
        differs("raises", came)
        return
    with ops.recording() as log:
        came = compute(*inputs, **case["params"])
    if "fallback" in case and bool(log) != bool(case["fallback"]):
        differs("fallback", len(log))
    golden_cases.agree(came, golden_cases.read(arrays, case["out"]), case, differs)


def _own(x: Any) -> Any:
    """Over memory that may be written to, as that of an assignment's destination is."""
    return formats.copy(x)


def _refused(case: dict) -> dict:
    """The parameters of a refused case; where it only names a source, with an array of that format."""
    params = dict(case["params"])
    if "source" in params:
        shape = tuple(params.pop("shape", (3, 4)))
        dense = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 3
        params["x"] = formats.to_format(dense, golden_cases.STYPES[params.pop("source")])
    return params


def _cast_storage(x, stype):
    return formats.copy(formats.to_format(x, golden_cases.STYPES[stype]))


def _tostype(x, target):
    return _cast_storage(x, target)


def _retain(x, rows=None):
    return x.retain(rows) if rows is not None else ops.retain(x, np.array([0, 1]))


def _getitem(x, index=None, slice=None):
    if slice is None:
        return x[[index]]
    return x[np.s_[slice[0] : slice[1]]]


def _slice(x, begin, end, step=None):
    return ops.slice(x, begin=begin, end=end, step=step)


def _copyto(source=None, destination=None, x=None, target=None):
    if x is not None:
        source, destination = x, formats.zeros(x.shape, golden_cases.STYPES[target], x.dtype)
    return formats.assign(destination, source)


def _setitem_all(value, destination):
    if isinstance(destination, RowSparse):
        destination[:] = value
        return destination
    return formats.assign(destination, value)


def _setitem_scalar(destination, value):
    destination[:] = value
    return destination


def _copy(x):
    return formats.copy(x)


def _astype(x, dtype):
    return formats.astype(x, dtype)


def _csr_from_coo(data, row, col, shape):
    x = formats.to_format(sp.coo_array((data, (row, col)), shape=shape), "csr")
    x.sum_duplicates()
    return x


def _row_sparse_pull(stored, rows):
    return stored.retain(rows.ravel())


def _row_sparse_array(data, indices, shape):
    return formats.check(RowSparse(data, indices, shape), full=True)


def _csr_matrix(data, indices, indptr, shape):
    parts = np.array(data, np.float32), np.array(indices, np.int64), np.array(indptr, np.int64)
    return formats.check(sp.csr_array(parts, shape=shape), full=True)


def _check_format_rsp(**parts):
    return _row_sparse_array(**parts)


def _check_format_csr(data, indices, indptr, shape):
    """SciPy's constructor trims what is too long; the check is of parts as they are."""
    parts = np.array(indptr, np.int64), np.array(indices, np.int64), np.array(data, np.float32)
    return formats.check(assemble("csr", *parts, shape), full=True)


def _clip(x, a_min, a_max):
    return ops.clip(x, low=a_min, high=a_max)


def _optimizer(shape=(4, 2), weight_rows=None, optimizer="SGD", wd=0.0):
    weight = formats.to_format(np.ones(shape, np.float32), "row_sparse")
    if weight_rows is not None:
        weight = RowSparse(weight.values[weight_rows], weight_rows, shape)
    gradient = RowSparse(np.ones((2, *shape[1:]), np.float32), [0, 1], shape)
    updater = optimizers.Updater(optimizer.lower(), **({"decay": wd} if wd else {}))
    updater.update({"weight": weight}, {"weight": gradient})
    return weight
