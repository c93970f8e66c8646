"""Dense rows for competitors: the same training, on X as a dense array, if that takes few enough bytes.

What is good for dense loops of ours is good for those of others: on data of few columns a dense array may be the faster
input of a library, and some libraries learn better from it (scikit-learn's SGD slows the intercept of sparse rows).
Each training of a competitor that can take dense rows has a second candidate with them, tried with as many settings;
the faster of the two counts. Making the dense array is timed, as it is for ours.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from workbench.bench.fit.contract import Contender, Rows, Scorer, Value, register

DENSE_MOST = 16
"""Bytes of X dense by those of X csr up to which competitors try dense rows: a density of about 3 % in float32."""


def bytes_csr(rows: Rows) -> int:
    """Bytes of X csr."""
    return rows.x.data.nbytes + rows.x.indices.nbytes + rows.x.indptr.nbytes


def why_too_sparse(rows: Rows) -> str:
    """Reason why no competitor tries these rows dense, or ""."""
    times = rows.bytes_dense / max(bytes_csr(rows), 1)
    if times <= DENSE_MOST:
        return ""
    return f"X dense takes {times:,.0f} times the bytes of CSR; competitors try it up to {DENSE_MOST} times."


def densified(rows: Rows, dtype: str) -> Rows:
    """The rows with X as a dense array [R, D] of a type, C order."""
    return replace(rows, x=rows.x.toarray().astype(dtype, copy=False))


def register_both(contender: Contender, dtype: str = "float32") -> None:
    """Register a training of a competitor, and the same with dense rows of a type."""
    register(contender)
    register(of_dense_rows(contender, dtype))


def of_dense_rows(contender: Contender, dtype: str = "float32") -> Contender:
    """The candidate that trains as this one does, on dense rows of a type."""
    steps, refit = contender.steps, contender.refit

    def dense_steps(rows: Rows, value: Value) -> Iterator[Scorer]:
        assert steps is not None
        yield from steps(densified(rows, dtype), value)

    def dense_refit(rows: Rows, value: Value, iterations: int) -> tuple[Scorer, bool]:
        assert refit is not None
        return refit(densified(rows, dtype), value, iterations)

    return replace(
        contender,
        name=f"{contender.name}, dense rows",
        steps=dense_steps if steps else None,
        refit=dense_refit if refit else None,
        bytes_needed=lambda rows: (
            rows.bytes_dense * np.dtype(dtype).itemsize // rows.x.dtype.itemsize + contender.bytes_needed(rows)
        ),
        why_not=lambda rows: contender.why_not(rows) or why_too_sparse(rows),
    )
