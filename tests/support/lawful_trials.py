"""Trials that train nothing: their rows have the times of the laws of `rows`, so all sweeps of them have one answer."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.support import rows as maker
from workbench.sweeps.spec import Configuration
from workbench.sweeps.trial import settings_of


def answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row of a trial, undisturbed."""
    configuration = Configuration(**request["cell"])
    law = maker.DENSE if configuration.format == "dense" else maker.SPARSE
    samples = np.full(3, law.seconds(configuration.density))
    measured = maker.measured(law, configuration.density, samples, law.bytes(configuration.density))
    of_runner = ("machine", "versions", "source", "seconds_overhead", "tries")
    kept = {name: value for name, value in measured.items() if name not in of_runner}
    yield {**settings_of(configuration), **kept, "busy_others": 0.0, "status": "ok", "reason": ""}
