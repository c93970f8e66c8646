"""Pages of the suites: performance targets, what was measured, charts and machine, as Markdown from records alone.

A page and its charts are written next to the records of a folder of results; each function returns the page's path.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks import plots, tables
from benchmarks.analysis import advice, cluster, end, fair, fit, self_trial, waits
from benchmarks.analysis.bench import met_sentence
from benchmarks.plots.fit_curves import describe_entry
from kernels.registry import format_size
from workbench import atomic_files
from workbench.analysis.configurations import Record
from workbench.analysis.formatting import (
    format_bytes,
    format_density,
    format_number,
    format_seconds,
    format_with_interval,
    join_items,
    name_configuration,
)
from workbench.analysis.intervals import number_or_none
from workbench.reports import page
from workbench.reports.page import folder_to_type, written, written_frame
from workbench.store import Table

FIGURE_INCHES = (9.0, 6.0)
END_INCHES, FIT_INCHES = (9.0, 4.5), (9.0, 8.0)


def _write(folder: Path, file: str, template: str, content: dict[str, Any], command: str, typed: str) -> Path:
    """Render a template into the file `file` of the folder and return its path.

    `command` is cited on the page as what makes it; if "", `typed` with the folder. OSError if it cannot be written.
    """
    known = {"command": command or f"{typed} --results {folder_to_type(folder)}"}
    path = folder / file
    atomic_files.write(path, page.templates().get_template(template).render(content | known))
    return path


def _frame(table: Table, folder: Path) -> pd.DataFrame:
    """Return the records of a folder as a frame, with text cut and cleaned so that it can be shown."""
    return written_frame(table.frame(table.read(folder)))


def _draw(name: str, frame: pd.DataFrame, path: Path, size: tuple[float, float] = FIGURE_INCHES, **more: Any) -> str:
    """Draw the chart `name` into the file `path`, `size` in inches, with controls `more`; return its sentence."""
    figure = Figure(figsize=size)
    sentence = plots.draw(name, frame, figure, **more)
    page.save(figure, path)
    return sentence


def _case_section(
    chart: str, case: str, frame: pd.DataFrame, folder: Path, size: tuple[float, float]
) -> dict[str, Any]:
    """Save the chart of a case in `folder`; return its title, file, sentence and table for the template."""
    file = f"{chart.partition('_')[0]}-{re.sub(r'[^a-z0-9]+', '-', case.lower()).strip('-')}.svg"
    sentence = _draw(chart, frame, folder / file, size, case=case)
    shown = plots.table(chart, frame, case=case)
    table = page.table_of(shown.columns, shown.to_numpy().tolist())
    return {"title": case, "file": file, "sentence": sentence, "table": table}


# Advice: what is expected of it, what was found, every case compared with simpler rules.


def write_advice(folder: str | Path, command: str = "") -> Path:
    """Write bench-advise.md from the records of the folder and return its path.

    `command` is cited on the page.
    """
    folder = Path(folder)
    frame = _frame(tables.ADVICE, folder)
    rows, found = advice.newest_good_records(frame), advice.score_rules(frame)
    own = {score.case: score for score in found if score.rule == advice.ADVICE}
    content = {
        "targets": page.targets_table(advice.list_targets(frame)),
        "cases": page.table_of(
            (
                *("case", "density", "features", "dense / sparse", "verdict"),
                *("recommended", "times the least", "trials", "time"),
            ),
            (_advice_line(row, own[row["case"]]) for row in rows),
        ),
        "rules": page.table_of(
            ("case", *advice.RULES),
            ([row["case"], *(_score_text(score) for score in found if score.case == row["case"])] for row in rows),
        ),
        "failed": page.table_of(
            ("case", "why"), ([row["case"], row["reason"]] for row in advice.newest_failed_records(frame))
        ),
        "machine": page.machine_table(folder, rows),
    }
    return _write(folder, "bench-advise.md", "advice.md.jinja", content, command, "python -m benchmarks advise")


def _advice_line(row: advice.Record, score: advice.Score) -> list[str]:
    """Return the table row of an advice case as texts: sizes, sides, recommendation, ratio, trials and time."""
    share = f"{row['seconds_advice']:.0f} of {row['seconds_sweep']:.0f} s"
    trials = f"{row['trials_advice']} of {row['trials_sweep']}"
    ratio = advice.dense_over_sparse_seconds(row)
    sides = f"{ratio:.2f}" if ratio is not None else "one side did not run"
    numbers = [format_density(row["density"]), f"{row['features']:,}", sides, row["verdict"]]
    return [row["case"], *numbers, name_configuration(row["recommended"]), _decimals(score.whole, 3), trials, share]


def _score_text(score: advice.Score) -> str:
    """Return a rule's two ratios to the fastest as "1.02, 1.10", or "did not run"."""
    return "did not run" if score.side is None else f"{_decimals(score.side, 2)}, {_decimals(score.whole, 2)}"


