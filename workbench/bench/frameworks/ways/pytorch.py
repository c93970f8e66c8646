"""PyTorch: Linear on dense rows, eager and compiled; torch.sparse and EmbeddingBag on CSR rows; our layer and step."""

from abc import abstractmethod
from functools import partial
from typing import Any, final

import numpy as np

from workbench.bench.fair.competitors import LoopTrainer
from workbench.bench.fair.competitors.pytorch import why_not_compiled
from workbench.bench.fair.configurations import Problem, State
from workbench.bench.frameworks.ways import register_way, why_no_dense

NEAR = 4.0
"""Factor to the fastest dense way up to which compiling is tried."""


def loss_of(torch: Any, scores: Any, labels: Any) -> Any:
    """Return the mean loss of scores [R, N]: logistic for one output, softmax cross-entropy for several.

    `labels` are class indices [R], or 0 and 1; `torch` is the module.
    """
    if scores.shape[1] == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(scores[:, 0], labels.float())
    return torch.nn.functional.cross_entropy(scores, labels)


class TorchTrainer(LoopTrainer):
    """A training loop with autograd: `batch_of(rows)` gives what the model takes, and `optimizer` steps it."""

    def __init__(self, problem: Problem) -> None:
        """Set PyTorch's threads, make model and optimizer, and set all parameters to zero."""
        import torch

        super().__init__(problem)
        torch.set_num_threads(problem.threads)
        self.torch = torch
        self.labels = torch.from_numpy(problem.labels)
        self.model, self.optimizer = self.make()
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()

    @abstractmethod
    def make(self) -> tuple[Any, Any]:
        """Return (model, optimizer) for the problem."""

    @abstractmethod
    def batch_of(self, rows: np.ndarray) -> tuple:
        """Return the arguments of the model for these row indices."""

    def parameters(self) -> list[Any]:
        """Return [weights, intercept], the tensors that the optimizer changes."""
        return list(self.model.parameters())

    def loss(self, labels: Any, *batch: Any) -> Any:
        """Return the mean loss of the model on a batch as a scalar tensor."""
        return loss_of(self.torch, self.model(*batch), labels)

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in batches, in place; writes each batch's loss to `losses`."""
        size = self.problem.batch_rows
        for number in range(losses.size):
            rows = order[number * size : (number + 1) * size]
            labels = self.labels[self.torch.from_numpy(rows)]
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(labels, *self.batch_of(rows))
            loss.backward()
            self.optimizer.step()
            losses[number] = loss.item()

    def state(self) -> State:
        """Return weights [D, N], intercept [N] and losses as NumPy arrays that share the parameters' memory."""
        weight, bias = (parameter.detach().numpy() for parameter in self.parameters())
        return State(self.turned(weight), bias, self.losses)

    def turned(self, weight: np.ndarray) -> np.ndarray:
        """Return the model's weight as [D, N]; here its transpose."""
        return weight.T


@final
class Dense(TorchTrainer):
    """torch.nn.Linear on dense rows; `is_compiled` has model and loss compiled."""

    def __init__(self, problem: Problem, is_compiled: bool) -> None:
        """Share the dense rows as a tensor, and compile model and loss if `is_compiled`."""
        super().__init__(problem)
        self.x = self.torch.from_numpy(problem.dense)
        self.step = self._compiled() if is_compiled else super().loss

    def _compiled(self) -> Any:
        """Return the loss function compiled by `torch.compile` for fixed sizes; resets earlier compilations."""
        import torch._inductor.config as inductor

        inductor.compile_threads = 1
        self.torch._dynamo.reset()
        plain = super().loss
        return self.torch.compile(lambda labels, batch: plain(labels, batch), dynamic=False)

    def make(self) -> tuple[Any, Any]:
        """Return (linear layer, plain SGD)."""
        model = self.torch.nn.Linear(self.problem.features, self.problem.outputs)
        return model, self.torch.optim.SGD(model.parameters(), lr=self.problem.rate)

    def batch_of(self, rows: np.ndarray) -> tuple:
        """Return a tuple of one dense tensor [R, D], the rows with these indices."""
        return (self.x.index_select(0, self.torch.from_numpy(rows)),)

    def loss(self, labels: Any, *batch: Any) -> Any:
        """Return the mean loss of a batch, by the compiled function if there is one."""
        return self.step(labels, *batch)


