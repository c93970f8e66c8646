"""Cost model of a second machine: the time of a step on 1 to 256 machines, from what is measured in one process.

A step of R rows on M machines, each of them a trainer with R / M rows and a shard with a part of each table:

seconds(M) = fixed + row R / M          forward and backward, and what a pull and a push take whatever their size
           + active U(R / M)            ids sorted and cut, rows packed, copied, sent, read, summed and updated
           + waiting(M)                 all wait for the slowest: spread E[largest of M normals] of all above
           + 6 latency + bytes(M) / bandwidth          what the network adds to messages of one machine to itself

U(r) is how many rows of the tables r rows of a batch touch, counted in batches: a shard gets as many from all
trainers together as a trainer has for all shards. One machine alone has no messages. The coefficients are measured
in a process that trains and is its own shard, with all messages of a training sent to itself. Six collective calls make
a step: counts, row indices and values of a pull and of a push. The model leaves out that networks have one speed while
one sends and another while all do, and that a message to another process takes longer than one to itself: what it says
does not pay, does not; what it says pays is worth a try.

Processes of one machine are predicted to be checked against what is measured. They share its C cores: beyond C
they take turns, so all of a step takes M / C as long, and cores that are all at work are slower than one alone
(`slowdown`).

>>> work = Work(rows=1024, active={1024: 9000, 512: 6000, 256: 3800}, bytes_row=64)
>>> speeds = Speeds(alone=Line(row=4e-6, active=1e-8), shared=Line(row=4e-6, active=1e-7))
>>> made = predict(work, speeds, Network(latency=1e-4, bytes_second=1e9))
>>> [(step.machines, round(1e3 * step.seconds, 1)) for step in made], pays_from(made)
([(1, 4.2), (2, 4.1), (4, 2.5)], 2)

Epochs by local steps (`workbench.cluster.local_steps`) are predicted by `predict_epoch`: a rank has a part of the rows,
and at each synchronisation sends its table, adds up its part of all, and gets the others' parts.

>>> clicks = LocalEpoch(seconds=0.4, bytes_tables=8e6, synchronisations=4, seconds_addition=5e-3)
>>> fast = Network(latency=5e-5, bytes_second=2.5e9)
>>> [round(predict_epoch(clicks, fast, machines), 3) for machines in (1, 2, 8, 64)]
[0.4, 0.247, 0.116, 0.078]

All that is measured are steps of one process on one thread: alone, with a store that sends every message of a training
to itself, and while the other cores do the same. No process waits for another one.
"""

import math
import multiprocessing
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.optimize

from kernels import changes
from workbench.cluster import trainer
from workbench.cluster.store import MpiStore, OneRank
from workbench.cluster.trainer import on_threads
from workbench.module import BatchEnd, StopTraining
from workbench.sweeps.grid import setup_of, threads_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

MACHINES = tuple(2**power for power in range(9))
CALLS = 6
"""Collective calls of a step."""
CALLS_LOCAL = 5
"""Collective calls of a synchronisation of weights and one state: two a table, and one that tells losses."""
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
    """Seconds of a step of one process: `fixed`, for a row of its batch, and for an active row of the tables."""

    row: float
    active: float
    fixed: float = 0.0

    def seconds(self, rows: float, active: float) -> float:
        """Return predicted seconds of a step for `rows` of a batch and `active` table rows."""
        return self.fixed + self.row * rows + self.active * active


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
    whole = speeds.shared.seconds(rows, active)
    computing, factor, moved = min(alone, whole), cores.factor(machines) if cores else 1.0, work.bytes_moved(machines)
    messages = factor * (whole - computing) + CALLS * network.latency + moved / network.bytes_second
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


@final
@dataclass(frozen=True)
class LocalEpoch:
    """An epoch by local steps: `seconds` of one process, bytes of weights and states, how often ranks synchronise.

    `seconds_addition` is what a rank takes to add up two copies of all tables (`seconds_of_addition`).
    """

    seconds: float
    bytes_tables: float
    synchronisations: int
    seconds_addition: float = 0.0


def predict_epoch(epoch: LocalEpoch, network: Network, machines: int) -> float:
    """Return the predicted seconds of an epoch on `machines`, each with a part of the rows.

    A synchronisation sends whole tables: those of a rank in parts to all, then the sums of its part to all.
    """
    if machines == 1:
        return epoch.seconds
    moved = 4 * (machines - 1) / machines * epoch.bytes_tables
    once = CALLS_LOCAL * network.latency + moved / network.bytes_second + epoch.seconds_addition
    return epoch.seconds / machines + epoch.synchronisations * once


