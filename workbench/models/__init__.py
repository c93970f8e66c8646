"""Models by name, one file each. How to add one: copy `logistic.py`, or `factorization_machine.py` for one that is no
product X @ W alone; `classes.py` has what models of classes share.

A file states all that the project knows of a model: its options, its parameters and how they start, the graph of its
scores, the loss, the kind of target that it asks of the labels, what else it needs of the data, its natural width and
its measure of quality. Training, checks, sweeps, the prediction of memory, panel and report follow from that.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernels.registry import Registry
from workbench import ops
from workbench.graph import Symbol, variable
from workbench.models.moving import Moves
from workbench.models.options import ModelError, Option, of_model

NEEDS = {
    "fields": "columns in two fields, users and items, as ratings have",
    "graph": "a graph of its rows",
}
"""What a model may need of the data besides X and labels, in words."""


@dataclass(frozen=True)
class Parameter:
    """A trained array, by its name in the graph, and its shape.

    The rows of a `touched` parameter, D of them, belong to the features: a sparse batch changes those that it has
    entries of, and its gradient may be row_sparse. Where the gradient is a `product` X.T @ slope it may be fused with
    the update too. Starting values are normal with that `deviation`, zeros for 0; `glorot` and `he` name usual ones.

    A parameter with a `matrix` (D, N) is the values of a weight matrix at the places of its pattern, as many as `shape`
    says: of a touched one, the rows of the matrix belong to the features. The graph has the whole matrix, as csr. It is
    `held` as csr, as masked, dense with zeros at all other places, or as auto: masked where X is dense, else csr.
    """

    name: str
    shape: tuple[int, ...]
    touched: bool = False
    product: bool = False
    deviation: float = 0.0
    decays: bool = True
    """Whether weight decay is for it."""
    matrix: tuple[int, int] | None = None
    held: str = "auto"

    def is_masked(self, format: str) -> bool:
        """Whether its matrix is dense with a mask, where X is held in that format."""
        is_dense = self.held == "masked" or (self.held == "auto" and format == "dense")
        return self.matrix is not None and is_dense

    def gradient_format(self, asked: str) -> str:
        """The format of its gradient where `asked` is that of the training: the nearest that there is.

        That of values at a pattern is a number for each of them, whatever the batch touches.
        """
        if not self.touched or self.matrix:
            return "dense"
        return "row_sparse" if asked == "fused" and not self.product else asked


@dataclass(frozen=True)
class Input:
    """An array that the graph of scores takes besides X and parameters, by its name there; batches have it in `others`.

    All its lengths may change from batch to batch; `shape` and `nnz` are about the largest. It is held in `format`
    where X is sparse, and dense where X is.
    """

    name: str
    shape: tuple[int, ...]
    format: str = "dense"
    nnz: int = 0


def glorot(inputs: int, outputs: int) -> float:
    """The deviation that keeps the size of signals and of gradients through a linear layer (Glorot and Bengio 2010)."""
    return math.sqrt(2 / (inputs + outputs))


def he(inputs: int) -> float:
    """The deviation that keeps the size of signals through a layer of rectified units (He et al. 2015)."""
    return math.sqrt(2 / inputs)


@dataclass(frozen=True, eq=False)
class Given:
    """Sizes and options of a model: D `features`, N `width`, `options` by name, and the `facts` of the data.

    `facts["fields"]` is the numbers of columns of each field, which follow one another; `facts["graph"]` the rows of
    the data as nodes of a graph (`nodes.Nodes`).
    """

    features: int
    width: int
    options: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of arrays among the facts: those of the graph."""
        return self.facts["graph"].nbytes if "graph" in self.facts else 0

    def on_columns(self, columns: np.ndarray) -> "Given":
        """The same for X with these columns alone, sorted: int [U]."""
        facts = dict(self.facts)
        if "fields" in facts:
            of_field = np.searchsorted(np.cumsum(facts["fields"]), columns, side="right")
            facts["fields"] = np.bincount(of_field, minlength=len(facts["fields"])).tolist()
        return Given(len(columns), self.width, self.options, facts)


def product(x: Symbol, engine: str, given: Given) -> Symbol:
    """The scores X @ W of a model that is linear in its only parameter w."""
    return ops.get("dot")(x, variable("w"), engine=engine)


def weights(given: Given) -> tuple[Parameter, ...]:
    """The weights w [D, N] of such a model."""
    return (Parameter("w", (given.features, given.width), touched=True, product=True),)


Complete = Callable[[Any, Any], Any]
"""`complete(batch, generator)`: a `data.Batch` with X, and what the model reads beside it, as it is trained on."""


