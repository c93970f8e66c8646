"""Advice: your data, one command or one function, a minute of trials, and what to train with.

>>> from workbench.advising import advise, settings_of
>>> settings, why = settings_of("uniform")
>>> settings
{'dataset': 'uniform'}

`advise({**settings, "model": "softmax"}, seconds=60)` gives an `Answer`: a recommendation whose sentences name the
configurations that they rest on, the command that trains it, the profile of the data.
"""

from workbench import aliases
from workbench.advising.advising import advise
from workbench.advising.answer import Answer
from workbench.advising.source import settings_of, suggest_model

__all__ = ["Answer", "advise", "settings_of", "suggest_model"]


def __getattr__(name: str) -> object:
    """Return what an old name stands for (`workbench.aliases`)."""
    return aliases.find(__name__, name)
