"""Reasons why a process ended: out of memory, killed from outside, or its own failure; inferred from evidence.

The system kills by the same signal as anybody else does. That memory was the reason is shown by the kernel's count of
such kills, which rose while the process lived, or by how little memory was left when it was last looked at.
"""

import re
import signal
from pathlib import Path

import psutil

from workbench.measure import memory

OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
VMSTAT = Path("/proc/vmstat")
SHARE_SCARCE = 0.05
"""Share of the memory there is below which programs that guard it, such as systemd-oomd, begin to kill."""


def memory_kills() -> int:
    """Return how many processes the system has killed for lack of memory in this control group or on this machine."""
    for path in _counters():
        try:
            count = re.search(r"^oom_kill (\d+)$", path.read_text(), re.M)
        except OSError:
            continue
        if count:
            return int(count[1])
    return 0


def _counters() -> list[Path]:
    """Return the files that may hold the count, the nearest first.

    Control groups of version 2, of version 1, the machine.
    """
    try:
        lines = [line.split(":", 2) for line in OWN_GROUPS.read_text().splitlines()]
    except OSError:
        lines = []
    unified = [own.strip("/") for _, kinds, own in lines if kinds == ""]
    older = [own.strip("/") for _, kinds, own in lines if "memory" in kinds.split(",")]
    return [
        *(GROUPS / own / "memory.events" for own in (*unified, "")),
        *(GROUPS / "memory" / own / "memory.oom_control" for own in (*older, "")),
        VMSTAT,
    ]


class MemoryWatch:
    """Observations of a process's memory, and of the machine's, from its start to its end."""

    def __init__(self, pid: int) -> None:
        self.kills = memory_kills()
        self.bytes_scarce = SHARE_SCARCE * memory.total_bytes()
        self.bytes_left = memory.available_bytes()
        try:
            self.process: psutil.Process | None = psutil.Process(pid)
        except psutil.NoSuchProcess:  # it has ended already
            self.process = None

    def owned(self) -> int:
        """Return the bytes that the process owns now, 0 if it has ended.

        What is left to the machine is looked at, too.
        """
        self.bytes_left = memory.available_bytes()
        try:
            return memory.owned_bytes(self.process.pid) if self.process else 0
        except psutil.NoSuchProcess:
            return 0

    def kill(self) -> None:
        """End the process, also a stopped one."""
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal; never another that has its number by now."""
        try:
            if self.process:
                self.process.send_signal(number)
        except psutil.NoSuchProcess:
            pass

    def shortage(self) -> str:
        """Evidence that memory had run out, as a sentence; "" if there is none."""
        if memory_kills() > self.kills:
            return "The system killed a process because memory ran out."
        if self.bytes_left < self.bytes_scarce:
            return f"The machine had {self.bytes_left} bytes of memory left."
        return ""


def row_of(exit_code: int, watch: MemoryWatch) -> dict[str, str]:
    """Return status and reason of a process that ended by itself or was killed, and had not sent all it should.

    `memory` is never tried again and therefore needs evidence; what is `failed` is.
    """
    if exit_code >= 0:
        return {"status": "failed", "reason": f"The process ended with status {exit_code} before it had answered."}
    name = _signal_name(-exit_code)
    if name != "SIGKILL":
        return {"status": "failed", "reason": f"The process ended by {name}."}
    if shortage := watch.shortage():
        return {"status": "memory", "reason": f"The process was killed by SIGKILL. {shortage}"}
    return {"status": "failed", "reason": "The process was killed from outside by SIGKILL."}


def _signal_name(number: int) -> str:
    """Return the name of a signal number."""
    try:
        return signal.Signals(number).name
    except ValueError:  # the real-time signals have no names
        return f"signal {number}"
