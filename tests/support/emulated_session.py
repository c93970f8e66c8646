"""A session on the emulated device: one after the other, times of the host, products by NumPy, bytes that live.

Everything is done when it is asked for, but what a device could have done in another order is an error. For each
stream, and for the host, `seen` has how far it knows the streams to be: it knows what it did itself, and learns the
rest from marks that it waits for. An array may be used on a stream that knows all other streams' uses of it to be over,
that which made it included; pinned memory may be copied from again by a host that knows the copy before to be done. The
memory of an array goes back to the stream that made it, which must know by then that the others are done with it.
"""

import contextlib
import functools
import threading
import weakref
from collections.abc import Iterator
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pytest

from kernels.sessions import SecondStream, Session
from tests.support.emulator.device import Emulator
from tests.support.emulator.memory import Array

STREAMS = ("first", "second")
Seen = dict[str, int]


class OrderError(AssertionError):
    """Two things were asked for that a device could do in the wrong order."""


class Mark(NamedTuple):
    """A place in a stream: when the host was there, and what is over when it is passed."""

    seconds: float
    seen: Seen


class EmulatedSession(Session):
    """`log` has what was asked of it, in order."""

    def __init__(self, device: Emulator) -> None:
        self.emulator, self.log = device, []
        self.copied = 0
        self.seen = {place: dict.fromkeys(STREAMS, 0) for place in (*STREAMS, "host")}
        self.copies: dict[int, tuple[str, int]] = {}
        self.over = dict.fromkeys(STREAMS, 0)  # what was over when somebody read an array, of whichever thread
        self.too_early: list[str] = []
        self.current, self.turn = threading.local(), threading.RLock()

    @property
    def device(self) -> Emulator:
        """The one device of all sessions, which tells the one that asked last what happens."""
        self.emulator.made, self.emulator.waited = self._made, self._has_read
        return self.emulator

    @property
    def stream(self) -> str:
        """The current one of this thread."""
        return getattr(self.current, "stream", "first")

    @contextlib.contextmanager
    def nothing_made(self) -> Iterator[None]:
        """Within it no array may be made or read, on the device or in pinned memory."""

        def refuse(*args):
            raise AssertionError(f"a step, or a load, made or read an array: {args}")

        with pytest.MonkeyPatch.context() as patch:
            for method in ("empty", "zeros", "read", "put"):
                patch.setattr(self.emulator, method, refuse)
            patch.setattr(self, "pinned", refuse)
            yield

    def forget(self, method: str, places: list[int]) -> None:
        """Leave the calls of those numbers of a method out."""
        real, calls = getattr(self, method), iter(range(10**6))
        setattr(self, method, lambda mark: None if next(calls) in places else real(mark))

    def _advance(self) -> Seen:
        """One more thing is queued on the current stream, by a host that knows what it knows."""
        self.emulator.refuse_capture("something that is no part of a graph was queued")
        seen = self.seen[self.stream]
        _learn(seen, self.seen["host"])
        seen[self.stream] += 1
        return seen

    def _made(self, array: Array) -> None:
        """By the current stream; from now on every use is looked at, and when its memory goes back."""
        uses: Seen = {}
        array.region.used = functools.partial(self._use, uses)
        array.region.used()
        weakref.finalize(array.region, self._freed, self.stream, uses)

    def _freed(self, stream: str, uses: Seen) -> None:
        with self.turn:
            known = {
                other: max(each[other] for each in (self.seen[stream], self.seen["host"], self.over)) for other in uses
            }
            late = [other for other, place in uses.items() if other != stream and known[other] < place]
            self.too_early += [
                f"the {stream} stream takes memory again that the {other} one may be at" for other in late
            ]

    def _has_read(self) -> None:
        """One thread knows more of its stream; the others may not count on it."""
        with self.turn:
            _learn(self.over, self.seen[self.stream])

    def _use(self, uses: Seen) -> None:
        with self.turn:
            seen = self._advance()
            if late := [other for other, place in uses.items() if seen[other] < place]:
                raise OrderError(f"the {self.stream} stream uses an array that the {late[0]} one may be at")
            uses[self.stream] = seen[self.stream]

    @contextlib.contextmanager
    def second_stream(self) -> Iterator[SecondStream]:
        self.current.stream = "second"
        try:
            work = SecondStream({"start": self.mark()})
            yield work
            work.marks["end"] = self.mark()
        finally:
            self.current.stream = "first"

    def wait_for(self, mark: Mark) -> None:
        with self.turn:
            _learn(self.seen[self.stream], mark.seen)
        self.log.append("wait")

    def until(self, mark: Mark) -> None:
        with self.turn:
            _learn(self.seen["host"], mark.seen)
        self.log.append("until")

    def pinned(self, shape: int | tuple[int, ...], dtype: object) -> np.ndarray:
        return np.empty(shape, dtype)

    def fill(self, target: Array, pinned: np.ndarray) -> None:
        assert target.dtype == pinned.dtype
        assert pinned.flags.c_contiguous
        target.region.used()
        with self.turn:
            stream, place = self.copies.get(pinned.ctypes.data, ("first", 0))
            if pinned.size and self.seen["host"][stream] < place:
                raise OrderError("the host has changed pinned memory that may not be copied yet")
            self.copies[pinned.ctypes.data] = self.stream, self.seen[self.stream][self.stream]
        target.host.reshape(-1)[: pinned.size] = pinned.reshape(-1)
        self.copied += pinned.nbytes
        self.log.append("fill")

    def copy(self, array: np.ndarray, work: SecondStream) -> Array:
        work.host.append(array)
        self.copied += array.nbytes
        self.log.append("copy")
        return self.device.put(array)

    def mark(self) -> Mark:
        with self.turn:
            if self.too_early:  # not told where it was found, for an error in a finalizer is lost
                raise OrderError(self.too_early.pop())
            return Mark(perf_counter(), dict(self._advance()))

    def seconds(self, start: Mark, end: Mark) -> float:
        return end.seconds - start.seconds

    def finish(self) -> None:
        with self.turn:
            _learn(self.seen["host"], self.seen[self.stream])
        self.log.append("finish")

    def matmul(self, x: Array, y: Array, out: Array, transposed: bool = False) -> None:
        def multiply(x: Array, y: Array, out: Array) -> None:
            np.matmul(x.host.T if transposed else x.host, y.host, out=out.host)

        for array in (x, y, out):
            assert array.host.flags.c_contiguous
        shapes = x.shape, y.shape, x.dtype.name  # by which a BLAS chooses its kernels
        self.device.call(f"matmul{' transposed' if transposed else ''}", shapes, multiply, x, y, out)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        before = self.copied
        yield
        self.bytes_most = self.copied - before


def _learn(seen: Seen, more: Seen) -> None:
    """What is over by `more` is over."""
    for stream in STREAMS:
        seen[stream] = max(seen[stream], more[stream])
