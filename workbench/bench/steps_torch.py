"""PyTorch's training step: EmbeddingBag(mode="sum", sparse=True) with its own optimizers for sparse gradients."""

from typing import Any

import numpy as np

from kernels.competitors.torch_sparse import UNAVAILABLE, pytorch
from workbench.bench.steps import Problem, StepContender


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
