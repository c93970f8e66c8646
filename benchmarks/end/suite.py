"""`benchmarks end`: how it measures, its targets and its page."""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks import compare, linear, tables
from benchmarks.compare import Compared, target, value_of
from benchmarks.contest import Record
from benchmarks.end import (
    FORMATS,
    MEGABYTES,
    OTHERS,
    Candidate,
    Case,
    drop_from_memory,
    get,
    labels_in,
    names,
    run_once,
    write_files,
)
from benchmarks.end import large as large_files
from benchmarks.harness import Run, Suite
from benchmarks.page import Page, Section, frame
from workbench.analysis.formatting import format_bytes, format_number, format_seconds
from workbench.measure import machine, race
from workbench.plots.chart import message

TOLERANCE = 0.02
"""Share by which the held-out loss may be above the best that any candidate reached."""
STARTS = ("warm", "cold")
WARM_RUNS = 3


def measure(run: Run, full: bool = False, large: bool = False, python: str = sys.executable) -> Iterator[Record]:
    """Time whole processes from a file to predictions, with other libraries, to the same held-out loss.

    Records, page, charts and files are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Parameters
    ----------
    full
        Files of 1 GB too.
    large
        Generated files of 10 MB to 10 GB alone, as far as the disk has room: streamed, in memory, under a limit.
    python
        Python of an environment that has the competitors; missing ones are named.

    Examples
    --------
    python -m benchmarks end --quick
    python -m benchmarks end --case "clicks, 10 MB" --case "svmlight, 10 MB"
    python -m benchmarks end --large --case "generated texts, 10 MB"
    """
    versions = linear.versions(python, *OTHERS)
    named = {"list": linear.LIST, "versions": machine.versions() | versions}
    if large:
        yield from measured_large(run, python, versions, named)
        return
    every = [Case(name, size) for size in MEGABYTES for name in FORMATS]
    usual = every if full or run.names else every[: -len(FORMATS)]
    candidates = [get(name) for name in names()]
    settings: dict[str, Any] = {one.name: [dict(each) for each in one.settings] for one in candidates}
    settings |= {"list": linear.LIST, "versions": versions}
    about = lambda case: run.about(case, ["benchmarks.end"], (), settings)  # noqa: E731
    for case, known in run.new(run.choose(usual, every[: len(FORMATS)]), about):
        run.tell(f"{case.name}: writing the files")
        files = write_files(case, run.folder / "files")
        for columns in measured(run, case, candidates, files, python, versions):
            yield known | named | columns


def measured_large(run: Run, python: str, versions: Mapping[str, str], named: Record) -> Iterator[Record]:
    """Yield the records of the generated files; `named` are columns of all of them, the rest as in `measured`."""
    settings = {one.name: one.entrants() for one in large_files.CASES}
    about = lambda case: run.about(case, ["benchmarks.end.large"], (), settings, named["list"], versions)  # noqa: E731
    for case, known in run.new(run.choose(large_files.CASES, large_files.QUICK), about):
        tell = lambda what, name=case.name: run.tell(f"{name}: {what}")  # noqa: E731
        for columns in large_files.measured(case, run.folder, python, versions, tell):
            yield known | named | columns


def measured(
    run: Run,
    case: Case,
    candidates: Sequence[Candidate],
    files: tuple[Path, Path],
    python: str,
    versions: Mapping[str, str],
) -> Iterator[Record]:
    """Yield the records of a case: each setting once, then the soonest sufficient one of each candidate, warm and cold.

    `python` starts competitors, whose distributions have these versions. Sufficient is a held-out loss within 2 % of
    the best of any candidate. Warm runs are in rounds of turned order.
    """
    labels, tried = labels_in(files[1]), list[Record]()
    with tempfile.TemporaryDirectory(prefix="bench-end-") as caches:
        for one in candidates:
            run.tell(f"{case.name}: {one.name}, settings")
            for record in settings_of(case, one, files, labels, caches, python, versions):
                tried.append(record)
                yield record
        able = sufficient(tried)
        chosen = {name: min(records, key=lambda one: one["seconds"])["setting"] for name, records in able.items()}
        runs: dict[str, list[Record]] = {name: [] for name in chosen}

        def timed(name: str) -> float:
            """Run a candidate's chosen setting once, keep its columns and return its seconds."""
            run.tell(f"{case.name}: {name}, warm")
            runs[name].append(run_once(case.format, get(name), chosen[name], files, labels, caches, python))
            return float(runs[name][-1].get("seconds", np.nan))

        ready = {name: race.ReadyCandidate((name,), partial(timed, name), 1.0) for name in chosen}
        race.time_rounds(ready, race.Policy(rounds=WARM_RUNS, rounds_least=WARM_RUNS), time.perf_counter)
    for name, setting in chosen.items():
        yield of_runs(get(name), setting, runs[name])
    for name, setting in chosen.items():
        run.tell(f"{case.name}: {name}, cold")
        for path in files:
            drop_from_memory(path)
        with tempfile.TemporaryDirectory(prefix="bench-end-") as empty:
            columns = run_once(case.format, get(name), setting, files, labels, empty, python)
        yield columns_of(get(name), setting, "cold") | columns


