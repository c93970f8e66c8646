"""Several dense candidates: the best is the baseline, each has its name, and memory by bytes stands beside memory."""

from dataclasses import replace

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import configurations, contests
from workbench.analysis.breakeven import breakeven_by_bytes
from workbench.analysis.compare import PARTLY
from workbench.analysis.standings import make_standings


def swept(laws=maker.BOTH_AT_THEIR_BEST, **known):
    return maker.sweep(laws, **{"noise": 0.003} | known)


def group_of(rows):
    (group,) = configurations.groups(store.frame(rows))
    return group


def lacking(rows, law, densities):
    """Rows without those of a law at some densities."""
    lines = {name: getattr(law, name) for name in maker.LINE}
    is_of = lambda row: all(row[name] == value for name, value in lines.items())  # noqa: E731
    return [row for row in rows if not (is_of(row) and row["density"] in densities)]


def test_the_baseline_is_the_best_dense_candidate_of_each_measure():
    group = group_of(swept())
    for measure, storage in (("seconds_step", "same"), ("bytes_peak", "csr")):
        assert {contest.dense["storage"] for contest in contests(group.rows, measure)[:4]} == {storage}
    assert {contest.dense["execution"] for contest in contests(group.rows, "seconds_step")} == {"epoch"}


def test_the_table_has_a_column_with_its_own_letter_for_each_in_a_fixed_order():
    found = make_standings(group_of(swept()), "seconds_step").candidates
    assert found[-5:] == ("D1", "D2", "D3", "D4", "D5")
    turned = swept(tuple(reversed(maker.BOTH_AT_THEIR_BEST)))
    assert make_standings(group_of(turned), "seconds_step").candidates == found


def test_sparse_does_not_win_without_a_dense_candidate_that_may_be_faster():
    """Dense in one call wins at 30 %; at 10 %, without it, sparse would beat dense a step at a time."""
    quick, slow = replace(maker.IN_CALLS, slope=0.05), replace(maker.DENSE_IN_CALLS, fixed=9e-3)
    for call, found in ((maker.DENSE_IN_CALLS, ("inconclusive", PARTLY)), (slow, ("sparse", ""))):
        rows = lacking(swept((maker.DENSE, call, quick)), call, (0.1,))
        by_density = {contest.sparse["density"]: contest for contest in contests(group_of(rows).rows, "seconds_step")}
        assert (by_density[0.1].verdict, by_density[0.1].why) == found
        assert by_density[0.03].verdict == "sparse"


def test_what_is_beaten_by_both_sides_elsewhere_need_not_be_measured():
    rows = lacking(swept(), maker.SERIAL, (0.001, 0.003))
    assert contests(group_of(rows).rows, "seconds_step")[0].verdict == "sparse"


@pytest.mark.parametrize(("places", "beyond"), [(100e6, False), (300e6, True)])
def test_the_break_even_by_bytes_is_where_the_formulas_cross(places, beyond):
    """Bytes of sparse are 10 MB and 400 MB x density, so it is at (places - 10 MB) / 400 MB."""
    dense = replace(maker.DENSE, bytes_fixed=places)
    rows = group_of(swept((dense, maker.SPARSE), noise=0.0)).rows
    found = breakeven_by_bytes([row for row in rows if row["format"] == "csr"], configurations.dense_rows(rows))
    truth = 1.002 * (places - 10e6) / 400e6
    assert found.density == pytest.approx(truth, rel=1e-3)
    assert found.is_beyond == beyond


def test_the_break_even_by_bytes_is_against_the_candidate_of_fewest_bytes():
    """A dense array of 100 MB, and data held as CSR of 20 MB and 300 MB x density: sparse has fewer up to 10 %."""
    held = replace(maker.HELD_AS_CSR, bytes_fixed=20e6, bytes_slope=300e6)
    rows = group_of(swept((maker.DENSE, held, maker.SPARSE), noise=0.0)).rows
    found = breakeven_by_bytes([row for row in rows if row["format"] == "csr"], configurations.dense_rows(rows))
    assert found.density == pytest.approx(0.1, rel=0.01)
    assert found.dense["storage"] == "csr"
    never = replace(held, bytes_slope=401e6)
    rows = group_of(swept((never, maker.SPARSE), noise=0.0)).rows
    found = breakeven_by_bytes([row for row in rows if row["format"] == "csr"], configurations.dense_rows(rows))
    assert (found.density, found.text) == (None, "sparse is smaller up to 100 %")


def test_sizes_that_are_alike_have_no_break_even_by_bytes():
    alike = replace(maker.DENSE, format="csr", engine="ours", gradient="row_sparse")
    rows = group_of(swept((maker.DENSE, alike))).rows
    found = breakeven_by_bytes([row for row in rows if row["format"] == "csr"], configurations.dense_rows(rows))
    assert (found.density, found.is_level) == (None, True)
