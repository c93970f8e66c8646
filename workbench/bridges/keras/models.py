"""Check of a model before it is trained: what makes its sparse rows dense on their way."""

from collections.abc import Iterator
from typing import Any

from workbench.bridges.contracts import Breach
from workbench.bridges.keras.library import keras
from workbench.bridges.table import ERROR, WARNING
from workbench.bridges.tensorflow.library import tf

DENSIFYING = ("SparseToDense", "SparseTensorDenseAdd")
"""Operations of TensorFlow whose result is a dense copy of sparse rows."""


def check_model(model: Any, features: int, *, batch_rows: int = 256) -> list[Breach]:
    """Check where a model, given a SparseTensor [R, features], makes it dense: a breach for each place.

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
        return [Breach("sparse", "batch -> model", ERROR, came, "a model of such rows", advice)]
    found = [_breach(name, features, batch_rows) for name in _densifying(graph.as_graph_def())]
    return found or list(_of_first_layers(model))


def _densifying(definition: Any) -> Iterator[str]:
    """Names of the operations that make sparse rows dense, in a graph and in the functions that it calls."""
    inner = (node for function in definition.library.function for node in function.node_def)
    for node in (*definition.node, *inner):
        if node.op in DENSIFYING:
            yield node.name


def _breach(operation: str, features: int, batch_rows: int) -> Breach:
    layer = operation.rpartition("/")[0] or "its input"
    bytes_needed = batch_rows * features * 4
    came = f"The rows are made dense at {layer}, {bytes_needed:,} bytes for each batch of {batch_rows}"
    advice = "Begin with Input((columns,), sparse=True), and end sparseness in SparseDense or Dense, which take it"
    effect = "memory and time follow columns, not entries, without a word"
    return Breach("sparse", "batch -> model", ERROR, came, "sparse rows up to the first weight", advice, effect)


def _of_first_layers(model: Any) -> Iterator[Breach]:
    """A kernel regularizer on a layer that takes the rows makes its gradient dense."""
    for layer in model.layers if isinstance(model, keras.Model) else ():
        if getattr(layer, "kernel_regularizer", None) is not None and _is_sparse(layer):
            came = f"The layer {layer.name} has a regularizer of its kernel"
            advice = "Take it off, and decay weights in the optimizer"
            effect = "its gradient is dense, and every row is stepped"
            yield Breach("sparse", "gradient -> optimizer", WARNING, came, "a row-sparse gradient", advice, effect)


def _is_sparse(layer: Any) -> bool:
    """Whether the layer of a functional model takes sparse rows."""
    taken = keras.tree.flatten(layer.input) if layer._inbound_nodes else []
    return any(getattr(tensor, "sparse", False) for tensor in taken)


def _named(model: Any) -> str:
    return f"The model {getattr(model, 'name', type(model).__name__)}"
