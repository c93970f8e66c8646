"""Checkpoints of shards: a file each and a manifest at last; any number of shards goes on, whoever was lost."""

import errno
import json

import pytest

from tests.support import shards as support
from workbench import atomic_files
from workbench.cluster import ShardedStore, TimedOutError
from workbench.kvstore import StoreError

OF = {"name": "adam", "lazy": "exact", "learning_rate": 0.05, "decay": 0.01}


def saved(folder, shards=3, spread="contiguous", steps=3) -> tuple[list, list, dict]:
    """What is pushed, the stores that were saved, and their whole state."""
    pushed = support.pushes(2 * steps, 2)
    stores = support.sharded(support.network(shards, 2), 2, OF, spread=spread)
    support.trained(stores, pushed[:steps])
    for store in stores:
        store.save_shards(folder, {"position": [1, 2]})
    return pushed, stores, stores[0].state_dict()


def opened(folder, shards: int, spread: str = "contiguous") -> list[ShardedStore]:
    transport = support.network(shards, 2)
    stores = [ShardedStore(transport, trainer, spread=spread) for trainer in range(2)]
    assert [store.load_shards(folder) for store in stores] == [{"position": [1, 2]}] * 2
    return stores


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 3), (3, 4)])
@pytest.mark.parametrize("spreads", [("contiguous", "contiguous"), ("hashed", "hashed"), ("hashed", "contiguous")])
def test_any_number_of_shards_goes_on_with_the_same_bits(tmp_path, before, after, spreads):
    pushed, stores, state = saved(tmp_path, before, spreads[0])
    others = opened(tmp_path, after, spreads[1])
    assert support.same_bits(state, others[1].state_dict())
    ends = [support.trained(trainers, pushed[3:], seed=7) for trainers in (stores, others)]
    assert all(support.same_bits(one, other) for one, other in zip(*ends, strict=True))
    assert support.same_bits(stores[0].state_dict(), others[0].state_dict())


def test_a_trainer_that_joins_after_another_has_loaded_goes_on_with_it(tmp_path):
    saved(tmp_path)
    transport = support.network(2, 2)
    stores = []
    for trainer in range(2):
        stores.append(ShardedStore(transport, trainer))
        stores[-1].load_shards(tmp_path, generation=1)
    for store in stores:
        store.push_all(support.pushes(1, 1)[0][0])
    assert stores[1].pull("small").shape == (2,)


def test_shards_next_to_its_own_alone_are_read_by_a_shard_of_the_same_spread(tmp_path, monkeypatch):
    saved(tmp_path, 4)
    read = []
    load = support.formats.load
    monkeypatch.setattr(support.formats, "load", lambda path: (read.append(path.name[-5]), load(path))[1])
    opened(tmp_path, 2)
    assert read == ["0", "1", "2", "2", "3"] or read == ["0", "1", "2", "3"]


def test_a_lost_shard_takes_all_back_to_the_checkpoint_and_training_ends_with_the_same_bits(tmp_path):
    pushed, _, _ = saved(tmp_path)
    transport = support.network(3, 2)
    stores = [ShardedStore(transport, trainer) for trainer in range(2)]
    for store in stores:
        store.load_shards(tmp_path)
    support.trained(stores, pushed[3:5])
    transport.held[1] = support.network(3, 2).held[1]  # a process that was started anew
    stores[0].channel.seconds = 0.2
    with pytest.raises(TimedOutError, match="shard 1: generation 1 has not begun here"):
        stores[0].pull("dense")
    for store in stores:
        store.channel.seconds = 60.0
        store.load_shards(tmp_path)
    undisturbed = opened(tmp_path, 3)
    ends = [support.trained(trainers, pushed[3:], seed=7) for trainers in (stores, undisturbed)]
    assert all(support.same_bits(one, other) for one, other in zip(*ends, strict=True))


