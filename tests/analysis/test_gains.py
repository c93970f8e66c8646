"""Gains at a density and the densities up to which they hold, from rows that obey a known law."""

import math
from dataclasses import replace

import pytest

from tests.support import rows as made
from workbench import store
from workbench.analysis import breakeven, configurations, formatting, gains

LAW = made.SPARSE


def lines(rows, measure="seconds_step"):
    """The sparse configurations of the rows' largest group."""
    return list(gains.lines_of_group(configurations.groups(store.frame(rows))[0], measure))


def truth(density):
    return made.DENSE.fixed / LAW.seconds(density)


@pytest.fixture(scope="module")
def line():
    (only,) = lines(made.sweep(noise=0.01))
    return only


def test_at_a_measured_density_the_gain_is_that_of_the_contest(line):
    gain = gains.gain_at_density(line, 0.01)
    at = next(contest for contest in line.contests if math.isclose(contest.density, 0.01, rel_tol=0.01))
    assert (gain.ratio, gain.verdict, gain.source) == (at.ratio, at.verdict, "measured")
    assert gain.text == f"✓ sparse {formatting.format_gain(at.ratio)} better"
    assert gain.ratio.low < truth(0.01) < gain.ratio.high < 1.5 * gain.ratio.low


@pytest.mark.parametrize(("density", "verdict"), [(0.02, "sparse"), (0.2, "dense")])
def test_between_two_densities_it_is_read_with_the_interval_of_both(line, density, verdict):
    gain = gains.gain_at_density(line, density)
    assert gain.ratio.value == pytest.approx(truth(density), rel=0.12), "the law bends between the two"
    assert gain.ratio.low < gain.ratio.value < gain.ratio.high
    assert gain.verdict == verdict
    assert gain.source.startswith("read from ")


@pytest.mark.parametrize(("density", "said"), [(1e-5, "not measured below 0.1 %"), (0.9, "not measured above 30.1 %")])
def test_beyond_what_was_measured_nothing_is_said(line, density, said):
    gain = gains.gain_at_density(line, density)
    assert (gain.ratio, gain.verdict, gain.source) == (None, "inconclusive", said)


def test_to_gain_a_factor_of_one_is_the_break_even(line):
    (even,) = breakeven(store.frame(made.sweep(noise=0.01)))
    reach = gains.highest_density_with_gain(line, 1.0)
    assert (reach.status, reach.density, reach.low, reach.high) == (even.status, even.density, even.low, even.high)


@pytest.mark.parametrize("factor", [2.0, 5.0])
def test_the_density_up_to_which_a_factor_is_gained_is_that_of_the_law(line, factor):
    reach = gains.highest_density_with_gain(line, factor)
    assert reach.status == "crossing"
    expected = (made.DENSE.fixed / factor - LAW.fixed) / LAW.slope
    assert reach.density == pytest.approx(expected, rel=0.2)
    assert reach.sentence.startswith("up to ")


def test_what_is_gained_nowhere_or_everywhere_says_so(line):
    assert gains.highest_density_with_gain(line, 1000.0).sentence == "at no density measured"
    assert gains.highest_density_with_gain(line, 0.1).sentence.endswith("as far as was measured")


def test_rounds_that_decide_nothing_decide_nothing_here():
    (line,) = lines(made.sweep((made.DENSE, replace(LAW, fixed=7.5e-3, slope=0.0)), rounds=1))
    assert gains.gain_at_density(line, 0.01).verdict == "inconclusive"
    assert gains.gain_at_density(line, 0.02).verdict == "inconclusive"
    assert gains.highest_density_with_gain(line, 1.1).status == "inconclusive"


def test_a_dense_side_that_did_not_fit_is_no_ratio():
    rows = [made.unfit(row) if row["format"] == "dense" else row for row in made.sweep(rounds=4)]
    (line,) = lines(rows)
    gain = gains.gain_at_density(line, 0.01)
    assert (gain.ratio, gain.text) == (None, "✓ dense did not fit in memory")
    assert gains.highest_density_with_gain(line, 2.0).sentence == "not compared with dense"


def test_one_density_says_whether_the_factor_is_gained_there():
    (line,) = lines(made.sweep(densities=(0.01,), noise=0.01))
    assert gains.highest_density_with_gain(line, 2.0).sentence == "yes, at 1 %, the one density"
    assert gains.highest_density_with_gain(line, 20.0).sentence == "no, at 1 %, the one density"


def test_a_worse_model_is_told_beside_the_gain():
    lazy = replace(LAW, update="lazy", loss_last=0.5)
    warnings = {line.rows[0]["update"]: line.warning for line in lines(made.sweep((made.DENSE, LAW, lazy)))}
    assert warnings["standard"] == ""
    assert warnings["lazy"] == "† trained a worse model everywhere, so no win"
