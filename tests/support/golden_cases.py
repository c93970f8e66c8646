"""The recorded cases of Apache MXNet 1.9.1: reading them, and comparing with them.

A folder of cases has for each group `<group>.json` with the cases and `<group>.npz` with their arrays; `stype.json`,
the inference table, has no arrays. The module `golden_<group>.py` has `run(case, arrays, differs)`: it computes the
case and reports every deviation by `differs(field, came)`, which raises `AssertionError` unless a row of
`golden_differences.py` allows it.
"""

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from workbench import formats

FOLDER = Path(__file__).parents[1] / "golden"
GROUPS = ("dot", "elemwise", "storage", "optim", "linreg", "models", "stype")
STYPES = {"default": "dense", "csr": "csr", "row_sparse": "row_sparse"}
"""Their word for a format -> ours."""

Differs = Callable[[str, Any], None]


@functools.cache
def cases(folder: Path, group: str) -> dict[str, dict]:
    """The cases of a group by their id; none where the folder lacks the group, `pytest.UsageError` for a broken one."""
    file = folder / f"{group}.json"
    if not file.exists():
        return {}
    try:
        listed = json.loads(file.read_text(encoding="utf-8"))["cases"]
    except (ValueError, KeyError, TypeError) as error:
        raise pytest.UsageError(f"{file} has no recorded cases: {error!r}. Expected is {{'cases': [...]}}.") from None
    if group != "stype" and not file.with_suffix(".npz").exists():
        raise pytest.UsageError(f"{file.with_suffix('.npz')} is missing; it has the arrays of the cases in {file}.")
    return {case.get("id", f"{group}-{number:04d}"): case for number, case in enumerate(listed)}


def one_of_each_kind(folder: Path, group: str, names: list[str]) -> list[str]:
    """Return the cases that differ in more than lengths above 1 from those before them."""
    kinds = {json.dumps(_kind(cases(folder, group)[name])): name for name in reversed(names)}
    return [name for name in names if name in set(kinds.values())]


def _kind(part: Any) -> Any:
    """Return a recorded case, or a part of it, without names, with True for a length of 1 and False for another."""
    if isinstance(part, dict):
        kept = {name: _kind(value) for name, value in part.items() if name not in ("id", "key", "shape")}
        return kept | {"is_one": [length == 1 for length in part.get("shape", ())]}
    return [_kind(each) for each in part] if isinstance(part, list) else part


@functools.cache
def arrays_of(folder: Path, group: str) -> Mapping[str, np.ndarray]:
    """The arrays of a group by their key."""
    file = folder / f"{group}.npz"
    if not file.exists():
        return {}
    with np.load(file, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def read(arrays: Mapping[str, np.ndarray], reference: Mapping[str, Any]) -> Any:
    """The array that a case refers to, in our format; a copy."""
    key, shape = reference["key"], tuple(reference["shape"])
    if reference["stype"] == "default":
        return arrays[key].reshape(shape).copy()
    if reference["stype"] == "csr":
        parts = arrays[f"{key}.data"], arrays[f"{key}.indices"], arrays[f"{key}.indptr"]
        return scipy.sparse.csr_array(parts, shape=shape, copy=True)
    return formats.RowSparse(arrays[f"{key}.data"].copy(), arrays[f"{key}.indices"].copy(), shape)


def dense(x: Any) -> np.ndarray:
    """The dense values of an array in any format."""
    return x if isinstance(x, np.ndarray) else x.toarray()


def stored(x: Any) -> list:
    """The stored positions: rows of row_sparse, (row, column) of csr; in order."""
    if isinstance(x, formats.RowSparse):
        return x.indices.tolist()
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    return list(zip(rows.tolist(), x.indices.tolist(), strict=True))


def agree(came: Any, wanted: Any, case: Mapping[str, Any], differs: Differs, prefix: str = "") -> None:
    """Compare format, dtype, shape, stored positions and dense values; report each that differs.

    Fields are stype, dtype, shape, pattern and value, each with `prefix`. Tolerances are the case's, and so is whether
    the pattern counts; that of a gradient does for row_sparse alone, whose rows decide what a lazy update touches.
    """
    counts = case.get("pattern") in ("exact", "rows") and not isinstance(wanted, np.ndarray)
    if formats.format_of(came) != formats.format_of(wanted):
        differs(f"{prefix}stype", formats.format_of(came))
    elif counts and (not prefix or isinstance(wanted, formats.RowSparse)) and stored(came) != stored(wanted):
        differs(f"{prefix}pattern", stored(came))
    if came.dtype != wanted.dtype:
        differs(f"{prefix}dtype", came.dtype)
    if tuple(came.shape) != tuple(wanted.shape):
        differs(f"{prefix}shape", came.shape)
    close_to(dense(came), dense(wanted), case, differs, f"{prefix}value")


def close_to(came: np.ndarray, wanted: np.ndarray, case: Mapping[str, Any], differs: Differs, field: str) -> None:
    """Compare dense values by the case's tolerances; NaN equals NaN. The shape is not looked at, only the size."""
    tolerances = {"rtol": case.get("rtol", 0), "atol": case.get("atol", 0)}
    if came.size != wanted.size or not np.allclose(came.ravel(), wanted.ravel(), equal_nan=True, **tolerances):
        differs(field, came)
