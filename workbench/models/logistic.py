"""Binary logistic regression: one score, the log loss of the most frequent class against all others."""

from workbench.metrics import binary_accuracy
from workbench.models import Model, register

register(Model("logistic", "logistic", "accuracy", binary_accuracy, "width 1", lambda width: width == 1))
