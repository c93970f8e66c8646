"""Runs a suite: each shape in a separate process, with limits; a row of every candidate, whatever happens.

A configuration's rows are on the disk before the next one starts; what is stopped is resumed by starting it again.
"""

import contextlib
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import kernels
from benchmarks import device as of_device
from benchmarks import experiment, tables
from benchmarks.candidates import list_tasks
from benchmarks.configurations import BenchmarkConfiguration, key, names_of, source_hash
from benchmarks.device import CACHES, refuse_without_gpu
from benchmarks.experiment import Progress, Results
from benchmarks.interleaved import Policy
from benchmarks.shapes import SHAPES, BenchError, Shape, shape_of
from kernels import devices
from kernels.registry import unknown_name
from workbench.measure import environment, machine, race
from workbench.measure.child import Ended
from workbench.measure.clock import median_interval
from workbench.measure.race import Worker

# The suites, each with a full and a quick selection of configurations.


WIDTHS = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256)
WIDTHS_LARGE = (1, 4, 16, 64, 128)
"""Where a batch has 65,536 rows and a call takes long."""

SMALL = tuple(Shape("small batch", rows, 10_000, 20, slope=1.0) for rows in (32, 64))
"""Two sizes of batch, from which what a call takes beyond its work follows."""

SIZED = ("criteo clicks", "reuters text")
"""Shapes that are measured at other numbers of rows, too."""


