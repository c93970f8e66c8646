"""Keras 3 on TensorFlow: a layer for sparse batches, our lazy optimizers, and what makes a model dense reported
beforehand.

>>> import keras
>>> from workbench import data
>>> from workbench.bridges.keras import LazyAdam, SparseDense, check_model
>>> from workbench.bridges.tensorflow import batches
>>> train = data.load("uniform", rows=400, features=60, density=0.1, cache=False)
>>> rows = keras.Input((train.features,), sparse=True)
>>> model = keras.Model(rows, SparseDense(1, activation="sigmoid")(rows))
>>> model.compile(LazyAdam(0.05), "binary_crossentropy")
>>> check_model(model, train.features)
[]
>>> history = model.fit(batches(train, rows=50, shuffle=True), epochs=2, shuffle=False, verbose=0)
>>> losses = history.history["loss"]
>>> losses[1] < losses[0]
True

`SparseDense` has a row-sparse gradient; `LazyAdam` and its like, one for each of `workbench.optimizers`, step the rows
that a gradient holds, those of keras.layers.Dense on sparse rows and of Embedding too. `check_model` says where a model
would make its sparse rows dense, before it is trained.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, final

import numpy as np

from kernels.formula import Backend, Float, Truth
from kernels.rules.rule import Rule
from workbench import optimizers
from workbench.bridges.contracts import Violation, class_name, class_names, described
from workbench.bridges.tensorflow import hashed, sparse_product, summed, tf
from workbench.bridges.validation_rules import ERROR, WARNING
from workbench.optimizers.contract import numbers_of

try:
    import keras
except ImportError as error:
    raise ImportError("workbench.bridges.keras needs Keras 3: pip install 'sparse-workbench[peers]'.") from error

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        f"Keras runs on {keras.backend.backend()}; sparse batches need TensorFlow: set KERAS_BACKEND=tensorflow."
    )

PACKAGE = "sparse_workbench"
"""The package under which what is saved names its classes."""

# Check of a model before it is trained: what makes its sparse rows dense on their way.


DENSIFYING = ("SparseToDense", "SparseTensorDenseAdd")
"""Operations of TensorFlow whose result is a dense copy of sparse rows."""


def check_model(model: Any, features: int, *, batch_rows: int = 256) -> list[Violation]:
    """Return a violation for each place where a model, given a SparseTensor [R, features], makes it dense; [] for none.

    The model is traced as `predict` and as `fit` call it, not run: its graph names the layer, also within nested
    models. Keras says nothing of it: a dense Input, a Sequential without one, or a model nested as such make a copy of
    R x features numbers. `batch_rows` is R for the bytes in the message. Width and sparseness of its inputs are
    compared, too; of several sparse inputs at least one has `features` columns, and dense ones are as they are. Layers
    that raise in `fit` alone, such as Dropout, are an error, as is Embedding, which looks up a row for every place. One
    layer on several sparse inputs is a warning unless the optimizer is one of ours.
    """
    try:
        for training in (False, True):
            graph = _trace(model, features, training)
            if found := [_violation(name, features, batch_rows) for name in _densifying(graph.as_graph_def())]:
                return found
    except (TypeError, ValueError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        first = next((line for line in lines if "Exception encountered" in line), lines[0])
        model_name = getattr(model, "name", type(model).__name__)
        came = f"The model {model_name} refuses sparse rows of {features} columns in {_CALLERS[training]}: {first}"
        advice = "Begin it with keras.Input((columns,), sparse=True) and Dense; Dropout and noise come after Dense"
        return [Violation("sparse", "batch -> model", ERROR, came, "a model of such rows", advice)]
    return list(_check_first_layers(model, batch_rows))


_CALLERS = {False: "predict", True: "fit"}
"""Methods of a model by the `training` that they trace it with."""


def _trace(model: Any, features: int, training: bool) -> Any:
    """Return the graph of the model on its inputs, of which one that is alone is sparse [R, features].

    Raises TypeError or ValueError for a model that refuses them.
    """
    inputs = model.inputs if isinstance(model, keras.Model) and model.built else ()
    rows: Any = tf.SparseTensorSpec((None, features), tf.float32)
    if len(inputs) > 1:
        widths = [each.shape[-1] for each in inputs if each.sparse]
        if features not in widths:
            raise ValueError(f"its sparse inputs have {', '.join(map(str, widths)) or 'no'} columns")
        specs = [tf.SparseTensorSpec if each.sparse else tf.TensorSpec for each in inputs]
        each = [spec(tensor.shape, tensor.dtype) for spec, tensor in zip(specs, inputs, strict=True)]
        rows = keras.tree.pack_sequence_as(model.input, each)
    return tf.function(lambda rows: model(rows, training=training)).get_concrete_function(rows).graph


def _densifying(definition: Any) -> Iterator[str]:
    """Yield the names of the operations that make sparse rows dense, in a graph and in the functions that it calls.

    `definition` is the graph as a GraphDef.
    """
    inner = (node for function in definition.library.function for node in function.node_def)
    for node in (*definition.node, *inner):
        if node.op in DENSIFYING:
            yield node.name


def _violation(operation: str, features: int, batch_rows: int) -> Violation:
    """Return the violation, an error, that an operation makes sparse rows dense, with the bytes of a float32 batch."""
    layer = operation.rpartition("/")[0] or "its input"
    bytes_needed = batch_rows * features * 4
    came = f"The rows are made dense at {layer}, {bytes_needed:,} bytes for each batch of {batch_rows}"
    advice = "Begin with Input((columns,), sparse=True), and end sparseness in SparseDense or Dense, which take it"
    effect = "memory and time follow columns, not entries, without a word"
    return Violation("sparse", "batch -> model", ERROR, came, "sparse rows up to the first weight", advice, effect)


def _check_first_layers(model: Any, batch_rows: int) -> Iterator[Violation]:
    """Yield a violation for each layer that takes the sparse rows and does more than that, of a keras.Model.

    A kernel regularizer, whose gradient is dense; an Embedding, whose result is; and a layer on several sparse inputs,
    whose gradient repeats rows.
    """
    for layer in model.layers if isinstance(model, keras.Model) else ():
        if not _is_sparse(layer):
            continue
        if getattr(layer, "kernel_regularizer", None) is not None:
            came = f"The layer {layer.name} has a regularizer of its kernel"
            advice = "Take it off, and decay weights in the optimizer"
            effect = "its gradient is dense, and every row is stepped"
            yield Violation("sparse", "gradient -> optimizer", WARNING, came, "a row-sparse gradient", advice, effect)
        if isinstance(layer, keras.layers.Embedding):
            places = batch_rows * int(np.prod(layer._inbound_nodes[0].output_tensors[0].shape[1:]))
            came = f"Embedding {layer.name} takes sparse rows and looks up a row for every place, {places * 4:,} bytes"
            advice = "Give it dense ids [rows, length], or take SparseDense on rows of ones"
            yield Violation(
                "sparse",
                "batch -> model",
                ERROR,
                f"{came} for each batch of {batch_rows}",
                "ids that are stored",
                advice,
            )
        if len(layer._inbound_nodes) > 1 and not isinstance(getattr(model, "optimizer", None), LazyOptimizer):
            came = f"The layer {layer.name} takes {len(layer._inbound_nodes)} sparse inputs: its gradient repeats rows"
            advice = (
                "Compile with an optimizer of workbench.bridges.keras, such as LazyAdagrad, or make a layer for each"
            )
            effect = "Adagrad, Adam, Ftrl and RMSprop of Keras train other weights than on dense rows"
            yield Violation("duplicates", "gradient -> optimizer", WARNING, came, "each row once", advice, effect)


def _is_sparse(layer: Any) -> bool:
    """Return whether the layer takes sparse rows in a functional model; False for a layer that is in none."""
    taken = keras.tree.flatten(layer.input) if layer._inbound_nodes else []
    return any(getattr(tensor, "sparse", False) for tensor in taken)


@keras.saving.register_keras_serializable(PACKAGE)
class SparseDense(keras.layers.Layer):
    """activation(X @ kernel + bias) of a sparse batch X [R, D]: kernel [D, units], bias [units].

    The gradient of the kernel is IndexedSlices with each active row once, so optimizers of Keras step it rightly; a
    layer on several inputs has the rows of each, which Adagrad, Adam, Ftrl and RMSprop of Keras step wrongly and ours
    sum (`check_model` warns). They are not lazy all the same: Adam, for one, moves every row of the kernel at each
    step, where `LazyAdam` moves those of the gradient.

    With `buckets` columns are folded into so many rows of the kernel, [buckets, units], whatever D is
    (`tensorflow.hashed`).

    Each batch must have D columns, which Keras itself checks while tracing alone, and must be sparse: TypeError tells
    of a dense one in `fit` and in eager code. In `predict` and `export` a dense one is taken too: Keras exports no
    sparse inputs, so what it writes takes dense rows. There is no regularizer of the kernel, which would make its
    gradient dense.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        buckets: int | None = None,
        **options: Any,
    ) -> None:
        """Keep sizes and functions; `buckets` of None makes a row of the kernel for each column.

        `options` are those of keras.layers.Layer. Raises ValueError unless `units` and `buckets` are whole numbers from
        1 on.
        """
        super().__init__(**options)
        for name, count in (("units", units), ("buckets", buckets)):
            if count is not None and (not isinstance(count, int) or count < 1):
                raise ValueError(f"{name} is {count!r}; it is a whole number from 1 on.")
        self.units, self.use_bias, self.buckets = units, use_bias, buckets
        self.activation = keras.activations.get(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, input_shape: Any) -> None:
        """Make the weights for batches of that shape, (rows, columns). Raises ValueError unless columns are known."""
        if len(input_shape) != 2 or input_shape[1] is None:
            raise ValueError(f"A batch of shape {input_shape} came; SparseDense takes [rows, columns], columns known.")
        self.features = int(input_shape[1])
        rows = self.buckets or self.features
        self.kernel = self.add_weight(name="kernel", shape=(rows, self.units), initializer=self.kernel_initializer)
        self.bias = (
            self.add_weight(name="bias", shape=(self.units,), initializer=self.bias_initializer)
            if self.use_bias
            else None
        )
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Return the layer's output for a SparseTensor [R, D]: a dense tensor [R, units] of the layer's compute type.

        Raises TypeError for a dense batch in training and in eager code, and InvalidArgumentError of TensorFlow for
        another number of columns.
        """
        is_exported = training is None and tf.inside_function()
        if (training is False or is_exported) and not isinstance(inputs, tf.SparseTensor):
            inputs = tf.sparse.from_dense(inputs)
        if not isinstance(inputs, tf.SparseTensor):
            raise TypeError(
                f"A dense batch came to SparseDense {self.name!r}: begin the model with Input((D,), sparse=True), and "
                "give it SparseTensors or SciPy matrices; or take keras.layers.Dense."
            )
        text = f"The batch has another number of columns than {self.features}, which {self.name} was made for."
        width = tf.debugging.assert_equal(inputs.dense_shape[1], tf.constant(self.features, tf.int64), text)
        with tf.control_dependencies([width] if width is not None else []):
            values = tf.identity(inputs.values)
        x = tf.SparseTensor(inputs.indices, tf.cast(values, self.compute_dtype), inputs.dense_shape)
        scores = sparse_product(hashed(x, self.buckets) if self.buckets else x, self.kernel.value)
        if self.bias is not None:
            scores = scores + tf.convert_to_tensor(self.bias)
        return self.activation(scores)

    def compute_output_spec(self, inputs: Any, training: bool | None = None) -> Any:
        """Return shape [R, units] and type of the output, without computing it."""
        return keras.KerasTensor((inputs.shape[0], self.units), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the settings of the layer by name, as a saved model keeps them; weights are not among them."""
        own = {
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "buckets": self.buckets,
        }
        return {**super().get_config(), **own}


