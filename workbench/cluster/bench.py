"""What training on several machines moves and takes: `python -m workbench.cluster.bench FOLDER all|quick|ROWS`.

Bytes: a step pulls and pushes the rows that a batch touches, of tables of a million and of a hundred million rows,
which cost the rows that are touched. Steps: measured with 1, 2 and 4 processes of this machine, and predicted for 1 to
256 machines from what one process and the loopback network take. Of so many ROWS, generated, one epoch is trained
while they stay on disk. What was found goes to the folder; each is told as it comes.
"""

import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize

from workbench import formats, store
from workbench.cluster import clicks, cost, fitting
from workbench.cluster.dask_hosts import Hosts
from workbench.cluster.dask_transport import DaskTransport
from workbench.cluster.sharded import ShardedStore
from workbench.cluster.trainer import on_threads
from workbench.cluster.training import train
from workbench.formats import RowSparse
from workbench.kvstore import Drawn
from workbench.measure import machine
from workbench.module import BatchEnd
from workbench.optimizers import Updater
from workbench.sweep.grid import setup_of
from workbench.sweep.problem import make_problem
from workbench.sweep.spec import Cell

TABLES = (10**6, 10**8)
WIDTH = 16
PROCESSES = (1, 2, 4)


@dataclass(frozen=True)
class Sizes:
    """How much is measured: rows that a step touches, steps of each, rows of the data and of a batch, features."""

    touched: int = 20_000
    steps: int = 5
    rows: int = 60_000
    batch_rows: int = 1024
    features: int = 100_000

    @property
    def cell(self) -> Cell:
        """What is trained for its time."""
        shape = {"rows": self.rows, "features": self.features, "density": 40 / self.features, "width": WIDTH}
        return Cell(dataset="power_law", model="softmax", batch_rows=self.batch_rows, epochs=1, **shape)


STREAMED_BATCH = 8192
"""Rows of a batch of those that are streamed."""

QUICK = Sizes(2000, 2, 1500, 128, 2000)


