"""Runs in a terminal: progress bars, tables, and the verdict in the words of the report; from run folders alone."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kernels.registry import format_count, format_size
from workbench import store
from workbench.analysis import configurations, formatting
from workbench.analysis.answer_text import AnswerText, answer_text
from workbench.command.console import console, make_table, messages_on_stderr, print_run_lines, stderr
from workbench.sweeps import progress_bar, run_folder

__all__ = [
    "conclude",
    "console",
    "follow",
    "messages_on_stderr",
    "print_answer",
    "print_list",
    "print_run_lines",
    "stderr",
    "summarize",
    "trained_table",
]

MOST_LINES, MOST_CAVEATS = 8, 4
"""Densities and caveats that are printed; the report has all."""


def follow(heading: str, folder: Path) -> None:
    """Show a bar of the run in `folder` until it is over; then print how it ended."""
    progress_bar.follow(heading, folder, console=console)
    summarize(folder)


def summarize(folder: Path) -> None:
    """Print a line on how a run ended with counts by status, its message, and the reasons of failures."""
    state = run_folder.read_progress(folder)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(state.counts.items())) or "nothing new"
    reused = f", {state.reused} done before" if state.reused else ""
    console.print(f"{state.state}: {counts}{reused}. Records: {folder / 'trials.jsonl'}", highlight=False)
    if state.message:
        console.print(state.message, style="red", markup=False)
    rows = run_folder.read_current_records(folder) if state.done else []
    bad = {row["reason"] for row in rows if row["status"] not in ("ok", "stopped", "disturbed")}
    for reason in sorted(bad):
        console.print(f"  {reason}", style="yellow", markup=False)


def trained_table(rows: Iterable[dict]) -> Table:
    """Return a table of seconds an epoch, peak memory and held-out quality of configurations, medians over rounds."""
    lines = []
    for row in configurations.records(configurations.pool_rounds(store.frame(rows))):
        name = formatting.name_configuration(row)
        if row["status"] in configurations.NUMBERED and row["quality"] is not None:
            memory = (format_size(row[name]) for name in ("bytes_peak", "bytes_held"))
            note = "" if row["status"] == "ok" else f" ({row['status']})"
            lines.append([name, f"{row['seconds_epoch']:.2g}{note}", *memory, f"{row['quality']:.3f}"])
        else:
            lines.append([name, row["status"], "", "", row["reason"]])
    columns = ("configuration", "seconds an epoch", "peak memory", "held by arrays", "held-out accuracy")
    return make_table(columns, lines, "One softmax model on the standard library's source text", right=columns[1:])


def conclude(frame: pd.DataFrame, report: Path | None = None) -> None:
    """Print the answer of a sweep's records in at most about 25 lines, and the path of its report if there is one."""
    print_answer(answer_text(frame), "Answer")
    if report is not None:
        console.print(f"Report: {report.resolve()}", markup=False, soft_wrap=True)


def print_answer(text: AnswerText, title: str) -> None:
    """Print an answer: advice, time and memory in a frame, then densities, what the names mean, and caveats."""
    head = Text.assemble((f"{text.advice}. ", "bold"), " ".join(filter(None, (text.time, text.memory))))
    console.print(Panel(head, title=title, title_align="left"))
    if text.step:
        console.print(" ".join(filter(None, (text.step, text.break_even))), markup=False, highlight=False)
    if text.densities:
        table = Table("density", "best sparse", "best dense", box=None, padding=(0, 2, 0, 0))
        for measure in ("time", "memory"):
            table.add_column(f"{measure}:\ndense/sparse")
        for line in text.densities[:MOST_LINES]:  # which density is the data's own is said in the sentence of a step
            table.add_row(line.density.partition(",")[0], line.sparse, line.dense, *line.ratios)
        console.print(table)
    names = "; ".join(f"{letter} {name}" for letter, name in text.names)
    terms = "; ".join(f"{term}: {meaning}" for term, meaning in text.legend)
    if words := " ".join(f"{part}." for part in (names, terms) if part):
        console.print(words, style="dim", markup=False, highlight=False)
    print_list("Mind", text.caveats[:MOST_CAVEATS])
    if left := len(text.caveats[MOST_CAVEATS:]) + len(text.densities[MOST_LINES:]):
        console.print(f"  {format_count(left, 'more line')} in the report.", highlight=False)


def print_list(heading: str, sentences: Iterable[str]) -> None:
    """Print a heading and a line for each sentence; nothing if there are none."""
    lines = [Padding(Text(f"- {sentence}"), (0, 0, 0, 2)) for sentence in sentences]
    if lines:
        console.print(heading, style="bold")
        for line in lines:
            console.print(line)