# A rule's formula on tensors: that which makes the vector code of kernels, with a backend that calls TensorFlow.


@final
class Tensors(Backend):
    """Operations of TensorFlow; the values of numbers are tensors of the type `dtype`."""

    def __init__(self, dtype: Any) -> None:
        """Keep the type of the constants that formulas hold, a dtype of TensorFlow."""
        self.dtype = dtype

    def number(self, value: Any) -> Float:
        """Return a tensor as a number of formulas."""
        return Float(self, value)

    def _raw(self, number: Float | float) -> Any:
        """Return a number of a formula as a tensor; a plain float becomes a constant of the backend's dtype."""
        return number.value if isinstance(number, Float) else tf.constant(number, self.dtype)

    def arithmetic(self, sign: str, one: Float | float, other: Float | float) -> Float:
        """Return `one` sign `other`, element by element; sign is one of + - * /."""
        return self.number(OPERATIONS[sign](self._raw(one), self._raw(other)))

    def compared(self, sign: str, one: Float | float, other: Float | float) -> Truth:
        """Return the comparison `one` sign `other`, element by element.

        Sign is one of < <= >, false if either is NaN.
        """
        return Truth(self, COMPARISONS[sign](self._raw(one), self._raw(other)))

    def chosen(self, condition: Truth, one: Float | float, other: Float | float) -> Float:
        """Return `one` where the condition holds, else `other`, element by element."""
        return self.number(tf.where(condition.value, self._raw(one), self._raw(other)))

    def called(self, function: str, *arguments: Float | float) -> Float:
        """Return sqrt, fabs, copysign or fma of the arguments, element by element; fma may round twice."""
        return self.number(FUNCTIONS[function](*map(self._raw, arguments)))


