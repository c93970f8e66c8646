"""Steps of two ranks over a network with a delay and a bandwidth: two network namespaces of this machine.

Each rank has a namespace and a core of its own. The namespaces are joined by a pair of virtual devices, or, for a
delay, by a process that passes packets on after it; bandwidth is limited by `tc` (tbf, both ways). Ranks talk by TCP,
as ranks on two machines do. The network is measured first, by collective calls without anything else; from this, and
from steps of one process, a step is predicted and compared with what it takes. It needs root, `ip` and `tc`.
"""

import contextlib
import ctypes
import fcntl
import heapq
import itertools
import json
import os
import select
import shutil
import signal
import stat
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.cluster.cost import Network
from workbench.cluster.trainer import Job
from workbench.cluster.training import command_of

NAMESPACES, DEVICE, ADDRESSES = ("workbench-0", "workbench-1"), "bench0", ("10.201.77.1", "10.201.77.2")
MTU = 65_000
BURST = 1 << 17
"""Bytes that pass at once: some packets."""
BY_TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": DEVICE}
"""Environment of ranks that share no memory, as those of two machines."""
SMALL, LARGE, CALLS = 8, 1 << 21, 15
"""Bytes of the messages by which a network is measured, and how many."""


@dataclass(frozen=True)
class Link:
    """A network between two namespaces: `gbits` 10^9 bits a second each way (0: no limit), `delay` seconds one way."""

    gbits: float = 0.0
    delay: float = 0.0

    @property
    def name(self) -> str:
        """Return "1 Gbit/s, 0.5 ms"."""
        speed = f"{self.gbits:g} Gbit/s" if self.gbits else "no limit"
        return f"{speed}, {1e3 * self.delay:g} ms" if self.delay else speed


LINKS = (Link(), Link(10.0), Link(1.0), Link(10.0, 0.5e-3), Link(1.0, 0.5e-3))


def why_not() -> str:
    """Return why this process makes no network namespaces, as a sentence; "" if it can."""
    if missing := [name for name in ("ip", "tc", "taskset") if shutil.which(name) is None]:
        return f"Network namespaces need {missing[0]}, which is not installed."
    if os.geteuid():
        return "Network namespaces need root; this process is another user's."
    if len(os.sched_getaffinity(0)) < len(NAMESPACES):
        return "Two ranks need a core each; this process may use one."
    return ""


