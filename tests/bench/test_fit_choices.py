"""Choices among trainings that were tried: the targets, what runs rounds, and for how many targets at once."""

import math

import pytest

from tests.support import fit_rows
from workbench.bench.fit import cases


def test_targets_are_within_each_tolerance_of_the_best_that_both_sides_come_to():
    def targets(value):
        rows = [fit_rows.row("ours"), fit_rows.row("competitor", side="competitor", curve=((1.0, value, 1),))]
        found, larger_is_better = cases.targets_of_records(rows)
        assert not larger_is_better
        return list(found.values())

    assert targets(0.5014) == pytest.approx([0.5015, 0.505, 0.515]), "both are within the tightest of the best of all"
    assert targets(0.503) == pytest.approx([0.503 * factor for factor in (1.003, 1.01, 1.03)])
    assert targets(0.6) == pytest.approx([0.6018, 0.606, 0.618])
    assert all(map(math.isnan, cases.targets_of_records([])[0].values()))


def test_a_setting_that_is_best_for_several_targets_is_trained_once_a_round():
    slow, fast, is_ours = {"rate": 1.0}, {"rate": 3.0}, {"ours": True, "competitor": False}
    best = {
        0.003: {"ours": (3.0, slow, 9)},
        0.01: {"ours": (2.0, slow, 6), "competitor": (2.0, fast, 4)},
        0.03: {"ours": (1.0, fast, 2), "competitor": (1.0, fast, 2)},
    }
    jobs = cases.jobs_of(best, is_ours)
    assert [(job.name, job.value, job.numbers) for job in jobs] == [
        ("ours", slow, {0.003: 9, 0.01: 6}),
        ("ours", fast, {0.03: 2}),
        ("competitor", fast, {0.01: 4, 0.03: 2}),
    ]
    assert [job.only([0.01]).numbers for job in jobs] == [{0.01: 6}, {}, {0.01: 4}]


def test_rounds_are_of_ours_and_of_the_soonest_competitors():
    best = {
        name: (seconds, {}, 1)
        for name, seconds in {"slow": 9.0, "ours": 99.0, "a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}.items()
    }
    assert cases.candidates_for_rounds(best, {name: name == "ours" for name in best}) == [
        "ours",
        "a",
        "b",
        "c",
        "d",
    ]
