"""Epochs of generated clicks by one process of one core, by two, and by two of PyTorch: `clicks N` of `cluster`.

All take the rows in stored order, the same batches of `BATCH_ROWS` rows, Adagrad at one rate, weights from zero and no
intercept; a logistic model for N = 1, softmax for N = 16. Two processes have half of each batch each, and a core each:

one process      epochs in compiled calls, what this project does on one core
two, by steps    rows are sent at every step, with the sums of one process
two, local       copies of the weights, made one every `SYNC_EVERY` batches
PyTorch, two     EmbeddingBag(sparse=True) in DistributedDataParallel on gloo, which averages gradients at every step

Seconds are those of the fastest epoch after the first; losses are means over the training rows of the last epoch, each
before its update.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import streamed
from benchmarks.competitors.torch_sparse import UNAVAILABLE, pytorch
from workbench.cluster import trainer, training
from workbench.cluster.cost import seconds_of_addition
from workbench.measure import environment
from workbench.sweeps.grid import setup_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

ROWS, FEATURES = 1_000_000, 10**6
BATCH_ROWS = 8192
RATE = 0.05
EPOCHS = 3
SYNC_EVERY = 31
"""Batches between two synchronisations: four an epoch."""
BY_STEP, LOCAL = "two, by steps", "two, local"
ONE, PYTORCH = "one process", "PyTorch, two"

Columns = dict[str, Any]


@dataclass(frozen=True)
class Clicks:
    """The data of a measurement: `rows` that are trained on, `features` columns, N outputs."""

    width: int
    rows: int = ROWS
    features: int = FEATURES
    batch_rows: int = BATCH_ROWS

    def reduced(self) -> "Clicks":
        """Return the same with few rows, for a try."""
        return Clicks(self.width, 3000, 2000, 256)

    def configuration(self, folder: Path) -> Configuration:
        """Return the configuration of the training on the rows, which are written to `folder` unless they are there."""
        path = folder / f"clicks-{self.rows}-{self.features}-{self.width}.sparse"
        streamed.write(path, self.rows * 5 // 4, self.features, classes=max(self.width, 2))  # a fifth is held out
        return Configuration(
            dataset="sparse",
            path=str(path),
            reading="whole=True",
            model="logistic" if self.width == 1 else "softmax",
            width=self.width,
            intercept=False,
            optimizer="adagrad",
            learning_rate=RATE,
            batch_rows=self.batch_rows,
            shuffle=False,
            epochs=EPOCHS,
        )


def epochs_of(clicks: Clicks, folder: Path) -> Iterator[Columns]:
    """Yield a record of each way to train, in `folder`; a way that fails has a record with the reason."""
    configuration = clicks.configuration(folder)
    record = {"part": "clicks", "is_measured": True, "width": clicks.width, "features": clicks.features}
    record |= {"batch_rows": clicks.batch_rows, "rows_trained": clicks.rows}
    steps = -(-clicks.rows // clicks.batch_rows)
    ways = {ONE: (1, steps), BY_STEP: (2, 1), LOCAL: (2, min(SYNC_EVERY, steps)), PYTORCH: (2, 1)}
    for name, (processes, every) in ways.items():
        known = record | {"case": f"clicks N={clicks.width}: {name}, {clicks.rows} rows", "machines": processes}
        known |= {"sync_every": every, "way": name}
        try:
            found = _pytorch(configuration) if name == PYTORCH else train_here(configuration, processes, every, folder)
        except (training.TrainingError, subprocess.CalledProcessError) as error:
            yield known | {"status": "failed", "reason": str(error)}
            continue
        if name == LOCAL:
            known["seconds_addition"] = seconds_of_addition(clicks.features, clicks.width)
        yield known | found


def pinned(processes: int) -> list[str]:
    """Return the launcher of `processes` ranks of this machine with a core each."""
    if processes == 1:
        return ["taskset", "-c", "0"]
    return [*training.command_of(trainer.Job({}, processes))[:3], "-bind-to", "core"]


def train_here(
    configuration: Configuration, processes: int, every: int, folder: Path, launcher: Sequence[str] = ()
) -> Columns:
    """Train by ranks of this project; return seconds of an epoch, the loss and the quality on the rows held out.

    `launcher` starts the ranks, by default on this machine with a core each.
    """
    settings = {name: value for name, value in configuration.model_dump(mode="json").items() if value is not None}
    options = {"steps_saved": 0, "threads": 1, "sync_every": every}
    job = training.job_of(settings, processes, folder, **options)
    epochs: dict[int, list[Mapping[str, Any]]] = {}
    with closing(training.messages(job, folder / "logs", launcher or pinned(processes))) as received:
        for message in received:
            if "step" in message:
                epochs.setdefault((message["step"] - 1) // message["steps_epoch"], []).append(message)
    seconds = [sum(step["seconds"] for step in steps) for steps in epochs.values()]
    return _columns(seconds, [step["loss"] for step in epochs[max(epochs)]], message["done"]["qualities"])


def _columns(seconds: Sequence[float], losses: Sequence[float], qualities: Mapping[str, float]) -> Columns:
    """Return the columns of a way: seconds of each epoch, losses of the last one, measures on the rows held out."""
    return {
        "seconds_epoch": min(seconds[1:]),
        "samples": [round(one, 6) for one in seconds],
        "loss": float(np.mean(losses)),
        "quality": next(iter(qualities.values())),
    }


def _pytorch(configuration: Configuration) -> Columns:
    """Train by two processes of PyTorch with a core each; return the same columns."""
    if UNAVAILABLE:
        return {"status": "skipped", "reason": UNAVAILABLE}
    command = [sys.executable, "-m", "benchmarks.cluster_clicks", configuration.model_dump_json()]
    port = str(20_000 + os.getpid() % 20_000)
    shared = {**environment.measuring_environment(), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            ["taskset", "-c", str(rank), *command],
            env=shared | {"RANK": str(rank)},
            stdout=subprocess.PIPE if not rank else subprocess.DEVNULL,
        )
        for rank in range(2)
    ]
    try:
        out, _ = ranks[0].communicate()
        ranks[1].wait(60)
    finally:
        for one in ranks:
            one.kill()
            one.wait()
    if ranks[0].returncode:
        raise subprocess.CalledProcessError(ranks[0].returncode, command[:3])
    return json.loads(out)


def train_pytorch(configuration: Configuration) -> Columns | None:
    """Train as a rank of PyTorch, which the environment names; rank 0 returns the columns of `_columns`."""
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    torch = pytorch()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    setup, problem = setup_of(configuration), make_problem(configuration)
    feed = trainer.shared(problem, setup, rank, ranks)
    outputs = problem.width if configuration.model == "softmax" else 1
    bag = torch.nn.EmbeddingBag(problem.x.shape[1], outputs, mode="sum", sparse=True, include_last_offset=True)
    torch.nn.init.zeros_(bag.weight)
    model = DistributedDataParallel(bag)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=configuration.learning_rate, eps=1e-8)
    is_binary = outputs == 1
    loss_of = torch.nn.BCEWithLogitsLoss() if is_binary else torch.nn.CrossEntropyLoss()
    seconds, losses = [], list[float]()
    for epoch in range(EPOCHS):
        distributed.barrier()
        start, losses = time.perf_counter(), []
        for batch in feed.epoch(epoch):
            x = batch.x
            indices, offsets = torch.from_numpy(x.indices), torch.from_numpy(x.indptr)
            y = torch.from_numpy(np.asarray(batch.y, np.float32 if is_binary else np.int64))
            optimizer.zero_grad()
            scores = model(indices, offsets.to(indices.dtype))
            loss = loss_of(scores, y.reshape(scores.shape)) if is_binary else loss_of(scores, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    everyone: list[Any] = [None] * ranks
    distributed.all_gather_object(everyone, losses)
    distributed.destroy_process_group()
    if rank:
        return None
    with torch.no_grad():
        x, y = problem.held_out
        scores = bag(torch.from_numpy(x.indices), torch.from_numpy(x.indptr).to(torch.int32)).numpy()
    from workbench import models

    quality = models.get(configuration.model).quality(scores, y)
    return _columns(seconds, np.mean(everyone, axis=0).tolist(), {"quality": float(quality)})


if __name__ == "__main__":
    if (found := train_pytorch(Configuration(**json.loads(sys.argv[1])))) is not None:
        print(json.dumps(found))
