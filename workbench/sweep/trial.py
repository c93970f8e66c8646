"""One trial: build data and model, check the step, warm up, measure, and return the row. Runs in a child process."""

import math
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import threadpoolctl

from kernels import devices, threads
from kernels.sessions import bytes_asked
from workbench import data, formats, models, optimizers, settings
from workbench.measure import blas, machine, memory
from workbench.measure.clock import Policy, sample
from workbench.measure.meters import Meters
from workbench.measure.rounds import NUMBER
from workbench.measure.sentinel import Sentinel
from workbench.measure.stats import quantile_interval
from workbench.sweep.budget import COMPILING
from workbench.sweep.check import check_step
from workbench.sweep.curves import SAMPLE_DIGITS, Curve, epochs_judged, shortened
from workbench.sweep.grid import predicted_bytes, setup_of, threads_of
from workbench.sweep.problem import Problem, columns_of_data, make_problem
from workbench.sweep.sources import kernels_of
from workbench.sweep.spec import Cell, Measure
from workbench.sweep.warm import warm_kernels
from workbench.train import PHASES, Training, make_run, why_impossible

ENDS_AT = 0.9
"""Share of the time it may take after which a trial ends by itself."""


class _Ended(Exception):  # noqa: N818 - control flow, not an error
    """The trial is over with this status and reason."""

    def __init__(self, status: str, reason: str, **columns) -> None:
        super().__init__(reason)
        self.status, self.columns = status, columns


def answers(request: dict) -> Iterator[dict]:
    """Answers of the process of a trial: {"stage": ...} as each stage begins, and at last the row.

    `request` has cell, measure and bytes_limit. It may have busy_most, the share of the cores above which other
    programs end the trial before its epochs; seconds_limit, so long after `started` (`time.monotonic`) it ends with
    what it has reached; and for device cuda gpu, what was found there before. Errors become rows with a reason.
    """
    cell = Cell(**request["cell"])
    row = settings_of(cell) | {"bytes_limit": request["bytes_limit"]}
    try:
        gpu = devices.Gpu(**request["gpu"]) if "gpu" in request else None
        require_possible(cell)
        row |= require_device(cell.device, gpu)
        count = 1 if cell.serial else row["threads"]
        with threadpoolctl.threadpool_limits(limits=count):
            threads.set_threads(count)
            trial = _Trial(cell, Measure(**request["measure"]).policy(), request["bytes_limit"], row)
            trial.seconds_limit = request.get("seconds_limit", trial.seconds_limit)
            trial.started = request.get("started", trial.started)
            for stage in trial.stages(request.get("busy_most", 1.0)):
                yield {"stage": stage}
    except _Ended as ended:
        row |= {"status": ended.status, "reason": str(ended), **ended.columns}
    except MemoryError as error:
        row |= {"status": "memory", "reason": out_of_memory(cell.device, error), "bytes_needed": bytes_asked(error)}
        if cell.device == "cuda" and bytes_asked(error):
            row["bytes_limit"] = row["bytes_device_limit"]
    except (data.DataError, formats.FormatError, models.ModelError) as error:
        row |= {"status": "unsupported", "reason": str(error)}
    except Exception as error:
        traceback.print_exc()
        row |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    yield row


def require_possible(cell: Cell) -> None:
    """End the trial where a setting asks for what its device does not have."""
    if reason := why_impossible(setup_of(cell)):
        raise _Ended("unsupported", reason)


def require_device(device: str, found: devices.Gpu | None = None) -> dict:
    """End the trial where it asks for a device that is not there; columns about the one that is."""
    if device == "cpu":
        return {}
    found = found or devices.probe()
    if not found.present:
        raise _Ended("unsupported", no_device(found))
    return {"gpu": found.name, "bytes_device_limit": found.bytes_memory, "versions": found.versions}


def no_device(found: devices.Gpu) -> str:
    """Reason why there is no CUDA device, as a sentence."""
    return f"No CUDA device: {found.reason.removeprefix('no CUDA device: ')}."


def out_of_memory(device: str, error: MemoryError) -> str:
    """The reason of a trial that ended so: what of, and in the words of the allocator."""
    where = "Out of device memory" if device == "cuda" and bytes_asked(error) else "Out of memory"
    return f"{where}: {str(error).rstrip('.') or 'an allocation failed'}."


def settings_of(cell: Cell) -> dict:
    """The columns of a row that a cell settles before anything ran."""
    row = {setting.column or setting.name: getattr(cell, setting.name) for setting in settings.SETTINGS}
    options = optimizers.get(cell.optimizer).options
    row |= {"intercept": setup_of(cell).has_intercept}
    row |= {"learning_rate": cell.learning_rate or options["learning_rate"]}
    row |= {"decay": options["decay"] if cell.decay is None else cell.decay}
    named = kernels_of(cell) if not why_impossible(setup_of(cell)) else None
    return row | {"threads": threads_of(cell), "kernels": named, "densified": []}


