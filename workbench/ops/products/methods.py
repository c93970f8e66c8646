"""The table of the products: which kernel computes X @ Y for these formats of X and Y and of the result."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import kernels
from kernels.plan import BatchPlan
from workbench import formats
from workbench.ops.contract import Rule, Shape
from workbench.ops.products import calls
from workbench.ops.products.blocks import block_of
from workbench.ops.products.calls import ProductCall

ENGINES = ("ours", "vendor", "dense")
RESULTS = ("dense", "row_sparse", "csr")
SPARSE = ("csr", "csc", "coo")
BLOCKS = ("dense", "row_sparse")


def default_result(x: str, y: str, transpose_a: bool, transpose_b: bool) -> str:
    """Return the format of a product for which none is requested."""
    if x in SPARSE and y in SPARSE:
        return "csr"
    if x in SPARSE:
        return "row_sparse" if transpose_a and not transpose_b else "dense"
    return "csr" if x == "dense" and y in SPARSE and not transpose_a else "dense"


@dataclass(frozen=True)
class Method:
    """One row of the table: X in format `x`, transposed or not, times Y in format `y`, by `kernel` through `call`."""

    x: str
    y: str
    transpose_a: bool
    result: str
    kernel: str
    call: ProductCall
    engines: tuple[str, ...] = ("ours",)
    plan: bool = False
    direct: Callable | None = None
    """What computes two plain arrays straight into `out`, without the parts that other formats need."""

    def fits(self, shapes: Sequence[Shape], params: Mapping[str, Any]) -> bool:
        """Return whether these parameters select this method."""
        ta, tb = bool(params["transpose_a"]), bool(params["transpose_b"])
        usual = default_result(self.x, self.y, ta, tb) if params["engine"] == "ours" else "dense"
        form = params["result"] or usual
        return ta == self.transpose_a and form == self.result and params["engine"] in self.engines

    @property
    def condition(self) -> str:
        """The parameters that select the method, as text."""
        defaults = [default_result(self.x, self.y, self.transpose_a, tb) == self.result for tb in (False, True)]
        words = "" if all(defaults) else f"result={self.result}"
        if any(defaults) and words:
            words += f", the default {'without' if defaults[0] else 'with'} transpose_b"
        x = "transpose_a" if self.transpose_a else "no transpose_a"
        if self.engines == ("vendor",):
            return f"{x}, engine=vendor"
        return ", ".join(filter(None, (x, words)))

    def __call__(
        self,
        x: Any,
        y: Any,
        *,
        out: np.ndarray | None = None,
        plan: BatchPlan | None = None,
        transpose_a: bool = False,
        transpose_b: bool = False,
        result: str | None = None,
        engine: str = "",
    ) -> Any:
        """Compute the product; `out` for dense results, `plan` the batch plan of X for methods that read one."""
        if self.direct and out is not None and y.ndim == 2 and not transpose_b:
            return self.direct(x, y, out)
        columns = None if out is None else out[:, None] if y.ndim == 1 else out
        product = self.call(
            kernels.get(self.kernel).trusted,
            x,
            self._other(as_matrix(y), transpose_b),
            self.transpose_a,
            self.result,
            columns,
            plan,
        )
        if out is not None and self.result == "dense":
            return out
        return _flat(product) if y.ndim == 1 else product

    def bind(
        self, x: np.ndarray, y: np.ndarray, *, out: np.ndarray, transpose_b: bool = False, **params: Any
    ) -> Callable[[], Any] | None:
        """Return a call without arguments that multiplies these arrays into `out`; None unless the method has a
        direct call.
        """
        if self.direct is None or y.ndim != 2 or transpose_b:
            return None
        return partial(self.direct, x, y, out)

    def _other(self, y: Any, transposed: bool) -> Any:
        """Return Y as `call` takes it: a Block, (matrix, transposed) or a dense matrix."""
        if self.y in SPARSE:
            return y, transposed
        if self.y == "row_sparse" or self.x in BLOCKS:
            return block_of(y, transposed)
        return calls.turned(y, transposed)

    def rule(self) -> Rule:
        """Return the method as a rule of the operator `dot`."""
        return Rule(
            (self.x, self.y),
            self.result,
            self,
            self.kernel,
            self.fits,
            self.condition,
            plan=self.plan,
            bind=self.bind if self.direct else None,
        )


def as_matrix(y: Any) -> Any:
    """Return a dense or row_sparse vector as a column over the same memory; a matrix is returned as it is."""
    if y.ndim != 1:
        return y
    if isinstance(y, np.ndarray):
        return y[:, None]
    return formats.RowSparse.assemble(y.values[:, None], y.indices, (*y.shape, 1))


def _flat(product: Any) -> Any:
    """Return the only column of a product as a vector."""
    if isinstance(product, np.ndarray):
        return product[:, 0]
    return formats.RowSparse.assemble(product.values[:, 0], product.indices, product.shape[:1])


BLAS = ("dense", "ours")
WITH_DENSE = (
    Method("dense", "dense", False, "dense", "blas.dense_dense", calls.blocks, BLAS, direct=np.matmul),
    Method("dense", "dense", True, "dense", "blas.dense_t_dense", calls.blocks, BLAS, direct=calls.transposed),
    Method("csr", "dense", False, "dense", "csr_dense", calls.compressed),
    Method("csc", "dense", False, "dense", "csc_dense", calls.compressed),
    Method("coo", "dense", False, "dense", "coo_dense", calls.coordinates),
    Method("csr", "dense", True, "dense", "csr_t_dense_full", calls.compressed),
    Method("csc", "dense", True, "dense", "csr_dense", calls.compressed),
    Method("coo", "dense", True, "dense", "coo_dense", calls.coordinates),
    Method("csr", "dense", True, "row_sparse", "csr_t_dense", calls.planned, plan=True),
    Method("coo", "dense", True, "row_sparse", "csr_t_dense", calls.planned, plan=True),
    Method("csc", "dense", True, "row_sparse", "csr_dense", calls.filled),
    Method("csr", "dense", True, "csr", "csr_t_dense", calls.planned, plan=True),
    Method("coo", "dense", True, "csr", "csr_t_dense", calls.planned, plan=True),
    Method("csc", "dense", True, "csr", "csr_dense", calls.filled),
    *(Method(x, "dense", False, result, "csr_dense", calls.filled) for x in SPARSE for result in ("row_sparse", "csr")),
)
"""Y dense, by our kernels and by BLAS."""

VENDOR = ("vendor",)
BY_SCIPY = (
    Method("csr", "dense", False, "dense", "scipy.csr_dense", calls.compressed, VENDOR),
    Method("csc", "dense", False, "dense", "scipy.csc_dense", calls.compressed, VENDOR),
    Method("coo", "dense", False, "dense", "scipy.coo_dense", calls.coordinates, VENDOR),
    Method("csr", "dense", True, "dense", "scipy.csr_t_dense_full", calls.compressed, VENDOR),
    Method("csc", "dense", True, "dense", "scipy.csr_dense", calls.compressed, VENDOR),
    Method("coo", "dense", True, "dense", "scipy.coo_dense", calls.coordinates, VENDOR),
)


def _family(
    left: Sequence[str], right: Sequence[str], kernel: Callable[[bool, str], str], call: ProductCall
) -> list[Method]:
    """Return methods for all pairs of formats, X transposed or not, and all results; `kernel(transpose_a, result)`
    names the kernel.
    """
    return [
        Method(x, y, transpose_a, result, kernel(transpose_a, result), call)
        for x, y, transpose_a, result in itertools.product(left, right, (False, True), RESULTS)
    ]


def _blas(transpose_a: bool, result: str) -> str:
    """Return the name of the BLAS kernel."""
    return "blas.dense_t_dense" if transpose_a else "blas.dense_dense"


METHODS = (
    *WITH_DENSE,
    *BY_SCIPY,
    *_family(SPARSE, ("row_sparse",), lambda transpose_a, result: "csr_dense", calls.sparse_block),
    *_family(BLOCKS, SPARSE, lambda _, result: "csr_t_dense" if result == "csr" else "dense_csr", calls.block_sparse),
    *(m for m in _family(BLOCKS, BLOCKS, _blas, calls.blocks) if (m.x, m.y, m.result) != ("dense",) * 3),
    *_family(
        SPARSE, SPARSE, lambda _, result: "csr_csr_dense" if result == "dense" else "csr_csr", calls.sparse_sparse
    ),
)
"""The first method that fits is taken."""
