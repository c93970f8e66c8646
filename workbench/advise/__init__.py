"""Advice: your data, one command or one function, a minute of trials, and what to train with.

>>> from workbench.advise import advise, settings_of
>>> settings, why = settings_of("uniform")
>>> settings
{'dataset': 'uniform'}

`advise({**settings, "model": "softmax"}, seconds=60)` gives an `Answer`: a recommendation whose sentences name the
cells that they rest on, the command that trains it, the profile of the data.
"""

from workbench.advise.advising import advise
from workbench.advise.answer import Answer
from workbench.advise.source import settings_of, suggested_model

__all__ = ["Answer", "advise", "settings_of", "suggested_model"]
