"""Progress of a measurement where a person sees it: a bar in a terminal, a card in a notebook, lines in a log."""

import html
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.api import shown
from workbench.api.inputs import in_notebook, say
from workbench.sweeps import run_folder
from workbench.sweeps.progress import Progress

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_CHARTS = 5.0
Show = Callable[[Progress, float, float], None]


def follow(heading: str, folder: Path, spent: float, budget: float) -> None:
    """Show a run until it is over; Ctrl-C, or interrupting the cell, stops it and keeps what was measured."""
    show, close = _display(heading, folder)
    states, is_stopping = run_folder.watch_progress(folder), False
    try:
        while True:
            try:
                state = next(states, None)
                if state is None:
                    return
                show(state, spent, budget)
            except KeyboardInterrupt:
                if is_stopping:
                    raise
                is_stopping = True
                run_folder.stop_run(folder)
                states = run_folder.watch_progress(folder)
    finally:
        close()


def line(state: Progress, spent: float, budget: float) -> str:
    """Describe in one line how far a run is.

    >>> line(Progress("demo", "running", total=8, done=3, seconds=2.0), 1.0, 60.0)
    '3 of 8 trials, 3 of 60 s'
    """
    trials = f"{state.done} of {state.total} trials" if state.total else "starting"
    seconds = f"{spent + state.seconds:.0f}{f' of {budget:.0f}' if budget else ''} s"
    return ", ".join(filter(None, (trials, seconds, state.now if state.alive and state.stage else "")))


def _display(heading: str, folder: Path) -> tuple[Show, Callable[[], None]]:
    """Return (show progress, finish) for a notebook, a terminal or a log, whichever this process has."""
    if in_notebook():
        return _in_notebook(heading, folder)
    return _in_terminal(heading) if sys.stderr.isatty() else _in_log(heading)


def _in_terminal(heading: str) -> tuple[Show, Callable[[], None]]:
    """Return (show progress, finish) that draw a bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.fields[text]}", markup=False)
    bars = Bars(*columns, console=Console(stderr=True))
    bars.start()
    task = bars.add_task(heading, total=None, text="")

    def show(state: Progress, spent: float, budget: float) -> None:
        """Update the bar to the state of the run and the seconds of the budget that are spent."""
        total, done = (budget, spent + state.seconds) if budget else (state.total or None, state.done)
        bars.update(task, total=total, completed=done, text=line(state, spent, budget))

    return show, bars.stop


def _in_log(heading: str) -> tuple[Show, Callable[[], None]]:
    """Return (show progress, finish) that print a line from time to time."""
    due = time.monotonic()

    def show(state: Progress, spent: float, budget: float) -> None:
        """Log a line on the state of the run when the next one is due."""
        nonlocal due
        if time.monotonic() >= due and state.total:
            due = time.monotonic() + SECONDS_BETWEEN_LINES
            say(f"{heading}: {line(state, spent, budget)}")

    return show, lambda: None


INTERRUPT = "Interrupt the cell to stop and keep what was measured."
STOPPING = "Stopping; what was measured stays."


def _in_notebook(heading: str, folder: Path) -> tuple[Show, Callable[[], None]]:
    """Return (show progress, finish) that update a card in the notebook, with a Stop button if one can be pressed."""
    from IPython.display import HTML, display

    handle: Any = display(HTML(""), display_id=True)
    stop = _stop_button(folder)
    if stop is not None:
        display(stop)
        _handle_clicks_while_the_cell_runs(stop)
    drawn, picture, last = time.monotonic(), "", ""

    def show(state: Progress, spent: float, budget: float) -> None:
        """Update the displayed bar and, at intervals, the chart, to the state of the run."""
        nonlocal drawn, picture, last
        if state.done and time.monotonic() - drawn > SECONDS_BETWEEN_CHARTS:
            drawn, picture = time.monotonic(), _partial(folder)
        text = html.escape(f"{heading}: {line(state, spent, budget)}")
        bar = f'<progress max="{state.total or 1}" value="{state.done}" aria-label="Trials done"></progress>'
        hint = (STOPPING if stop.disabled else "Stop keeps what was measured.") if stop is not None else INTERRUPT
        body = f'<p role="status">{bar} {text}<br><small>{hint}</small></p>{picture}'
        if body != last:
            last = body
            handle.update(HTML(shown.page(body)))

    def finish() -> None:
        """Remove the bar and the stop button from the output."""
        handle.update(HTML(""))
        if stop is not None:
            stop.close()

    return show, finish


def _stop_button(folder: Path) -> Any:
    """Return a button that stops the run; None without widgets, without a person at a front end, or if the kernel
    cannot run its callback while the cell waits."""
    try:
        import ipywidgets
        from IPython import get_ipython

        from workbench.panels.lab import has_front_end
    except ImportError:
        return None
    known = getattr(getattr(get_ipython(), "kernel", None), "kernel_info", {})
    if not has_front_end() or "kernel subshells" not in known.get("supported_features", ()):
        return None
    button = ipywidgets.Button(
        description="Stop", tooltip="Stop the run; what was measured stays", button_style="warning"
    )

    def stop(_: Any) -> None:
        """Disable the button and ask the run to stop."""
        button.disabled = True
        run_folder.stop_run(folder)

    button.on_click(stop)
    return button


def _handle_clicks_while_the_cell_runs(button: Any) -> None:
    """Have clicks of a button that is displayed handled beside the cell, in the subshell that the front end sends to.

    ipykernel from 7.4 on sends them to the shell that last wrote to the button, which waits for the cell to end.
    """
    vars(button.comm).pop("_reply_subshell_id", None)


def _partial(folder: Path) -> str:
    """Draw the chart of the records so far, as HTML; empty before the first one with a result."""
    from workbench import store
    from workbench.panels import picture

    records = [record for record in run_folder.read_current_records(folder) if record["status"] in ("ok", "disturbed")]
    return picture.draw("time_density", store.frame(records)).html if records else ""
