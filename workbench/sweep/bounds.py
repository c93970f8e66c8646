"""Bounds of each phase of a step on this machine: those of its kernels.

What the machine allows (`measure.roofs`) is measured once a run, in a process of its own, when the first row asks for
it. Bounds are known of steps that one process runs kernel by kernel on the CPU, of models whose scores are X @ W and
nothing else.
"""

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.context import ForkServerContext
from typing import Any

import kernels
from kernels import Sizes
from workbench import models
from workbench.measure import child, roofs
from workbench.measure.roofs import Roofs
from workbench.measure.rounds import LOOKS
from workbench.sweep.spec import Cell, Measure

ROOFS = "workbench.sweep.bounds:answers"
SECONDS_MOST = 60.0
"""What measuring the machine may take; two seconds are usual."""
PHASES = ("forward", "gradient", "update")


def answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The one answer of the process that measures the machine: what `Roofs` takes."""
    yield roofs.measure(request["threads"])


class Bounds:
    """Bounds for the rows of one run. `context` is what children are started from; `beat` is called while one works."""

    def __init__(
        self, measure: Measure, context: Callable[[], ForkServerContext], beat: Callable[[], None] = lambda: None
    ) -> None:
        self.is_wanted = measure.roofs and measure.rounds >= LOOKS[0]
        self.context, self.beat = context, beat
        self.roofs_on = functools.cache(self._roofs_on)

    def of(self, cell: Cell, row: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """The column `bounds` of a row with times; None where nothing is known."""
        if not self.is_wanted or row["status"] != "ok" or not is_known(cell):
            return None
        on = self.roofs_on(1 if cell.serial else row["threads"])
        return of_row(cell, row, on) if on else None

    def _roofs_on(self, threads: int) -> Roofs | None:
        """Roofs of the machine on so many threads; None where measuring them failed: a sweep goes on without."""
        started = time.monotonic()
        try:
            process, connection = child.start(self.context(), ROOFS, {"threads": [threads]})
            with child.Child(process, connection) as measuring:
                measured = next(measuring.answers(lambda: child.why_too_long(started, SECONDS_MOST), self.beat))
        except child.Ended:
            return None
        return Roofs(measured, threads)


def is_known(cell: Cell) -> bool:
    """Whether the cost of each phase of the cell's steps is that of one kernel."""
    is_one = cell.device == "cpu" and cell.launch == "kernels" and cell.trainers == 1
    return is_one and models.get(cell.model).is_product


def of_row(cell: Cell, row: Mapping[str, Any], on: Roofs) -> list[dict[str, Any]]:
    """A bound for each phase of `PHASES`; an exact update, which has steps to catch up with, has none."""
    known = []
    for phase in PHASES:
        name = (row["kernels"] or {}).get(phase)
        if name is None or (phase == "update" and cell.update == "exact"):
            continue
        kernel, sizes = kernels.get(name), sizes_of(cell, row, phase, name)
        (seconds, by), cost = on.bound(kernel, sizes), kernel.cost(sizes)
        moved = {"bytes": cost.bytes_compulsory, "bytes_gather": cost.bytes_gather, "flops": cost.flops}
        known.append({"phase": phase, "kernel": name, "seconds": seconds, "by": by} | moved)
    return known


def sizes_of(cell: Cell, row: Mapping[str, Any], phase: str, kernel: str) -> Sizes:
    """The sizes that the kernel's cost is a formula of.

    X in CSC form is X.T in CSR form, and a gradient in COO form has row and column in each other's place: R and D, and
    touched columns and rows, are exchanged then.
    """
    rows = min(row["batch_rows"], row["rows_trained"])
    value, index = (8 if row["dtype"] == "float64" else 4), (8 if row.get("index_dtype") == "int64" else 4)
    entries, touched = math.ceil(row["nnz_batch"]), math.ceil(row["touched"])
    is_coo = phase == "gradient" and kernel.removeprefix("scipy.") == "coo_dense"
    is_turned = phase != "update" and (cell.format == "csc" or is_coo)
    if is_turned:
        return Sizes(row["features"], entries, rows, row["width"], min(rows, entries), value, index)
    return Sizes(rows, entries, row["features"], row["width"], touched, value, index)
