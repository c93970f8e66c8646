"""How often verdicts are wrong where the truth is known: the best of many equals, trials that are off, true ratios."""

import math

import numpy as np
import pytest

from workbench.measure.posterior import Noise, Trial, posterior
from workbench.measure.rounds import decide_comparison

RUNS = [200, pytest.param(2000, marks=pytest.mark.exhaustive)]
SPIKE = math.log(4.5)


def decisions(runs, means, dense, rounds, deviation=0.2, spiked=0.0, seed=0):
    """Decisions on simulated rounds of candidates with these mean log seconds, of which the last `dense` are dense.

    One trial in 1 / `spiked` takes 4.5 times as long, which no flag marks.
    """
    random, names = np.random.default_rng(seed), range(len(means))
    for _ in range(runs):
        logs = random.normal(0, deviation / math.sqrt(2), (len(means), rounds)) + random.normal(0, 0.2, rounds)
        logs += np.asarray(means)[:, None] + SPIKE * (random.random(logs.shape) < spiked)
        trials = [Trial(k, math.exp(logs[k, number]), "run", number) for k in names for number in range(rounds)]
        yield decide_comparison(trials, set(names[-dense:]))


def shares(found):
    """The shares of decisions for sparse and for dense, and of those that are surely or probably so."""
    found = list(found)
    sure = [np.mean([one.verdict == side for one in found]) for side in ("sparse", "dense")]
    chances = np.array([one.ratio.probability for one in found])
    return (*sure, np.mean(chances >= 0.8), np.mean(chances <= 0.2))


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize(
    ("sparse", "dense", "rounds"),
    [
        *((1, 1, 6), (12, 1, 3), (8, 8, 3)),
        *(
            pytest.param(*more, marks=pytest.mark.exhaustive)
            for more in ((3, 1, 3), (12, 1, 6), (12, 3, 3), (1, 12, 3), (30, 1, 2))
        ),
    ],
)
def test_the_best_of_many_equals_wins_as_rarely_as_stated(runs, sparse, dense, rounds):
    surely_sparse, surely_dense, sparse_likely, dense_likely = shares(
        decisions(runs, [0.0] * (sparse + dense), dense, rounds)
    )
    assert max(surely_sparse, surely_dense) <= 0.025
    assert max(sparse_likely, dense_likely) <= 0.2


def test_slow_candidates_next_to_equal_ones_change_no_error_rate():
    sure, _, likely, _ = shares(decisions(200, [0.0] * 6 + [1.5] * 6 + [0.0], 1, 4))
    assert sure <= 0.025
    assert likely <= 0.2


@pytest.mark.covering(targets=lambda case: {(case["runs"], case["rounds"]), (case["runs"], case["deviation"])})
@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("deviation", [0.05, 0.2])
@pytest.mark.parametrize("rounds", [2, 3, 4, 5, 8])
def test_a_trial_in_ten_that_is_off_makes_no_more_verdicts_than_stated(runs, rounds, deviation):
    sure = shares(decisions(runs, [0.0, 0.0], 1, rounds, deviation, spiked=0.1, seed=rounds))[:2]
    assert sum(sure) <= 0.05


def test_the_best_of_twelve_with_trials_that_are_off_wins_as_rarely_as_stated():
    assert shares(decisions(150, [0.0] * 13, 1, 3, spiked=0.1))[0] <= 0.025


@pytest.mark.parametrize("seed", range(2))
def test_the_interval_of_the_best_of_each_side_holds_the_true_ratio(seed):
    random, held, widths = np.random.default_rng(seed), [], []
    for number in range(150):
        means = random.normal(0, random.choice([0.05, 0.2, 0.7]), int(random.integers(2, 9)))
        dense = int(random.integers(1, len(means)))
        (found,) = decisions(1, means, dense, int(random.integers(2, 8)), seed=1000 * seed + number)
        truth = math.exp(min(means[-dense:]) - min(means[:-dense]))
        held.append(found.ratio.low <= truth <= found.ratio.high)
        widths.append(found.ratio.high / found.ratio.low)
    assert np.mean(held) >= 0.95
    assert np.median(widths) < 2.2, "an interval that says nothing holds all"


@pytest.mark.parametrize(("rounds", "most"), [(2, 1.2), (3, 1.12), (6, 1.02), (12, 1.02)])
def test_rounds_in_which_nothing_is_off_lose_little_by_the_heavy_tails(rounds, most):
    random, widths = np.random.default_rng(1), []
    for _ in range(100):
        logs = random.normal(0, 0.2 / math.sqrt(2), (2, rounds))
        trials = [Trial(k, math.exp(logs[k, number]), "run", number) for k in (0, 1) for number in range(rounds)]
        found, normal = posterior(trials), posterior(trials, noise=Noise(tail=math.inf))
        normal.without = None
        widths.append([math.log(one.ratio(0, 1).high / one.ratio(0, 1).low) for one in (found, normal)])
    heavy, light = np.mean(widths, axis=0)
    assert heavy / light < most


def test_a_trial_that_is_off_moves_neither_the_ratio_nor_the_losses_of_many_rounds():
    trials = [Trial(name, value, "run", number) for number in range(8) for name, value in (("a", 1.0), ("b", 1.5))]
    off = [trial._replace(seconds=20.0) if trial[:4:3] == ("a", 3) else trial for trial in trials]
    clean, found = posterior(trials), posterior(off, scatter=posterior(trials).scatter)
    assert found.ratio("b", "a").value == pytest.approx(clean.ratio("b", "a").value, rel=0.02)
    assert found.best() == "a"
