"""A session on the emulated device: one after the other, times of the host, products by NumPy, bytes that live."""

import contextlib
from collections.abc import Iterator
from time import perf_counter

import numpy as np
from emulator.device import Emulator
from emulator.memory import Array

from kernels.sessions import Beside, Session


class EmulatedSession(Session):
    """`log` has what was asked of it, in order."""

    def __init__(self, device: Emulator) -> None:
        self.device, self.log = device, []
        self.copied = 0

    @contextlib.contextmanager
    def beside(self) -> Iterator[Beside]:
        work = Beside({"start": self.mark()})
        yield work
        work.marks["end"] = self.mark()

    def join(self, work: Beside) -> None:
        assert work.host, "what is joined has copied something, which it keeps until then"
        self.log.append("join")

    def copy(self, array: np.ndarray, work: Beside) -> Array:
        work.host.append(array)
        self.copied += array.nbytes
        self.log.append("copy")
        return self.device.put(array)

    def mark(self) -> float:
        return perf_counter()

    def seconds(self, start: float, end: float) -> float:
        return end - start

    def finish(self) -> None:
        self.log.append("finish")

    def matmul(self, x: Array, y: Array, out: Array, transposed: bool = False) -> None:
        np.matmul(x.host.T if transposed else x.host, y.host, out=out.host)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        before = self.copied
        yield
        self.bytes_most = self.copied - before
