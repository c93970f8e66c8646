"""`MpiStore`: the bits of a store in one process, whatever the number of ranks and wherever rows are."""

import itertools

import numpy as np
import pytest

from tests.support.ranks import on_ranks
from workbench import formats
from workbench.cluster.store import MpiStore
from workbench.formats import RowSparse
from workbench.kvstore import LazyRandomRows, LocalStore, StoreError, added
from workbench.optimizers import Updater

ROWS, WIDTH, STEPS = 23, 3, 4
OPTIMIZERS = [
    ("adagrad", {"lazy": "on"}),
    ("adam", {"lazy": "exact"}),
    ("momentum", {"lazy": "off"}),
    ("adam", {"lazy": "on", "clip_global_norm": 0.5}),
]


def first_values() -> dict:
    made = np.random.default_rng(1)
    dense = {"b": made.normal(size=5).astype(np.float32), "one": np.array(0.5, np.float32)}
    table = made.normal(size=(ROWS, WIDTH)).astype(np.float32)
    return {"w": formats.to_format(table, "row_sparse"), "t": table[:, 0].copy(), **dense}


def gradients(step: int, rank: int) -> dict:
    """What a rank pushes at a step: one has no rows of w at the first."""
    made = np.random.default_rng((step, rank))
    rows = np.unique(made.integers(0, ROWS, 0 if (step, rank) == (0, 1) else 9))
    values = made.normal(size=(rows.size, WIDTH)).astype(np.float32)
    dense = {key: made.normal(size=one.shape).astype(np.float32) for key, one in first_values().items() if key != "w"}
    return {"w": RowSparse(values, rows, (ROWS, WIDTH)), **dense}


def read_rows(step: int, rank: int) -> np.ndarray:
    return np.unique(np.random.default_rng((7, step, rank)).integers(0, ROWS, 6))


def steps_of(store, pushed, *ranks: int, steps=range(STEPS)) -> list:
    """Pull what ranks read and push `pushed(step)` at each step; what was pulled."""
    found = []
    for step in steps:
        out = {key: formats.copy(value) for key, value in first_values().items()}
        rows = np.unique(np.concatenate([read_rows(step, rank) for rank in ranks]))
        store.pull_into(out, {"w": rows, "t": None, "b": None, "one": None})
        found.append(out)
        store.push_all(pushed(step))
    return found


def made(communicator=None, optimizer=OPTIMIZERS[0], spread="contiguous"):
    store = LocalStore() if communicator is None else MpiStore(communicator, spread=spread)
    for key, value in first_values().items():
        store.init(key, value)
    name, options = optimizer
    store.set_optimizer(Updater(name, **options))
    return store


def same_state(one: dict, two: dict) -> None:
    assert one.keys() == two.keys()
    for name in one:
        assert formats.to_format(one[name], "dense").tobytes() == formats.to_format(two[name], "dense").tobytes(), name


@pytest.mark.parametrize(("ranks", "spread"), [(1, "contiguous"), (2, "contiguous"), (2, "hashed"), (7, "hashed")])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda one: "-".join(map(str, [one[0], *one[1].values()])))
def test_ranks_pull_and_end_with_the_bits_of_one_process(ranks, spread, optimizer):
    """The one process sums what ranks push in their order."""

    def summed(step: int) -> dict:
        return {key: added([gradients(step, rank)[key] for rank in range(ranks)]) for key in first_values()}

    expected = made(optimizer=optimizer)
    pulled = steps_of(expected, summed, *range(ranks))

    def work(communicator):
        store = made(communicator, optimizer, spread)
        found = steps_of(store, lambda step: gradients(step, communicator.rank), communicator.rank)
        return found, store.state_dict(), store.pull("w"), store.row_sparse_pull("w", [3, 1, 3, 22]), store.pull("one")

    for rank, (found, state, whole, some, one) in enumerate(on_ranks(ranks, work)):
        for step, (mine, theirs) in enumerate(zip(found, pulled, strict=True)):
            same_state(mine, theirs | {"w": theirs["w"].retain(read_rows(step, rank))})
        if "clip_global_norm" not in optimizer[1]:  # whose sum of squares has another order
            same_state(state, expected.state_dict())
        else:
            np.testing.assert_allclose(state['value:"t"'], expected.state_dict()['value:"t"'], rtol=1e-5)
        assert whole.shape == (ROWS, WIDTH)
        assert some.indices.tolist() == [1, 3, 22]
        assert one.shape == ()


