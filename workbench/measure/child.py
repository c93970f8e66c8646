"""Child processes that measure: started from a fork server, watched with limits, and what their ends mean.

    context = fork_server()
    process, connection = start(context, "workbench.sweeps.trial:answers", request)
    with Child(process, connection) as child:
        for answer in child.answers(lambda: why_too_long(started, 120.0)):
            ...

A child sends each answer as a line of JSON. Reading never waits for the rest of a line: a child that was stopped or
killed in the middle of one ends as any other does, by its limits or its exit status, as `Ended`.
"""

import contextlib
import ctypes
import fcntl
import importlib
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any, TypeVar, cast, final

import psutil

from workbench.measure import environment, memory

# Reasons why a process ended: out of memory, killed from outside, or its own failure; inferred from evidence.
#
# The system kills by the same signal as anybody else does. That memory was the reason is shown by the kernel's count
# of such kills, which rose while the process lived, or by how little memory was left when it was last looked at.

OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
VMSTAT = Path("/proc/vmstat")
SHARE_SCARCE = 0.05
"""Share of the memory there is below which programs that guard it, such as systemd-oomd, begin to kill."""


UNKNOWN = 255
"""Exit status that `multiprocessing` gives a process whose fork server ended before it could report one."""


def memory_kills() -> int:
    """Return how many processes the system has killed for lack of memory in this control group or on this machine."""
    for path in _counters():
        try:
            count = re.search(r"^oom_kill (\d+)$", path.read_text(), re.M)
        except OSError:
            continue
        if count:
            return int(count[1])
    return 0


def _counters() -> list[Path]:
    """Return the files that may hold the kernel's count of out-of-memory kills, nearest first; some may not exist.

    They are those of control groups version 2, version 1, and of the machine.
    """
    try:
        lines = [line.split(":", 2) for line in OWN_GROUPS.read_text().splitlines()]
    except OSError:
        lines = []
    unified = [own.strip("/") for _, kinds, own in lines if kinds == ""]
    older = [own.strip("/") for _, kinds, own in lines if "memory" in kinds.split(",")]
    return [
        *(GROUPS / own / "memory.events" for own in (*unified, "")),
        *(GROUPS / "memory" / own / "memory.oom_control" for own in (*older, "")),
        VMSTAT,
    ]


class MemoryWatch:
    """Observations of a process's memory, and of the machine's, from its start to its end."""

    def __init__(self, pid: int) -> None:
        """Note the out-of-memory kills and the free memory now, and look up process `pid` and its parent."""
        self.kills = memory_kills()
        self.bytes_scarce = SHARE_SCARCE * memory.total_bytes()
        self.bytes_left = memory.available_bytes()
        try:
            self.process: psutil.Process | None = psutil.Process(pid)
            self.starter = self.process.parent()
        except psutil.NoSuchProcess:  # it has ended already
            self.process = self.starter = None

    @property
    def is_starter_gone(self) -> bool:
        """Whether the process that forked the watched one has ended."""
        try:
            return self.starter is not None and self.starter.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def owned(self) -> int:
        """Return the bytes that the process owns now, 0 if it has ended.

        Also records the free memory of the machine in `bytes_left`.
        """
        self.bytes_left = memory.available_bytes()
        try:
            return memory.owned_bytes(self.process.pid) if self.process else 0
        except psutil.NoSuchProcess:
            return 0

    def kill(self) -> None:
        """Send SIGKILL to the process, which also ends a stopped one; nothing if it has ended."""
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process if it still lives; never to another process that has reused its id."""
        try:
            if self.process:
                self.process.send_signal(number)
        except psutil.NoSuchProcess:
            pass

    def shortage(self) -> str:
        """Return evidence that memory ran out, as a sentence; "" if there is none."""
        if memory_kills() > self.kills:
            return "The system killed a process because memory ran out."
        if self.bytes_left < self.bytes_scarce:
            return f"The machine had {self.bytes_left} bytes of memory left."
        return ""


def row_of(exit_code: int, watch: MemoryWatch) -> dict[str, str]:
    """Return the columns `status` and `reason` of a process that ended before it had sent all answers.

    "memory" is never retried and therefore needs evidence of a shortage; everything else is "failed". A negative exit
    code is a signal. `watch` has observed the memory since its start.
    """
    if exit_code == UNKNOWN and watch.is_starter_gone:
        return {"status": "failed", "reason": "The fork server, which starts the processes, was killed from outside."}
    if exit_code >= 0:
        return {"status": "failed", "reason": f"The process ended with status {exit_code} before it had answered."}
    name = _signal_name(-exit_code)
    if name != "SIGKILL":
        return {"status": "failed", "reason": f"The process ended by {name}."}
    if shortage := watch.shortage():
        return {"status": "memory", "reason": f"The process was killed by SIGKILL. {shortage}"}
    return {"status": "failed", "reason": "The process was killed from outside by SIGKILL."}


def _signal_name(number: int) -> str:
    """Return the name of a signal, such as "SIGKILL"; "signal 40" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:  # the real-time signals have no names
        return f"signal {number}"


