"""Generated files of up to gigabytes: training to a saved model and prediction, each setting in interleaved rounds.

Rows are those of `benchmarks data`. One line in so many is held out, so that rows held out are like the others, and in
most cases half of all, so that prediction reads as many bytes as training. How to add a case: a line in `CASES`.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import compare
from benchmarks.compare import Target, target, value_of
from benchmarks.contest import Record
from benchmarks.end import get, labels_in, run_once
from benchmarks.generated import KINDS
from benchmarks.page import Section
from workbench.analysis.formatting import format_bytes, format_number, format_seconds, format_with_interval
from workbench.measure import race
from workbench.measure.posterior import Ratio

ROUNDS = 3
LINES_AT_ONCE = 1000
FREE = 0.05
"""Share of the disk that stays free."""
NEAR = 1.01
"""A competitor is as good if its held-out loss is at most so many times that of the project."""

Entrant = tuple[str, Mapping[str, Any], str]
"""Candidate, setting and start: "warm", or "first" for a run without a parsed copy of the file."""


@dataclass(frozen=True)
class LargeCase:
    """Rows of a kind of `benchmarks data`: megabytes to train on, every how many lines one is held out.

    `bytes_limit` is the memory for data that each process is given, 0 for no limit; with a limit one pass is made.
    """

    kind: str
    megabytes: int
    held_out: int = 2
    bytes_limit: int = 0

    @property
    def name(self) -> str:
        """Name in records and pages, such as "generated texts, 10 MB"."""
        limit = f", in {format_bytes(self.bytes_limit)}" if self.bytes_limit else ""
        return f"generated {self.kind}, {self.megabytes} MB{limit}"

    @property
    def format(self) -> str:
        """Format of the files, as candidates name it."""
        return "svmlight" if self.kind == "texts" else "clicks"

    @property
    def bytes_disk(self) -> int:
        """Bytes of the files, of their copies in another text, and of parsed copies, roughly."""
        files = 1e6 * self.megabytes * self.held_out / (self.held_out - 1)
        return int(files * (2 if self.bytes_limit else 3))

    def columns(self) -> Record:
        """Return the columns of rows, size and limit."""
        named: Record = {"generated": self.kind, "format": self.format, "megabytes": self.megabytes}
        return named | {"bytes_limit": self.bytes_limit}

    def entrants(self) -> dict[str, Entrant]:
        """Return the entrants by name."""
        streamed: list[Entrant] = [
            ("project, streamed", {"held_out": 0, "streamed": passes}, "warm") for passes in (1, 2, 3)
        ]
        others: list[Entrant] = [("Vowpal Wabbit", {"passes": 1}, "warm")]
        if self.bytes_limit:
            return _named([streamed[0], *others])
        others += [("Vowpal Wabbit, cache", {"passes": passes}, "warm") for passes in (2, 3)]
        if self.kind == "clicks":
            others += [("polars, SGDClassifier", {"alpha": alpha}, "warm") for alpha in (1e-5, 1e-6)]
        return _named([*streamed, ("project", {}, "first"), ("project", {}, "warm"), *others])


def _named(entrants: Sequence[Entrant]) -> dict[str, Entrant]:
    """Return the entrants by a name that tells them apart."""
    return {f"{name}, {setting}, {start}": (name, setting, start) for name, setting, start in entrants}


CASES = (
    *(LargeCase(kind, megabytes) for megabytes in (10, 100, 1000) for kind in KINDS),
    LargeCase("texts", 3000, 21, 10**9),
    LargeCase("texts", 10_000, 51, 10**9),
)
QUICK = CASES[:2]


def write_files(case: LargeCase, folder: Path) -> tuple[Path, Path]:
    """Write the file to train on and the one held out, each with the header if there is one; return both paths."""
    name, made = KINDS[case.kind]
    paths = [folder / f"{part}{Path(name).suffix}" for part in ("train", "held-out")]
    with paths[0].open("wb") as train, paths[1].open("wb") as held_out:
        has_header = case.format == "clicks"
        for block in made(0):
            lines = block.splitlines(keepends=True)
            if has_header:
                header, has_header = lines.pop(0), False
                train.write(header)
                held_out.write(header)
            for first in range(0, len(lines), LINES_AT_ONCE):
                part = lines[first : first + LINES_AT_ONCE]
                held_out.writelines(part[:: case.held_out])
                del part[:: case.held_out]
                train.writelines(part)
                if train.tell() >= 1e6 * case.megabytes:
                    return paths[0], paths[1]
    raise AssertionError("generated rows have no end")


def refused(case: LargeCase, folder: Path) -> str:
    """Return why a case is not measured in a folder, "" if it is: its files would fill the disk."""
    disk = shutil.disk_usage(folder)
    room = disk.free - FREE * (disk.used + disk.free)
    if case.bytes_disk <= room:
        return ""
    needed, left = format_bytes(case.bytes_disk), format_bytes(max(int(room), 0))
    return f"Its files take {needed}; the disk has room for {left}, of which {100 * FREE:g} % of the disk stay free."


def measured(
    case: LargeCase, folder: Path, python: str, versions: Mapping[str, str], tell: Callable[[str], None]
) -> Iterator[Record]:
    """Yield a record of each entrant of a case: seconds of rounds by stage, memory by process, held-out loss.

    Files are written to a temporary folder in `folder`, and removed. `python` starts competitors, whose distributions
    have these `versions`.
    """
    known = {name: _columns(*entrant) for name, entrant in case.entrants().items()}
    reasons = {name: get(one["candidate"]).unavailable(case.format, versions) for name, one in known.items()}
    reason = refused(case, folder)
    reasons = {name: reason or each for name, each in reasons.items()}
    for name in [name for name, reason in reasons.items() if reason]:
        columns = known.pop(name)
        yield columns | {"status": "failed" if reason else "unsupported", "reason": reasons[name]}
    if not known:
        return
    with (
        tempfile.TemporaryDirectory(prefix="bench-end-", dir=folder) as there,
        tempfile.TemporaryDirectory(prefix="bench-end-") as caches,
    ):
        tell("writing the files")
        files = write_files(case, Path(there))
        labels = labels_in(files[1])
        runs: dict[str, list[Record]] = {name: [] for name in known}

        def run(name: str) -> Record:
            """Run an entrant once."""
            tell(name)
            if known[name]["start"] == "first":
                shutil.rmtree(Path(caches, "data"), ignore_errors=True)
            candidate, setting = get(known[name]["candidate"]), known[name]["setting"]
            return run_once(case.format, candidate, setting, files, labels, caches, python, case.bytes_limit)

        def timed(name: str) -> float:
            """Run an entrant once, keep its columns and return its seconds."""
            runs[name].append(run(name))
            return float(runs[name][-1].get("seconds", np.nan))

        for name in {one["candidate"]: name for name, one in reversed(known.items())}.values():
            run(name)  # which compiles code and writes the other text
        ready = {name: race.ReadyCandidate((name,), partial(timed, name), 1.0) for name in known}
        race.time_rounds(ready, race.Policy(rounds=ROUNDS, rounds_least=ROUNDS), time.perf_counter)
    for name, each in runs.items():
        lost = next((one for one in each if one["status"] != "ok"), None)
        yield known[name] | (lost or _of_runs(each))


def _columns(candidate: str, setting: Mapping[str, Any], start: str) -> Record:
    """Return the columns that say what was run."""
    return {"candidate": candidate, "side": get(candidate).side, "setting": dict(setting), "start": start}


def _of_runs(runs: Sequence[Record]) -> Record:
    """Return the columns of an entrant's runs: seconds of all, by stage too, and the largest memory of each process."""
    stages = {stage: [one["stages"][stage] for one in runs] for stage in runs[0]["stages"]}
    peaks = {stage: max(one["bytes_stages"][stage] for one in runs) for stage in runs[0]["bytes_stages"]}
    columns = runs[0] | race.times_of([one["seconds"] for one in runs])
    columns |= {"stages": {stage: float(np.median(each)) for stage, each in stages.items()}}
    return columns | {"samples_stages": stages, "bytes_stages": peaks, "bytes_peak": max(peaks.values())}


