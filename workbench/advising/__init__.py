"""Advice: your data, one command or one function, a minute of trials, and what to train with.

>>> from workbench.advising import advise, settings_of
>>> settings, why = settings_of("uniform")
>>> settings
{'dataset': 'uniform'}

`advise({**settings, "model": "softmax"}, seconds=60)` gives an `Answer`: a recommendation whose sentences name the
configurations that they rest on, the command that trains it, the profile of the data.

Each name is imported when it is first used: `suggest_model` needs no analysis and no pandas.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.advising.advising import Answer, advise
    from workbench.advising.source import settings_of, suggest_model

__all__ = ["Answer", "advise", "settings_of", "suggest_model"]

_MODULES = {"Answer": "advising", "advise": "advising", "settings_of": "source", "suggest_model": "source"}
"""Submodule that defines each name."""


def __getattr__(name: str) -> object:
    """Return a name of `__all__`, imported on first use; AttributeError for other names."""
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
