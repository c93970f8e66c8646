"""Pairs of users and items: what is drawn beside them, batches that come again, and the order that is measured."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.small_models import training_of
from workbench import data, formats, metrics, models, training
from workbench.models import ModelError
from workbench.models.two_fields import pairs_of, with_items_unseen
from workbench.training import training as base

USERS, ITEMS = 6, 9
PAIRS = [(0, 0), (0, 1), (0, 2), (1, 8), (2, 3), (3, 3), (4, 0), (5, 7), (5, 8)]


def rows_of(pairs, items: int = ITEMS) -> sp.csr_array:
    columns = np.array([[user, USERS + item] for user, item in pairs]).reshape(-1)
    indptr = 2 * np.arange(len(pairs) + 1)
    return sp.csr_array((np.ones(len(columns), np.float32), columns, indptr), shape=(len(pairs), USERS + items))


X = rows_of(PAIRS)


@pytest.mark.parametrize("dense", [False, True])
def test_each_row_gets_an_item_that_its_user_has_not(dense):
    complete = with_items_unseen(X, [USERS, ITEMS])
    batch = X.toarray() if dense else X
    for seed in range(40):
        completed = complete(batch, np.random.default_rng(seed))
        assert formats.format_of(completed) == formats.format_of(batch)
        whole = formats.to_format(completed, "dense")
        assert whole.dtype == np.float32
        np.testing.assert_array_equal(np.where(whole > 0, whole, 0), X.toarray())
        rows, columns = np.nonzero(whole < 0)
        np.testing.assert_array_equal(rows, np.arange(len(PAIRS)))
        drawn = [(PAIRS[row][0], int(column) - USERS) for row, column in zip(rows, columns, strict=True)]
        assert not set(drawn) & set(PAIRS)
        assert (whole[rows, columns] == -1).all()
        if not dense:
            formats.check(completed, full=True)


def test_every_item_that_a_user_has_not_is_drawn_as_often():
    complete = with_items_unseen(X, [USERS, ITEMS])
    sums = sum(complete(X[:1], np.random.default_rng(seed)).toarray() for seed in range(3000))
    drawn = -sums[0, USERS + 3 :]
    assert drawn.sum() == 3000
    np.testing.assert_allclose(drawn, 500, rtol=0.2)


def test_a_user_that_has_all_items_gets_another_one_of_his():
    pairs = [(0, item) for item in range(3)]
    complete = with_items_unseen(rows_of(pairs, 3), [USERS, 3])
    whole = complete(rows_of(pairs, 3), np.random.default_rng(0)).toarray()
    np.testing.assert_array_equal(whole.sum(axis=1), 1)
    np.testing.assert_array_equal(np.abs(whole).sum(axis=1), 3)


@pytest.mark.parametrize(
    ("x", "fields", "message"),
    [
        (X[:, :-1], [USERS - 1, ITEMS], r"one user and one item, 1 of 5 and 1 of 9 columns; another came"),
        (sp.csr_array(np.ones((3, 5), np.float32)), [3, 2], "one user and one item"),
        (sp.csr_array((3, 5), dtype=np.float32), [3, 2], "one user and one item"),
        (rows_of(PAIRS[:1], 1), [USERS, 1], "There are 1 items; to set one above another takes two"),
    ],
)
def test_rows_that_are_no_pairs_are_refused(x, fields, message):
    with pytest.raises(ModelError, match=message):
        with_items_unseen(x, fields)


def test_no_rows_are_no_pairs():
    assert [part.size for part in pairs_of(X[:0], [USERS, ITEMS])] == [0, 0]


def with_unseen() -> models.Complete:
    bpr = models.get("bpr")
    return bpr.sampler(models.Given(USERS + ITEMS, 1, facts={"fields": [USERS, ITEMS]}), X)


def test_batches_come_again_by_seed_epoch_and_number():
    def batches(seed: int, epoch: int, first: int = 0) -> list:
        feed = data.Completed(data.Batches(X, rows=4), with_unseen(), seed)
        return [batch.x.toarray().tolist() for batch in feed.epoch(epoch, first)]

    assert batches(0, 0) == batches(0, 0)
    assert batches(0, 1, 2) == batches(0, 1)[2:]
    assert batches(0, 0) != batches(0, 1)
    assert batches(0, 0) != batches(1, 0)
    feed = data.Completed(data.Batches(X, rows=4), with_unseen(), 3)
    assert (feed.count(), feed.settings()["seed_completed"]) == (3, 3)


def test_training_in_order_and_ahead_is_the_same():
    curves = []
    for ahead in (False, True):
        run, *_ = training_of(models.get("bpr"), ahead=ahead)
        curves.append([event.loss for event in run.events(2)])
    assert curves[0] == curves[1]


def test_the_order_is_measured_over_users_with_items_held_out_and_without_those_trained_on():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((USERS, ITEMS))
    held = [(0, 3), (0, 0), (2, 5), (5, 1), (5, 2)]  # the second one was trained on, too
    measures = {"recall": lambda s, t: metrics.recall_at(s, t, k=3), "ndcg": lambda s, t: metrics.ndcg_at(s, t, k=3)}
    came = base.ranking_measures(lambda users: scores[users], measures, [USERS, ITEMS], X, rows_of(held))
    masked, targets = scores.copy(), np.zeros((USERS, ITEMS))
    for user, item in held:
        targets[user, item] = 1
    for user, item in PAIRS:
        masked[user, item], targets[user, item] = -np.inf, 0
    users = [0, 2, 5]
    assert came["recall"] == pytest.approx(measures["recall"](masked[users], targets[users]))
    assert came["ndcg"] == pytest.approx(measures["ndcg"](masked[users], targets[users]))


def test_measures_in_parts_are_those_of_the_whole(monkeypatch):
    run, x, y = training_of(models.get("bpr"), rows=1000, held_out=300)
    whole = run.qualities(x[:300], y[:300])
    assert set(whole) == {"recall at 20", "NDCG at 20", "precision at 20"}
    monkeypatch.setattr(base, "ELEMENTS", 1000)
    assert run.qualities(x[:300], y[:300]) == pytest.approx(whole)


def test_nothing_held_out_is_no_number():
    measures = {"recall": metrics.recall_at}
    came = base.ranking_measures(base.by_popularity(X, [USERS, ITEMS]), measures, [USERS, ITEMS], X, X)
    assert np.isnan(came["recall"])


def test_popularity_counts_rows():
    np.testing.assert_array_equal(
        base.by_popularity(X, [USERS, ITEMS])(np.array([4, 1])), np.tile([2, 1, 1, 2, 0, 0, 0, 1, 2], (2, 1))
    )


def test_an_intercept_of_an_order_is_refused_and_left_out_by_default():
    assert not training.Setup(model="bpr").has_intercept
    reason = training.impossible_reason(training.Setup(model="bpr", intercept=True))
    assert reason == "The bpr model has no intercept, which would change no order; leave it out."


@pytest.mark.parametrize("kind", ["few ties", "many ties", "nan", "none left"])
def test_measures_of_the_first_items_are_those_of_all_of_them(kind):
    generator = np.random.default_rng(3)
    scores = generator.standard_normal((20, 1500)).astype(np.float32)
    scores = np.round(scores, 1) if kind == "many ties" else np.round(scores, 3)
    scores[generator.random(scores.shape) < (0.999 if kind == "none left" else 0.05)] = -np.inf
    if kind == "nan":
        scores[4, 7] = np.nan
    relevant = generator.random(scores.shape) < 0.003
    few = base.top_items(scores, relevant, 20)
    assert (few[0].shape[1] < 400) == (kind == "few ties" or kind == "many ties")
    for measure in (metrics.recall_at, metrics.precision_at, metrics.ndcg_at):
        np.testing.assert_equal(measure(*few, k=20), measure(scores, relevant, k=20))
