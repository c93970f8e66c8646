"""A configuration of a suite: a task on a shape at a width; and who takes part in it."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernels
from kernels.devices import Device
from workbench import formats, ops
from workbench.bench import candidates as of_kernels
from workbench.bench import device as of_device
from workbench.bench import steps, steps_cpu, steps_device, steps_pytorch
from workbench.bench.candidates import ALLOWED, Ready, Setting
from workbench.bench.shapes import Batch, BenchError, Shape, draw_batch
from workbench.measure import closure
from workbench.measure.machine import describe_stack

MEASURED = frozenset({"workbench.bench.child", "workbench.measure.child"})
"""What the process of a cell runs; all that is not looked up by the name of a task follows from it."""

LIBRARIES = ("torch", "tensorflow", "tensorflow-cpu")
"""Packages that rivals are of, by the names they are installed by."""


@dataclass(frozen=True)
class Cell:
    """Configuration of a benchmark: all candidates of a task. `optimizer` and `batches` are of steps alone; `cache`,
    warm or cold, of kernels on cuda."""

    suite: str
    task: str
    shape: Shape
    width: int = 1
    optimizer: str | None = None
    batches: str | None = None
    seed: int = 0
    device: str = "cpu"
    cache: str | None = None

    @classmethod
    def of(cls, settings: dict[str, Any]) -> "Cell":
        """Cell from `dataclasses.asdict`, as it comes out of JSON."""
        return cls(**{**settings, "shape": Shape(**settings["shape"])})

    @property
    def is_step(self) -> bool:
        """Whether it is whole steps that are measured."""
        return self.optimizer is not None

    @property
    def of_step(self) -> tuple[str, str]:
        """Optimizer and batches (repeat or new) of a step; `BenchError` for a configuration of kernels."""
        if self.optimizer is None or self.batches is None:
            raise BenchError(f"The task {self.task} is no step: it has no optimizer and batches.")
        return self.optimizer, self.batches

    @property
    def told(self) -> str:
        """The configuration in one line."""
        place = "" if self.device == "cpu" else f"on {self.device}"
        more = " ".join(filter(None, (self.optimizer, self.batches, place, self.cache)))
        return f"{self.task} {more + ' ' if more else ''}{self.shape.name}, R {self.shape.rows}, N {self.width}"

    def columns(self) -> dict[str, Any]:
        """Return the columns of a row that the configuration settles."""
        return {
            "suite": self.suite,
            "task": self.task,
            "shape": self.shape.name,
            "rows": self.shape.rows,
            "features": self.shape.features,
            "width": self.width,
            "optimizer": self.optimizer,
            "batches": self.batches,
            "dtype": "float32",
            "index_dtype": "int32",
            "seed": self.seed,
            "device": self.device,
            "cache": self.cache,
        }


@dataclass(frozen=True)
class Entry:
    """One candidate of a configuration: its name and side, how it makes itself ready, and why it cannot take part.

    It needs `bytes_needed` while it is made ready, and keeps `bytes_kept` of its own while the others run.
    """

    name: str
    side: str
    make: Callable[[], Ready]
    bytes_needed: int = 0
    bytes_kept: int = 0
    bytes_most: int | None = None
    unavailable: str = ""


@dataclass(frozen=True)
class Field:
    """The candidates of a configuration, the first of ours first, sizes for the row, and the error that is allowed."""

    entries: Sequence[Entry]
    sizes: dict[str, int]
    allowed: float


def names_of(cell: Cell) -> list[tuple[str, str, str]]:
    """Return (name, side, why unavailable) of the candidates, without making anything."""
    candidates = _step_contenders(cell) if cell.is_step else _contenders(cell)
    return [(candidate.name, candidate.side, candidate.unavailable) for candidate in candidates]


def _contenders(cell: Cell, on: Device | None = None) -> Sequence[of_kernels.Candidate]:
    """Return the kernel candidates of a configuration, for its device."""
    if cell.device == "cpu":
        return of_kernels.list_candidates(cell.task, cell.shape)
    return of_device.list_device_candidates(cell.task, cell.shape, on)


def _step_contenders(cell: Cell, on: Device | None = None) -> Sequence[steps.StepContender]:
    """Return the training-step candidates of a configuration, for its device."""
    if cell.task == "pytorch":
        return steps_pytorch.list_pytorch_candidates()
    if cell.device == "cpu":
        return steps_cpu.list_step_candidates(cell.shape.features * cell.width, cell.of_step[0])
    return steps_device.list_device_step_candidates(on)


def field_of(cell: Cell, on: Device | None = None) -> Field:
    """Draw the batch of a configuration and name who takes part; nothing large is made but the batch, and a step's
    tables.

    Configurations of cuda are measured on the device `on`.
    """
    return _steps(cell, on) if cell.is_step else _kernels(cell, on)


def _kernels(cell: Cell, on: Device | None) -> Field:
    """Return the kernel candidates of a configuration, ready to be timed, with counts and allowed error."""
    setting = Setting.of(_draw_batch(cell.shape, cell.seed).wide(cell.width))
    entries = [
        Entry(
            each.name,
            each.side,
            functools.partial(each.make, setting),
            each.bytes_needed(setting.sizes),
            bytes_most=each.bytes_most,
            unavailable=each.unavailable,
        )
        for each in _contenders(cell, on)
    ]
    return Field(entries, {"nnz": setting.sizes.z, "touched": setting.sizes.U}, ALLOWED["float32"])


@functools.lru_cache(1)
def _draw_batch(shape: Shape, seed: int) -> Batch:
    """Return the batch of the configurations of a shape, which follow each other."""
    return draw_batch(shape, seed)


def _steps(cell: Cell, on: Device | None) -> Field:
    """Return the training-step candidates of a configuration, ready to be timed, with counts and allowed error."""
    loss = "logistic" if cell.task == "pytorch" else "squared"
    optimizer, batches = cell.of_step
    problem = steps.make_problem(cell.shape, cell.width, optimizer, cell.seed, loss)
    expected = functools.cache(lambda every: steps.wanted(problem, every))
    needed = sum(table.nbytes for table in problem.tables)

    def make(each: steps.StepContender) -> Ready:
        """Prepare the steps of a candidate on the configuration's problem."""
        return steps.ready(each.make(problem), problem, batches, expected(each.every))

    candidates = _step_contenders(cell, on)
    entries = [
        Entry(
            each.name,
            each.side,
            functools.partial(make, each),
            needed if each.shares else 3 * needed,  # the problem's tables, its own, and what it makes them from
            0 if each.shares else needed,
            unavailable=each.unavailable,
        )
        for each in candidates
    ]
    sizes = [(batch.indices.size, np.unique(batch.indices).size) for batch in problem.batches]
    nnz, touched = (int(np.mean(each)) for each in zip(*sizes, strict=True))
    return Field(entries, {"nnz": nnz, "touched": touched}, steps.ALLOWED)


