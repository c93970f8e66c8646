"""Where agents are started, as the commands that start them: `local:N`, `ssh:HOST,HOST`, `slurm:N`, a Dask scheduler.

An agent is a program that reads JSON from its input and writes JSON to its output (`workbench.cluster.agent`). So a
machine needs no port that is open and no service: ssh carries both, encrypted, for whoever may log in; srun carries
them within an allocation of SLURM, by the rules of that cluster; `workbench.cluster.dask_agent` carries them through
the scheduler of a Dask cluster that there is.
"""

import json
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.sweep.spec import SpecError

AGENT = (sys.executable, "-m", "workbench.cluster.agent")
"""What runs on a machine; on others the same Python must be at the same path, as on a file system that they share."""

DASK = (sys.executable, "-m", "workbench.cluster.dask_agent")
"""What runs here for an agent on a machine of a Dask cluster."""

SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
SLURM = ("srun", "--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none", "--unbuffered")
"""A step of a node that no other step shares, with all its cores and memory: with `--exclusive` it would have one."""
HOST = re.compile(r"[A-Za-z0-9_][\w.@:-]*")
MOST = 256
SECONDS_SCHEDULER = 120.0
"""How long to wait for what a scheduler says; its library is loaded from a cold disk first."""


@dataclass(frozen=True)
class Place:
    """The name of an agent and the command that starts it."""

    name: str
    command: Sequence[str]

    def __str__(self) -> str:
        return f"{self.name}: {shlex.join(self.command)}"


def agents(where: str) -> list[Place]:
    """The agents of a sweep: those that WHERE stands for, or on the machines of the scheduler that it is.

    A scheduler is asked which there are. `SpecError` where there is none.
    """
    if where.partition("://")[0] not in ("tcp", "tls"):
        return places(where)
    return [Place(worker.partition("://")[2], (*DASK, where, worker)) for worker in _machines(where)]


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
    known = "local:N, ssh:HOST,HOST, slurm:N, tls://HOST:PORT of a Dask scheduler"
    raise SpecError(f"{where!r} is no place to run agents; there is: {known}.")


def _machines(scheduler: str) -> list[str]:
    """The addresses of the workers that stand for a machine each, as a process that loads Dask finds them."""
    try:
        done = subprocess.run([*DASK, scheduler], capture_output=True, text=True, timeout=SECONDS_SCHEDULER)
    except subprocess.TimeoutExpired:
        raise SpecError(f"The scheduler {scheduler} has not answered within {SECONDS_SCHEDULER:g} s.") from None
    try:
        said = json.loads(done.stdout)
    except ValueError:
        printed = done.stderr.strip().splitlines() or ["nothing"]
        raise SpecError(f"Nothing could be asked of {scheduler}: {printed[-1]}") from None
    if "refused" in said:
        raise SpecError(said["refused"])
    return said["machines"]


def job_script(name: str, nodes: int, command: Sequence[str], seconds: float) -> str:
    """The job for `sbatch` in which `command` runs a sweep on so many nodes, by agents as of `slurm:N`.

    It has whole nodes for twice as long as the sweep may take, and is asked to stop two minutes before its end; what
    is not done then is done by submitting it again.

    >>> print(job_script("demo", 2, ["workbench", "sweep", "a.toml"], 60))
    #!/bin/bash
    #SBATCH --job-name=demo
    #SBATCH --nodes=2
    #SBATCH --exclusive
    #SBATCH --time=12
    #SBATCH --signal=B:INT@120
    exec workbench sweep a.toml
    """
    minutes = 10 + math.ceil(2 * seconds / 60)
    options = (f"job-name={name}", f"nodes={nodes}", "exclusive", f"time={minutes}", "signal=B:INT@120")
    return "\n".join(["#!/bin/bash", *(f"#SBATCH --{option}" for option in options), f"exec {shlex.join(command)}"])
