"""The pruned network: held sparse and dense it is one model, its pattern moves, and it goes on from a file."""

import copy
import pickle

import numpy as np
import pytest

from tests.support.small_models import training_of
from workbench import formats, models, training
from workbench.models import ModelError
from workbench.training.learner import Learner

MODEL = models.get("pruned_mlp")
SMALL = "hidden=12x10, density=0.3"
MOVING = {"set": f"{SMALL}, pattern=set, every=3"}
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
CSR = {"format": "csr", "gradient": "dense", "update": "standard"}


def trained(options: str, epochs: int = 3, **settings) -> tuple[training.Run, list[float]]:
    run, *_ = training_of(MODEL, **{"model_options": options, "optimizer": "adam", **settings})
    return run, [event.loss for event in run.events(epochs)]


def matrix(run: training.Run, name: str) -> np.ndarray:
    """A weight matrix [D, N], made dense."""
    return run.pattern(name).matrix(run.patterned[name].values).toarray()


def names(run: training.Run) -> list[str]:
    return list(run.patterned)


@pytest.mark.parametrize("options", [SMALL, *MOVING.values()], ids=["fixed", *MOVING])
@pytest.mark.parametrize("x", [DENSE, CSR], ids=["x dense", "x csr"])
def test_with_csr_weights_and_with_a_mask_it_trains_alike(options, x):
    """In 15 steps of Adam the pattern moves four times."""
    (sparse, losses), (masked, expected) = (trained(f"{options}, weights={held}", **x) for held in ("csr", "masked"))
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    for name in names(sparse):
        assert sparse.executor.args[name].format == "csr"
        assert isinstance(masked.executor.args[name], np.ndarray)
        np.testing.assert_array_equal(sparse.pattern(name).keys, masked.pattern(name).keys)
        np.testing.assert_allclose(matrix(sparse, name), masked.arrays[name], rtol=1e-6, atol=1e-10)


