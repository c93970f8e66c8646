"""Candidates of `benchmarks fit`, one library or way a file: what each can train, and the settings it is tried with."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.shapes import BenchError
from kernels.registry import Registry
from workbench import models
from workbench.advising.frameworks.training import why_not_installed

TRIED = 10
"""Settings that every candidate is tried with."""
BATCHES = (256, 1024)
"""Rows a batch."""
WHOLE = 1 << 30
"""Rows a batch that are all there are."""
DECAY = 1e-3
"""Weight decay of trainings step by step that have one: half of it times the square of W is added to the mean loss."""
POINTS_EPOCH = 8
"""Points of an epoch at which a training that goes step by step may be judged."""

Scorer = Callable[[Any], np.ndarray]
"""Gives the scores [R, outputs] of rows X csr; of a model that orders items those of users [n], of all items."""

Value = Mapping[str, Any]
"""One setting: numbers, or a choice, by name."""

Tried = Callable[[str], list[dict[str, Any]]]
"""Gives the settings that are tried, by the name of the model."""


def settings_by_rate(model: str) -> list[dict[str, Any]]:
    """Return the ten settings of stepwise trainings: X @ W models use SGD and AdaGrad, others AdaGrad with more rates.

    Of a graph all rows are a batch, and Adam is tried, too, as is usual there (Kipf and Welling 2017). Batch sizes and
    rates are the same for this project and its competitors.
    """
    if "graph" in models.get(model).needs:
        return grid(optimizer=("adam", "adagrad"), batch_rows=(WHOLE,), rate=(0.003, 0.01, 0.03, 0.1, 0.3))
    if not models.get(model).is_product:
        return grid(optimizer=("adagrad",), batch_rows=BATCHES, rate=(0.03, 0.1, 0.2, 0.4, 0.8))
    few, many = BATCHES
    return [
        *grid(optimizer=("sgd",), batch_rows=(few,), rate=(0.3, 1.0, 3.0, 10.0)),
        *grid(optimizer=("sgd",), batch_rows=(many,), rate=(30.0, 100.0)),
        *grid(optimizer=("adagrad",), batch_rows=(few,), rate=(0.03, 0.1, 0.3, 1.0)),
    ]


def settings_by_decay(model: str) -> list[dict[str, Any]]:
    """Return the settings of `settings_by_rate` for trainings with weight decay: half of those of SGD have some.

    PyTorch and TensorFlow refuse decay with sparse gradients, or apply it to all weights.
    """
    if not models.get(model).is_product:
        return settings_by_rate(model)
    return [
        *grid(optimizer=("sgd",), batch_rows=BATCHES[:1], rate=(1.0, 3.0, 10.0)),
        *grid(optimizer=("sgd",), batch_rows=BATCHES[:1], rate=(1.0, 3.0, 10.0), decay=(DECAY,)),
        *grid(optimizer=("adagrad",), batch_rows=BATCHES[:1], rate=(0.03, 0.1, 0.3, 1.0)),
    ]


def grid(**axes: tuple) -> list[dict[str, Any]]:
    """Return every combination of the values of these axes, the last axis varying fastest.

    >>> grid(optimizer=("sgd",), rate=(0.1, 1.0))
    [{'optimizer': 'sgd', 'rate': 0.1}, {'optimizer': 'sgd', 'rate': 1.0}]
    """
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


STRENGTHS = grid(C=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0))
"""Strengths of a penalty, as scikit-learn's solvers of all rows take them: 1 / C times half the square of W is added to
the sum of the losses."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to train on: X csr [R, D] float32, `y` as the loss of `model` takes it, width N, facts of the data.

    X is a dense array in what a competitor is given of dense rows (`dense_rows`).

    `settings` are those of the case as a configuration of a sweep has them; libraries may use `threads` threads.
    """

    model: str
    x: Any
    y: np.ndarray
    width: int
    has_intercept: bool
    threads: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    points: int = POINTS_EPOCH

    @property
    def rows_point(self) -> int:
        """Number of rows between two points at which a training is judged; an epoch has `points` of them."""
        return max(1, self.x.shape[0] // self.points)

    @property
    def bytes_dense(self) -> int:
        """Bytes of X as a dense array of its data type."""
        return self.x.shape[0] * self.x.shape[1] * self.x.dtype.itemsize

    @property
    def options(self) -> dict[str, Any]:
        """The options of the model by name, with defaults for the options that the case does not set."""
        return models.get(self.model).resolve(self.settings.get("model_options"))


@dataclass(frozen=True)
class Candidate:
    """A way to train. It has either `steps`, which goes on without end and gives a scorer at each point, or `refit`.

    `refit(rows, value, iterations)` trains anew with that many iterations at most, and gives the scorer and whether it
    was done before. All that either does is timed; what it imports, and what is compiled, is not. `values(model)` are
    the settings that are tried, `TRIED` of them. `needs` is the package that it imports, `install` the line that gets
    it. `bytes_needed(rows)` is what it holds at least; `why_not(rows)` says why it cannot train these rows.
    `prepare(rows)` is called before the clock starts: it makes what stands in memory for this library as `Rows` do for
    all, and keeps it, so that the same rows are prepared once.
    """

    name: str
    side: str
    models: tuple[str, ...]
    values: Tried
    steps: Callable[[Rows, Value], Iterator[Scorer]] | None = None
    refit: Callable[[Rows, Value, int], tuple[Scorer, bool]] | None = None
    needs: str = ""
    install: str = ""
    bytes_needed: Callable[[Rows], int] = lambda rows: 0
    why_not: Callable[[Rows], str] = lambda rows: ""
    prepare: Callable[[Rows], Any] = lambda rows: None
    is_dense: bool = False
    """Whether it is the dense baseline of ours."""

    def __post_init__(self) -> None:
        """Raise BenchError unless it has either `steps` or `refit`, and ten settings for each model."""
        if (self.steps is None) == (self.refit is None):
            raise BenchError(f"The candidate {self.name} has either steps or refit.")
        for model in self.models:
            if (tried := len(self.values(model))) != TRIED:
                raise BenchError(f"The candidate {self.name} tries {tried} settings; all try {TRIED}.")

    @property
    def unavailable(self) -> str:
        """Reason why its package is missing here, with the install line; "" if it is available. Nothing is imported."""
        return why_not_installed(self.needs, self.install)

    def is_at_end(self, model: str, value: Value) -> bool:
        """Return whether a value of the setting is the smallest or largest tried, so that better ones may lie beyond.

        Only axes with three or more values, all else being equal, count.
        """
        return any(_is_end(name, value, self.values(model)) for name in value)


def _is_end(name: str, value: Value, tried: list[dict[str, Any]]) -> bool:
    """Return whether `value[name]` is the smallest or largest of three or more tried values, all else being equal."""
    alike = {one[name] for one in tried if name in one and {**one, name: value[name]} == value}
    return len(alike) > 2 and value[name] in (min(alike), max(alike))


def one_number(rows: Rows) -> str:
    """Return the reason why a candidate for one output cannot train rows with several, "" if they have one."""
    return "" if rows.width == 1 else f"It has one number a row; the case has {rows.width}."


_candidates: Registry[Candidate] = Registry("candidate", ("benchmarks.fit.candidates",), BenchError)
register, names, get = _candidates.register, _candidates.names, _candidates.get


def list_candidates(model: str, only: tuple[str, ...] = ()) -> list[Candidate]:
    """Return the candidates that train a model, this project's first; with `only` those of these names.

    Raises BenchError if none trains the model or a name is unknown.
    """
    able = sorted((one for one in map(get, names()) if model in one.models), key=_sort_key)
    if not able:
        known = ", ".join(sorted({model for name in names() for model in get(name).models}))
        raise BenchError(f"No candidate trains the model {model} here; models are: {known}.")
    for name in only:
        if name not in [one.name for one in able]:
            known = "; ".join(one.name for one in able)
            raise BenchError(f"No candidate {name!r} trains the model {model}; there is: {known}.")
    return [one for one in able if not only or one.name in only]


def _sort_key(candidate: Candidate) -> tuple[bool, bool, str]:
    """Return the sort key of a candidate: this project's first, sparse before dense, then by name."""
    return candidate.side != "project", candidate.is_dense, candidate.name


def origin(candidate: Candidate) -> str:
    """Return the name of the module that registered the candidate."""
    return _candidates.origin(candidate.name)