def settings_of(
    case: Case,
    candidate: Candidate,
    files: tuple[Path, Path],
    labels: np.ndarray,
    caches: str,
    python: str,
    versions: Mapping[str, str],
) -> Iterator[Record]:
    """Yield a record of each setting, run once, after a first run that fills the caches."""
    if reason := candidate.unavailable(case.format, versions):
        yield columns_of(candidate, {}, "settings") | {"status": "unsupported", "reason": reason}
        return
    run_once(case.format, candidate, candidate.settings[0], files, labels, caches, python)
    for setting in candidate.settings:
        columns = run_once(case.format, candidate, setting, files, labels, caches, python)
        yield columns_of(candidate, setting, "settings") | columns


def columns_of(candidate: Candidate, setting: Mapping[str, Any], start: str) -> Record:
    """Return the columns that say what was run."""
    return {"candidate": candidate.name, "side": candidate.side, "setting": dict(setting), "start": start}


def of_runs(candidate: Candidate, setting: Mapping[str, Any], runs: Sequence[Record]) -> Record:
    """Return the record of warm runs: all their seconds, and the columns of the one with the (lower) median."""
    if lost := [one for one in runs if one["status"] != "ok"]:
        return columns_of(candidate, setting, "warm") | lost[0]
    samples = [one["seconds"] for one in runs]
    middle = runs[samples.index(statistics.median_low(samples))]
    return columns_of(candidate, setting, "warm") | middle | race.times_of(samples)


