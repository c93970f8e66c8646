"""Factorization machine of second order for yes or no: the log loss of its score (Rendle 2010, section 3.2)."""

from workbench.metrics import binary_accuracy
from workbench.models import Model, register
from workbench.models.factorization_machine import parameters, scores

register(
    Model(
        "factorization_machine_logistic",
        loss="logistic",
        target="binary",
        quality_name="accuracy",
        quality=binary_accuracy,
        scores=scores,
        parameters=parameters,
        widths="any number of factors from 1",
        outputs=1,
        width=8,
    )
)