def bandwidth_that_pays(epoch: LocalEpoch, latency: float) -> float:
    """Return the bytes a second, sent and received, above which a second machine makes an epoch faster; inf if none."""
    spare = epoch.seconds / 2 - epoch.synchronisations * (CALLS_LOCAL * latency + epoch.seconds_addition)
    return 2 * epoch.bytes_tables * epoch.synchronisations / spare if spare > 0 else math.inf


def seconds_of_addition(features: int, width: int) -> float:
    """Measure what a rank of two takes to add up copies of weights and sums of squares float32 `[features, width]`."""
    rows = features // 2
    bases, copies = (np.ones((2, count, rows, width), np.float32) for count in (1, 2))
    out, whole = np.ones((2, rows, width), np.float32), np.ones((2, 2 * rows, width), np.float32)
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        changes.add_copies(bases[1, 0], copies[1], out[1])
        changes.add_scaled_copies(bases[0, 0], copies[0], copies[1], out[1], out[0])
        for table in whole:
            table[...] = np.broadcast_to(out[0, :1], table.shape)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])  # the first compiles


STEPS = 45
"""Steps of a training that is timed, a third of which load code and draw rows first."""
ROUNDS = 3
"""How often processes next to each other are compared with one."""


def fit_step_times(configuration: Configuration, active: Mapping[int, float]) -> Speeds:
    """Measure steps of `configuration` on one thread of this process at several batch heights and fit `Speeds`.

    `active` is that of `active_rows`. Non-negative least squares of median seconds.
    """
    heights = [rows for rows in active if rows >= configuration.batch_rows // 8]
    sized = [configuration.model_copy(update={"batch_rows": height}) for height in heights]
    alone, shared = ([time_steps(one, has_store) for one in sized] for has_store in (False, True))
    return Speeds(_line(active, heights, alone), _line(active, heights, shared), _spread(shared))


def core_slowdown(configuration: Configuration) -> Cores:
    """Measure how much slower steps of `configuration` are in processes on all cores at once than in one.

    Returns cores and factor, 1 or more; median of `ROUNDS` comparisons.
    """
    count = threads_of(configuration)
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as processes:
        ratios = []
        for _ in range(ROUNDS):
            alone, together = (
                np.mean([np.median(one) for one in processes.map(time_steps, [configuration] * many, [True] * many)])
                for many in (1, count)
            )
            ratios.append(float(together / alone))
    return Cores(count, max(statistics.median(ratios), 1.0))


def _line(active: Mapping[int, float], heights: Sequence[int], steps: Sequence[np.ndarray]) -> Line:
    """Fit seconds = fixed + row * rows + active * active rows, coefficients >= 0, to medians by heights.

    `steps` has the seconds of single steps, a float64 array for each of `heights`.
    """
    known = np.array([[1.0, height, active[height]] for height in heights])
    scale = known.max(axis=0)
    seconds = np.array([np.median(each) for each in steps])
    fixed, row, by_active = (scipy.optimize.nnls(known / scale, seconds)[0] / scale).tolist()
    return Line(row, by_active, fixed)


def _spread(steps: Sequence[np.ndarray]) -> float:
    """Return the relative standard deviation of step times from quantiles 0.16 and 0.84; median over all heights."""
    quantiles = [np.quantile(each, [0.16, 0.5, 0.84]) for each in steps]
    return statistics.median(float((high - low) / 2 / middle) for low, middle, high in quantiles)


def time_steps(configuration: Configuration, has_store: bool) -> np.ndarray:
    """Return the seconds of single steps of a configuration on one thread, float64; the first third is left out.

    With a store the process is its own shard, and sends every message to itself.
    """
    setup, problem = setup_of(configuration), make_problem(configuration)
    feed = trainer.shared(problem, setup, 0, 1)
    store = MpiStore(OneRank()) if has_store else None
    module, times = trainer.module_of(setup, problem, store, feed), [time.perf_counter()]

    def keep(event: BatchEnd) -> None:
        """Record the time after a batch; raise StopTraining after STEPS batches. `event` is unused."""
        times.append(time.perf_counter())
        if len(times) > STEPS:
            raise StopTraining

    with on_threads(1):
        module.fit(feed, epochs=1, batch_end=keep)
    steps = np.diff(times)
    return steps[len(steps) // 3 :]
