"""Distributed training controlled by lines of JSON: `python -m workbench.cluster.training`.

The first line of its input is a request: `where` (`workbench.cluster.dask_hosts`), `folder` for logs, and a `Job`. What
happens is a line each on its output, in the end {"done": ...}, {"stopped"} or {"failed": why}. The end of its input
stops it.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np

from workbench import data, models
from workbench.cluster import trainer
from workbench.cluster.security import OpenClusterError
from workbench.cluster.team import Team, TeamError
from workbench.cluster.trainer import Job, on_threads
from workbench.data import DataError
from workbench.formats.compressed import assemble
from workbench.kvstore import LazyRandomRows, StoreError
from workbench.measure import loads, machine
from workbench.measure.clock import quantile_interval
from workbench.measure.rounds import NUMBER
from workbench.models import ModelError
from workbench.module import BatchEnd, StopTraining
from workbench.sweeps.grid import setup_of, threads_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import FILES, Configuration, Measure, SpecError
from workbench.sweeps.trial import SAMPLE_DIGITS, curve_columns, round_digits, settings_of

Say = Callable[[Mapping[str, Any]], None]


def train(
    where: str,
    settings: Mapping[str, Any],
    trainers: int,
    folder: str | os.PathLike = "runs/train",
    *,
    shards: int | None = None,
    address: str = "",
    tell: Say = lambda said: None,
    begun: Callable[[Team], None] = lambda team: None,
    work: str = trainer.WORK,
    **options: Any,
) -> dict[str, Any] | None:
    """Train a configuration by several trainers on the cluster `where`; return the answer of trainer 0.

    None if the training was stopped. `settings` are those of `workbench train` by name; `options` are those of `Job`,
    such as `steps_saved`. Logs and checkpoints are in `folder`, from which a training of the same settings goes on;
    with `steps_saved=0` there are no checkpoints. `address` is that at which other machines reach this one, "" for one
    on the route to them. `tell(message)` is called for events (see `Team`) on a separate thread, `begun(team)` once, to
    stop it by `team.stop`. Raises SpecError for settings that cannot be trained so, StoreError if processes fail.
    """
    try:
        from workbench.cluster.dask_hosts import Hosts
    except ImportError as error:
        raise SpecError(str(error)) from None
    files = {name: str(Path(settings[name]).resolve()) for name in FILES if settings.get(name)}
    configuration = Configuration(**{**settings, **files})  # other machines have other working directories
    trainer.check(configuration, trainers)
    folder = Path(folder).resolve()
    kept = str(folder) if options.get("steps_saved", 1) else ""
    job = Job(configuration.model_dump(mode="json"), trainers, kept, code=trainer.describe_code(), **options)
    with Hosts(where, folder, address=address) as hosts:
        addresses = hosts.addresses()
        tell({"processes": [hosts.name(address) for address in addresses]})
        if hosts.own and where.startswith("local:") and job.threads is None:
            job = replace(job, threads=max(threads_of(configuration) // len(addresses), 1))
        team = Team(hosts, job, shards, tell, work)
        begun(team)
        return team.run()


def serve(request: Mapping[str, Any], say: Say, ended: threading.Event) -> None:
    """Run the requested training and send events by `say`.

    At the end {"done": ...}, {"stopped": True} or {"failed": why}. `request` has the arguments of `train`. Setting the
    event `ended` stops the training. Never raises.
    """

    def stop_when_asked(team: Team) -> None:
        """Start a thread that stops the team once `ended` is set."""

        def wait_and_stop() -> None:
            """Wait for `ended`, then stop the team; body of a thread."""
            ended.wait()
            team.stop()

        threading.Thread(target=wait_and_stop, daemon=True).start()

    try:
        answer = train(**request, tell=say, begun=stop_when_asked)
    except (StoreError, SpecError, DataError, ModelError, OpenClusterError, OSError) as error:
        say({"failed": str(error)})
        return
    except Exception as error:  # whatever it is, it is told to who asked, and printed here
        traceback.print_exc(file=sys.stderr)
        say({"failed": f"{type(error).__name__}: {error}"})
        return
    say({"stopped": True} if answer is None else {"done": answer})


def main() -> None:
    """Serve one request read from standard input, and exit the process; events are lines of JSON on standard output.

    What libraries print goes to standard error; SIGINT is ignored, the end of the input stops the training.
    """
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it is asked, and ends the input
    lock, ended = threading.Lock(), threading.Event()

    def say(said: Mapping[str, Any]) -> None:
        """Print a message as one line of JSON; holds the lock, so that threads take turns."""
        with lock:
            print(json.dumps(said), file=out, flush=True)

    def read_to_the_end() -> None:
        """Read standard input until it ends, then set `ended`; body of a thread."""
        while sys.stdin.read(1):
            pass
        ended.set()

    request = json.loads(sys.stdin.readline())
    threading.Thread(target=read_to_the_end, daemon=True).start()
    serve(request, say, ended)
    os._exit(0)  # threads of the cluster have nothing to keep


if __name__ == "__main__":
    main()


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


@final
class _ReceivedSteps:
    """The steps that trainers reported; without epochs the training ends after enough seconds of steps."""

    def __init__(self, configuration: Configuration, measure: Measure) -> None:
        """Keep the time after which a training without epochs is stopped: warm-up and sampling of `measure`."""
        self.steps: dict[int, Mapping[str, Any]] = {}
        self.seconds_most = measure.seconds_warmup + measure.seconds_total if not configuration.epochs else np.inf
        self.steps_least = measure.samples_least
        self.team: Team | None = None

    def begun(self, team: Team) -> None:
        """Keep the team, which `tell` stops."""
        self.team = team

    def tell(self, said: Mapping[str, Any]) -> None:
        """Keep the message of a step by its number; stop the team once time and number of steps suffice."""
        if "step" in said:
            self.steps[said["step"]] = said
            is_enough = sum(step["seconds"] for step in self.steps.values()) > self.seconds_most
            if is_enough and len(self.steps) >= self.steps_least and self.team is not None:
                self.team.stop()


def _train_and_measure(configuration: Configuration, measure: Measure) -> dict[str, Any]:
    """Train a configuration by `configuration.trainers` local processes and return the record columns measured.

    Logs go to a temporary folder that is removed. Raises TeamError if the training fails.
    """
    trained = configuration.model_copy(update={"trainers": 1})
    settings = {name: value for name, value in trained.model_dump(mode="json").items() if value is not None}
    heard, threads = _ReceivedSteps(configuration, measure), max(threads_of(configuration) // configuration.trainers, 1)
    others = _Others()
    with tempfile.TemporaryDirectory(prefix="workbench-trial-") as folder:
        answer = train(
            f"local:{configuration.trainers}",
            settings,
            configuration.trainers,
            Path(folder),
            tell=heard.tell,
            begun=heard.begun,
            threads=threads,
            steps_saved=0,
        )
    steps = [heard.steps[number] for number in sorted(heard.steps)]
    record = {
        "busy_others": others.share(),
        "versions": machine.versions(),
        "blas": loads.blas_name(),
        "threads_used": threads_of(configuration),
    }
    record |= _sizes(trained, configuration.trainers) | _times(steps) | _curve(steps)
    if answer is not None and configuration.epochs:
        record |= _quality(configuration, answer)
    if heard.team is not None:  # also of a training that was stopped
        record["bytes_peak"] = sum(heard.team.grown.values())
    return record | _compare_with_one(trained, configuration.trainers, [step["loss"] for step in steps])


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


# One epoch of generated rows whose files have twice the bytes that a process may ask for, and the same with rows
# held.
#
# Two processes train; the system refuses each of them memory above the limit (`measure.memory.limit_memory`), so
# that a training that ends stayed below it. That the limit is one is shown by the second training, which holds all
# rows and is refused them. Rows are read into memory, not mapped, so all that a process has of them is its own.

# Generated rows of the shape of click logs, to train more of them than a process may hold.
#
# A row has an entry, 1, in each of 39 fields; the fields share D columns by sizes that double, and within a field small
# numbers are frequent. Labels, 0 or 1, are drawn from a logistic model whose weights are fixed by the seed. A block
# depends on the seed and its number alone.


FIELDS = 39
BLOCK_ROWS = 50_000
SKEW = 4
"""A uniform number to this power is where in its field a value stands: a quarter of all are in the first 1 / 256."""


def borders(features: int) -> np.ndarray:
    """Return the first column of each field, and the end of the last: int64 `[FIELDS + 1]`, increasing."""
    shares = 2.0 ** np.linspace(0, 12, FIELDS)
    ends = np.floor(np.cumsum(shares / shares.sum()) * (features - FIELDS)).astype(np.int64) + np.arange(1, FIELDS + 1)
    return np.concatenate([[0], ends])


def blocks(rows: int, features: int, seed: int) -> Iterator[data.RowBlock]:
    """Yield generated rows as blocks of up to `BLOCK_ROWS`: x csr float32 `[rows, features]` with ones, labels int64.

    Each row has one entry in each of `FIELDS` fields; a block depends on `seed` and its index only.
    """
    starts = borders(features)
    weights = LazyRandomRows((features, 1), "float32", "normal", 0.5, seed, "click weights")
    for number, first in enumerate(range(0, rows, BLOCK_ROWS)):
        count, made = min(BLOCK_ROWS, rows - first), np.random.default_rng((seed, number))
        places = np.floor(made.random((count, FIELDS)) ** SKEW * np.diff(starts)).astype(np.int64)
        columns = (starts[:-1] + places).reshape(-1)
        unique, inverse = np.unique(columns, return_inverse=True)
        scores = weights.rows(unique)[inverse, 0].reshape(count, FIELDS).sum(axis=1)
        labels = (made.random(count) < 1 / (1 + np.exp(-(scores - 1)))).astype(np.int64)
        indptr = np.arange(0, count * FIELDS + 1, FIELDS, dtype=np.int32)
        values = np.ones(columns.size, np.float32)
        x = assemble("csr", indptr, columns.astype(np.int32), values, (count, features))
        yield data.RowBlock(x, labels)


def write(folder: Path, rows: int, features: int = 10**6, seed: int = 0) -> int:
    """Write generated rows into the folder as a stored data set, unless it exists; return the bytes of its files.

    Click-like data of `features` columns by `seed`. Files have no values, which are all 1: in memory rows take more.
    """
    if not folder.exists():
        named = data.RowBlocks(blocks(rows, features, seed), "clicks", "generated", "none", features)
        data.convert(named, folder, kind="classes")
    return sum(path.stat().st_size for path in folder.rglob("*.npy"))


MODEL = "logistic"
BATCH_ROWS = 8192
PROCESSES = 2
READ_WHOLE = "whole=True"
"""The reading that holds all rows (`data.load`)."""


def names_of(rows: int) -> list[str]:
    """Return the names of the two records that `trained` yields: rows streamed, rows held."""
    return [f"{rows} rows streamed", f"{rows} rows held"]


def trained(rows: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of two trainings of one epoch on `rows` generated rows: streamed from disk, held in memory.

    Both have a memory limit of half the data's bytes for each process. Data and logs go to `folder`.
    """
    start, made = time.perf_counter(), folder / f"clicks-{rows}.sparse"
    whole = write(made, rows)
    record = {
        "part": "rows",
        "bytes_data": whole,
        "bytes_limit": whole // 2,
        "machines": PROCESSES,
        "is_measured": True,
    }
    settings = {"dataset": "sparse", "path": str(made), "model": MODEL, "width": 1, "epochs": 1}
    settings |= {"batch_rows": min(BATCH_ROWS, rows // 8), "learning_rate": 0.05}
    record["seconds_made"] = time.perf_counter() - start
    for name, reading in zip(names_of(rows), ({}, {"reading": READ_WHOLE}), strict=True):
        yield record | {"what": name, "is_held": bool(reading)} | _train_limited(settings | reading, folder, whole // 2)


def _train_limited(settings: dict[str, Any], folder: Path, limit: int) -> dict[str, Any]:
    """Train once within `limit` bytes of memory for each process; return the record columns.

    The status is "memory" if that was refused; TeamError for other failures. Logs go to `folder`.
    """
    begun, logs = time.perf_counter(), folder / f"streamed-{time.time_ns()}"
    try:
        options: dict[str, Any] = {"steps_saved": 0, "threads": 1, "bytes_most": limit}
        answer = train(f"local:{PROCESSES}", settings, PROCESSES, logs, **options)
    except TeamError as error:
        reason = str(error).partition("\n")[0]
        if "MemoryError" not in reason:
            raise
        return {"status": "memory", "reason": reason, "seconds_all": time.perf_counter() - begun}
    assert answer is not None  # nobody stops it
    peaks = {name: max(answer[name]) for name in ("bytes_resident", "bytes_asked")}
    found = {"quality": answer["qualities"]["AUC"], "rows_trained": PROCESSES * answer["rows"]}
    return peaks | found | {"seconds_all": time.perf_counter() - begun}
