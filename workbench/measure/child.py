"""Child processes that measure: started from a fork server, watched with limits, and what their ends mean.

    context = fork_server()
    process, connection = start(context, "workbench.sweep.trial:answers", request)
    with Child(process, connection) as child:
        for answer in child.answers(lambda: why_too_long(started, 120.0)):
            ...

A child sends each answer as a line of JSON. Reading never waits for the rest of a line: a child that was stopped or
killed in the middle of one ends as any other does, by its limits or its exit status, as `Ended`.
"""

import contextlib
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, final

from workbench.measure import blas, ends
from workbench.measure.serve import serve

SECONDS_POLL = 0.05
SECONDS_END = 5.0
"""How long to wait for a process to be gone, by itself or killed; one that waits for a device cannot be killed."""
BYTES_READ = 2**20

WhyEnd = Callable[[], Mapping[str, Any]]
"""Gives the columns to end a child with, status and reason among them, or nothing."""


class Ended(Exception):  # noqa: N818 - an end, not always an error
    """A child ended without sending all its answers; `row` has the status, the reason and what else is known."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        super().__init__(row["reason"])
        self.row = dict(row)


def fork_server(preload: Sequence[str] = ()) -> ForkServerContext:
    """The context to start children from; they begin with the modules of `preload` imported, if it is the first.

    The server is started here, in the environment that children measure in: it loads BLAS, which reads it only then.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    with _environment(blas.own_environment()), _ends_told():
        forkserver.ensure_running()
    return context


@contextlib.contextmanager
def _ends_told() -> Iterator[None]:
    """Let processes that are started inside hear of the ends of their children, whatever this one was started with.

    A server that inherits SIGCHLD blocked would tell no end, and every trial would last until its limit.
    """
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have these environment variables and no others, for processes that are started inside."""
    before = dict(os.environ)
    try:
        _replace_environment(variables)
        yield
    finally:
        _replace_environment(before)


def _replace_environment(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def start(
    context: ForkServerContext, work: str, request: Mapping[str, Any], log: Path | None = None
) -> tuple[BaseProcess, Connection]:
    """A process that does the request, and the end of the pipe that its answers come out of.

    `work` is "module:function", imported in the child alone; what it prints is added to the file `log`. Variables that
    hold BLAS back are kept from it. `Ended` where it is gone before it could be told what to do.
    """
    ours, theirs = context.Pipe(duplex=False)
    arguments = (theirs, work, json.dumps(request), blas.own_environment(), str(log) if log else None)
    process = context.Process(target=serve, args=arguments)
    try:
        process.start()
    except (ConnectionError, EOFError):  # it, or the server, was killed between its fork and its first word
        ours.close()
        reason = "The process was killed from outside before it began."
        raise Ended({"status": "failed", "reason": reason}) from None
    finally:
        theirs.close()
    return process, ours


def why_too_long(started: float, seconds: float, setting: str = "") -> dict[str, Any]:
    """The columns of an end for time where more than `seconds` are over, or nothing; `setting` is the limit's name."""
    if time.monotonic() - started <= seconds:
        return {}
    limit = f"{setting} = {seconds:g} s" if setting else f"{seconds:g} s"
    return {"status": "timeout", "reason": f"It took longer than {limit}."}


@final
class Child:
    """A process at work and its answers; a context that ends it."""

    def __init__(self, process: BaseProcess, connection: Connection) -> None:
        self.process, self.connection = process, connection
        self.watch = ends.MemoryWatch(process.pid)
        self._part = bytearray()
        self._is_open = True
        os.set_blocking(connection.fileno(), False)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:  # it has sent what was asked for, and may end as it likes
            self.process.join(SECONDS_END)
        self.watch.kill()
        self.process.join(SECONDS_END)
        self.connection.close()

    def answers(self, why_end: WhyEnd, beat: Callable[[], None] = lambda: None) -> Iterator[dict[str, Any]]:
        """Each answer as it comes; `Ended` where the child is ended by `why_end`, or ended by itself too early.

        `why_end` and `beat` are called 20 times a second.
        """
        count, is_over = 0, False
        while not is_over:
            waited_for = [self.process.sentinel, *([self.connection] if self._is_open else [])]
            wait(waited_for, SECONDS_POLL)
            is_over = not self.process.is_alive()  # before reading: what it sent is in the pipe then
            for line in self._lines():
                count += 1
                yield json.loads(line)
            beat()
            if not is_over and (end := why_end()):
                self.watch.kill()
                raise Ended(end)
        exit_code = self.process.exitcode or 0
        if exit_code or self._part or not count:
            raise Ended(ends.row_of(exit_code, self.watch))

    def why_too_large(self, bytes_limit: int, bytes_allowed: int) -> dict[str, Any]:
        """The columns of an end for memory where the process holds more than `bytes_allowed`, or nothing.

        `bytes_allowed` is `bytes_limit` and what a process has beside what it measures.
        """
        owned = self.watch.owned()
        if owned <= bytes_allowed:
            return {}
        reason = f"It held {owned} bytes; the limit is {bytes_limit}."
        return {"status": "memory", "reason": reason, "bytes_limit": bytes_limit, "bytes_peak": owned}

    def _lines(self) -> list[bytes]:
        """The whole lines among what can be read now; the part of one that is begun is kept."""
        try:
            while self._is_open and (data := os.read(self.connection.fileno(), BYTES_READ)):
                self._part += data
            self._is_open = False
        except BlockingIOError:
            pass
        *lines, self._part = self._part.split(b"\n")
        return lines
