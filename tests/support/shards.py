"""Stores that trainers share, asked step by step what a `LocalStore` is asked; a network that loses messages."""

import random
import threading
from collections.abc import Callable, Mapping

import numpy as np

from tests.support.clocks import SECONDS
from workbench import formats
from workbench.cluster import LocalTransport, Message, Shard, ShardedStore, Transport
from workbench.formats import RowSparse
from workbench.json_text import parsed
from workbench.kvstore import LocalStore, Store
from workbench.optimizers import Updater

SHAPES = {"wide": (11, 2), "narrow": (9,), "dense": (7, 3), "small": (2,), "number": ()}
"""Of each key; the first two are row_sparse."""


def start(dtype=np.float64, seed: int = 0) -> dict:
    """First values: row_sparse ones hold some of their rows, and dense ones are of any rank."""
    made = np.random.default_rng(seed)
    values = {key: made.standard_normal(shape).astype(dtype) for key, shape in SHAPES.items()}
    wide, narrow = values["wide"], values["narrow"]
    return {
        **values,
        "wide": RowSparse(wide[::3], np.arange(0, 11, 3), wide.shape),
        "narrow": formats.zeros((9,), "row_sparse", narrow.dtype),
    }


def gradient(key: str, made: np.random.Generator, dtype, dyadic: bool):
    """What one trainer pushes: rows, among them none at all, of keys of more than one number; dense for the others."""
    shape = SHAPES[key]
    numbers = made.integers(-8, 9, shape) / 8 if dyadic else made.standard_normal(shape)
    numbers = np.asarray(numbers, dtype)
    if key not in ("wide", "narrow", "dense") or made.random() < 0.15:
        return numbers
    rows = np.flatnonzero(made.random(shape[0]) < made.choice([0.0, 0.3, 0.7]))
    return RowSparse(numbers[rows], rows, shape)


def pushes(steps: int, trainers: int, dtype=np.float64, seed: int = 1, dyadic: bool = False) -> list[list[dict]]:
    """By step and trainer, gradients by key."""
    made = np.random.default_rng(seed)
    return [
        [{key: gradient(key, made, dtype, dyadic) for key in SHAPES} for _ in range(trainers)] for _ in range(steps)
    ]


def reads(made: np.random.Generator) -> dict:
    """Rows that a trainer reads, None for all."""
    some = {key: np.flatnonzero(made.random(SHAPES[key][0]) < 0.4) for key in ("wide", "narrow", "dense")}
    return {**some, "small": None, "number": None}


def outs(dtype=np.float64) -> dict:
    """Arrays to read into."""
    return {
        key: formats.zeros(shape, "row_sparse" if key in ("wide", "narrow") else "dense", dtype)
        for key, shape in SHAPES.items()
    }


def local(settings: Mapping, dtype=np.float64) -> LocalStore:
    return filled(LocalStore(), settings, dtype)


def filled(store: Store, settings: Mapping | None = None, dtype=np.float64) -> Store:
    """A store with first values, and an optimizer where it has settings."""
    for key, value in start(dtype).items():
        store.init(key, value)
    if settings is not None:
        store.set_optimizer(Updater(**settings))
    return store


def network(shards: int, trainers: int, staleness: int = 0) -> LocalTransport:
    return LocalTransport([Shard(number, shards, trainers, staleness) for number in range(shards)])


def on_threads(train: Callable[[int], object], trainers: int) -> None:
    """Call `train` for each trainer, all at once; they may wait for each other."""
    threads = [threading.Thread(target=train, args=(trainer,), daemon=True) for trainer in range(trainers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=SECONDS)


def sharded(transport: Transport, trainers: int, settings: Mapping, dtype=np.float64, **options) -> list[ShardedStore]:
    """The stores of all trainers."""
    stores = [ShardedStore(transport, trainer, **({"seconds": SECONDS} | options)) for trainer in range(trainers)]
    return [filled(store, settings, dtype) for store in stores]


def trained(stores: list[Store], steps: list[list[dict]], dtype=np.float64, seed: int = 2) -> list[dict]:
    """What every trainer read before each step, in turn; a `LocalStore` alone stands for all trainers."""
    made, seen = np.random.default_rng(seed), []
    for pushed in steps:
        for trainer in range(len(pushed)):
            rows, out = reads(made), outs(dtype)
            stores[trainer % len(stores)].pull_into(out, rows)
            seen.append(out)
        if len(stores) == len(pushed):
            for store, own in zip(stores, pushed, strict=True):
                store.push_all(own)
        else:
            stores[0].push_all({key: [own[key] for own in pushed] for key in SHAPES})
    return seen


def same_bits(one: Mapping, two: Mapping) -> bool:
    """Whether arrays by name are the same, formats, stored rows and the sign of zeros included; texts as JSON."""
    if one.keys() != two.keys():
        return False
    return all(_same(name, one[name], two[name]) for name in one)


def _same(name: str, one, two) -> bool:
    if name.endswith("about"):
        return parsed(one.tobytes()) == parsed(two.tobytes())
    if isinstance(one, RowSparse) != isinstance(two, RowSparse):
        return False
    pairs = [(one.values, two.values), (one.indices, two.indices)] if isinstance(one, RowSparse) else [(one, two)]
    return all(a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


class Faulty(Transport):
    """Loses, doubles, delays and reorders messages of all trainers, and loses answers, as a seed says."""

    FATES = ("lost", "late", "twice", "unanswered", "well", "well", "well")

    def __init__(self, inner: Transport, seed: int) -> None:
        self.inner, self.random = inner, random.Random(seed)
        self.late: list[tuple[int, Message]] = []
        self.fates: list[str] = []

    @property
    def shards(self) -> int:
        return self.inner.shards

    def call(self, messages: Mapping[int, Message], seconds: float) -> dict[int, Message]:
        self.arrive(self.random.randint(0, len(self.late)))
        order, replies = list(messages.items()), {}
        self.random.shuffle(order)
        for shard, message in order:
            self.fates.append(fate := self.random.choice(self.FATES))
            if fate == "late":
                self.late.append((shard, message))
            if fate == "twice":
                self.inner.call({shard: message}, 0)
            if fate in ("twice", "unanswered", "well"):
                reply = self.inner.call({shard: message}, 0)
                replies |= {} if fate == "unanswered" else reply
        return replies

    def arrive(self, count: int) -> None:
        """Deliver so many of the late messages, in any order; nobody waits for their answers any more."""
        self.random.shuffle(self.late)
        for shard, message in self.late[:count]:
            self.inner.call({shard: message}, 0)
        del self.late[:count]
