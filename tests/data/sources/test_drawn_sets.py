"""Drawn sets: graphs, click logs and ratings, as their parameters say; what is refused."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from workbench import data
from workbench.data import DataError
from workbench.data.dataset.selection import split_rows


def made(name: str, defaults: dict, **parameters) -> data.Dataset:
    return data.load(name, cache=False, **defaults | parameters)


graph = partial(made, "block_graph", {"rows": 300, "features": 50, "classes": 3})
clicks = partial(made, "clicks", {"rows": 4000, "columns": 4, "values": 60})
ratings = partial(made, "low_rank", {"users": 30, "items": 20, "rows": 200})

REFUSED = [
    (graph, {"rows": 2}, "rows is 2; with 3 classes it is 3 or more"),
    (graph, {"classes": 1}, "classes is 1; it is 2 or more"),
    (graph, {"words": 0}, "words is 0; it is 1 or more"),
    (graph, {"degree": -1}, "degree is -1; it is 0 or more"),
    (graph, {"mixing": 1.5}, "mixing is 1.5; it is a chance, from 0 to 1"),
    (clicks, {"hashed": 0}, "hashed is 0; it is 1 or more"),
    (clicks, {"rate": 1.0}, "rate is 1.0; it is a share of clicks, above 0 and below 1"),
    (clicks, {"pairs": -1.0}, "pairs is -1.0; each is 0 or more"),
    (ratings, {"rows": 601}, "rows is 601; 30 users rate 20 items once each, 600 at most"),
    (ratings, {"rank": 0}, "rank is 0; it is 1 or more"),
]


@pytest.mark.parametrize(("draw", "parameters", "message"), REFUSED)
def test_what_cannot_be_drawn_is_refused(draw, parameters, message):
    with pytest.raises(DataError, match=message):
        draw(**parameters)


# graphs


def test_edges_go_both_ways_and_join_other_nodes_about_as_many_as_asked_for():
    edges = graph(degree=12).graph
    assert abs(edges - edges.T).nnz == 0
    assert not edges.diagonal().any()
    assert set(edges.data) == {1}
    assert edges.nnz / 300 == pytest.approx(12, rel=0.15)


@pytest.mark.parametrize(("mixing", "within"), [(0.0, 1.0), (1.0, 1 / 3), (0.3, 0.8)])
def test_edges_stay_within_a_class_but_for_what_is_mixed(mixing, within):
    drawn = graph(mixing=mixing, degree=20)
    rows, columns = drawn.graph.nonzero()
    assert (drawn.y[rows] == drawn.y[columns]).mean() == pytest.approx(within, abs=0.05)


def test_words_are_those_of_the_class_as_often_as_the_signal_says():
    drawn = graph(signal=1.0, words=5)
    own = np.repeat(drawn.y, np.diff(drawn.x.indptr))
    first = np.arange(4) * 50 // 3
    assert ((first[own] <= drawn.x.indices) & (drawn.x.indices < first[own + 1])).all()
    assert graph(signal=0.0).x.nnz / 300 == pytest.approx(50 * (1 - 0.98**20), rel=0.05)


def test_the_seed_draws_all_of_a_graph():
    one, same, other = graph(), graph(), graph(seed=1)
    assert abs(one.x - same.x).nnz == abs(one.graph - same.graph).nnz == 0
    assert (one.y == same.y).all()
    assert (one.y != other.y).any()
    assert np.bincount(one.y).tolist() == [100, 100, 100]


def test_so_many_rows_of_each_class_are_trained_on_and_all_others_held_out():
    drawn = graph(per_class=7)
    train, rest = split_rows(drawn, 0.2, seed=1)
    assert np.bincount(drawn.y[train]).tolist() == [7, 7, 7]
    assert sorted(np.concatenate([train, rest])) == list(range(300))
    assert len(np.unique(drawn.y[train][:7])) > 1  # in random order
    assert train.tolist() != split_rows(drawn, 0.2, seed=2)[0].tolist()
    assert len(split_rows(graph(), 0.2)[0]) == 240


@pytest.mark.parametrize(
    ("per_class", "message"),
    [
        (0, "per_class is 0; it is 1 or more rows"),
        (100, "no class of the 300 rows has more; fewer leave some held out"),
    ],
)
def test_splits_that_leave_a_part_empty_are_refused(per_class, message):
    with pytest.raises(DataError, match=message):
        split_rows(graph(per_class=per_class), 0.2)


def test_rows_of_numbers_have_no_classes_to_be_counted_by():
    drawn = graph(per_class=5)
    numbers = dataclasses.replace(drawn, y=drawn.y.astype(np.float32), labels=data.Labels("numbers"))
    with pytest.raises(DataError, match="per_class is 5, and the labels are numbers; it counts rows of classes"):
        split_rows(numbers, 0.2)


# click logs


def test_a_row_has_one_value_of_each_column_and_popular_values_come_often():
    dataset = clicks(slope=1.5)
    counts = dataset.facts["values"]
    assert counts == [10, 18, 33, 60]
    assert dataset.x.shape == (4000, sum(counts))
    of_column = np.searchsorted(np.cumsum(counts), dataset.x.indices.reshape(-1, 4), side="right")
    assert (of_column == np.arange(4)).all()
    assert (dataset.x.data == 1).all()
    last = np.sort(np.bincount(dataset.x.indices, minlength=sum(counts))[-60:])
    assert last[-6:].sum() > 5 * last[:30].sum()


def test_the_clicks_are_the_same_however_many_buckets_values_are_hashed_into():
    whole, hashed = clicks(), clicks(hashed=16)
    np.testing.assert_array_equal(whole.y, hashed.y)
    assert hashed.x.shape == (4000, 4 * 16)
    assert hashed.x.nnz == whole.x.nnz
    first = [dataset.x.indices.reshape(-1, 4)[:, 3] for dataset in (whole, hashed)]
    buckets = {of_value: {*first[1][first[0] == of_value]} for of_value in np.unique(first[0])}
    assert all(len(found) == 1 for found in buckets.values())
    assert len(np.unique(first[1])) == 16


def test_the_share_of_clicks_and_the_truth_are_as_asked():
    dataset = clicks(rows=20_000, rate=0.2)
    rate = dataset.y.mean()
    assert rate == pytest.approx(0.2, abs=0.01)
    assert (dataset.labels.kind, dataset.labels.positive) == ("classes", "1")
    entropy = -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    assert dataset.facts["log_loss_truth"] < entropy - 0.05
    assert 0.7 < dataset.facts["auc_truth"] < 0.9


def test_without_effects_nothing_tells_of_a_click_and_a_single_column_has_no_pairs():
    assert clicks(main=0, pairs=0, rows=20_000).facts["auc_truth"] == pytest.approx(0.5, abs=0.02)
    assert clicks(main=0, pairs=1, columns=1).facts["auc_truth"] == pytest.approx(0.5, abs=0.05)
    assert clicks(main=0, pairs=1.5).facts["auc_truth"] > 0.7


def test_the_seed_draws_all_of_a_log():
    one, same, other = clicks(), clicks(), clicks(seed=1)
    np.testing.assert_array_equal(one.x.indices, same.x.indices)
    assert (one.x.indices != other.x.indices).any()


# ratings


def test_a_row_is_one_user_and_one_item_and_no_pair_comes_twice():
    x = ratings().x
    columns = np.sort(x.indices.reshape(-1, 2), axis=1)
    assert (np.diff(x.indptr) == 2).all()
    assert (x.data == 1).all()
    assert (columns[:, 0] < 30).all()
    assert (columns[:, 1] >= 30).all()
    assert len(np.unique(columns, axis=0)) == 200
    assert np.bincount(columns[:, 0], minlength=30).min() == 200 // 30


def test_ratings_follow_from_the_factors_and_the_seed():
    one, same, other = ratings(), ratings(), ratings(seed=1)
    np.testing.assert_array_equal(one.y, same.y)
    assert (one.y != other.y).any()
    assert ratings(users=300, items=200, rows=10_000).y.std() == pytest.approx((0.3**2 + 0.4**2 + 0.5) ** 0.5, rel=0.15)
    assert (one.labels.kind, one.y.dtype) == ("numbers", np.float32)


def test_all_pairs_can_be_drawn():
    assert ratings(rows=600).x.nnz == 1200


def test_fields_are_counted_anew_where_columns_are_left_out():
    whole = ratings()
    kept = data.keep_features(whole, 25)
    users = kept.facts["fields"][0]
    assert whole.facts["fields"] == [30, 20]
    assert sum(kept.facts["fields"]) == 25
    assert kept.x[:, :users].nnz == (kept.x.indices < users).sum()
    counts = np.bincount(whole.x.indices, minlength=50)
    assert users == np.count_nonzero(np.sort(np.argsort(-counts, kind="stable")[:25]) < 30)
