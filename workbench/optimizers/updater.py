"""`Updater`: an optimizer applied to named parameters, with schedule, multipliers, rescaling and clipping."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import kernels
from workbench.formats import FLOATS, RowSparse
from workbench.ops.products import Unsummed
from workbench.optimizers import many_steps, saved, schedules
from workbench.optimizers.contract import LAZY, OptimizerError, get, known, number, numbers_of, with_step
from workbench.optimizers.missed import way
from workbench.optimizers.parameter import Gradient, Parameter, summed
from workbench.optimizers.schedules import Schedule
from workbench.optimizers.settings import Multiplier
from workbench.optimizers.settings import from_json as settings_from_json
from workbench.optimizers.settings import to_json as settings_to_json

# The norm of all gradients together, for `clip_global_norm`.


def square_norms(gradients: Mapping[str, np.ndarray | RowSparse]) -> dict[str, float]:
    """The sum of the squares of each gradient, in float64.

    >>> square_norms({"w": np.float32([3, 4])})
    {'w': 25.0}
    """
    return {name: _square_norm(gradient) for name, gradient in gradients.items()}


def shrink(largest: float, rescale: float, squares: Mapping[str, float]) -> float:
    """Factor, at most 1, that brings the norm of all gradients together, rescaled, down to the largest allowed."""
    if wrong := [name for name, square in squares.items() if not math.isfinite(square)]:
        raise OptimizerError(f"The gradients of {wrong} have no finite norm to clip; look for NaN and overflow.")
    norm = abs(rescale) * math.sqrt(sum(squares.values()))
    return min(1.0, largest / norm) if norm > 0 else 1.0


def _square_norm(gradient: np.ndarray | RowSparse) -> float:
    values = gradient.values if isinstance(gradient, RowSparse) else gradient
    return kernels.get("square_norm").trusted(values.reshape(-1, 1))


# Checks of what an updater is given; what does not fit is refused in words.


WEIGHTS = (np.ndarray, RowSparse)
GRADIENTS = (np.ndarray, RowSparse, Unsummed)


def check_weights(name: str, weights: Any) -> None:
    """Refuse weights of another kind or type, with gaps, or read-only; indices are not looked at."""
    if not isinstance(weights, WEIGHTS) or weights.dtype not in FLOATS:
        kind = f"{type(weights).__name__} of {getattr(weights, 'dtype', 'no type')}"
        raise OptimizerError(f"The weights {name} are a {kind}; they are dense or row_sparse, float32 or float64.")
    if weights.ndim > 2 and not (isinstance(weights, RowSparse) or weights.flags.c_contiguous):
        raise OptimizerError(f"The weights {name} have {weights.ndim} axes and gaps; take np.ascontiguousarray of it.")
    if not (weights if isinstance(weights, np.ndarray) else weights.values).flags.writeable:
        raise OptimizerError(f"The weights {name} are read-only; give a copy that can be written to.")


def format_of(weights: np.ndarray | RowSparse) -> str:
    """The format that weights are held in."""
    return "dense" if isinstance(weights, np.ndarray) else "row_sparse"


def check_held(name: str, parameter: Parameter, weights: np.ndarray | RowSparse) -> None:
    """Refuse weights of another shape, type or format than those of the steps before."""
    expected = parameter.shape, parameter.dtype, parameter.format
    actual = tuple(weights.shape), weights.dtype, format_of(weights)
    if actual != expected:
        raise OptimizerError(f"The weights {name} were {_words(*expected)} before and are {_words(*actual)} now.")


def _words(shape: tuple[int, ...], dtype: np.dtype, format: str) -> str:
    return f"{format} {dtype} {shape}"


def check_gradient(name: str, weights: np.ndarray | RowSparse, gradient: Any) -> None:
    """Refuse a gradient of another kind, shape or type than the weights, or with malformed indices."""
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
    """Refuse what kernels could not follow: whoever made it may have written to its indices since."""
    try:
        array.check()
    except ValueError as error:
        raise OptimizerError(f"{what}: {error}") from None


def checked_rows(name: str, rows: Any, length: int) -> np.ndarray:
    """Row numbers int64 below `length`, of any form."""
    rows = np.asarray(rows).reshape(-1)
    if rows.dtype.kind not in "iu" or (rows.size and not 0 <= rows.min() <= rows.max() < length):
        raise OptimizerError(f"The rows of {name} to catch up are whole numbers from 0 to {length - 1}; {rows} came.")
    return rows.astype(np.int64, copy=False)


DECAYS = ("decay", "decoupled")
"""Options that a multiplier's decay is for."""

NONE = Multiplier()


