"""A rule's formula on tensors: that which makes the vector code of kernels, with a backend that calls TensorFlow."""

from collections.abc import Callable, Sequence
from typing import Any, final

from kernels.formula import Backend, Float, Truth
from kernels.rules.rule import Rule
from workbench.bridges.tensorflow.library import tf


@final
class Tensors(Backend):
    """Operations of TensorFlow; the values of numbers are tensors of the type `dtype`."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def number(self, value: Any) -> Float:
        """A tensor as a number of formulas."""
        return Float(self, value)

    def _raw(self, number: Float | float) -> Any:
        return number.value if isinstance(number, Float) else tf.constant(number, self.dtype)

    def arithmetic(self, sign: str, one: Float | float, other: Float | float) -> Float:
        """One operation, element by element."""
        return self.number(OPERATIONS[sign](self._raw(one), self._raw(other)))

    def compared(self, sign: str, one: Float | float, other: Float | float) -> Truth:
        """One comparison, element by element."""
        return Truth(self, COMPARISONS[sign](self._raw(one), self._raw(other)))

    def chosen(self, condition: Truth, one: Float | float, other: Float | float) -> Float:
        """The one element or the other."""
        return self.number(tf.where(condition.value, self._raw(one), self._raw(other)))

    def called(self, function: str, *arguments: Float | float) -> Float:
        """A function, element by element."""
        return self.number(FUNCTIONS[function](*map(self._raw, arguments)))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": tf.add,
    "-": tf.subtract,
    "*": tf.multiply,
    "/": tf.divide,
}
COMPARISONS: dict[str, Callable[..., Any]] = {"<": tf.less, "<=": tf.less_equal, ">": tf.greater}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": tf.sqrt,
    "fabs": tf.abs,
    "copysign": lambda x, sign: tf.where(sign < 0, -tf.abs(x), tf.abs(x)),
    "fma": lambda x, factor, term: x * factor + term,
}


def stepped(rule: Rule, held: Sequence[Any], gradient: Any, settings: Any) -> list[Any]:
    """The new weights and states [U, ...], of the `held` ones and their gradient; `settings` is a vector of numbers.

    States of a rule with an average over the row have length one in every axis but the first.
    """
    backend = Tensors(gradient.dtype)
    weights, *states = map(backend.number, held)
    slope, count = backend.number(gradient), len(rule.settings(*rule.example))
    numbers = [backend.number(settings[place]) for place in range(count)]
    mean: tuple[Float, ...] = ()
    if rule.average is not None:
        each = rule.average(weights, slope, *numbers).value
        axes = list(range(1, len(gradient.shape)))
        mean = (backend.number(tf.reduce_mean(each, axis=axes, keepdims=True) if axes else each),)
    return [number.value for number in rule.formula(weights, *states, slope, *mean, *numbers)]
