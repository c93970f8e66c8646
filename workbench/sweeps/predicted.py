"""Prediction of a trial before it runs: seconds of a step by the sizes of a batch, bytes by formula.

The coefficients of the seconds were fitted (Lawson and Hanson 1974, non-negative least squares of relative errors) on
the 64 configurations of `results/amd-epyc-2-cores-4b22/bench-fair.jsonl`: 64 to 16,384 columns, 1 to 4,096 rows a
batch, 1 to 64 outputs, 0.1 to 60 % density. With each configuration left out of such a fit in turn, the logarithm of
its ratio dense / sparse, both in epochs, is off by a standard deviation of 0.38 (standard update) and 0.41 (lazy),
1.4 at most; for sparse steps one by one by 0.59. `posterior.Noise.predicted`, 0.7, allows for other machines and
structure, which were not measured.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench import data, models, optimizers
from workbench.measure import machine
from workbench.sweeps.grid import predicted_bytes, setup_of
from workbench.sweeps.problem import Problem, columns_of_data
from workbench.sweeps.spec import Cell

NOT_MEASURED = "The time was out before it was measured."


class _Cost(NamedTuple):
    """Seconds of a step, of each row, stored entry, product of an entry and an output, and weight that is stepped."""

    step: float
    row: float
    entry: float
    product: float
    weight: float
    made_dense: float = 0.0
    """Seconds of a stored entry that is made dense."""


DENSE = {
    ("epoch", "format"): _Cost(2.0e-7, 8.9e-8, 2.3e-10, 5.2e-11, 1.9e-10),
    ("epoch", "csr"): _Cost(2.8e-7, 9.6e-8, 1.0e-10, 5.9e-11, 1.9e-10, 1.7e-9),
    ("kernels", "format"): _Cost(6e-5, 1.9e-7, 7.9e-10, 5.0e-11, 2.6e-9),
    ("kernels", "csr"): _Cost(7e-5, 3.5e-7, 4.4e-10, 4.9e-11, 2.3e-9, 1.7e-9),
}
"""Dense candidates by launch and hold; their entries are all places of a batch."""
SPARSE = {
    ("epoch", "lazy"): _Cost(2.0e-7, 8.5e-8, 1.7e-9, 3.1e-10, 3.0e-9),
    ("epoch", "standard"): _Cost(1.7e-7, 9.0e-8, 1.7e-9, 3.2e-10, 4.5e-9),
    ("kernels", "lazy"): _Cost(2.3e-4, 2.6e-7, 3.8e-9, 3.2e-10, 5.9e-8),
}
"""Sparse candidates by launch and update; others are taken for the one that is alike in the launch."""


def seconds_of(cell: Cell, sizes: Mapping[str, Any]) -> float | None:
    """Return predicted seconds of a step of a configuration; None if no formula is known for its device, launch or
    model.

    `sizes` has features, width, nnz_batch, touched and rows_trained, as `columns_of_data` gives them.
    """
    is_known = cell.device == "cpu" and cell.trainers == 1 and cell.launch in ("epoch", "kernels")
    if not is_known or not models.get(cell.model).is_product:
        return None
    rows, outputs = min(cell.batch_rows, sizes["rows_trained"]), sizes["width"]
    states = 1 + len(optimizers.get(cell.optimizer).states)
    if cell.format == "dense":
        cost = DENSE[cell.launch, "format" if cell.hold == "format" else "csr"]
        entries, weights = rows * sizes["features"], sizes["features"]
    else:
        cost = SPARSE.get((cell.launch, cell.update)) or SPARSE[cell.launch, "lazy"]
        entries, weights = sizes["nnz_batch"], sizes["touched"]
        if cell.update == "standard":
            weights = max(weights, sizes["features"] / 10)  # untouched rows are stepped in one run over memory
    return (
        cost.step
        + cost.row * rows
        + entries * (cost.entry + cost.product * outputs)
        + cost.weight * weights * outputs * (states + 1) / 2
        + cost.made_dense * sizes["nnz_batch"]
    )


def planned_row(cell: Cell, problem: Problem, bytes_limit: float = math.inf) -> dict[str, Any]:
    """Return the columns of a configuration that was not measured: its sizes, predicted seconds and bytes; for
    configurations of the CPU.

    The status is memory where its arrays need more than `bytes_limit`, else skipped.
    """
    sizes = columns_of_data(problem, cell, setup_of(cell))
    row = sizes | {"machine": machine.machine_id(), "seconds_predicted": seconds_of(cell, sizes)}
    stored = isinstance(problem.x, data.StoredRows)
    parts = predicted_bytes(
        cell,
        rows=problem.x.shape[0],
        features=problem.x.shape[1],
        nnz=problem.x.nnz,
        width=problem.width,
        facts=problem.facts,
        touched=int(sizes["touched"]),
        stored=stored,
    )
    if stored:
        parts["data"] = data.StoredBatches(problem.x, problem.y, cell.batch_rows, shuffle=cell.shuffle).nbytes
    row["bytes_predicted"] = needed = sum(parts.values())
    if needed > bytes_limit:
        return row | unfit(parts, "", bytes_limit) | {"status": "memory"}
    return row | {"status": "skipped", "reason": NOT_MEASURED}


def unfit(parts: Mapping[str, int], where: str, limit: float) -> dict[str, Any]:
    """Return reason, bytes_needed and bytes_limit of a configuration whose parts are more than the limit."""
    needed, largest = sum(parts.values()), max(parts, key=lambda name: parts[name])
    reason = f"Needs {needed} bytes {where}({largest}: {parts[largest]}); the limit is {int(limit)}."
    return {"reason": reason, "bytes_needed": needed, "bytes_limit": int(limit)}
