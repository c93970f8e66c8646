"""What may be said of trial rows: every number with what it is of, and who is better where; and what is said wrongly.

`faults` lists the numbers and the winners of a text that the rows do not bear.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy import stats

from tests.support.claims import WINNER, Number, numbers, sentences, without
from tests.support.expected_ratios import Configuration, Contest, Known, Record, contests
from workbench.measure.posterior import LIKELY, Ratio

PHASES = ("slice", "convert", "plan", "wait", "transfer", "forward", "loss", "gradient", "update", "graph")
FIXED = ("95 % interval", "within 10 %", "64-bit", "float32", "float64")
"""Parts of sentences whose numbers are rules and no measurements."""
SPARSE_SIDE = re.compile(r"beats? dense|sparse wins|go sparse|Sparse (is|needs|runs|reaches)|[Ww]ins by fitting")
DENSE_SIDE = re.compile(
    r"[Dd]ense(, 1 thread)?( \([^)]*\))? (beats|wins)|stay dense|no sparse configuration (is|needs)"
)
PROBABLY = re.compile(
    r"(?P<side>sparse|dense) (?:is|needs) probably\b|\bprobably (?P<alone>sparse|dense)\b", re.IGNORECASE
)
PROBABILITY = "probability"
"""The kind of a share that stands in a sentence of a likely side, and is none of densities, trials or time."""
NEITHER = re.compile(r"does not count as a win|\((loss|accuracy) [^)]*\)|Dense reaches its loss")

MOST_LIKELY = 0.99
"""No probability is said to be higher."""
LEAST_COST = 1.01
"""No cost of a wrong choice is said to be lower."""


@dataclass(frozen=True)
class Fact:
    """A number that may be said, of the named configurations or of none: from `low` to `high` any, usually one."""

    kind: str
    low: float
    high: float
    of: tuple[str, ...] = ()
    densities: tuple[float, ...] = ()

    def bears(self, number: Number, mentioned: set[str], at: set[float]) -> bool:
        """Whether it is the number, of its kind, said of the configurations and densities that are mentioned."""
        if not (number.is_of(self.low) or number.is_of(self.high) or self.low <= number.value <= self.high):
            return False
        named = not self.of or not mentioned or self.of[0].startswith("dense") or bool(mentioned & set(self.of))
        return named and (not self.densities or not at or bool(at & set(self.densities)))


@dataclass(frozen=True)
class Facts:
    """All that may be said of some rows."""

    contests: list[Contest]
    known: dict[str, list[Fact]]
    """By kind."""
    names: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, rows: Sequence[Record]) -> "Facts":
        """What the rows bear."""
        met = contests(rows)
        names = {name for contest in met for configuration in contest.configurations for name in configuration.names}
        known = defaultdict(list)
        for fact in dict.fromkeys([*_of_cells(met), *_of_contests(met), *_of_lines(met), *_counted(rows, met)]):
            known[fact.kind].append(fact)
        return cls(met, known, tuple(sorted(names, key=len, reverse=True)))

    def faults(self, text: str, at: Iterable[float] = ()) -> list[str]:
        """What a text says that the rows do not bear, sentence by sentence; `at`: the densities it is about."""
        return [fault for sentence in sentences(text) for fault in self._in(sentence, set(at))]

    def _in(self, sentence: str, at: set[float]) -> Iterator[str]:
        mentioned = self.mentioned(sentence)
        bare = without(sentence, (*self.names, *FIXED))
        is_likely = bool(PROBABLY.search(sentence))
        for number in numbers(bare):
            if is_likely and number.kind == "share" and number.value >= LIKELY:
                number = replace(number, kind=PROBABILITY)
            if not any(fact.bears(number, mentioned, at) for fact in self.known[number.kind]):
                yield f"{number.text!r} in: {sentence}"
        if WINNER.search(NEITHER.sub("", sentence)) and (why := self._wrong_winner(sentence, mentioned, at)):
            yield f"{why} in: {sentence}"

    def mentioned(self, sentence: str) -> set[str]:
        """The configurations that a sentence names; "dense" alone is none."""
        found = set()
        for name in self.names:
            if name.startswith("dense"):
                continue
            if name in sentence:
                found.add(name)
                sentence = sentence.replace(name, "")
        return found

    def _wrong_winner(self, sentence: str, mentioned: set[str], at: set[float]) -> str:
        """Why the winner, or the likely one, that a sentence names is none."""
        said = NEITHER.sub("", sentence)
        said = PROBABLY.sub(lambda found: (found["side"] or found["alone"]).lower() + " likely", said)
        densities = at or {number.value for number in numbers(without(said, (*self.names, *FIXED)))}
        here = [contest for contest in self.contests if _label(contest) in said.lower()] or self.contests
        measures = [measure for measure in ("memory", "time") if measure in said] or ["time"]
        if "less memory" in said:
            measures = ["memory"]
        if likely := re.search(r"(sparse|dense) likely", said):
            placed = self._placed(here, mentioned, densities)
            return "" if any(one.likely == likely[1] for one in placed) else f"{likely[1]} is said to be likely"
        for side, words in (("sparse", SPARSE_SIDE), ("dense", DENSE_SIDE)):
            if words.search(said) and not self._won(side, here, measures, mentioned, densities):
                return f"{side} is said to win"
        if not any(self._won(side, here, measures, mentioned, densities) for side in ("sparse", "dense")):
            return "a winner is named"
        return ""

    def _won(
        self, side: str, here: list[Contest], measures: list[str], mentioned: set[str], densities: set[float]
    ) -> bool:
        """Whether a side wins at one of the densities, in all that compete or of the configurations mentioned alone."""
        some = self._placed(here, mentioned, densities)
        return any(getattr(one, measure) == side for one in some for measure in measures)

    def _placed(self, here: list[Contest], mentioned: set[str], densities: set[float]) -> list[Contest]:
        """The contests at one of the densities, of all that compete and of the configurations mentioned alone."""
        placed = [one for one in here if any(_near(d, said) for d in one.densities for said in densities)] or here
        return [*placed, *(one.only(mentioned) for one in placed if mentioned)]


def _near(density: float, said: float) -> bool:
    return abs(density - said) <= 0.006 * density


def _label(contest: Contest) -> str:
    """The name of a group where a report names it; the width, as synthetic groups differ in nothing else."""
    return f"width {contest.group[1]}"


def _values(
    kind: str, known: Known | None, of: tuple[str, ...], at: tuple[float, ...], times: float = 1.0
) -> list[Fact]:
    if known is None:
        return []
    return [Fact(kind, times * end, times * end, of, at) for end in (known.value, known.low, known.high)]


def _of_cells(met: Sequence[Contest]) -> Iterator[Fact]:
    for one in met:
        for configuration in one.configurations:
            yield from _of_cell(configuration, configuration.names, one.densities)
            curve = configuration.head["curve"] or ()
            shares = (1.0, *_shares(configuration.head), configuration.steps or 0, *(int(step) for *_, step in curve))
            for share in shares:
                yield from _values("time", one.estimate(configuration), configuration.names, one.densities, share)
            for density in configuration.densities:
                yield Fact("share", density, density)


def _of_cell(configuration: Configuration, names: tuple[str, ...], at: tuple[float, ...]) -> Iterator[Fact]:
    yield from _values("time", configuration.seconds, names, at)
    yield from _values("bytes", configuration.memory, names, at)
    head = configuration.head
    for name in ("bytes_predicted", "bytes_held", "bytes_needed", "bytes_limit"):
        sizes = [row[name] for row in configuration.rows if row[name] is not None]
        yield from (Fact("bytes", size, size, names, at) for size in (*sizes, float(np.median(sizes or [0]))))
    sizes = [one["bytes"] for row in configuration.rows for one in row["densified"] or ()]
    yield from (Fact("bytes", size, size, names) for size in sizes)
    for share in _shares(head):
        yield from _values("time", configuration.seconds, names, at, share)
        yield Fact("share", share, share, names, at)
    yield Fact("time", 0, 0)
    for name in ("loss_first", "loss_last", "quality", "error", "error_allowed"):
        if head[name] is not None:
            yield Fact("count", head[name], head[name])
    trained = [
        row["seconds_epoch"] * row["epochs"] for row in configuration.rows if row["seconds_epoch"] and row["epochs"]
    ]
    if trained:
        yield Fact("time", min(trained), max(trained), names, at)
    steps = {configuration.steps, *(int(step) for _, _, step in head["curve"] or ())}
    for count in filter(None, steps):
        yield from _values("time", configuration.seconds, names, at, count)
        yield Fact("count", count, count)


def _shares(row: Record) -> Iterator[float]:
    """What part of a step each phase takes."""
    means = [row[f"seconds_{name}"] or 0.0 for name in PHASES]
    yield from (mean / sum(means) for mean in means if mean)


def _of_contests(met: Sequence[Contest]) -> Iterator[Fact]:
    for one in met:
        for name in ("loss_last", "quality"):
            known = [
                configuration.head[name] for configuration in one.configurations if configuration.head[name] is not None
            ]
            yield from (Fact("count", abs(a - b), abs(a - b)) for a, b in combinations(known, 2))
        for ratio in (*one.ratios(), *one.memory_ratios()):
            for end in (ratio.value, ratio.low, ratio.high):
                if 0 < end < float("inf"):
                    yield Fact("factor", end, end, (), one.densities)
                    yield Fact("factor", 1 / end, 1 / end, (), one.densities)
            for left in _without_what_is_around(one):
                yield from (Fact("factor", left * end, left * end) for end in (ratio.value, ratio.low, ratio.high))
        for ratio in one.ratios():
            visible = (ratio.high / ratio.low) ** 0.5 if ratio.low > 0 else float("inf")
            yield Fact("factor", visible, visible)
            probability = min(max(ratio.probability, 1 - ratio.probability), MOST_LIKELY)
            yield Fact(PROBABILITY, probability, probability, (), one.densities)
            cost = _cost_of_sparse(ratio)
            yield Fact("factor", cost, cost, (), one.densities)


def _cost_of_sparse(ratio: Ratio) -> float:
    """The mean of max(1, sparse / dense), the ratio lognormal with this 95 % interval; by a sum over its quantiles."""
    z = np.linspace(-9, 9, 9001)
    logs = math.log(ratio.value) + z * math.log(ratio.high / ratio.low) / (2 * stats.norm.ppf(0.975))
    return max(float(np.average(np.maximum(np.exp(-logs), 1), weights=stats.norm.pdf(z))), LEAST_COST)


def _without_what_is_around(contest: Contest) -> Iterator[float]:
    """The share of its step that a dense training, one step after another, spends in its kernels."""
    for configuration in contest.configurations:
        if configuration.is_dense and configuration.head["launch"] == "kernels":
            inside = sum(
                configuration.head[f"seconds_{name}"] or 0.0 for name in ("forward", "loss", "gradient", "update")
            )
            around = sum(configuration.head[f"seconds_{name}"] or 0.0 for name in ("slice", "convert", "plan", "wait"))
            if inside:
                yield inside / (inside + around)
                yield (inside + around) / inside


def _of_lines(met: Sequence[Contest]) -> Iterator[Fact]:
    """Break-evens: anywhere between the last density that sparse wins and the first that dense does."""
    lines = {
        (one.group, configuration.names)
        for one in met
        for configuration in one.configurations
        if not configuration.is_dense
    }
    for group, names in lines:
        of_group = sorted((one for one in met if one.group == group), key=lambda one: one.densities[:1])
        for measure in ("time", "memory"):
            winners = [(getattr(one.only(set(names)), measure), one.densities[-1]) for one in of_group]
            won, lost = ([at for winner, at in winners if winner == side] for side in ("sparse", "dense"))
            if won and lost and max(won) < min(lost):
                yield Fact("share", max(won), min(lost), names)
        yield from _by_bytes(of_group, names)


def _by_bytes(of_group: Sequence[Contest], names: tuple[str, ...]) -> Iterator[Fact]:
    """The density from which a line has more predicted bytes than dense, the line through its last two going on."""
    known = [(one.densities[-1], *(_least(one, names, is_dense) for is_dense in (False, True))) for one in of_group]
    points = [(density, sparse - dense) for density, sparse, dense in known if sparse and dense]
    if len(points) < 2:
        return
    x, gaps = (np.array(values, float) for values in zip(*points, strict=True))
    beyond = gaps[-1] + (gaps[-1] - gaps[-2]) / (x[-1] - x[-2]) * (1 - x[-1])
    fine = np.geomspace(x[0], 1.0, 200_001)
    above = np.interp(fine, [*x, 1.0], [*gaps, beyond]) >= 0
    if above.any() and not above[0]:
        crossing = float(fine[int(above.argmax())])
        yield Fact("share", crossing, crossing, names)


def _least(contest: Contest, names: tuple[str, ...], is_dense: bool) -> float:
    """The least predicted bytes of a contest's dense configurations, or of its sparse one so named; 0 without any."""
    configurations = [
        configuration
        for configuration in contest.configurations
        if configuration.is_dense == is_dense and (is_dense or configuration.names == names)
    ]
    sizes = [
        [row["bytes_predicted"] for row in configuration.counted if row["bytes_predicted"]]
        for configuration in configurations
    ]
    return min((float(np.median(own)) for own in sizes if own), default=0.0)


