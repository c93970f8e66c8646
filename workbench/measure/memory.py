"""Memory three ways: predicted by formula, held by our arrays, peak of the process; and what there is to use."""

import ctypes
import gc
import re
import resource
import sys
from pathlib import Path

import psutil

from workbench import formats

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")


def _status_bytes(field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB", STATUS.read_text(), re.M)
    if match is None:
        raise OSError(f"{STATUS} has no field {field}; this kernel does not report it.")
    return int(match.group(1)) * 1024


def resident_bytes() -> int:
    """Bytes of this process that are in memory now."""
    return psutil.Process().memory_info().rss


def give_back() -> None:
    """Return memory that Python and the C library hold but do not use, where the system has a call for it."""
    gc.collect()
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def reset_peak() -> bool:
    """Start the peak anew from what is in use now; False where the system cannot (then the peak is since birth)."""
    give_back()
    try:
        CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


def peak_bytes() -> int:
    """Most bytes of this process that were in memory at once, since `reset_peak`."""
    if STATUS.exists():
        return _status_bytes("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def available_bytes() -> int:
    """Bytes that can be taken without swapping, within this process's control group where it has a limit."""
    available = psutil.virtual_memory().available
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and (most := limit.read_text().strip()) != "max":
        available = min(available, int(most) - int(used.read_text()))
    return available


def limit_address_space(more: int) -> None:
    """Refuse allocations that would take this process more than `more` bytes beyond its address space now.

    They raise `MemoryError`. Where the system keeps no such figure nothing is limited; the parent still watches.
    """
    if not STATUS.exists():
        return
    soft = _status_bytes("VmSize") + more
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def predicted_training_bytes(
    *,
    format: str,
    rows: int,
    features: int,
    nnz: int,
    width: int,
    batch_rows: int,
    states: int,
    states_by_row: bool = False,
    gradient: str,
    update: str,
    dtype: str,
    touched: int,
    shuffle: bool,
) -> dict[str, int]:
    """Bytes of each part of a training by formula, from R, z, D, N, U and the type alone.

    Parts: data (dense data is held dense; csc and coo batches are made from CSR), batch (its slice, conversion and
    plan), weights, states (of the optimizer, and what rows have missed), gradient (full [D, N], or [U, N] rows),
    scores (and their slope).
    """
    value = 8 if dtype == "float64" else 4
    batches, batch_nnz = max(rows / batch_rows, 1.0), nnz * min(batch_rows / max(rows, 1), 1.0)
    held = "dense" if format == "dense" else "csr"
    batch = formats.predicted_bytes(format, min(batch_rows, rows), features, int(batch_nnz), dtype, "int32")
    own = 0 if format == held and not shuffle else batch
    plan = int((8 + value) * batch_nnz + 12 * touched) if gradient != "dense" and format in ("csr", "coo") else 0
    full = features * width * value
    rows_only = touched * (width * value + 8)
    return {
        "data": formats.predicted_bytes(held, rows, features, nnz, dtype, "int32"),
        "batch": int((own + plan) * (1 if shuffle else batches)),
        "weights": full,
        "states": states * (features * value if states_by_row else full) + (8 * features if update == "exact" else 0),
        "gradient": (full if gradient == "dense" or update == "standard" else 0)
        + (rows_only if gradient == "row_sparse" else 0),
        "scores": 2 * batch_rows * width * value,
    }
