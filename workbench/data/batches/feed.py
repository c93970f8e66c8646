"""Interface of a training loop to its data: the batches of an epoch, from any of them on, the same ones each time.

`prefetch` prepares the next batch on a separate thread while one is trained on.
"""

import contextvars
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np

from kernels import threads
from kernels.plan import BatchPlan
from workbench import formats
from workbench.data.errors import DataError

LAST = ("keep", "discard", "pad", "roll_over")
"""What becomes of the rows at the end of an epoch that fill no batch."""


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Some rows of the data: arrays and labels by name, R rows each, `rows_index` int64 [R] their numbers in the data.

    The last `pad` rows repeat rows of the same epoch to fill the batch; the first `rolled` ones were left over by an
    earlier epoch. `x` and `y` are the data and the labels where there is one of each. `others` are what a model reads
    in addition to X, of a batch that was completed. With `is_copy` the arrays were made for it alone, of checked ones.
    """

    data: Mapping[str, Any]
    labels: Mapping[str, Any]
    rows_index: np.ndarray
    pad: int = 0
    rolled: int = 0
    others: Mapping[str, Any] = field(default_factory=dict)
    is_copy: bool = False
    planned: Callable[[], BatchPlan | None] | None = None
    """Function that gives the batch plan of `x`, a csr array, for a batch that was cut and planned with others."""

    def __repr__(self) -> str:
        arrays = {**self.data, **self.labels}.items()
        shapes = ", ".join(f"{name} {formats.format_of(array)} {list(array.shape)}" for name, array in arrays)
        return f"<Batch {shapes}, pad={self.pad}, rolled={self.rolled}>"

    @property
    def x(self) -> Any:
        """The data, where there is one array of it."""
        return next(iter(self.data.values())) if len(self.data) == 1 else _only(self.data, "data")

    @property
    def y(self) -> Any:
        """The labels, where there is one array of them."""
        return _only(self.labels, "labels")

    def with_x(self, x: Any, others: Mapping[str, Any] | None = None) -> "Batch":
        """Return the batch with another X in the place of its own, and `others` next to it."""
        (name,) = self.data
        return replace(self, data={name: x}, others=others or {}, is_copy=False, planned=None)

    @property
    def real_rows(self) -> int:
        """R without the rows that repeat others."""
        return len(self.rows_index) - self.pad


class Feed(ABC):
    """Mini-batches, epoch after epoch. Which rows a batch has follows from its epoch and its number alone.

    So a position is two numbers, and a run that was stopped goes on from it with the very same batches.
    """

    @abstractmethod
    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """Return the batches of that epoch, one by one, from batch `first` on; those before it cost next to nothing."""

    @abstractmethod
    def count(self, number: int = 0) -> int:
        """Return the batches of that epoch."""

    @property
    def at_once(self) -> int:
        """Batches that a loader had best prepare one right after the other, since they are small."""
        return 1

    @abstractmethod
    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings that batches depend on: with equal settings and equal data, all batches are equal."""


def check_last(last: str, rows: int) -> None:
    """Refuse an unknown way with the last batch and a batch without rows (`DataError`)."""
    if rows < 1:
        raise DataError(f"rows is {rows}; it is the number of rows of a mini-batch, 1 or more.")
    if last not in LAST:
        raise DataError(f"last is {last!r}; it is one of {', '.join(LAST)}.")


def check_position(number: int, first: int) -> None:
    """Refuse negative epochs and batches (`DataError`)."""
    if number < 0 or first < 0:
        raise DataError(f"Epoch {number}, batch {first} was asked for; both count from 0.")


def _only(arrays: Mapping[str, Any], kind: str) -> Any:
    """Return the only array of `batch.<kind>`; raise DataError unless there is exactly one."""
    if len(arrays) != 1:
        names = ", ".join(arrays) or "none"
        raise DataError(f"There is not one array of {kind} but {len(arrays)} ({names}); use batch.{kind}[name].")
    return next(iter(arrays.values()))


# Batches that are completed when they are drawn, such as by items that a user has not, or by the rows around.


