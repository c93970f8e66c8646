"""Slices for several workers are cut from data and labels in every format, converted or as they come."""

import numpy as np
import pytest

from tests.support import small_modules as small
from workbench import data, formats, graph, ops


def linear_of(declared):
    """Linear regression on data that the graph takes in that format, and targets in any."""
    x, label = graph.variable("data", format=declared), graph.variable("label")
    weight = graph.variable("weight", shape=(small.FEATURES, 2), init=("normal", 0.1))
    return ops.linear_regression_output(ops.dot(x, weight), label)


def uneven(held):
    """The small set in a format, with duplicates where coo may have them, and a row and columns without entries."""
    x = small.DENSE.copy()
    x[17] = 0
    made = formats.to_format(x, held)
    if held != "coo":
        return made
    row, col = made.coords
    twice = {"data": np.tile(made.data / 2, 2)[::-1].copy(), "row": np.tile(row, 2)[::-1].copy()}
    return formats.get("coo").build(twice | {"col": np.tile(col, 2)[::-1].copy()}, made.shape)


def trained_on(held, declared, convert, workers, label="dense"):
    batch = data.Batch(
        {"data": uneven(held)}, {"label": formats.to_format(small.TARGETS, label)}, np.arange(small.ROWS)
    )
    module = small.module(linear_of(declared), batch, {"convert": convert}, workers=workers)
    for _ in range(2):
        outputs = module.forward(batch)
        module.backward()
        module.update()
    return outputs[0], module.weights()["weight"]


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("declared", ["csr", "csc", "coo", "dense", "row_sparse"])
@pytest.mark.parametrize("held", ["csr", "csc", "coo", "dense", "row_sparse"])
def test_slices_are_cut_from_data_in_every_format(held, declared, workers):
    alone = trained_on(held, declared, True, 1)
    several = trained_on(held, declared, True, workers)
    for one, other in zip(alone, several, strict=True):
        np.testing.assert_allclose(formats.to_format(other, "dense"), formats.to_format(one, "dense"), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::workbench.ops.DensifyWarning")
@pytest.mark.parametrize("held", ["csr", "csc", "coo", "dense", "row_sparse"])
def test_data_that_is_not_converted_comes_in_its_own_format_in_every_slice(held):
    alone, several = trained_on(held, held, False, 1), trained_on(held, held, False, 3)
    np.testing.assert_allclose(several[1], alone[1], rtol=1e-9)
    batch = data.Batch({"data": uneven(held)}, {"label": small.TARGETS}, np.arange(small.ROWS))
    module = small.module(linear_of(held), batch, workers=3)
    parts = module.prepare(batch).parts
    assert [formats.format_of(part["data"]) for part in parts] == [held] * 3
    whole = np.concatenate([formats.to_format(part["data"], "dense") for part in parts])
    np.testing.assert_array_equal(whole, formats.to_format(uneven(held), "dense"))


@pytest.mark.parametrize("label", ["csr", "csc", "coo", "dense", "row_sparse"])
def test_labels_are_cut_in_every_format(label):
    outputs, weights = trained_on("csr", "csr", True, 3, label)
    np.testing.assert_allclose(weights, trained_on("csr", "csr", True, 1, label)[1], rtol=1e-9)
    assert len(outputs) == small.ROWS
