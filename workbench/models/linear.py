"""Linear regression: N real outputs, half the squared error summed over the outputs."""

from workbench.metrics import r2
from workbench.models import Model, register

register(
    Model(
        "linear",
        loss="squared",
        target="numbers",
        quality_name="r2",
        quality=r2,
        predicts="numbers",
        usual_for="numbers",
    )
)
