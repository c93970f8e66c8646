"""`SparseDense`: a layer for sparse batches whose weight has a row-sparse gradient; it `fit`s and saves."""

from collections.abc import Iterator
from typing import Any

from workbench.bridges.contracts import Violation
from workbench.bridges.keras.library import PACKAGE, keras
from workbench.bridges.tensorflow.library import tf
from workbench.bridges.tensorflow.tensors import hashed, sparse_product
from workbench.bridges.validation_rules import ERROR, WARNING

# Check of a model before it is trained: what makes its sparse rows dense on their way.


DENSIFYING = ("SparseToDense", "SparseTensorDenseAdd")
"""Operations of TensorFlow whose result is a dense copy of sparse rows."""


def check_model(model: Any, features: int, *, batch_rows: int = 256) -> list[Violation]:
    """Check where a model, given a SparseTensor [R, features], makes it dense: a violation for each place.

    The model is traced once, not run: its graph names the layer, also within nested models. Keras says nothing of it: a
    dense Input, a Sequential without one, or a model nested as such make a copy of R x features numbers. `batch_rows`
    is R for the bytes in the message. Width and sparseness of its inputs are compared, too.
    """
    spec = tf.SparseTensorSpec((None, features), tf.float32)
    try:
        graph = tf.function(lambda rows: model(rows, training=False)).get_concrete_function(spec).graph
    except (TypeError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        came = f"{_named(model)} refuses sparse rows of {features} columns: {first}"
        advice = "Begin it with keras.Input((columns,), sparse=True), and a layer that takes sparse rows"
        return [Violation("sparse", "batch -> model", ERROR, came, "a model of such rows", advice)]
    found = [_breach(name, features, batch_rows) for name in _densifying(graph.as_graph_def())]
    return found or list(_of_first_layers(model))


def _densifying(definition: Any) -> Iterator[str]:
    """Yield the names of the operations that make sparse rows dense, in a graph and in the functions that it calls."""
    inner = (node for function in definition.library.function for node in function.node_def)
    for node in (*definition.node, *inner):
        if node.op in DENSIFYING:
            yield node.name


def _breach(operation: str, features: int, batch_rows: int) -> Violation:
    """Return the violation that a layer makes sparse rows dense, with the bytes of a batch."""
    layer = operation.rpartition("/")[0] or "its input"
    bytes_needed = batch_rows * features * 4
    came = f"The rows are made dense at {layer}, {bytes_needed:,} bytes for each batch of {batch_rows}"
    advice = "Begin with Input((columns,), sparse=True), and end sparseness in SparseDense or Dense, which take it"
    effect = "memory and time follow columns, not entries, without a word"
    return Violation("sparse", "batch -> model", ERROR, came, "sparse rows up to the first weight", advice, effect)


def _of_first_layers(model: Any) -> Iterator[Violation]:
    """Yield a kernel regularizer on a layer that takes the rows makes its gradient dense."""
    for layer in model.layers if isinstance(model, keras.Model) else ():
        if getattr(layer, "kernel_regularizer", None) is not None and _is_sparse(layer):
            came = f"The layer {layer.name} has a regularizer of its kernel"
            advice = "Take it off, and decay weights in the optimizer"
            effect = "its gradient is dense, and every row is stepped"
            yield Violation("sparse", "gradient -> optimizer", WARNING, came, "a row-sparse gradient", advice, effect)


def _is_sparse(layer: Any) -> bool:
    """Return whether the layer of a functional model takes sparse rows."""
    taken = keras.tree.flatten(layer.input) if layer._inbound_nodes else []
    return any(getattr(tensor, "sparse", False) for tensor in taken)


def _named(model: Any) -> str:
    """Return "The model NAME", for messages."""
    return f"The model {getattr(model, 'name', type(model).__name__)}"


@keras.saving.register_keras_serializable(PACKAGE)
class SparseDense(keras.layers.Layer):
    """activation(X @ kernel + bias) of a sparse batch X [R, D]: kernel [D, units], bias [units].

    The gradient of the kernel is IndexedSlices with each touched row once, so optimizers of Keras step it rightly. They
    are not lazy all the same: Adam, for one, moves every row of the kernel at each step, where `LazyAdam` moves those
    of the gradient. With `buckets` columns are folded into so many rows of the kernel, [buckets, units], whatever D is
    (`tensorflow.hashed`).

    Each batch must have D columns, which Keras itself checks while tracing alone, and must be sparse: TypeError tells
    of a dense one. There is no regularizer of the kernel, which would make its gradient dense.
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
        super().__init__(**options)
        for name, count in (("units", units), ("buckets", buckets)):
            if count is not None and (not isinstance(count, int) or count < 1):
                raise ValueError(f"{name} is {count!r}; it is a whole number from 1 on.")
        self.units, self.use_bias, self.buckets = units, use_bias, buckets
        self.activation = keras.activations.get(activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, input_shape: Any) -> None:
        """Make the weights for batches of that shape; the number of columns must be known."""
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

    def call(self, inputs: Any) -> Any:
        """Return the layer's output [R, units], dense."""
        if not isinstance(inputs, tf.SparseTensor):
            raise TypeError(
                f"A dense batch came to SparseDense {self.name!r}: begin the model with Input((D,), sparse=True), and "
                "give it SparseTensors or SciPy matrices; or take keras.layers.Dense."
            )
        told = f"The batch has another number of columns than {self.features}, which {self.name} was made for."
        width = tf.debugging.assert_equal(inputs.dense_shape[1], tf.constant(self.features, tf.int64), told)
        with tf.control_dependencies([width] if width is not None else []):
            values = tf.identity(inputs.values)
        x = tf.SparseTensor(inputs.indices, tf.cast(values, self.compute_dtype), inputs.dense_shape)
        scores = sparse_product(hashed(x, self.buckets) if self.buckets else x, self.kernel.value)
        if self.bias is not None:
            scores = scores + tf.convert_to_tensor(self.bias)
        return self.activation(scores)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Return shape and type of the output, without computing it."""
        return keras.KerasTensor((inputs.shape[0], self.units), dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the settings of the layer in a saved model."""
        own = {
            "units": self.units,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "buckets": self.buckets,
        }
        return {**super().get_config(), **own}
