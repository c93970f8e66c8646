"""Trainings by other libraries on the rows of a cell of a sweep, as curves of quality against seconds.

A file here knows one library, and has functions that train on a `sweep.problem.Problem` and give what scores rows
after each epoch: `implicit_factors.als(problem, ...)`. `curve` takes the time of each epoch and judges beside the
clock, by the functions that judge trials, on the rows that the trial of the same cell holds out. How to add a library:
copy `pytorch_bags.py`.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from workbench.models import Model
from workbench.sweep.problem import Problem
from workbench.train import ranking

Scorer = Callable[[Any], np.ndarray]
"""Scores [R, outputs] of rows X csr; of a model that orders items those of users [n], of all items."""


def qualities(model: Model, problem: Problem, scorer: Scorer) -> dict[str, float]:
    """The model's measures of quality by name, on the rows held out, as `train.Training.qualities` takes them."""
    measures = {model.quality_name: model.quality, **model.measures}
    x, y = problem.held_out
    if x is None or y is None:
        raise ValueError("The problem has no rows held out; make it of a cell that trains epochs.")
    if model.rank is None:
        scores = scorer(x)
        return {name: float(measure(scores, y)) for name, measure in measures.items()}
    return ranking.measured(scorer, measures, problem.facts["fields"], problem.x, x)


def curve(
    who: str, trained: Iterator[Scorer], model: Model, problem: Problem, epochs: int, repeat: int = 0
) -> list[dict[str, Any]]:
    """The points of a training of a rival as `analysis.curves` takes them: after each epoch each measure.

    What the first epoch compiles or loads is in its time: train once before.
    """
    points, seconds = [], 0.0
    for epoch in range(1, epochs + 1):
        start = time.perf_counter()
        scorer = next(trained)
        seconds += time.perf_counter() - start
        known = {"who": who, "side": "rival", "repeat": repeat, "epoch": epoch, "seconds": seconds}
        judged = qualities(model, problem, scorer)
        points += [known | {"measure": measure, "value": value} for measure, value in judged.items()]
    return points
