"""Rows of the next batch travel while a batch computes, and every one is as without looking ahead."""

import numpy as np
import pytest

from tests.support import shared_training as support
from tests.support.ranks import on_ranks
from workbench import formats
from workbench.cluster import MpiStore, OneRank
from workbench.cluster.ahead import Ahead
from workbench.cluster.exchange import Exchange
from workbench.formats import RowSparse
from workbench.kvstore import LazyRandomRows, StoreError
from workbench.optimizers import Updater

ROWS, WIDTH, STEPS = 60, 3, 6


def rows_of(seed: int, step: int, rank: int) -> np.ndarray:
    """Some rows of a step; none in one step of one rank."""
    made = np.random.default_rng((seed, step, rank))
    return np.unique(made.integers(0, ROWS, 0 if (step, rank) == (3, 1) else 12))


def trained(communicator, seed: int, looks_ahead: bool, spread: str = "contiguous", lazy: str = "on"):
    """What a rank pulls in each step, its bytes, and how many rows came early."""
    store, drawn = (
        MpiStore(communicator, spread=spread),
        LazyRandomRows((ROWS, WIDTH), "float32", "normal", 1.0, 3, "w"),
    )
    store.set_optimizer(Updater("adagrad", lazy=lazy, decay=0.01))
    store.init("w", drawn if lazy == "on" else drawn.whole())
    store.init("v", np.ones((ROWS, 1), np.float32))
    rank, early, pulled = communicator.rank, 0, []
    following = rows_of(seed, 0, rank)
    for step in range(STEPS):
        rows, following = following, rows_of(seed, step + 1, rank)
        out = {"w": formats.zeros((ROWS, WIDTH), "row_sparse"), "v": formats.zeros((ROWS, 1), "row_sparse")}
        early += sum(sum(one.counts) for one in store.ahead.early.values()) if store.ahead is not None else 0
        store.pull_into(out, dict.fromkeys(out, rows))
        pulled += [out["w"].values.copy(), out["v"].values.copy()]
        if looks_ahead:
            store.ask_ahead(dict.fromkeys(out, following))
            store.advance()
            store.advance()
        gradients = {key: RowSparse(np.cos(one.values), rows, one.shape) for key, one in out.items()}
        store.push_all(gradients)
    store.drop_ahead()
    return pulled, store.exchange.bytes_moved, early


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("ranks", "spread"), [(2, "contiguous"), (3, "hashed")])
def test_rows_have_the_bits_that_they_have_without_and_each_is_sent_once(seed, ranks, spread):
    ahead, without = (
        on_ranks(ranks, lambda rank, looks=looks: trained(rank, seed, looks, spread)) for looks in (True, False)
    )
    for (mine, moved, early), (theirs, bytes_least, none) in zip(ahead, without, strict=True):
        assert all(one.tobytes() == two.tobytes() for one, two in zip(mine, theirs, strict=True))
        assert early > 0 == none
        assert 0 < moved - bytes_least < 0.3 * bytes_least, "bits, and the rows of the step that is not done"


@pytest.mark.parametrize("lazy", ["off", "exact"])
def test_no_row_comes_early_if_updates_change_rows_without_a_gradient(lazy):
    ahead, without = (on_ranks(2, lambda rank, looks=looks: trained(rank, 0, looks, lazy=lazy)) for looks in (1, 0))
    assert [early for *_, early in ahead] == [0, 0]
    for (mine, *_), (theirs, *_) in zip(ahead, without, strict=True):
        assert all(one.tobytes() == two.tobytes() for one, two in zip(mine, theirs, strict=True))


def test_rows_that_were_not_asked_for_are_pulled_and_a_push_of_rows_that_were_not_pulled_is_refused():
    def work(communicator):
        store = MpiStore(communicator)
        store.set_optimizer(Updater("sgd"))
        store.init("w", np.arange(20, dtype=np.float32).reshape(10, 2))
        out = {"w": formats.zeros((10, 2), "row_sparse")}
        for rows in (np.array([1, 7]), np.array([2, 8])):
            store.pull_into(out, {"w": rows})
            store.push("w", RowSparse(np.zeros((2, 2), np.float32), rows, (10, 2)))
            store.ask_ahead({"w": np.array([3])})
        assert out["w"].values.tolist() == [[4, 5], [16, 17]]
        store.advance()
        store.advance()
        with pytest.raises(StoreError, match="Rows of 'w' are pushed after ask_ahead which"):
            store.push("w", RowSparse(np.zeros((1, 2), np.float32), [5], (10, 2)))
        store.drop_ahead()

    on_ranks(2, work)


def test_trainings_look_ahead_and_have_the_bits_of_those_that_do_not(tmp_path, monkeypatch):
    of, begun = support.configuration(model="embedding_mlp", model_options="hidden=4", width=1, optimizer="adam"), []
    plain = Ahead._send_values
    monkeypatch.setattr(Ahead, "_send_values", lambda ahead: (plain(ahead), begun.append(len(ahead.early))))
    support.on_threads(of, 2, folder=str(tmp_path / "ahead"))
    assert begun == [0] * 2 + [2] * 18, "two tables, in each step but the first and the last of an epoch, of two ranks"
    monkeypatch.setattr(MpiStore, "ask_ahead", lambda *_: None)
    support.on_threads(of, 2, folder=str(tmp_path / "not"))
    assert len(begun) == 20
    assert support.same_bits(*(support.saved_state(tmp_path / name) for name in ("ahead", "not")))


@pytest.mark.parametrize("call", ["rows", "begin_rows"])
def test_rows_are_not_sent_from_the_memory_that_others_are_received_in(call):
    """MPI copies short messages at once, long ones would change while they are sent."""
    exchange = Exchange(OneRank())
    sent = exchange.buffer("w", (4, 2), np.float32)
    with pytest.raises(StoreError, match="sent from the buffer 'w'"):
        getattr(exchange, call)("w", sent[1:], [3], [3])
