"""Binary logistic regression: one score, the log loss of the positive class against all others."""

from workbench.metrics import binary_accuracy
from workbench.models import Model, register

register(
    Model(
        "logistic",
        loss="logistic",
        target="binary",
        quality_name="accuracy",
        quality=binary_accuracy,
        widths="width 1",
        allows=lambda width: width == 1,
    )
)
