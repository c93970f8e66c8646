"""Training on a real device, where there is one: kernel by kernel and in one graph, against the training on the CPU."""

import numpy as np
import pytest

from kernels import devices
from workbench import data, training

found = devices.probe()
if not found.present:
    pytest.skip(f"Training on a GPU needs a CUDA device: {found.reason}", allow_module_level=True)


FUSED = {"gradient": "fused"}
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("launch", ["kernels", "graph"])
@pytest.mark.parametrize(("way", "features"), [(FUSED, 20_000), (DENSE, 2000)], ids=["fused", "dense"])
def test_a_training_is_that_of_the_cpu(way: dict, features: int, launch: str, shuffle: bool, ahead: bool) -> None:
    """The last batch of an epoch is smaller; copies of the next one overlap the step."""
    made = data.load("power_law", rows=5000, features=features, density=40 / features, classes=10, seed=0)
    settings = {**way, "optimizer": "adagrad", "batch_rows": 512, "shuffle": shuffle, "ahead": ahead}
    settings |= {"intercept": False}
    here = training.make_run(training.Setup(**settings), made.x, made.y, 10)
    there = training.make_run(training.Setup(**settings, device="cuda", launch=launch), made.x, made.y, 10)
    expected, came = ([event.loss for event in run.events(4)] for run in (here, there))
    np.testing.assert_allclose(came, expected, rtol=1e-4)
    rows = np.unique(made.x.indices)
    np.testing.assert_allclose(there.read_rows(rows), here.read_rows(rows), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("way", [FUSED, DENSE], ids=["fused", "dense"])
def test_a_graph_is_checked_watched_and_reset(way: dict) -> None:
    from workbench.sweeps.check import check_step

    made = data.load("uniform", rows=3000, features=5000, density=0.01, classes=4, seed=0)
    setup = training.Setup(**way, batch_rows=1000, device="cuda", launch="graph")
    run = training.make_run(setup, made.x, made.y, 4)
    assert check_step(run).reason == ""
    assert run.watch() >= run.bytes_device_held > 0
    first = [event.loss for event in run.events(2)]
    run.reset()
    assert [event.loss for event in run.events(2)] == first
