"""Trials that train nothing: their rows have the times of the laws of `rows`, so all sweeps of them have one answer."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.support import rows as maker
from workbench.sweeps.spec import Cell
from workbench.sweeps.trial import settings_of


def answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The row of a trial, undisturbed."""
    cell = Cell(**request["cell"])
    law = maker.DENSE if cell.format == "dense" else maker.SPARSE
    samples = np.full(3, law.seconds(cell.density))
    measured = maker.measured(law, cell.density, samples, law.bytes(cell.density))
    of_runner = ("machine", "versions", "source", "seconds_overhead", "tries")
    kept = {name: value for name, value in measured.items() if name not in of_runner}
    yield {**settings_of(cell), **kept, "busy_others": 0.0, "status": "ok", "reason": ""}
