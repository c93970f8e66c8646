"""Targets, the shift of the break-even and the page of `benchmarks fair`, on hand-made records."""

import pytest

from benchmarks import compare
from benchmarks.fair import suite as fair
from benchmarks.page import write
from tests.support.fair_records import configuration, record

DENSITIES = (0.01, 0.1, 1.0)


def law(slowed_dense=1.0, slowed_sparse=1.0, densities=DENSITIES, **more):
    """Records of sides with sparse = 10 x density x dense if both are at their best, so level at 10 %."""
    records = []
    for density in densities:
        best = 1e-3, 1e-2 * density
        slowed = best[0] * slowed_dense, best[1] * slowed_sparse
        records += configuration(slowed, best, density=density, **more)
    return compare.newest(records)


def test_targets_are_met_missed_or_not_measured():
    assert [target.met for target in fair.list_targets([])] == [None] * 4
    assert [target.met for target in fair.list_targets(law(0.9, 0.5))] == [True] * 4
    each, together, *_ = fair.list_targets(law(1.2))
    assert (each.met, together.met) == (False, False)
    assert each.measured.startswith("1.2 (D256-B32-N4-")
    assert each.measured.endswith("; 3 of 3 above")


def test_many_columns_of_one_output_count_apart():
    wide = compare.newest(configuration((1e-3, 9e-3), (1e-3, 1e-3), features=4096, width=1))
    assert [target.met for target in fair.list_targets(law(0.9, 0.5) + wide)] == [True] * 4
    assert [fair.is_apart(one) for one in law() + wide] == [False] * 3 + [True]


@pytest.mark.parametrize(("dense", "sparse", "before"), [(1, 1, 0.1), (2, 1, 0.2), (1, 2, 0.05), (0.5, 1, 0.05)])
def test_the_shift_is_to_the_break_even_with_each_side_at_its_best(dense, sparse, before):
    ((found, after),) = fair.breakeven_shifts(law(dense, sparse)).values()
    assert found == pytest.approx(before, rel=1e-3)
    assert after == pytest.approx(0.1 if dense >= 1 else 0.05, rel=1e-3)  # a side that is ahead keeps its time


def test_a_family_with_one_density_moves_by_the_slope_of_all():
    alone = compare.newest(configuration((2e-3, 1e-3), (1e-3, 1e-3), density=0.1, features=1024))
    before, after = fair.breakeven_shifts([*law(2.0), *alone])[1024, 32, 4]
    assert before == pytest.approx(0.2, rel=1e-3)
    assert after == pytest.approx(0.1, rel=1e-3)


def test_too_few_densities_and_break_evens_that_no_density_has_are_left_out():
    assert fair.breakeven_shifts(law(densities=(0.01, 0.1))) == {}
    assert fair.shift_sentence({}).startswith("Too few configurations")
    assert fair.breakeven_shifts(law(slowed_dense=1e-6)) == {}
    shifts = fair.breakeven_shifts(law(slowed_dense=100.0))
    assert "at most from above 100 % to 10 %" in fair.shift_sentence(shifts)


def test_the_page_has_ratios_targets_and_the_shift(tmp_path):
    left = record("competitor", "dense", None, candidate="other", status="skipped", reason="Far | off.", samples=None)
    for one in [*(each for found in law(2.0) for each in found.records), left]:
        fair.SUITE.table.append(tmp_path / fair.SUITE.table.file, one)
    text = write(fair.SUITE, tmp_path, "python -m benchmarks fair --quick").read_text(encoding="utf-8")
    assert "| D256-B32-N4-1% | 2 ms, dense, execution epoch | 1 ms, NumPy with BLAS | 2" in text
    assert "moves from 20 % to 10 %" in text
    assert "| 256 | 32 | 4 | 20 % | 10 % |" in text
    assert "| other | skipped | Far \\| off. | 1 |" in text
