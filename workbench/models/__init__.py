"""Models by name, one file each.

How to add one: copy `logistic.py`, or `factorization_machine.py` for a model that is not only a product X @ W;
`of_classes` makes a classifier.

A file states everything about a model: its options, parameters and their initial values, the graph of its scores, the
loss, the type of target made from labels, what else it needs of the data, its natural width and its quality metric.
Training, checks, sweeps, memory prediction, panel and report are derived from that.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.registry import Registry
from workbench import ops
from workbench.graph import Symbol, variable
from workbench.metrics import accuracy, f1_macro
from workbench.models.nodes import ModelError, Option, of_model

if TYPE_CHECKING:
    from workbench.models.patterns import Moves
    from workbench.models.scaling import Scaling

NEEDS = {"fields": "columns in two fields, users and items, as ratings have", "graph": "a graph of its rows"}
"""What a model may need of the data besides X and labels, in words."""


@dataclass(frozen=True)
class Parameter:
    """A trained array: its name in the graph, its shape and initial values.

    Rows of a `touched` parameter, D of them, belong to features: a sparse batch updates the rows of its entries only,
    and the gradient may be row_sparse. If the gradient is a `product` X.T @ g it may be fused with the update. Initial
    values are normal with standard deviation `deviation` (0: zeros); `glorot` and `he` compute usual ones.

    A parameter with a `matrix` (D, N) holds the values of a weight matrix at the positions of its pattern, `shape` of
    them. The graph has the whole matrix: `held` as csr, as masked (dense with zeros elsewhere), or as auto (masked if X
    is dense, else csr).
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
        """Return whether its matrix is held dense with a mask when X is in `format`; False without a matrix."""
        is_dense = self.held == "masked" or (self.held == "auto" and format == "dense")
        return self.matrix is not None and is_dense

    def gradient_format(self, asked: str) -> str:
        """Return the gradient format nearest to the requested one: "dense", "row_sparse" or "fused".

        Parameters that sparse input does not select rows of, and values at a pattern, have dense gradients.
        """
        if not self.touched or self.matrix:
            return "dense"
        return "row_sparse" if asked == "fused" and not self.product else asked


@dataclass(frozen=True)
class Input:
    """An array that the graph of scores takes besides X and parameters, by its name; batches have it in `others`.

    All its lengths may change between batches; `shape` and `nnz` describe the largest. It is in `format` if X is
    sparse, else dense.
    """

    name: str
    shape: tuple[int, ...]
    format: str = "dense"
    nnz: int = 0


def glorot(inputs: int, outputs: int) -> float:
    """Return the standard deviation sqrt(2 / (inputs + outputs)) for linear layers (Glorot and Bengio 2010).

    Parameters
    ----------
    inputs, outputs : int
        Numbers of inputs and outputs of the layer.

    Returns
    -------
    float
        Standard deviation.

    Examples
    --------
    >>> glorot(1, 1)
    1.0
    """
    return math.sqrt(2 / (inputs + outputs))


def he(inputs: int) -> float:
    """Return the standard deviation sqrt(2 / inputs) for layers of rectified units (He et al. 2015).

    Parameters
    ----------
    inputs : int
        Number of inputs of the layer.

    Returns
    -------
    float
        Standard deviation.

    Examples
    --------
    >>> he(2)
    1.0
    """
    return math.sqrt(2 / inputs)


