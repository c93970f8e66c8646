"""The cost model on rows of a known law: what it predicts, how well it says it does, where a crossing goes."""

from dataclasses import replace

import numpy as np
import pytest

from workbench.advising import cost_model
from workbench.advising.cost_model import (
    columns_in_use,
    cost_terms,
    crossing_sensitivities,
    error_by_data_set,
    fit_cost_models,
    predict_crossing,
    sizes_at_density,
    sizes_of,
)

SPARSE = {"format": "csr", "engine": "ours", "gradient": "fused", "update": "lazy", "execution": "step"}
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard", "execution": "step"}
LAWS = {"csr": (4e-5, 1 / 20e9, 1 / 90e9, 1 / 60e9), "dense": (3e-5, 1 / 15e9, 0.0, 1 / 150e9)}
"""Seconds of each term, by format."""
COMMON = {
    "device": "cpu", "storage": "same", "trainers": 1, "serial": False, "optimizer": "adagrad", "model": "softmax",
    "dtype": "float32", "threads": 2, "shuffle": True, "machine": "bench-1", "status": "ok", "path": None,
    "rows_total": 20_000, "rows_trained": 20_000,
}  # fmt: skip


SIZES = ((1024, 16, 256), (1024, 64, 64), (4096, 4, 256), (4096, 64, 1024), (16_384, 16, 64), (16_384, 4, 256))


def row(settings, density, features=4096, width=16, batch_rows=256, dataset="uniform", noise=0.0, rng=None) -> dict:
    entries = density * batch_rows * features
    made = {**COMMON, **settings, "dataset": dataset, "features": features, "width": width, "batch_rows": batch_rows}
    made |= {"nnz_batch": entries, "touched": features * -np.expm1(-entries / features)}
    seconds = float(np.dot(LAWS[settings["format"]], cost_terms(made, sizes_of(made))))
    return made | {"seconds_step": seconds * float(np.exp(noise * rng.standard_normal() if rng else 0.0))}


def swept(noise=0.0, seed=0) -> list[dict]:
    rng = np.random.default_rng(seed)
    return [
        row(settings, density, features, width, batch_rows, f"set {features}", noise, rng)
        for settings in (SPARSE, DENSE)
        for density in (0.001, 0.01, 0.1, 0.3)
        for features, width, batch_rows in SIZES
    ]


def models(rows) -> tuple:
    by_format = {one.settings["format"]: one for one in fit_cost_models(rows)}
    return by_format["csr"], by_format["dense"]


def test_a_known_law_is_predicted_where_it_was_not_measured():
    for model in models(swept()):
        asked = row(model.settings, 0.03, 8192, 32, 512)
        assert model.seconds(sizes_of(asked)) == pytest.approx(asked["seconds_step"], rel=0.02)
        assert model.is_inside(sizes_of(asked))
        assert not model.is_inside(sizes_of(row(model.settings, 0.03, 100_000)))


def test_coefficients_are_never_negative_and_a_bandwidth_is_told():
    sparse, dense = models(swept(noise=0.3))
    assert min(*sparse.coefficients, *dense.coefficients) >= 0
    assert dense.bandwidth is None or dense.bandwidth > 1e9


def test_the_error_is_that_of_data_sets_left_out_and_grows_with_the_noise():
    quiet, noisy = error_by_data_set(swept()), error_by_data_set(swept(noise=0.3))
    assert {name[0] for name in quiet} == {"set 1024", "set 4096", "set 16384"}
    assert max(quiet.values()) < 0.05 < max(noisy.values())
    assert error_by_data_set([one for one in swept() if one["features"] == 1024]) == {}


def test_a_data_set_that_nothing_else_was_trained_like_is_predicted_by_the_same_products_of_other_models():
    rows = [one | ({"model": "logistic"} if one["features"] == 1024 else {}) for one in swept()]
    assert max(error_by_data_set(rows).values()) < 0.05
    assert {name[0] for name in error_by_data_set(rows)} == {"set 1024", "set 4096", "set 16384"}
    assert error_by_data_set([row for row in rows if row["features"] == 1024]) == {}


def test_a_crossing_is_where_both_laws_take_the_same_and_moves_as_they_do():
    sparse, dense = models(swept())
    here = sizes_of(row(SPARSE, 0.01))
    found = predict_crossing(sparse, [dense], here)
    times = [row(settings, found.density)["seconds_step"] for settings in (SPARSE, DENSE)]
    assert times[0] == pytest.approx(times[1], rel=0.05)
    assert not found.is_extrapolated
    for other in crossing_sensitivities(sparse, [dense], here)[1:5]:
        size = {"width": 16, "batch_rows": 256}
        size["width" if other.what == "width" else "batch_rows"] *= other.factor
        sizes = {name: round(value) for name, value in size.items()}
        sides = [row(settings, other.density, **sizes)["seconds_step"] for settings in (SPARSE, DENSE)]
        assert sides[0] == pytest.approx(sides[1], rel=0.05), other


def test_of_several_dense_ones_the_crossing_is_with_the_best():
    sparse, dense = models(swept())
    here = sizes_of(row(SPARSE, 0.01))
    slower = replace(dense, coefficients=tuple(2 * coefficient for coefficient in dense.coefficients))
    assert predict_crossing(sparse, [slower, dense], here) == predict_crossing(sparse, [dense], here)
    assert predict_crossing(sparse, [slower], here).density > predict_crossing(sparse, [dense], here).density


def test_a_dense_batch_moves_what_it_is_made_of():
    sizes = sizes_of(row(DENSE, 0.01))
    batch = 256 * 4096 * 4
    moved_by = {
        "rows cut out": (DENSE, 2 * batch),
        "rows read in place": ({**DENSE, "execution": "epoch"}, 0),
        "made dense": ({**DENSE, "storage": "csr"}, batch + 8 * sizes.z),
        "widened": ({**DENSE, "storage": "uint8"}, 1.25 * batch),
    }
    read = cost_terms({**COMMON, **DENSE}, sizes)[1] - 2 * batch
    found = {what: cost_terms({**COMMON, **one}, sizes)[1] - read for what, (one, _) in moved_by.items()}
    assert found == {what: bytes_ for what, (_, bytes_) in moved_by.items()}


def test_what_lies_beyond_the_rows_is_marked():
    sparse, dense = models(swept())
    beyond = predict_crossing(sparse, [dense], sizes_of(row(SPARSE, 0.01)), "features", 100.0)
    assert beyond.is_extrapolated


def test_skew_makes_few_columns_and_those_stay_few():
    even = sizes_of(row(SPARSE, 0.01))
    assert columns_in_use(even) == pytest.approx(4096, rel=0.01)
    skewed = sizes_at_density(even, 0.01, 500.0)
    assert columns_in_use(skewed) == pytest.approx(500, rel=0.05)
    assert sizes_at_density(skewed, 0.1, 500.0).U <= 500


def test_too_few_rows_and_failed_ones_make_no_model():
    assert fit_cost_models([row(SPARSE, 0.01), row(SPARSE, 0.1)]) == []
    failed = [one | {"status": "memory", "seconds_step": None} for one in swept()]
    assert fit_cost_models(failed) == []


def test_rows_are_predicted_from_the_others_within_their_noise():
    assert cost_model.median_log_error(cost_model.predictions_within(swept(noise=0.05))) < 0.15
    assert cost_model.median_log_error(cost_model.predictions_within(swept()[:2])) is None
