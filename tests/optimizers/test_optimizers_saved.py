"""State and settings of an updater: saved, loaded, gone on from with the same bits; and schedules."""

import json

import numpy as np
import pytest

from tests.optimizers.test_optimizers_updater import D, N, every_rule, make, sparse_gradients, weights_of
from workbench import formats, optimizers
from workbench.formats import to_format
from workbench.optimizers import Multiplier, OptimizerError, Updater, schedules
from workbench.optimizers.schedules import Constant, Cosine, Polynomial, StepDecay, WarmUp


def parts(x):
    return [x] if isinstance(x, np.ndarray) else [x.values, x.indices]


def same_bits(one, other):
    return all(
        a.tobytes() == b.tobytes() and a.dtype == b.dtype
        for x, y in zip(one, other, strict=True)
        for a, b in zip(parts(x), parts(y), strict=True)
    )


@every_rule
@pytest.mark.covering
@pytest.mark.parametrize("lazy", optimizers.LAZY)
@pytest.mark.parametrize("held", ["dense", "row_sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_that_was_stopped_goes_on_with_the_same_bits(name, lazy, held, dtype, tmp_path):
    start = weights_of(dtype=dtype)
    start[::3] = 0
    gradients, schedule = sparse_gradients(20, seed=6, dtype=dtype), WarmUp(5, Cosine(40))
    through, weights = make(name, lazy, schedule=schedule), to_format(start.copy(), held)
    for number, gradient in enumerate(gradients):
        if number == 11:
            kept = formats.copy(weights)
            formats.save(tmp_path / "state.npz", through.state_dict())
        through.update({"w": weights}, {"w": gradient})
    resumed = make(name, lazy, schedule=schedule)
    resumed.load_state_dict(formats.load(tmp_path / "state.npz"))
    assert resumed.steps == {"w": 11}
    for gradient in gradients[11:]:
        resumed.update({"w": kept}, {"w": gradient})
    for updater, w in ((through, weights), (resumed, kept)):
        updater.catch_up({"w": w})
    assert same_bits([weights, *through.states["w"]], [kept, *resumed.states["w"]])


def saved(name="adam", lazy="exact"):
    updater = make(name, lazy)
    updater.update({"a": weights_of()}, {"a": sparse_gradients(1)[0]})
    return updater.state_dict()


def test_state_is_plain_arrays_by_name_over_their_own_memory():
    updater, weights = make("adam", "exact"), weights_of()
    updater.update({"a": weights}, {"a": sparse_gradients(1)[0]})
    state = updater.state_dict()
    assert set(state) == {"about", "a/mean", "a/variance", "a/last", "a/record"}
    assert all(type(array) is np.ndarray and array.dtype.kind in "fiu" for array in state.values())
    before = state["a/mean"].copy()
    updater.update({"a": weights}, {"a": sparse_gradients(1)[0]})
    np.testing.assert_array_equal(state["a/mean"], before)


def test_loaded_state_has_its_own_memory():
    state, updater = saved(), make("adam", "exact")
    updater.load_state_dict(state)
    before = {key: array.copy() for key, array in state.items()}
    weights = weights_of()
    for _ in range(2):
        updater.update({"a": weights}, {"a": sparse_gradients(1)[0]})
    assert all(np.array_equal(state[key], before[key]) for key in state)


def about(**changes):
    """A change of the saved text."""

    def change(state):
        text = json.loads(state["about"].tobytes()) | changes
        state["about"] = np.frombuffer(json.dumps(text).encode(), np.uint8)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("a/mean"), r"unknown arrays \[\] and lacks \['a/mean'\]"),
        (lambda s: s.update({"a/meen": np.ones(1)}), r"unknown arrays \['a/meen'\] and lacks \[\]"),
        (lambda s: s.pop("about"), "no state of an updater: it has no array 'about'"),
        (lambda s: s.update(about=s["about"][:-9]), "no state of an updater: its array 'about' cannot be read"),
        (about(optimizer="sgd"), "saved with optimizer sgd; this updater has adam"),
        (about(lazy="on"), "saved with lazy on; this updater has exact"),
        (lambda s: s.update({"a/mean": np.ones((D, N + 1))}), rf"a/mean is float64 \({D}, {N + 1}\); it should be"),
        (lambda s: s.update({"a/last": np.ones(D)}), r"a/last is float64 \(12,\); it should be int64"),
        (lambda s: s.update({"a/record": np.ones((1, 2))}), r"a/record is float64 \(1, 2\); it should be .* \(1, 9\)"),
        (lambda s: s.update({"a/record": s["a/record"][:0]}), r"a/record is float64 \(0, 9\)"),
    ],
)
def test_state_that_does_not_fit_is_refused_and_nothing_changes(change, words):
    state, updater = saved(), make("adam", "exact")
    updater.update({"b": weights_of()}, {"b": sparse_gradients(1)[0]})
    change(state)
    with pytest.raises(OptimizerError, match=words):
        updater.load_state_dict(state)
    assert list(updater.parameters) == ["b"]


