"""`Updater`: an optimizer applied to named parameters, with schedule, multipliers, rescaling and clipping."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import kernels
from workbench.formats import FLOATS, RowSparse
from workbench.ops.products import Unsummed
from workbench.optimizers import saved, schedules
from workbench.optimizers.contract import LAZY, Multiplier, OptimizerError, get, known, number, numbers_of
from workbench.optimizers.parameter import Ahead, Gradient, Parameter, begin, summed
from workbench.optimizers.schedules import Schedule

# The norm of all gradients together, for `clip_global_norm`.


def square_norms(gradients: Mapping[str, np.ndarray | RowSparse]) -> dict[str, float]:
    """Return the sum of the squares of each gradient, in float64, by name.

    >>> square_norms({"w": np.float32([3, 4])})
    {'w': 25.0}
    """
    return {name: _square_norm(gradient) for name, gradient in gradients.items()}


def shrink(largest: float, rescale: float, squares: Mapping[str, float]) -> float:
    """Return the factor (at most 1) that reduces the norm of all rescaled gradients together to `largest`.

    Raises OptimizerError if a norm is not finite.
    """
    if wrong := [name for name, square in squares.items() if not math.isfinite(square)]:
        raise OptimizerError(f"The gradients of {wrong} have no finite norm to clip; look for NaN and overflow.")
    norm = abs(rescale) * math.sqrt(sum(squares.values()))
    return min(1.0, largest / norm) if norm > 0 else 1.0


def _square_norm(gradient: np.ndarray | RowSparse) -> float:
    """Return the sum of squares of the values of a gradient of any shape, as float64."""
    values = gradient.values if isinstance(gradient, RowSparse) else gradient
    return kernels.get("square_norm").trusted(values.reshape(-1, 1))


# Checks of what an updater is given; what does not fit is refused in words.


WEIGHTS = (np.ndarray, RowSparse)
GRADIENTS = (np.ndarray, RowSparse, Unsummed)


def check_weights(name: str, weights: Any) -> None:
    """Raise OptimizerError for weights of another type or dtype, with gaps or read-only (indices are unchecked)."""
    if not isinstance(weights, WEIGHTS) or weights.dtype not in FLOATS:
        kind = f"{type(weights).__name__} of {getattr(weights, 'dtype', 'no type')}"
        raise OptimizerError(f"The weights {name} are a {kind}; they are dense or row_sparse, float32 or float64.")
    if weights.ndim > 2 and not (isinstance(weights, RowSparse) or weights.flags.c_contiguous):
        raise OptimizerError(f"The weights {name} have {weights.ndim} axes and gaps; take np.ascontiguousarray of it.")
    if not (weights if isinstance(weights, np.ndarray) else weights.values).flags.writeable:
        raise OptimizerError(f"The weights {name} are read-only; give a copy that can be written to.")


def format_of(weights: np.ndarray | RowSparse) -> str:
    """Return the format of the weights: "dense" or "row_sparse"."""
    return "dense" if isinstance(weights, np.ndarray) else "row_sparse"


def check_held(name: str, parameter: Parameter, weights: np.ndarray | RowSparse) -> None:
    """Raise OptimizerError if `weights` differ in shape, dtype or format from those of the parameter's previous steps.

    `name` is the parameter's in the message.
    """
    expected = parameter.shape, parameter.dtype, parameter.format
    actual = tuple(weights.shape), weights.dtype, format_of(weights)
    if actual != expected:
        raise OptimizerError(f"The weights {name} were {_words(*expected)} before and are {_words(*actual)} now.")


def _words(shape: tuple[int, ...], dtype: np.dtype, format: str) -> str:
    """Return format, dtype and shape as text for messages, such as "dense float32 (3, 2)"."""
    return f"{format} {dtype} {shape}"


def check_gradient(name: str, weights: np.ndarray | RowSparse, gradient: Any) -> None:
    """Raise OptimizerError for a gradient of another type, shape or dtype than the weights, or with invalid indices."""
    if not isinstance(gradient, GRADIENTS):
        kind = type(gradient).__name__
        raise OptimizerError(
            f"The gradient of {name} is a {kind}; it is dense, row_sparse or Unsummed. Call formats.to_format."
        )
    if gradient.shape != weights.shape or gradient.dtype != weights.dtype:
        raise OptimizerError(
            f"The gradient of {name} has shape {tuple(gradient.shape)} and type {gradient.dtype}; the weights have "
            f"{tuple(weights.shape)} and {weights.dtype}."
        )
    if not isinstance(gradient, np.ndarray):
        _check_structure(f"The gradient of {name}", gradient)


def _check_structure(what: str, array: RowSparse | Unsummed) -> None:
    """Raise OptimizerError, beginning with `what`, for indices, changed by a caller, that kernels cannot follow."""
    try:
        array.check()
    except ValueError as error:
        raise OptimizerError(f"{what}: {error}") from None


def checked_rows(name: str, rows: Any, length: int) -> np.ndarray:
    """Return row indices as int64 [n], unsorted: whole numbers from 0 to length - 1, else OptimizerError."""
    rows = np.asarray(rows).reshape(-1)
    if rows.dtype.kind not in "iu" or (rows.size and not 0 <= rows.min() <= rows.max() < length):
        raise OptimizerError(f"The rows of {name} to catch up are whole numbers from 0 to {length - 1}; {rows} came.")
    return rows.astype(np.int64, copy=False)


DECAYS = ("decay", "decoupled")
"""Options that a multiplier's decay is for."""

