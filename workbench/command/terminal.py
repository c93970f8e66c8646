"""Runs in a terminal: progress bars, tables, and the verdict in the words of the report; from run folders alone."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console, Group
from rich.measure import Measurement
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from kernels.registry import format_size
from workbench import store
from workbench.analysis import configurations, formatting
from workbench.analysis.advisor import advise
from workbench.analysis.answers import answered_groups
from workbench.analysis.breakeven import breakevens_of_group
from workbench.analysis.compare import contests_of_group
from workbench.analysis.standings import MARKS, Headline, Line, Standing, Standings, headline_of, make_standings
from workbench.analysis.verdict_text import MEASURES
from workbench.command.console import console, live, make_table, messages_on_stderr, print_run_lines, stderr
from workbench.sweeps import estimate, run_folder
from workbench.sweeps.progress import Progress as RunProgress

__all__ = [
    "Conclusion",
    "conclude",
    "console",
    "follow",
    "format_verdict",
    "make_conclusion",
    "messages_on_stderr",
    "print_list",
    "print_run_lines",
    "stderr",
    "summarize",
    "trained_table",
    "watch",
]

WIDTH_FRAME = 4
"""Columns that a frame takes from what is in it."""
CAPTIONS = {"seconds_step": "Time a step", "bytes_peak": "Peak memory"}
DENSE = "dense"
UNBOUNDED = 10_000
"""Columns of a terminal on which every table fits."""
SIDES = ("best sparse", "best dense")
"""The columns of a table whose candidates have no room next to each other."""


@dataclass(frozen=True)
class Conclusion:
    """A number and a table of each measure, the verdict in words, how sure it is, a sentence for each break-even,
    warnings, and the report where one was written."""

    headlines: tuple[Headline, ...]
    standings: tuple[Standings, ...]
    verdict: str
    certainty: str
    breakevens: tuple[str, ...]
    warnings: tuple[str, ...]
    report: Path | None = None


def follow(heading: str, folder: Path) -> None:
    """Show the progress of the run in `folder` under `heading` until it is over; then print how it ended.

    What each agent does is shown too. Ctrl-C stops the run and waits for its end; finished records stay.
    """
    columns = (
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        now_column(),
    )
    bar = Progress(*columns, console=console, expand=True)
    task = bar.add_task(heading, total=None, left="", now="")
    with live(bar) as display:

        def show(state: RunProgress, is_stopping: bool) -> None:
            """Set the bar, and the line of each agent, from the progress `state`; "stopping" if `is_stopping`."""
            left = estimate.format_time_left(state.seconds_left, state.seconds_left_most) if state.alive else ""
            known = filter(None, (estimate.format_budget_spent(state.seconds, state.seconds_budget), left))
            shown = "stopping" if is_stopping else ", ".join(known)
            now = state.now if state.alive else ""
            bar.update(task, total=state.total or None, completed=state.done, left=shown, now=now)
            agents = state.by_agent if state.alive else []
            display.update(Group(bar, *(Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in agents)))

        watch(folder, show)
    summarize(folder)


def watch(folder: Path, show: Callable[[RunProgress, bool], None]) -> None:
    """Call `show(progress, is_stopping)` repeatedly until a run is over; Ctrl-C asks it to stop and goes on."""
    is_stopping, states = False, run_folder.watch_progress(folder)
    while True:
        try:
            state = next(states, None)
            if state is None:
                return
            show(state, is_stopping)
        except KeyboardInterrupt:
            is_stopping = True
            run_folder.stop_run(folder)
            states = run_folder.watch_progress(folder)


def now_column() -> TextColumn:
    """Return the progress column with the current activity (task field `now`), as wide as an expanding bar allows."""
    return TextColumn(
        "{task.fields[now]}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
    )


def summarize(folder: Path) -> None:
    """Print a line on how a run ended with counts by status, its message, and the reasons of failures."""
    state = run_folder.read_progress(folder)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(state.counts.items())) or "nothing new"
    reused = f", {state.reused} found done" if state.reused else ""
    console.print(f"{state.state}: {counts}{reused}. Records: {folder / 'trials.jsonl'}", highlight=False)
    if state.message:
        console.print(state.message, style="red", markup=False)
    rows = run_folder.read_current_records(folder) if state.done else []
    bad = {row["reason"] for row in rows if row["status"] not in ("ok", "stopped")}
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


def conclude(ended: Conclusion) -> None:
    """Print the verdict of a sweep with its certainty, break-evens, warnings, and the report's path if there is one."""
    shown = format_verdict(ended, console, console.width - WIDTH_FRAME)
    console.print(Panel(shown, title="Verdict", title_align="left"))
    print_list("Break-even densities", ended.breakevens)
    print_list("Mind", ended.warnings)
    if ended.report is not None:
        console.print(f"\nReport: {ended.report.resolve()}", markup=False, soft_wrap=True)


def print_list(heading: str, sentences: Iterable[str]) -> None:
    """Print a heading and a line for each sentence; nothing if there are none."""
    lines = [Padding(Text(f"- {sentence}"), (0, 0, 0, 2)) for sentence in sentences]
    if lines:
        console.print(heading, style="bold")
        for line in lines:
            console.print(line)