# The child's side of `workbench.measure.child`: do a request and what is ordered later, send answers as lines of JSON.
#
# It imports nothing but the standard library, so that what is measured loads its libraries in the environment given.


def serve(connection: Connection, work: str, request: str, environment: Mapping[str, str], log: str | None) -> None:
    """Run `work` in this child process and send each answer that it yields as a line of JSON.

    `work` is "module:function" of a generator that takes the request (JSON text). After an answer with `waits` the
    generator is given the next order; it ends when none will come. Ctrl-C is ignored, the environment replaced, output
    goes to the file `log`, and the process ends when its parent does.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    if log is not None:
        _print_into(log)
    multiprocessing.set_start_method("fork", force=True)  # locks of libraries leave nothing behind when it is killed
    if environment != os.environ:
        os.environ.clear()
        os.environ.update(environment)
    module, function = work.split(":")
    answers = getattr(importlib.import_module(module), function)
    place = connection.fileno()
    with open(place, "wb", closefd=False) as pipe, open(place, "rb", closefd=False) as orders:
        _pipes.append(pipe)
        _answer(answers(json.loads(request)), pipe, orders)


_pipes: list[IO[bytes]] = []
"""The pipe of this process to its parent, if it serves one."""


def tell(answer: Mapping[str, Any]) -> None:
    """Send an answer from inside the work, between the answers that it yields; nothing outside of a child process.

    Call it on the thread that does the work: two answers at once would be mixed.
    """
    for pipe in _pipes:
        pipe.write(json.dumps(answer).encode() + b"\n")
        pipe.flush()


def _answer(work: Generator[dict[str, Any], Any, None], pipe: IO[bytes], orders: IO[bytes]) -> None:
    """Send each answer of the generator as a line of JSON; after one with `waits` read an order and pass it in.

    Returns at the end of the generator or if no order comes.
    """
    order: Any = None
    with contextlib.suppress(StopIteration):
        while True:
            answer = work.send(order)
            pipe.write(json.dumps(answer).encode() + b"\n")
            pipe.flush()
            order = None
            if answer.get("waits"):
                line = orders.readline()
                if not line:  # whoever gave the orders has no more
                    return
                order = json.loads(line)


def _end_with_parent() -> None:
    """Arrange that this process is killed when its parent or its fork server ends, even while it is stopped.

    A stopped process runs none of its threads. Linux can kill it as the pipe closes that its parent holds open, and as
    the fork server ends; a thread ends it on other systems, and if the parent was gone before that was set up.
    """
    _die_with_fork_server()
    parent = multiprocessing.parent_process()
    assert parent is not None, "a fork server has started this process"
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, fcntl.fcntl(parent.sentinel, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


PR_SET_PDEATHSIG = 1


def _die_with_fork_server() -> None:
    """Ask Linux to kill this process when the process that forked it ends; no effect on other systems.

    Raises OSError if the system refuses.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")


def _end_after(sentinel: int) -> None:
    """Wait until the process of `sentinel` has ended, then exit this process with status 1; the body of a thread."""
    wait([sentinel])
    os._exit(1)


