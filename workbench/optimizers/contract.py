"""The Optimizer record: an update rule of `kernels.updates` by name, with the defaults of its options."""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np

import kernels
from kernels import aligned
from kernels.operands import RANGES, Range
from kernels.registry import Registry, unknown_name
from kernels.rules.rule import Rule, get_rule
from kernels.threads import clear

LAZY = ("off", "on", "exact")

COMMON = {"rescale": 1.0, "clip": math.inf}
"""Options of every optimizer: the gradient is multiplied by `rescale`, then each element kept from -clip to clip."""

ANY_NUMBER = Range("a number", 1.0, "{0} == {0}")
"""Range of options that are not in `RANGES`: all numbers but NaN."""


class OptimizerError(ValueError):
    """An optimizer or option is unknown or invalid, or an update does not fit; the message lists what is allowed."""


@dataclass(frozen=True)
class Optimizer:
    """An optimizer: an update rule with the defaults of its options.

    Parameters
    ----------
    name : str
        Name in the registry. `Updater` runs the kernels `<name>_dense`, `<name>_lazy` and `<name>_fused`.
    options : mapping of str to float
        Options with their defaults, including `rescale` and `clip`.
    formulas : str
        The dense and the lazy rule as text, when they are equal, how rows catch up, and the source.

    Examples
    --------
    >>> from workbench import optimizers
    >>> optimizers.get("adagrad").states
    ('history',)
    """

    name: str
    options: Mapping[str, float]
    formulas: str

    @functools.cached_property
    def rule(self) -> Rule:
        """The formula of a step; its kernels are imported at the first use."""
        return _checked_rule(self.name, self.options)

    @property
    def states(self) -> tuple[str, ...]:
        """Return the names of the state arrays of the rule, in the order in which kernels take them."""
        return self.rule.states

    @property
    def states_by_row(self) -> bool:
        """Return whether states have one value per row, [D], instead of the shape of the weights."""
        return self.rule.average is not None

    def new_states(self, weights: np.ndarray) -> list[np.ndarray]:
        """Create the initial states: arrays of zeros.

        Parameters
        ----------
        weights : ndarray
            Weights of one parameter; gives shape and dtype.

        Returns
        -------
        list of ndarray
            One array for each name in `states`.

        Examples
        --------
        >>> from workbench import optimizers
        >>> [state.shape for state in optimizers.get("adam").new_states(np.zeros((3, 2), np.float32))]
        [(3, 2), (3, 2)]
        """
        shape = weights.shape[:1] if self.states_by_row else weights.shape
        return [aligned.zeros(shape, weights.dtype) for _ in self.states]

    def resolve(self, given: Mapping[str, float | None]) -> dict[str, float]:
        """Complete the given options with defaults.

        Parameters
        ----------
        given : mapping of str to float or None
            Options by name; None for `clip` and `clip_weights` means no limit.

        Returns
        -------
        dict of str to float
            All options.

        Raises
        ------
        OptimizerError
            If a name is unknown or a value is not allowed; the message says what is.

        Examples
        --------
        >>> from workbench import optimizers
        >>> optimizers.get("sgd").resolve({"learning_rate": 0.5, "clip": None})["clip"]
        inf
        """
        options: dict[str, Any]
        if unknown := sorted(set(given) - set(self.options)):
            raise OptimizerError(f"{self.name} has no option {unknown}; its options are {sorted(self.options)}.")
        options = {**self.options, **given}
        options |= {name: math.inf for name in ("clip", "clip_weights") if name in options and options[name] is None}
        for option, value in options.items():
            allowed = RANGES.get(option, ANY_NUMBER)
            options[option] = number(value)
            if not allowed.contains(options[option]):
                text = allowed.text.replace("infinite", "None")
                raise OptimizerError(f"{self.name}: {option} is {value!r:.80}; it is {text}.")
        require_rate(self.rule, options["learning_rate"], "learning_rate")
        return options


