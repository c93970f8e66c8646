"""One trial: build data and model, check the step, warm up, measure, and return the row. Runs in a child process.

A process whose request says `in_turns` is one of several that are timed in turns: it waits for orders, each of them a
turn or the record of the turns so far, and gives the records of several rounds.
"""

import collections
import functools
import math
import time
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, final

import numpy as np
import scipy.sparse
import threadpoolctl

from kernels import devices, threads
from kernels._compat.library_internals import watched_compiling
from kernels.devices import bytes_asked
from kernels.registry import format_count
from workbench import data, formats, models, optimizers, settings
from workbench.data.labels import NO_LABELS
from workbench.measure import child, environment, machine, memory
from workbench.measure.clock import Policy, Sampler, quantile_interval
from workbench.measure.machine import Meters
from workbench.measure.rounds import NUMBER, ReferenceWorkload
from workbench.sweeps.budget import COMPILING, NoRoom, TrialEnded, out_of_memory, require_device, require_possible
from workbench.sweeps.check import Checked, check_step
from workbench.sweeps.grid import predicted_bytes, seconds_of, setup_of, threads_of, unfit
from workbench.sweeps.problem import (
    Problem,
    columns_of_data,
    make_problem,
    synthetic_parameters_for,
    targets,
    with_random_labels,
)
from workbench.sweeps.spec import Configuration, Measure, kernels_of
from workbench.training import PHASES, StepEvent, Training, impossible_reason, make_run
from workbench.training.training import NARROW

# Before a trial's clock starts: the code of every kernel that its steps use, loaded or compiled.


def warm_kernels(configuration: Configuration) -> dict[str, float]:
    """Load or compile every kernel of the configuration, on one and on all threads; return {"seconds_compile": s}.

    Done before the trial's clock starts, so that neither its time nor its memory includes the library's code.
    """
    start = time.perf_counter()
    tiny, problem = tiny_problem(configuration)
    run = make_run(setup_of(tiny), problem.held(tiny), problem.y, problem.width, problem.facts)
    collections.deque(run.epoch(0), maxlen=0)
    with threads.parallel():  # the same little work goes to all threads, from converting the rows on
        run.hold(problem.held(tiny), problem.y)
        run.reset()
        collections.deque(run.epoch(0), maxlen=0)
    return {"seconds_compile": time.perf_counter() - start}


def tiny_problem(configuration: Configuration) -> tuple[Configuration, Problem]:
    """Return (configuration, synthetic problem of 40 rows and 24 features) that need the code of `configuration`.

    Model, format and setup are those of `configuration`; batches have 16 rows.
    """
    model = models.get(configuration.model)
    width = next(width for width in (3, 1) if model.allows(width))
    if model.needs or model.target in ("numbers", "implicit"):
        tiny_set = synthetic_parameters_for(model, width, rows=40, features=24, density=0.2, seed=0)
    else:
        tiny_set = with_random_labels(tiny_data(), model, width, seed=0)
    y = targets(tiny_set, model, width, configuration.dtype)
    x = tiny_set.x.astype(configuration.dtype)
    if configuration.storage in NARROW:  # ones are exact in every type
        x.data[:] = 1
    problem = Problem(tiny_set, x, y, width, tiny_set.rows)
    return configuration.model_copy(update={"batch_rows": 16, "width": width}), problem


@functools.cache
def tiny_data() -> data.Dataset:
    """Return 40 rows of 24 features, a fifth of them stored, without labels; no compiled code makes them."""
    rng = np.random.default_rng(0)
    x = scipy.sparse.csr_array(np.where(rng.random((40, 24)) < 0.2, rng.random((40, 24)) + 0.1, 0).astype(np.float32))
    return data.Dataset("tiny", x, np.zeros(40), data.Labels("numbers", guess=NO_LABELS), "", "")


# Curves that a trial keeps of a training: its losses step by step, and after which epochs its quality is reported.

CURVE_POINTS = 100
"""More than a chart shows; a curve is most of a row."""
CURVE_DIGITS, SAMPLE_DIGITS = 5, 6
QUALITY_POINTS = 12