@final
class SparseTensor(TorchTrainer):
    """A weight [D, N] with torch.sparse: the gradient is dense."""

    def make(self) -> tuple[Any, Any]:
        """Return ([weight [D, N], bias [N]], plain SGD), parameters at zero."""
        torch, one = self.torch, self.problem
        parameters = [
            torch.nn.Parameter(torch.zeros(one.features, one.outputs)),
            torch.nn.Parameter(torch.zeros(one.outputs)),
        ]
        return parameters, torch.optim.SGD(parameters, lr=one.rate)

    def parameters(self) -> list[Any]:
        """Return [weights, intercept], the tensors that the optimizer changes."""
        return self.model

    def turned(self, weight: np.ndarray) -> np.ndarray:
        """Return the weight unchanged, since it is stored as [D, N]."""
        return weight

    def batch_of(self, rows: np.ndarray) -> tuple:
        """Return a tuple of one CSR tensor [R, D], the rows with these indices."""
        x = self.problem.csr[rows]
        parts = map(self.torch.from_numpy, (x.indptr, x.indices, x.data))
        return (self.torch.sparse_csr_tensor(*parts, size=x.shape, check_invariants=False),)

    def loss(self, labels: Any, *batch: Any) -> Any:
        """Return the mean loss of a batch as a scalar tensor."""
        weight, bias = self.model
        return loss_of(self.torch, self.torch.sparse.mm(batch[0], weight) + bias, labels)


@final
class Bag(TorchTrainer):
    """torch.nn.EmbeddingBag with sparse gradients, and its bias next to it."""

    def make(self) -> tuple[Any, Any]:
        """Return ((EmbeddingBag with sparse gradient, bias [N]), plain SGD)."""
        torch, one = self.torch, self.problem
        bag = torch.nn.EmbeddingBag(one.features, one.outputs, mode="sum", sparse=True, include_last_offset=True)
        bias = torch.nn.Parameter(torch.zeros(one.outputs))
        return (bag, bias), torch.optim.SGD([*bag.parameters(), bias], lr=one.rate)

    def parameters(self) -> list[Any]:
        """Return [weights, intercept], the tensors that the optimizer changes."""
        bag, bias = self.model
        return [bag.weight, bias]

    def turned(self, weight: np.ndarray) -> np.ndarray:
        """Return the weight unchanged, since it is stored as [D, N]."""
        return weight

    def batch_of(self, rows: np.ndarray) -> tuple:
        """Return (column indices, row offsets, values) of the rows with these indices, as tensors."""
        x = self.problem.csr[rows]
        return tuple(map(self.torch.from_numpy, (x.indices, x.indptr, x.data)))

    def loss(self, labels: Any, *batch: Any) -> Any:
        """Return the mean loss of a batch as a scalar tensor."""
        (bag, bias), (ids, offsets, values) = self.model, batch
        return loss_of(self.torch, bag(ids, offsets, per_sample_weights=values) + bias, labels)


@final
class Bridge(TorchTrainer):
    """`SparseLinear` and `LazySGD` of `workbench.bridges.pytorch`."""

    def make(self) -> tuple[Any, Any]:
        """Return (`SparseLinear`, `LazySGD`) of this project's bridge."""
        from workbench.bridges.pytorch import LazySGD, SparseLinear

        model = SparseLinear(self.problem.features, self.problem.outputs)
        return model, LazySGD(model.parameters(), lr=self.problem.rate)

    def turned(self, weight: np.ndarray) -> np.ndarray:
        """Return the weight unchanged, since it is stored as [D, N]."""
        return weight

    def batch_of(self, rows: np.ndarray) -> tuple:
        """Return a tuple of one SciPy CSR matrix, which the layer takes as it is."""
        return (self.problem.csr[rows],)