def _run(*command: str, within: str | None = None) -> None:
    """Run a command, in a namespace if given; RuntimeError with what it printed if it fails."""
    inside = ("ip", "netns", "exec", within) if within else ()
    done = subprocess.run([*inside, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


@contextlib.contextmanager
def linked(link: Link, folder: Path) -> Iterator[list[str]]:
    """Yield the launcher of two ranks in namespaces with this link between them, which are removed in the end.

    A script that starts ranks is written to `folder`. RuntimeError if the system makes no such network.
    """
    relay: subprocess.Popen | None = None
    _remove()
    try:
        for name in NAMESPACES:
            _run("ip", "netns", "add", name)
        if link.delay:
            relay = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.cluster_networks", str(link.delay)], stdout=subprocess.PIPE
            )
            assert relay.stdout is not None
            if relay.stdout.readline() != b"ready\n":
                raise RuntimeError("The devices of a link with a delay cannot be made: is there /dev/net/tun?")
        else:
            ends = "type", "veth", "peer", "name", DEVICE, "netns", NAMESPACES[1]
            _run("ip", "link", "add", DEVICE, "netns", NAMESPACES[0], *ends)
        for name, address in zip(NAMESPACES, ADDRESSES, strict=True):
            _run("ip", "link", "set", "lo", "up", within=name)
            _run("ip", "address", "add", f"{address}/24", "dev", DEVICE, within=name)
            _run("ip", "link", "set", DEVICE, "mtu", str(MTU), "up", within=name)
            if link.gbits:
                burst = max(BURST, int(link.gbits * 1e9 / 8 / 1000))
                limits = "rate", f"{link.gbits}gbit", "burst", str(burst), "latency", "200ms"
                _run("tc", "qdisc", "add", "dev", DEVICE, "root", "tbf", *limits, within=name)
        yield _launcher(folder)
    finally:
        if relay is not None:
            relay.send_signal(signal.SIGTERM)
            relay.wait()
        _remove()


def _remove() -> None:
    """Remove the namespaces, and with them their devices, if they are there."""
    for name in NAMESPACES:
        with contextlib.suppress(RuntimeError):
            _run("ip", "netns", "delete", name)


def _launcher(folder: Path) -> list[str]:
    """Return what starts two ranks, each in its namespace on its core; the script for the second is in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "start-in-namespace"
    script.write_text(
        # arguments are those of ssh: options, the host, the command as one line
        "#!/bin/sh\n"
        'while [ "${1#-}" != "$1" ]; do shift; done\nshift\n'
        f'exec ip netns exec {NAMESPACES[1]} taskset -c 1 /bin/sh -c "$*"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    mpiexec = command_of(Job({}, 2))[0]
    inside = ["ip", "netns", "exec", NAMESPACES[0], "taskset", "-c", "0", "env"]
    inside += [f"{name}={value}" for name, value in BY_TCP.items()]
    starts = ["-launcher", "ssh", "-launcher-exec", str(script), "-localhost", ADDRESSES[0]]
    return [*inside, mpiexec, *starts, "-hosts", ",".join(ADDRESSES), "-n", "2"]


def measure_network(launcher: Sequence[str]) -> Network:
    """Measure by two ranks what an empty call takes, and bytes a second, those sent and those received together."""
    command = [*launcher, sys.executable, "-m", "benchmarks.cluster", "rank", '"network"']
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Network(**json.loads(done.stdout))


def network_of(communicator: Any) -> dict[str, float]:
    """Return {"latency", "bytes_second"} as a rank measures it: calls that send each other rank `SMALL` or `LARGE`."""
    ranks, seconds = communicator.size, {}
    for size in (SMALL, LARGE):
        sent, received, times = np.zeros(size * ranks, np.uint8), np.zeros(size * ranks, np.uint8), list[float]()
        counts = [size] * ranks
        for _ in range(CALLS):
            communicator.Barrier()
            start = time.perf_counter()
            communicator.Alltoallv([sent, counts], [received, counts])
            times.append(time.perf_counter() - start)
        seconds[size] = max(communicator.allgather(statistics.median(times)))
    moved = 2 * (ranks - 1) * LARGE
    return {"latency": seconds[SMALL], "bytes_second": moved / max(seconds[LARGE] - seconds[SMALL], 1e-9)}


# A link with a delay: what the kernel sends to a device of one namespace is given to that of the other after a time.

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000


def _tun(namespace: str) -> int:
    """Return the file descriptor of a new device in a namespace, which this thread enters; OSError if refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}") as place:
        if libc.setns(place.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"The namespace {namespace} cannot be entered.")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    return device


def relay(delay: float) -> None:
    """Pass packets between the devices of both namespaces, each `delay` seconds after it came, until it is ended."""
    devices = [_tun(name) for name in NAMESPACES]
    other = dict(zip(devices, reversed(devices), strict=True))
    print("ready", flush=True)
    waiting, numbers = list[tuple[float, int, int, bytes]](), itertools.count()
    while True:
        wait = max(waiting[0][0] - time.perf_counter(), 0.0) if waiting else None
        for device in select.select(devices, [], [], wait)[0]:
            with contextlib.suppress(BlockingIOError):
                while True:
                    packet = os.read(device, MTU + 100)
                    heapq.heappush(waiting, (time.perf_counter() + delay, next(numbers), other[device], packet))
        while waiting and waiting[0][0] <= time.perf_counter():
            *_, device, packet = heapq.heappop(waiting)
            with contextlib.suppress(OSError):  # as a network drops what finds no place
                os.write(device, packet)


if __name__ == "__main__":
    relay(float(sys.argv[1]))
