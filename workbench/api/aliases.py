"""Functions that have the names of former packages: `wb.train` is one, and `from workbench.train import Setup` works.

The packages are called training, sweeps and advising now; their old names work until version 2.0, with a note once.
"""

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, final

from workbench.aliases import END

PACKAGES = {"train": "training", "sweep": "sweeps", "advise": "advising"}
"""Former name of each package, which is that of a function now, and its present name."""


@functools.cache
def note(name: str) -> None:
    """Warn (FutureWarning) that the package workbench.`name` has another name now; once per name, as it is cached."""
    new = PACKAGES[name]
    warnings.warn(
        f"The package workbench.{name} is now workbench.{new}; the old name ends with version {END}. "
        f"Type from workbench import {new}.",
        FutureWarning,
        stacklevel=4,
    )


class Verb:
    """A function that also answers to the attributes of the package which had its name before.

    It stands in `sys.modules` in the place of that package, so that it is the same object in every order of imports.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        """Wrap a function, and give it the attributes of the former package `name` that imports need."""
        functools.update_wrapper(self, function)
        self._package = name
        self.__path__: list[str] = []
        self.__spec__ = importlib.machinery.ModuleSpec(f"workbench.{name}", None, is_package=True)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the wrapped function and return its result."""
        return self.__wrapped__(*given, **named)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the package's present name, with a warning once; AttributeError if it has none."""
        if name.startswith("_"):
            raise AttributeError(name)
        package = importlib.import_module(f"workbench.{PACKAGES[self._package]}")
        try:
            value = getattr(package, name)
        except AttributeError:
            raise AttributeError(f"workbench.{self._package} is a function and has no attribute {name!r}.") from None
        note(self._package)
        return value

    def __repr__(self) -> str:
        """Return "<function workbench.NAME>"."""
        return f"<function workbench.{self._package}>"


@final
class FormerModules(importlib.abc.InspectLoader):
    """Loader of former packages and their modules: `workbench.train.setup` is `workbench.training.setup`."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module of the present name for a former one; for a former package, the function that has its name.

        Warns once.
        """
        _, name, *inner = spec.name.split(".", 2)
        if inner:
            note(name)
            module = importlib.import_module(f"workbench.{PACKAGES[name]}.{inner[0]}")
        else:
            module = getattr(importlib.import_module("workbench"), name)
        self._own = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system has replaced; nothing is executed."""
        module.__spec__ = self._own

    def get_source(self, fullname: str) -> str:
        """Return the source that `python -m` of a former package runs: a note, then the present package."""
        new = f"workbench.{PACKAGES[fullname.rpartition('.')[2]]}"
        said = f"python -m {fullname} is now python -m {new}; the old name works for one release."
        return f"import runpy\nprint({said!r})\nrunpy.run_module({new!r}, run_name='__main__', alter_sys=True)"


def spec_of(name: str) -> importlib.machinery.ModuleSpec | None:
    """Return the import spec, with `FormerModules` as loader, of a former package or a module in one."""
    return importlib.util.spec_from_loader(name, FormerModules(), is_package=False)


def verb(name: str) -> Verb:
    """Return the function "train", "sweep" or "advise" wrapped so that it also answers as its former package."""
    module = {"train": "training", "sweep": "sweeping", "advise": "advice"}[name]
    return Verb(getattr(importlib.import_module(f"workbench.api.{module}"), name), name)
