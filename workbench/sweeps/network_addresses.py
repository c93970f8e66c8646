"""The address under which other machines reach this one: the named one, or that of the route to them.

A machine has an address for each network that it is in, and other machines know one of them, if any. Towards each host
the system chooses the interface by its routes, and with it the address; that one is taken. Names that `ssh` knows are
read as `ssh -G` says, nodes of SLURM as `scontrol show hostnames` lists them.
"""

import ipaddress
import socket
import subprocess
from collections.abc import Iterator, Sequence

import psutil

from workbench.sweeps.agent_commands import parse_agents, split_host
from workbench.sweeps.spec import SpecError

ELSEWHERE = "203.0.113.1"
"""An address that no machine has (RFC 5737): the way to it is the way to all that no route is known of."""
LOOPBACK = "127.0.0.1"
ADVICE = "Where they are in several networks, name the address or interface here that the others know: --address."
SECONDS_ASK = 10.0
FAMILIES = (socket.AF_INET, socket.AF_INET6)


def local_address(where: str, named: str = "") -> str:
    """Return this machine's address for the processes of WHERE: the `named` one, else that of the route to them."""
    kind, is_there = where.partition(":")[0], "://" in where
    if not is_there:
        parse_agents(where)
    if named and (is_there or kind == "local"):
        raise SpecError(f"{where!r} needs no address of this machine; leave {named!r} out.")
    if is_there or kind == "local":
        return "" if is_there else LOOPBACK
    return named_local_address(named) if named else address_towards(hosts_of(where))


def named_local_address(named: str) -> str:
    """Return the local address that `named` gives as an address, an interface or a host name of this machine."""
    known = addresses_by_interface()
    if named in known:
        return known[named][0]
    meant = [address for _, address in _resolve_host(named)]
    for address in (address for each in known.values() for address in each):
        if address in meant:
            return address
    raise SpecError(f"{named!r} is no address and no interface of this machine; it has: {format_interfaces()}.")


def format_interfaces() -> str:
    """Return the interfaces of this machine with their addresses, in words."""
    return ", ".join(f"{name} {' '.join(found)}" for name, found in addresses_by_interface().items())


def addresses_by_interface() -> dict[str, list[str]]:
    """Return the addresses by interface, those of version 4 first; interfaces without any are left out."""
    found = {
        name: [one.address for family in FAMILIES for one in each if one.family == family and "%" not in one.address]
        for name, each in psutil.net_if_addrs().items()
    }
    return {name: each for name, each in found.items() if each}


def hosts_of(where: str) -> list[str]:
    """Return the machines of WHERE by the names that the network knows, as far as ssh and SLURM tell."""
    kind, _, rest = where.partition(":")
    if kind == "slurm":
        return _read_lines("scontrol", "show", "hostnames")
    return [_host_of(split_host(host)[0]) for host in rest.split(",")]


def _host_of(name: str) -> str:
    """Return the host that ssh goes to for that name; the name itself where it does not say."""
    words = (line.split(maxsplit=1) for line in _read_lines("ssh", "-G", name))
    return next((word[1] for word in words if len(word) == 2 and word[0] == "hostname"), name.rpartition("@")[2])


def _read_lines(*command: str) -> list[str]:
    """Return the lines that a program prints; empty if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_ASK, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [] if done.returncode else done.stdout.splitlines()


def address_towards(names: Sequence[str]) -> str:
    """Return the address of this machine on the way to the first of these hosts that is another machine, if one is.

    Of a host that is this machine, the way is loopback, by which others do not come.

    >>> address_towards(["localhost"])
    '127.0.0.1'
    """
    found = [address for name in names if (address := _address_towards_host(name))]
    apart = (address for address in found if not ipaddress.ip_address(address).is_loopback)
    return next(apart, None) or next(iter(found), None) or _address_towards_host(ELSEWHERE) or LOOPBACK


def _address_towards_host(name: str) -> str:
    """Return the address that the system would send from; "" if it knows no host of that name or no way to it."""
    for family, address in _resolve_host(name):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as way:
                way.connect((address, 9))  # of such a socket nothing is sent
                return str(way.getsockname()[0])
        except OSError:
            continue
    return ""


def _resolve_host(name: str) -> Iterator[tuple[socket.AddressFamily, str]]:
    """Yield (family, address) of a host name; none if it cannot be resolved."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):  # no host has that name
        return
    for family, _, _, _, address in found:
        if family in FAMILIES:
            yield family, str(address[0])
