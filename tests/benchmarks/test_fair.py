"""Both sides beside the best independent ones: what is measured, that each competitor trains right, how it is timed."""

import importlib.util
import itertools

import numpy as np
import pytest

from benchmarks import contest, tables
from benchmarks.fair import competitors, configurations, loops, suite
from benchmarks.fair.competitors import project, sklearn_sgd
from benchmarks.fair.configurations import Configuration, covering_array, pairs_of
from benchmarks.shapes import BenchError
from workbench.advising.frameworks import training
from workbench.measure import race
from workbench.training import Setup

TINY = {
    "logistic, one row": Configuration(24, 1, 1, 0.2, bytes_dense=2**13),
    "logistic": Configuration(37, 6, 1, 0.3, bytes_dense=2**14),
    "softmax": Configuration(530, 33, 5, 0.1, bytes_dense=2**18),
    "softmax, one row": Configuration(24, 1, 3, 0.02, bytes_dense=2**13),
}
COMPILED = "PyTorch, torch.compile"


pytestmark = pytest.mark.usefixtures("two_threads")


def drawn(name):
    return configurations.draw(TINY[name], threads=2)


def test_the_configurations_cover_all_pairs_twice_and_are_few():
    axes = configurations.AXES
    chosen = covering_array(axes, 2)
    assert len(chosen) <= 60
    assert len({tuple(one.items()) for one in chosen}) == len(chosen)
    found = [pair for one in chosen for pair in pairs_of(one)]
    for one, other in itertools.combinations(axes, 2):
        for pair in itertools.product(axes[one], axes[other]):
            assert found.count(((one, pair[0]), (other, pair[1]))) >= 2, (one, other, pair)


def test_a_covering_array_with_a_pair_left_out_would_be_noticed():
    axes = {"a": (1, 2), "b": (1, 2, 3), "c": (1, 2)}
    wanted = {
        pair for values in itertools.product(*axes.values()) for pair in pairs_of(dict(zip(axes, values, strict=True)))
    }
    chosen = covering_array(axes)
    assert {pair for one in chosen for pair in pairs_of(one)} == wanted
    assert {pair for one in chosen[1:] for pair in pairs_of(one)} != wanted
    assert chosen == covering_array(axes)


def test_rows_are_whole_batches_of_about_the_bytes_asked_for():
    for one in configurations.all_configurations():
        assert one.rows % one.batch_rows == 0
        assert one.rows >= 2 * one.batch_rows
        assert 4 * one.rows * one.features <= max(configurations.BYTES_DENSE, 2 * 4 * one.batch_rows * one.features)
        assert one.bytes_needed < 2**31


def test_configurations_are_chosen_by_values():
    every = configurations.all_configurations()
    assert {one.width for one in suite.only_with(every, {"width": 64, "density": None})} == {64}
    assert len(configurations.quick_configurations()) == 10
    with pytest.raises(BenchError, match=r"No configuration has width 5. Expected one of: 1, 4, 16, 64"):
        suite.only_with(every, {"width": 5})


def test_drawn_rows_are_the_same_dense_and_as_csr():
    one = configurations.draw(Configuration(300, 4, 3, 0.2, bytes_dense=2**18))
    np.testing.assert_array_equal(one.csr.toarray(), one.dense)
    assert one.csr.has_sorted_indices
    assert one.csr.nnz / one.dense.size == pytest.approx(0.2, rel=0.05)
    assert 0.5 < np.linalg.norm(one.dense, axis=1).mean() < 2
    assert set(one.labels) == {0, 1, 2}


NAMES = [name for name in competitors.names() if name != COMPILED]
INSTALLED = [
    name for name in NAMES if not competitors.get(name).needs or importlib.util.find_spec(competitors.get(name).needs)
]


def error_after_an_epoch(one, competitor):
    """Error of a competitor's first epoch, of which weights have moved."""
    trainer = competitor.make(one)
    done = trainer.run(one.batches)
    expected = one.expected(trainer.first_order()[: done * one.batch_rows], trainer.rate_intercept)
    assert done == one.batches
    assert np.abs(expected.w).max() > 1e-3
    return training.error_of(trainer.state(), expected)


