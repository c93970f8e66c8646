"""Ranks that train copies of the weights and add their changes every k batches."""

import numpy as np
import pytest

from kernels import changes
from tests.support import shared_training as support
from tests.support.ranks import on_ranks
from workbench import data
from workbench.cluster import OneRank, local_steps, trainer
from workbench.cluster.exchange import Exchange
from workbench.cluster.local_steps import Copy, local_setup
from workbench.sweeps.grid import setup_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import SpecError
from workbench.training import Run


def copies(of, ranks: int, every: int, whole: bool = False) -> list[tuple[Run, list[float]]]:
    """The run and the losses of two epochs of each rank, a thread; stored rows are read before if `whole`."""
    problem, setup = make_problem(of), setup_of(of)

    def work(communicator):
        feed = trainer.shared(problem, setup, communicator.rank, ranks)
        x = feed.x.read(0, feed.total) if whole else feed.x
        run = Run(local_setup(setup, communicator.rank, ranks), x, feed.y, problem.width, problem.facts)
        copy = Copy(Exchange(communicator), run, every)
        return run, [loss for epoch in range(2) for part in copy.windows(epoch) for loss in part]

    return on_ranks(ranks, work)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3])
def test_changes_of_marked_rows_are_subtracted_added_and_copied(dtype, width):
    made = np.random.default_rng(width)
    indptr, indices = np.int32([0, 2, 2, 5, 6]), np.int32([1, 3, 3, 0, 3, 7])
    marks = np.zeros(9, np.uint8)
    rows = changes.marked(indptr, indices, np.array([2, 1, 2, 0]), marks)
    assert (rows.tolist(), marks.any()) == ([0, 1, 3], False)
    assert changes.marked(indptr, indices, np.array([1]), marks).size == 0
    base, table = (made.random((9, width)).astype(dtype) for _ in range(2))
    before, out = base.copy(), np.zeros((3, width + 1), dtype)
    changes.subtract(table, base, rows, out, 1)
    assert np.array_equal(out[:, 1:], table[rows] - base[rows])
    assert not out[:, 0].any()
    changes.add(base, rows, out, 1)
    np.testing.assert_allclose(base[rows], table[rows], rtol=1e-5)
    changes.copy(base, rows, table)
    assert np.array_equal(table[rows], base[rows])
    others = np.setdiff1d(np.arange(9), rows)
    assert np.array_equal(base[others], before[others])
    changes.add_copies(before, np.stack([base, table, before]), out := np.empty_like(base))
    np.testing.assert_allclose(out, base + table - before, rtol=1e-4, atol=1e-6)
    squares, after = np.stack([base + 1, table + 1]), base + table + 2
    changes.add_scaled_copies(before, np.stack([base, table]), squares, after, out)
    wanted = before + (base - before) * np.sqrt(squares[0] / after) + (table - before) * np.sqrt(squares[1] / after)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)
    both = np.hstack([table, squares[0]])[rows]
    changes.add_scaled(base, rows, both, np.zeros_like(table[rows]), after)
    np.testing.assert_allclose(base[rows], table[rows] * (1 + np.sqrt(squares[0] / after)[rows]), rtol=1e-5)
    changes.add_copies(before, np.stack([before, before]), out)
    assert np.array_equal(out, before), "what no copy has changed stays"


@pytest.mark.parametrize(("ranks", "every"), [(2, 1), (3, 2), (2, 100)])
@pytest.mark.parametrize("has_few_entries", [False, True])
@pytest.mark.parametrize("changed", [{"optimizer": "sgd"}, {"optimizer": "adagrad", "intercept": True}])
def test_copies_have_the_same_bits_after_a_synchronisation(ranks, every, changed, has_few_entries, monkeypatch):
    monkeypatch.setattr(local_steps, "SPARSE", 0 if has_few_entries else 4)
    found = copies(support.configuration(**changed), ranks, every)
    first, *others = [run.state_dict() for run, _ in found]
    for other in others:
        assert all(np.array_equal(first[name], other[name]) for name in first if "about" not in name)
    assert np.abs(first["parameter:w"]).max() > 0


