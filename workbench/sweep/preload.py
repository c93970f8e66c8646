"""What the fork server loads before the first trial, so that a child starts with it: libraries, and Numba's compiler.

Only a serial kernel runs here: a process that has started OpenMP's threads must not fork (a test watches that).
"""

import numpy as np

import workbench.sweep.trial  # noqa: F401 - everything a trial needs
from kernels import plan

plan.build(np.int32([0, 2]), np.int32([1, 0]), 2)
