"""Metrics: against scikit-learn, in batches of any cut, with the averaging that they say they have."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as reference

from workbench import metrics
from workbench.metrics import Composite, Metric, MetricError, create

RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 3, 37)
PROBABILITIES = RNG.dirichlet(np.ones(3), 37)
TARGETS, SCORES = RNG.standard_normal((2, 37, 2))
BINARY, CHANCES = (RNG.random((37, 1)) < 0.4).astype(np.float32), RNG.random((37, 1))
ITEMS = RNG.standard_normal((37, 15)).round(1)
RELEVANT = (RNG.random((37, 15)) < 0.2) & (np.arange(37) % 5 > 0)[:, None]
GRADES = RELEVANT * RNG.integers(1, 4, RELEVANT.shape)
SOME = RELEVANT.any(axis=1)


def by_every_order(share) -> float:
    """`share(relevant items among the first 10, relevant items)` of each row, where ties come in a random order."""
    rng, rows = np.random.default_rng(0), []
    for scores, relevant in zip(ITEMS[SOME], RELEVANT[SOME], strict=True):
        orders = (np.lexsort((rng.random(15), -scores))[:10] for _ in range(4000))
        rows.append(np.mean([share(relevant[order].sum(), relevant.sum()) for order in orders]))
    return float(np.mean(rows))


CASES = {
    "accuracy": (PROBABILITIES, LABELS, reference.accuracy_score(LABELS, PROBABILITIES.argmax(1))),
    "cross_entropy": (PROBABILITIES, LABELS, reference.log_loss(LABELS, PROBABILITIES)),
    "mse": (SCORES, TARGETS, reference.mean_squared_error(TARGETS, SCORES)),
    "mae": (SCORES, TARGETS, reference.mean_absolute_error(TARGETS, SCORES)),
    "rmse": (SCORES, TARGETS, reference.root_mean_squared_error(TARGETS.ravel(), SCORES.ravel())),
    "r2": (SCORES, TARGETS, reference.r2_score(TARGETS, SCORES, multioutput="variance_weighted")),
    "log_loss": (CHANCES, BINARY, reference.log_loss(BINARY, CHANCES)),
    "logit_loss": (np.log(CHANCES / (1 - CHANCES)), BINARY, reference.log_loss(BINARY, CHANCES)),
    "binary_accuracy": (CHANCES - 0.5, BINARY, reference.accuracy_score(BINARY, CHANCES > 0.5)),
    "auc": (CHANCES.round(1), BINARY, reference.roc_auc_score(BINARY, CHANCES.round(1))),
    "f1_micro": (ITEMS, RELEVANT, reference.f1_score(RELEVANT, ITEMS > 0, average="micro")),
    "f1_macro": (PROBABILITIES, LABELS, reference.f1_score(LABELS, PROBABILITIES.argmax(1), average="macro")),
    "ndcg_at": (ITEMS, GRADES, reference.ndcg_score(GRADES[SOME], ITEMS[SOME], k=10)),
    "precision_at": (ITEMS, RELEVANT, metrics.precision_at(ITEMS, RELEVANT)),
    "recall_at": (ITEMS, RELEVANT, metrics.recall_at(ITEMS, RELEVANT)),
}


def gathered(metric: Metric, scores, targets, cuts) -> float:
    for part in np.split(np.arange(len(scores)), cuts):
        metric.update(scores[part], targets[part])
    return metric.value


def test_every_metric_has_a_case():
    assert set(CASES) == set(metrics.KINDS)


@pytest.mark.parametrize("name", CASES)
def test_the_function_is_that_of_scikit_learn(name):
    scores, targets, expected = CASES[name]
    assert getattr(metrics, name)(scores, targets) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cuts", [[], [1], [10, 20, 30], [5, 5, 36]])
def test_over_samples_the_cut_does_not_matter(name, cuts):
    scores, targets, expected = CASES[name]
    assert gathered(create(name), scores, targets, cuts) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_over_batches_it_is_the_mean_of_the_functions_values(name):
    scores, targets, expected = CASES[name]
    function = getattr(metrics, name)
    mean = np.mean([function(scores[part], targets[part]) for part in (slice(5), slice(5, 37))])
    value = gathered(create(name, average="batches"), scores, targets, [5])
    assert value == pytest.approx(mean, rel=1e-12)
    assert value != pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("average", ["samples", "batches"])
def test_before_the_first_batch_it_is_nan_and_again_after_a_reset(name, average):
    scores, targets, _ = CASES[name]
    metric = create(name, average)
    assert np.isnan(metric.value)
    metric.update(scores[:0], targets[:0])
    assert np.isnan(metric.value)
    metric.update(scores, targets)
    assert not np.isnan(metric.value)
    metric.reset()
    assert np.isnan(metric.value)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("average", ["samples", "batches"])
@pytest.mark.parametrize("seen", [0, 1, 20])
def test_a_metric_stopped_and_taken_up_again_has_the_same_bits(name, average, seen):
    scores, targets, _ = CASES[name]
    through, stopped, again = (create(name, average) for _ in range(3))
    for part in (slice(0, seen), slice(seen, 31), slice(31, 37)):
        through.update(scores[part], targets[part])
    stopped.update(scores[:seen], targets[:seen])
    again.load_state_dict(stopped.state_dict())
    for part in (slice(seen, 31), slice(31, 37)):
        again.update(scores[part], targets[part])
    np.testing.assert_equal(again.value, through.value)  # NaN for r2 of a batch of one row


def test_r2_of_targets_far_from_zero_loses_nothing():
    targets = 1e8 + RNG.standard_normal(400)
    scores = targets + 0.1 * RNG.standard_normal(400)
    value = gathered(create("r2"), scores, targets, list(range(7, 400, 7)))
    assert value == pytest.approx(reference.r2_score(targets, scores), rel=1e-9)
    assert np.isnan(metrics.r2(np.ones(3), np.ones(3)))


def test_float32_batches_are_summed_in_float64():
    metric = create("mae")
    for _ in range(3000):
        metric.update(np.full(1000, 0.1, np.float32), np.zeros(1000, np.float32))
    assert metric.value == pytest.approx(float(np.float32(0.1)), rel=1e-12)


def test_targets_may_be_flat_or_sparse():
    scores = np.float32([[1], [2], [0]])
    assert metrics.mse(scores, np.float32([1, 0, 0])) == pytest.approx(4 / 3)
    assert metrics.mse(scores, sp.csr_array(np.float32([[1], [0], [0]]))) == pytest.approx(4 / 3)
    assert metrics.accuracy(PROBABILITIES, LABELS[:, None].astype(np.float32)) == metrics.accuracy(
        PROBABILITIES, LABELS
    )


def test_options_change_the_value():
    assert metrics.binary_accuracy(CHANCES, BINARY, threshold=0.5) != metrics.binary_accuracy(CHANCES, BINARY)
    metric = create("binary_accuracy", threshold=0.5)
    metric.update(CHANCES, BINARY)
    assert metric.value == metrics.binary_accuracy(CHANCES, BINARY, threshold=0.5)
    assert metrics.log_loss(np.zeros(1), np.ones(1), epsilon=np.exp(-3)) == pytest.approx(3)
    assert metrics.cross_entropy(np.eye(2), [1, 0] @ np.eye(2), epsilon=np.exp(-3)) == pytest.approx(3)


def test_infinities_and_nan_come_through_without_a_warning():
    assert metrics.mse(np.array([np.inf, 1]), np.zeros(2)) == np.inf
    assert np.isnan(metrics.mse(np.array([np.inf, 1]), np.array([np.inf, 1])))
    assert np.isnan(metrics.mae(np.array([np.nan, 1]), np.zeros(2)))


def test_several_metrics_are_gathered_together():
    both = create(["mse", Metric("mae", "batches")], average="samples")
    assert isinstance(both, Composite)
    both.update(SCORES, TARGETS)
    assert both.value == {"mse": metrics.mse(SCORES, TARGETS), "mae": metrics.mae(SCORES, TARGETS)}
    assert set(both.state_dict()) == {"mse over samples", "mae over batches"}
    again = create(["mse", Metric("mae", "batches")])
    again.load_state_dict(both.state_dict())
    assert again.value == both.value
    both.reset()
    assert all(np.isnan(value) for value in both.value.values())
    assert create(both) is both


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: create("f1"),
            "Unknown metric 'f1'.*Expected one of: accuracy, auc, binary_accuracy, cross_entropy, f1_macro",
        ),
        (lambda: create("mse", "epochs"), "average is 'epochs'; it is one of samples, batches"),
        (lambda: create("mse", threshold=1), r"mse has no option \['threshold'\]; its options are \[\]"),
        (lambda: create([]), "one or more metrics"),
        (lambda: create(["mse", "mse"]), r"each once; these came: \['mse', 'mse'\]"),
        (
            lambda: metrics.mse(np.ones((3, 2)), np.ones((2, 3))),
            r"Scores \(3, 2\) need targets of the same shape; \(2, 3",
        ),
        (
            lambda: metrics.accuracy(np.ones((2, 3)), np.array([0, 3])),
            r"labels\[1\] is 3; they are class numbers, 0 to 2",
        ),
        (lambda: metrics.accuracy(np.ones((2, 3)), np.array([0, 0.5])), r"labels\[1\] is 0.5"),
        (lambda: metrics.accuracy(np.ones((2, 3)), np.array([np.nan, 0])), r"labels\[0\] is nan"),
        (lambda: metrics.accuracy(np.ones(2), np.ones(2)), r"need labels \[R\]; scores \(2,\)"),
        (lambda: metrics.mse(np.array(["a"]), np.ones(1)), "are numbers; <U1 came"),
        (lambda: metrics.recall_at(ITEMS, RELEVANT, k=0), "k is 0; it is how many items come first"),
        (lambda: metrics.ndcg_at(ITEMS, RELEVANT, k=2.5), "k is 2.5; it is how many"),
        (lambda: metrics.precision_at(np.ones(3), np.ones(3)), r"need targets \[R, N\]; \(3,\) and \(3,\) came"),
        (lambda: metrics.ndcg_at(ITEMS, GRADES - 1), "A target is -1; gains are 0 or more"),
        (lambda: metrics.f1_macro(PROBABILITIES, LABELS + 1), r"are class numbers, 0 to 2"),
        (lambda: metrics.auc(np.ones((3, 2)), np.ones((2, 3))), "need targets of the same shape"),
        (lambda: create("mse").load_state_dict({"mae over samples": np.zeros(2)}), "this metric is 'mse over samples'"),
        (lambda: create(["mse", "mae"]).load_state_dict({}), r"these metrics are \['mae over samples', 'mse over"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(call, message):
    with pytest.raises(MetricError, match=message):
        call()
