"""Memory three ways: predicted by formula, held by our arrays, peak of the process; and what there is to use.

Of a process two numbers are reported. What is resident has pages of mapped files in it, such as data larger than
memory, which the system takes back when it likes. What is owned has not: it is what a training needs, but for rows in
memory that come from the cache of data, which are mapped and counted by `mapped_bytes`.
"""

import contextlib
import gc
import mmap
import re
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kernels import reused
from workbench import formats
from workbench.heap import release_heap

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
GROUP = Path("/sys/fs/cgroup")
"""The control group of this process, as a container sees it."""


def _status_bytes(pid: int | None = None) -> dict[str, int]:
    """Return {field: bytes} of the sizes in /proc/PID/status, of this process if `pid` is None.

    {} on systems without that file.
    """
    path = STATUS if pid is None else Path(f"/proc/{pid}/status")
    text = path.read_text() if path.exists() else ""
    return {name: int(size) * 1024 for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.M)}


def resident_bytes() -> int:
    """Return the resident bytes of this process now, pages of mapped files included."""
    import psutil

    return psutil.Process().memory_info().rss


def counted_memory_kind() -> str:
    """Return what `owned_bytes` counts: "anonymous", or "resident" if the system does not distinguish."""
    return "anonymous" if "RssAnon" in _status_bytes() else "resident"


def owned_bytes(pid: int | None = None) -> int:
    """Return the bytes of anonymous memory (RssAnon) of a process, by default this one; pages of files do not count.

    All resident memory if the system does not distinguish. Raises psutil.NoSuchProcess for an ended process.
    """
    try:
        status = _status_bytes(pid)
    except (FileNotFoundError, ProcessLookupError):
        status = {}
    if "RssAnon" in status:
        return status["RssAnon"]
    import psutil

    return psutil.Process(pid).memory_info().rss


def mapped_bytes(x: Any) -> int:
    """Return the bytes of a matrix's arrays that are mapped from files, which no count of owned memory has.

    `x` is a NumPy array, a SciPy sparse array or matrix, or None, which has 0.
    """
    arrays = [x] if isinstance(x, np.ndarray) else [getattr(x, name, None) for name in ("data", "indices", "indptr")]
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray) and _is_mapped(array))


def _is_mapped(array: np.ndarray) -> bool:
    """Return whether the memory of an array is that of a mapped file."""
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.obj if isinstance(owner, memoryview) else owner.base
    return isinstance(owner, mmap.mmap)


def return_memory() -> None:
    """Collect garbage, release blocks kept for reuse by this thread, and return free memory to the system.

    The last needs a call of the C library; without it, its allocator keeps that memory.
    """
    gc.collect()
    reused.forget()
    release_heap()


def reset_peak() -> bool:
    """Give unused memory back to the system and reset the peak of resident memory to the current value.

    Returns False if the system has no such reset, else True.
    """
    return_memory()
    try:
        CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


def peak_bytes() -> int:
    """Return the most bytes of this process resident at once since `reset_peak`, pages of files included."""
    if "VmHWM" in (status := _status_bytes()):
        return status["VmHWM"]
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def peak_owned_bytes() -> int:
    """Return an estimate of the most owned bytes of this process at once since `reset_peak`.

    It is the peak of all resident memory less the pages of files that are there now, since the system has no peak of
    owned memory. Pages of files come one by one and stay, so the peak has the latest of them; if the system has taken
    some back since, this is too much by these. It is the peak of all if the system does not distinguish.
    """
    status = _status_bytes()
    if not {"VmHWM", "RssAnon"} <= status.keys():
        return peak_bytes()
    return max(status["VmHWM"] - status["RssFile"] - status["RssShmem"], status["RssAnon"])


def asked_bytes() -> int:
    """Return the bytes of virtual memory for data (VmData) that this process has requested; 0 if unknown."""
    return _status_bytes().get("VmData", 0)


