"""`workbench bench advise`: cases are swept and advised on, then the goals and the page; or races are played back."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import typer
from rich.table import Table

from workbench import store
from workbench.analysis import advice as analysis
from workbench.analysis import configurations, formatting
from workbench.analysis.bench import geometric_mean
from workbench.bench import screen
from workbench.bench.advice import runner
from workbench.command.advising import follow
from workbench.command.predicting import error_sentences
from workbench.reports import advice as reports
from workbench.sweeps import estimate, run_folder


def run(names: tuple[str, ...], is_quick: bool, folder: Path, runs: Path, command: str) -> bool:
    """Measure the cases into the folder, show the goals, write the page; False if Ctrl-C stopped it before.

    Trials are in run folders below `runs`.
    """
    chosen = runner.choose_cases(names, is_quick)
    left = runner.remaining_cases(chosen, folder)
    done = f", {len(chosen) - len(left)} of them found done" if len(left) < len(chosen) else ""
    lasting = f"; about {estimate.format_duration(sum(map(runner.seconds_of, left)))}" if left else ""
    typer.echo(
        f"{formatting.format_count(len(chosen), 'case')}{done}{lasting}. Ctrl-C stops; the same command goes on.",
        err=True,
    )
    is_whole = runner.run(chosen, folder, runs, follow)
    if store.is_stored(folder / store.ADVICE.file):
        frame = store.ADVICE.frame(store.ADVICE.read(folder))
        screen.console.print(screen.goals_table(analysis.list_targets(frame)))
        rows = _swept(chosen, runs)
        typer.echo(f"Page: {reports.write(folder, command, tuple(error_sentences(rows)) if rows else ())}")
    return is_whole


def _swept(chosen: Iterable[runner.Case], runs: Path) -> Sequence[configurations.Record]:
    """Return the pooled rows of the full sweeps of cases that are there."""
    folders = (runner.place_of(case, runs) / runner.SWEEP for case in chosen)
    rows = [
        row for folder in folders if (folder / store.FILE).exists() for row in run_folder.read_current_records(folder)
    ]
    return configurations.records(configurations.pool_rounds(store.frame(rows))) if rows else []


def replay(names: tuple[str, ...], folder: Path) -> None:
    """Show what ways to race come to on the recorded cases of a folder."""
    known = {case.case: case for case in runner.read_recorded_cases(store.ADVICE.read(folder))}
    runner.choose_cases(names)
    found = runner.replay_races([case for name, case in known.items() if name in (names or known)])
    table = Table(title="Races played back, in a fifth of the time of the sweep", title_justify="left")
    for heading in ("case", "way", "times the least", "at worst", "right side", "time"):
        table.add_column(heading)
    for (case, way), came in found.items():
        table.add_row(case, way, *_race_summary([(one, known[case]) for one in came]))
    for way in runner.WAYS:
        every = [(one, known[case]) for (case, name), came in found.items() if name == way for one in came]
        table.add_row("all cases", way, *_race_summary(every))
    screen.console.print(table)


def _race_summary(came: Sequence[tuple[runner.RaceResult, runner.RecordedCase]]) -> list[str]:
    """Sum up races: geometric mean and worst of the times of the least, right sides, the most of the time."""
    if not came:
        return ["-"] * 4
    regrets = [one.regret for one, _ in came]
    right = sum(one.is_right_side for one, _ in came) / len(came)
    share = max(one.seconds / case.seconds_sweep for one, case in came)
    return [f"{geometric_mean(regrets):.3f}", f"{max(regrets):.2f}", f"{right:.0%}", f"{share:.0%}"]
