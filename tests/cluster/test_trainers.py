"""Trainers that share rows and shards train as one process with as many workers does, bit for bit."""

import numpy as np
import pytest

from tests.support import shared_training as support
from workbench import data, formats
from workbench.cluster import trainer, training
from workbench.kvstore import StoreError
from workbench.sweeps import grid, spec
from workbench.sweeps.grid import setup_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import SpecError
from workbench.training.setup import multiple_trainers_reason


def same_weights(state: dict, weights: dict) -> bool:
    return all(
        np.array_equal(
            formats.to_format(state[f'value:"{name}"'], "dense"), formats.to_format(weight, "dense"), equal_nan=True
        )
        for name, weight in weights.items()
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": "embedding_mlp", "model_options": "hidden=4", "width": 1, "optimizer": "adam"},
        {"model": "linear", "width": 1, "update": "exact", "optimizer": "sgd", "decay": 0.01, "intercept": True},
        {"model": "factorization_machine", "width": 2, "update": "standard", "gradient": "dense"},
    ],
    ids=lambda changes: changes.get("model", "softmax"),
)
def test_trainers_have_the_bits_of_one_process_with_as_many_workers(changes, tmp_path):
    of = support.configuration(**changes)
    answers, told = support.on_threads(of, trainers=2, folder=str(tmp_path), steps_saved=100)
    module = support.alone(of, 2)
    assert same_weights(support.saved_state(tmp_path), module.raw_weights())
    assert [answer["rows"] for answer in answers] == [33, 33]
    assert [message["step"] for message in told] == list(range(1, 13))
    assert answers[0]["step"] == 2 * 6
    assert answers[0]["qualities"]


def test_trainers_of_stored_rows_read_their_own_shards_alone(tmp_path, monkeypatch):
    made = data.load("uniform", rows=90, features=30, density=0.2, classes=3, seed=1, cache=False)
    data.convert(made, tmp_path / "x.sparse", shuffle=3)
    of = support.configuration(
        dataset="sparse", path=str(tmp_path / "x.sparse"), rows=None, features=None, density=None
    )
    problem, read = make_problem(of), []
    kind = type(problem.x)
    kept = kind.read_runs
    monkeypatch.setattr(kind, "read_runs", lambda self, runs: read.append((self, list(runs))) or kept(self, runs))
    feeds = [trainer.shared(problem, setup_of(of), number, 2) for number in range(2)]
    seen = [np.concatenate([batch.x.toarray() for batch in feed.epoch(0)]) for feed in feeds]
    assert [len(rows) for rows in seen] == [36, 36]
    whole = problem.x.read(0, 72).toarray()
    for part, rows in zip((whole[:36], whole[36:]), seen, strict=True):
        assert sorted(map(tuple, part)) == sorted(map(tuple, rows))
    answers, _ = support.on_threads(of, trainers=2, folder=str(tmp_path / "run"))
    assert same_weights(support.saved_state(tmp_path / "run"), support.alone(of, 2).raw_weights())
    assert len(answers) == 2


def test_a_training_goes_on_from_its_checkpoint_with_the_same_bits(tmp_path):
    of = support.configuration()
    support.on_threads(of, 2, folder=str(tmp_path / "whole"))
    support.on_threads(support.configuration(epochs=1), 2, folder=str(tmp_path / "parts"), steps_saved=4)
    _, told = support.on_threads(of, 2, folder=str(tmp_path / "parts"))
    assert [message["step"] for message in told] == list(range(7, 13))
    one, two = (support.saved_state(tmp_path / name) for name in ("whole", "parts"))
    assert support.same_bits(one, two)
    for changes, trainers, name in (({"seed": 4}, 2, "seed"), ({}, 3, "trainers")):
        with pytest.raises(StoreError, match=f"was trained with {name}="):
            support.on_threads(support.configuration(**changes), trainers, folder=str(tmp_path / "parts"))


def test_steps_alone_are_of_all_rows_as_those_of_one_process_are():
    of = support.configuration(epochs=0)
    answers, told = support.on_threads(of, trainers=2)
    assert [(answer["rows"], answer["step"]) for answer in answers] == [(41, 7)] * 2
    assert all(message["bytes_grown"] >= 0 for message in told)
    assert "qualities" not in answers[0]
    assert training._sizes(of, 2)["rows_trained"] == 83


@pytest.mark.parametrize(
    ("changes", "trainers", "message"),
    [
        ({"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}, 2, "take format csr"),
        ({"batch_rows": 10}, 3, "10 rows are no multiple of 3"),
        ({"execution": "epoch"}, 2, "take step"),
        ({"model": "pruned_mlp"}, 2, "weights at a pattern"),
        ({}, 0, "there is 1 or more"),
    ],
)
def test_what_several_trainers_cannot_train_is_refused_in_words(changes, trainers, message):
    of = support.configuration(**changes)
    assert message in multiple_trainers_reason(setup_of(of), trainers)
    with pytest.raises(SpecError, match=message):
        trainer.check(of, trainers)


def test_a_trainer_with_other_code_ends_all(monkeypatch):
    """Machines with other versions would train something else, or fail in words that nobody understands."""
    assert ", source " in trainer.describe_code()
    codes = iter(["numpy 1", "numpy 2"])
    monkeypatch.setattr(trainer, "describe_code", lambda: next(codes))
    with pytest.raises(StoreError, match=r"Ranks have different code: numpy 1; numpy 2. Install the same on all"):
        support.on_threads(support.configuration(), 2)


def test_a_sweep_drops_configurations_of_more_trainers_than_threads_and_without_mpi(monkeypatch):
    of = support.configuration(trainers=2, threads=1)
    assert grid.why_dropped(of) == "2 trainers need a thread each; there are 1."
    monkeypatch.setattr(grid.importlib.util, "find_spec", lambda name: None)
    assert "pip install 'sparse-workbench[mpi]'" in grid.why_dropped(support.configuration(trainers=2, threads=2))
    monkeypatch.undo()
    assert spec.work_of(of, "usual") == "workbench.cluster.training:answers"
    assert spec.work_of(support.configuration(), "usual") == "usual"
    only_of_several = set(spec.files_of(of)) - set(spec.files_of(support.configuration()))
    assert any(file.match("workbench/cluster/exchange.py") for file in only_of_several)
