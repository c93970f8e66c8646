"""Expected results of a kernel: its own reference, in float64, on the very arguments of the call.

The reference is plain loops. Numba compiles it as it stands, and it is run on everything; that of an update, which is
made from a formula, is run on some of the touched rows, those of the longest runs among them. Conversions and
merges, whose references search, are judged by SciPy and NumPy.
"""

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
import scipy.sparse

from kernels import Kernel

ALLOWED = {"float32": 2e-4, "float64": 1e-10}
"""Largest error allowed, relative to the largest value of the array it is in."""

LARGE = 2**24
"""Elements from which on an array that is only read stays as it is: what it is multiplied with is float64 already."""

SAMPLED = 48
"""Touched rows that an update is checked on."""


def _sorted_by(numbers, count, *others):
    """Compressed starts [count + 1], then `others` in the stable order of `numbers`."""
    order = np.argsort(numbers, kind="stable")
    return np.searchsorted(numbers[order], np.arange(count + 1)), *(other[order] for other in others)


def _csr_to_csc(indptr, indices, data, n_columns):
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return _sorted_by(indices, n_columns, rows, data)


def _slice_rows(indptr, indices, data, rows):
    shape = len(indptr) - 1, int(indices.max(initial=0)) + 1
    part = scipy.sparse.csr_array((data, indices, indptr), shape=shape)[rows]
    return part.indptr, part.indices, part.data


def _dense_to_csr(dense):
    part = scipy.sparse.csr_array(dense)
    return part.indptr, part.indices, part.data


def _merge_rows(indices, values):
    unique, places = np.unique(indices, return_inverse=True)
    sums = np.zeros((unique.size, *values.shape[1:]))
    np.add.at(sums, places, values)
    return unique, sums


def _add_rows(left_indices, left_values, right_indices, right_values):
    return _merge_rows(np.concatenate([left_indices, right_indices]), np.concatenate([left_values, right_values]))


def _retain_rows(indices, values, chosen):
    kept = np.isin(indices, chosen)
    return indices[kept], values[kept]


DIRECT: dict[str, Callable[..., tuple]] = {
    "add_rows": _add_rows,
    "coo_to_csr": lambda row, col, data, n_rows: _sorted_by(row, n_rows, col, data),
    "csr_to_csc": _csr_to_csc,
    "dense_to_csr": _dense_to_csr,
    "merge_rows": _merge_rows,
    "retain_rows": _retain_rows,
    "slice_rows": _slice_rows,
}

Judge = Callable[[Any], float]
"""Takes what the call returned and gives its largest error; the arrays that the call wrote are looked at then."""


def judge(kernel: Kernel, args: Sequence) -> Judge:
    """Work out what a call with `args` should give; to be done before the call, judged after it."""
    named = {name: arg for (name, _, _), arg in zip(kernel.parsed, args, strict=True)}
    touched = "columns" if "columns" in named else "rows"
    if "weights" in named and touched in named:
        return _judge_update(kernel, named, touched)
    desired = expected(kernel, args)
    return lambda returned: error(results(kernel, args, returned), desired)


@functools.cache
def compiled(function: Callable) -> Callable:
    """The function compiled, with the plain functions of its module that it calls."""
    code, known = function.__code__, function.__globals__
    called = {name: compiled(known[name]) for name in code.co_names if inspect.isfunction(known.get(name))}
    return numba.njit(types.FunctionType(code, {**known, **called}, function.__name__, function.__defaults__))


def _wide(arg: Any, written: bool = True) -> Any:
    """A copy of an array, floats as float64; numbers as they are, and large arrays that are not written."""
    if not isinstance(arg, np.ndarray) or (arg.size >= LARGE and not written):
        return arg
    return arg.astype(np.float64) if arg.dtype.kind == "f" else arg.copy()


def results(kernel: Kernel, args: Sequence, returned: Any) -> list[np.ndarray]:
    """Everything that a call computed: what it returned, then the arguments that it writes."""
    parts = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    written = [arg for arg, (name, _, _) in zip(args, kernel.parsed, strict=True) if name in kernel.writes]
    return [np.asarray(part) for part in (*parts, *written)]


def expected(kernel: Kernel, args: Sequence) -> list[np.ndarray]:
    """Expected value of `results` after a call with `args`, which are not changed. O(work of the kernel)."""
    copies = lambda: [_wide(arg, name in kernel.writes) for arg, (name, *_) in zip(args, kernel.parsed, strict=True)]  # noqa: E731
    wide = copies()
    if kernel.name in DIRECT:
        return list(DIRECT[kernel.name](*wide))
    try:
        returned = compiled(kernel.reference)(*wide)
    except (numba.core.errors.NumbaError, numba.core.errors.NumbaWarning):  # no meaning to compile; plain, and slow
        wide = copies()
        returned = kernel.reference(*wide)
    return results(kernel, wide, returned)


def _judge_update(kernel: Kernel, named: dict[str, Any], touched: str) -> Judge:
    """The judge of an update of the rows `named[touched]`; operands have a row for each, or a batch in column order."""
    rows, picked = named[touched], _picked(named)
    tables = [name for name in kernel.writes if isinstance(named[name], np.ndarray)]
    each = [name for name, _, axes in kernel.parsed if axes[:1] == (("U", 0),) and name != touched]
    part = {name: _wide(arg) for name, arg in named.items() if name not in (*tables, *each)}
    part |= {name: _wide(named[name][rows[picked]]) for name in tables}
    part[touched] = np.arange(picked.size)
    for name in each:
        part[name] = _wide(named[name][picked])
    if "segments" in named:
        part |= _entries_of(named, picked)
    kernel.reference(*(part[name] for name in named))
    desired = [part[name] for name in tables]
    return lambda _: error([named[name][rows[picked]] for name in tables], desired)


def _picked(named: dict[str, Any]) -> np.ndarray:
    """Places among the touched rows: random ones, and where runs are known the longest."""
    count = len(named["columns"] if "columns" in named else named["rows"])
    picked = np.random.default_rng(0).choice(count, min(SAMPLED, count), replace=False)
    longest = np.argsort(-np.diff(named["segments"]), kind="stable")[:2] if "segments" in named else picked[:0]
    return np.union1d(picked, longest)


def _entries_of(named: dict[str, Any], picked: np.ndarray) -> dict[str, np.ndarray]:
    """The plan's arrays for the picked columns alone."""
    starts, ends = named["segments"][picked], named["segments"][picked + 1]
    places = np.concatenate([np.arange(*ends_of) for ends_of in zip(starts, ends, strict=True)] or [np.empty(0, int)])
    segments = np.concatenate([[0], np.cumsum(ends - starts)])
    return {"segments": segments} | {name: named[name][places] for name in ("rows", "values")}


def error(actual: Sequence[np.ndarray], desired: Sequence[np.ndarray]) -> float:
    """Largest error of all arrays, relative to the largest desired value of each; infinite where shapes differ."""
    if [array.shape for array in actual] != [array.shape for array in desired]:
        return float("inf")
    return max((_error(*pair) for pair in zip(actual, desired, strict=True)), default=0.0)


def _error(actual: np.ndarray, desired: np.ndarray) -> float:
    if desired.dtype.kind != "f":
        return 0.0 if np.array_equal(actual, desired) else float("inf")
    scale = np.abs(desired).max(initial=0.0)
    worst = np.abs(actual - desired).max(initial=0.0)
    return float(worst / (scale or 1.0)) if np.isfinite(worst) else float("inf")
