"""The module: a graph with its parameters, trained and asked batch by batch."""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike

from workbench import formats, ops
from workbench.data.batches.feed import Batch, Feed
from workbench.executor.binding import zeros
from workbench.graph import Graph
from workbench.kvstore import LocalStore, Store, caught_up
from workbench.metrics import Accumulator
from workbench.module import checkpoint, starting, training
from workbench.module import worker as module_worker
from workbench.module.checkpoint import Layout, Position, Prepared
from workbench.module.initialisers import ModuleError
from workbench.module.worker import Worker
from workbench.optimizers import Updater

SLICES = ("mean", "sum")
SHARES = ("batches", "rows")


@final
class Module:
    """A graph whose arguments are data, labels and parameters: all that are neither data nor labels.

    Calls come in this order: `bind`, `initialise`, `set_optimizer`, then `fit` (`workbench.module.training`) or
    `forward`, `backward`, `update` by hand; `score` and `predict` need no optimizer. One that comes too early is a
    `ModuleError` that says what to call first. Parameters named in `fixed` are not trained.

    With `workers` above 1, or a `store`, parameters live in the store: every batch is cut into as many slices, every
    worker, one after the other, pulls the rows that its slice reads and pushes its gradients, which are summed. Outputs
    of one number, such as a loss, are taken for means over rows with `slices="mean"`, so that the slices count by their
    rows, and for sums with "sum"; output layers and outputs with a row for each sample need no such choice.

    Of several trainers on one store each takes its slices of batches that all of them are given, with
    `share="batches"`; with "rows" each is given batches of rows of its own, all as high as those of the others.

    `prediction` is the place of the output that is scored and predicted, `target` the label it is compared with.
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

    def __repr__(self) -> str:
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
        """Allocate for batches like the example: a batch, or what gives batches; returns the module.

        Shapes of parameters are those declared in the graph. `dtype` is the type of those that declare none, as a rule
        that of the first data of a floating-point type. Data and labels keep the formats and types of the example, or
        with `convert` are turned into those that the graph declares, batch by batch. `grad_formats` is as in
        `executor.bind`. A module is bound once; batches with other numbers of rows need no second time.
        """
        if self.workers:
            raise ModuleError("This module is bound already; batches with other numbers of rows need no binding anew.")
        batch = next(example.epoch(0)) if isinstance(example, Feed) else example
        arrays = self.layout.arrays(batch)
        known = self.layout.known(arrays, dtype, convert)
        facts = self.layout.symbol.infer(**known)
        self.per_row = self.layout.per_row(known)
        row_reads = module_worker.find(self.layout.symbol, facts.facts, list(arrays))
        options: dict[str, Any] = {"formats": known["formats"], "grad_formats": grad_formats, "convert": convert}
        options["grad_req"] = dict.fromkeys(self.trained, "write")
        for _ in range(self.count):
            weights = {name: zeros(facts.arguments[name]) for name in self.layout.parameters}
            self.workers.append(Worker(self.layout.symbol, arrays, weights, row_reads, **options))
        return self

    def set_optimizer(self, optimizer: str | Updater, **settings: Any) -> "Module":
        """Train by an optimizer: an `Updater`, or the name of one with its settings; returns the module.

        Multipliers are those that the variables declare. `rescale` is 1 unless it is given: losses that are means over
        rows need no other, output layers, whose gradients are sums over rows, 1 / rows of a batch.
        """
        self._need("initialised", "initialise(...)")
        if not isinstance(optimizer, Updater):
            optimizer = Updater(optimizer, **({"multipliers": self.layout.multipliers(self.trained)} | settings))
        elif settings:
            raise ModuleError(f"The optimizer is made already; its settings cannot be given here: {sorted(settings)}.")
        self._use(optimizer)
        return self

    def _use(self, optimizer: Updater) -> None:
        optimizer.check_names(self.trained)
        self.updater = optimizer
        if self.store is not None:
            self.store.set_optimizer(optimizer)

    @property
    def lags(self) -> bool:
        """Whether rows are behind until they are read."""
        return self.updater is not None and self.updater.lazy == "exact"

    def forward(self, batch: Batch | Prepared, training: bool = True) -> list[Any]:
        """The outputs of a batch, of all its rows; a next call overwrites them. `training` keeps what `backward` reads.

        Rows that the batch reads are pulled from the store, or brought up to date, before. Without training the batch
        may have no labels: outputs that are computed from labels, such as losses, are then None.
        """
        self._need("initialised", "initialise(...)")
        ready = batch if isinstance(batch, Prepared) else self.prepare(batch, plans=False, whole=not training)
        lacks = bool(self.layout.label_names) and not ready.batch.labels
        if training and lacks:
            names = ", ".join(self.layout.label_names)
            raise ModuleError(f"Training reads the labels {names}; the batch has none. forward(..., training=False).")
        return self.run(ready, training, self.layout.without_labels if lacks else None)

    def run(self, ready: Prepared, training: bool, wanted: Sequence[int] | None = None) -> list[Any]:
        """`forward` of a batch that is prepared; without training the outputs `wanted`, by place, the others None."""
        if self.store is not None or self.lags:
            for worker, part, plans in zip(self.workers, ready.parts, ready.plans, strict=False):
                self._refresh(worker, part, plans)
        outputs = [
            worker.forward(part, training, plans, wanted, ready.is_own)
            for worker, part, plans in zip(self.workers, ready.parts, ready.plans, strict=False)
        ]
        self.ready, self.state = ready, "forward" if training else "idle"
        self.outputs = outputs[0] if len(outputs) == 1 else self._together(outputs)
        return self.outputs

    def _refresh(self, worker: Worker, part: Mapping[str, Any], plans: Mapping[str, Any] | None) -> None:
        """Bring what the slice reads up to date."""
        if self.store is not None:
            worker.pull(self.store, part, plans, self.version)
        elif self.updater is not None and self.updater.lazy == "exact":
            rows = {name: worker.rows_read(name, part, plans) for name in self.trained}
            caught_up(self.updater, worker.weights, rows)

    def _together(self, outputs: list[list[Any]]) -> list[Any]:
        """Outputs of all workers: rows one after the other, numbers as `slices` says."""
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
        """The gradients of the last `forward(training=True)`: for each worker a dict by parameter."""
        if self.state != "forward":
            raise ModuleError("backward needs what a forward pass leaves; call forward(batch, training=True) first.")
        self.state = "backward"
        self.gradients = [
            worker.backward(self._heads(worker, share))
            for worker, share in zip(self.workers, self.ready.shares, strict=False)
        ]
        return self.gradients

    def _heads(self, worker: Worker, share: float) -> list[Any] | None:
        """Head gradients: where the slices' numbers are means they count by their rows."""
        if self.slices == "sum" or share == 1:
            return None
        outputs = worker.executor.outputs.values()
        return [
            None if per_row else np.full(output.shape, share, output.dtype)
            for output, per_row in zip(outputs, self.per_row, strict=True)
        ]

    def update(self) -> None:
        """Change the parameters by the gradients of the last `backward`: one step of the optimizer. The batch goes."""
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
        """Copies of all parameters by name, in their formats, every row up to date. Training is not touched by it."""
        self._need("initialised", "initialise(...)")
        weights = self.raw_weights()
        if self.updater is not None and self.updater.lazy == "exact":
            another = Updater.from_settings(self.updater.settings)
            another.load_state_dict(self.optimizer_state())
            another.catch_up({name: weights[name] for name in self.trained})
        return weights

    def optimizer_state(self) -> dict[str, Any]:
        """The state of the optimizer that is set, wherever it is kept."""
        if self.store is not None:
            return self.store.optimizer_state()
        if self.updater is None:
            raise ModuleError("The module has no optimizer; call set_optimizer('sgd', learning_rate=0.1) first.")
        return self.updater.state_dict()

    def raw_weights(self) -> dict[str, Any]:
        """Copies of all parameters as training holds them, where rows may still have to catch up."""
        if self.store is not None:
            return {name: self.store.pull(name) for name in self.layout.parameters}
        return {name: formats.copy(weight) for name, weight in self.workers[0].weights.items()}

    def _need(self, state: str, call: str) -> None:
        reached = self.initialised if state == "initialised" else bool(self.workers)
        if not reached:
            raise ModuleError(f"The module is not {state} yet; call {call} first.")

    initialise = starting.initialise
    prepare, fit, score = training.prepare, training.fit, training.score
    predict, predictions = training.predict, training.predictions
    save, restore = checkpoint.save, checkpoint.restore
