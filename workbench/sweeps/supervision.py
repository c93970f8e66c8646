"""The process of a supervisor: it holds the run folder's lock, hears signals, and tells why it ended."""

import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.sweeps import run_folder
from workbench.sweeps.file_contents import DataChangedError
from workbench.sweeps.progress import Progress
from workbench.sweeps.runner import Supervisor
from workbench.sweeps.spec import Spec

SECONDS_LOCK = 2.0
"""How long to wait for a supervisor that has written its end and not yet gone."""
Make = Callable[[Spec, Path, threading.Event], Any]


def read_folder_from_stdin() -> Path | None:
    """Wait for the path of the run folder on standard input and return it; None if the input ends without one.

    Changes the working directory to the folder and sends standard output and error to its log.
    """
    path = sys.stdin.buffer.read()
    if not path:
        return None
    folder = Path(os.fsdecode(path))
    os.chdir(folder)  # `workbench status` finds the run by the working directory of its supervisor
    with open(folder / run_folder.LOG, "ab") as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
    return folder


def supervise(folder: Path, make: Make = Supervisor) -> int:
    """Run the sweep in `folder` by what `make` gives; the exit status. Errors end up in its progress and its log.

    SIGTERM and SIGINT stop it, also where whoever started it ignores them.
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


def _supervise_locked(folder: Path, is_asked_to_stop: threading.Event, make: Make) -> int:
    """Run a sweep in a folder whose lock is held; return the exit status. Errors are written to the progress."""
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


def _message(error: Exception, folder: Path) -> str:
    """Return the message on why a sweep failed, for those who watch it."""
    if isinstance(error, DataChangedError):
        command = shlex.join(["workbench", "sweep", str(folder / run_folder.SPEC), "--run", str(folder)])
        return f"{error} To measure the new content, type: {command}"
    if isinstance(error, OSError):
        return f"{run_folder.system_error_text(error)}. Mend that and start the sweep again; all rows before are kept."
    return f"{type(error).__name__}: {error}"