def epochs_judged(epochs: int) -> set[int]:
    """Return the numbers (from 1) of the epochs after which quality is measured, out of `epochs` (at least 1).

    At most `QUALITY_POINTS`, evenly spaced, always with the last.

    >>> sorted(epochs_judged(3)), len(epochs_judged(100)), max(epochs_judged(100))
    ([1, 2, 3], 12, 100)
    """
    return {int(epoch) for epoch in np.linspace(1, epochs, min(epochs, QUALITY_POINTS)).round()}


class Curve:
    """Loss against training seconds, of all steps; thinned when it is written."""

    def __init__(self) -> None:
        """Start an empty curve; append the events of its steps to `events`."""
        self.events: list[StepEvent] = []

    def seconds_prepare(self) -> float:
        """Return the mean seconds of preparing a batch, over steps that prepared one; 0.0 if none did."""
        seconds = [event.seconds_prepare for event in self.events if event.seconds_prepare]
        return float(np.mean(seconds)) if seconds else 0.0

    def columns(self) -> dict[str, Any]:
        """Return the columns "curve", "loss_first" and "loss_last"; IndexError if there are no events."""
        counts = np.array([event.steps for event in self.events])
        seconds = np.repeat([sum(event.seconds.values()) for event in self.events] / counts, counts)
        losses = np.concatenate([[event.loss] if event.losses is None else event.losses for event in self.events])
        return curve_columns(seconds, losses, self.events[0].step - int(counts[0]) + 1)


def curve_columns(seconds: np.ndarray, losses: np.ndarray, first: int) -> dict[str, Any]:
    """Return the columns "curve", "loss_first" and "loss_last" from the `seconds` and `losses` of single steps.

    Both are float64 `[steps]`, in order, with `seconds` per step (not cumulated); `first` is the number of the first
    step. "curve" is a list of at most `CURVE_POINTS` entries [seconds since the start, loss, step], always with the
    first and last.
    """
    picked = np.unique(np.linspace(0, losses.size - 1, CURVE_POINTS).round().astype(int))
    steps = (first + picked).tolist()
    passed, rounded = (round_digits(values[picked], CURVE_DIGITS) for values in (np.cumsum(seconds), losses))
    points = [list(point) for point in zip(passed, rounded, steps, strict=True)]
    return {"curve": points, "loss_first": float(losses[0]), "loss_last": float(losses[-1])}


def round_digits(values: Iterable[float], digits: int) -> list[float]:
    """Return the values rounded to `digits` significant digits.

    >>> round_digits([0.0004240863, 1234.5678], 5)
    [0.00042409, 1234.6]
    """
    return [float(f"{value:.{digits}g}") for value in values]


# Timing of a training's steps: warmed up, sampled in one go or in turns, and the columns of a row about them.


@contextmanager
def steps_at_work(count: int = 1) -> Iterator[None]:
    """Report to the supervisor, on entry and exit, that up to `count` steps are computed in the block, for time limits.

    The exit is not reported if the block raises. Does nothing in a process without a supervisor.
    """
    child.tell({"steps_begun": count})
    yield
    child.tell({"steps_begun": 0})


