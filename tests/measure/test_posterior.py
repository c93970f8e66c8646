"""The posterior of times from rounds: its closed form, what disturbed rounds can decide, losses, adversarial input."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.support.effects import posterior_with_effects
from workbench.measure.posterior import (
    DEVIATION,
    EQUIVALENCE_MARGIN,
    FARTHEST,
    FREEDOM,
    MIN_LOG_SD,
    NOISE,
    Noise,
    Ratio,
    Scatter,
    Trial,
    posterior,
    residuals,
    severity_of,
)


def trials_of(seconds, run="one", disturbed=(), process=None):
    """Trials of candidates whose seconds are given by round; `disturbed` are rounds."""
    return [
        Trial(name, value, run, number, number in disturbed, process)
        for name, values in seconds.items()
        for number, value in enumerate(values)
    ]


def noisy(ratio, rounds, sd, seed=0, **known):
    """Rounds of two candidates, of which "slow" takes `ratio` times as long; a round's log ratio has that `sd`."""
    logs = sd / math.sqrt(2) * np.random.default_rng(seed).standard_normal((2, rounds))
    return trials_of({"fast": np.exp(logs[0]), "slow": ratio * np.exp(logs[1])}, **known)


def drawn(count=3, seed=0):
    """Unbalanced trials of several runs, some disturbed, some by one process, one round with one candidate only."""
    random = np.random.default_rng(seed)
    return [
        Trial(f"c{name}", float(np.exp(random.normal(name, 0.5))), f"r{run}", number, is_disturbed, process, severity)
        for run in range(2)
        for number in range(4)
        for name in range(count)
        for is_disturbed, process in [(bool(random.random() < 0.4), (None, f"p{number // 2}")[run])]
        for severity in [float(random.choice([1.0, 2.5, 8.0]))]
        if number or name
    ]


