"""A state from anyone's file: what compiled code would follow is checked on load, and nothing is half taken."""

import copy
import json

import numpy as np
import pytest

from tests.optimizers.test_optimizers_updater import D, N, make, sparse_gradients, weights_of
from workbench.formats import RowSparse, to_format
from workbench.optimizers import OptimizerError, Updater, schedules
from workbench.optimizers.deferred_updates import STEPS

RULES = {"sgd": "closed_form", "momentum": "closed_form", "adam": "step_by_step", "ftrl": "last_step"}


def trained(name, held="dense", lazy="exact"):
    updater, weights = make(name, lazy), to_format(weights_of(), held)
    for gradient in sparse_gradients(5):
        updater.update({"a": weights}, {"a": gradient})
    return updater, weights


def bits(updater) -> dict[str, bytes]:
    return {key: array.tobytes() for key, array in updater.state_dict().items()}


def change(state, key=None, **about):
    """The state with what `about` says of the parameter changed, and an entry of an array."""
    said = json.loads(state["about"].tobytes())
    said["parameters"]["a"] |= about
    state["about"] = np.frombuffer(json.dumps(said).encode(), np.uint8)
    return state


def put(state, key, value):
    state[key] = np.array(value, state[key].dtype) if key in state else value
    return state


LIES = {
    "last far below": lambda s: put(s, "a/last", np.full(D, -(10**9))),
    "last after the last step": lambda s: put(s, "a/last", np.full(D, 6)),
    "one last below": lambda s: put(s, "a/last", [0] * (D - 1) + [-1]),
    "base far above": lambda s: change(s, base=10**9),
    "base below": lambda s: change(s, base=-1),
    "base of text": lambda s: change(s, base="0"),
    "step of text": lambda s: change(s, step="x"),
    "step of truth": lambda s: change(s, step=True),
    "step beyond a float": lambda s: change(s, step=2**70),
    "step below": lambda s: change(s, step=-5),
    "more steps than there is room for": lambda s: put(
        change(s, count=STEPS, step=STEPS), "a/record", np.full((STEPS, s["a/record"].shape[1]), 0.5)
    ),
    "count of text": lambda s: change(s, count="5"),
    "count of half": lambda s: change(s, count=2.5),
    "shape of text": lambda s: change(s, shape="12"),
    "shape that is negative": lambda s: change(s, shape=[-D, N]),
    "shape that is huge": lambda s: change(s, shape=[2**40, 2**40]),
    "shape that is deep": lambda s: change(s, shape=[1] * 99),
    "shape that is larger": lambda s: change(s, shape=[D + 1, N]),
    "dtype of Python": lambda s: change(s, dtype="object"),
    "dtype that is none": lambda s: change(s, dtype="float3"),
    "format of another": lambda s: change(s, format="csr"),
    "format unhashable": lambda s: change(s, format=[]),
    "way of no rule": lambda s: change(s, way="fly"),
    "last of another length": lambda s: s | {"a/last": s["a/last"][:-1]},
    "last of another type": lambda s: s | {"a/last": s["a/last"].astype(np.int32)},
    "last that is sparse": lambda s: s | {"a/last": RowSparse(np.ones((1, 1)), [0], (D, 1))},
    "record that is shorter": lambda s: s | {"a/record": s["a/record"][:0]},
    "record that is narrower": lambda s: s | {"a/record": s["a/record"][:, :0]},
    "record of objects": lambda s: s | {"a/record": s["a/record"].astype(object)},
    "about that is sparse": lambda s: s | {"about": RowSparse(np.ones((1, 1)), [0], (D, 1))},
    "about that is deep": lambda s: s | {"about": np.frombuffer(b"[" * 10**5, np.uint8)},
    "about of numbers": lambda s: s | {"about": np.frombuffer(b"1" * 10**4, np.uint8)},
    "parameters that are a list": lambda s: s | {"about": np.frombuffer(b'{"optimizer":"adam","parameters":[]}', "u1")},
    "parameter that is text": lambda s: (
        s
        | {
            "about": np.frombuffer(
                json.dumps(json.loads(s["about"].tobytes()) | {"parameters": {"a": "x"}}).encode(), "u1"
            )
        }
    ),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("lie", LIES)
def test_what_no_training_leaves_is_refused_and_every_bit_stays(name, lie):
    updater, _ = trained(name)
    state, before = updater.state_dict(), bits(updater)
    with pytest.raises(OptimizerError):
        updater.load_state_dict(LIES[lie](state))
    assert bits(updater) == before
    assert updater.steps == {"a": 5}


@pytest.mark.parametrize("name", RULES)
def test_state_without_a_lie_is_taken_so_that_the_test_above_can_fail(name):
    updater, _ = trained(name)
    other = make(name, "exact")
    other.load_state_dict(change(updater.state_dict()))
    assert bits(other) == bits(updater)


def test_sums_of_squares_below_zero_are_refused():
    updater, _ = trained("adam")
    state = updater.state_dict()
    state["a/variance"][3, 1] = -1
    with pytest.raises(OptimizerError, match="a/variance has numbers below 0; it is a sum of squares"):
        updater.load_state_dict(state)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("a/mean/indices", np.arange(1, D + 1), "out of range"),
        ("a/mean/indices", np.arange(D)[::-1], "unsorted"),
        ("a/mean/indices", np.arange(D) * 0, "twice"),
        ("a/mean/values", np.zeros((D - 1, N)), "12"),
        ("a/mean/indices", np.arange(D, dtype=np.int32), "should be int64"),
    ],
)
def test_rows_of_states_that_are_not_there_are_refused(key, value, words):
    updater, _ = trained("adam", "row_sparse")
    before = bits(updater)
    with pytest.raises(OptimizerError, match=words):
        updater.load_state_dict(updater.state_dict() | {key: value})
    assert bits(updater) == before


