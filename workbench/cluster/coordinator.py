"""A sweep on several machines: the run folder stays here, and agents elsewhere measure what it lacks.

The supervisor writes every row, as it does of a sweep on one machine; so whatever dies, rows are kept once, and what is
left is done by the agents that are left, or by the next start.
"""

import json
import os
import threading
from pathlib import Path
from typing import Any, final

from workbench import store
from workbench.cluster.link import AgentLostError, Link
from workbench.cluster.placement import Placement
from workbench.measure import stack
from workbench.sweep import grid, places, run_folder
from workbench.sweep.places import Place
from workbench.sweep.refine import MOST_ADDED, added
from workbench.sweep.runner import TRIAL, Supervisor
from workbench.sweep.schedule import Task
from workbench.sweep.spec import Spec

SECONDS_IDLE = 0.2


@final
class Coordinator:
    """Supervises the agents of one run folder; `state` is its progress."""

    def __init__(
        self,
        spec: Spec,
        folder: Path,
        is_asked_to_stop: threading.Event | None = None,
        agents: list[Place] | None = None,
        work: str = TRIAL,
    ) -> None:
        self.supervisor = Supervisor(spec, folder, is_asked_to_stop, work)
        self.spec, self.folder, self.state, self.work = spec, folder, self.supervisor.state, work
        self.agents = places.agents(run_folder.where(folder)) if agents is None else agents
        self.trials = folder / store.FILE
        self.placement = Placement(spec, store.read(self.trials) if self.trials.exists() else [])
        self.lock = threading.Lock()
        self.links: dict[str, Link] = {}
        self.records: dict[str, Any] = {}
        self.lost: list[str] = []
        self.failure: BaseException | None = None
        self.refinements = 0

    def run(self) -> None:
        """Have all comparisons measured, or stop when asked. All agents lost is a failure that says why."""
        schedule = self.placement.schedule()
        self.supervisor.write_plan(schedule)
        self.state.reused = self.state.done = self.placement.reused
        self.state.state = "running"
        self.supervisor.count(schedule)
        threads = [threading.Thread(target=self._guarded, args=(place,), daemon=True) for place in self.agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(SECONDS_IDLE)
                self._tell()
        self._conclude()

    def _conclude(self) -> None:
        if self.failure is not None:
            raise self.failure
        self.state.agents, self.state.waiting = {}, 0
        self.supervisor.conclude(self.placement.schedule(), is_cut=self.supervisor.stopping)
        if self.lost:
            is_failed = self.state.state == "finished" and not self.state.message and not self.placement.is_over
            told = "No agent is left; start the sweep again to do the rest, all rows are kept." if is_failed else ""
            self.state.state = "failed" if is_failed else self.state.state
            self.state.message = "\n".join(filter(None, (*self.lost, self.state.message, told)))
            self.supervisor.write()

    @property
    def is_over(self) -> bool:
        """Whether agents are to end: somebody asked to stop, the budget is out, or something failed here."""
        return self.supervisor.stopping or self.failure is not None

    def _tell(self) -> None:
        """Say what each agent does, and what waits."""
        with self.lock:
            self.state.agents = {name: link.doing for name, link in self.links.items()}
            self.state.waiting = len(self.placement.waiting())
            self.supervisor.beat()

    # One agent, on a thread of its own

    def _guarded(self, place: Place) -> None:
        try:
            self._attended(place)
        except BaseException as error:  # raised by `run`, on the thread that answers for the sweep
            self.failure = error

    def _attended(self, place: Place) -> None:
        """Have an agent measure until all is over, or it is lost."""
        try:
            link = Link(place, self.folder, lambda: self.is_over)
        except OSError as error:
            self.lost.append(f"The agent {place.name} cannot be started: {error}.")
            return
        with self.lock:
            self.links[place.name] = link
        try:
            self._greeted(link)
        except AgentLostError as lost:
            with self.lock:
                self.lost.append(str(lost))
        finally:
            with self.lock:
                del self.links[place.name]
                self.placement.leave(place.name)
            link.end()

    def _greeted(self, link: Link) -> None:
        spec, run = self.spec.model_dump(mode="json"), self.supervisor.run_name
        link.ask({"spec": spec, "run": run, "work": self.work, "versions": stack.versions(), "folder": os.getcwd()})
        hello = link.hear("machine")
        if hello is None:
            return
        with self.lock:
            self.placement.join(link.place.name, hello["machine"])
            self.records[hello["machine"]] = hello["record"]
            run_folder.replace_file(self.folder / run_folder.MACHINE, json.dumps(self._machines(), indent=1))
        while not self.is_over:
            with self.lock:
                tasks = self.placement.next(link.place.name)
                if self.supervisor.is_budget_out() or (self.placement.is_over and not self._refined()):
                    return
                self.supervisor.count(self.placement.schedule(), len(tasks))
            for left, task in zip(reversed(range(len(tasks))), tasks, strict=True):
                if not self._measured(link, task, left):
                    return
            if not tasks:  # others have what is left, and may be lost
                link.doing = "waiting for work"
                link.look()

    def _refined(self) -> bool:
        """Add densities around the break-evens that are not known well enough; whether there were any."""
        until = self.spec.measure.until
        if not until or self.refinements == MOST_ADDED:
            return False
        stored, schedule = store.read(self.trials), self.placement.schedule()
        cells = added(schedule.cells, stored, until)
        before = self.placement.reused
        self.placement.extend(cells, stored)
        self.state.reused, self.state.done = self.placement.reused, self.state.done + self.placement.reused - before
        self.refinements += 1
        self.supervisor.write_plan(self.placement.schedule())
        return bool(cells)

    def _machines(self) -> dict[str, Any]:
        """The record of the machine; where there are several, of each by its id."""
        return next(iter(self.records.values())) if len(self.records) == 1 else self.records

    def _measured(self, link: Link, task: Task, left: int) -> bool:
        """Have one trial done and its row kept; `left` are the others of its round. False where the sweep stopped."""
        about = {"key": task.key, "round": task.round, "source": grid.source_hash(task.cell), "left": left}
        link.ask({"cell": task.cell.model_dump(mode="json"), **about})
        answer = link.hear("row")
        if answer is None:
            return False
        row = store.new_row(**answer["row"])
        with self.lock:
            self.supervisor.keep(self.trials, row)
            self.placement.add(link.place.name, row)
        return not self.is_over
