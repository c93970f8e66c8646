"""Training by the ranks of an MPI job, which `mpiexec` starts: `python -m workbench.cluster.training JOB`.

JOB is a `trainer.Job` as JSON. Rank 0 prints a line of JSON for each step, and {"done": ...} or {"failed": why} at the
end. A rank that is lost or fails ends all of them; the same command continues from the last checkpoint.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

import numpy as np

from workbench import data, models
from workbench.cluster import trainer
from workbench.cluster.exchange import world
from workbench.cluster.store import OneRank
from workbench.cluster.trainer import Job, on_threads
from workbench.kvstore import StoreError
from workbench.measure import environment, machine
from workbench.measure.clock import quantile_interval
from workbench.measure.rounds import NUMBER
from workbench.module import BatchEnd, StopTraining
from workbench.sweeps.grid import setup_of, threads_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import FILES, Configuration, Measure, SpecError
from workbench.sweeps.trial import SAMPLE_DIGITS, curve_columns, round_digits, settings_of

Say = Callable[[Mapping[str, Any]], None]
LOG = "log.txt"
LINES_SHOWN = 12
"""Lines from the end of a log that a message has."""
SECONDS_END = 10.0


class TrainingError(StoreError):
    """A training by several ranks failed; the message has the reason and the end of its log."""


def job_of(settings: Mapping[str, Any], trainers: int, folder: str | os.PathLike, **options: Any) -> Job:
    """Return the job of `trainers` trainers of this machine for `settings` of `workbench train` by name.

    Checkpoints go to `folder`, none with `steps_saved=0`; cores are shared unless `threads` is given. `options` are
    fields of `Job`. Raises SpecError for settings that cannot be trained so.
    """
    files = {name: str(Path(settings[name]).resolve()) for name in FILES if settings.get(name)}
    configuration = Configuration(**{**settings, **files})  # other machines have other working directories
    trainer.check(configuration, trainers, options.get("sync_every", 1))
    kept = str(Path(folder).resolve()) if options.get("steps_saved", 1) else ""
    options.setdefault("threads", max(threads_of(configuration) // trainers, 1))
    return Job(configuration.model_dump(mode="json"), trainers, kept, **options)


def command_of(job: Job, launcher: Sequence[str] = ()) -> list[str]:
    """Return the command that trains the job by its ranks.

    `launcher` is by default mpiexec of this environment, on this machine, nothing for one rank. SpecError if there is
    none.
    """
    if not launcher and job.trainers > 1:
        beside = Path(sys.executable).parent / "mpiexec"
        found = str(beside) if beside.exists() else shutil.which("mpiexec")
        if found is None:
            raise SpecError("Several trainers need MPI: pip install 'sparse-workbench[mpi]'.")
        launcher = (found, "-n", str(job.trainers))
    return [*launcher, sys.executable, "-m", "workbench.cluster.training", json.dumps(asdict(job))]


def messages(
    job: Job, folder: str | os.PathLike, launcher: Sequence[str] = ()
) -> Generator[dict[str, Any], None, None]:
    """Train a job by its ranks on this machine and yield what rank 0 reports; closing it ends all ranks.

    A dict with "step", "loss", "seconds", "steps_epoch" and "bytes_grown" of each step, and {"done": answer} in the
    end. `launcher` is that of `command_of`. Their log is in `folder`. Raises TrainingError if a rank fails or is lost.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOG, "ab") as log:
        start = log.tell()
        process = subprocess.Popen(
            command_of(job, launcher),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment.measuring_environment(),
        )
    assert process.stdout is not None
    last: dict[str, Any] = {}
    try:
        for line in process.stdout:
            if line.startswith("{"):
                last = json.loads(line)
                if "failed" not in last:
                    yield last
        process.wait(SECONDS_END)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(SECONDS_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        process.stdout.close()
    if "done" not in last:
        printed = (folder / LOG).read_bytes()[start:].decode(errors="replace").strip().splitlines()
        why = last.get("failed") or f"A rank was lost; mpiexec ended with status {process.returncode}."
        ends = "\n".join([f"Its log {folder / LOG} ends with:", *printed[-LINES_SHOWN:]]) if printed else ""
        raise TrainingError(f"{why}\n{ends}".strip())


def train(
    settings: Mapping[str, Any],
    trainers: int,
    folder: str | os.PathLike = "runs/train",
    *,
    tell: Say = lambda told: None,
    **options: Any,
) -> dict[str, Any]:
    """Train settings by several ranks of this machine; return the answer of rank 0.

    Parameters
    ----------
    settings
        Those of `workbench train` by name.
    trainers
        Number of processes, each with a part of the rows and of the weights.
    folder
        Folder of checkpoints and log; a training of the same settings continues from it. None are written with
        `steps_saved=0`.
    tell
        Called with the message of each step.
    **options
        Fields of `trainer.Job`, such as `steps_saved` or `threads`.

    Returns
    -------
    dict
        Steps, rows of a trainer, bytes and qualities on held-out rows.

    Raises
    ------
    SpecError
        For settings that cannot be trained so.
    TrainingError
        If a rank fails or is lost.
    """
    job = job_of(settings, trainers, folder, **options)
    for message in messages(job, folder):
        tell(message)
    return message["done"]


# A trial of a sweep by several trainers: processes are started, their first losses checked, their steps timed.
#
# The columns are those of any trial, as far as they mean something here: a step is timed by its slowest trainer, from
# the end of the one before, messages included; bytes are those of all processes.


CHECKED_STEPS = 3
ALLOWED = 1e-5
"""Relative difference of a mean loss, which is summed in another order than one process does."""


def answers(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one dict, the record of a trial by several trainers, from a request with "cell", "measure", "bytes_limit".

    Any error becomes a record with status "unsupported" or "failed" and a reason.
    """
    configuration = Configuration(**request["cell"])
    row = settings_of(configuration) | {"bytes_limit": request["bytes_limit"]}
    try:
        row |= _train_and_measure(configuration, Measure(**request["measure"]))
    except (SpecError, data.DataError, models.ModelError) as error:
        row |= {"status": "unsupported", "reason": str(error)}
    except Exception as error:
        traceback.print_exc()
        row |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    yield row


def _train_and_measure(configuration: Configuration, measure: Measure) -> dict[str, Any]:
    """Train a configuration by `configuration.trainers` local processes and return the record columns measured.

    Without epochs the training ends after the seconds of warm-up and sampling of `measure`. Logs go to a temporary
    folder that is removed. Raises TrainingError if the training fails.
    """
    trained, trainers = configuration.model_copy(update={"trainers": 1}), configuration.trainers
    settings = {name: value for name, value in trained.model_dump(mode="json").items() if value is not None}
    seconds_most = np.inf if configuration.epochs else measure.seconds_warmup + measure.trial_seconds
    others, steps, answer, lasted = _Others(), list[dict[str, Any]](), None, 0.0
    with tempfile.TemporaryDirectory(prefix="workbench-trial-") as folder:
        job = job_of(settings, trainers, folder, steps_saved=0)
        with closing(messages(job, folder)) as told:
            for message in told:
                answer = message.get("done")
                if "step" in message:
                    steps.append(message)
                    lasted += message["seconds"]
                if lasted > seconds_most and len(steps) >= measure.samples_least:
                    break
    record = {
        "busy_others": others.share(),
        "versions": machine.versions(),
        "blas": environment.blas_name(),
        "threads_used": threads_of(configuration),
        "bytes_peak": int(max(step["bytes_grown"] for step in steps)),
    }
    record |= _sizes(trained, trainers) | _times(steps) | _curve(steps)
    if answer is not None and configuration.epochs:
        record |= _quality(configuration, answer)
        record["bytes_peak"] = int(sum(answer["bytes_grown"]))
    return record | _compare_with_one(trained, trainers, [step["loss"] for step in steps])


@final
class _Others:
    """Share of the cores that other programs use, without the processes that were started here."""

    def __init__(self) -> None:
        """Start observing the CPU time of other programs and of children from now on."""
        self.programs, self.own, self.start = machine.OtherPrograms(), _seconds_of_children(), time.perf_counter()

    def share(self) -> float:
        """Return the share (0 to 1) of all cores used by other programs since the start, children excluded."""
        own = _seconds_of_children() - self.own
        return max(self.programs.share() - own / ((os.cpu_count() or 1) * (time.perf_counter() - self.start)), 0.0)


def _seconds_of_children() -> float:
    """Return the CPU seconds, user and system, of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _sizes(configuration: Configuration, trainers: int) -> dict[str, Any]:
    """Return the record's columns of the data's size: rows, features, width, density, steps an epoch."""
    problem = make_problem(configuration)
    rows = problem.x.shape[0]
    sizes = {"rows_total": problem.rows_total, "features": problem.x.shape[1]}
    sizes["rows_trained"] = rows  # as of one process: the few that no trainer has make the data no other one
    sizes |= {
        "width": problem.width,
        "density_measured": problem.x.nnz / max(problem.x.shape[0] * sizes["features"], 1),
    }
    return sizes | {"steps_epoch": -(-(rows // trainers) // (configuration.batch_rows // trainers))}


def _times(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of the time of a step from messages in order.

    The first step, which loads code, is left out.
    """
    samples = [step["seconds"] for step in steps[1:]] or [step["seconds"] for step in steps]
    seconds, low, high = quantile_interval(samples, NUMBER)
    record = {"samples": round_digits(samples, SAMPLE_DIGITS), "seconds_step": seconds}
    record |= {"seconds_step_low": low, "seconds_step_high": high, "seconds_epoch": seconds * steps[0]["steps_epoch"]}
    record |= {"steps_timed": len(samples)}
    return record | {"seconds_first_step": steps[0]["seconds"], "seconds_measured": sum(samples)}


def _curve(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns curve, loss_first and loss_last from the messages of steps, in order."""
    seconds, losses = (np.array([step[name] for step in steps]) for name in ("seconds", "loss"))
    return curve_columns(seconds, losses, steps[0]["step"])


def _quality(configuration: Configuration, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns quality, quality_name and measures from the answer of trainer 0."""
    model, found = models.get(configuration.model), answer["qualities"]
    measures = {name: found[name] for name in model.measures}
    return {"quality": found[model.quality_name], "quality_name": model.quality_name, "measures": measures}


def _compare_with_one(configuration: Configuration, trainers: int, losses: Sequence[float]) -> dict[str, Any]:
    """Compare the first `losses` of several trainers with those of one process that computes the same batches.

    Trains `CHECKED_STEPS` steps here. Returns the columns error, error_allowed, status and reason; the status is "ok",
    or "wrong" if a relative error exceeds `ALLOWED`.
    """
    setup, problem, known = setup_of(configuration), make_problem(configuration), list[float]()
    feed = trainer.joined(problem, setup, trainers)
    module = trainer.module_of(setup, problem, None, feed, workers=trainers)

    def keep(event: BatchEnd) -> None:
        """Append the loss of a batch to `known`; raises StopTraining after CHECKED_STEPS batches. `event` is unused."""
        known.append(float(module.outputs[0]))
        if len(known) == CHECKED_STEPS:
            raise StopTraining

    with on_threads(1):
        module.fit(feed, epochs=1, batch_end=keep)
    error = max(abs(one - two) / max(abs(two), 1e-12) for one, two in zip(losses, known, strict=False))
    record = {"error": error, "error_allowed": ALLOWED, "status": "ok", "reason": ""}
    if error > ALLOWED:
        record |= {
            "status": "wrong",
            "reason": f"Losses of {trainers} trainers differ from those of one by {error:.3g}.",
        }
    return record


def main() -> None:
    """Train the job of the command line as a rank; an error ends all ranks."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no message
    job = Job(**json.loads(sys.argv[1]))

    def say(told: Mapping[str, Any]) -> None:
        """Print a message as one line of JSON."""
        print(json.dumps(told), file=out, flush=True)

    communicator: Any = OneRank() if job.trainers == 1 else world()
    try:
        answer = trainer.train(communicator, job, say)
    except Exception as error:  # whatever it is, the other ranks would wait for this one
        traceback.print_exc()
        sys.stderr.flush()
        is_told = isinstance(error, StoreError | SpecError | data.DataError | models.ModelError | OSError)
        with suppress(OSError):  # nobody reads any more
            say({"failed": str(error) if is_told else f"{type(error).__name__}: {error}"})
        if job.trainers > 1:
            communicator.Abort(1)
        sys.exit(1)
    if not communicator.rank:
        say({"done": answer})


if __name__ == "__main__":
    main()
