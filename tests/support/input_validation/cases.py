"""What a case is: a name, a call, and whether it is to be refused; and cases of one call with arrays of all kinds."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.support.invalid_arrays import FAULTS, SPARSE, WRITTEN, broken, sound

Case = tuple[str, Callable[[], Any], bool]
Door = Callable[[Any], Any]
"""A call with an array [4, 5] from outside."""

WIDTH = 3
WEIGHTS = np.ones((5, WIDTH), np.float32)
LABELS = np.zeros((4, WIDTH), np.float32)


def dense(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def of_each(door: str, call: Door, held: tuple[str, ...] = SPARSE) -> Iterator[Case]:
    """The call with a sound array of each format, and with every invalid one."""
    for format in held:
        yield f"{door}({format})", lambda format=format: call(sound(format)), False
        for fault in FAULTS[format]:
            yield f"{door}({format}: {fault})", lambda given=(format, fault): call(broken(*given)), True


def of_written(door: str, begin: Callable[[Any], Callable[[], Any]], held: tuple[str, ...] = SPARSE) -> Iterator[Case]:
    """`begin` takes a sound array in and gives what reads it later: when the array has been written to meanwhile."""

    def late(format: str, fault: str) -> None:
        x = sound(format)
        read = begin(x)
        read()
        WRITTEN[format][fault](x)
        read()

    for format in held:
        for fault in WRITTEN[format]:
            yield f"{door}({format}: {fault})", lambda given=(format, fault): late(*given), True
