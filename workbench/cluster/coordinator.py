"""A sweep on several machines: the run folder stays here, and agents elsewhere measure what it lacks.

The supervisor writes every row, as it does of a sweep on one machine; so whatever dies, rows are kept once, and what is
left is done by the agents that are left, or by the next start.
"""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from workbench import atomic_files, settings, store
from workbench.measure import loads
from workbench.measure.machine import code_versions
from workbench.sweeps import agent_commands, grid, run_folder
from workbench.sweeps.agent_commands import AgentCommand
from workbench.sweeps.problem import Contents
from workbench.sweeps.runner import TRIAL, Supervisor
from workbench.sweeps.schedule import (
    MOST_ADDED,
    Comparison,
    ComparisonState,
    Schedule,
    Task,
    comparisons,
    refinement_configurations,
)
from workbench.sweeps.spec import Configuration, Spec

# An agent as its supervisor sees it: a process that is asked in lines of JSON and must not fall silent.


SECONDS_START = 120.0
"""How long an agent may take to say its first word: libraries are loaded from a cold disk, ssh logs in."""
SECONDS_SILENT = 20.0
"""An agent that has not said a word for so long is lost; it says one every second."""
SECONDS_LOOK = 0.2
SECONDS_END = 10.0
"""How long an agent may take to end with its input."""
SECONDS_KILLED = 10.0
BYTES_LINE = 2**24


class AgentLostError(RuntimeError):
    """An agent ended, fell silent, or said what no agent says; the message says which."""


@final
class Link:
    """One agent, started; what it prints besides goes to a log of its own in `folder`.

    Nothing here waits for the agent once `is_stopping`, nor longer than an agent may be silent.
    """

    def __init__(self, place: AgentCommand, folder: Path, is_stopping: Callable[[], bool]) -> None:
        """Start the agent's command in a new session; its standard error is appended to log-NAME.txt in `folder`.

        `is_stopping()` is asked in every wait. Raises OSError if the command cannot be started.
        """
        self.place, self.doing, self.is_stopping = place, "starting", is_stopping
        self.log = folder / f"log-{re.sub(r'[^A-Za-z0-9.]+', '-', place.name)}.txt"
        self.process, self.log_start = start_process(place.command, self.log)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to, self.out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.to, False)
        os.set_blocking(self.out, False)
        self.has_begun = False
        self.part, self.heard, self.patience = bytearray(), time.monotonic(), SECONDS_START
        self.came: deque[dict[str, Any]] = deque()

    def ask(self, message: Mapping[str, Any]) -> None:
        """Send `message` as a line of JSON, waiting until it is written; returns early if the sweep stops.

        Raises AgentLostError if the agent does not read it within its patience or has closed its input.
        """
        data, end = json.dumps(message).encode() + b"\n", time.monotonic() + self.patience
        while data and not self.is_stopping():
            if time.monotonic() > end:
                raise AgentLostError(self._why(f"has not read its messages for {self.patience:g} s"))
            if _is_ready(self.to, select.POLLOUT):
                try:
                    data = data[os.write(self.to, data) :]
                except OSError:
                    raise AgentLostError(self._why("does not listen")) from None

    def hear(self, wanted: str) -> Any | None:
        """Wait for the next message with the key `wanted` and return it; None if the sweep stops first.

        "beat" messages set `doing`; any other message, silence or the agent's end raises AgentLostError.
        """
        while not self.is_stopping():
            self.look()
            while self.came:
                message = self.came.popleft()
                if wanted in message:
                    return message
                if "beat" not in message:
                    raise AgentLostError(self._why(f"said {str(message)[:80]} where {wanted} was due"))
                self.doing = str(message["beat"])
        return None

    def look(self) -> None:
        """Queue the messages that have come, waiting up to `SECONDS_LOOK`; AgentLostError after long silence."""
        came = self._read()
        self.came.extend(came)
        now = time.monotonic()
        if came:
            self.heard, self.patience = now, SECONDS_SILENT
        elif now - self.heard > self.patience:
            raise AgentLostError(self._why(f"has not said a word for {self.patience:g} s"))

    def _read(self) -> list[dict[str, Any]]:
        """Return the messages of the complete lines that can be read within `SECONDS_LOOK`; [] if none.

        An incomplete line is kept in `part` for the next call. AgentLostError at the end of the output, for an endless
        line, or a line that is no message.
        """
        if not _is_ready(self.out, select.POLLIN):
            return []
        read = os.read(self.out, 2**16)
        if not read:
            raise AgentLostError(self._why("ended"))
        *lines, self.part = (self.part + read).split(b"\n")
        if len(self.part) > BYTES_LINE:
            raise AgentLostError(self._why("writes a line without end"))
        return [message for line in lines if (message := self._message(bytes(line)))]

    def _message(self, line: bytes) -> dict[str, Any]:
        """Return the dict of a line of JSON; {} for other text before the first message, which goes to the log.

        A login shell may print a greeting. Raises AgentLostError for other text once messages have come.
        """
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if isinstance(message, dict):
            self.has_begun = True
            return message
        if self.has_begun:
            raise AgentLostError(self._why(f"said {line[:80]!r}, which is no message"))
        with open(self.log, "ab") as file:
            file.write(line + b"\n")
        return {}

    def _why(self, what: str) -> str:
        """Return "The agent NAME {what}." with the last line of its log, for an error."""
        try:
            printed = self.log.read_bytes()[self.log_start :].decode(errors="replace").strip().splitlines()
        except OSError:
            printed = []
        text = f" Its log, {self.log.name}, ends with: {printed[-1]}" if printed else ""
        return f"The agent {self.place.name} {what}.{text}"

    def end(self) -> None:
        """End the agent and all processes that it started, and close the pipe; waits up to 20 s."""
        end_process(self.process)
        assert self.process.stdout is not None
        self.process.stdout.close()


