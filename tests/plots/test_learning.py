"""What the loss chart claims: who reaches the loss that dense ends with, and when, is true of the whole curve."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.support import rows as maker
from workbench import plots, store
from workbench.analysis import configurations
from workbench.plots import learning, style

STEPS = 60
DENSE_SECONDS, SPARSE_SECONDS = 8e-3, 5.1e-3
NOT_REACHED = "no sparse configuration is seen to reach the loss that dense ends with"


def falling(first, last, by=8.0, steps=STEPS):
    """Losses that fall from `first` to close to `last`."""
    return [last + (first - last) * float(np.exp(-step / by)) for step in range(steps)]


def said(dense, sparse, **known):
    """Title and sentence of the chart where dense and sparse train with those losses."""
    rows = maker.sweep(densities=(0.05,), rounds=4, noise=1e-3, **known)
    figure = Figure(figsize=(9, 6))
    sentence = plots.draw("learning", store.frame([curved(row, dense, sparse) for row in rows]), figure)
    return figure.get_suptitle().replace("\n", " "), sentence


def curved(row, dense, sparse):
    """The row with a curve of those losses, one a step."""
    losses = dense if row["format"] == "dense" else sparse
    return row | {"curve": [[1e9, loss, step] for step, loss in enumerate(losses, 1)]}


def steps_to(losses, share=0.99):
    """Steps until the median of seven losses has made that share of the drop, counted without the chart's code."""
    last = np.median(losses[-7:])  # of 60 points
    target = losses[0] - share * (losses[0] - last)
    medians = [np.median(losses[max(0, end - 7) : end]) if end >= 4 else np.inf for end in range(1, len(losses) + 1)]
    return next(step for step, loss in enumerate(medians, 1) if loss <= target)


def test_the_time_to_a_loss_counts_the_drop_and_not_the_first_step():
    losses = falling(0.700, 0.696)  # every one of them is within 1 % of the last
    title, sentence = said(losses, losses)
    steps = steps_to(losses)
    assert steps > 20
    assert title.startswith("Sparse reaches the loss of dense in ")
    rows = configurations.records(
        configurations.pool_rounds(store.frame(maker.sweep(densities=(0.05,), rounds=4, noise=1e-3)))
    )
    times = {row["format"]: style.seconds(row, steps) for row in rows}
    assert f"in {times['csr']} instead of {times['dense']}" in title
    assert f"after {steps} steps of sparse and {steps} of dense" in sentence


@pytest.mark.parametrize(
    ("sparse", "expected"),
    [
        (falling(0.4, 0.3), "cannot be compared: the loss starts lower there"),
        (falling(0.7, 0.4), "It is not reached with sparse"),
        ([*falling(0.7, 0.3)[:40], *np.linspace(0.3, 5.0, 20)], "It is not reached with sparse"),
        ([*falling(0.7, 0.3)[:40], *[None] * 20], "It is not reached with sparse"),
        ([0.7], "It is not reached with sparse"),
        ([0.7, 0.1], "It is not reached with sparse"),
    ],
    ids=["starts lower", "not reached", "rises again", "lost at the end", "one step", "two steps, far apart"],
)
def test_a_loss_that_sparse_does_not_reach_is_not_claimed(sparse, expected):
    title, sentence = said(falling(0.7, 0.3), sparse)
    assert "instead of" not in title
    assert NOT_REACHED in sentence
    assert expected in sentence


@pytest.mark.parametrize(
    "dense", [falling(0.3, 0.7), [0.7], [None, 0.3], [0.7, None], [0.5, 0.5], []], ids=lambda losses: str(losses)[:12]
)
def test_without_a_loss_of_dense_that_falls_nothing_is_claimed(dense):
    title, sentence = said(dense, falling(0.7, 0.3))
    assert title == "Loss against training time"
    assert "dense has no loss that falls" in sentence


def test_negative_losses_fall_like_others():
    losses = falling(-0.2, -3.0)
    title, sentence = said(losses, losses)
    assert "Sparse reaches the loss of dense" in title
    assert f"after {steps_to(losses)} steps" in sentence


def test_fewer_steps_of_a_longer_step_are_weighed():
    slow, quick = falling(0.7, 0.3, by=8.0), falling(0.7, 0.3, by=2.0)
    assert said(slow, quick)[0].startswith("Sparse reaches")
    assert said(quick, slow)[0].startswith("Dense reaches its loss")


def test_times_that_the_rounds_do_not_tell_apart_are_no_claim():
    losses = falling(0.7, 0.3)
    alike = (maker.DENSE, maker.Law(fixed=8e-3, slope=0.0))
    rows = [curved(row, losses, losses) for row in maker.sweep(alike, (0.05,), rounds=4, noise=0.3)]
    figure = Figure()
    sentence = plots.draw("learning", store.frame(rows), figure)
    assert "inconclusive" in sentence
    assert "instead of" not in sentence + figure.get_suptitle()


def test_the_time_of_the_axis_is_that_of_the_other_charts():
    frame = configurations.pool_rounds(store.frame(maker.sweep(densities=(0.05,), rounds=3)))
    for row in configurations.records(frame):
        curve = learning.curve_of(row)
        np.testing.assert_allclose(curve[:, 0], curve[:, 2] * row["seconds_step"])
