"""Rounds as the unit of evidence: orders, decisions, when rounds are enough, means of one run."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from workbench.measure import rounds
from workbench.measure.posterior import DEVIATION, FREEDOM, NOISE, Ratio, Scatter, Trial, posterior
from workbench.measure.rounds import (
    Decision,
    counterbalanced_order,
    decide_comparison,
    mean_interval,
    ratio_of,
    rounds_due,
)


def times(*values, run="a"):
    return {(run, number): value for number, value in enumerate(values)}


def decided(sparse, dense, **known):
    """The decision of candidates whose seconds are given by (run, round)."""
    trials = [Trial(name, value, *at) for name, own in (sparse | dense).items() for at, value in own.items()]
    return decide_comparison(trials, dense.keys(), **known)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_each_candidate_is_in_each_place_as_often(count):
    orders = [counterbalanced_order(range(count), number) for number in range(2 * count)]
    for place in range(count):
        assert sorted(order[place] for order in orders) == sorted(2 * list(range(count)))
    for first, second in itertools.combinations(range(count), 2):
        assert sum(order.index(first) < order.index(second) for order in orders) == count, "each is before each other"


@pytest.mark.parametrize("seconds", [(1, 3), (3, 1)], ids=["sparse", "dense"])
def test_a_ratio_is_narrow_whichever_side_wins(seconds):
    sparse, dense = ([side * noise for noise in (1.0, 1.02, 0.99, 1.01)] for side in seconds)
    decision = decided({"s": times(*sparse)}, {"d": times(*dense)}, scatter=Scatter(0.02, 30.0))
    assert decision.is_narrow
    assert not replace(decision, ratio=Ratio(1, 0.9, 1.2, 4, 1, 0.5)).is_narrow


def test_a_slow_spell_of_the_machine_does_not_move_the_ratio():
    quiet = ratio_of(times(3, 3.1, 2.9, 3), times(1, 1, 1, 1))
    drifting = ratio_of(times(3, 6.2, 29, 9), times(1, 2, 10, 3))
    assert quiet == pytest.approx(drifting)


def test_times_of_different_runs_are_never_divided():
    assert ratio_of(times(3, 3, 3, run="a"), times(1, 1, 1, run="b")) is None
    both = times(2, 2, 2, 2, run="a") | times(20, 20, 20, 20, run="b")
    one = times(1, 1, 1, 1, run="a") | times(10, 10, 10, 10, run="b")
    ratio = ratio_of(both, one)
    assert (ratio.value, ratio.rounds, ratio.runs) == (pytest.approx(2, rel=1e-3), 8, 2)


def test_a_ratio_is_of_the_rounds_that_both_have():
    first, second = times(2, 2.2, 50.0), times(1, 1) | times(0.01, run="b")
    assert ratio_of(first, second) == ratio_of(times(2, 2.2), times(1, 1))


def test_a_ratio_is_the_posterior_of_its_rounds():
    first, second = times(2, 2.2, 1.9), times(1, 1.3, 1)
    trials = [Trial(name, own[at], *at) for name, own in (("first", first), ("second", second)) for at in own]
    for scatter in (None, Scatter(0.05, 30.0)):
        expected = posterior(trials, scatter=scatter).ratio("first", "second")
        assert ratio_of(first, second, scatter) == pytest.approx(expected)


def test_one_round_decides_sides_that_are_far_apart_and_no_others():
    far, near = (decided({"s": times(1)}, {"d": times(ratio)}) for ratio in (9, 1.5))
    assert (far.verdict, far.rounds) == ("sparse", 1)
    assert near.verdict == "inconclusive"
    assert decided({"s": times(9)}, {"d": times(1)}).verdict == "dense"
    assert near.ratio.low < 1 < near.ratio.value < near.ratio.high


def test_verdicts_name_the_side_that_takes_less_and_level_ones():
    noise = [1.0, 1.02, 0.99, 1.01] * 3
    slow = [3 * value for value in noise[::-1]]
    known = {"scatter": Scatter(0.02, 30.0)}
    assert decided({"s": times(*noise)}, {"d": times(*slow)}).verdict == "sparse"
    assert decided({"s": times(*slow)}, {"d": times(*noise)}).verdict == "dense"
    assert decided({"s": times(*noise)}, {"d": times(*noise)}, **known).verdict == "level"
    assert decided({"s": times(1, 2, 1, 3)}, {"d": times(2, 1, 3, 1)}).verdict == "inconclusive"


def test_the_best_sparse_meets_the_best_dense():
    sparse = {"slow": times(2, 2, 2, 2), "fast": times(1, 1, 1, 1), "none": {}}
    dense = {"threads": times(9, 9, 9, 9), "serial": times(4, 4, 4, 4)}
    decision = decided(sparse, dense)
    assert (decision.sparse, decision.dense) == ("fast", "serial")
    assert decision.ratio.value == pytest.approx(4, rel=0.01)
    every = [Trial(name, value, *at) for name, own in (sparse | dense).items() for at, value in own.items()]
    found = posterior(every)
    assert decision.ratio == found.ratio("serial", "fast")
    assert decision.loss == min(found.losses().values()) < 0.01


def test_a_side_without_a_number_decides_nothing():
    no_dense, no_sparse = decided({"s": times(1)}, {}), decided({}, {"d": times(1)})
    assert (no_dense.sparse, no_dense.dense, no_dense.ratio) == ("s", None, None)
    assert (no_sparse.sparse, no_sparse.dense, no_sparse.ratio) == (None, "d", None)
    apart = decided({"s": times(1, run="a")}, {"d": times(2, run="b")})
    assert (apart.sparse, apart.dense, apart.ratio) == ("s", "d", None)
    assert decide_comparison([], ()) == Decision()
    for decision in (no_dense, no_sparse, apart, Decision()):
        assert (decision.verdict, decision.rounds) == ("inconclusive", 0)
        assert not decision.is_settled
        assert not decision.is_narrow


def test_predictions_decide_where_nothing_was_measured_and_a_measured_side_meets_no_prediction_of_another_run():
    far = decide_comparison([], {"d"}, {"s": 1.0, "d": 100.0})
    assert (far.verdict, far.rounds, far.ratio.value) == ("sparse", 0, pytest.approx(100))
    assert decide_comparison([], {"d"}, {"s": 1.0, "d": 2.0}).verdict == "inconclusive"
    measured = decide_comparison([Trial("s", 1.0, "a", 0), Trial("d", 2.0, "b", 0)], {"d"}, {"s": 1.0, "d": 2.0})
    assert measured.ratio is None


def test_a_lucky_candidate_of_many_is_not_believed_to_be_as_fast_as_it_looks():
    """The scatter of a choice among equals is in its expected loss, and the certainty is that of each round."""
    random = np.random.default_rng(0)
    wrong = 0
    for _ in range(120):
        seconds = np.exp(random.normal(0, 0.25 / math.sqrt(2), (9, 4)))
        sparse = {f"s{number}": times(*own) for number, own in enumerate(seconds[1:])}
        wrong += decided(sparse, {"dense": times(*seconds[0])}).verdict == "sparse"
    assert wrong / 120 <= 0.1, "of eight equal candidates the best looks faster than dense more often than one does"


def test_equal_sides_get_a_winner_in_five_percent_at_most_wherever_rounds_end():
    random, wrong, sweeps = np.random.default_rng(7), 0, 150
    for _ in range(sweeps):
        sides = [np.exp(random.normal(0, DEVIATION / math.sqrt(2), 12)) for _ in range(2)]
        measured, due = 0, 1
        while due:
            measured += due
            trials = [Trial(name, side[k], "a", k) for name, side in enumerate(sides) for k in range(measured)]
            decision = decide_comparison(trials, {1})
            due = rounds_due(decision, measured)
        wrong += decision.verdict in ("sparse", "dense")
    assert wrong / sweeps <= 0.05


SURE, OPEN = 0.9999, 0.6


@pytest.mark.parametrize(
    ("ratio", "loss", "measured", "due", "race"),
    [
        (None, math.inf, 0, 2, 1),
        (None, math.inf, 1, 1, 0),
        (None, 0.0, 2, 2, 0),
        (Ratio(3, 2.5, 3.6, 2, 1, SURE), 0.0, 2, 0, 0),
        (Ratio(30, 9, 99, 1, 1, SURE), 0.0, 1, 1, 1),
        (Ratio(3, 2.5, 3.6, 2, 1, OPEN), 0.2, 2, 1, 1),
        (Ratio(3, 2.5, 3.6, 2, 1, SURE), 0.2, 2, 0, 1),
        (Ratio(1, 0.95, 1.05, 6, 1, 0.5), 0.002, 6, 0, 0),
        (Ratio(1, 0.5, 2, 9, 1, 0.5), 0.1, 11, 1, 1),
        (Ratio(1, 0.5, 2, 12, 1, 0.5), 0.1, 12, 0, 0),
    ],
)
def test_rounds_are_added_until_the_answer_is_known_or_there_are_enough(ratio, loss, measured, due, race):
    decision = Decision("s", "d", ratio, loss)
    assert (rounds_due(decision, measured), rounds_due(decision, measured, is_race=True)) == (due, race)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_at_most_as_many_rounds_as_asked_for(most):
    assert rounds_due(Decision(), 0, most) == min(2, most)
    still_open = Decision("s", "d", Ratio(1, 0.5, 2, 4, 1, 0.5), 0.2)
    assert [rounds_due(still_open, measured, most) for measured in (most - 1, most, most + 1)][1:] == [0, 0]
    assert rounds_due(still_open, 4, most=5) == 1


def test_the_larger_a_difference_the_fewer_rounds_it_needs():
    random = np.random.default_rng(3)
    base = np.exp(random.normal(0, 0.15, (2, 12)))
    needed = []
    for ratio in (1.2, 2, 30):
        sides = {"s": base[0], "d": ratio * base[1]}
        due = measured = 2
        while due:
            trials = [Trial(name, own[k], "a", k) for name, own in sides.items() for k in range(measured)]
            due = rounds_due(decide_comparison(trials, {"d"}), measured)
            measured += due
        needed.append(measured)
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > needed[-1]


def test_a_mean_of_rounds_has_an_interval_and_one_round_has_none():
    assert mean_interval([2.0]) == Ratio(2.0, 2.0, 2.0, 1, 1)
    logs = np.log([1.0, 2.0, 4.0, 2.0])
    several = mean_interval(np.exp(logs))
    half = stats.t.ppf(0.975, 3) * logs.std(ddof=1) * math.sqrt(1 / 4 + 1 / 16)
    assert np.log(several[:3]) == pytest.approx([logs.mean(), logs.mean() - half, logs.mean() + half])
    assert (several.rounds, several.runs) == (4, 1)


def test_an_absurd_spread_is_no_error():
    assert mean_interval([1e-300, 1.0]).high == math.inf
    assert decided({"s": times(1e-300, 1)}, {"d": times(1, 1e-300)}).verdict == "inconclusive"


@pytest.mark.parametrize("function", [mean_interval, rounds.trial_statistic])
def test_nothing_has_no_number(function):
    with pytest.raises((ValueError, IndexError)):
        function([])


@pytest.mark.parametrize("count", [1, 3, 12])
@pytest.mark.parametrize("deviation", [0.05, 0.25])
def test_what_rounds_could_tell_is_told_beforehand_and_found_afterwards(count, deviation):
    logs = np.random.default_rng(0).standard_normal(count)
    logs -= logs.mean()
    logs *= deviation / logs.std(ddof=1) if count > 1 else 0.0
    found = ratio_of(times(*np.exp(logs)), times(*[1.0] * count)).minimum_detectable_ratio
    assert rounds.minimum_detectable_ratio(count, deviation) == pytest.approx(found, rel=0.05)


def test_a_sure_candidate_stands_before_one_that_may_be_faster_and_may_be_far_slower():
    sure = times(2, 2.02, 1.98, 2.01, 2, 2, 2, 2)
    decision = decided({"sure": sure, "doubtful": times(1.98, run="b")}, {"dense": times(*[4] * 8)})
    assert (decision.sparse, decision.verdict) == ("sure", "sparse")


def test_the_noise_of_all_rounds_of_a_run_is_not_averaged_away():
    scatter = Scatter(0.3, 1e6)
    many = ratio_of(times(*[1.0] * 300), times(*[1.0] * 300), scatter)
    assert math.log(many.minimum_detectable_ratio) == pytest.approx(
        1.96 * 0.3 * math.sqrt(NOISE.shared + 1 / 300), rel=0.01
    )
    few = rounds.minimum_detectable_ratio(1)
    assert math.log(few) == pytest.approx(stats.t.ppf(0.975, FREEDOM) * DEVIATION * math.sqrt(1 + NOISE.shared))
