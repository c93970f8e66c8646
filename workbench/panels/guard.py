"""Callbacks of widgets and threads: one at a time, and with an exception shown instead of lost."""

import threading
from collections.abc import Callable
from typing import Any

from workbench.option_text import at_door
from workbench.panels.state import in_panel


def nothing() -> None:
    """Do nothing; the default of callbacks."""


class Guard:
    """Makes callbacks of actions, which hold a lock of their own: thread and user may come at the same time.

    `tell` gets what went wrong and what failed, in the words that are given with the action; `begin` is called before
    an action that is no part of another one.
    """

    def __init__(self, tell: Callable[[Exception, str], None], begin: Callable[[], None] = nothing) -> None:
        """Make a guard with its own lock; see the class for `tell` and `begin`."""
        self.tell, self.begin = tell, begin
        self._lock, self._depth = threading.RLock(), 0

    def __call__(self, what: str, action: Callable[[], Any]) -> Callable[..., None]:
        """Return a callback, with any arguments, that runs `begin()` and `action()` under the lock.

        An exception is passed to `tell(error, what)` instead of raised.
        """
        return self._callback(what, action, self.begin)

    def passive_callback(self, what: str, action: Callable[[], Any]) -> Callable[..., None]:
        """Return a callback that runs `action()` under the lock, without `begin`, for events that no user caused."""
        return self._callback(what, action, nothing)

    def background_callback(self, what: str, action: Callable[[], Any]) -> Callable[..., None]:
        """Return a callback that runs `action()` without the lock, for slow work on a thread of the caller.

        An exception is passed to `tell(error, what)`.
        """
        return lambda *_: self._do(what, action)

    def _callback(self, what: str, action: Callable[[], Any], begin: Callable[[], None]) -> Callable[..., None]:
        """Return a callback, with any arguments, that runs `begin()` (outermost only) and `action()` under the lock.

        An exception of `action` is passed to `tell(error, what)`.
        """

        def call(*_: Any) -> None:
            """Run `begin`, unless nested in another action, and the action, under the lock."""
            with self._lock:
                if not self._depth:
                    begin()
                self._depth += 1
                try:
                    self._do(what, action)
                finally:
                    self._depth -= 1

        return call

    def _do(self, what: str, action: Callable[[], Any]) -> None:
        """Run `action()`; an exception is passed to `tell(error, what)` instead of raised."""
        with at_door(in_panel):
            try:
                action()
            except Exception as error:
                self.tell(error, what)
