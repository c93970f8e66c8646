"""Our optimizers as Keras' own: LazyAdam, LazyAdamW, LazyAdagrad, LazySGD, and one for each other that we have.

Keras' optimizers visit every row of a weight at each step, whatever rows its gradient has. These step the rows of an
IndexedSlices gradient alone, so that the time of a step follows the batch and not the table, and sum rows that come
twice. The formulas are those of our kernels, computed by TensorFlow in the variables' own memory.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, final

import numpy as np

from kernels.formula import Backend, Float, Truth
from kernels.rules.rule import Rule
from workbench import optimizers
from workbench.bridges.keras.library import PACKAGE, keras
from workbench.bridges.lazy_rules import class_name, class_names, described
from workbench.bridges.tensorflow.library import tf
from workbench.bridges.tensorflow.tensors import summed
from workbench.optimizers.contract import numbers_of

# A rule's formula on tensors: that which makes the vector code of kernels, with a backend that calls TensorFlow.


@final
class Tensors(Backend):
    """Operations of TensorFlow; the values of numbers are tensors of the type `dtype`."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def number(self, value: Any) -> Float:
        """Return a tensor as a number of formulas."""
        return Float(self, value)

    def _raw(self, number: Float | float) -> Any:
        """Return a number of a formula as a tensor of the backend's dtype."""
        return number.value if isinstance(number, Float) else tf.constant(number, self.dtype)

    def arithmetic(self, sign: str, one: Float | float, other: Float | float) -> Float:
        """Return one operation, element by element."""
        return self.number(OPERATIONS[sign](self._raw(one), self._raw(other)))

    def compared(self, sign: str, one: Float | float, other: Float | float) -> Truth:
        """Return one comparison, element by element."""
        return Truth(self, COMPARISONS[sign](self._raw(one), self._raw(other)))

    def chosen(self, condition: Truth, one: Float | float, other: Float | float) -> Float:
        """Return the one element or the other."""
        return self.number(tf.where(condition.value, self._raw(one), self._raw(other)))

    def called(self, function: str, *arguments: Float | float) -> Float:
        """Return a function, element by element."""
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
    """Return the new weights and states [U, ...], of the `held` ones and their gradient; `settings` is a vector of
    numbers.

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


SPELLED = {"beta1": "beta_1", "beta2": "beta_2"}
"""Options that Keras spells in a way of its own."""


class LazyOptimizer(keras.optimizers.Optimizer):
    """An optimizer of `workbench.optimizers`, the one named `rule`, for `model.compile`; `LazyAdam` says which.

    Gradients that are IndexedSlices, such as those of `SparseDense`, of Dense on sparse rows and of Embedding, step the
    rows that they hold; dense ones step every row. Options and defaults are those of the rule, `decay`, `rescale` and
    `clip` by element among them, beta1 and beta2 spelled as Keras does (`OptimizerError` for unknown ones). The
    learning rate may be a schedule of Keras, and callbacks may change it. `global_clipnorm` keeps gradients row-sparse.
    """

    rule: ClassVar[str] = ""

    def __init__(
        self,
        learning_rate: Any = None,
        *,
        global_clipnorm: float | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if not self.rule:
            raise optimizers.OptimizerError(f"LazyOptimizer has no rule; take one of {', '.join(class_names())}.")
        ours = {spelling: name for name, spelling in SPELLED.items()}
        known = optimizers.get(self.rule).resolve({ours.get(name, name): value for name, value in options.items()})
        rate = known.pop("learning_rate")
        super().__init__(rate if learning_rate is None else learning_rate, global_clipnorm=global_clipnorm, name=name)
        self.options = known

    def build(self, variables: Sequence[Any]) -> None:
        """Make the states, zeros."""
        if self.built:
            return
        super().build(variables)
        optimizer = optimizers.get(self.rule)
        self.states = [
            [self.add_variable(self._shape(variable), dtype=variable.dtype, name=state) for state in optimizer.states]
            for variable in variables
        ]

    def _shape(self, variable: Any) -> tuple[int, ...]:
        """Return the shape of a state of a variable: one value a row, or as the variable."""
        is_row = optimizers.get(self.rule).states_by_row
        return (variable.shape[0], *(1 for _ in variable.shape[1:])) if is_row else tuple(variable.shape)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update the variable and its states in place: rows in the gradient if it is IndexedSlices, else all rows."""
        arrays = [variable, *(state.value for state in self.states[self._get_variable_index(variable)])]
        rule, settings = optimizers.get(self.rule).rule, self._settings(learning_rate, variable.dtype)
        if not isinstance(gradient, tf.IndexedSlices):
            after = stepped(rule, [tf.convert_to_tensor(array) for array in arrays], gradient, settings)
            for array, values in zip(arrays, after, strict=True):
                array.assign(values)
            return
        gradient = summed(gradient)
        rows = gradient.indices
        after = stepped(rule, [tf.gather(array, rows) for array in arrays], gradient.values, settings)
        for array, values in zip(arrays, after, strict=True):
            array.scatter_update(tf.IndexedSlices(values, rows))

    def _settings(self, learning_rate: Any, dtype: Any) -> Any:
        """Return the numbers that the formula takes after the gradient, a vector.

        Bias corrections depend on the step's number.
        """
        steps = self.iterations.value
        if tf.executing_eagerly():
            return tf.constant(self._numbers(learning_rate, steps), dtype)
        return tf.cast(tf.numpy_function(self._numbers, [learning_rate, steps], tf.float64, stateful=False), dtype)

    def _numbers(self, learning_rate: Any, steps: Any) -> np.ndarray:
        """Return the constants of the update formula in a step, float64."""
        rule, options = optimizers.get(self.rule).rule, {**self.options, "learning_rate": float(learning_rate)}
        return np.array(rule.settings(*numbers_of(rule, options, int(steps) + 1)), np.float64)

    def get_config(self) -> dict[str, Any]:
        """Return the settings of the optimizer in a saved model."""
        shared = super().get_config()
        kept = {name: shared[name] for name in ("learning_rate", "global_clipnorm", "name")}
        return kept | {SPELLED.get(name, name): value for name, value in self.options.items()}


def _made(rule: str) -> type[LazyOptimizer]:
    """Return the Keras optimizer class of an update rule, registered for saving."""
    name = class_name(rule)
    members = {"rule": rule, "__doc__": described(rule), "__module__": __name__}
    return keras.saving.register_keras_serializable(PACKAGE, name)(type(name, (LazyOptimizer,), members))


CLASSES: dict[str, type[LazyOptimizer]] = {class_name(rule): _made(rule) for rule in optimizers.names()}
"""The classes by name; all are made at once, so that a saved model finds the one that it names."""
