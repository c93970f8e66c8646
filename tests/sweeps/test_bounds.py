"""Bounds of a row's phases: by the sizes that each kernel's cost takes, at rates that are given; none where unknown."""

import pytest

import kernels
from tests.support.tiny_sweeps import spec_of
from workbench.measure import child
from workbench.measure.bandwidth import Roofs
from workbench.sweeps import grid, runner
from workbench.sweeps.runner import Bounds
from workbench.sweeps.spec import Configuration, Measure, kernels_of

ROWS, FEATURES, WIDTH, ENTRIES, ACTIVE = 256, 4096, 16, 10_000, 2_000
RATES = [["read", 2**20, 0, 2, 1e10], *(["gather", 2**20, row, 2, 5e9] for row in (4, 64))]
ON = Roofs({"rates": RATES, "operations": {"2": 1e11}}, threads=2)
CSC = {"format": "csc", "gradient": "dense", "update": "standard"}
COO = {"format": "coo", "gradient": "dense", "update": "standard", "engine": "vendor"}
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}


def row_of(configuration: Configuration) -> dict:
    sizes = {"batch_rows": ROWS, "rows_trained": 9_000, "features": FEATURES, "width": WIDTH, "threads": 2}
    known = {"nnz_batch": ENTRIES, "touched": ACTIVE, "dtype": "float32", "index_dtype": "int32", "status": "ok"}
    return {**sizes, **known, "kernels": kernels_of(configuration)}


def configuration_of(**settings) -> Configuration:
    return Configuration(dataset="uniform", model="softmax", optimizer="adagrad", **settings)


@pytest.mark.parametrize(
    "settings", [{"format": "csr", "gradient": "row_sparse", "update": "lazy"}, CSC, COO], ids=["csr", "csc", "coo"]
)
def test_both_products_of_each_format_multiply_each_entry_once_and_write_results_of_their_own_shape(settings):
    configuration = configuration_of(**settings)
    known = {one["phase"]: one for one in runner.of_row(configuration, row_of(configuration), ON)}
    assert set(known) == {"forward", "gradient", "update"}
    for phase in ("forward", "gradient"):
        assert known[phase]["flops"] == 2 * ENTRIES * WIDTH
        assert known[phase]["seconds"] > 0
    results = {"forward": ROWS, "gradient": ACTIVE if settings["gradient"] == "row_sparse" else FEATURES}
    for phase, rows in results.items():
        assert known[phase]["bytes"] >= 4 * WIDTH * rows + 4 * ENTRIES, phase


def test_products_of_blas_are_bound_by_its_operations_where_they_are_many():
    configuration = configuration_of(**DENSE)
    known = {one["phase"]: one for one in runner.of_row(configuration, row_of(configuration), ON)}
    assert known["forward"]["by"] == "stream"
    assert known["forward"]["seconds"] == pytest.approx(known["forward"]["bytes"] / 1e10)
    seconds, by = ON.bound(kernels.get("blas.dense_dense"), kernels.Sizes(ROWS, 0, FEATURES, 256, 0))
    assert (seconds, by) == (pytest.approx(2 * ROWS * FEATURES * 256 / 1e11), "operations")


def test_a_fused_gradient_is_in_the_update_and_an_exact_update_has_no_bound():
    for update, phases in (("lazy", ["forward", "update"]), ("exact", ["forward"])):
        configuration = configuration_of(format="csr", gradient="fused", update=update)
        assert [one["phase"] for one in runner.of_row(configuration, row_of(configuration), ON)] == phases


def bounds_of(measure: Measure) -> Bounds:
    made = Bounds(measure, lambda: None)
    made.roofs_on = lambda threads: ON
    return made


def test_bounds_are_asked_for_only_where_they_are_known():
    configuration = configuration_of(**DENSE)
    asked = bounds_of(Measure())
    assert len(asked.of(configuration, row_of(configuration))) == 3
    assert asked.of(configuration, row_of(configuration) | {"status": "failed"}) is None
    assert bounds_of(Measure(rounds=3)).of(configuration, row_of(configuration)) is None
    assert bounds_of(Measure(roofs=False)).of(configuration, row_of(configuration)) is None
    others = ({"model": "factorization_machine", "width": 4}, {"execution": "epoch", "gradient": "row_sparse"})
    for more in others:
        other = Configuration(**{"dataset": "uniform", "format": "csr", "update": "lazy", **more})
        assert not grid.why_dropped(other)
        assert asked.of(other, row_of(configuration)) is None


def test_rows_of_several_trainers_have_no_bounds_and_end_no_sweep():
    """Each has a part of a batch, and their rows lack its sizes: the first one ended all agents, or the sweep."""
    configuration = Configuration(dataset="uniform", format="csr", update="lazy", trainers=2)
    row = {"status": "ok", "threads": 2, "batch_rows": 64, "rows_trained": 640, "dtype": "float32"}
    assert bounds_of(Measure()).of(configuration, row) is None


def test_a_machine_that_cannot_be_measured_leaves_rows_without_bounds(monkeypatch):
    asked = []

    def start(context, work, request):
        asked.append(request)
        raise child.Ended({"status": "memory", "reason": "Too little."})

    monkeypatch.setattr(runner.child, "start", start)
    made = Bounds(spec_of().measure.model_copy(update={"rounds": 4}), lambda: None)
    configuration = configuration_of(**DENSE)
    assert [made.of(configuration, row_of(configuration)) for _ in range(2)] == [None, None]
    assert asked == [{"threads": [2]}], "once a run"
