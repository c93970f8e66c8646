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

LAST = ("keep", "discard", "pad")
"""What becomes of the rows at the end of an epoch that fill no batch."""


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Some rows of the data: arrays and labels by name, R rows each, `rows_index` int64 [R] their numbers in the data.

    The last `pad` rows repeat rows of the same epoch to fill the batch. `x` and `y` are the data and the labels where
    there is one of each. `others` are what a model reads in addition to X, of a batch that was completed. With
    `is_copy` the arrays were made for it alone, of checked ones.
    """

    data: Mapping[str, Any]
    labels: Mapping[str, Any]
    rows_index: np.ndarray
    pad: int = 0
    others: Mapping[str, Any] = field(default_factory=dict)
    is_copy: bool = False
    planned: Callable[[], BatchPlan | None] | None = None
    """Function that gives the batch plan of `x`, a csr array, for a batch that was cut and planned with others."""

    def __repr__(self) -> str:
        """Return name, format and shape of each array, `pad` as one line."""
        arrays = {**self.data, **self.labels}.items()
        shapes = ", ".join(f"{name} {formats.format_of(array)} {list(array.shape)}" for name, array in arrays)
        return f"<Batch {shapes}, pad={self.pad}>"

    @property
    def x(self) -> Any:
        """The data array, if the batch has exactly one; DataError otherwise."""
        return next(iter(self.data.values())) if len(self.data) == 1 else _only(self.data, "data")

    @property
    def y(self) -> Any:
        """The label array, if the batch has exactly one; DataError otherwise."""
        return _only(self.labels, "labels")

    def with_x(self, x: Any, others: Mapping[str, Any] | None = None) -> "Batch":
        """Return a copy of the batch with another X under the same name, and `others` (none if None).

        Plan and copy flag reset. Raises ValueError if the batch does not have exactly one data array.
        """
        (name,) = self.data
        return replace(self, data={name: x}, others=others or {}, is_copy=False, planned=None)

    @property
    def real_rows(self) -> int:
        """Number of rows, without the `pad` last ones that repeat others."""
        return len(self.rows_index) - self.pad


class Feed(ABC):
    """Mini-batches, epoch after epoch. Which rows a batch has follows from its epoch and its number alone.

    So a position is two numbers, and a run that was stopped goes on from it with the very same batches.
    """

    @abstractmethod
    def epoch(self, number: int = 0, first: int = 0) -> Iterator[Batch]:
        """Return an iterator over the batches of epoch `number`, from batch `first` on, both counted from 0.

        The same epoch gives the same batches each time; skipped ones cost next to nothing.
        """

    @abstractmethod
    def count(self, number: int = 0) -> int:
        """Return the number of batches of epoch `number`."""

    @property
    def at_once(self) -> int:
        """How many small batches a loader should prepare together; 1 by default."""
        return 1

    @abstractmethod
    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings that decide which rows each batch has: equal settings and data give equal batches."""


def check_last(last: str, rows: int) -> None:
    """Raise DataError if `rows` is below 1 or `last` is not one of `LAST`."""
    if rows < 1:
        raise DataError(f"rows is {rows}; it is the number of rows of a mini-batch, 1 or more.")
    if last not in LAST:
        raise DataError(f"last is {last!r}; it is one of {', '.join(LAST)}.")


def count_batches(total: int, rows: int, last: str) -> int:
    """Return the number of batches of `rows` rows in an epoch of `total` rows; `last` is one of `LAST`."""
    return total // rows if last == "discard" else -(-total // rows)


def check_position(number: int, first: int) -> None:
    """Raise DataError if the epoch `number` or the batch index `first` is negative."""
    if number < 0 or first < 0:
        raise DataError(f"Epoch {number}, batch {first} was asked for; both count from 0.")


def _only(arrays: Mapping[str, Any], kind: str) -> Any:
    """Return the only array in `arrays`; raise DataError, which names `batch.<kind>`, unless there is exactly one."""
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
        """Yield the batches of epoch `number` from batch `first` on, each passed through `complete`.

        The generator that `complete` gets is seeded by `seed`, epoch and batch index.
        """
        for place, batch in enumerate(self.feed.epoch(number, first), first):
            yield self.complete(batch, np.random.default_rng((self.seed, number, place)))

    def count(self, number: int = 0) -> int:
        """Return the number of batches of epoch `number`."""
        return self.feed.count(number)

    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings of the wrapped feed, and `seed` as "seed_completed"."""
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
        """Number of rows of a block."""
        return max(1, self.buffer_rows // BLOCKS)

    def rows_of(self, blocks: np.ndarray) -> np.ndarray:
        """Return the row indices of `blocks`, int64 [blocks], in their order, as int64 [rows].

        Rows beyond `total` are left out.
        """
        rows = (blocks[:, None] * self.length + np.arange(self.length)).ravel()
        return rows[rows < self.total]

    def runs(self, blocks: np.ndarray) -> list[tuple[int, int]]:
        """Return (first row, row behind the last) of each run of consecutive `blocks`, int64 and ascending."""
        first = np.flatnonzero(np.diff(blocks, prepend=-2) != 1)
        last = np.append(first[1:], len(blocks)) - 1
        starts, stops = blocks[first] * self.length, np.minimum((blocks[last] + 1) * self.length, self.total)
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    def buffers(self, seed: int, epoch: int, first: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (block indices, order of their rows) of each buffer of an epoch, less its first `first` rows.

        Both are int64; blocks ascend, and the order indexes `rows_of(blocks)`. Depends on seed and epoch alone.
        """
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
Done = TypeVar("Done")