# What the records say.


Found = Mapping[str, Sequence[Record]]
"""The newest records of each case."""


def of_stage(record: Record, stage: str) -> Record:
    """Return a record as one of a stage alone, with its seconds and their interval; of all stages for ""."""
    return record if not stage else record | race.times_of(record["samples_stages"][stage])


def streamed(records: Sequence[Record], passes: int = 1) -> Record | None:
    """Return the record of so many passes over the blocks of the file; None without."""
    return next((one for one in _timed(records) if one["setting"].get("streamed") == passes), None)


def one_pass(records: Sequence[Record]) -> Record | None:
    """Return the record of Vowpal Wabbit's one pass; None without."""
    return next((one for one in _timed(records) if one["candidate"] == "Vowpal Wabbit"), None)


def _timed(records: Sequence[Record]) -> list[Record]:
    """Return the records with a time."""
    return [one for one in records if one["status"] == "ok"]


def ratio(first: Record | None, second: Record | None, stage: str) -> Ratio | None:
    """Return the time ratio of two records in a stage, of all stages for ""; None without both."""
    if first is None or second is None or not all(stage in one["samples_stages"] for one in (first, second) if stage):
        return None
    return compare.ratio(of_stage(first, stage), of_stage(second, stage))


def as_good(record: Record, records: Sequence[Record]) -> Record | None:
    """Return the soonest competitor whose held-out loss is at most `NEAR` times that of a record; None without."""
    able = [one for one in _timed(records) if one["side"] == "competitor" and one["loss"] <= NEAR * record["loss"]]
    return min(able, key=lambda one: one["seconds"], default=None)


