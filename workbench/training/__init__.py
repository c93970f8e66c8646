"""The one training loop: a generator of step events, with a time for each phase of every step.

>>> from workbench import data, training
>>> made = data.load("uniform", rows=64, features=32, density=0.1, classes=3, seed=0)
>>> setup = training.Setup(model="softmax", format="csr", gradient="row_sparse", update="lazy", batch_rows=16)
>>> run = training.Run(setup, made.x, made.y, width=3)
>>> [event.step for event in run.events(epochs=1)]
[1, 2, 3, 4]
"""

from collections.abc import Mapping
from typing import Any

from workbench.training.run import Run
from workbench.training.setup import Setup, SetupError, impossible_reason
from workbench.training.training import PHASES, PhaseTimer, Prepared, StepEvent, Training

__all__ = [
    "PHASES",
    "PhaseTimer",
    "Prepared",
    "Run",
    "Setup",
    "SetupError",
    "StepEvent",
    "Training",
    "impossible_reason",
    "make_run",
]


def make_run(setup: Setup, x: Any, y: Any, width: int, facts: Mapping[str, Any] | None = None) -> Training:
    """Return the training of a setup on rows x and targets y: a `Run` on CPU, a `DeviceRun` on CUDA.

    CUDA libraries are imported only then (ImportError without them). `facts` are those of the data that the model
    needs. Raises SetupError or ModelError for what does not go together.
    """
    if setup.device == "cpu":
        return Run(setup, x, y, width, facts)
    from workbench.training.device import DeviceRun

    return DeviceRun(setup, x, y, width)
