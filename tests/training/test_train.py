"""Training: the same trajectory in every format, the phases of a step, batches that repeat, quality, refusals."""

import numpy as np
import pytest
import scipy.sparse

from kernels import sorting
from tests.support.covering import all_pairs
from workbench import data, models, optimizers, training
from workbench.data.batches import in_memory
from workbench.ops.products import NoRuleError
from workbench.sweeps import problem

FORMATS = ("csr", "csc", "coo", "row_sparse", "dense")


@pytest.fixture(scope="module")
def made() -> data.Dataset:
    return data.load("power_law", rows=90, features=40, density=0.15, classes=3, seed=1, cache=False)


def targets(made: data.Dataset, model: str, dtype="float64") -> tuple[np.ndarray, int]:
    width = next(width for width in (3, 1) if models.get(model).allows(width))
    return problem.targets(made, models.get(model), width, np.dtype(dtype)), width


def losses(made: data.Dataset, steps: int = 12, dtype="float64", **settings) -> tuple[list[float], training.Run]:
    setup = training.Setup(batch_rows=20, dtype=dtype, **settings)
    y, width = targets(made, setup.model, dtype)
    x = made.x.astype(dtype)
    run = training.Run(setup, x.toarray() if setup.format == "dense" else x, y, width)
    events = run.events()
    return [next(events).loss for _ in range(steps)], run


def standard(format: str) -> dict:
    engine = "dense" if format == "dense" else "ours"
    return {"format": format, "engine": engine, "gradient": "dense", "update": "standard"}


