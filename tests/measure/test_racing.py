"""Races: noise is learned from the rounds, and who is taken is who is expected to need the least time."""

import numpy as np
import pytest

from workbench.measure import racing
from workbench.measure.rounds import DEVIATION, LOOKS, Ratio, ratio_of


def times(*seconds, first=0) -> dict:
    return {("run", first + place): value for place, value in enumerate(seconds)}


def drawn(noise, speeds, rounds, seed=0) -> dict:
    rng = np.random.default_rng(seed)
    return {name: times(*(speed * np.exp(noise * rng.standard_normal(rounds)))) for name, speed in speeds.items()}


@pytest.mark.parametrize("noise", [0.02, 1.0])
def test_noise_is_the_usual_one_before_rounds_tell_and_what_they_show_after_many(noise):
    speeds = dict.fromkeys("abcdefgh", 1.0)
    assert racing.deviation({}) == racing.deviation(drawn(noise, speeds, 1)) == DEVIATION
    few, many = (racing.deviation(drawn(noise, speeds, rounds)) for rounds in (2, 12))
    shown = noise * np.sqrt(2)
    assert abs(np.log(many / shown)) < abs(np.log(few / shown)) < abs(np.log(DEVIATION / shown))
    assert abs(np.log(many / shown)) < 1.2


def test_a_quiet_machine_lets_contenders_go_that_a_noisy_one_keeps():
    speeds = {"a": 1.0, "b": 1.02, "c": 1.04, "d": 1.35}
    assert racing.far_behind(drawn(0.01, speeds, 3)) == {"d"}
    assert racing.far_behind(drawn(0.5, speeds, 3)) == set()
    assert racing.far_behind({}) == set()


def test_the_best_rarely_leaves_a_race_by_bad_luck():
    speeds = {"a": 1.0, "b": 1.1, "c": 1.3, "d": 2.0}
    left = ["a" in racing.far_behind(drawn(DEVIATION / np.sqrt(2), speeds, 1, seed)) for seed in range(300)]
    assert sum(left) < 0.05 * len(left)


def test_who_was_measured_less_is_taken_only_where_it_is_faster_by_more():
    much = times(1.0, 1.0, 1.0, 1.0)
    assert racing.least_expected({"much": much, "less": times(0.995, 0.995)}) == "much"
    assert racing.least_expected({"much": much, "less": times(0.8, 0.8)}) == "less"
    assert racing.least_expected({"much": times(*[1.0] * 9), "left": times(0.1)}) == "much"
    assert racing.least_expected({"none": {}}) is None


def test_few_rounds_have_the_interval_of_the_usual_noise_and_more_their_own():
    one = ratio_of(times(3.0), times(1.0))
    assert (one.low, one.high) == (0.0, float("inf"))
    assert 1 < racing.believed(one).low < 3 < racing.believed(one).high < 9
    four = ratio_of(times(3.0, 3.0, 3.0, 3.0), times(1.0, 1.0, 1.0, 1.0))
    assert racing.believed(four) is four


@pytest.mark.parametrize(("value", "rounds", "side"), [(9.0, 1, "sparse"), (0.1, 1, "dense"), (2.0, 1, "undecided")])
def test_one_round_tells_sides_apart_that_are_far_from_each_other(value, rounds, side):
    assert racing.side_of(Ratio(value, 0.0, float("inf"), rounds, 1)) == side
    assert racing.side_of(Ratio(value, 0.5, 20.0, LOOKS[0], 1)) == "undecided"