@final
class Timing:
    """Samples of a training's steps; the first step and the warm-up are over when it is made.

    `steps_epoch` is the number of steps of an epoch; batches that repeat are all prepared in the warm-up.
    """

    def __init__(self, run: Training, policy: Policy, steps_epoch: int, reference: ReferenceWorkload) -> None:
        """Run the first step (timed as `seconds_first_step`) and set up the sampler with its warm-up by `policy`.

        `steps_epoch` is the number of steps of an epoch. Where batches are kept and repeat, the warm-up has a whole
        epoch, so that all are prepared. `reference` times a reference workload next to the samples.
        """
        self.run, self.steps_epoch, self.reference = run, steps_epoch, reference
        self._events, self.curve = run.events_of_epochs(), Curve()
        self.is_first, self.has_turns, self.was_quiet = True, False, True
        self._watch()
        first = time.perf_counter()
        in_calls = run.setup.execution in ("epoch", "dual")
        with steps_at_work(steps_epoch if in_calls else 1):
            self._step()
        self.seconds_first_step = (time.perf_counter() - first) / self.steps_last
        self.calls_parallel = threads.this_thread.calls_parallel
        are_new = run.setup.shuffle or in_calls or not run.keeps
        steps_warmup = policy.steps_warmup if are_new else max(policy.steps_warmup, steps_epoch)
        policy, cycle = replace(policy, steps_warmup=steps_warmup), 1 if in_calls else steps_epoch
        self.sampler = Sampler(self._step, policy, lambda: self.steps, cycle, self._is_quiet)

    def begin(self, seconds_most: float) -> None:
        """Discard the samples and begin another round in turns, of at most `seconds_most` seconds of samples."""
        self.is_first, self.has_turns = False, False
        self.sampler.begin(seconds_most)

    def close(self) -> None:
        """End the epoch under way, and the thread that prepares its batches; no step can be timed afterwards."""
        self._events.close()

    def take_turn(self, seconds: float, seconds_settle: float) -> None:
        """Take samples for `seconds` seconds after `seconds_settle` seconds of untimed steps.

        Counters of the machine (other programs, clock rates) run only during turns. The preparation time of the first
        batch of a turn is set to 0, since the process had been stopped.
        """
        if self.has_turns:
            self.meters.resume()
            self.others.resume()
        else:
            self._watch()
            self.has_turns = True
        place = len(self.curve.events)
        self.sampler.take_turn(seconds, seconds_settle)
        for first in self.curve.events[place : place + 1]:  # while its batch was prepared the process was stopped
            self.curve.events[place] = replace(first, seconds_prepare=0.0)
        self.was_quiet = self._are_few_others()
        self.others.pause()
        self.meters.pause()

    def columns(self) -> dict[str, Any]:
        """Return the record columns of the samples since the last `begin`; seconds_step is their summary statistic.

        All times are seconds of a step: with the interval seconds_step_low and _high, the samples, each phase scaled to
        the statistic, threads_used, busy_others (share of cores) and seconds_reference. In the first round of a
        process also loss curve and first step.
        """
        if self.has_turns:
            self.others.resume()
            self.meters.resume()
        samples = self.sampler.samples
        seconds, low, high = quantile_interval(samples.seconds, NUMBER)
        of_the_mean = seconds / np.mean(samples.seconds)  # phases are parts of the trial's number
        phases, has_parallel = self.sampler.phases(), threads.this_thread.calls_parallel > self.calls_parallel
        columns = {f"seconds_{phase}": phases.get(phase, 0.0) * of_the_mean for phase in PHASES} | {
            "samples": round_digits(samples.seconds, SAMPLE_DIGITS),
            "seconds_step": seconds,
            "seconds_step_low": low,
            "seconds_step_high": high,
            "seconds_epoch": seconds * self.steps_epoch,
            "steps_timed": samples.steps,
            "threads_used": threads.get_threads() if has_parallel else 1,
            "busy_others": self.others.share(),
            "seconds_reference": self.reference.seconds(),
            **self.meters.columns(self.steps),
        }
        if not self.is_first:
            return columns
        prepare = {"seconds_first_step": self.seconds_first_step, "seconds_prepare": self.curve.seconds_prepare()}
        return columns | prepare | self.curve.columns()

    @property
    def seconds_taken(self) -> float:
        """Seconds of the samples since the last `begin`, plus those of the warm-up if it belongs to them."""
        return self.sampler.samples.seconds_warmup + self.sampler.samples.seconds_sampled

    def _is_quiet(self) -> bool:
        """Return whether other programs have left the cores to the samples so far, at the end of the last turn."""
        return self.was_quiet if self.has_turns else self._are_few_others()

    def _are_few_others(self) -> bool:
        """Return whether other programs have taken no more of the cores than a trial on these threads bears."""
        return self.others.share() <= machine.disturbance_limit(threads.get_threads())

    def _watch(self) -> None:
        """Restart the reference workload, the meters of the machine and the count of steps at zero."""
        self.reference.begin()
        self.reference.seconds()
        self.meters, self.others = Meters(self.run.setup.device), machine.OtherPrograms()
        self.steps, self.calls_parallel = 0, threads.this_thread.calls_parallel

    def _step(self) -> dict[str, float]:
        """Train the next step (or epoch), return {phase: seconds}; keep its loss in the first round only."""
        event = next(self._events)
        if self.is_first:
            self.curve.events.append(event)
        self.steps_last = steps = event.steps
        self.steps += steps
        return event.seconds