def test_states_that_hold_different_rows_are_refused():
    updater, _ = trained("adam", "row_sparse")
    state = updater.state_dict()
    for part in ("values", "indices"):
        state[f"a/mean/{part}"] = state[f"a/mean/{part}"][1:]
    with pytest.raises(OptimizerError, match="a/variance holds other rows than a/mean"):
        updater.load_state_dict(state)


def test_no_memory_is_taken_for_a_shape_that_the_arrays_do_not_have():
    updater, _ = trained("adam", "row_sparse")
    with pytest.raises(OptimizerError, match=r"a/last is int64 \(12,\); it should be int64 \(1099511627776,\)"):
        updater.load_state_dict(change(updater.state_dict(), shape=[2**40, N]))


@pytest.mark.parametrize(
    "settings",
    [
        [],
        {},
        {"name": []},
        {"name": "sgd", "multipliers": []},
        {"name": "sgd", "multipliers": {"w": 1}},
        {"name": "sgd", "multipliers": {"w": {"rat": 1}}},
        {"name": "sgd", "multipliers": {"w": {"learning_rate": "1"}}},
        {"name": "sgd", "learning_rate": 10**400},
        {"name": "sgd", "learning_rate": "1"},
        {"name": "sgd", "clip_global_norm": "1"},
        {"name": "sgd", "clip_global_norm": 10**400},
        {"name": "sgd", "lazy": []},
        {"name": "sgd", "schedule": []},
        {"name": "sgd", "schedule": {"kind": []}},
        {"name": "sgd", "schedule": {"kind": "cosine", "steps": "9"}},
        {"name": "sgd", "schedule": {"kind": "warm_up", "steps": 3, "then": 4}},
        {"name": "sgd", "schedule": {"kind": "step_decay", "every": 10**400}},
    ],
)
def test_settings_that_make_no_updater_are_refused_in_words(settings):
    with pytest.raises(OptimizerError):
        Updater.from_settings(settings)


def test_a_schedule_without_a_rate_stops_the_step_before_anything_changes():
    updater, weights = (
        make("sgd", schedule=schedules.StepDecay(1, factor=1e300)),
        {"a": weights_of(), "b": weights_of()},
    )
    gradients = dict.fromkeys("ab", sparse_gradients(1)[0])
    updater.update(weights, gradients)
    updater.update(weights, gradients)
    before = copy.deepcopy(weights)
    with pytest.raises(OptimizerError, match="has no rate for step 3"):
        updater.update(weights, gradients)
    assert all(np.array_equal(weights[name], before[name]) for name in "ab")
