"""`workbench advise`: the budget is shown as it is spent, then the answer: what to train with, how much faster."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.panel import Panel
from rich.text import Text

from kernels.registry import format_count
from workbench import advising as advice
from workbench import data
from workbench.advising import Answer
from workbench.advising.source import load_call
from workbench.analysis.answers import EPOCHS
from workbench.command import data_source, terminal
from workbench.command.exit_codes import seconds_spent
from workbench.command.output import echo
from workbench.option_text import worded
from workbench.sweeps import progress_bar
from workbench.sweeps.problem import parameters_of_file


def advise(
    source: str,
    files: Mapping[str, str],
    given: Mapping[str, Any],
    seconds: float,
    lazy: bool,
    folder: Path | None,
    as_json: bool,
    epochs: int = EPOCHS,
) -> Answer:
    """Measure and print which training suits the data of `source`; return the answer.

    `files` says how the data is read, `given` which settings are fixed (empty ones are not); `seconds` is the budget,
    `lazy` allows lazy updates that train another model; `folder` is the run folder, None for the default. `as_json`
    prints JSON; `epochs` are those that training times are said for. SpecError if it cannot be measured.
    """
    settings = data_source.settings_with_notice(source, **files) | {
        name: value for name, value in given.items() if value
    }
    answer = advice.advise(
        settings,
        seconds,
        lazy=lazy,
        folder=folder,
        follow=functools.partial(progress_bar.follow, console=terminal.stderr),
        seconds_spent=seconds_spent(),
        say=print_guess,
        epochs=epochs,
    )
    if as_json:
        echo(json.dumps(answer.as_json(), indent=1))
    else:
        show(answer)
    return answer


def print_guess(sentence: str) -> None:
    """Print a sentence on what was guessed to standard error."""
    echo(worded(sentence), err=True)


def show(answer: Answer) -> None:
    """Print the answer, what its names mean, and the command that trains so."""
    terminal.print_answer(answer.text, "Recommended")
    if answer.command:
        terminal.console.print("Train it with", style="bold")
        terminal.console.print(f"  {answer.command}", markup=False, highlight=False, soft_wrap=True)
    terminal.console.print(answer.spent, markup=False, highlight=False, soft_wrap=True)


def show_framework(
    source: str, framework: str, read: Mapping[str, str], budget: float | None, batch_rows: int | None, as_json: bool
) -> None:
    """Read the data, time the ways to train in a framework, and print the fastest, as JSON if asked for.

    `read` has the options of `data_source.load`; `budget` is in seconds, None for the default. Raises DataError.
    """
    from workbench.advising.frameworks import BUDGET, answer_for

    settings = data_source.settings_with_notice(source, **read)
    with data_source.show_reading():
        dataset = data.load(settings["dataset"], **parameters_of_file(settings))
    for guess in dataset.facts.get("guesses", ()):
        print_guess(guess)
    with terminal.stderr.status("Reading") as status:
        answer = answer_for(
            framework,
            dataset,
            budget=budget or BUDGET,
            batch_rows=batch_rows,
            progress=lambda what: status.update(what),
            load=load_call(settings),
        )
    if as_json:
        echo(json.dumps(answer.as_json(), indent=1))
        return
    console = terminal.console
    console.print(Panel(Text(answer.headline), title="Recommended", title_align="left"))
    for line in answer.lines_of_ways:
        console.print(f"  {line}", markup=False, highlight=False)
    took = (
        f"{format_count(answer.rows, 'row')}, {answer.batch_rows} a batch, plain SGD, timed in {answer.seconds:.0f} s."
    )
    console.print(took, highlight=False)
    for line in answer.measured_elsewhere.lines(answer.density):
        console.print(line, markup=False, highlight=False)
    console.print(answer.paste_heading, style="bold")
    console.print(answer.lines, markup=False, highlight=False, soft_wrap=True)