def rows_of(folder: Path, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """All rows, one by one; `folder` is for logs."""
    with Hosts("local:2", folder / "hosts") as hosts:
        for features in TABLES:
            yield bytes_of(hosts, features, sizes)
        run = hosts.place(2, 1)
        network = cost.measured(DaskTransport(run, hosts.client))
        hosts.remove(run)
    yield from predicted(sizes, network)
    for processes in PROCESSES:
        yield step_of(processes, folder, sizes)


def bytes_of(hosts: Hosts, features: int, sizes: Sizes) -> dict[str, Any]:
    """The bytes of a step on a table of so many rows, drawn when they are first touched."""
    run = hosts.place(2, 1)
    sharded = ShardedStore(DaskTransport(run, hosts.client))
    sharded.init("w", Drawn((features, WIDTH), "float32", "normal", 0.01, 0, "w"))
    sharded.set_optimizer(Updater("adagrad"))
    made, seconds, moved, least, seen = np.random.default_rng(0), [], [], [], np.empty(0, np.int64)
    out = formats.zeros((features, WIDTH), "row_sparse", np.dtype("float32"))
    for _ in range(sizes.steps):
        touched = np.unique(made.integers(0, features, sizes.touched))
        before, start = _moved(sharded), time.perf_counter()
        sharded.pull_into({"w": out}, {"w": touched})
        sharded.push("w", RowSparse(np.ones((touched.size, WIDTH), np.float32), touched, out.shape))
        seconds.append(time.perf_counter() - start)
        moved.append(_moved(sharded) - before)
        least.append(2 * touched.size * (cost.BYTES_ID + 4 * WIDTH))
        seen = np.union1d(seen, touched)
    hosts.remove(run)
    told = {"part": "bytes", "is_measured": True, "machines": 2, "features": features, "width": WIDTH}
    told |= {"touched": statistics.fmean(least) / (2 * (cost.BYTES_ID + 4 * WIDTH)), "rows_made": int(seen.size)}
    told |= {"bytes_moved": statistics.fmean(moved), "bytes_least": statistics.fmean(least)}
    return row(f"bytes {features}", ratio=sum(moved) / sum(least), seconds_step=statistics.median(seconds), **told)


def _moved(sharded: ShardedStore) -> int:
    return sharded.traffic.bytes_sent + sharded.traffic.bytes_received


def step_of(processes: int, folder: Path, sizes: Sizes) -> dict[str, Any]:
    """The median time of a step with so many processes, each a trainer and a shard, of this machine."""
    told: list[Mapping[str, Any]] = []
    settings = {name: value for name, value in sizes.cell.model_dump(mode="json").items() if value is not None}
    where = folder / f"steps-{processes}-{time.time_ns()}"  # never one that goes on from a checkpoint
    train(f"local:{processes}", settings, processes, where, tell=told.append, threads=1, steps_saved=0)
    seconds = [said["seconds"] for said in told if "step" in said]
    late = seconds[len(seconds) // 3 :]  # the first ones load code, and draw rows
    return row(f"step {processes} measured", seconds_step=statistics.median(late), **_step(sizes, processes, True))


def streamed(rows: int, folder: Path) -> dict[str, Any]:
    """One epoch of generated rows of which a process may own half, by two trainers that stream their shards."""
    start, made = time.perf_counter(), folder / f"clicks-{rows}.sparse"
    whole = clicks.write(made, rows)
    settings = {"dataset": "sparse", "path": str(made), "model": "logistic", "width": 1, "epochs": 1}
    settings |= {"batch_rows": min(STREAMED_BATCH, rows // 8), "learning_rate": 0.05}
    begun = time.perf_counter()
    answer = train("local:2", settings, 2, folder / f"streamed-{time.time_ns()}", steps_saved=0, threads=1)
    assert answer is not None  # nobody stops it
    peak, limit = max(answer["bytes_peak"]), whole // 2
    reason = "" if peak <= limit else f"A process owned {peak} bytes; the limit is {limit}."
    told = {"bytes_data": whole, "bytes_limit": limit, "bytes_peak": peak, "quality": answer["qualities"]["AUC"]}
    told |= {"seconds_all": time.perf_counter() - begun, "seconds_computing": begun - start}
    told |= {"machines": 2, "is_measured": True, "rows_trained": 2 * answer["rows"], "part": "rows"}
    return row(f"rows {rows}", **told) | {"status": "memory" if reason else "ok", "reason": reason}


def _step(sizes: Sizes, machines: int, is_measured: bool) -> dict[str, Any]:
    told = {"part": "step", "is_measured": is_measured, "machines": machines, "width": WIDTH}
    return told | {"features": sizes.features, "batch_rows": sizes.batch_rows}


def predicted(sizes: Sizes, network: cost.Network) -> Iterator[dict[str, Any]]:
    """The time of a step on each number of machines, of what one process takes without a network."""
    cell = sizes.cell
    problem = make_problem(cell)
    starts = range(0, min(problem.x.shape[0], 4 * sizes.batch_rows) - sizes.batch_rows + 1, sizes.batch_rows)
    columns = [
        np.split(part.indices, part.indptr[1:-1]) for at in starts for part in [problem.x[at : at + sizes.batch_rows]]
    ]
    touched = cost.touched_rows(columns, sizes.batch_rows)
    work = cost.Work(sizes.batch_rows, touched, 4 * WIDTH)
    speeds = speeds_of(cell, touched)
    for step in cost.predict(work, speeds, network):
        parts = {"seconds_computing": step.computing, "seconds_network": step.network, "bytes_moved": step.bytes_moved}
        told = _step(sizes, step.machines, False) | parts | {"touched": touched[sizes.batch_rows // step.machines]}
        yield row(f"step {step.machines} predicted", seconds_step=step.seconds, **told)


def speeds_of(cell: Cell, touched: Mapping[int, float]) -> cost.Speeds:
    """What a step, a row and a touched row take on one thread: least squares of steps of four heights, none below 0."""
    problem, heights = make_problem(cell), [rows for rows in touched if rows >= cell.batch_rows // 8]
    seconds = []
    with on_threads(1):
        for height in heights:
            setup = setup_of(cell.model_copy(update={"batch_rows": height}))
            feed = fitting.shared(problem, setup, 0, 1)
            module = fitting.module_of(setup, problem, None, feed)
            laps = _Laps()
            module.fit(feed, epochs=1, batch_end=laps.batch_end)
            steps = np.diff(laps.times)
            seconds.append(float(np.median(steps[len(steps) // 3 :])))
    known = np.array([[1.0, height, touched[height]] for height in heights])
    scale = known.max(axis=0)
    fixed, by_row, by_touched = scipy.optimize.nnls(known / scale, np.array(seconds))[0] / scale
    return cost.Speeds(by_row, by_touched, fixed)


SIZES = {"all": Sizes(), "quick": QUICK}


class _Laps:
    """When each step of a training had ended."""

    def __init__(self) -> None:
        self.times = [time.perf_counter()]

    def batch_end(self, event: BatchEnd) -> None:
        """Note the time."""
        self.times.append(time.perf_counter())


def row(key: str, **columns: Any) -> dict[str, Any]:
    """A row of the table of this bench."""
    known = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine.machine_id()}
    return store.CLUSTER.new_row(key=key, status="ok", versions=machine.versions(), **known, **columns)


def main() -> None:
    """Measure into the folder, and tell each row as a line of JSON."""
    folder, what = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    measured = rows_of(folder, SIZES[what]) if what in SIZES else iter([streamed(int(what), folder)])
    for made in measured:
        store.CLUSTER.append(folder / store.CLUSTER.file, made)
        print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main()
