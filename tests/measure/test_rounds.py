"""Rounds as the unit of evidence: orders, intervals, decisions, and when rounds are enough."""

import math

import numpy as np
import pytest

from workbench.measure import rounds
from workbench.measure.rounds import LOOKS, Decision, Ratio, decide, mean_interval, ratio_interval, ratio_of, turned


def times(*values, run="a"):
    return {(run, number): value for number, value in enumerate(values)}


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_each_contender_is_in_each_place_as_often(count):
    orders = [turned(range(count), number) for number in range(2 * count)]
    for place in range(count):
        assert sorted(order[place] for order in orders) == sorted(2 * list(range(count)))


def test_a_slow_spell_of_the_machine_does_not_move_the_ratio():
    quiet = ratio_of(times(3, 3.1, 2.9, 3), times(1, 1, 1, 1))
    drifting = ratio_of(times(3, 6.2, 29, 9), times(1, 2, 10, 3))
    assert quiet == pytest.approx(drifting)


def test_times_of_different_runs_are_never_divided():
    assert ratio_of(times(3, 3, 3, run="a"), times(1, 1, 1, run="b")) is None
    both = times(2, 2, 2, 2, run="a") | times(20, 20, 20, 20, run="b")
    one = times(1, 1, 1, 1, run="a") | times(10, 10, 10, 10, run="b")
    ratio = ratio_of(both, one)
    assert (ratio.value, ratio.rounds, ratio.runs) == (pytest.approx(2), 8, 2)


def test_runs_that_disagree_widen_the_interval():
    logs = np.log([1.9, 2.0, 2.1, 2.0])
    alike, apart = ratio_interval([logs, logs]), ratio_interval([logs - 0.4, logs + 0.4])
    assert alike.value == pytest.approx(apart.value)
    assert apart.visible > 1.5 > alike.visible


def test_a_run_of_fewer_than_four_rounds_counts_only_where_there_is_no_longer_one():
    logs = np.log([2.0, 2.1, 1.9, 2.0])
    assert ratio_interval([logs, [5.0, 5.0]]) == ratio_interval([logs])
    assert ratio_interval([[0.0], [0.1, 0.2]]).rounds == 2


def test_below_four_rounds_nothing_is_decided():
    assert [decide({"s": times(*[1] * n)}, {"d": times(*[9] * n)}).verdict for n in (1, 3, 4)] == [
        "undecided",
        "undecided",
        "sparse",
    ]
    assert ratio_interval([[math.log(9)]]) == Ratio(pytest.approx(9), 0.0, math.inf, 1, 1)


def test_verdicts_name_the_side_that_takes_less_and_level_ones():
    noise = [1.0, 1.02, 0.99, 1.01]
    slow = [3 * value for value in noise[::-1]]
    assert decide({"s": times(*noise)}, {"d": times(*slow)}).verdict == "sparse"
    assert decide({"s": times(*slow)}, {"d": times(*noise)}).verdict == "dense"
    assert decide({"s": times(*noise)}, {"d": times(*noise)}).verdict == "level"
    assert decide({"s": times(1, 2, 1, 3)}, {"d": times(2, 1, 3, 1)}).verdict == "undecided"


def test_the_best_sparse_meets_the_best_dense():
    sparse = {"slow": times(2, 2, 2, 2), "fast": times(1, 1, 1, 1), "none": {}}
    dense = {"threads": times(9, 9, 9, 9), "serial": times(4, 4, 4, 4)}
    decision = decide(sparse, dense)
    assert (decision.sparse, decision.dense) == ("fast", "serial")
    assert decision.ratio.value == pytest.approx(4)


def test_a_side_without_a_number_decides_nothing():
    assert decide({"s": times(1)}, {}) == Decision("s", None, None)
    assert decide({}, {"d": times(1)}) == Decision(None, "d", None)
    assert decide({"s": times(1, run="a")}, {"d": times(2, run="b")}) == Decision("s", "d", None)
    assert decide({}, {}).verdict == "undecided"


def test_choosing_among_more_rivals_costs_certainty():
    rng = np.random.default_rng(0)
    logs = rng.normal(0.1, 0.3, 6)
    widths = [ratio_interval([logs], rivals).visible for rivals in (1, 2, 3, 8)]
    assert widths[0] == widths[1] < widths[2] < widths[3]


