"""A case: a data set and a model, named as a sweep's configuration names them, and the rows held out.

How to add one: a line.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernels.registry import unknown_name
from workbench import data, models
from workbench.bench.fit.contract import Candidate, Rows
from workbench.bench.fit.selection import Judge, some_users
from workbench.bench.shapes import BenchError
from workbench.sweeps.grid import setup_of
from workbench.sweeps.problem import HELD_OUT, facts_of, join_held_out, make_problem, split_held_out, targets
from workbench.sweeps.spec import Cell


@dataclass(frozen=True)
class Case:
    """Case to train, by the `settings` of a configuration; `held_out` is a share of the rows, or the path of a file."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    held_out: float | str = HELD_OUT

    @property
    def cell(self) -> Cell:
        """The configuration of these settings; its epochs are 0, since what is held out is said by `held_out`."""
        return Cell(**self.settings)

    @property
    def model(self) -> str:
        """The model's name."""
        return self.cell.model


def judge_of(case: Case, threads: int) -> Judge:
    """Return the rows trained on and those held out.

    `DataError` and `ModelError` if the data does not suit the model.
    """
    cell, model = case.cell, models.get(case.model)
    problem = make_problem(cell)
    if isinstance(problem.x, data.StoredRows):
        raise BenchError("Candidates take rows in memory; stored rows are read from disk: give the file they are from.")
    trained, rest, facts = _parts(case, problem.dataset)
    rows = Rows(
        model=case.model,
        x=trained.x,
        y=targets(trained, model, problem.width, "float32"),
        width=problem.width,
        has_intercept=setup_of(cell).has_intercept,
        threads=threads,
        settings=dict(case.settings),
        facts=facts,
        seed=cell.seed,
    )
    model.given(trained.features, problem.width, cell.model_options, rows.facts)  # which refuses data that lacks a fact
    judge = Judge(rows, rest.x, targets(rest, model, problem.width, "float32"))
    if judge.larger_is_better:
        return Judge(rows, some_users(rest.x, rows.facts["fields"], cell.seed), judge.y)
    return judge


def _parts(case: Case, whole: data.Dataset) -> tuple[data.Dataset, data.Dataset, dict[str, Any]]:
    """Return the parts of the rows to train on and held out, a share or another file read as the first was, and the
    facts.

    Nodes that are held out keep their place in the graph, which no other file has (`BenchError`).
    """
    if isinstance(case.held_out, str):
        if "graph" in models.get(case.model).needs:
            raise BenchError(f"The model {case.model} holds out a share of the nodes of its graph; a file came.")
        return whole, data.load(whole.name, like=whole, path=case.held_out), facts_of(whole)
    together = join_held_out(whole, case.held_out, case.cell.seed)
    trained, rest = split_held_out(together)
    assert rest is not None
    return trained, rest, facts_of(together)


def case_of(settings: Mapping[str, Any], held_out: str) -> Case:
    """Return the case of a user's data; `held_out` is a share, or the path of a file (`BenchError` for neither)."""
    path = settings.get("path")
    what = os.path.basename(str(path)) if path else str(settings.get("dataset"))
    name = f"{what}, {settings['model']}"
    try:
        share = float(held_out)
    except ValueError:
        file = os.path.expanduser(held_out)
        if not os.path.exists(file):
            raise BenchError(f"held-out is {held_out!r}; it is a share of the rows, or a file that exists.") from None
        return Case(name, settings, file)
    if not 0 < share < 1:
        raise BenchError(f"held-out is {held_out}; a share is above 0 and below 1, such as 0.2.")
    return Case(name, settings, share)


def _synthetic_case(model: str, **settings: Any) -> dict[str, Any]:
    """Return the settings of a case on synthetic data."""
    return {"model": model, **settings}


_POWER = {"dataset": "power_law", "rows": 40_000, "features": 20_000, "density": 0.0015}
_RATINGS = {"dataset": "low_rank", "reading": "users=2000, items=1000, rows=100000"}
_NODES = {"dataset": "block_graph", "reading": "rows=5000, features=2000, classes=7, signal=0.05"}
_WORDS = {"dataset": "power_law", "rows": 20_000, "features": 4_000, "density": 0.01, "width": 10}
DENSITIES = (0.02, 0.1, 0.5)
"""Shares of the weights that a pruned network has, in the cases that tell from which on dense matrices are faster."""

CASES = (
    Case("standard library, logistic", _synthetic_case("logistic", dataset="stdlib")),
    Case("power law, logistic", _synthetic_case("logistic", **_POWER)),
    Case(
        "standard library without its tests, softmax",
        _synthetic_case("softmax", dataset="stdlib", reading="tests=false"),
    ),
    Case("power law, multilabel", _synthetic_case("multilabel", **_POWER, width=10)),
    Case("power law, factorization machine", _synthetic_case("factorization_machine_logistic", **_POWER)),
    Case("low rank, matrix factorization", _synthetic_case("matrix_factorization", **_RATINGS)),
    Case("low rank, bpr", _synthetic_case("bpr", **_RATINGS, width=32)),
    Case("power law, embedding_mlp", _synthetic_case("embedding_mlp", **_POWER)),
    Case("power law, linear", _synthetic_case("linear", **_POWER)),
    Case("block graph, graph_convolution", _synthetic_case("graph_convolution", **_NODES)),
    *(
        Case(
            f"power law, pruned_mlp of {density:.0%}",
            _synthetic_case("pruned_mlp", **_WORDS, model_options=f"hidden=512x512, density={density}"),
        )
        for density in DENSITIES
    ),
)
QUICK = ("power law, logistic", "low rank, matrix factorization")


def choose_cases(names: tuple[str, ...] = (), quick: bool = False) -> list[Case]:
    """Return the cases of these names, all or the quick ones without any; `BenchError` lists the known."""
    known = [case.name for case in CASES]
    for name in names:
        if name not in known:
            raise BenchError(unknown_name("case", name, known))
    wanted = names or (QUICK if quick else tuple(known))
    return [case for case in CASES if case.name in wanted]


# Requests to the processes of a case: settings of a candidate.


@dataclass(frozen=True)
class TrainingRequest:
    """Request to a process: a candidate of a case, settings by number, and where there is one the target.

    `before` are the points that are known of a setting, by number, where a training is begun anew for each.
    """

    case: Case
    contender: Candidate
    values: Sequence[tuple[int, dict[str, float]]]
    seconds: float
    target: float | None = None
    ladder: Sequence[int] = ()
    before: Mapping[int, Sequence[Sequence[float]]] = field(default_factory=dict)
