"""Trainings by several trainers, and the same by one process that has all their rows."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from tests.support import shards as support
from workbench.cluster import ShardedStore, Transport
from workbench.cluster import trainer as trainers_room
from workbench.cluster.trainer import Job, Tell
from workbench.module import Module
from workbench.sweeps.grid import setup_of
from workbench.sweeps.problem import make_problem
from workbench.sweeps.spec import Configuration

SETTINGS = {
    "dataset": "uniform",
    "rows": 83,
    "features": 40,
    "density": 0.1,
    "batch_rows": 12,
    "epochs": 2,
    "model": "softmax",
    "width": 3,
    "seed": 3,
}
"""83 rows, of which 66 are trained on: 33 of each of two trainers, in batches of 6."""


def configuration(**changes) -> Configuration:
    return Configuration(**{**SETTINGS, **changes})


def alone(of: Configuration, trainers: int) -> Module:
    """The module of one process with a worker for each trainer, trained."""
    setup, problem = setup_of(of), make_problem(of)
    feed = trainers_room.joined(problem, setup, trainers)
    module = trainers_room.module_of(setup, problem, None, feed, workers=trainers)
    module.fit(feed, epochs=of.epochs)
    return module


def on_threads(of: Configuration, trainers: int, shards: int, **options) -> tuple[list[dict], list[dict]]:
    """(answer of each trainer, all that they told) of trainers on threads, with shards in this process."""
    transport, messages, answers = support.network(shards, trainers), [], {}
    job = Job(of.model_dump(mode="json"), trainers, **options)

    def train(number: int) -> None:
        answers[number] = trainers_room.train(transport, number, job, messages.append)

    support.on_threads(train, trainers)
    assert sorted(answers) == list(range(trainers))
    return [answers[number] for number in range(trainers)], messages


def saved_state(folder: Path) -> dict:
    """The state of a checkpoint, on one shard."""
    store = ShardedStore(support.network(1, 1))
    store.load_shards(folder)
    return store.state_dict()


class Struck(Transport):
    """Sends a signal to a process at a message, and lets all messages through; once for a folder."""

    def __init__(self, inner: Transport, strike: Mapping, folder: Path) -> None:
        self.inner, self.strike, self.mark = inner, strike, folder / "struck"
        self.count = 0

    @property
    def shards(self) -> int:
        return self.inner.shards

    def call(self, messages, seconds):
        self.count += 1
        is_due = self.count == self.strike["at"]
        if is_due and not self.strike["is_after"]:
            self.hit()
        replies = self.inner.call(messages, seconds)
        if is_due and self.strike["is_after"]:
            self.hit()
        return replies

    def hit(self) -> None:
        if not self.mark.exists():
            self.mark.touch()
            os.kill(self.strike["pid"], getattr(signal, self.strike["how"]))


def struck(transport: Transport, number: int, job: Job, tell: Tell) -> dict:
    """What a trainer does, one of which strikes as the file `strike` in the folder of its job says."""
    strike = json.loads((Path(job.folder) / "strike").read_text())
    if strike["trainer"] == number:
        transport = Struck(transport, strike, Path(job.folder))
    return trainers_room.train(transport, number, job, tell)


def failing(transport: Transport, number: int, job: Job, tell: Tell) -> dict:
    """Trainer 1 says why and fails."""
    if number == 1:
        raise RuntimeError("no such luck")
    return trainers_room.train(transport, number, job, tell)
