"""One call at a time: an executor's values are those of one batch, and two threads would mix theirs."""

import threading
from typing import final

from workbench.executor.errors import BindError

ADVICE = "Bind an executor for each thread: each then has its own arrays and values."


@final
class Alone:
    """Entered by one call at a time; another one meanwhile is a `BindError`. Costs less than half a microsecond.

    It knows whose training pass is still to be used up, for a call of another thread may come in between.
    """

    __slots__ = ("_lock", "_trained_by")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._trained_by = 0

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise BindError(f"This executor is at work already, in another call or thread. {ADVICE}")

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def trained(self, training: bool) -> None:
        """Note that this thread has made a training pass, or that the last one is used up."""
        self._trained_by = threading.get_ident() if training else 0

    def use_up(self) -> None:
        """Take the training pass, which must be there and this thread's own (`BindError`)."""
        if not self._trained_by:
            raise BindError(
                "backward needs the values of a forward pass, and uses them up. Call forward(training=True) first."
            )
        if self._trained_by != threading.get_ident():
            raise BindError(f"The last forward(training=True) was made by another thread. {ADVICE}")
