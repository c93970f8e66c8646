"""What does not fit a sharded store is refused in words, to everyone whom it concerns, and nothing has changed."""

import numpy as np
import pytest

from tests.support import shards as support
from workbench import formats
from workbench.cluster import LocalTransport, Message, Partition, RolledBackError, Shard, ShardedStore, TimedOutError
from workbench.cluster.security import OpenClusterError, check_encrypted, is_local
from workbench.formats import RowSparse
from workbench.kvstore import LocalStore, StoreError
from workbench.optimizers import Updater

OF = {"name": "sgd", "learning_rate": 0.5}


def store(trainers: int = 1, **options) -> ShardedStore:
    return support.sharded(support.network(2, trainers), trainers, OF, **options)[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.init("wide", np.zeros(2)), "The key 'wide' is set already"),
        (lambda s: s.init(3, np.zeros(2)), "The key 3 came and 'wide' is set"),
        (lambda s: s.init("none", np.zeros((0, 2))), r"'none' has the shape \(0, 2\); shards share 1 row or more"),
        (lambda s: s.push("v", np.zeros(2)), r"Unknown key 'v'.*Expected one of: wide.*Call init\('v', value\) first"),
        (lambda s: s.push("small", []), "Nothing was pushed to 'small'"),
        (lambda s: s.push("small", np.zeros(3)), r"float64 \(3,\) was pushed to 'small', which is float64 \(2,\)"),
        (lambda s: s.pull_into({}, {"v": None}), "Unknown key 'v'"),
        (lambda s: s.row_sparse_pull("wide", [11]), "row_sparse_pull of 'wide'"),
        (lambda s: s.row_sparse_pull("number", [0]), r"has no rows; call pull\('number'\)"),
        (lambda s: s.set_optimizer("sgd"), "An optimizer is an optimizers.Updater; a str came"),
        (lambda s: s.load_state_dict({"w": np.zeros(2)}), "names begin with 'value:' or 'optimizer:'"),
    ],
)
def test_what_does_not_fit_is_refused_in_words_and_training_goes_on(call, message):
    held, alone = store(), support.local(OF)
    with pytest.raises(StoreError, match=message):
        call(held)
    pushed = support.pushes(2, 1)
    for one in (held, alone):
        support.trained([one], pushed)
    assert support.same_bits(held.state_dict(), alone.state_dict())


def test_options_that_the_shards_do_not_know_are_not_passed_over():
    held = store()
    held.updater.options["learning_rate"] = 0.1
    with pytest.raises(StoreError, match="options have changed, which the shards do not know; call set_optimizer"):
        held.push("small", np.ones(2))
    held.set_optimizer(held.updater)
    before = held.pull("small")
    held.push("small", np.ones(2))
    np.testing.assert_allclose(held.pull("small"), before - 0.1)


def test_a_step_that_one_shard_cannot_do_is_told_to_all_trainers():
    of = {**OF, "clip_global_norm": 1.0}
    one, other = support.sharded(support.network(2, 2), 2, of)
    one.push("small", np.array([np.inf, 0]))
    other.push("small", np.zeros(2))
    for trainer in (one, other):
        with pytest.raises(StoreError, match=r"cannot do step 1: The gradients of \['small'\] have no finite norm"):
            trainer.pull("small")


def test_a_trainer_of_a_generation_that_is_over_is_told():
    one, other = support.sharded(support.network(2, 2), 2, OF)
    one.load_state_dict(one.state_dict())
    with pytest.raises(RolledBackError, match="generation 0 is over; this is generation 1"):
        other.pull("small")


def test_a_trainer_that_is_there_twice_is_found_out():
    transport = support.network(1, 1)
    one, again = support.sharded(transport, 1, OF)[0], ShardedStore(transport)
    one.push("small", np.ones(2))
    again.held = one.held
    with pytest.raises(StoreError, match="Two processes may be the same trainer"):
        again.pull("small")


def test_what_nobody_answers_ends_when_the_time_is_up():
    class Silent(support.Faulty):
        FATES = ("lost",)

    with pytest.raises(TimedOutError, match=r"hello of trainer 0 was not answered within 0\.05 s\. shard 0: no answer"):
        ShardedStore(Silent(support.network(1, 1), 0), seconds=0.05)


def test_shards_in_the_wrong_order_and_trainers_too_many_are_refused():
    with pytest.raises(StoreError, match=r"Shard 0 of 2 says that it is another: .*'number': 1"):
        ShardedStore(LocalTransport([Shard(1, 2), Shard(0, 2)]))
    with pytest.raises(StoreError, match="There is no trainer 2; the shards are for 2, from 0"):
        ShardedStore(support.network(2, 2), 2)
    with pytest.raises(ValueError, match="spread is 'random'; it is one of contiguous, hashed"):
        ShardedStore(support.network(2, 2), spread="random").init("w", np.zeros(2))


