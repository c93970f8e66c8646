"""At which address others reach this machine: on machines in several networks a guess is wrong for some of them."""

import pytest

from workbench.sweeps import agent_commands
from workbench.sweeps.spec import SpecError

OWN = {"lo": ["127.0.0.1", "::1"], "eth0": ["10.0.0.5"], "ib0": ["192.168.7.5"]}
WAYS = {"alias": "127.0.0.1", "10.0.0.9": "10.0.0.5", "fabric": "192.168.7.5", agent_commands.ELSEWHERE: "10.0.0.5"}


@pytest.fixture(autouse=True)
def _networks(monkeypatch):
    """A machine in two networks, which knows the way to some hosts."""
    monkeypatch.setattr(agent_commands, "addresses_by_interface", lambda: OWN)
    monkeypatch.setattr(agent_commands, "_address_towards_host", lambda name: WAYS.get(name, ""))
    monkeypatch.setattr(agent_commands, "_read_lines", lambda *command: [])


@pytest.mark.parametrize(
    ("where", "address"),
    [
        ("ssh:fabric", "192.168.7.5"),
        ("ssh:me@10.0.0.9:2222,fabric", "10.0.0.5"),
        ("ssh:alias,fabric", "192.168.7.5"),
        ("ssh:alias", "127.0.0.1"),
        ("ssh:nobody,fabric", "192.168.7.5"),
        ("ssh:nobody", "10.0.0.5"),
        ("slurm:2", "10.0.0.5"),
        ("local:2", "127.0.0.1"),
        ("tls://node1:8786", ""),
    ],
)
def test_the_address_is_on_the_way_to_the_hosts_and_no_loopback_where_one_is_elsewhere(where, address):
    assert agent_commands.local_address(where) == address


def test_hosts_are_those_that_ssh_goes_to_and_nodes_those_that_slurm_lists(monkeypatch):
    said = {"ssh -G me@n1": ["user me", "hostname 10.0.0.9", "port 22"], "scontrol show hostnames": ["a", "b"]}
    monkeypatch.setattr(agent_commands, "_read_lines", lambda *command: said.get(" ".join(command), []))
    assert agent_commands.hosts_of("ssh:me@n1:2222,me@n2") == ["10.0.0.9", "n2"]
    assert agent_commands.hosts_of("slurm:2") == ["a", "b"]


@pytest.mark.parametrize("named", ["ib0", "192.168.7.5"])
def test_an_address_or_an_interface_can_be_named(named):
    assert agent_commands.local_address("ssh:10.0.0.9", named) == "192.168.7.5"


@pytest.mark.parametrize(
    ("where", "named", "words"),
    [
        ("ssh:n1", "10.0.0.6", "'10.0.0.6' is no address and no interface of this machine; it has: lo 127.0.0.1 ::1, "),
        ("ssh:n1", "eth7", "eth0 10.0.0.5, ib0 192.168.7.5."),
        ("local:2", "ib0", "'local:2' needs no address of this machine; leave 'ib0' out."),
        ("tls://h:1", "ib0", "'tls://h:1' needs no address"),
        ("ssh:-oProxyCommand=x", "", "which is no host"),
    ],
)
def test_what_is_no_address_here_is_refused_with_those_that_are(where, named, words):
    with pytest.raises(SpecError) as error:
        agent_commands.local_address(where, named)
    assert words in str(error.value)


def test_the_system_is_asked_for_the_way(monkeypatch):
    monkeypatch.undo()
    assert agent_commands.address_towards(["127.0.0.1"]) == "127.0.0.1"
    assert agent_commands.address_towards(["no.such.host.invalid", "localhost"]) in ("127.0.0.1", "::1")
    assert all(
        agent_commands.named_local_address(each[0]) == each[0]
        for each in agent_commands.addresses_by_interface().values()
    )
