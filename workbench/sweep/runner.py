"""The runner: the trials of a schedule, each in a fresh child process, with limits; one row a trial, whatever happens.

A trial beside which other programs were at work is tried again, and waited for; where it never was alone its row says
so and takes no part in times. Children are forked from a server process that has the libraries loaded and no threads
started, which makes a child cost milliseconds; a child dies with its supervisor.
"""

import contextlib
import dataclasses
import functools
import json
import os
import threading
import time
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path

from kernels import devices
from workbench import store
from workbench.analysis import words
from workbench.measure import child, ends, machine, memory
from workbench.measure.rounds import LOOKS
from workbench.sweep import grid, run_folder
from workbench.sweep.bounds import Bounds
from workbench.sweep.budget import Budget, TrialClock
from workbench.sweep.progress import Progress
from workbench.sweep.refine import MOST_ADDED, added
from workbench.sweep.schedule import Schedule, Task
from workbench.sweep.sources import work_of
from workbench.sweep.spec import Cell, Spec
from workbench.sweep.trial import settings_of

TRIAL = "workbench.sweep.trial:answers"
TRIES = 3
"""How often a trial is measured at most until other programs leave it alone."""
SECONDS_LOOK = 0.1
"""How long to watch other programs before a disturbed trial is tried again."""
BYTES_SLACK = 512 * 2**20
"""What a child may take beyond the limit of its cell: libraries, compiled code, thread stacks."""


