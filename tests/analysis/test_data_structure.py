"""How far the ratio moves with the structure of the data is told from rows of several data sets, or said not to be."""

from dataclasses import replace

import pytest

from tests.support import rows as made
from tests.support.rows import DENSE, SPARSE
from workbench import store
from workbench.analysis import profiles

DENSITIES = (0.03, 0.1)
SLOW = replace(SPARSE, slope=0.15)


def swept(dataset: str, law=SPARSE, rounds: int = 4, **known) -> list[dict]:
    return made.sweep((DENSE, law), DENSITIES, noise=1e-3, rounds=rounds, dataset=dataset, **known)


ONE = swept("uniform")
SEVERAL = [*ONE, *swept("mixed", SLOW)]


def told(rows, others=None) -> str:
    return profiles.structure_sentence(store.frame(rows), None if others is None else store.frame(others))


def test_rows_of_several_data_sets_tell_by_how_much_they_differ_at_which_density():
    text = told(SEVERAL)
    assert "differs by up to 1.5 times between data sets: at 10 % density dense takes 0.53 times as long" in text
    assert "as sparse on mixed data, and 0.79 times on uniform data" in text
    assert "the break-even is at 5.3 % on mixed and 7.9 % on uniform" in text
    assert "measured on this machine" not in text


def test_rows_of_one_data_set_take_what_the_sweep_of_several_found_on_the_same_machine():
    text = told(ONE, SEVERAL)
    assert "differs by up to 1.5 times between data sets" in text
    assert "(From the sweep structure on this machine: logistic, width 16, 10,000 features, 256 rows a batch.)" in text
    other = [row | {"machine": "bench-2"} for row in SEVERAL]
    assert "was not measured on this machine" in told(ONE, other)


@pytest.mark.parametrize("others", [None, [], ONE])
def test_what_was_not_measured_is_said_so_with_the_command_that_does(others):
    text = told(ONE, others)
    assert "was not measured on this machine" in text
    assert f"`{profiles.COMMAND}`" in text


def test_data_of_fewer_rows_are_told_apart():
    small = [*swept("uniform", replace(SPARSE, slope=0.05), rows_total=1000, rows_trained=1000)]
    text = told([*SEVERAL, *small])
    assert (
        "With 1,000 rows, which fit a cache sooner, instead of 20,000 the ratio is up to 2 times better for sparse"
        in text
    )
    assert "better for dense" in told([*SEVERAL, *swept("uniform", SLOW, rows_total=1000, rows_trained=1000)])


def test_groups_that_differ_in_more_than_the_data_set_are_not_compared():
    assert "was not measured" in told([*ONE, *swept("mixed", SLOW, width=4)])


def test_no_rows_have_no_sentence():
    assert told([]) == ""
