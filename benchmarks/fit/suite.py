"""`benchmarks fit`: every candidate with its settings, longer for the best, then the best of each in rounds."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, cast

import numpy as np
import typer
from matplotlib.figure import Figure

from benchmarks import linear, tables
from benchmarks.compare import Target, geometric_mean, target, value_of
from benchmarks.contest import Record
from benchmarks.fit import cases as of_cases
from benchmarks.fit.candidates import Candidate, get, list_candidates, origin
from benchmarks.fit.cases import TOLERANCE, Case, best_value, reached_at, target_of
from benchmarks.harness import Run, Suite
from benchmarks.page import Page, Section, frame
from benchmarks.shapes import BenchError
from workbench.analysis.formatting import format_bytes, format_number, format_seconds
from workbench.analysis.pool import group_by
from workbench.command import data_commands
from workbench.measure import closure, machine, race
from workbench.measure.child import Ended
from workbench.measure.posterior import Ratio
from workbench.measure.rounds import INTERIM_ANALYSES, MOST, counterbalanced_order, ratio_of
from workbench.plots import style
from workbench.plots.chart import message
from workbench.sweeps import spec
from workbench.sweeps.spec import Configuration

LIBRARIES = ("torch", "implicit", "tensorflow-cpu", *linear.DISTRIBUTIONS)
FIRST, SECOND = 0.4, 2.0
"""Seconds of training that all settings have, and that the two best of a candidate have; the best has all of them."""
COMPETITORS = 4
"""Competitors that run rounds: those that were soonest at the target when settings were tried."""
NARROW, NEARLY = 1.5, 1.25
"""Bounds of a ratio, by each other, from which on no rounds are added; how near the soonest another may be."""
SECONDS_START, SECONDS_JUDGE = 120.0, 15.0
"""Seconds for data, imports and what is compiled; seconds that judging a point may take."""
LIMIT = "limit"
"""Why a training ended whose seconds were over; it alone may go on."""
HeldOut = Annotated[
    str, typer.Option(help="Share of the rows held out, or the file of them, read as --data was; for --data.")
]


def measure(
    run: Run,
    data: list[str] | None = None,
    model: str = "",
    held_out: HeldOut = "0.2",
    positive: str = "",
    width: int = 0,
    model_options: str = "",
    candidate: list[str] | None = None,
    seconds: float = 20.0,
    rounds: int = 4,
    seed: int = 0,
    **files: str,
) -> Iterator[Record]:
    """Train to the same held-out quality, sparse, dense and with other libraries; stop with Ctrl-C and lose nothing.

    Records, page and charts are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for wrong input.

    Parameters
    ----------
    data
        Your file or folder, or a data set; several times for several, each a case; by default the suite's own.
    model
        Model, for --data; by default a guess, which is printed.
    positive
        Positive class of a binary classifier, for --data.
    width
        Outputs or factors; by default the model's.
    model_options
        Options of the model, name=value with commas between.
    candidate
        A candidate alone; a wrong name lists all.
    seconds
        Seconds of training after which a setting is left.
    rounds
        Rounds of each best setting; from 4 on more where needed.
    seed
        Draws rows held out, starting weights and order; for --data.

    Examples
    --------
    python -m benchmarks fit --data train.txt
    python -m benchmarks fit --data clicks.csv --label clicked
    python -m benchmarks fit --data 100MB/texts.svm --data 100MB/clicks.csv
    """
    if seconds <= 0 or rounds < 1:
        raise BenchError(f"seconds is {seconds:g} and rounds {rounds}; expected above 0, and 1 or more.")
    chosen = run.choose(of_cases.CASES, [case for case in of_cases.CASES if case.name in of_cases.QUICK])
    if data:
        given = {"positive": positive, "model": model, "model_options": model_options, "width": width, "seed": seed}
        given = {name: value for name, value in given.items() if value}
        chosen = [case_of_data(one, held_out, files, given) for one in data]
        if len({case.name for case in chosen}) < len(chosen):  # files of one name in several folders
            chosen = [replace(case, name=f"{one}, {case.model}") for one, case in zip(data, chosen, strict=True)]
    able = [(case, list_candidates(case.model, tuple(candidate or ()))) for case in chosen]
    started = time.strftime("%Y-%m-%dT%H:%M:%S")
    for place, (case, candidates) in enumerate(able):
        run.share = place / len(able)
        for record in Course(run, case, candidates, seconds, rounds).records():
            yield {"run": started} | record


def case_of_data(source: str, held_out: str, files: Mapping[str, str], given: dict[str, Any]) -> Case:
    """Return the case of a file or data set `source`, read as `files` say, trained with the settings `given`.

    `held_out` is a share of the rows or a file. A guessed reader or model is printed. Raises DataError or SpecError.
    """
    from workbench.command import training
    from workbench.command.data_source import settings_with_notice, with_model

    known = settings_with_notice(source, **files) | given
    known = known if "model" in known else {"model": "logistic"} | with_model(known)
    settled = training.configuration_of(known).model_dump()
    return of_cases.case_of({name: settled[name] for name in known}, held_out)


@cache
def roots(candidate: str, dataset: str, model: str) -> frozenset[str]:
    """Return the modules that make a case's data and train a candidate on it."""
    own = {"benchmarks.fit.child", "workbench.measure.child", origin(get(candidate))}
    own |= closure.registering_modules("data set", [dataset]) | closure.registering_modules("model", [model])
    if get(candidate).side == "project":
        own |= spec.roots_of(Configuration(dataset=dataset, model=model, gradient="fused"))
    return frozenset(own)


