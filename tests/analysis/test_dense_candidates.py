"""Several dense candidates: the best is the baseline, each has its name, and memory by bytes stands beside memory."""

import re
from dataclasses import replace

import pytest

from tests.support import rows as maker
from workbench import store
from workbench.analysis import breakeven, configurations, contests
from workbench.analysis.breakeven import breakeven_by_bytes
from workbench.analysis.compare import PARTLY
from workbench.analysis.recommendation import recommend
from workbench.analysis.standings import make_standings

NAMES = (
    "dense",
    "dense, 1 thread",
    "dense · epoch",
    "dense · held as CSR · epoch",
    "dense, 1 thread · held as CSR · epoch",
)


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
    for measure, hold in (("seconds_step", "format"), ("bytes_peak", "csr")):
        assert {contest.dense["hold"] for contest in contests(group.rows, measure)[:4]} == {hold}
    assert {contest.dense["launch"] for contest in contests(group.rows, "seconds_step")} == {"epoch"}


def test_the_table_has_a_column_with_its_own_name_for_each_in_a_fixed_order():
    assert make_standings(group_of(swept()), "seconds_step").candidates[:5] == NAMES
    turned = swept(tuple(reversed(maker.BOTH_AT_THEIR_BEST)))
    assert make_standings(group_of(turned), "seconds_step").candidates[:5] == NAMES


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
    (even,) = breakeven(store.frame(swept((dense, maker.SPARSE), noise=0.0)), "bytes_peak")
    assert "by bytes (8 an entry, 4 an element of a dense array) the break-even is at" in even.sentence
    assert ("beyond what was measured" in even.sentence) == beyond


def test_the_break_even_by_bytes_is_against_the_candidate_of_fewest_bytes():
    """A dense array of 100 MB, and data held as CSR of 20 MB and 300 MB x density: sparse has fewer up to 10 %."""
    held = replace(maker.HELD_AS_CSR, bytes_fixed=20e6, bytes_slope=300e6)
    rows = group_of(swept((maker.DENSE, held, maker.SPARSE), noise=0.0)).rows
    found = breakeven_by_bytes([row for row in rows if row["format"] == "csr"], configurations.dense_rows(rows))
    assert found.density == pytest.approx(0.1, rel=0.01)
    assert found.dense["hold"] == "csr"
    never = replace(held, bytes_slope=401e6)
    rows = group_of(swept((never, maker.SPARSE), noise=0.0)).rows
    found = breakeven_by_bytes([row for row in rows if row["format"] == "csr"], configurations.dense_rows(rows))
    assert (found.density, found.text) == (None, "sparse is smaller up to 100 %")


def test_sizes_that_are_alike_have_no_break_even_by_bytes():
    alike = replace(maker.DENSE, format="csr", engine="ours", gradient="row_sparse")
    rows = group_of(swept((maker.DENSE, alike))).rows
    found = breakeven_by_bytes([row for row in rows if row["format"] == "csr"], configurations.dense_rows(rows))
    assert (found.density, found.is_level) == (None, True)


def test_bytes_are_those_of_the_types():
    wide = swept((maker.DENSE, maker.SPARSE), noise=0.0, dtype="float64", index_dtype="int64")
    (even,) = breakeven(store.frame(wide), "bytes_peak")
    assert "by bytes (16 an entry, 8 an element" in even.sentence


def at_own_density(density, laws=maker.BOTH_AT_THEIR_BEST):
    """Rows at the data's own density."""
    rows = [row | {"density": None} for row in swept(laws, densities=(density,), rounds=30)]
    return store.frame([row | {"key": maker.key_of(row)} for row in rows])


def test_dense_held_as_csr_is_recommended_if_it_is_as_fast_and_smaller():
    level = replace(maker.HELD_AS_CSR, fixed=maker.DENSE_IN_CALLS.fixed, slope=0.0)
    came = recommend(at_own_density(0.1, (maker.DENSE, maker.DENSE_IN_CALLS, level, maker.IN_CALLS)))
    assert (came.verdict, came.settings["hold"], came.settings["launch"]) == ("dense", "csr", "epoch")
    assert str(came.headline).startswith("Stay dense: it is 2")
    assert str(came.grounds[0]).startswith("Take dense (data held as CSR, epochs in one call), with 256 rows a batch")
    assert any(str(ground).startswith("Dense: held as CSR and made dense a batch at a time") for ground in came.grounds)


def test_the_recommendation_of_sparse_says_how_both_were_executed():
    came = recommend(at_own_density(0.01))
    assert came.verdict == "sparse"
    (said,) = [str(ground) for ground in came.grounds if str(ground).startswith("Dense: ")]
    assert "Sparse: held as CSR, lazy update, the epoch in one compiled call" in said


def test_the_break_even_by_bytes_against_a_dense_array_is_said_first():
    """Data held as CSR on both sides differ by their batches, which move that break-even far away from half."""
    held = replace(maker.HELD_AS_CSR, bytes_fixed=20e6, bytes_slope=300e6)
    (even,) = breakeven(store.frame(swept((maker.DENSE, held, maker.SPARSE), noise=0.0)), "bytes_peak")
    first, second = re.search(
        r"of a dense array\) (.*?); against dense \(data held as CSR.*?\) (.*)", even.sentence
    ).groups()
    assert re.match(r"the break-even is at 2[23] % density", first)
    assert re.match(r"the break-even is at (9\.\d|10) % density", second)
