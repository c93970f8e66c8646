"""TensorFlow and Keras for tests: loaded by the first test that uses them; workers with other tests load neither."""

import importlib
import importlib.util
import warnings
from types import ModuleType
from typing import Any, final

import pytest


@final
class Late:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # what pytest looks for while it collects
            raise AttributeError(name)
        return getattr(_imported(self._name), name)

    def __dir__(self) -> list[str]:
        return dir(_imported(self._name))


def _imported(name: str) -> ModuleType:
    """The module, after TensorFlow and Keras, whose own warnings are not those of a test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("tensorflow")
        importlib.import_module("keras")
    return importlib.import_module(name)


def frameworks() -> tuple[Any, Any]:
    """(tensorflow, keras); the tests of the file are skipped where one is not installed."""
    for name in ("tensorflow", "keras"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)
    return Late("tensorflow"), Late("keras")
