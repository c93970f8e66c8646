"""An agent as its supervisor sees it: a process that is asked in lines of JSON and must not fall silent."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

from workbench.measure import blas
from workbench.sweep.places import Place

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
    """One agent, started; what it prints besides goes to the file `log`."""

    def __init__(self, place: Place, log: Path) -> None:
        self.place, self.log, self.doing = place, log, "starting"
        with open(log, "ab") as file:
            self.process = subprocess.Popen(
                list(place.command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
                env=blas.own_environment(),
            )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.waits = selectors.DefaultSelector()
        self.waits.register(self.process.stdout, selectors.EVENT_READ)
        self.part, self.heard, self.patience = bytearray(), time.monotonic(), SECONDS_START
        self.came: deque[dict[str, Any]] = deque()

    def ask(self, message: Mapping[str, Any]) -> None:
        """Send a line."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise AgentLostError(self._why("does not listen")) from None

    def hear(self, wanted: str, is_stopping: Callable[[], bool]) -> Any | None:
        """The next message that has `wanted`; None where the sweep stops first. Beats only tell what is at work."""
        while not is_stopping():
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
        """The messages of the lines that have come, after a short wait for one."""
        assert self.process.stdout is not None
        if not self.waits.select(SECONDS_LOOK):
            return []
        read = os.read(self.process.stdout.fileno(), 2**16)
        if not read:
            raise AgentLostError(self._why("ended"))
        *lines, self.part = (self.part + read).split(b"\n")
        if len(self.part) > BYTES_LINE:
            raise AgentLostError(self._why("writes a line without end"))
        return [self._message(bytes(line)) for line in lines]

    def _message(self, line: bytes) -> dict[str, Any]:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise AgentLostError(self._why(f"said {line[:80]!r}, which is no message"))
        return message

    def _why(self, what: str) -> str:
        """What happened, with the end of what it printed."""
        try:
            printed = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            printed = []
        return f"The agent {self.place.name} {what}." + (f" Its log ends with: {printed[-1]}" if printed else "")

    def end(self) -> None:
        """See that the agent is gone: by the end of its input, else by force, with the processes that it started."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):  # it is gone already
            self.process.stdin.close()
        try:
            self.process.wait(SECONDS_END)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(SECONDS_KILLED)
        self.waits.close()
        self.process.stdout.close()
