"""PyTorch's training step: EmbeddingBag(mode="sum", sparse=True) with its own optimizers for sparse gradients."""

import numpy as np

from kernels.rivals.torch_sparse import UNAVAILABLE, pytorch
from workbench.bench.steps import Problem, StepContender


class Torch:
    """Weights and states share the problem's memory. SparseAdam is lazy and has our formula."""

    def __init__(self, problem: Problem) -> None:
        self.torch, self.problem = pytorch(), problem
        self.tables = [self.torch.from_numpy(table) for table in problem.tables]
        kept = {"freeze": False, "mode": "sum", "sparse": True, "include_last_offset": True}
        self.bag = self.torch.nn.EmbeddingBag.from_pretrained(self.tables[0], **kept)
        self.optimizer = self._optimizer()

    def _optimizer(self):
        options, optim = self.problem.options, self.torch.optim
        parameters = list(self.bag.parameters())
        if self.problem.optimizer == "sgd":
            return optim.SGD(parameters, lr=options["rate"])
        if self.problem.optimizer == "adagrad":
            made = optim.Adagrad(parameters, lr=options["rate"], eps=options["epsilon"])
            made.state[parameters[0]]["sum"] = self.tables[1]
            return made
        betas = options["beta1"], options["beta2"]
        return optim.SparseAdam(parameters, lr=options["rate"], betas=betas, eps=options["epsilon"])

    def prepare(self, number: int) -> tuple:
        """Tensors over the batch's memory: nothing is copied."""
        batch = self.problem.batches[number]
        arrays = batch.indices, batch.indptr, batch.data, self.problem.targets[number]
        return tuple(map(self.torch.from_numpy, arrays))

    def step(self, prepared: tuple) -> None:
        """One step."""
        indices, offsets, values, targets = prepared
        self.optimizer.zero_grad(set_to_none=True)
        scores = self.bag(indices, offsets, per_sample_weights=values)
        loss = self.torch.nn.functional.mse_loss(scores, targets, reduction="sum") * (0.5 / len(targets))
        loss.backward()
        self.optimizer.step()

    def start(self) -> None:
        """As at the start."""
        self.problem.reset()
        parameter = next(iter(self.bag.parameters()))
        if self.problem.optimizer == "adam":
            state = {"step": 0, "exp_avg": self.tables[1], "exp_avg_sq": self.tables[2]}
            self.optimizer.state[parameter] = state

    def weights(self) -> np.ndarray:
        """Of the touched rows."""
        return self.problem.tables[0][self.problem.touched]


def contenders() -> list[StepContender]:
    """The one way that PyTorch has."""
    return [StepContender("torch EmbeddingBag", "rival", Torch, UNAVAILABLE)]