def by_hand(run: training.Run, x: np.ndarray, y: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
    """Mean loss and dense gradients [D, N] of the weight matrices, in plain NumPy."""
    weights = [matrix(run, name) for name in names(run)]
    layers = [x]
    for number, weight in enumerate(weights, start=1):
        last = number == len(weights)
        z = layers[-1] @ weight + (run.arrays["b"] if last else run.arrays[f"c{number}"].T)
        layers.append(z if last else np.maximum(z, 0))
    odds = np.exp(layers[-1] - layers[-1].max(1, keepdims=True))
    shares = odds / odds.sum(1, keepdims=True)
    loss = -np.log(shares[np.arange(len(y)), y]).mean()
    slope, gradients = (shares - np.eye(shares.shape[1])[y]) / len(y), {}
    for name, weight, below in reversed(list(zip(names(run), weights, layers, strict=False))):
        gradients[name] = below.T @ slope
        slope = (slope @ weight.T) * (below > 0)
    return loss, gradients


@pytest.mark.parametrize("held", ["csr", "masked"])
def test_the_gradient_is_that_of_the_dense_formula_at_the_pattern(held):
    run, x, y = training_of(MODEL, model_options=f"{SMALL}, weights={held}", batch_rows=200, shuffle=False)
    batch = run.prepare(next(iter(run.batches.epoch(0))))
    loss, expected = by_hand(run, x.toarray(), y)
    assert run.forward(batch) == pytest.approx(loss, rel=1e-12)
    gradients = run.backward()
    for name in names(run):
        at = run.pattern(name)
        came = run.gradient_rows(gradients[name], np.arange(at.nnz), name)
        np.testing.assert_allclose(came, expected[name][at.rows, at.indices], rtol=1e-9, atol=1e-14)


def step_that_moves(**settings) -> tuple[training.Run, dict]:
    """(the run after a step that moved the pattern, patterns, values and states before it)."""
    options = f"{SMALL}, pattern=set, every=3, until=30, fraction=0.5"
    run, *_ = training_of(MODEL, model_options=options, batch_rows=200, shuffle=False, optimizer="adam", **settings)
    for _ in run.events(2):
        pass
    before = {
        name: (one.pattern, one.values.copy(), copy.deepcopy(run.updater.states[name]))
        for name, one in run.patterned.items()
    }
    next(run.events(1))
    return run, before


def test_states_of_what_was_dropped_go_and_those_of_what_was_grown_are_new(monkeypatch):
    monkeypatch.setattr(
        training.Run, "update", lambda self, gradients: None if self.step == 3 else UPDATE(self, gradients)
    )
    run, before = step_that_moves(**CSR)
    for name, (pattern, _, states) in before.items():
        now = run.pattern(name)
        stayed = np.isin(now.keys, pattern.keys)
        assert stayed.sum() < now.nnz == pattern.nnz
        for old, new in zip(states, run.updater.states[name], strict=True):
            table = pattern.matrix(old).toarray().reshape(-1)
            either = (new == table[now.keys]) | (new == 0)
            assert either.all()
            assert not new[~stayed].any()
            assert new[stayed].any()


UPDATE = training.Run.update


def test_set_grows_elsewhere_for_another_seed_and_alike_for_the_same():
    one, losses = trained(MOVING["set"])
    same, same_losses = trained(MOVING["set"])
    other, _ = trained(MOVING["set"], seed=1)
    assert losses == same_losses
    for name in names(one):
        np.testing.assert_array_equal(one.pattern(name).keys, same.pattern(name).keys)
    assert (one.pattern("w1").keys != other.pattern("w1").keys).any()
    one.reset()
    assert [event.loss for event in one.events(3)] == losses


@pytest.mark.parametrize("options", MOVING.values(), ids=MOVING)
@pytest.mark.parametrize("settings", [{}, DENSE, {"update": "exact"}], ids=str)
def test_it_goes_on_from_a_file_with_the_same_bits(options, settings, tmp_path):
    settings = {"model_options": options, "optimizer": "adam", "shuffle": True, **settings}
    (whole, *_), (first, *_), (then, *_) = (training_of(MODEL, **settings) for _ in range(3))
    expected = [event.loss for epoch in range(4) for event in whole.epoch(epoch)]
    losses = [event.loss for epoch in range(2) for event in first.epoch(epoch)]
    formats.save(tmp_path / "state", first.state_dict())
    then.load_state_dict(formats.load(tmp_path / "state"))
    losses += [event.loss for epoch in (2, 3) for event in then.epoch(epoch)]
    assert losses == expected
    for name in names(whole):
        np.testing.assert_array_equal(matrix(then, name), matrix(whole, name))


def test_a_state_that_does_not_fit_is_refused_and_nothing_changes():
    run, _ = trained(SMALL, epochs=1)
    state, before = run.state_dict(), run.state_dict()
    weights = state["parameter:w1"]
    twice = weights.copy()
    twice.indices[:2] = twice.indices[0]
    for change, message in [
        ({"parameter:w1": weights.data}, "as dense float64 (.*): values are saved with their places"),
        ({"parameter:w1": weights[:, :-1]}, r"w1 as csr float64 \(40, 11\) of .*; that of this training is csr"),
        ({"parameter:w1": twice}, "columns unsorted or twice"),
        ({"parameter:c1": state["parameter:c1"][:-1]}, "c1 as dense float64"),
        ({"step": np.array([-1])}, "step is array"),
        ({"more": weights}, "The state has .*'more'"),
    ]:
        with pytest.raises(training.SetupError, match=message):
            run.load_state_dict({**state, **change})
    after = run.state_dict()
    for name, array in before.items():
        same = (array != after[name]).nnz == 0 if name.startswith("parameter:w") else (array == after[name]).all()
        assert same, name


def test_a_learner_with_a_pattern_that_moved_is_pickled_with_it():
    setup = training.Setup(model="pruned_mlp", model_options=MOVING["set"], batch_rows=40, optimizer="adam")
    run, x, y = training_of(MODEL, model_options=MOVING["set"])
    x = x.astype(np.float32)
    learner = Learner(setup, x.shape[1], 3)
    assert len(list(learner.epochs(x, y, None, 3))) == 3
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.scores(x), learner.scores(x))
    assert (again.run.pattern("w1").keys != run.pattern("w1").keys).any()


def test_few_weights_take_few_bytes():
    options = "hidden=256x256, density=0.02"
    sparse, masked = (training_of(MODEL, model_options=f"{options}, weights={held}")[0] for held in ("csr", "masked"))
    assert sparse.densified() == []
    weights = [sum(array.nbytes for array in run.arrays.values()) for run in (sparse, masked)]
    assert weights[0] < 0.05 * weights[1]
    assert sparse.bytes_held < 0.5 * masked.bytes_held


@pytest.mark.parametrize(
    ("options", "shapes"), [("hidden=7", [(40, 7), (7, 3)]), ("hidden=7x5x4", [(40, 7), (7, 5), (5, 4), (4, 3)])]
)
def test_hidden_layers_have_the_sizes_asked_for(options, shapes):
    run, *_ = training_of(MODEL, model_options=options)
    assert [parameter.matrix for parameter in run.parameters if parameter.matrix] == shapes


@pytest.mark.parametrize("hidden", ["0", "7x", "axb", "2.5"])
def test_other_sizes_are_refused(hidden):
    with pytest.raises(ModelError, match="it is text such as 1024x1024"):
        MODEL.resolve(f"hidden={hidden}")


def test_what_it_does_not_do_is_refused_in_words():
    assert "no steps on cuda yet" in training.impossible_reason(training.Setup(model="pruned_mlp", device="cuda"))
    with pytest.raises(ModelError, match="take weights=csr"):
        training_of(MODEL, optimizer="group_adagrad", **DENSE)
