"""Who takes part in a training step on the cpu: our own steps, and those of the rivals that are installed."""

import functools
from collections.abc import Sequence

from workbench.bench import steps_graph, steps_tensorflow, steps_torch
from workbench.bench.steps import Ours, StepContender


def contenders(problem_size: int, optimizer: str) -> Sequence[StepContender]:
    """All learners, ours first; `problem_size` is D * N."""
    two = functools.partial(Ours, fused=False)
    ours = [StepContender("ours", "ours", Ours), StepContender("ours, two kernels", "ours", two)]
    ours.append(StepContender("ours, graph", "ours", steps_graph.Graph, shares=False))
    return [*ours, *steps_torch.contenders(), *steps_tensorflow.contenders(problem_size, optimizer)]
