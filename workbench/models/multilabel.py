"""Multilabel logistic regression: N scores, each the log odds of one label."""

from workbench.metrics import auc, f1_macro, f1_micro
from workbench.models import Model, register

register(
    Model(
        "multilabel",
        loss="logistic",
        target="multilabel",
        quality_name="micro-F1",
        quality=f1_micro,
        measures={"macro-F1": f1_macro, "AUC": auc},
        predicts="several classes a row",
        usual_for="multilabel",
    )
)