def _decimals(value: float | None, digits: int) -> str:
    """Return a number with `digits` decimals as text; "" for None."""
    return "" if value is None else f"{value:.{digits}f}"


# Training on several machines: bytes moved, times measured and predicted.


CLUSTER_CHART = "cluster-steps.svg"
HERE = ("processes here: measured", "predicted", "measured / predicted")


def write_cluster(folder: str | Path, command: str = "") -> Path:
    """Write bench-cluster.md and its chart from the records of the folder; return the path of the page."""
    folder = Path(folder)
    frame = _frame(tables.CLUSTER, folder)
    steps = cluster.steps_of(frame)
    content = {
        "targets": page.targets_table(cluster.list_targets(frame)),
        "bytes": page.table_of(
            ("rows of the table", "touched a step", "bytes a step", "numbers and values", "ratio", "rows made"),
            map(_bytes_line, cluster.newest_records(frame, "bytes")),
        ),
        "sentence": _draw("cluster_steps", frame, folder / CLUSTER_CHART) if steps.machines else "",
        "chart": CLUSTER_CHART,
        "steps": page.table_of(
            ("machines", "predicted", "of it messages", "of it waiting", "bytes moved", *HERE), _step_lines(steps)
        ),
        "rows": page.table_of(
            ("training", "files", "limit a process", "resident at most", "asked for", "AUC", "making, training", "end"),
            map(_streamed_line, cluster.newest_records(frame, "rows")),
        ),
        "machine": page.machine_table(folder, cluster.newest_records(frame)),
    }
    return _write(folder, "bench-cluster.md", "cluster.md.jinja", content, command, "python -m benchmarks cluster")


def _bytes_line(row: Record) -> list[str]:
    """Return the table row of a record of bytes as texts: sizes, bytes, ratio to the least, rows made."""
    counts = [f"{row[name]:,.0f}" for name in ("features", "touched", "bytes_moved", "bytes_least")]
    return [*counts, f"{row['ratio']:.3f}", f"{row['rows_made']:,}"]


def _step_lines(steps: cluster.Steps) -> list[list[str]]:
    """Return a table row for each number of machines, as texts: predicted time, its parts, measured time, ratio."""
    here, measured = ({row["machines"]: row["seconds_step"] for row in side} for side in (steps.here, steps.measured))
    return [
        [
            str(row["machines"]),
            *(_seconds_or_blank(row[name]) for name in ("seconds_step", "seconds_network", "seconds_waiting")),
            format_bytes(row["bytes_moved"]),
            *(_seconds_or_blank(known.get(row["machines"])) for known in (measured, here)),
            _ratio_or_blank(measured.get(row["machines"]), here.get(row["machines"])),
        ]
        for row in steps.machines
    ]


def _seconds_or_blank(seconds: float | None) -> str:
    """Return seconds as text, "" for None."""
    return "" if seconds is None else format_seconds(seconds)


def _ratio_or_blank(measured: float | None, predicted: float | None) -> str:
    """Return measured / predicted with two decimals as text; "" if either is None."""
    return "" if measured is None or predicted is None else f"{measured / predicted:.2f}"


def _streamed_line(row: Record) -> list[str]:
    """Return the table row of a training on streamed or held rows: memory, AUC, seconds and reason as texts."""
    sizes = ("bytes_data", "bytes_limit", "bytes_resident", "bytes_asked")
    seconds = ", ".join(format_seconds(row[name]) for name in ("seconds_made", "seconds_all"))
    quality = "" if row["quality"] is None else f"{row['quality']:.4f}"
    texts = ["" if row[name] is None else format_size(row[name]) for name in sizes]
    named = re.sub(r"\d{5,}", lambda count: f"{int(count[0]):,}", row["what"])
    return [named, *texts, quality, seconds, row["reason"]]


