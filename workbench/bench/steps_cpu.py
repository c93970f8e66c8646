"""Contenders of a training step on the cpu: our own steps, and those of the rivals that are installed."""

import functools
import importlib
from collections.abc import Sequence

from workbench.bench import steps_graph, steps_tensorflow, steps_torch
from workbench.bench.steps import Learner, Ours, Problem, StepContender

USERS = {"training": "Training", "module": "Fitted"}
"""Our steps as users take them, by what they use: classes of `steps_users`."""

OF_USERS = "workbench.bench.steps_users"
"""Imported by its name: what it imports is a part of the steps' hash, and of no kernel's (`cells.roots_of`)."""


def _of_users(name: str, problem: Problem) -> Learner:
    return getattr(importlib.import_module(OF_USERS), USERS[name])(problem)


def contenders(problem_size: int, optimizer: str) -> Sequence[StepContender]:
    """All learners, ours first; `problem_size` is D * N."""
    two = functools.partial(Ours, fused=False)
    ours = [StepContender("ours", "ours", Ours), StepContender("ours, two kernels", "ours", two)]
    ours.append(StepContender("ours, graph", "ours", steps_graph.Graph, shares=False))
    ours += [StepContender(f"ours, {name}", "ours", functools.partial(_of_users, name), shares=False) for name in USERS]
    return [*ours, *steps_torch.contenders(), *steps_tensorflow.contenders(problem_size, optimizer)]