@final
@dataclass(frozen=True, eq=False)
class Completed(Feed):
    """The batches of `feed`, each as `complete(batch, generator)` gives it, which keeps its rows and labels.

    The generator follows from `seed`, the epoch and the number of the batch alone, so that batches come again.

    >>> from workbench.data import Batches
    >>> def noisy_batch(batch, generator):
    ...     return batch.with_x(batch.x + generator.integers(9))
    >>> noisy = Completed(Batches(np.zeros((4, 1), np.float32), rows=2), noisy_batch)
    >>> [batch.x.tolist() for batch in noisy.epoch(0)] == [batch.x.tolist() for batch in noisy.epoch(0)]
    True
    """

    feed: Feed
    complete: Callable[[Batch, np.random.Generator | None], Batch]
    seed: int = 0

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of that epoch from `first` on, completed."""
        for place, batch in enumerate(self.feed.epoch(number, first), first):
            yield self.complete(batch, np.random.default_rng((self.seed, number, place)))

    def count(self, number: int = 0) -> int:
        """Return the batches of that epoch."""
        return self.feed.count(number)

    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings of the feed, and the seed of the generator that completes batches."""
        return {**self.feed.settings(), "seed_completed": self.seed}


# A random order of rows that are read from disk: random blocks of them, shuffled together in a buffer.
#
# An epoch is a permutation: every row once, another order each epoch, the same for the same seed and epoch. A buffer
# is filled with blocks of consecutive rows from all over the file, and its rows are shuffled; so rows that stand
# next to each other in the file are a little likelier to meet in a buffer than others. Where the file has no more
# rows than a buffer every order is as likely as any other.

BLOCKS = 256
"""Blocks of a buffer, at least, where it has so many rows: more of them mix better and cost more seeks."""


