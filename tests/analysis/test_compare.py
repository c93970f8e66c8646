"""Verdicts: what rounds decide, what they do not and why, and simulations in which the truth is known."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.support import rows as maker
from tests.support.effects import posterior_with_effects
from tests.support.pooled import neighbours, pooled
from workbench import store
from workbench.analysis import compare, configurations, contest_verdict, contests, pool_rounds
from workbench.analysis.verdict_text import contest_clause
from workbench.measure.posterior import EQUIVALENCE_MARGIN, NOISE, Scatter, Trial
from workbench.measure.rounds import decide_comparison

DENSE, SERIAL, SPARSE = maker.DENSE, maker.SERIAL, maker.SPARSE
ALIKE = replace(SPARSE, fixed=8e-3, slope=0.0)
"""A sparse law that takes as long as dense."""


def rows_of(*laws, densities=(0.01,), change=lambda row: row, **known):
    return configurations.records(pool_rounds(store.frame(map(change, maker.sweep(laws, densities, **known)))))


def judged(*laws, measure="seconds_step", **known):
    (found,) = contests(rows_of(*laws, **known), measure)
    return found


@pytest.mark.parametrize(
    ("seconds", "rounds", "expected"),
    [(1e-3, 4, "sparse"), (3e-2, 4, "dense"), (8e-3, 30, "level")],
    ids=["faster", "slower", "as fast"],
)
def test_rounds_decide_what_is_far_apart_or_known_to_be_close(seconds, rounds, expected):
    found = judged(DENSE, replace(SPARSE, fixed=seconds, slope=0.0), noise=0.01, rounds=rounds)
    assert (found.verdict, found.why, found.likely) == (expected, "", "")
    assert found.ratio.low <= 8e-3 / seconds <= found.ratio.high


def test_records_are_dominated_that_are_surely_slower_than_the_best_and_no_others():
    near, far = (
        replace(SPARSE, format=format, fixed=times * SPARSE.fixed) for format, times in (("csc", 1.01), ("coo", 9))
    )
    rows = rows_of(DENSE, SPARSE, near, far, noise=0.02)
    assert {row["format"] for row in compare.undominated_records(rows, "seconds_step")} == {"csr", "csc"}


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_few_rounds_decide_what_is_far_apart_and_say_of_the_rest_what_could_have_been_seen(rounds):
    far, near = judged(DENSE, SPARSE, rounds=rounds), judged(DENSE, replace(ALIKE, fixed=7.5e-3), rounds=rounds)
    assert (far.verdict, far.why, far.ratio.rounds) == ("sparse", "", rounds)
    assert far.ratio.low <= 8e-3 / SPARSE.seconds(0.01) <= far.ratio.high
    assert (near.verdict, near.why) == ("inconclusive", compare.HOLDS_ONE)
    assert near.minimum_detectable_ratio == near.ratio.minimum_detectable_ratio > 1.2


def test_what_cannot_be_told_apart_says_what_could_have_been_seen():
    found = judged(DENSE, replace(ALIKE, fixed=7.5e-3), noise=0.2)
    assert (found.verdict, found.why) == ("inconclusive", compare.HOLDS_ONE)
    assert found.minimum_detectable_ratio == found.ratio.minimum_detectable_ratio > 1.2


def test_a_side_is_likely_from_a_probability_of_four_in_five_on_and_only_where_it_is_inconclusive():
    met = [
        judged(DENSE, replace(ALIKE, fixed=8e-3 / ratio), noise=0.1, seed=seed)
        for ratio in (0.3, 0.8, 0.88, 1.0, 1.3, 4.0)
        for seed in range(4)
    ]
    for one in met:
        side = "sparse" if one.ratio.probability >= 0.8 else "dense" if one.ratio.probability <= 0.2 else ""
        assert one.likely == ("" if one.verdict in ("sparse", "dense") else side)
        assert (one.verdict == "sparse") == (one.ratio.probability > 0.975)
        assert (one.verdict == "dense") == (one.ratio.probability < 0.025)
    assert {one.likely for one in met} == {"", "sparse", "dense"}


def test_verdicts_and_ratios_are_those_of_the_module_of_rounds():
    laws = (DENSE, SERIAL, SPARSE, replace(SPARSE, format="coo", slope=0.3), replace(SPARSE, format="csc", slope=0.2))
    rows = rows_of(*laws, noise=0.3, rounds=6, densities=(0.03,))
    (found,) = contests(rows, "seconds_step")
    name = lambda row: row["format"] + str(row["serial"])  # noqa: E731
    trials = [
        Trial(name(row), seconds, *place)
        for row in rows
        for place, seconds in row["round_values"]["seconds_step"].items()
    ]
    scatter = Scatter(rows[0]["deviation"], rows[0]["freedom"])
    decision = decide_comparison(trials, {"denseFalse", "denseTrue"}, scatter=scatter)
    assert found.verdict == decision.verdict
    assert found.ratio.rounds == decision.ratio.rounds == 6
    sides = [decision.sparse, decision.dense]
    assert [name(found.sparse), name(found.dense)] == sides or found.level
    if not found.level:
        assert found.ratio == pytest.approx(decision.ratio, rel=0.05)


def test_the_noise_of_a_comparison_is_shrunk_towards_that_of_its_machine():
    """Residuals of rounds and candidates in logarithms, computed here with means alone."""
    rows = rows_of(DENSE, SPARSE, densities=(0.01, 0.1), noise=0.2, rounds=5)
    squares = {}
    for density in (0.01, 0.1):
        own = [row["round_values"]["seconds_step"] for row in rows if row["density"] == density]
        difference = np.log([own[0][place] / own[1][place] for place in own[0]])
        squares[density] = ((difference - difference.mean()) ** 2).sum()
    machine = (2 * 0.2**2 + sum(squares.values())) / (2 + 8)
    for row in rows:
        assert row["freedom"] == 14
        assert row["deviation"] == pytest.approx(np.sqrt((10 * machine + squares[row["density"]]) / 14))


def test_two_runs_are_combined_by_their_ratios():
    slow = [row | {"seconds_step": 3 * row["seconds_step"]} for row in maker.sweep(run="r2", seed=1, densities=(0.01,))]
    rows = configurations.records(pool_rounds(store.frame(maker.sweep(densities=(0.01,)) + slow)))
    (found,) = contests(rows, "seconds_step")
    assert (found.ratio.runs, found.ratio.rounds) == (2, 8)
    assert found.ratio.low < 8e-3 / SPARSE.seconds(0.01) < found.ratio.high


def test_two_sides_of_different_runs_are_not_compared():
    rows = maker.sweep((DENSE,), (0.01,)) + maker.sweep((SPARSE,), (0.01,), run="r2")
    (found,) = contests(configurations.records(pool_rounds(store.frame(rows))), "seconds_step")
    assert (found.verdict, found.ratio, found.why) == ("inconclusive", None, compare.APART)


def disturb(formats, rounds):
    """Rows of these formats and rounds as other programs leave them."""
    return lambda row: maker.disturbed(row) if row["format"] in formats and row["round"] in rounds else row


@pytest.mark.parametrize("formats", [("dense",), ("csr",), ("dense", "csr")])
def test_disturbed_rounds_bound_a_large_factor_and_leave_a_small_one_open(formats):
    change = disturb(formats, range(4))
    large, small = (judged(DENSE, law, change=change) for law in (replace(SPARSE, fixed=1e-5, slope=0.0), SPARSE))
    assert (large.verdict, large.why, large.is_beside_others) == ("sparse", "", True)
    assert 1 < large.ratio.low < 800 < large.ratio.high
    near = judged(DENSE, replace(SPARSE, fixed=6.5e-3, slope=0.0), change=change)
    assert (near.verdict, near.why) == ("inconclusive", compare.HOLDS_ONE)
    assert near.ratio.low < 1 < near.ratio.high
    assert small.ratio.disturbed == small.ratio.rounds == 4
    assert judged(DENSE, SPARSE, change=change, measure="bytes_peak").verdict == "sparse"


def test_the_ratio_of_disturbed_rounds_is_that_of_the_model_with_each_effect_as_an_unknown():
    known = {"change": disturb(("dense", "csr"), (1, 3)), "noise": 0.05, "rounds": 6}
    dense, sparse = rows_of(DENSE, SPARSE, **known)
    trials = [
        Trial(name, seconds, *place, place[1] in (1, 3))
        for name, row in (("dense", dense), ("sparse", sparse))
        for place, seconds in row["round_values"]["seconds_step"].items()
    ]
    means, covariance = posterior_with_effects(trials, dense["deviation"], NOISE)
    difference = np.array([1.0, -1.0])
    half = stats.t.ppf(0.975, dense["freedom"]) * np.sqrt(difference @ covariance @ difference)
    ratio = judged(DENSE, SPARSE, **known).ratio
    expected = np.exp(means["dense"] - means["sparse"] + half * np.array([0, -1, 1]))
    assert ratio[:3] == pytest.approx(expected, rel=0.02), "but for trials that are off"
    assert (ratio.rounds, ratio.disturbed) == (6, 2)


def test_the_more_rounds_are_disturbed_the_less_is_known():
    widths = [judged(DENSE, SPARSE, change=disturb(("dense", "csr"), range(lost)), rounds=6) for lost in range(0, 7, 2)]
    assert [width.ratio.disturbed for width in widths] == [0, 2, 4, 6]
    visible = [width.ratio.minimum_detectable_ratio for width in widths]
    assert visible == sorted(visible)
    assert visible[-1] > 1.2 * visible[0]


def test_a_disturbed_baseline_that_may_be_the_faster_one_makes_the_other_no_less_of_one():
    spoil = lambda row: maker.disturbed(row) if row["format"] == "dense" and not row["serial"] else row  # noqa: E731
    found = judged(DENSE, SERIAL, SPARSE, change=spoil)
    assert (found.verdict, found.dense["serial"], found.is_beside_others) == ("sparse", True, False)
    assert judged(DENSE, SERIAL, replace(SPARSE, fixed=0.1), change=spoil).verdict == "dense"


def test_the_better_of_dense_on_one_thread_and_on_all_is_to_be_beaten():
    between = replace(SPARSE, fixed=8e-3, slope=0.0)
    quick = replace(SERIAL, fixed=4e-3)
    assert judged(replace(DENSE, fixed=16e-3), between).verdict == "sparse"
    found = judged(replace(DENSE, fixed=16e-3), quick, between)
    assert (found.verdict, found.dense["serial"]) == ("dense", True)


def test_what_did_not_fit_loses_to_what_ran():
    unfit = lambda formats: lambda row: maker.unfit(row) if row["format"] in formats else row  # noqa: E731
    for measure in ("seconds_step", "bytes_peak"):
        assert judged(DENSE, SPARSE, change=unfit(("dense",)), measure=measure).verdict == "sparse"
        assert judged(DENSE, SPARSE, change=unfit(("csr",)), measure=measure).verdict == "dense"
        assert judged(DENSE, SPARSE, change=unfit(("dense", "csr")), measure=measure).why == compare.NO_RESULT
    assert judged(DENSE).why == compare.NO_SPARSE
    assert judged(SPARSE).why == compare.NO_DENSE


@pytest.mark.parametrize(
    ("size", "expected"), [(100e6, "level"), (97e6, "level"), (95e6, "sparse"), (106e6, "dense")], ids=str
)
@pytest.mark.parametrize("rounds", [1, 2])
def test_memory_has_its_own_rule_and_one_round_suffices(size, expected, rounds):
    law = replace(SPARSE, bytes_fixed=size, bytes_slope=0.0)
    found = judged(DENSE, law, measure="bytes_peak", rounds=rounds, noise=0.01)
    assert (found.verdict, found.why) == (expected, "")
    assert found.ratio.value == pytest.approx(100e6 / size, rel=0.01)


def test_one_configuration_stands_for_those_that_win_alike():
    laws = (DENSE, SPARSE, replace(SPARSE, format="csc"))
    found = contests(rows_of(*laws, densities=maker.DENSITIES), "seconds_step")
    won = [one for one in found if one.verdict == "sparse"]
    assert len({one.sparse["format"] for one in won}) == 1
    assert sum(bool(one.level) for one in won) > 1
    slow = judged(DENSE, SPARSE, replace(SPARSE, format="csc", slope=0.3))
    assert (slow.sparse["format"], slow.level) == ("csr", ())


def test_a_pair_of_rows_has_the_verdict_of_their_contest():
    dense, sparse = rows_of(DENSE, SPARSE)
    assert contest_verdict(sparse, dense, "seconds_step") == judged(DENSE, SPARSE).verdict == "sparse"
    assert contest_verdict(dense, sparse, "seconds_step") == "dense"


def simulated(ratio, times, rounds=12, sd=0.2):
    """So many contests of two candidates, of which dense takes `ratio` times as long."""
    rng = np.random.default_rng(1)
    made = (neighbours(ratio, rng, rounds=rounds, sd=sd) for _ in range(times))
    return [
        compare.compare_best([pooled(sparse)], [pooled(dense, format="dense")], "seconds_step")
        for sparse, dense in made
    ]


@pytest.mark.parametrize("rounds", [1, 4, 12])
def test_of_two_candidates_alike_at_most_one_in_twenty_is_called_a_winner(rounds):
    text = [one.verdict for one in simulated(1.0, 300, rounds)]
    assert 1 - (text.count("inconclusive") + text.count("level")) / 300 <= 0.05


def test_the_best_of_four_candidates_alike_seldom_beats_dense_by_its_luck():
    rng = np.random.default_rng(3)
    won = 0
    for _ in range(150):  # the best of four is chosen by its luck: nominal is one side of 5 %, four would be 10 %
        spells = rng.normal(0, 0.3, 8)
        sides = np.exp(spells + rng.normal(0, 0.15, (5, 8)))
        sparse = [pooled(seconds, engine=f"competitor {k}") for k, seconds in enumerate(sides[1:])]
        won += compare.compare_best(sparse, [pooled(sides[0], format="dense")], "seconds_step").verdict == "sparse"
    assert won <= 0.05 * 150


def test_a_true_difference_is_found_and_its_interval_holds_it():
    found = simulated(1.5, 300)
    assert np.mean([one.verdict == "sparse" for one in found]) > 0.9
    assert np.mean([one.ratio.low <= 1.5 <= one.ratio.high for one in found]) >= 0.95
    assert np.median([one.ratio.high / one.ratio.low for one in found]) < 1.7, "an interval that says nothing holds all"


def test_nobody_is_called_level_who_is_not():
    text = [one.verdict for one in simulated(EQUIVALENCE_MARGIN, 300, sd=0.03)]
    assert "dense" not in text
    assert text.count("level") <= 0.05 * 300


def test_a_lazy_update_is_compared_with_an_equal_training_only():
    lazy = replace(SPARSE, update="lazy", loss_last=0.4)
    rows = rows_of(DENSE, SPARSE, lazy)
    assert [(one["update"], fair["format"]) for one, fair in compare.trained_worse(rows)] == [("lazy", "csr")]
    assert len(compare.trained_worse(rows_of(DENSE, lazy))) == 1, "dense trains the same model as any standard update"
    for change in ({"learning_rate": 0.5}, {"seed": 3}):
        other = [row | change if row["update"] == "lazy" else row for row in rows]
        assert compare.trained_worse(other) == [], change
    fewer = [row | {"curve": row["curve"][:-1]} if row["update"] == "lazy" else row for row in rows]
    assert compare.trained_worse(fewer) == [], "losses after different numbers of steps"
    unknown = [row | {"curve": None} for row in rows]
    assert compare.trained_worse(unknown) == [], "nor after numbers that are not known"


FASTER = replace(SPARSE, format="csc", fixed=1e-3, slope=0.0)
SLOWER = replace(SPARSE, fixed=3e-2, slope=0.0)


def partly(*absent, at=0.1):
    """The contests of sweeps at three densities, at one of which some laws were not measured."""
    rows = rows_of(DENSE, SLOWER, *absent, densities=(0.01, 0.1, 0.2), noise=0.01)
    formats = {law.format for law in absent}
    kept = [row for row in rows if not (row["density"] == at and row["format"] in formats)]
    return {round(found.density, 2): (found.verdict, found.why) for found in contests(kept, "seconds_step")}


def test_dense_does_not_win_where_a_configuration_that_beats_it_elsewhere_was_not_measured():
    assert partly(FASTER) == {0.01: ("sparse", ""), 0.1: ("inconclusive", compare.PARTLY), 0.2: ("sparse", "")}


def test_dense_wins_where_what_was_not_measured_is_surely_behind_another_one_nearby():
    behind = replace(FASTER, format="coo", fixed=2e-3)
    assert partly(behind)[0.1] == ("inconclusive", compare.PARTLY)
    rows = rows_of(DENSE, FASTER, replace(behind, fixed=4e-3), densities=(0.01,), noise=0.01)
    rows += rows_of(DENSE, replace(FASTER, slope=0.2), densities=(0.1,), noise=0.01)
    assert [contest.verdict for contest in contests(rows, "seconds_step")] == ["sparse", "dense"]


def test_dense_wins_where_what_was_not_measured_loses_nearby():
    assert partly(replace(SLOWER, format="csc")) == dict.fromkeys((0.01, 0.1, 0.2), ("dense", ""))


def cut_off(row):
    """A dense row whose time was out before it had taken a step."""
    if row["format"] != "dense":
        return row
    nothing = dict.fromkeys(("seconds_step", "seconds_first_step", "samples", "bytes_peak"))
    return row | nothing | {"status": "timeout"}


def test_a_dense_side_that_was_cut_off_is_bounded_by_the_bytes_that_it_reads():
    found = judged(DENSE, replace(SPARSE, fixed=1e-6, slope=0.0), change=cut_off)
    least = 256 * 10_000 * 4 / compare.BYTES_A_SECOND / 1e-6
    assert (found.verdict, found.source, found.ratio.rounds) == ("sparse", compare.BOUNDED, 0)
    assert 0.9 * least < found.ratio.low < least
    assert re.fullmatch(r"at least .* faster; dense was cut off .*", contest_clause(found, "faster"))


def test_bytes_that_it_reads_decide_nothing_where_sparse_takes_longer():
    found = judged(DENSE, SPARSE, change=cut_off)
    assert (found.verdict, found.ratio, found.why) == ("inconclusive", None, compare.NO_RESULT)


@pytest.mark.parametrize("status", ["timeout", "stopped"])
def test_a_side_that_was_ended_in_its_first_step_is_bounded_by_the_seconds_of_that(status):
    def dense_ended(row):
        return cut_off(row) | ({"status": status, "seconds_first_step": 20.0} if row["format"] == "dense" else {})

    def sparse_ended(row):
        ended = {"status": status, "seconds_step": None, "samples": None, "seconds_first_step": 20.0}
        return row if row["format"] == "dense" else row | ended

    found = judged(DENSE, SPARSE, change=dense_ended)
    of_sparse = SPARSE.seconds(0.01)
    assert (found.verdict, found.source, found.ratio.rounds) == ("sparse", compare.BOUNDED, 0)
    assert found.ratio.low == pytest.approx(compare.STEADY * 20.0 / of_sparse, rel=0.1)
    assert re.fullmatch(r"at least .* faster; dense was cut off .*", contest_clause(found, "faster"))
    found = judged(DENSE, SPARSE, change=sparse_ended)
    assert (found.verdict, found.source, found.ratio.low) == ("dense", compare.BOUNDED, 0)
    assert re.fullmatch(r"at least .* faster; sparse was cut off .*", contest_clause(found, "faster"))


def test_seconds_of_a_first_step_decide_nothing_where_the_other_side_takes_longer():
    ended = {"seconds_first_step": 1e-9}
    found = judged(DENSE, SPARSE, change=lambda row: cut_off(row) | (ended if row["format"] == "dense" else {}))
    assert (found.verdict, found.why) == ("inconclusive", compare.NO_RESULT)


def test_memory_of_a_side_that_was_cut_off_is_that_of_the_formulas():
    found = judged(DENSE, SPARSE, change=cut_off, measure="bytes_peak")
    assert (found.verdict, found.source) == ("sparse", compare.PREDICTED)
    assert found.ratio.low < 80e6 / SPARSE.bytes(0.01) < found.ratio.high
