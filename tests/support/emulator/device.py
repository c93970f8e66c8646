"""The emulated device, for the launchers of GPU twins."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from kernels import devices
from kernels.gpu.source import THREADS, Source
from tests.support.emulator import build
from tests.support.emulator.memory import Array, new_array

KINDS = {np.dtype(np.int32): "i", np.dtype(np.int64): "l", np.dtype(np.float32): "f", np.dtype(np.float64): "d"}


class EmulatorError(Exception):
    """What a kernel did wrong, with its name, block and thread."""


class Emulator(devices.Device):
    """Blocks and threads run in an order that `seed` gives. `launches` counts the kernels that ran.

    With seed 0 the order is ascending; with an odd one threads take turns in an order that changes; with another even
    one the first of them runs whenever it can, so that some are far ahead of others. What a kernel writes is seen by
    all at once, but two accesses to a place, one of them a write, that nothing orders are an error, and so is a write
    of what the kernel loads past the caches; see `accesses.h`.
    """

    def __init__(self) -> None:
        self.seed = 0
        self.turn = threading.Lock()  # the fibers are one thread's
        self.launches: dict[str, int] = {}
        self.made: Callable[[Array], None] = lambda array: None  # called with each new array
        self.waited: Callable[[], None] = lambda: None  # called when the host has waited for the device

    def empty(self, shape: int | tuple[int, ...], dtype: object) -> Array:
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
        array.region.used()
        array.host[...] = 0

    def recorded(self, work: Callable[[], None]) -> Callable[[], None]:
        return work

    def read(self, array: Array) -> np.ndarray:
        array.region.used()
        self.waited()
        return array.host.copy()

    def contiguous(self, array: Array) -> Array:
        return array if array.host.flags.c_contiguous else self.put(array.host)

    def assign(self, target: Array, source: Array) -> None:
        target.region.used(), source.region.used()
        target.host[...] = source.host

    def is_aligned(self, array: Array) -> bool:
        return array.address % 16 == 0

    def launch(self, source: Source, name: str, blocks: int, *args: Any) -> None:
        source.check(name)
        for arg in args:
            if isinstance(arg, Array):
                arg.region.used()
        with self.turn:
            run(source, name, blocks, THREADS, args, self.seed)
        self.launches[name] = self.launches.get(name, 0) + 1


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
