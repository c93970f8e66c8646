"""Drawn ratings: a row a pair, no pair twice, columns in two fields that stay told where columns are left out."""

import numpy as np
import pytest

from workbench import data


def made(**parameters) -> data.Dataset:
    return data.load("low_rank", cache=False, **{"users": 30, "items": 20, "rows": 200, **parameters})


def test_a_row_is_one_user_and_one_item_and_no_pair_comes_twice():
    x = made().x
    columns = np.sort(x.indices.reshape(-1, 2), axis=1)
    assert (np.diff(x.indptr) == 2).all()
    assert (x.data == 1).all()
    assert (columns[:, 0] < 30).all()
    assert (columns[:, 1] >= 30).all()
    assert len(np.unique(columns, axis=0)) == 200
    assert np.bincount(columns[:, 0], minlength=30).min() == 200 // 30


def test_ratings_follow_from_the_factors_and_the_seed():
    one, same, other = made(), made(), made(seed=1)
    np.testing.assert_array_equal(one.y, same.y)
    assert (one.y != other.y).any()
    assert made(users=300, items=200, rows=10_000).y.std() == pytest.approx((0.3**2 + 0.4**2 + 0.5) ** 0.5, rel=0.15)
    assert (one.labels.kind, one.y.dtype) == ("numbers", np.float32)


def test_all_pairs_can_be_drawn_and_no_more():
    assert made(rows=600).x.nnz == 1200
    with pytest.raises(data.DataError, match="rows is 601; 30 users rate 20 items once each, 600 at most"):
        made(rows=601)
    with pytest.raises(data.DataError, match="rank is 0; it is 1 or more"):
        made(rank=0)


def test_fields_are_counted_anew_where_columns_are_left_out():
    whole = made()
    kept = data.keep_features(whole, 25)
    users = kept.facts["fields"][0]
    assert whole.facts["fields"] == [30, 20]
    assert sum(kept.facts["fields"]) == 25
    assert kept.x[:, :users].nnz == (kept.x.indices < users).sum()
    counts = np.bincount(whole.x.indices, minlength=50)
    assert users == np.count_nonzero(np.sort(np.argsort(-counts, kind="stable")[:25]) < 30)
