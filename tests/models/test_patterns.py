"""Patterns of weights: how many places, which at the start, which go and come."""

import numpy as np
import pytest

from workbench.models import patterns
from workbench.models.patterns import Moves, smallest


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_uniform_shares_are_equal_and_those_of_erdos_renyi_go_with_the_units():
    shapes = [(1000, 500), (500, 100)]
    assert patterns.counts(shapes, 0.05, "uniform") == [25_000, 2_500]
    found = patterns.counts(shapes, 0.05, "erdos_renyi")
    assert sum(found) == pytest.approx(0.05 * 550_000, abs=1)
    assert found[0] / found[1] == pytest.approx(1500 / 600, rel=1e-3)


def test_what_a_small_matrix_cannot_hold_the_others_take():
    shapes = [(1000, 1000), (1000, 2), (2, 2)]
    found = patterns.counts(shapes, 0.1, "erdos_renyi")
    assert found[1:] == [2000, 4]
    assert sum(found) == pytest.approx(0.1 * 1_002_004, abs=2)
    assert patterns.counts(shapes, 1.0, "erdos_renyi") == [1_000_000, 2000, 4]
    assert patterns.counts(shapes, 1e-9, "uniform") == [1, 1, 1]


@pytest.mark.parametrize("count", [0, 1, 37, 60, 99, 100])
def test_a_pattern_has_as_many_places_as_were_asked_for_sorted_and_none_twice(count):
    pattern = patterns.drawn((20, 5), count, generator())
    assert pattern.nnz == count
    assert (np.diff(pattern.keys) > 0).all()
    matrix = pattern.matrix(np.ones(count))
    matrix.check_format(full_check=True)
    assert matrix.has_canonical_format
    with pytest.raises(ValueError, match="read-only"):
        pattern.indices[:1] = 0


@pytest.mark.parametrize("count", [10, 45])
def test_every_place_is_as_likely_as_any_other_and_none_that_is_taken_is_drawn(count):
    taken = np.array([0, 7, 33, 99])
    drawn = [patterns.absent(taken, 100, count, generator(seed)) for seed in range(2000)]
    hits = np.bincount(np.concatenate(drawn), minlength=100)
    assert not hits[taken].any()
    expected = 2000 * count / 96
    assert np.abs(np.delete(hits, taken) - expected).max() < 5 * expected**0.5


def test_a_matrix_that_is_never_listed_may_be_larger_than_memory():
    shape = (2**30, 2**30)
    keys = patterns.absent(np.array([5]), shape[0] * shape[1], 1000, generator())
    assert keys.size == 1000
    assert keys[-1] > 2**55


def test_rows_of_a_pattern_are_those_of_the_matrix():
    pattern = patterns.drawn((9, 6), 25, generator())
    values, rows = np.arange(1.0, 26), np.array([0, 3, 4, 8])
    part, places = pattern.on_rows(rows)
    np.testing.assert_array_equal(part.matrix(values[places]).toarray(), pattern.matrix(values).toarray()[rows])


def test_a_moved_pattern_keeps_what_was_not_dropped_and_has_what_was_grown():
    pattern = patterns.drawn((6, 5), 12, generator())
    values, dropped = np.arange(1.0, 13), np.zeros(12, bool)
    dropped[[0, 5, 11]] = True
    grown = patterns.absent(pattern.keys, 30, 3, generator(1))
    moved, origin = pattern.moved(dropped, grown)
    expected = pattern.matrix(np.where(dropped, 0, values)).toarray()
    expected.reshape(-1)[grown] = -7
    np.testing.assert_array_equal(
        moved.matrix(np.where(origin == patterns.NEW, -7, values[origin])).toarray(), expected
    )
    assert moved.nnz == 12


def test_the_smallest_magnitudes_go_of_equal_ones_the_first():
    dropped = smallest(np.array([3.0, -1.0, 0.5, 1.0, -0.5, 2.0]), 3)
    assert np.flatnonzero(dropped).tolist() == [1, 2, 4]
    assert not smallest(np.ones(4), 0).any()
    assert smallest(np.ones(4), 4).all()


def test_a_pattern_moves_every_so_many_steps_before_the_last_one():
    moves = Moves("set", 0.3, every=10, until=100)
    assert [step for step in range(1, 200) if moves.is_due(step)] == [*range(10, 100, 10)]
    assert not Moves("fixed", 0.3, every=1, until=100).is_due(5)
