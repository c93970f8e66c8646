"""`benchmarks waits`: how it measures, its targets and its page."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchmarks import compare, tables
from benchmarks.compare import Compared, target, time_text
from benchmarks.contest import Record
from benchmarks.harness import Run, Suite
from benchmarks.page import Page, Section
from benchmarks.waits import COMPILED, PARTS, SECONDS_PART, Part
from workbench.analysis.formatting import format_number, format_seconds
from workbench.measure import race
from workbench.measure.child import Ended


def measure(run: Run, seed: int = 0) -> Iterator[Record]:
    """Time what a user waits for apart from training: reading, starting, compiling, predicting, few rows, defaults.

    Cases are parts of the suite. Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for
    a wrong name.

    Parameters
    ----------
    seed
        Draws the synthetic rows and the rows held out.

    Examples
    --------
    python -m benchmarks waits --quick
    python -m benchmarks waits --case reading --case defaults
    """
    about = lambda part: run.about(part, ["benchmarks.waits"], (), run.quick, seed)  # noqa: E731
    for part, known in run.new(run.choose(map(Part, PARTS)), about):
        request = {"part": part.name, "folder": str(run.folder / "files"), "is_quick": run.quick, "seed": seed}
        worker = race.Worker("benchmarks.waits:answers", run.folder)
        try:
            found = list(worker.answers(request | {"threads": run.threads}, lambda answer: SECONDS_PART))
        except Ended as end:
            found = [{"case": "", "candidate": "project", "side": "project"} | race.end_columns(end)]
        yield from (known | {"seed": seed} | columns for columns in found)


def time_ratio(one: Compared) -> float | None:
    """Return project / competitor of a case, the median over rounds; None without a competitor."""
    return compare.value_of(one.ratio({"side": "project"}, {"side": "competitor"}))


def seconds(one: Compared) -> float | None:
    """Return the seconds of the project in a case; None without a time."""
    record = one.fastest(side="project")
    return record["seconds"] if record else None


def seconds_above(one: Compared) -> float | None:
    """Return the seconds of the project minus those of the competitor; None without both."""
    own, other = one.fastest(side="project"), one.fastest(side="competitor")
    return own["seconds"] - other["seconds"] if own and other else None


def loss_ratio(one: Compared) -> float | None:
    """Return the held-out loss of the project over that of the competitor; None without both."""
    own, other = one.fastest(side="project"), one.fastest(side="competitor")
    return own["loss"] / other["loss"] if own and other and own["loss"] and other["loss"] else None


class Limit(NamedTuple):
    """A target of the cases of a part whose names begin with `starts`: `value(case)` is at most `most`, in `unit`."""

    part: str
    what: str
    most: float
    value: Callable[[Compared], float | None]
    unit: str = ""
    starts: tuple[str, ...] = ("",)


FIRST_COMPILED = "csr, logistic, AdaGrad"
OTHERS = tuple(case for case, _ in COMPILED if case != FIRST_COMPILED)
LIMITS = (
    Limit("reading", "svmlight text on one core / scikit-learn's reader", 0.17, time_ratio, "", ("svmlight",)),
    Limit("reading", "Matrix Market on one core / SciPy's reader", 1.3, time_ratio, "", ("Matrix Market",)),
    Limit("reading", "CSV to a matrix on one core / pyarrow's read", 3.0, time_ratio, "", ("CSV",)),
    Limit("starting", "import workbench above the interpreter", 0.05, seconds_above, "s", ("import",)),
    Limit("starting", "--help, data list, status", 0.4, seconds, "s", ("--help", "data list", "status")),
    Limit("starting", "train of a cached file before its first step", 1.0, seconds, "s", ("train",)),
    Limit("compiling", f"first epoch, {FIRST_COMPILED}", 2.0, seconds, "s", (FIRST_COMPILED,)),
    Limit("compiling", "first epoch, any other", 4.0, seconds, "s", OTHERS),
    Limit("predicting", "scores, probabilities / SciPy's x @ w", 1.2, time_ratio),
    Limit("few_rows", "fit of 100 rows, one epoch", 0.0005, seconds, "s", ("fit of 100 rows, one",)),
    Limit("searching", "a search over 8 settings / one training", 2.5, time_ratio),
    Limit("defaults", "held-out loss, nothing set / best LogisticRegression", 1.02, loss_ratio),
    Limit("defaults", "time, nothing set / LogisticRegression, C = 1", 1.0, time_ratio),
)
COLUMNS = ("part", "case", "project", "competitor", "its time", "project / competitor", "loss", "its loss")


def list_targets(found: Sequence[Compared]) -> list[compare.Target]:
    """Return a target for each limit, with the worst case."""
    return [
        target(
            one.what,
            {c.name: one.value(c) for c in found if c.settings["part"] == one.part and c.name.startswith(one.starts)},
            most=one.most,
            tell=format_seconds if one.unit == "s" else format_number,
        )
        for one in LIMITS
    ]


def line(one: Compared) -> list[str]:
    """Return the table row of a case as texts: times of both, their ratio, both losses."""
    own, other = one.fastest(side="project"), one.fastest(side="competitor")
    names = [other["candidate"], time_text(other, name=False)] if other else ["", ""]
    losses = [f"{record['loss']:.4f}" if record and record["loss"] else "" for record in (own, other)]
    ratio = compare.ratio_text(one.ratio({"side": "project"}, {"side": "competitor"}))
    return [one.settings["part"].replace("_", " "), one.name, time_text(own, name=False), *names, ratio, *losses]


def page(records: Sequence[Record]) -> Page:
    """Return the page: each case next to its competitor, and what failed."""
    found = compare.newest(records, ("part", "case", "machine"))
    lost = [record for one in found for record in one.records if record["status"] != "ok"]
    names = ("part", "case", "candidate", "status", "reason")
    sections = [
        Section("Cases", COLUMNS, [line(one) for one in found if one.timed]),
        Section("What has to be known", ("candidate", "note"), compare.notes(found)),
        Section("Without a time", names, ([record[name] for name in names] for record in lost)),
    ]
    return Page(list_targets(found), sections, values=compare.method(found))


SUITE = Suite("waits", tables.WAITS, measure, page)
