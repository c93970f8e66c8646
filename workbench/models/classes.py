"""Classifiers: N scores per row, N at least 2, trained by the cross-entropy of their softmax."""

from typing import Any

from workbench.metrics import accuracy, f1_macro
from workbench.models import Model


def of_classes(name: str, predicts: str, **more: Any) -> Model:
    """Return a classifier; `more` are the fields of `Model` besides loss, target, widths and quality metrics."""
    return Model(
        name,
        loss="softmax",
        target="classes",
        quality_name="accuracy",
        quality=accuracy,
        measures={"macro-F1": f1_macro},
        widths="width 2 or more",
        allows=lambda width: width >= 2,
        predicts=predicts,
        **more,
    )
