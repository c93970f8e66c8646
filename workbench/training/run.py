"""A training on the host: the model's graph bound to parameters, batches prepared for it, and an optimizer.

Its state is named arrays, which `formats.save` writes to a file. `parameter:NAME` is each parameter, a csr matrix if it
has a sparsity pattern. `optimizer:KEY` is the updater's state, `dual` [rows, N] are the dual variables of dual ascent,
and `step` is the number of steps.

>>> import numpy as np
>>> from workbench import data, training
>>> made = data.load("uniform", rows=64, features=32, density=0.1, classes=3, seed=0)
>>> setup = training.Setup(model="pruned_mlp", model_options="hidden=8, pattern=set, every=2", batch_rows=16)
>>> one, other = (training.Run(setup, made.x, made.y, width=3) for _ in range(2))
>>> losses = [event.loss for epoch in range(2) for event in one.epoch(epoch)]
>>> _ = list(other.epoch(0))
>>> resumed = training.Run(setup, made.x, made.y, width=3)
>>> resumed.load_state_dict(other.state_dict())
>>> [event.loss for event in resumed.epoch(1)] == losses[4:]
True
"""

from collections.abc import Generator, Mapping
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, final

import numpy as np
import scipy.sparse

from workbench import data, formats, graph, optimizers
from workbench.data.batches import feed
from workbench.executor import Executor, bind
from workbench.models import Input, Parameter
from workbench.ops import products
from workbench.ops.products import Unsummed, plan_of
from workbench.training.epoch_calls import DualSteps, calls_for
from workbench.training.setup import LAZY, Setup, SetupError
from workbench.training.training import PhaseTimer, Prepared, StepEvent, Training

if TYPE_CHECKING:
    from workbench.models.patterns import Pattern
    from workbench.training.sparse_parameters import SparseParameter


def _of_dual(run: "Run") -> dict[str, np.ndarray]:
    """Return {"dual": array} of dual ascent; empty for other trainings."""
    steps = run.calls.steps if run.calls else None
    return steps.state() if isinstance(steps, DualSteps) else {}


def _step(array: Any) -> int:
    """Return the step count of a saved array; SetupError unless it is int64 [1] and not negative."""
    if not isinstance(array, np.ndarray) or array.shape != (1,) or array.dtype != np.int64 or array[0] < 0:
        raise SetupError(f"The state says that step is {array!r:.80}; it should be a whole number from 0, int64 [1].")
    return int(array[0])


def _checked(run: "Run", parameter: Parameter, array: Any) -> "tuple[Pattern | None, np.ndarray]":
    """Return (pattern or None, values) of a saved parameter; SetupError if format, dtype, shape or entries differ."""
    kind = "csr" if parameter.matrix else "dense"
    format, array = formats.validate(array)
    came = f"{format.name} {array.dtype} {tuple(array.shape)}"
    wanted = f"{kind} {run.dtype} {parameter.matrix or parameter.shape}"
    if parameter.matrix and format.name == "dense" and came != wanted:
        wanted += ": values are saved with their places"
    elif came == wanted and (not parameter.matrix or array.nnz == parameter.shape[0]):
        return _parts(parameter, array) if parameter.matrix else (None, array)
    elif parameter.matrix:
        wanted, came = f"{wanted} of {parameter.shape[0]} entries", f"{came} of {array.nnz}"
    raise SetupError(f"The state has {parameter.name} as {came}; that of this training is {wanted}.")


def _parts(parameter: Parameter, matrix: Any) -> "tuple[Pattern, np.ndarray]":
    """Return (pattern, values) of a saved sparse parameter; SetupError if columns are unsorted or duplicated."""
    from workbench.models.patterns import fixed  # late: few models have such parameters

    assert parameter.matrix is not None
    pattern = fixed(matrix.indptr.copy(), matrix.indices.copy(), parameter.matrix)
    if (np.diff(pattern.keys) <= 0).any():
        raise SetupError(f"The state has {parameter.name} with columns unsorted or twice; call sum_duplicates().")
    return pattern, matrix.data


