"""Cost model of a second machine: the time of a step on 1 to 256 machines, from what is measured in one process.

A step of R rows on M machines, each of them a trainer with R / M rows and a shard with a part of each table:

    seconds(M) = fixed + row R / M          forward and backward, and what a pull and a push take whatever their size
               + touched U(R / M)           ids sorted and cut, rows packed, copied, sent, read, summed and updated
               + shard (M - 1)              messages to one shard more, and as many from one trainer more
               + waiting(M)                 all wait for the slowest: spread E[largest of M normals] of all above
               + 2 latency + bytes(M) / bandwidth          what the network adds to messages of one machine to itself

U(r) is how many rows of the tables r rows of a batch touch, counted in batches: a shard gets as many from all trainers
together as a trainer has for all shards. One machine alone has no messages. The coefficients are measured in a process
that trains and is its own shard, with all messages of a training sent to itself (`workbench.cluster.bench`). The model
leaves out that networks have one speed while one sends and another while all do, and that a message to another process
takes longer than one to itself, which counts where a step takes a few milliseconds: what it says does not pay, does
not; what it says pays is worth a try.

Processes of one machine are predicted to be checked against what is measured. They share its C cores: beyond C they
take turns, so all of a step takes M / C as long, and cores that are all at work are slower than one alone (`beside`).

>>> work = Work(rows=1024, touched={1024: 9000, 512: 6000, 256: 3800}, bytes_row=64)
>>> speeds = Speeds(alone=Line(row=4e-6, touched=1e-8), shared=Line(row=4e-6, touched=1e-7))
>>> made = predict(work, speeds, Network(latency=1e-4, bytes_second=1e9))
>>> [(step.machines, round(1e3 * step.seconds, 1)) for step in made], pays_from(made)
([(1, 4.2), (2, 3.7), (4, 2.1)], 2)
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

MACHINES = tuple(2**power for power in range(9))
BYTES_ID = 4
"""Bytes of a row's number on its shard, which holds up to 2**32 rows."""


@final
@dataclass(frozen=True)
class Work:
    """A step: `rows` of a batch; rows of tables that r of its rows touch, by r; `bytes_row` of the values of one."""

    rows: int
    touched: Mapping[int, float]
    bytes_row: int

    def bytes_moved(self, machines: int) -> float:
        """Return the bytes that one of so many trainers sends and receives in a step: numbers and values of rows."""
        return 2 * self.touched[self.rows // machines] * (BYTES_ID + self.bytes_row)


@final
@dataclass(frozen=True)
class Line:
    """Seconds of a step of one process: `fixed`, for a row of its batch, a touched row of the tables, a shard more."""

    row: float
    touched: float
    fixed: float = 0.0
    shard: float = 0.0

    def seconds(self, rows: float, touched: float, shards: int = 1) -> float:
        """Predict the seconds of a step for `rows`, `active_rows` and `shards`."""
        return self.fixed + self.row * rows + self.touched * touched + self.shard * (shards - 1)


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
    """Cores that processes of one machine share, so many; all at work, each takes `beside` times as long."""

    count: int
    beside: float = 1.0

    def factor(self, processes: int) -> float:
        """Return the ratio of the time that so many processes take to that of one."""
        if processes <= self.count:
            return 1 + (self.beside - 1) * (processes - 1) / max(self.count - 1, 1)
        return self.beside * processes / self.count


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
        """Sum of all parts."""
        return self.computing + self.messages + self.waiting


def touched_rows(columns: Iterable[Sequence[np.ndarray]], rows: int) -> dict[int, float]:
    """Return the rows of the tables that r rows of a batch touch, mean of all slices, for r = `rows`, half of it, and
    so on to 1.

    `columns` has for each batch the columns of each of its rows. O(entries log entries) for each r.
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
    """Return the step on each number of machines, or with `cores` of processes of the one machine that has these.

    Numbers for which it is not known what a slice touches are left out.
    """
    known = [count for count in machines if work.rows // count in work.touched and count <= work.rows]
    return [_step(work, speeds, network, count, cores) for count in known]


def _step(work: Work, speeds: Speeds, network: Network, machines: int, cores: Cores | None) -> Step:
    """Return the predicted step time on `machines` machines, by part."""
    rows, touched = work.rows / machines, work.touched[work.rows // machines]
    alone = speeds.alone.seconds(rows, touched)
    if machines == 1 and cores is None:
        return Step(1, alone, 0.0, 0.0, 0.0)
    whole = speeds.shared.seconds(rows, touched, machines)
    computing, factor, moved = min(alone, whole), cores.factor(machines) if cores else 1.0, work.bytes_moved(machines)
    messages = factor * (whole - computing) + 2 * network.latency + moved / network.bytes_second
    return Step(
        machines, factor * computing, messages, factor * whole * speeds.spread * expected_slowest(machines), moved
    )


def expected_slowest(machines: int) -> float:
    """Return by how many standard deviations the slowest of `machines` normal times exceeds the mean."""
    return statistics.NormalDist().inv_cdf((machines - 0.375) / (machines + 0.25))


def pays_from(steps: Sequence[Step]) -> int | None:
    """Return the least number of machines above 1 on which a step is faster than on one; None if there is none."""
    alone = next(step.seconds for step in steps if step.machines == 1)
    return min((step.machines for step in steps if step.seconds < alone), default=None)
