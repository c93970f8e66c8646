"""Softmax regression: N classes, the cross-entropy of the label."""

from workbench.metrics import accuracy
from workbench.models import Model, register

register(
    Model(
        "softmax",
        loss="softmax",
        target="classes",
        quality_name="accuracy",
        quality=accuracy,
        widths="width 2 or more",
        allows=lambda width: width >= 2,
    )
)