OPERATIONS: dict[str, Callable[..., Any]] = {"+": tf.add, "-": tf.subtract, "*": tf.multiply, "/": tf.divide}
COMPARISONS: dict[str, Callable[..., Any]] = {"<": tf.less, "<=": tf.less_equal, ">": tf.greater}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": tf.sqrt,
    "fabs": tf.abs,
    "copysign": lambda x, sign: tf.where(sign < 0, -tf.abs(x), tf.abs(x)),
    "fma": lambda x, factor, term: x * factor + term,
}


def stepped(rule: Rule, arrays: Sequence[Any], gradient: Any, settings: Any) -> list[Any]:
    """Return the new weights and states [U, ...] of the `arrays` and their gradient; nothing is changed in place.

    `settings` is a vector of the formula's numbers. States of a rule with an average over the row have length one in
    every axis but the first.
    """
    backend = Tensors(gradient.dtype)
    weights, *states = map(backend.number, arrays)
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
    learning rate may be a schedule of Keras, and callbacks may change it. `clipnorm`, `clipvalue` and `global_clipnorm`
    are those of Keras, of which one may be given; gradients stay row-sparse, and repeated rows are summed first.
    """

    rule: ClassVar[str] = ""

    def __init__(
        self,
        learning_rate: Any = None,
        *,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        """Keep the options of the rule; a `learning_rate` of None is the rule's own, `name` of None the class's.

        `clipnorm` limits the norm of the gradient of each variable, `clipvalue` each of its values, `global_clipnorm`
        the joint norm of all gradients; None for no limit. Raises OptimizerError for an unknown option, and on this
        class itself, which has no rule; ValueError for several limits.
        """
        if not self.rule:
            raise optimizers.OptimizerError(f"LazyOptimizer has no rule; take one of {', '.join(class_names())}.")
        ours = {spelling: name for name, spelling in SPELLED.items()}
        known = optimizers.get(self.rule).resolve({ours.get(name, name): value for name, value in options.items()})
        rate = known.pop("learning_rate")
        limits = {"clipnorm": clipnorm, "clipvalue": clipvalue, "global_clipnorm": global_clipnorm}
        super().__init__(rate if learning_rate is None else learning_rate, name=name, **limits)
        self.options = known

    def build(self, variables: Sequence[Any]) -> None:
        """Make the states of the rule for each variable, zeros of its type; done once, later calls do nothing."""
        if self.built:
            return
        super().build(variables)
        optimizer = optimizers.get(self.rule)
        self.states = [
            [self.add_variable(self._shape(variable), dtype=variable.dtype, name=state) for state in optimizer.states]
            for variable in variables
        ]

    def _shape(self, variable: Any) -> tuple[int, ...]:
        """Return the shape of a state of a variable: [rows, 1, ...] for one value a row, or as the variable."""
        is_row = optimizers.get(self.rule).states_by_row
        return (variable.shape[0], *(1 for _ in variable.shape[1:])) if is_row else tuple(variable.shape)

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> Any:
        """Update variables and states in place, with repeated rows summed before Keras measures and clips gradients.

        `trainable_variables` of None are those that the optimizer was built for.
        """
        return super().apply([summed(gradient) for gradient in grads], trainable_variables)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update the variable and its states in place: rows in the gradient if it is IndexedSlices, else all rows.

        Rows that the gradient repeats, as one of several replicas does, are summed first.
        """
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
        """Return the numbers that the formula takes after the gradient, a vector of `dtype`.

        Bias corrections depend on the step's number, so that a graph calls back to Python for them at each step.
        """
        steps = self.iterations.value
        if tf.executing_eagerly():
            return tf.constant(self._numbers(learning_rate, steps), dtype)
        return tf.cast(tf.numpy_function(self._numbers, [learning_rate, steps], tf.float64, stateful=False), dtype)

    def _numbers(self, learning_rate: Any, steps: Any) -> np.ndarray:
        """Return the constants of the update formula for the step after `steps` others, a float64 vector."""
        rule, options = optimizers.get(self.rule).rule, {**self.options, "learning_rate": float(learning_rate)}
        return np.array(rule.settings(*numbers_of(rule, options, int(steps) + 1)), np.float64)

    def get_config(self) -> dict[str, Any]:
        """Return the settings of the optimizer by Keras' names, as a saved model keeps them.

        States are not among them.
        """
        shared = super().get_config()
        kept = {name: shared[name] for name in ("learning_rate", "clipnorm", "clipvalue", "global_clipnorm", "name")}
        return kept | {SPELLED.get(name, name): value for name, value in self.options.items()}


def _make_class(rule: str) -> type[LazyOptimizer]:
    """Return a new Keras optimizer class of an update rule, registered under `PACKAGE` for saved models."""
    name = class_name(rule)
    members = {"rule": rule, "__doc__": described(rule), "__module__": __name__}
    return keras.saving.register_keras_serializable(PACKAGE, name)(type(name, (LazyOptimizer,), members))


CLASSES: dict[str, type[LazyOptimizer]] = {class_name(rule): _make_class(rule) for rule in optimizers.names()}
"""The classes by name; all are made at once, so that a saved model finds the one that it names."""


__all__ = ["LazyOptimizer", "SparseDense", "check_model"]


def __getattr__(name: str) -> Any:
    """Return the optimizer class of that name, such as LazyAdam.

    Raises AttributeError, with those there are, for another.
    """
    if name not in CLASSES:
        classes = f"; lazy optimizers are {', '.join(CLASSES)}" if name.startswith("Lazy") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{classes}")
    return CLASSES[name]


def __dir__() -> list[str]:
    """Return the names of this module, sorted, with those of the optimizer classes."""
    return sorted([*__all__, *CLASSES])
