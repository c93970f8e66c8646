"""Training loops of PyTorch as users write them, and the same with the two lines that the bridge to it changes.

A loop is: a model, an optimizer, and for each batch of sparse rows forward, loss, backward, step. Only how model and
optimizer are made tells the candidates apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.competitors.torch_sparse import UNAVAILABLE, pytorch
from workbench.bench.steps import Problem, StepContender

Made = tuple[Any, Any]
"""A model and its optimizer."""

THEIRS = {"sgd": ("SGD", "SGD"), "adagrad": ("Adagrad", "Adagrad"), "adam": ("SparseAdam", "Adam")}
"""PyTorch's optimizers for sparse and for dense gradients, by the rule that they follow."""

OURS = {"sgd": "LazySGD", "adagrad": "LazyAdagrad", "adam": "LazyAdam"}


def plain_pytorch(sparse: bool) -> Callable[[Problem], Made]:
    """PyTorch's own embedding bag and optimizer, for sparse or for dense gradients."""

    def make(problem: Problem) -> Made:
        torch, (features, width) = pytorch(), problem.tables[0].shape
        model = torch.nn.EmbeddingBag(features, width, mode="sum", include_last_offset=True, sparse=sparse)
        optimizer = getattr(torch.optim, THEIRS[problem.optimizer][not sparse])
        return model, optimizer(list(model.parameters()), **_options(problem))

    return make


def pytorch_with_bridge(fused: bool) -> Callable[[Problem], Made]:
    """Return the same with two lines changed."""

    def make(problem: Problem) -> Made:
        pytorch()  # which sets the threads
        from workbench.bridges import pytorch as bridge

        features, width = problem.tables[0].shape
        model = bridge.SparseEmbeddingBag(features, width, mode="sum", include_last_offset=True)
        optimizer = getattr(bridge, OURS[problem.optimizer])
        return model, optimizer(model.parameters(), fused=fused, **_options(problem))

    return make


def _options(problem: Problem) -> dict[str, Any]:
    """Return the optimizer options of a problem by PyTorch's names."""
    options = problem.options
    betas = {"betas": (options["beta1"], options["beta2"])} if "beta1" in options else {}
    return {"lr": options["learning_rate"]} | ({"eps": options["epsilon"]} if "epsilon" in options else {}) | betas


@dataclass
class Loop:
    """The loop with a model and an optimizer of its own."""

    problem: Problem
    make: Callable[[Problem], Made]

    def prepare(self, number: int) -> tuple:
        """Return tensors over the batch's memory: nothing is copied."""
        batch = self.problem.batches[number]
        arrays = batch.indices, batch.indptr, batch.data, self.problem.targets[number]
        return tuple(map(pytorch().from_numpy, arrays))

    def step(self, prepared: tuple) -> None:
        """One step."""
        indices, offsets, values, targets = prepared
        self.optimizer.zero_grad()
        scores = self.model(indices, offsets, per_sample_weights=values)
        loss = pytorch().nn.functional.binary_cross_entropy_with_logits(scores, targets)
        loss.backward()
        self.optimizer.step()

    def start(self) -> None:
        """Make model and optimizer anew, the weights as at the start."""
        self.model, self.optimizer = self.make(self.problem)
        weights = self.model.weight.detach().numpy()
        weights[...] = 0
        weights[self.problem.touched] = self.problem.weights

    def weights(self) -> np.ndarray:
        """Return the weights of the active rows."""
        return self.model.weight.detach().numpy()[self.problem.touched]


def list_pytorch_candidates() -> list[StepContender]:
    """Return two lines changed, the gradient left as factors or not.

    PyTorch as it is, for sparse and for dense gradients.
    """

    def contender(name: str, side: str, make: Callable[[Problem], Made], every: bool = False) -> StepContender:
        return StepContender(name, side, lambda problem: Loop(problem, make), UNAVAILABLE, shares=False, every=every)

    return [
        contender("ours", "ours", pytorch_with_bridge(fused=False)),
        contender("ours, fused", "ours", pytorch_with_bridge(fused=True)),
        contender("torch, sparse gradient", "rival", plain_pytorch(sparse=True)),
        contender("torch, dense gradient", "rival", plain_pytorch(sparse=False), every=True),
    ]
