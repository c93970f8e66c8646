"""Description of how the data of a record were stored and its steps executed."""

from collections.abc import Mapping
from typing import Any

from workbench.analysis import formatting
from workbench.analysis.compare import Contest
from workbench.analysis.configurations import HELD, NUMBERED, storage_of

Record = Mapping[str, Any]

UPDATES = {"lazy": "lazy update", "exact": "exact update", "standard": "update of all rows"}
GRADIENTS = {
    "fused": "gradient fused with the update",
    "row_sparse": "gradient of the active rows",
    "dense": "dense gradient",
}
ENGINES = {
    ("dense", "cpu"): "BLAS",
    ("dense", "cuda"): "cuBLAS",
    ("vendor", "cpu"): "SciPy",
    ("vendor", "cuda"): "cuSPARSE",
}
LAUNCHES = {
    "kernels": "a step at a time",
    "graph": "each step as one CUDA graph",
    "epoch": "the epoch in one compiled call",
    "dual": "dual ascent, the epoch in one compiled call",
}


def describe(row: Record) -> str:
    """Say how the data of a row was held, and how its steps were executed.

    >>> describe({"format": "csr", "engine": "ours", "gradient": "row_sparse", "update": "lazy", "launch": "epoch",
    ...           "threads": 2, "threads_used": 2})
    'held as CSR, lazy update, the epoch in one compiled call, 2 threads'
    >>> describe({"format": "dense", "engine": "dense", "hold": "csr", "launch": "kernels", "threads": 2})
    'held as CSR and made dense a batch at a time, a step at a time by BLAS, up to 2 threads'
    """
    parts = (
        _storage_text(row),
        *_gradient_and_update_text(row),
        _execution_text(row),
        "batches prepared ahead" if row.get("ahead") else "",
        _location_text(row),
    )
    return ", ".join(filter(None, parts))


def describe_sides(contest: Contest) -> str:
    """Return how the sides of a contest were stored and executed: "Dense: .... Sparse: ...." (the sides that ran)."""
    sides = (("Dense", contest.dense), ("Sparse", contest.sparse))
    return " ".join(f"{name}: {describe(row)}." for name, row in sides if row and row["status"] in NUMBERED)


def _storage_text(row: Record) -> str:
    """Return how a record's data are stored and turned into batches, such as "held as CSR"."""
    if row["format"] != "dense":
        name = "sparse rows" if row["format"] == "row_sparse" else formatting.NAMES.get(row["format"], row["format"])
        return f"held as {name}" if row["format"] == "csr" else f"held as CSR, batches converted to {name}"
    hold = storage_of(row)
    if hold == "csr" or any(one.get("op") == "batch from csr" for one in row.get("densified") or ()):
        return "held as CSR and made dense a batch at a time"
    return "held as a dense array" if hold == HELD else f"held as {hold} and widened a batch at a time"


def _gradient_and_update_text(row: Record) -> tuple[str, ...]:
    """Return (gradient, update) of a sparse training as texts, "" for a part not worth saying; () for a dense one."""
    if row["format"] == "dense":
        return ()
    is_call = (row.get("launch") or "kernels") != "kernels"
    return (
        "" if is_call else GRADIENTS.get(row["gradient"], ""),
        UPDATES.get(row["update"], f"{row['update']} update"),
    )


def _execution_text(row: Record) -> str:
    """Return how a record was executed, such as "a step at a time by BLAS" or "the epoch in one compiled call"."""
    launch = str(row.get("launch") or "kernels")
    by = ENGINES.get((row["engine"], row.get("device") or "cpu"), "")
    return LAUNCHES.get(launch, launch) + (f" by {by}" if by and launch == "kernels" else "")


def _location_text(row: Record) -> str:
    """Return on what a record ran: "on cuda", "2 trainers", "1 thread" or "up to 2 threads"; "" if unknown.

    "up to", since BLAS decides for itself how many threads it uses.
    """
    if (row.get("device") or "cpu") != "cpu":
        return f"on {row['device']}"
    if (trainers := row.get("trainers") or 1) > 1:
        return f"{trainers} trainers"
    allowed, used = row.get("threads"), row.get("threads_used")
    if row.get("serial") or allowed == 1:
        return "1 thread"
    if used is None or (row["format"] == "dense" and (row.get("launch") or "kernels") == "kernels"):
        return f"up to {formatting.format_count(allowed, 'thread')}" if allowed else ""
    return formatting.format_count(round(used), "thread")