def test_the_interval_is_not_narrower_than_what_rounds_share():
    many = ratio_interval([np.random.default_rng(1).normal(0, 0.3, 10_000)])
    assert math.log(many.visible) > 2.3 * 0.3 / math.sqrt(rounds.SHARED)


@pytest.mark.parametrize(
    ("ratio", "measured", "due"),
    [
        (None, 0, 4),
        (None, 3, 1),
        (None, 4, 0),
        (Ratio(3, 2, 4, 4, 1), 4, 0),
        (Ratio(3, 0.5, 9, 4, 1), 4, 2),
        (Ratio(3, 2, 4, 5, 1), 5, 1),
        (Ratio(1, 0.98, 1.02, 6, 1), 6, 0),
        (Ratio(1, 0.5, 2, 9, 1), 10, 2),
        (Ratio(1, 0.5, 2, 12, 1), 12, 0),
        (Ratio(1, 0.5, 2, 2, 1), 4, 2),
    ],
)
def test_rounds_are_added_up_to_the_next_look_until_the_end(ratio, measured, due):
    assert rounds.rounds_due(Decision("s", "d", ratio), measured) == due


def test_at_most_as_many_rounds_as_asked_for():
    assert rounds.rounds_due(Decision("s", "d", None), 0, most=2) == 2
    assert rounds.rounds_due(Decision("s", "d", Ratio(1, 0.5, 2, 4, 1)), 4, most=5) == 1


def test_all_looks_together_err_in_five_percent_of_alike_sides_at_most():
    rng, wrong, sweeps = np.random.default_rng(7), 0, 600
    for _ in range(sweeps):
        first, second = (times(*np.exp(rng.normal(0, 0.2, 12))) for _ in range(2))
        for look in LOOKS:
            seen = decide(*({"c": {place: side[place] for place in list(side)[:look]}} for side in (first, second)))
            if seen.verdict != "undecided":
                break
        wrong += seen.verdict in ("sparse", "dense")
    assert 0.01 < wrong / sweeps < 0.05


def test_a_mean_of_rounds_has_an_interval_and_one_round_has_none():
    assert mean_interval([2.0]) == Ratio(2.0, 2.0, 2.0, 1, 1)
    several = mean_interval([1.0, 2.0, 4.0, 2.0])
    assert several.value == pytest.approx(2.0)
    assert several.low < 1.5 < 2.7 < several.high


def test_an_absurd_spread_is_no_error():
    assert ratio_interval([[0.0, 600.0]]).high == math.inf
    assert not decide({"s": times(1e-300, 1)}, {"d": times(1, 1e-300)}).ratio.low


@pytest.mark.parametrize("function", [mean_interval, ratio_interval, rounds.number])
def test_nothing_has_no_number(function):
    with pytest.raises((ValueError, IndexError)):
        function([])


def test_a_contender_that_surely_wins_stands_before_a_faster_one_that_may_not():
    sure, doubtful = times(2, 2.02, 1.98, 2.01), times(0.2, 6, 0.3, 4)
    decision = decide({"sure": sure, "doubtful": doubtful}, {"dense": times(4, 4, 4, 4)})
    assert ratio_of(times(4, 4, 4, 4), doubtful).value > ratio_of(times(4, 4, 4, 4), sure).value
    assert (decision.sparse, decision.verdict) == ("sure", "sparse")


def test_some_of_the_contenders_are_held_to_the_number_of_all():
    rng = np.random.default_rng(3)
    sparse = {name: times(*np.exp(rng.normal(0, 0.2, 6))) for name in "abcd"}
    dense = {"dense": times(*np.exp(rng.normal(0.3, 0.2, 6)))}
    whole = decide(sparse, dense)
    alone = decide({whole.sparse: sparse[whole.sparse]}, dense, rivals=4)
    assert alone == whole
    assert decide({whole.sparse: sparse[whole.sparse]}, dense).ratio.low > whole.ratio.low
    with_none = decide(sparse | {"unmeasured": {}}, dense)
    assert with_none == whole
