"""Doors of kernels by name, and of the batch plan."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import kernels
from kernels import plan
from tests.support.cases import CASES
from tests.support.input_validation.cases import Case


def of_kernels() -> Iterator[Case]:
    """Every kernel, and every operand whose contents it declares, wrong in each way."""
    for name in kernels.names():
        kernel = kernels.get(name)
        if kernel.cpu is None:
            continue
        yield name, lambda kernel=kernel: kernel.cpu(*kernel.arguments(CASES["plain"])), False
        for text, place in zip(kernel.operands.split(), itertools.count()):
            sign = text.rpartition("]")[2].rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_+1")
            for fault, change in CONTENTS.get(sign, {}).items():
                if fault == "too large" and text.endswith("<"):
                    continue  # there is no limit
                yield f"{name}({text}: {fault})", lambda a=(kernel, place, change): _kernel(*a), True
    starts, indices = np.array([0, 2, 3], np.int32), np.array([0, 1, 2], np.int32)
    plans = {
        "sound": (starts, indices),
        "falls": (np.array([0, 4, 3], np.int32), indices),
        "negative": (np.array([0, -(10**8), 3], np.int32), indices),
        "too large": (starts, np.array([0, 70, 2], np.int32)),
        "float": (starts, indices.astype(float)),
        "empty": (starts[:0], indices),
        "2-D": (starts, indices.reshape(1, 3)),
    }
    for fault, (one, other) in plans.items():
        yield f"plan.build({fault})", lambda a=(one, other): plan.build(*a, 3), fault != "sound"
    yield "plan.build_coo", lambda: plan.build_coo(np.array([70]), np.array([0]), (2, 3)), True


CONTENTS: dict[str, dict[str, Callable[[np.ndarray], Any]]] = {
    "^": {
        "from 1": lambda starts: starts.__setitem__(0, 1),
        "falls": lambda starts: starts.__setitem__(1, -5),
        "far": lambda starts: starts.__setitem__(1, 10**8),
        "ends below": lambda starts: starts.__setitem__(-1, -1),
    },
    "<": {
        "too large": lambda indices: indices.__setitem__(0, 2**31 - 1),
        "negative": lambda indices: indices.__setitem__(-1, -1),
    },
}
CONTENTS["<<"] = {
    "negative": CONTENTS["<"]["negative"],
    "twice": lambda indices: indices.__setitem__(1, indices[0]),
    "falls": lambda indices: indices.__setitem__(slice(None), indices[::-1].copy()),
}
CONTENTS["<!"] = {**CONTENTS["<"], "twice": CONTENTS["<<"]["twice"]}


def _kernel(kernel: kernels.Kernel, place: int, change: Callable) -> Any:
    args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in kernel.arguments(CASES["plain"])]
    change(args[place])
    return kernel.cpu(*args)
