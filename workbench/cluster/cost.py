"""Cost model of a second machine: the time of a step on 1 to 256 machines, from what is measured in one process.

A step of R rows on M machines, each of them a trainer with R / M rows and a shard with a part of each table:

seconds(M) = fixed + row R / M          forward and backward, and what a pull and a push take whatever their size
           + active U(R / M)            ids sorted and cut, rows packed, copied, sent, read, summed and updated
           + shard (M - 1)              messages to one shard more, and as many from one trainer more
           + waiting(M)                 all wait for the slowest: spread E[largest of M normals] of all above
           + 2 latency + bytes(M) / bandwidth          what the network adds to messages of one machine to itself

U(r) is how many rows of the tables r rows of a batch touch, counted in batches: a shard gets as many from all
trainers together as a trainer has for all shards. One machine alone has no messages. The coefficients are measured
in a process that trains and is its own shard, with all messages of a training sent to itself. The model leaves out
that networks have one speed while one sends and another while all do, and that a message to another process takes
longer than one to itself, which counts if a step takes a few milliseconds: what it says does not pay, does not; what it
says pays is worth a try.

Processes of one machine are predicted to be checked against what is measured. They share its C cores: beyond C
they take turns, so all of a step takes M / C as long, and cores that are all at work are slower than one alone
(`slowdown`).

>>> work = Work(rows=1024, active={1024: 9000, 512: 6000, 256: 3800}, bytes_row=64)
>>> speeds = Speeds(alone=Line(row=4e-6, active=1e-8), shared=Line(row=4e-6, active=1e-7))
>>> made = predict(work, speeds, Network(latency=1e-4, bytes_second=1e9))
>>> [(step.machines, round(1e3 * step.seconds, 1)) for step in made], pays_from(made)
([(1, 4.2), (2, 3.7), (4, 2.1)], 2)

All that is measured are steps of a process that was started for a training, on one thread: alone, with shards in the
process itself, to which it sends every message of a training, and while the other cores do the same. No process waits
for another one, so what trainings of several processes take is in none of them.
"""

import json
import math
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy.optimize

from workbench.cluster import trainer
from workbench.cluster.dask_hosts import Hosts
from workbench.cluster.sharded import ShardedStore
from workbench.cluster.trainer import Job, Tell, on_threads
from workbench.cluster.transport import Transport
from workbench.module import BatchEnd, StopTraining
from workbench.sweeps.grid import setup_of, threads_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

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
