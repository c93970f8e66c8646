"""What the fork server loads before the first training, beside what trials need: contenders and scikit-learn.

No function of scikit-learn runs here: a process that has started OpenMP's threads must not fork.
"""

import gc

import sklearn.linear_model
import sklearn.multioutput  # noqa: F401

import workbench.bench.fit.child
import workbench.sweep.preload  # noqa: F401
from workbench.bench.fit import contract

contract.names()
gc.collect()
gc.freeze()