class Course:
    """A case at work: settings of every candidate, all for a short time and the best for longer, then rounds.

    All candidates have had a time before the best of each go on. Known records are not measured again.
    """

    def __init__(self, run: Run, case: Case, candidates: Sequence[Candidate], seconds: float, rounds: int) -> None:
        """Store what is measured; nothing is, yet."""
        self.run, self.case, self.seconds, self.rounds = run, case, seconds, rounds
        self.candidates = {one.name: one for one in candidates}
        self.worker = race.Worker("benchmarks.fit.child:answers", run.folder, ["benchmarks.preload"])
        self.known = {one["key"]: one for one in run.records if one["status"] not in ("failed",)}
        self.tried: dict[str, dict[int, Record]] = {name: {} for name in self.candidates}
        dataset = case.configuration.dataset
        versions = machine.versions() | linear.versions()
        self.about = {
            name: run.about(case, roots(name, dataset, case.model), LIBRARIES, name, seconds)
            | {"candidate": name, "side": one.side, "is_dense": one.is_dense, "seconds_limit": seconds}
            | {"list": linear.LIST, "versions": versions}
            for name, one in self.candidates.items()
        }

    def records(self) -> Iterator[Record]:
        """Yield the records that are not known, in the order measured."""
        ladder = [(each, most) for each, most in ((FIRST, None), (SECOND, 2)) if each < self.seconds]
        for seconds, most in [*ladder, (self.seconds, 1 if ladder else None)]:
            for name, one in self.candidates.items():
                self.run.tell(f"{self.case.name}: {name}, settings for {seconds:g} s")
                yield from self.settings(one, self.to_go_on(name, most), seconds)
        best, larger = best_value([row for rows in self.tried.values() for row in rows.values()])
        if best is not None:
            yield from self.in_rounds(target_of(best, larger, TOLERANCE), larger)

    def to_go_on(self, name: str, most: int | None) -> list[int]:
        """Return the numbers of a candidate's settings with the next time: all, or its best ones that may go on."""
        if most is None:
            return list(range(len(self.candidates[name].values(self.case.model))))
        able = {n: row for n, row in self.tried[name].items() if row["value_best"] is not None}
        sign = -1.0 if any(row["larger_is_better"] for row in able.values()) else 1.0
        best = sorted(able, key=lambda number: sign * able[number]["value_best"])[:most]
        return [number for number in best if able[number]["left"] == LIMIT]

    def settings(self, one: Candidate, numbers: Sequence[int], seconds: float) -> Iterator[Record]:
        """Train settings for so many seconds; yield the new records. Ends at what no setting can do."""
        values, rows = one.values(self.case.model), self.tried[one.name]
        key = self.about[one.name]["key"]
        keys = {number: closure.result_key([key, "settings", values[number]]) for number in numbers}
        known = {number: self.known[each] for number, each in keys.items() if each in self.known}
        done = {number: row for number, row in known.items() if (row["seconds_rung"] or 0.0) >= seconds}
        rows |= done
        if any(is_end(row) for row in rows.values()):
            return
        rest = [number for number in numbers if number not in done]
        settled = self.about[one.name] | {"stage": "settings", "tried": len(values), "seconds_rung": seconds}
        if one.unavailable and rest:
            rows[rest[0]] = settled | {"status": "unsupported", "curve": None, "value_best": None, "left": None}
            yield settled | {"key": keys[rest[0]], "setting": {}, "status": "unsupported", "reason": one.unavailable}
            return
        while rest:  # in another process again what is left after a setting that did not end well
            before = {number: rows[number]["curve"] for number in rest if number in rows and one.refit}
            for number, columns in self.trainings(one, {n: values[n] for n in rest}, seconds, before=before):
                rows[number] = settled | columns
                at_end = one.is_at_end(self.case.model, values[number])
                yield settled | {"key": keys[number], "setting": values[number], "is_at_end": at_end} | columns
                rest.remove(number)
                if is_end(columns):
                    return

    def in_rounds(self, goal: float, larger: bool) -> Iterator[Record]:
        """Train the best setting of each to the target in rounds of turned order; more while the soonest are undecided.

        That is, of all of the project's candidates, and of the competitors that were soonest there.
        """
        best = {name: found for name, rows in self.tried.items() if (found := soonest(rows, goal, larger))}
        others = sorted((name for name in best if not self.is_own(name)), key=lambda name: best[name][0])
        names = [name for name in best if self.is_own(name) or name in others[:COMPETITORS]]
        taken: dict[str, dict[int, float]] = {name: {} for name in names}
        for number in range(max(self.rounds, MOST if self.rounds >= INTERIM_ANALYSES[0] else 0)):
            if number >= self.rounds and not (names := self.undecided(taken)):
                return
            for name in counterbalanced_order(names, number):
                _, setting, point = best[name]
                self.run.tell(f"{self.case.name}: {name}, round {number + 1}")
                key = closure.result_key([self.about[name]["key"], "round", number, goal, setting, point])
                if (columns := self.known.get(key)) is None:
                    values = self.candidates[name].values(self.case.model)
                    (columns,) = (
                        one
                        for _, one in self.trainings(
                            self.candidates[name], {0: values[setting]}, self.seconds, goal, int(point)
                        )
                    )
                    own = {"stage": "rounds", "round": number, "tolerance": TOLERANCE, "target": goal, "key": key}
                    yield self.about[name] | own | {"setting": values[setting], "tried": len(values)} | columns
                if columns["seconds"] is not None:
                    taken[name][number] = columns["seconds"]

    def is_own(self, name: str) -> bool:
        """Return whether a candidate is the project's."""
        return self.candidates[name].side == "project"

    def undecided(self, taken: Mapping[str, Mapping[int, float]]) -> list[str]:
        """Return the candidates near the soonest of either side while their ratio is undecided; [] else."""
        medians = {name: float(np.median(list(each.values()))) for name, each in taken.items() if each}
        sides = [[name for name in medians if self.is_own(name) == side] for side in (True, False)]
        if not all(sides):
            return []
        first = [min(names, key=lambda name: medians[name]) for names in sides]
        own, other = ({("", number): value for number, value in taken[name].items()} for name in first)
        ratio = ratio_of(other, own)
        if ratio is not None and ratio.high <= NARROW * ratio.low:
            return []
        near = {self.is_own(name): NEARLY * medians[name] for name in first}
        return [name for name in medians if medians[name] <= near[self.is_own(name)]]

    def trainings(
        self,
        one: Candidate,
        values: Mapping[int, Mapping[str, Any]],
        seconds: float,
        goal: float | None = None,
        iterations: int = 0,
        before: Mapping[int, Any] = {},
    ) -> Iterator[tuple[int, Record]]:
        """Yield (number, columns) of trainings in a new process as each ends, the last even if aborted.

        `goal` ends a training that reaches it; one that is begun anew has so many `iterations` then.
        """
        request = {
            "case": asdict(self.case),
            "candidate": one.name,
            "values": [(number, value, before.get(number, [])) for number, value in values.items()],
            "target": goal,
            "ladder": [iterations] if goal is not None and one.refit else [],
            "seconds": seconds,
            "threads": self.run.threads,
            "bytes_limit": self.worker.bytes_limit,
        }
        longest = lambda answer: SECONDS_START if answer is None or "facts" in answer else seconds + SECONDS_JUDGE  # noqa: E731
        facts: Record = {}
        number, points, is_open = next(iter(values)), list[list[float]](), True
        try:
            for answer in self.worker.answers(request, longest):
                facts = answer.get("facts", facts)
                if "setting" in answer:
                    number, points, is_open = answer["setting"], [], True
                points += [answer["point"]] if "point" in answer else []
                if ending := answer.get("done", answer.get("ended")):
                    is_open = False
                    yield number, facts | curve_columns(points, facts, goal) | {"status": "ok", "reason": ""} | ending
        except Ended as ended:
            if is_open:
                yield number, facts | curve_columns(points, facts, goal) | race.end_columns(ended)


