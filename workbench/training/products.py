"""Products of a batch on a device: X @ W and X.T @ G, for each format and engine that trains there."""

from collections.abc import Callable
from typing import Any

import numpy as np

import kernels
from kernels.gpu import indices
from kernels.gpu.row_sums import Lengths
from kernels.products import csr_dense
from kernels.sessions import Session
from workbench.training.setup import Setup

Product = Callable[[tuple, Any, Any, Lengths], None]
"""`product(arrays of X, other, out, what is known of the entries of rows of X)`."""

CUSPARSE = {"scipy.csr_dense": "cusparse.csr_dense", "scipy.csr_t_dense_full": "cusparse.csr_t_dense_full"}
"""The vendor's kernels on a CUDA device in the place of those on the CPU."""


def choose_products(setup: Setup, session: Session) -> tuple[Product, Product]:
    """Return the forward product and the one of a dense gradient for a setup."""
    if setup.format == "dense":
        return _by_blas(session, False), _by_blas(session, True)
    forward, backward = _kernel_by_name(setup.forward_rule.kernel), _kernel_by_name(setup.gradient_rule.kernel)
    if setup.format == "coo":
        return lambda x, w, out, _: forward(*x, w, out), lambda x, g, out, _: backward(x[1], x[0], x[2], g, out)
    if setup.forward_rule.kernel == "csr_dense":
        return lambda x, w, out, lengths: csr_dense.on_device(*x, w, out, lengths), _of_csr(backward)
    return _of_csr(forward), _of_csr(backward)


def _of_csr(product: Callable[..., None]) -> Product:
    """Return a product (x, other, out, lengths) that calls a CSR kernel."""
    return lambda x, other, out, _: product(*x, other, out)


def _by_blas(session: Session, transposed: bool) -> Product:
    """Return a product (x, other, out, lengths) of dense x by the session's BLAS, x transposed if asked."""
    return lambda x, other, out, _: session.matmul(x[0], other, out, transposed)


def _kernel_by_name(kernel: str) -> Callable[..., None]:
    """Return the CUDA implementation of a kernel, or of its cuSPARSE competitor by the engine's name for it."""
    return kernels.get(CUSPARSE.get(kernel, kernel)).gpu


def coordinates(indptr: Any, columns: Any, values: Any) -> tuple[Any, Any, Any]:
    """Return the arrays (row, col, data) of a CSR batch in COO form; columns and values stay where they are."""
    return indices.rows_of(indptr, columns.size, np.dtype(columns.dtype)), columns, values
