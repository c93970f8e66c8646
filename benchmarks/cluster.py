"""Bytes and times of training on several machines: `python -m benchmarks.cluster PART all|quick|ROWS FOLDER`.

Bytes: a step pulls and pushes the rows that a batch touches, of tables of a million and of a hundred million rows, at
the cost of the active rows. Steps: measured with 1, 2 and 4 processes of this machine, and predicted for these and for
1 to 256 machines from what one process takes. Of so many ROWS, generated, one epoch is trained
while they stay on disk. Columns of records are printed as they come; logs and data go to FOLDER.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import cluster_clicks, cluster_networks, streamed
from workbench import formats
from workbench.cluster.cost import (
    BYTES_ID,
    MACHINES,
    Cores,
    LocalEpoch,
    Network,
    Speeds,
    Work,
    active_rows,
    core_slowdown,
    fit_step_times,
    predict,
    predict_epoch,
    seconds_of_addition,
)
from workbench.cluster.exchange import world
from workbench.cluster.store import MpiStore
from workbench.cluster.training import TrainingError, job_of, messages
from workbench.formats import RowSparse
from workbench.kvstore import LazyRandomRows
from workbench.optimizers import Updater
from workbench.sweeps.grid import threads_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

TABLES = (10**6, 10**8)
WIDTH = 16
PROCESSES = (1, 2, 4)

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


WIDTHS = (1, WIDTH)
PARTS = (*(f"bytes {features}" for features in TABLES), "predicted", *(f"step {count}" for count in PROCESSES))
PARTS += ("exchange", *(f"clicks {width}" for width in WIDTHS), "networks", "networks epoch")
"""What is measured in a process of its own each, by name."""


def measured(part: str, what: str, folder: Path) -> Iterator[Columns]:
    """Yield the columns of the records of a part: one of `PARTS`, or "rows", of which `what` is the number as text.

    `what` is "all" or "quick" else. Logs and data go to `folder`.
    """
    if part == "rows":
        yield from streamed.trained(int(what), folder)
        return
    kind, _, number = part.partition(" ")
    if kind == "bytes":
        yield from _measure_bytes(int(number), SIZES[what])
    elif kind == "step":
        yield from _measure_step(int(number), folder, SIZES[what])
    elif kind == "exchange":
        yield _asked_of_ranks(kind)
    elif kind == "clicks":
        clicks = cluster_clicks.Clicks(int(number))
        yield from cluster_clicks.epochs_of(clicks if what == "all" else clicks.reduced(), folder)
    elif part == "networks":
        yield from _measure_networks(folder, SIZES[what])
    elif part == "networks epoch":
        yield from _measure_epochs_over_networks(folder, what)
    else:
        yield from _predict_here(SIZES[what])


def _name_of_bytes(features: int, sizes: Sizes) -> str:
    """Return the name of a record of bytes, "bytes of 1000000 rows, 20000 touched, 5 steps"."""
    return f"bytes of {features} rows, {sizes.active} touched, {sizes.steps} steps"


def _measure_bytes(features: int, sizes: Sizes) -> Iterator[Columns]:
    """Yield the columns of one byte measurement with `features` table rows, by two ranks that are started for it."""
    yield _asked_of_ranks([features, asdict(sizes)])


def _asked_of_ranks(what: Any) -> Columns:
    """Return what rank 0 of two ranks on a core each prints when asked for `what`; see `main`."""
    command = [*cluster_clicks.pinned(2), sys.executable, "-m", "benchmarks.cluster", "rank", json.dumps(what)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


TRIES = 200


def exchange_of(communicator: Any) -> Columns:
    """Time a pull and a push of `Sizes.active` rows by two ranks, and calls of the same bytes alone, in reused memory.

    Medians of the slowest rank. Of the rows of a dense table of 10^6 x `WIDTH` each rank takes as many, at random; a
    push does a step of sgd with the sums.
    """
    shared, features, count = MpiStore(communicator), TABLES[0], Sizes.active
    shared.set_optimizer(Updater("sgd"))
    shared.init("w", np.zeros((features, WIDTH), np.float32))
    active = np.sort(np.random.default_rng(shared.trainer).choice(features, count, replace=False))
    out = RowSparse(np.zeros((count, WIDTH), np.float32), active, (features, WIDTH))
    gradient = RowSparse(np.ones((count, WIDTH), np.float32), active, (features, WIDTH))
    counts = np.bincount(np.searchsorted(shared.held["w"].partition.borders[1:], active, "right"), minlength=2)
    of_others = np.array(shared.exchange.gather(counts.tolist()))[:, shared.trainer]
    numbers = [np.zeros(int(n.sum()), np.int32) for n in (counts, of_others)]
    values = [np.zeros((int(n.sum()), WIDTH), np.float32) for n in (counts, of_others)]
    each = [[n.tolist(), (n * WIDTH).tolist()] for n in (counts, of_others)]

    def bare() -> None:
        """Send numbers and get values back, then send numbers and values."""
        for sent, received, arrays, kind in (
            (0, 1, numbers, 0),
            (1, 0, values, 1),
            (0, 1, numbers, 0),
            (0, 1, values, 1),
        ):
            communicator.Alltoallv([arrays[sent], each[sent][kind]], [arrays[received], each[received][kind]])

    def both() -> None:
        """Pull the rows and push their gradients."""
        shared.pull_into({"w": out}, {"w": active})
        shared.push("w", gradient)

    seconds = {}
    for name, call in (("seconds_bare", bare), ("seconds_step", both)):
        times = []
        for _ in range(TRIES):
            shared.exchange.gather(None)
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        seconds[name] = max(shared.exchange.gather(statistics.median(times[TRIES // 4 :])))
    record = {"part": "exchange", "is_measured": True, "machines": shared.trainers, "features": features}
    record |= {"width": WIDTH, "touched": count, "ratio": seconds["seconds_step"] / seconds["seconds_bare"]}
    return record | seconds | {"case": f"pull and push of {count} rows x {WIDTH}"}


def bytes_of(communicator: Any, features: int, sizes: Sizes) -> Columns:
    """Measure the bytes and time of steps on a lazily generated table of `features` rows and `WIDTH` columns.

    In each step every rank of the communicator pulls and pushes `sizes.active` random rows; returns record columns of
    this rank, with bytes_least from 4-byte indices and float32 values of rows that other ranks own.
    """
    shared = MpiStore(communicator)
    shared.set_optimizer(Updater("adagrad"))
    shared.init("w", LazyRandomRows((features, WIDTH), "float32", "normal", 0.01, 0, "w"))
    made, seconds, moved, least, count = np.random.default_rng(shared.trainer), [], [], [], []
    out = formats.zeros((features, WIDTH), "row_sparse", np.dtype("float32"))
    for _ in range(sizes.steps):
        active = np.unique(made.integers(0, features, sizes.active))
        before, start = shared.exchange.bytes_moved, time.perf_counter()
        shared.pull_into({"w": out}, {"w": active})
        shared.push("w", RowSparse(np.ones((active.size, WIDTH), np.float32), active, out.shape))
        seconds.append(time.perf_counter() - start)
        moved.append(shared.exchange.bytes_moved - before)
        owners = np.bincount(np.searchsorted(shared.held["w"].partition.borders[1:], active, "right"))
        everyone = np.array(shared.exchange.gather(np.resize(owners, shared.trainers).tolist()))
        own = shared.trainer
        away = everyone[own].sum() + everyone[:, own].sum() - 2 * everyone[own, own]
        least.append(int(2 * away * (BYTES_ID + 4 * WIDTH)))
        count.append(active.size)
    known = sum(shared.exchange.gather(len(shared.part.values["w"].indices)))
    record = {"part": "bytes", "is_measured": True, "machines": shared.trainers, "features": features, "width": WIDTH}
    record |= {"touched": statistics.fmean(count), "rows_made": known}
    record |= {"bytes_moved": statistics.fmean(moved), "bytes_least": statistics.fmean(least)}
    record |= {"ratio": sum(moved) / max(sum(least), 1), "seconds_step": statistics.median(seconds)}
    return record | {"case": _name_of_bytes(features, sizes)}


def _measure_step(processes: int, folder: Path, sizes: Sizes) -> Iterator[Columns]:
    """Yield the record of the median step time of a training by `processes` local processes, a shard in each.

    Trains from the start, without checkpoints; the first third of the steps is left out.
    """
    known = _step(sizes, processes, True, threads_of(sizes.configuration))
    seconds = _seconds_of_step(processes, folder, sizes)
    yield known | {"seconds_step": seconds, "case": sizes.name_of(processes, "measured")}


def _seconds_of_step(processes: int, folder: Path, sizes: Sizes, launcher: Sequence[str] = ()) -> float:
    """Return the median seconds of a step of a training by `processes` ranks that `launcher` starts."""
    settings = {name: value for name, value in sizes.configuration.model_dump(mode="json").items() if value is not None}
    job = job_of(settings, processes, folder, threads=1, steps_saved=0)
    with closing(messages(job, folder / f"steps-{processes}", launcher)) as received:
        seconds = [message["seconds"] for message in received if "step" in message]
    return statistics.median(seconds[len(seconds) // 3 :])  # the first ones load code, and draw rows


def _measure_networks(folder: Path, sizes: Sizes) -> Iterator[Columns]:
    """Yield a record of a step of two ranks over each network between namespaces, measured and predicted."""
    if reason := cluster_networks.why_not():
        yield {"part": "network", "case": "networks", "status": "skipped", "reason": reason}
        return
    active = active_rows_by(sizes)
    work, speeds = Work(sizes.batch_rows, active, 4 * WIDTH), fit_step_times(sizes.configuration, active)
    for link in cluster_networks.LINKS:
        record = _step(sizes, 2, True, None) | {"part": "network", "case": f"step by 2 ranks over {link.name}"}
        record |= {"gbits": link.gbits, "seconds_delay": link.delay}
        try:
            with cluster_networks.linked(link, folder / "namespaces") as launcher:
                network = cluster_networks.measure_network(launcher)
                seconds = _seconds_of_step(2, folder, sizes, launcher)
        except (RuntimeError, TrainingError, subprocess.CalledProcessError) as error:
            yield record | {"status": "failed", "reason": str(error)}
            continue
        one, two = predict(work, speeds, network, (1, 2))
        record |= {"seconds_step": seconds, "seconds_predicted": two.seconds, "ratio": seconds / two.seconds}
        record |= {"seconds_alone": one.seconds, "bytes_moved": two.bytes_moved}
        yield record | {"latency": network.latency, "bytes_second": network.bytes_second}


def _measure_epochs_over_networks(folder: Path, what: str) -> Iterator[Columns]:
    """Yield a record of an epoch of clicks by local steps of two ranks over each network, measured and predicted."""
    if reason := cluster_networks.why_not():
        yield {"part": "network", "case": "epochs over networks", "status": "skipped", "reason": reason}
        return
    clicks = cluster_clicks.Clicks(1) if what == "all" else cluster_clicks.Clicks(1).reduced()
    configuration, steps = clicks.configuration(folder), -(-clicks.rows // clicks.batch_rows)
    every = min(cluster_clicks.SYNC_EVERY, steps)
    alone = cluster_clicks.train_here(configuration, 1, steps, folder)["seconds_epoch"]
    tables = 2 * 4 * clicks.features * clicks.width
    epoch = LocalEpoch(alone, tables, -(-steps // every), seconds_of_addition(clicks.features, clicks.width))
    record = {"part": "network", "is_measured": True, "machines": 2, "width": clicks.width, "sync_every": every}
    record |= {"features": clicks.features, "batch_rows": clicks.batch_rows, "rows_trained": clicks.rows}
    for link in cluster_networks.LINKS:
        known = record | {"case": f"epoch by 2 ranks over {link.name}", "seconds_alone": alone}
        known |= {"gbits": link.gbits, "seconds_delay": link.delay}
        try:
            with cluster_networks.linked(link, folder / "namespaces") as launcher:
                network = cluster_networks.measure_network(launcher)
                seconds = cluster_clicks.train_here(configuration, 2, every, folder, launcher)["seconds_epoch"]
        except (RuntimeError, TrainingError, subprocess.CalledProcessError) as error:
            yield known | {"status": "failed", "reason": str(error)}
            continue
        predicted = predict_epoch(epoch, network, 2)
        known |= {"seconds_epoch": seconds, "seconds_predicted": predicted, "ratio": seconds / predicted}
        yield known | {"latency": network.latency, "bytes_second": network.bytes_second}


def _step(sizes: Sizes, machines: int, is_measured: bool, cores: int | None) -> Columns:
    """Return the columns that every record of a step's time has, measured or predicted.

    `cores` None is many machines.
    """
    record = {"part": "step", "is_measured": is_measured, "machines": machines, "cores": cores, "width": WIDTH}
    return record | {"features": sizes.features, "batch_rows": sizes.batch_rows}


def _predict_here(sizes: Sizes) -> Iterator[Columns]:
    """Return an iterator of records (dicts of columns) of predicted step times for data and batches of `sizes`.

    Speeds are measured on this machine now.
    """
    active = active_rows_by(sizes)
    return predict_step_times(
        sizes, active, fit_step_times(sizes.configuration, active), core_slowdown(sizes.configuration)
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
            yield settings | record | {"case": sizes.name_of(step.machines, how)}


def main() -> None:
    """Print the columns of the records of a part, each as a line of JSON; its name, sizes and folder are arguments.

    With `rank [FEATURES, SIZES]` instead, measure bytes as a rank of an MPI job; rank 0 prints the record.
    """
    if sys.argv[1] == "rank":
        communicator, asked = world(), json.loads(sys.argv[2])
        if asked == "network":
            record = cluster_networks.network_of(communicator)
        elif asked == "exchange":
            record = exchange_of(communicator)
        else:
            record = bytes_of(communicator, asked[0], Sizes(**asked[1]))
        if not communicator.rank:
            print(json.dumps(record))
        return
    for columns in measured(sys.argv[1], sys.argv[2], Path(sys.argv[3])):
        print(json.dumps(columns), flush=True)


if __name__ == "__main__":
    main()
