"""Softmax regression: N classes, the cross-entropy of the label."""

from workbench.metrics import accuracy
from workbench.models import Model, register

register(Model("softmax", "softmax", "accuracy", accuracy, "width 2 or more", lambda width: width >= 2))
