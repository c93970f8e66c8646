"""Measures of predictions: numbers from scores and targets, of one batch or gathered over many.

`mse(scores, targets)` is the number of one batch. `create("mse")` gathers batches: over `samples`, which gives the
number of all of them as if they were one batch, or over `batches`, the mean of the batches' numbers, whatever their
sizes, which is what many programs print as the metric of an epoch.

| name            | of one batch                                                 | scores      | targets             |
|-----------------|--------------------------------------------------------------|-------------|---------------------|
| accuracy        | share of rows whose largest score is their class             | [R, N]      | [R]                 |
| binary_accuracy | share of scores on the right side of `threshold`             | any shape   | as scores, 0 and 1  |
| mse, mae, rmse  | mean squared and absolute error, root of the first           | any shape   | as scores           |
| r2              | 1 - squared error / squared deviation from the mean          | [R, N], [R] | as scores           |
| auc             | chance that a score of a 1 is above one of a 0               | any shape   | as scores, 0 and 1  |
| f1_micro        | F1 of all classes together                                   | [R, N]      | [R] or [R, N]       |
| f1_macro        | mean of the F1 of each class                                 | [R, N]      | [R] or [R, N]       |
| precision_at    | share of the `k` largest scores of a row whose target is 1   | [R, N]      | as scores, 0 and 1  |
| recall_at       | share of a row's targets of 1 among its `k` largest scores   | [R, N]      | as scores, 0 and 1  |
| ndcg_at         | discounted gain of a row's `k` largest scores, of the best   | [R, N]      | as scores, 0 or more|
| cross_entropy   | mean of -log of the probability of the class                 | [R, N]      | [R]                 |
| log_loss        | mean of -log of the probability of what came                 | any shape   | as scores, 0 and 1  |
| logit_loss      | log_loss of log odds                                         | any shape   | as scores, 0 and 1  |

Targets [R] go with scores [R, 1]; sparse targets are read as the dense array they stand for. Probabilities count as
`epsilon` at least. Gathered over samples each is that of all samples at once; `auc` keeps all scores for that, 16 bytes
each. Rows without a target above 0 play no part in the means of precision_at, recall_at and ndcg_at.

`constant_quality` is what the best answer gets that ignores the input, in terms of any of these.

>>> import numpy as np
>>> metric = create("mse", average="batches")
>>> metric.update(np.float32([1, 2]), np.float32([0, 0]))
>>> metric.update(np.float32([3]), np.float32([0]))
>>> metric.value  # (2.5 + 9) / 2; over samples it is 14 / 3
5.75
"""

from workbench.metrics.accumulate import Accumulator, Composite, Metric, create
from workbench.metrics.measures import (
    MetricError,
    accuracy,
    binary_accuracy,
    constant_quality,
    constant_scores,
    cross_entropy,
    f1_macro,
    f1_micro,
    log_loss,
    logit_loss,
    mae,
    mse,
    r2,
    rmse,
)
from workbench.metrics.ranking import auc, ndcg_at, precision_at, recall_at

__all__ = [
    "Accumulator",
    "Composite",
    "Metric",
    "MetricError",
    "accuracy",
    "auc",
    "binary_accuracy",
    "constant_quality",
    "constant_scores",
    "create",
    "cross_entropy",
    "f1_macro",
    "f1_micro",
    "log_loss",
    "logit_loss",
    "mae",
    "mse",
    "ndcg_at",
    "precision_at",
    "r2",
    "recall_at",
    "rmse",
]
