"""`benchmarks self`: records the noise of this machine, simulates the statistics with it, and says what was found."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks import tables
from benchmarks.compare import Target
from benchmarks.contest import Record
from benchmarks.harness import Run, Suite
from benchmarks.page import Page, Section
from benchmarks.self_trial import noise, simulations, trials
from workbench.analysis.pool import group_by
from workbench.plots import style
from workbench.plots.chart import message

SURE_IS_RIGHT = "statements of 99 to 100 % are right"
HELD = "the 95 % interval holds the true ratio, all ratios"
EQUALS = "equals are told apart at 99 %"
"""What some outcomes are called, as the parts that simulate write it."""


def read_noise(folder: Path, is_judging: bool = True) -> noise.Noise:
    """Return the noise recorded on this machine in a folder, of the judging half of the groups or of all.

    Raises SelfTrialError if it is too little.
    """
    found = noise.noise_of(trials.read(folder / noise.FILE))
    return found.every_second(simulations.JUDGED) if is_judging else found


PARTS: dict[str, Callable[[Path], Iterator[Record]]] = {
    "constants": lambda folder: simulations.constants(read_noise(folder, False)),
    "coverage": lambda folder: simulations.coverage(read_noise(folder)),
    "calibration": lambda folder: simulations.calibration(read_noise(folder)),
    "power": lambda folder: simulations.power(read_noise(folder)),
}
"""Simulations on recorded noise, by name."""


@dataclass(frozen=True)
class Part:
    """A part by name, a case of the harness."""

    name: str


def measure(run: Run, budget: float = 3600.0) -> Iterator[Record]:
    """Record the noise of trials on this machine, and simulate the statistics with it, where the answer is known.

    Cases are the parts: record (noise of this machine), constants, coverage, calibration and power (simulations with
    it); by default all. More of both is added to what the folder of --results has.

    Parameters
    ----------
    budget
        Seconds for recording; it ends what it has begun.

    Examples
    --------
    python -m benchmarks self --case record --budget 120
    python -m benchmarks self --case record --case coverage
    """
    chosen = [part.name for part in run.choose(map(Part, ("record", *PARTS)))]
    run.folder.mkdir(parents=True, exist_ok=True)
    if "record" in chosen:
        noise.record(run.folder, trials.Budget(budget, run.progress))
    for name in chosen:
        if name in PARTS:
            run.tell(name)
            yield from PARTS[name](run.folder)


# What the records say.


def newest(records: Sequence[Record]) -> list[Record]:
    """Return the newest record of each machine and key, in the order written."""
    return list({(row["machine"], row["key"]): row for row in records}.values())


def meaning(records: Sequence[Record]) -> str:
    """Return what the outcomes mean for a reader of answers, in one sentence; "" before any was simulated."""
    rows = [row for row in newest(records) if row["share"] is not None]
    sure = [row for row in rows if row["what"] == SURE_IS_RIGHT]
    held = [100 * row["share"] for row in rows if row["part"] == "coverage" and row["what"].startswith(HELD)]
    equals = [100 * row["share"] for row in rows if row["what"] == EQUALS]
    said = []
    if sure:
        said.append(
            f"Of {sure[-1]['count']:,} answers that were stated with more than 99 % certainty, "
            f"{math.floor(1000 * sure[-1]['share']) / 10:g} % named the faster side"
        )
    if held:
        least, most = (f"{end:.0f}" for end in (min(held), max(held)))
        said.append(f"an interval called 95 % held the true ratio in {least} to {most} % of the cases")
    if equals:
        said.append(f"of two that are equally fast one was called faster with that certainty in {max(equals):.1f} %")
    return f"What this means for you: {'; '.join(said)}." if said else ""


def format_target(row: Record) -> str:
    """Return the target of an outcome record as text; "" if there is none.

    >>> format_target({"wanted_low": 0.93, "wanted_high": 0.97})
    '93 to 97 %'
    """
    low, high = (None if row[name] is None else f"{100 * row[name]:.3g}" for name in ("wanted_low", "wanted_high"))
    if low and high:
        return f"{low} to {high} %"
    return f"at least {low} %" if low else f"at most {high} %" if high else ""


def format_measured(row: Record) -> str:
    """Return the measured value of an outcome record with its interval; its reason if it failed.

    >>> row = {"status": "ok", "share": 0.95, "low": 0.94, "high": 0.96, "hits": 95, "count": 100, "ratio": None}
    >>> format_measured(row)
    '95.0 % (94.0 to 96.0), 95 of 100'
    """
    if row["status"] != "ok":
        return str(row["reason"])
    if row["ratio"] is not None:
        flagged = f"; {row['hits']} of {row['count']} flagged" if row["count"] else ""
        return f"{row['ratio']:.2f} x ({row['low']:.2f} to {row['high']:.2f}){flagged}"
    low, share, high = (100 * row[name] for name in ("low", "share", "high"))
    return f"{share:.1f} % ({low:.1f} to {high:.1f}), {row['hits']:,} of {row['count']:,}"


def draw(records: Sequence[Record], figure: Figure) -> str:
    """Draw coverage of intervals (above) and share of decisions (below) against the true ratio; return a sentence."""
    kept = [row for row in newest(records) if row["truth"] is not None and row["status"] == "ok"]
    rows = [row for row in kept if row["part"] in ("coverage", "power") and row["candidates"] == 1]
    if not rows:
        return message(figure, "Nothing was simulated: run the parts coverage and power.")
    above, below = figure.subplots(2, 1, sharex=True)
    above.axhspan(93, 97, color="#dddddd", label="wanted")
    for axes, part, label in ((above, "coverage", "interval holds the truth, %"), (below, "power", "decided, %")):
        lines = group_by([row for row in rows if row["part"] == part], lambda row: row["condition"])
        for name, line in lines.items():
            line = sorted(line, key=lambda row: row["truth"])
            ends = [[100 * abs(row["share"] - row[end]) for row in line] for end in ("low", "high")]
            x, y = [row["truth"] for row in line], [100 * row["share"] for row in line]
            axes.errorbar(x, y, yerr=ends, label=name, marker="o", markersize=5, linewidth=1.4)
        axes.set_ylabel(label, fontsize=style.NORMAL)
        axes.grid(visible=True, color="#dddddd", linewidth=0.8)
        if lines:
            axes.legend(fontsize=style.SMALL, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    below.set_xscale("log")
    below.xaxis.set_major_locator(FixedLocator(sorted({row["truth"] for row in rows})))
    below.xaxis.set_minor_locator(NullLocator())
    below.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    below.set_xlabel("true ratio dense / sparse", fontsize=style.NORMAL)
    shares = [100 * row["share"] for row in rows if row["part"] == "coverage"]
    text = f"hold the truth in {min(shares):.0f} to {max(shares):.0f} %" if shares else "were not simulated"
    return f"Intervals at the end of simulated sweeps {text} of them, by true ratio and noise."


def page(records: Sequence[Record]) -> Page:
    """Return the page: what the outcomes mean, those that were wanted, and the others."""
    rows = newest(records)
    wanted = [row for row in rows if row["met"] is not None or row["status"] != "ok"]
    targets = [
        Target(
            f"{row['part']}: {row['what']}; {row['condition']}", format_target(row), format_measured(row), row["met"]
        )
        for row in wanted
    ]
    others = ([row["part"], row["what"], row["condition"], format_measured(row)] for row in rows if row not in wanted)
    chart = partial(draw, records)
    sections = [
        Section("Simulated sweeps", file="self-decisions.svg", draw=chart),
        Section("Also found", ("part", "what", "condition", "measured"), others),
    ]
    return Page(targets, sections, list(filter(None, [meaning(records)])))


SUITE = Suite("self", tables.SELF, measure, page)
