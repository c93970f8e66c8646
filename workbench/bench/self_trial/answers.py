"""The parts that judge whole answers: of `workbench advise`, by a longer sweep, and of the demo, by its repetition.

Each file is drawn anew and asked about by whole processes, as a user types them: a sweep of many rounds at the data's
own density without a load, then advice within `SECONDS`, quiet and next to a busy core. Its rows are outcomes alone.

A run of the demo is measured as `workbench demo` measures it, with its budget, quiet or under a load, and must give the
same answer each time; its trials are kept no longer than its decisions. An inconclusive density contradicts nothing;
two winners at one density would. Next to a core that is always busy nothing is decided on a small machine, so most
loads of the runs have gaps.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench import store
from workbench.analysis.pool import group_by
from workbench.bench.self_trial import trials
from workbench.bench.self_trial.trials import outcome, share_row
from workbench.measure import loads
from workbench.measure.posterior import Ratio
from workbench.measure.rounds import Decision
from workbench.sweeps import spec
from workbench.sweeps.schedule import Schedule
from workbench.sweeps.spec import Spec

SECONDS, SECONDS_SWEEP = 40.0, 120.0
"""Budgets of an advice and of the sweep that judges it."""
SECONDS_MOST = 1.1 * SECONDS + 1
"""How long an advice may take in all."""
CONDITIONS = (loads.QUIET, "busy core")
WITHIN = 1.3
"""The most that the factor of a quiet advice may differ from that of the sweep."""
SWEEP = "sweep"


def rows_of_svmlight(rows: int, features: int, each: int, has_values: bool = True) -> Callable[[Path, int], None]:
    """Return a function of (path, seed) that writes svmlight text: `rows` rows of `each` entries, labels 0 and 1.

    Columns are drawn from `features`; values are random, or 1 without `has_values`.
    """

    def write(path: Path, seed: int) -> None:
        """Write the svmlight file of a seed to the path."""
        random = np.random.default_rng(seed)
        with path.open("w", encoding="utf-8") as file:
            for _ in range(rows):
                columns = np.sort(random.choice(features, each, replace=False)) + 1
                values = random.random(each) if has_values else np.ones(each)
                entries = " ".join(f"{column}:{value:.4g}" for column, value in zip(columns, values, strict=True))
                file.write(f"{random.integers(2)} {entries}\n")

    return write


def rows_of_clicks(separator: str) -> Callable[[Path, int], None]:
    """Return a function of (path, seed) that writes a table of 20,000 clicks with this column separator.

    A row has a label, 13 numbers and 26 categories of 40 to 20,000 values.
    """

    def write(path: Path, seed: int) -> None:
        """Write the table of clicks of a seed to the path."""
        random, rows = np.random.default_rng(seed), 20_000
        numbers = random.lognormal(1.0, 1.0, (rows, 13)).round(2)
        counts = [40, 400, 4_000, 20_000]
        categories = [random.zipf(1.3, rows) % counts[place % len(counts)] for place in range(26)]
        names = ["clicked", *(f"n{place}" for place in range(13)), *(f"c{place}" for place in range(26))]
        with path.open("w", encoding="utf-8") as file:
            file.write(separator.join(names) + "\n")
            for row in range(rows):
                words = (f"v{column[row]}" for column in categories)
                file.write(separator.join([str(random.integers(2)), *map(str, numbers[row]), *words]) + "\n")

    return write


FILES: dict[str, Callable[[Path, int], None]] = {
    "clicks.csv": rows_of_clicks(","),
    "clicks.tsv": rows_of_clicks("\t"),
    "wide.svm": rows_of_svmlight(30_000, 60_000, 25),
    "table.svm": rows_of_svmlight(6_000, 160, 72),
    "flags.svm": rows_of_svmlight(20_000, 123, 14, has_values=False),
    "small.svm": rows_of_svmlight(5_000, 300, 12, has_values=False),
}
"""What writes a file of this name: two that sparse wins by far, one whose dense form is large, one that dense wins, and
two that are near."""


class Answered(NamedTuple):
    """What a command answered about a file: side, time of dense / sparse with its interval, and the seconds it took."""

    file: str
    condition: str
    side: str
    ratio: float | None
    low: float
    high: float
    seconds: float


def answers(folder: Path, budget: trials.Budget, names: Sequence[str] = tuple(FILES)) -> list[dict[str, Any]]:
    """Ask the commands about generated files until the budget is over, at least about one; return outcome records.

    Each file is swept once, then advised on quiet and next to a busy core. `names` are keys of FILES; `folder` is not
    used.
    """
    found: list[Answered] = []
    for number, name in enumerate(names):
        if number and budget.is_over:
            break
        with tempfile.TemporaryDirectory(prefix="self-answers-") as temporary:
            path = Path(temporary) / name
            FILES[name](path, number)
            budget.tell(f"a sweep of {name}")
            found.append(run_sweep(path))
            for load in CONDITIONS:
                budget.tell(f"advice on {name}, {load}")
                with loads.run_load(load):
                    found.append(run_advise(path, load))
    return list(outcomes(found))


def run_sweep(path: Path) -> Answered:
    """Return the answer in time of `workbench sweep` on a file, at the data's own density."""
    options = ["--densities", "natural", "--yes", "--budget", f"{SECONDS_SWEEP:g}", "--json"]
    printed, seconds = _run("sweep", "--path", str(path), *options)
    return _parse_answer(path, SWEEP, next((one for one in printed if one["measure"] == "time"), {}), seconds)


