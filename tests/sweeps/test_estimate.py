"""What a sweep would be: counted configurations are those that are made; time and memory before anything ran."""

import random
import re
import tracemalloc

import pytest

from workbench import settings
from workbench.sweeps import estimate, grid
from workbench.sweeps.spec import Configuration, SpecError, validate_spec

VALUES = {
    "format": ["csr", "csc", "coo", "dense", "row_sparse"],
    "engine": ["ours", "vendor", "dense"],
    "gradient": ["dense", "row_sparse", "fused"],
    "update": ["standard", "lazy", "exact"],
    "model": ["linear", "logistic", "softmax", "embedding_mlp"],
    "model_options": ["natural", "hidden=3", "layers=99"],
    "reading": ["natural", "lines=3", "zero_based=true"],
    "width": [1, 2, 7, "natural"],
    "execution": ["step", "cuda_graph"],
    "storage": ["same", "csr"],
    "device": ["cpu", "cuda"],
    "intercept": [True, False],
    "dataset": ["uniform", "stdlib", "svmlight"],
    "density": [0.01, 0.2, "natural"],
    "features": [5, 9],
    "rows": [10, 20],
    "batch_rows": [3, 4],
    "dtype": ["float32", "float64"],
    "threads": [1, 2],
    "shuffle": [True, False],
    "ahead": [True, False],
    "learning_rate": [0.1, 0.2],
    "decay": [0.0, 0.1],
    "epochs": [0, 2],
    "serial": [True, False],
    "seed": [0, 1],
    "optimizer": ["sgd", "adam"],
    "trainers": [1, 2],
}


def spec_of(axes: dict, candidates: tuple = (), **measure) -> object:
    return validate_spec({"name": "x", "axes": axes, "candidates": list(candidates), "measure": measure})


@pytest.mark.parametrize("seed", range(8))
def test_configurations_that_are_counted_are_those_that_are_made(seed):
    rng = random.Random(seed)
    axes = {name: rng.sample(VALUES[name], rng.randint(1, 2)) for name in rng.sample(sorted(VALUES), 7)}
    candidates = [{"update": "lazy"}, {"update": "standard"}] if "update" not in axes else []
    spec = spec_of(axes, candidates)
    made = grid.expand_grid(spec)
    if not made.configurations:
        with pytest.raises(SpecError, match="No configuration is left"):
            estimate.size_of(spec)
        return
    size = estimate.size_of(spec)
    assert (size.configurations, size.dropped, list(size.notes)) == (len(made.configurations), made.dropped, made.notes)


def test_the_values_tried_are_of_all_settings():
    left_out = {"path", "labels", "columns", "kind", "reading", "positive", "merge", "model_options", "last"}
    assert set(settings.BY_NAME) - left_out <= set(VALUES), "give the new setting values to try"
    assert set(estimate.FREE) <= set(Configuration.model_fields)


def test_a_million_configurations_are_refused_without_being_made():
    axes = {"batch_rows": list(range(1, 101)), "seed": list(range(100)), "features": list(range(1, 101))}
    spec = spec_of(axes)
    tracemalloc.start()
    with pytest.raises(SpecError, match=r"has 1,000,000 combinations, which would take .* days; .* at most 100,000"):
        estimate.size_of(spec)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_many_combinations_of_what_decides_are_refused_without_being_made():
    with pytest.raises(SpecError, match="width has 30,000 values"):
        estimate.size_of(spec_of({"width": list(range(1, 30_001))}))


def test_time_is_that_of_the_trials_and_of_what_rows_tell():
    spec = spec_of({"density": [0.1, 0.2]}, seconds_warmup=0.5, trial_seconds=2.0, rounds=9)
    size = estimate.size_of(spec)
    assert (size.trials, size.trials_most) == (4, 18)
    each = 0.5 + estimate.SECONDS_OVERHEAD
    assert estimate.seconds_of(size, spec) == pytest.approx((4 * (0.4 + each), 18 * (2.0 + each)))
    rows = [{"seconds_overhead": seconds} for seconds in (1.0, 5.0, 4.0, None)]
    assert estimate.seconds_of(size, spec, rows) == pytest.approx((4 * 4.9, 18 * 6.5))


