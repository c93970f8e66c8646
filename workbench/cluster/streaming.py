"""One epoch of generated rows whose files have twice the bytes that a process may ask for, and the same with rows held.

Two processes train; the system refuses each of them memory above the limit (`measure.memory.limited`), so that a
training that ends stayed below it. That the limit is one is shown by the second training, which holds all rows and is
refused them. Rows are read into memory, not mapped, so all that a process has of them is its own.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.cluster import clicks
from workbench.cluster.team import TeamError
from workbench.cluster.training import train

MODEL = "logistic"
BATCH_ROWS = 8192
PROCESSES = 2
HELD = "whole=True"
"""The reading that holds all rows (`data.load`)."""


def names_of(rows: int) -> list[str]:
    """Names of the two rows of the table."""
    return [f"{rows} rows streamed", f"{rows} rows held"]


def trained(rows: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Columns of the training that streams and of the one that holds its rows; the folder gets the data and logs."""
    start, made = time.perf_counter(), folder / f"clicks-{rows}.sparse"
    whole = clicks.write(made, rows)
    told = {"part": "rows", "bytes_data": whole, "bytes_limit": whole // 2, "machines": PROCESSES, "is_measured": True}
    settings = {"dataset": "sparse", "path": str(made), "model": MODEL, "width": 1, "epochs": 1}
    settings |= {"batch_rows": min(BATCH_ROWS, rows // 8), "learning_rate": 0.05}
    told["seconds_made"] = time.perf_counter() - start
    for name, reading in zip(names_of(rows), ({}, {"reading": HELD}), strict=True):
        yield told | {"what": name, "is_held": bool(reading)} | _trained(settings | reading, folder, whole // 2)


def _trained(settings: dict[str, Any], folder: Path, limit: int) -> dict[str, Any]:
    """One training, or how it was refused memory."""
    begun, logs = time.perf_counter(), folder / f"streamed-{time.time_ns()}"
    try:
        options: dict[str, Any] = {"steps_saved": 0, "threads": 1, "bytes_most": limit}
        answer = train(f"local:{PROCESSES}", settings, PROCESSES, logs, **options)
    except TeamError as error:
        reason = str(error).partition("\n")[0]
        if "MemoryError" not in reason:
            raise
        return {"status": "memory", "reason": reason, "seconds_all": time.perf_counter() - begun}
    assert answer is not None  # nobody stops it
    peaks = {name: max(answer[name]) for name in ("bytes_resident", "bytes_asked")}
    found = {"quality": answer["qualities"]["AUC"], "rows_trained": PROCESSES * answer["rows"]}
    return peaks | found | {"seconds_all": time.perf_counter() - begun}