@contextlib.contextmanager
def limit_memory(bytes_most: int | None) -> Iterator[None]:
    """Limit the data memory of this process to `bytes_most` within the context, None for no limit.

    Allocating more raises MemoryError, as does entering if more is requested already.
    """
    if bytes_most is None:
        yield
        return
    if (asked := asked_bytes()) >= bytes_most:
        raise MemoryError(f"The process asked for {asked} bytes before it began; the limit is {bytes_most}.")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (bytes_most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def total_bytes() -> int:
    """Return the memory of the machine in bytes, or the limit of this process's control group if that is smaller."""
    import psutil

    total, most = psutil.virtual_memory().total, _group_limit()
    return total if most is None else min(total, most)


def available_bytes() -> int:
    """Return the bytes that this process can allocate without swapping, within the limit of its control group.

    Cached files count as free.
    """
    import psutil

    available = psutil.virtual_memory().available
    if (most := _group_limit()) is None:
        return available
    kept = dict(re.findall(r"^(active_file|inactive_file) (\d+)$", (GROUP / "memory.stat").read_text(), re.M))
    used = int((GROUP / "memory.current").read_text()) - sum(map(int, kept.values()))
    return min(available, max(most - used, 0))


def _group_limit() -> int | None:
    """Return the memory limit of this process's control group in bytes; None if there is none."""
    limit = GROUP / "memory.max"
    most = limit.read_text().strip() if limit.exists() else "max"
    return None if most == "max" else int(most)


class Table(NamedTuple):
    """The sizes of a parameter: `rows` of `columns` numbers, and the format of its gradient.

    The rows of a `touched` one belong to the features. `outputs` is what a batch has of it where that is not a number a
    column; `bytes_pattern` are those of a pattern, and of what it is copied to.
    """

    rows: int
    columns: int
    touched: bool
    gradient: str
    outputs: int | None = None
    bytes_pattern: int = 0


def predicted_training_bytes(
    *,
    format: str,
    rows: int,
    features: int,
    nnz: int,
    tables: Sequence[Table],
    batch_rows: int,
    states: int,
    states_by_row: bool = False,
    update: str,
    dtype: str,
    active: int,
    shuffle: bool,
    storage: str = "same",
    ahead: bool = False,
) -> dict[str, int]:
    """Predict the bytes of each part of a training, {part: bytes}, by formula from sizes and dtype alone.

    `active` is the number of active columns of a batch, `states` the number of optimizer states, `tables` are the
    parameters, `format` and `storage` say how the data is stored, `ahead` that two batches are in memory. Parts: data,
    batch (slice, conversion, column index), weights, states, gradient, scores.
    """
    value = 8 if dtype == "float64" else 4
    batches, batch_nnz = max(rows / batch_rows, 1.0), nnz * min(batch_rows / max(rows, 1), 1.0)
    stored, stored_dtype = _storage_of(format, storage, dtype)
    keeps = storage == "same" and not shuffle
    batch = formats.predicted_bytes(format, min(batch_rows, rows), features, int(batch_nnz), dtype, "int32")
    own = 0 if format == stored and keeps else batch
    plan = _plan_bytes(format, tables, batch_nnz, active, value)
    numbers = sum(table.rows * (1 if states_by_row else table.columns) for table in tables)
    missed = sum(8 * table.rows for table in tables if update == "exact" and table.touched)
    return {
        "data": formats.predicted_bytes(stored, rows, features, nnz, stored_dtype, "int32"),
        "batch": int((own + plan) * (batches if keeps else 1 + ahead)),
        "weights": sum(table.rows * table.columns * value + table.bytes_pattern for table in tables),
        "states": states * numbers * value + missed,
        "gradient": sum(_gradient_bytes(table, update, active, value) for table in tables),
        "scores": 2 * batch_rows * sum(table.outputs or table.columns for table in tables) * value,
    }


def _storage_of(format: str, storage: str, dtype: str) -> tuple[str, str]:
    """Return (format, dtype name) in which the data is stored during training.

    The arguments are the settings `format`, `storage` and `dtype`; `storage` may itself be a data type such as "uint8".
    """
    stored = "dense" if format == "dense" and storage != "csr" else "csr"
    return stored, dtype if storage in ("same", "csr") else storage


def _plan_bytes(format: str, tables: Sequence[Table], entries: float, active: int, value: int) -> int:
    """Return the bytes of the column index of a batch; 0 if no gradient reads one.

    The batch has `entries` stored entries and `active` active columns; `value` is the bytes of a value. One is made
    for csr and coo batches if a parameter's gradient is not dense.
    """
    is_planned = format in ("csr", "coo") and any(table.gradient != "dense" for table in tables)
    return int((8 + value) * entries + 12 * active) if is_planned else 0


def _gradient_bytes(table: Table, update: str, active: int, value: int) -> int:
    """Return the bytes of a parameter's gradient: dense, row-sparse, or both if a dense update spreads active rows.

    `active` is the number of active rows, `value` the bytes of a value.
    """
    whole = table.rows * table.columns * value if table.gradient == "dense" or update == "standard" else 0
    return whole + (active * (table.columns * value + 8) if table.gradient == "row_sparse" else 0)