def start_process(command: Sequence[str], log: Path) -> tuple[subprocess.Popen, int]:
    """Start a command in a new session, with pipes to and from it and its standard error appended to the file `log`.

    Returns it with the size that the log had. Raises OSError if it cannot be started.
    """
    pipe, environment = subprocess.PIPE, loads.measuring_environment()
    with open(log, "ab") as file:
        start = file.tell()
        process = subprocess.Popen(
            list(command), bufsize=0, stdin=pipe, stdout=pipe, stderr=file, start_new_session=True, env=environment
        )
    return process, start


def end_process(process: subprocess.Popen) -> None:
    """Close the input of a process, wait up to `SECONDS_END` for its end, then kill its process group.

    `process` must have been started in a new session with a pipe as input.
    """
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it is gone already
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(SECONDS_END)
    with contextlib.suppress(ProcessLookupError):  # a trial that was halted would stay where its agent has ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(SECONDS_KILLED)


def _is_ready(file: int, event: int) -> bool:
    """Return whether the file descriptor is ready for the poll event within `SECONDS_LOOK`."""
    poll = select.poll()
    poll.register(file, event)
    return bool(poll.poll(1000 * SECONDS_LOOK))


# Placement of the comparisons of a sweep: which machine measures which.
#
# All candidates of a comparison and all its rounds are measured by one agent, so that no ratio crosses machines, and
# all comparisons of a group, such as its densities, on machines of one id, which tells hardware: so that a break-even
# is that of one machine, and nodes that are alike share a group. An agent takes comparisons in turns, a few at a
# time, so that rounds of one are apart in time. What an agent had is free when it is lost: on a machine of the same
# id it goes on with the next round, on another it begins anew. The first comparison is common: machines of every id
# measure it, and its rows show how they differ.


COMPARISONS_AT_ONCE = 4
"""Comparisons that an agent takes turns with."""

Record = Mapping[str, Any]


