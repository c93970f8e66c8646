"""A tidy table of configurations: one line each, its time, memory, ratio to the best dense one, and the verdict."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from workbench.analysis import configurations
from workbench.analysis.compare import contests, ratio_between

SETTINGS = (
    *("model", "density", "format", "engine", "gradient", "update", "hold", "launch", "serial", "device", "batch_rows"),
    *("width", "threads"),
)
MEASURED = ("seconds_step", "ratio", "ratio_low", "ratio_high", "bytes_peak", "ratio_memory", "loss", "quality")
COLUMNS = (*SETTINGS, *MEASURED, "rounds", "status", "verdict", "reason", "key")
WORDS = {"sparse": "faster", "dense": "slower", "level": "equivalent", "inconclusive": "inconclusive"}
"""The verdict of a ratio dense / this configuration, in words about this one."""
Record = Mapping[str, Any]


def tidy(trials: pd.DataFrame) -> pd.DataFrame:
    """Return one line a configuration of some trials; all columns are there also if there are no trials.

    >>> from workbench import store
    >>> list(tidy(store.frame()).columns)[:3]
    ['model', 'density', 'format']
    """
    if trials.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    counts = trials[trials["status"].isin(configurations.NUMBERED)].groupby("key").size()
    lines = []
    for group in configurations.groups(trials):
        bases = {_asked(found): found.dense for found in contests(group.rows, "seconds_step")}
        lines += [_line(record, bases.get(record["density"]), counts) for record in group.rows]
    return pd.DataFrame(lines, columns=list(COLUMNS)).sort_values(["density", "seconds_step"], ignore_index=True)


def _asked(found: Any) -> float | None:
    """Return the density that was asked for, or the measured one."""
    record = found.sparse or found.dense
    return record["density"] if record else found.density


def _line(record: Record, base: Record | None, counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a configuration as a row of the tidy table, compared with the best dense one `base`."""
    line: dict[str, Any] = {name: record.get(name) for name in COLUMNS}
    line |= {
        "density": configurations.density_of(record),
        "loss": record.get("loss_last"),
        "reason": record["reason"] or "",
    }
    line["rounds"], line["status"] = int(counts.get(record["key"], 0)), record["status"]
    if record["status"] not in configurations.NUMBERED:
        return line | {"verdict": record["status"]}
    if base is None or base["status"] not in configurations.NUMBERED:
        return line | {"verdict": "no baseline"}
    if base["key"] == record["key"]:
        return line | {"ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0, "ratio_memory": 1.0, "verdict": "baseline"}
    ratio = ratio_between(base, record, "seconds_step")
    if ratio is not None:
        line |= {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
    if base["bytes_peak"] and record["bytes_peak"]:
        line["ratio_memory"] = base["bytes_peak"] / record["bytes_peak"]
    return line | {"verdict": WORDS[ratio.verdict] if ratio is not None else "inconclusive"}