@pytest.mark.parametrize(
    ("measure", "sampled"),
    [
        ({}, (0.03, 0.15)),
        ({"seconds_sample": 0.01}, (0.15, 0.15)),
        ({"seconds_sample": 0.0}, (0.15, 0.15)),
        ({"trial_seconds": 0.001}, (0.007, 0.007)),
    ],
    ids=["usual", "long", "any", "least"],
)
def test_samples_of_short_steps_take_less_time_than_they_count_for(measure, sampled):
    assert estimate.seconds_sampled(spec_of({}, **measure)) == pytest.approx(sampled)


def test_trials_of_several_trainers_start_processes_which_takes_longer():
    """Half of a sweep's trials took ten times what was announced."""
    several = [{"format": "csr"}, {"format": "csr", "trainers": 2}]
    spec = validate_spec({"name": "x", "axes": {"density": [0.1], "threads": [2]}, "candidates": several})
    size, kinds = estimate.size_of(spec), {configuration.trainers for configuration in estimate.size_of(spec).kinds}
    each = estimate.seconds_a_trial(spec), estimate.seconds_a_trial(spec, several=True)
    assert each[1] - each[0] == pytest.approx(estimate.SECONDS_SEVERAL - estimate.SECONDS_OVERHEAD)
    share = 0.5 if 2 in kinds else 0.0  # without Dask they are left out
    assert estimate.seconds_of(size, spec)[0] == pytest.approx(size.trials * (each[0] + share * (each[1] - each[0])))
    rows = [{"trainers": 2, "seconds_overhead": 9.0}, {"trainers": None, "seconds_overhead": 2.0}]
    results = [
        estimate.seconds_a_trial(spec, rows, several) - estimate.seconds_a_trial(spec) for several in (False, True)
    ]
    assert results == pytest.approx([2.0 - estimate.SECONDS_OVERHEAD, 9.0 - estimate.SECONDS_OVERHEAD])


def test_the_budget_of_a_sweep_bounds_its_time():
    spec = validate_spec({"name": "x", "axes": {"density": [0.1, 0.2]}, "limits": {"budget": 1.0}})
    assert estimate.seconds_of(estimate.size_of(spec), spec) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        (12, r"12 rounds can tell apart what differs by 1\.2 times or more, if times vary by 20 %"),
        (3, r"3 rounds can tell apart what differs by 1\.[34] times or more"),
        (1, r"1 round can tell apart what differs by 1\.[5-8] times or more"),
    ],
)
def test_a_plan_says_the_smallest_difference_that_can_be_seen(rounds, said):
    assert re.search(said, estimate.minimum_detectable_sentence(spec_of({}, rounds=rounds)))


def test_a_dense_configuration_has_a_twin_on_one_thread():
    dense = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
    spec = spec_of({"threads": [1, 2]}, ({}, dense))
    made = [
        (configuration.threads, configuration.format, configuration.serial)
        for configuration in grid.expand_grid(spec).configurations
    ]
    assert made == [
        *((1, "csr", False), (1, "dense", False)),
        *((2, "csr", False), (2, "dense", False), (2, "dense", True)),
    ]
    given = spec_of({"threads": 2}, ({**dense, "serial": True}, dense))
    assert [configuration.serial for configuration in grid.expand_grid(given).configurations] == [True, False]


def test_memory_is_that_of_the_largest_values():
    spec = spec_of(
        {"format": "dense", "features": [1000, 3000], "rows": [100, 2000], "dataset": "uniform", "threads": 1}
    )
    (kind,) = estimate.size_of(spec).kinds
    assert (kind.features, kind.rows) == (3000, 2000)
    assert estimate.bytes_of(kind) > 2000 * 3000 * 4
    assert estimate.bytes_of(kind.model_copy(update={"dtype": "float64"})) > 2000 * 3000 * 8