def run_advise(path: Path, condition: str) -> Answered:
    """Return the answer of `workbench advise` on a file; `condition` names the load it ran under."""
    printed, seconds = _run("advise", str(path), "--budget", f"{SECONDS:g}", "--json")
    return _parse_answer(path, condition, printed, seconds)


def _run(*words: str) -> tuple[Any, float]:
    """Run `workbench` with these words in a new folder; return (its JSON output, seconds).

    Raises SelfTrialError with the end of its error output if it prints nothing.
    """
    command = [sys.executable, "-m", "workbench", *words]
    with tempfile.TemporaryDirectory(prefix="self-answers-") as temporary:
        started = time.monotonic()
        ended = subprocess.run(command, cwd=temporary, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - started
    if not ended.stdout:
        raise trials.SelfTrialError(f"workbench {' '.join(words)} failed: {ended.stderr.strip()[-300:]}")
    return json.loads(ended.stdout), seconds


def _parse_answer(path: Path, condition: str, printed: Mapping[str, Any], seconds: float) -> Answered:
    """Return the answer in a command's printed JSON; a missing bound is the ratio itself, all NaN without one.

    `path` names the file, `condition` the load and `seconds` the time that the command took.
    """
    ratio = printed.get("ratio")
    low, high = (math.nan if ratio is None else printed[end] or ratio for end in ("low", "high"))
    return Answered(path.name, condition, printed.get("side", "unknown"), ratio, low, high, seconds)


def outcomes(found: Sequence[Answered]) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each answer, then per load how many were right, in time, and near the sweep's factor.

    `found` are the answers of sweeps and advice.
    """
    judges = {one.file: one for one in found if one.condition == SWEEP}
    for one in found:
        yield _row_of(one)
    for load in CONDITIONS:
        own = [one for one in found if one.condition == load]
        right = [is_right(one, judges[one.file]) for one in own]
        yield share_row("answers", "the side is that of a longer sweep", load, sum(right), len(right), (1.0, None))
        in_time = [one.seconds <= SECONDS_MOST for one in own]
        what = f"the answer came within {SECONDS_MOST:g} s"
        yield share_row("answers", what, load, sum(in_time), len(in_time), (1.0, None))
    near = [is_near(one, judges[one.file]) for one in found if one.condition == loads.QUIET]
    what = f"the factor is within {WITHIN:g} of a longer sweep's"
    yield share_row("answers", what, loads.QUIET, sum(near), len(near), (1.0, None))


def _row_of(one: Answered) -> dict[str, Any]:
    """Return the outcome record of one answer, "failed" without a ratio."""
    what = f"{one.file}: dense / sparse"
    if one.ratio is None:
        return outcome("answers", what, one.condition, status="failed", reason="There was no ratio.")
    return outcome("answers", what, one.condition, ratio=one.ratio, low=one.low, high=one.high)


def is_right(one: Answered, judge: Answered) -> bool:
    """Return whether an answer names the side of the longer sweep `judge`.

    If the sweep names none: whether the two intervals overlap.
    """
    if judge.side in ("sparse", "dense"):
        return one.side == judge.side
    return one.ratio is not None and judge.ratio is not None and one.low <= judge.high and judge.low <= one.high


def is_near(one: Answered, judge: Answered) -> bool:
    """Return whether the ratios of an answer and of the sweep differ by at most a factor of 1.3."""
    if one.ratio is None or judge.ratio is None:
        return False
    return max(one.ratio / judge.ratio, judge.ratio / one.ratio) <= WITHIN


DEMO_FILE = "self-demo.jsonl"
SPEC = Path(__file__).parents[2] / "specs" / "demo_density.toml"
RUNS = {loads.QUIET: 10, "busy core": 2, "bursts": 4, "memory traffic": 4}
"""Runs under each load."""
HELD = 0.95
"""Share of the intervals that should hold the ratio that the quiet runs agree on."""


def demo(folder: Path, budget: trials.Budget, runs: Mapping[str, int] = RUNS) -> list[dict[str, Any]]:
    """Run the demo under each load, `runs` times including earlier calls, until the budget is over.

    Appends the decisions of each run to a file; returns outcome records of all runs on this machine.
    """
    settings, path = spec.load_spec(SPEC), folder / DEMO_FILE
    found = trials.rows_of_this_machine(read_decisions(path))
    while not budget.is_over:
        done = {load: len({row["condition"] for row in found if load_of(row) == load}) for load in runs}
        load = min(runs, key=lambda name: done[name] / runs[name])
        if done[load] >= runs[load]:
            break
        budget.tell(f"the demo, {load}, run {done[load] + 1} of {runs[load]}")
        rows = list(decision_records(run(settings, load), f"{load}, run {done[load] + 1}"))
        for row in rows:
            store.SELF.append(path, row)
        found += rows
    return list(demo_outcomes(found))


def read_decisions(path: Path) -> list[dict[str, Any]]:
    """Return the decision records of earlier runs, [] if the file does not exist yet."""
    return store.SELF.read(path) if store.is_stored(path) else []


def run(settings: Spec, load: str) -> Schedule:
    """Run the sweep `settings` under a load within its budget; return the schedule with its measured trials."""
    patience = settings.measure.seconds_quiet if load == loads.QUIET else 0.0
    budget, name = trials.Budget(settings.limits.seconds_sweep or float("inf")), trials.experiment("demo", load)
    schedule = Schedule.of(settings, [])
    with (
        tempfile.TemporaryDirectory(prefix="self-demo-") as temporary,
        loads.run_load(load),
        trials.Trials(Path(temporary) / DEMO_FILE, name, seconds_quiet=patience) as measured,
    ):
        for tasks in schedule.rounds():
            if budget.is_over:
                break
            for task in tasks:
                schedule.add(measured.measure(task))
    return schedule


def decision_records(schedule: Schedule, condition: str) -> Iterator[dict[str, Any]]:
    """Yield an outcome record per density of a run: the best ratio with its interval, or "failed"."""
    for course in schedule.courses:
        (density,) = {configuration.density for configuration in course.comparison.configurations.values()}
        what = "natural density" if density is None else f"density {density:g}"
        yield _row(course.decision(), what, condition)


def _row(decision: Decision, what: str, condition: str) -> dict[str, Any]:
    """Return the outcome record of a decision: ratio with its interval, "failed" if every round was disturbed.

    `what` names the density, `condition` the load and the run.
    """
    ratio = decision.ratio
    if ratio is None:
        reason = "Other programs were at work in every round."
        return outcome("demo", what, condition, status="failed", reason=reason, rounds=0)
    columns = {"ratio": ratio.value, "low": ratio.low, "high": ratio.high, "rounds": ratio.rounds}
    return outcome("demo", what, condition, **columns)


def load_of(row: Mapping[str, Any]) -> str:
    """Return the load of a run, the part of its condition before the comma."""
    return row["condition"].partition(",")[0]


def demo_outcomes(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield outcome records: whether runs agree on winners, how often one is named, and whether intervals hold.

    `rows` are the decision records of all runs.
    """
    names = list(dict.fromkeys(row["what"] for row in rows))
    of_load = group_by(rows, load_of)
    quiet = of_load.get(loads.QUIET, [])
    winners = {name: [winner for row in rows if row["what"] == name and (winner := _winner(row))] for name in names}
    agreed = sum(max(map(found.count, set(found))) for found in winners.values() if found)
    named = sum(map(len, winners.values()))
    yield share_row("demo", "a density's winner is the same in all runs", "all", agreed, named, (1.0, None))
    for load, own in of_load.items():
        held = list(_intervals_hold(own, quiet))
        yield share_row("demo", "a winner is named", load, sum(map(bool, map(_winner, own))), len(own), (None, None))
        if held:
            limits = (HELD if load == loads.QUIET else None, None)
            yield share_row("demo", "an interval holds the quiet runs' ratio", load, sum(held), len(held), limits)


def _winner(row: Mapping[str, Any]) -> str:
    """Return "sparse" or "dense" if the recorded ratio is significant, else ""."""
    if row["ratio"] is None:
        return ""
    verdict = Ratio(row["ratio"], row["low"], row["high"], row["rounds"], 1).verdict
    return verdict if verdict in ("sparse", "dense") else ""


def _intervals_hold(own: Sequence[Mapping[str, Any]], quiet: Sequence[Mapping[str, Any]]) -> Iterator[bool]:
    """Yield for each record whether its interval contains the median ratio of the quiet runs at its density."""
    for row in own:
        others = [other["ratio"] for other in quiet if other["what"] == row["what"] and other["ratio"]]
        if row["ratio"] and others:
            yield row["low"] <= float(np.median(others)) <= row["high"]
