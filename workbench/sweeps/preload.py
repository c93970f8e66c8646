"""Modules that the fork server loads before the first trial, so that a child starts with them: libraries and Numba.

Only a serial kernel runs here: a process that has started OpenMP's threads must not fork (a test watches that). Objects
that are there by now are kept from the garbage collector, which would look through all of them in every child.
"""

import gc

import numpy as np
import scipy.special  # noqa: F401 - intervals of times need it; 65 ms in each trial else

import kernels
import workbench.sweeps.trial  # noqa: F401 - everything a trial needs
from kernels import plan
from workbench import data, models, ops, optimizers

for registry in (kernels, ops, data, models, optimizers):
    registry.names()
plan.build(np.array([0, 2], np.int32), np.array([1, 0], np.int32), 2)
gc.collect()
gc.freeze()
