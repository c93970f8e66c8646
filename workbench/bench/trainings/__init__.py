"""Trainings by other libraries on the rows of a cell of a sweep, as curves of quality against seconds.

They are for notebooks, and go epoch by epoch; `bench.fit` has the whole contest, to a quality, in processes of its own.
A file here knows one library, and has functions that train on a `sweep.problem.Problem` and give what scores rows
after each epoch: `implicit_factors.als(problem, ...)`. `curve` takes the time of each epoch and judges beside the
clock, by the functions that judge trials, on the rows that the trial of the same cell holds out. How to add a library:
copy `pytorch_bags.py`.
"""

import time
from collections.abc import Iterator
from typing import Any

from workbench import models
from workbench.bench.fit.contract import Rows, Scorer
from workbench.sweep.problem import Problem
from workbench.train import ranking


def rows_of(problem: Problem, model: str, width: int, threads: int = 0, seed: int = 0, options: str = "") -> Rows:
    """What a contender of `bench.fit` trains on: the rows of the problem, with an intercept where the model has one.

    `width` is that of the contender, `options` are those of the model.
    """
    has_intercept = models.get(model).has_intercept
    settings = {"model_options": options} if options else {}
    return Rows(model, problem.x, problem.y, width, has_intercept, threads, settings, problem.facts, seed)


def qualities(model: models.Model, problem: Problem, scorer: Scorer) -> dict[str, float]:
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
    who: str, trained: Iterator[Scorer], model: models.Model, problem: Problem, epochs: int, repeat: int = 0
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
