"""Synthetic rows of trainings to a held-out quality, and a small set for each model to train on."""

import numpy as np

from benchmarks import tables
from benchmarks.fit.candidates import Rows
from benchmarks.fit.cases import Judge
from workbench import models
from workbench.sweeps.problem import facts_of, synthetic_parameters_for, targets

CASE = {"case": "toy, logistic", "dataset": "toy", "model": "logistic", "held_out": "0.2"}
FACTS = {"rows": 80, "rows_held_out": 20, "features": 50, "nnz": 400, "width": 1, "bytes_dense": 16_000}
MEASURED = {"measure": "log loss", "larger_is_better": False}


def row(candidate, stage="settings", curve=((1.0, 0.7, 1), (2.0, 0.5, 2)), side="project", **more):
    """A row that is ok unless `more` says otherwise."""
    curve = [list(point) for point in curve]
    best = min((point[1] for point in curve), default=None)
    number = more.get("round", 0)
    known = {"key": f"{candidate} {stage} {number} {more.get('setting')}", "run": "one", "status": "ok", "tried": 1}
    known |= {
        "candidate": candidate,
        "side": side,
        "is_dense": False,
        "stage": stage,
        "setting": {"optimizer": "sgd", "rate": 1.0},
    }
    known |= {"curve": curve, "value_best": best, "seconds_limit": 5.0, "threads": 2, "machine": "m"}
    return tables.FIT.new_row(**CASE | FACTS | MEASURED | known | more)


def rounds(candidate, seconds, side="project", target=0.505, **more):
    """The row of its setting, and one a round with these seconds to the target."""
    each = [
        row(candidate, "rounds", side=side, round=number, seconds=one, target=target, **more)
        for number, one in enumerate(seconds)
    ]
    return [row(candidate, side=side, **more), *each]


def judge_for(model, rows=160):
    """A small problem of a model, the last quarter of its rows held out."""
    entry = models.get(model)
    width = 1 if model == "linear" else next(width for width in (3, 1) if entry.allows(width))
    drawn = synthetic_parameters_for(entry, width, rows=rows, features=40, density=0.2, seed=0, users=30, items=40)
    y, cut = targets(drawn, entry, width, "float32"), 3 * rows // 4
    given = Rows(model, drawn.x[:cut], y[:cut], width, False, 1, {"model": model}, facts_of(drawn))
    return Judge(given, drawn.x[cut:], y[cut:])


def losses(judge, scorers, count):
    """The values of the first scorers, each taken before the next one is made."""
    return np.array([judge.value(scorer) for scorer, _ in zip(scorers, range(count), strict=False)])
