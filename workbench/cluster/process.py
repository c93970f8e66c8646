"""A process of a cluster that trains, started here or through ssh or srun; it says where it is reached, then serves."""

import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple, final

import psutil

from workbench.kvstore import StoreError
from workbench.measure import blas
from workbench.sweeps import network_addresses
from workbench.sweeps.agent_commands import AgentCommand

LINES_TOLD = 12
"""Lines from the end of a log that a message has."""


class Lost(NamedTuple):
    """A process that is gone or silent: its address, and what is known of it."""

    address: str
    why: str


@final
class Process:
    """One process that was started here; its log is a file."""

    def __init__(self, place: AgentCommand, log: Path) -> None:
        self.place, self.log, self.address = place, log, ""
        pipe, environment = subprocess.PIPE, blas.measuring_environment()
        with open(log, "ab") as file:
            self.log_start = file.tell()
            try:
                self.process = subprocess.Popen(
                    list(place.command), stdin=pipe, stdout=pipe, stderr=file, start_new_session=True, env=environment
                )
            except OSError as error:
                raise StoreError(f"{place.name} cannot be started: {error}.") from None

    def join(self, seconds: float) -> None:
        """Wait until it has said its address; a shell may greet before, where it is started through one.

        `StoreError` if it says that it does not reach the scheduler, and where it says nothing.
        """
        assert self.process.stdout is not None
        said, end = b"", time.monotonic() + seconds
        with selectors.DefaultSelector() as waits:
            waits.register(self.process.stdout, selectors.EVENT_READ)
            while not self.address and (left := end - time.monotonic()) > 0 and waits.select(left):
                if not (read := os.read(self.process.stdout.fileno(), 2**12)):
                    break
                said += read
                lines = said.split(b"\n")[:-1]
                self.address = next(filter(None, (_said(line, "address") for line in lines)), "")
                if why := next(filter(None, (_said(line, "unreached") for line in lines)), ""):
                    self.kill()
                    raise StoreError(f"{self.place.name} does not reach {why} {network_addresses.ADVICE}")
        if not self.address:
            self.kill()
            told = f" It said {said[-80:]!r}." if said else ""
            raise StoreError(f"{self.place.name} did not join the cluster.{told} {self.tail()}")

    def tail(self) -> str:
        """Return the last lines that it printed, for a message."""
        printed = self.log.read_bytes()[self.log_start :].decode(errors="replace")
        lines = printed.strip().splitlines()[-LINES_TOLD:]
        return f"Its log {self.log} ends with:\n" + "\n".join(lines) if lines else f"Its log {self.log} is empty."

    def why_ended(self) -> str:
        """Return the reason why it ended, or that it was stopped; "" if it runs."""
        status = self.process.poll()
        if status is None:
            return f"{self.place.name} was stopped by a signal. {self.tail()}" if self._is_stopped() else ""
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{self.place.name} {how}. {self.tail()}"

    def _is_stopped(self) -> bool:
        """Return whether the process is stopped by a signal."""
        try:
            return psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def kill(self) -> None:
        """See that it is gone, also when it is stopped."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _said(line: bytes, what: str) -> str:
    """Return the text that a line of JSON has of that; "" if it has none."""
    try:
        return str(json.loads(line)[what])
    except (ValueError, LookupError, TypeError):
        return ""