def curve_columns(points: Sequence[Sequence[float]], facts: Record, goal: float | None) -> Record:
    """Return the columns of a training: `curve` (up to the target), best value, and seconds to the target."""
    larger = bool(facts.get("larger_is_better"))
    curve = [[seconds, value if np.isfinite(value) else None, number] for seconds, value, number in points]
    there = reached_at(curve, goal, larger) if goal is not None else None
    curve = curve[: curve.index(list(there)) + 1] if there else curve
    known = [point[1] for point in curve if point[1] is not None]
    best = (max if larger else min)(known, default=None)
    columns = {"curve": curve, "value_best": best, "seconds": there[0] if there else None, "left": None}
    return columns | {"larger_is_better": larger}


def is_end(row: Mapping[str, Any]) -> bool:
    """Return whether no further setting of a candidate is tried after this record.

    It did not fit in memory, is unsupported, or failed or timed out before its first point.
    """
    return row["status"] in ("memory", "unsupported") or (row["status"] in ("timeout", "failed") and not row["curve"])


def soonest(rows: Mapping[int, Record], goal: float, larger: bool) -> tuple[float, int, float] | None:
    """Return (seconds, number of the setting, number of the point) that reached the target first; None if none did."""
    found = [(reached_at(row["curve"] or [], goal, larger), number) for number, row in rows.items()]
    return min(((point[0], number, point[2]) for point, number in found if point), default=None)


