"""Cases of waiting, apart from training, each compared with its competitor; and the targets."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.analysis.bench import PerformanceTarget, met_sentence
from workbench.analysis import formatting

Record = Mapping[str, Any]


class Waited(NamedTuple):
    """A case of a part: the records of the project and of its competitor, None without one.

    `ratio` has the median of the project's seconds by the competitor's of the same round, the least and the most; None
    without a competitor.
    """

    part: str
    case: str
    project: Record
    competitor: Record | None
    ratio: tuple[float, float, float] | None

    @property
    def seconds(self) -> float:
        """Seconds of the project, the median of its rounds."""
        return float(self.project["seconds"])

    @property
    def seconds_above(self) -> float | None:
        """Seconds of the project minus those of the competitor; None without a competitor."""
        return None if self.competitor is None else self.seconds - float(self.competitor["seconds"])

    @property
    def loss_ratio(self) -> float | None:
        """Held-out log loss of the project over that of the competitor; None if either is missing."""
        other = self.competitor and self.competitor["loss"]
        return self.project["loss"] / other if other and self.project["loss"] is not None else None


def compare_all(records: Iterable[Record]) -> list[Waited]:
    """Return every case with a time of the project, from the newest "ok" record of each side, in the order written.

    `records` are those of `benchmarks waits`, in the order written.
    """
    newest: dict[tuple[str, str], dict[str, Record]] = {}
    for record in records:
        if record["status"] == "ok":
            newest.setdefault((record["part"], record["case"]), {})[record["side"]] = record
    return [_compared(*key, sides) for key, sides in newest.items() if "project" in sides]


def _compared(part: str, case: str, sides: Mapping[str, Record]) -> Waited:
    """Return one case from its newest records by side ("project", and "competitor" if there is one)."""
    own, other = sides["project"], sides.get("competitor")
    if other is None:
        return Waited(part, case, own, None, None)
    ratios = [one / two for one, two in zip(own["samples"], other["samples"], strict=False)]
    return Waited(part, case, own, other, (statistics.median(ratios), min(ratios), max(ratios)))


def failures(records: Iterable[Record]) -> list[Record]:
    """Return the newest record of each (part, case, candidate) whose status is not "ok".

    `records` are those of `benchmarks waits`, in the order written.
    """
    newest = {(record["part"], record["case"], record["candidate"]): record for record in records}
    return [record for record in newest.values() if record["status"] != "ok"]


class Target(NamedTuple):
    """A target of the cases of a part that `matches` names: `value(case)` is at most `most`, in `unit`."""

    part: str
    what: str
    most: float
    value: Callable[[Waited], float | None]
    unit: str = ""
    matches: Callable[[str], bool] = lambda case: True


def _ratio(one: Waited) -> float | None:
    """Return project / competitor of a case, the median over rounds; None without a competitor."""
    return None if one.ratio is None else one.ratio[0]


def _seconds(one: Waited) -> float | None:
    """Return the seconds of the project in a case, the median of its rounds."""
    return one.seconds


def _is(*names: str) -> Callable[[str], bool]:
    """Return a predicate: whether a case name begins with one of `names`."""
    return lambda case: case.startswith(names)


FIRST_COMPILED = "csr, logistic, AdaGrad"
TARGETS = (
    Target("reading", "svmlight text on one core / scikit-learn's reader", 0.17, _ratio, matches=_is("svmlight")),
    Target("reading", "Matrix Market on one core / SciPy's reader", 1.3, _ratio, matches=_is("Matrix Market")),
    Target("reading", "CSV to a matrix on one core / pyarrow's read", 3.0, _ratio, matches=_is("CSV")),
    Target(
        "starting", "import workbench above the interpreter", 0.05, lambda one: one.seconds_above, "s", _is("import")
    ),
    Target("starting", "--help, data list, status", 0.4, _seconds, "s", _is("--help", "data list", "status")),
    Target("starting", "train of a cached file before its first step", 1.0, _seconds, "s", _is("train")),
    Target("compiling", f"first epoch, {FIRST_COMPILED}", 2.0, _seconds, "s", _is(FIRST_COMPILED)),
    Target("compiling", "first epoch, any other", 4.0, _seconds, "s", lambda case: not case.startswith(FIRST_COMPILED)),
    Target("predicting", "scores, probabilities / SciPy's x @ w", 1.2, _ratio),
    Target("few_rows", "fit of 100 rows, one epoch", 0.0005, _seconds, "s", _is("fit of 100 rows, one")),
    Target("searching", "a search over 8 settings / one training", 2.5, _ratio),
    Target("defaults", "held-out loss, nothing set / best LogisticRegression", 1.02, lambda one: one.loss_ratio),
    Target("defaults", "time, nothing set / LogisticRegression, C = 1", 1.0, _ratio),
)


def list_targets(found: Sequence[Waited]) -> list[PerformanceTarget]:
    """Return one performance target per limit, with the worst (largest) case; "not measured" if no case has a value.

    `found` are the cases of `compare_all`.
    """
    return [_judge_target(target, found) for target in TARGETS]


def _judge_target(target: Target, found: Sequence[Waited]) -> PerformanceTarget:
    """Return the performance target of a limit with its largest value, and how many of its cases exceed the limit.

    `found` are the cases of `compare_all`, of which those of the target's part count.
    """
    wanted = f"≤ {_text(target.most, target.unit)}"
    own = [one for one in found if one.part == target.part and target.matches(one.case)]
    known = {one.case: value for one in own if (value := target.value(one)) is not None}
    if not known:
        return PerformanceTarget(target.what, wanted, "not measured", None)
    worst = max(known, key=known.__getitem__)
    above = sum(value > target.most for value in known.values())
    count = f"; {above} of {len(known)} above" if len(known) > 1 else ""
    return PerformanceTarget(target.what, wanted, f"{_text(known[worst], target.unit)} ({worst}){count}", not above)


def _text(value: float, unit: str) -> str:
    """Return a number as text with three digits; with unit "s" in a suitable unit of time."""
    return formatting.format_seconds(value) if unit == "s" else formatting.format_number(value)


def summary(found: Sequence[Waited]) -> str:
    """Return how many of the measured targets are met, as a sentence.

    `found` are the cases of `compare_all`.
    """
    return met_sentence(list_targets(found))
