"""Softmax regression: N classes, the cross-entropy of the label."""

from workbench.models import of_classes, register

register(of_classes("softmax", predicts="classes", usual_for="classes"))