# What the records say.


EACH, TOGETHER = 5.0, 10.0
"""Fastest competitor's time by that of sparse that is wanted: each binary case and the text, binary cases together."""
ENDS = {"no gain": "no further gain", "done": "finished", "lost": "no longer finite", LIMIT: "out of time"}
"""Why a training ended, in words, by the column `left`."""
KINDS = ("sparse", "dense", "competitor")


@dataclass(frozen=True, eq=False)
class Entry:
    """Records of a candidate of a case: of its settings, and of its rounds to the target."""

    name: str
    settings: Sequence[Record]
    rounds: Sequence[Record]
    goal: float | None
    larger: bool

    @property
    def kind(self) -> str:
        """Kind of the candidate: "sparse" or "dense" of the project, else "competitor"."""
        first = self.settings[0]
        return "competitor" if first["side"] != "project" else "dense" if first["is_dense"] else "sparse"

    @property
    def by_round(self) -> dict[tuple[str, Any], float]:
        """Seconds to the target by ("", (run, round)): each round ran in processes of its own."""
        return {("", (one["run"], one["round"])): one["seconds"] for one in self.rounds if one["seconds"]}

    @property
    def seconds(self) -> float | None:
        """Median of the seconds to the target over the rounds; None if no round reached it."""
        found = list(self.by_round.values())
        return float(np.median(found)) if found else None

    @property
    def best(self) -> Record | None:
        """The record of the setting that first reached the target, else of the best value; None without a value."""
        known = [row for row in self.settings if row["value_best"] is not None]
        sign = -1.0 if self.larger else 1.0

        def place(row: Record) -> tuple[float, float]:
            """Return the sort key: seconds to the target, then the value."""
            there = reached_at(row["curve"] or [], self.goal, self.larger) if self.goal is not None else None
            return there[0] if there else float("inf"), sign * row["value_best"]

        return min(known, key=place, default=None)

    @property
    def text(self) -> str:
        """Seconds to the target with the range of the rounds, or why there are none."""
        if self.seconds is not None:
            every = self.by_round.values()
            median, least, most = (format_seconds(one, 2) for one in (self.seconds, min(every), max(every)))
            return f"{median} ({least} to {most})"
        best = self.best
        if best is None:
            lost = next((one for one in self.settings if one["status"] != "ok"), self.settings[0])
            needed = lost["bytes_needed"]
            return f"would need {format_bytes(needed)}" if needed else lost["reason"] or "no value"
        there = reached_at(best["curve"] or [], self.goal, self.larger) if self.goal is not None else None
        if there:
            return f"about {format_seconds(there[0], 2)}, tried once"
        return f"not reached; {ENDS.get(best['left'] or '', 'ended')} after {format_seconds(best['curve'][-1][0], 2)}"


