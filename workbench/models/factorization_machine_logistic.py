"""Factorization machine of second order for binary labels: the log loss of its score (Rendle 2010, section 3.2)."""

from workbench.metrics import auc, binary_accuracy, logit_loss
from workbench.models import Model, register
from workbench.models.factorization_machine import enter_scaling, leave_scaling, parameters, scores

register(
    Model(
        "factorization_machine_logistic",
        loss="logistic",
        target="binary",
        quality_name="accuracy",
        quality=binary_accuracy,
        measures={"AUC": auc, "log loss": logit_loss},
        predicts="one of two classes, by pairs of features",
        scores=scores,
        parameters=parameters,
        widths="any number of factors from 1",
        outputs=1,
        width=8,
        enter_scaling=enter_scaling,
        leave_scaling=leave_scaling,
    )
)
