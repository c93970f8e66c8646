"""The page of trainings to a held-out quality: a table of cases, goals, a chart and the candidates of each."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from workbench import plots, store
from workbench.analysis import fit, formatting
from workbench.analysis.fit import CaseResult, Record
from workbench.analysis.intervals import number_or_none
from workbench.plots.fit_curves import told
from workbench.reports import page
from workbench.reports.captions import folder_to_type, written, written_frame

FILE = "bench-fit.md"
FIGURE_INCHES = (9.0, 6.0)
COLUMNS = (
    *(
        "case",
        "rows x features",
        "quality",
        "sparse",
        "dense",
        "fastest competitor",
        "its seconds",
        "competitor / sparse",
    ),
    "best of all",
)
OUTCOME = {True: "met", False: "missed", None: "not measured"}


def write(folder: str | Path, command: str = "") -> Path:
    """Write the page and its charts beside the rows of a folder; returns its path."""
    folder = Path(folder)
    frame = written_frame(store.FIT.frame(store.FIT.read(folder)))
    by_tolerance = fit.by_tolerance(frame)
    found = next(iter(by_tolerance.values()))
    wanted = fit.list_targets(by_tolerance)
    met = [goal.met for goal in wanted if goal.met is not None]
    content = {
        "verdict": f"{sum(met)} of {len(met)} goals that were measured are met.",
        "tolerances": formatting.join_items(map(fit.format_tolerance, by_tolerance)),
        "ratios": page.table_of(*fit.table(by_tolerance)),
        "moved": fit.tolerance_sensitivity(by_tolerance),
        "cases": [
            {"title": fit.format_tolerance(tolerance), "table": page.table_of(COLUMNS, map(line, cases))}
            for tolerance, cases in by_tolerance.items()
        ],
        "goals": page.table_of(
            ("goal", "wanted", "measured", "outcome"), ([g.what, g.wanted, g.measured, OUTCOME[g.met]] for g in wanted)
        ),
        "parts": [_part(case, frame, folder) for case in found],
        "method": method(found),
        "machine": page.table_of(("what", "value"), page.flat(written(page.record(folder / "machine.json")))),
        "command": command or f"workbench bench fit --results {folder_to_type(folder)}",
    }
    path = folder / FILE
    path.write_text(page.templates().get_template(f"{FILE.replace('bench-fit', 'fit')}.jinja").render(content), "utf-8")
    return path


def line(found: CaseResult) -> list[str]:
    """Return a case in the table: sizes, target, seconds of sparse, of dense or the bytes it would need, the fastest
    competitor."""
    row, competitor = found.row, found.fastest("rival")
    size = f"{row['rows']:,} x {row['features']:,}"
    sparse, dense = (_ours(found, kind) for kind in ("sparse", "dense"))
    fastest = [competitor.name, told(competitor)] if competitor else ["none reached it", ""]
    best = found.furthest
    furthest = (
        f"{formatting.format_number(best.value_best, 4)}, {best.name}" if best and best.value_best is not None else ""
    )
    return [found.name, size, found.quality, sparse, dense, *fastest, fit.format_ratio(found.ratio), furthest]


def _ours(found: CaseResult, kind: str) -> str:
    """Return the time of the fastest project candidate of a kind, or why there is none."""
    entries = [entry for entry in found.entries if fit.kind_of(entry) == kind]
    fastest = found.fastest(kind) or next(iter(entries), None)
    if fastest is None:
        return "not asked for"
    known = told(fastest)
    is_slow = kind == "dense" and known.startswith("not reached")
    return f"{known}; X takes {formatting.format_bytes(found.row['bytes_dense'])}" if is_slow else known


def _part(case: CaseResult, frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """Return a case's section: table and chart, which is saved in `folder`."""
    figure = Figure(figsize=FIGURE_INCHES)
    frame = frame[frame["case"] == case.name]
    sentence = plots.draw("fit_curves", frame, figure, case=case.name)
    file = f"fit-{re.sub(r'[^a-z0-9]+', '-', case.name.lower()).strip('-')}.svg"
    page.save(figure, folder / file)
    shown = plots.table("fit_curves", frame, case=case.name)
    return {
        "title": case.name,
        "file": file,
        "sentence": sentence,
        "table": page.table_of(shown.columns, shown.to_numpy().tolist()),
    }


def _halving(rows: list[Record]) -> str:
    """Return the sentence on how long settings were tried, where some had less time than others."""
    short = sorted({row["seconds_rung"] for row in rows if number_or_none(row["seconds_rung"])})[:-1]
    if not short:
        return ""
    return (
        f"The same rule for all, ours and competitors: all settings train for {formatting.format_number(short[0])} "
        f"s, the best of each "
        "candidate for longer. One ends early that gains nothing any more, or that at its pace is out of reach of "
        "the target; its line says so. "
    )


def method(found: list[CaseResult]) -> str:
    """Describe how all cases were measured: settings tried, time limits, threads, load of other programs."""
    rows = [row for case in found for entry in case.entries for row in entry.settings]
    limits = sorted({row["seconds_limit"] for row in rows})
    threads = sorted({row["threads"] for row in rows})
    tried = sorted({row["tried"] for row in rows})
    each = ", ".join(f"{formatting.format_number(limit)} s" for limit in limits)
    rounds = [row for case in found for entry in case.entries for row in entry.rounds]
    busy = max((number_or_none(row["busy_others"]) or 0.0 for row in rounds), default=0.0)
    return (
        f"Each candidate tries {', '.join(map(str, tried))} settings of at most {each}, on "
        f"{', '.join(map(str, threads))} threads, in processes of its own. {_halving(rows)}"
        f"In the rounds other programs took up to {100 * busy:.0f} % of the cores."
    )
