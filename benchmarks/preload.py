"""Modules that the fork server of `benchmarks fit` and `fair` loads, besides those of trials: candidates and libraries.

PyTorch alone takes seconds to load, in every process of its candidates, and as many again the first time that an
optimizer is made, by which it loads its compiler. No function of a library runs here: a process that has started
OpenMP's threads must not fork.
"""

import gc
import importlib
import importlib.util

import sklearn.linear_model
import sklearn.multioutput  # noqa: F401

import workbench.sweeps.preload  # noqa: F401
from benchmarks.fair import competitors
from benchmarks.fit import candidates

for registry in (candidates, competitors):
    registry.names()
if importlib.util.find_spec("torch"):
    importlib.import_module("torch._dynamo")
gc.collect()
gc.freeze()
