"""Cost model of a second machine: the time of a step on 1 to 256 machines, from measurements of one and the network.

A step of R rows on M machines, each of them a trainer with R / M rows and a shard with a part of each table:

    seconds(M) = fixed + row R / M            computing, linear in rows
               + update touched(R) / M        each shard updates its rows, those of all trainers
               + 2 (latency + call M)         a pull and a push, each a message to every shard, sent at once
               + bytes(M) / bandwidth         what a trainer sends and receives for the rows that its slice touches

touched(r) is how many rows of the tables r rows of a batch touch, counted in batches. One machine has no network. The
model leaves out that networks have one speed while one sends and another while all do, and trainers that wait for the
slowest: what it says does not pay, does not; what it says pays is worth a try.

Processes of one machine with C cores are predicted to be checked against what is measured: beyond C they take turns, so
all of a step takes M / C as long, and one alone sends messages, too, to itself.

>>> work = Work(rows=1024, touched={1024: 9000, 512: 6000, 256: 3800}, bytes_row=64)
>>> made = predict(work, Speeds(row=4e-6, update=1e-8), Network(latency=1e-4, call=1e-5, bytes_second=1e9))
>>> [(step.machines, round(1e3 * step.seconds, 1)) for step in made], pays_from(made)
([(1, 4.2), (2, 3.1), (4, 1.8)], 2)
"""

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from workbench.cluster.messages import Message
from workbench.cluster.transport import Transport

MACHINES = tuple(2**power for power in range(9))
BYTES_ID = 4
"""Bytes of a row's number on its shard, which holds up to 2**32 rows."""

BYTES_PROBE = 2**22
CALLS_PROBE = 9
SECONDS_PROBE = 10.0


@final
@dataclass(frozen=True)
class Work:
    """A step: `rows` of a batch; rows of tables that r of its rows touch, by r; `bytes_row` of the values of one."""

    rows: int
    touched: Mapping[int, float]
    bytes_row: int

    def bytes_moved(self, machines: int) -> float:
        """Bytes that one of so many trainers sends and receives in a step: numbers and values of rows."""
        return 2 * self.touched[self.rows // machines] * (BYTES_ID + self.bytes_row)


@final
@dataclass(frozen=True)
class Speeds:
    """Seconds on one machine: `fixed` a step, `row` a row of a batch, `update` a touched row of the tables."""

    row: float
    update: float
    fixed: float = 0.0


@final
@dataclass(frozen=True)
class Network:
    """Seconds: `latency` of a message and its answer, what each `call` more at once adds; bytes a second."""

    latency: float
    call: float
    bytes_second: float


@final
@dataclass(frozen=True)
class Step:
    """The predicted time of a step, seconds, and its parts."""

    machines: int
    computing: float
    network: float
    bytes_moved: float

    @property
    def seconds(self) -> float:
        """Seconds of all parts, one after the other."""
        return self.computing + self.network


def touched_rows(columns: Iterable[Sequence[np.ndarray]], rows: int) -> dict[int, float]:
    """Rows of the tables that r rows of a batch touch, mean of all slices, for r = `rows`, half of it, and so on to 1.

    `columns` has for each batch the columns of each of its rows. O(entries log entries) for each r.
    """
    counts: dict[int, list[int]] = {}
    for batch in columns:
        for r in {rows // machines for machines in MACHINES if machines <= rows}:
            slices = [batch[first : first + r] for first in range(0, rows - r + 1, r)]
            counts.setdefault(r, []).extend(np.unique(np.concatenate(one)).size for one in slices)
    return {r: statistics.fmean(found) for r, found in sorted(counts.items(), reverse=True)}


def predict(
    work: Work, speeds: Speeds, network: Network, machines: Sequence[int] = MACHINES, cores: int | None = None
) -> list[Step]:
    """The step on each number of machines, or with `cores` of processes of one machine that has so many.

    Numbers for which it is not known what a slice touches are left out.
    """
    known = [count for count in machines if work.rows // count in work.touched and count <= work.rows]
    return [_step(work, speeds, network, count, cores) for count in known]


def _step(work: Work, speeds: Speeds, network: Network, machines: int, cores: int | None) -> Step:
    computing = speeds.fixed + speeds.row * work.rows / machines
    computing += speeds.update * work.touched[work.rows] / machines
    if machines == 1 and cores is None:
        return Step(1, computing, 0.0, 0.0)
    turns, moved = max(machines / cores, 1.0) if cores else 1.0, work.bytes_moved(machines)
    sending = 2 * (network.latency + network.call * machines) + moved / network.bytes_second
    return Step(machines, turns * computing, turns * sending, moved)


def pays_from(steps: Sequence[Step]) -> int | None:
    """The least number of machines above 1 on which a step is faster than on one; None where there is none."""
    alone = next(step.seconds for step in steps if step.machines == 1)
    return min((step.machines for step in steps if step.seconds < alone), default=None)


def measured(transport: Transport) -> Network:
    """The network between this process and the shards, by short and long messages; takes some tens of milliseconds."""
    shards = range(transport.shards)
    short, long = Message("hello"), Message("hello", {}, [np.zeros(BYTES_PROBE, np.uint8)])
    one = _seconds(transport, {0: short})
    several = _seconds(transport, dict.fromkeys(shards, short))
    carried = max(_seconds(transport, {0: long}) - one, 1e-9)
    return Network(one, max(several - one, 0.0) / max(len(shards) - 1, 1), BYTES_PROBE / carried)


def _seconds(transport: Transport, messages: Mapping[int, Message]) -> float:
    """The median time of a call."""
    seconds = []
    for _ in range(CALLS_PROBE):
        started = time.perf_counter()
        if len(transport.call(messages, SECONDS_PROBE)) == len(messages):
            seconds.append(time.perf_counter() - started)
    if not seconds:
        raise TimeoutError(f"No shard answered within {SECONDS_PROBE:g} s.")
    return statistics.median(seconds)
