"""A scheduler of the user: who leaves it is lost and left out, and one that is silent holds nobody for ever."""

import asyncio

import pytest

from tests.support.clocks import SECONDS, until

distributed = pytest.importorskip("distributed")

from workbench.cluster import dask_hosts  # noqa: E402 - after the skip
from workbench.cluster.dask_hosts import Hosts  # noqa: E402
from workbench.kvstore import StoreError  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    """Two workers on loopback, in this process."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    with distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as made:
        yield made


def test_a_worker_that_leaves_is_lost_at_once_and_left_out(cluster, tmp_path):
    """It is no more among the workers of the scheduler, so that nobody would ask whether it is silent."""
    with Hosts(cluster.scheduler_address, tmp_path, seconds_silent=2 * SECONDS) as hosts:
        stays, leaves = hosts.addresses()
        run, placed = hosts.begin([stays, leaves], shards=2, trainers=1)
        placed.result(SECONDS)
        assert hosts.lost() == []
        (worker,) = [worker for worker in cluster.workers.values() if worker.address == leaves]
        cluster.sync(worker.close)
        (lost,) = until(hosts.lost)
        assert lost == (leaves, f"The worker {leaves} has left the cluster.")
        hosts.end([leaves])
        hosts.remove(run)
        assert hosts.addresses() == [stays]


def test_a_scheduler_that_is_silent_ends_the_training_with_words(cluster, tmp_path, monkeypatch):
    """It is halted, or its machine is gone: no call to it may wait for ever."""

    async def never() -> None:
        await asyncio.sleep(2 * SECONDS)

    with Hosts(cluster.scheduler_address, tmp_path, seconds_silent=0.1) as hosts:
        monkeypatch.setattr(hosts, "_members", never)
        monkeypatch.setattr(dask_hosts, "SECONDS_ANSWER", 0.1)
        with pytest.raises(StoreError, match=r"has not answered for 0\.1 s\. Start it and its workers again"):
            hosts.addresses()
        with pytest.raises(StoreError, match="the same training then goes on from its newest checkpoint"):
            until(lambda: hosts.lost() and None)


def test_a_scheduler_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_hosts, "SECONDS_JOIN", 0.5)
    with pytest.raises(StoreError, match=r"The scheduler tcp://127\.0\.0\.1:9 is not reached"):
        Hosts("tcp://127.0.0.1:9", tmp_path)


def test_a_cluster_on_this_machine_runs_nothing_for_who_lacks_its_certificate(tmp_path):
    """Any user of the machine reaches a port on loopback, and a scheduler runs what its clients send."""
    with Hosts("local:1", tmp_path) as hosts:
        address = hosts.cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        assert hosts.own[0].address.startswith("tls://127.0.0.1:")
        for stranger in (address, address.replace("tls", "tcp")):
            with pytest.raises((OSError, TypeError)):
                distributed.Client(stranger, timeout=2, set_as_default=False)
        assert (tmp_path / "tls" / "key.pem").stat().st_mode & 0o77 == 0
