"""Preparing ahead: while one batch is trained on, the next is made on a separate thread."""

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Generic, NamedTuple, TypeVar

from kernels import threads

Item = TypeVar("Item")
Result = TypeVar("Result")


class Ready(NamedTuple, Generic[Result]):
    """A prepared item, with the seconds that taking it from `items` and preparing it took, and those waited for it."""

    value: Result
    seconds_prepare: float
    seconds_wait: float


def prefetch(
    items: Iterable[Item], prepare: Callable[[Item], Result], depth: int = 1, at_once: int = 1
) -> Iterator[Ready[Result]]:
    """Yield `prepare(item)` for each item in order, prepared on another thread up to `depth` items ahead."""
    if depth < 0:
        raise ValueError(f"depth is {depth}; it is how many items are prepared ahead: 0 for none, or more.")
    return _ahead(items, prepare, depth) if depth and threads.may_overlap() else _when_asked(items, prepare, at_once)


def _when_asked(items: Iterable[Item], prepare: Callable[[Item], Result], at_once: int) -> Iterator[Ready[Result]]:
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


def _ahead(items: Iterable[Item], prepare: Callable[[Item], Result], depth: int) -> Iterator[Ready[Result]]:
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
