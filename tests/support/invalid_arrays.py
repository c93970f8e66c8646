"""Arrays that are wrong in one way each: what SciPy builds without a word, and what is written to afterwards.

`FAULTS` has the ways by format: a function changes a sound array in place, or returns another one. Those of `WRITTEN`
write to the arrays that it is made of, and keep the object: what can happen after a first check.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from workbench.formats import RowSparse

SHAPE = (4, 5)
SPARSE = ("csr", "csc", "coo", "row_sparse")
Fault = Callable[[Any], Any]


def sound(format: str, dtype: type = np.float32) -> Any:
    """A sound array [4, 5] with two entries a line, or two stored rows, over writable memory."""
    dense = np.zeros(SHAPE, dtype)
    dense[np.arange(4), np.arange(4)] = 1
    dense[np.arange(4), np.arange(4) + 1] = 2
    if format == "row_sparse":
        return RowSparse(dense[[1, 3]], np.array([1, 3]), SHAPE)
    if format == "dense":
        return dense
    x = getattr(scipy.sparse, f"{format}_array")(dense)
    if format == "coo":
        x.coords = tuple(np.array(part, np.int32) for part in x.coords)
    return x


def _set(name: str, make: Callable[[np.ndarray], Any]) -> Fault:
    """Give the array another part of that name, made from the one it has."""

    def change(x: Any) -> None:
        if x.format == "coo" and name in ("row", "col"):
            parts = dict(zip(("row", "col"), x.coords, strict=True))
            x.coords = tuple({**parts, name: make(parts[name])}.values())
        else:
            setattr(x, name, make(getattr(x, name)))

    return change


def _with(place: int, value: int) -> Callable[[np.ndarray], np.ndarray]:
    def write(part: np.ndarray) -> np.ndarray:
        part = part.astype(np.int64) if abs(value) > 2**31 else part.copy()
        part[place] = value
        return part

    return write


def _wide(fault: Fault) -> Fault:
    """The fault in an array with int64 indices."""

    def change(x: Any) -> None:
        x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
        fault(x)

    return change


PARTS = {
    "2-D": lambda part: part.reshape(1, -1),
    "short": lambda part: part[:-1],
    "long": lambda part: np.append(part, part[-1:]),
    "object": lambda part: part.astype(object),
    "byte-swapped": lambda part: part.astype(part.dtype.newbyteorder()),
    "complex": lambda part: part.astype(complex),
    "a list": lambda part: part.tolist(),
    "masked": np.ma.masked_array,
}
"""What any part may be that it should not be."""

NUMBERS = {
    "float": lambda part: part.astype(np.float64),
    "float NaN": lambda part: part * np.nan,
    "unsigned": lambda part: part.astype(np.uint32),
    "of another width": lambda part: part.astype(np.int64),
}
"""What indices may be besides."""


def _parts(values: tuple[str, ...], indices: tuple[str, ...]) -> dict[str, Fault]:
    faults = {f"{name} {kind}": _set(name, make) for name in (*values, *indices) for kind, make in PARTS.items()}
    return faults | {f"{name} {kind}": _set(name, make) for name in indices for kind, make in NUMBERS.items()}


_COMPRESSED: dict[str, Fault] = {
    "index too large": _set("indices", _with(1, 70)),
    "index one too large": _set("indices", _with(1, 5)),
    "index huge": _set("indices", _with(1, 2**31 - 1)),
    "index negative": _set("indices", _with(1, -1)),
    "index least": _set("indices", _with(1, -(2**31))),
    "wide index too large": _wide(_set("indices", _with(1, 2**62))),
    "wide index least": _wide(_set("indices", _with(1, -(2**63)))),
    "indptr from 1": _set("indptr", _with(0, 1)),
    "indptr from -1": _set("indptr", _with(0, -1)),
    "indptr ends below": _set("indptr", _with(-1, 7)),
    "indptr ends above": _set("indptr", _with(-1, 9)),
    "indptr falls": _set("indptr", _with(2, 0)),
    "indptr far": _set("indptr", _with(2, 10**8)),
    "indptr negative": _set("indptr", _with(2, -(10**8))),
    "indptr past 2**31": _wide(_set("indptr", _with(2, 2**40))),
    "indptr ends past 2**31": _wide(_set("indptr", _with(-1, 2**40))),
    "indptr empty": _set("indptr", lambda part: part[:0]),
    **_parts(("data",), ("indices", "indptr")),
}

_COO: dict[str, Fault] = {
    "row too large": _set("row", _with(1, 70)),
    "row one too large": _set("row", _with(1, 4)),
    "row negative": _set("row", _with(1, -1)),
    "col too large": _set("col", _with(1, 2**31 - 1)),
    "col negative": _set("col", _with(1, -(2**31))),
    "coords of one": lambda x: setattr(x, "coords", x.coords[:1]),
    "coords of three": lambda x: setattr(x, "coords", (*x.coords, x.coords[0])),
    **_parts(("data",), ("row", "col")),
}


def _written(place: int, value: int) -> Fault:
    return lambda x: x.indices.__setitem__(place, value)


def _assembled(name: str, make: Callable[[np.ndarray], Any]) -> Fault:
    def build(x: RowSparse) -> RowSparse:
        parts = {"values": x.values, "indices": x.indices}
        return RowSparse.assemble(**{**parts, name: make(parts[name])}, shape=x.shape)

    return build


_ROWS: dict[str, Fault] = {
    "row too large": _written(1, 70),
    "row one too large": _written(1, 4),
    "row huge": _written(1, 2**62),
    "row negative": _written(0, -1),
    "row least": _written(0, -(2**63)),
    "unsorted": lambda x: x.indices.__setitem__(slice(None), [3, 1]),
    "duplicate": _written(0, 3),
    "values of another width": _assembled("values", lambda values: values[:, :-1].copy()),
    "values of another rank": _assembled("values", lambda values: values[:, 0].copy()),
    **{
        f"{name} {kind}": _assembled(name, make)
        for name in ("values", "indices")
        for kind, make in ({**PARTS, **NUMBERS} if name == "indices" else PARTS).items()
        if kind not in ("of another width", "a list")
    },
    "indices narrow": _assembled("indices", lambda indices: indices.astype(np.int32)),
}

FAULTS: dict[str, dict[str, Fault]] = {"csr": _COMPRESSED, "csc": _COMPRESSED, "coo": _COO, "row_sparse": _ROWS}

WRITTEN: dict[str, dict[str, Fault]] = {
    **{
        format: {
            "index written": lambda x: x.indices.__setitem__(1, 70),
            "index written negative": lambda x: x.indices.__setitem__(1, -(2**31)),
            "indptr written": lambda x: x.indptr.__setitem__(2, 10**8),
            "indptr written to fall": lambda x: x.indptr.__setitem__(2, -5),
        }
        for format in ("csr", "csc")
    },
    "coo": {
        "row written": lambda x: x.coords[0].__setitem__(1, 70),
        "col written": lambda x: x.coords[1].__setitem__(1, -(2**31)),
    },
    "row_sparse": {name: _ROWS[name] for name in ("row too large", "row negative", "unsorted", "duplicate")},
}


def broken(format: str, fault: str) -> Any:
    """A sound array with that fault."""
    x = sound(format)
    changed = FAULTS[format][fault](x)
    return x if changed is None else changed
