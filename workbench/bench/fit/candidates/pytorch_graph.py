"""PyTorch: graph convolution of two layers in full batches, its matrices as sparse CSR tensors (Kipf and Welling 2017).

Both layers read the whole graph in each step; the loss is of the nodes trained on. A product has its transposed matrix
ready for the gradient, made once and timed, which is faster than what autograd does with `A @ x`. The normalised
adjacency comes ready, to ours and to PyTorch alike.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kernels.competitors.torch_sparse import csr_tensor, pytorch
from workbench.bench.fit.contract import Candidate, Rows, Scorer, Value, register, settings_by_rate
from workbench.bench.fit.torch_loop import OPTIMIZERS, RIVAL
from workbench.formats.compressed import transposed
from workbench.models import glorot


@functools.cache
def product_class() -> Any:
    """Return the product of a CSR tensor and a dense one as an autograd function, once PyTorch is loaded."""
    Function: Any = pytorch().autograd.Function

    class Product(Function):
        @staticmethod
        def forward(ctx, matrix, turned, dense):
            ctx.turned = turned
            return matrix @ dense

        @staticmethod
        def backward(ctx, gradient):
            return None, None, ctx.turned @ gradient.contiguous()

    return Product


def both_ways(x: Any) -> Callable[[float], tuple[Any, Any]]:
    """Gives X csr and its transposed as tensors, without a share `rate` of the entries, drawn anew at each call."""
    torch = pytorch()
    places = x.copy()
    places.data = np.arange(x.nnz, dtype=np.float64)
    indptr, indices, order = transposed(places)
    order, values = torch.tensor(order.astype(np.int64)), torch.tensor(x.data)

    def made(rate: float) -> tuple[Any, Any]:
        kept = torch.nn.functional.dropout(values, rate)
        matrix = csr_tensor(x.indptr, x.indices, kept.numpy(), x.shape)
        return matrix, csr_tensor(indptr, indices, kept[order].numpy(), x.shape[::-1])

    return made


def features(rows: Rows) -> Any:
    """X csr of all nodes, its rows divided by their sums where the model asks for it."""
    x = rows.facts["graph"].x
    if rows.options["rows_of_x"] != "sum_1":
        return x
    sums = np.abs(x).sum(axis=1)
    scaled = x.copy()
    scaled.data /= np.repeat(np.where(sums > 0, sums, 1), np.diff(x.indptr)).astype(x.dtype)
    return scaled


def network(rows: Rows) -> tuple[Any, Callable[[bool], Any]]:
    """Return the parameters, and what gives the scores [nodes, N]; in training some entries and units are left out."""
    torch = pytorch()
    hidden, rate = rows.options["hidden"], rows.options["dropout"]
    product, x = product_class().apply, both_ways(features(rows))
    adjacency = both_ways(rows.facts["graph"].adjacency)(0.0)
    shapes = {"w": (rows.x.shape[1], hidden), "c": (hidden,), "out": (hidden, rows.width)}
    shapes |= {"b": (rows.width,)} if rows.has_intercept else {}
    held = torch.nn.ParameterDict({name: torch.nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()})
    for name in ("w", "out"):
        torch.nn.init.normal_(held[name], std=glorot(*shapes[name]))
    whole = x(0.0)

    def forward(is_training: bool) -> Any:
        read = x(rate) if is_training and rate else whole
        units = torch.relu(product(*adjacency, product(*read, held["w"])) + held["c"])
        units = torch.nn.functional.dropout(units, rate, is_training)
        found = product(*adjacency, units @ held["out"])
        return found + held["b"] if rows.has_intercept else found

    return held, forward


def steps(rows: Rows, value: Value) -> Iterator[Scorer]:
    """Yield full batches, each a point; scores are of the nodes behind those trained on."""
    torch = pytorch()
    torch.manual_seed(rows.seed)
    held, forward = network(rows)
    optimizer = getattr(torch.optim, OPTIMIZERS[value["optimizer"]])(held.parameters(), lr=value["rate"])
    y, count = torch.from_numpy(rows.y.reshape(-1).astype(np.int64)), rows.x.shape[0]

    def scores(x: Any) -> np.ndarray:
        with torch.no_grad():
            return forward(False)[count : count + x.shape[0]].numpy()

    while True:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(forward(True)[:count], y).backward()
        optimizer.step()
        yield scores


def _drawn(rows: Rows) -> str:
    """Return the note that the competitor reads all neighbours if the model samples them, else ""."""
    return "It reads all neighbours; the model draws some of them." if rows.options["neighbors"] else ""


_NAME, _MODELS = "PyTorch graph_convolution, sparse CSR", ("graph_convolution",)
register(Candidate(_NAME, models=_MODELS, values=settings_by_rate, steps=steps, why_not=_drawn, **RIVAL))