MEASURING = "measuring"
"""The stage of a trial in which its steps are timed, and its memory is watched."""
ENDS_AT = 0.9
"""Share of the time it may take after which a trial ends by itself."""


def answers(request: dict) -> Generator[dict, dict, None]:
    """Yield the messages of a trial's process: {"stage": ...} as each stage begins, and finally the record.

    `request` has the keys "cell", "measure" and "bytes_limit", and optionally "seconds_limit", counted from "started"
    (`time.monotonic`), after which it ends with partial results; "gpu", the probed device; "in_turns" with
    "bytes_beside", the memory of the other candidates: if not all fit, the only answer is {"no_room": True}; and
    "checked", the errors of an earlier trial of this configuration, which hold for a step of the same bits. Any
    exception becomes a record with status ("memory", "unsupported", "wrong", "timeout" or "failed") and reason. Between
    these, compiling is reported as a stage whenever it happens, what is known of the data as {"known": columns}, for
    the record of a trial that is killed, and the errors of the first step as {"checked": ...}, for later trials.
    """
    configuration = Configuration(**request["cell"])
    row = settings_of(configuration) | {"bytes_limit": request["bytes_limit"]}
    try:
        gpu = devices.Gpu(**request["gpu"]) if "gpu" in request else None
        require_possible(configuration)
        row |= require_device(configuration.device, gpu)
        count = 1 if configuration.serial else row["threads"]
        with threadpoolctl.threadpool_limits(limits=count):
            threads.set_threads(count)
            trial = _Trial(configuration, Measure(**request["measure"]).policy(), request["bytes_limit"], row)
            trial.seconds_limit = request.get("seconds_limit", trial.seconds_limit)
            trial.started = request.get("started", trial.started)
            trial.bytes_beside = request.get("bytes_beside", 0)
            trial.checked = Checked.from_json(request["checked"]) if "checked" in request else None
            with watched_compiling(trial.is_compiling, trial.has_compiled):
                for stage in trial.prepare():
                    trial.stage = stage
                    yield {"stage": stage}
                yield from trial.take_turns() if request.get("in_turns") else trial.take_all()
    except NoRoom:
        yield {"no_room": True}
        return
    except TrialEnded as ended:
        row |= {"status": ended.status, "reason": str(ended), **ended.columns}
    except MemoryError as error:
        row |= {
            "status": "memory",
            "reason": out_of_memory(configuration.device, error),
            "bytes_needed": bytes_asked(error),
        }
        if configuration.device == "cuda" and bytes_asked(error):
            row["bytes_limit"] = row["bytes_device_limit"]
    except (data.DataError, formats.FormatError, models.ModelError) as error:
        row |= {"status": "unsupported", "reason": str(error)}
    except Exception as error:
        traceback.print_exc()
        row |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    yield row


def settings_of(configuration: Configuration) -> dict:
    """Return the record columns that the settings of a configuration determine before anything has run.

    One column for each setting, with learning rate, decay and intercept resolved from None, the number of threads, and
    "kernels", {phase: kernel name}, None if the setup is impossible.
    """
    values = configuration.model_dump()
    row = {setting.column or setting.name: values[setting.name] for setting in settings.SETTINGS}
    options = optimizers.get(configuration.optimizer).options
    row |= {"intercept": setup_of(configuration).has_intercept}
    row |= {"learning_rate": configuration.learning_rate or options["learning_rate"]}
    row |= {"decay": options["decay"] if configuration.decay is None else configuration.decay}
    named = kernels_of(configuration) if not impossible_reason(setup_of(configuration)) else None
    return row | {"threads": threads_of(configuration), "kernels": named, "densified": []}