def require_rate(rule: Rule, rate: float, what: str) -> None:
    """Raise OptimizerError for a rate of 0, called `what`, of a rule that divides by it."""
    if rate == 0 and rule.last_step:
        raise OptimizerError(f"{rule.name}: {what} is 0; expected above 0, for the rule divides by it.")


_optimizers: Registry[Optimizer] = Registry("optimizer", ("workbench.optimizers",), OptimizerError, files=("rules",))
register, names, get, unavailable = _optimizers.register, _optimizers.names, _optimizers.get, _optimizers.unavailable


def numbers_of(rule: Rule, options: Mapping[str, float], step: int) -> list[float]:
    """Return the scalars that kernels of `rule` take after their arrays, in order, for step `step` (counted from 1).

    Raises OptimizerError for a rate of 0, of a schedule or multiplier, if the rule divides by it.
    """
    require_rate(rule, options["learning_rate"], f"the learning rate of step {step}")
    return [step if name == "step" else options[name] for name in rule.numbers]


def by_rule(name: str, formulas: str, **options: float) -> Optimizer:
    """Create the optimizer of the rule `kernels/updates/<name>.py`.

    Parameters
    ----------
    name : str
        Name of the rule.
    formulas : str
        Text with the dense and the lazy rule, when they are equal, and how rows catch up.
    **options : float
        Defaults of the rule's options except `rescale` and `clip`.

    Returns
    -------
    Optimizer
        The record; pass it to `register`.

    Raises
    ------
    OptimizerError
        If options and scalars of the rule differ.

    Examples
    --------
    >>> by_rule("sgd", "Gradient descent", learning_rate=0.1, decay=0.0).name
    'sgd'
    """
    optimizer = declare(name, formulas, **options)
    _checked_rule(name, optimizer.options)
    return optimizer


def declare(name: str, formulas: str, **options: float) -> Optimizer:
    """Return what `by_rule` returns; the rule is imported and compared with the options at its first use."""
    return Optimizer(name, {**options, **COMMON}, formulas)


def _checked_rule(name: str, options: Mapping[str, float]) -> Rule:
    """Return the rule called `name`; OptimizerError unless its scalars are these options and perhaps the step."""
    rule = get_rule(name)
    if wrong := set(options) ^ (set(rule.numbers) - {"step"}):
        raise OptimizerError(f"{name}: {sorted(wrong)} should be options of the optimizer and numbers of the rule.")
    return rule


def spread(rows: np.ndarray, values: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Overwrite `out` [D, N] by zeros except for `rows` (sorted), which become `values` [U, N]; return `out`."""
    clear(out)
    kernels.get("scatter_rows").trusted(values, rows, out)
    return out


def number(value: Any) -> float:
    """Return a real number as float; NaN for objects that are no real numbers and for numbers too large."""
    if type(value) is float:  # as most are: to ask an abstract class takes ten times as long
        return value
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.nan


def known(what: str, asked: Sequence[str], names: Sequence[str]) -> None:
    """Raise OptimizerError for the first name of `asked` that is not in `names`; `what` is the kind of name."""
    if unknown := sorted(set(asked) - set(names)):
        raise OptimizerError(unknown_name(what, unknown[0], sorted(names)))


@final
@dataclass(frozen=True)
class Multiplier:
    """Factors of the learning rate and of the decays of one parameter.

    Parameters
    ----------
    learning_rate : float, default 1.0
        Factor of the learning rate.
    decay : float, default 1.0
        Factor of the decay options.

    Raises
    ------
    OptimizerError
        If a factor is not a number.

    Examples
    --------
    >>> Multiplier(learning_rate=2.0).decay
    1.0
    """

    learning_rate: float = 1.0
    decay: float = 1.0

    def __post_init__(self) -> None:
        """Raise OptimizerError for a factor that is not a number."""
        for name, value in vars(self).items():
            if math.isnan(number(value)):
                raise OptimizerError(f"A multiplier's {name} is {value!r:.80}; it is a number.")
