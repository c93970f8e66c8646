"""Commands that start agents in a place: `local:N`, `ssh:HOST,HOST`, `slurm:N`, a Dask scheduler.

An agent is a program that reads JSON from its input and writes JSON to its output (`workbench.cluster.agent`). So a
machine needs no port that is open and no service: ssh carries both, encrypted, for whoever may log in; srun carries
them within an allocation of SLURM, by the rules of that cluster; `workbench.cluster.dask_agent` carries them through
the scheduler of a Dask cluster that there is.
"""

import ipaddress
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psutil

from workbench.sweeps.spec import SpecError

AGENT = (sys.executable, "-m", "workbench.cluster.agent")
"""What runs on a machine; on others the same Python must be at the same path, as on a file system that they share."""

OPTIONS = ("BatchMode=yes", "ConnectTimeout=20", "ServerAliveInterval=5", "ServerAliveCountMax=3")
SSH = ("ssh", *(word for option in OPTIONS for word in ("-o", option)))
CARRIED = ("PYTHONPATH", "WORKBENCH_CACHE")
"""Variables that ssh leaves behind and that say where code and data are, at the same paths on all machines."""
SLURM = ("srun", "--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none", "--unbuffered")
"""A step of a node that no other step shares, with all its cores and memory: with `--exclusive` it would have one."""
HOST = re.compile(r"[A-Za-z0-9_][\w.@:-]*")
MOST, MOST_PORT = 256, 2**16 - 1
NODES = "SLURM_JOB_NUM_NODES"
"""The variable in which SLURM says how many nodes the allocation has."""


@dataclass(frozen=True)
class AgentCommand:
    """The name of an agent and the command that starts it."""

    name: str
    command: Sequence[str]

    def __str__(self) -> str:
        """Return "NAME: COMMAND", quoted for a shell."""
        return f"{self.name}: {shlex.join(self.command)}"


def parse_agents(where: str, program: Sequence[str] = AGENT) -> list[AgentCommand]:
    """Return the agents that WHERE ("local:N", "ssh:HOST,HOST" or "slurm:N") describes, with their commands.

    `program` is the command line to run there. Nothing is started. Raises SpecError for any other text.
    """
    kind, _, rest = where.partition(":")
    if kind in ("local", "slurm"):
        before = SLURM if kind == "slurm" else ()
        return [AgentCommand(f"{kind} {number}", (*before, *program)) for number in range(1, _count(where) + 1)]
    if kind == "ssh":
        hosts = rest.split(",")
        if len(set(hosts)) < len(hosts):
            raise SpecError(f"{where!r} names a host twice; a machine has one agent.")
        return [AgentCommand(host, _ssh_command(where, host, program)) for host in hosts]
    known = "local:N, ssh:HOST,HOST, slurm:N, tls://HOST:PORT of a Dask scheduler"
    raise SpecError(f"{where!r} is no place to run agents; there is: {known}.")


def _count(where: str) -> int:
    """Return the number N of "local:N" or "slurm:N"; of "slurm" alone the nodes of the present allocation.

    Raises SpecError if N is missing or not from 1 to `MOST`.
    """
    kind, _, number = where.partition(":")
    number = number or (os.environ.get(NODES, "") if kind == "slurm" else "")
    if not (number.isdecimal() and 1 <= int(number) <= MOST):
        alone = "; within an allocation slurm alone takes all its nodes" if kind == "slurm" else ""
        raise SpecError(f"{where!r} names no number of agents, 1 to {MOST}: {kind}:2{alone}.")
    return int(number)


def _ssh_command(where: str, host: str, program: Sequence[str]) -> tuple[str, ...]:
    """Return the ssh command line that runs `program` on `host` ("name", "me@name" or "name:port").

    Variables of `CARRIED` that are set here are passed on. Raises SpecError, quoting `where`, if `host` is no host.
    """
    name, port = split_host(host)
    is_port = port.isdecimal() and 1 <= int(port) <= MOST_PORT
    if not HOST.fullmatch(name) or (":" in host and not is_port):
        raise SpecError(f"{where!r} has {host!r}, which is no host: ssh:node1,me@node2,node3:2222.")
    given = [f"{variable}={_absolute(os.environ[variable])}" for variable in CARRIED if os.environ.get(variable)]
    carried = ("env", *given) if given else ()
    return (*SSH, *(("-p", port) if name != host else ()), name, shlex.join((*carried, *program)))


def split_host(host: str) -> tuple[str, str]:
    """Return (name, port) of "name" or "name:port", both text; the default port is "22"."""
    name, _, port = host.partition(":") if host.count(":") == 1 else (host, "", "22")
    return name, port


def _absolute(paths: str) -> str:
    """Return a list of paths separated as in PYTHONPATH with each path made absolute."""
    return os.pathsep.join(map(os.path.abspath, paths.split(os.pathsep)))