@pytest.mark.parametrize("rounds", [1, 5, 12])
@pytest.mark.parametrize("process", [None, "one"])
def test_balanced_quiet_rounds_of_one_run_have_the_interval_of_a_t_with_the_prior(rounds, process):
    trials = noisy(1.7, rounds, 0.2, process=process)
    logs = np.log([trial.seconds for trial in trials]).reshape(2, rounds)
    differences = logs[1] - logs[0]
    freedom = FREEDOM + rounds - 1
    variance = (FREEDOM * DEVIATION**2 + ((differences - differences.mean()) ** 2).sum()) / freedom
    own = NOISE.process if process else NOISE.process / rounds
    of_mean = variance * ((1 - NOISE.process) / rounds + own + NOISE.shared)
    weight = NOISE.unknown**2 / (NOISE.unknown**2 + of_mean)
    expected = stats.t(freedom, weight * differences.mean(), math.sqrt(weight * of_mean))
    found = posterior(trials, noise=Noise(tail=math.inf)).ratio("slow", "fast")
    assert np.log(found[:3]) == pytest.approx([expected.mean(), expected.ppf(0.025), expected.ppf(0.975)], rel=1e-6)
    assert found.probability == pytest.approx(expected.sf(0), rel=1e-7)
    assert (found.rounds, found.runs, found.disturbed) == (rounds, 1, 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("predictions", [{}, {"c0": 0.4, "c2": 5.0, "unmeasured": 1.0}], ids=["none", "some"])
def test_the_posterior_is_that_of_the_model_with_each_effect_as_an_unknown(seed, predictions):
    trials, scatter = drawn(seed=seed), Scatter(0.3, 11.0)
    noise = Noise(0.1, 0.3, 0.25, 0.8, 0.6, 2.0, 0.5, 2.0, 0.6, tail=math.inf)
    found = posterior(trials, predictions, scatter, noise)
    means, covariance = posterior_with_effects(trials, 0.3, noise, predictions)
    assert list(found.names) == list(means)
    assert found.mean == pytest.approx(list(means.values()), rel=1e-5, abs=1e-5)
    assert found.covariance == pytest.approx(covariance, rel=1e-4, abs=1e-6)
    variance = np.array([1.0, -1.0, 0.0, 0.0][: len(means)])
    half = stats.t.ppf(0.975, 11) * math.sqrt(variance @ covariance @ variance)
    ratio = found.ratio("c1", "c2") if list(means)[:2] == ["c1", "c2"] else found.ratio(*list(means)[:2])
    assert math.log(ratio.high / ratio.low) == pytest.approx(2 * half, rel=1e-5)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_units_and_the_order_of_trials_change_no_ratio(factor):
    trials = drawn()
    found = posterior(trials)
    scaled = posterior([trial._replace(seconds=factor * trial.seconds) for trial in trials])
    shuffled = posterior([trials[place] for place in np.random.default_rng(1).permutation(len(trials))])
    pairs = [(name, other) for name in found.names for other in found.names if name != other]
    assert set(shuffled.names) == set(found.names)
    for other in (scaled, shuffled):
        for pair in pairs:
            assert other.ratio(*pair) == pytest.approx(found.ratio(*pair), rel=1e-6)
        assert other.losses() == pytest.approx(found.losses(), rel=0.1, abs=1e-3)


def test_a_ratio_and_its_inverse_say_the_same():
    found = posterior(drawn())
    one, other = found.ratio("c1", "c2"), found.ratio("c2", "c1")
    assert other[:3] == pytest.approx((1 / one.value, 1 / one.high, 1 / one.low))
    assert other.probability == pytest.approx(1 - one.probability)
    assert (one.minimum_detectable_ratio, one.rounds) == (pytest.approx(other.minimum_detectable_ratio), other.rounds)


@pytest.mark.parametrize("rounds", [1, 4, 12])
def test_disturbed_rounds_cannot_decide_a_factor_near_one_and_do_decide_one_of_four(rounds):
    every = range(rounds)
    found = {ratio: posterior(noisy(ratio, rounds, 0.05, disturbed=every)) for ratio in (1 / 4, 1 / 1.3, 1.3, 4)}
    ratios = {ratio: one.ratio("slow", "fast") for ratio, one in found.items()}
    assert {ratio: one.verdict for ratio, one in ratios.items()} == {
        1 / 4: "dense",
        1 / 1.3: "inconclusive",
        1.3: "inconclusive",
        4: "sparse",
    }
    assert all(ratio.disturbed == ratio.rounds == rounds for ratio in ratios.values())
    assert ratios[1.3].minimum_detectable_ratio > math.exp(NOISE.bias * 1.96), (
        "the bias does not become less with more rounds"
    )


def test_quiet_rounds_decide_a_factor_of_two_beside_any_number_of_disturbed_ones_that_say_otherwise():
    quiet = noisy(2, 6, 0.05)
    misled = [trial._replace(round=trial.round + 6) for trial in noisy(0.3, 6, 0.05, disturbed=range(6))]
    alone, both = (posterior(trials).ratio("slow", "fast") for trials in (quiet, quiet + misled))
    assert both.verdict == alone.verdict == "sparse"
    assert both.value == pytest.approx(alone.value, rel=0.2)
    assert both.low < 2 < both.high
    assert (both.rounds, both.disturbed) == (12, 6)


def test_all_disturbed_trials_of_a_run_may_be_slower_without_moving_the_ratio():
    half_disturbed = noisy(3, 4, 0.05, disturbed=(2, 3))
    slowed = [one._replace(seconds=8 * one.seconds) if one.is_disturbed else one for one in half_disturbed]
    ratios = [posterior(trials, scatter=Scatter()).ratio("slow", "fast") for trials in (half_disturbed, slowed)]
    assert ratios[1] == pytest.approx(ratios[0], rel=1e-9)


def test_a_trial_slowed_by_a_load_says_little_beside_a_quiet_one():
    mixed = trials_of({"fast": [1.0]}) + trials_of({"slow": [2.0]}, disturbed=(0,))
    found = posterior(mixed).ratio("slow", "fast")
    assert found.verdict == "inconclusive"
    assert found.disturbed == 1
    assert found.minimum_detectable_ratio > math.exp(NOISE.slowdown)


def test_candidates_of_different_rounds_are_compared_with_less_certainty_and_of_different_runs_with_none():
    paired = trials_of({"fast": [1.0, 1.0], "slow": [3.0, 3.0]})
    unpaired = [one._replace(round=one.round + 2 * (one.candidate == "slow")) for one in paired]
    apart = [one._replace(run=one.candidate) for one in paired]
    same, rounds, runs = (posterior(trials).ratio("slow", "fast") for trials in (paired, unpaired, apart))
    assert (same.rounds, rounds.rounds, runs.rounds) == (2, 0, 0)
    assert same.minimum_detectable_ratio < rounds.minimum_detectable_ratio < 2.5 < 100 < runs.minimum_detectable_ratio
    expected = math.sqrt(1.96**2 * 2 * NOISE.speed**2 / 2)
    assert math.log(rounds.minimum_detectable_ratio) > expected, (
        "the speed of the machine in two rounds of each is in it"
    )


def test_rounds_of_several_runs_count_as_ratios_whatever_the_speed_of_each_run():
    one, other = noisy(2, 4, 0.1, seed=1), noisy(2, 4, 0.1, seed=2, run="two")
    slower = [trial._replace(seconds=50 * trial.seconds) for trial in other]
    together, far = (posterior(one + more).ratio("slow", "fast") for more in (other, slower))
    assert far == pytest.approx(together, rel=1e-3)
    assert (far.rounds, far.runs) == (8, 2)
    assert far.minimum_detectable_ratio < posterior(one).ratio("slow", "fast").minimum_detectable_ratio


def test_rounds_of_one_process_say_less_than_those_of_several():
    widths = [
        posterior(noisy(2, 6, 0.2, process=process)).ratio("slow", "fast").minimum_detectable_ratio
        for process in (None, "one")
    ]
    assert widths[0] < widths[1]


@pytest.mark.parametrize("rounds", [12, 300])
def test_the_small_variance_of_quiet_rounds_is_not_lost_beside_the_wide_prior(rounds):
    trials = trials_of({"fast": [1.0] * rounds, "slow": [80.0] * rounds})
    ratio = posterior(trials, scatter=Scatter(MIN_LOG_SD, 1e6)).ratio("slow", "fast")
    half = 1.96 * MIN_LOG_SD * math.sqrt(1 / rounds + NOISE.shared)
    assert math.log(ratio.high / ratio.low) == pytest.approx(2 * half, rel=1e-3)


def test_residuals_are_those_left_by_candidate_and_round_and_disturbed_trials_have_effects_and_noise_of_their_own():
    random = np.random.default_rng(4)
    logs = random.normal(0, 0.3, (3, 5)) + random.normal(0, 2, 5) + np.array([[0.0], [1.0], [-4.0]])
    rest = logs - logs.mean(0) - logs.mean(1, keepdims=True) + logs.mean()
    trials = trials_of(dict(zip("abc", np.exp(logs), strict=True)))
    other_run = [trial._replace(run="two", seconds=9 * trial.seconds) for trial in trials]
    disturbed = [Trial("a", 100.0, "one", number, True) for number in range(5, 9)]
    biased = [one._replace(seconds=7 * one.seconds) if one.candidate == "a" else one for one in trials]
    beside = [one._replace(round=one.round + 5, is_disturbed=True) for one in biased]
    assert residuals(trials + beside) == pytest.approx(((2 + 2 / NOISE.wider**2) * (rest**2).sum(), 16))
    assert residuals(trials + disturbed) == pytest.approx((2 * (rest**2).sum(), 8))
    assert residuals(trials + other_run) == pytest.approx((4 * (rest**2).sum(), 16))
    for few in ([], trials[:1], trials[:5], disturbed):
        assert residuals(few) == pytest.approx((0.0, 0.0))


def test_the_deviation_is_shrunk_towards_the_usual_one_and_never_below_the_floor():
    assert Scatter().shrunk(0.0, 0.0) == pytest.approx(Scatter(DEVIATION, FREEDOM))
    assert Scatter(0.2, 4.0).shrunk(0.5, 6.0) == pytest.approx(Scatter(math.sqrt((4 * 0.04 + 0.5) / 10), 10.0))
    assert Scatter().shrunk(1000 * 0.4**2, 1000).deviation == pytest.approx(0.4, rel=0.01)
    assert Scatter().shrunk(0.0, 1e9).deviation == MIN_LOG_SD


def test_intervals_hold_the_truth_and_probabilities_are_right_if_the_model_is():
    random, held, right, stated = np.random.default_rng(11), [], [], []
    for _ in range(500):
        deviation = DEVIATION * math.sqrt(FREEDOM / random.chisquare(FREEDOM))
        truth, rounds = random.normal(0, 0.5), int(random.choice([1, 2, 4, 12]))
        disturbed, half = random.random(rounds) < random.choice([0, 0.5, 1]), deviation / math.sqrt(2)
        own = half * random.normal(0, 1, (2, rounds)) * np.where(disturbed, NOISE.wider, 1.0)
        own += half * math.sqrt(NOISE.shared) * random.normal(0, 1, (2, 1))
        own += NOISE.bias / math.sqrt(2) * random.normal(0, 1, (2, 1)) * disturbed
        own += NOISE.unrest / math.sqrt(2) * random.normal(0, 1, (2, 1)) * disturbed.mean()
        own += NOISE.speed * random.normal(0, 1, rounds) + NOISE.slowdown * random.normal() * disturbed
        seconds = {"fast": np.exp(own[0]), "slow": np.exp(own[1] + truth)}
        found = posterior(trials_of(seconds, disturbed=np.flatnonzero(disturbed))).ratio("slow", "fast")
        held.append(found.low <= math.exp(truth) <= found.high)
        stated.append(max(found.probability, 1 - found.probability))
        right.append((found.probability > 0.5) == (truth > 0))
    assert 0.92 <= np.mean(held) <= 0.98
    assert np.mean(right) == pytest.approx(np.mean(stated), abs=0.05)


def test_losses_are_the_expected_time_over_that_of_the_fastest():
    found = posterior(noisy(1.2, 3, 0.2))
    losses, ratio = found.losses(), found.ratio("slow", "fast")
    spread = math.log(ratio.high / ratio.low) / 2 / stats.t.ppf(0.975, found.freedom)
    logs = stats.t(found.freedom, math.log(ratio.value), spread).rvs(400_000, random_state=1)
    for name, sign in (("slow", 1), ("fast", -1)):
        expected = np.expm1(np.clip(sign * logs, 0, FARTHEST)).mean()
        assert losses[name] == pytest.approx(expected, rel=0.25, abs=1e-3)  # 4,000 draws of a rare event
    assert found.losses() == losses, "the same each time it is asked for"


def test_the_best_is_of_least_loss_among_those_asked_for():
    random = np.random.default_rng(2)
    seconds = {name: slower * np.exp(random.normal(0, 0.05, 3)) for name, slower in zip("abc", (3, 1, 2), strict=True)}
    found = posterior(trials_of(seconds))
    assert (found.best(), found.best("ac"), found.best("x"), found.best([])) == ("b", "c", None, None)
    assert set(found.losses("ax")) == {"a"}
    assert found.losses("a") == {"a": 0.0}
    assert found.losses("x") == {}


def test_predictions_alone_give_a_ratio_with_the_error_of_such_predictions():
    found = posterior([], {"fast": 1.0, "slow": 10.0}).ratio("slow", "fast")
    assert found.value == pytest.approx(10)
    assert math.log(found.high / found.value) == pytest.approx(stats.t.ppf(0.975, FREEDOM) * NOISE.predicted)
    assert (found.rounds, found.runs) == (0, 0)


def test_trials_outweigh_a_prediction_that_says_the_opposite():
    found = posterior(noisy(8, 4, 0.1), {"fast": 5.0, "slow": 1.0}).ratio("slow", "fast")
    assert found.verdict == "sparse"
    assert found.value == pytest.approx(8, rel=0.15)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_seconds_that_are_not_positive_and_finite_are_refused(seconds):
    with pytest.raises(ValueError, match=rf"seconds of a trial of 'b' are {seconds}; expected a positive, finite"):
        posterior([Trial("a", 1.0, "one", 0), Trial("b", seconds, "one", 0)])
    with pytest.raises(ValueError, match=rf"seconds predicted of 'b' are {seconds}; expected a positive, finite"):
        posterior([], {"b": seconds})


def test_few_trials_are_no_error():
    nothing, one = posterior([]), posterior([Trial("a", 2.0, "one", 0)])
    assert (nothing.names, nothing.best(), nothing.losses()) == ((), None, {})
    assert (one.best(), one.losses()) == ("a", {"a": 0.0})
    with pytest.raises(KeyError):
        one.ratio("a", "b")
    same = one.ratio("a", "a")
    assert (same[:3], same.probability, same.verdict) == ((1.0, 1.0, 1.0), 0.5, "level")


def test_seconds_of_any_size_and_thirty_candidates_are_no_error():
    wide = posterior(trials_of({"fast": [1e-9, 1e9], "slow": [1e9, 1e-9]})).ratio("slow", "fast")
    assert wide.verdict == "inconclusive"
    assert posterior(trials_of({"fast": [1e-9], "slow": [1e9]})).ratio("slow", "fast").verdict == "sparse"
    absurd = posterior(trials_of({"a": [1e-300, 1.0], "b": [1.0, 1e-300]})).ratio("a", "b")
    assert absurd.low < 0.01 < 100 < absurd.high < math.inf, "the prior says how far apart candidates can be"
    many = posterior(trials_of({number: [1 + number] * 3 for number in range(30)}))
    assert many.best() == 0
    assert sorted(many.losses(), key=many.losses().get)[:2] == [0, 1]
    assert all(many.ratio(number, 0).value == pytest.approx(1 + number, rel=0.05) for number in range(30))


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(2, 1.01, 4), "sparse"),
        (Ratio(0.5, 0.2, 0.99), "dense"),
        (Ratio(1, 1 / EQUIVALENCE_MARGIN, EQUIVALENCE_MARGIN), "level"),
        (Ratio(1, 0.9, EQUIVALENCE_MARGIN), "inconclusive"),
        (Ratio(1.05, 1.01, 1.09), "sparse"),
    ],
)
def test_verdicts_follow_the_interval(ratio, verdict):
    assert ratio.verdict == verdict
    assert ratio.minimum_detectable_ratio == pytest.approx(math.sqrt(ratio.high / ratio.low))


