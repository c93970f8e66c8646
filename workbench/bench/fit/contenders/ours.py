"""Our own trainings: sparse batches, step by step, and the dense baseline. How to add one: a line at the end."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench import formats, models
from workbench.bench.fit.contract import Contender, Rows, Scorer, Value, by_rate, register
from workbench.sweep.grid import setup_of
from workbench.sweep.spec import Cell
from workbench.train import Setup, Training, make_run, why_impossible
from workbench.train.completion import complete


def scorer_of(run: Training) -> Scorer:
    """The scores of a training as it stands."""
    if run.model.rank is None:
        return run.predict
    run.catch_up()
    arrays = {one.name: run.read_rows(np.arange(one.shape[0]), one.name) for one in run.parameters}
    return run.model.rank(run.given, arrays)


def of_ours(name: str, is_dense: bool = False, **chosen: Any) -> Contender:
    """A contender that trains with these settings of a cell; what they leave open is completed."""

    def setup(rows: Rows, value: Value) -> Setup:
        own = {"optimizer": value["optimizer"], "learning_rate": value["rate"], "batch_rows": value["batch_rows"]}
        return setup_of(Cell(**complete({**rows.settings, **chosen, **own}, fastest=True)[0]))

    def steps(rows: Rows, value: Value) -> Iterator[Scorer]:
        x = formats.to_format(rows.x, "dense") if is_dense else rows.x
        run = make_run(setup(rows, value), x, rows.y, rows.width, rows.facts)
        done, due = 0, rows.rows_point
        for event in run.events():
            done += event.rows
            if done >= due:
                due = done + rows.rows_point
                yield scorer_of(run)

    return Contender(
        name,
        "ours",
        tuple(model for model in models.names() if "graph" not in models.get(model).needs),
        by_rate,
        steps,
        bytes_needed=(lambda rows: rows.bytes_dense) if is_dense else (lambda rows: 0),
        why_not=lambda rows: why_impossible(setup(rows, by_rate(rows.model)[0])),
        is_dense=is_dense,
    )


register(of_ours("ours, sparse", format="csr"))
register(of_ours("ours, dense", is_dense=True, format="dense"))
