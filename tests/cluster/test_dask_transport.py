"""The installed version of `distributed` carries messages as it is asked to: by handlers, as bytes, within the time."""

import asyncio
import threading

import numpy as np
import pytest

from tests.support import shards as support
from tests.support.clocks import SECONDS

distributed = pytest.importorskip("distributed")

from workbench.cluster import Message, Shard, ShardedStore, dask_transport  # noqa: E402 - after the skip
from workbench.cluster.dask_transport import DaskTransport, Run, place, remove  # noqa: E402
from workbench.optimizers import Updater  # noqa: E402

OF = {"name": "adam", "lazy": "exact", "learning_rate": 0.05, "decay": 0.01, "clip_global_norm": 1e9}


@pytest.fixture(scope="module")
def client():
    """Two workers on loopback, in this process."""
    options = {"n_workers": 2, "threads_per_worker": 2, "processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def train(run: Run, trainer: int, pushed: list) -> ShardedStore:
    store = support.filled(ShardedStore(DaskTransport(run), trainer), OF)
    for own in pushed:
        store.pull_into({"small": np.zeros(2)}, {"small": None})
        store.push_all(own[trainer])
    store.pull("small")
    return store


def test_trainers_on_threads_get_what_one_process_gets_bit_for_bit(client):
    pushed = support.pushes(4, 2, dyadic=True)
    run = place(client, shards=3, trainers=2)
    assert sorted(set(run.addresses)) == sorted(client.nthreads())
    stores = {}
    support.on_threads(lambda number: stores.update({number: train(run, number, pushed)}), 2)
    alone = support.local(OF)
    for own in pushed:
        alone.pull_into({"small": np.zeros(2)}, {"small": None})
        alone.push_all({key: [one[key] for one in own] for key in support.SHAPES})
    alone.catch_up()
    stores[0].catch_up()
    assert support.same_bits(alone.state_dict(), stores[1].state_dict())
    remove(client, run)
    with pytest.raises(ValueError, match="has no shard 0 of this run"):
        stores[0].pull("small")


def test_a_trainer_is_a_task_of_the_cluster(client):
    run = place(client, shards=2, trainers=1)

    def step(run) -> float:
        from workbench.cluster import ShardedStore
        from workbench.cluster.dask_transport import DaskTransport

        store = ShardedStore(DaskTransport(run))
        store.init("w", np.zeros(4, np.float32))
        store.push("w", np.float32([1, 2, 3, 4]))
        return float(store.pull("w").sum())

    assert client.submit(step, run, pure=False).result(timeout=SECONDS) == 10
    remove(client, run)


def test_what_a_shard_waits_for_is_told_when_the_time_is_up(client, monkeypatch):
    monkeypatch.setattr(dask_transport, "SECONDS_GRACE", SECONDS)
    run = place(client, shards=1, trainers=2)
    store = support.filled(ShardedStore(DaskTransport(run)))
    store.push_all(support.pushes(1, 1)[0][0])
    store.channel.seconds = 0.3
    with pytest.raises(ValueError, match=r"within 0\.3 s\. shard 0: step 1 waits for the push of trainer 1"):
        store.pull("small")
    remove(client, run)


def test_who_waits_is_woken_by_messages_that_came_before_another_woke_it(monkeypatch):
    """Two messages are on their way when a third one waits: the later of both wakes it, too, each time it waits."""
    shard, answers = Shard(0, 1), []
    served = dask_transport.Served(shard)
    ready = threading.Event()
    state = {"done": 0}

    def handle(message):
        if message.kind == "waits":
            return Message("done") if state["done"] == 3 else Message("wait", {"text": "for three"})
        if message.kind == "last":
            ready.wait(SECONDS)
        state["done"] += 1
        return Message("done")

    monkeypatch.setattr(shard, "handle", handle)

    async def play() -> None:
        asked = [
            asyncio.ensure_future(served.answer(Message(kind).frames(), SECONDS)) for kind in ("one", "waits", "two")
        ]
        await asyncio.gather(asked[0], asked[2])
        await asyncio.sleep(0.01)
        ready.set()
        await served.answer(Message("last").frames(), SECONDS)
        answers.append(await asyncio.wait_for(asked[1], SECONDS))

    asyncio.run(play())
    assert Message.from_frames(answers[0]).kind == "done"


def test_nothing_of_a_message_is_pickled(client):
    """What Dask would have to pickle, it refuses to carry when asked for msgpack alone."""
    from distributed.protocol import dumps, loads

    message = {"op": "x", "frames": Message("push", {"step": 1}, [np.ones(3)]).frames(), "seconds": 1.0}
    frames = dumps(message, serializers=["msgpack"], on_error="raise")
    assert list(loads(frames, deserialize=False)["frames"]) == message["frames"]


def test_a_worker_that_is_gone_is_told_within_the_time(client, monkeypatch):
    monkeypatch.setattr(dask_transport, "SECONDS_GRACE", 0.1)
    run = place(client, shards=1, trainers=1)
    lost = Run(run.name, ["tcp://127.0.0.1:9"])
    with pytest.raises(ValueError, match=r"shard 0: the worker tcp://127\.0\.0\.1:9 does not answer where this"):
        ShardedStore(DaskTransport(lost), seconds=0.3)
    with pytest.raises(ValueError, match=r"There are no workers tcp://127\.0\.0\.1:9; there is: tcp://127"):
        place(client, shards=1, trainers=1, workers=lost.addresses)
    remove(client, run)


def test_an_updater_on_the_shards_is_that_of_its_settings(client):
    run = place(client, shards=2, trainers=1)
    store = ShardedStore(DaskTransport(run))
    store.init("w", np.ones((4, 2)))
    store.set_optimizer(Updater("sgd", learning_rate=0.5))
    store.push("w", np.ones((4, 2)))
    np.testing.assert_array_equal(store.pull("w"), np.full((4, 2), 0.5))
    remove(client, run)
