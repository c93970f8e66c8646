"""One epoch of generated click logs whose files have twice the bytes that a process may ask for, and the same held.

Two processes train; the system refuses each of them memory above the limit (`measure.memory.limit_memory`), so that a
training that ends stayed below it. That the limit is one is shown by the second training, which holds all rows and is
refused them. Rows are read into memory, not mapped, so all that a process has of them is its own.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from workbench import data
from workbench.cluster.training import TrainingError, train
from workbench.formats.compressed import assemble
from workbench.kvstore import LazyRandomRows

# Generated rows of the shape of click logs, to train more of them than a process may hold.
#
# A row has an entry, 1, in each of 39 fields; the fields share D columns by sizes that double, and within a field small
# numbers are frequent. Labels, 0 or 1, are drawn from a logistic model whose weights are fixed by the seed. A block
# depends on the seed and its number alone.


FIELDS = 39
BLOCK_ROWS = 50_000
SKEW = 4
"""A uniform number to this power is where in its field a value stands: a quarter of all are in the first 1 / 256."""


def borders(features: int) -> np.ndarray:
    """Return the first column of each field, and the end of the last: int64 `[FIELDS + 1]`, increasing."""
    shares = 2.0 ** np.linspace(0, 12, FIELDS)
    ends = np.floor(np.cumsum(shares / shares.sum()) * (features - FIELDS)).astype(np.int64) + np.arange(1, FIELDS + 1)
    return np.concatenate([[0], ends])


def blocks(rows: int, features: int, seed: int, classes: int = 2) -> Iterator[data.RowBlock]:
    """Yield generated rows as blocks of up to `BLOCK_ROWS`: x csr float32 `[rows, features]` with ones, labels int64.

    Each row has one entry in each of `FIELDS` fields; a block depends on `seed` and its index only. Labels are 0 to
    `classes` - 1, by the sum of a row's weights and logistic noise.
    """
    starts = borders(features)
    weights = LazyRandomRows((features, 1), "float32", "normal", 0.5, seed, "click weights")
    for number, first in enumerate(range(0, rows, BLOCK_ROWS)):
        count, made = min(BLOCK_ROWS, rows - first), np.random.default_rng((seed, number))
        places = np.floor(made.random((count, FIELDS)) ** SKEW * np.diff(starts)).astype(np.int64)
        columns = (starts[:-1] + places).reshape(-1)
        unique, inverse = np.unique(columns, return_inverse=True)
        scores = weights.rows(unique)[inverse, 0].reshape(count, FIELDS).sum(axis=1)
        noise = made.random(count)
        labels = np.floor(classes / (1 + noise / (1 - noise) * np.exp(1 - scores))).astype(np.int64)
        np.minimum(labels, classes - 1, out=labels)
        indptr = np.arange(0, count * FIELDS + 1, FIELDS, dtype=np.int32)
        values = np.ones(columns.size, np.float32)
        x = assemble("csr", indptr, columns.astype(np.int32), values, (count, features))
        yield data.RowBlock(x, labels)


def write(folder: Path, rows: int, features: int = 10**6, seed: int = 0, classes: int = 2) -> int:
    """Write generated rows into the folder as a stored data set, unless it exists; return the bytes of its files.

    Click-like data of `features` columns and `classes` by `seed`. Files have no values, which are all 1: in memory rows
    take more.
    """
    if not folder.exists():
        named = data.RowBlocks(blocks(rows, features, seed, classes), "clicks", "generated", "none", features)
        data.convert(named, folder, kind="classes")
    return sum(path.stat().st_size for path in folder.rglob("*.npy"))


MODEL = "logistic"
BATCH_ROWS = 8192
PROCESSES = 2
READ_WHOLE = "whole=True"
"""The reading that holds all rows (`data.load`)."""


def names_of(rows: int) -> list[str]:
    """Return the names of the two records that `trained` yields: rows streamed, rows held."""
    return [f"{rows} rows streamed", f"{rows} rows held"]


def trained(rows: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of two trainings of one epoch on `rows` generated rows: streamed from disk, held in memory.

    Both have a memory limit of half the data's bytes for each process. Data and logs go to `folder`.
    """
    start, made = time.perf_counter(), folder / f"clicks-{rows}.sparse"
    whole = write(made, rows)
    record = {
        "part": "rows",
        "bytes_data": whole,
        "bytes_limit": whole // 2,
        "machines": PROCESSES,
        "is_measured": True,
    }
    settings = {"dataset": "sparse", "path": str(made), "model": MODEL, "width": 1, "epochs": 1}
    settings |= {"batch_rows": min(BATCH_ROWS, rows // 8), "learning_rate": 0.05}
    record["seconds_made"] = time.perf_counter() - start
    for name, reading in zip(names_of(rows), ({}, {"reading": READ_WHOLE}), strict=True):
        yield record | {"case": name, "is_held": bool(reading)} | _train_limited(settings | reading, folder, whole // 2)


def _train_limited(settings: dict[str, Any], folder: Path, limit: int) -> dict[str, Any]:
    """Train once within `limit` bytes of memory for each process; return the record columns.

    The status is "memory" if that was refused; TrainingError for other failures. Logs go to `folder`.
    """
    begun, logs = time.perf_counter(), folder / f"streamed-{time.time_ns()}"
    try:
        options: dict[str, Any] = {"steps_saved": 0, "threads": 1, "bytes_most": limit}
        answer = train(settings, PROCESSES, logs, **options)
    except TrainingError as error:
        reason = str(error).partition("\n")[0]
        if "MemoryError" not in reason:
            raise
        return {"status": "memory", "reason": reason, "seconds_all": time.perf_counter() - begun}
    peaks = {name: max(answer[name]) for name in ("bytes_resident", "bytes_asked")}
    found = {"quality": answer["qualities"]["AUC"], "rows_trained": PROCESSES * answer["rows"]}
    return peaks | found | {"seconds_all": time.perf_counter() - begun}
