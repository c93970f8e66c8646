"""A thread that does one thing again and again; it ends with its panel, or with the kernel."""

import threading
from collections.abc import Callable

SECONDS_BETWEEN = 0.25


class Watcher:
    """Calls `step` again and again from `start` to `stop`, with so many `seconds` between."""

    def __init__(self, step: Callable[[], None], seconds: float = SECONDS_BETWEEN) -> None:
        self.step, self.seconds = step, seconds
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether it is looking."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin; a watcher that looks already goes on."""
        if not self.alive:
            self._thread = threading.Thread(target=self._look, name="panel watcher", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End, and wait for the step at work unless called from it."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _look(self) -> None:
        while not self._ended.wait(self.seconds):
            self.step()
