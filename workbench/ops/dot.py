"""dot: X @ W and X.T @ G, X in any format. `RULES` is dispatch, documentation and the list of tests in one.

A rule says: for X in this format, transposed or not, with this result format and engine, this kernel computes it. The
engines are `ours` (the kernels of this project), `vendor` (SciPy) and `dense` (BLAS). Where no rule exists the product
is refused with the rules there are; nothing is ever made dense on the way.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import kernels
from kernels.plan import BatchPlan, build, build_coo
from workbench import formats

ENGINES = ("ours", "vendor", "dense")


class NoRuleError(LookupError):
    """No rule computes this product; the message lists what there is for the operand's format."""


@dataclass(frozen=True)
class Rule:
    """One row of the table: `dot` of X in format `x`, transposed or not, gives `result`, by `kernel` through `call`."""

    x: str
    transposed: bool
    result: str
    engine: str
    kernel: str
    call: Callable
    plan: bool = False
    """Whether the call reads a batch plan."""


def _compressed(kernel, x, w, out, plan):
    kernel(x.indptr, x.indices, x.data, w, out)
    return out


def _coordinates(kernel, x, w, out, plan):
    kernel(*_row_col(x), x.data, w, out)
    return out


def _coordinates_t(kernel, x, g, out, plan):
    row, col = _row_col(x)
    kernel(col, row, x.data, g, out)
    return out


def _row_col(x) -> tuple[np.ndarray, np.ndarray]:
    return x.coords[0], x.coords[1]


def _dense(kernel, x, w, out, plan):
    kernel(x, w, out)
    return out


def _stored_rows(kernel, x, w, out, plan):
    product = np.empty((len(x.indices), w.shape[1]), w.dtype)  # [stored, N]
    kernel(x.values, w, product)
    out[...] = 0
    out[x.indices] = product
    return out


def _stored_rows_t(kernel, x, g, out, plan):
    kernel(x.values, g[x.indices], out)
    return out


def _planned(kernel, x, g, out, plan):
    values = np.empty((plan.touched, g.shape[1]), g.dtype)  # [U, N]
    kernel(plan.segments, plan.rows, plan.permutation, x.data, g, values)
    return formats.RowSparse.assemble(values, plan.columns, (x.shape[1], g.shape[1]))


def _filled_columns(kernel, x, g, out, plan):
    """A CSC matrix is the CSR form of its transpose; its filled columns are the touched ones."""
    columns = np.flatnonzero(np.diff(x.indptr))
    starts = np.append(x.indptr[columns], x.indptr[-1]).astype(x.indptr.dtype)  # [U + 1]
    values = np.empty((columns.size, g.shape[1]), g.dtype)  # [U, N]
    kernel(starts, x.indices, x.data, g, values)
    return formats.RowSparse.assemble(values, columns, (x.shape[1], g.shape[1]))


RULES = (
    Rule("dense", False, "dense", "dense", "blas.dense_dense", _dense),
    Rule("csr", False, "dense", "ours", "csr_dense", _compressed),
    Rule("csc", False, "dense", "ours", "csc_dense", _compressed),
    Rule("coo", False, "dense", "ours", "coo_dense", _coordinates),
    Rule("row_sparse", False, "dense", "ours", "blas.dense_dense", _stored_rows),
    Rule("csr", False, "dense", "vendor", "scipy.csr_dense", _compressed),
    Rule("csc", False, "dense", "vendor", "scipy.csc_dense", _compressed),
    Rule("coo", False, "dense", "vendor", "scipy.coo_dense", _coordinates),
    Rule("dense", True, "dense", "dense", "blas.dense_t_dense", _dense),
    Rule("csr", True, "dense", "ours", "csr_t_dense_full", _compressed),
    Rule("csc", True, "dense", "ours", "csr_dense", _compressed),
    Rule("coo", True, "dense", "ours", "coo_dense", _coordinates_t),
    Rule("row_sparse", True, "dense", "ours", "blas.dense_t_dense", _stored_rows_t),
    Rule("csr", True, "dense", "vendor", "scipy.csr_t_dense_full", _compressed),
    Rule("csc", True, "dense", "vendor", "scipy.csr_dense", _compressed),
    Rule("coo", True, "dense", "vendor", "scipy.coo_dense", _coordinates_t),
    Rule("csr", True, "row_sparse", "ours", "csr_t_dense", _planned, plan=True),
    Rule("coo", True, "row_sparse", "ours", "csr_t_dense", _planned, plan=True),
    Rule("csc", True, "row_sparse", "ours", "csr_dense", _filled_columns),
)
_TABLE = {(rule.x, rule.transposed, rule.result, rule.engine): rule for rule in RULES}


def rule(x: str, transposed: bool, result: str = "dense", engine: str = "ours") -> Rule:
    """The rule for X in format `x`; `NoRuleError` when there is none, with those there are."""
    found = _TABLE.get((x, transposed, result, engine))
    if found is None:
        what = "X.T @ G" if transposed else "X @ W"
        known = [f"{r.result} by {r.engine}" for r in RULES if (r.x, r.transposed) == (x, transposed)]
        raise NoRuleError(
            f"No rule computes {what} as {result} by engine {engine!r} for X in format {x!r}; "
            f"there is: {', '.join(known) or 'nothing'}."
        )
    return found


def default_engine(x: str) -> str:
    """The engine that computes with the format's own kernels: dense for dense, ours for the others."""
    return "dense" if x == "dense" else "ours"


def make_plan(x) -> BatchPlan:
    """The batch plan of X in CSR or COO form: what the row_sparse gradient reads. O(nnz)."""
    if formats.format_of(x) == "coo":
        return build_coo(*_row_col(x), x.shape)
    return build(x.indptr, x.indices, x.shape[1])


def dot(x, w: np.ndarray, *, out: np.ndarray | None = None, engine: str | None = None) -> np.ndarray:
    """X @ W: X [R, D] in any format, W [D, N] of the same dtype; returns `out` [R, N], new where not given.

    `engine` is ours, vendor or dense; left out, it is what the format's own kernel is. Raises `NoRuleError`, and
    `kernels.KernelError` for shapes or types that do not fit.
    """
    kind = formats.format_of(x)
    chosen = rule(kind, False, engine=engine or default_engine(kind))
    if out is None:
        out = np.empty((x.shape[0], w.shape[1]), w.dtype)
    return chosen.call(kernels.get(chosen.kernel).cpu, x, w, out, None)


def dot_t(
    x,
    g: np.ndarray,
    *,
    result: str = "dense",
    out: np.ndarray | None = None,
    plan: BatchPlan | None = None,
    engine: str | None = None,
) -> np.ndarray | formats.RowSparse:
    """X.T @ G: X [R, D], G [R, N]; dense [D, N] (in `out` where given) or row_sparse over the touched columns.

    `plan` is the batch plan of X; where a rule reads one and none is given, it is built.
    """
    kind = formats.format_of(x)
    chosen = rule(kind, True, result, engine or default_engine(kind))
    if chosen.plan and plan is None:
        plan = make_plan(x)
    if result == "dense" and out is None:
        out = np.empty((x.shape[1], g.shape[1]), g.dtype)
    return chosen.call(kernels.get(chosen.kernel).cpu, x, g, out, plan)
