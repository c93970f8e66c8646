"""The Optimizer record: a rule of `kernels.updates` by name, with the defaults of its options."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

import kernels
from kernels import aligned
from kernels.clearing import clear
from kernels.plan import BatchPlan
from kernels.registry import Registry
from kernels.rules.rule import Rule, get_rule

LAZY = ("off", "on", "exact")

FORMER = {"rate": "learning_rate"}
"""Options by the names that they had up to 0.1.0; these go with 0.3.0."""

COMMON = {"rescale": 1.0, "clip": math.inf}
"""Options of every optimizer: the gradient is multiplied by `rescale`, then each element kept from -clip to clip."""

RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "learning_rate": ("a finite number, 0 or more", lambda x: 0 <= x < math.inf),
    "decay": ("a finite number, 0 or more", lambda x: 0 <= x < math.inf),
    "decoupled": ("a finite number, 0 or more", lambda x: 0 <= x < math.inf),
    "rescale": ("a finite number", math.isfinite),
    "beta": ("a finite number, 0 or more", lambda x: 0 <= x < math.inf),
    "beta1": ("0 or more and below 1", lambda x: 0 <= x < 1),
    "beta2": ("0 or more and below 1", lambda x: 0 <= x < 1),
    "gamma": ("0 or more and below 1", lambda x: 0 <= x < 1),
    "clip": ("0 or more, None for none", lambda x: x >= 0),
    "clip_weights": ("0 or more, None for none", lambda x: x >= 0),
    "epsilon": ("a finite number, 0 or more", lambda x: 0 <= x < math.inf),
    "l1": ("a finite number, 0 or more", lambda x: 0 <= x < math.inf),
}
"""What values an option may have, for those that do not take every number."""


class OptimizerError(ValueError):
    """An optimizer or one of its options is not known, or an update does not fit; the message lists what is."""


@dataclass(frozen=True)
class Optimizer:
    """`rule` has the formula; its kernels `<name>_dense`, `<name>_lazy` and `<name>_fused` are run by `Updater`.

    `options` are its settings with their defaults.
    """

    name: str
    options: Mapping[str, float]
    rule: Rule

    @property
    def states(self) -> tuple[str, ...]:
        """The arrays that the rule keeps."""
        return self.rule.states

    @property
    def states_by_row(self) -> bool:
        """Whether these have one number a row, not the weights' shape."""
        return self.rule.average is not None

    def new_states(self, weights: np.ndarray) -> list[np.ndarray]:
        """Zeros of the type and shape of `weights`, one array for each name in `states`."""
        shape = weights.shape[:1] if self.states_by_row else weights.shape
        return [aligned.zeros(shape, weights.dtype) for _ in self.states]

    def resolve(self, given: Mapping[str, float | None]) -> dict[str, float]:
        """The options with the given ones in place, None for no clip as infinity; unknown names and values that an
        option does not take are an `OptimizerError` that tells what is allowed. Former names warn (`FORMER`)."""
        given = {_present(name): value for name, value in given.items()}
        options: dict[str, Any]
        if unknown := sorted(set(given) - set(self.options)):
            raise OptimizerError(f"{self.name} has no option {unknown}; its options are {sorted(self.options)}.")
        options = {**self.options, **given}
        options |= {name: math.inf for name in ("clip", "clip_weights") if name in options and options[name] is None}
        for option, value in options.items():
            words, allowed = RANGES.get(option, ("a number", lambda x: not math.isnan(x)))
            options[option] = number(value)
            if not allowed(options[option]):
                raise OptimizerError(f"{self.name}: {option} is {value!r:.80}; it is {words}.")
        return options


def _present(option: str) -> str:
    """The name that the option has now."""
    if option not in FORMER:
        return option
    warnings.warn(f"The option {option!r} is called {FORMER[option]!r} now.", FutureWarning, stacklevel=4)
    return FORMER[option]


_optimizers: Registry[Optimizer] = Registry("optimizer", ("workbench.optimizers",), OptimizerError)
register, names, get, unavailable = _optimizers.register, _optimizers.names, _optimizers.get, _optimizers.unavailable


def numbers_of(rule: Rule, options: Mapping[str, float], step: int) -> list[float]:
    """Numbers that the rule's kernels take after the arrays, in their order."""
    return [step if name == "step" else options[name] for name in rule.numbers]


def with_step(rule: Rule, numbers: list[float], step: int) -> list[float]:
    """The numbers of one step in another one, in which the options are the same."""
    if "step" not in rule.numbers:
        return numbers
    return [step if name == "step" else value for name, value in zip(rule.numbers, numbers, strict=True)]


def by_rule(name: str, **options: float) -> Optimizer:
    """The optimizer of the rule `kernels/updates/<name>.py`; `options` gives the defaults of its numbers."""
    rule = get_rule(name)
    options = {**options, **COMMON}
    if wrong := set(options) ^ (set(rule.numbers) - {"step"}):
        raise OptimizerError(f"{name}: {sorted(wrong)} should be options of the optimizer and numbers of the rule.")
    return Optimizer(name, options, rule)


def in_column_order(plan: BatchPlan, data: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, ...]:
    """Arrays of a batch for a fused kernel: those of its plan, its values in their order, and the slope [R, N]."""
    return plan.columns, plan.segments, plan.rows, plan.in_order(data), slope


def spread(rows: np.ndarray, values: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Zeros in `out` [D, N] but for `rows`, sorted, which become `values`; `out`."""
    clear(out)
    kernels.get("scatter_rows").trusted(values, rows, out)
    return out


def number(value: Any) -> float:
    """The value as a float, NaN where it is no number or too large for one."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.nan


def known(what: str, asked: Sequence[str], names: Sequence[str]) -> None:
    """Refuse names that are not among `names` (`OptimizerError`)."""
    if unknown := sorted(set(asked) - set(names)):
        raise OptimizerError(f"{what} {unknown}; there is: {', '.join(sorted(names)) or 'none'}.")