# Whole processes from a file to predictions.


END_COLUMNS = ("case", "start", "project", "soonest competitor", "its seconds", "competitor / project")


PEAK_OWN_SINCE = "2026-11-28T15:30"
"""Time of the records of `benchmarks end` since which a peak of memory is that of the process alone (ISO 8601, UTC)."""


def write_end(folder: str | Path, command: str = "") -> Path:
    """Write bench-end.md and its charts from the records of the folder; return the path of the page."""
    folder = Path(folder)
    records = [written(record) for record in tables.END.read(folder)]
    frame = tables.END.frame(records)
    cases = end.cases_of(records)
    content = {
        "verdict": end.summary(records),
        "tolerance": f"{100 * end.TOLERANCE:g} %",
        "ratios": page.table_of(
            END_COLUMNS, [end_line(name, own, start) for name, own in cases.items() for start in end.STARTS]
        ),
        "parts": [_end_section(name, own, frame, folder) for name, own in cases.items()],
        "has_floor": any(record["time"] < PEAK_OWN_SINCE for record in records if record["bytes_peak"]),
        "machine": page.machine_table(folder, records),
    }
    return _write(folder, "bench-end.md", "end.md.jinja", content, command, "python -m benchmarks end")


def end_line(case: str, records: Sequence[Record], start: str) -> list[str]:
    """Return the table row of a case and start as texts: seconds of project and soonest competitor, their ratio."""
    found = end.taken(records, start)
    own, other = end.soonest(found, "project"), end.soonest(found, "competitor")
    value = end.ratio(records, start)
    best = [other.record["candidate"], _run_seconds(other)] if other else ["none reached it", ""]
    return [
        case,
        start,
        _run_seconds(own) if own else "not reached",
        *best,
        "" if value is None else format_number(value),
    ]


def _run_seconds(one: end.Taken) -> str:
    """Return the median seconds as text, with "(least to most)" if there are several runs."""
    text = format_seconds(one.record["seconds"])
    if one.runs == 1:
        return text
    return f"{text} ({format_seconds(one.low)} to {format_seconds(one.high)})"


