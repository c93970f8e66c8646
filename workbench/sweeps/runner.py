"""The runner: the trials of a schedule in child processes, with limits; one row a trial, whatever happens.

Few candidates of a comparison are measured in turns by processes that live over some rounds, many one after the other,
each in a fresh process; next to many programs, within a budget too small for processes to start, the caller's own
measures. The row of a trial during which other programs ran says so. Children are forked from a server
process that has the libraries loaded and no threads started, which makes a child cost milliseconds; a child dies with
its supervisor.
"""

import contextlib
import dataclasses
import functools
import json
import math
import os
import shlex
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kernels
from kernels import Sizes, devices, threads
from workbench import atomic_files, models, store
from workbench.analysis.formatting import format_count, name_configuration
from workbench.measure import child, machine, memory
from workbench.measure.rounds import ALONE
from workbench.sweeps import grid, run_folder
from workbench.sweeps.alternation import AlternatingRounds
from workbench.sweeps.budget import Budget, TrialClock
from workbench.sweeps.grid import threads_of
from workbench.sweeps.problem import Contents, DataChangedError
from workbench.sweeps.progress import Progress
from workbench.sweeps.schedule import MOST_ADDED, Schedule, Task, refinement_configurations
from workbench.sweeps.spec import Configuration, Measure, Spec, work_of
from workbench.sweeps.trial import settings_of

if TYPE_CHECKING:
    from workbench.measure.bandwidth import Roofs

# Bounds of each phase of a step on this machine: those of its kernels.
#
# What the machine allows (`bandwidth.measure_roofs`) is measured once a run, in a separate process, when the first row
# asks for it. Bounds are known of steps that one process runs kernel by kernel on the CPU, of models whose scores are
# X @ W and nothing else.


ROOFS = "workbench.measure.bandwidth:answers"
SECONDS_MOST = 60.0
"""What measuring the machine may take; two seconds are usual."""
PHASES = ("forward", "gradient", "update")