@final
class Placement:
    """The comparisons of a spec, the rows that there are of them, and the agents that measure them."""

    def __init__(self, spec: Spec, stored: Iterable[Record], contents: Contents | None = None) -> None:
        """Make the comparisons of `spec`, and take the records `stored` of them; no agent has joined yet.

        `contents` reads the data files for the keys, by default anew.
        """
        self.spec, configurations = spec, grid.expand_grid(spec)
        self.contents = contents or Contents()
        self.dropped = configurations.dropped
        self.comparisons: list[Comparison] = []
        self.place: dict[str, int] = {}
        """Of the comparison of each key."""
        self.groups: list[tuple] = []
        self.rows: dict[tuple[int, str], list[Record]] = {}
        self.over: set[int] = set()
        self.ended: dict[int, ComparisonState] = {}
        """The comparisons that came to their end in this run, as they did: a disturbed round counts as one."""
        self.common: set[str] = set()
        """The machines that have done with the common comparison."""
        self.machine_of_group: dict[tuple, str] = {}
        """The machine that measures a group; it is free when no agent is there any more."""
        self.machines: dict[str, str] = {}
        """The machine of each agent that is there."""
        self.in_progress: dict[str, dict[int, ComparisonState]] = {}
        """The comparisons that each agent has, by place, the one whose turn is next first."""
        self.extend(configurations.configurations, stored)

    def extend(self, configurations: Iterable[Configuration], stored: Iterable[Record]) -> None:
        """Add the comparisons of `configurations` with their records among `stored`.

        Updates `over` and owners of groups.
        """
        first = len(self.comparisons)
        self.comparisons += comparisons(configurations, self.contents)
        places = range(first, len(self.comparisons))
        own = {key: place for place in places for key in self.comparisons[place].configurations}
        self.place |= own
        self.groups += [_group(self.comparisons[place]) for place in places]
        for row in stored:
            if row["key"] in own:
                self._store(row)
        for place, machine in sorted(self.rows, key=lambda key: -len(self.rows[key])):
            if place:  # the common one tells nothing
                self.machine_of_group.setdefault(self.groups[place], machine)
        self.over |= {place for place in places if self._is_over(place)}
        self.common |= {machine for place, machine in self.rows if not place and self._is_done(0, machine)}

    def _store(self, row: Record) -> None:
        """Add a record to those of its comparison and machine; records of other keys are ignored."""
        if (place := self.place.get(row["key"])) is not None:
            self.rows.setdefault((place, row["machine"]), []).append(row)

    def _course(self, place: int, machine: str) -> ComparisonState:
        """Return a new state of the comparison `place` on a machine, resumed from its records there."""
        course = ComparisonState(self.comparisons[place], self.spec.measure.rounds, self.spec.measure.race)
        course.resume(self.rows.get((place, machine), ()))
        return course

    def _best(self, place: int) -> tuple[int, str]:
        """Return (place, id of the machine that has most records of this comparison, "" if none has)."""
        machines = [machine for one, machine in self.rows if one == place]
        return place, max(machines, key=lambda machine: len(self.rows[place, machine]), default="")

    def _is_over(self, place: int) -> bool:
        """Return whether some machine has completed the comparison at index `place`."""
        return any(self._is_done(place, machine) for one, machine in self.rows if one == place)

    def _is_done(self, place: int, machine: str) -> bool:
        """Return whether this machine has completed the comparison at index `place`."""
        return not self._course(place, machine).due()

    # Agents

    def join(self, agent: str, machine: str) -> None:
        """Register an agent and the id of its machine; it has no comparisons yet."""
        self.machines[agent], self.in_progress[agent] = machine, {}

    def leave(self, agent: str) -> None:
        """Remove an agent; its comparisons are free for others. No error for an unknown one."""
        self.machines.pop(agent, None)
        self.in_progress.pop(agent, None)

    def next(self, agent: str) -> list[Task]:
        """Return the trials of the next round that the agent is to measure; [] if other agents have all that is left.

        Assigns comparisons to the agent as needed; it works on them in turns.
        """
        in_progress = self.in_progress[agent]
        self._let_go(agent)
        while len(in_progress) < self._share(agent) and (place := self._free(agent)) is not None:
            in_progress[place] = self._course(place, self.machines[agent])
            self._let_go(agent)
        if not in_progress:
            return []
        turn = next(iter(in_progress))
        in_progress[turn] = in_progress.pop(turn)  # the last in turn now
        return in_progress[turn].round()

    def _let_go(self, agent: str) -> None:
        """Release from the agent the comparisons that are over, and mark them in `over` and `ended`."""
        in_progress = self.in_progress[agent]
        for place in [place for place, course in in_progress.items() if not course.due()]:
            self.ended[place] = in_progress.pop(place)
            self.over.add(place)
            if not place:
                self.common.add(self.machines[agent])

    def add(self, agent: str, row: Record) -> None:
        """Add the record of a trial to the comparison that the agent has; KeyError if it has none such."""
        self._store(row)
        self.in_progress[agent][self.place[row["key"]]].add(row)

    def _share(self, agent: str) -> int:
        """Return how many comparisons the agent may have at once, 1 to `HELD`: an equal share on its machine."""
        machine = self.machines[agent]
        own = [one for one in self._open_comparisons() if self._assigned_machine(one) in ("", machine)]
        return max(1, min(COMPARISONS_AT_ONCE, -(-len(own) // list(self.machines.values()).count(machine))))

    def _open_comparisons(self) -> list[int]:
        """Return the indices of the comparisons that are not over, in order."""
        return [place for place in range(len(self.comparisons)) if place not in self.over]

    def waiting(self) -> list[int]:
        """Return the indices of the comparisons that are not over and that no agent has."""
        taken = {place for own in self.in_progress.values() for place in own}
        return [place for place in self._open_comparisons() if place not in taken]

    def _free(self, agent: str) -> int | None:
        """Return the index of the next comparison for the agent, None if there is none; marks its group's machine.

        First the reference workload of all machines, then its machine's groups, then any free one.
        """
        machine = self.machines[agent]
        if self._lacks_common(machine):
            return 0
        able = [place for place in self.waiting() if self._may_have(machine, place)]
        found = max(able, key=lambda place: (self._assigned_machine(place) == machine, -place), default=None)
        if found is not None:
            self.machine_of_group[self.groups[found]] = machine
        return found

    def _assigned_machine(self, place: int) -> str:
        """Return the id of the machine that measures the comparison's group, "" if none of the connected does."""
        machine = self.machine_of_group.get(self.groups[place], "")
        return machine if machine in self.machines.values() else ""

    def _may_have(self, machine: str, place: int) -> bool:
        """Return whether a machine may measure the comparison: it has the group, or less than its share of groups."""
        assigned = self._assigned_machine(place)
        left = {self.groups[one]: self._assigned_machine(one) for one in self._open_comparisons()}
        share = -(-len(left) // len(set(self.machines.values())))
        return assigned == machine or (not assigned and list(left.values()).count(machine) < share)

    def _lacks_common(self, machine: str) -> bool:
        """Return whether no agent of a machine has measured, or is measuring, the comparison of index 0.

        That one is measured on every machine, to show how they differ.
        """
        at_work = any(0 in own and self.machines[other] == machine for other, own in self.in_progress.items())
        return bool(self.comparisons) and not at_work and machine not in self.common

    # How far it is

    @property
    def is_over(self) -> bool:
        """Whether every comparison is over on some machine and no agent has one, so that none is needed any more."""
        return len(self.over) == len(self.comparisons) and not any(self.in_progress.values())

    def schedule(self) -> Schedule:
        """Return all comparisons, each in its state on the machine that has it (or has most records), for counting."""
        at_work = self.ended | {place: course for own in self.in_progress.values() for place, course in own.items()}
        places = range(len(self.comparisons))
        courses = [at_work.get(place) or self._course(*self._best(place)) for place in places]
        return Schedule(courses, dropped=self.dropped)


def _group(comparison: Comparison) -> tuple:
    """Return the tuple of settings that all configurations of a group share, such as all densities of a data set."""
    configuration = next(iter(comparison.configurations.values()))
    return tuple(getattr(configuration, name) for name in settings.names(role="group"))


SECONDS_IDLE = 0.2


@final
class Coordinator:
    """Supervises the agents of one run folder; `state` is its progress."""

    def __init__(
        self,
        spec: Spec,
        folder: Path,
        is_asked_to_stop: threading.Event | None = None,
        agents: list[AgentCommand] | None = None,
        work: str = TRIAL,
    ) -> None:
        """Prepare the run of `spec` in `folder` with its stored records; agents are started by `run`.

        `agents` default to those of the run's option WHERE; `work` is the "module:function" of trials. Raises SpecError
        if WHERE is invalid.
        """
        self.supervisor = Supervisor(spec, folder, is_asked_to_stop, work)
        self.spec, self.folder, self.state, self.work = spec, folder, self.supervisor.state, work
        self.agents = agent_commands.list_agents(run_folder.read_agents_option(folder)) if agents is None else agents
        self.trials = folder / store.FILE
        stored = store.read(self.trials) if self.trials.exists() else []
        self.placement = Placement(spec, stored, self.supervisor.contents)
        self.lock = threading.Lock()
        self.links: dict[str, Link] = {}
        self.records: dict[str, Any] = {}
        self.lost: list[str] = []
        self.failure: BaseException | None = None
        self.refinements = 0

    def run(self) -> None:
        """Start the agents, a thread each, and wait until all comparisons are measured or a stop is asked for.

        Raises what a thread raised. If all agents are lost first, the progress has the state "failed" and says why.
        """
        schedule = self.placement.schedule()
        self.supervisor.take_plan(schedule)
        self.state.state = "running"
        self.supervisor.count(schedule)
        threads = [threading.Thread(target=self._serve_guarded, args=(place,), daemon=True) for place in self.agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(SECONDS_IDLE)
                self._tell()
        self._conclude()

    def _conclude(self) -> None:
        """Write the final progress; raise the exception of an agent's thread, if one failed.

        With lost agents and work left, the state is "failed" and the message says how to go on.
        """
        if self.failure is not None:
            raise self.failure
        self.state.agents, self.state.waiting = {}, 0
        self.supervisor.conclude(self.placement.schedule(), is_cut=self.supervisor.stopping)
        if self.lost:
            is_failed = self.state.state == "finished" and not self.state.message and not self.placement.is_over
            text = "No agent is left; start the sweep again to do the rest, all rows are kept." if is_failed else ""
            self.state.state = "failed" if is_failed else self.state.state
            self.state.message = "\n".join(filter(None, (*self.lost, self.state.message, text)))
            self.supervisor.write()

    @property
    def is_over(self) -> bool:
        """Whether agents are to end: a stop was asked for, or a thread failed."""
        return self.supervisor.stopping or self.failure is not None

    def _tell(self) -> None:
        """Update what each agent does and how many comparisons wait; write a due heartbeat. Takes the lock."""
        with self.lock:
            self.state.agents = {name: link.doing for name, link in self.links.items()}
            self.state.waiting = len(self.placement.waiting())
            self.supervisor.beat()

    # One agent, on a separate thread

    def _serve_guarded(self, place: AgentCommand) -> None:
        """Serve an agent until it ends, and keep any exception in `failure` for `_conclude`; body of a thread."""
        try:
            self._serve_agent(place)
        except BaseException as error:  # raised by `run`, on the thread that answers for the sweep
            self.failure = error

    def _serve_agent(self, place: AgentCommand) -> None:
        """Start an agent, serve it until the sweep is over or it is lost, and end it; reasons are added to `lost`."""
        try:
            link = Link(place, self.folder, lambda: self.is_over)
        except OSError as error:
            self.lost.append(f"The agent {place.name} cannot be started: {error}.")
            return
        with self.lock:
            self.links[place.name] = link
        try:
            self._measure_with(link)
        except AgentLostError as lost:
            with self.lock:
                self.lost.append(str(lost))
        finally:
            with self.lock:
                del self.links[place.name]
                self.placement.leave(place.name)
            link.end()

    def _measure_with(self, link: Link) -> None:
        """Send the spec to an agent, register its machine, and have it measure rounds until none is left.

        Returns when the sweep is over or stops; raises AgentLostError if the agent is lost.
        """
        spec, run = self.spec.model_dump(mode="json"), self.supervisor.run_name
        link.ask({"spec": spec, "run": run, "work": self.work, "versions": code_versions(), "folder": os.getcwd()})
        hello = link.hear("machine")
        if hello is None:
            return
        with self.lock:
            self.placement.join(link.place.name, hello["machine"])
            self.records[hello["machine"]] = hello["record"]
            atomic_files.write(self.folder / run_folder.MACHINE, json.dumps(self._machines(), indent=1))
        while not self.is_over:
            with self.lock:
                tasks = self.placement.next(link.place.name)
                if self.supervisor.is_budget_out() or (self.placement.is_over and not self._add_refinement()):
                    return
                self.supervisor.count(self.placement.schedule(), len(tasks))
            for left, task in zip(reversed(range(len(tasks))), tasks, strict=True):
                if not self._measure_trial(link, task, left):
                    return
            if not tasks:  # others have what is left, and may be lost
                link.doing = "waiting for work"
                link.look()

    def _add_refinement(self) -> bool:
        """Add densities around break-evens that are not narrow enough; return whether there were any.

        The caller has the lock. At most `MOST_ADDED` times; updates the plan file and counts.
        """
        until = self.spec.measure.until
        if not until or self.refinements == MOST_ADDED:
            return False
        stored, schedule = store.read(self.trials), self.placement.schedule()
        configurations = refinement_configurations(schedule.configurations, stored, until)
        self.placement.extend(configurations, stored)
        self.refinements += 1
        self.supervisor.take_plan(self.placement.schedule())
        return bool(configurations)

    def _machines(self) -> dict[str, Any]:
        """Return the record of the only machine, or {machine id: record} if there are several."""
        return next(iter(self.records.values())) if len(self.records) == 1 else self.records

    def _measure_trial(self, link: Link, task: Task, left: int) -> bool:
        """Have the agent of `link` measure one trial, and keep its record; return False if the sweep stops.

        `left` is the number of trials of the round that follow. Raises AgentLostError.
        """
        about = {"key": task.key, "round": task.round, "source": grid.source_hash(task.configuration), "left": left}
        about |= {"content": self.supervisor.contents.of(task.configuration)}
        link.ask({"cell": task.configuration.model_dump(mode="json"), **about})
        answer = link.hear("row")
        if answer is None:
            return False
        row = store.new_row(**answer["row"])
        with self.lock:
            self.supervisor.keep(self.trials, row)
            self.placement.add(link.place.name, row)
        return not self.is_over
