"""What a row keeps of the losses of a training."""

import numpy as np

from workbench.sweeps import trial


def test_a_long_training_leaves_a_short_curve_with_both_of_its_ends():
    steps = 12_345
    columns = trial.curve_columns(np.full(steps, 1 / 3), np.linspace(2.0, 1 / 7, steps), first=6)
    points = columns["curve"]
    assert len(points) == trial.CURVE_POINTS
    assert points[0] == [0.33333, 2.0, 6]
    assert points[-1] == [4115.0, 0.14286, steps + 5]
    assert (columns["loss_first"], columns["loss_last"]) == (2.0, 1 / 7)


def test_a_short_training_keeps_every_step():
    points = trial.curve_columns(np.ones(3), np.array([3.0, np.nan, 1.0]), first=1)["curve"]
    assert [point[2] for point in points] == [1, 2, 3]
    assert np.isnan(points[1][1])