def make_conclusion(frame: pd.DataFrame, report: Path | None = None) -> Conclusion:
    """Return headlines, tables, verdict, break-evens and warnings of the records, with the path of a report."""
    pooled = configurations.pool_rounds(frame)
    advice, groups = advise(pooled), answered_groups(pooled)
    return Conclusion(
        tuple(headline_of(group, measure) for group in groups[:1] for measure in MEASURES),
        tuple(make_standings(group, measure) for group in groups[:1] for measure in MEASURES),
        advice.verdict,
        advice.certainty,
        tuple(_breakeven_sentences(groups)),
        advice.warnings,
        report,
    )


def _breakeven_sentences(groups: Sequence[configurations.Group]) -> Iterable[str]:
    """Yield sentences on the break-evens of each configuration that is the best sparse one at a density, then a count.

    The count is that of the other break-evens. `groups` hold pooled records; where several have break-evens, a sentence
    begins with its group.
    """
    others = 0
    told: dict[tuple[str, str], None] = {}
    for measure, group in itertools.product(MEASURES, groups):
        best = [one.sparse for one in contests_of_group(group, measure) if one.sparse is not None]
        lines = [configurations.line_of(row) for row in best]
        evens = [even for even in breakevens_of_group(group, measure) if even.status != "too_few"]
        told |= {(group.label, even.sentence): None for even in evens if even.line in lines}  # once for both measures
        others += sum(even.line not in lines for even in evens)
    several = len({label for label, _ in told}) > 1
    yield from (f"{formatting.capitalized(label)}: {text}" if several else text for label, text in told)
    if others:
        count = formatting.format_count(others, "more break-even")
        yield f"The report has {count}, of sparse configurations that are not the best at any density."


def format_verdict(ended: Conclusion, console: Console, width: int) -> Group:
    """Return what to print of a conclusion: numbers, tables of at most `width` characters, words."""
    said = "\n".join(filter(None, (ended.verdict, ended.certainty)))
    tables = [part for found in ended.standings for part in (*_table_of(found, console, width), Text())]
    repeated = [one.executed == after.executed for one, after in itertools.pairwise(ended.headlines)]
    numbers = map(_headline, ended.headlines, [*repeated, False])
    return Group(*numbers, Text(), *tables, Text(said))


def _headline(headline: Headline, is_repeated: bool) -> Text:
    """Return a headline as styled text: measure and number in bold, where it holds, and how it was executed.

    The last part is left out if `is_repeated`: the next headline has the same.
    """
    executed = (f"\n  {headline.executed}" if headline.executed and not is_repeated else "", "dim")
    return Text.assemble(
        (f"{MEASURES[headline.measure][0].capitalize()}: {headline.number}. ", "bold"), headline.where, executed
    )


def _table_of(found: Standings, console: Console, width: int) -> Iterable[Table | Text]:
    """Yield the table of one measure and its legend, at most `width` characters wide on `console`.

    If all candidates are too wide, only the best of each side is shown.
    """
    caption = CAPTIONS[found.measure]
    cells = [[_mark_cell(place) for place in line.places] for line in found.lines]
    full = _table(caption, found.candidates, found.lines, cells)
    if Measurement.get(console, console.options.update_width(UNBOUNDED), full).maximum > width:
        cells = _best_of_sides(found)
        full = _table(caption, SIDES, found.lines, cells)
    yield full
    signs = {cell[:1] for line in cells for cell in line}
    if marks := [MARKS[mark] for mark in found.marks if MARKS[mark][0] in signs]:
        yield Text("; ".join(map(" ".join, marks)), style="dim")


def _table(caption: str, columns: Sequence[str], lines: Sequence[Line], places: Sequence[Sequence[str]]) -> Table:
    """Return a table of densities by candidates; `places` has the texts of a line's cells, in order of `columns`."""
    table = Table("density", *columns, "verdict", title=caption, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for line, shown in zip(lines, places, strict=True):
        table.add_row(line.density, *shown, line.verdict.partition(":")[0])
    return table


def _best_of_sides(found: Standings) -> list[list[str]]:
    """Return, for each line, the texts of the best sparse and dense result, named if another candidate than above."""
    rows, above = [], ["", DENSE]
    for line in found.lines:
        best = [_best(found, line, row) for row in (line.contest.sparse, line.contest.dense)]
        named = zip(best, above, strict=True)
        rows.append([", ".join(filter(None, (text, name if name != other else ""))) for (text, name), other in named])
        above = [name or other for (_, name), other in zip(best, above, strict=True)]
    return rows


def _best(found: Standings, line: Line, row: Any) -> tuple[str, str]:
    """Return (text, candidate's name) of a record's cell in its line; ("", "") for None or if it has none."""
    named = zip(found.candidates, line.places, strict=True)
    return next(((_mark_cell(place), name) for name, place in named if row is not None and place.row is row), ("", ""))


def _mark_cell(place: Standing) -> str:
    """Return the symbol and text of a result, "✓ 1.2 ms"; either may be missing."""
    return " ".join(filter(None, (MARKS[place.mark][0], place.text)))