@dataclass(frozen=True)
class Result:
    """A case at a tolerance: a record with its facts, the target, its candidates in the order they were written."""

    row: Record
    goal: float | None
    entries: Sequence[Entry]

    @property
    def name(self) -> str:
        """Name of the case."""
        return str(self.row["case"])

    @property
    def quality(self) -> str:
        """The target as text: measure, sign and value; "" if there is none."""
        sign = "≥" if self.row["larger_is_better"] else "≤"
        return "" if self.goal is None else f"{self.row['measure']} {sign} {format_number(self.goal, 4)}"

    def fastest(self, kind: str) -> Entry | None:
        """Return the entry of a kind with the least median seconds to the target; None if none reached it."""
        able = [entry for entry in self.entries if entry.kind == kind and entry.seconds]
        return min(able, key=lambda entry: entry.seconds or 0.0, default=None)

    @property
    def ratio(self) -> Ratio | None:
        """Seconds of the fastest competitor over those of the fastest sparse candidate, of common rounds."""
        sparse, competitor = self.fastest("sparse"), self.fastest("competitor")
        return ratio_of(competitor.by_round, sparse.by_round) if sparse and competitor else None


def results(records: Sequence[Record]) -> dict[float, list[Result]]:
    """Return {tolerance: results of all cases}, the suite's own tolerance first, then those of older records.

    Of each key the last record counts, and of each candidate only those of the code of its last one.
    """
    names = ("case", "held_out", "machine", "threads")
    rows = list({row["key"]: row for row in records}.values())
    trained = lambda row: (*(row[name] for name in names), row["candidate"])  # noqa: E731
    newest = {trained(row): row["source"] for row in rows}
    every = [row for row in rows if row["source"] == newest[trained(row)]]
    tolerances = {row["tolerance"] or TOLERANCE for row in every if row["stage"] == "rounds"} | {TOLERANCE}
    by_case = group_by(every, lambda row: tuple(row[name] for name in names))
    ordered = sorted(tolerances, key=lambda one: (one != TOLERANCE, one))
    return {tolerance: [_result(own, tolerance) for own in by_case.values()] for tolerance in ordered}


