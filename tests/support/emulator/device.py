"""The emulated device, for the launchers of GPU twins."""

import ctypes
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import devices
from kernels.gpu.source import THREADS, Source
from tests.support.emulator import build
from tests.support.emulator.memory import Array, new_array

if build.compiler() is None:
    pytest.skip("g++, which compiles the CUDA sources for the host, is not installed", allow_module_level=True)

KINDS = {np.dtype(np.int32): "i", np.dtype(np.int64): "l", np.dtype(np.float32): "f", np.dtype(np.float64): "d"}


class EmulatorError(Exception):
    """What a kernel did wrong, with its name, block and thread."""


class Graph:
    """Work as a device's graph has it: its calls with their arguments, captured the first time, when none of them runs.

    `calls` has their names, in order; empty before.
    """

    def __init__(self, emulator: "Emulator", work: Callable[[], None]) -> None:
        self.emulator, self.work = emulator, work
        self.captured: list[tuple[str, Callable[[], None]]] = []

    @property
    def calls(self) -> list[str]:
        return [name for name, _ in self.captured]

    def __call__(self) -> None:
        if not self.captured:
            self.captured = self.emulator.capture(self.work)
        for _, call in self.captured:
            call()


class Emulator(devices.Device):
    """Blocks and threads run in an order that `seed` gives. `launches` counts the kernels that ran.

    With seed 0 the order is ascending; with an odd one threads take turns in an order that changes; with another even
    one the first of them runs whenever it can, so that some are far ahead of others. What a kernel writes is seen by
    all at once, but two accesses to a place, one of them a write, that nothing orders are an error, and so is a write
    of what the kernel loads past the caches; see `accesses.h`.

    While a graph is captured nothing runs, and what a device could not do then is an error: to make or read an array,
    and to call what was never called before, for that is compiled or loaded then.
    """

    def __init__(self) -> None:
        self.seed = 0
        self.turn = threading.Lock()  # the fibers are one thread's
        self.launches: dict[str, int] = {}
        self.known: set[tuple] = set()  # what was called before
        self.here = threading.local()  # a thread's capture
        self.made: Callable[[Array], None] = lambda array: None  # called with each new array
        self.waited: Callable[[], None] = lambda: None  # called when the host has waited for the device

    def refuse_capture(self, what: str) -> None:
        """An error if this thread captures a graph."""
        if getattr(self.here, "captured", None) is not None:
            raise EmulatorError(f"{what} while a graph is captured")

    def capture(self, work: Callable[[], None]) -> list[tuple[str, Callable[[], None]]]:
        """Names of the calls that `work` makes, and the calls, none of which is made."""
        self.refuse_capture("a graph was captured")
        self.here.captured = captured = []
        try:
            work()
        finally:
            self.here.captured = None
        return captured

    def call(self, name: str, details: tuple, work: Callable[..., None], *args: Any) -> None:
        """Do `work(*args)`, or hold it for the graph that is captured; `details` and the name say what it compiles."""
        arrays = [arg for arg in args if isinstance(arg, Array)]

        def run() -> None:
            for array in arrays:
                array.region.used()
            work(*args)

        captured = getattr(self.here, "captured", None)
        if captured is None:
            run()
            self.known.add((name, *details))
        elif (name, *details) in self.known:
            captured.append((name, run))
        else:
            raise EmulatorError(f"{name} was called for the first time while a graph is captured: {details}")

    def empty(self, shape: int | tuple[int, ...], dtype: object) -> Array:
        self.refuse_capture("an array was made")
        made = new_array(shape, dtype)
        self.made(made)
        return made

    def zeros(self, shape: int | tuple[int, ...], dtype: object) -> Array:
        made = self.empty(shape, dtype)
        made.host[...] = 0
        return made

    def put(self, array: np.ndarray) -> Array:
        made = self.empty(array.shape, array.dtype)
        made.host[...] = array
        return made

    def clear(self, array: Array) -> None:
        self.call("clear", (), lambda array: array.host.fill(0), array)

    def recorded(self, work: Callable[[], None]) -> Graph:
        return Graph(self, work)

    def read(self, array: Array) -> np.ndarray:
        self.refuse_capture("an array was read")
        array.region.used()
        self.waited()
        return array.host.copy()

    def contiguous(self, array: Array) -> Array:
        return array if array.host.flags.c_contiguous else self.put(array.host)

    def assign(self, target: Array, source: Array) -> None:
        self.refuse_capture("an array was assigned")
        target.region.used(), source.region.used()
        target.host[...] = source.host

    def is_aligned(self, array: Array) -> bool:
        return array.address % 16 == 0

    def launch(self, source: Source, name: str, blocks: int, *args: Any) -> None:
        source.check(name)

        def on_all_blocks(*args: Any) -> None:
            with self.turn:
                run(source, name, blocks, THREADS, args, self.seed)
            self.launches[name] = self.launches.get(name, 0) + 1

        self.call(name, (source.title,), on_all_blocks, *args)


