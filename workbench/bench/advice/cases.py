"""The cases that advice is judged by: synthetic and built-in data, from very sparse to dense, and models of each kind.

Always the same answer must lose: some cases are won by sparse, some by dense (40 to 100 % density, 64 to 512 columns),
and in some the two are close.
"""

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
HOLDS = ("format", "csr")
"""What dense data is held as: smaller types hold few data sets exactly, and none of the synthetic ones."""


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
    "full": {"dataset": "uniform", "rows": 8_192, "features": 128, "density": 1.0},
    "wide": {"dataset": "uniform", "rows": 8_192, "features": 512, "density": 0.8},
    "table": {"dataset": "mixed", "rows": 16_384, "features": 64, "density": 0.6},
    "columns": {"dataset": "mixed", "rows": 8_192, "features": 512, "density": 0.45},
    "level": {"dataset": "uniform", "rows": 8_192, "features": 256, "density": 0.14},
    "joined": {"dataset": "stdlib", "features": 2048, "rows": 8_192, "density": 0.15},
    "near": {"dataset": "uniform", "rows": 8_192, "features": 1_024, "density": 0.15},
    "entries": {"dataset": "mixed", "rows": 8_192, "features": 1_024, "density": 0.15},
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
    Case("full softmax", {**DATA["full"], "model": "softmax", "optimizer": "sgd", "width": 10}),
    Case("wide logistic", {**DATA["wide"], "model": "logistic", "optimizer": "adagrad", "batch_rows": 64}),
    Case("table logistic", {**DATA["table"], "model": "logistic", "optimizer": "adagrad", "batch_rows": 64}),
    Case("columns linear", {**DATA["columns"], "model": "linear", "optimizer": "momentum", "width": 8}),
    Case("level logistic", {**DATA["level"], "model": "logistic", "optimizer": "sgd"}),
    Case("joined softmax", {**DATA["joined"], "model": "softmax", "optimizer": "sgd", "width": 4, "merge": True}),
    Case("near softmax", {**DATA["near"], "model": "softmax", "optimizer": "sgd", "width": 16}),
    Case("entries softmax", {**DATA["entries"], "model": "softmax", "optimizer": "adagrad", "width": 8}),
)
QUICK = (
    *("clicks logistic", "middling linear", "narrow softmax", "words softmax"),
    *("thick logistic", "full softmax", "table logistic", "columns linear"),
    *("level logistic", "joined softmax", "near softmax", "entries softmax"),
)
"""Four that sparse wins, four that dense wins, four that are close."""


def chosen(names: Iterable[str] = (), is_quick: bool = False) -> list[Case]:
    """The cases of these names, or all, or the quick ones; an unknown name is an error that lists the known ones."""
    by_name = {case.name: case for case in CASES}
    wanted = list(names) or (QUICK if is_quick else by_name)
    if unknown := [name for name in wanted if name not in by_name]:
        raise SpecError(f"There is no case {unknown[0]!r}; there is: {', '.join(by_name)}.")
    return [by_name[name] for name in wanted]


def every_contender(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All settings that go together on the CPU; an exact update only if a lazy one trains another model."""
    values = {**{name: allowed(BY_NAME[name]) for name in VARIED}, "hold": HOLDS}
    named = [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
    is_same = is_lazy_exact(Cell(**settings))
    able = [one for one in named if one["launch"] != "graph" and not (is_same and one["update"] == "exact")]
    return [one for one in able if not _is_no_cell({**settings, **one})]


def _is_no_cell(settings: Mapping[str, Any]) -> str | bool:
    """Reason why a cell means nothing; dense data is that of BLAS and a dense gradient alone."""
    is_baseline = settings["engine"] == "dense" and settings["gradient"] == "dense"
    return grid.why_dropped(Cell(**settings)) or (settings["format"] == "dense" and not is_baseline)