LOOPS = ("Numba", "project")
"""First words of candidates that compile a loop for each loss and way to hold rows."""


def family_of(name):
    """Return what the names of loops that are alike begin with, two parts; the name of another candidate."""
    return tuple(name.split(",")[:2]) if name.startswith(LOOPS) else name


def targets_of_training(case):
    """Return the targets of a case: each candidate with each loss and on batches of one row and of several. Those that
    compile loops have these targets together if their names begin with the same two parts: each measurement checks what
    it has trained.
    """
    name, size = case["name"], case["size"]
    of = family_of(name)
    return {(of, size.split(",")[0]), (of, "one row" in size)}


@pytest.mark.covering(targets=targets_of_training)
@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.parametrize("size", TINY)
def test_a_competitor_trains_what_float64_loops_train_or_says_why_it_cannot(name, size):
    one, competitor = drawn(size), competitors.get(name)
    if reason := competitor.unavailable(one):
        assert reason.endswith(".")
    else:
        assert error_after_an_epoch(one, competitor) < 1e-5


@pytest.mark.exhaustive  # `torch.compile` takes half a minute of a core; each measurement checks what it has trained
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's compiler warns of PyTorch
def test_what_pytorch_compiles_trains_the_same():
    one, competitor = drawn("softmax"), competitors.get(COMPILED)
    if reason := competitor.unavailable(one):
        pytest.skip(reason)
    assert error_after_an_epoch(one, competitor) < 1e-5


def test_each_size_is_trained_by_both_sides_in_both_kinds():
    for size in TINY:
        one = drawn(size)
        able = [each for each in map(competitors.get, NAMES) if not each.unavailable(one)]
        assert {(each.side, each.kind) for each in able} == set(itertools.product(training.SIDES, training.KINDS))


@pytest.mark.covering(targets=lambda case: {family_of(case["name"])})
@pytest.mark.parametrize("name", INSTALLED)
def test_a_second_run_goes_on_from_the_first_one(name):
    competitor = competitors.get(name)
    one = next(one for one in map(drawn, TINY) if not competitor.unavailable(one))
    trainer = competitor.make(one)
    trainer.run(one.batches)
    before = trainer.state().w.copy()
    trainer.run(one.batches)
    assert np.abs(trainer.state().w - before).max() > 0


def test_the_definition_is_that_of_plain_numpy():
    one = drawn("softmax")
    order = one.order(0)[: 3 * one.batch_rows]
    w, b, losses = np.zeros((one.features, 5)), np.zeros(5), []
    for rows in order.reshape(-1, one.batch_rows):
        x, y = one.dense[rows].astype(np.float64), np.eye(5)[one.labels[rows]]
        scores = x @ w + b
        chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        losses.append(-np.log((chances * y).sum(axis=1)).mean())
        w -= one.rate * x.T @ (chances - y) / len(rows)
        b -= one.rate * (chances - y).mean(axis=0)
    assert training.error_of(training.State(w, b, np.array(losses)), one.expected(order)) < 1e-12


def test_a_wrong_training_is_noticed_in_weights_intercept_and_losses():
    right = training.State(np.ones((3, 2)), np.ones(2), np.ones(4))
    assert training.error_of(right, right) == 0
    for wrong in (
        training.State(right.w * 1.1, right.b, right.losses),
        training.State(right.w, right.b * 1.1, right.losses),
        training.State(right.w, right.b, right.losses * 1.1),
    ):
        assert training.error_of(wrong, right) == pytest.approx(0.1)
    assert training.error_of(training.State(right.w * np.nan, right.b), right) == np.inf
    assert training.error_of(training.State(right.w, right.b * np.nan), right) == np.inf


def test_padding_of_outputs_stays_zero():
    one = drawn("softmax")
    trainer = competitors.get("Numba, rows in place").make(one)
    trainer.run(one.batches)
    assert trainer.w.shape[0] == loops.padded(5) == 8
    assert not trainer.w[5:].any()


