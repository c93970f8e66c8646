"""Advise: what to train the data with, measured on this machine within a budget of seconds."""

import html
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench import store
from workbench.advising import Answer as Advice
from workbench.advising import advise
from workbench.analysis.formatting import format_count
from workbench.option_text import worded
from workbench.panels import picture
from workbench.panels.form import LABELLED
from workbench.panels.guard import Guard
from workbench.panels.live import copied
from workbench.panels.results_view import PictureView, Shown
from workbench.panels.state import emphasized, shorter
from workbench.panels.tabs import Answer, RequestState, fields_of, register, settings_of_data
from workbench.reports import export
from workbench.sweeps import run_folder
from workbench.sweeps.progress import format_spent
from workbench.sweeps.spec import InvalidOption, SpecError


def page(advice: Advice) -> Shown:
    """Return the answer, its command, guesses and time spent."""
    parts = [advice.text.html]
    parts += [f"<p>Train it with: {copied(advice.command)}</p>"] if advice.command else []
    parts += [f"<p>In Python: {copied(in_python(advice.settings))}</p>"] if advice.command else []
    guesses = "".join(f"<li>{emphasized(html.escape(worded(guess)))}</li>" for guess in advice.guesses)
    parts += [f"<p><strong>What was guessed</strong></p><ul>{guesses}</ul>"] if guesses else []
    return Shown("".join([*parts, f"<p>{html.escape(advice.spent)}</p>"]), str(advice))


def in_python(settings: Mapping[str, Any]) -> str:
    """Return the lines of Python that give the same advice and fit an estimator.

    >>> in_python({"dataset": "table", "path": "clicks.csv", "model": "logistic"})
    'advice = wb.advise("clicks.csv", model="logistic"); model = advice.fit()'
    """
    source = settings.get("path") or settings["dataset"]
    model = f", model={json.dumps(settings['model'])}" if settings.get("model") else ""
    return f"advice = wb.advise({json.dumps(str(source))}{model}); model = advice.fit()"


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
        self.export = widgets.Button(description="Export", tooltip="Write report.html and rows.csv", disabled=True)
        self.line, self.answer, self.exported = (widgets.HTML() for _ in range(3))
        self.chart = PictureView()
        self.export.on_click(guard("Exporting", self._export))
        self.button.on_click(guard("Advising", self._start))
        self.stop.on_click(guard("Stopping", self._stop))
        self.guard, self.now, self.folder = guard, "", Path()
        self.is_stopping, self.thread = False, threading.Thread()
        buttons = widgets.HBox([self.button, self.stop, self.export, self.line])
        buttons.add_class("wb-row")
        fields, self.label, self.columns = fields_of(asked, guard, self.seconds)
        self.box = widgets.VBox([fields, buttons, self.exported, self.answer, self.chart.box])

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
        self.now, self.answer.value, self.exported.value = "looking at the data", "", ""
        self.export.disabled = True
        self.chart.show(None)
        work = self.guard.background_callback("Advising", lambda: self._work(settings, seconds))
        self.thread = threading.Thread(target=work, name="advice", daemon=True)
        self.thread.start()

    def _work(self, settings: dict[str, Any], seconds: float) -> None:
        """Compute the advice within `seconds` and show it; body of a thread. Enables the button at the end."""
        try:
            advice = advise(settings, seconds, follow=self._follow, say=self._say)
            self.answer.value, self.folder = page(advice).html, advice.folder
            if has_records := store.is_stored(self.folder / store.FILE):
                self.chart.show(picture.draw("time_density", export.frame_of(self.folder)))
            self.export.disabled = not has_records
        finally:
            self.button.disabled, self.stop.disabled, self.now = False, True, ""

    def _say(self, sentence: str) -> None:
        """Show a sentence in the place of the answer, until that is known."""
        self.answer.value = f"<p>{emphasized(html.escape(worded(sentence)))}</p>"

    def _export(self) -> None:
        """Write report and table of the records into the run folder, and say where they are."""
        files = (export.write_report(self.folder), export.write_table(self.folder))
        self.exported.value = f"<p>Written: {html.escape(', '.join(map(shorter, files)))}</p>"

    def _follow(self, heading: str, folder: Path, spent: float, budget: float) -> None:
        """Show progress of the run in `folder` until it is over; stop it if the user asked to.

        `heading` names the stage; `spent` and `budget` are seconds. Called by `advise` on its thread.
        """
        self.folder = folder
        for state in run_folder.watch_progress(folder):
            done = f"{heading}: {format_spent(spent + state.seconds, budget)}, {format_count(state.done, 'trial')}"
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
