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

# PyTorch's training step: EmbeddingBag(mode="sum", sparse=True) with its own optimizers for sparse gradients.


def bag_of(torch: Any, table: Any) -> Any:
    """Return the embedding bag of a table [D, N], which it shares."""
    kept = {"freeze": False, "mode": "sum", "sparse": True, "include_last_offset": True}
    return torch.nn.EmbeddingBag.from_pretrained(table, **kept)


def optimizer_of(torch: Any, problem: Problem, bag: Any) -> Any:
    """PyTorch's optimizer for sparse gradients by the problem's name and options, its states new."""
    options, optim, parameters = problem.options, torch.optim, list(bag.parameters())
    if problem.optimizer == "sgd":
        return optim.SGD(parameters, lr=options["learning_rate"])
    if problem.optimizer == "adagrad":
        return optim.Adagrad(parameters, lr=options["learning_rate"], eps=options["epsilon"])
    betas = options["beta1"], options["beta2"]
    return optim.SparseAdam(parameters, lr=options["learning_rate"], betas=betas, eps=options["epsilon"])


def take_step(torch: Any, bag: Any, optimizer: Any, prepared: tuple) -> None:
    """One step by a batch (indices, offsets, values, targets [R, N])."""
    indices, offsets, values, targets = prepared
    optimizer.zero_grad(set_to_none=True)
    scores = bag(indices, offsets, per_sample_weights=values)
    loss = torch.nn.functional.mse_loss(scores, targets, reduction="sum") * (0.5 / len(targets))
    loss.backward()
    optimizer.step()


class Torch:
    """Weights and states share the problem's memory. SparseAdam is lazy and has our formula."""

    def __init__(self, problem: Problem) -> None:
        self.torch, self.problem = pytorch(), problem
        self.tables = [self.torch.from_numpy(table) for table in problem.tables]
        self.bag = bag_of(self.torch, self.tables[0])
        self.optimizer = optimizer_of(self.torch, problem, self.bag)
        if problem.optimizer == "adagrad":
            self.optimizer.state[self.bag.weight]["sum"] = self.tables[1]

    def prepare(self, number: int) -> tuple:
        """Return tensors over the batch's memory: nothing is copied."""
        batch = self.problem.batches[number]
        arrays = batch.indices, batch.indptr, batch.data, self.problem.targets[number]
        return tuple(map(self.torch.from_numpy, arrays))

    def step(self, prepared: tuple) -> None:
        """One step."""
        take_step(self.torch, self.bag, self.optimizer, prepared)

    def start(self) -> None:
        """Set everything back to the start."""
        self.problem.reset()
        parameter = next(iter(self.bag.parameters()))
        if self.problem.optimizer == "adam":
            state = {"step": 0, "exp_avg": self.tables[1], "exp_avg_sq": self.tables[2]}
            self.optimizer.state[parameter] = state

    def weights(self) -> np.ndarray:
        """Return the weights of the active rows."""
        return self.problem.tables[0][self.problem.touched]


def list_torch_candidates() -> list[StepContender]:
    """Return the one way that PyTorch has."""
    return [StepContender("torch EmbeddingBag", "rival", Torch, UNAVAILABLE)]


Made = tuple[Any, Any]
"""A model and its optimizer."""

THEIRS = {"sgd": ("SGD", "SGD"), "adagrad": ("Adagrad", "Adagrad"), "adam": ("SparseAdam", "Adam")}
"""PyTorch's optimizers for sparse and for dense gradients, by the rule that they follow."""

OURS = {"sgd": "LazySGD", "adagrad": "LazyAdagrad", "adam": "LazyAdam"}


def plain_pytorch(sparse: bool) -> Callable[[Problem], Made]:
    """PyTorch's own embedding bag and optimizer, for sparse or for dense gradients."""

    def make(problem: Problem) -> Made:
        """Return PyTorch's embedding bag for a problem, and its optimizer."""
        torch, (features, width) = pytorch(), problem.tables[0].shape
        model = torch.nn.EmbeddingBag(features, width, mode="sum", include_last_offset=True, sparse=sparse)
        optimizer = getattr(torch.optim, THEIRS[problem.optimizer][not sparse])
        return model, optimizer(list(model.parameters()), **_options(problem))

    return make


def pytorch_with_bridge(fused: bool) -> Callable[[Problem], Made]:
    """Return the same with two lines changed."""

    def make(problem: Problem) -> Made:
        """Return the bridge's embedding bag for a problem, and its optimizer."""
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
        """Return the training step of a PyTorch loop as a candidate."""
        return StepContender(name, side, lambda problem: Loop(problem, make), UNAVAILABLE, shares=False, every=every)

    return [
        contender("ours", "ours", pytorch_with_bridge(fused=False)),
        contender("ours, fused", "ours", pytorch_with_bridge(fused=True)),
        contender("torch, sparse gradient", "rival", plain_pytorch(sparse=True)),
        contender("torch, dense gradient", "rival", plain_pytorch(sparse=False), every=True),
    ]