def _print_into(log: str) -> None:
    """Redirect standard output and error of this process to the end of a log file, which is created if absent."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)


SECONDS_POLL = 0.05
SECONDS_END = 5.0
"""How long to wait for a process to be gone, by itself or killed; one that waits for a device cannot be killed."""
BYTES_READ = 2**20

WhyEnd = Callable[[], Mapping[str, Any]]
"""Gives the columns to end a child with, status and reason among them, or nothing."""


class Ended(Exception):  # noqa: N818 - an end, not always an error
    """A child process ended before sending all answers; `row` holds status, reason and what else is known."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        """Store a copy of `row`, whose `reason` is the message."""
        super().__init__(row["reason"])
        self.row = dict(row)


def fork_server(preload: Sequence[str] = ()) -> ForkServerContext:
    """Start the fork server, if none runs, and return the context to start children from.

    Children begin with the modules of `preload` imported, if the server is new. It is started in the environment that
    children measure in, since it loads BLAS, which reads it only then.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    with _environment(environment.measuring_environment()), _report_child_exits():
        forkserver.ensure_running()
    return context


@contextlib.contextmanager
def _report_child_exits() -> Iterator[None]:
    """Unblock SIGCHLD within the context, for processes started inside, and restore the mask after.

    A server that inherits SIGCHLD blocked would report no exit, and every trial would last until its limit.
    """
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Replace all environment variables within the context by `variables`, for processes started inside."""
    before = dict(os.environ)
    try:
        _replace_environment(variables)
        yield
    finally:
        _replace_environment(before)


def _replace_environment(variables: Mapping[str, str]) -> None:
    """Replace all environment variables of this process by `variables`; changes `os.environ` in place."""
    os.environ.clear()
    os.environ.update(variables)


def start(
    context: ForkServerContext, work: str, request: Mapping[str, Any], log: Path | None = None
) -> tuple[BaseProcess, Connection]:
    """Start a process for a request; return it and the connection for its answers and for orders.

    `work` is "module:function", imported in the child alone; its output is appended to the file `log`. It gets the
    environment for measuring. Raises Ended if it exits before it received the request.
    """
    ours, theirs = context.Pipe()
    arguments = (theirs, work, json.dumps(request), environment.measuring_environment(), str(log) if log else None)
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
    """Return {"status": "timeout", "reason": ...} if over `seconds` have passed since `started`, else {}.

    `started` is of `time.monotonic`; `setting` is the name of the limit for the message, "" leaves it out.
    """
    if time.monotonic() - started <= seconds:
        return {}
    limit = f"{setting} = {seconds:g} s" if setting else f"{seconds:g} s"
    return {"status": "timeout", "reason": f"It took longer than {limit}."}


@final
class Child:
    """A process at work and its answers; a context that ends it."""

    def __init__(self, process: BaseProcess, connection: Connection) -> None:
        """Watch the memory of a started process and make its connection non-blocking."""
        self.process, self.connection = process, connection
        self.watch = MemoryWatch(cast("int", process.pid))  # it has been started
        self._part = bytearray()
        self._is_open = True
        os.set_blocking(connection.fileno(), False)

    def __enter__(self) -> "Child":
        """Return this object; the process is running already."""
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """End the process; without an error it first has five seconds to end by itself."""
        if error is None:  # it has sent what was asked for, and may end as it likes
            self.process.join(SECONDS_END)
        self.end()

    def order(self, order: Mapping[str, Any]) -> None:
        """Send the process its next order as a line of JSON; nothing happens if it has ended."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended, as `answers` will say
            os.write(self.connection.fileno(), json.dumps(order).encode() + b"\n")

    def stop(self) -> None:
        """Stop the process with all its threads by SIGSTOP, until `resume`."""
        self.watch.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process after `stop`, by SIGCONT."""
        self.watch.send(signal.SIGCONT)

    def end(self) -> None:
        """Kill the process, wait up to five seconds for it, and close the connection."""
        self.watch.kill()
        self.process.join(SECONDS_END)
        self.connection.close()

    def answers(self, why_end: WhyEnd, beat: Callable[[], None] = lambda: None) -> Iterator[dict[str, Any]]:
        """Yield each answer as a dict; raises Ended if `why_end` returns a reason, or if the process exits early.

        Both `why_end` and `beat` are called about every 50 ms. The process is killed before Ended is raised.
        """
        count, is_over = 0, False
        while not is_over:
            waited_for: list[Any] = [self.process.sentinel, *([self.connection] if self._is_open else [])]
            wait(waited_for, SECONDS_POLL)
            is_over = not self.process.is_alive()  # before reading: what it sent is in the pipe then
            for line in self._lines():
                count += 1
                yield json.loads(line)
            beat()
            if not is_over and self.process.is_alive() and (end := why_end()):  # one that has ended tells its own end
                self.watch.kill()
                raise Ended(end)
        exit_code = self.process.exitcode or 0
        if exit_code or self._part or not count:
            raise Ended(row_of(exit_code, self.watch))

    def why_too_large(self, bytes_limit: int, bytes_allowed: int) -> dict[str, Any]:
        """Return the columns of an end for memory if the process owns more than `bytes_allowed`, else {}.

        `bytes_allowed` is `bytes_limit`, which the message names, plus what a process has besides what it measures.
        """
        owned = self.watch.owned()
        if owned <= bytes_allowed:
            return {}
        reason = f"It held {owned} bytes; the limit is {bytes_limit}."
        return {"status": "memory", "reason": reason, "bytes_limit": bytes_limit, "bytes_peak": owned}

    def _lines(self) -> list[bytes]:
        """Return the complete lines, without newline, that can be read from the child now without waiting.

        An incomplete last line is kept for the next call.
        """
        try:
            while self._is_open and (data := os.read(self.connection.fileno(), BYTES_READ)):
                self._part += data
            self._is_open = False
        except BlockingIOError:
            pass
        except ConnectionResetError:  # it ended before it had read its last order
            self._is_open = False
        *lines, self._part = self._part.split(b"\n")
        return [bytes(line) for line in lines]


# Processes that live side by side and compute in turns: all but the one whose turn it is are stopped.
#
# What slows a machine for a moment slows both of two processes that take turns of 50 ms, so the ratio of their times
# varies less than that of processes one after the other: the standard deviation of its logarithm was 0.18 instead of
# 0.28 on two shared cores, 0.28 instead of 1.55 next to a busy program. An idle process would still disturb the other
# by threads that spin; SIGSTOP keeps it from that. A process is stopped only while it waits for an order, so no time
# that it takes has a stop in it.


SECONDS_TURN = 0.05
"""Length of a turn, or one step where that takes longer: longer than what the change of caches and threads disturbs."""
SECONDS_SETTLE = 0.015
"""Time at the beginning of a turn that counts for nothing: the caches hold data of the process before."""
MOST = 6
"""Processes that take turns at most: with more the neighbours of a turn are no longer near in time.

