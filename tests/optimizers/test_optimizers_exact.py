"""lazy="exact": rows that catch up on what they missed train as under the dense rule."""

import numpy as np
import pytest

from kernels import threads
from kernels.rules import missed as kernel_missed
from tests.optimizers.test_optimizers_updater import (
    D,
    N,
    assert_near,
    every_rule,
    make,
    random,
    sparse_gradients,
    train,
    weights_of,
)
from tests.support.thread_counts import needs_two, share_out
from workbench import optimizers
from workbench.formats import RowSparse
from workbench.optimizers import Multiplier, OptimizerError, Updater, schedules
from workbench.optimizers import deferred_updates as missed_module

SCHEDULES = {
    "constant": None,
    "warm-up and cosine": schedules.WarmUp(10, schedules.Cosine(30, final=0.1)),
    "steps": schedules.StepDecay(7, 0.5),
}


def extra(name):
    return {"ftrl": {"l1": 0.05}, "signum": {"decoupled": 0.2}}.get(name, {})


@every_rule
@pytest.mark.covering
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_exact_is_the_dense_rule_over_50_steps(name, schedule, decay):
    options = {"schedule": schedule, "decay": decay, **extra(name)}
    gradients = sparse_gradients(50, seed=1)
    expected = train(make(name, "off", **options), weights_of(), gradients)
    assert_near(train(make(name, "exact", **options), weights_of(), gradients), expected)


@every_rule
def test_lazy_is_not_so_that_the_test_above_can_fail(name):
    gradients, options = sparse_gradients(50, seed=1), {"decay": 0.1, **extra(name)}
    expected = train(make(name, "off", **options), weights_of(), gradients)
    assert np.abs(train(make(name, "on", **options), weights_of(), gradients)[0] - expected[0]).max() > 1e-3


@every_rule
@pytest.mark.parametrize(("dtype", "width"), [(np.float32, 3), (np.float64, N)], ids=["float32", "float64"])
def test_dense_and_sparse_gradients_may_take_turns(name, dtype, width):
    gradients = sparse_gradients(12, shape=(D, width), dtype=dtype)
    gradients[6] = gradients[6].toarray()
    expected = train(make(name, "off"), weights_of((D, width), dtype), gradients)
    came = train(make(name, "exact"), weights_of((D, width), dtype), gradients)
    assert_near(came, expected, rtol=1e-11 if dtype == np.float64 else 2e-5)


@every_rule
def test_rows_are_up_to_date_when_they_are_read(name):
    """A forward pass reads rows before the step; after `catch_up` of these they are the dense rule's."""
    gradients, exact, off = sparse_gradients(20, seed=2), make(name, "exact"), make(name, "off")
    ours, dense = weights_of(), weights_of()
    for gradient in gradients:
        exact.catch_up({"w": ours}, rows={"w": gradient.indices})
        np.testing.assert_allclose(ours[gradient.indices], dense[gradient.indices], rtol=1e-11, atol=1e-13)
        exact.update({"w": ours}, {"w": gradient})
        off.update({"w": dense}, {"w": gradient})


def test_catching_up_twice_changes_nothing_more():
    updater, weights = make("momentum", "exact"), weights_of()
    for gradient in sparse_gradients(6):
        updater.update({"w": weights}, {"w": gradient})
    updater.catch_up({"w": weights}, rows={"w": np.array([3, 3, 1])})
    updater.catch_up({"w": weights})
    once = weights.copy()
    updater.catch_up({"w": weights})
    np.testing.assert_array_equal(weights, once)


@pytest.mark.parametrize("lazy", ["off", "on"])
def test_catching_up_is_nothing_where_lazy_is_not_exact(lazy):
    updater, weights = make("momentum", lazy), weights_of()
    updater.update({"w": weights}, {"w": RowSparse(np.ones((1, N)), [2], (D, N))})
    before = weights.copy()
    updater.catch_up({"w": weights})
    updater.catch_up({"w": weights}, rows={"w": np.array([0])})
    np.testing.assert_array_equal(weights, before)


