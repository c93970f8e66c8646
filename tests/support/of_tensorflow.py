"""TensorFlow and Keras for tests: loaded by the first test that uses them; workers with other tests load neither."""

import importlib
import importlib.util
import warnings
from typing import Any, final

import pytest


@final
class Late:
    """A module that is imported when something of it is asked for, TensorFlow with it, without its warnings."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # theirs, while they are imported
            importlib.import_module("tensorflow")
            importlib.import_module("keras")
        return getattr(importlib.import_module(self._name), name)


def frameworks() -> tuple[Any, Any]:
    """(tensorflow, keras); the tests of the file are skipped where one is not installed."""
    for name in ("tensorflow", "keras"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)
    return Late("tensorflow"), Late("keras")
