"""Simulated comparisons: decided as a sweep decides, from recorded noise, with what follows for known noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.loads import QUIET
from benchmarks.self_trial import noise, simulations
from benchmarks.self_trial.noise import Group, Noise
from benchmarks.self_trial.simulations import answers
from benchmarks.self_trial.trials import SelfTrialError
from tests.support import self_trial_rows as maker
from workbench.measure.posterior import Trial
from workbench.measure.rounds import MOST, decide_comparison

CSR, DENSE = simulations.CSR, simulations.DENSE


def group_of(logs, disturbed=False):
    logs = np.asarray(logs, float)
    return Group(logs, np.broadcast_to(disturbed, logs.shape), np.arange(len(logs)), np.ones(logs.shape))


def test_an_answer_is_the_decision_of_recorded_rounds_one_after_the_other():
    """One candidate, whose trials are of one half of the recording in each round, dense of the same half."""
    logs = 0.1 * np.random.default_rng(0).standard_normal((20, 3, 2))
    recorded = group_of(logs)
    (answer,) = answers(Noise({QUIET: (recorded,)}), QUIET, 20, [[math.log(3)]], np.random.default_rng(1))
    assert answer.decision.rounds == 20
    assert answer.truth == math.log(3)
    assert answer.holds
    assert answer.is_right
    assert answer.decision.ratio.value == pytest.approx(3, rel=0.15)
    assert answer.width == pytest.approx(math.log(answer.decision.ratio.high / answer.decision.ratio.low))


def test_halves_change_places_for_all_candidates_of_a_round_at_once():
    """Each recorded number is its own: the trials of a simulation show which of them they are."""
    logs = np.arange(30.0)[:, None, None] + np.arange(6.0).reshape(3, 2) / 10
    trials = simulations._trials(group_of(logs[7:19]), 12, [0.0, 0.0], np.random.default_rng(3))
    assert len(trials) == 12 * 3
    swaps = []
    for number in range(12):
        of_round = {
            trial.candidate: round(10 * (math.log(trial.seconds) - 7 - number))
            for trial in trials
            if trial.round == number
        }
        halves = {name: code % 2 for name, code in of_round.items()}
        candidates = {name: code // 2 for name, code in of_round.items()}
        assert candidates[simulations.BASELINE] == DENSE
        swaps.append(halves[simulations.BASELINE])
        assert len({(candidates[name], halves[name]) for name in of_round}) == 3, "no trial stands for two candidates"
    assert 0 < sum(swaps) < 12


def test_trials_of_one_set_of_processes_keep_their_halves():
    recorded = replace(group_of(np.arange(30.0)[:, None, None] + [[[0, 0.5]] * 3]), sets=np.arange(30) // 3)
    trials = simulations._trials(recorded, 30, [0.0], np.random.default_rng(3))
    halves = {(one.process, round(2 * math.log(one.seconds)) % 2) for one in trials if one.candidate == "dense"}
    assert {process for process, _ in halves} == set(range(10))
    assert len(halves) == 10
    assert len({half for _, half in halves}) == 2


def test_constants_are_found_again_in_noise_that_has_them():
    random, sets = np.random.default_rng(0), np.arange(3000) // 3
    process = math.sqrt(0.3) * 0.2 * random.standard_normal((1000, 3, 2))[sets]
    quiet = math.sqrt(0.7) * 0.2 * random.standard_normal((3000, 3, 2)) + process
    beside = 3 * math.sqrt(0.7) * 0.2 * random.standard_normal((3000, 3, 2)) + [[[0.5], [0.0], [-0.5]]]
    groups = [
        [Group(logs, np.full(logs.shape, is_disturbed), sets, np.ones(logs.shape))]
        for logs, is_disturbed in ((quiet, False), (beside, True))
    ]
    found = simulations.estimates(Noise(dict(zip((QUIET, "busy core"), map(tuple, groups), strict=True))))
    assert found["process"] == pytest.approx(0.3, abs=0.03)
    assert found["shared"] == pytest.approx(0.0, abs=0.03)
    assert found["wider"] == pytest.approx(3, rel=0.05)
    assert found["bias"] == pytest.approx(math.sqrt((0.5**2 + 0.5**2 + 1) / 3), rel=0.05)
    assert math.isnan(found["unrest"])


def test_a_constant_that_a_recording_does_not_show_fails_with_a_reason_and_the_others_have_a_value():
    rows = {row["what"].partition(":")[0]: row for row in simulations.constants(maker.normal_noise(rounds=40))}
    assert set(rows) == set(simulations.CONSTANTS)
    assert rows["bias"]["status"] == "failed"
    assert rows["process"]["status"] == "failed"


def test_candidates_that_share_recorded_trials_have_noise_of_their_own():
    found = simulations._trials(group_of(np.zeros((1, 3, 2))), 1, [0.0] * 8, np.random.default_rng(0))
    logs = {one.candidate: math.log(one.seconds) for one in found}
    assert [logs[name] for name in range(4)] == [0.0] * 4
    assert all(logs[name] for name in range(4, 8))


def test_disturbed_recorded_trials_are_disturbed_in_a_simulation():
    disturbed = np.zeros((4, 3, 2), bool)
    disturbed[2] = True
    trials = simulations._trials(group_of(np.zeros((4, 3, 2)), disturbed), 4, [0.5], np.random.default_rng(0))
    assert {trial.round for trial in trials if trial.is_disturbed} == {2}
    expected = {("dense", 1.0), (0, math.exp(-0.5))}
    assert {(trial.candidate, trial.seconds) for trial in trials} == expected
    same = decide_comparison([Trial(*trial) for trial in trials], {"dense"})
    assert (same.ratio.rounds, same.ratio.disturbed) == (4, 1)


def test_the_same_seed_gives_the_same_answers_and_a_load_without_enough_rounds_none():
    recorded = maker.normal_noise(rounds=40)
    drawn = [answers(recorded, QUIET, 4, [[0.5]] * 5, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    values = [[one.decision.ratio.value for one in found] for found in drawn]
    assert values[0] == values[1] != values[2]
    assert answers(recorded, QUIET, 41, [[0.5]], np.random.default_rng(1)) == []
    assert answers(recorded, "busy core", 4, [[0.5]], np.random.default_rng(1)) == []


def test_true_ratios_are_of_a_mixed_practice_and_the_first_candidate_is_the_fastest():
    drawn = simulations.truths(4000, 4, np.random.default_rng(0))
    assert drawn.shape == (4000, 4)
    assert (drawn.max(1) == drawn[:, 0]).all()
    assert np.mean(np.abs(drawn[:, 0]) < math.log(10)) == pytest.approx(0.7 * 0.945 + 0.3 * 0.242, abs=0.03)
    assert set(simulations.truths(3, 1, np.random.default_rng(0), 2.0).ravel()) == {math.log(2)}


@pytest.fixture(scope="module")
def covered():
    found = simulations.coverage(maker.normal_noise(sd=0.25), count=200)
    return {row["what"].rpartition(", ")[2]: row for row in found}


def test_intervals_hold_the_truth_of_normal_noise_as_often_as_they_say(covered):
    assert covered["all ratios"]["count"] == 20 * len(simulations.CANDIDATES) * len(simulations.ROUNDS)
    assert covered["all ratios"]["share"] >= 0.93
    assert {name for name in covered if name.endswith(" x")} == {f"{ratio:g} x" for ratio in simulations.TRUTHS}
    assert all(row["share"] >= 0.9 for row in covered.values())
    assert all(row["condition"] == QUIET for row in covered.values())
    drawn = {name: (row["truth"], row["candidates"]) for name, row in covered.items() if "truth" in row}
    assert drawn == {f"{ratio:g} x": (ratio, 1) for ratio in simulations.TRUTHS}, "the chart draws those of one ratio"


def test_stated_probabilities_are_right_as_often_as_they_say():
    found = {row["what"]: row for row in simulations.calibration(maker.normal_noise(sd=0.25), count=300)}
    bins = [row for what, row in found.items() if what.startswith("statements of")]
    assert len(bins) == len(simulations.BINS) - 1
    assert sum(row["count"] for row in bins) == 60 * len(simulations.CANDIDATES) * len(simulations.ROUNDS)
    assert bins[-1]["share"] > 0.98
    assert bins[0]["share"] < 0.75
    (clear,) = (row for what, row in found.items() if what.startswith("a true ratio of 2"))
    assert clear["share"] > 0.6


def test_a_recording_with_a_bias_that_no_round_shows_is_found_out():
    """Dense slower by half in all of a recording: intervals miss the truth, and the target is missed."""
    logs = 0.02 * np.random.default_rng(0).standard_normal((100, 3, 2))
    logs[:, DENSE] += 0.6
    (row, *_) = simulations.coverage(Noise({QUIET: (group_of(logs),)}), count=40)
    assert row["share"] < 0.7
    assert row["met"] is False


def test_power_grows_with_less_noise_and_equals_are_seldom_told_apart():
    def shares(sd):
        found = list(simulations.power(maker.normal_noise(sd), count=100))
        return [row["share"] for row in found]

    assert shares(0.25)[0] == pytest.approx(shares(0.5)[0], abs=0.15), "the noise of the target is scaled to be usual"
    assert max(share for sd in (0.1, 0.25) for share in shares(sd)[1:]) <= 0.05


def test_noise_is_read_from_whole_rounds_and_says_which_trials_were_disturbed():
    rows = maker.recording(20)
    del rows[7]  # of the second round of the first group
    busy = rows[30]  # of a later one
    busy |= {"busy_others": 0.9}
    found = noise.noise_of(rows).groups[QUIET]
    assert sorted(len(group.logs) for group in found) == [19, 20]
    assert sum(group.disturbed.sum() for group in found) == 1
    for group in found:
        quiet = np.where(group.disturbed, 0.0, group.logs)
        assert quiet.sum((0, 2)) == pytest.approx(np.zeros(3), abs=1e-9)
    recorded = noise.noise_of(maker.recording(60))
    assert recorded.pair_sd(CSR, DENSE) == pytest.approx(0.3 * math.sqrt(2), rel=0.2)
    assert recorded.scaled(2).pair_sd(CSR, DENSE) == pytest.approx(2 * recorded.pair_sd(CSR, DENSE))


def test_what_a_load_does_to_all_trials_of_a_candidate_is_in_its_noise():
    quiet = maker.recording(14, sd=0.01)
    loaded = [row | {"experiment": row["experiment"].replace("quiet", "busy core")} for row in quiet]
    loaded = [row | {"seconds_step": 3 * row["seconds_step"], "status": "disturbed"} for row in loaded]
    found = noise.noise_of([*quiet, *loaded])
    assert set(found.groups) == {QUIET, "busy core"}
    for group in found.groups["busy core"]:
        assert group.logs.mean() == pytest.approx(math.log(3))
    with pytest.raises(SelfTrialError, match="with 0"):
        noise.noise_of(loaded)


@pytest.mark.parametrize("count", [0, 5, MOST - 1])
def test_too_short_a_recording_says_what_to_do_first(count):
    with pytest.raises(SelfTrialError, match=rf"with {count}. Record more first: python -m benchmarks self --case"):
        noise.noise_of(maker.recording(count))