@dataclass(frozen=True)
class Model:
    """One model. `scores(x, engine, given)` builds the symbol of its scores [R, outputs] from that of X [R, D].

    `parameters(given)` are its trained arrays. `loss` names the kernel of the mean loss of the scores on the targets,
    and of its slope; `target` is the kind of target, as `data.targets` makes it. `outputs` is the number of scores a
    row where that is not the width N. `width` is the natural width where the labels do not ask for one. `widths` says
    in words which widths there are, `allows` decides. `quality(scores, targets)` is a number, larger is better, called
    `quality_name`; `measures` are further ones that are shown beside it, by name. `predicts` says in a few words what
    its scores tell. `options` are its own, by name. `needs` names what it needs of the data (`NEEDS`). Where its slope
    jumps, as that of rectified units, it `has_kinks`: at a jump float32 and float64 may stand on different sides.

    The `sampler(given, x)` of a model gives of all rows X trained on what completes a batch before a step,
    `complete(batch, generator)`; `draws(given)` says whether that reads the generator. `inputs(given, rows)` are what
    the graph of its scores takes besides X and parameters, which a completed batch has in `others`. Where the scores of
    a row depend on other rows too, `rows_apart` is False: a batch is never cut to check it, X has other rows than y,
    about `reads(given, rows)`, and predictions are made on batches that were completed without a generator, by all that
    they depend on.

    A model that orders items for users has no intercept (`has_intercept`), which changes no order. Its
    `rank(given, arrays)` gives of its parameters `scores_of(users)`, of all items, on which measures are taken then.
    Where the patterns of its parameters may move, `moves(given)` says how. `usual_for` is the task for which people
    train it first: labels that are numbers, binary, classes or multilabel, or data of a graph, of fields or implicit.
    """

    name: str
    loss: str
    target: str
    quality_name: str
    quality: Callable[[np.ndarray, np.ndarray], float]
    predicts: str = ""
    usual_for: str = ""
    scores: Callable[[Symbol, str, Given], Symbol] = product
    parameters: Callable[[Given], tuple[Parameter, ...]] = weights
    widths: str = "any width from 1"
    allows: Callable[[int], bool] = lambda width: width >= 1
    outputs: int | None = None
    width: int | None = None
    options: Mapping[str, Option] = field(default_factory=dict)
    measures: Mapping[str, Callable[[np.ndarray, np.ndarray], float]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    rows_apart: bool = True
    has_kinks: bool = False
    has_intercept: bool = True
    sampler: Callable[[Given, Any], Complete] | None = None
    draws: Callable[[Given], bool] = lambda given: True
    inputs: Callable[[Given, int], tuple[Input, ...]] = lambda given, rows: ()
    reads: Callable[[Given, int], int] = lambda given, rows: rows
    rank: Callable[[Given, Mapping[str, np.ndarray]], Callable[[np.ndarray], np.ndarray]] | None = None
    moves: Callable[[Given], Moves] | None = None

    @property
    def is_product(self) -> bool:
        """Whether the scores are X @ W and nothing else, which trains on a CUDA device."""
        return self.scores is product

    def resolve(self, text: str | None) -> dict[str, Any]:
        """All options from a line of text, defaults where it names none; what does not fit is a `ModelError`."""
        return of_model(self.name, self.options, text)

    def given(
        self, features: int, width: int, options: str | None = None, facts: Mapping[str, Any] | None = None
    ) -> Given:
        """Check sizes and options; `ModelError` for unknown options, and where the data lacks what the model needs."""
        facts = {name: fact for name, fact in (facts or {}).items() if fact is not None}
        if missing := [name for name in self.needs if name not in facts]:
            raise ModelError(f"The {self.name} model needs data with {NEEDS[missing[0]]}; this data has none.")
        return Given(features, width, self.resolve(options), {name: facts[name] for name in self.needs})

    def trained(self, given: Given, intercept: bool) -> tuple[Parameter, ...]:
        """All parameters, the intercept b [outputs] among them where there is one."""
        b = Parameter("b", (self.outputs or given.width,), decays=False)
        return (*self.parameters(given), b) if intercept else self.parameters(given)

    def graph(
        self, given: Given, engine: str = "ours", intercept: bool = False, names: tuple[str, str] = ("x", "y")
    ) -> tuple[Symbol, Symbol]:
        """The symbols of the scores, plus b where there is an intercept, and of the mean loss on y.

        `names` are those of X and y in the graph.
        """
        x, y = map(variable, names)
        scores = self.scores(x, engine, given)
        if intercept:
            scores = ops.get("add")(scores, variable("b"), name="scores")
        return scores, ops.get(f"{self.loss}_loss")(scores, y, name="loss")


_models: Registry[Model] = Registry("model", (__name__,), ModelError)
register, names, get, unavailable = _models.register, _models.names, _models.get, _models.unavailable


def usual(task: str) -> str:
    """Name of the model that people train first for such a task; a `ModelError` lists the tasks there are.

    >>> usual("binary"), usual("numbers")
    ('logistic', 'linear')
    """
    tasks = {get(name).usual_for: name for name in names() if get(name).usual_for}
    if task not in tasks:
        raise ModelError(f"No model is the usual one for {task!r}; there is one for {', '.join(sorted(tasks))}.")
    return tasks[task]
