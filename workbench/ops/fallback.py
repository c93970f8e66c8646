"""Fallback where an operator has no rule for the formats that came: they are made dense, never silently.

The result is that of the operator's dense meaning. The user gets a `DensifyWarning`, once for each line of their code,
operator and formats; the log gets an entry every time. With `strict` it is refused instead; `fallback_budget_bytes`
refuses what would take more memory than that.

>>> import numpy as np, warnings
>>> from workbench import formats, ops
>>> x = formats.RowSparse(np.float32([[1, 2]]), [1], (3, 2))
>>> with settings(strict=True):
...     ops.cos(x)
Traceback (most recent call last):
    ...
workbench.ops.fallback.DensifyError: cos has no rule for row_sparse. Making (3, 2) dense takes 24 bytes...
"""

import contextlib
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import formats

if TYPE_CHECKING:
    from workbench.ops.contract import Op, Rule


class DensifyWarning(UserWarning):
    """An operator had no rule for the formats that came and made them dense; `.entry` says which, where, how large."""

    def __init__(self, entry: "Densified") -> None:
        super().__init__(str(entry))
        self.entry = entry


class DensifyError(RuntimeError):
    """Making arrays dense was refused, by `strict` or by `fallback_budget_bytes`."""


@dataclass(frozen=True)
class Densified:
    """One densification: the operator, formats and shapes of its inputs, bytes of the dense copies, the user's line.

    One that was asked for has the `budget_bytes` that it was given.
    """

    op: str
    formats: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    bytes: int
    file: str = ""
    line: int = 0
    budget_bytes: int | None = None

    @property
    def place(self) -> str:
        """File and line of the user's code."""
        return f"{self.file}:{self.line}" if self.file else "an unknown place"

    def __str__(self) -> str:
        shapes = " and ".join(
            str(shape) for shape, format in zip(self.shapes, self.formats, strict=True) if format != "dense"
        )
        took = f"Making {shapes} dense takes {self.bytes:,} bytes, at {self.place}"
        if self.budget_bytes is not None:
            return f"{self.op}: asked for, of at most {self.budget_bytes:,} bytes. {took}"
        return f"{self.op} has no rule for {', '.join(self.formats)}. {took}"


@dataclass(frozen=True)
class Settings:
    """`strict` refuses every densification; `fallback_budget_bytes` those that take more."""

    strict: bool = False
    fallback_budget_bytes: int | None = None


LARGEST = 2**63
"""Bytes that no array has."""
_LENIENT = Settings()
_settings: ContextVar[Settings] = ContextVar("settings", default=_LENIENT)
_logs: ContextVar[tuple[list[Densified], ...]] = ContextVar("logs", default=())
_warned: set[tuple] = set()


@contextlib.contextmanager
def settings(strict: bool | None = None, fallback_budget_bytes: int | None = None) -> Iterator[Settings]:
    """Within the block densification is refused, or up to so many bytes allowed; what is not given stays as it is.

    The block holds for its own thread, and for the thread of a loader that is made within it. Hand it to another with
    `threading.Thread(target=contextvars.copy_context().run, args=(work,))`.
    """
    now = _settings.get()
    chosen = Settings(
        now.strict if strict is None else strict,
        now.fallback_budget_bytes if fallback_budget_bytes is None else fallback_budget_bytes,
    )
    token = _settings.set(chosen)
    try:
        yield chosen
    finally:
        _settings.reset(token)


@contextlib.contextmanager
def recording() -> Iterator[list[Densified]]:
    """A list that gets an entry for each densification within the block, also those already warned of."""
    log: list[Densified] = []
    token = _logs.set((*_logs.get(), log))
    try:
        yield log
    finally:
        _logs.reset(token)


def rule(op: "Op", held: Sequence[str]) -> "Rule":
    """The way out where the table of `op` has no row for inputs held so."""
    from workbench.ops.contract import Rule  # the contract imports this module

    def call(*arrays: Any, out: np.ndarray | None = None, **params: Any) -> np.ndarray:
        report(op.name, held, arrays)
        dense = [formats.to_format(array, "dense") for array in arrays]
        return op.dense(*dense, out=out, **params)

    return Rule(tuple(held), "dense", call, kernel="dense after to_format", densifies=True)


def report(op: str, held: Sequence[str], arrays: Sequence[Any]) -> None:
    """Refuse, or log and warn of, making `arrays` dense for `op`."""
    shapes = tuple(tuple(array.shape) for array in arrays)
    size = sum(
        math.prod(array.shape) * array.dtype.itemsize
        for array, format in zip(arrays, held, strict=True)
        if format != "dense"
    )
    entry = Densified(op, tuple(held), shapes, size, *_place())
    chosen = _settings.get()
    if chosen.strict:
        raise DensifyError(f"{entry}; strict refuses it. Convert with to_format where it is meant.")
    if size >= LARGEST:
        raise DensifyError(f"{entry}; no array is as large. Take a part of it first, or an operator that has a rule.")
    if chosen.fallback_budget_bytes is not None and size > chosen.fallback_budget_bytes:
        raise DensifyError(f"{entry}; fallback_budget_bytes is {chosen.fallback_budget_bytes:,}.")
    _record(entry)
    _warn(entry)


def allow(op: str, held: str, x: Any, budget_bytes: int) -> None:
    """Log making x [rows, columns], held in a format, dense where that was asked for; refuse more than the budget."""
    size = math.prod(x.shape) * x.dtype.itemsize
    if size > budget_bytes:
        what = f"{op}: making {x.shape} of {held} dense takes {size:,} bytes, and budget_bytes is {budget_bytes:,}"
        raise DensifyError(f"{what}. Give it more, or take fewer rows.")
    _record(Densified(op, (held,), (tuple(x.shape),), size, *_place(), budget_bytes))


def _record(entry: Densified) -> None:
    for log in _logs.get():
        log.append(entry)


def _warn(entry: Densified) -> None:
    once = entry.op, entry.formats, entry.file, entry.line
    if once not in _warned:
        _warned.add(once)
        warnings.warn_explicit(DensifyWarning(entry), None, entry.file or "unknown", entry.line)


def _place() -> tuple[str, int]:
    """File and line of the nearest caller outside of the workbench."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("workbench", "kernels"):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
