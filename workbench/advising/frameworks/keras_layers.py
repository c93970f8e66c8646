"""First layers of a model of Keras: Dense on dense rows and on SparseTensors, and ours."""

from collections.abc import Callable
from typing import Any, final

import keras
import numpy as np
import tensorflow as tf

from kernels.registry import unknown_name
from workbench.advising.frameworks.first_layer import RATE, REST, LayerWay, Rows, Training, why_no_dense
from workbench.bridges import keras as bridge
from workbench.bridges.tensorflow import to_sparse_tensor
from workbench.sweeps.spec import SpecError

OPTIMIZERS = {
    "sgd": ("SGD", "LazySGD"),
    "adagrad": ("Adagrad", ""),
    "adam": ("Adam", "LazyAdam"),
}
"""The optimizer of Keras, and ours if it has the same rule."""
NOT_LAZY = ("sgd",)
"""Optimizers of which ours does the same; Adagrad of Keras begins with another sum of squares."""


@keras.saving.register_keras_serializable("workbench", "Constant")
class _Constant(keras.layers.Layer):
    """In place of the first layer: its output for a batch, a weight that takes a gradient."""

    def __init__(self, rows: int, units: int, **options: Any) -> None:
        """Keep the sizes of the output."""
        super().__init__(**options)
        self.rows, self.units = rows, units

    def build(self, _: Any) -> None:
        """Draw the output [rows, units]."""
        self.output_of_batch = self.add_weight(name="kernel", shape=(self.rows, self.units))

    def call(self, _: Any) -> Any:
        """Return the output."""
        return tf.convert_to_tensor(self.output_of_batch)

    def compute_output_spec(self, inputs: Any) -> Any:
        """Return the shape of the output."""
        return keras.KerasTensor((inputs.shape[0], self.units), dtype=self.compute_dtype)