def _counted(rows: Sequence[Record], met: Sequence[Contest]) -> Iterator[Fact]:
    """Counts of rows, configurations, rounds and groups, and the settings."""
    configurations = [configuration for one in met for configuration in one.configurations]
    groups = [
        [configuration for one in met for configuration in one.configurations if one.group == group]
        for group in {m.group for m in met}
    ]
    ends = {row["status"] for row in rows}
    counts = {len(rows), len(configurations), len(groups), 1}
    for of_group in (configurations, *groups):
        for status in ends:
            counts.add(sum(row["status"] == status for configuration in of_group for row in configuration.rows))
            counts.add(sum({row["status"] for row in configuration.rows} == {status} for configuration in of_group))
        counts |= {len(configuration.rounds) for configuration in of_group}
        counts |= {
            sum(len(row["samples"] or ()) for row in configuration.rows if row["status"] == "ok")
            for configuration in of_group
        }
        counts |= {len({configuration.names for configuration in of_group}) - others for others in range(1, 4)}
        counts |= {
            len({configuration.names for configuration in of_group if configuration.is_dense}) - drawn
            for drawn in range(1, 4)
        }
        counts |= {
            sum(not configuration.rounds for configuration in of_group),
            sum(bool(configuration.trials) for configuration in of_group),
        }
        counts.add(sum(bool(configuration.trials) and not configuration.rounds for configuration in of_group))
        numbered = [
            row["status"]
            for configuration in of_group
            for row in configuration.rows
            if row["status"] in ("ok", "disturbed")
        ]
        counts.add(len(numbered))
        if share := numbered.count("disturbed") / max(len(numbered), 1):
            yield Fact("share", share, share)
    for row in rows:
        counts |= {row[name] for name in ("width", "batch_rows", "rows_total", "features", "threads", "epochs")}
        if row["reason"]:
            for number in numbers(row["reason"]):
                yield Fact(number.kind, number.value, number.value)
    yield from (Fact("count", count, count) for count in counts if count is not None)