@pytest.mark.parametrize("spread", ["contiguous", "hashed"])
def test_rows_are_generated_when_first_used_the_same_for_any_number_of_ranks(spread, tmp_path):
    drawn = LazyRandomRows((10**6, 2), "float32", "normal", 0.1, seed=3, name="w")

    def work(communicator, start=None):
        store = MpiStore(communicator, spread=spread)
        if start is None:
            store.set_optimizer(Updater("sgd", learning_rate=1.0))
            store.init("w", drawn)
        else:
            store.load_shards(start)
        rows = np.array([5, 10**5, 999_999])
        before = store.row_sparse_pull("w", rows)
        gradient = RowSparse(np.ones((1, 2), np.float32), [rows[communicator.rank]], (10**6, 2))
        store.push("w", gradient)
        if start is None:
            store.save_shards(tmp_path)
        return before, store.row_sparse_pull("w", rows), len(getattr(store.part.values.get("w"), "indices", ()))

    found = on_ranks(2, work)
    for before, after, _ in found:
        assert np.array_equal(before.values, drawn.rows(before.indices))
        np.testing.assert_allclose(before.values - after.values, [[1, 1], [1, 1], [0, 0]], rtol=1e-6)
    assert sum(count for *_, count in found) == 3, "no other row is there"
    assert np.array_equal(on_ranks(3, lambda one: work(one, tmp_path))[0][0].values, found[0][1].values)


def test_exactly_the_updates_that_need_all_rows_refuse_generated_ones():
    store = MpiStore(type("One", (), {"rank": 0, "size": 1}))
    store.set_optimizer(Updater("adam", lazy="exact"))
    with pytest.raises(StoreError, match="needs a lazy update"):
        store.init("w", LazyRandomRows((4, 2), "float32", "normal", 0.1, seed=3, name="w"))


@pytest.mark.parametrize(("saved", "loaded"), [(2, 3), (3, 1), (1, 2)])
@pytest.mark.parametrize("spreads", list(itertools.product(["contiguous", "hashed"], repeat=2)))
def test_a_checkpoint_goes_on_with_any_number_of_ranks_and_the_same_bits(tmp_path, saved, loaded, spreads):
    """From step 2 one rank pushes everything."""

    def save(communicator):
        store = made(communicator, OPTIMIZERS[1], spreads[0])
        steps_of(store, lambda step: gradients(step, communicator.rank), communicator.rank, steps=range(2))
        store.save_shards(tmp_path, {"step": 2})
        return store.state_dict()

    def load(communicator):
        store = made(communicator, OPTIMIZERS[1], spreads[1]) if loaded == 3 else None
        store = store or MpiStore(communicator, spread=spreads[1])
        assert store.load_shards(tmp_path) == {"step": 2}
        state = store.state_dict()
        pushed = lambda step: gradients(step, 0) if not communicator.rank else nothing()  # noqa: E731
        steps_of(store, pushed, communicator.rank, steps=[2, 3])
        return state, store.state_dict()

    state = on_ranks(saved, save)[0]
    one = made(optimizer=OPTIMIZERS[1])
    one.load_state_dict(state)
    steps_of(one, lambda step: gradients(step, 0), *range(loaded), steps=[2, 3])
    for loaded_state, end in on_ranks(loaded, load):
        same_state(loaded_state, state)
        same_state(end, one.state_dict())


def nothing() -> dict:
    dense = {key: np.zeros_like(one) for key, one in first_values().items() if key != "w"}
    return {"w": formats.zeros((ROWS, WIDTH), "row_sparse"), **dense}


