"""The look of a panel: JupyterLab's own colours, so that it follows the theme; fields in a grid that wraps."""

import threading
from collections.abc import Callable
from pathlib import Path

# A thread that does one thing again and again; it ends with its panel, or with the kernel.


SECONDS_BETWEEN = 0.25


class Watcher:
    """Calls `step` again and again from `start` to `stop`, with so many `seconds` between."""

    def __init__(self, step: Callable[[], None], seconds: float = SECONDS_BETWEEN) -> None:
        """Prepare a thread that calls `step()` every `seconds`; `start` starts it."""
        self.step, self.seconds = step, seconds
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; no effect while it runs. A watcher that was stopped ends at once."""
        if not self.alive:
            self._thread = threading.Thread(target=self._look, name="panel watcher", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread, waiting up to 5 s for the step at work unless called from it."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _look(self) -> None:
        """Call `step` every `seconds` until `stop`; body of the thread."""
        while not self._ended.wait(self.seconds):
            self.step()


SHEET = f"<style>\n{Path(__file__).with_suffix('.css').read_text(encoding='utf-8')}</style>"
"""The style sheet of a panel, `style.css` next to this module, as HTML."""
