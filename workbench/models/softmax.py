"""Softmax regression: N classes, the cross-entropy of the label."""

from workbench.models import register
from workbench.models.classes import of_classes

register(of_classes("softmax", predicts="classes", usual_for="classes"))