@dataclass(frozen=True, eq=False)
class Given:
    """Sizes and options of a model: D `features`, N `width`, `options` by name, and `facts` about the data.

    `facts["fields"]` has the numbers of columns of consecutive fields; `facts["graph"]` the rows of the data as nodes
    of a graph (`nodes.Nodes`).
    """

    features: int
    width: int
    options: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the graph among the facts; 0 without one."""
        return self.facts["graph"].nbytes if "graph" in self.facts else 0

    def on_columns(self, columns: np.ndarray) -> "Given":
        """Return the same for X with only these columns (sorted int [U]); sizes of fields are recounted."""
        facts = dict(self.facts)
        if "fields" in facts:
            of_field = np.searchsorted(np.cumsum(facts["fields"]), columns, side="right")
            facts["fields"] = np.bincount(of_field, minlength=len(facts["fields"])).tolist()
        return Given(len(columns), self.width, self.options, facts)


def product(x: Symbol, engine: str, given: Given) -> Symbol:
    """Return the symbol of the scores X @ W of a linear model; `engine` is the product's backend.

    W is the variable "w"; `given` is not used.
    """
    return ops.get("dot")(x, variable("w"), engine=engine)


def weights(given: Given) -> tuple[Parameter, ...]:
    """Return the parameter w [D, N] of a linear model."""
    return (Parameter("w", (given.features, given.width), touched=True, product=True),)


Complete = Callable[[Any, Any], Any]
"""`complete(batch, generator)`: a `data.Batch` with X, and what the model reads in addition to it, as it is trained
on."""


@dataclass(frozen=True)
class Model:
    """A model.

    `scores(x, engine, given)` builds the symbol of its scores [R, outputs] from that of X [R, D]. `parameters(given)`
    are its trained arrays. `loss` names the kernel of the mean loss and of the gradient of the scores; `target` is the
    type of target, as in `data.targets`. `outputs` is the number of scores per row if that is not the width N. `width`
    is the natural width if labels do not determine it; `widths` describes the allowed ones and `allows` decides.
    `quality(scores, targets)` is larger for better models and called `quality_name`; `measures` are further metrics by
    name. `predicts` describes the scores. `options` are its own options by name. `needs` names what it needs of the
    data (`NEEDS`). `has_kinks` states that the gradient is discontinuous, as of rectified units: there float32 and
    float64 may differ.

    `sampler(given, x)` returns `complete(batch, generator)`, which completes a batch before a step; `draws(given)` says
    whether it reads the generator. `inputs(given, rows)` are the inputs of the graph besides X and parameters, in
    `others` of a completed batch. `rows_apart` is False if the scores of a row depend on other rows: a batch is then
    never cut, X has about `reads(given, rows)` rows, and predictions use batches completed without a generator.

    A ranking model has no intercept (`has_intercept`), and `rank(given, arrays)` returns `scores_of(users)` over all
    items for ranking metrics. `enter_scaling` and `leave_scaling(arrays, scaling)` convert the parameters in place
    between X as it is and X by `scaling.Scaling`, in which it is trained. `moves(given)` states how patterns of
    parameters change during training. `usual_for` is the task for which it is the usual first choice: regression,
    binary, classes or multilabel labels, or graph, field or implicit data.
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
    moves: "Callable[[Given], Moves] | None" = None
    enter_scaling: "Callable[[Mapping[str, np.ndarray], Scaling], None] | None" = None
    leave_scaling: "Callable[[Mapping[str, np.ndarray], Scaling], None] | None" = None

    @property
    def is_product(self) -> bool:
        """Whether the scores are exactly X @ W, so that it trains on a CUDA device."""
        return self.scores is product

    def resolve(self, options: Mapping[str, Any] | str | None) -> dict[str, Any]:
        """Return all options {name: value} from those given, such as {"hidden": 16}, others at their defaults.

        ModelError if invalid.
        """
        return of_model(self.name, self.options, options)

    def given(
        self,
        features: int,
        width: int,
        options: Mapping[str, Any] | str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> Given:
        """Return the validated sizes, options and the facts that the model needs.

        Raises ModelError for unknown options, or data without a needed fact.
        """
        facts = {name: fact for name, fact in (facts or {}).items() if fact is not None}
        if missing := [name for name in self.needs if name not in facts]:
            raise ModelError(f"The {self.name} model needs data with {NEEDS[missing[0]]}; this data has none.")
        return Given(features, width, self.resolve(options), {name: facts[name] for name in self.needs})

    def trained(self, given: Given, intercept: bool) -> tuple[Parameter, ...]:
        """Return all trained parameters, the intercept b [outputs] last if `intercept`."""
        b = Parameter("b", (self.outputs or given.width,), decays=False)
        return (*self.parameters(given), b) if intercept else self.parameters(given)

    def graph(
        self, given: Given, engine: str = "ours", intercept: bool = False, names: tuple[str, str] = ("x", "y")
    ) -> tuple[Symbol, Symbol]:
        """Return (symbol of the scores, symbol of the mean loss on y); scores include the variable "b" if `intercept`.

        `engine` is the backend of products, `names` are the names of X and y in the graph.
        """
        x, y = map(variable, names)
        scores = self.scores(x, engine, given)
        if intercept:
            scores = ops.get("add")(scores, variable("b"), name="scores")
        return scores, ops.get(f"{self.loss}_loss")(scores, y, name="loss")


_models: Registry[Model] = Registry("model", (__name__,), ModelError, is_named_by_files=True)
register, names, get, unavailable = _models.register, _models.names, _models.get, _models.unavailable


def default_model(task: str) -> str:
    """Return the name of the default model of a task.

    Parameters
    ----------
    task : str
        Type of the labels or of the data.

    Returns
    -------
    str
        Name of the model.

    Raises
    ------
    ModelError
        If the task is unknown; lists the known ones.

    Examples
    --------
    >>> default_model("binary"), default_model("numbers")
    ('logistic', 'linear')
    """
    for name in names():  # files behind the first that fits are not imported
        if task and get(name).usual_for == task:
            return name
    tasks = sorted(model.usual_for for model in map(get, names()) if model.usual_for)
    raise ModelError(f"No default model for task={task!r}. Expected one of: {', '.join(tasks)}.")


# Classifiers: N scores per row, N at least 2, trained by the cross-entropy of their softmax.


def of_classes(name: str, predicts: str, **more: Any) -> Model:
    """Return a softmax classifier.

    `more` are the fields of `Model` besides loss, target, widths and quality metrics.
    """
    return Model(
        name,
        loss="softmax",
        target="classes",
        quality_name="accuracy",
        quality=accuracy,
        measures={"macro-F1": f1_macro},
        widths="width 2 or more",
        allows=lambda width: width >= 2,
        predicts=predicts,
        **more,
    )
