"""`Updater`: an optimizer applied to named parameters, with schedule, multipliers, rescaling and clipping."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

import kernels
from workbench.formats import FLOATS, RowSparse
from workbench.ops.products import Unsummed
from workbench.optimizers import saved, schedules
from workbench.optimizers.contract import LAZY, OptimizerError, get, known, numbers_of
from workbench.optimizers.missed import way
from workbench.optimizers.parameter import Gradient, Parameter, summed
from workbench.optimizers.schedules import Schedule

DECAYS = ("decay", "decoupled")
"""Options that a multiplier's decay is for."""

WEIGHTS = (np.ndarray, RowSparse)
GRADIENTS = (np.ndarray, RowSparse, Unsummed)


@final
@dataclass(frozen=True)
class Multiplier:
    """What the rate and the decays of one parameter are multiplied by."""

    rate: float = 1.0
    decay: float = 1.0


NONE = Multiplier()


class Updater:
    """The optimizer `name` with its options, for parameters by name.

    `lazy` is off, on or exact (see `workbench.optimizers`); a dense gradient holds every row, and gets the dense rule
    whatever it is. `schedule` gives the rate of each step from the option `rate`; `multipliers` has those parameters
    whose rate or decay is another. Gradients are multiplied by `rescale`; where the norm of all of them together is
    then above `clip_global_norm`, they are scaled down to it; then each element is kept from -clip to clip. Steps are
    counted for each parameter. States have the type, and the format, of the weights. Unknown names are an
    `OptimizerError`.
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
        if clip_global_norm is not None and not clip_global_norm > 0:
            raise OptimizerError(f"clip_global_norm is {clip_global_norm!r}; it is above 0, or None for none.")
        self.optimizer, self.lazy = get(name), lazy
        self.options = self.optimizer.resolve({**options, "rescale": rescale, "clip": clip})
        self.clip_global_norm = clip_global_norm
        self.schedule = schedule or schedules.Constant()
        self.multipliers = dict(multipliers or {})
        self.parameters: dict[str, Parameter] = {}
        self._known_decays: dict[str, dict[str, float]] = {}
        for kind, value in (("schedule", self.schedule), *(("multiplier", m) for m in self.multipliers.values())):
            allowed = Schedule if kind == "schedule" else Multiplier
            if not isinstance(value, allowed):
                raise OptimizerError(f"A {kind} is {value!r}; it is a workbench.optimizers {allowed.__name__}.")

    def __repr__(self) -> str:
        return f"<Updater {self.optimizer.name}, lazy={self.lazy}, rate {self.options['rate']:g}>"

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

    # Steps

    def update(self, weights: Mapping[str, np.ndarray | RowSparse], gradients: Mapping[str, Gradient]) -> None:
        """One step of every parameter that has a gradient: the weights change in place.

        Weights are dense, of any rank, contiguous, or row_sparse; a row_sparse one that lacks a row that is touched
        gets it, as zeros, before the step. Gradients have the weights' shape and type and are dense, row_sparse or
        `Unsummed`. Nothing has changed when an `OptimizerError` says what does not fit.
        """
        for name, gradient in gradients.items():
            if name not in weights:
                known("There are no weights named", list(gradients), list(weights))
            self._check(name, weights[name], gradient)
        rescale = self.options["rescale"]
        if self.clip_global_norm is not None:
            gradients = {name: summed(gradient) for name, gradient in gradients.items()}
            rescale *= self._shrink(gradients)
        for name, gradient in gradients.items():
            parameter = self._parameter(name, weights[name])
            parameter.apply(weights[name], gradient, self._numbers(name, parameter.step + 1, rescale))

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
            parameter.catch_up(weights[name], None if rows is None else _checked_rows(name, rows[name], parameter.rows))

    def _parameter(self, name: str, weights: np.ndarray | RowSparse) -> Parameter:
        if name not in self.parameters:
            held = weights.shape, weights.dtype, _format(weights)
            self.parameters[name] = self.new_parameter(name, *held)
        return self.parameters[name]

    def new_parameter(self, name: str, shape: tuple[int, ...], dtype: np.dtype, format: str) -> Parameter:
        """A parameter without steps."""
        missing = way(self.optimizer.rule, self._decayed(name)) if self.lazy == "exact" else ""
        return Parameter(self.optimizer, self.lazy, missing, tuple(shape), dtype, format)

    # Numbers

    def _decayed(self, name: str) -> dict[str, float]:
        """The options of a parameter, its multiplier in the decays."""
        if name not in self._known_decays:
            decay = self.multipliers.get(name, NONE).decay
            self._known_decays[name] = {k: v * decay if k in DECAYS else v for k, v in self.options.items()}
        return self._known_decays[name]

    def _numbers(self, name: str, step: int, rescale: float) -> list[float]:
        rate = self.schedule.rate(step, self.options["rate"]) * self.multipliers.get(name, NONE).rate
        return numbers_of(self.optimizer.rule, {**self._decayed(name), "rate": rate, "rescale": rescale}, step)

    def _shrink(self, gradients: Mapping[str, np.ndarray | RowSparse]) -> float:
        """What brings the norm of all gradients together, after rescaling, down to the largest allowed."""
        squares = {name: _square_norm(gradient) for name, gradient in gradients.items()}
        if wrong := [name for name, square in squares.items() if not math.isfinite(square)]:
            raise OptimizerError(f"The gradients of {wrong} have no finite norm to clip; look for NaN and overflow.")
        norm = abs(self.options["rescale"]) * math.sqrt(sum(squares.values()))
        return min(1.0, self.clip_global_norm / norm) if norm > 0 else 1.0

    # Checks

    def _check(self, name: str, weights: Any, gradient: Any) -> None:
        self._check_weights(name, weights)
        if not isinstance(gradient, GRADIENTS):
            came = type(gradient).__name__
            raise OptimizerError(
                f"The gradient of {name} is a {came}; it is dense, row_sparse or Unsummed. Call formats.to_format."
            )
        if gradient.shape != weights.shape or gradient.dtype != weights.dtype:
            raise OptimizerError(
                f"The gradient of {name} has shape {tuple(gradient.shape)} and type {gradient.dtype}; the weights have "
                f"{tuple(weights.shape)} and {weights.dtype}."
            )

    def _check_weights(self, name: str, weights: Any) -> None:
        if not isinstance(weights, WEIGHTS) or weights.dtype not in FLOATS:
            came = f"{type(weights).__name__} of {getattr(weights, 'dtype', 'no type')}"
            raise OptimizerError(f"The weights {name} are a {came}; they are dense or row_sparse, float32 or float64.")
        if weights.ndim > 2 and not (isinstance(weights, RowSparse) or weights.flags.c_contiguous):
            raise OptimizerError(
                f"The weights {name} have {weights.ndim} axes and gaps; take np.ascontiguousarray of it."
            )
        if not (weights if isinstance(weights, np.ndarray) else weights.values).flags.writeable:
            raise OptimizerError(f"The weights {name} are read-only; give a copy that can be written to.")
        if (first := self.parameters.get(name)) is not None:
            wanted, came = (first.shape, first.dtype, first.format), (weights.shape, weights.dtype, _format(weights))
            if came != wanted:
                raise OptimizerError(f"The weights {name} were {_words(*wanted)} before and are {_words(*came)} now.")

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse multipliers for parameters that are not among `names` (`OptimizerError`)."""
        known("There are multipliers for no parameter", list(self.multipliers), list(names))

    # Saving

    @property
    def settings(self) -> dict[str, Any]:
        """What makes another updater like this one, as plain values for JSON: `Updater.from_settings` takes it."""
        numbers = {key: None if math.isinf(value) else value for key, value in self.options.items()}
        return {
            "name": self.optimizer.name,
            "lazy": self.lazy,
            "clip_global_norm": self.clip_global_norm,
            "schedule": schedules.to_json(self.schedule),
            "multipliers": {name: asdict(multiplier) for name, multiplier in self.multipliers.items()},
            **numbers,
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Updater":
        """An updater without steps, from what `settings` gave."""
        given = {"schedule": {"kind": "constant"}, "multipliers": {}, **settings}
        given["schedule"] = schedules.from_json(given["schedule"])
        given["multipliers"] = {name: Multiplier(**values) for name, values in given["multipliers"].items()}
        return cls(given.pop("name"), **given)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Steps, states and what rows have missed, as plain arrays by name, copied; `formats.save` writes them."""
        return saved.state_dict(self)

    def load_state_dict(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a `state_dict` of an updater with the same optimizer and `lazy`: further steps have the same bits.

        Arrays that are unknown, missing, or of another shape or type are an `OptimizerError` that names them, and
        nothing changes.
        """
        saved.load_state_dict(self, arrays)


def _format(weights: np.ndarray | RowSparse) -> str:
    return "dense" if isinstance(weights, np.ndarray) else "row_sparse"


def _words(shape: tuple[int, ...], dtype: np.dtype, format: str) -> str:
    return f"{format} {dtype} {shape}"


def _square_norm(gradient: np.ndarray | RowSparse) -> float:
    values = gradient.values if isinstance(gradient, RowSparse) else gradient
    return kernels.get("square_norm").cpu(values.reshape(-1, 1))


def _checked_rows(name: str, rows: Any, length: int) -> np.ndarray:
    rows = np.asarray(rows).reshape(-1)
    if rows.dtype.kind not in "iu" or (rows.size and not 0 <= rows.min() <= rows.max() < length):
        raise OptimizerError(f"The rows of {name} to catch up are whole numbers from 0 to {length - 1}; {rows} came.")
    return rows.astype(np.int64, copy=False)