def _kernels(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield the configurations of the kernel suite on the CPU; fewer if `quick`."""
    for shape in _shapes(quick):
        yield from (
            BenchmarkConfiguration("kernels", "csr_dense", shape, width) for width in _product_widths(shape, quick)
        )
        for task in list_tasks():
            if task != "csr_dense":
                yield from (
                    BenchmarkConfiguration("kernels", task, shape, width) for width in _widths(task, shape, quick)
                )


def _shapes(quick: bool) -> list[Shape]:
    """Return the batch shapes of the kernel suite; fewer if `quick`."""
    if quick:
        return [*map(shape_of, ("uniform 100k", "power law 1M", "square 8192, 1 %")), *SMALL]
    sizes = [shape_of(name, rows) for rows in (256, 65_536) for name in SIZED]
    return [*SHAPES.values(), *sizes, *SMALL]


def _product_widths(shape: Shape, quick: bool) -> tuple[int, ...]:
    """Return the dense widths N at which products are timed on a shape."""
    if quick:
        return (16,) if shape in SMALL else (1, 4, 16, 64)
    return WIDTHS_LARGE if shape.name in SIZED and shape.rows > 4096 else WIDTHS


MAIN = ("csr_t_dense", "sgd_fused", "adam_fused", "plan")
"""Tasks that are measured on all shapes; the others on two."""

OTHERS = ("power law 1M", "reuters text")


def _widths(task: str, shape: Shape, quick: bool) -> tuple[int, ...]:
    """Return the widths N at which a task is timed on a shape; () if it is not timed there."""
    has_width = task != "plan" and any("N" in dict(axes) for _, _, axes in kernels.get(task).parsed)
    all_columns = task == "csr_t_dense_full"
    if shape in SMALL:
        return (16,) if has_width and not all_columns else ()
    if task in ("dense_to_csr", "csr_to_dense"):
        return (1,) if shape.name.startswith("square") else ()
    if task in MAIN:
        chosen = ((1, 16, 64) if not quick else (16,)) if shape.slope or not quick else ()
    else:
        full = shape.name in OTHERS and shape.rows == 4096 and not quick
        chosen = (1, 16, 64) if full else (16,) if quick and shape.name == OTHERS[0] else ()
    return chosen if has_width else chosen[:1]


FEW_ROWS = Shape("32 rows of 14", 32, 123, 14)
"""A batch as people train with on tables of a few columns: what a step takes beyond its work."""


def _step(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield the configurations of the training-step suite on the CPU; fewer if `quick`."""
    for batches in ("repeat", "new"):
        yield BenchmarkConfiguration("step", "step", FEW_ROWS, 1, "adagrad", batches)
    for features in (100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000):
        shape = Shape(f"power law {features:,}", 4096, features, 32, sigma=0.2, slope=1.2)
        for width in (16,) if quick else (1, 16, 64):
            for optimizer in ("sgd", "adam") if quick else ("sgd", "adagrad", "adam"):
                for batches in ("repeat", "new"):
                    yield BenchmarkConfiguration("step", "step", shape, width, optimizer, batches)


ROWS_ON_CUDA = (256, 4096, 65_536)


def _step_on_cuda(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield the configurations of the training-step suite on CUDA; fewer if `quick`."""
    for rows in ROWS_ON_CUDA:
        shape = Shape("power law 1,000,000", rows, 1_000_000, 32, sigma=0.2, slope=1.2)
        for width in (16,) if quick else (16, 64):
            for optimizer in ("adagrad",) if quick else ("sgd", "adagrad", "adam"):
                for batches in ("repeat", "new"):
                    yield BenchmarkConfiguration("step", "step", shape, width, optimizer, batches, device="cuda")


QUICK_ON_CUDA = (
    *("csr_dense", "csr_t_dense", "sddmm", "plan", "softmax", "take_rows"),
    *("sgd_fused", "adagrad_fused", "adam_fused", "adagrad_lazy"),
)


def _kernels_on_cuda(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield each configuration of the kernel suite on CUDA twice, with warm and with cold caches."""
    known = QUICK_ON_CUDA if quick else of_device.list_device_tasks()
    configurations = [configuration for configuration in _kernels(quick) if configuration.task in known]
    if quick:
        large = shape_of("criteo clicks", 65_536)
        configurations.append(
            BenchmarkConfiguration("kernels", "adagrad_fused", shape_of("power law 1M"), 64)
        )  # which a target is of
        configurations += [
            BenchmarkConfiguration("kernels", task, large, N)
            for task in ("csr_dense", "sgd_fused", "adam_fused")
            for N in (16, 64)
        ]
    for configuration in configurations:
        yield from (replace(configuration, device="cuda", cache=cache) for cache in CACHES)


def _pytorch(quick: bool) -> Iterator[BenchmarkConfiguration]:
    """Yield the configurations of PyTorch training loops: logistic regression on new batches.

    Each is timed with and without the two lines that the project's bridge changes.
    """
    for features in (100_000, 1_000_000):
        for rows in (1024,) if quick else (256, 1024):
            shape = Shape(f"power law {features:,}", rows, features, 32, sigma=0.2, slope=1.2)
            yield from (
                BenchmarkConfiguration("pytorch", "pytorch", shape, width, "adam", "new") for width in (1, 16, 64)
            )
            yield BenchmarkConfiguration("pytorch", "pytorch", shape, 16, "adagrad", "new")


def starts_of(suite: str, quick: bool = False) -> list[str]:
    """Return the kernels whose first call is timed: all of this project's, two if `quick`; [] for other suites."""
    every = [name for name in kernels.names() if "." not in name and not name.endswith("_dense_full")]
    return {"kernels": ["csr_dense", "csr_t_dense"] if quick else every}.get(suite, [])


SUITES: dict[str, dict[str, Callable[[bool], Iterator[BenchmarkConfiguration]]]] = {
    "kernels": {"cpu": _kernels, "cuda": _kernels_on_cuda},
    "step": {"cpu": _step, "cuda": _step_on_cuda},
    "pytorch": {"cpu": _pytorch},
}


def configurations_of(
    suite: str, quick: bool = False, only: str = "", shape: str = "", device: str = "cpu"
) -> list[BenchmarkConfiguration]:
    """Return the configurations of a suite on a device, only those of one task (`only`) or `shape` if given.

    Raises BenchError for an unknown suite, device, task or shape.
    """
    if suite not in SUITES:
        raise BenchError(unknown_name("suite", suite, SUITES))
    if device not in SUITES[suite]:
        raise BenchError(unknown_name(f"device of the suite {suite}", device, SUITES[suite]))
    configurations = list(SUITES[suite][device](quick))
    for what, name in (("task", only), ("shape", shape)):
        names = [configuration.task if what == "task" else configuration.shape.name for configuration in configurations]
        if name and name not in names:
            raise BenchError(unknown_name(f"{what} in this selection of the suite", name, dict.fromkeys(names)))
        configurations = [
            configuration for configuration, each in zip(configurations, names, strict=True) if not name or each == name
        ]
    return configurations


SECONDS_CELL = 150.0
SECONDS_START = 120.0
WORK = "benchmarks.child:answers"
ELEMENTS_ALONE = 2**27
"""D * N from which a configuration of the suite of steps has a separate process."""
FINAL = ("ok", "memory", "unsupported", "wrong")
ONCE = {"import": "import kernels", "numba": "start of Numba"}
"""Names in the rows of what a process pays once."""


@dataclass
class Outcome:
    """Outcome of a run: configurations done now, found done, records by status; whether it was stopped."""

    file: Path
    done: int = 0
    reused: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    stopped: bool = False

    @property
    def summary(self) -> str:
        """How the run ended, with the number of records of each status and the file, in a sentence."""
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self.counts.items())) or "nothing new"
        reused = f"; {self.reused} configurations found done" if self.reused else ""
        ended = "stopped" if self.stopped else "finished"
        return f"{ended}: {self.done} configurations, {counts}{reused}. Records: {self.file}"