def _end_section(case: str, records: Sequence[Record], frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """Save the chart of a case in `folder`; return its section with the candidates left out and why."""
    there = {name for start in end.STARTS for name in end.taken(records, start)}
    absent = [name for name in dict.fromkeys(record["candidate"] for record in records) if name not in there]
    left_out = [f"{name}: {end.reason_left_out(records, name)}" for name in absent]
    return _case_section("end_stages", case, frame, folder, END_INCHES) | {"absent": left_out}


# What a user waits for apart from training: each case next to its competitor.


WAITS_COLUMNS = ("part", "case", "project", "competitor", "its time", "project / competitor", "loss", "its loss")


def write_waits(folder: str | Path, command: str = "") -> Path:
    """Write bench-waits.md from the records of the folder; return its path."""
    folder = Path(folder)
    records = [written(record) for record in tables.WAITS.read(folder)]
    found = waits.compare_all(records)
    content = {
        "verdict": waits.summary(found),
        "targets": page.targets_table(waits.list_targets(found), "not measured"),
        "cases": page.table_of(WAITS_COLUMNS, map(waits_line, found)),
        "failed": page.table_of(
            ("part", "case", "candidate", "status", "reason"),
            (
                [record[name] for name in ("part", "case", "candidate", "status", "reason")]
                for record in waits.failures(records)
            ),
        ),
        "notes": sorted({f"{one['candidate']}: {one['note']}" for one in records if one["note"]}),
        "busy": f"{100 * max((record['busy_others'] or 0.0 for record in records), default=0.0):.0f} %",
        "machine": page.machine_table(folder, records),
    }
    return _write(folder, "bench-waits.md", "waits.md.jinja", content, command, "python -m benchmarks waits")


def waits_line(one: waits.Waited) -> list[str]:
    """Return the table row of a case as texts: times of both with intervals, their ratio, both losses."""
    other, as_text = one.competitor, format_with_interval
    ratio = "" if one.ratio is None else as_text(*one.ratio, format_number)
    losses = [
        "" if record is None or record["loss"] is None else f"{record['loss']:.4f}" for record in (one.project, other)
    ]
    times = [
        as_text(record["seconds"], record["seconds_low"], record["seconds_high"], format_seconds)
        for record in (one.project, *([other] if other else []))
    ]
    names = [other["candidate"], times[1]] if other else ["", ""]
    return [one.part.replace("_", " "), one.case, times[0], *names, ratio, *losses]


# Both sides compared with the best independent ones: configurations and the shift of the break-even.


FAIR_COLUMNS = (
    *("configuration", "project dense", "best independent dense", "dense ratio"),
    *("project sparse", "best independent sparse", "sparse ratio"),
)


def write_fair(folder: str | Path, command: str = "") -> Path:
    """Write bench-fair.md from the records of the folder; return its path."""
    folder = Path(folder)
    found = fair.compare_all([written(record) for record in tables.FAIR.read(folder)])
    wanted = fair.list_targets(found)
    content = {
        "verdict": met_sentence(wanted),
        "targets": page.targets_table(wanted, "not measured"),
        "configurations": page.table_of(FAIR_COLUMNS, map(fair_line, found)),
        "apart": page.table_of(FAIR_COLUMNS, map(fair_line, fair.separate_configurations(found))),
        "summary": fair.summary(found),
        "shifts": page.table_of(
            ("family", "break-even measured", "each side at its best", "by"),
            ([fair.family_text(s.family), *_shift_cells(s)] for s in fair.breakeven_shifts(found)),
        ),
        "method": fair_method(found),
    } | _of_candidates(found, folder)
    return _write(folder, "bench-fair.md", "fair.md.jinja", content, command, "python -m benchmarks fair")


def _of_candidates(found: Sequence[fair.Compared], folder: Path) -> dict[str, page.Table]:
    """Return the tables of candidates without a time, of what differs in their work, and of the machine."""
    left = ([name, status, reason, str(count)] for name, status, reason, count in fair.list_untimed(found))
    return {
        "left": page.table_of(("candidate", "status", "reason, of the first", "configurations"), left),
        "notes": page.table_of(("candidate", "what differs"), sorted(fair_notes(found).items())),
        "machine": page.machine_table(folder, (record for one in found for record in one.records)),
    }


def _shift_cells(shift: fair.Shift) -> list[str]:
    """Return [break-even before, after, how it was found] of a family of configurations as texts."""
    how = "between densities measured" if shift.is_between else "slope of all configurations"
    return [fair.format_breakeven(shift.before), fair.format_breakeven(shift.after), how]


def fair_line(compared: fair.Compared) -> list[str]:
    """Return the table row of a configuration as texts: for dense and sparse both times and their ratio."""
    texts = [[_fastest(side.project), _fastest(side.independent), ratio_text(side.ratio)] for side in _sides(compared)]
    return [compared.name, *texts[0], *texts[1]]


def _sides(compared: fair.Compared) -> list[fair.Side]:
    """Return the dense and the sparse side of a comparison, in the order of `fair.KINDS`."""
    return [compared.sides[kind] for kind in fair.KINDS]


def _fastest(record: Record | None) -> str:
    """Return "1.2 ms, NAME" of a record; "not timed" for None."""
    if record is None:
        return "not timed"
    return f"{format_seconds(record['seconds'])}, {record['candidate'].removeprefix('project, ')}"


def ratio_text(ratio: fair.Ratio | None) -> str:
    """Return a ratio with the smallest and largest of its rounds as text; "" for None.

    >>> ratio_text(fair.Ratio(0.841, 0.8, 0.9)), ratio_text(None)
    ('0.84 (0.8 to 0.9)', '')
    """
    if ratio is None:
        return ""
    return f"{format_number(ratio.value, 2)} ({format_number(ratio.low, 2)} to {format_number(ratio.high, 2)})"


def fair_notes(found: Sequence[fair.Compared]) -> dict[str, str]:
    """Return {candidate: how its work differs} of the candidates that were timed and have a note."""
    records = [record for one in found for record in one.records if record["status"] == "ok" and record["note"]]
    return {record["candidate"]: record["note"] for record in records}


def fair_method(found: Sequence[fair.Compared]) -> str:
    """Return sentences on sizes, rounds, threads, errors and other programs; another one if nothing was timed."""
    records = [record for one in found for record in one.records if record["status"] == "ok"]
    if not records:
        return "No candidate was timed."
    sizes = [4 * record["rows"] * record["features"] for record in records]
    rounds = max(len(record["samples"]) for record in records)
    threads = sorted({record["threads"] for record in records})
    busy = max(record["busy_others"] or 0.0 for record in records)
    error = max(record["error"] for record in records)
    return (
        f"{len(found)} configurations; X has {format_bytes(min(sizes))} to "
        f"{format_bytes(max(sizes))} dense. "
        f"{rounds} rounds on {', '.join(map(str, threads))} threads; a candidate far behind the fastest of its side "
        f"has fewer. The largest error of weights and losses is {error:.1e}. Other programs took up to "
        f"{100 * busy:.0f} % of the cores."
    )


# Whole epochs compared with the fastest competitor.


EPOCH_COLUMNS = ("configuration", "project", "ns an entry", "fastest competitor", "its ns an entry", "time ratio")


def write_epochs(folder: str | Path, command: str = "") -> Path:
    """Write bench-epochs.md from the records of the folder; return its path."""
    folder = Path(folder)
    found = fair.compare_epochs([written(record) for record in tables.EPOCHS.read(folder)])
    wanted = fair.list_epoch_targets(found)
    timed = [record for one in found for record in one.records if record["status"] == "ok"]
    content = {
        "verdict": met_sentence(wanted),
        "targets": page.targets_table(wanted, "not measured"),
        "configurations": page.table_of(EPOCH_COLUMNS, map(epoch_line, found)),
        "count": len(found),
        "rounds": max((len(record["samples"]) for record in timed), default=0),
        "threads": ", ".join(sorted({str(record["threads"]) for record in timed})),
        "error": f"{max((record['error'] or 0.0 for record in timed), default=0.0):.1e}",
        "busy": f"{100 * max((record['busy_others'] or 0.0 for record in timed), default=0.0):.0f} %",
    } | _of_candidates(found, folder)
    return _write(folder, "bench-epochs.md", "epochs.md.jinja", content, command, "python -m benchmarks epochs")


def epoch_line(compared: fair.Compared) -> list[str]:
    """Return the table row of a configuration as texts: times and ns per entry of both, and their ratio."""
    side, cells = compared.sides["epoch"], []
    for record in (side.project, side.independent):
        entry = format_number(1e9 * record["seconds"] / record["nnz"]) if record else ""
        cells += [_fastest(record), entry]
    return [compared.name, *cells, ratio_text(side.ratio)]


# Trainings to a held-out quality: cases, performance targets, curves.


FIT_COLUMNS = ("case", "target", "sparse", "dense", "fastest competitor", "its time", "competitor / sparse")
SIZE_COLUMNS = ("case", "rows x features", "best value", "reached by")


def write_fit(folder: str | Path, command: str = "") -> Path:
    """Write bench-fit.md and its charts from the records of the folder; return the path of the page."""
    folder = Path(folder)
    frame = _frame(tables.FIT, folder)
    by_tolerance = fit.by_tolerance(frame)
    found = next(iter(by_tolerance.values()))
    wanted = fit.list_targets(by_tolerance)
    content = {
        "verdict": met_sentence(wanted),
        "tolerances": join_items(map(fit.format_tolerance, by_tolerance)),
        "ratios": page.table_of(*fit.table(by_tolerance)),
        "sizes": page.table_of(SIZE_COLUMNS, map(_size_line, found)),
        "moved": fit.tolerance_sensitivity(by_tolerance),
        "cases": [
            {"title": fit.format_tolerance(tolerance), "table": page.table_of(FIT_COLUMNS, map(fit_line, cases))}
            for tolerance, cases in by_tolerance.items()
        ],
        "targets": page.targets_table(wanted, "not measured"),
        "parts": [
            _case_section("fit_curves", case.name, frame[frame["case"] == case.name], folder, FIT_INCHES)
            for case in found
        ],
        "method": fit_method(found),
        "machine": page.machine_table(folder, fit.records(fit.newest_records(frame))),
    }
    return _write(folder, "bench-fit.md", "fit.md.jinja", content, command, "python -m benchmarks fit")


def fit_line(found: fit.CaseResult) -> list[str]:
    """Return the table row of a case as texts: target, sparse, dense, fastest competitor, ratio."""
    competitor = found.fastest("competitor")
    sparse, dense = (_ours(found, kind) for kind in ("sparse", "dense"))
    fastest = [competitor.name, describe_entry(competitor)] if competitor else ["none reached it", ""]
    return [found.name, found.quality, sparse, dense, *fastest, fit.format_ratio(found.ratio)]


def _size_line(found: fit.CaseResult) -> list[str]:
    """Return the table row of a case as texts: its sizes, the best value of all candidates, and whose that is."""
    row, best = found.row, found.furthest
    size = f"{row['rows']:,} x {row['features']:,}"
    if best is None or best.value_best is None:
        return [found.name, size, "", ""]
    return [found.name, size, f"{row['measure']} {format_number(best.value_best, 4)}", best.name]


def _ours(found: fit.CaseResult, kind: str) -> str:
    """Return the seconds of the project's fastest candidate of a kind ("sparse" or "dense"), or why there are none."""
    entries = [entry for entry in found.entries if fit.kind_of(entry) == kind]
    fastest = found.fastest(kind) or next(iter(entries), None)
    if fastest is None:
        return "not asked for"
    known = describe_entry(fastest)
    is_slow = kind == "dense" and known.startswith("not reached")
    return f"{known}; X takes {format_bytes(found.row['bytes_dense'])}" if is_slow else known


def _halving_sentence(rows: list[Record]) -> str:
    """Return a sentence on how long settings were tried, if not all had the same time; "" otherwise."""
    short = sorted({row["seconds_rung"] for row in rows if number_or_none(row["seconds_rung"])})[:-1]
    if not short:
        return ""
    return (
        f"The same rule for all, ours and competitors: all settings train for {format_number(short[0])} "
        f"s, the best of each "
        "candidate for longer. One ends early that gains nothing any more, or that at its pace is out of reach of "
        "the target; its line says so. "
    )


def fit_method(found: list[fit.CaseResult]) -> str:
    """Return sentences on how all cases were measured: settings tried, time limits, threads, other programs."""
    rows = [row for case in found for entry in case.entries for row in entry.settings]
    limits = sorted({row["seconds_limit"] for row in rows})
    threads = sorted({row["threads"] for row in rows})
    tried = sorted({row["tried"] for row in rows})
    each = ", ".join(f"{format_number(limit)} s" for limit in limits)
    rounds = [row for case in found for entry in case.entries for row in entry.rounds]
    busy = max((number_or_none(row["busy_others"]) or 0.0 for row in rounds), default=0.0)
    return (
        f"Each candidate tries {', '.join(map(str, tried))} settings of at most {each}, on "
        f"{', '.join(map(str, threads))} threads, in separate processes. {_halving_sentence(rows)}"
        f"In the rounds other programs took up to {100 * busy:.0f} % of the cores. Our dual ascent on sparse rows is "
        "judged by the mean of its weights over the epoch so far if there are at least 4 rows for each column."
    )


# The self-trial: what is expected of the measuring, and what was found.


SELF_COLUMNS = ("part", "what", "condition")


def write_self_trial(folder: str | Path, command: str = "") -> Path:
    """Write self.md and its charts from the records of the folder; return the path of the page."""
    folder = Path(folder)
    frame = _frame(tables.SELF, folder)
    met = {True: "met", False: "missed", None: "failed"}
    criteria = self_trial.criteria(frame)
    content = {
        "meaning": self_trial.meaning(frame),
        "verdict": f"{sum(c.met is True for c in criteria)} of {len(criteria)} criteria are met.",
        "criteria": page.table_of(
            (*SELF_COLUMNS, "wanted", "measured", "outcome"),
            ([c.part, c.what, c.condition, c.wanted, c.measured, met[c.met]] for c in criteria),
        ),
        "others": page.table_of(
            (*SELF_COLUMNS, "measured"),
            ([c.part, c.what, c.condition, c.measured] for c in self_trial.other_outcomes(frame)),
        ),
        "charts": [_self_chart(name, frame, folder) for name in plots.names("self")],
        "machine": page.machine_table(folder, self_trial.records(self_trial.newest_outcomes(frame))),
    }
    return _write(folder, "self.md", "self_trial.md.jinja", content, command, "python -m benchmarks self")


def _self_chart(name: str, frame: pd.DataFrame, folder: Path) -> dict[str, str]:
    """Save a chart as SVG in the folder; return its title, file name and sentence."""
    file = f"{name.replace('_', '-')}.svg"
    return {"title": plots.get(name).title, "file": file, "sentence": _draw(name, frame, folder / file)}
