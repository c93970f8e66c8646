"""PyTorch on dense rows: its operators one by one, and compiled into one function by `torch.compile`."""

from functools import partial
from typing import Any, final

import numpy as np

from benchmarks.fair.competitors import Candidate, register
from workbench.advising.frameworks.training import LoopTrainer, Problem, State
from workbench.advising.frameworks.ways.pytorch import compiled, why_not_compiled

INSTALL = "pip install 'sparse-workbench[peers]'"
NEAR = 3.0
"""Factor to the fastest independent dense one up to which compiling, which takes half a minute, is worth it."""
EAGER = "PyTorch, eager"


def step(x: Any, rows: Any, labels: Any, w: Any, b: Any, rate: float) -> Any:
    """Do one SGD step on the rows with these indices by explicit formulas, updating w and b in place.

    Returns the mean loss as a tensor; no gradients are recorded. `x` [R, D], `labels` [R], `w` [D, N], `b` [N].
    """
    import torch

    batch, own = x.index_select(0, rows), labels.index_select(0, rows)
    scores = torch.addmm(b, batch, w)
    if w.shape[1] == 1:
        y = own.to(scores.dtype)[:, None]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, y)
        grad_scores = (torch.sigmoid(scores) - y) / len(y)
    else:
        logs = torch.log_softmax(scores, 1)
        loss = torch.nn.functional.nll_loss(logs, own)
        ones = torch.full_like(logs[:, :1], -1.0)
        grad_scores = logs.exp().scatter_add(1, own[:, None], ones) / len(own)
    w.addmm_(batch.T, grad_scores, alpha=-rate)
    b.add_(grad_scores.sum(0), alpha=-rate)
    return loss


@final
class TorchTrainer(LoopTrainer):
    """A training whose tensors share the memory of X; `is_compiled` has the step compiled for these sizes."""

    def __init__(self, problem: Problem, is_compiled: bool) -> None:
        """Set PyTorch's threads, share X and labels as tensors, zero the weights, and compile if `is_compiled`."""
        import torch

        super().__init__(problem)
        torch.set_num_threads(problem.threads)
        self.torch = torch
        self.x, self.labels = torch.from_numpy(problem.dense), torch.from_numpy(problem.labels)
        self.w, self.b = torch.zeros(problem.features, problem.outputs), torch.zeros(problem.outputs)
        self.step = compiled(torch, step) if is_compiled else step

    def train(self, order: np.ndarray, losses: np.ndarray) -> None:
        """Train on the rows of `order` in batches, in place; writes each batch's loss to `losses`."""
        rows_of = self.torch.from_numpy(order).view(-1, self.problem.batch_rows)
        with self.torch.no_grad():
            batch_losses = [self.step(self.x, rows, self.labels, self.w, self.b, self.problem.rate) for rows in rows_of]
            losses[...] = self.torch.stack(batch_losses).numpy()

    def state(self) -> State:
        """Return the weights [D, N], the intercept [N] and the losses so far as NumPy arrays."""
        return State(self.w.numpy(), self.b.numpy(), self.losses)


def _competitor(name: str, is_compiled: bool, **more: Any) -> Candidate:
    """Return the PyTorch competitor on dense rows, its step compiled if `is_compiled`; `more` are further fields."""
    make = partial(TorchTrainer, is_compiled=is_compiled)
    return Candidate(name, "independent", "dense", make, needs="torch", install=INSTALL, **more)


register(_competitor(EAGER, False))
register(_competitor("PyTorch, torch.compile", True, why_not=why_not_compiled, like=EAGER, near=NEAR))
