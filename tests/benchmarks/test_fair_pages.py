"""Ratios, targets, the shift of the break-even and the page of `benchmarks fair`, on hand-made records."""

import math

import pytest

from benchmarks import tables
from benchmarks.analysis import fair
from benchmarks.pages import suites as reports
from tests.support.fair_records import configuration, record

DENSITIES = (0.01, 0.1, 1.0)


def law(slowed_dense=1.0, slowed_sparse=1.0, densities=DENSITIES, **more):
    """Records of sides with sparse = 10 x density x dense if both are at their best, so level at 10 %."""
    records = []
    for density in densities:
        best = 1e-3, 1e-2 * density
        slowed = best[0] * slowed_dense, best[1] * slowed_sparse
        records += configuration(slowed, best, density=density, **more)
    return fair.compare_all(records)


def test_the_ratio_is_of_the_fastest_of_each_side_round_by_round():
    slower = record("independent", "dense", 9e-3, candidate="other")
    (one,) = fair.compare_all([*configuration((2e-3, 1e-3), (1e-3, 2e-3)), slower])
    assert one.sides["dense"].ratio.value == pytest.approx(2.0)
    assert one.sides["sparse"].ratio.value == pytest.approx(0.5)
    assert one.sides["dense"].seconds_at_best == pytest.approx(1e-3)
    assert one.sides["sparse"].seconds_at_best == pytest.approx(1e-3)
    mine = record("project", "dense", 2e-3, samples=[2e-3, 6e-3, 4e-3])
    (one,) = fair.compare_all([mine, record("independent", "dense", 1e-3, samples=[1e-3, 2e-3])])
    assert one.sides["dense"].ratio[:3] == pytest.approx((2.5, 2.0, 3.0))


def test_records_of_an_older_key_do_not_count():
    old = [one | {"key": "old"} for one in configuration((1e-3, 1e-3), (9e-3, 9e-3))]
    (one,) = fair.compare_all([*old, *configuration((1e-3, 1e-3), (2e-3, 2e-3))])
    assert one.sides["dense"].ratio.value == pytest.approx(0.5)


def test_a_candidate_without_a_time_is_no_best_and_is_listed():
    failed = record("independent", "dense", None, candidate="other", status="failed", reason="It broke.", samples=None)
    (one,) = found = fair.compare_all([*configuration((1e-3, 1e-3), (2e-3, 2e-3)), failed])
    assert one.sides["dense"].independent["candidate"] == "NumPy with BLAS"
    assert fair.list_untimed(found) == [("other", "failed", "It broke.", 1)]


def test_targets_are_met_missed_or_not_measured():
    assert [target.met for target in fair.list_targets([])] == [None] * 4
    assert [target.met for target in fair.list_targets(law())] == [True, True, True, False]
    assert [target.met for target in fair.list_targets(law(0.9, 0.5))] == [True] * 4
    each, together, *_ = fair.list_targets(law(1.2))
    assert (each.met, together.met) == (False, False)
    assert each.measured == "at most 1.2 (D256-B32-N4-1%); 3 of 3 above 1.15"


def test_many_columns_of_one_output_count_apart():
    wide = fair.compare_all(configuration((1e-3, 9e-3), (1e-3, 1e-3), features=4096, width=1))
    found = law(0.9, 0.5) + wide
    assert [target.met for target in fair.list_targets(found)] == [True] * 4
    assert fair.separate_configurations(found) == wide
    assert not fair.separate_configurations(
        fair.compare_all(configuration((1e-3, 9e-3), (1e-3, 1e-3), features=4096, width=4))
    )


@pytest.mark.parametrize(("dense", "sparse", "before"), [(1, 1, 0.1), (2, 1, 0.2), (1, 2, 0.05), (0.5, 1, 0.05)])
def test_the_shift_is_to_the_break_even_with_each_side_at_its_best(dense, sparse, before):
    (shift,) = fair.breakeven_shifts(law(dense, sparse))
    after = 0.1 if dense >= 1 else 0.05  # a side that is ahead keeps its time
    assert (shift.before, shift.after) == pytest.approx((before, after))
    assert shift.factor == pytest.approx(after / before)
    assert shift.is_between


def test_a_family_with_one_density_moves_by_the_slope_of_all():
    alone = fair.compare_all(configuration((2e-3, 1e-3), (1e-3, 1e-3), density=0.1, features=1024))
    found = [*law(2.0), *alone]
    assert fair.fit_slope(law(2.0)).slope == pytest.approx(1.0)
    by_family = {shift.family: shift for shift in fair.breakeven_shifts(found)}
    shift = by_family[1024, 32, 4]
    assert not shift.is_between
    slope = fair.fit_slope(found).slope
    assert shift.before == pytest.approx(0.1 * math.exp(math.log(2) / slope))
    assert shift.after == pytest.approx(0.1)


def test_a_level_for_sizes_is_fitted_from_enough_configurations():
    found = []
    for features, factor in ((64, 1.0), (256, 4.0), (1024, 16.0)):
        for batch_rows in (1, 32):
            for density in DENSITIES:
                both = 1e-3, 1e-2 * density * factor
                found += configuration(both, both, density=density, features=features, batch_rows=batch_rows)
    fitted = fair.fit_slope(fair.compare_all(found))
    assert fitted.slope == pytest.approx(1.0)
    assert fitted.deviation == pytest.approx(0.0, abs=1e-9)


def test_too_few_densities_are_said_to_be_too_few():
    assert fair.fit_slope(law(densities=(0.01, 0.1))) is None
    assert fair.breakeven_shifts(law(densities=(0.01,))) == []
    assert fair.summary(law(densities=(0.01,))).startswith("Too few configurations")


def test_a_break_even_that_no_density_has_is_no_family_and_one_beyond_is_cut():
    assert fair.breakeven_shifts(law(slowed_dense=1e-6)) == []
    (shift,) = fair.breakeven_shifts(law(slowed_dense=100.0))
    assert (shift.text, shift.factor) == ("above 100 % to 10 %", pytest.approx(0.1))


def test_the_page_has_ratios_targets_and_the_shift(tmp_path):
    named = [record for each in law(2.0) for record in each.records]
    left = record("independent", "dense", None, candidate="other", status="skipped", reason="Far | off.", samples=None)
    for one in [*named, left]:
        tables.FAIR.append(tmp_path / tables.FAIR.file, one)
    text = reports.write_fair(tmp_path, "python -m benchmarks fair --quick").read_text(encoding="utf-8")
    assert "**1 of 4 measured targets are met.**" in text
    assert "| D256-B32-N4-1% | 2 ms, dense, execution epoch | 1 ms, NumPy with BLAS | 2 (2 to 2) |" in text
    assert "the break-even moves from 20 % to 10 % in the geometric mean of 1 family; at most from 20 % to 10 %" in text
    assert "| D = 256, 32 rows a batch, N = 4 | 20 % | 10 % | between densities measured |" in text
    assert "| other | skipped | Far \\| off. | 1 |" in text
    assert "python -m benchmarks fair --quick" in text
