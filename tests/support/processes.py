"""Other processes, which may end while they are asked, and what a process begins with: the signals of its starter."""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.support.clocks import SECONDS

HEARD = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
"""The signals that processes of this project are stopped by, and hear of the ends of others by."""


def printed(code: str, *words: str, cwd: Path = Path(__file__).parents[2], env: Mapping[str, str] | None = None) -> str:
    """What a fresh interpreter prints that runs the code with these arguments; it must end well, and not hang."""
    run = [sys.executable, "-c", textwrap.dedent(code), *words]
    done = subprocess.run(run, cwd=cwd, env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def hear_signals() -> None:
    """Let this process, and those that it starts, take the usual notice of signals that its starter ignores."""
    usual = {signal.SIGINT: signal.default_int_handler}
    for number in HEARD:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual.get(number, signal.SIG_DFL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HEARD)


def heard() -> tuple:
    """What this process does where it is asked to end, and the signals that it blocks."""
    return signal.getsignal(signal.SIGTERM), signal.pthread_sigmask(signal.SIG_BLOCK, ())


@contextmanager
def kept_handlers() -> Iterator[None]:
    """What this process does where it is asked to end is afterwards what it was before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deaf_starter() -> Iterator[None]:
    """Ignore and block what asks to end, and block what tells the end of a child: what is started inside begins so."""
    with kept_handlers():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def is_gone(pid: int) -> bool:
    """Whether the process has ended; so has one that nobody waits for."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def grandchildren(pid: int) -> list[psutil.Process]:
    """The processes that children of the process have started, and theirs."""
    try:
        below = [(child, _parent(child)) for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    return [one for one, parent in below if parent not in (None, pid)]


def _parent(process: psutil.Process) -> int | None:
    """The number of the process's parent; None where it has ended."""
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return None
