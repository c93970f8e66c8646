"""Rounds that lie off, configurations to doubt or without a result are found, each with its reason; good are not."""

import numpy as np
import pytest

from tests.support import rows as made
from workbench import store
from workbench.analysis import configurations
from workbench.analysis.outliers import find_outliers, usual_deviation
from workbench.measure.rounds import MIN_LOG_SD


def found(rows):
    return find_outliers(configurations.records(configurations.pool_rounds(store.frame(rows))))


def test_rounds_that_agree_are_no_outliers():
    assert found(made.sweep(noise=0.01, shared=0.01)) == []


@pytest.mark.parametrize(("times", "distance", "noise"), [(3, "3.01", "up to 1."), (1 / 3, "0.334", "down to 0.")])
def test_a_round_that_lies_off_is_named_with_how_far(times, distance, noise):
    rows = made.sweep(densities=(0.01,), rounds=6, noise=0.005, shared=0.005)
    odd = next(row for row in rows if row["format"] == "csr" and row["round"] == 2)
    odd["seconds_step"] *= times
    results = {(one.row["format"], one.place): one.reason for one in found(rows)}
    reason = results["csr", "round 3"]
    assert reason.startswith(f"took {distance} times the median of its 5 other rounds; {noise}")
    assert reason.endswith(" times is noise here")
    assert ("csr", "") not in results, "that its rounds spread is said by then"
    assert not any(format == "dense" for format, _ in results)


def test_a_round_within_the_noise_of_the_configurations_is_no_outlier_though_the_others_of_its_configuration_agree():
    """Three of four rounds that agree by chance say nothing of the fourth, where configurations differ by far more."""
    rows = made.sweep(rounds=4, noise=0.2, shared=0.0)
    own = [row for row in rows if row["format"] == "csr" and row["density"] == 0.01]
    for row, times in zip(own, (1.0, 1.005, 0.995, 1.15), strict=True):
        row["seconds_step"] = times * own[0]["seconds_step"]
    assert found(rows) == []
    own[-1]["seconds_step"] *= 5
    assert [one.place for one in found(rows) if one.place] == ["round 4"]


def test_the_usual_deviation_is_that_of_the_rounds_however_few_a_configuration_has_and_whatever_lies_off():
    generator = np.random.default_rng(0)
    runs = [*(0.2 * generator.standard_normal((400, 4))), *(3 + generator.standard_normal((40, 4)))]
    assert usual_deviation(runs) == pytest.approx(0.2, rel=0.15)
    assert usual_deviation([[1.0], []]) == MIN_LOG_SD


def test_drift_is_listed_where_the_fixed_work_ranges_further_than_beside_the_other_configurations():
    generator, rows = np.random.default_rng(0), made.sweep(noise=0.2, shared=0.0)
    for row in rows:
        row["seconds_sentinel"] = 1e-3 * float(np.exp(0.1 * generator.standard_normal()))
    assert found(rows) == []
    drifting = [row for row in rows if row["format"] == "csr" and row["density"] == 0.01]
    drifting[0]["seconds_sentinel"] *= 4
    [one] = found(rows)
    assert one.row["density"] == 0.01
    assert one.reason.startswith("drift: fixed work next to it took up to ")


def test_few_rounds_have_no_outlier_of_their_own():
    rows = made.sweep(densities=(0.01,), rounds=3, noise=0.005, shared=0.005)
    rows[0]["seconds_step"] *= 3
    assert {one.place for one in found(rows)} <= {""}


def test_configurations_without_a_result_come_first_and_disturbed_ones_are_told():
    found_ = found(made.rich())
    statuses = [one.row["status"] for one in found_]
    assert statuses[:3] == sorted(statuses[:3], key=lambda status: status in configurations.NUMBERED)
    reasons = [one.reason for one in found_]
    assert any(reason.startswith("memory: needs 5 GB") for reason in reasons)
    assert any(reason.startswith("disturbed: other programs took 50 %") for reason in reasons)
