"""Where agents are started: `local:N`, `ssh:HOST,HOST` or `slurm:N`, as the commands that start them.

An agent is a program that reads JSON from its input and writes JSON to its output (`workbench.cluster.agent`). So a
machine needs no port that is open and no service: ssh carries both, encrypted, for whoever may log in; srun carries
them within an allocation of SLURM, by the rules of that cluster.
"""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.sweep.spec import SpecError

AGENT = (sys.executable, "-m", "workbench.cluster.agent")
"""What runs on a machine; on others the same Python must be at the same path, as on a file system that they share."""

SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
SLURM = ("srun", "--nodes=1", "--ntasks=1", "--exclusive", "--unbuffered")
HOST = re.compile(r"[A-Za-z0-9_][\w.@:-]*")
MOST = 256


@dataclass(frozen=True)
class Place:
    """The name of an agent and the command that starts it."""

    name: str
    command: Sequence[str]

    def __str__(self) -> str:
        return f"{self.name}: {shlex.join(self.command)}"


def places(where: str, program: Sequence[str] = AGENT) -> list[Place]:
    """The agents that WHERE stands for, or other programs there; `SpecError` where it stands for none.

    >>> [place.name for place in places("local:2")], places("ssh:n1,me@n2")[1].command[-2]
    (['local 1', 'local 2'], 'me@n2')
    """
    kind, _, rest = where.partition(":")
    if kind in ("local", "slurm"):
        if not (rest.isdecimal() and 1 <= int(rest) <= MOST):
            raise SpecError(f"{where!r} names no number of agents, 1 to {MOST}: {kind}:2.")
        before = SLURM if kind == "slurm" else ()
        return [Place(f"{kind} {number}", (*before, *program)) for number in range(1, int(rest) + 1)]
    if kind == "ssh":
        hosts = rest.split(",")
        if wrong := [host for host in hosts if not HOST.fullmatch(host)]:
            raise SpecError(f"{where!r} has {wrong[0]!r}, which is no host: ssh:node1,me@node2.")
        if len(set(hosts)) < len(hosts):
            raise SpecError(f"{where!r} names a host twice; a machine has one agent.")
        return [Place(host, (*SSH, host, shlex.join(program))) for host in hosts]
    raise SpecError(f"{where!r} is no place to run agents; there is: local:N, ssh:HOST,HOST, slurm:N.")
