"""The cases, tried in this process, which those end that are not refused.

    python -m tests.support.input_validation FILE FIRST

writes to FILE, for each case from number FIRST on, its number, whether it is to be refused and its name before the
call, and what came of it after: a process that ends in between has died of that case. `proof` as a third word has other
cases tried, which show that faults are found.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.support.input_validation.arrays import of_formats, of_ops, of_optimizers
from tests.support.input_validation.by_name import of_kernels
from tests.support.input_validation.cases import Case
from tests.support.input_validation.graphs import of_executor, of_module, of_training
from tests.support.invalid_arrays import broken, sound
from workbench import formats

GROUPS = (of_formats, of_ops, of_executor, of_module, of_training, of_optimizers, of_kernels)


def of_proof() -> Iterator[Case]:
    """What doors must not do."""
    yield "silence", lambda: None, True
    yield "signal", lambda: os.kill(os.getpid(), signal.SIGSEGV), True
    yield "another's error", lambda: np.zeros(2)[3], True
    yield "no advice", _without_advice, True
    yield "refused", lambda: formats.check(broken("csr", "index too large"), full=True), True
    yield "sound but refused", lambda: formats.check(broken("csr", "index too large"), full=True), False
    yield "sound", lambda: formats.check(sound("csr"), full=True), False


def _without_advice() -> None:
    raise formats.FormatError("Wrong.")


def cases(groups: tuple[Callable[[], Iterator[Case]], ...]) -> Iterator[Case]:
    """All of them, in an order that is always the same; names are not said twice."""
    for group in groups:
        for name, call, is_refused in group():
            yield f"{group.__name__.removeprefix('of_')}: {name}", call, is_refused


def outcome(call: Callable[[], Any]) -> str:
    """`passed`, or the type of what was raised, by its module, and its text."""
    try:
        call()
    except BaseException as error:
        return f"{type(error).__module__}.{type(error).__name__} {error}".replace("\n", " ")[:300]
    return "passed"


def main(path: str, first: str, proof: str = "") -> None:
    warnings.simplefilter("ignore")
    with open(path, "a", encoding="utf-8") as file:
        for number, (name, call, is_refused) in enumerate(cases((of_proof,) if proof else GROUPS)):
            if number >= int(first):
                file.write(f"{number}\t{int(is_refused)}\t{name}\t")
                file.flush()
                file.write(f"{outcome(call)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