def sufficient(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return {candidate: its successful records whose loss is within 2 % of the best of all}."""
    best = min((one["loss"] for one in records if one.get("loss") is not None), default=0.0)
    found: dict[str, list[Any]] = {}
    for one in records:
        if one["status"] == "ok" and one["loss"] <= best * (1 + TOLERANCE):
            found.setdefault(one["candidate"], []).append(one)
    return found


# What the records say.


def cases_of(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Return {case: records of its newest key}, ascending in size, then by format."""
    newest: dict[str, dict[Any, Record]] = {}
    for one in sorted(records, key=lambda one: (one["megabytes"], one["format"])):  # stable: in the order written
        of_key = newest.setdefault(one["case"], {})
        if of_key and next(iter(of_key.values()))["key"] != one["key"]:
            of_key.clear()
        of_key[one["candidate"], one["start"], json.dumps(one["setting"])] = one
    return {name: list(found.values()) for name, found in newest.items()}


def started(records: Sequence[Record], start: str) -> Compared:
    """Return the records of a case from a start whose loss is sufficient."""
    return Compared([one for found in sufficient(records).values() for one in found if one["start"] == start])


def ratios(cases: Mapping[str, Sequence[Record]], start: str) -> dict[str, float | None]:
    """Return {case: seconds of the project over those of the soonest competitor}, None without both."""
    found = {name: started(own, start) for name, own in cases.items()}
    return {name: value_of(one.ratio({"side": "project"}, {"side": "competitor"})) for name, one in found.items()}


def left_out(records: Sequence[Record]) -> list[str]:
    """Return a line for each candidate without a time: the reason of its first failure, or how far its loss came."""
    there, lines = {one["candidate"] for start in STARTS for one in started(records, start).timed}, []
    for name in dict.fromkeys(one["candidate"] for one in records):
        own = [one for one in records if one["candidate"] == name]
        losses = [one["loss"] for one in own if one["loss"] is not None]
        best = f"No setting reaches the loss; its best is {format_number(min(losses), 4)}." if losses else ""
        reason = next((one["reason"] for one in own if one["status"] != "ok"), best)
        lines += [f"{name}: {reason}"] if name not in there else []
    return lines


COLUMNS = ("candidate", "start", "seconds", "peak memory", "held-out loss", "setting", "stages")
STAGES = {
    "start": "#BBBBBB",
    "import": "#E69F00",
    "read": "#56B4E9",
    "fit": "#D55E00",
    "write": "#009E73",
    "train": "#0072B2",
    "apply": "#CC79A7",
}
"""Stages in their order with their colours."""


def bars_of(records: Sequence[Record]) -> list[Record]:
    """Return the records to draw: soonest candidate first, its warm start before its cold one."""
    each = {start: {one["candidate"]: dict(one) for one in started(records, start).timed} for start in STARTS}
    order = sorted(each["warm"], key=lambda name: each["warm"][name]["seconds"])
    return [each[start][name] for name in order for start in STARTS if name in each[start]]


def draw(records: Sequence[Record], figure: Figure) -> str:
    """Draw bars of seconds by stage, soonest candidate first, warm and cold; return a sentence on who is soonest."""
    bars = bars_of(records)
    if not bars:
        return message(figure, "No candidate reached the loss.")
    axes = figure.add_subplot()
    places = list(range(len(bars)))[::-1]
    for place, record in zip(places, bars, strict=True):
        left = 0.0
        for stage in (name for name in STAGES if name in record["stages"]):
            axes.barh(place, record["stages"][stage], left=left, color=STAGES[stage], height=0.7)
            left += record["stages"][stage]
        axes.annotate(format_seconds(left, 2), (left, place), (4, 0), textcoords="offset points", va="center")
    used = [stage for stage in STAGES if any(stage in record["stages"] for record in bars)]
    for stage in used:
        whole = ", a whole process" if stage in ("train", "apply") else ""
        axes.barh(0, 0, color=STAGES[stage], label=f"{stage}{whole}")
    axes.set_yticks(places, [f"{record['candidate']}, {record['start']}" for record in bars])
    axes.xaxis.set_major_formatter(lambda seconds, _: format_seconds(seconds))
    axes.margins(x=0.1)
    frame(figure, axes, f"From the file to predictions, {bars[0]['case']}", "seconds by stage")
    return " ".join(filter(None, (soonest_sentence(records, start) for start in STARTS)))


def soonest_sentence(records: Sequence[Record], start: str) -> str:
    """Return a sentence on the seconds of the project and of the soonest competitor from a start; "" without both."""
    found = started(records, start)
    own, other = found.fastest(side="project"), found.fastest(side="competitor")
    if not own or not other:
        return ""
    value = other["seconds"] / own["seconds"]
    how = f"{format_number(max(value, 1 / value), 2)} times {'less' if value > 1 else 'more'} than"
    seconds = [format_seconds(one["seconds"]) for one in (own, other)]
    return f"{start.capitalize()}, {own['candidate']} takes {seconds[0]}, {how} {other['candidate']} ({seconds[1]})."


def line(record: Record) -> list[str]:
    """Return the table row of a bar as texts."""
    stages = (f"{one} {format_seconds(record['stages'][one])}" for one in STAGES if one in record["stages"])
    return [
        record["candidate"],
        record["start"],
        compare.time_text(record, name=False),
        format_bytes(record["bytes_peak"]),
        format_number(record["loss"], 4),
        ", ".join(f"{name} {value}" for name, value in record["setting"].items()) or "defaults",
        ", ".join(stages),
    ]


def page(records: Sequence[Record]) -> Page:
    """Return the page: ratios to the soonest competitor, and a chart of each case."""
    cases = cases_of([one for one in records if not one["generated"]])
    generated = cases_of([one for one in records if one["generated"]])
    each = {start: ratios(cases, start) for start in STARTS}
    rows = [[name, *(format_number(each[one][name] or 0.0) for one in STARTS)] for name in cases]
    sections = [Section("Project / soonest competitor", ("case", *STARTS), rows)]
    for name, own in cases.items():
        file = f"end-{name.replace(', ', '-').replace(' ', '-').lower()}.svg"
        bars = list(map(line, bars_of(own)))
        sections.append(Section(name, COLUMNS, bars, "", left_out(own), file, partial(draw, own), (9.0, 4.5)))
    targets = [target(f"project / soonest competitor, {start}", each[start], most=1.0) for start in STARTS]
    targets += large_files.targets(generated) if generated else []
    sections += large_files.sections(generated)
    known = [record for own in (cases | generated).values() for record in own]
    values = {"tolerance": f"{100 * TOLERANCE:g} %", "list": linear.describe("end", known)}
    return Page(targets, sections, values=values)


SUITE = Suite("end", tables.END, measure, page)