def test_record_of_one_way_to_catch_up_is_refused_by_another():
    state, updater = saved("rmsprop"), make("rmsprop", "exact", decay=0.0)
    with pytest.raises(OptimizerError, match="in the way 'step_by_step'; under these options it is 'closed_form'"):
        updater.load_state_dict(state)


def test_settings_make_the_same_updater():
    made = Updater(
        "signum",
        lazy="exact",
        rescale=0.5,
        clip=1.0,
        clip_global_norm=3.0,
        schedule=WarmUp(3, StepDecay(2)),
        multipliers={"w": Multiplier(2.0, 0.0)},
        decoupled=0.1,
    )
    again = Updater.from_settings(json.loads(json.dumps(made.settings, allow_nan=False)))
    assert again.settings == made.settings
    assert (again.options, again.schedule, again.multipliers) == (made.options, made.schedule, made.multipliers)
    assert Updater.from_settings({"name": "sgd"}).settings == Updater("sgd").settings
    with pytest.raises(OptimizerError, match=r"sgd has no option \['lr'\]"):
        Updater.from_settings({"name": "sgd", "lr": 0.1})


RATES = {
    Constant(): [2.0, 2.0, 2.0, 2.0, 2.0, 2.0],
    StepDecay(2, 0.5): [2.0, 2.0, 1.0, 1.0, 0.5, 0.5],
    StepDecay(1, 0.5, final=0.25): [2.0, 1.0, 0.5, 0.5, 0.5, 0.5],
    Polynomial(4): [2.0, 1.5, 1.0, 0.5, 0.0, 0.0],
    Polynomial(2, power=2.0, final=0.5): [2.0, 1.25, 1.0, 1.0, 1.0, 1.0],
    Cosine(4): [2.0, 1 + np.sqrt(0.5), 1.0, 1 - np.sqrt(0.5), 0.0, 0.0],
    Cosine(2, final=0.5): [2.0, 1.5, 1.0, 1.0, 1.0, 1.0],
    WarmUp(2): [1.0, 2.0, 2.0, 2.0, 2.0, 2.0],
    WarmUp(4, start=0.2): [0.8, 1.2, 1.6, 2.0, 2.0, 2.0],
    WarmUp(2, Polynomial(4)): [1.0, 2.0, 2.0, 1.5, 1.0, 0.5],
}


@pytest.mark.parametrize(("schedule", "rates"), RATES.items(), ids=map(str, RATES))
def test_schedule_gives_the_rate_of_each_step(schedule, rates):
    np.testing.assert_allclose([schedule.rate(step, 2.0) for step in range(1, 7)], rates, atol=1e-15)
    again = schedules.from_json(json.loads(json.dumps(schedules.to_json(schedule))))
    assert again == schedule
    assert hash(again) == hash(schedule)


def test_every_kind_of_schedule_is_tested():
    assert {type(schedule) for schedule in RATES} == set(schedules.KINDS.values())


@pytest.mark.parametrize(
    ("saved", "words"),
    [
        (
            {"kind": "linear"},
            "Unknown schedule 'linear'.*Expected one of: constant, step_decay, polynomial, cosine, warm_up",
        ),
        ({"kind": "cosine", "step": 3}, r"Unknown field of cosine 'step'.*Expected one of: final, steps"),
        ({"kind": "cosine"}, "cosine lacks steps"),
        ({"kind": "step_decay", "every": 0}, "StepDecay: every is 0; it is 1 or more"),
        ({"kind": "warm_up", "steps": 0}, "WarmUp: steps is 0; it is 1 or more"),
    ],
)
def test_schedules_that_are_not_known_are_refused(saved, words):
    with pytest.raises(OptimizerError, match=words):
        schedules.from_json(saved)
