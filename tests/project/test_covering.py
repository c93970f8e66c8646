"""The choice of cases from a grid reaches every target, is small, and is the same every time."""

import itertools

import pytest

from tests.support.covering import all_pairs, cover

pytest_plugins = ["pytester"]
GRIDS = {
    "two by two": (2, 2),
    "three of three": (3, 3, 3),
    "unequal": (2, 7, 3, 4),
    "ten switches": (2,) * 10,
    "one value": (1, 5, 1),
    "one parameter": (6,),
}


def grid(sizes):
    return [dict(zip("abcdefghij", case, strict=False)) for case in itertools.product(*map(range, sizes))]


def pairs_of(cases):
    return set().union(*map(all_pairs, cases))


@pytest.mark.parametrize("sizes", GRIDS.values(), ids=GRIDS)
def test_every_pair_of_values_is_there(sizes):
    cases = grid(sizes)
    assert pairs_of([cases[position] for position in cover(cases)]) == pairs_of(cases)


@pytest.mark.parametrize(("sizes", "most"), [((2,) * 10, 12), ((3, 3, 3), 13), ((2, 7, 3, 4), 34), ((6,), 6)])
def test_few_cases_are_enough(sizes, most):
    assert len(cover(grid(sizes))) <= most


def test_cases_that_cannot_be_are_not_asked_for():
    cases = [case for case in grid((3, 3, 3)) if case["a"] != case["b"]]
    chosen = [cases[position] for position in cover(cases)]
    assert pairs_of(chosen) == pairs_of(cases)
    assert len(chosen) < len(cases)


def test_the_choice_is_the_same_every_time_and_in_order():
    chosen = cover(grid((3, 4, 5)))
    assert chosen == cover(grid((3, 4, 5))) == sorted(set(chosen))


def test_a_case_without_a_target_of_its_own_is_left_out():
    assert cover([{"a": 1}, {"a": 2}, {"a": 1}]) == [0, 1]
    assert cover([]) == []


def test_other_targets_than_pairs_are_reached():
    cases = grid((4, 6))
    chosen = cover(cases, lambda case: {("a", case["a"]), ("b", case["b"] % 3)})
    assert len(chosen) == 4
    assert {cases[position]["b"] % 3 for position in chosen} == {0, 1, 2}


def test_values_without_a_hash_are_told_apart():
    assert len(cover([{"x": [1]}, {"x": [2]}, {"x": [1]}])) == 2
    assert len(cover([{"x": 1}, {"x": True}, {"x": 1.0}])) == 3


GRID = """
import pytest

@pytest.mark.covering
@pytest.mark.parametrize("c", range(3))
@pytest.mark.parametrize("b", range(3))
@pytest.mark.parametrize("a", range(3))
def test_pairs(a, b, c):
    pass

@pytest.mark.covering(targets=lambda case: {case["a"]})
@pytest.mark.parametrize("b", range(3))
@pytest.mark.parametrize("a", range(3))
def test_of_one_parameter(a, b):
    pass

@pytest.mark.exhaustive
def test_that_is_long():
    pass

def test_that_is_not_marked():
    pass
"""


@pytest.fixture
def count(pytester):
    """Number of tests that run of the file above, with these options."""
    pytester.makeconftest("from tests.conftest import pytest_addoption, pytest_collection_modifyitems")
    pytester.makeini("[pytest]\naddopts = -p no:logging\nmarkers =\n  covering\n  exhaustive\n")
    pytester.makepyfile(GRID)

    def run(*options):
        result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", *options)
        return result.parseoutcomes()["passed"]

    return run


def test_marked_tests_run_on_the_chosen_part(count):
    in_part = len(cover(grid((3, 3, 3)))) + 3 + 1
    assert count() == in_part < 20


def test_all_cases_run_when_they_are_asked_for(count):
    assert count("--exhaustive") == 27 + 9 + 2


def test_a_case_asked_for_by_name_runs(count):
    assert count("test_a_case_asked_for_by_name_runs.py::test_pairs[2-2-2]") == 1
    assert count("test_a_case_asked_for_by_name_runs.py::test_pairs[1-2-2]") == 1