def source_of(file: Path) -> Source:
    """All kernels of a file."""
    return Source(file, tuple(re.findall(r"__global__ void (\w+)\(", file.read_text(encoding="utf-8"))))


def run(source: Source, name: str, blocks: int, threads: int, args: tuple, seed: int = 0) -> None:
    """Run a kernel; raises `EmulatorError`."""
    library, number = build.library(source), source.names.index(name)
    values = [_as_c(arg, name) for arg in args]
    _check_kinds(library, number, name, [kind for kind, _ in values])
    pointers = (ctypes.c_void_p * len(args))(*[ctypes.addressof(value) for _, value in values])
    message = ctypes.create_string_buffer(2000)
    body = ctypes.cast(getattr(library, f"body_{number}"), ctypes.c_void_p)
    for place, arg in enumerate(args):
        if isinstance(arg, Array):
            build.runtime().emulator_watch(arg.region.start, arg.region.end, place)
    has_failed = build.runtime().emulator_run(name.encode(), blocks, threads, seed, body, pointers, message, 2000)
    build.runtime().emulator_forget()
    if has_failed:
        raise EmulatorError(_with_array(message.value.decode(), args))
    for place, arg in enumerate(args):
        if isinstance(arg, Array) and not arg.region.is_whole():
            raise EmulatorError(f"{name}: wrote before the start of argument {place}")


def _as_c(arg: Any, name: str) -> tuple[str, Any]:
    """(kind as in `cuda.h`, value) of an argument."""
    if isinstance(arg, Array):
        return "p", ctypes.c_void_p(arg.address)
    if not isinstance(arg := devices.as_argument(arg), np.generic):
        raise EmulatorError(f"{name}: takes arrays of the device and numbers, not {type(arg).__name__}")
    return KINDS[arg.dtype], np.ctypeslib.as_ctypes_type(arg.dtype)(arg)


def _check_kinds(library: ctypes.CDLL, number: int, name: str, came: list[str]) -> None:
    letters = ctypes.create_string_buffer(100)
    getattr(library, f"kinds_{number}")(letters)
    if (wanted := letters.value.decode()) != "".join(came):
        raise EmulatorError(f"{name}: takes parameters of the kinds {wanted}, was given {''.join(came)}")


def _with_array(message: str, args: tuple) -> str:
    """The message, and where it names an address, which argument that is near to."""
    *_, last = message.split()
    if "touches address" not in message or last == "(nil)":
        return message
    address = int(last, 16)
    for place, arg in enumerate(args):
        if isinstance(arg, Array) and arg.region.holds(address):
            past = address - arg.region.end
            where = f"{past} bytes past the end" if past >= 0 else "before the start"
            return f"{message}, {where} of argument {place}, {arg.dtype}{list(arg.shape)}"
    return message


emulator = Emulator()
devices.register_device(Array, emulator)
