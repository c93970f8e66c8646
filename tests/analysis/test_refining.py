"""Densities are added where a crossing is, until its interval is as narrow as asked; nothing is asked where none is."""

from dataclasses import replace

import pytest

from tests.support import rows as made
from tests.support.rows import DENSE, SPARSE
from workbench import store
from workbench.analysis.breakeven import breakeven
from workbench.analysis.refining import openings, told
from workbench.sweep import refine
from workbench.sweep.spec import Cell

COARSE = (0.001, 0.01, 0.1, 0.3)
TIME_ONLY = replace(SPARSE, bytes_slope=0.0)
"""It needs less memory than dense at every density."""


def refined(laws, until, noise=0.02, most=12, rounds=6):
    """The rows after densities were added as asked, and how many times any were."""
    rows, times = made.sweep(laws, COARSE, noise=noise, rounds=rounds), 0
    while (asked := openings(store.frame(rows), until)) and times < most:
        for seed, density in enumerate({one.density for one in asked}):
            rows += made.sweep(laws, (density,), noise=noise, rounds=rounds, seed=100 * times + seed + 1)
        times += 1
    return rows, times


def test_a_crossing_is_halved_until_its_interval_is_as_narrow_as_asked():
    rows, times = refined((DENSE, TIME_ONLY), 0.1, noise=0.01)
    [even] = breakeven(store.frame(rows))
    assert 2 <= times <= 6
    assert even.high <= 1.1 * even.low
    assert even.low < made.crossing() < even.high
    assert openings(store.frame(rows), 0.1) == []
    assert "in time: bracketed at" in told(store.frame(rows), 0.1)[0]


def test_memory_has_its_own_crossing():
    slower = replace(SPARSE, slope=0.0)
    [opening] = openings(store.frame(made.sweep((DENSE, slower), COARSE)), 0.1)
    assert 0.1 < opening.density < 0.3


def test_noise_ends_the_halving_and_the_sentence_says_what_would_help():
    rows, times = refined((DENSE, TIME_ONLY), 0.02, noise=0.3)
    assert times < 12
    assert "more than 2 %: rounds would narrow it" in told(store.frame(rows), 0.02)[0]


def test_nothing_is_asked_where_no_crossing_was_seen():
    frame = store.frame(made.sweep((DENSE, replace(TIME_ONLY, slope=0.001)), COARSE))
    assert openings(frame, 0.1) == []
    assert "not bracketed, since no crossing was seen; sparse wins from 0.1" in told(frame, 0.1)[0]


def test_configurations_that_cross_at_nearly_the_same_place_share_a_density():
    other = replace(TIME_ONLY, update="lazy", slope=0.1001)
    asked = openings(store.frame(made.sweep((DENSE, TIME_ONLY, other), COARSE, noise=0.0)), 0.1)
    assert len(asked) == 2
    assert len({one.density for one in asked}) == 1


@pytest.mark.parametrize("until", [0.1, 3.0])
def test_cells_are_added_for_the_sparse_one_and_the_dense_ones_that_bracket(until):
    rows = made.sweep((DENSE, TIME_ONLY), COARSE)
    cells = {
        row["key"]: Cell(format=row["format"], engine=row["engine"], density=row["density"], gradient=row["gradient"])
        for row in rows
    }
    came = refine.added(cells, rows, until)
    assert {cell.format for cell in came} == ({"csr", "dense"} if until == 0.1 else set())
    assert len({cell.density for cell in came}) == len(came) // 2
    again = {**cells, **{str(place): cell for place, cell in enumerate(came)}}
    assert refine.added(again, rows, until) == []
