"""Densities are added where a crossing is, until its interval is as narrow as asked; nothing is asked where none is."""

from dataclasses import replace

import pytest

from tests.support import rows as made
from tests.support.rows import DENSE, SPARSE
from workbench import store
from workbench.analysis import configurations
from workbench.analysis.breakeven import breakeven
from workbench.analysis.compare import PARTLY, contests
from workbench.analysis.refinement import densities_to_add
from workbench.sweeps import schedule
from workbench.sweeps.spec import Configuration

COARSE = (0.001, 0.01, 0.1, 0.3)
TIME_ONLY = replace(SPARSE, bytes_slope=0.0)
"""It needs less memory than dense at every density."""


def refined(laws, until, noise=0.02, most=12, rounds=6):
    """The rows after densities were added as asked, and how many times any were."""
    rows, times = made.sweep(laws, COARSE, noise=noise, rounds=rounds), 0
    while (asked := densities_to_add(store.frame(rows), until)) and times < most:
        for seed, density in enumerate({one.density for one in asked}):
            rows += made.sweep(laws, (density,), noise=noise, rounds=rounds, seed=100 * times + seed + 1)
        times += 1
    return rows, times


def test_a_crossing_is_halved_until_its_interval_is_as_narrow_as_asked():
    rows, times = refined((DENSE, TIME_ONLY), 0.1, noise=0.01, rounds=40)
    [even] = breakeven(store.frame(rows))
    assert 2 <= times <= 6
    assert even.high <= 1.1 * even.low
    assert even.low < made.crossing() < even.high
    assert densities_to_add(store.frame(rows), 0.1) == []


def test_memory_has_its_own_crossing():
    slower = replace(SPARSE, slope=0.0)
    [opening] = densities_to_add(store.frame(made.sweep((DENSE, slower), COARSE)), 0.1)
    assert 0.1 < opening.density < 0.3


def test_noise_ends_the_halving():
    _, times = refined((DENSE, TIME_ONLY), 0.02, noise=0.3)
    assert times < 12


def test_nothing_is_asked_where_no_crossing_was_seen():
    frame = store.frame(made.sweep((DENSE, replace(TIME_ONLY, slope=0.001)), COARSE))
    assert densities_to_add(frame, 0.1) == []


def test_break_evens_at_nearly_the_same_place_share_a_density():
    other = replace(TIME_ONLY, slope=0.1001)
    rows = made.sweep((DENSE, TIME_ONLY), COARSE, noise=0.0, batch_rows=256)
    rows += made.sweep((DENSE, other), COARSE, noise=0.0, batch_rows=512)
    asked = densities_to_add(store.frame(rows), 0.1)
    assert len(asked) == 2
    assert len({one.density for one in asked}) == 1


def test_what_may_be_the_best_goes_to_the_new_density_and_what_is_surely_behind_does_not():
    alike, behind = replace(TIME_ONLY, format="csc", slope=0.102), replace(TIME_ONLY, format="coo", slope=0.5)
    rows = made.sweep((DENSE, TIME_ONLY, alike, behind), COARSE, noise=0.05)
    formats = {row["key"]: row["format"] for row in rows}
    [opening] = densities_to_add(store.frame(rows), 0.1)
    assert {formats[key] for key in opening.keys} == {"dense", "csr", "csc"}


def test_a_dense_one_that_is_surely_behind_another_does_not_go_to_the_new_density():
    steps, held = replace(DENSE, fixed=20e-3, bytes_fixed=101e6), replace(DENSE, execution="epoch")
    rows = made.sweep((steps, held, TIME_ONLY), COARSE, noise=0.02)
    launches = {row["key"]: (row["format"], row["execution"]) for row in rows}
    [opening] = densities_to_add(store.frame(rows), 0.1)
    assert {launches[key] for key in opening.keys} == {("dense", "epoch"), ("csr", "step")}
    asked = made.sweep((held, TIME_ONLY), (opening.density,), noise=0.02, seed=1)
    met = contests(configurations.groups(store.frame(rows + asked))[0].rows, "seconds_step")
    assert PARTLY not in {one.why for one in met}


def test_one_configuration_is_refined_after_the_best_of_both_sides_and_beside_the_best():
    early = replace(TIME_ONLY, format="coo", slope=2.0)
    asked, rows, drawn = [], made.sweep((DENSE, TIME_ONLY, early), COARSE, noise=0.004, rounds=6), 0
    while found := densities_to_add(store.frame(rows), 0.1):
        asked.append({one.density for one in found})
        formats = {row["key"]: row["format"] for row in rows}
        for one in found:
            laws = [law for law in (DENSE, TIME_ONLY, early) if law.format in {formats[key] for key in one.keys}]
            drawn += 1
            rows += made.sweep(laws, (one.density,), noise=0.004, rounds=6, seed=drawn)
    assert all(min(densities) > 0.01 for densities in asked[:2]), "the best crosses at 0.079"
    assert any(0.001 < density < 0.01 for density in asked[-1]), "the other one at 0.004"
    met = contests(configurations.groups(store.frame(rows))[0].rows, "seconds_step")
    assert PARTLY not in {one.why for one in met}


@pytest.mark.parametrize("until", [0.1, 3.0])
def test_configurations_are_added_for_the_sparse_one_and_the_dense_ones_that_bracket(until):
    rows = made.sweep((DENSE, TIME_ONLY), COARSE)
    configurations = {
        row["key"]: Configuration(
            format=row["format"], engine=row["engine"], density=row["density"], gradient=row["gradient"]
        )
        for row in rows
    }
    came = schedule.refinement_configurations(configurations, rows, until)
    assert {configuration.format for configuration in came} == ({"csr", "dense"} if until == 0.1 else set())
    assert len({configuration.density for configuration in came}) == len(came) // 2
    again = {**configurations, **{str(place): configuration for place, configuration in enumerate(came)}}
    assert schedule.refinement_configurations(again, rows, until) == []