def test_settings_that_the_project_lacks_are_a_reason():
    reason = project.why_not(drawn("logistic"), project.DENSE | {"missing": 1})
    assert reason == "The project has no setting missing yet."
    for settings in itertools.chain(*project.SETTINGS.values()):
        assert {"format", "engine", "gradient", "update", "execution"} <= set(settings)
    assert sklearn_sgd.why_not(drawn("softmax")).startswith("It has no softmax")
    assert isinstance(project.setup_of(drawn("logistic"), project.DENSE), Setup)


class Steady(training.Trainer):
    """A trainer that trains nothing; a run takes a tick of the clock for each batch, times its pace."""

    def __init__(self, one, clock, pace, is_right=True):
        super().__init__(one)
        self.clock, self.pace, self.is_right = clock, pace, is_right

    def run(self, batches):
        self.clock.now += batches * self.pace
        self.done = batches
        return batches

    def state(self):
        right = self.problem.expected(self.first_order()[: self.done * self.problem.batch_rows])
        return right if self.is_right else training.State(right.w + 1, right.b, right.losses)


class Ticks:
    """A clock that trainers set."""

    now = 0.0

    def __call__(self):
        return self.now


def measured(*entries):
    """Records by name of competitors given as (name, side, seconds a batch, more of them)."""
    clock = Ticks()
    made = [
        training.Candidate(
            name, side, "dense", lambda one, pace=pace, own=own: Steady(one, clock, pace, own.get("is_right", True)),
            **{key: value for key, value in own.items() if key != "is_right"},
        )
        for name, side, pace, own in entries
    ]  # fmt: skip
    policy = race.Policy(seconds_call=1.0, rounds=5)
    answers = list(training.measure(drawn("logistic"), made, policy, clock))
    return {answer["name"]: answer["record"] for answer in answers if "name" in answer}


def test_a_far_slower_candidate_has_fewer_rounds_and_a_wrong_one_none():
    records = measured(
        ("fast", "independent", 0.01, {}),
        ("slow", "independent", 0.1, {}),
        ("project", "project", 0.1, {}),
        ("wrong", "project", 0.001, {"is_right": False}),
    )
    assert [len(records[name]["samples"]) for name in ("fast", "slow", "project")] == [5, 2, 5]
    assert records["fast"]["seconds"] == pytest.approx(0.01)
    assert records["wrong"]["status"] == "wrong"
    assert "Differs from float64 loops" in records["wrong"]["reason"]
    assert "seconds" not in records["wrong"]


def test_what_takes_long_to_make_ready_is_left_out_if_what_it_is_like_is_far_behind():
    near = ("compiled", "independent", 0.01, {"like": "eager", "near": 3.0})
    far = measured(("fast", "independent", 0.01, {}), ("eager", "independent", 0.05, {}), near)
    assert far["compiled"]["status"] == "skipped"
    assert "eager takes 5 times" in far["compiled"]["reason"]
    assert measured(("fast", "independent", 0.02, {}), ("eager", "independent", 0.05, {}), near)["compiled"]["seconds"]


def test_a_contest_has_every_candidate_and_the_project_and_others_of_both_kinds():
    policy = race.Policy(seconds_call=0.002, rounds=2)
    request = {"work": "benchmarks.fair.contest:contest", "policy": vars(policy), "threads": 1}
    answers = contest.answers(request | {"cases": [(0, vars(TINY["logistic"]), [COMPILED])]})
    records = {answer["name"]: answer["record"] for answer in answers if "name" in answer}
    known = suite.candidates(TINY["logistic"])
    assert set(records) == set(known) - {COMPILED}
    timed = {(known[name]["side"], known[name]["kind"]) for name, record in records.items() if record["status"] == "ok"}
    assert timed == set(itertools.product(("project", "competitor"), training.KINDS))
    assert all(len(record["samples"]) == 2 and record["nnz"] for record in records.values() if record["status"] == "ok")
    assert all(name in tables.FAIR.columns for record in records.values() for name in record)
