"""Functions that a Dask worker runs for a sweep: it describes its machine, and measures one trial at a time.

A trial is a process of its own, started by the worker in the environment for measuring, and ended when its task is
cancelled: because the sweep was stopped, its supervisor is gone, or the scheduler is.
"""

import atexit
import contextlib
import functools
import json
import multiprocessing
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

from distributed import Worker, get_worker

from workbench.measure import environment, machine
from workbench.sweeps import grid
from workbench.sweeps.problem import DataChangedError
from workbench.sweeps.runner import Supervisor
from workbench.sweeps.schedule import Task
from workbench.sweeps.spec import FILES, Configuration, parse_spec_json

SELF_MONITORING = ("profile", "profile-cycle", "memory_monitor", "monitor")
"""Periodic callbacks with which a Dask worker observes itself, the first every 10 ms."""


class RefusedError(RuntimeError):
    """This machine cannot measure for the sweep: other code or data, or a worker that may not start processes."""


@final
class TaskCancelled(threading.Event):
    """Stop request of a supervisor that is set when the present task of a Dask worker is cancelled."""

    def __init__(self, worker: Worker) -> None:
        """Remember the task that the worker executes now."""
        super().__init__()
        self.worker, self.key = worker, worker.get_current_task()

    def is_set(self) -> bool:
        """Return whether the task is no longer wanted, or its worker is closing."""
        task = self.worker.state.tasks.get(self.key)
        return task is None or task.state != "executing" or self.worker.status.name != "running"


def describe() -> dict[str, Any]:
    """Return {"machine": id, "record": its description, "versions": those of the code} of this machine.

    RefusedError if the worker is a daemonic process, which may start no trials.
    """
    if multiprocessing.current_process().daemon:
        raise RefusedError(
            "Its process is daemonic and cannot start trials. Start the worker with --no-nanny, or set "
            "DASK_DISTRIBUTED__WORKER__DAEMON=False."
        )
    return {
        "machine": machine.machine_id(),
        "record": machine.describe_machine(),
        "versions": machine.code_versions(),
    }


def measure(run: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of one trial, measured in a process of its own on this machine.

    `run` has the "spec", the "name" and the "work" of the sweep; `asked` the trial's "cell", "key" and "round", and the
    "source" and "content" that it has where the sweep was started. RefusedError if these differ here.
    """
    worker = get_worker()
    supervisor = _supervisor(run["name"], run["work"], run["spec"])
    supervisor.is_asked_to_stop = TaskCancelled(worker)
    task = Task(Configuration(**asked["cell"]), asked["key"], asked["round"])
    require_same("source of this configuration", asked["source"], grid.source_hash(task.configuration))
    here = supervisor.contents.of(task.configuration)
    if asked["content"] and here:  # unknown content is accepted; the record reports a missing file
        paths = ", ".join(str(asked["cell"][name]) for name in FILES if asked["cell"].get(name))
        require_same(f"content of {paths}", asked["content"], here)
    with disable_self_monitoring(worker):
        try:
            return supervisor.do(task)
        except DataChangedError as error:
            raise RefusedError(f"{error} Start the sweep again to measure the new content.") from None


def require_same(what: str, wanted: Any, here: Any) -> None:
    """Raise RefusedError unless `wanted` == `here`, because records of other code or data have other keys."""
    if wanted != here:
        raise RefusedError(f"The {what} is {here} there and {wanted} here. Install and copy the same to both.")


@functools.lru_cache(maxsize=1)
def _supervisor(name: str, work: str, spec: str) -> Supervisor:
    """Return the supervisor that measures the trials of a run on this machine; kept for the next trial."""
    folder = tempfile.mkdtemp(prefix="workbench-worker-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    supervisor = Supervisor(parse_spec_json(spec), Path(folder), None, work)
    supervisor.run_name = f"{name} on {machine.machine_id()}"
    return supervisor


@contextlib.contextmanager
def disable_self_monitoring(worker: Worker) -> Iterator[None]:
    """Stop a worker's periodic self-monitoring in the context; records of processes started inside list it.

    It would take part of a core from the trial.
    """
    found = {name: worker.periodic_callbacks[name] for name in SELF_MONITORING if name in worker.periodic_callbacks}
    running = {name: callback for name, callback in found.items() if callback.is_running()}
    stopped = {f"dask {name}": f"every {callback.callback_time:g} ms" for name, callback in running.items()}
    for callback in running.values():
        worker.loop.add_callback(callback.stop)
    before = environment.removed_variables()
    os.environ[environment.REMOVED] = json.dumps(before | stopped)
    try:
        yield
    finally:
        os.environ[environment.REMOVED] = json.dumps(before)
        for callback in running.values():
            worker.loop.add_callback(callback.start)