class Bounds:
    """Bounds for the rows of one run. `context` is what children are started from; `beat` is called while one works."""

    def __init__(
        self, measure: Measure, context: Callable[[], ForkServerContext], beat: Callable[[], None] = lambda: None
    ) -> None:
        """Store how children are started; bounds are wanted if `measure.roofs` is set and rounds suffice."""
        self.is_wanted = measure.roofs and measure.rounds >= ALONE
        self.context, self.beat = context, beat
        self.roofs_on = functools.cache(self._roofs_on)

    def of(self, configuration: Configuration, row: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """Return the column `bounds` of a record, as `of_row` gives it; None if not wanted or unknown.

        `row` is the record of `configuration`; its status must be "ok". The first call with a number of threads
        measures the machine in a child process (about 2 s).
        """
        if not self.is_wanted or row["status"] != "ok" or not is_known(configuration):
            return None
        on = self.roofs_on(1 if configuration.serial else row["threads"])
        return of_row(configuration, row, on) if on else None

    def _roofs_on(self, threads: int) -> "Roofs | None":
        """Measure peak rates on `threads` threads in a child process; None if that fails or takes too long."""
        started = time.monotonic()
        try:
            process, connection = child.start(self.context(), ROOFS, {"threads": [threads]})
            with child.Child(process, connection) as measuring:
                measured = next(measuring.answers(lambda: child.why_too_long(started, SECONDS_MOST), self.beat))
        except child.Ended:
            return None
        from workbench.measure.bandwidth import Roofs  # late: few runs have rounds enough to want bounds

        return Roofs(measured, threads)


def is_known(configuration: Configuration) -> bool:
    """Return whether each phase of the configuration is one kernel call, so that time bounds can be computed.

    True for one trainer on the CPU that runs kernel by kernel, with a model whose scores are X @ W alone.
    """
    is_one = configuration.device == "cpu" and configuration.execution == "step" and configuration.trainers == 1
    return is_one and models.get(configuration.model).is_product


def of_row(configuration: Configuration, row: Mapping[str, Any], on: "Roofs") -> list[dict[str, Any]]:
    """Return lower time bounds of the phases of a successful record, one dict for each phase whose kernel is known.

    Keys: phase ("forward", "gradient" or "update"), kernel (its name), seconds (of one step), by (the limiting
    resource), bytes (compulsory traffic), bytes_gather, flops. The update of an exact (deferred) optimizer has no
    entry. `on` has the measured peak rates.
    """
    known = []
    for phase in PHASES:
        name = (row["kernels"] or {}).get(phase)
        if name is None or (phase == "update" and configuration.update == "exact"):
            continue
        kernel, sizes = kernels.get(name), sizes_of(configuration, row, phase, name)
        (seconds, by), cost = on.bound(kernel, sizes), kernel.cost(sizes)
        moved = {"bytes": cost.bytes_compulsory, "bytes_gather": cost.bytes_gather, "flops": cost.flops}
        known.append({"phase": phase, "kernel": name, "seconds": seconds, "by": by} | moved)
    return known


def sizes_of(configuration: Configuration, row: Mapping[str, Any], phase: str, kernel: str) -> Sizes:
    """Return the sizes with which the cost formula of `kernel` is evaluated for one batch of the record's phase.

    X in CSC form is X.T in CSR form, and a COO gradient exchanges row and column indices: rows and features, and active
    columns and rows, are exchanged then. Index and value widths are in bytes.
    """
    rows = min(row["batch_rows"], row["rows_trained"])
    value, index = (8 if row["dtype"] == "float64" else 4), (8 if row.get("index_dtype") == "int64" else 4)
    entries, active = math.ceil(row["nnz_batch"]), math.ceil(row["touched"])
    is_coo = phase == "gradient" and kernel.removeprefix("scipy.") == "coo_dense"
    is_turned = phase != "update" and (configuration.format == "csc" or is_coo)
    if is_turned:
        return Sizes(row["features"], entries, rows, row["width"], min(rows, entries), value, index)
    return Sizes(rows, entries, row["features"], row["width"], active, value, index)


def judged(measure: Measure, configuration: Configuration, row: dict[str, Any]) -> dict[str, Any]:
    """Return the record with status "disturbed" if other programs ran during a successful trial; else `row` itself.

    They did if they took more than the share `measure.busy_most` of all cores, by default so much that the trial's
    threads had to share a core.
    """
    limit = measure.busy_most
    if limit is None:
        limit = machine.disturbance_limit(1 if configuration.serial else threads_of(configuration))
    if row["status"] != "ok" or row["busy_others"] <= limit:
        return row
    return row | {"status": "disturbed", "reason": "Other programs were running."}


TRIAL = "workbench.sweeps.trial:answers"
BYTES_SLACK = 512 * 2**20
"""What a child may take beyond the limit of its configuration: libraries, compiled code, thread stacks."""


class Supervisor:
    """Runs the plan of one run folder; `work` is what the process of a trial does, "module:function"."""

    def __init__(
        self,
        spec: Spec,
        folder: Path,
        is_asked_to_stop: threading.Event | None = None,
        work: str = TRIAL,
        in_this_process: bool = False,
    ) -> None:
        """Prepare the run of `spec` in `folder`: progress, budget and memory limit; starts no process.

        `in_this_process` has trials run here, one after the other, which takes no time to start processes.

        Without `spec.limits.bytes_cell` the limit of a trial is 80 % of the memory available now. `is_asked_to_stop` is
        set from outside (signal handler) to stop the run. May create the file `identity` in the folder.
        """
        self.spec, self.folder, self.work, self.in_this_process = spec, folder, work, in_this_process
        self.is_asked_to_stop = is_asked_to_stop or threading.Event()
        self.state = Progress(spec.name, pid=os.getpid(), seconds_budget=spec.limits.budget)
        self.bytes_limit = spec.limits.bytes_cell or int(0.8 * memory.available_bytes())
        self.budget, self.run_name = (
            Budget(spec, run_folder.seconds_since_start(folder)),
            run_folder.run_identity(folder),
        )
        self.in_turns = AlternatingRounds(self)
        self.checked: dict[str, dict[str, Any]] = {}
        self.contents = Contents()
        self.beaten, self.bounds = 0.0, Bounds(spec.measure, lambda: self.context, self.beat)

    @functools.cached_property
    def context(self) -> ForkServerContext:
        """Fork server context that children are started from; the server is started on first access and kept."""
        return child.fork_server(["workbench.sweeps.preload"])

    def beat(self) -> None:
        """Write the progress file if the last write is `run_folder.SECONDS_HEARTBEAT` seconds ago or more."""
        now = time.monotonic()
        if now - self.beaten >= run_folder.SECONDS_HEARTBEAT:
            self.write()

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Write the progress file from a background thread at each heartbeat while the block runs."""
        is_over = threading.Event()

        def write_on() -> None:
            """Write the progress file at each heartbeat until the context exits; body of a thread."""
            while not is_over.wait(run_folder.SECONDS_HEARTBEAT):
                self.write()

        thread = threading.Thread(target=write_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def enter(self, stage: str) -> None:
        """Set the stage of the run, such as "measuring", and the time at which it began; write the progress file."""
        self.state.stage, self.state.stage_since = stage, time.time()
        self.write()

    def write(self) -> None:
        """Write the progress file with the seconds spent and estimates of the seconds left.

        The estimates are the mean time of a new trial times the trials left (`seconds_left` for `total`,
        `seconds_left_most` for `total_most`); they stay unchanged before the first new trial.
        """
        self.beaten = time.monotonic()
        self.state.seconds = self.budget.spent
        fresh = self.state.done - self.state.reused
        if fresh:
            each = self.state.seconds / fresh
            self.state.seconds_left = each * (self.state.total - self.state.done)
            self.state.seconds_left_most = each * (self.state.total_most - self.state.done)
        run_folder.write_progress(self.folder, self.state)

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for, by this process or by a stop file in the run folder."""
        return self.is_asked_to_stop.is_set() or (self.folder / run_folder.STOP).exists()

    def run(self) -> None:
        """Run all due trials of the schedule, then those of densities added around break-evens; return when over.

        Ends when all is done, the budget is out or a stop is asked for. Appends records to `trials.jsonl` and writes
        plan, machine and progress files; stored records that match are reused, not measured again. Raises
        DataChangedError if a data file changes meanwhile.
        """
        trials = self.folder / "trials.jsonl"
        self.state.stage, self.state.stage_since = "planning", time.time()
        with self.beating():
            schedule = Schedule.of(self.spec, store.read(trials) if trials.exists() else [], self.contents)
        self.take_plan(schedule)
        atomic_files.write(self.folder / run_folder.MACHINE, json.dumps(machine.describe_machine(), indent=1))
        self.state.state = "running"
        self.count(schedule)
        is_cut = self.work_through(schedule, trials)
        for _ in range(MOST_ADDED if self.spec.measure.until else 0):
            if is_cut or self.is_ended or not self.refine(schedule, trials):
                break
            is_cut = self.work_through(schedule, trials)
        self.conclude(schedule, is_cut)

    @property
    def is_ended(self) -> bool:
        """Whether a stop was asked for or the budget is out (`state.message` is set then)."""
        return self.stopping or bool(self.state.message)

    def work_through(self, schedule: Schedule, trials: Path) -> bool:
        """Measure the rounds that are due, appending each record to the file `trials` and adding it to `schedule`.

        Returns True if a stop or the budget left trials of a round undone. Closes all processes that measure in turns.
        """
        with contextlib.closing(self.in_turns):
            for tasks in schedule.rounds(lambda: self.in_turns.has_rounds_left):
                self.state.round, self.state.rounds = schedule.round_at_work
                self.count(schedule, len(tasks))
                if self.stopping or self.is_budget_out():
                    return True
                done = 0
                for row in self.rows_of(tasks):
                    self.keep(trials, row)
                    schedule.add(row)
                    done += 1
                if self.stopping or done < len(tasks):
                    return True
        return False

    def rows_of(self, tasks: Sequence[Task]) -> Iterator[dict]:
        """Yield the record of each trial of one round as it ends; fewer if stopped or the budget is out."""
        keys = [task.key for task in tasks]
        has_children = self.work == TRIAL and not self.in_this_process
        if has_children and self.in_turns.suits(tasks) and not self.budget.is_too_little_for(*keys):
            rows = self.of_unchanged_data(tasks, lambda: self.in_turns.measure(tasks))
            yield from rows
            if rows:
                return
        for task in tasks:
            if self.budget.is_too_little_for(task.key):
                self.tell_budget_out()
                return
            yield self.do(task)
            if self.stopping:
                return

    def refine(self, schedule: Schedule, trials: Path) -> bool:
        """Add to `schedule` densities around break-evens not narrow enough; return whether there were any."""
        stored = store.read(trials)
        configurations = refinement_configurations(schedule.configurations, stored, self.spec.measure.until or 1.0)
        schedule.extend(configurations, self.spec, stored)
        self.take_plan(schedule)
        self.count(schedule)
        return bool(configurations)

    def take_plan(self, schedule: Schedule) -> None:
        """Replace the file plan.json, {"keys": [configuration keys], "dropped": {reason: count}}, and count its trials.

        Stored trials of these configurations are done, those that this run did not know of before are reused.
        """
        plan = {"keys": schedule.keys, "dropped": dict(schedule.dropped)}
        atomic_files.write(self.folder / run_folder.PLAN, json.dumps(plan, indent=1))
        before, self.state.done = self.state.done, run_folder.count_finished_trials(self.folder)
        self.state.reused += self.state.done - before

    def count(self, schedule: Schedule, begun: int = 0) -> None:
        """Update `total` and `total_most`, with `begun` trials at work on top; write the progress file."""
        self.state.total = self.state.done + begun + schedule.trials_due()
        self.state.total_most = self.state.done + begun + schedule.trials_most()
        self.write()

    def keep(self, trials: Path, row: dict) -> None:
        """Append a record to the file `trials` (JSON lines) and count it by status in the progress file."""
        store.append(trials, row)
        self.state.done += row["status"] != "stopped"
        self.state.counts[row["status"]] = self.state.counts.get(row["status"], 0) + 1
        self.write()

    def is_budget_out(self) -> bool:
        """Return whether the time limit of the sweep is over; if so, set the message of the progress."""
        if self.budget.is_out:
            self.tell_budget_out()
        return self.budget.is_out

    def tell_budget_out(self) -> None:
        """Set `state.message` to say that the budget is out, which makes `is_ended` true; writes no file."""
        more = format_count(self.state.total_most - self.state.done, "more trial")
        is_part = self.spec.limits.seconds_end is not None  # of what advice has, which is said there
        seconds = "" if is_part else f" of {round(self.budget.most or 0.0, 1):,g} s"
        self.state.message = (
            f"The budget{seconds} is spent; up to {more} narrow the intervals. Start it again to go on."
        )

    def conclude(self, schedule: Schedule, is_cut: bool) -> None:
        """Write the final progress: state "stopped" if a stop left trials undone, else "finished"; no seconds left.

        `is_cut` says that the last round was not completed. A run stopped during its very last trial counts as
        finished.
        """
        self.state.current = self.state.current_key = self.state.candidate = self.state.stage = ""
        is_stopped = self.stopping and (schedule.trials_due() or (is_cut and self.state.done < self.state.total))
        self.state.state = "stopped" if is_stopped else "finished"
        if not self.state.message:
            self.state.total = self.state.total_most = self.state.done + schedule.trials_due()
        self.state.seconds_left = self.state.seconds_left_most = 0.0
        self.write()

    def do(self, task: Task) -> dict:
        """Return the record of one trial in a fresh process."""
        return self.of_unchanged_data([task], lambda: [self.try_once(task)])[0]

    def of_unchanged_data(self, tasks: Sequence[Task], measure: Callable[[], list[dict]]) -> list[dict]:
        """Return the records that `measure()` gives, in the order of `tasks`, disturbed ones marked; it may give none.

        Raises DataChangedError if a data file of the configuration changed.
        """
        self.contents.require_unchanged(tasks[0].configuration)
        rows = measure()
        self.contents.require_unchanged(tasks[0].configuration)
        return [
            judged(self.spec.measure, task.configuration, row)
            for task, row in zip(tasks, rows, strict=False)  # there may be no rows
        ]

    def try_once(self, task: Task) -> dict:
        """Run one trial in a fresh child process and return its complete record, also if it failed."""
        self.tell_of([task])
        clock = TrialClock(self.budget.seconds_trial, self.budget.end)
        return self.completed(task, self.row_of_child(task, clock), clock, task.round)

    def tell_of(self, tasks: Sequence[Task]) -> None:
        """Set `tasks`, the trials measured together, as current in the progress file; stage "starting"."""
        self.state.current, self.state.current_key = grid.describe_configuration(tasks[0].configuration), tasks[0].key
        self.state.candidate = " / ".join(name_configuration(task.configuration.model_dump()) for task in tasks)
        self.enter("starting")

    def start(self, task: Task, clock: TrialClock, **more: Any) -> child.Child:
        """Start a child process for the trial and return it; child.Ended if it ends before its request.

        `more` are further keys of the request; `clock.most` is its time limit. What it prints is appended to the log.
        """
        request = self.request_of(task, clock) | more
        log = self.folder / run_folder.LOG
        return child.Child(*child.start(self.context, work_of(task.configuration, self.work), request, log))

    def request_of(self, task: Task, clock: TrialClock) -> dict[str, Any]:
        """Return what `trial.answers` is asked for the trial: configuration, how to measure, and its limits."""
        request = {
            "cell": task.configuration.model_dump(mode="json"),
            "measure": self.spec.measure.model_dump(),
            "bytes_limit": self.bytes_limit,
            "seconds_limit": clock.most,
            "started": clock.started,
        }
        if task.key in self.checked:
            request["checked"] = self.checked[task.key]
        if task.configuration.device == "cuda":
            request["gpu"] = dataclasses.asdict(devices.probe())  # once for all trials
        return request

    def completed(self, task: Task, row: dict, clock: TrialClock, process: int) -> dict:
        """Return the full record of a trial: `row` from its process plus the columns of the supervisor.

        Added: settings, key, round, run, experiment, content, machine, time, process, source and bounds. `process` is
        the number of the round whose process measured it; if it is the task's own round, the duration is recorded for
        the budget. Pops "seconds_compiled" and "seconds_measured" from a copy of the columns.
        """
        row = settings_of(task.configuration) | clock.known | row
        if clock.checked and row["status"] == "ok":
            self.checked[task.key] = clock.checked
        compiled, measured = row.pop("seconds_compiled", clock.compiling), row.pop("seconds_measured", None)
        lasted = clock.seconds - compiled
        if process == task.round:  # later rounds of the same process take less than the first of the next one will
            self.budget.record_duration(task.key, lasted)
        self.state.seconds_compiled += compiled
        own = {"key": task.key, "round": task.round, "run": self.run_name, "experiment": self.spec.name}
        own |= {"content": self.contents.of(task.configuration) or None}
        row |= own | {"machine": machine.machine_id(), "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        row |= {
            "process": process,
            "source": grid.source_hash(task.configuration),
            "bounds": self.bounds.of(task.configuration, row),
        }
        if measured is not None:
            row["seconds_overhead"] = lasted - measured
        return store.new_row(**row)

    def row_of_child(self, task: Task, clock: TrialClock) -> dict:
        """Run a trial in a child process and return the columns that it sends last.

        If it ended without them, the columns are status ("timeout", "memory", "stopped" or "failed") and reason. The
        child is killed if it passes a limit or a stop is asked for.
        """
        if self.in_this_process:
            return self.row_of_this_process(task, clock)
        try:
            with self.start(task, clock) as trial:
                for answer in trial.answers(lambda: self.why_end(trial, clock), self.beat):
                    if not self.is_interim(answer, clock):
                        return answer
                return child.row_of(0, trial.watch)
        except child.Ended as ended:
            return ended.row

    def row_of_this_process(self, task: Task, clock: TrialClock) -> dict:
        """Run a trial in this process and return the columns of its record; its threads are as before afterwards."""
        from workbench.sweeps.trial import answers

        count = threads.get_threads()
        try:
            return next(row for row in answers(self.request_of(task, clock)) if not self.is_interim(row, clock))
        finally:
            threads.set_threads(count)

    def is_interim(self, answer: dict, clock: TrialClock) -> bool:
        """Return whether `answer` is an interim message, not a record; apply it to clock and progress.

        These are {"known": columns}, {"checked": errors}, {"stage": name} and {"steps_begun": count}.
        """
        if "known" in answer:
            clock.known = answer["known"]
        elif "checked" in answer:
            clock.checked = answer["checked"]
        elif "stage" in answer:
            clock.enter(answer["stage"])
            self.enter(answer["stage"])
        elif "steps_begun" in answer:
            clock.enter_steps(answer["steps_begun"])
        else:
            return False
        return True

    def why_end(self, trial: child.Child, clock: TrialClock) -> dict:
        """Return {"status": ..., "reason": ...} if stop, time (`clock`) or memory must end the child, else {}."""
        if self.stopping:
            return {"status": "stopped", "reason": "The sweep was stopped while this trial ran."}
        return clock.why_end or trial.why_too_large(self.bytes_limit, self.bytes_limit + BYTES_SLACK)


# The process of a supervisor: it holds the run folder's lock, hears signals, and tells why it ended.


SECONDS_LOCK = 2.0
"""How long to wait for whoever starts this process, or for a supervisor that has written its end and not yet gone."""
Make = Callable[[Spec, Path, threading.Event], Any]


def supervise(folder: Path, make: Make = Supervisor) -> int:
    """Run the sweep of a run folder while holding its lock; return the exit status 0, 1 (failed) or 2 (in use).

    `make(spec, folder, stop_event)` gives the supervisor. Replaces the handlers of SIGTERM and SIGINT by ones that ask
    the run to stop. An error is written to the progress file and the log, not raised.
    """
    is_asked_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: is_asked_to_stop.set())
    try:
        with run_folder.lock_run_folder(folder, SECONDS_LOCK):
            return _supervise_locked(folder, is_asked_to_stop, make)
    except run_folder.RunError as error:  # another supervisor has the folder, and its progress file with it
        print(error)
        return 2


