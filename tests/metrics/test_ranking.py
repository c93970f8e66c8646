"""Measures of order and F1: ties, one class, NaN, nothing at all, sparse targets, more items than there are."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as reference

from tests.metrics.test_metrics import GRADES, ITEMS, LABELS, PROBABILITIES, RELEVANT, SOME, by_every_order
from workbench import metrics

RANKED = (metrics.precision_at, metrics.recall_at, metrics.ndcg_at)


@pytest.mark.parametrize("seed", range(6))
def test_the_area_is_that_of_scikit_learn_whatever_the_ties(seed):
    rng = np.random.default_rng(seed)
    scores, targets = rng.integers(0, seed + 2, 300).astype(np.float32), rng.random(300) < 0.3
    assert metrics.auc(scores, targets) == pytest.approx(reference.roc_auc_score(targets, scores), rel=1e-12)


def test_constant_scores_have_the_area_of_a_coin():
    assert metrics.auc(np.zeros(10), np.arange(10) % 2) == 0.5
    assert metrics.auc(np.array([np.inf, -np.inf]), np.array([1, 0])) == 1


@pytest.mark.parametrize("targets", [np.ones(4), np.zeros(4)])
def test_one_class_has_no_area(targets):
    assert np.isnan(metrics.auc(np.arange(4.0), targets))


def test_an_area_over_samples_is_that_of_all_scores_also_of_many_batches():
    rng = np.random.default_rng(0)
    scores, targets = rng.standard_normal((500, 1)), rng.random((500, 1)) < 0.5
    metric = metrics.create("auc")
    for part in np.array_split(np.arange(500), 61):
        metric.update(scores[part], targets[part])
    assert metric.value == pytest.approx(metrics.auc(scores, targets), rel=1e-12)
    assert np.isnan(metrics.auc(np.array([np.nan, 1]), np.array([0, 1])))


@pytest.mark.parametrize("k", [1, 3, 10, 15, 40])
def test_gains_are_those_of_scikit_learn_whatever_the_ties(k):
    expected = reference.ndcg_score(GRADES[SOME], ITEMS[SOME], k=k)
    assert metrics.ndcg_at(ITEMS, GRADES, k=k) == pytest.approx(expected, rel=1e-12)
    assert metrics.ndcg_at(0 * ITEMS, GRADES, k=k) == pytest.approx(
        reference.ndcg_score(GRADES[SOME], 0 * ITEMS[SOME], k=k), rel=1e-12
    )


def test_ties_count_as_their_orders_do_on_average():
    assert metrics.precision_at(ITEMS, RELEVANT) == pytest.approx(
        by_every_order(lambda hits, all_: hits / 10), rel=2e-3
    )
    assert metrics.recall_at(ITEMS, RELEVANT) == pytest.approx(by_every_order(lambda hits, all_: hits / all_), rel=2e-3)
    assert metrics.recall_at(np.zeros((1, 8)), np.eye(1, 8), k=2) == 0.25


def test_what_comes_first_counts():
    scores, targets = np.array([[3.0, 2, 1, 0]]), np.array([[1, 0, 0, 1]])
    assert [metrics.precision_at(scores, targets, k=k) for k in (1, 2, 4, 8)] == [1, 0.5, 0.5, 0.25]
    assert [metrics.recall_at(scores, targets, k=k) for k in (1, 2, 4, 8)] == [0.5, 0.5, 1, 1]


@pytest.mark.parametrize("measure", RANKED)
def test_rows_without_anything_relevant_play_no_part(measure):
    assert measure(ITEMS, GRADES) == pytest.approx(measure(ITEMS[SOME], GRADES[SOME]), rel=1e-12)
    for scores, targets in ((ITEMS, 0 * GRADES), (ITEMS[:0], GRADES[:0]), (ITEMS[:, :0], GRADES[:, :0])):
        assert np.isnan(measure(scores, targets))


@pytest.mark.parametrize("measure", RANKED)
def test_sparse_targets_are_the_dense_ones_and_items_left_out_come_last(measure):
    assert measure(ITEMS, sp.csr_array(GRADES)) == measure(ITEMS, GRADES)
    assert measure(ITEMS, RELEVANT) == measure(ITEMS, RELEVANT.astype(np.float32))
    scores = ITEMS.copy()
    scores[:, 5:] = -np.inf
    assert np.isfinite(measure(scores, GRADES))


@pytest.mark.parametrize("measure", RANKED)
def test_a_score_that_is_no_number_is_seen_where_it_matters(measure):
    scores = ITEMS.copy()
    scores[np.flatnonzero(~SOME)[0], 0] = np.nan
    assert measure(scores, GRADES) == measure(ITEMS, GRADES)
    scores[np.flatnonzero(SOME)[0], 0] = np.nan
    assert np.isnan(measure(scores, GRADES))


def test_f1_of_classes_and_of_outputs_is_that_of_scikit_learn():
    said = PROBABILITIES.argmax(1)
    assert metrics.f1_micro(PROBABILITIES, LABELS) == metrics.accuracy(PROBABILITIES, LABELS)
    some = LABELS > 0  # a class that is said and never true
    for average, function in (("micro", metrics.f1_micro), ("macro", metrics.f1_macro)):
        expected = reference.f1_score(LABELS[some], said[some], average=average)
        assert function(PROBABILITIES[some], LABELS[some]) == pytest.approx(expected, rel=1e-12)
        expected = reference.f1_score(RELEVANT, ITEMS > 0.5, average=average)
        assert function(ITEMS, RELEVANT, threshold=0.5) == pytest.approx(expected, rel=1e-12)


def test_f1_of_one_output_is_that_of_the_yes():
    yes, scores = RELEVANT[:, 1], ITEMS[:, 1]
    expected = reference.f1_score(yes, scores > 0)
    for shape in ((-1,), (-1, 1)):
        assert metrics.f1_macro(scores.reshape(shape), yes.reshape(shape)) == pytest.approx(expected)
    assert metrics.f1_micro(scores[:, None], yes) == pytest.approx(expected)


def test_f1_without_any_yes_is_no_number_and_an_output_without_one_is_left_out():
    assert np.isnan(metrics.f1_macro(-np.ones((3, 2)), np.zeros((3, 2))))
    assert np.isnan(metrics.f1_micro(np.ones((0, 2)), np.zeros((0, 2))))
    assert metrics.f1_macro(np.array([[1.0, -1], [1, -1]]), np.array([[1, 0], [1, 0]])) == 1


def test_loss_of_log_odds_of_any_size_is_finite():
    assert metrics.logit_loss(np.array([1000.0, -1000.0]), np.array([1, 0])) == 0
    assert metrics.logit_loss(np.array([1000.0]), np.array([0])) == 1000
