"""Simulated sweeps: decided as a sweep decides, from noise as it was recorded, with what follows for known noise."""

import math

import numpy as np
import pytest

from tests.support import self_trial_rows as maker
from workbench.bench.self_trial import noise, simulate, simulations
from workbench.bench.self_trial.outcomes import SelfTrialError
from workbench.bench.self_trial.simulate import VERDICTS, Added, draw, ends
from workbench.measure import rounds


def sweep_by_sweep(sparse, dense):
    """What a sweep does with these log seconds [contenders, rounds]: rounds until none is due."""
    measured = due = rounds.LOOKS[0]
    while due:
        sides = [
            {place: {("run", n): math.exp(row[n]) for n in range(measured)} for place, row in enumerate(side)}
            for side in (sparse, dense)
        ]
        decision = rounds.decide(*sides)
        due = rounds.rounds_due(decision, measured)
        measured += due
    return decision


@pytest.mark.parametrize(("rivals", "baselines"), [(1, 1), (2, 1), (4, 1), (2, 2), (1, 2), (8, 2)])
def test_all_sweeps_at_once_are_decided_as_each_alone(rivals, baselines):
    random = np.random.default_rng(rivals + 10 * baselines)
    count = 80
    scale = random.choice([0.004, 0.03, 0.3], (count, 1, 1))
    logs = scale * random.standard_normal((count, rivals + baselines, rounds.LOOKS[-1]))
    logs += scale * random.standard_normal((count, rivals + baselines, 1))
    sparse, dense = logs[:, :rivals], logs[:, rivals:] - scale * random.integers(-3, 4, (count, 1, 1))
    found = ends(sparse, dense)
    for number in range(count):
        alone = sweep_by_sweep(sparse[number], dense[number])
        assert VERDICTS[found.verdict[number]] == alone.verdict
        assert (found.sparse[number], found.dense[number]) == (alone.sparse, alone.dense)
        assert found.rounds[number] == alone.rounds
        together = (found.value[number], found.low[number], found.high[number])
        assert together == pytest.approx(alone.ratio[:3], rel=1e-9)
    assert len(set(found.verdict)) == len(VERDICTS)


def test_a_drawn_spell_is_recorded_rounds_one_after_the_other():
    residuals = np.arange(40.0)[:, None, None] * 6 + np.arange(6.0).reshape(3, 2)
    drawn = draw(noise.Noise((residuals,)), [(0, 0), (2, 1)], 500, seed=1)
    place, rest = np.divmod(drawn, 6)
    assert (place[:, 0] == place[:, 1]).all()
    followed = (np.diff(place[:, 0]) % 40 == 1).mean()
    assert followed == pytest.approx(1 - 1 / simulate.BLOCK, abs=0.04)
    assert {tuple(pair) for pair in rest.transpose(0, 2, 1).reshape(-1, 2)} == {(0.0, 5.0), (1.0, 4.0)}


def test_groups_of_a_recording_take_part_alike_and_never_mix():
    parts = tuple(np.full((30, 3, 2), value) for value in (-1.0, 1.0))
    drawn = draw(noise.Noise(parts), [(0, 0), (1, 1)], 2000, seed=2)
    assert (drawn == drawn[:, :1, :1]).all()
    assert drawn[:, 0, 0].mean() == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize(
    ("added", "sd"),
    [
        (Added(run=0.5), 0.5 * math.sqrt(2)),
        (Added(drift=0.02), 0.02 * math.sqrt(2 * np.mean(np.arange(1, 13)))),
        (Added(bursts=0.1, factor=math.e), math.sqrt(2 * 0.1 * 0.9)),
        (Added(slope=0.5), 0.5 * 0.5),
    ],
)
def test_added_noise_is_as_large_as_it_is_said_to_be(added, sd):
    quiet = maker.normal_noise(math.sqrt(2))
    plain, more = (draw(quiet, [(0, 0), (2, 0)], 20_000, seed=3, added=one) for one in (Added(), added))
    change = (more - plain)[:, 0] - (more - plain)[:, 1]
    assert change.std() == pytest.approx(sd, rel=0.05)


def test_the_same_seed_gives_the_same_sweeps():
    one = maker.normal_noise()
    first, second, other = (draw(one, [(0, 0)], 10, seed) for seed in (1, 1, 2))
    assert (first == second).all()
    assert (first != other).any()


def test_coverage_of_normal_noise_that_runs_share_is_what_the_design_says():
    found = list(simulations.coverage(maker.normal_noise(), sweeps=6000))
    of_one = {row["condition"]: row for row in found if row["rivals"] == 1 and row["truth"] is None}
    assert set(of_one) == set(simulations.CONDITIONS)
    shared = of_one["and what all rounds of a run share"]
    assert 0.94 < shared["share"] < 0.98
    assert shared["share"] < of_one["recorded noise"]["share"]
    assert {row["met"] for row in found if row["truth"] is not None} == {None}
    assert all(row["count"] == 6000 for row in of_one.values())


def test_differences_are_decided_the_more_often_the_larger_they_are():
    found = {(row["truth"], row["condition"][:8]): row for row in simulations.power(maker.normal_noise(), sweeps=2000)}
    shares = [found[truth, "recorded"]["share"] for truth in (1.0, 1.1, 1.2, 1.5, 2.0, 4.0)]
    assert shares == sorted(shares)
    assert shares[0] < 0.05
    assert shares[-1] > 0.99
    assert found[1.2, "scaled t"]["share"] > 0.9
    assert found[2.0, "recorded"]["rounds"] < found[1.2, "recorded"]["rounds"]


def test_noise_is_read_from_whole_rounds_that_were_left_alone():
    rows = maker.recording(20)
    rows[7] |= {"status": "disturbed"}  # the second round of the first group
    found = noise.noise_of(rows)
    assert [len(residuals) for residuals in found.groups] == [19, 20]
    for residuals in found.groups:
        assert residuals.mean((0, 2)) == pytest.approx(np.zeros(3), abs=1e-12)
    assert found.pair_sd(0, 2) == pytest.approx(0.3 * math.sqrt(2), rel=0.25)
    assert found.scaled(2).pair_sd(0, 2) == pytest.approx(2 * found.pair_sd(0, 2))


def test_residuals_of_a_short_recording_are_as_large_as_the_noise():
    random = np.random.default_rng(5)
    found = [noise.residuals_of(random.standard_normal((12, 1, 1))) for _ in range(2000)]
    assert np.mean([residuals**2 for residuals in found]) == pytest.approx(1.0, rel=0.03)


@pytest.mark.parametrize("count", [0, 5])
def test_too_short_a_recording_says_what_to_do_first(count):
    with pytest.raises(SelfTrialError, match=rf"with {count}. Record more first: workbench bench self record"):
        noise.noise_of(maker.recording(count))
