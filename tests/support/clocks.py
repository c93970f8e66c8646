"""Time in tests: a clock that passes when told to, and waits that end on a condition, however fast the machine is."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 120.0
"""Longer than anything takes on a slow machine at work on other things: only what hangs uses it up."""

Found = TypeVar("Found")


class Clock:
    """Seconds that pass when told to; called for the time, as `time.perf_counter` is."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def until(condition: Callable[[], Found], seconds: float = SECONDS) -> Found:
    """What the condition gives once that is true, asked 50 times a second; `AssertionError` where it never is."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"It is still {found!r} after {seconds:g} s.")
        time.sleep(0.02)
    return found


def ended(act: Callable[[], object]) -> object:
    """What the act gives, or the error that it ends with; `AssertionError` where it hangs. It is left behind then."""
    came: list[object] = []

    def run() -> None:
        try:
            came.append(act())
        except BaseException as error:
            came.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert came, f"It has not ended after {SECONDS:g} s."
    return came[0]


class Stopwatch:
    """Says how long ago it was made, for people to read: nothing compares it."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __str__(self) -> str:
        return f"{time.monotonic() - self._began:.1f} s"
