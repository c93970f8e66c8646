"""Keras 3 on TensorFlow, imported in this one place: the extra `peers` has it, `import workbench` does without."""

from workbench.bridges.tensorflow.library import tf  # noqa: F401 - with its own message where it is missing

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

__all__ = ["PACKAGE", "keras"]
