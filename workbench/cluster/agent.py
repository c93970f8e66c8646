"""An agent: measures trials on its machine for a sweep that is supervised elsewhere.

    python -m workbench.cluster.agent

Lines of JSON come in: {"spec": ..., "run": ..., "work": ..., "versions": ..., "folder": ...} first, then {"cell": ...,
"key": ..., "round": ..., "source": ..., "content": ..., "left": ...} for each trial, `left` how many of its round are
still to come. Lines go out: {"machine": ..., "record": ...} first, then {"row": ...} for each trial, and every second
{"beat": ...}, what is at work. When the input ends, so do the trial at work and the agent. One with other code, or with
a data file of other content, refuses.

Two agents of one machine take turns, a round each, so that its trials are neighbours in time: trials next to each other
would not be measurements, and halves of the cores would be those of another machine.
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import psutil

from workbench.measure import machine
from workbench.sweeps import grid
from workbench.sweeps.problem import DataChangedError
from workbench.sweeps.runner import Supervisor
from workbench.sweeps.schedule import Task
from workbench.sweeps.spec import Configuration, validate_spec

SECONDS_BEAT = 1.0
SECONDS_TURN = 0.05
"""How often an agent asks whether the machine is free."""


class Agent:
    """Answers on `out`; `ended` is set when nobody reads any more."""

    def __init__(self, out: TextIO) -> None:
        """Keep the output file; `doing` is the text of the next beat."""
        self.out, self.ended, self.lock = out, threading.Event(), threading.Lock()
        self.doing = "starting"

    def say(self, message: dict[str, Any]) -> None:
        """Write a message as a line of JSON; if the reader has closed the pipe, set `ended` instead of raising."""
        try:
            with self.lock:
                self.out.write(json.dumps(message) + "\n")
                self.out.flush()
        except OSError:
            self.ended.set()

    def beat(self) -> None:
        """Write {"beat": what is at work} every `SECONDS_BEAT` until `ended` is set; body of a thread."""
        while not self.ended.wait(SECONDS_BEAT):
            self.say({"beat": self.doing})

    def serve(self, lines: "Lines") -> None:
        """Answer the messages of `lines` until the input ends: the first describes the run, each other one a trial.

        Changes the working directory to the run's. Exits the process (SystemExit) if code or data differ from the
        sweep's.
        """
        first = lines.next()
        if first is None:
            return
        require_same_code("versions", first["versions"], machine.code_versions())
        with contextlib.suppress(OSError):  # where it is not here, rows say of a file that none is where its path leads
            os.chdir(first["folder"])
        self.say({"machine": machine.machine_id(), "record": machine.describe_machine()})
        with tempfile.TemporaryDirectory(prefix="workbench-agent-") as folder:
            supervisor = Supervisor(validate_spec(first["spec"]), Path(folder), self.ended, first["work"])
            supervisor.run_name = f"{first['run']} on {machine.machine_id()}"
            while (asked := lines.next()) is not None:
                self.doing = "waiting for another agent of this machine"
                with machine_turn(self.ended):
                    self.measure_round(asked, lines, supervisor)
                self.doing = "waiting for work"

    def measure_round(self, asked: dict[str, Any] | None, lines: "Lines", supervisor: Supervisor) -> None:
        """Measure the trial `asked` and those of its round that follow in `lines`, and write each record.

        SystemExit if code or a data file is other than in the sweep.
        """
        while asked is not None:
            task = Task(Configuration(**asked["cell"]), asked["key"], asked["round"])
            require_same_code("source of this configuration", asked["source"], grid.source_hash(task.configuration))
            require_same_content(task.configuration, asked["content"], supervisor.contents.of(task.configuration))
            self.doing = f"{grid.describe_configuration(task.configuration)} round={task.round}"
            try:
                self.say({"row": supervisor.do(task)})
            except DataChangedError as error:
                sys.exit(f"{error} Start the sweep again to measure the new content.")
            asked = lines.next() if asked["left"] else None


def require_same_code(what: str, wanted: Any, here: Any) -> None:
    """Exit with a message unless `wanted` == `here`, since records of other code would have another key."""
    if wanted != here:
        sys.exit(f"The {what} here: {here}; of the sweep: {wanted}. Install the same on both, and start it again.")


def require_same_content(configuration: Configuration, wanted: str, here: str) -> None:
    """Exit with a message if the content hash `here` of the configuration's file is not that of the sweep, `wanted`.

    "" is an unknown content and is accepted; a missing file is reported by its record.
    """
    if wanted and here and wanted != here:
        advice = "Copy the same file to both, and start the sweep again"
        sys.exit(
            f"{configuration.path} has the content {here} here, and {wanted} where the sweep was started. {advice}."
        )


class Lines:
    """Messages as they come in, read on a thread, so that the end of the input ends what is at work."""

    def __init__(self, file: int, ended: threading.Event) -> None:
        """Start the thread that reads the file descriptor `file`; it sets `ended` at the end of the input."""
        self.file, self.ended = file, ended
        self.came: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """Read JSON lines from the pipe and queue them until it ends, then set `ended`; body of a thread."""
        part = b""
        try:
            while read := os.read(self.file, 2**16):  # a thread in a buffered file would keep the process from its end
                *lines, part = (part + read).split(b"\n")
                with self.changed:
                    self.came += map(json.loads, lines)
                    self.changed.notify()
        finally:
            self.ended.set()
            with self.changed:
                self.changed.notify()

    def next(self) -> dict[str, Any] | None:
        """Wait for the next message and return it; None once `ended` is set."""
        with self.changed:
            while not self.came and not self.ended.is_set():
                self.changed.wait(SECONDS_BEAT)
            return self.came.pop(0) if self.came and not self.ended.is_set() else None


@contextlib.contextmanager
def machine_turn(ended: threading.Event) -> Iterator[None]:
    """Hold the lock of this machine within the context, so that no other agent of this user measures.

    Waits until the lock is free or `ended` is set (then the block runs without it). The holder's id is in the lock
    file; if it is stopped by a signal it is continued, so that it can end.
    """
    with open(Path(tempfile.gettempdir()) / f"workbench-turn-{os.getuid()}", "a+", encoding="utf-8") as file:
        while not ended.wait(SECONDS_TURN):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _wake(file)
                continue
            file.truncate(0)
            print(os.getpid(), file=file, flush=True)
            break
        yield


def _wake(file: TextIO) -> None:
    """Send SIGCONT to the process whose id is in the file, if it is stopped."""
    file.seek(0)
    number = file.read().strip()
    with contextlib.suppress(psutil.Error, OSError):
        if number.isdecimal() and psutil.Process(int(number)).status() == psutil.STATUS_STOPPED:
            os.kill(int(number), signal.SIGCONT)


def main() -> None:
    """Serve on standard input and output; what trials print goes to standard error instead."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    agent = Agent(out)
    threading.Thread(target=agent.beat, daemon=True).start()
    agent.serve(Lines(sys.stdin.fileno(), agent.ended))
    agent.ended.set()


if __name__ == "__main__":
    main()