def is_in_memory(part: Any) -> bool:
    """Return whether validation data (X or targets) exist and are arrays in memory, rather than rows stored on disk."""
    return part is not None and not isinstance(part, data.StoredRows)


class _Trial:
    """The stages of one trial; each adds its columns to the row, which is the caller's."""

    def __init__(self, configuration: Configuration, policy: Policy, bytes_limit: int, row: dict) -> None:
        """Prepare the trial of `configuration`; `row` is the caller's dict and is filled in place by every stage.

        Without assignment to `seconds_limit` and `bytes_beside` the trial has no time limit and no other candidates.
        """
        self.configuration, self.policy, self.bytes_limit, self.row = configuration, policy, bytes_limit, row
        self.setup = setup_of(configuration)
        self.on_device = configuration.device == "cuda"
        self.seconds_measured, self.seconds_limit, self.bytes_beside = 0.0, math.inf, 0
        self.started, self.reference = time.monotonic(), ReferenceWorkload()
        self.checked: Checked | None = None
        self.stage, self.seconds_compiled, self.bytes_before, self.bytes_mapped = "", 0.0, 0, 0

    def is_compiling(self) -> None:
        """Note the memory owned now and report the stage "compiling"; Numba calls it before compiling."""
        self.bytes_before = memory.owned_bytes()
        child.tell({"stage": COMPILING})

    def has_compiled(self, seconds: float) -> None:
        """Exclude `seconds` of compiling, and the memory it kept, from limits and columns.

        Called after code was compiled; reports the former stage again. While steps are measured, the growth in owned
        memory is added to the baseline and the peak is reset.
        """
        self.seconds_compiled += seconds
        if self.stage != COMPILING:
            self.started += seconds
        if self.stage == MEASURING:
            memory.return_memory()
            self.baseline += max(memory.owned_bytes() - self.bytes_before, 0)
            memory.reset_peak()
        child.tell({"stage": self.stage})

    def prepare(self) -> Iterator[str]:
        """Run all stages before the timed steps, yielding the name of each before it begins.

        Compiles kernels, makes the data, checks the first step against the reference and leaves `self.run` ready.
        Raises TrialEnded if the step is wrong or memory is too small.
        """
        yield COMPILING
        self.row |= warm_kernels(self.configuration)
        self.started += self.row["seconds_compile"]  # a limit is for what comes after it
        yield "preparing data"
        self.rehearse()
        memory.return_memory()
        self.baseline, self.resident = memory.owned_bytes(), memory.resident_bytes()
        self.run, self.held_out = self.prepared()
        for part in filter(is_in_memory, self.held_out):
            self.baseline += formats.nbytes(part) - memory.mapped_bytes(part)
        self.check(self.run)
        self.watch_device(self.run)
        yield MEASURING

    def take_all(self) -> Iterator[dict]:
        """Time the steps in one go, then train the epochs asked for; yield {"stage": "training"} before these.

        Fills the row in place, also with partial results if the time limit ends it (TrialEnded, status "timeout").
        """
        memory.reset_peak()
        try:
            timing = self.timing()
            timing.sampler.take_all()
            self.note(timing)
            timing.close()  # else its thread could fill a buffer that the training reads
            if self.configuration.epochs:
                yield {"stage": "training"}
                self.train(self.run, self.held_out)
        finally:  # a trial whose time is out keeps what it reached
            self.record_memory()
            self.row["seconds_measured"] = self.seconds_measured
        self.conclude()

    def take_turns(self) -> Generator[dict, dict, None]:
        """Yield an answer to each order received until the generator is closed; the first: {"bytes": ...}.

        The order {"seconds": ..., "seconds_settle": ...} takes a turn; the answer's `is_enough` says whether the round
        has all samples that it needs. {"record": True}, or the time limit, gives {"row": record of the round}, and the
        next turn begins another round. Each answer has "waits": True. Memory, check and loss curve are those of the
        first round.
        """
        memory.reset_peak()
        timing, answer = self.timing(), {"bytes": self.row["bytes_predicted"]}
        while True:
            began = time.monotonic()
            order = yield answer | {"waits": True}
            self.started += time.monotonic() - began  # what others compute meanwhile counts for no limit
            if "record" not in order:
                timing.take_turn(order["seconds"], order["seconds_settle"])
                answer = {"is_enough": timing.sampler.is_enough}
            if "record" in order or timing.sampler.is_cut:
                answer = {"row": self.recorded(timing)}

    def recorded(self, timing: Timing) -> dict:
        """Return a copy of the row with the columns of the round that was timed in turns, and begin the next round.

        Raises TrialEnded if the time limit cut the samples.
        """
        try:
            self.note(timing)
        finally:
            if timing.is_first:
                self.record_memory()
            self.row["seconds_measured"] = timing.seconds_taken
        self.conclude()
        row = dict(self.row)
        self.started = time.monotonic()
        timing.begin(self.seconds_left())
        return row

    def record_memory(self) -> None:
        """Set the row's memory columns (bytes): peak above the baseline, arrays held, on "cuda" those of the device.

        Rows that are mapped from the cache of data are part of the peak, as if they had been read.
        """
        self.row["bytes_peak"] = max(memory.peak_owned_bytes() - self.baseline, 0) + self.bytes_mapped
        self.row["bytes_peak_resident"] = max(memory.peak_bytes() - self.resident, 0)
        self.row |= {"memory_counted": memory.counted_memory_kind(), "bytes_held": self.run.bytes_held}
        if self.on_device:
            on_device: Any = self.run  # a training on a device, whose module is not imported here
            self.row["bytes_device_held"] = on_device.bytes_device_held

    def conclude(self) -> None:
        """Set the columns of a completed trial: versions, BLAS, seconds_compiled, status "ok" and an empty reason."""
        self.row |= {"versions": machine.versions() | self.row.get("versions", {}), "status": "ok", "reason": ""}
        self.row |= {"blas": environment.blas_name(), "environment_removed": environment.removed_variables() or None}
        self.row["seconds_compiled"], self.seconds_compiled = self.seconds_compiled, 0.0

    def prepared(self) -> tuple[Training, tuple[Any, Any]]:
        """Return (training to measure, (X, targets) of the validation rows, None each if there are none).

        All other arrays that the data was made from are released on return (the CSR array behind dense data, values of
        another type, rows of both parts together), so no measured peak includes them.
        """
        problem = make_problem(self.configuration)
        held = problem.held(self.configuration)
        self.bytes_mapped = memory.mapped_bytes(held) if is_in_memory(held) else 0  # stored rows are read by parts
        return make_run(self.setup, held, problem.y, problem.width, problem.facts), problem.held_out

    def rehearse(self) -> None:
        """Run and check one step on temporary arrays, so that data is cached and code loaded before memory is measured.

        Sets the row's columns of the data and predictions, and reports them as {"known": row}. Raises TrialEnded or
        NoRoom if the arrays do not fit, TrialEnded if the step is wrong.
        """
        problem = make_problem(self.configuration)
        self.row |= columns_of_data(problem, self.configuration, self.setup)
        self.row["seconds_predicted"] = seconds_of(self.configuration, self.row)
        self.predict_bytes(problem)
        child.tell({"known": self.row})
        before = self.checked
        self.check(make_run(self.setup, problem.held(self.configuration), problem.y, problem.width, problem.facts))
        if self.checked is not None and self.checked != before:
            child.tell({"checked": self.checked.to_json()})

    def predict_bytes(self, problem: Problem) -> None:
        """Set the predicted bytes in the row, of host and device; raise TrialEnded ("memory") if one exceeds its limit.

        Raises NoRoom if the trial fits alone but not next to the `bytes_beside` of other candidates.
        """
        is_stored = isinstance(problem.x, data.StoredRows)
        parts = predicted_bytes(
            self.configuration,
            rows=problem.x.shape[0],
            features=problem.x.shape[1],
            nnz=problem.x.nnz,
            width=problem.width,
            facts=problem.facts,
            active=int(self.row["touched"]),
            stored=is_stored,
        )
        if is_stored:
            batches = data.StoredBatches(
                problem.x, problem.y, self.configuration.batch_rows, shuffle=self.configuration.shuffle
            )
            parts["data"] = batches.nbytes
        if self.on_device:
            on_host: dict[str, int] = {name: parts.pop(name) for name in ("data", "batch") if name in parts}
            parts["batch"] = on_host["batch"]  # it is made on the host, and copied
            self.refuse_too_large(parts, "bytes_device_predicted", "of device memory ", self.row["bytes_device_limit"])
            parts = on_host
        self.refuse_too_large(parts, "bytes_predicted", "", self.bytes_limit)
        if self.row["bytes_predicted"] + self.bytes_beside > self.bytes_limit:
            raise NoRoom

    def refuse_too_large(self, parts: dict[str, int], column: str, where: str, limit: int) -> None:
        """Set the row's `column` to the sum of `parts` (bytes); TrialEnded ("memory") if it exceeds `limit`.

        `where` names the memory in the reason, such as "of device memory ".
        """
        self.row[column] = needed = sum(parts.values())
        if needed > limit:
            known = unfit(parts, where, limit)
            raise TrialEnded("memory", known.pop("reason"), **known)

    def check(self, run: Training) -> None:
        """Check the first step of `run` against the float64 reference; TrialEnded ("wrong") if it deviates.

        References are computed anew only if the step has other bits than in the rehearsal, or in an earlier trial.
        Sets error, error_allowed and densified in the row; the parameters of `run` are restored.
        """
        self.checked = checked = check_step(run, steps_at_work, self.checked)
        self.row |= {"error": checked.error, "error_allowed": checked.allowed, "densified": run.densified()}
        if checked.reason:
            raise TrialEnded("wrong", checked.reason)

    def watch_device(self, run: Any) -> None:
        """Set the row's column bytes_device_peak from untimed steps on the device; does nothing on the CPU."""
        if self.on_device:
            self.row["bytes_device_peak"] = run.watch()

    def timing(self) -> Timing:
        """Return a new `Timing` whose first step has run; it may use the time left, or half of it if epochs follow."""
        left = self.seconds_left() / (2 if self.configuration.epochs else 1)
        return Timing(self.run, replace(self.policy, seconds_most=left), self.row["steps_epoch"], self.reference)

    def note(self, timing: Timing) -> None:
        """Add the timed columns to the row; raise TrialEnded ("timeout") if the time limit cut the samples short."""
        self.seconds_measured += timing.seconds_taken
        self.row |= timing.columns()
        if timing.sampler.is_cut:
            samples = timing.sampler.samples
            counts = format_count(len(samples.seconds), "sample"), format_count(samples.steps, "step")
            raise self.out_of_time(" of ".join(counts))

    def out_of_time(self, reached: str) -> TrialEnded:
        """Return (not raise) a TrialEnded of status "timeout"; `reached` is a phrase, such as "3 samples"."""
        return TrialEnded("timeout", f"Stopped after {self.seconds_limit:.3g} s (limits.seconds_cell), with {reached}.")

    def seconds_left(self) -> float:
        """Return the seconds until 90 % of the time limit, when the trial should end; may be negative."""
        return ENDS_AT * self.seconds_limit - (time.monotonic() - self.started)

    def train(self, run: Training, held_out: tuple[Any, Any]) -> None:
        """Train `configuration.epochs` epochs from new weights, or what the time limit allows, and fill the columns.

        `held_out` is (X, targets) of the validation rows, (None, None) if there are none. Sets the loss curve, seconds
        an epoch, quality after selected epochs; the evaluation is not timed. Raises TrialEnded ("timeout") if epochs
        are missing.
        """
        run.reset()
        curve, seconds, points = Curve(), 0.0, []
        judged = epochs_judged(self.configuration.epochs)
        for epoch in range(self.configuration.epochs):
            start = time.perf_counter()
            for event in run.epoch(epoch):
                curve.events.append(event)
            run.catch_up()
            seconds += time.perf_counter() - start
            is_cut = epoch + 1 < self.configuration.epochs and self.seconds_left() <= 0
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
            raise self.out_of_time(f"{done} of {self.configuration.epochs} epochs")