@final
@dataclass(frozen=True)
class BlockOrder:
    """The order of `total` rows in buffers of `buffer_rows` rows, rounded up to whole blocks; the last may be shorter.

    >>> order = BlockOrder(total=5, buffer_rows=3)
    >>> [order.rows_of(blocks)[within].tolist() for blocks, within in order.buffers(seed=0, epoch=0, first=0)]
    [[4, 2, 3], [1, 0]]
    """

    total: int
    buffer_rows: int

    @property
    def length(self) -> int:
        """Rows of a block."""
        return max(1, self.buffer_rows // BLOCKS)

    def rows_of(self, blocks: np.ndarray) -> np.ndarray:
        """Return the indices of the rows of those blocks, int64 [blocks], in their order: int64 [rows]."""
        rows = (blocks[:, None] * self.length + np.arange(self.length)).ravel()
        return rows[rows < self.total]

    def runs(self, blocks: np.ndarray) -> list[tuple[int, int]]:
        """Return (first row, row behind the last one) of each block; of blocks that follow each other one for all."""
        first = np.flatnonzero(np.diff(blocks, prepend=-2) != 1)
        last = np.append(first[1:], len(blocks)) - 1
        starts, stops = blocks[first] * self.length, np.minimum((blocks[last] + 1) * self.length, self.total)
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    def buffers(self, seed: int, epoch: int, first: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (blocks, ascending, the order of their rows) of each buffer, less the first rows of the epoch's
        order."""
        order = np.random.default_rng((seed, epoch)).permutation(-(-self.total // self.length))
        at_once = -(-self.buffer_rows // self.length)
        for number, begin in enumerate(range(0, len(order), at_once)):
            blocks = np.sort(order[begin : begin + at_once])
            count = len(self.rows_of(blocks))
            if first < count:
                yield blocks, np.random.default_rng((seed, epoch, number)).permutation(count)[first:]
            first = max(first - count, 0)


Item = TypeVar("Item")
Result = TypeVar("Result")


class Ready(NamedTuple, Generic[Result]):
    """A prepared item, with the seconds that taking it from `items` and preparing it took, and those waited for it."""

    value: Result
    seconds_prepare: float
    seconds_wait: float


def prefetch(
    items: Iterable[Item], prepare: Callable[[Item], Result], depth: int = 1, at_once: int = 1
) -> Generator[Ready[Result], None, None]:
    """Yield `prepare(item)` for each item in order, prepared on another thread up to `depth` items ahead."""
    if depth < 0:
        raise ValueError(f"depth is {depth}; it is how many items are prepared ahead: 0 for none, or more.")
    return _ahead(items, prepare, depth) if depth and threads.may_overlap() else _when_asked(items, prepare, at_once)


def _when_asked(
    items: Iterable[Item], prepare: Callable[[Item], Result], at_once: int
) -> Generator[Ready[Result], None, None]:
    """Yield prepared items, made on the caller's thread, up to `at_once` of them before the first is yielded."""
    iterator, made, error = iter(items), deque[Ready[Result]](), None
    while error is None:
        try:
            while len(made) < at_once and (ready := _prepare_next(iterator, prepare)) is not None:
                made.append(ready)
                del ready  # the memory of a result may serve the next one
        except Exception as raised:  # in the place of its item, those before it come first
            error = raised
        if not made:
            break
        while made:
            yield made.popleft()
    if error is not None:
        raise error


def _prepare_next(items: Iterator[Item], prepare: Callable[[Item], Result]) -> Ready[Result] | None:
    """Prepare the next item and return it with the seconds that took; None if there is none."""
    start = perf_counter()
    for item in items:
        value = prepare(item)
        seconds = perf_counter() - start
        return Ready(value, seconds, seconds)
    return None


def _ahead(
    items: Iterable[Item], prepare: Callable[[Item], Result], depth: int
) -> Generator[Ready[Result], None, None]:
    """Yield prepared items, made on a separate thread up to `depth` ahead; its errors are raised here, in order."""
    worker = _Worker(items, prepare, depth)
    worker.start()
    try:
        while worker.has_more():
            yield worker.take()  # no name for it here, which would keep it while the next one is made
    finally:
        worker.stop()
    if worker.error is not None:
        raise worker.error


class _Worker(threading.Thread):
    """Thread that prepares the next items while the semaphore `room` allows, and signals each result or the end by the
    semaphore `made`."""

    def __init__(self, items: Iterable, prepare: Callable, depth: int) -> None:
        super().__init__(name="loader", daemon=True)
        self.items, self.prepare = items, prepare
        self.room, self.made = threading.Semaphore(depth), threading.Semaphore(0)
        self.results: deque = deque()
        self.error: BaseException | None = None
        self.stopped, self.seconds_wait = False, 0.0
        self.context = contextvars.copy_context()  # such as ops.settings, which hold for the creator's thread alone

    def run(self) -> None:
        """Thread body: all of it under `threads.serial`, with the creator's settings."""
        try:
            self.context.run(self._prepare_all)
        except BaseException as error:  # raised again in the caller's thread
            self.error = error
        finally:
            self.made.release()

    def _prepare_all(self) -> None:
        """Prepare all items with serial kernels; the body of the thread."""
        with threads.serial():
            self._prepare_each(iter(self.items))

    def _prepare_each(self, items: Iterator) -> None:
        """Prepare items one by one and queue each with the seconds it took, until they end or the worker is stopped."""
        while self._wait_for_room():
            start = perf_counter()
            try:
                item = next(items)
            except StopIteration:
                return
            value = self.prepare(item)
            self.results.append((value, perf_counter() - start))
            self.made.release()
            del item, value

    def _wait_for_room(self) -> bool:
        """Block until the queue has space for an item; return False if the worker was stopped."""
        self.room.acquire()
        return not self.stopped

    def has_more(self) -> bool:
        """Wait for the next result or the end; False at the end."""
        start = perf_counter()
        self.made.acquire()
        self.seconds_wait = perf_counter() - start
        return bool(self.results)

    def take(self) -> Ready:
        """Return the next result and free its slot for another one."""
        value, seconds = self.results.popleft()
        self.room.release()
        return Ready(value, seconds, self.seconds_wait)

    def stop(self) -> None:
        """End the thread, at the latest after the item that it is at, and wait for that."""
        self.stopped = True
        self.room.release()
        self.join()