def measure_here(spec: Spec, folder: Path) -> None:
    """Run the sweep of `spec` in this process, if its budget is too small for processes to start; return at its end.

    An error, or an interrupt, is written to the progress of the run and raised.
    """
    with run_folder.begin_run(spec, folder):
        supervisor = Supervisor(spec, folder, in_this_process=True)
        try:
            supervisor.run()
        except BaseException as error:  # this process lives on, so that readers could take the run for alive
            supervisor.state.state = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
            supervisor.state.message = "" if isinstance(error, KeyboardInterrupt) else _message(error, folder)
            supervisor.write()
            raise


def _supervise_locked(folder: Path, is_asked_to_stop: threading.Event, make: Make) -> int:
    """Run the sweep of a folder whose lock is held by `make(...).run()`; return 0, or 1 if an exception ended it."""
    state = Progress(folder.name, pid=os.getpid())
    try:
        supervisor = make(run_folder.read_spec(folder), folder, is_asked_to_stop)
        state = supervisor.state
        supervisor.run()
    except Exception as error:  # the last resort: whoever watches the run must learn why it ended
        state.state, state.message = "failed", _message(error, folder)
        run_folder.write_progress(folder, state)
        traceback.print_exc()  # last, for the disk of the log may be full
        return 1
    return 0


def _message(error: BaseException, folder: Path) -> str:
    """Return the sentence for the progress on `error`, which ended the sweep in `folder`, with what to do about it."""
    if isinstance(error, DataChangedError):
        command = shlex.join(["workbench", "sweep", str(folder / run_folder.SPEC), "--run", str(folder)])
        return f"{error} To measure the new content, type: {command}"
    if isinstance(error, OSError):
        return f"{run_folder.system_error_text(error)}. Fix that and start the sweep again; records are kept."
    return f"{type(error).__name__}: {error}"