def require_allocation(where: str) -> None:
    """Raise SpecError if WHERE is "slurm:N" and this process is in no allocation of N nodes or more.

    Without one, srun would itself request parts of nodes, or wait for nodes that never come.
    """
    if where.partition(":")[0] != "slurm":
        return
    wanted, there = _count(where), os.environ.get(NODES, "0")
    if wanted > int(there):
        text = f"this allocation has {there}" if int(there) else "nothing is allocated here"
        raise SpecError(
            f"{where!r} takes {wanted} nodes of an allocation of SLURM, and {text}. Allocate them first: "
            f"salloc --nodes={wanted} --exclusive; or submit the job that --dry-run prints."
        )


# The address under which other machines reach this one: the named one, or that of the route to them.
#
# A machine has an address for each network that it is in, and other machines know one of them, if any. Towards each
# host the system chooses the interface by its routes, and with it the address; that one is taken. Names that `ssh`
# knows are read as `ssh -G` says, nodes of SLURM as `scontrol show hostnames` lists them.

ELSEWHERE = "203.0.113.1"
"""An address that no machine has (RFC 5737): the way to it is the way to all that no route is known of."""
LOOPBACK = "127.0.0.1"
ADVICE = "Where they are in several networks, name the address or interface here that the others know: --address."
SECONDS_ASK = 10.0
FAMILIES = (socket.AF_INET, socket.AF_INET6)


def local_address(where: str, named: str = "") -> str:
    """Return the address of this machine for the processes of WHERE: `named` if given, else that of the route.

    "" for a scheduler's address, 127.0.0.1 for "local:N". Raises SpecError if WHERE is invalid, `named` is not an
    address here, or is given where none is needed.
    """
    kind, is_there = where.partition(":")[0], "://" in where
    if not is_there:
        parse_agents(where)
    if named and (is_there or kind == "local"):
        raise SpecError(f"{where!r} needs no address of this machine; leave {named!r} out.")
    if is_there or kind == "local":
        return "" if is_there else LOOPBACK
    return named_local_address(named) if named else address_towards(hosts_of(where))


def named_local_address(named: str) -> str:
    """Return the local IP address that `named` stands for: an address, an interface or a host name of this machine.

    Raises SpecError, listing the interfaces, if it is none of these.
    """
    known = addresses_by_interface()
    if named in known:
        return known[named][0]
    meant = [address for _, address in _resolve_host(named)]
    for address in (address for each in known.values() for address in each):
        if address in meant:
            return address
    raise SpecError(f"{named!r} is no address and no interface of this machine; it has: {format_interfaces()}.")


def format_interfaces() -> str:
    """Return the interfaces of this machine as text, "lo 127.0.0.1 ::1, eth0 10.0.0.5"."""
    return ", ".join(f"{name} {' '.join(found)}" for name, found in addresses_by_interface().items())


def addresses_by_interface() -> dict[str, list[str]]:
    """Return {interface: its IP addresses}, those of version 4 first; interfaces without any are left out."""
    found = {
        name: [one.address for family in FAMILIES for one in each if one.family == family and "%" not in one.address]
        for name, each in psutil.net_if_addrs().items()
    }
    return {name: each for name, each in found.items() if each}


def hosts_of(where: str) -> list[str]:
    """Return the host names of the machines of WHERE, "slurm" from scontrol, others resolved by ssh's configuration.

    Empty if scontrol is missing or fails.
    """
    kind, _, rest = where.partition(":")
    if kind == "slurm":
        return _read_lines("scontrol", "show", "hostnames")
    return [_host_of(split_host(host)[0]) for host in rest.split(",")]


def _host_of(name: str) -> str:
    """Return the host that ssh connects to for `name` by its configuration; `name` without "user@" if unknown."""
    words = (line.split(maxsplit=1) for line in _read_lines("ssh", "-G", name))
    return next((word[1] for word in words if len(word) == 2 and word[0] == "hostname"), name.rpartition("@")[2])


def _read_lines(*command: str) -> list[str]:
    """Return the lines that a command prints; [] if it is missing, fails or takes longer than `SECONDS_ASK`."""
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, text=True, timeout=SECONDS_ASK, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [] if done.returncode else done.stdout.splitlines()


def address_towards(names: Sequence[str]) -> str:
    """Return the address of this machine on the route to the first of these hosts that is another machine.

    If all are this machine or unknown, the loopback address or that of the default route.

    >>> address_towards(["localhost"])
    '127.0.0.1'
    """
    found = [address for name in names if (address := _address_towards_host(name))]
    apart = (address for address in found if not ipaddress.ip_address(address).is_loopback)
    return next(apart, None) or next(iter(found), None) or _address_towards_host(ELSEWHERE) or LOOPBACK


def _address_towards_host(name: str) -> str:
    """Return the source address of the route to the host `name`; "" if it is unknown or unreachable. Sends nothing."""
    for family, address in _resolve_host(name):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as way:
                way.connect((address, 9))  # of such a socket nothing is sent
                return str(way.getsockname()[0])
        except OSError:
            continue
    return ""


def _resolve_host(name: str) -> Iterator[tuple[socket.AddressFamily, str]]:
    """Yield (address family, IP address) of a host name; nothing if it cannot be resolved."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):  # no host has that name
        return
    for family, _, _, _, address in found:
        if family in FAMILIES:
            yield family, str(address[0])