@pytest.mark.parametrize("name", ["sgd", "adagrad", "group_adagrad"])
def test_without_decay_these_rules_miss_nothing_and_keep_nothing(name):
    updater = make(name, "exact", decay=0.0)
    assert train(updater, weights_of(), sparse_gradients(6))[0].shape == (D, N)
    assert updater.parameters["w"].missed is None
    silent = Updater(name, lazy="exact", decay=0.1, multipliers={"w": Multiplier(decay=0.0)})
    assert silent.new_parameter("w", (D, N), np.float64, "dense").missed is None


WAYS = {
    **dict.fromkeys(("sgd", "momentum", "nesterov", "adagrad", "group_adagrad"), "closed_form"),
    **dict.fromkeys(("adam", "adamw", "centered_rmsprop", "signum", "rmsprop"), "step_by_step"),
    "ftrl": "last_step",
}


@every_rule
def test_each_rule_catches_up_as_its_header_says(name):
    header = optimizers.get(name).formulas
    way = make(name, "exact").new_parameter("w", (D, N), np.float64, "dense").missed.way
    assert way == WAYS[name]
    assert ("closed form" in header) == (way != "step_by_step" or name == "rmsprop")
    assert ("repetition" in header) == (way == "step_by_step")
    if name == "rmsprop":
        assert (
            make(name, "exact", decay=0.0).new_parameter("w", (D, N), np.float64, "dense").missed.way == "closed_form"
        )


@every_rule
def test_a_long_absence_is_caught_up_in_one(name):
    gradient = RowSparse(random(0).standard_normal((2, N)), [1, 4], (D, N))
    other = RowSparse(random(1).standard_normal((1, N)), [7], (D, N))
    gradients = [gradient, *[other] * 300, gradient]
    expected = train(make(name, "off"), weights_of(), gradients)
    assert_near(train(make(name, "exact"), weights_of(), gradients), expected, rtol=1e-10)


@every_rule
def test_when_the_record_is_full_all_rows_catch_up(name, monkeypatch):
    for module in (kernel_missed, missed_module):
        monkeypatch.setattr(module, "STEPS", 8)
    gradients = sparse_gradients(30, seed=4)
    updater = make(name, "exact")
    assert_near(train(updater, weights_of(), gradients), train(make(name, "off"), weights_of(), gradients))
    assert updater.parameters["w"].missed.count <= 8


SEEN = np.array([2, 5, 6, 9])


def gradients_of_few(count, dtype=np.float64):
    """Return gradients of the rows `SEEN` alone, each of one to three of them."""
    rng = random(7)
    rows = [np.sort(rng.choice(SEEN, rng.integers(1, 4), replace=False)) for _ in range(count)]
    return [RowSparse(rng.standard_normal((each.size, N)).astype(dtype), each, (D, N)) for each in rows]