def loss_ratio(records: Sequence[Record]) -> float | None:
    """Return the least held-out loss of one to three passes by that of Vowpal Wabbit; None without both."""
    own = [one["loss"] for one in _timed(records) if "streamed" in one["setting"]]
    others = [one["loss"] for one in _timed(records) if one["candidate"].startswith("Vowpal Wabbit")]
    return min(own) / min(others) if own and others else None


def targets(found: Found) -> list[Target]:
    """Return the targets: a streamed pass and prediction by Vowpal Wabbit's, its losses, and memory by the limit."""
    each = {
        stage: {name: value_of(ratio(streamed(own), one_pass(own), stage)) for name, own in found.items()}
        for stage in ("train", "apply")
    }
    limited = {
        name: one["bytes_peak"] / one["bytes_limit"]
        for name, own in found.items()
        if (one := streamed(own)) and one["bytes_limit"]
    }
    named = {"train": "training", "apply": "prediction"}
    return [
        *(target(f"one streamed {named[one]} / Vowpal Wabbit's", each[one], most=1.0) for one in each),
        target(
            "held-out loss, best of one to three passes / Vowpal Wabbit's",
            {name: loss_ratio(own) for name, own in found.items()},
            most=1.0,
        ),
        target("peak memory / limit", limited, most=1.0),
    ]


COLUMNS = (
    "candidate",
    "start",
    "train",
    "apply",
    "all",
    "memory, train",
    "memory, apply",
    "held-out loss",
    "setting",
    "train / Vowpal Wabbit, 1 pass",
    "apply / Vowpal Wabbit, 1 pass",
    "all / soonest competitor as good",
)
SIZES = ("rows", "MB", "memory limit", "candidate", "train, seconds a GB", "memory, train", "held-out loss")


def sections(found: Found) -> list[Section]:
    """Return a section for each case, and one of a single pass by size."""
    made = []
    for name, own in found.items():
        lost = {one["candidate"]: f"{one['candidate']}: {one['reason']}" for one in own if one["status"] != "ok"}
        rows = [_row(one, own) for one in _timed(own)]
        made.append(Section(name, COLUMNS if rows else (), rows, "", list(lost.values())))
    by_size = [_size_row(one) for own in found.values() for one in (streamed(own), one_pass(own)) if one]
    return [*made, Section("One pass, by size", SIZES, by_size)] if made else []


def _row(record: Record, records: Sequence[Record]) -> list[str]:
    """Return the table row of a record of a case, compared with the others of the case."""
    stages, peaks = record["samples_stages"], record["bytes_stages"]
    is_own = record["side"] == "project"
    other = as_good(record, records) if is_own else None
    whole = compare.ratio_text(ratio(record, other, "")) + f", {other['candidate']}" if other else "none is as good"
    return [
        record["candidate"],
        record["start"],
        *(_seconds(of_stage(record, one)) if one in stages else "" for one in ("train", "apply")),
        _seconds(record),
        format_bytes(peaks.get("train", record["bytes_peak"])),
        format_bytes(peaks["apply"]) if "apply" in peaks else "",
        format_number(record["loss"], 4),
        ", ".join(f"{name} {value:g}" for name, value in record["setting"].items()) or "defaults",
        *(compare.ratio_text(ratio(record, one_pass(records), one)) if is_own else "" for one in ("train", "apply")),
        whole if is_own else "",
    ]


def _seconds(record: Record) -> str:
    """Return the median of the seconds with its interval."""
    return format_with_interval(record["seconds"], record["seconds_low"], record["seconds_high"], format_seconds)


def _size_row(record: Record) -> list[str]:
    """Return the table row of a single pass."""
    limit, peaks = record["bytes_limit"], record["bytes_stages"]
    return [
        record["generated"],
        str(record["megabytes"]),
        format_bytes(limit) if limit else "none",
        record["candidate"],
        format_seconds(record["stages"]["train"] / record["bytes_file"] * 1e9),
        format_bytes(peaks["train"]),
        format_number(record["loss"], 4),
    ]
