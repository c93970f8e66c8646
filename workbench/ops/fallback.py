"""Fallback for operators without a rule for the formats of their inputs: the inputs are made dense, with a warning.

The result is that of the dense meaning. The user gets a `DensifyWarning`, once per line of code, operator and formats;
every densification is logged. `strict` refuses it; `fallback_budget_bytes` limits its memory.

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
from typing import Any


class DensifyWarning(UserWarning):
    """An operator without a rule for its inputs' formats made them dense; `.entry` has operator, place and bytes."""

    def __init__(self, entry: "Densified") -> None:
        """Keep the entry; its text is the message."""
        super().__init__(str(entry))
        self.entry = entry


class DensifyError(RuntimeError):
    """Making arrays dense was refused by `strict` or `fallback_budget_bytes`."""


@dataclass(frozen=True)
class Densified:
    """One densification: operator, formats and shapes of its inputs, bytes of the dense copies, the user's line of
    code.

    `budget_bytes` is the limit of an explicitly requested densification.
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
        """Return file and line of the user's code, such as "train.py:12"."""
        return f"{self.file}:{self.line}" if self.file else "an unknown place"

    def __str__(self) -> str:
        """Return the message: operator, formats, shapes, bytes of the dense copies, and place."""
        shapes = " and ".join(
            str(shape) for shape, format in zip(self.shapes, self.formats, strict=True) if format != "dense"
        )
        took = f"Making {shapes} dense takes {self.bytes:,} bytes, at {self.place}"
        if self.budget_bytes is not None:
            return f"{self.op}: asked for, of at most {self.budget_bytes:,} bytes. {took}"
        return f"{self.op} has no rule for {', '.join(self.formats)}. {took}"


@dataclass(frozen=True)
class Settings:
    """`strict` refuses every densification, `fallback_budget_bytes` every densification that takes more bytes."""

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
    """Restrict densification within a block.

    Parameters
    ----------
    strict : bool, optional
        Refuse every densification. None keeps the current setting.
    fallback_budget_bytes : int, optional
        Refuse densifications of more bytes. None keeps the current setting.

    Yields
    ------
    Settings
        The settings in effect.

    Notes
    -----
    The block affects its own thread, and the thread of a loader created within it. To pass it to another thread use
    `threading.Thread(target=contextvars.copy_context().run, args=(work,))`.

    Examples
    --------
    >>> with settings(strict=True) as chosen:
    ...     chosen.strict
    True
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
    """Record the densifications within a block, also those already warned of.

    Yields
    ------
    list of Densified
        The entries so far.

    Examples
    --------
    >>> with recording() as entries:
    ...     pass
    >>> entries
    []
    """
    log: list[Densified] = []
    token = _logs.set((*_logs.get(), log))
    try:
        yield log
    finally:
        _logs.reset(token)


def report(op: str, held: Sequence[str], arrays: Sequence[Any]) -> None:
    """Log and warn that `arrays` in the formats `held` are made dense for the operator `op`.

    Raises DensifyError if `strict` or the byte budget forbids it.
    """
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
    """Log a densification of x [rows, columns] in format `held` that the user requested, for the function `op`.

    Raises DensifyError if it takes more than `budget_bytes`; gives no warning.
    """
    size = math.prod(x.shape) * x.dtype.itemsize
    if size > budget_bytes:
        what = f"{op}: making {x.shape} of {held} dense takes {size:,} bytes, and budget_bytes is {budget_bytes:,}"
        raise DensifyError(f"{what}. Give it more, or take fewer rows.")
    _record(Densified(op, (held,), (tuple(x.shape),), size, *_place(), budget_bytes))


def _record(entry: Densified) -> None:
    """Append the entry to all active recordings."""
    for log in _logs.get():
        log.append(entry)


def _warn(entry: Densified) -> None:
    """Emit the DensifyWarning of an entry, once per line of code, operator and formats in this process."""
    once = entry.op, entry.formats, entry.file, entry.line
    if once not in _warned:
        _warned.add(once)
        warnings.warn_explicit(DensifyWarning(entry), None, entry.file or "unknown", entry.line)


def _place() -> tuple[str, int]:
    """Return (file, line) of the nearest caller outside of the workbench; ("", 0) if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("workbench", "kernels"):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
