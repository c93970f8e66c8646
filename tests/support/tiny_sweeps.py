"""Sweeps of a few trials that take no time: their specs, and the row of one trial from the process of the test."""

import math

from tests.support.clocks import until
from tests.support.sweeps import row_of_trial
from workbench.sweeps import run_folder
from workbench.sweeps.spec import Measure, Spec, validate_spec

QUICK = {"seconds_warmup": 0.0, "seconds_sample": 0.0, "trial_seconds": 0.0, "samples_least": 3, "rounds": 1}
QUICK["busy_most"] = 1.0  # results of tests are those of an idle machine whatever runs beside them
TINY = {"dataset": "uniform", "rows": 60, "features": 30, "batch_rows": 20, "threads": 1}
DENSE = {"format": "dense", "engine": "dense", "gradient": "dense", "update": "standard"}
FUSED = {"gradient": "fused"}
OUTSIDE = {"run", "experiment", "time", "round", "machine", "source", "seconds_overhead", "tries", "bounds"}
OUTSIDE |= {"process", "content"}
"""Columns that the process of a trial leaves to its supervisor."""


def spec_of(name: str = "tiny", candidates=({}, DENSE), measure=QUICK, limits=None, **axes) -> Spec:
    return validate_spec(
        {
            "name": name,
            "axes": {**TINY, **axes},
            "candidates": list(candidates),
            "measure": measure,
            "limits": limits or {},
        }
    )


def finish(folder) -> run_folder.Progress:
    """How the run ended."""
    until(lambda: run_folder.read_progress(folder).over)
    return run_folder.read_progress(folder)


def trial_row(bytes_limit: int = 2**34, seconds_limit: float = math.inf, **configuration) -> dict:
    request = {"cell": {**TINY, **configuration}, "measure": Measure(**QUICK).model_dump(), "bytes_limit": bytes_limit}
    return row_of_trial(request | {"seconds_limit": seconds_limit})