ASKED = {"generation": 0, "trainer": 0, "number": 1, "step": 0, "names": [], "current": True}


@pytest.mark.parametrize(
    ("kind", "about", "arrays", "expected"),
    [
        ("melt", {}, [], "Unknown message 'melt'. Expected one of: hello, load, init"),
        ("pull", {"trainer": 1}, [], "trainer is 1; it is a whole number from 0 to 0"),
        ("pull", {"step": -1}, [], "step is -1; it is a whole number from 0"),
        ("pull", {"names": 7}, [], "The message 'pull' is malformed"),
        ("pull", {"names": [["w", "rows"]]}, [], "argument 2 is shorter"),
        ("pull", {"names": [["w", "rows"]]}, [np.array([9], np.uint32)], "row_sparse_pull of 'w'"),
        ("init", {"names": [["v", "row_sparse"]], "shapes": [[2]]}, [np.zeros(1)], "which is too few"),
        ("optimizer", {"settings": {"name": "melt"}}, [], "Unknown optimizer 'melt'"),
        ("push", {"step": 1, "names": [["w", "dense"]]}, [np.zeros((3, 3))], "was pushed to 'w', which is"),
    ],
)
def test_a_shard_takes_no_message_for_granted(kind, about, arrays, expected):
    shard = Shard(0, 1)
    first = {**ASKED, "names": [["w", "dense"]], "shapes": [[4]]}
    assert shard.handle(Message("init", first, [np.arange(4.0)])).kind == "done"
    answer = shard.handle(Message(kind, {**ASKED, "number": 2, **about}, arrays))
    assert answer.kind == "error"
    assert expected in answer.about["text"]
    pulled = shard.handle(Message("pull", {**ASKED, "names": [["w", "all"]]}))
    np.testing.assert_array_equal(pulled.arrays[0], np.arange(4.0))


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([b"\x80\x04"], "the first frame is not a workbench header"),
        ([b'["pull",{},[["object",[1]]]]', b"12345678"], "the first frame is not a workbench header"),
        ([b'["pull",{},[]]', b"12345678"], "its 2 frames are not the arrays that its header lists"),
        ([b'["pull",{},[["float32",[-1]]]]', b"12345678"], "not the arrays that its header lists"),
        ([b'["pull",{},[["float32",[3]]]]', b"12345678"], r"8 bytes for an array float32 \(3,\)"),
    ],
)
def test_bytes_that_are_no_message_are_refused(frames, message):
    with pytest.raises(StoreError, match=message):
        Message.from_frames(frames)


@pytest.mark.parametrize("spread", ["contiguous", "hashed"])
@pytest.mark.parametrize(("rows", "shards"), [(1, 1), (1, 4), (3, 4), (10, 3), (97, 4), (1000, 7)])
def test_every_row_is_on_one_shard_and_found_again(rows, shards, spread):
    partition = Partition(rows, shards, spread)
    owned = np.concatenate([partition.owned(shard) for shard in range(shards)])
    assert sorted(owned.tolist()) == list(range(rows))
    numbers = np.arange(0, rows, 2)
    for shard, (at, there) in enumerate(partition.cut(numbers)):
        np.testing.assert_array_equal(partition.numbers(shard, there), numbers[at])
        assert (np.diff(there) > 0).all()
        assert there.size == 0 or 0 <= there[0] <= there[-1] < partition.count(shard)


def test_hashed_rows_spread_the_frequent_ids_and_contiguous_ones_do_not():
    frequent = np.arange(1000)
    counts = {
        spread: [part.rows.size for part in Partition(10**9 + 7, 4, spread).cut(frequent)]
        for spread in ("contiguous", "hashed")
    }
    assert counts["contiguous"] == [1000, 0, 0, 0]
    assert max(counts["hashed"]) - min(counts["hashed"]) < 10


def test_open_clusters_are_refused_with_the_commands_that_close_them():
    assert is_local("tcp://[::1]:8786")
    assert not is_local("tcp://node7:8786")
    check_encrypted(["tcp://127.0.0.1:1", "tls://10.0.0.1:2", "inproc://10.0.0.1/3"])
    message = r"tcp://10\.0\.0\.1:2 can be reached.*\n  openssl req .*\n  dask scheduler"
    with pytest.raises(OpenClusterError, match=message):
        check_encrypted(["tls://10.0.0.1:2", "tcp://10.0.0.1:2"])


def test_a_local_store_takes_the_state_of_shards():
    held, alone = store(), LocalStore()
    held.push("wide", RowSparse(np.ones((1, 2)), [4], (11, 2)))
    alone.set_optimizer(Updater(**OF))
    alone.load_state_dict(held.state_dict())
    assert formats.to_format(alone.pull("wide"), "dense")[4].tolist() == [-0.5, -0.5]