NONE = Multiplier()


class Updater:
    """An optimizer for parameters by name.

    Parameters
    ----------
    name : str
        Name of the optimizer.
    lazy : {"on", "off", "exact"}, default "on"
        Treatment of rows that a gradient does not store; see `workbench.optimizers`. A dense gradient stores every row.
    rescale : float, default 1.0
        Factor of all gradients.
    clip : float, optional
        Limit of each element, applied last.
    clip_global_norm : float, optional
        Limit of the norm of all rescaled gradients together; larger ones are scaled down.
    schedule : Schedule, optional
        Learning rate per step, relative to the option `learning_rate`. Default: constant.
    multipliers : mapping of str to Multiplier, optional
        Parameters with another rate or decay.
    **options : float
        Options of the optimizer.

    Raises
    ------
    OptimizerError
        If a name or value is unknown or invalid.

    Notes
    -----
    Steps are counted per parameter. States have the dtype and format of the weights. `options`, `multipliers` and
    `schedule` may be changed between steps; the next step uses them. With lazy="exact", rows that have yet to catch up
    belong to the array of the last step: call `catch_up` before you write to it or replace it, or announce another
    array by `replace`; otherwise another array is refused.

    Examples
    --------
    >>> w = np.ones(2, np.float32)
    >>> Updater("sgd", learning_rate=0.5).update({"w": w}, {"w": np.float32([1, 0])})
    >>> w.tolist()
    [0.5, 1.0]
    """

    def __init__(
        self,
        name: str,
        *,
        lazy: str = "on",
        rescale: float = 1.0,
        clip: float | None = None,
        clip_global_norm: float | None = None,
        schedule: Schedule | None = None,
        multipliers: Mapping[str, Multiplier] | None = None,
        **options: float,
    ) -> None:
        """Validate the settings and start without parameters; see the class. Raises OptimizerError."""
        if lazy not in LAZY:
            raise OptimizerError(f"lazy is {lazy!r}; it is one of {', '.join(LAZY)}.")
        if clip_global_norm is not None and not number(clip_global_norm) > 0:
            raise OptimizerError(f"clip_global_norm is {clip_global_norm!r}; it is above 0, or None for none.")
        self.optimizer, self.lazy = get(name), lazy
        self.options = self.optimizer.resolve({**options, "rescale": rescale, "clip": clip})
        self.clip_global_norm = clip_global_norm
        self.schedule = schedule or schedules.Constant()
        self.multipliers = dict(multipliers or {})
        self.parameters: dict[str, Parameter] = {}
        self._obeyed: tuple | None = None
        self._known_decays: dict[str, dict[str, float]] = {}
        self._known_numbers: dict[str, list[float]] = {}
        self.obey()

    def __repr__(self) -> str:
        """Return name, treatment of rows and rate: "<Updater sgd, lazy=on, rate 0.1>"."""
        return f"<Updater {self.optimizer.name}, lazy={self.lazy}, rate {self.options['learning_rate']:g}>"

    # What has happened

    @property
    def steps(self) -> dict[str, int]:
        """Return the number of steps of each parameter so far, by name."""
        return {name: parameter.step for name, parameter in self.parameters.items()}

    @property
    def states(self) -> dict[str, list[np.ndarray | RowSparse]]:
        """Return the state arrays of each parameter, by name, in the order of the optimizer's `states`; not copied."""
        return {name: parameter.states for name, parameter in self.parameters.items()}

    @property
    def nbytes(self) -> int:
        """Return the bytes of states, of records of missed steps, and of buffers for gradients made dense."""
        return sum(parameter.nbytes for parameter in self.parameters.values())

    def obey(self) -> None:
        """Apply changed options, multipliers and schedule (OptimizerError, changing nothing, if invalid)."""
        now = self.options, self.multipliers, self.schedule
        if now == self._obeyed:
            return
        options = self.options if self._obeyed is None else self.optimizer.resolve(self.options)
        for kind, value in (("schedule", self.schedule), *(("multiplier", m) for m in self.multipliers.values())):
            allowed = Schedule if kind == "schedule" else Multiplier
            if not isinstance(value, allowed):
                raise OptimizerError(f"A {kind} is {value!r}; it is a workbench.optimizers {allowed.__name__}.")
        decays = {name: self._decays(name, options) for name in self.parameters}
        ways = {name: self._way(decayed) for name, decayed in decays.items()}
        for name, parameter in self.parameters.items():
            if not parameter.can_set_way(ways[name]):
                raise OptimizerError(
                    f"The options have changed to {options}, under which rows of {name} catch up in another way, and "
                    "some have still to catch up in the old one. Put the options back and call catch_up first."
                )
        for name, parameter in self.parameters.items():
            parameter.set_way(ways[name])
        self.options.update(options)
        self._known_decays, self._known_numbers = decays, {}
        self._obeyed = dict(self.options), dict(self.multipliers), self.schedule

    # Steps

    def update(
        self,
        weights: Mapping[str, np.ndarray | RowSparse],
        gradients: Mapping[str, Gradient],
        squares: Mapping[str, float] | None = None,
        is_own: bool = False,
    ) -> None:
        """Do one step of every parameter that has a gradient. Weights and states change in place.

        Parameters
        ----------
        weights : mapping of str to array
            Dense (any rank, contiguous) or row_sparse weights, float32 or float64. Rows that a gradient has and a
            row_sparse weight does not store are inserted as zeros.
        gradients : mapping of str to array
            Dense, row_sparse or factored (`Unsummed`) gradients of the weights' shape and dtype.
        squares : mapping of str to float, optional
            Sums of squares of the whole gradients, for `clip_global_norm`, if these are only some rows of them.
        is_own : bool, default False
            Whether an executor has just made the gradients for these weights; their indices are then not validated.

        Raises
        ------
        OptimizerError
            If something does not fit; nothing has changed then.

        Examples
        --------
        >>> w = np.zeros((3, 1), np.float32)
        >>> updater = Updater("adagrad", learning_rate=1.0)
        >>> updater.update({"w": w}, {"w": RowSparse(np.float32([[2]]), [1], (3, 1))})
        >>> w.round(3).tolist()
        [[0.0], [-1.0], [0.0]]
        """
        self.obey()
        for name, gradient in gradients.items():
            if name not in weights:
                known("weights", list(gradients), list(weights))
            self._check_weights(name, weights[name])
            if not is_own:
                check_gradient(name, weights[name], gradient)
        rescale = self.options["rescale"]
        if self.clip_global_norm is not None:
            whole = {name: summed(gradient) for name, gradient in gradients.items()}
            gradients, squares = whole, square_norms(whole) if squares is None else squares
            rescale *= shrink(self.clip_global_norm, self.options["rescale"], squares)
        parameters, numbers = self.parameters, {}
        for name in gradients:
            step = parameters[name].step + 1 if name in parameters else 1
            numbers[name] = self.numbers(name, step, rescale)
        for name, gradient in gradients.items():
            parameter = parameters.get(name) or self._parameter(name, weights[name])
            parameter.apply(weights[name], gradient, numbers[name])

    def begin_steps(
        self, name: str, weights: np.ndarray, count: int, whole: bool = False, other: Ahead | None = None
    ) -> Ahead:
        """Prepare the next `count` steps of dense weights for one compiled call, ended by `end()`: see `parameter`."""
        self.obey()
        self._check_weights(name, weights)
        return begin(self, name, self._parameter(name, weights), weights, count, whole, other)

    def catch_up(
        self, weights: Mapping[str, np.ndarray | RowSparse], rows: Mapping[str, np.ndarray] | None = None
    ) -> None:
        """Bring weights and states up to date in place; needed with lazy="exact" alone.

        Call it before weights are evaluated, saved or read by a forward pass.

        Parameters
        ----------
        weights : mapping of str to array
            Weights of the last step.
        rows : mapping of str to ndarray, optional
            Row indices that will be read, for some of the parameters; default: every row of all. O(rows), and O(missed)
            per element for rules that repeat missed steps.

        Raises
        ------
        OptimizerError
            If weights or rows are invalid.

        Examples
        --------
        >>> w = np.ones((2, 1))
        >>> updater = Updater("sgd", lazy="exact", learning_rate=1.0, decay=0.5)
        >>> updater.update({"w": w}, {"w": RowSparse(np.zeros((1, 1)), [0], (2, 1))})
        >>> updater.catch_up({"w": w})
        >>> w.tolist()
        [[0.5], [0.5]]
        """
        known("weights", list(rows or ()), list(weights))
        if self.lazy != "exact":
            return
        for name in weights if rows is None else rows:
            if name not in self.parameters:
                continue
            parameter = self.parameters[name]
            self._check_weights(name, weights[name])
            parameter.catch_up(weights[name], None if rows is None else checked_rows(name, rows[name], parameter.rows))

    def replace(self, weights: Mapping[str, np.ndarray | RowSparse]) -> None:
        """Continue with other weights in place of those of the last step.

        The old ones catch up first, together with their states; rows of the new ones count as up to date.

        Parameters
        ----------
        weights : mapping of str to array
            New weights by name. Parameters without a step need not be announced.

        Raises
        ------
        OptimizerError
            If weights are invalid.

        Examples
        --------
        >>> updater = Updater("sgd", lazy="exact", learning_rate=1.0)
        >>> updater.replace({"w": np.ones((2, 1))})
        """
        there = {name: array for name, array in weights.items() if name in self.parameters}
        for name, array in there.items():
            self._check_weights(name, array, is_announced=True)
        for name, array in there.items():
            self.parameters[name].replace(array)

    def _parameter(self, name: str, weights: np.ndarray | RowSparse) -> Parameter:
        """Return the `Parameter` called `name`, created and kept if it had no step yet."""
        if name not in self.parameters:
            traits = weights.shape, weights.dtype, format_of(weights)
            self.parameters[name] = self.new_parameter(name, *traits)
        return self.parameters[name]

    def new_parameter(self, name: str, shape: tuple[int, ...], dtype: np.dtype, format: str) -> Parameter:
        """Return the state of a new parameter of this shape, dtype and format with zero steps done; it is not kept."""
        return Parameter(self.optimizer, self.lazy, self.way_of(name), tuple(shape), dtype, format)

    def way_of(self, name: str) -> str:
        """Return the catch-up strategy of parameter `name` under the current options, such as "closed_form".

        "" if its rows miss nothing.
        """
        return self._way(self._options(name))

    def _way(self, options: Mapping[str, float]) -> str:
        """Return the catch-up strategy under these options; "" unless `lazy` is "exact" and rows can miss steps."""
        if self.lazy != "exact":
            return ""
        from workbench.optimizers.deferred_updates import catch_up_strategy  # late: most updates defer nothing

        return catch_up_strategy(self.optimizer.rule, options)

    # Numbers

    def _options(self, name: str) -> dict[str, float]:
        """Return the current options for parameter `name`, its multiplier applied to the decays; cached."""
        if name not in self._known_decays:
            self._known_decays[name] = self._decays(name, self.options)
        return self._known_decays[name]

    def _decays(self, name: str, options: Mapping[str, float]) -> dict[str, float]:
        """Return a copy of `options` with the parameter's multiplier applied to the decays."""
        decay = self.multipliers.get(name, NONE).decay
        return {key: value * decay if key in DECAYS else value for key, value in options.items()}

    def numbers(self, name: str, step: int, rescale: float) -> list[float]:
        """Return the scalars of the rule for step `step` of parameter `name`, gradients times `rescale`; cached."""
        if type(self.schedule) is schedules.Constant and rescale == self.options["rescale"]:
            known, rule = self._known_numbers.get(name), self.optimizer.rule
            if known is None:
                known = self._known_numbers[name] = self._numbers(name, step, rescale)
            return rule.with_step(known, step) if rule.has_step else known
        return self._numbers(name, step, rescale)

    def _numbers(self, name: str, step: int, rescale: float) -> list[float]:
        """Return the scalars that the kernel takes at a step of `name` (OptimizerError if the schedule fails)."""
        try:
            rate = (
                self.schedule.rate(step, self.options["learning_rate"]) * self.multipliers.get(name, NONE).learning_rate
            )
        except ArithmeticError as error:
            raise OptimizerError(f"{self.schedule} has no rate for step {step}: {error}.") from None
        return numbers_of(self.optimizer.rule, {**self._options(name), "learning_rate": rate, "rescale": rescale}, step)

    # Checks

    def _check_weights(self, name: str, weights: Any, is_announced: bool = False) -> None:
        """Raise OptimizerError for invalid weights or, unless `is_announced`, others while rows are behind."""
        first = self.parameters.get(name)
        if first is not None and first.is_settled(weights):
            return
        check_weights(name, weights)
        if first is not None:
            check_held(name, first, weights)
        if isinstance(weights, RowSparse) and (first is None or weights.indices is not first.stored_rows):
            weights.check()  # its indices may have been written to since it was made
        if first is not None and not is_announced:
            first.check_replaced(name, weights)

    def check_names(self, names: Iterable[str]) -> None:
        """Raise OptimizerError if a multiplier is for a parameter that is not among `names`."""
        known("parameter of a multiplier", list(self.multipliers), list(names))

    # Saving

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values for JSON, from which `from_settings` builds another updater."""
        self.obey()
        return saved.settings_to_json(self)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Updater":
        """Build an updater without steps from settings.

        Parameters
        ----------
        settings : mapping
            What the property `settings` returned.

        Returns
        -------
        Updater
            An updater with the same options.

        Raises
        ------
        OptimizerError
            If the settings are invalid.

        Examples
        --------
        >>> Updater.from_settings(Updater("sgd", learning_rate=0.5).settings).options["learning_rate"]
        0.5
        """
        options = saved.settings_from_json(settings)
        return cls(options.pop("name"), **options)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Copy the state: step counts, states and records of missed steps.

        Returns
        -------
        dict of str to ndarray
            Plain arrays by name, which `formats.save` writes.

        Examples
        --------
        >>> list(Updater("sgd").state_dict())
        ['about']
        """
        return saved.state_dict(self)

    def load_state_dict(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from a state; further steps have the same bits as without the interruption.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            What `state_dict` of such an updater returned: same optimizer, same `lazy`. The source may be untrusted.

        Raises
        ------
        OptimizerError
            If arrays are unknown, missing, of another shape or dtype, or impossible; nothing has changed then.

        Examples
        --------
        >>> Updater("sgd").load_state_dict(Updater("sgd").state_dict())
        """
        self.take_state(self.read_state(arrays))

    def read_state(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Parameter]:
        """Validate a state as `load_state_dict` does and return its parameters, for `take_state`; nothing changes."""
        self.obey()
        return saved.read_state(self, arrays)

    def check_fit(self, parameters: Mapping[str, Parameter], weights: Mapping[str, np.ndarray | RowSparse]) -> None:
        """Raise OptimizerError if a parameter from `read_state` has no weights, or others in shape, dtype or format."""
        known("weights of the state's steps", list(parameters), list(weights))
        for name, parameter in parameters.items():
            check_held(name, parameter, weights[name])

    def take_state(self, parameters: dict[str, Parameter]) -> None:
        """Continue from the states that `read_state` returned; those held so far are dropped."""
        self.parameters, self._obeyed = parameters, ()  # options may be others by now
