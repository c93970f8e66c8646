"""Callbacks of widgets and threads: one at a time, and with an exception shown instead of lost."""

import threading
from collections.abc import Callable
from typing import Any

Guard = Callable[[str, Callable[[], Any]], Callable[..., None]]
"""Makes a callback of an action; its first argument says in words what the action does, for when it fails."""


def guarded(tell: Callable[[Exception, str], None]) -> Guard:
    """A guard whose callbacks hold a lock of their own; `tell` gets what went wrong, and what failed."""
    lock = threading.RLock()  # thread and user may come at the same time

    def guard(what: str, action: Callable[[], Any]) -> Callable[..., None]:
        def call(*_: Any) -> None:
            with lock:
                try:
                    action()
                except Exception as error:
                    tell(error, what)

        return call

    return guard
