"""The cases that advice is judged by: drawn and built-in data, from very sparse to dense, and models of each kind."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.advise.contenders import is_lazy_exact
from workbench.settings import BY_NAME
from workbench.sweep import grid
from workbench.sweep.spec import Cell, SpecError, allowed

VARIED = ("format", "engine", "gradient", "update", "launch")
"""Settings of which a full sweep has all values that go together."""


@dataclass(frozen=True)
class Case:
    """A data set, a model and how it is trained: settings of a cell."""

    name: str
    settings: Mapping[str, Any]


DATA: dict[str, dict[str, Any]] = {
    "text": {"dataset": "stdlib", "features": 2048},
    "clicks": {"dataset": "power_law", "rows": 16_384, "features": 1_000_000, "density": 2e-5},
    "middling": {"dataset": "uniform", "rows": 8_192, "features": 2_048, "density": 0.03},
    "thick": {"dataset": "uniform", "rows": 8_192, "features": 256, "density": 0.4},
    "words": {"dataset": "power_law", "rows": 8_192, "features": 20_000, "density": 0.005},
    "half": {"dataset": "uniform", "rows": 4_096, "features": 1_024, "density": 0.15},
    "ratings": {"dataset": "low_rank"},
    "narrow": {"dataset": "power_law", "rows": 16_384, "features": 512, "density": 0.06},
}
"""Settings of the data of the cases, by name."""

CASES = (
    Case("text softmax", {**DATA["text"], "model": "softmax", "optimizer": "sgd", "width": 16, "merge": True}),
    Case("clicks logistic", {**DATA["clicks"], "model": "logistic", "optimizer": "adagrad"}),
    Case("middling linear", {**DATA["middling"], "model": "linear", "optimizer": "adagrad", "width": 16}),
    Case("thick logistic", {**DATA["thick"], "model": "logistic", "optimizer": "sgd"}),
    Case("words softmax", {**DATA["words"], "model": "softmax", "optimizer": "adagrad", "width": 64}),
    Case("words logistic adam", {**DATA["words"], "model": "logistic", "optimizer": "adam"}),
    Case("half logistic", {**DATA["half"], "model": "logistic", "optimizer": "adagrad", "batch_rows": 64}),
    Case("half linear", {**DATA["half"], "model": "linear", "optimizer": "momentum", "width": 64}),
    Case("narrow softmax", {**DATA["narrow"], "model": "softmax", "optimizer": "adagrad", "width": 8}),
    Case("narrow logistic", {**DATA["narrow"], "model": "logistic", "optimizer": "ftrl", "batch_rows": 1024}),
    Case("ratings factors", {**DATA["ratings"], "model": "matrix_factorization", "optimizer": "adagrad", "width": 16}),
    Case("clicks factors", {**DATA["clicks"], "model": "factorization_machine_logistic", "optimizer": "adagrad"}),
)
QUICK = ("clicks logistic", "middling linear", "thick logistic", "narrow softmax", "words softmax", "half logistic")


def chosen(names: Iterable[str] = (), is_quick: bool = False) -> list[Case]:
    """The cases of these names, or all, or the quick ones; an unknown name is an error that lists the known ones."""
    by_name = {case.name: case for case in CASES}
    wanted = list(names) or (QUICK if is_quick else by_name)
    if unknown := [name for name in wanted if name not in by_name]:
        raise SpecError(f"There is no case {unknown[0]!r}; there is: {', '.join(by_name)}.")
    return [by_name[name] for name in wanted]


def every_contender(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All settings that go together on the CPU, dense among them once; an exact update only where lazy is none."""
    values = {name: allowed(BY_NAME[name]) for name in VARIED}
    named = [dict(zip(VARIED, combination, strict=True)) for combination in itertools.product(*values.values())]
    is_same = is_lazy_exact(Cell(**settings))
    able = [one for one in named if one["launch"] != "graph" and not (is_same and one["update"] == "exact")]
    return [one for one in able if not _is_no_cell({**settings, **one})]


def _is_no_cell(settings: Mapping[str, Any]) -> str | bool:
    """Reason why a cell means nothing; dense data is that of BLAS and a dense gradient alone."""
    is_baseline = settings["engine"] == "dense" and settings["gradient"] == "dense"
    return grid.why_dropped(Cell(**settings)) or (settings["format"] == "dense" and not is_baseline)