@final
class Run(Training):
    """A training on the cpu; `arrays` are the parameters by name, `weights` those of a model X @ W [D, N].

    `patterned` holds the parameters with a fixed sparsity pattern. Pattern changes are part of the phase `update`.
    """

    def __init__(self, setup: Setup, x: Any, y: np.ndarray, width: int, facts: Mapping[str, Any] | None = None) -> None:
        """Create parameters, optimizer and compiled calls or executor.

        Raises SetupError or ModelError for what does not fit.
        """
        super().__init__(setup, x, y, width, facts)
        if setup.device != "cpu" or setup.trainers > 1:
            raise SetupError(
                f"Run supports device='cpu' and one trainer; got device={setup.device!r}, trainers={setup.trainers}."
            )
        sparse, others = (
            [parameter for parameter in self.parameters if bool(parameter.matrix) == is_so] for is_so in (True, False)
        )
        self.patterned = self._make_patterned(sparse)
        self.arrays = {other.name: self.start_of(other) for other in others}
        self.arrays |= {name: one.array for name, one in self.patterned.items()}
        self.touched = [parameter.name for parameter in self.parameters if parameter.touched and not parameter.matrix]
        self.y_like = self.targets(y[:0])
        self.reads_others = bool(self.model.inputs(self.given, min(setup.batch_rows, self.batches.total)))
        self.moves = self.model.moves(self.given) if self.model.moves else None
        self.calls = calls_for(self)
        if self.calls is None:
            _ = self.executor  # what is wrong with the graph is told now
        self.last: Prepared | None = None

    def _make_patterned(self, sparse: list[Parameter]) -> "dict[str, SparseParameter]":
        """Return {name: parameter at its initial pattern and values} of the parameters that have a pattern."""
        if not sparse:
            return {}
        from workbench.training.sparse_parameters import make_parameter  # late: few models have such parameters

        return {
            one.name: make_parameter(one, self.setup, self.first_pattern(one), self.start_of(one)) for one in sparse
        }

    def calls_of(self, epoch: int) -> Generator[StepEvent, None, None] | None:
        """Return the step events of epoch `epoch` if it is trained in compiled calls, else None."""
        return self.calls.events(epoch) if self.calls else None

    def events_of_epochs(self, first: int = 0, count: int | None = None) -> Generator[StepEvent, None, None]:
        """Yield the events of `count` epochs from `first` on (None: without end), of short ones several in one."""
        if self.calls is None or not isinstance(self.batches, data.Batches):
            return super().events_of_epochs(first, count)
        return self.calls.events_of_epochs(first, count)

    @cached_property
    def updater(self) -> optimizers.Updater:
        """Optimizer with the setup's options, without weight decay for parameters that have none.

        It is made at the first access: dual ascent does without it.
        """
        without_decay = {
            parameter.name: optimizers.Multiplier(decay=0.0) for parameter in self.parameters if not parameter.decays
        }
        options: dict[str, Any] = dict(self.setup.options)
        return optimizers.Updater(
            self.setup.optimizer, lazy=LAZY[self.setup.update], multipliers=without_decay or None, **options
        )

    def _bind(self, symbol: graph.Graph, grad_formats: Mapping[str, str], y: np.ndarray) -> Executor:
        """Return an executor of the graph `symbol` bound to the parameters, for batches of the setup's size.

        `grad_formats` maps parameters to the formats of their gradients, {} for none; `y` gives shape and dtype of the
        targets.
        """
        rows = min(self.setup.batch_rows, self.batches.total)
        arguments, inputs = symbol.arguments(), self.model.inputs(self.given, rows)
        shapes = {"x": (self.model.reads(self.given, rows), self.features), "y": (rows, *y.shape[1:])}
        shapes |= {one.name: one.shape for one in inputs}
        dtypes = {"x": self.dtype, "y": y.dtype, **{one.name: self.dtype for one in inputs}}
        held = {name: one for name, one in self.patterned.items() if name in arguments}
        arrays = {name: array for name, array in self.arrays.items() if name in arguments}
        kinds = {"x": self.setup.format, **{one.name: self._format_of(one) for one in inputs}}
        return bind(
            symbol,
            arrays | {name: one.argument for name, one in held.items()},
            shapes={name: shape for name, shape in shapes.items() if name in arguments},
            dtypes={name: dtype for name, dtype in dtypes.items() if name in arguments},
            formats=kinds | {name: one.format for name, one in held.items()},
            grad_req={name: "write" for name in grad_formats if name in arguments},
            grad_formats={name: format for name, format in grad_formats.items() if name in arguments},
            resizable=[one.name for one in inputs],
        )

    def _format_of(self, one: Input) -> str:
        """Return the format in which an extra input is fed: dense in a dense training, else the input's own."""
        return "dense" if self.setup.format == "dense" else one.format

    def _others(self, batch: data.Batch) -> dict[str, Any]:
        """Return {name: array} of the graph's inputs besides X and y for this batch, in the formats that it takes."""
        others, converted = {}, {}
        for one in self.model.inputs(self.given, len(batch.rows_index)):
            array = batch.others[one.name]
            if id(array) not in converted:  # layers that read the same share it in every format
                converted[id(array)] = formats.to_format(array, self._format_of(one))
            others[one.name] = converted[id(array)]
        return others

    @cached_property
    def symbols(self) -> tuple[graph.Graph, graph.Graph]:
        """(graph of the scores, graph of the mean loss); built at the first access."""
        return self.model.graph(self.given, self.setup.engine, self.setup.has_intercept)

    @cached_property
    def executor(self) -> Executor:
        """Executor of the loss with gradients, bound at the first access; compiled calls do without it."""
        gradients = {parameter.name: parameter.gradient_format(self.setup.gradient) for parameter in self.parameters}
        gradients |= {name: one.format for name, one in self.patterned.items()}
        return self._bind(self.symbols[1], gradients, self.y_like)

    @cached_property
    def reads_plan(self) -> bool:
        """Whether a step reads the column index (batch plan)."""
        return "x" in self.executor.reads_plan

    @cached_property
    def scorer(self) -> Executor:
        """Executor of the scores alone, for predictions; bound at the first access."""
        return self._bind(self.symbols[0], {}, np.empty(0))

    @property
    def weights(self) -> np.ndarray:
        """The weights of a model X @ W: the array of parameter w, [features, width], not a copy."""
        return self.arrays["w"]

    @property
    def intercept(self) -> np.ndarray | None:
        """The array of parameter b; None if there is no intercept."""
        return self.arrays.get("b")

    @property
    def states(self) -> list[np.ndarray | formats.RowSparse]:
        """The optimizer's state arrays of w; [] before the first step."""
        return self.updater.states.get("w", [])

    def reset(self) -> None:
        """Restore initial parameters, empty optimizer states and step 0, in place; prepared batches are kept."""
        for parameter in self.parameters:
            if parameter.matrix:
                self.patterned[parameter.name].start(self.first_pattern(parameter), self.start_of(parameter))
            else:
                self.arrays[parameter.name][...] = self.start_of(parameter)
        self.calls = calls_for(self)
        self.__dict__.pop("updater", None)
        self.__dict__.pop("scorer", None)  # it holds the last batch that was predicted
        self.step = 0

    def pattern(self, name: str) -> "Pattern":
        """Return the current sparsity pattern of parameter `name`; KeyError if it has none."""
        return self.patterned[name].pattern

    def read_rows(self, rows: np.ndarray, name: str = "w") -> np.ndarray:
        """Return a copy of the rows (indices) of parameter `name`.

        For one with a pattern, of its values at these positions.
        """
        return (self.patterned[name].values if name in self.patterned else self.arrays[name])[rows]

    def write_rows(self, rows: np.ndarray, values: np.ndarray, name: str = "w") -> None:
        """Overwrite the rows (indices) of parameter `name`; for one with a pattern, its values at these positions."""
        if name in self.patterned:
            self.patterned[name].write(rows, values)
        else:
            self.arrays[name][rows] = values

    def state_dict(self) -> dict[str, Any]:
        """Return {name: copy} of all that further training depends on besides setup and rows.

        That is parameters, optimizer states, dual variables and step.
        """
        arrays = {
            f"parameter:{name}": array.copy() for name, array in self.arrays.items() if name not in self.patterned
        }
        arrays |= {f"parameter:{name}": one.pattern.matrix(one.values).copy() for name, one in self.patterned.items()}
        arrays |= {f"optimizer:{key}": array for key, array in self.updater.state_dict().items()}
        return arrays | _of_dual(self) | {"step": np.array([self.step])}

    def load_state_dict(self, arrays: Mapping[str, Any]) -> None:
        """Continue from a state of `state_dict`, bit for bit; SetupError or OptimizerError if it does not fit.

        Everything is validated before anything is changed.
        """
        expected = {f"parameter:{parameter.name}" for parameter in self.parameters} | {"step"} | set(_of_dual(self))
        others = {name for name in arrays if not name.startswith("optimizer:")}
        if others != expected:
            raise SetupError(f"The state has {sorted(others)}; that of this training has {sorted(expected)}.")
        found = {one.name: _checked(self, one, arrays[f"parameter:{one.name}"]) for one in self.parameters}
        steps = self.updater.read_state(
            {name.removeprefix("optimizer:"): arrays[name] for name in arrays if name.startswith("optimizer:")}
        )
        self.updater.check_fit(steps, self.arrays)
        self.step = _step(arrays["step"])
        if self.calls and isinstance(self.calls.steps, DualSteps):
            self.calls.steps.restore(arrays)
        self.updater.take_state(steps)
        for name, (pattern, values) in found.items():
            if pattern is None:
                self.arrays[name][...] = values
            else:
                self.patterned[name].start(pattern, values)

    def take(self, x: Any, y: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Train on these rows from now on, of the same features and kind of target; parameters, states, steps stay.

        `weights` [rows], of the dtype of the parameters, multiply each row's loss in the mean over the batch that is
        minimized; reported losses are unweighted. Raises SetupError for another number of features, or a model that
        cannot change rows or take weights.
        """
        if x.shape[1] != self.features:
            raise SetupError(f"The training has {self.features} features; rows of {x.shape[1]} came.")
        if not self.model.rows_apart:
            raise SetupError(f"The {self.model.name} model trains on the rows that its graph was given for, no others.")
        if weights is not None and self.model.sampler is not None:
            raise SetupError(f"The {self.model.name} model draws rows for each batch, which have no weights.")
        self.hold(x, y if weights is None else {"label": y, "weight": weights})

    # Steps

    def prepare(self, batch: data.Batch) -> Prepared:
        """Return the batch in the setup's format, with its column index if a step reads one, and their seconds."""
        start, given = perf_counter(), batch.x
        held = "csr" if batch.planned else formats.format_of(given)
        is_own = batch.is_copy and held == self.setup.format
        x = given if is_own else formats.to_format(given, self.setup.format)
        others = self._others(batch) if self.reads_others else {}
        converted, plan = perf_counter(), None
        if self.reads_plan:
            plan = batch.planned() if is_own and batch.planned else None
            if plan is None:
                is_read_again = self.keeps_prepared or self.setup.update == "exact"  # by which rows catch up
                plan = plan_of(x) if is_read_again else self.executor.new_plan("x", x)
            if plan:
                plan.in_order(x.data)
        seconds = {"convert": converted - start, "plan": perf_counter() - converted}
        made = () if x is given and not others else (x, *others.values())
        return Prepared(x, batch.labels["label"], plan, seconds, batch.labels.get("weight"), others, made, is_own)

    def phases_before(self, ready: feed.Ready) -> tuple[dict[str, float], float]:
        """Return ({phase: seconds}, seconds of preparing): the waiting time if prepared ahead, else all phases."""
        here = ready.value.seconds
        cut = {"slice": ready.seconds_prepare - sum(here.values())}
        return {"wait": ready.seconds_wait} if self.setup.ahead else cut | here, ready.seconds_prepare

    def do_step(self, batch: Prepared, epoch: int, phases: dict[str, float], seconds_prepare: float) -> StepEvent:
        """Train on one batch (forward, loss, gradient, update, pattern changes) and return the event, timed by phase.

        Parameters change in place; `phases` {phase: seconds} of the preparation are included.
        """
        timer = PhaseTimer(phases)
        self.step += 1
        loss = self.forward(batch, timer)
        gradients = self.backward(timer)
        self.update(gradients)
        if self.moves is not None:
            from workbench.training.sparse_parameters import move_patterns

            move_patterns(self, self.moves)
        if not self.keeps_prepared:
            self.executor.release("x", "y", *batch.others)
        timer.split("update")
        return StepEvent(self.step, epoch, len(batch.y), loss, timer.seconds, seconds_prepare)

    def forward(self, batch: Prepared, timer: PhaseTimer | None = None) -> float:
        """Return the mean loss of a batch, after deferred updates of the rows it reads; phases are timed in `timer`.

        Row weights of the batch multiply the gradient of the scores, not the loss.
        """
        self.last = batch if self.calls else None
        if self.setup.update == "exact":
            self.updater.catch_up(self._touched(), rows=dict.fromkeys(self.touched, batch.columns))
        arrays = {"x": batch.x, "y": batch.y, **batch.others}
        loss = float(
            self.executor.forward(True, batch.plans, timer.add_step if timer else None, is_own=batch.is_own, **arrays)[
                0
            ]
        )
        if batch.weights is not None:
            np.multiply(self.slope(), batch.weights[:, None], out=self.slope())
        return loss

    def slope(self) -> np.ndarray:
        """Return the gradient of the scores [R, N], in the executor's memory, which the next step overwrites."""
        return self.executor.slopes["loss"]

    def backward(self, timer: PhaseTimer | None = None) -> dict[str, Any]:
        """Return {parameter: gradient} of the last `forward`, timed in `timer`; None each if compiled calls train."""
        if self.calls:
            return dict.fromkeys(self.arrays)
        return self.executor.backward(on_step=timer.add_step if timer else None)

    def gradient_rows(self, gradient: Any, rows: np.ndarray, name: str = "w") -> np.ndarray | None:
        """Return the rows (indices) of the gradient of parameter `name`; None if it is None or factored.

        Row indices must be among those of a row-sparse gradient.
        """
        if name in self.patterned:
            return self.patterned[name].at_places(gradient)[rows]
        if gradient is None or isinstance(gradient, Unsummed):
            return None
        if isinstance(gradient, formats.RowSparse):
            return gradient.values[np.searchsorted(gradient.indices, rows)]
        return gradient[rows].copy()

    def update(self, gradients: dict[str, Any]) -> None:
        """Do an optimizer step with the gradients, in place; with compiled calls, a call on the last batch alone."""
        if self.calls and self.last:
            self.calls.step_by(self.last)
            return
        if self.patterned:
            gradients = gradients | {name: one.for_update(gradients[name]) for name, one in self.patterned.items()}
        self.updater.update(self.arrays, gradients, is_own=True)

    def catch_up(self) -> None:
        """Apply deferred updates to all rows of all parameters indexed by features, in place, if exact."""
        if self.setup.update == "exact" and self.setup.execution != "dual":  # which defers none
            self.updater.catch_up(self._touched())

    @property
    def point(self) -> np.ndarray:
        """Weights and intercept [D + 1, N] of a linear model, float64, with 0 for no intercept, all rows caught up."""
        self.catch_up()
        weights = self.arrays["w"]
        return np.vstack([weights, self.arrays.get("b", np.zeros(weights.shape[1]))]).astype(np.float64)

    def set_weights(self, weights: np.ndarray, intercept: np.ndarray | None) -> None:
        """Overwrite the weights [D, N] and, if there is one, the intercept [N] of a linear model."""
        self.catch_up()
        self.arrays["w"][...] = weights
        if "b" in self.arrays:
            self.arrays["b"][...] = intercept

    def _touched(self) -> dict[str, np.ndarray]:
        """Return {name: array} of the parameters of which a batch uses only some rows."""
        return {name: self.arrays[name] for name in self.touched}

    def _product(self, x: Any) -> np.ndarray | None:
        """Return scores [rows, outputs] by one product, if the model is X @ W + b and X is in memory in its dtype.

        Else None.
        """
        if (
            not self.model.is_product
            or self.patterned
            or not (isinstance(x, np.ndarray) or scipy.sparse.issparse(x))
            or getattr(x, "dtype", None) != self.dtype  # invalid csr has none: the batches say what is wrong
        ):
            return None
        if x.shape[1] != self.features:  # the batches say what is wrong
            return None
        if isinstance(x, np.ndarray) or self.setup.format == "dense":  # by BLAS or SciPy, of which nothing is compiled
            scores = np.asarray(x @ self.arrays["w"])
        elif x.format == "csr" and not x.data.size and not x.indptr.any():  # nothing is compiled for a loaded model
            scores = np.zeros((x.shape[0], self.arrays["w"].shape[1]), self.dtype)
        else:
            scores = products.multiply(x if x.format == "csr" else formats.to_format(x, "csr"), self.arrays["w"])
        if (intercept := self.arrays.get("b")) is not None:
            scores += intercept
        return scores

    def scores_of(self, batch: data.Batch) -> np.ndarray:
        """Return the scores [R, outputs] of a batch, in the executor's memory, which the next call overwrites."""
        x = formats.to_format(batch.x, self.setup.format)
        scores = self.scorer.forward(x=x, **self._others(batch))[0]
        self.scorer.release("x")
        return scores

    def densified(self) -> list[dict]:
        """Return {"op", "shape", "bytes"} of each array that a step makes dense: in graph, update or batch."""
        conversions: list[tuple[str, tuple[int | None, ...], int]] = [
            (fact.name, fact.shape or (), fact.bytes_densified) for fact in self.executor.inference.densified
        ]
        for parameter in (parameter for parameter in self.parameters if parameter.touched):
            array = self.arrays[parameter.name]
            if self.setup.update == "standard" and parameter.gradient_format(self.setup.gradient) == "row_sparse":
                of = "" if parameter.name == "w" else f" of {parameter.name}"
                conversions.append((f"gradient{of} for the dense update", array.shape, array.nbytes))
        if self.setup.format == "dense" and not isinstance(self.batches.x, np.ndarray):
            shape = (self.setup.batch_rows, self.features)
            conversions.append(("batch from csr", shape, shape[0] * shape[1] * self.dtype.itemsize))
        return [{"op": op, "shape": list(shape), "bytes": size} for op, shape, size in conversions]

    @property
    def bytes_held(self) -> int:
        """Bytes of data (of stored rows the buffer), facts, kept batches, parameters, states and buffers."""
        kept = sum(batch.bytes_own for batch in self.kept.values())
        own = sum(array.nbytes for array in self.arrays.values())
        own += sum(held.nbytes for held in self.patterned.values())
        own += self.calls.nbytes if self.calls else self.executor.bytes_buffers
        return self.batches.nbytes + self.given.nbytes + kept + self.updater.nbytes + own