class Ready(NamedTuple, Generic[Result]):
    """A prepared item, with the seconds that taking it from `items` and preparing it took, and those waited for it."""

    value: Result
    seconds_prepare: float
    seconds_wait: float


def prefetch(
    items: Iterable[Item], prepare: Callable[[Item], Result], depth: int = 1, at_once: int = 1
) -> Generator[Ready[Result], None, None]:
    """Yield `prepare(item)` for each item, in order, as `Ready`, prepared on another thread up to `depth` items ahead.

    With `depth` 0 items are prepared on the caller's thread, `at_once` together. An
    error of `items` or `prepare` is raised in place of its item. Raises ValueError if `depth` is negative.
    """
    if depth < 0:
        raise ValueError(f"depth is {depth}; it is how many items are prepared ahead: 0 for none, or more.")
    if depth:
        return _prepare_on_thread(items, prepare, depth)
    return _prepare_on_demand(items, prepare, at_once)


def steps(
    items: Iterable[Item],
    prepare: Callable[[Item], Result],
    step: Callable[[Ready[Result]], Done],
    depth: int = 0,
    at_once: int = 1,
) -> Generator[Done, None, None]:
    """Yield `step(ready)` for each item as `prefetch` prepares it: the loop of every training over its batches.

    A step is done when it is asked for; the memory of its batch may serve the next one.
    """
    prepared = prefetch(items, prepare, depth, at_once)
    try:
        for ready in prepared:
            done = step(ready)
            del ready
            yield done
    finally:
        prepared.close()


def _prepare_on_demand(
    items: Iterable[Item], prepare: Callable[[Item], Result], at_once: int
) -> Generator[Ready[Result], None, None]:
    """Yield prepared items, made on the caller's thread, up to `at_once` of them before the first of them is yielded.

    An error of `items` or `prepare` is raised after the items before it.
    """
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
    """Take and prepare the next item; return it with the seconds that took, as wait too; None if there is none."""
    start = perf_counter()
    for item in items:
        value = prepare(item)
        seconds = perf_counter() - start
        return Ready(value, seconds, seconds)
    return None


def _prepare_on_thread(
    items: Iterable[Item], prepare: Callable[[Item], Result], depth: int
) -> Generator[Ready[Result], None, None]:
    """Yield prepared items, made on a separate thread up to `depth` ahead.

    Its error is raised here after the items before. The thread is stopped and joined when the generator is closed.
    """
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
    """Thread that prepares the next items while the semaphore `free` allows, and signals each result or the end by the
    semaphore `made`."""

    def __init__(self, items: Iterable, prepare: Callable, depth: int) -> None:
        """Set up a daemon thread with `depth` free slots.

        It copies the caller's context variables, and `start` runs it.
        """
        super().__init__(name="loader", daemon=True)
        self.items, self.prepare = items, prepare
        self.free, self.made = threading.Semaphore(depth), threading.Semaphore(0)
        self.results: deque = deque()
        self.error: BaseException | None = None
        self.stopped, self.seconds_wait = False, 0.0
        self.context = contextvars.copy_context()  # such as ops.settings, which hold for the creator's thread alone

    def run(self) -> None:
        """Prepare all items in the creator's context; store an error in `error`, and signal the end."""
        try:
            with threads.serial():
                self.context.run(self._prepare_each, iter(self.items))
        except BaseException as error:  # raised again in the caller's thread
            self.error = error
        finally:
            self.made.release()

    def _prepare_each(self, items: Iterator) -> None:
        """Prepare items one by one and queue each with the seconds taken, until they end or the worker is stopped."""
        while self.free.acquire() and not self.stopped:
            start = perf_counter()
            try:
                item = next(items)
            except StopIteration:
                return
            value = self.prepare(item)
            self.results.append((value, perf_counter() - start))
            self.made.release()
            del item, value

    def has_more(self) -> bool:
        """Block until a result is ready or the items have ended; return False at the end. Sets `seconds_wait`."""
        start = perf_counter()
        self.made.acquire()
        self.seconds_wait = perf_counter() - start
        return bool(self.results)

    def take(self) -> Ready:
        """Return the next result, which `has_more` has announced, and free its slot."""
        value, seconds = self.results.popleft()
        self.free.release()
        return Ready(value, seconds, self.seconds_wait)

    def stop(self) -> None:
        """Stop the thread after the item it is preparing, and wait for its end."""
        self.stopped = True
        self.free.release()
        self.join()
