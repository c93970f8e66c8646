"""Whole epochs compared with the fastest loop: configurations, candidates against float64 loops, runs, the page."""

import dataclasses
import itertools

import numpy as np
import pytest

from benchmarks import compare, contest, epoch_problem, epochs, epochs_suite, tables
from benchmarks.epoch_loops import RULES
from benchmarks.epoch_problem import AXES, Configuration, all_configurations, default_configurations
from benchmarks.epochs import CANDIDATES, POLICY
from benchmarks.fair.configurations import pairs_of
from benchmarks.harness import Run
from benchmarks.shapes import BenchError

ONE = {"features": 60, "entries": 6, "lengths": "fixed", "batch_rows": 1, "width": 1, "values": "normal"}
SIZES = {
    "one row": ONE,
    "rows": ONE | {"lengths": "power law", "batch_rows": 8, "values": "ones"},
    "one row, outputs": ONE | {"width": 4, "values": "ones"},
    "rows, outputs": ONE | {"lengths": "power law", "batch_rows": 8, "width": 4},
}


pytestmark = pytest.mark.usefixtures("two_threads")


def small(size, optimizer, batches):
    return Configuration(**SIZES[size], optimizer=optimizer, batches=batches, entries_epoch=1500)


def values_of(configuration):
    return {name: getattr(configuration, name) for name in AXES}


def uncovered(configurations):
    """Pairs of values that a possible configuration has, and none of these."""
    every = (dict(zip(AXES, values, strict=True)) for values in itertools.product(*AXES.values()))
    wanted = {pair for one in every if Configuration(**one).is_possible for pair in pairs_of(one)}
    return wanted - {pair for one in configurations for pair in pairs_of(values_of(one))}


def test_every_possible_pair_of_values_occurs_in_a_default_run_and_there_are_at_most_80_configurations():
    known = all_configurations()
    assert len(default_configurations()) < len(known) <= 80
    assert known[: len(default_configurations())] == default_configurations()
    assert len({one.name for one in known}) == len(known)
    assert not uncovered(default_configurations())
    assert uncovered(default_configurations()[:15])
    assert all(one.bytes_model <= 2e9 and one.rows % one.batch_rows == 0 for one in known)


def test_rows_have_the_lengths_and_values_asked_for_and_labels_that_can_be_learned():
    one = epoch_problem.draw(small("one row", "sgd", "new"))
    assert set(np.diff(one.csr.indptr)) == {6}
    assert one.csr.has_sorted_indices
    assert set(one.labels) == {0, 1}
    assert sorted(one.order(1)) == list(range(len(one.labels)))
    assert list(one.order(1)) != list(one.order(2))
    other = epoch_problem.draw(small("rows, outputs", "sgd", "repeat"))
    assert len(set(np.diff(other.csr.indptr))) > 1
    assert set(other.labels) == {0, 1, 2, 3}
    assert list(other.order(1)) == list(range(len(other.labels)))
    assert set(epoch_problem.draw(small("rows", "sgd", "new")).csr.data) == {1.0}


def targets_of(case):
    """Each pair of a candidate that takes part, a size and a rule; of the project all loops of a rule, for rows and
    outputs of one and of several. Of a candidate that does not take part once that it says why."""
    name, size, optimizer = case["name"], case["size"], case["optimizer"]
    if CANDIDATES[name].unavailable(small(size, optimizer, case["batches"])):
        return {name}
    if name.startswith("Numba"):  # its loops take longest to compile; each measurement checks what it has trained
        return {name, ("Numba", size), ("Numba", optimizer)}
    of_rule = {(name, optimizer, "outputs" in size), (name, optimizer, size.startswith("one row"))}
    return {(name, size), (size, optimizer)} | of_rule


