"""Processes of a Dask cluster that are killed or halted in the middle of a training.

Each seed starts a cluster, 10 to 30 s: `pytest tests/cluster/test_dask_faults.py --faults 100` runs ten of each.
"""

import json
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest

pytest.importorskip("distributed")

from tests.support import dask_process
from tests.support import shared_training as support
from tests.support.clocks import SECONDS, ended, until
from tests.support.processes import is_gone
from workbench.cluster import dask_hosts, team
from workbench.cluster.dask_hosts import Hosts
from workbench.cluster.team import Team
from workbench.cluster.trainer import Job
from workbench.cluster.training import train
from workbench.kvstore import StoreError

SIGNALS = ("SIGSTOP", "SIGKILL")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Who is silent is soon lost: where it was only slow, what follows is the same."""
    monkeypatch.setattr(dask_hosts, "SECONDS_ANSWER", 3.0)
    monkeypatch.setattr(dask_hosts, "SECONDS_REMOVE", 1.0)
    monkeypatch.setattr(team, "SECONDS_REASON", 0.1)


@pytest.mark.faults(0, 10)
def test_a_training_on_dask_goes_on_without_who_is_lost_or_says_that_the_scheduler_is(tmp_path, fault_seed):
    """A worker is left out; without a scheduler the training ends within its time, and goes on on another cluster."""
    drawn = random.Random(fault_seed)
    victim, how = ("worker", "scheduler")[fault_seed % 2], SIGNALS[(fault_seed // 2 + 1) % 2]
    folders = tmp_path / "alone", tmp_path / "run"
    support.on_threads(support.configuration(), 2, 2, folder=str(folders[0]))
    folders[1].mkdir()
    with (
        dask_process.started("scheduler") as (address, scheduler),
        dask_process.started("worker", address) as (one, _),
        dask_process.started("worker", address) as (_, worker),
        Hosts(address, tmp_path / "hosts", seconds_silent=6.0) as hosts,
    ):
        hosts.client.wait_for_workers(2, timeout=SECONDS)
        pid = {"worker": worker.pid, "scheduler": scheduler.pid}[victim]
        strike = {"trainer": drawn.randrange(2), "at": drawn.randint(4, 22), "is_after": drawn.random() < 0.5}
        (folders[1] / "strike").write_text(json.dumps({**strike, "how": how, "pid": pid}))
        answer, results = trained(hosts, folders[1])
        if victim == "worker":
            assert answer["losses"] == 1
            assert hosts.addresses() == [one]
            assert results[[*map(list, results)].index(["lost", "from"])]["lost"].startswith(("The worker tcp", "tcp"))
    if not isinstance(answer, dict):  # messages go from worker to worker: a halted scheduler may be missed too late
        assert (victim, type(answer)) == ("scheduler", StoreError), answer
        assert "Start it and its workers again" in str(answer)
        with Hosts("local:2", tmp_path / "others") as hosts:
            answer, _ = trained(hosts, folders[1])
    assert support.support.same_bits(support.saved_state(folders[1]), support.saved_state(folders[0]))


@pytest.mark.faults(0, 20)
def test_without_its_starter_no_process_stays_and_the_same_training_goes_on(tmp_path, fault_seed):
    """Killed at a step; halted for a while it goes on by itself."""
    drawn, how = random.Random(fault_seed), SIGNALS[fault_seed % 2]
    folders = tmp_path / "alone", tmp_path / "run"
    support.on_threads(support.configuration(), 2, 2, folder=str(folders[0]))
    settings = {**support.SETTINGS, "epochs": 2}
    options = {"where": "local:2", "settings": settings, "trainers": 2, "steps_saved": 1 + fault_seed % 3}
    command, pipe = [sys.executable, "-m", "workbench.cluster.training"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as starter:
        print(json.dumps({**options, "folder": str(folders[1])}), file=starter.stdin, flush=True)
        at = drawn.randint(1, 8)
        lines = (json.loads(line) for line in starter.stdout)
        next(line for line in lines if line.get("step") == at or "done" in line)
        children = psutil.Process(starter.pid).children()
        starter.send_signal(getattr(signal, how))
        if how == "SIGSTOP":
            time.sleep(2)
            starter.send_signal(signal.SIGCONT)
            assert "done" in [*lines][-1]
    until(lambda: all(is_gone(child.pid) for child in children))
    assert len(children) == 2
    assert train(**options, folder=folders[1])["step"] == 12
    assert support.support.same_bits(support.saved_state(folders[1]), support.saved_state(folders[0]))


def trained(hosts: Hosts, folder) -> tuple[object, list[dict]]:
    """The answer of a training or its error, and what it told; one that hangs fails."""
    messages = list[dict]()
    job = Job(support.configuration().model_dump(mode="json"), 2, str(folder), steps_saved=3, threads=1)
    made = Team(hosts, job, None, messages.append, "tests.support.shared_training:struck")
    return ended(made.run), messages
