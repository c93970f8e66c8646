"""PyTorch: Linear on dense rows, eager and compiled; torch.sparse and EmbeddingBag on CSR rows; our layer and step."""

import os
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from workbench.advising.frameworks.training import LoopTrainer, Problem, State
from workbench.advising.frameworks.ways import register_way, why_no_dense

NEAR = 4.0
"""Factor to the fastest dense way up to which compiling is tried."""


def loss_of(torch: Any, scores: Any, labels: Any) -> Any:
    """Return the mean loss of scores [R, N]: logistic for one output, softmax cross-entropy for several.

    `labels` are class indices [R], or 0 and 1; `torch` is the module.
    """
    if scores.shape[1] == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(scores[:, 0], labels.float())
    return torch.nn.functional.cross_entropy(scores, labels)


class Model(NamedTuple):
    """A model of PyTorch with plain SGD: what it trains, what it takes for row indices, and its scores [R, N]."""

    weights: Any
    """Tensor [D, N] that shares the memory of a parameter."""
    intercept: Any
    optimizer: Any
    batch_of: Callable[[np.ndarray], tuple]
    scores: Callable[..., Any]


def dense(torch: Any, one: Problem) -> Model:
    """Return torch.nn.Linear on dense rows; `torch` is the module."""
    layer, x = torch.nn.Linear(one.features, one.outputs), torch.from_numpy(one.dense)
    optimizer = torch.optim.SGD(layer.parameters(), lr=one.rate)
    return Model(
        layer.weight.T, layer.bias, optimizer, lambda rows: (x.index_select(0, torch.from_numpy(rows)),), layer
    )


def sparse_tensor(torch: Any, one: Problem) -> Model:
    """Return a weight [D, N] with torch.sparse: the gradient is dense; `torch` is the module."""
    weights, bias = (torch.nn.Parameter(torch.zeros(shape)) for shape in ((one.features, one.outputs), one.outputs))

    def batch_of(rows: np.ndarray) -> tuple:
        """Return a tuple of one CSR tensor [R, D], the rows with these indices."""
        x = one.csr[rows]
        parts = map(torch.from_numpy, (x.indptr, x.indices, x.data))
        return (torch.sparse_csr_tensor(*parts, size=x.shape, check_invariants=False),)

    optimizer = torch.optim.SGD([weights, bias], lr=one.rate)
    return Model(weights, bias, optimizer, batch_of, lambda x: torch.sparse.mm(x, weights) + bias)


def bag(torch: Any, one: Problem) -> Model:
    """Return torch.nn.EmbeddingBag with sparse gradients, and its bias next to it; `torch` is the module."""
    table = torch.nn.EmbeddingBag(one.features, one.outputs, mode="sum", sparse=True, include_last_offset=True)
    bias = torch.nn.Parameter(torch.zeros(one.outputs))

    def batch_of(rows: np.ndarray) -> tuple:
        """Return (column indices, row offsets, values) of the rows with these indices, as tensors."""
        x = one.csr[rows]
        return tuple(map(torch.from_numpy, (x.indices, x.indptr, x.data)))

    def scores(ids: Any, offsets: Any, values: Any) -> Any:
        """Return the scores [R, N] of a batch."""
        return table(ids, offsets, per_sample_weights=values) + bias

    return Model(table.weight, bias, torch.optim.SGD([table.weight, bias], lr=one.rate), batch_of, scores)


def bridge(torch: Any, one: Problem) -> Model:
    """Return `SparseLinear` and `LazySGD` of `workbench.bridges.pytorch`, which take SciPy's rows as they are."""
    from workbench.bridges.pytorch import LazySGD, SparseLinear

    layer = SparseLinear(one.features, one.outputs)
    optimizer = LazySGD(layer.parameters(), lr=one.rate)
    return Model(layer.weight, layer.bias, optimizer, lambda rows: (one.csr[rows],), layer)


@final
class TorchTrainer(LoopTrainer):
    """A training loop with autograd of a model that `make(torch, problem)` returns."""

    def __init__(self, problem: Problem, make: Callable[[Any, Problem], Model], is_compiled: bool = False) -> None:
        """Set PyTorch's threads, make the model with all parameters zero; `is_compiled` compiles it with its loss."""
        import torch

        super().__init__(problem)
        torch.set_num_threads(problem.threads)
        self.torch, self.labels = torch, torch.from_numpy(problem.labels)
        self.model = make(torch, problem)
        self.model.weights.detach().zero_()
        self.model.intercept.detach().zero_()
        self.loss = compiled(torch, self._loss) if is_compiled else self._loss

    def _loss(self, labels: Any, *batch: Any) -> Any:
        """Return the mean loss of the model on a batch as a scalar tensor."""
        return loss_of(self.torch, self.model.scores(*batch), labels)

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in batches, in place; writes each batch's loss to `losses`."""
        size = self.problem.batch_rows
        for number in range(losses.size):
            rows = order[number * size : (number + 1) * size]
            labels = self.labels[self.torch.from_numpy(rows)]
            self.model.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(labels, *self.model.batch_of(rows))
            loss.backward()
            self.model.optimizer.step()
            losses[number] = loss.item()

    def state(self) -> State:
        """Return weights [D, N], intercept [N] and losses as NumPy arrays that share the parameters' memory."""
        return State(self.model.weights.detach().numpy(), self.model.intercept.detach().numpy(), self.losses)


def compiled(torch: Any, function: Any) -> Any:
    """Return the function compiled by `torch.compile` for fixed sizes; resets earlier compilations."""
    import torch._inductor.config as inductor

    inductor.compile_threads = 1  # a process of its own for each takes longer than compiling one function
    torch._dynamo.reset()
    return torch.compile(function, dynamic=False)


def why_not_compiled(problem: Problem) -> str:
    """Return why PyTorch cannot compile here (no C++ compiler on the path), or "" if it can; `problem` is unused."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) or shutil.which("clang++"):
        return ""
    return f"torch.compile needs a C++ compiler; there is no {compiler}."


_register = partial(register_way, "pytorch")
EAGER = "PyTorch dense, eager"
_register(EAGER, "dense", partial(TorchTrainer, make=dense), "eager", why_not=why_no_dense)
_register(
    "PyTorch dense, torch.compile",
    "dense",
    partial(TorchTrainer, make=dense, is_compiled=True),
    "compiled",
    why_not=lambda problem: why_no_dense(problem) or why_not_compiled(problem),
    like=EAGER,
    near=NEAR,
)
_register("PyTorch torch.sparse, CSR", "sparse", partial(TorchTrainer, make=sparse_tensor), "torch.sparse")
_register("PyTorch EmbeddingBag, sparse gradient", "sparse", partial(TorchTrainer, make=bag), "EmbeddingBag")
_register("SparseLinear and LazySGD", "sparse", partial(TorchTrainer, make=bridge), "bridge", side="project")