def test_a_newer_checkpoint_takes_the_place_of_the_older_and_half_a_one_does_not(tmp_path):
    _, stores, before = saved(tmp_path)
    (tmp_path / "step-9-abc.shard-0.npz").write_bytes(b"a shard that was killed before there was a manifest")
    assert support.same_bits(before, opened(tmp_path, 2)[0].state_dict())
    support.trained(stores, support.pushes(1, 2, seed=9))
    stores[0].save_shards(tmp_path, {"position": [1, 2]})
    assert len(list(tmp_path.iterdir())) == 1 + 3
    assert support.same_bits(stores[1].state_dict(), opened(tmp_path, 2)[0].state_dict())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "holds no checkpoint: there is no manifest.json, which is written last"),
        ({"kind": "x"}, "is no manifest of version 1"),
        ({"shards": 0}, "names 0 shards"),
        ({"prefix": "../../etc/x"}, "files '../../etc/x'; there are none"),
        ({"spread": "melted"}, "lists values that are none: spread is 'melted'"),
        ({"values": [["wide", [11, 2], "object_"]]}, "lists values that are none"),
        ({"values": [["wide", [-1], "float32"]]}, "lists values that are none"),
        ({"more": 1}, "is no manifest: .*more"),
        ({"values": [["other", [4], "float64"]]}, "is of another store: of 'other' it has nothing"),
        ({"values": [["wide", [11, 3], "float64"]]}, r"it has float64 \(3, 2\); manifest.json says float64 \(3, 3\)"),
        ({"prefix": "step-1-none"}, "step-1-none.shard-0.npz is part of the checkpoint and is not there"),
    ],
)
def test_what_is_no_checkpoint_is_refused_and_the_store_can_load_another(tmp_path, change, message):
    _, _, state = saved(tmp_path / "right")
    saved(tmp_path / "wrong")
    path = tmp_path / "wrong" / "manifest.json"
    if change is None:
        path.unlink()
    else:
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    store = ShardedStore(support.network(2, 1))
    with pytest.raises((StoreError, ValueError), match=message):
        store.load_shards(tmp_path / "wrong")
    store.load_shards(tmp_path / "right")
    assert support.same_bits(state, store.state_dict())


def test_a_full_disk_is_told_and_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    pushed, stores, before = saved(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    support.trained(stores, pushed[3:4])
    save = support.formats.save

    def full(path, state) -> None:
        if ".shard-1." in path.name:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        save(path, state)

    with monkeypatch.context() as patched:
        patched.setattr(support.formats, "save", full)
        with pytest.raises(StoreError, match=r"Step 4 could not be saved in .*No space left.*The one before stands"):
            stores[0].save_shards(tmp_path)
        patched.setattr(support.formats, "save", save)
        patched.setattr(atomic_files, "write", lambda *_, **__: full(tmp_path / "x.shard-1.npz", {}))
        with pytest.raises(StoreError, match="No space left"):
            stores[0].save_shards(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names
    assert support.same_bits(before, opened(tmp_path, 2)[0].state_dict())
    stores[0].save_shards(tmp_path, {"position": [1, 2]})  # when there is room again
    assert support.same_bits(stores[0].state_dict(), opened(tmp_path, 2)[0].state_dict())


@pytest.mark.parametrize("cut", [0, 200, -30])
def test_a_damaged_file_of_a_shard_is_named(tmp_path, cut):
    saved(tmp_path)
    file = next(tmp_path.glob("*.shard-1.npz"))
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(StoreError, match=f"{file.name} is no file of arrays, or is damaged"):
        ShardedStore(support.network(2, 1)).load_shards(tmp_path)


def test_a_checkpoint_of_another_model_or_optimizer_is_refused_and_the_store_stays_as_it_was(tmp_path):
    _, _, state = saved(tmp_path)
    (store,) = support.sharded(support.network(2, 1), 1, {"name": "sgd"})
    own = store.state_dict()
    with pytest.raises(StoreError, match="is of the optimizer adam; this one is sgd"):
        store.load_shards(tmp_path)
    store = ShardedStore(support.network(2, 1))
    store.init("wide", support.start()["narrow"])
    with pytest.raises(StoreError, match=r"another model: 'wide' is float64 \(11, 2\) there and float64 \(9,\) here"):
        store.load_shards(tmp_path)
    store.init("more", support.start()["small"])
    assert store.pull("wide").shape == (9,)
    (store,) = support.sharded(support.network(2, 1), 1, OF)
    store.load_shards(tmp_path)
    assert support.same_bits(state, store.state_dict())
    assert not support.same_bits(own, state)
