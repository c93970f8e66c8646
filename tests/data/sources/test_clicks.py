"""Drawn click logs: a value a column in each row, clicks that hashing leaves alone, and pairs that tell of them."""

import numpy as np
import pytest

from workbench import data


def made(**parameters) -> data.Dataset:
    return data.load("clicks", cache=False, **{"rows": 4000, "columns": 4, "values": 60, **parameters})


def test_a_row_has_one_value_of_each_column_and_popular_values_come_often():
    dataset = made(slope=1.5)
    counts = dataset.facts["values"]
    assert counts == [10, 18, 33, 60]
    assert dataset.x.shape == (4000, sum(counts))
    of_column = np.searchsorted(np.cumsum(counts), dataset.x.indices.reshape(-1, 4), side="right")
    assert (of_column == np.arange(4)).all()
    assert (dataset.x.data == 1).all()
    last = np.sort(np.bincount(dataset.x.indices, minlength=sum(counts))[-60:])
    assert last[-6:].sum() > 5 * last[:30].sum()


def test_the_clicks_are_the_same_however_many_buckets_values_are_hashed_into():
    whole, hashed = made(), made(hashed=16)
    np.testing.assert_array_equal(whole.y, hashed.y)
    assert hashed.x.shape == (4000, 4 * 16)
    assert hashed.x.nnz == whole.x.nnz
    first = [dataset.x.indices.reshape(-1, 4)[:, 3] for dataset in (whole, hashed)]
    buckets = {of_value: {*first[1][first[0] == of_value]} for of_value in np.unique(first[0])}
    assert all(len(found) == 1 for found in buckets.values())
    assert len(np.unique(first[1])) == 16


def test_the_share_of_clicks_and_the_truth_are_as_asked():
    dataset = made(rows=20_000, rate=0.2)
    rate = dataset.y.mean()
    assert rate == pytest.approx(0.2, abs=0.01)
    assert (dataset.labels.kind, dataset.labels.positive) == ("classes", "1")
    entropy = -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    assert dataset.facts["log_loss_truth"] < entropy - 0.05
    assert 0.7 < dataset.facts["auc_truth"] < 0.9


def test_without_effects_nothing_tells_of_a_click_and_a_single_column_has_no_pairs():
    assert made(main=0, pairs=0, rows=20_000).facts["auc_truth"] == pytest.approx(0.5, abs=0.02)
    assert made(main=0, pairs=1, columns=1).facts["auc_truth"] == pytest.approx(0.5, abs=0.05)
    assert made(main=0, pairs=1.5).facts["auc_truth"] > 0.7


def test_the_seed_draws_all_of_it():
    one, same, other = made(), made(), made(seed=1)
    np.testing.assert_array_equal(one.x.indices, same.x.indices)
    assert (one.x.indices != other.x.indices).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hashed": 0}, "hashed is 0; it is 1 or more"),
        ({"rate": 1.0}, "rate is 1.0; it is a share of clicks, above 0 and below 1"),
        ({"pairs": -1.0}, "pairs is -1.0; each is 0 or more"),
    ],
)
def test_what_cannot_be_drawn_is_refused(parameters, message):
    with pytest.raises(data.DataError, match=message):
        made(**parameters)