def roots_of(cell: Cell) -> frozenset[str]:
    """Return the modules that measuring the configuration starts from, and those of its candidates, of which each may
    be the competitor."""
    named = {part for name, _, _ in names_of(cell) for part in name.split(" + ")}
    named |= {cell.task, f"{cell.optimizer}_dense"}
    modules = closure.registering_modules("kernel", named.intersection(kernels.names()))
    if cell.optimizer:  # a step, which is made of operators, too
        modules |= closure.registering_modules("optimizer", [cell.optimizer])
        modules |= closure.registering_modules("format", formats.names()) | closure.registering_modules(
            "operator", ops.names()
        )
    if (cell.suite, cell.device) == ("step", "cpu"):
        modules |= {steps_cpu.OF_USERS}
    return MEASURED | modules


def source_hash(cell: Cell | None = None, code: closure.Code | None = None) -> str:
    """Return the hash of the code that measures the configuration; without one, of what measures the machine."""
    code, roots = code or closure.installed_code(), MEASURED if cell is None else roots_of(cell)
    return code.digest(roots, compiled=cell is not None and cell.device == "cuda")


def key(cell: Cell, policy: Any) -> str:
    """Return the hash of the settings, the way of measuring, the candidates, the code and what that runs on: rows with
    this key answer the configuration."""
    settings = [dataclasses.asdict(cell), dataclasses.asdict(policy), names_of(cell)]
    parts = [*settings, source_hash(cell), describe_stack(*LIBRARIES)]
    return closure.result_key(parts)
