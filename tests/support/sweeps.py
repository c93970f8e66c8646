"""Sweeps supervised by the process of the tests, at once: no interpreter starts, and all share one fork server.

Trials are processes of their own as ever. What a process of its own adds to a supervisor (it outlives its terminal,
answers a stop while it works, can be killed) is tested with one: `run_folder.start_run` outside of `supervised_here`.
"""

import multiprocessing.forkserver
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.support.processes import kept_handlers
from workbench.measure import child
from workbench.sweeps import run_folder, runner, trial
from workbench.sweeps.spec import Spec

COMMAND = [sys.executable, "-m", "workbench.sweeps"]
"""What a run folder starts in a process of its own, before the folder's path."""


_server = multiprocessing.forkserver._forkserver
_loaded: set[int] = set()
"""Fork servers of this process that have loaded what a trial needs."""


def have_trials_preloaded() -> None:
    """See that trials fork from a server that has their libraries; other tests may have started one without."""
    if _server._forkserver_pid not in _loaded:
        _server._stop()
        child.fork_server(["workbench.sweeps.preload"])
        _loaded.add(_server._forkserver_pid)


def supervise(command: list[str], **_: object) -> SimpleNamespace:
    """Be the process that `run_folder.start_run` starts, which does all when it is waited for."""
    assert command[:-1] == COMMAND

    def wait() -> int:
        """Do what the process would."""
        have_trials_preloaded()
        with kept_handlers():
            return runner.supervise(Path(command[-1]))

    return SimpleNamespace(wait=wait, pid=os.getpid())


def row_of_trial(request: dict[str, Any]) -> dict[str, Any]:
    """The row of a trial that is done in this process: what its own would send, less what the supervisor keeps."""
    *_, row = trial.answers(request)
    return {column: value for column, value in row.items() if column != "seconds_compiled"}


@contextmanager
def supervised_here() -> Iterator[None]:
    """Let sweeps that are started inside be over when `run_folder.start_run` returns."""
    processes = SimpleNamespace(Popen=supervise, DEVNULL=subprocess.DEVNULL)
    threads = SimpleNamespace(Thread=lambda target, daemon: SimpleNamespace(start=target))
    with mock.patch.multiple(run_folder, subprocess=processes, threading=threads):
        yield


def swept(spec: Spec, folder: Path) -> run_folder.Progress:
    """How the sweep of the spec in that folder ended."""
    with supervised_here():
        return run_folder.read_progress(run_folder.start_run(spec, folder))
