"""Candidates of `bench.fit` on the rows of a configuration of a sweep, as curves of quality against seconds: for
notebooks.

`bench.fit` has the whole contest, to a quality, in processes of its own. Here a candidate, named as there, trains a
`sweeps.problem.Problem` in this process, epoch by epoch: `trained("PyTorch embedding_mlp, sparse gradient", ...)`.
`curve` takes the time of each epoch and judges while the clock stands, by the functions that judge trials, on the rows
that the trial of the same configuration holds out.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.child import set_threads
from benchmarks.fit import candidates
from benchmarks.fit.candidates import Rows, Scorer
from workbench import models
from workbench.sweeps.problem import Problem
from workbench.training import training


def unavailable(candidate: str) -> str:
    """Return why a candidate of `fit` is unavailable here, "" if it is not; BenchError for an unknown name."""
    return candidates.get(candidate).unavailable


def trained(
    candidate: str,
    problem: Problem,
    model: str,
    setting: Mapping[str, Any],
    width: int = 1,
    options: str = "",
    threads: int = 0,
    seed: int = 0,
) -> Iterator[Scorer]:
    """Return an iterator that trains a model by a candidate of `benchmarks fit`, epoch by epoch, and yields scorers.

    `setting` are its tried settings, `options` the model's as text; `threads` 0 leaves them as they are. Raises
    BenchError for an unknown name or a candidate without stepwise training, ModuleNotFoundError if its library is
    missing. `width` is the number of outputs or factors, `seed` that of the initial values and the shuffle.
    """
    found = candidates.get(candidate)
    if found.steps is None or model not in found.models:
        able = [
            name for name in candidates.names() if candidates.get(name).steps and model in candidates.get(name).models
        ]
        raise candidates.BenchError(f"{candidate} does not train {model} epoch by epoch; there is: {'; '.join(able)}.")
    if threads:
        set_threads(threads)
    settings = {"model_options": options} if options else {}
    has_intercept = models.get(model).has_intercept
    rows = Rows(model, problem.x, problem.y, width, has_intercept, threads, settings, problem.facts, seed, points=1)
    return found.steps(rows, setting)


def qualities(model: models.Model, problem: Problem, scorer: Scorer) -> dict[str, float]:
    """Return {measure: value} of the model's quality measures on the problem's held-out rows.

    Raises ValueError if the problem has none.
    """
    measures = {model.quality_name: model.quality, **model.measures}
    x, y = problem.held_out
    if x is None or y is None:
        raise ValueError("The problem has no rows held out; make it of a configuration that trains epochs.")
    if model.rank is None:
        scores = scorer(x)
        return {name: float(measure(scores, y)) for name, measure in measures.items()}
    return training.ranking_measures(scorer, measures, problem.facts["fields"], problem.x, x)


def curve(
    who: str, trained: Iterator[Scorer], model: models.Model, problem: Problem, epochs: int, repeat: int = 0
) -> list[dict[str, Any]]:
    """Return the points of a competitor's training as `analysis.curves` takes them: each measure after each epoch.

    Compilation and loading are part of the first epoch's seconds: train once before. `who` and `repeat` name it in the
    frame; `trained` yields a scorer per epoch, of which `epochs` are taken.
    """
    points, seconds = [], 0.0
    for epoch in range(1, epochs + 1):
        start = time.perf_counter()
        scorer = next(trained)
        seconds += time.perf_counter() - start
        known = {"who": who, "side": "competitor", "repeat": repeat, "epoch": epoch, "seconds": seconds}
        judged = qualities(model, problem, scorer)
        points += [known | {"measure": measure, "value": value} for measure, value in judged.items()]
    return points
