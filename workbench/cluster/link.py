"""An agent as its supervisor sees it: a process that is asked in lines of JSON and must not fall silent."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from workbench.measure import loads
from workbench.sweeps.agent_commands import AgentCommand

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
        self.place, self.doing, self.is_stopping = place, "starting", is_stopping
        self.log = folder / f"log-{re.sub(r'[^A-Za-z0-9.]+', '-', place.name)}.txt"
        with open(self.log, "ab") as file:
            self.log_start = file.tell()
            self.process = subprocess.Popen(
                list(place.command),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
                env=loads.measuring_environment(),
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to, self.out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.to, False)
        os.set_blocking(self.out, False)
        self.has_begun = False
        self.part, self.heard, self.patience = bytearray(), time.monotonic(), SECONDS_START
        self.came: deque[dict[str, Any]] = deque()

    def ask(self, message: Mapping[str, Any]) -> None:
        """Send a line; raises AgentLostError if the agent does not take it in time."""
        data, end = json.dumps(message).encode() + b"\n", time.monotonic() + self.patience
        while data and not self.is_stopping():
            if time.monotonic() > end:
                raise AgentLostError(self._why(f"has not read what it was told for {self.patience:g} s"))
            if _is_ready(self.to, select.POLLOUT):
                try:
                    data = data[os.write(self.to, data) :]
                except OSError:
                    raise AgentLostError(self._why("does not listen")) from None

    def hear(self, wanted: str) -> Any | None:
        """Return the next message that has the key `wanted`; None if the sweep stops first."""
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
        """Take what has come, after a short wait for it; an agent that is silent for too long is lost."""
        came = self._read()
        self.came.extend(came)
        now = time.monotonic()
        if came:
            self.heard, self.patience = now, SECONDS_SILENT
        elif now - self.heard > self.patience:
            raise AgentLostError(self._why(f"has not said a word for {self.patience:g} s"))

    def _read(self) -> list[dict[str, Any]]:
        """Return the messages of the lines that have come, after a short wait for one."""
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
        """Return the message; {} where the agent has not begun: a shell may greet before, which goes into the log."""
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
        """Return the message on what happened, with the end of what it printed."""
        try:
            printed = self.log.read_bytes()[self.log_start :].decode(errors="replace").strip().splitlines()
        except OSError:
            printed = []
        told = f" Its log, {self.log.name}, ends with: {printed[-1]}" if printed else ""
        return f"The agent {self.place.name} {what}.{told}"

    def end(self) -> None:
        """See that the agent is gone, with all that it started."""
        end_process(self.process)
        assert self.process.stdout is not None
        self.process.stdout.close()


def end_process(process: subprocess.Popen) -> None:
    """End an agent: by the end of its input, else by force, with the processes that it started."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it is gone already
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(SECONDS_END)
    with contextlib.suppress(ProcessLookupError):  # a trial that was halted would stay where its agent has ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(SECONDS_KILLED)


def _is_ready(file: int, event: int) -> bool:
    """Return whether a pipe can be read, or written, after a short wait for it."""
    poll = select.poll()
    poll.register(file, event)
    return bool(poll.poll(1000 * SECONDS_LOOK))
