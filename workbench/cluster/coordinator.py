"""A sweep on the machines of a Dask cluster: the run folder stays here, and workers elsewhere measure what it lacks.

One worker with the resource "machine" stands for its machine. A trial is one task, pinned to its worker and holding
that resource, so that no other sweep measures beside it. The supervisor writes every record, as it does of a sweep on
one machine; so whatever dies, records are kept once, and what is left is done by the workers that are left, by those
that join, or by the next start.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

try:
    import dask
    from distributed import Client, Future, LocalCluster
    from distributed.client import ClosedClientError
except ImportError as error:
    raise ImportError("A cluster needs Dask: pip install 'sparse-workbench[cluster]'.") from error

from workbench import atomic_files, store
from workbench.cluster import machine_tasks
from workbench.cluster.placement import Placement
from workbench.cluster.security import OpenClusterError, check_encrypted
from workbench.measure.machine import code_versions
from workbench.sweeps import grid, run_folder
from workbench.sweeps.runner import TRIAL, Supervisor
from workbench.sweeps.schedule import MOST_ADDED, Task, refinement_configurations
from workbench.sweeps.spec import FILES, Spec, dump_spec

MACHINE = "machine"
"""The resource of a worker that stands for its machine."""
SECONDS_JOIN = 60.0
"""How long to wait for a scheduler, and for a worker when there is none."""
SECONDS_ANSWER = 30.0
"""How long a scheduler may take to answer; it may be halted."""
SECONDS_LOOK = 0.1
SECONDS_BETWEEN = 1.0
"""How often the scheduler is asked which workers there are."""
UNREACHABLE = (OSError, TimeoutError, CancelledError, ClosedClientError)
LOCAL = {
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.nanny.pre-spawn-environ": {},
}


class NoMachinesError(RuntimeError):
    """The cluster cannot be reached, or none of its workers measures; the message says what to do."""


@contextlib.contextmanager
def connect(where: str) -> Iterator[Client]:
    """Yield a client of the scheduler at the address `where`, or of a cluster in this process for "local".

    The latter has one worker and opens no port. OpenClusterError if a scheduler is open to other machines without
    encryption, NoMachinesError if it cannot be reached. Certificates are those of Dask's configuration.
    """
    with contextlib.ExitStack() as opened:
        if where == run_folder.LOCAL:
            opened.enter_context(dask.config.set(LOCAL))
            options = {"protocol": "inproc://", "dashboard_address": None, "memory_limit": 0, "resources": {MACHINE: 1}}
            where = opened.enter_context(LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **options))
        else:
            check_encrypted([where])
        try:
            client = Client(where, timeout=SECONDS_JOIN, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:  # TypeError without certificates
            raise NoMachinesError(f"The scheduler {where} is not reached: {error}") from None
        try:
            yield client
        finally:
            client.close(timeout=SECONDS_ANSWER)


def machine_workers(client: Client) -> list[str]:
    """Return the sorted addresses of workers with the resource "machine", the first of each host.

    One of UNREACHABLE if the scheduler does not answer; OpenClusterError if a worker is not encrypted.
    """
    workers = client.sync(client.scheduler.identity, callback_timeout=SECONDS_ANSWER)["workers"]
    able = {address: one["host"] for address, one in sorted(workers.items()) if one["resources"].get(MACHINE, 0) >= 1}
    check_encrypted(list(able))
    return sorted({host: address for address, host in reversed(able.items())}.values())


@final
@dataclass
class Machine:
    """A worker that stands for its machine, and what it does."""

    address: str
    future: Future | None
    doing: str = "starting"
    task: Task | None = None
    due: list[Task] = field(default_factory=list)


@final
class Coordinator:
    """Supervises the workers of one run folder; `state` is its progress."""

    def __init__(
        self,
        spec: Spec,
        folder: Path,
        is_asked_to_stop: threading.Event | None = None,
        where: str = "",
        work: str = TRIAL,
    ) -> None:
        """Prepare the run of `spec` in `folder` with its stored records; the cluster is joined by `run`.

        `where` is the scheduler's address or "local", by default what the run was started with; `work` is the
        "module:function" of trials.
        """
        self.supervisor = Supervisor(spec, folder, is_asked_to_stop, work)
        self.spec, self.folder, self.state = spec, folder, self.supervisor.state
        self.where = where or run_folder.read_cluster_option(folder)
        self.trials = folder / store.FILE
        stored = store.read(self.trials) if self.trials.exists() else []
        self.placement = Placement(spec, stored, self.supervisor.contents)
        self.run_facts = {"name": self.supervisor.run_name, "work": work, "spec": dump_spec(spec)}
        self.machines: dict[str, Machine] = {}
        self.records: dict[str, Any] = {}
        self.lost: dict[str, str] = {}
        """Why a worker is not used any more, by its address."""
        self.looked = -SECONDS_BETWEEN
        self.has_ended = threading.Event()
        """Set when a task has ended."""
        self.refinements = 0

    def run(self) -> None:
        """Join the cluster and have its workers measure all comparisons, until a stop is asked for.

        If the cluster is lost first, the progress has the state "failed" and says why.
        """
        schedule = self.placement.schedule()
        self.supervisor.take_plan(schedule)
        self.state.state = "running"
        self.supervisor.count(schedule)
        why = ""
        try:
            with connect(self.where) as client:
                try:
                    self._measure(client)
                finally:
                    with contextlib.suppress(*UNREACHABLE):
                        client.cancel([one.future for one in self.machines.values() if one.future is not None])
        except UNREACHABLE as error:
            why = f"The scheduler {self.where} does not answer any more: {error or type(error).__name__}."
        except (NoMachinesError, OpenClusterError) as error:
            why = str(error)
        self._conclude(why)

    def _conclude(self, why: str) -> None:
        """Write the final progress; the state is "failed" and says how to continue if `why` the cluster was lost."""
        self.state.agents, self.state.waiting = {}, 0
        self.supervisor.conclude(self.placement.schedule(), is_cut=self.supervisor.stopping)
        if why and self.state.state == "finished" and not self.placement.is_over:
            self.state.state = "failed"
            why += "\nStart the sweep again to measure the rest; all records are kept."
        self.state.message = "\n".join(filter(None, (*self.lost.values(), self.state.message, why)))
        self.supervisor.write()

    def _measure(self, client: Client) -> None:
        """Give workers trials and keep their records until all is measured, the budget is out or a stop is asked for.

        NoMachinesError if no worker measures for `SECONDS_JOIN`.
        """
        seen = time.monotonic()
        while not self.supervisor.stopping:
            if time.monotonic() - self.looked >= SECONDS_BETWEEN:
                self._find_workers(client)
                self.looked = time.monotonic()
            for one in list(self.machines.values()):
                if one.future is not None and one.future.done():
                    self._take(one, one.future)
                if one.address in self.machines and one.future is None and not self._give(client, one):
                    return
            if self.machines:
                seen = time.monotonic()
            elif time.monotonic() - seen > (SECONDS_BETWEEN if self.lost else SECONDS_JOIN):
                raise NoMachinesError(
                    f"No worker of {self.where} measures. Start one on each machine: dask worker {self.where} "
                    f"--no-nanny --nthreads 1 --memory-limit 0 --resources {MACHINE}=1"
                )
            self.has_ended.wait(SECONDS_LOOK)
            self.has_ended.clear()
            self.state.agents = {name: one.doing for name, one in self.machines.items()}
            self.state.waiting = len(self.placement.waiting())
            self.supervisor.beat()

    def _find_workers(self, client: Client) -> None:
        """Ask new workers to describe their machines; drop those that are gone."""
        found = machine_workers(client)
        for address in self.machines.keys() - set(found):
            self._lose(self.machines[address], "is gone")
        for address in found:
            if address not in self.machines and address not in self.lost:
                self.machines[address] = Machine(address, self._submit(client, address, machine_tasks.describe))

    def _submit(self, client: Client, address: str, call: Any, *given: Any) -> Future:
        """Start `call(*given)` on the worker at `address`, which does nothing else meanwhile; return its future."""
        placed = {"workers": [address], "allow_other_workers": False, "resources": {MACHINE: 1}}
        future = client.submit(call, *given, pure=False, retries=0, **placed)
        future.add_done_callback(lambda _: self.has_ended.set())
        return future

    def _lose(self, one: Machine, why: str) -> None:
        """Stop using a worker; its comparisons are free for others."""
        self.lost[one.address] = f"The worker {one.address} {why}."
        if one.future is not None:
            one.future.release()
        del self.machines[one.address]
        self.placement.leave(one.address)

    def _take(self, one: Machine, future: Future) -> None:
        """Take the result of a worker's task: the description of its machine, or the record of a trial."""
        one.future = None
        try:
            result = future.result(SECONDS_ANSWER)
            if one.task is None:
                machine_tasks.require_same("code", result["versions"], code_versions())
        except Exception as error:  # whatever it is, this worker measures no more for this sweep
            self._lose(one, f"measures no more: {error or type(error).__name__}".rstrip("."))
            return
        if one.task is None:
            self.placement.join(one.address, result["machine"])
            self.records[result["machine"]] = result["record"]
            known = next(iter(self.records.values())) if len(self.records) == 1 else self.records
            atomic_files.write(self.folder / run_folder.MACHINE, json.dumps(known, indent=1))
            return
        files = {name: getattr(one.task.configuration, name) for name in FILES}
        row = store.new_row(**result | files)
        self.supervisor.keep(self.trials, row)
        self.placement.add(one.address, row)

    def _give(self, client: Client, one: Machine) -> bool:
        """Give an idle worker its next trial, if there is one; return False if the sweep is over."""
        if not one.due:
            one.due, one.doing = self.placement.next(one.address), "waiting for work"
            if self.supervisor.is_budget_out() or (self.placement.is_over and not self._add_refinement()):
                return False
            self.supervisor.count(self.placement.schedule(), len(one.due))
        if one.due:  # else others have what is left, and may be lost
            one.task = task = one.due.pop(0)
            one.doing = f"{grid.describe_configuration(task.configuration)} round={task.round}"
            cell = task.configuration.model_dump(mode="json")
            cell |= {name: os.path.abspath(cell[name]) for name in FILES if cell[name]}  # workers are in other folders
            asked = {"cell": cell, "key": task.key, "round": task.round, "source": grid.source_hash(task.configuration)}
            asked["content"] = self.supervisor.contents.of(task.configuration)
            one.future = self._submit(client, one.address, machine_tasks.measure, self.run_facts, asked)
        return True

    def _add_refinement(self) -> bool:
        """Add densities around break-evens that are not narrow enough, `MOST_ADDED` times; return whether any."""
        until = self.spec.measure.until
        if not until or self.refinements == MOST_ADDED:
            return False
        stored, schedule = store.read(self.trials), self.placement.schedule()
        configurations = refinement_configurations(schedule.configurations, stored, until)
        self.placement.extend(configurations, stored)
        self.refinements += 1
        self.supervisor.take_plan(self.placement.schedule())
        return bool(configurations)
