"""Softmax regression: N classes, the cross-entropy of the label."""

from workbench.metrics import accuracy, f1_macro
from workbench.models import Model, register

register(
    Model(
        "softmax",
        loss="softmax",
        target="classes",
        quality_name="accuracy",
        quality=accuracy,
        measures={"macro-F1": f1_macro},
        predicts="classes",
        widths="width 2 or more",
        allows=lambda width: width >= 2,
    )
)