def partly_zero(dtype=np.float64):
    """Return weights of which half of the rows are zero, as those of linear models are at first."""
    weights = weights_of(dtype=dtype)
    weights[: D // 2] = 0
    return weights


@pytest.fixture
def repeated(monkeypatch):
    """Rows at rest are looked for however few there are; the rows whose steps are repeated are listed."""
    found, apply = [], missed_module.Missed._apply_at_rest

    def spy(*arguments):
        at, since = apply(*arguments)
        found.append(at)
        return at, since

    monkeypatch.setattr(missed_module, "MANY_MISSED", 0)
    monkeypatch.setattr(missed_module.Missed, "_apply_at_rest", spy)
    return found


@every_rule
@pytest.mark.covering
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("repeated")
def test_rows_that_no_gradient_has_touched_are_those_of_the_dense_rule(name, schedule, decay, dtype):
    options = {"schedule": schedule, "decay": decay, **extra(name)}
    gradients = gradients_of_few(60, dtype)
    expected = train(make(name, "off", **options), partly_zero(dtype), gradients)
    came = train(make(name, "exact", **options), partly_zero(dtype), gradients)
    assert_near(came, expected, rtol=1e-11 if dtype == np.float64 else 3e-4)


@every_rule
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.usefixtures("repeated")
def test_rows_that_no_gradient_has_touched_go_on_from_a_saved_state(name, decay):
    options = {"schedule": SCHEDULES["steps"], "decay": decay, **extra(name)}
    gradients = gradients_of_few(40)
    expected = train(make(name, "off", **options), partly_zero(), gradients)
    first, then, weights = make(name, "exact", **options), make(name, "exact", **options), partly_zero()
    for gradient in gradients[:25]:
        first.update({"w": weights}, {"w": gradient})
    then.load_state_dict(first.state_dict())
    assert_near(train(then, weights, gradients[25:]), expected)


CLOSED = {"adam": [0.0], "adamw": [0.0, 0.1], "centered_rmsprop": [0.0], "signum": [0.0]}
"""Decays with which rows at rest have a closed form, whatever their weights are."""


@every_rule
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_of_rows_at_rest_are_not_repeated(name, decay, repeated):
    updater = make(name, "exact", decay=decay, **extra(name))
    train(updater, partly_zero(), gradients_of_few(20))
    missed = updater.parameters["w"].missed
    if missed is None or missed.way != "step_by_step":
        assert repeated == []
        return
    at_rest = np.setdiff1d(np.arange(D), SEEN)
    at_rest = at_rest if decay in CLOSED.get(name, []) else at_rest[at_rest < D // 2]
    assert not np.isin(np.concatenate(repeated), at_rest).any()
    assert np.isin(SEEN, np.concatenate(repeated)).any()


@pytest.mark.parametrize("name", ["adam", "centered_rmsprop"])
def test_a_weight_limit_or_decay_of_rows_at_rest_is_kept(name, repeated):
    options = {"clip_weights": 0.5} if name == "centered_rmsprop" else {"decay": 0.3, "clip": 0.01}
    options = {"decay": 0.0} | options
    expected = train(make(name, "off", **options), partly_zero(), gradients_of_few(20))
    assert_near(train(make(name, "exact", **options), partly_zero(), gradients_of_few(20)), expected)
    assert np.abs(expected[0][-1] - partly_zero()[-1]).max() > 1e-3


@needs_two
@every_rule
def test_same_bits_on_one_thread_and_on_two(name, monkeypatch, kept_threads):
    share_out(monkeypatch)
    came = []
    gradients = sparse_gradients(12, shape=(200, 16))
    for count in (1, 2):
        threads.set_threads(count)
        came.append(train(make(name, "exact"), weights_of((200, 16)), gradients))
    for one, other in zip(*came, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("rows", [[0, 12], [-1], [0.5], ["a"]])
def test_rows_to_catch_up_that_are_not_there_are_refused(rows):
    updater, weights = make("sgd", "exact"), weights_of()
    updater.update({"w": weights}, {"w": sparse_gradients(1)[0]})
    with pytest.raises(OptimizerError, match="rows of w to catch up are whole numbers from 0 to 11"):
        updater.catch_up({"w": weights}, rows={"w": np.array(rows)})
    with pytest.raises(OptimizerError, match=r"Unknown weights 'v'.*Expected one of: w"):
        updater.catch_up({"w": weights}, rows={"v": np.array([0])})


def test_parameters_without_steps_have_nothing_to_catch_up():
    weights = weights_of()
    Updater("momentum", lazy="exact").catch_up({"w": weights}, rows={"w": np.array([1])})
    np.testing.assert_array_equal(weights, weights_of())


def test_every_optimizer_has_an_exact_form():
    assert sorted(WAYS) == optimizers.names()
