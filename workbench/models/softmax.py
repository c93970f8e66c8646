"""Softmax regression: N classes, the cross-entropy of the label."""

import numpy as np

from workbench.models import of_classes, register

register(of_classes("softmax", predicts="classes", usual_for="classes"))


def log_sigmoids(scores: np.ndarray) -> np.ndarray:
    """Return log(1 / (1 + exp(-scores))) elementwise: of scores [rows, classes], each of a class against the rest.

    Their softmax are the sigmoids divided by their sum, also where all of these are too small for their dtype.

    >>> log_sigmoids(np.array([0.0, -1000.0])).tolist()
    [-0.6931471805599453, -1000.0]
    """
    return -np.logaddexp(0, -scores)