def _result(rows: Sequence[Record], tolerance: float) -> Result:
    """Return the result of a case at a tolerance; its target is that of the last round, others are left out."""
    tried = [row for row in rows if row["stage"] == "settings"]
    rounds = [row for row in rows if row["stage"] == "rounds" and (row["tolerance"] or TOLERANCE) == tolerance]
    goal = rounds[-1]["target"] if rounds else None
    larger = any(row["larger_is_better"] is True for row in rows)
    own = {name: [row for row in rounds if row["candidate"] == name and row["target"] == goal]
           for name in dict.fromkeys(row["candidate"] for row in tried)}  # fmt: skip
    by_name = group_by(tried, lambda row: row["candidate"])
    entries = [Entry(name, by_name[name], each, goal, larger) for name, each in own.items()]
    return Result(next((row for row in rows if row["features"]), rows[0]), goal, entries)


def list_targets(found: Sequence[Result]) -> list[Target]:
    """Return the targets of binary cases, each and together, and of text, against the fastest competitor."""
    binary = {one.name: value_of(one.ratio) for one in found if one.row["model"] == "logistic"}
    text = [one for one in found if one.row["model"] == "softmax" and one.row["dataset"] == "stdlib"]
    return [
        target("each binary set, fastest competitor / sparse", binary, least=EACH),
        target("binary sets together, geometric mean", binary, least=TOGETHER, is_mean=True),
        target("softmax on the standard library", {one.name: value_of(one.ratio) for one in text}, least=EACH),
    ]


COLOURS = {
    "sparse": ("#0072B2", "#009E73", "#56B4E9", "#7A5195"),
    "dense": (style.DENSE, "#777777", "#A0A0A0"),
    "competitor": ("#D55E00", "#E69F00", "#CC79A7", "#8C6D31", "#A6192E", "#F0A07C", "#B07AA1", "#9C755F"),
}