def is_in_memory(part: Any) -> bool:
    """Whether X or targets of rows held out are arrays in memory: there are some, and they are not read from disk."""
    return part is not None and not isinstance(part, data.StoredRows)


class _Trial:
    """The stages of one trial; each adds its columns to the row, which is the caller's."""

    def __init__(self, cell: Cell, policy: Policy, bytes_limit: int, row: dict) -> None:
        self.cell, self.policy, self.bytes_limit, self.row = cell, policy, bytes_limit, row
        self.setup = setup_of(cell)
        self.on_device = cell.device == "cuda"
        self.seconds_measured, self.seconds_limit = 0.0, math.inf
        self.started, self.sentinel = time.monotonic(), Sentinel()

    def stages(self, busy_most: float) -> Iterator[str]:
        """Do the whole trial; each stage is named before it begins, and no clock runs meanwhile."""
        yield COMPILING
        self.row |= warm_kernels(self.cell)
        self.started += self.row["seconds_compile"]  # a limit is for what comes after it
        yield "preparing data"
        self.rehearse()
        memory.give_back()
        baseline, resident = memory.owned_bytes(), memory.resident_bytes()
        run, held_out = self.prepared()
        baseline += sum(map(formats.nbytes, (part for part in held_out if is_in_memory(part))))
        self.check(run)
        self.watch_device(run)
        yield "measuring"
        memory.reset_peak()
        try:
            self.measure(run)
            if self.cell.epochs and self.row["busy_others"] > busy_most:
                raise _Ended("disturbed", "Other programs were at work.")
            if self.cell.epochs:
                yield "training"
                self.train(run, held_out)
        finally:  # a trial whose time is out keeps what it reached
            self.row["bytes_peak"] = max(memory.peak_owned_bytes() - baseline, 0)
            self.row["bytes_peak_resident"] = max(memory.peak_bytes() - resident, 0)
            self.row["memory_counted"] = memory.counted()
            self.row |= {"bytes_held": run.bytes_held, "seconds_measured": self.seconds_measured}
            if self.on_device:
                self.row["bytes_device_held"] = run.bytes_device_held
        versions = machine.versions() | self.row.get("versions", {})
        self.row |= {"versions": versions, "blas": blas.name(), "mended": blas.mended() or None}
        self.row |= {"status": "ok", "reason": ""}

    def prepared(self) -> tuple[Training, tuple[Any, Any]]:
        """The training that is measured, and X and targets of the rows held out, None each if there are none.

        All else that the data was made from is released: the CSR array that dense data came from, values of another
        type, rows of both parts together. None of it is needed for training, so no peak has it.
        """
        problem = make_problem(self.cell)
        return (
            make_run(self.setup, problem.held(self.cell), problem.y, problem.width, problem.facts),
            problem.held_out,
        )

    def rehearse(self) -> None:
        """A step in arrays that are let go again: data are cached then, and the code for their sizes is loaded.

        What both take in memory is not the training's, and is there before the baseline is read.
        """
        problem = make_problem(self.cell)
        self.row |= columns_of_data(problem, self.cell, self.setup)
        self.predict_bytes(problem)
        self.check(make_run(self.setup, problem.held(self.cell), problem.y, problem.width, problem.facts))

    def predict_bytes(self, problem: Problem) -> None:
        """Predicted bytes; a trial that would not fit ends here, with the bytes it would need."""
        is_stored = isinstance(problem.x, data.StoredRows)
        parts = predicted_bytes(
            self.cell,
            rows=problem.x.shape[0],
            features=problem.x.shape[1],
            nnz=problem.x.nnz,
            width=problem.width,
            facts=problem.facts,
            touched=int(self.row["touched"]),
            stored=is_stored,
        )
        if is_stored:
            batches = data.StoredBatches(problem.x, problem.y, self.cell.batch_rows, shuffle=self.cell.shuffle)
            parts["data"] = batches.nbytes
        if self.on_device:
            on_host = {name: parts.pop(name) for name in ("data", "batch") if name in parts}
            parts["batch"] = on_host["batch"]  # it is made on the host, and copied
            self.refuse_too_large(parts, "bytes_device_predicted", "of device memory ", self.row["bytes_device_limit"])
            parts = on_host
        self.refuse_too_large(parts, "bytes_predicted", "", self.bytes_limit)

    def refuse_too_large(self, parts: dict[str, int], column: str, where: str, limit: int) -> None:
        """Fill the column; end a trial whose parts are more than the limit."""
        self.row[column] = needed = sum(parts.values())
        if needed > limit:
            largest = max(parts, key=parts.get)
            reason = f"Needs {needed} bytes {where}({largest}: {parts[largest]}); the limit is {limit}."
            raise _Ended("memory", reason, bytes_needed=needed, bytes_limit=limit)

    def check(self, run: Training) -> None:
        """The step that will be timed, against the reference; a wrong one is never timed."""
        checked = check_step(run)
        self.row |= {"error": checked.error, "error_allowed": checked.allowed, "densified": run.densified()}
        if checked.reason:
            raise _Ended("wrong", checked.reason)

    def watch_device(self, run: Training) -> None:
        """The most memory that the steps take on the device, in untimed ones: watching costs time."""
        if self.on_device:
            self.row["bytes_device_peak"] = run.watch()

    def measure(self, run: Training) -> None:
        """Seconds a step and of each phase; batches that repeat are all prepared before the clock starts."""
        events = run.events()
        curve = Curve()
        self.sentinel.seconds()
        meters = Meters(self.cell.device)
        first, others = time.perf_counter(), machine.OtherPrograms()
        curve.add(next(events))
        given_all = threads.this_thread.calls_parallel
        self.row["seconds_first_step"] = (time.perf_counter() - first) / curve.events[0].steps
        in_calls = self.setup.launch in ("epoch", "dual")
        are_new = self.setup.shuffle or in_calls or not run.keeps
        steps_warmup = self.policy.steps_warmup if are_new else self.row["steps_epoch"]
        left = self.seconds_left() / (2 if self.cell.epochs else 1)
        policy = replace(self.policy, steps_warmup=max(self.policy.steps_warmup, steps_warmup), seconds_most=left)
        timing = sample(lambda: curve.add(next(events)).seconds, policy, lambda: curve.events[-1].steps)
        seconds, low, high = quantile_interval(timing.seconds, NUMBER)
        self.seconds_measured += timing.seconds_warmup + timing.seconds_sampled
        of_the_mean = seconds / np.mean(timing.seconds)  # phases are parts of the trial's number
        self.row |= {f"seconds_{phase}": timing.phases.get(phase, 0.0) * of_the_mean for phase in PHASES}
        self.row |= {
            "samples": shortened(timing.seconds, SAMPLE_DIGITS),
            "seconds_step": seconds,
            "seconds_step_low": low,
            "seconds_step_high": high,
            "seconds_epoch": seconds * self.row["steps_epoch"],
            "steps_timed": timing.steps,
            "threads_used": threads.get_threads() if threads.this_thread.calls_parallel > given_all else 1,
            "busy_others": others.share(),
            "seconds_sentinel": self.sentinel.seconds(),
            **meters.columns(sum(event.steps for event in curve.events)),
            "seconds_prepare": curve.seconds_prepare(),
            **curve.columns(),
        }
        if timing.is_cut:
            raise self.out_of_time(f"Samples: {len(timing.seconds)}, steps: {timing.steps}")

    def out_of_time(self, reached: str) -> _Ended:
        """The end of a trial whose time is out."""
        limit = f"seconds_cell = {self.seconds_limit:g} s"
        return _Ended("timeout", f"{reached} in {limit}; what it reached is kept.")

    def seconds_left(self) -> float:
        """Seconds until the trial should end by itself, with what it has, since it would be ended soon after."""
        return ENDS_AT * self.seconds_limit - (time.monotonic() - self.started)

    def train(self, run: Training, held_out: tuple[Any, Any]) -> None:
        """The epochs asked for, from new weights, or as many as time allows: loss, seconds an epoch, quality."""
        run.reset()
        curve, seconds, points = Curve(), 0.0, []
        judged = epochs_judged(self.cell.epochs)
        for epoch in range(self.cell.epochs):
            start = time.perf_counter()
            for event in run.epoch(epoch):
                curve.add(event)
            run.catch_up()
            seconds += time.perf_counter() - start
            is_cut = epoch + 1 < self.cell.epochs and self.seconds_left() <= 0
            if is_cut or epoch + 1 in judged:
                points.append({"epoch": epoch + 1, "seconds": seconds, **run.qualities(*held_out)})
            if is_cut:
                break
        self.seconds_measured += seconds
        name, done = run.model.quality_name, points[-1]["epoch"]
        measures = {measure: points[-1][measure] for measure in run.model.measures}
        self.row |= {"seconds_epoch": seconds / done, "quality_curve": points, **curve.columns()}
        self.row |= {"quality": points[-1][name], "quality_name": name, "measures": measures}
        if is_cut:
            raise self.out_of_time(f"{done} of {self.cell.epochs} epochs")
