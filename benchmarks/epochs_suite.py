"""`benchmarks epochs`: how it measures, its targets and its page."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from benchmarks import compare, epoch_problem, tables
from benchmarks.compare import Compared, Target, ratio_text, target, time_text, value_of
from benchmarks.contest import Record, roots_of
from benchmarks.epoch_loops import RULES
from benchmarks.epoch_problem import Configuration
from benchmarks.epochs import CANDIDATES, POLICY
from benchmarks.harness import Run, Suite
from benchmarks.page import Page, Section
from benchmarks.shapes import BenchError
from kernels.registry import unknown_name
from workbench.analysis.formatting import format_number

EACH, TOGETHER = 1.0, 0.67
"""Largest time ratio to the fastest competitor that is wanted of each configuration, and of the geometric mean."""


def candidates(case: Configuration) -> dict[str, Record]:
    """Return the columns `side` and `note` of each candidate by its name."""
    return {name: {"side": one.side, "note": one.note} for name, one in CANDIDATES.items()}


@cache
def roots() -> frozenset[str]:
    """Return the modules whose code draws the rows, trains them and times it."""
    settings = [{"optimizer": rule, "gradient": "fused"} for rule in RULES]
    own = {"benchmarks.epochs", "benchmarks.contest", "workbench.measure.child"}
    return roots_of(("logistic", "softmax"), settings) | own


def measure(
    run: Run, optimizer: str = "", rounds: int = 9, budget: float = 2400.0, full: bool = False
) -> Iterator[Record]:
    """Compare whole epochs of sgd, adagrad, adam and ftrl with the fastest loop or library at equal work.

    Records and page are in the folder of --results. Exit status: 130 after Ctrl-C, 2 for a wrong name.

    Parameters
    ----------
    optimizer
        Only configurations of sgd, adagrad, adam or ftrl.
    rounds
        Rounds in which all candidates that are near are timed.
    budget
        Seconds after which no configuration is begun.
    full
        All configurations, twice as many.

    Examples
    --------
    python -m benchmarks epochs --quick
    python -m benchmarks epochs --optimizer adagrad --budget 1200
    """
    if optimizer and optimizer not in RULES:
        raise BenchError(unknown_name("optimizer", optimizer, RULES))
    every = epoch_problem.all_configurations()
    some = every if full or run.names else epoch_problem.default_configurations()
    some = tuple(one for one in some if optimizer in ("", one.optimizer))
    yield from run.contests(
        run.choose(some, some[: epoch_problem.QUICK]),
        "benchmarks.epochs:contest",
        candidates,
        replace(POLICY, rounds=rounds),
        roots=lambda case: roots(),
        libraries=("scikit-learn", "vowpalwabbit"),
        preload=["benchmarks.epochs"],
        budget=budget,
    )


def epoch_ratio(one: Compared) -> compare.Ratio | None:
    """Return the time of the project's fastest epoch over that of the fastest competitor; None without both."""
    return one.ratio({"side": "project"}, {"side": "competitor"})


def list_targets(found: Sequence[Compared]) -> list[Target]:
    """Return the targets of epoch time / fastest competitor: each configuration, the mean, that of each optimizer."""
    what, ratios = "epoch / fastest competitor", {one.name: value_of(epoch_ratio(one)) for one in found}
    rules = {str(one.settings["optimizer"]): None for one in found}
    own = {rule: {one.name: ratios[one.name] for one in found if one.settings["optimizer"] == rule} for rule in rules}
    return [
        target(f"{what}, each configuration", ratios, most=EACH),
        target(f"{what}, geometric mean", ratios, most=TOGETHER, is_mean=True),
        *(target(f"the same, {rule}", own[rule], most=TOGETHER, is_mean=True) for rule in rules),
    ]


COLUMNS = ("configuration", "project", "ns an entry", "fastest competitor", "its ns an entry", "time ratio")


def line(one: Compared) -> list[str]:
    """Return the table row of a configuration as texts: times and ns per entry of both, and their ratio."""
    texts = [one.name]
    for side in ("project", "competitor"):
        record = one.fastest(side=side)
        texts += [time_text(record), format_number(1e9 * record["seconds"] / record["nnz"]) if record else ""]
    return [*texts, ratio_text(epoch_ratio(one))]


def page(records: Sequence[Record]) -> Page:
    """Return the page: configurations, and candidates without a time."""
    found = compare.newest(records)
    return Page(
        list_targets(found),
        [
            Section("Configurations", COLUMNS, map(line, found)),
            Section("Candidates without a time", ("candidate", "status", "reason", "cases"), compare.untimed(found)),
            Section("What of the work differs", ("candidate", "what differs"), compare.notes(found)),
        ],
        values=compare.method(found),
    )


SUITE = Suite("epochs", tables.EPOCHS, measure, page)