def draw(found: Result, figure: Figure) -> str:
    """Draw the held-out measure against seconds, the best setting of each candidate; return the sentence below."""
    curves = {entry: curve for entry in found.entries if (curve := curve_of(entry)).size}
    if not curves:
        return message(figure, f"No candidate of {found.name} has a point yet.")
    axes = figure.add_subplot()
    for kind in KINDS:
        own = sorted((one for one in curves if one.kind == kind), key=lambda one: one.seconds or float("inf"))
        for entry, colour in zip(own, COLOURS[kind], strict=False):
            look: dict[str, Any] = {"color": colour, "linestyle": "--" if kind == "competitor" else "-"}
            every = max(len(curves[entry]) // 12, 1)
            axes.plot(*curves[entry].T, label=f"{entry.name}: {entry.text.partition(' (')[0]}", marker="o",
                      markersize=4, markevery=every, **look)  # fmt: skip
    if found.goal is not None:
        axes.axhline(found.goal, color=style.GREY, linestyle=":", label=f"target: {found.quality}")
    axes.set_xscale("log")
    style.log_axis(axes.xaxis, format_seconds, "training time")
    axes.set_ylabel(f"{found.row['measure']} on rows held out", fontsize=style.NORMAL)
    if not found.row["larger_is_better"]:  # candidates that start far off would squeeze the others
        low = min(curve[:, 1].min() for curve in curves.values())
        start = float(np.median([curve[0, 1] for curve in curves.values()]))
        axes.set_ylim(low - 0.05 * (start - low), low + 1.15 * max(start - low, 1e-9))
    frame(figure, axes, found.name, f"{found.row['rows']:,} rows x {found.row['features']:,} features")
    return sentence(found)


def curve_of(entry: Entry) -> np.ndarray:
    """Return the curve of a candidate's best setting, float64 `[points, 2]`: seconds ascending, measure; all finite."""
    points = [point[:2] for point in (entry.best or {}).get("curve") or [] if point[1] is not None]
    return np.array(sorted(points), dtype=np.float64).reshape(-1, 2)


def sentence(found: Result) -> str:
    """Return a sentence on which training reaches the target first, and by what factor."""
    sparse, competitor, ratio = found.fastest("sparse"), found.fastest("competitor"), found.ratio
    if sparse is None or competitor is None or ratio is None:
        missing = "a competitor" if sparse else "a sparse training of ours"
        return f"{found.name}: the target is not reached by {missing}."
    interval = f"{format_number(ratio.value, 2)} x ({format_number(ratio.low, 2)} to {format_number(ratio.high, 2)})"
    both = f"{sparse.name} reaches {found.quality} in {sparse.text}, {competitor.name} in {competitor.text}"
    return f"{found.name}: {both}. Fastest competitor / sparse: {interval}."


def line(entry: Entry) -> list[str]:
    """Return a candidate's table row as texts: time, best value, setting, how that ended."""
    best = entry.best
    if best is None:
        return [entry.name, entry.text, "", ""]
    word = lambda value: value if isinstance(value, str | bool) else format_number(value)  # noqa: E731
    setting = ", ".join(f"{name} {word(value)}" for name, value in best["setting"].items())
    edge = ", at the edge" if best["is_at_end"] else ""
    return [entry.name, entry.text, format_number(best["value_best"], 4), f"{setting} (of {best['tried']}{edge})"]


def page(records: Sequence[Record]) -> Page:
    """Return the page: ratios at each tolerance, and a chart of each case."""
    every = results(records)
    found = every[TOLERANCE]
    columns = ("case", "rows x features", "target", *(f"competitor / sparse, {100 * one:g} %" for one in every))
    rows = []
    for each in zip(*every.values(), strict=True):
        size = f"{each[0].row['rows'] or 0:,} x {each[0].row['features'] or 0:,}"
        rows.append([each[0].name, size, each[0].quality, *(_shown(value_of(one.ratio)) for one in each)])
    whole = [each for each in zip(*every.values(), strict=True) if all(one.ratio for one in each)]
    means = [geometric_mean(one.ratio.value for one in each if one.ratio) for each in zip(*whole, strict=True)]
    rows.append([f"geometric mean of {len(whole)} cases", "", "", *map(_shown, means)])
    sections = [Section("Fastest competitor / sparse, time to the target", columns, rows)]
    for one in found:
        file = f"fit-{'-'.join(filter(None, ''.join(c if c.isalnum() else ' ' for c in one.name.lower()).split()))}.svg"
        names = ("candidate", "time to the target", f"best {one.row['measure']}", "setting")
        sections.append(Section(one.name, names, map(line, one.entries), "", (), file, partial(draw, one), (9.0, 8.0)))
    tried = [row for one in found for entry in one.entries for row in entry.settings]
    joined = lambda name: ", ".join(sorted({f"{row[name]:g}" for row in tried if row[name]}))  # noqa: E731
    values = {"tolerance": f"{100 * TOLERANCE:g} %", "seconds": joined("seconds_limit"), "threads": joined("threads")}
    values["list"] = linear.describe("fit", [row for row in tried if row["model"] == "logistic"])
    return Page(list_targets(found), sections, values=values)


def _shown(value: float | None) -> str:
    """Return a ratio as text with two significant digits; "" for None."""
    return "" if value is None else f"{format_number(value, 2)} x"


SUITE = Suite("fit", tables.FIT, data_commands.with_files(cast("Any", measure)), page)  # type: ignore[arg-type]
