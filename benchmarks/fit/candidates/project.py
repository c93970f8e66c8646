"""Our own trainings: sparse batches, step by step, and the dense baseline. How to add one: a line at the end."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.fit.candidates import (
    BATCHES,
    DECAY,
    STRENGTHS,
    Candidate,
    Rows,
    Scorer,
    Tried,
    Value,
    grid,
    register,
    settings_by_decay,
)
from workbench import formats, models
from workbench.sweeps.grid import setup_of
from workbench.sweeps.spec import Configuration
from workbench.training import Run, Setup, Training, impossible_reason, make_run
from workbench.training.setup import complete_settings


@functools.lru_cache
def _setup_of(settings: tuple[tuple[str, Any], ...]) -> Setup:
    """Return the training setup of these sweep settings, completed by the fastest defaults; cached."""
    return setup_of(Configuration(**complete_settings(dict(settings), fastest=True)[0]))


def setup_for(rows: Rows, value: Value, chosen: Mapping[str, Any]) -> Setup:
    """Return the setup of a case for one tried setting and the candidate's own settings (`chosen`), completed.

    With weight decay on CSR rows the update is exact, so that rows are up to date when they are read. C gives a decay
    of 1 / (C rows).
    """
    update = {"update": "exact"} if value.get("decay") and chosen["format"] == "csr" else {}
    base = _setup_of(tuple({**rows.settings, **chosen, **update}.items()))
    given = {name: value[name] for name in ("optimizer", "batch_rows") if name in value}
    options = {"learning_rate": value.get("rate"), "decay": value.get("decay")}
    if "C" in value:
        options["decay"] = 1 / (value["C"] * rows.x.shape[0])
    own = {name: number for name, number in options.items() if number is not None}
    return replace(base, **given, options={**base.options, **own})


def scorer_of(run: Training) -> Scorer:
    """Return a scorer of a training in its present state; of a graph it scores the nodes after the trained ones.

    For ranking models deferred updates are applied first and the tables copied.
    """
    if not run.model.rows_apart:
        return partial(run.predict, first=run.batches.total)
    if run.model.rank is None:
        return run.predict
    run.catch_up()
    arrays = {
        parameter.name: run.read_rows(np.arange(parameter.shape[0]), parameter.name) for parameter in run.parameters
    }
    return run.model.rank(run.given, arrays)


def epoch_call_settings(model: str) -> list[dict[str, Any]]:
    """Return the ten settings of epochs in one call: rates as in `settings_by_decay`, half with 32 rows a batch.

    Chosen by their held-out loss on several binary data sets. `model` is unused.
    """
    few, usual = (32,), BATCHES[:1]
    return [
        *grid(optimizer=("sgd",), batch_rows=few, rate=(1.0, 3.0)),
        *grid(optimizer=("sgd",), batch_rows=usual, rate=(3.0, 10.0)),
        *grid(optimizer=("sgd",), batch_rows=usual, rate=(3.0,), decay=(DECAY,)),
        *grid(optimizer=("adagrad",), batch_rows=few, rate=(0.03, 0.1, 0.3)),
        *grid(optimizer=("adagrad",), batch_rows=usual, rate=(0.1, 0.3)),
    ]


def dual_settings(model: str) -> list[dict[str, Any]]:
    """Return the ten settings of dual ascent: scikit-learn's C, which is a weight decay of 1 / (C rows).

    `model` is unused.
    """
    return list(STRENGTHS)


def trained_models(needs_product: bool = False) -> tuple[str, ...]:
    """Return the names of all models; with `needs_product` only those whose scores are X @ W."""
    return tuple(name for name in models.names() if models.get(name).is_product or not needs_product)


def project_candidate(
    name: str, values: Tried = settings_by_decay, needs_product: bool = False, is_dense: bool = False, **chosen: Any
) -> Candidate:
    """Return a candidate of this project that trains with the sweep settings `chosen`, completed by defaults.

    `values` gives the settings to try; `is_dense` trains on rows made dense. With `needs_product` it trains only models
    whose scores are X @ W.
    """

    def steps(rows: Rows, value: Value) -> Iterator[Scorer]:
        """Train with one setting until the data's events end; yield a scorer after every `rows_point` rows."""
        x = formats.to_format(rows.x, "dense") if is_dense else rows.x
        run = make_run(setup_for(rows, value, chosen), x, rows.y, rows.width, rows.facts)
        if isinstance(run, Run) and run.calls:
            run.calls.rows_most = rows.rows_point + run.setup.batch_rows - 1
        done, due = 0, rows.rows_point
        for event in run.events():
            done += event.rows
            if done >= due:
                due = done + rows.rows_point
                run.catch_up()  # what is judged is timed
                yield scorer_of(run)

    return Candidate(
        name,
        "project",
        trained_models(needs_product),
        values,
        steps,
        bytes_needed=(lambda rows: rows.bytes_dense) if is_dense else (lambda rows: 0),
        why_not=lambda rows: impossible_reason(setup_for(rows, values(rows.model)[0], chosen)),
        is_dense=is_dense,
    )


DUAL: dict[str, Any] = {"execution": "dual", "optimizer": "sgd"}
"""What a training by dual ascent has."""
register(project_candidate("ours, sparse", format="csr"))
register(
    project_candidate(
        "ours, sparse, epochs in one call", epoch_call_settings, needs_product=True, format="csr", execution="epoch"
    )
)
register(project_candidate("ours, sparse, dual ascent", dual_settings, needs_product=True, format="csr", **DUAL))
register(project_candidate("ours, dense", is_dense=True, format="dense"))
EPOCHS_DENSE = {"engine": "dense", "gradient": "dense", "update": "standard", "execution": "epoch"}
"""What a training of dense rows by epochs in one call has."""
for _name, _values, _chosen in (
    ("epochs in one call", epoch_call_settings, EPOCHS_DENSE),
    ("dual ascent", dual_settings, DUAL),
):
    register(
        project_candidate(
            f"ours, dense, {_name}", _values, needs_product=True, is_dense=True, format="dense", **_chosen
        )
    )
