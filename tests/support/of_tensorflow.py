"""TensorFlow and Keras for tests: imported with their own warnings, or the tests that ask are skipped."""

import warnings
from typing import Any

import pytest


def frameworks() -> tuple[Any, Any]:
    """(tensorflow, keras)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, while they are imported
        return pytest.importorskip("tensorflow"), pytest.importorskip("keras")
