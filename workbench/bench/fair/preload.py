"""Modules that the fork server loads before the first configuration: candidates, and PyTorch, which takes seconds.

No function of either runs here: a process that has started OpenMP's threads must not fork.
"""

import gc
import importlib
import importlib.util

import sklearn.linear_model  # noqa: F401

import workbench.bench.fair.measure  # noqa: F401
from workbench.bench.fair import competitors

competitors.names()
if importlib.util.find_spec("torch"):
    importlib.import_module("torch")
gc.collect()
gc.freeze()