def test_nothing_is_told_by_an_interval_without_an_end():
    assert Ratio(9, 0.0, math.inf).minimum_detectable_ratio == math.inf
    assert Ratio(9, 0.0, math.inf).verdict == "inconclusive"


@pytest.mark.parametrize(("share", "severity"), [(None, 1.0), (0.0, 1.0), (0.5, 1.0), (0.75, 3.0), (1.0, 8.0)])
def test_a_trial_is_disturbed_the_more_the_more_cores_others_took(share, severity):
    assert severity_of(share) == pytest.approx(severity)


def test_rounds_beside_a_heavy_load_say_less_than_rounds_beside_a_light_one():
    light = noisy(4, 6, 0.05, disturbed=range(6))
    heavy = [trial._replace(severity=8.0) for trial in light]
    first, second = (posterior(trials).ratio("slow", "fast") for trials in (light, heavy))
    assert first.verdict == "sparse"
    assert second.verdict == "inconclusive"
    assert second.high / second.low > (first.high / first.low) ** 3


def test_the_bias_of_a_load_is_learned_where_quiet_rounds_show_it():
    quiet = noisy(2, 3, 0.05)
    alike, misled = (
        posterior([*quiet, *(t._replace(round=t.round + 3) for t in noisy(ratio, 3, 0.05, disturbed=range(3)))])
        for ratio in (2, 0.2)
    )
    assert misled.ratio("slow", "fast").value == pytest.approx(2, rel=0.15)
    assert alike.ratio("slow", "fast").value == pytest.approx(2, rel=0.05)


def test_rounds_of_unlike_severity_do_not_show_what_a_ratio_is_without_a_load():
    """Their bias is one: it is not extrapolated to no load at all."""
    alike = [trial._replace(severity=2.0) for trial in noisy(2, 8, 0.02, disturbed=range(8))]
    unlike = [trial._replace(severity=1.0 + 2.0 * (trial.round % 2)) for trial in alike]
    first, second = (posterior(trials, scatter=Scatter(0.02, 50.0)).ratio("slow", "fast") for trials in (alike, unlike))
    assert second.high / second.low == pytest.approx(first.high / first.low, rel=0.1)
    assert second.value == pytest.approx(2, rel=0.05)
