"""Advise: what to train the data with, measured on this machine within a budget of seconds."""

import html
import threading
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.advising import Answer as Advice
from workbench.advising import advise
from workbench.analysis.formatting import format_count
from workbench.option_text import worded
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard
from workbench.panels.live import copied
from workbench.panels.results_view import Shown
from workbench.panels.state import emphasized
from workbench.panels.tabs import Answer, RequestState, fields_of, register, settings_of_data
from workbench.sweeps import run_folder
from workbench.sweeps.spec import InvalidOption, SpecError


def page(advice: Advice) -> Shown:
    """Return the answer, its command, guesses and time spent."""
    parts = [advice.text.html]
    parts += [f"<p>Train it with: {copied(advice.command)}</p>"] if advice.command else []
    guesses = "".join(f"<li>{emphasized(html.escape(worded(guess)))}</li>" for guess in advice.guesses)
    parts += [f"<p><strong>What was guessed</strong></p><ul>{guesses}</ul>"] if guesses else []
    return Shown("".join([*parts, f"<p>{html.escape(advice.spent)}</p>"]), str(advice))


class _Advise:
    """Data, model and seconds are asked for; trials run in separate processes, a thread waits for them."""

    def __init__(self, asked: RequestState, guard: Guard) -> None:
        """Make the fields for data, model and budget, the buttons and the answer; starts nothing."""
        self.asked = asked
        self.seconds = widgets.Text(
            f"{asked.seconds:g}", description="Budget (s)", tooltip="Seconds that it may take", style=LABELLED
        )
        self.button = widgets.Button(description="Advise me", tooltip="Measure, then say", button_style="primary")
        self.stop = widgets.Button(description="Stop", tooltip="Answer from what was measured", disabled=True)
        self.line, self.answer = widgets.HTML(), widgets.HTML()
        self.button.on_click(guard("Advising", self._start))
        self.stop.on_click(guard("Stopping", self._stop))
        self.guard, self.now, self.folder = guard, "", Path()
        self.is_stopping, self.thread = False, threading.Thread()
        buttons = widgets.HBox([self.button, self.stop, self.line])
        buttons.add_class("wb-row")
        self.box = widgets.VBox([fields_of(asked, guard, self.seconds), buttons, self.answer])

    def _start(self) -> None:
        """Start the advice on a thread; SpecError if the budget is no number, RunError if a sweep is running.

        Disables the button until it is done.
        """
        try:
            seconds = float(self.seconds.value)
        except ValueError:
            raise SpecError(
                InvalidOption("expected a number of seconds; 60 is usual.", "budget", self.seconds.value)
            ) from None
        settings = settings_of_data(self.asked)
        run_folder.require_no_active_sweep(run_folder.ROOT / "advise")
        self.button.disabled, self.stop.disabled, self.is_stopping = True, False, False
        self.now, self.answer.value = "looking at the data", ""
        work = self.guard.background_callback("Advising", lambda: self._work(settings, seconds))
        self.thread = threading.Thread(target=work, name="advice", daemon=True)
        self.thread.start()

    def _work(self, settings: dict[str, Any], seconds: float) -> None:
        """Compute the advice within `seconds` and show it; body of a thread. Enables the button at the end."""
        try:
            self.answer.value = page(advise(settings, seconds, follow=self._follow)).html
        finally:
            self.button.disabled, self.stop.disabled, self.now = False, True, ""

    def _follow(self, heading: str, folder: Path, spent: float, budget: float) -> None:
        """Show progress of the run in `folder` until it is over; stop it if the user asked to.

        `heading` names the stage; `spent` and `budget` are seconds. Called by `advise` on its thread.
        """
        self.folder = folder
        for state in run_folder.watch_progress(folder):
            done = f"{heading}: {spent + state.seconds:.0f} of {budget:.0f} s, {format_count(state.done, 'trial')}"
            self.now = "; ".join(filter(None, (done, state.now)))
            if self.is_stopping:
                run_folder.stop_run(folder)

    def _stop(self) -> None:
        """Ask the advice to stop; it then answers from what was measured."""
        self.is_stopping = True

    def paint(self) -> None:
        """Show what the advice is doing now in the status line."""
        self.line.value = f'<div role="status" class="wb-status">{html.escape(self.now)}</div>'

    def close(self) -> None:
        """Ask the advice to stop if it still measures; does not wait."""
        self._stop()


register(
    Answer(
        "advise",
        "Advise",
        "Say what to train my data with: sparse or dense, how, how much faster; within a minute.",
        0,
        _Advise,
        lambda asked: page(advise(settings_of_data(asked), asked.seconds)),
    )
)
