"""Factorization machine for yes or no: its score is the log odds of the positive class (Rendle 2010)."""

from dataclasses import replace

from workbench.metrics import auc, binary_accuracy, logit_loss
from workbench.models import register
from workbench.models.factorization_machine import MODEL

register(
    replace(
        MODEL,
        name="factorization_machine_classifier",
        loss="logistic",
        target="binary",
        quality_name="AUC",
        quality=auc,
        measures={"accuracy": binary_accuracy, "log loss": logit_loss},
        predicts="yes or no, by pairs of features",
    )
)
