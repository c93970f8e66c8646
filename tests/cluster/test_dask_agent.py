"""Agents on the workers of a Dask cluster: lines travel whole, and whatever ends takes all of the agent with it."""

import io
import json
import os
import sys
import threading

import pytest

distributed = pytest.importorskip("distributed")

from tests.cluster.test_agents import COMPARISONS, agent, run, whole  # noqa: E402 - after the skip
from tests.support.clocks import SECONDS, until  # noqa: E402
from workbench.cluster import dask_agent  # noqa: E402
from workbench.cluster.dask_agent import Carrier, machines  # noqa: E402
from workbench.sweeps import agent_commands  # noqa: E402
from workbench.sweeps.spec import SpecError  # noqa: E402


@pytest.fixture(scope="module")
def client():
    """A worker on loopback, in this process, that stands for its machine."""
    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, resources={"machine": 1}, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as made,
    ):
        yield made


def carried(client, lines: list[str], command: list[str], monkeypatch) -> tuple[str, str, str]:
    """What the agent `command` says to these lines, what it prints, and why it ended."""
    monkeypatch.setattr(dask_agent, "AGENT", (sys.executable, "-S", "-c", *command))
    (worker,) = machines(client)
    carrier = Carrier(client, worker)
    sender = threading.Thread(target=carrier.send, args=(lines,), daemon=True)
    sender.start()
    out, log = io.StringIO(), io.StringIO()
    why = carrier.receive(out, log)
    sender.join(SECONDS)
    return out.getvalue(), log.getvalue(), why


ECHO = """
import json, os, sys
print(os.getpid(), file=sys.stderr)
for line in sys.stdin:
    print(line.strip()[::-1], flush=True)
print(json.dumps(dict(os.environ)))
"""


def test_lines_come_back_in_order_and_the_agent_ends_with_them(client, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    lines = [f"line {number} \u00e9\n" for number in range(30)]
    said, printed, why = carried(client, lines, [ECHO], monkeypatch)
    *back, environment = said.splitlines()
    assert back == [line.strip()[::-1] for line in lines]
    assert why == ""
    assert not os.path.exists(f"/proc/{printed.strip()}")
    mended = json.loads(json.loads(environment)["WORKBENCH_MENDED"])
    assert mended["MALLOC_TRIM_THRESHOLD_"] == "65536"
    assert mended["dask profile"] == "every 10 ms"
    assert "MALLOC_TRIM_THRESHOLD_" not in json.loads(environment)


def test_what_a_dead_agent_printed_is_heard(client, monkeypatch):
    dies = "import os, sys; print('it burns', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"
    said, printed, why = carried(client, ["more\n"], [dies], monkeypatch)
    assert (said, printed, why) == ("", "it burns\n", "")


def test_an_agent_that_nobody_talks_to_is_ended(client, monkeypatch):
    """Where the sweep's process is killed, nobody says that the agent is to end."""
    feed = dask_agent.feed

    def impatient(*given) -> None:  # once it has begun, which may take longer
        monkeypatch.setattr(dask_agent, "SECONDS_SILENT", 0.5)
        feed(*given)

    monkeypatch.setattr(dask_agent, "feed", impatient)
    monkeypatch.setattr(dask_agent, "SECONDS_END", SECONDS)
    monkeypatch.setattr(dask_agent, "AGENT", (sys.executable, "-S", "-c", ECHO))
    carrier = Carrier(client, *machines(client))
    assert carrier.task.result(SECONDS) is None
    assert carrier.said.qsize() == 4, "that it began, what it printed at its begin and at its end, and that it ended"


@pytest.mark.parametrize("is_stopped", [False, True])
def test_an_agent_whose_worker_another_sweep_has_says_so_and_is_not_lost(client, monkeypatch, is_stopped):
    """The second of two sweeps on one scheduler waits for the first; a stop is not kept waiting for it."""
    monkeypatch.setattr(dask_agent, "SECONDS_PING", 0.02)
    monkeypatch.setattr(dask_agent, "AGENT", (sys.executable, "-S", "-c", ECHO))
    (worker,), over = machines(client), distributed.Event("the first is over", client)
    first = client.submit(lambda: distributed.Event("the first is over").wait(SECONDS), resources={"machine": 1})
    carrier, out, ended = Carrier(client, worker), io.StringIO(), []
    receiver = threading.Thread(target=lambda: ended.append(carrier.receive(out, io.StringIO())), daemon=True)
    receiver.start()
    until(lambda: json.dumps({"beat": dask_agent.WAITING}) in out.getvalue())
    if not is_stopped:
        over.set()
        assert first.result(SECONDS)
        until(lambda: carrier.has_begun)
    carrier.send(["line\n"])
    receiver.join(SECONDS)
    over.set()
    assert ended == [""]
    assert ("enil" in out.getvalue()) != is_stopped
    first.result(SECONDS)
    over.clear()
    carrier.task.cancel()


def test_a_task_that_dask_runs_again_does_nothing(client):
    (worker,) = machines(client)
    name = "workbench-agent-again"
    distributed.Queue(f"{name}-given", client).put({"line": "it is at work already"})
    task = client.submit(dask_agent.serve, name, workers=[worker], resources={"machine": 1}, pure=False)
    assert task.result(SECONDS) is None


def test_a_sweep_on_a_scheduler_is_measured_by_its_machines(client, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_agent, "AGENT", agent("a").command)
    (place,) = agent_commands.list_agents(client.scheduler.address)
    state, rows = run(tmp_path, place)
    assert (state.state, state.message) == ("finished", "")
    assert all(whole(rows, comparison) == {"a"} for comparison in COMPARISONS)


def test_a_cluster_that_others_can_read_is_refused_with_the_commands_that_encrypt_it(monkeypatch):
    monkeypatch.delenv("WORKBENCH_CERTIFICATES", raising=False)
    said = dask_agent.find_machines("tcp://10.0.0.7:8786")["refused"]
    assert "openssl req -x509" in said
    assert "dask scheduler --tls-ca-file" in said
    said = dask_agent.find_machines("tls://10.0.0.7:8786")["refused"]
    assert "set WORKBENCH_CERTIFICATES to the folder of cert.pem and key.pem" in said


def test_a_cluster_without_machines_says_how_a_worker_stands_for_one(monkeypatch):
    class Empty:
        scheduler = type("Scheduler", (), {"address": "tcp://127.0.0.1:8786"})

        def scheduler_info(self, n_workers: int) -> dict:
            return {"workers": {"tcp://127.0.0.1:1": {"resources": {}}}}

    with pytest.raises(dask_agent.NoMachinesError, match=r"dask worker tcp://127.0.0.1:8786 .* --resources machine=1"):
        machines(Empty())


def test_what_a_scheduler_refuses_is_an_error_of_the_spec(monkeypatch):
    monkeypatch.setattr(agent_commands, "DASK", (sys.executable, "-S", "-c", """print('{"refused": "not you"}')"""))
    with pytest.raises(SpecError, match="not you"):
        agent_commands.list_agents("tcp://127.0.0.1:1")
    monkeypatch.setattr(agent_commands, "DASK", (sys.executable, "-S", "-c", "raise ImportError('no Dask')"))
    with pytest.raises(SpecError, match=r"Nothing could be asked of tcp://\S+: ImportError: no Dask"):
        agent_commands.list_agents("tcp://127.0.0.1:1")
