"""Modules: a graph with parameters and an optimizer, trained over epochs, checkpointed, resumed, scored and applied.

>>> import numpy as np
>>> from workbench import data, graph, ops
>>> x, label = graph.variable("data", format="csr"), graph.variable("label")
>>> weight = graph.variable("weight", shape=(20, 3), init="zeros")
>>> scores = ops.dot(x, weight)
>>> made = data.load("uniform", rows=90, features=20, density=0.3, classes=3, cache=False)
>>> batches = data.Batches(made.x, made.y, rows=30, shuffle=True)
>>> module = Module(ops.softmax_output(scores, label), label_names=["label"])
>>> module = module.bind(batches).initialise(seed=0).set_optimizer("sgd", learning_rate=0.5, rescale=1 / 30)
>>> [round(epoch.metric, 1) for epoch in module.fit(batches, epochs=3, metric="accuracy")]
[0.4, 0.8, 0.8]
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from workbench import formats, ops
from workbench.data.batches.feed import Batch, Feed
from workbench.executor.binding import zeros
from workbench.formats import RowSparse
from workbench.graph import Graph
from workbench.kvstore import LazyRandomRows, LocalStore, Store, caught_up
from workbench.metrics import Accumulator
from workbench.module import checkpoint, initialisers, training
from workbench.module.checkpoint import Layout, Position, Prepared, load_model
from workbench.module.initialisers import ModuleError, Spec
from workbench.module.training import BatchEnd, EpochEnd, StopTraining, Worker
from workbench.optimizers import Updater

__all__ = ["BatchEnd", "EpochEnd", "Module", "ModuleError", "Position", "StopTraining", "load_model"]


def initialise(
    self: "Module", default: Spec = "uniform", seed: int = 0, values: Mapping[str, Any] | None = None
) -> "Module":
    """Set the initial values of all parameters: `values`, else the `init` of the variable, else `default`.

    Parameters
    ----------
    default : str, tuple or float, default "uniform"
        Initialiser, as in `workbench.module.initialisers`.
    seed : int, default 0
        Seed; each parameter is drawn from the seed and its name alone.
    values : mapping of str to array, optional
        Values of some parameters, of any format. A `kvstore.LazyRandomRows` is passed to the store, which may generate
        rows when they are first used. row_sparse parameters that are not in `values` store all rows.

    Returns
    -------
    Module
        The module itself.

    Raises
    ------
    ModuleError
        If the module is not bound or a value does not fit.
    """
    self._need("bound", "bind(batches)")
    if self.initialised:
        raise ModuleError("The module is initialised already; make another one to start over.")
    values = dict(values or {})
    if unknown := sorted(set(values) - set(self.layout.parameters)):
        known = ", ".join(self.layout.parameters)
        raise ModuleError(f"values has {', '.join(unknown)}; the parameters are {known}.")
    variables = self.layout.symbol.variables()
    specs = {name: variables[name].attributes["init"] for name in self.layout.parameters}
    specs = {name: default if spec is None else spec for name, spec in specs.items() if name not in values}
    initialisers.check_specs(specs)
    for name, weight in self.workers[0].weights.items():
        start = values[name] if name in values else _initial_value(specs[name], name, weight, seed)
        if self.store is None or not isinstance(start, LazyRandomRows):
            _put(name, weight, start.whole() if isinstance(start, LazyRandomRows) else start)
    if self.store is not None:
        for name, weight in self.workers[0].weights.items():
            self.store.init(name, values[name] if isinstance(values.get(name), LazyRandomRows) else weight)
        self.version += 1
    self.initialised = True
    return self


def _put(name: str, weight: Any, value: Any) -> None:
    """Copy `value` into the weight `name`, in place; ModuleError if the shape differs."""
    if tuple(value.shape) != weight.shape:
        raise ModuleError(f"The value of {name} has the shape {tuple(value.shape)}; the parameter's is {weight.shape}.")
    formats.assign(weight, value)


def _initial_value(spec: Spec, name: str, weight: Any, seed: int) -> Any:
    """Return random initial values of the weight `name`, in its format, from an initialiser and seed."""
    values = initialisers.draw(spec, name, weight.shape, weight.dtype, seed)
    return RowSparse(values, np.arange(len(values)), weight.shape) if isinstance(weight, RowSparse) else values


SLICES = ("mean", "sum")
SHARES = ("batches", "rows")


@final
class Module:
    """A graph with parameters: all arguments that are neither data nor labels.

    Call `bind`, `initialise` and `set_optimizer`, then `fit`, or `forward`, `backward` and `update` yourself; `score`
    and `predict` need no optimizer. A call that comes too early raises ModuleError, which says what to call first.

    Parameters
    ----------
    symbol : Graph
        The graph.
    data_names, label_names : sequence of str
        Arguments that batches provide.
    fixed : sequence of str
        Parameters that are not trained.
    workers : int, default 1
        Slices that every batch is cut into; with more than one, parameters live in the store, each worker pulls the
        rows
        that it reads and pushes its gradients, which are summed.
    store : Store, optional
        Store of the parameters; a `LocalStore` if `workers` > 1.
    slices : {"mean", "sum"}, default "mean"
        Whether scalar outputs such as a loss are means or sums over rows.
    share : {"batches", "rows"}, default "batches"
        With several trainers on one store: whether all are given the same batches, of which each takes its slices, or
        each its own rows.
    prediction : int, default 0
        Position of the output that is scored and predicted.
    target : str, optional
        Label that the prediction is compared with; the first one if omitted.

    Raises
    ------
    ModuleError
        If a name or value is invalid.

    Examples
    --------
    >>> from workbench import graph
    >>> x, w = graph.variable("data", shape=(None, 2)), graph.variable("w", shape=(2, 1))
    >>> Module(x @ w, label_names=[]).layout.parameters
    ['w']
    """

    def __init__(
        self,
        symbol: Graph,
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] = ("label",),
        *,
        fixed: Sequence[str] = (),
        workers: int = 1,
        store: Store | None = None,
        slices: str = "mean",
        share: str = "batches",
        prediction: int = 0,
        target: str | None = None,
    ) -> None:
        """Validate names and settings; memory is allocated by `bind`. Raises ModuleError."""
        self.layout = Layout(symbol, tuple(data_names), tuple(label_names), prediction, target)
        if unknown := [name for name in fixed if name not in self.layout.parameters]:
            known = ", ".join(self.layout.parameters)
            raise ModuleError(f"fixed has {', '.join(unknown)}; the parameters are {known}.")
        if workers < 1:
            raise ModuleError(f"workers is {workers}; it is the number of slices of a batch, 1 or more.")
        if slices not in SLICES:
            raise ModuleError(f"slices is {slices!r}; it is one of {', '.join(SLICES)}.")
        if share not in SHARES:
            raise ModuleError(f"share is {share!r}; it is one of {', '.join(SHARES)}.")
        self.trained = [name for name in self.layout.parameters if name not in fixed]
        self.count, self.slices, self.share = workers, slices, share
        self.store: Store | None = LocalStore() if store is None and workers > 1 else store
        self.workers: list[Worker] = []
        self.updater: Updater | None = None
        self.metric: Accumulator | None = None
        self.position = Position(0, 0)
        self.trained_with: dict[str, Any] | None = None
        self.gathered: dict[str, np.ndarray] | None = None
        self.initialised, self.state, self.version = False, "idle", 0
        self.following: Prepared | None = None
        """The batch after the one that is trained on, whose rows travel meanwhile."""

    def __repr__(self) -> str:
        """Return parameters, state and epoch as one line."""
        state = "initialised" if self.initialised else "bound" if self.workers else "not bound"
        trained = f", {self.updater!r}" if self.updater is not None else ""
        return f"<Module {', '.join(self.layout.parameters)}: {state}, epoch {self.position.epoch}{trained}>"

    def bind(
        self,
        example: Feed | Batch,
        *,
        dtype: DTypeLike | None = None,
        grad_formats: Mapping[str, str] | None = None,
        convert: bool = False,
    ) -> "Module":
        """Allocate memory for batches like an example. A module is bound once; the number of rows may differ between
        batches.

        Parameters
        ----------
        example : Feed or Batch
            A batch, or an iterable of batches of which the first is used.
        dtype : dtype_like, optional
            dtype of parameters that declare none; that of the first floating-point data if omitted.
        grad_formats : mapping of str to str, optional
            Formats of gradients by parameter, as in `executor.bind`.
        convert : bool, default False
            Convert data and labels to the formats and dtypes that the graph declares.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        ModuleError
            If the module is bound already or the batch does not fit.

        Examples
        --------
        See `workbench.module`.
        """
        if self.workers:
            raise ModuleError("This module is bound already; batches with other numbers of rows need no binding anew.")
        batch = next(example.epoch(0)) if isinstance(example, Feed) else example
        arrays = self.layout.arrays(batch)
        known = self.layout.known(arrays, dtype, convert)
        facts = self.layout.symbol.infer(**known)
        self.per_row = self.layout.per_row(known)
        row_reads = training.find(self.layout.symbol, facts.facts, list(arrays))
        options: dict[str, Any] = {"formats": known["formats"], "grad_formats": grad_formats, "convert": convert}
        options["grad_req"] = dict.fromkeys(self.trained, "write")
        for _ in range(self.count):
            weights = {name: zeros(facts.arguments[name]) for name in self.layout.parameters}
            self.workers.append(Worker(self.layout.symbol, arrays, weights, row_reads, **options))
        return self

    def set_optimizer(self, optimizer: str | Updater, **settings: Any) -> "Module":
        """Train with an optimizer.

        Parameters
        ----------
        optimizer : str or Updater
            Name of an optimizer, or an updater.
        **settings : Any
            Arguments of `Updater`. `rescale` is 1 by default: losses that are means over rows need no other; output
            layers,
            whose gradients are sums over rows, need 1 / rows of a batch. Multipliers are as the variables
            declare them.

        Returns
        -------
        Module
            The module itself.

        Raises
        ------
        ModuleError
            If the module is not initialised, or settings are given together with an updater.

        Examples
        --------
        See `workbench.module`.
        """
        self._need("initialised", "initialise(...)")
        if not isinstance(optimizer, Updater):
            optimizer = Updater(optimizer, **({"multipliers": self.layout.multipliers(self.trained)} | settings))
        elif settings:
            raise ModuleError(f"The optimizer is made already; its settings cannot be given here: {sorted(settings)}.")
        self._use(optimizer)
        return self

    def _use(self, optimizer: Updater) -> None:
        """Store an optimizer in the module and in its parameter store; OptimizerError if its names do not fit."""
        optimizer.check_names(self.trained)
        self.updater = optimizer
        if self.store is not None:
            self.store.set_optimizer(optimizer)

    @property
    def lags(self) -> bool:
        """Whether rows of parameters may lack updates until they are read (lazy="exact")."""
        return self.updater is not None and self.updater.lazy == "exact"

    def forward(self, batch: Batch | Prepared, training: bool = True) -> list[Any]:
        """Compute the outputs of a batch.

        Parameters
        ----------
        batch : Batch or Prepared
            The batch. Rows of parameters that it reads are pulled from the store, or brought up to date, before.
        training : bool, default True
            Keep what `backward` reads. Without training labels may be missing; outputs computed from them are then
            None.

        Returns
        -------
        list of array
            Outputs of all rows; overwritten by the next call.

        Raises
        ------
        ModuleError
            If the module is not initialised or labels are missing.

        Examples
        --------
        See `workbench.module`.
        """
        self._need("initialised", "initialise(...)")
        ready = batch if isinstance(batch, Prepared) else self.prepare(batch, plans=False, whole=not training)
        lacks = bool(self.layout.label_names) and not ready.batch.labels
        if training and lacks:
            names = ", ".join(self.layout.label_names)
            raise ModuleError(f"Training reads the labels {names}; the batch has none. forward(..., training=False).")
        return self.run(ready, training, self.layout.without_labels if lacks else None)

    def run(self, ready: Prepared, training: bool, wanted: Sequence[int] | None = None) -> list[Any]:
        """Return the outputs of a prepared batch, those at positions `wanted` only (others None) if that is not None.

        Rows that the batch reads are pulled or brought up to date first. `training` keeps what `backward` needs.
        """
        if self.store is not None or self.lags:
            for worker, part, plans in zip(self.workers, ready.parts, ready.plans, strict=False):
                self._refresh(worker, part, plans)
        if self.following is not None and self.store is not None and training:
            following, self.following = self.following, None
            self.workers[0].announce(self.store, following.parts[0], following.plans[0])
        outputs = [
            worker.forward(part, training, plans, wanted, ready.is_own)
            for worker, part, plans in zip(self.workers, ready.parts, ready.plans, strict=False)
        ]
        self.advance()
        self.ready, self.state = ready, "forward" if training else "idle"
        self.outputs = outputs[0] if len(outputs) == 1 else self._together(outputs)
        return self.outputs

    def _refresh(self, worker: Worker, part: Mapping[str, Any], plans: Mapping[str, Any] | None) -> None:
        """Pull the rows that a slice reads from the store, or apply their deferred updates, in place."""
        if self.store is not None:
            worker.pull(self.store, part, plans, self.version)
        elif self.updater is not None and self.updater.lazy == "exact":
            rows = {name: worker.rows_read(name, part, plans) for name in self.trained}
            caught_up(self.updater, worker.weights, rows)

    def _together(self, outputs: list[list[Any]]) -> list[Any]:
        """Return the outputs of all workers joined: rows concatenated, scalars averaged or summed as `slices` says."""
        results: list[Any] = []
        for place, per_row in enumerate(self.per_row):
            parts = [output[place] for output in outputs]
            if parts[0] is None:
                results.append(None)
            elif per_row:
                dense = all(isinstance(part, np.ndarray) for part in parts)
                results.append(np.concatenate(parts) if dense else ops.get("concat")(*parts, axis=0))
            elif self.slices == "mean":
                results.append(sum(part * share for part, share in zip(parts, self.ready.shares, strict=True)))
            else:
                results.append(sum(parts))
        return results

    def backward(self) -> list[dict[str, Any]]:
        """Compute the gradients of the last `forward(training=True)`.

        Returns
        -------
        list of dict
            For each worker the gradients by parameter; overwritten by the next call.

        Raises
        ------
        ModuleError
            If there was no training forward pass.

        Examples
        --------
        See `workbench.module`.
        """
        if self.state != "forward":
            raise ModuleError("backward needs what a forward pass leaves; call forward(batch, training=True) first.")
        self.state = "backward"
        self.gradients = [
            worker.backward(self._heads(worker, share))
            for worker, share in zip(self.workers, self.ready.shares, strict=False)
        ]
        self.advance()
        return self.gradients

    def advance(self) -> None:
        """Let rows of the next batch go on their way, if the store was asked for them."""
        if self.store is not None:
            self.store.advance()

    def _heads(self, worker: Worker, share: float) -> list[Any] | None:
        """Return the gradients of a worker's outputs: its share of rows for scalars that are means; None for ones."""
        if self.slices == "sum" or share == 1:
            return None
        outputs = worker.executor.outputs.values()
        return [
            None if per_row else np.full(output.shape, share, output.dtype)
            for output, per_row in zip(outputs, self.per_row, strict=True)
        ]

    def update(self) -> None:
        """Do one step of the optimizer with the gradients of the last `backward`, and release the batch.

        Raises
        ------
        ModuleError
            If there is no optimizer or there are no gradients.

        Examples
        --------
        See `workbench.module`.
        """
        if self.updater is None:
            raise ModuleError("update needs an optimizer; call set_optimizer('sgd', learning_rate=0.1) first.")
        if self.state != "backward":
            raise ModuleError("update needs gradients, and uses them up; call backward() first.")
        self.state = "idle"
        if self.store is None:
            self.updater.update(self.workers[0].weights, self.gradients[0])
        else:
            self.store.push_all({name: [gradients[name] for gradients in self.gradients] for name in self.trained})
            self.version += 1
        for worker, part in zip(self.workers, self.ready.parts, strict=False):
            worker.executor.release(*part)
        del self.ready

    def weights(self) -> dict[str, Any]:
        """Copy all parameters, every row up to date. Training is not affected.

        Returns
        -------
        dict of str to array
            Parameters by name, in their formats.

        Raises
        ------
        ModuleError
            If the module is not initialised.

        Examples
        --------
        See `workbench.module`.
        """
        self._need("initialised", "initialise(...)")
        weights = self.raw_weights()
        if self.updater is not None and self.updater.lazy == "exact":
            another = Updater.from_settings(self.updater.settings)
            another.load_state_dict(self.optimizer_state())
            another.catch_up({name: weights[name] for name in self.trained})
        return weights

    def optimizer_state(self) -> dict[str, Any]:
        """Return the optimizer's state by name, from the store if there is one; ModuleError without an optimizer."""
        if self.store is not None:
            return self.store.optimizer_state()
        if self.updater is None:
            raise ModuleError("The module has no optimizer; call set_optimizer('sgd', learning_rate=0.1) first.")
        return self.updater.state_dict()

    def raw_weights(self) -> dict[str, Any]:
        """Return copies of all parameters as training holds them, without deferred updates."""
        if self.store is not None:
            return {name: self.store.pull(name) for name in self.layout.parameters}
        return {name: formats.copy(weight) for name, weight in self.workers[0].weights.items()}

    def _need(self, state: str, call: str) -> None:
        """Raise ModuleError, saying to call `call`, unless the module is "bound" or "initialised", as `state` says."""
        reached = self.initialised if state == "initialised" else bool(self.workers)
        if not reached:
            raise ModuleError(f"The module is not {state} yet; call {call} first.")

    initialise = initialise
    prepare, fit, score = training.prepare, training.fit, training.score
    predict, predictions = training.predict, training.predictions
    save, restore = checkpoint.save, checkpoint.restore