@pytest.mark.parametrize("intercept", [False, True])
def test_sgd_synchronised_after_every_batch_is_the_training_by_steps(intercept, tmp_path, monkeypatch):
    of = support.configuration(optimizer="sgd", intercept=intercept)
    support.on_threads(of, 2, folder=str(tmp_path))
    by_steps = support.saved_state(tmp_path)
    for sparse in (0, 4):
        monkeypatch.setattr(local_steps, "SPARSE", sparse)
        run, _ = copies(of, 2, 1)[0]
        for name in run.arrays:
            np.testing.assert_allclose(run.arrays[name], dense(by_steps[f'value:"{name}"']), rtol=1e-4, atol=1e-6)


def dense(array) -> np.ndarray:
    return array.to_dense() if hasattr(array, "to_dense") else np.asarray(array)


def test_one_rank_trains_the_compiled_epochs_of_one_process():
    of = support.configuration(optimizer="adagrad", execution="epoch")
    problem = make_problem(of)
    alone = Run(setup_of(of), problem.x, problem.y, problem.width, problem.facts)
    losses = [loss for event in alone.events(2) for loss in event.losses]
    copy = Copy(Exchange(OneRank()), Run(local_setup(setup_of(of), 0, 1), problem.x, problem.y, problem.width), 4)
    assert [loss for epoch in range(2) for part in copy.windows(epoch) for loss in part] == losses
    assert np.array_equal(copy.run.weights, alone.weights)


def test_stored_rows_are_trained_on_as_rows_in_memory(tmp_path):
    made = data.load("uniform", rows=90, features=30, density=0.2, classes=3, seed=1, cache=False)
    data.convert(made, tmp_path / "x.sparse", shuffle=3)
    given = {"dataset": "sparse", "path": str(tmp_path / "x.sparse"), "shuffle": False}
    of = support.configuration(**given, rows=None, features=None, density=None)
    (stored, losses), _ = copies(of, 2, 4)
    (held, same), _ = copies(of, 2, 4, whole=True)
    assert losses == same
    assert np.array_equal(stored.weights, held.weights)


def test_a_training_of_copies_goes_on_from_its_checkpoint_with_the_same_bits(tmp_path):
    options = {"sync_every": 3, "steps_saved": 2}
    of = support.configuration(intercept=True)
    _, whole = support.on_threads(of, 2, folder=str(tmp_path / "whole"), **options)
    support.on_threads(support.configuration(intercept=True, epochs=1), 2, folder=str(tmp_path / "parts"), **options)
    answers, told = support.on_threads(of, 2, folder=str(tmp_path / "parts"), **options)
    assert [message["step"] for message in told] == list(range(7, 13))
    assert [message["loss"] for message in told] == [message["loss"] for message in whole[6:]]
    assert answers[0]["qualities"]
    assert support.same_bits(*(support.saved_state(tmp_path / name) for name in ("whole", "parts")))
    with pytest.raises(ValueError, match="was trained with sync_every=3; this is sync_every=1"):
        support.on_threads(of, 2, folder=str(tmp_path / "parts"))


@pytest.mark.parametrize(
    ("changed", "every", "message"),
    [
        (
            {"optimizer": "adam"},
            4,
            "add up for sgd and adagrad without decay; this is adam, decay 0. Leave --sync-every",
        ),
        ({"optimizer": "sgd", "decay": 0.1}, 4, "this is sgd, decay 0.1"),
        ({"model": "factorization_machine", "width": 2}, 4, "Epochs in one call are for"),
        ({}, 0, "Ranks synchronise after every 0 batches; expected 1 or more"),
    ],
)
def test_what_copies_cannot_train_is_refused_in_words(changed, every, message):
    trainer.check(support.configuration(optimizer="sgd"), 2, 4)
    with pytest.raises(SpecError, match=message):
        trainer.check(support.configuration(**changed), 2, every)