def test_a_state_of_one_process_is_loaded_by_ranks():
    one = made(optimizer=OPTIMIZERS[1])
    steps_of(one, lambda step: gradients(step, 0), 0)

    def work(communicator):
        store = made(communicator, OPTIMIZERS[1], "hashed")
        store.load_state_dict(one.state_dict())
        return store.state_dict()

    for state in on_ranks(2, work):
        same_state(state, one.state_dict())


def test_a_checkpoint_that_one_rank_cannot_write_leaves_the_one_before(tmp_path, monkeypatch):
    save = formats.save

    def fail(path, state) -> None:
        if "shard-1" in str(path) and len(list(tmp_path.glob("*.npz"))) > 1:
            raise OSError("No space left on device")
        save(path, state)

    monkeypatch.setattr(formats, "save", fail)

    def work(communicator):
        store = made(communicator)
        store.save_shards(tmp_path, {"step": 0})
        store.push_all(gradients(0, communicator.rank))
        with pytest.raises(StoreError, match=r"Step 1 could not be saved .*: Rank 1: No space left .* The one before"):
            store.save_shards(tmp_path, {"step": 1})
        return store.load_shards(tmp_path)

    assert on_ranks(2, work) == [{"step": 0}] * 2
    assert len(list(tmp_path.glob("*.npz"))) == 2


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda store: store.pull("x"), r"There is no key 'x'|'x'.*Call init"),
        (lambda store: store.push("w", []), "Nothing was pushed"),
        (lambda store: store.push("w", np.zeros((2, 2), np.float32)), "shape and type must be the same"),
        (lambda store: store.row_sparse_pull("w", [ROWS]), "row_sparse_pull of 'w'"),
        (lambda store: store.row_sparse_pull("one", [0]), "has no rows"),
        (lambda store: store.init("w", np.zeros(2)), "is set already"),
        (lambda store: store.init("empty", np.zeros((0, 2))), "1 row or more"),
        (lambda store: store.set_optimizer("adam"), "An optimizer is"),
        (lambda store: store.load_shards("no such folder"), "holds no checkpoint"),
    ],
)
def test_what_does_not_fit_is_refused_on_every_rank(act, message):
    def work(communicator):
        with pytest.raises(StoreError, match=message):
            act(made(communicator))

    on_ranks(2, work)


def test_an_optimizer_whose_options_changed_is_refused():
    def work(communicator):
        store = made(communicator)
        store.updater.options["learning_rate"] = 3.0
        with pytest.raises(StoreError, match="options have changed"):
            store.push_all(gradients(0, 0))

    on_ranks(2, work)


def test_a_checkpoint_of_another_model_or_optimizer_is_refused(tmp_path):
    def work(communicator):
        made(communicator).save_shards(tmp_path)
        other = MpiStore(communicator)
        other.init("w", np.zeros((4, 2), np.float32))
        with pytest.raises(StoreError, match=r"is of another model: 'w' is float32 \(23, 3\) there"):
            other.load_shards(tmp_path)
        with pytest.raises(StoreError, match="is of the optimizer adagrad; this one is adam"):
            made(communicator, OPTIMIZERS[1]).load_shards(tmp_path)

    on_ranks(2, work)


def test_ranks_that_call_different_methods_are_told():
    def work(communicator):
        store = made(communicator)
        with pytest.raises(StoreError, match="all call the same"):
            store.push("b", np.zeros(5, np.float32)) if communicator.rank else store.push("t", np.zeros(23, np.float32))

    on_ranks(2, work)


def test_bytes_that_move_are_those_of_the_rows_of_others():
    def work(communicator):
        store = MpiStore(communicator)
        store.init("w", np.zeros((100, 4), np.float32))
        store.row_sparse_pull("w", np.arange(40, 60))
        return store.exchange.bytes_moved

    assert on_ranks(2, work) == [2 * 10 * (4 + 16)] * 2