@final
class KerasTraining(Training):
    """Steps of a copy of the model with another first layer, by `train_on_batch`."""

    def __init__(self, model: Any, batch: Callable[[np.ndarray], Any], y: np.ndarray) -> None:
        """Keep the compiled model; `batch(rows)` is what it takes."""
        self.model, self.batch, self.y = model, batch, y

    def step(self, rows: np.ndarray) -> float:
        """Train on the rows with these indices; return the loss before the update."""
        self.model.reset_metrics()
        return float(np.ravel(self.model.train_on_batch(self.batch(rows), self.y[rows]))[0])

    def gradients(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return {parameter: gradient} of a batch; the state of random numbers and moving means goes on."""
        with tf.GradientTape() as tape:
            outputs = self.model(self.batch(rows), training=True)
            loss = self.model.compute_loss(y=tf.convert_to_tensor(self.y[rows]), y_pred=outputs, training=True)
        variables = self.model.trainable_variables
        found = {}
        for number, (variable, gradient) in enumerate(
            zip(variables, tape.gradient(loss, [variable.value for variable in variables]), strict=True)
        ):
            if gradient is None:
                continue
            if not number:
                self.bytes_gradient = _bytes_of(gradient)
            found[f"variable {number}, {variable.name}"] = tf.convert_to_tensor(gradient).numpy()
        return found


def _bytes_of(gradient: Any) -> int:
    """Return the bytes of a gradient, those of indices included."""
    parts = [gradient.values, gradient.indices] if isinstance(gradient, tf.IndexedSlices) else [gradient]
    return sum(part.numpy().nbytes for part in parts)


def first_layer_of(model: Any, features: int) -> Any:
    """Return the Dense layer that takes the rows as they come in. Raises SpecError if there is none."""
    if keras.backend.backend() != "tensorflow":
        raise SpecError(f"Keras runs on {keras.backend.backend()}; sparse rows need its backend TensorFlow.")
    if not model.built and isinstance(model, keras.Sequential):
        model.build((None, features))
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dense) and layer.input is model.inputs[0]:
            if layer.kernel.shape[0] == features:
                return layer
            raise SpecError(f"The first layer takes {layer.kernel.shape[0]:,} columns; the rows have {features:,}.")
    raise SpecError("No keras.layers.Dense takes the rows as they come in; expected one as the first layer.")


def ways_of_model(model: Any, features: int) -> tuple[str, Any, Callable[..., list[LayerWay]]]:
    """Return (name of the first layer, NumPy's dtype of the rows, function that makes the ways)."""
    layer = first_layer_of(model, features)

    def make(rows: Rows, optimizer: str | None, _loss: Any, lazy: bool) -> list[LayerWay]:
        """Return the ways to train the model on these rows."""
        if optimizer is not None and optimizer not in OPTIMIZERS:
            raise SpecError(unknown_name("optimizer", optimizer, OPTIMIZERS))
        return _Ways(model, layer, rows, optimizer, lazy).listed()

    return layer.name, np.dtype(layer.compute_dtype), make


class _Ways:
    """The ways to train one model on one set of rows."""

    def __init__(self, model: Any, layer: Any, rows: Rows, optimizer: str | None, lazy: bool) -> None:
        """Keep what all ways have in common."""
        self.model, self.layer, self.rows = model, layer, rows
        own = type(model.optimizer).__name__.lower() if model.compiled and optimizer is None else optimizer or "adam"
        self.optimizer = None if model.compiled and optimizer is None else own
        self.ours = OPTIMIZERS[own][1] if own in OPTIMIZERS and (lazy or own in NOT_LAZY) else ""

    def listed(self) -> list[LayerWay]:
        """Return the ways, dense ones first, and the step without the layer last."""
        csr, layer, size, own = self.rows.csr, self.layer, self.rows.bytes_sparse, self.layer.get_config()
        own_sparse = {name: own[name] for name in ("name", "units", "activation", "use_bias")}
        sparse = f"model begins with keras.Input(({csr.shape[1]},), sparse=True)\n"
        feed = "x = to_sparse_tensor(X[rows])"
        name = f"SparseDense{f' and {self.ours}' if self.ours else ''}"
        units = f"{layer.units}, activation={keras.activations.serialize(layer.activation)!r}"

        def dense(_: Any) -> Any:
            """Return a copy of the dense layer."""
            return keras.layers.Dense.from_config(own)

        def ours(_: Any) -> Any:
            """Return this project's layer of the same size."""
            return bridge.SparseDense(**own_sparse)

        def nothing(rows: np.ndarray) -> np.ndarray:
            """Return rows of zeros, which the constant output passes over."""
            return np.zeros((len(rows), csr.shape[1]), csr.dtype)

        def constant(_: Any) -> Any:
            """Return a layer with the output of the first layer as its weight."""
            return _Constant(self.rows.batch_rows, layer.units)

        return [
            LayerWay(
                "rows densified a batch at a time",
                "dense",
                lambda: self._training(dense, lambda rows: csr[rows].toarray()),
                size,
                "x = X[rows].toarray()",
            ),
            LayerWay("rows in a dense array", "dense", lambda: self._whole(dense), self.rows.bytes_dense,
                     "x = X.toarray()  # once", why_no_dense(self.rows)),
            LayerWay(
                "Dense on SparseTensors",
                "sparse",
                lambda: self._training(dense, lambda rows: to_sparse_tensor(csr[rows]), is_sparse=True),
                size,
                f"from workbench.bridges.tensorflow import to_sparse_tensor\n\n# the {sparse}{feed}",
            ),
            LayerWay(
                name,
                "sparse",
                lambda: self._training(ours, lambda rows: to_sparse_tensor(csr[rows]), is_sparse=True, is_ours=True),
                size,
                f"from workbench.bridges.keras import {name.replace(' and ', ', ')}\n"
                "from workbench.bridges.tensorflow import to_sparse_tensor\n\n"
                f"# the {sparse}"
                f"layer = SparseDense({units}, use_bias={layer.use_bias}, name={layer.name!r})  # for {layer.name}\n"
                + (f"model.compile(optimizer={self.ours}(lr), loss=loss)\n" if self.ours else "")
                + feed,
            ),
            LayerWay(REST, "", lambda: self._training(constant, nothing)),
        ]  # fmt: skip

    def _whole(self, dense: Any) -> Training:
        """Return the training on one dense array of all rows."""
        x = self.rows.csr.toarray()
        return self._training(dense, lambda rows: x[rows])

    def _training(
        self,
        make: Callable[[Any], Any],
        batch: Callable[[np.ndarray], Any],
        is_sparse: bool = False,
        is_ours: bool = False,
    ) -> Training:
        """Return the training of a compiled copy of the model with this first layer."""

        def replaced(one: Any) -> Any:
            """Return the copy of a layer, of the first one the layer that takes its place."""
            options = one.get_config()
            if options.get("seed", 0) is None:
                options["seed"] = 0  # the same dropout in each copy
            return make(one) if one is self.layer else type(one).from_config(options)

        given = keras.Input((self.rows.features,), sparse=is_sparse, dtype=self.layer.compute_dtype)
        copied = keras.models.clone_model(self.model, input_tensors=given, clone_function=replaced)
        layers = [
            [one for one in each.layers if not isinstance(one, keras.layers.InputLayer)]
            for each in (self.model, copied)
        ]
        for one, other in zip(*layers, strict=True):
            if not isinstance(other, _Constant):
                other.set_weights(one.get_weights())
        copied.compile(optimizer=self._optimizer(is_ours), loss=self._loss(), jit_compile=False)
        return KerasTraining(copied, batch, self.rows.y)

    def _optimizer(self, is_ours: bool) -> Any:
        """Return a new optimizer: ours for our layer where that trains the same, the model's own, or the named one."""
        if is_ours and self.ours:
            return getattr(bridge, self.ours)(RATE)
        if self.optimizer is None:
            return type(self.model.optimizer).from_config(self.model.optimizer.get_config())
        return getattr(keras.optimizers, OPTIMIZERS[self.optimizer][0])(RATE)

    def _loss(self) -> Any:
        """Return the loss that the model was compiled with, else that of its labels and last activation."""
        if self.model.compiled and self.model.loss is not None:
            return self.model.loss
        if self.rows.kind == "numbers":
            return keras.losses.MeanSquaredError()
        last = keras.activations.serialize(getattr(self.model.layers[-1], "activation", None))
        if self.model.output_shape[-1] == 1:
            return keras.losses.BinaryCrossentropy(from_logits=last != "sigmoid")
        return keras.losses.SparseCategoricalCrossentropy(from_logits=last != "softmax")