LOOP = """\
for epoch in range(epochs):
    for rows in torch.randperm({rows}).split({batch}):
        optimizer.zero_grad()
        {batch_of}
        {loss}
        loss.backward()
        optimizer.step()"""
LOSSES = {
    True: "loss = torch.nn.functional.binary_cross_entropy_with_logits(scores[:, 0], y[rows].float())",
    False: "loss = torch.nn.functional.cross_entropy(scores, y[rows])",
}


def _lines(before: str, batch_of: str, problem: Problem) -> str:
    """Return the Python code to paste for a way, from its setup `before` and its batch line `batch_of`."""
    one = problem
    sizes = {"features": one.features, "outputs": one.outputs, "rate": f"{one.rate:.3g}"}
    loop = LOOP.format(rows="len(y)", batch=one.batch_rows, batch_of=batch_of, loss=LOSSES[one.outputs == 1])
    return f"import torch\n{before.format(**sizes)}\ny = torch.as_tensor(y)\n{loop}"


DENSE = """\
model = torch.nn.Linear({features}, {outputs})
optimizer = torch.optim.SGD(model.parameters(), lr={rate})
x = torch.from_numpy(x.toarray())"""
COMPILED = DENSE.replace(
    "torch.nn.Linear({features}, {outputs})", "torch.compile(torch.nn.Linear({features}, {outputs}))"
)
SPARSE = """\
weight = torch.nn.Parameter(torch.zeros({features}, {outputs}))
bias = torch.nn.Parameter(torch.zeros({outputs}))
optimizer = torch.optim.SGD([weight, bias], lr={rate})"""
BAG = """\
bag = torch.nn.EmbeddingBag({features}, {outputs}, mode="sum", sparse=True, include_last_offset=True)
bias = torch.nn.Parameter(torch.zeros({outputs}))
optimizer = torch.optim.SGD([bag.weight, bias], lr={rate})"""
OURS = """\
from workbench.bridges.pytorch import LazySGD, SparseLinear

model = SparseLinear({features}, {outputs})
optimizer = LazySGD(model.parameters(), lr={rate})"""
OF_SPARSE = (
    "part = x[rows.numpy()]; part = torch.sparse_csr_tensor(*map(torch.from_numpy, (part.indptr, part.indices, "
    "part.data)), size=part.shape, check_invariants=False)\n        scores = torch.sparse.mm(part, weight) + bias"
)
OF_BAG = (
    "part = x[rows.numpy()]; ids, offsets, values = map(torch.from_numpy, (part.indices, part.indptr, part.data))\n"
    "        scores = bag(ids, offsets, per_sample_weights=values) + bias"
)


def why_not_compiled_dense(problem: Problem) -> str:
    """Return why the dense model cannot be compiled here (no dense rows, no compiler), or "" if it can."""
    return why_no_dense(problem) or why_not_compiled(problem)


_register = partial(register_way, "pytorch")
EAGER = "PyTorch dense, eager"
_register(
    EAGER,
    "dense",
    partial(Dense, is_compiled=False),
    partial(_lines, DENSE, "scores = model(x[rows])"),
    why_not=why_no_dense,
)
_register(
    "PyTorch dense, torch.compile",
    "dense",
    partial(Dense, is_compiled=True),
    partial(_lines, COMPILED, "scores = model(x[rows])"),
    why_not=why_not_compiled_dense,
    like=EAGER,
    near=NEAR,
)
_register("PyTorch torch.sparse, CSR", "sparse", SparseTensor, partial(_lines, SPARSE, OF_SPARSE))
_register("PyTorch EmbeddingBag, sparse gradient", "sparse", Bag, partial(_lines, BAG, OF_BAG))
_register(
    "SparseLinear and LazySGD",
    "sparse",
    Bridge,
    partial(_lines, OURS, "scores = model(x[rows.numpy()])"),
    side="project",
)
