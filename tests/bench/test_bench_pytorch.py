"""Loops of PyTorch, with and without the two lines that the bridge changes, train the same weights."""

import pytest

pytest.importorskip("torch")

from workbench.bench import configurations, runner
from workbench.bench.child import measure
from workbench.bench.configurations import BenchmarkConfiguration
from workbench.bench.rounds import Policy
from workbench.bench.shapes import Shape

TINY = Shape("tiny", 40, 300, 6, sigma=0.5, slope=1.0)
QUICK = Policy(seconds_warmup=0.0, seconds_settle=0.0, seconds_sample=0.0, rounds=3)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_all_loops_train_the_weights_that_they_should(optimizer):
    rows = measure(
        configurations.field_of(BenchmarkConfiguration("pytorch", "pytorch", TINY, 4, optimizer, "new")), QUICK, 10**9
    )
    assert {row["candidate"]: row["status"] for row in rows} == {
        "ours": "ok",
        "ours, fused": "ok",
        "torch, sparse gradient": "ok",
        "torch, dense gradient": "ok",
    }
    assert max(row["error"] for row in rows) < 1e-4


def test_the_suite_has_every_width_at_both_numbers_of_features():
    every = runner.configurations_of("pytorch")
    assert {
        (configuration.shape.features, configuration.width)
        for configuration in every
        if configuration.optimizer == "adam"
    } == {(features, width) for features in (100_000, 1_000_000) for width in (1, 16, 64)}
    assert len(runner.configurations_of("pytorch", quick=True)) < len(every)
