"""Drawn graphs: edges as the parameters say, words by class, and splits with few labels of each class."""

import dataclasses

import numpy as np
import pytest

from workbench import data
from workbench.data import DataError
from workbench.data.dataset.selection import split_rows


def made(**parameters) -> data.Dataset:
    return data.load("block_graph", cache=False, **{"rows": 300, "features": 50, "classes": 3, **parameters})


def test_edges_go_both_ways_and_join_other_nodes_about_as_many_as_asked_for():
    graph = made(degree=12).graph
    assert abs(graph - graph.T).nnz == 0
    assert not graph.diagonal().any()
    assert set(graph.data) == {1}
    assert graph.nnz / 300 == pytest.approx(12, rel=0.15)


@pytest.mark.parametrize(("mixing", "within"), [(0.0, 1.0), (1.0, 1 / 3), (0.3, 0.8)])
def test_edges_stay_within_a_class_but_for_what_is_mixed(mixing, within):
    drawn = made(mixing=mixing, degree=20)
    rows, columns = drawn.graph.nonzero()
    assert (drawn.y[rows] == drawn.y[columns]).mean() == pytest.approx(within, abs=0.05)


def test_words_are_those_of_the_class_as_often_as_the_signal_says():
    drawn = made(signal=1.0, words=5)
    own = np.repeat(drawn.y, np.diff(drawn.x.indptr))
    first = np.arange(4) * 50 // 3
    assert ((first[own] <= drawn.x.indices) & (drawn.x.indices < first[own + 1])).all()
    assert made(signal=0.0).x.nnz / 300 == pytest.approx(50 * (1 - 0.98**20), rel=0.05)


def test_the_seed_draws_everything():
    one, same, other = made(), made(), made(seed=1)
    assert abs(one.x - same.x).nnz == abs(one.graph - same.graph).nnz == 0
    assert (one.y == same.y).all()
    assert (one.y != other.y).any()
    assert np.bincount(one.y).tolist() == [100, 100, 100]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rows": 2}, "rows is 2; with 3 classes it is 3 or more"),
        ({"classes": 1}, "classes is 1; it is 2 or more"),
        ({"words": 0}, "words is 0; it is 1 or more"),
        ({"degree": -1}, "degree is -1; it is 0 or more"),
        ({"mixing": 1.5}, "mixing is 1.5; it is a chance, from 0 to 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(parameters, message):
    with pytest.raises(DataError, match=message):
        made(**parameters)


def test_so_many_rows_of_each_class_are_trained_on_and_all_others_held_out():
    drawn = made(per_class=7)
    train, rest = split_rows(drawn, 0.2, seed=1)
    assert np.bincount(drawn.y[train]).tolist() == [7, 7, 7]
    assert sorted(np.concatenate([train, rest])) == list(range(300))
    assert len(np.unique(drawn.y[train][:7])) > 1  # in random order
    assert train.tolist() != split_rows(drawn, 0.2, seed=2)[0].tolist()
    assert len(split_rows(made(), 0.2)[0]) == 240


@pytest.mark.parametrize(
    ("per_class", "message"),
    [
        (0, "per_class is 0; it is 1 or more rows"),
        (100, "no class of the 300 rows has more; fewer leave some held out"),
    ],
)
def test_splits_that_leave_a_part_empty_are_refused(per_class, message):
    with pytest.raises(DataError, match=message):
        split_rows(made(per_class=per_class), 0.2)


def test_rows_of_numbers_have_no_classes_to_be_counted_by():

    drawn = made(per_class=5)
    numbers = dataclasses.replace(drawn, y=drawn.y.astype(np.float32), labels=data.Labels("numbers"))
    with pytest.raises(DataError, match="per_class is 5, and the labels are numbers; it counts rows of classes"):
        split_rows(numbers, 0.2)
