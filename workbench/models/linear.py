"""Linear regression: N real outputs, half the squared error summed over the outputs."""

from workbench.metrics import r2
from workbench.models import Model, register

register(Model("linear", "squared", "r2", r2, "any width from 1", lambda width: width >= 1))
