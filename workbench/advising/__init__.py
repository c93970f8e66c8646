"""Advice: your data, one command or one function, a minute of trials, and what to train with.

>>> from workbench.advising import advise, settings_of
>>> settings, why = settings_of("uniform")
>>> settings
{'dataset': 'uniform'}

`advise({**settings, "model": "softmax"}, seconds=60)` gives an `Answer`: a recommendation whose sentences name the
cells that they rest on, the command that trains it, the profile of the data.
"""

from workbench.advising.advising import advise
from workbench.advising.answer import Answer
from workbench.advising.source import settings_of, suggested_model

__all__ = ["Answer", "advise", "settings_of", "suggested_model"]
