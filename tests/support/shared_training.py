"""Trainings by several trainers, and the same by one process that has all their rows."""

from pathlib import Path

from tests.support.ranks import on_ranks
from workbench import formats
from workbench.cluster import MpiStore, OneRank
from workbench.cluster import trainer as trainers_room
from workbench.cluster.trainer import Job
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


def on_threads(of: Configuration, trainers: int, **options) -> tuple[list[dict], list[dict]]:
    """(answer of each trainer, all that they told) of trainers whose ranks are threads of this process."""
    messages: list[dict] = []
    job = Job(of.model_dump(mode="json"), trainers, threads=1, **options)
    return on_ranks(trainers, lambda rank: trainers_room.train(rank, job, messages.append)), messages


def saved_state(folder: Path) -> dict:
    """The state of a checkpoint, on one rank."""
    store = MpiStore(OneRank())
    store.load_shards(folder)
    return store.state_dict()


def same_bits(one: dict, two: dict) -> bool:
    """Whether two states have the same names and bits."""
    dense = [{name: formats.to_format(array, "dense").tobytes() for name, array in each.items()} for each in (one, two)]
    return dense[0] == dense[1]
