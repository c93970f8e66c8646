"""TensorFlow, imported in this one place: the extra `peers` has it, `import workbench` does without."""

try:
    import tensorflow as tf
except ImportError as error:
    raise ImportError(
        "workbench.bridges.tensorflow needs TensorFlow: pip install 'sparse-workbench[peers]'."
    ) from error

__all__ = ["tf"]
