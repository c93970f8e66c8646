"""A trial of a sweep by several trainers: processes are started, their first losses checked, their steps timed.

The columns are those of any trial, as far as they mean something here: a step is timed by its slowest trainer, from the
end of the one before, messages included; bytes are those of all processes.
"""

import os
import resource
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from workbench import data, models
from workbench.cluster import fitting
from workbench.cluster.team import Team
from workbench.cluster.trainer import on_threads
from workbench.cluster.training import train
from workbench.measure import blas, machine
from workbench.measure.rounds import NUMBER
from workbench.measure.stats import quantile_interval
from workbench.module import BatchEnd, StopTraining
from workbench.sweep.curves import SAMPLE_DIGITS, curve_columns, shortened
from workbench.sweep.grid import setup_of, threads_of
from workbench.sweep.problem import make_problem
from workbench.sweep.spec import Cell, Measure, SpecError
from workbench.sweep.trial import settings_of

CHECKED_STEPS = 3
ALLOWED = 1e-5
"""Relative difference of a mean loss, which is summed in another order than one process does."""


def answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The one answer of a trial's process: its row. Errors become rows with status and reason."""
    cell = Cell(**request["cell"])
    row = settings_of(cell) | {"bytes_limit": request["bytes_limit"]}
    try:
        row |= _measured(cell, Measure(**request["measure"]))
    except (SpecError, data.DataError, models.ModelError) as error:
        row |= {"status": "unsupported", "reason": str(error)}
    except Exception as error:
        traceback.print_exc()
        row |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    yield row


@final
class _Heard:
    """The steps that were told; of a cell without epochs the training ends when they took long enough."""

    def __init__(self, cell: Cell, measure: Measure) -> None:
        self.steps: dict[int, Mapping[str, Any]] = {}
        self.seconds_most = measure.seconds_warmup + measure.seconds_total if not cell.epochs else np.inf
        self.steps_least = measure.samples_least
        self.team: Team | None = None

    def begun(self, team: Team) -> None:
        """Keep what is to be stopped."""
        self.team = team

    def tell(self, said: Mapping[str, Any]) -> None:
        """Take a step."""
        if "step" in said:
            self.steps[said["step"]] = said
            is_enough = sum(step["seconds"] for step in self.steps.values()) > self.seconds_most
            if is_enough and len(self.steps) >= self.steps_least and self.team is not None:
                self.team.stop()


def _measured(cell: Cell, measure: Measure) -> dict[str, Any]:
    trained = cell.model_copy(update={"trainers": 1})
    settings = {name: value for name, value in trained.model_dump(mode="json").items() if value is not None}
    heard, threads = _Heard(cell, measure), max(threads_of(cell) // cell.trainers, 1)
    others = _Others()
    with tempfile.TemporaryDirectory(prefix="workbench-trial-") as folder:
        answer = train(
            f"local:{cell.trainers}",
            settings,
            cell.trainers,
            Path(folder),
            tell=heard.tell,
            begun=heard.begun,
            threads=threads,
            steps_saved=0,
        )
    steps = [heard.steps[number] for number in sorted(heard.steps)]
    told = {
        "busy_others": others.share(),
        "versions": machine.versions(),
        "blas": blas.name(),
        "threads_used": threads_of(cell),
    }
    told |= _sizes(trained, cell.trainers) | _times(steps) | _curve(steps)
    if answer is not None and cell.epochs:
        told |= _quality(cell, answer)
    if heard.team is not None:  # also of a training that was stopped
        told["bytes_peak"] = sum(heard.team.grown.values())
    return told | _checked(trained, cell.trainers, [step["loss"] for step in steps])


@final
class _Others:
    """Share of the cores that other programs took, those that were started here left out: they have ended by then."""

    def __init__(self) -> None:
        self.programs, self.own, self.start = machine.OtherPrograms(), _seconds_of_children(), time.perf_counter()

    def share(self) -> float:
        """Share of all cores, 0 to 1."""
        own = _seconds_of_children() - self.own
        return max(self.programs.share() - own / ((os.cpu_count() or 1) * (time.perf_counter() - self.start)), 0.0)


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _sizes(cell: Cell, trainers: int) -> dict[str, Any]:
    problem = make_problem(cell)
    rows = problem.x.shape[0]
    sizes = {"rows_total": problem.rows_total, "features": problem.x.shape[1]}
    sizes["rows_trained"] = rows  # as of one process: the few that no trainer has make the data no other one
    sizes |= {
        "width": problem.width,
        "density_measured": problem.x.nnz / max(problem.x.shape[0] * sizes["features"], 1),
    }
    return sizes | {"steps_epoch": -(-(rows // trainers) // (cell.batch_rows // trainers))}


def _times(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Seconds of the steps after the first, which loads code; one sample a step."""
    samples = [step["seconds"] for step in steps[1:]] or [step["seconds"] for step in steps]
    seconds, low, high = quantile_interval(samples, NUMBER)
    told = {"samples": shortened(samples, SAMPLE_DIGITS), "seconds_step": seconds}
    told |= {"seconds_step_low": low, "seconds_step_high": high, "seconds_epoch": seconds * steps[0]["steps_epoch"]}
    told |= {"steps_timed": len(samples)}
    return told | {"seconds_first_step": steps[0]["seconds"], "seconds_measured": sum(samples)}


def _curve(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    seconds, losses = (np.array([step[name] for step in steps]) for name in ("seconds", "loss"))
    return curve_columns(seconds, losses, steps[0]["step"])


def _quality(cell: Cell, answer: Mapping[str, Any]) -> dict[str, Any]:
    model, found = models.get(cell.model), answer["qualities"]
    measures = {name: found[name] for name in model.measures}
    return {"quality": found[model.quality_name], "quality_name": model.quality_name, "measures": measures}


def _checked(cell: Cell, trainers: int, losses: Sequence[float]) -> dict[str, Any]:
    """The first losses against those of one process with as many workers."""
    setup, problem, known = setup_of(cell), make_problem(cell), list[float]()
    feed = fitting.joined(problem, setup, trainers)
    module = fitting.module_of(setup, problem, None, feed, workers=trainers)

    def keep(event: BatchEnd) -> None:
        known.append(float(module.outputs[0]))
        if len(known) == CHECKED_STEPS:
            raise StopTraining

    with on_threads(1):
        module.fit(feed, epochs=1, batch_end=keep)
    error = max(abs(one - two) / max(abs(two), 1e-12) for one, two in zip(losses, known, strict=False))
    told = {"error": error, "error_allowed": ALLOWED, "status": "ok", "reason": ""}
    if error > ALLOWED:
        told |= {"status": "wrong", "reason": f"Losses of {trainers} trainers differ from those of one by {error:.3g}."}
    return told