class Supervisor:
    """Runs the plan of one run folder; `work` is what the process of a trial does, "module:function"."""

    def __init__(
        self, spec: Spec, folder: Path, is_asked_to_stop: threading.Event | None = None, work: str = TRIAL
    ) -> None:
        self.spec, self.folder, self.work = spec, folder, work
        self.is_asked_to_stop = is_asked_to_stop or threading.Event()
        self.state = Progress(spec.name, pid=os.getpid(), seconds_budget=spec.limits.seconds_sweep)
        self.bytes_limit = spec.limits.bytes_cell or int(0.8 * memory.available_bytes())
        self.budget, self.run_name = Budget(spec, run_folder.seconds_since_start(folder)), run_folder.identity(folder)
        self.seconds_patience, self.tries = spec.measure.seconds_quiet, TRIES
        self.beaten, self.bounds = 0.0, Bounds(spec.measure, lambda: self.context, self.beat)

    @functools.cached_property
    def context(self) -> ForkServerContext:
        """Context that children are started from."""
        return child.fork_server(["workbench.sweep.preload"])

    def beat(self) -> None:
        """Write the progress if a heartbeat is due."""
        now = time.monotonic()
        if now - self.beaten >= run_folder.SECONDS_HEARTBEAT:
            self.write()

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Write the progress on a thread beside what takes long and does not call `beat`."""
        is_over = threading.Event()

        def write_on() -> None:
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
        """Say at once what is done from now on."""
        self.state.stage, self.state.stage_since = stage, time.time()
        self.write()

    def write(self) -> None:
        """Write the progress with the time spent and the time left by the mean of the trials so far."""
        self.beaten = time.monotonic()
        self.state.seconds = self.budget.spent
        fresh = self.state.done - self.state.reused
        if fresh:
            each = self.state.seconds / fresh
            self.state.seconds_left = each * (self.state.total - self.state.done)
            self.state.seconds_left_most = each * (self.state.total_most - self.state.done)
        run_folder.write(self.folder, self.state)

    @property
    def stopping(self) -> bool:
        """Whether somebody asked to stop."""
        return self.is_asked_to_stop.is_set() or (self.folder / run_folder.STOP).exists()

    def run(self) -> None:
        """Do all trials of the plan, or stop when asked."""
        trials = self.folder / "trials.jsonl"
        self.state.stage, self.state.stage_since = "planning", time.time()
        with self.beating():
            schedule = Schedule.of(self.spec, store.read(trials) if trials.exists() else [])
        self.write_plan(schedule)
        run_folder.replace_file(self.folder / run_folder.MACHINE, json.dumps(machine.record(), indent=1))
        self.state.reused = self.state.done = schedule.reused
        self.state.state = "running"
        is_cut = self.work_through(schedule, trials)
        for _ in range(MOST_ADDED if self.spec.measure.until else 0):
            if is_cut or self.is_ended or not self.refine(schedule, trials):
                break
            is_cut = self.work_through(schedule, trials)
        self.conclude(schedule, is_cut)

    @property
    def is_ended(self) -> bool:
        """Whether somebody asked to stop, or the budget is out."""
        return self.stopping or bool(self.state.message)

    def work_through(self, schedule: Schedule, trials: Path) -> bool:
        """Do the rounds that are due; returns whether the last one was cut by a stop."""
        is_cut = False
        for tasks in schedule.rounds():
            self.state.round, self.state.rounds = schedule.round_at_work
            self.count(schedule, len(tasks))
            if is_cut or self.stopping or self.is_budget_out():
                break
            for task in tasks:
                if is_cut := self.budget.is_too_little_for(task.key):
                    self.tell_budget_out()
                    break
                self.keep(trials, row := self.do(task))
                schedule.add(row)
                if is_cut := self.stopping:
                    break
        return is_cut

    def refine(self, schedule: Schedule, trials: Path) -> bool:
        """Add densities around the break-evens that are not known well enough; whether there were any."""
        stored, before = store.read(trials), schedule.reused
        cells = added(schedule.cells, stored, self.spec.measure.until or 1.0)
        schedule.extend(cells, self.spec, stored)
        self.state.reused, self.state.done = schedule.reused, self.state.done + schedule.reused - before
        self.write_plan(schedule)
        return bool(cells)

    def write_plan(self, schedule: Schedule) -> None:
        """Write which cells there are, and what was left out."""
        plan = {"keys": schedule.keys, "dropped": dict(schedule.dropped)}
        run_folder.replace_file(self.folder / run_folder.PLAN, json.dumps(plan, indent=1))

    def count(self, schedule: Schedule, begun: int = 0) -> None:
        """Write how many trials there are: those done, `begun` ones, and those due, at least and at most."""
        self.state.total = self.state.done + begun + schedule.trials_due()
        self.state.total_most = self.state.done + begun + schedule.trials_most()
        self.write()

    def keep(self, trials: Path, row: dict) -> None:
        """Append a row and count it."""
        store.append(trials, row)
        self.state.done += row["status"] != "stopped"
        self.state.counts[row["status"]] = self.state.counts.get(row["status"], 0) + 1
        self.write()

    def is_budget_out(self) -> bool:
        """Whether the time that the sweep may take is over; says so."""
        if self.budget.is_out:
            self.tell_budget_out()
        return self.budget.is_out

    def tell_budget_out(self) -> None:
        """Say that the time that the sweep may take is over, which ends it."""
        more = self.state.total_most - self.state.done
        self.state.message = (
            f"The budget seconds_sweep = {self.budget.most:g} s is out; up to {more} more trials would sharpen the "
            "answer. Start the sweep again to go on."
        )

    def conclude(self, schedule: Schedule, is_cut: bool) -> None:
        """Write how the run ended; one that was stopped in its very last trial has finished, too."""
        self.state.current = self.state.current_key = self.state.contender = self.state.stage = ""
        is_stopped = self.stopping and (schedule.trials_due() or (is_cut and self.state.done < self.state.total))
        self.state.state = "stopped" if is_stopped else "finished"
        if not self.state.message:
            self.state.total = self.state.total_most = self.state.done + schedule.trials_due()
        self.state.seconds_left = self.state.seconds_left_most = 0.0
        self.write()

    def do(self, task: Task) -> dict:
        """The row of one trial; of one that other programs disturbed the row of its last try.

        After a trial that never was alone the next ones are tried once, until one is, when waiting has not helped.
        """
        limit = self.disturbance_limit(task.cell)
        for tries in range(1, self.tries + 1):
            is_last = tries == self.tries
            row = self.try_once(task, 1.0 if is_last else limit) | {"tries": tries}
            is_disturbed = row["status"] == "disturbed" or (row["status"] == "ok" and row["busy_others"] > limit)
            if not is_disturbed:
                self.tries = TRIES
                return row
            if self.stopping or self.budget.is_too_little_for(task.key) or self.has_no_time_to_wait:
                break
            self.await_quiet(limit)
        self.tries = TRIES if self.seconds_patience > 0 else 1
        return row | {"status": "disturbed", "reason": "Other programs were at work in each try."}

    @property
    def has_no_time_to_wait(self) -> bool:
        """Whether a race has waited for other programs as long as it may: to try again takes the time of others."""
        return self.spec.measure.race and self.seconds_patience <= 0

    def disturbance_limit(self, cell: Cell) -> float:
        """The share of all cores that other programs may take; all of them where too few rounds decide nothing."""
        if self.spec.measure.rounds < LOOKS[0]:
            return 1.0
        return machine.disturbance_limit(1 if cell.serial else grid.threads_of(cell))

    def await_quiet(self, limit: float) -> None:
        """Wait until other programs take less than that share of the cores, while the sweep's patience lasts."""
        self.state.current_key = ""
        self.enter("waiting for other programs to leave the cores alone")
        while self.seconds_patience > 0 and not self.stopping and not self.budget.is_out:
            others = machine.OtherPrograms()
            time.sleep(SECONDS_LOOK)
            self.beat()
            self.seconds_patience -= SECONDS_LOOK
            if others.share() <= limit:
                return

    def try_once(self, task: Task, busy_most: float = 1.0) -> dict:
        """The row of one trial, done in a child, which trains no epochs where other programs took more of the cores."""
        self.state.current, self.state.current_key = grid.describe(task.cell), task.key
        self.state.contender = words.short_line(task.cell.model_dump())
        self.enter("starting")
        settings = {
            "cell": task.cell.model_dump(mode="json"),
            "measure": self.spec.measure.model_dump(),
            "bytes_limit": self.bytes_limit,
            "busy_most": busy_most,
            "seconds_limit": self.spec.limits.seconds_cell,
            "started": (clock := TrialClock(self.spec.limits.seconds_cell)).started,
        }
        if task.cell.device == "cuda":
            settings["gpu"] = dataclasses.asdict(devices.probe())  # once for all trials
        row = settings_of(task.cell) | self.row_of_child(task, settings, clock)
        seconds, compiled = time.monotonic() - clock.started, row.pop("seconds_compiled", 0.0)
        self.budget.lasted(task.key, lasted := seconds - compiled)
        self.state.seconds_compiled += compiled
        own = {"key": task.key, "round": task.round, "run": self.run_name, "experiment": self.spec.name}
        row |= own | {"machine": machine.machine_id(), "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        row |= {"source": grid.source_hash(task.cell), "bounds": self.bounds.of(task.cell, row)}
        if (measured := row.pop("seconds_measured", None)) is not None:
            row["seconds_overhead"] = lasted - measured
        return store.new_row(**row)

    def row_of_child(self, task: Task, settings: dict, clock: TrialClock) -> dict:
        """The row a child sends, or one that says why none came: time, memory, a stop, a crash."""
        try:
            process, connection = child.start(self.context, work_of(task.cell, self.work), settings)
        except child.Ended as ended:
            return ended.row
        with child.Child(process, connection) as trial:
            return self.receive(trial, clock)

    def receive(self, trial: child.Child, clock: TrialClock) -> dict:
        """The child's own row, or that of its end; what it says of its stages is told meanwhile."""
        try:
            for answer in trial.answers(lambda: self.why_end(trial, clock), self.beat):
                if "stage" not in answer:
                    return answer
                clock.enter(answer["stage"])
                self.enter(answer["stage"])
        except child.Ended as ended:
            return ended.row
        return ends.row_of(0, trial.watch)

    def why_end(self, trial: child.Child, clock: TrialClock) -> dict:
        """The status and reason to end a child for, or nothing."""
        if self.stopping:
            return {"status": "stopped", "reason": "The sweep was stopped while this trial ran."}
        return clock.why_end or trial.why_too_large(self.bytes_limit, self.bytes_limit + BYTES_SLACK)
