"""How good predictions are: numbers from scores and targets, of one batch or gathered over many.

`mse(scores, targets)` is the number of one batch. `create("mse")` gathers batches: over `samples`, which gives the
number of all of them as if they were one batch, or over `batches`, the mean of the batches' numbers, whatever their
sizes, which is what many programs print as the metric of an epoch.

| name            | of one batch                                                 | scores      | targets             |
|-----------------|--------------------------------------------------------------|-------------|---------------------|
| accuracy        | share of rows whose largest score is their class             | [R, N]      | [R]                 |
| binary_accuracy | share of scores on the right side of `threshold`             | any shape   | as scores, 0 and 1  |
| mse, mae, rmse  | mean squared and absolute error, root of the first           | any shape   | as scores           |
| r2              | 1 - squared error / squared deviation from the mean          | [R, N], [R] | as scores           |
| cross_entropy   | mean of -log of the probability of the class                 | [R, N]      | [R]                 |
| log_loss        | mean of -log of the probability of what came                 | any shape   | as scores, 0 and 1  |

Targets [R] go with scores [R, 1]; sparse targets are read as the dense array they stand for. Probabilities count as
`epsilon` at least.

`constant_quality` is what the best answer gets that ignores the input, in terms of any of these.

>>> import numpy as np
>>> metric = create("mse", average="batches")
>>> metric.update(np.float32([1, 2]), np.float32([0, 0]))
>>> metric.update(np.float32([3]), np.float32([0]))
>>> metric.value  # (2.5 + 9) / 2; over samples it is 14 / 3
5.75
"""

from workbench.metrics.accumulate import Accumulator, Composite, Metric, create
from workbench.metrics.constant import constant_quality, constant_scores
from workbench.metrics.measures import (
    MetricError,
    accuracy,
    binary_accuracy,
    cross_entropy,
    log_loss,
    mae,
    mse,
    r2,
    rmse,
)

__all__ = [
    "Accumulator",
    "Composite",
    "Metric",
    "MetricError",
    "accuracy",
    "binary_accuracy",
    "constant_quality",
    "constant_scores",
    "create",
    "cross_entropy",
    "log_loss",
    "mae",
    "mse",
    "r2",
    "rmse",
]