class Runner:
    """Measures configurations into a run folder. `threads` of None means all cores that Numba sees."""

    def __init__(
        self,
        folder: str | Path,
        policy: Policy,
        threads: int | None = None,
        progress: Progress = lambda what, share: None,
    ) -> None:
        """Open the results of a run folder; nothing is measured yet. `threads` None takes all that Numba sees."""
        self.policy, self.progress = policy, progress
        self.results = Results(tables.BENCH, Path(folder))
        self.threads = experiment.resolve_threads(threads)
        self.worker = Worker(WORK, self.results.folder)
        self.outcome = Outcome(self.results.file)
        self.bandwidths: list[dict] = []
        self.device, self.gpu = "cpu", devices.Gpu()

    def run(self, configurations: Sequence[BenchmarkConfiguration], starts: Sequence[str] = ()) -> Outcome:
        """Measure the configurations without records, and the first call of the kernels `starts`; return the outcome.

        Ctrl-C ends it, keeps what was finished and sets `stopped`. Raises BenchError for a missing device.
        """
        self._take_device(configurations)
        done = {row["key"] for row in self.results.open() if row["status"] in FINAL}
        self.configurations, self.keys = (
            list(configurations),
            [key(configuration, self.policy) for configuration in configurations],
        )
        rest = [number for number, each in enumerate(self.keys) if each not in done]
        self.outcome.reused = len(configurations) - len(rest)
        if rest:
            self.outcome.stopped = not self.results.collect(lambda: self._measure(rest, starts))
        return self.outcome

    def _measure(self, numbers: Sequence[int], starts: Sequence[str]) -> None:
        """Measure bandwidths, the configurations with these indices, then the first call of the kernels `starts`."""
        self._bandwidths()
        for group in _group_by_shape(self.configurations, numbers):
            self._shape(group)
        self.starts(starts)

    def _take_device(self, configurations: Sequence[BenchmarkConfiguration]) -> None:
        """Set the device of the run and its memory limit.

        BenchError if configurations differ in it or it is missing.
        """
        device_names = {configuration.device for configuration in configurations} or {"cpu"}
        if len(device_names) > 1:
            raise BenchError(f"A run is of one device; the configurations are of {', '.join(sorted(device_names))}.")
        (self.device,) = device_names
        if self.device == "cuda":
            self.gpu = refuse_without_gpu()
            limit = int(race.SHARE_MEMORY * self.gpu.bytes_memory)
            self.worker.bytes_limit = min(self.worker.bytes_limit, limit)

    def _bandwidths(self) -> None:
        """Measure stream and gather bandwidths in a child process and append a record each; none if the child fails."""
        self._tell("bandwidth of this machine")
        with contextlib.suppress(Ended):  # shares of the bound are unknown then, and said to be
            for answer in self._answers([]):
                self.bandwidths = answer.get("bandwidths", [])
        for rate in self.bandwidths:
            settled = {
                "suite": self.configurations[0].suite,
                "task": "bandwidth",
                "candidate": rate["level"],
                "side": "ours",
            }
            settled["device"] = self.device
            self._append({"key": "bandwidth", "status": "ok"} | settled | rate)

    def starts(self, names: Sequence[str]) -> None:
        """Append records of what a new process costs: import, start of Numba, and the first call of each kernel.

        Each kernel is called with a warm cache of compiled code; a failed process gets the status "failed".
        """
        once: dict[str, list[float]] = {"import": [], "numba": []}
        settled = {"key": "start", "suite": "kernels", "task": "start", "side": "ours", "rows": 64, "width": 16}
        for name in names:
            self._tell(f"first call of {name}")
            for _ in range(2):  # the first fills the cache
                timings = _time_start(name)
            if timings is None:
                self._append({"status": "failed", "reason": "its process failed", "candidate": name} | settled)
                continue
            for what, samples in once.items():
                samples.append(timings[what])
            self._append({"status": "ok", "candidate": name, "seconds": timings["call"]} | settled)
        for what, samples in once.items():
            if samples:
                seconds, low, high = median_interval(samples)
                row = {"samples": samples, "seconds": seconds, "seconds_low": low, "seconds_high": high}
                self._append({"status": "ok", "candidate": ONCE[what]} | settled | row)

    def _shape(self, numbers: list[int]) -> None:
        """Measure the configurations of one shape in one process; after a failure the remaining ones in a new process.

        The configuration that was running gets records with status and reason for each candidate.
        """
        while numbers:
            current, end = numbers[0], None
            try:
                for answer in self._answers(numbers):
                    current = answer.get("cell", current)
                    self._tell(self.configurations[current].description)
                    if "rows" in answer:
                        numbers = [number for number in numbers if number != current]
                        self._done(current, answer["rows"])
            except Ended as ended:  # the configuration that was at work has no rows
                end = race.end_columns(ended)
            if end:
                numbers = [number for number in numbers if number != current]
                entries = names_of(self.configurations[current])
                self._done(current, [{"candidate": name, "side": side} | end for name, side, _ in entries])

    def _done(self, number: int, rows: Iterable[dict]) -> None:
        """Append the records `rows` of the configuration with this index and count it as done."""
        for row in rows:
            settled = {"key": self.keys[number], "source": source_hash(self.configurations[number])}
            self._append(settled | self.configurations[number].columns() | row)
        self.outcome.done += 1

    def _append(self, row: dict[str, Any]) -> None:
        """Append a record with threads, code hash, versions and GPU to the file, and count its status."""
        own = {"threads": self.threads, "source": source_hash(), "gpu": self.gpu.name or None}
        own["versions"] = machine.versions() | self.gpu.versions
        self.results.append(**own | row)
        self.outcome.counts[row["status"]] = self.outcome.counts.get(row["status"], 0) + 1

    def _tell(self, what: str) -> None:
        """Report what is measured next, with the numbers of finished and of all configurations."""
        done = self.outcome.done + self.outcome.reused
        self.progress(f"{done} of {len(self.configurations)} done: {what}", done / max(len(self.configurations), 1))

    def _answers(self, numbers: list[int]) -> Iterator[dict[str, Any]]:
        """Yield the answers of a child process about these configurations, or on bandwidths if there are none.

        `numbers` are positions in `cells`; answers are those of `child.answers`. Raises Ended if the child fails or
        exceeds a limit.
        """
        request = {
            "cells": [(number, dataclasses.asdict(self.configurations[number])) for number in numbers],
            "policy": dataclasses.asdict(self.policy),
            "threads": self.threads,
            "bytes_limit": self.worker.bytes_limit,
            "bandwidths": self.bandwidths,
            "device": self.device,
            "bytes_cache": self.gpu.bytes_cache,
        }
        return self.worker.answers(request, lambda answer: SECONDS_START if answer is None else SECONDS_CELL)


def _time_start(name: str) -> dict[str, float] | None:
    """Return {"import", "numba", "call": seconds} of a new process that calls a kernel once; None if it failed."""
    command = [sys.executable, "-m", "benchmarks.child", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment.measuring_environment())
    return None if done.returncode else json.loads(done.stdout)


def _group_by_shape(configurations: Sequence[BenchmarkConfiguration], numbers: Iterable[int]) -> list[list[int]]:
    """Return lists of configuration indices, one per shape, to be measured in one process each.

    A step on large tables has a separate process: not every library frees their memory.
    """
    groups: dict[tuple, list[int]] = {}
    for number in numbers:
        configuration = configurations[number]
        large = configuration.is_step and configuration.shape.features * configuration.width >= ELEMENTS_ALONE
        groups.setdefault((configuration.shape.name, number if large else None), []).append(number)
    return list(groups.values())
