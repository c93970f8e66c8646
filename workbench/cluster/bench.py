"""Bytes and times of training on several machines: `python -m workbench.cluster.bench RESULTS RUNS all|quick|ROWS`.

Bytes: a step pulls and pushes the rows that a batch touches, of tables of a million and of a hundred million rows, at
the cost of the active rows. Steps: measured with 1, 2 and 4 processes of this machine, and predicted for these and for
1 to 256 machines from what one process and the loopback network take. Of so many ROWS, generated, one epoch is trained
while they stay on disk. Records go to the folder RESULTS and are printed as they come; existing ones of this code and
machine are not measured again. Logs and data go to the folder RUNS.
"""

import functools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import scipy.optimize

from workbench import formats, store
from workbench.cluster import trainer, training
from workbench.cluster.dask_hosts import Hosts
from workbench.cluster.dask_transport import DaskTransport
from workbench.cluster.sharded import ShardedStore
from workbench.cluster.trainer import Job, Tell, on_threads
from workbench.cluster.training import train
from workbench.cluster.transport import Transport
from workbench.formats import RowSparse
from workbench.kvstore import LazyRandomRows
from workbench.measure import closure, machine
from workbench.module import BatchEnd, StopTraining
from workbench.optimizers import Updater
from workbench.sweeps.grid import setup_of, threads_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration, roots_of

# Measurements for the cost model (`workbench.cluster.bench`): steps of one process, and of processes next to each
# other.
#
# All are steps of a process that was started for a training, on one thread: alone, with shards in the process itself,
# to which it sends every message of a training, and while the other cores do the same. No process waits for another
# one, so what trainings of several processes take is in none of them.


# Cost model of a second machine: the time of a step on 1 to 256 machines, from what is measured in one process.
#
# A step of R rows on M machines, each of them a trainer with R / M rows and a shard with a part of each table:
#
# seconds(M) = fixed + row R / M          forward and backward, and what a pull and a push take whatever their size
#            + active U(R / M)            ids sorted and cut, rows packed, copied, sent, read, summed and updated
#            + shard (M - 1)              messages to one shard more, and as many from one trainer more
#            + waiting(M)                 all wait for the slowest: spread E[largest of M normals] of all above
#            + 2 latency + bytes(M) / bandwidth          what the network adds to messages of one machine to itself
#
# U(r) is how many rows of the tables r rows of a batch touch, counted in batches: a shard gets as many from all
# trainers together as a trainer has for all shards. One machine alone has no messages. The coefficients are measured
# in a process that trains and is its own shard, with all messages of a training sent to itself
# (`workbench.cluster.bench`). The model leaves out that networks have one speed while one sends and another while
# all do, and that a message to another process takes longer than one to itself, which counts where a step takes a
# few milliseconds: what it says does not pay, does not; what it says pays is worth a try.
#
# Processes of one machine are predicted to be checked against what is measured. They share its C cores: beyond C
# they take turns, so all of a step takes M / C as long, and cores that are all at work are slower than one alone
# (`slowdown`).
#
# >>> work = Work(rows=1024, active={1024: 9000, 512: 6000, 256: 3800}, bytes_row=64)
# >>> speeds = Speeds(alone=Line(row=4e-6, active=1e-8), shared=Line(row=4e-6, active=1e-7))
# >>> made = predict(work, speeds, Network(latency=1e-4, bytes_second=1e9))
# >>> [(step.machines, round(1e3 * step.seconds, 1)) for step in made], pays_from(made)
# ([(1, 4.2), (2, 3.7), (4, 2.1)], 2)

MACHINES = tuple(2**power for power in range(9))
BYTES_ID = 4
"""Bytes of a row's number on its shard, which holds up to 2**32 rows."""


