"""A configuration of settings as a module on a store, the same on every trainer, and the share of the rows that each
trains on.

Of n rows and W trainers, trainer t has the n // W rows from t (n // W) on, so that all have as many and every step has
batch_rows / W rows of each; up to W - 1 rows are left out. Stored rows are streamed, those of others are never read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from workbench import data, formats, graph, models, ops, optimizers
from workbench.data.shards.shuffling import stack_csr
from workbench.kvstore import LazyRandomRows, Store
from workbench.models import Parameter
from workbench.module import Module
from workbench.sweeps.grid import list_unread_settings, setup_of, why_dropped
from workbench.sweeps.problem import Problem
from workbench.sweeps.spec import Cell, SpecError
from workbench.training.multiple_trainers import multiple_trainers_reason
from workbench.training.setup import LAZY, Setup

DATA, LABEL = "data", "label"


def check(cell: Cell, trainers: int) -> None:
    """Refuse what several trainers cannot train (`SpecError`)."""
    alone = cell.model_copy(update={"trainers": 1})  # on other machines there is room for more than here
    if reason := why_dropped(alone) or multiple_trainers_reason(setup_of(alone), trainers):
        raise SpecError(reason)
    if names := list_unread_settings(cell):
        raise SpecError(f"The data set {cell.dataset} takes no {names[0]}; leave {names[0]} out.")


def shared(problem: Problem, setup: Setup, trainer: int, trainers: int) -> data.Batches | data.StoredBatches:
    """Return the batches of one trainer: batch_rows / trainers rows of its own each."""
    rows = problem.x.shape[0] // trainers
    height = setup.batch_rows // trainers
    if not rows:
        raise data.DataError(f"{problem.x.shape[0]} rows cannot be shared by {trainers} trainers; take fewer of them.")
    first = trainer * rows
    is_stored = isinstance(problem.x, data.StoredRows)
    x = problem.x.between(first, first + rows) if is_stored else problem.x[first : first + rows]
    options = {"shuffle": setup.shuffle, "seed": setup.seed + trainer, "last": setup.last}
    return data.batches_of(x, problem.y[first : first + rows], height, **options)


def joined(problem: Problem, setup: Setup, trainers: int) -> data.Feed:
    """Return the batches of all trainers one after the other in each, for one process that has as many workers."""
    return _Joined([shared(problem, setup, number, trainers) for number in range(trainers)])


@final
class _Joined(data.Feed):
    def __init__(self, feeds: Sequence[data.Batches | data.StoredBatches]) -> None:
        self.feeds = feeds

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[data.Batch]:
        """Yield one batch of each."""
        for parts in zip(*(feed.epoch(number, first) for feed in self.feeds), strict=True):
            labels = np.concatenate([part.labels[LABEL] for part in parts])
            rows = np.concatenate([part.rows_index for part in parts])
            yield data.Batch({DATA: stack_csr([part.data[DATA] for part in parts])}, {LABEL: labels}, rows)

    def count(self, number: int = 0) -> int:
        """Return the number of batches that each has."""
        return self.feeds[0].count(number)

    def settings(self) -> dict[str, int | str | bool]:
        """Return the settings of the first, and how many there are."""
        return {**self.feeds[0].settings(), "feeds": len(self.feeds)}


def module_of(setup: Setup, problem: Problem, store: Store | None, example: data.Feed, workers: int = 1) -> Module:
    """Return the module of a configuration, bound, with first values and optimizer.

    Its outputs are the mean loss and the scores.
    """
    model = models.get(setup.model)
    given = model.given(problem.x.shape[1], problem.width, setup.model_options, problem.facts)
    parameters = model.trained(given, setup.has_intercept)
    scores, loss = model.graph(given, setup.engine, setup.has_intercept, (DATA, LABEL))
    symbol = _declared(graph.group([loss, ops.get("stop_gradient")(scores)]), setup, parameters)
    module = Module(symbol, (DATA,), (LABEL,), store=store, workers=workers, share="rows", prediction=1)
    gradients = {parameter.name: parameter.gradient_format(setup.gradient) for parameter in parameters}
    module.bind(example, dtype=setup.dtype, grad_formats=gradients)
    module.initialise(values={one.name: _start(one, setup, number) for number, one in enumerate(parameters)})
    multipliers = {parameter.name: optimizers.Multiplier(decay=0.0) for parameter in parameters if not parameter.decays}
    options: dict[str, Any] = {"lazy": LAZY[setup.update], "multipliers": multipliers or None, **setup.options}
    return module.set_optimizer(optimizers.Updater(setup.optimizer, **options))


def format_of(parameter: Parameter, setup: Setup) -> str:
    """Return the format of a parameter: by rows where a batch reads and changes the rows of its features alone."""
    is_by_rows = parameter.product and parameter.gradient_format(setup.gradient) == "row_sparse"
    return "row_sparse" if is_by_rows else "dense"


def _declared(symbol: graph.Graph, setup: Setup, parameters: tuple[Parameter, ...]) -> graph.Graph:
    """Return the graph with formats of X and of the parameters, and the shapes of these."""
    facts: dict[str, Mapping[str, Any]] = {
        parameter.name: {"format": format_of(parameter, setup), "shape": list(parameter.shape)}
        for parameter in parameters
    }
    facts[DATA] = {"format": setup.format}
    document = json.loads(symbol.to_json())
    for node in document["nodes"]:
        if node["node"] == "variable":
            node["attributes"] |= facts.get(node["name"], {})
    return graph.from_json(json.dumps(document))


def _start(parameter: Parameter, setup: Setup, number: int) -> Any:
    """Return first values: of rows zeros that nothing holds, or rows that are drawn when touched where the update is
    lazy."""
    by_rows = format_of(parameter, setup) == "row_sparse"
    if not parameter.deviation:
        return formats.zeros(parameter.shape, "row_sparse" if by_rows else "dense", np.dtype(setup.dtype))
    if by_rows:
        drawn = LazyRandomRows(parameter.shape, setup.dtype, "normal", parameter.deviation, setup.seed, parameter.name)
        return drawn if setup.update == "lazy" else drawn.whole()
    generator = np.random.default_rng((setup.seed, number))
    return generator.normal(0.0, parameter.deviation, parameter.shape).astype(setup.dtype)