@pytest.mark.covering(targets=targets_of)
@pytest.mark.parametrize("name", CANDIDATES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("optimizer", RULES)
@pytest.mark.parametrize("batches", AXES["batches"])
def test_a_candidate_trains_what_float64_loops_train_or_says_why_it_cannot(name, size, optimizer, batches):
    one, candidate = small(size, optimizer, batches), CANDIDATES[name]
    if reason := candidate.unavailable(one):
        assert reason.endswith(".")
        return
    problem = epoch_problem.draw(one, threads=2)
    trainer = candidate.make(problem)
    trainer.run()
    made = epochs.ready(trainer, problem)
    error = made.judge(None)
    assert (error is None) == (not trainer.is_compared)
    assert error is None or error < 1e-4
    assert np.abs(problem.reference(trainer.first_order(), trainer.rate_intercept).w).max() > 1e-3
    if made.columns["loss"] is not None:
        assert 0 < made.columns["loss"] < np.log(max(one.width, 2)) * 1.1
    trainer.run()  # epochs after the first go on from it
    assert trainer.epoch == 2


def test_candidates_go_on_from_epoch_to_epoch_alike():
    problem = epoch_problem.draw(small("rows", "adam", "repeat"), threads=2)
    states = []
    for name in ("project, epoch", "Numba loop", "Numba loop, column index kept"):
        trainer = CANDIDATES[name].make(problem)
        for _ in range(3):
            trainer.run()
        states.append(trainer.state())
    for other in states[1:]:
        assert epoch_problem.error_of(other, states[0]) < 1e-4


def test_an_error_shows_in_weights_in_the_intercept_and_in_losses():
    right = epoch_problem.State(np.ones((3, 1)), np.ones(1), np.ones(4))
    for wrong in (
        epoch_problem.State(np.full((3, 1), 1.1), np.ones(1), np.ones(4)),
        epoch_problem.State(np.ones((3, 1)), np.full(1, 1.1), np.ones(4)),
        epoch_problem.State(np.ones((3, 1)), np.ones(1), np.full(4, 1.1)),
    ):
        assert epoch_problem.error_of(wrong, right) == pytest.approx(0.1)
    assert epoch_problem.error_of(epoch_problem.State(np.ones((3, 1)), np.full(1, np.nan), None), right) == np.inf


def test_reasons_say_why_a_candidate_takes_no_part():
    reasons = {name: candidate.why_not(small("rows", "adagrad", "new")) for name, candidate in CANDIDATES.items()}
    assert reasons["project, steps, column index kept"] == "Batches are new in each epoch."
    assert reasons["scikit-learn SGDClassifier"] == "It has no adagrad."
    assert reasons["Vowpal Wabbit"] == "It steps after each row; the batches have 8."
    assert reasons["Numba loop"] == ""


def test_a_contest_has_every_candidate_and_says_which_cannot_take_part(monkeypatch):
    one = small("rows", "sgd", "repeat")
    policy = dataclasses.replace(POLICY, seconds_call=0.001, rounds=3)
    request = {"work": "benchmarks.epochs:contest", "policy": vars(policy), "threads": 1}
    request |= {"cases": [(0, vars(one), [])]}
    records = {answer["name"]: answer["record"] for answer in contest.answers(request) if "name" in answer}
    assert set(records) == set(CANDIDATES)
    assert {record["status"] for record in records.values()} == {"ok", "unsupported"}
    assert all(
        record["error"] < 1e-4 and len(record["samples"]) == 3 for record in records.values() if "samples" in record
    )
    assert records["Vowpal Wabbit"]["reason"].startswith("It has no sgd")
    assert all(name in tables.EPOCHS.columns for record in records.values() for name in record)
    monkeypatch.setattr(epochs.LoopTrainer, "state", lambda self: epoch_problem.State(*[np.ones((1, 1))] * 3))
    records = {answer["name"]: answer["record"] for answer in contest.answers(request) if "name" in answer}
    assert records["Numba loop"]["status"] == "wrong"
    assert "seconds" not in records["Numba loop"]


def times(name, optimizer, project, competitor):
    settings = {"key": name, "case": name, "optimizer": optimizer, "status": "ok", "machine": "m", "note": ""}
    pairs = (("project, epoch", "project", project), ("Numba loop", "competitor", competitor))
    return [
        tables.EPOCHS.new_row(
            **settings, candidate=which, side=side, seconds=seconds, samples=[seconds] * 3, nnz=1000, threads=1
        )
        for which, side, seconds in pairs
    ]


def test_targets_are_of_each_configuration_and_of_geometric_means():
    records = [*times("a", "sgd", 1e-3, 2e-3), *times("b", "adam", 4e-3, 2e-3)]
    found = compare.newest(records)
    each, mean, sgd, adam = epochs_suite.list_targets(found)
    assert (each.wanted, each.met) == ("≤ 1", False)
    assert each.measured == "2 (b); 1 of 2 above"
    assert (mean.wanted, mean.measured, mean.met) == ("≤ 0.67", "1 over 2 cases", False)
    assert (sgd.measured, sgd.met, adam.met) == ("0.5 over 1 case", True, False)
    assert epochs_suite.line(found[0])[:5] == ["a", "1 ms, epoch", "1000", "2 ms, Numba loop", "2000"]


def test_an_optimizer_that_is_not_known_is_refused(tmp_path):
    with pytest.raises(BenchError, match=r"Unknown optimizer 'adagard'. .*adagrad"):
        next(epochs_suite.measure(Run(tables.EPOCHS, tmp_path), optimizer="adagard"))
