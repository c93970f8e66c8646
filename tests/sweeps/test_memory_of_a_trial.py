"""Memory of a trial: what it does not train from is released, so that measured and predicted peaks agree."""

import pytest

from tests.support.sweeps import have_trials_preloaded
from tests.support.tiny_sweeps import DENSE, QUICK
from workbench.measure import child
from workbench.sweeps import grid
from workbench.sweeps.spec import Configuration, Measure

ALLOWED = 8e6
"""Bytes beside a tenth: buffers of libraries, pages that a process gives back late."""

SIZES = {"dataset": "uniform", "rows": 6_000, "features": 2_000, "batch_rows": 200, "threads": 1, "model": "logistic"}
"""48 MB of dense float32."""


def measured(**settings: object) -> dict:
    """The row of a trial in a separate process."""
    have_trials_preloaded()
    request = {"cell": SIZES | settings, "measure": Measure(**QUICK).model_dump(), "bytes_limit": 2**34}
    process = child.Child(*child.start(child.fork_server(), "workbench.sweeps.trial:answers", request))
    with process:
        *_, row = process.answers(dict)
    return row


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "settings",  # with epochs the quality of rows held out makes batches of its own
    [{"density": 0.01}, {"density": 0.5}, {"density": 0.5, "epochs": 1, "batch_rows": 50}],
)
def test_the_dense_peak_has_no_copy_of_the_sparse_data_and_no_other_rows(settings: dict, dtype: str) -> None:
    row = measured(**DENSE, **settings, dtype=dtype)
    assert row["status"] == "ok", row["reason"]
    assert abs(row["bytes_peak"] - row["bytes_predicted"]) <= 0.1 * row["bytes_predicted"] + ALLOWED


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("epochs", [0, 1])
def test_the_sparse_peak_has_one_copy_of_the_data(dtype: str, epochs: int) -> None:
    """Neither two, nor none: rows that are a selection of others are in memory that is reused, and count as well."""
    row = measured(format="csr", density=0.5, dtype=dtype, epochs=epochs)
    assert row["status"] == "ok", row["reason"]
    assert abs(row["bytes_peak"] - row["bytes_predicted"]) <= 0.1 * row["bytes_predicted"] + ALLOWED


@pytest.mark.parametrize("execution", ["step", "epoch"])
def test_dense_steps_on_csr_data_need_no_dense_data(execution: str) -> None:
    row = measured(**DENSE, density=0.01, storage="csr", execution=execution)
    assert row["status"] == "ok", row["reason"]
    assert row["bytes_peak"] <= 1.1 * row["bytes_predicted"] + ALLOWED
    assert row["bytes_peak"] < row["features"] * row["rows_trained"] * 4 / 2


def test_an_epoch_in_one_call_is_predicted_without_a_copy_of_a_batch() -> None:
    sizes = {"rows": 6_000, "features": 2_000, "nnz": 120_000, "width": 1, "facts": {}, "active": 900, "stored": False}

    def bytes_of_batch(**settings: object) -> int:
        return grid.predicted_bytes(Configuration(**{**SIZES, **DENSE, **settings}), **sizes)["batch"]

    assert bytes_of_batch() == 200 * 2_000 * 4
    assert bytes_of_batch(execution="epoch") == 0
    assert 0 < bytes_of_batch(execution="epoch", storage="csr") <= bytes_of_batch(storage="csr")
