"""Training loops of PyTorch as users write them, and the same with the two lines that the bridge to it changes.

A loop is: a model, an optimizer, and for each batch of sparse rows forward, loss, backward, step. Only how model and
optimizer are made tells the candidates apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.competitors.torch_sparse import UNAVAILABLE, pytorch
from benchmarks.steps import Problem, StepCandidate

Made = tuple[Any, Any]
"""A model and its optimizer."""

THEIRS = {"sgd": ("SGD", "SGD"), "adagrad": ("Adagrad", "Adagrad"), "adam": ("SparseAdam", "Adam")}
"""PyTorch's optimizers for sparse and for dense gradients, by the rule that they follow."""

OURS = {"sgd": "LazySGD", "adagrad": "LazyAdagrad", "adam": "LazyAdam"}


def plain_pytorch(sparse: bool) -> Callable[[Problem], Made]:
    """Return a function of a problem to PyTorch's own (EmbeddingBag, optimizer), with sparse or dense gradients."""

    def make(problem: Problem) -> Made:
        """Return (EmbeddingBag, optimizer) of PyTorch for a problem."""
        torch, (features, width) = pytorch(), problem.tables[0].shape
        model = torch.nn.EmbeddingBag(features, width, mode="sum", include_last_offset=True, sparse=sparse)
        optimizer = getattr(torch.optim, THEIRS[problem.optimizer][not sparse])
        return model, optimizer(list(model.parameters()), **_options(problem))

    return make


def pytorch_with_bridge(fused: bool) -> Callable[[Problem], Made]:
    """Return a function of a problem to this project's (embedding bag, optimizer), two changed lines of a loop.

    With `fused` the gradient is left as factors for the optimizer.
    """

    def make(problem: Problem) -> Made:
        """Return (`SparseEmbeddingBag`, lazy optimizer) of this project's bridge for a problem."""
        pytorch()  # which sets the threads
        from workbench.bridges import pytorch as bridge

        features, width = problem.tables[0].shape
        model = bridge.SparseEmbeddingBag(features, width, mode="sum", include_last_offset=True)
        optimizer = getattr(bridge, OURS[problem.optimizer])
        return model, optimizer(model.parameters(), fused=fused, **_options(problem))

    return make


def _options(problem: Problem) -> dict[str, Any]:
    """Return the optimizer options of a problem by PyTorch's argument names."""
    options = problem.options
    betas = {"betas": (options["beta1"], options["beta2"])} if "beta1" in options else {}
    return {"lr": options["learning_rate"]} | ({"eps": options["epsilon"]} if "epsilon" in options else {}) | betas


@dataclass
class Loop:
    """The loop with a model and an optimizer of its own."""

    problem: Problem
    make: Callable[[Problem], Made]

    def prepare(self, number: int) -> tuple:
        """Return (indices, offsets, values, targets) of batch `number` as tensors that share its memory."""
        batch = self.problem.batches[number]
        arrays = batch.indices, batch.indptr, batch.data, self.problem.targets[number]
        return tuple(map(pytorch().from_numpy, arrays))

    def step(self, prepared: tuple) -> None:
        """Do one step on a prepared batch; updates the model in place."""
        indices, offsets, values, targets = prepared
        self.optimizer.zero_grad()
        self.loss(self.model(indices, offsets, per_sample_weights=values), targets).backward()
        self.optimizer.step()

    def loss(self, scores: Any, targets: Any) -> Any:
        """Return the mean logistic loss of scores [R, N] as a scalar tensor."""
        return pytorch().nn.functional.binary_cross_entropy_with_logits(scores, targets)

    def start(self) -> None:
        """Make model and optimizer anew, with the initial weights."""
        self.model, self.optimizer = self.make(self.problem)
        weights = self.model.weight.detach().numpy()
        weights[...] = 0
        weights[self.problem.active] = self.problem.weights

    def weights(self) -> np.ndarray:
        """Return a copy of the weights of the active rows, float32 [U, N]."""
        return self.model.weight.detach().numpy()[self.problem.active]


class SharedLoop(Loop):
    """The loop of EmbeddingBag with squared loss; weights and states share the problem's memory.

    SparseAdam is lazy and has our formula.
    """

    def loss(self, scores: Any, targets: Any) -> Any:
        """Return half the mean over rows of the squared errors of scores [R, N] as a scalar tensor."""
        return pytorch().nn.functional.mse_loss(scores, targets, reduction="sum") * (0.5 / len(targets))

    def start(self) -> None:
        """Reset the problem's tables, and make model and optimizer anew on them."""
        self.problem.reset()
        self.model, self.optimizer = self.make(self.problem)

    def weights(self) -> np.ndarray:
        """Return a copy of the weights of the active rows, float32 [U, N]."""
        return self.problem.tables[0][self.problem.active]


def shared_pytorch(problem: Problem, place: str = "cpu") -> Made:
    """Return PyTorch's (EmbeddingBag, optimizer) for sparse gradients, which share the memory of the tables.

    On the device "cuda" they have copies of them.
    """
    torch = pytorch()
    table, *states = (torch.from_numpy(table).to(place) for table in problem.tables)
    kept = {"freeze": False, "mode": "sum", "sparse": True, "include_last_offset": True}
    model = torch.nn.EmbeddingBag.from_pretrained(table, **kept)
    optimizer = getattr(torch.optim, THEIRS[problem.optimizer][0])(list(model.parameters()), **_options(problem))
    if problem.optimizer == "adagrad":
        optimizer.state[model.weight]["sum"] = states[0]
    elif problem.optimizer == "adam":
        optimizer.state[model.weight] = {"step": 0, "exp_avg": states[0], "exp_avg_sq": states[1]}
    return model, optimizer


def list_torch_candidates() -> list[StepCandidate]:
    """Return the candidates of a CPU step by PyTorch: EmbeddingBag with its sparse optimizers."""
    return [StepCandidate("torch EmbeddingBag", "competitor", partial(SharedLoop, make=shared_pytorch), UNAVAILABLE)]


def list_pytorch_candidates() -> list[StepCandidate]:
    """Return four training loops: with the bridge, unfused and fused, and plain PyTorch, sparse and dense gradients."""

    def candidate(name: str, side: str, make: Callable[[Problem], Made], every: bool = False) -> StepCandidate:
        """Return a PyTorch loop as a step candidate; `every` says that it updates all rows."""
        return StepCandidate(name, side, lambda problem: Loop(problem, make), UNAVAILABLE, shares=False, every=every)

    return [
        candidate("ours", "project", pytorch_with_bridge(fused=False)),
        candidate("ours, fused", "project", pytorch_with_bridge(fused=True)),
        candidate("torch, sparse gradient", "competitor", plain_pytorch(sparse=True)),
        candidate("torch, dense gradient", "competitor", plain_pytorch(sparse=False), every=True),
    ]
