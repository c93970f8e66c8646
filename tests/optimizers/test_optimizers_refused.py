"""What an updater refuses, in words, before anything has changed."""

import numpy as np
import pytest

from workbench import optimizers
from workbench.formats import RowSparse, to_format
from workbench.optimizers import Multiplier, OptimizerError, Updater, schedules


@pytest.mark.parametrize("lazy", ["off", "on", "exact"])
@pytest.mark.parametrize("format", ["dense", "row_sparse"])
def test_read_only_weights_are_refused_and_no_step_is_counted(format, lazy):
    updater, weights = Updater("adam", lazy=lazy), to_format(np.ones((4, 2)), format)
    getattr(weights, "values", weights).flags.writeable = False
    with pytest.raises(OptimizerError, match="The weights w are read-only; give a copy that can be written to"):
        updater.update({"w": weights}, {"w": RowSparse(np.ones((1, 2)), [2], (4, 2))})
    assert updater.steps == {}


def test_an_updater_says_what_it_does():
    assert repr(Updater("adam", lazy="exact", learning_rate=0.01)) == "<Updater adam, lazy=exact, rate 0.01>"


def test_weights_that_became_others_are_refused():
    updater = Updater("adam")
    updater.update({"w": np.ones(3)}, {"w": np.ones(3)})
    for weights in (np.ones(4), np.ones(3, np.float32), RowSparse.from_dense(np.ones(3))):
        with pytest.raises(OptimizerError, match=r"were dense float64 \(3,\) before and are"):
            updater.update({"w": weights}, {"w": to_format(weights, "dense")})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lazy": "lazy"}, "lazy is 'lazy'; it is one of off, on, exact"),
        ({"clip_global_norm": 0}, "clip_global_norm is 0; it is above 0"),
        ({"momentum": 0.9}, r"sgd has no option \['momentum'\]; its options are"),
        ({"schedule": 0.1}, "A schedule is 0.1; it is a workbench.optimizers Schedule"),
        ({"multipliers": {"w": 2.0}}, "A multiplier is 2.0; it is a workbench.optimizers Multiplier"),
        ({"clip": -1.0}, "clip is -1.0; it is 0 or more"),
    ],
)
def test_settings_that_are_not_known_are_refused(settings, words):
    with pytest.raises(OptimizerError, match=words):
        Updater("sgd", **settings)


def test_a_rate_of_zero_is_refused_of_the_rule_that_divides_by_it():
    """The weights became NaN, as in the last steps of a schedule that ends in 0."""
    with pytest.raises(OptimizerError, match="ftrl: learning_rate is 0; expected above 0"):
        Updater("ftrl", learning_rate=0.0)
    frozen = Updater("ftrl", multipliers={"w": Multiplier(learning_rate=0.0)})
    with pytest.raises(OptimizerError, match="ftrl: the learning rate of step 1 is 0; expected above 0"):
        frozen.update({"w": np.ones((4, 2))}, {"w": np.ones((4, 2))})
    updater, weights = Updater("ftrl", schedule=schedules.Cosine(3)), np.ones((4, 2))
    for _ in range(3):
        updater.update({"w": weights}, {"w": np.ones((4, 2))})
    before = weights.copy()
    with pytest.raises(OptimizerError, match="ftrl: the learning rate of step 4 is 0; expected above 0"):
        updater.update({"w": weights}, {"w": np.ones((4, 2))})
    np.testing.assert_array_equal(weights, before)
    assert updater.steps == {"w": 3}
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("name", [name for name in optimizers.names() if name != "ftrl"])
@pytest.mark.parametrize("lazy", ["off", "on", "exact"])
def test_a_rate_of_zero_leaves_the_weights_of_other_rules_as_they_are(name, lazy):
    updater, weights = Updater(name, lazy=lazy, learning_rate=0.0), np.ones((4, 2))
    for _ in range(3):
        updater.update({"w": weights}, {"w": RowSparse(np.ones((1, 2)), [2], (4, 2))})
    updater.catch_up({"w": weights})
    np.testing.assert_array_equal(weights, np.ones((4, 2)))


def test_multipliers_without_a_parameter_are_found():
    updater = Updater("sgd", multipliers={"weight": Multiplier()})
    updater.check_names(["weight", "bias"])
    with pytest.raises(OptimizerError, match=r"Unknown parameter of a multiplier 'weight'.*Expected one of: bias"):
        updater.check_names(["bias"])
