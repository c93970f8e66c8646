"""Modules that the fork server loads before the first trial, so that a child starts with them: libraries and Numba.

If the environment names the run folder, these are the modules that the trials of its spec need; else all modules that
register something. Only a serial kernel runs here: a process that has started OpenMP's threads must not fork (a test
watches that). Objects that exist by now are kept from the garbage collector, which would look through all of them in
every child. Compiled code that several trials load the server loads, too.
"""

import gc
import os

import numpy as np
import scipy.special  # noqa: F401 - intervals of times need it; 65 ms in each trial else

import kernels
import workbench.ops.binary
import workbench.ops.layout
import workbench.ops.losses
import workbench.sweeps.trial  # noqa: F401 - everything a trial needs
from kernels import plan, shared_code
from workbench import data, models, ops, optimizers
from workbench.measure import environment, machine
from workbench.sweeps.spec import SpecError, load_spec, roots_of

MOST_KINDS = 200
"""Combinations of settings whose modules are looked for; a spec of more has all modules loaded."""


KERNELS = ("csr_to_dense", "dense_to_csr", "rows_to_dense", "slice_rows", "take_rows")
"""Kernels that cut and convert batches."""

SYNTHETIC = "uniform"
"""The data set that a trial warms up on."""


def load_needed(path: str) -> bool:
    """Import the modules that the trials of a stored spec start with; return whether they are found.

    `path` is that of the spec in a run folder, "" if it is not known yet. Operators are imported as far as products
    and their losses need them, all of them if a model has others.
    """
    from workbench.sweeps.estimate import size_of

    try:
        kinds = size_of(load_spec(path)).kinds if path else ()
    except (OSError, SpecError):  # the supervisor, which reads it, too, says what is wrong
        return False
    if not kinds or len(kinds) > MOST_KINDS:
        return False
    for configuration in kinds:
        roots_of(configuration)
    for name in KERNELS:
        kernels.get(name)
    data.get(SYNTHETIC)
    if not all(models.get(configuration.model).is_product for configuration in kinds):
        ops.names()
    return True


def load_all() -> None:
    """Import every module that registers a kernel, operator, data set, model or optimizer."""
    for registry in (kernels, ops, data, models, optimizers):
        registry.names()


if not load_needed(os.environ.get("WORKBENCH_SPEC", "")):
    load_all()
machine.versions()  # each record has them, and to look them up takes 7 ms
environment.blas_name()  # which libraries there are, and what they can do, is kept
plan.build(np.array([0, 2], np.int32), np.array([1, 0], np.int32), 2)
shared_code.share_loaded_code()
gc.collect()
gc.freeze()