class Updater:
    """The optimizer `name` with its options, for parameters by name.

    `lazy` is off, on or exact (see `workbench.optimizers`); a dense gradient holds every row, and gets the dense rule
    whatever it is. `schedule` gives the rate of each step from the option `learning_rate`; `multipliers` has those
    parameters whose rate or decay is another. Gradients are multiplied by `rescale`; where the norm of all of them
    together is then above `clip_global_norm`, they are scaled down to it; then each element is kept from -clip to clip.
    Steps are counted for each parameter. States have the type, and the format, of the weights. Unknown names are an
    `OptimizerError`.

    `options`, `multipliers` and `schedule` may be changed between steps: the next step obeys. Where `lazy` is exact,
    rows that have still to catch up belong to the array of the last step: write to it, or put another in its place,
    after `catch_up`, or tell by `replace`; another array that comes unannounced is refused.
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
        return f"<Updater {self.optimizer.name}, lazy={self.lazy}, rate {self.options['learning_rate']:g}>"

    # What has happened

    @property
    def steps(self) -> dict[str, int]:
        """The steps of each parameter so far."""
        return {name: parameter.step for name, parameter in self.parameters.items()}

    @property
    def states(self) -> dict[str, list[np.ndarray | RowSparse]]:
        """The states of each parameter, in the order of the optimizer's `states`: the arrays themselves."""
        return {name: parameter.states for name, parameter in self.parameters.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of states, of what rows have missed, and of spread gradients."""
        return sum(parameter.nbytes for parameter in self.parameters.values())

    def obey(self) -> None:
        """Take options, multipliers and schedule as they are now; what cannot be is refused and nothing changes."""
        now = self.options, self.multipliers, self.schedule
        if now == self._obeyed:
            return
        options = self.optimizer.resolve(self.options)
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
    ) -> None:
        """One step of every parameter that has a gradient: the weights change in place.

        Weights are dense, of any rank, contiguous, or row_sparse; a row_sparse one that lacks a row that is touched
        gets it, as zeros, before the step. Gradients have the weights' shape and type and are dense, row_sparse or
        `Unsummed`. Nothing has changed when an `OptimizerError` says what does not fit.

        Where these are some rows of weights whose other rows are elsewhere, `squares` has the sums of the
        squares of the whole gradients, from which `clip_global_norm` is computed.
        """
        self.obey()
        for name, gradient in gradients.items():
            if name not in weights:
                known("There are no weights named", list(gradients), list(weights))
            self._check_weights(name, weights[name])
            check_gradient(name, weights[name], gradient)
        rescale = self.options["rescale"]
        if self.clip_global_norm is not None:
            whole = {name: summed(gradient) for name, gradient in gradients.items()}
            gradients, squares = whole, square_norms(whole) if squares is None else squares
            rescale *= shrink(self.clip_global_norm, self.options["rescale"], squares)
        parameters = self.parameters
        steps = {name: parameters[name].step + 1 if name in parameters else 1 for name in gradients}
        numbers = {name: self.numbers(name, step, rescale) for name, step in steps.items()}
        for name, gradient in gradients.items():
            self._parameter(name, weights[name]).apply(weights[name], gradient, numbers[name])

    def begin_steps(self, name: str, weights: np.ndarray, count: int, whole: bool = False) -> many_steps.Ahead:
        """Begin the next `count` steps of dense weights, each of all rows if `whole`, else of those
        that it touches: see `many_steps`. Its `end` counts them when they are done."""
        self.obey()
        self._check_weights(name, weights)
        return many_steps.begin(self, name, self._parameter(name, weights), weights, count, whole)

    def catch_up(
        self,
        weights: Mapping[str, np.ndarray | RowSparse],
        rows: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Bring weights and states to the last step, where lazy is exact; in other cases they always are.

        Call it before weights are evaluated, saved, or read by a forward pass: for that `rows` names, for some of the
        parameters, the rows int64 that will be read; by default it is every row of all. O(rows), and for rules that
        repeat what was missed O(missed) an element.
        """
        known("There are no weights named", list(rows or ()), list(weights))
        if self.lazy != "exact":
            return
        for name in weights if rows is None else rows:
            if name not in self.parameters:
                continue
            parameter = self.parameters[name]
            self._check_weights(name, weights[name])
            parameter.catch_up(weights[name], None if rows is None else checked_rows(name, rows[name], parameter.rows))

    def replace(self, weights: Mapping[str, np.ndarray | RowSparse]) -> None:
        """Go on with these weights in place of those of the last step: their rows are taken as up to date.

        The old ones are brought up to date first, and their states with them, so that further steps are those of
        training that changed the weights' values at this point. Weights without a step need no telling.
        """
        there = {name: array for name, array in weights.items() if name in self.parameters}
        for name, array in there.items():
            self._check_weights(name, array, is_announced=True)
        for name, array in there.items():
            self.parameters[name].replace(array)

    def _parameter(self, name: str, weights: np.ndarray | RowSparse) -> Parameter:
        if name not in self.parameters:
            traits = weights.shape, weights.dtype, format_of(weights)
            self.parameters[name] = self.new_parameter(name, *traits)
        return self.parameters[name]

    def new_parameter(self, name: str, shape: tuple[int, ...], dtype: np.dtype, format: str) -> Parameter:
        """A parameter without steps."""
        return Parameter(self.optimizer, self.lazy, self.way_of(name), tuple(shape), dtype, format)

    def way_of(self, name: str) -> str:
        """Way in which rows of a parameter catch up under the present options: "" where they miss nothing."""
        return self._way(self._decayed(name))

    def _way(self, options: Mapping[str, float]) -> str:
        return way(self.optimizer.rule, options) if self.lazy == "exact" else ""

    # Numbers

    def _decayed(self, name: str) -> dict[str, float]:
        """The options of a parameter, its multiplier in the decays."""
        if name not in self._known_decays:
            self._known_decays[name] = self._decays(name, self.options)
        return self._known_decays[name]

    def _decays(self, name: str, options: Mapping[str, float]) -> dict[str, float]:
        decay = self.multipliers.get(name, NONE).decay
        return {key: value * decay if key in DECAYS else value for key, value in options.items()}

    def numbers(self, name: str, step: int, rescale: float) -> list[float]:
        """Numbers that the rule's kernels take after the arrays, in that step of a parameter."""
        if type(self.schedule) is schedules.Constant and rescale == self.options["rescale"]:
            if name not in self._known_numbers:
                self._known_numbers[name] = self._numbers(name, step, rescale)
            return with_step(self.optimizer.rule, self._known_numbers[name], step)
        return self._numbers(name, step, rescale)

    def _numbers(self, name: str, step: int, rescale: float) -> list[float]:
        try:
            rate = (
                self.schedule.rate(step, self.options["learning_rate"]) * self.multipliers.get(name, NONE).learning_rate
            )
        except ArithmeticError as error:
            raise OptimizerError(f"{self.schedule} has no rate for step {step}: {error}.") from None
        return numbers_of(self.optimizer.rule, {**self._decayed(name), "learning_rate": rate, "rescale": rescale}, step)

    # Checks

    def _check_weights(self, name: str, weights: Any, is_announced: bool = False) -> None:
        first = self.parameters.get(name)
        if first is not None and first.is_settled(weights):
            return
        check_weights(name, weights)
        if first is not None:
            check_held(name, first, weights)
        if isinstance(weights, RowSparse) and (first is None or weights.indices is not first.held):
            weights.check()  # its indices may have been written to since it was made
        if first is not None and not is_announced:
            first.check_replaced(name, weights)

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse multipliers for parameters that are not among `names` (`OptimizerError`)."""
        known("There are multipliers for no parameter", list(self.multipliers), list(names))

    # Saving

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of this updater as plain values for JSON; `Updater.from_settings` makes another one of them."""
        self.obey()
        return settings_to_json(self)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Updater":
        """An updater without steps, from what `settings` gave; what is no such thing is an `OptimizerError`."""
        options = settings_from_json(settings)
        return cls(options.pop("name"), **options)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Steps, states and what rows have missed, as plain arrays by name, copied; `formats.save` writes them."""
        return saved.state_dict(self)

    def load_state_dict(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a `state_dict` of an updater with the same optimizer and `lazy`: further steps have the same bits.

        A state may come from anyone's file: arrays that are unknown, missing, of another shape or type, and numbers
        that no training leaves, are an `OptimizerError` that names them, and nothing changes.
        """
        self.take_state(self.read_state(arrays))

    def read_state(self, arrays: Mapping[str, np.ndarray]) -> dict[str, Parameter]:
        """Check a state as `load_state_dict` does, and change nothing. `take_state` then cannot fail."""
        self.obey()
        return saved.read_state(self, arrays)

    def check_fit(self, parameters: Mapping[str, Parameter], weights: Mapping[str, np.ndarray | RowSparse]) -> None:
        """Refuse (`OptimizerError`) a state that was read for parameters other than these weights."""
        known("The state has steps of no weights", list(parameters), list(weights))
        for name, parameter in parameters.items():
            check_held(name, parameter, weights[name])

    def take_state(self, parameters: dict[str, Parameter]) -> None:
        """Go on from what `read_state` gave."""
        self.parameters, self._obeyed = parameters, None