The noise of six is what `python -m benchmarks self --case record` records.
"""

Name = TypeVar("Name", bound=Hashable)


def can_alternate() -> bool:
    """Return whether this system can stop processes, and kill stopped ones whose parent has ended (Linux)."""
    return hasattr(signal, "SIGSTOP") and hasattr(fcntl, "F_SETSIG")


@final
class Living:
    """A process that is stopped whenever it waits for an order.

    `why_end` and `beat` are called while it computes, as `Child.answers` calls them.
    """

    def __init__(self, child: Child, why_end: WhyEnd, beat: Callable[[], None] = lambda: None) -> None:
        """Start reading the answers of a child; nothing is waited for yet."""
        self.child = child
        self._answers = child.answers(why_end, beat)

    def next(self) -> dict[str, Any]:
        """Return the next answer, and stop the process if it waits for an order.

        Raises Ended if it ends without one.
        """
        answer = next(self._answers, None)
        if answer is None:
            raise Ended(row_of(0, self.child.watch))
        if answer.get("waits"):
            self.child.stop()
        return answer

    def do(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Resume the process, send it an order, and return its answer, as `next` does."""
        self.child.resume()
        self.child.order(order)
        return self.next()


def alternate_turns(names: Sequence[Name], turn: Callable[[Name], bool]) -> None:
    """Call `turn` for each name, forth and back, until every call of one pass returns that it needs no more.

    Finished ones continue while others need turns, so that all times cover the same period.

    >>> turns = []
    >>> alternate_turns("ab", lambda name: bool(turns.append(name)) or len(turns) > 4)
    >>> turns
    ['a', 'b', 'b', 'a', 'a', 'b']
    """
    order, need_no_more = list(names), False
    while not need_no_more:
        need_no_more = all(list(map(turn, order)))  # a list: each has its turn, whatever the one before returned
        order.reverse()