@pytest.mark.covering
@pytest.mark.parametrize("model", [name for name in models.names() if not models.get(name).needs])
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("format", FORMATS[:-1])
def test_with_the_standard_update_sparse_and_dense_give_the_same_losses(made, model, optimizer, format):
    shared = {"model": model, "optimizer": optimizer, "options": {"decay": 0.01}}
    sparse, _ = losses(made, **shared, **standard(format))
    dense, _ = losses(made, **shared, **standard("dense"))
    np.testing.assert_allclose(sparse, dense, rtol=1e-10)
    assert dense[-1] < dense[0]


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_a_row_sparse_gradient_with_the_standard_update_gives_the_same_losses(made, format):
    settings = {"optimizer": "adam", "format": format, "gradient": "row_sparse", "update": "standard"}
    sparse, run = losses(made, **settings)
    dense, _ = losses(made, optimizer="adam", **standard("dense"))
    np.testing.assert_allclose(sparse, dense, rtol=1e-10)
    assert [entry["op"] for entry in run.densified()] == ["gradient for the dense update"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_lazy_update_equals_the_standard_one_for_sgd_and_differs_for_adam(made, dtype):
    tolerance = 1e-5 if dtype == "float32" else 1e-11
    lazy, _ = losses(made, dtype=dtype, optimizer="sgd", update="lazy")
    dense, _ = losses(made, dtype=dtype, optimizer="sgd", **standard("dense"))
    np.testing.assert_allclose(lazy, dense, rtol=tolerance)
    lazy, run = losses(made, dtype=dtype, optimizer="adam", update="lazy")
    dense, _ = losses(made, dtype=dtype, optimizer="adam", **standard("dense"))
    assert np.abs(np.array(lazy) - dense).max() > 1e-6
    assert run.densified() == []


def test_vendor_products_train_to_the_same_losses(made):
    vendor, _ = losses(made, format="csr", engine="vendor", gradient="dense", update="standard")
    dense, _ = losses(made, **standard("dense"))
    np.testing.assert_allclose(vendor, dense, rtol=1e-10)


def test_an_event_has_a_time_for_each_phase(made):
    setup = training.Setup(batch_rows=20, format="coo")
    y, width = targets(made, "softmax", "float32")
    events = list(training.Run(setup, made.x, y, width).events(epochs=2))
    assert [(event.step, event.epoch, event.rows) for event in events[3:6]] == [(4, 0, 20), (5, 0, 10), (6, 1, 20)]
    for event in events:
        assert tuple(event.seconds) == training.PHASES
        assert {phase for phase in training.PHASES if event.seconds[phase] == 0} == {
            "transfer",
            "wait",
            "graph",
            "batches",
        }
        assert event.seconds_step == sum(event.seconds.values())


def test_batches_that_repeat_are_prepared_once_and_their_memory_is_counted(made):
    y, width = targets(made, "softmax", "float32")
    run = training.Run(training.Setup(batch_rows=20, shuffle=False, optimizer="sgd"), made.x, y, width)
    held = run.bytes_held
    first, second = list(run.events(epochs=1)), list(run.events(epochs=1))
    assert all(event.seconds["plan"] > 0 for event in first)
    assert all(event.seconds[phase] == 0 for event in second for phase in ("slice", "convert", "plan"))
    assert run.bytes_held - held == sum(batch.plan.nbytes for batch in run.kept.values()) > 0


def test_batches_prepared_ahead_train_the_same_and_cost_what_was_waited(made):
    here, _ = losses(made)
    ahead, run = losses(made, ahead=True)
    assert ahead == here
    event = next(run.events())
    assert event.seconds["wait"] > 0
    assert all(event.seconds[phase] == 0 for phase in ("slice", "convert", "plan"))
    assert event.seconds_prepare > 0


FUSED_BY = ("adagrad", "adam", "group_adagrad")
"""Rules by which tests train with a fused gradient: of each, `tests/kernels/test_fused.py` compares the kernel."""


def targets_of_fused(case: dict) -> set:
    """Return the pairs of values of a case; none if its rule is not in `FUSED_BY`."""
    return all_pairs(case) if case["optimizer"] in FUSED_BY else set()


@pytest.mark.covering(targets=targets_of_fused)
@pytest.mark.parametrize("format", ["csr", "coo"])
@pytest.mark.parametrize("optimizer", optimizers.names())
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_fused_gradient_trains_as_one_that_is_held(made, format, optimizer, shuffle):
    shared = {"format": format, "optimizer": optimizer, "shuffle": shuffle}
    fused, run = losses(made, gradient="fused", **shared)
    held, _ = losses(made, **shared)
    np.testing.assert_allclose(fused, held, rtol=1e-9)
    assert run.weights.size not in [block.size for block in run.executor.pool.blocks.values()]  # no gradient is held


@pytest.mark.parametrize("gradient", ["row_sparse", "fused"])
def test_batches_that_come_once_train_without_a_plan_as_with_one(made, gradient, monkeypatch):
    settings = {"model": "logistic", "optimizer": "adagrad", "gradient": gradient, "update": "lazy", "shuffle": True}
    planned, run = losses(made, **settings)
    assert run.prepare(next(run.feed.epoch(0))).plan is not None
    monkeypatch.setattr(in_memory, "NUMBERS", 0)  # else they bring plans that were made together
    monkeypatch.setattr(sorting, "suits", lambda entries, columns, width: width == 1)
    without, run = losses(made, **settings)
    assert run.prepare(next(run.feed.epoch(0))).plan is None
    np.testing.assert_allclose(without, planned, rtol=1e-12)
    _, run = losses(made, **{**settings, "shuffle": False})
    assert all(batch.plan is not None for batch in run.kept.values())


@pytest.mark.parametrize("gradient", ["row_sparse", "fused"])
def test_batches_that_are_sorted_with_their_values_train_to_the_same_bits(made, gradient, monkeypatch):
    settings = {"optimizer": "adagrad", "gradient": gradient, "update": "lazy", "shuffle": True, "dtype": "float32"}
    apart, _ = losses(made, **settings)
    monkeypatch.setattr(in_memory, "NUMBERS", 0)
    monkeypatch.setattr(sorting, "ENTRIES", -1)
    monkeypatch.setattr(sorting, "suits", lambda entries, columns, width: False)
    together, run = losses(made, **settings)
    assert run.prepare(next(run.feed.epoch(0))).plan.permutation is None
    assert together == apart


def test_a_shuffled_run_is_reproducible_from_its_seed(made):
    one, _ = losses(made, seed=4)
    again, _ = losses(made, seed=4)
    other, _ = losses(made, seed=5)
    assert one == again
    assert one != other


def test_quality_and_predictions_use_the_format_of_the_run(made):
    _, run = losses(made, steps=60, optimizer="adagrad")
    y, _ = targets(made, "softmax")
    scores = run.predict(made.x.astype("float64"))
    np.testing.assert_allclose(scores, made.x.astype("float64") @ run.weights + run.intercept, rtol=1e-12)
    assert run.quality(made.x.astype("float64"), y) == np.mean(scores.argmax(1) == y) > 0.6


def test_reset_makes_a_run_as_new(made):
    first, run = losses(made, optimizer="adam")
    run.reset()
    events = run.events()
    assert [next(events).loss for _ in range(len(first))] == first


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"gradient": "dense", "update": "lazy"}, "a dense gradient names none"),
        ({"format": "dense"}, "No rule computes X @ W as dense by engine 'ours' for X in format 'dense'"),
        ({"format": "row_sparse"}, "No rule computes X.T @ G as row_sparse"),
        ({"gradient": "fused", "update": "standard"}, "its update is lazy"),
        ({"gradient": "fused", "format": "csc"}, "which csc has none of; csr and coo have"),
        ({"model": "logistic"}, "The logistic model has width 1; asked for was width 3"),
        ({"device": "cuda"}, "Run supports device='cpu' and one trainer; got device='cuda', trainers=1"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_in_words(made, settings, text):
    with pytest.raises(training.SetupError) as error:
        training.Run(training.Setup(**settings), made.x, made.y, 3)
    assert text in str(error.value)


def test_no_rule_is_an_error_of_its_own():
    with pytest.raises(NoRuleError):
        _ = training.Setup(engine="vendor").gradient_rule


@pytest.mark.parametrize("gradient", ["row_sparse", "fused"])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_an_exact_update_trains_as_the_standard_one(made, optimizer, gradient):
    options = {"decay": 0.01}
    exact, run = losses(made, optimizer=optimizer, options=options, gradient=gradient, update="exact")
    dense, other = losses(made, optimizer=optimizer, options=options, **standard("dense"))
    np.testing.assert_allclose(exact, dense, rtol=1e-9)
    x = made.x.astype("float64")
    np.testing.assert_allclose(run.predict(x), other.predict(x.toarray()), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("gradient", ["fused", "row_sparse"])
def test_rows_of_any_kind_train_as_dense_ones_with_the_same_bits_each_time(index, gradient, monkeypatch):
    indptr = np.array([0, 0, 3, 3, 4, 8, 8, 9], index)  # empty rows, an unsorted one, one with a column twice
    indices, values = np.array([5, 0, 2, 1, 4, 4, 1, 0, 3], index), np.array([1.0, 2, 0, 4, 5, 6, 7, 8, 0])
    x = scipy.sparse.csr_array((values, indices, indptr), shape=(7, 6))
    for array in (x.indptr, x.indices, x.data):
        array.flags.writeable = False

    def weights(format: str = "csr", **settings) -> np.ndarray:
        setup = training.Setup(
            model="logistic", optimizer="sgd", batch_rows=3, shuffle=True, dtype="float64", format=format, **settings
        )
        run = training.Run(
            setup, x if format == "csr" else x.toarray(), np.float64([[0], [1], [1], [0], [1], [0], [1]]), 1
        )
        list(run.events(3))
        return np.append(run.weights, run.intercept)

    first = weights(gradient=gradient, update="lazy")
    np.testing.assert_allclose(first, weights("dense", engine="dense", gradient="dense", update="standard"), rtol=1e-12)
    assert weights(gradient=gradient, update="lazy").tobytes() == first.tobytes()
    monkeypatch.setattr(sorting, "ENTRIES", -1)
    assert weights(gradient=gradient, update="lazy").tobytes() == first.tobytes()
