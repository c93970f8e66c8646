"""Binary logistic regression: one score, the log loss of the positive class against all others."""

from workbench.metrics import auc, binary_accuracy, logit_loss
from workbench.models import Model, register

register(
    Model(
        "logistic",
        loss="logistic",
        target="binary",
        quality_name="accuracy",
        quality=binary_accuracy,
        measures={"AUC": auc, "log loss": logit_loss},
        predicts="one of two classes",
        usual_for="binary",
        widths="width 1",
        allows=lambda width: width == 1,
    )
)
