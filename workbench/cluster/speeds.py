"""Measurements for the cost model (`workbench.cluster.cost`): steps of one process, and of processes beside each other.

All are steps of a process that was started for a training, on one thread: alone, with shards in the process itself, to
which it sends every message of a training, and while the other cores do the same. No process waits for another one,
so what trainings of several processes take is in none of them.
"""

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.optimize

from workbench.cluster import fitting
from workbench.cluster.cost import Cores, Line, Speeds
from workbench.cluster.sharded import ShardedStore
from workbench.cluster.trainer import Job, Tell, on_threads
from workbench.cluster.transport import Transport
from workbench.module import BatchEnd, StopTraining
from workbench.sweep.grid import setup_of, threads_of
from workbench.sweep.problem import make_problem
from workbench.sweep.spec import Cell

if TYPE_CHECKING:
    from workbench.cluster.dask_hosts import Hosts

STEPS = 45
"""Steps of a training that is timed, a third of which load code and draw rows first."""
SHARDS = 4
"""Shards of the training that says what each more takes."""
ROUNDS = 3
"""How often processes beside each other are compared with one."""
SECONDS_ANSWER = 300.0


def measured(hosts: "Hosts", cell: Cell, touched: Mapping[int, float]) -> Speeds:
    """Seconds of a step in the first process: least squares of steps of up to four heights, no coefficient below 0."""
    heights = [rows for rows in touched if rows >= cell.batch_rows // 8]
    alone, shared, several = ([_steps(hosts, cell, height, shards) for height in heights] for shards in (0, 1, SHARDS))
    added = [float(np.median(more) - np.median(one)) for more, one in zip(several, shared, strict=True)]
    shard = max(statistics.median(added), 0.0) / (SHARDS - 1)
    return Speeds(_line(touched, heights, alone), _line(touched, heights, shared, shard), _spread(shared))


def cores(hosts: "Hosts", cell: Cell) -> Cores:
    """Cores of this machine, and how much slower processes on all of them are at once than one is."""
    count, addresses = threads_of(cell), hosts.addresses()
    ratios = [_at_once_over_alone(hosts, cell, addresses[:count]) for _ in range(ROUNDS)]
    return Cores(count, max(statistics.median(ratios), 1.0))


def _at_once_over_alone(hosts: "Hosts", cell: Cell, addresses: Sequence[str]) -> float:
    """Ratio of the time of a step in all of these processes at once to that in one, right before."""
    alone, together = (_at_once(hosts, cell, some, 1) for some in (addresses[:1], addresses))
    return float(np.mean([np.median(steps) for steps in together]) / np.median(alone[0]))


def _line(
    touched: Mapping[int, float], heights: Sequence[int], steps: Sequence[np.ndarray], shard: float = 0.0
) -> Line:
    known = np.array([[1.0, height, touched[height]] for height in heights])
    scale = known.max(axis=0)
    seconds = np.array([np.median(each) for each in steps])
    fixed, row, by_touched = (scipy.optimize.nnls(known / scale, seconds)[0] / scale).tolist()
    return Line(row, by_touched, fixed, shard)


def _spread(steps: Sequence[np.ndarray]) -> float:
    """Standard deviation over the median, of quantiles, so that a rare disturbance does not count; of all heights."""
    quantiles = [np.quantile(each, [0.16, 0.5, 0.84]) for each in steps]
    return statistics.median(float((high - low) / 2 / middle) for low, middle, high in quantiles)


def _steps(hosts: "Hosts", cell: Cell, height: int, shards: int) -> np.ndarray:
    """Seconds of steps of that height in the first process, with so many shards in it, 0 for no store."""
    return _at_once(hosts, cell.model_copy(update={"batch_rows": height}), hosts.addresses()[:1], shards)[0]


def _at_once(hosts: "Hosts", cell: Cell, addresses: Sequence[str], shards: int) -> list[np.ndarray]:
    """Seconds of steps in each of these processes, all at once, each with so many shards of its own."""
    work = f"{__name__}:{'with_store' if shards else 'alone'}"
    job = Job(cell.model_dump(mode="json"), 1).about
    runs = [hosts.begin([address], max(shards, 1), 1) for address in addresses]
    for _, placed in runs:
        placed.result(SECONDS_ANSWER)
    asked = [hosts.start(run, address, 0, work, job) for (run, _), address in zip(runs, addresses, strict=True)]
    found = [_answer(future) for future in asked]
    for run, _ in runs:
        hosts.remove(run)
    return [np.array(answer["seconds"]) for answer in found]


def _answer(future: Future) -> dict[str, Any]:
    said = json.loads(future.result(SECONDS_ANSWER))
    if "error" in said:
        raise RuntimeError(f"A step could not be timed: {said['error']}\n{said['trace']}")
    return said["answer"]


def alone(transport: Transport, number: int, job: Job, tell: Tell) -> dict[str, list[float]]:
    """Seconds of steps without a store: the work of a process."""
    return {"seconds": timed(Cell(**job.cell), None)}


def with_store(transport: Transport, number: int, job: Job, tell: Tell) -> dict[str, list[float]]:
    """Seconds of steps with a store on the shards of the transport: the work of a process."""
    return {"seconds": timed(Cell(**job.cell), ShardedStore(transport))}


def timed(cell: Cell, store: ShardedStore | None) -> list[float]:
    """Seconds of steps on one thread, after those that load code and draw rows."""
    setup, problem = setup_of(cell), make_problem(cell)
    feed = fitting.shared(problem, setup, 0, 1)
    module, times = fitting.module_of(setup, problem, store, feed), [time.perf_counter()]

    def keep(event: BatchEnd) -> None:
        times.append(time.perf_counter())
        if len(times) > STEPS:
            raise StopTraining

    with on_threads(1):
        module.fit(feed, epochs=1, batch_end=keep)
    steps = np.diff(times)
    return steps[len(steps) // 3 :].tolist()