@final
@dataclass(frozen=True)
class Work:
    """A step: `rows` of a batch; rows of tables that r of its rows touch, by r; `bytes_row` of the values of one."""

    rows: int
    active: Mapping[int, float]
    bytes_row: int

    def bytes_moved(self, machines: int) -> float:
        """Return the bytes of indices and values that one trainer of `machines` sends and receives in a step.

        KeyError if `active` has no entry for rows // machines.
        """
        return 2 * self.active[self.rows // machines] * (BYTES_ID + self.bytes_row)


@final
@dataclass(frozen=True)
class Line:
    """Seconds of a step of one process: `fixed`, for a row of its batch, an active row of the tables, a shard more."""

    row: float
    active: float
    fixed: float = 0.0
    shard: float = 0.0

    def seconds(self, rows: float, active: float, shards: int = 1) -> float:
        """Return predicted seconds of a step for `rows` of a batch, `active` table rows and `shards` shards."""
        return self.fixed + self.row * rows + self.active * active + self.shard * (shards - 1)


@final
@dataclass(frozen=True)
class Speeds:
    """Time of a step of one process: `alone`, and `shared`, with a store whose one shard it is itself.

    `spread` is the standard deviation of the time of a step, over that time.
    """

    alone: Line
    shared: Line
    spread: float = 0.0


@final
@dataclass(frozen=True)
class Network:
    """Seconds that a network adds to a message and its answer, and bytes a second; by default it adds nothing."""

    latency: float = 0.0
    bytes_second: float = math.inf


@final
@dataclass(frozen=True)
class Cores:
    """Cores that processes of one machine share, so many; all at work, each takes `slowdown` times as long."""

    count: int
    slowdown: float = 1.0

    def factor(self, processes: int) -> float:
        """Return the ratio of the time of a step in each of `processes` at once to that of one alone, 1 or more."""
        if processes <= self.count:
            return 1 + (self.slowdown - 1) * (processes - 1) / max(self.count - 1, 1)
        return self.slowdown * processes / self.count


@final
@dataclass(frozen=True)
class Step:
    """The predicted time of a step, seconds, and its parts; `messages` are packed, carried and answered."""

    machines: int
    computing: float
    messages: float
    waiting: float
    bytes_moved: float

    @property
    def seconds(self) -> float:
        """Seconds of a step: computing, messages and waiting together."""
        return self.computing + self.messages + self.waiting


def active_rows(columns: Iterable[Sequence[np.ndarray]], rows: int) -> dict[int, float]:
    """Return {r: mean active table rows of r batch rows} for r = `rows`, rows // 2, rows // 4, ..., rows // 256.

    `columns` has for each batch a sequence with the int column indices of each row. O(entries log entries) for each r.
    """
    counts: dict[int, list[int]] = {}
    for batch in columns:
        for r in {rows // machines for machines in MACHINES if machines <= rows}:
            slices = [batch[first : first + r] for first in range(0, rows - r + 1, r)]
            counts.setdefault(r, []).extend(np.unique(np.concatenate(slice)).size for slice in slices)
    return {r: statistics.fmean(found) for r, found in sorted(counts.items(), reverse=True)}


def predict(
    work: Work, speeds: Speeds, network: Network, machines: Sequence[int] = MACHINES, cores: Cores | None = None
) -> list[Step]:
    """Predict the time of a step on each number of `machines`, or with `cores` of processes on one machine.

    `work` is the step, `speeds` and `network` are measured times. Returns one `Step` for each number, in order; numbers
    without an entry in `work.active` are left out.
    """
    known = [count for count in machines if work.rows // count in work.active and count <= work.rows]
    return [_predict_step(work, speeds, network, count, cores) for count in known]


def _predict_step(work: Work, speeds: Speeds, network: Network, machines: int, cores: Cores | None) -> Step:
    """Return the predicted time of a step on `machines` machines (processes if `cores` is given), by part."""
    rows, active = work.rows / machines, work.active[work.rows // machines]
    alone = speeds.alone.seconds(rows, active)
    if machines == 1 and cores is None:
        return Step(1, alone, 0.0, 0.0, 0.0)
    whole = speeds.shared.seconds(rows, active, machines)
    computing, factor, moved = min(alone, whole), cores.factor(machines) if cores else 1.0, work.bytes_moved(machines)
    messages = factor * (whole - computing) + 2 * network.latency + moved / network.bytes_second
    return Step(
        machines, factor * computing, messages, factor * whole * speeds.spread * expected_slowest(machines), moved
    )


def expected_slowest(machines: int) -> float:
    """Return by how many standard deviations the largest of `machines` normal values exceeds the mean (Blom)."""
    return statistics.NormalDist().inv_cdf((machines - 0.375) / (machines + 0.25))


def pays_from(steps: Sequence[Step]) -> int | None:
    """Return the least number of machines above 1 with a faster step than one machine; None if there is none."""
    alone = next(step.seconds for step in steps if step.machines == 1)
    return min((step.machines for step in steps if step.seconds < alone), default=None)


STEPS = 45
"""Steps of a training that is timed, a third of which load code and draw rows first."""
SHARDS = 4
"""Shards of the training that says what each more takes."""
ROUNDS = 3
"""How often processes next to each other are compared with one."""
SECONDS_ANSWER = 300.0


def fit_step_times(hosts: "Hosts", configuration: Configuration, active: Mapping[int, float]) -> Speeds:
    """Measure steps of `configuration` in the first process of `hosts` at several batch heights and fit `Speeds`.

    `active` is that of `active_rows`. Non-negative least squares of median seconds.
    """
    heights = [rows for rows in active if rows >= configuration.batch_rows // 8]
    alone, shared, several = (
        [_steps(hosts, configuration, height, shards) for height in heights] for shards in (0, 1, SHARDS)
    )
    added = [float(np.median(more) - np.median(one)) for more, one in zip(several, shared, strict=True)]
    shard = max(statistics.median(added), 0.0) / (SHARDS - 1)
    return Speeds(_line(active, heights, alone), _line(active, heights, shared, shard), _spread(shared))


def core_slowdown(hosts: "Hosts", configuration: Configuration) -> Cores:
    """Measure how much slower steps of `configuration` are in processes on all cores at once than in one.

    Returns cores and factor, 1 or more; median of `ROUNDS` comparisons.
    """
    count, addresses = threads_of(configuration), hosts.addresses()
    ratios = [_crowding_ratio(hosts, configuration, addresses[:count]) for _ in range(ROUNDS)]
    return Cores(count, max(statistics.median(ratios), 1.0))


def _crowding_ratio(hosts: "Hosts", configuration: Configuration, addresses: Sequence[str]) -> float:
    """Return the ratio of step time in the processes at `addresses`, all at once, to that in the first one alone."""
    alone, together = (_run_at_once(hosts, configuration, some, 1) for some in (addresses[:1], addresses))
    return float(np.mean([np.median(steps) for steps in together]) / np.median(alone[0]))


def _line(active: Mapping[int, float], heights: Sequence[int], steps: Sequence[np.ndarray], shard: float = 0.0) -> Line:
    """Fit seconds = fixed + row * rows + active * active rows, coefficients >= 0, to medians by heights.

    `steps` has the seconds of single steps, a float64 array for each of `heights`; `shard` is passed on.
    """
    known = np.array([[1.0, height, active[height]] for height in heights])
    scale = known.max(axis=0)
    seconds = np.array([np.median(each) for each in steps])
    fixed, row, by_active = (scipy.optimize.nnls(known / scale, seconds)[0] / scale).tolist()
    return Line(row, by_active, fixed, shard)


def _spread(steps: Sequence[np.ndarray]) -> float:
    """Return the relative standard deviation of step times from quantiles 0.16 and 0.84; median over all heights."""
    quantiles = [np.quantile(each, [0.16, 0.5, 0.84]) for each in steps]
    return statistics.median(float((high - low) / 2 / middle) for low, middle, high in quantiles)


def _steps(hosts: "Hosts", configuration: Configuration, height: int, shards: int) -> np.ndarray:
    """Return the seconds of single steps with `height` batch rows in the first process, float64 `[steps]`.

    The process has `shards` shards itself; 0 means training without a store.
    """
    return _run_at_once(hosts, configuration.model_copy(update={"batch_rows": height}), hosts.addresses()[:1], shards)[
        0
    ]


def _run_at_once(
    hosts: "Hosts", configuration: Configuration, addresses: Sequence[str], shards: int
) -> list[np.ndarray]:
    """Run steps of `configuration` in each of the processes at `addresses` at once; return their seconds.

    A float64 array `[steps]` for each. Every process has `shards` separate shards; 0 means no store. Raises
    RuntimeError if one fails.
    """
    work = f"{__name__}:{(seconds_with_store if shards else seconds_without_store).__name__}"
    job = Job(configuration.model_dump(mode="json"), 1).about
    runs = [hosts.begin([address], max(shards, 1), 1) for address in addresses]
    for _, placed in runs:
        placed.result(SECONDS_ANSWER)
    asked = [hosts.start(run, address, 0, work, job) for (run, _), address in zip(runs, addresses, strict=True)]
    found = [_answer(future) for future in asked]
    for run, _ in runs:
        hosts.remove(run)
    return [np.array(answer["seconds"]) for answer in found]


def _answer(future: Future) -> dict[str, Any]:
    """Wait for a trainer's JSON answer and return its "answer"; RuntimeError with its trace if it failed.

    Raises TimeoutError after `SECONDS_ANSWER`.
    """
    said = json.loads(future.result(SECONDS_ANSWER))
    if "error" in said:
        raise RuntimeError(f"A step could not be timed: {said['error']}\n{said['trace']}")
    return said["answer"]


def seconds_without_store(transport: Transport, number: int, job: Job, tell: Tell) -> dict[str, list[float]]:
    """Return {"seconds": [of each step]} of training `job.cell` without a store; a trainer's work, run in its process.

    `transport`, `number` and `tell` are ignored.
    """
    return {"seconds": time_steps(Configuration(**job.cell), None)}


def seconds_with_store(transport: Transport, number: int, job: Job, tell: Tell) -> dict[str, list[float]]:
    """Return {"seconds": [of each step]} of training `job.cell` with the shards of `transport`; a trainer's work.

    `number` and `tell` are ignored.
    """
    return {"seconds": time_steps(Configuration(**job.cell), ShardedStore(transport))}


def time_steps(configuration: Configuration, store: ShardedStore | None) -> list[float]:
    """Return the seconds of single steps of a configuration on one thread, the first third of `STEPS` left out.

    `store` None trains without a store.
    """
    setup, problem = setup_of(configuration), make_problem(configuration)
    feed = trainer.shared(problem, setup, 0, 1)
    module, times = trainer.module_of(setup, problem, store, feed), [time.perf_counter()]

    def keep(event: BatchEnd) -> None:
        """Record the time after a batch; raise StopTraining after STEPS batches. `event` is unused."""
        times.append(time.perf_counter())
        if len(times) > STEPS:
            raise StopTraining

    with on_threads(1):
        module.fit(feed, epochs=1, batch_end=keep)
    steps = np.diff(times)
    return steps[len(steps) // 3 :].tolist()


TABLES = (10**6, 10**8)
WIDTH = 16
PROCESSES = (1, 2, 4)
ROOTS = frozenset({"workbench.cluster.bench", "workbench.cluster.worker"})
"""Modules that what is measured starts from."""
FINAL = ("ok", "memory")
"""Statuses of what is not measured again."""

Columns = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Sizes of what is measured: rows that a step touches, steps of each, rows of the data and of a batch, features."""

    active: int = 20_000
    steps: int = 5
    rows: int = 60_000
    batch_rows: int = 1024
    features: int = 100_000

    @property
    def configuration(self) -> Configuration:
        """Configuration that is trained to time it: power-law data, softmax, about 40 entries a row."""
        shape = {"rows": self.rows, "features": self.features, "density": 40 / self.features, "width": WIDTH}
        return Configuration(dataset="power_law", model="softmax", batch_rows=self.batch_rows, epochs=1, **shape)

    def name_of(self, processes: int, how: str) -> str:
        """Return the name of a step's record, "step 2 measured, 1024 of 60000 rows, 100000 features"."""
        return f"step {processes} {how}, {self.batch_rows} of {self.rows} rows, {self.features} features"


QUICK = Sizes(2000, 2, 1500, 128, 2000)
SIZES = {"all": Sizes(), "quick": QUICK}


class Part(NamedTuple):
    """Rows that are measured together: what each is called, and what gives their columns."""

    names: list[str]
    measure: Callable[[], Iterable[Columns]]


def parts_of(what: str, folder: Path) -> Iterator[Part]:
    """Yield the parts to measure; `what` is "all", "quick" or a number of rows as text.

    Logs and data go to `folder`. ValueError if `what` is none of these. Nothing is measured before a part's `measure`.
    """
    if what not in SIZES:
        yield Part(training.names_of(int(what)), lambda: training.trained(int(what), folder))
        return
    sizes = SIZES[what]
    for features in TABLES:
        yield Part([_name_of_bytes(features, sizes)], functools.partial(_measure_bytes, features, folder, sizes))
    counts = [count for count in MACHINES if count <= sizes.batch_rows]
    names = [sizes.name_of(count, "predicted") for count in counts]
    names += [sizes.name_of(count, "predicted here") for count in PROCESSES]
    yield Part(names, functools.partial(_predict_here, sizes, folder))
    for processes in PROCESSES:
        yield Part([sizes.name_of(processes, "measured")], functools.partial(_measure_step, processes, folder, sizes))


def _name_of_bytes(features: int, sizes: Sizes) -> str:
    """Return the name of a record of bytes, "bytes of 1000000 rows, 20000 touched, 5 steps"."""
    return f"bytes of {features} rows, {sizes.active} touched, {sizes.steps} steps"


def _measure_bytes(features: int, folder: Path, sizes: Sizes) -> Iterator[Columns]:
    """Yield the columns of one byte measurement with `features` table rows, on two processes that are started for it.

    Logs go to `folder`.
    """
    with Hosts("local:2", folder / "hosts") as hosts:
        yield bytes_of(hosts, features, sizes)


def bytes_of(hosts: Hosts, features: int, sizes: Sizes) -> Columns:
    """Measure the bytes and time of steps on a lazily generated table of `features` rows and `WIDTH` columns.

    Each step pulls and pushes `sizes.active` random rows on two shards; returns record columns, with bytes_least from
    4-byte indices and float32 values.
    """
    sharded = ShardedStore(DaskTransport(hosts.place(2, 1), hosts.client))
    sharded.init("w", LazyRandomRows((features, WIDTH), "float32", "normal", 0.01, 0, "w"))
    sharded.set_optimizer(Updater("adagrad"))
    made, seconds, moved, least, seen = np.random.default_rng(0), [], [], [], np.empty(0, np.int64)
    out = formats.zeros((features, WIDTH), "row_sparse", np.dtype("float32"))
    for _ in range(sizes.steps):
        active = np.unique(made.integers(0, features, sizes.active))
        before, start = _bytes_moved(sharded), time.perf_counter()
        sharded.pull_into({"w": out}, {"w": active})
        sharded.push("w", RowSparse(np.ones((active.size, WIDTH), np.float32), active, out.shape))
        seconds.append(time.perf_counter() - start)
        moved.append(_bytes_moved(sharded) - before)
        least.append(2 * active.size * (BYTES_ID + 4 * WIDTH))
        seen = np.union1d(seen, active)
    record = {"part": "bytes", "is_measured": True, "machines": 2, "features": features, "width": WIDTH}
    record |= {"touched": statistics.fmean(least) / (2 * (BYTES_ID + 4 * WIDTH)), "rows_made": int(seen.size)}
    record |= {"bytes_moved": statistics.fmean(moved), "bytes_least": statistics.fmean(least)}
    record |= {"ratio": sum(moved) / sum(least), "seconds_step": statistics.median(seconds)}
    return record | {"what": _name_of_bytes(features, sizes)}


def _bytes_moved(sharded: ShardedStore) -> int:
    """Return the bytes that a store has sent and received so far."""
    return sharded.traffic.bytes_sent + sharded.traffic.bytes_received


def _measure_step(processes: int, folder: Path, sizes: Sizes) -> Iterator[Columns]:
    """Yield the record of the median step time of a training by `processes` local processes, a shard in each.

    Trains from the start, without checkpoints; the first third of the steps is left out.
    """
    messages: list[Mapping[str, Any]] = []
    settings = {name: value for name, value in sizes.configuration.model_dump(mode="json").items() if value is not None}
    where = folder / f"steps-{processes}-{time.time_ns()}"  # never one that goes on from a checkpoint
    train(f"local:{processes}", settings, processes, where, tell=messages.append, threads=1, steps_saved=0)
    seconds = [said["seconds"] for said in messages if "step" in said]
    late = seconds[len(seconds) // 3 :]  # the first ones load code, and draw rows
    known = _step(sizes, processes, True, threads_of(sizes.configuration))
    yield known | {"seconds_step": statistics.median(late), "what": sizes.name_of(processes, "measured")}


def _step(sizes: Sizes, machines: int, is_measured: bool, cores: int | None) -> Columns:
    """Return the columns that every record of a step's time has, measured or predicted.

    `cores` None is many machines.
    """
    record = {"part": "step", "is_measured": is_measured, "machines": machines, "cores": cores, "width": WIDTH}
    return record | {"features": sizes.features, "batch_rows": sizes.batch_rows}


def _predict_here(sizes: Sizes, folder: Path) -> Iterator[Columns]:
    """Return an iterator of records (dicts of columns) of predicted step times for data and batches of `sizes`.

    Speeds are measured on this machine now, in processes that are started for it; their logs go to `folder`.
    """
    configuration = sizes.configuration
    with Hosts(f"local:{max(threads_of(configuration), 2)}", folder / "hosts") as hosts:
        active = active_rows_by(sizes)
        return predict_step_times(
            sizes, active, fit_step_times(hosts, configuration, active), core_slowdown(hosts, configuration)
        )


def active_rows_by(sizes: Sizes) -> dict[int, float]:
    """Return {r: mean active table rows of r batch rows}, counted in the first four batches of the data."""
    problem = make_problem(sizes.configuration)
    starts = range(0, min(problem.x.shape[0], 4 * sizes.batch_rows) - sizes.batch_rows + 1, sizes.batch_rows)
    columns = [
        np.split(part.indices, part.indptr[1:-1]) for at in starts for part in [problem.x[at : at + sizes.batch_rows]]
    ]
    return active_rows(columns, sizes.batch_rows)


def predict_step_times(sizes: Sizes, active: Mapping[int, float], known: Speeds, cores: Cores) -> Iterator[Columns]:
    """Yield a record of predicted step time for each number of machines, then of processes on these `cores`.

    `active` and `known` are measured on one process.
    """
    work = Work(sizes.batch_rows, active, 4 * WIDTH)
    for how, shared in (("predicted", None), ("predicted here", cores)):
        for step in predict(work, known, Network(), PROCESSES if shared else MACHINES, shared):
            record = {
                "seconds_step": step.seconds,
                "seconds_computing": step.computing,
                "seconds_network": step.messages,
            }
            record |= {"seconds_waiting": step.waiting, "bytes_moved": step.bytes_moved}
            record |= {"touched": active[sizes.batch_rows // step.machines]}
            settings = _step(sizes, step.machines, False, shared.count if shared else None)
            yield settings | record | {"what": sizes.name_of(step.machines, how)}


def run(parts: Iterable[Part], results: Path) -> Iterator[dict[str, Any]]:
    """Measure the parts that `results` lacks from this code and machine; yield each record once it is appended.

    A part is skipped only if all its records are there with a final status.
    """
    file, here = results / store.CLUSTER.file, machine.machine_id()
    code = closure.installed_code().digest(
        ROOTS | roots_of(QUICK.configuration) | roots_of(Configuration(model=training.MODEL))
    )
    known = store.CLUSTER.read(file) if store.is_stored(file) else []
    done = {row["key"] for row in known if row["machine"] == here and row["status"] in FINAL}
    for part in parts:
        if done.issuperset(f"{name} {code}" for name in part.names):
            continue
        for columns in part.measure():
            now, key = datetime.now(UTC).isoformat(timespec="seconds"), f"{columns['what']} {code}"
            settled = {"key": key, "time": now, "machine": here, "status": "ok", "versions": machine.versions()}
            made = store.CLUSTER.new_row(**settled | columns)
            store.CLUSTER.append(file, made)
            yield made


def main() -> None:
    """Measure into the folders of the command line (created if needed) and print each record as a line of JSON."""
    results, runs = Path(sys.argv[1]), Path(sys.argv[2])
    for folder in (results, runs):
        folder.mkdir(parents=True, exist_ok=True)
    for made in run(parts_of(sys.argv[3], runs), results):
        print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main()
