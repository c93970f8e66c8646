"""An intercept is a column of ones without weight decay: the same training, in every format, gradient and update."""

import numpy as np
import pytest
import scipy.sparse

from tests.support import rows as made_rows
from tests.support.small_models import settings_for
from tests.support.tiny_sweeps import DENSE, FUSED, trial_row
from tests.training.test_train import FORMATS, standard, targets
from workbench import data, models, optimizers, store, training
from workbench.analysis import configurations
from workbench.command.training import configuration_of
from workbench.sweeps import grid, spec

WAYS = [
    *(standard(format) for format in FORMATS),
    {"update": "lazy"},
    {"update": "exact"},
    {"gradient": "fused", "update": "lazy"},
    {"gradient": "fused", "update": "exact", "format": "coo"},
    {"ahead": True, "shuffle": False},
]


PRODUCTS = [name for name in models.names() if models.get(name).is_product]
"""Models to which a column of ones is an intercept and nothing else."""


@pytest.fixture(scope="module")
def made() -> data.Dataset:
    return data.load("power_law", rows=90, features=40, density=0.15, classes=3, seed=1, cache=False)


def run_of(x, y, width, **settings):
    setup = training.Setup(batch_rows=20, dtype="float64", **settings)
    return training.Run(setup, x.toarray() if setup.format == "dense" else x, y, width)


def losses(run, steps=12):
    events = run.events()
    return [next(events).loss for _ in range(steps)]


def with_ones(x):
    return scipy.sparse.csr_array(scipy.sparse.hstack([x, np.ones((x.shape[0], 1))], format="csr"))


@pytest.mark.parametrize(
    ("model", "optimizer", "way"),
    [
        *(("softmax", optimizer, way) for optimizer in ("momentum", "adam") for way in WAYS),
        *((model, optimizer, WAYS[0]) for model in PRODUCTS for optimizer in ("sgd", "adagrad", "ftrl")),
    ],
    ids=str,
)
def test_it_trains_as_a_column_of_ones_does(made, model, optimizer, way):
    y, width = targets(made, model)
    x = made.x.astype(np.float64)
    settings = {"model": model, "optimizer": optimizer, **way}
    one = run_of(x, y, width, **settings, intercept=True)
    other = run_of(with_ones(x), y, width, **settings, intercept=False)
    np.testing.assert_allclose(losses(one), losses(other), rtol=1e-9)
    np.testing.assert_allclose(one.intercept, other.weights[-1], rtol=1e-8, atol=1e-12)
    assert one.intercept.any()
    scores = one.predict(x)
    np.testing.assert_allclose(scores, other.predict(with_ones(x)), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(scores, x @ one.weights + one.intercept, rtol=1e-8, atol=1e-12)


def test_by_default_real_data_has_one_on_the_cpu():
    has = {
        (dataset, device): grid.setup_of(spec.Configuration(dataset=dataset, device=device)).has_intercept
        for dataset in ("stdlib", "uniform")
        for device in ("cpu", "cuda")
    }
    assert [pair for pair, one in has.items() if one] == [("stdlib", "cpu")]
    assert training.Setup().has_intercept
    assert not training.Setup(intercept=False).has_intercept


def test_weight_decay_leaves_it_alone(made):
    y, width = targets(made, "linear")
    x = scipy.sparse.csr_array(made.x.shape, dtype=np.float64)  # no entries: only the intercept learns
    runs = [run_of(x, y, width, model="linear", options={"decay": decay}, intercept=True) for decay in (0.0, 0.5)]
    assert losses(runs[0]) == losses(runs[1])
    np.testing.assert_array_equal(runs[0].intercept, runs[1].intercept)


def test_a_training_that_is_reset_starts_without_it(made):
    y, width = targets(made, "softmax")
    run = run_of(made.x.astype(np.float64), y, width, optimizer="adam", intercept=True, shuffle=False)
    first = losses(run)
    run.reset()
    assert not run.intercept.any()
    assert losses(run) == first


def test_without_it_nothing_is_there(made):
    y, width = targets(made, "softmax")
    run = run_of(made.x.astype(np.float64), y, width, intercept=False)
    assert run.intercept is None
    assert list(run.arrays) == ["w"]
    assert run.executor.graph.arguments() == ["x", "w", "y"]


@pytest.mark.covering(targets=lambda case: {case["model"], str(case["setting"])})
@pytest.mark.parametrize("model", [name for name in models.names() if models.get(name).has_intercept])
@pytest.mark.parametrize("setting", [{}, DENSE, FUSED, {"update": "exact"}], ids=str)
def test_trials_check_it_before_timing(model, setting):
    row = trial_row(optimizer="adam", intercept=True, **settings_for(model), **setting)
    assert (row["status"], row["reason"]) == ("ok", "")
    assert row["intercept"] is True


@pytest.mark.parametrize("optimizer", optimizers.names())
def test_every_optimizer_steps_it_rightly(optimizer):
    row = trial_row(optimizer=optimizer, density=0.2, intercept=True)
    assert (row["status"], row["reason"]) == ("ok", "")


def test_a_wrong_step_of_it_is_refused_a_time(monkeypatch):
    real = training.Run.update

    def slightly_wrong(self, gradient):
        real(self, gradient)
        self.arrays["b"][...] *= 1.01

    monkeypatch.setattr(training.Run, "update", slightly_wrong)
    row = trial_row(density=0.2, intercept=True)
    assert row["status"] == "wrong"
    assert "update of b by 0.01" in row["reason"]


def test_on_cuda_there_is_none_yet():
    reason = training.impossible_reason(training.Setup(device="cuda", intercept=True))
    assert reason == "Models with an intercept do not train on cuda yet: take device cpu, or give X a column of ones."
    assert training.impossible_reason(training.Setup(intercept=True)) == ""
    found = grid.expand_grid(
        spec.parse_spec('name = "x"\n[axes]\nintercept = [true, false]\ndevice = ["cpu", "cuda"]\n')
    )
    assert {(configuration.device, configuration.intercept) for configuration in found.configurations} == {
        ("cpu", True),
        ("cpu", False),
        ("cuda", False),
    }
    assert found.dropped == {reason: 1}


def test_it_is_an_axis_and_an_option_of_the_command():
    configuration = configuration_of({"intercept": True})
    assert grid.setup_of(configuration).intercept
    assert grid.configuration_key(configuration) != grid.configuration_key(configuration_of({}))
    assert (
        grid.describe_configuration(configuration)
        == f"{grid.describe_configuration(configuration_of({}))} intercept=True"
    )
    with pytest.raises(spec.SpecError, match="intercept = 'maybe': 'maybe' is text; expected true or false"):
        spec.parse_spec('name = "x"\n[axes]\nintercept = "maybe"\n')


def test_rows_with_and_without_it_are_not_compared():
    frame = store.frame(row for flag in (True, False, None) for row in made_rows.sweep(intercept=flag))
    labels = {group.settings["intercept"]: group.label for group in configurations.groups(frame)}
    assert set(labels) == {True, False}
    assert labels[True] == "with an intercept"
