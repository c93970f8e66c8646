"""Compiled code that a fork server loads once, for the processes forked from it later, which else load it each.

    share_loaded_code()  # in the server, after its imports

A process that measures a training loads a dozen compiled functions from disk, 10 ms each: as long as all the rest that
comes before its first step. It reports each by a pipe; before its next fork the server loads what two processes have
loaded. It computes nothing while they measure, and starts no thread, since a process with OpenMP's threads must not
fork.
"""

import fcntl
import functools
import gc
import json
import os
import pickle
import warnings
from collections import Counter

from kernels import threads
from kernels._compat import numba_internals
from kernels._compat.numba_internals import Version
from kernels.code_cache import locked

OFTEN = 2
"""Loads of a version by processes of the server after which the server loads it, too."""
BYTES_REPORTS = 2**20
"""Bytes of reports that the server reads at a time."""


def share_loaded_code() -> bool:
    """Load compiled code in this process for the processes that it forks; return whether it will.

    It will not with a threading layer that Numba chooses only while loading it. Call it once. Reports that the pipe has
    no room for are dropped.
    """
    if numba_internals.config.THREADING_LAYER not in threads.LAYERS:
        return False
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    numba_internals.on_load.append(functools.partial(_report, writing))
    loads: Counter[Version] = Counter()
    os.register_at_fork(before=functools.partial(_load_reported, os.getpid(), reading, loads))
    return True


def _report(writing: int, version: Version) -> None:
    """Write a version that this process has loaded into the pipe, as a line of JSON."""
    try:
        os.write(writing, json.dumps(version).encode() + b"\n")
    except OSError:  # the pipe is full, or its reader has ended
        return


def _load_reported(server: int, reading: int, loads: Counter[Version]) -> None:
    """Count the versions that were reported into `loads`, and load those that were loaded `OFTEN` times.

    Does nothing in a process other than `server`, which have this hook from it.
    """
    if os.getpid() != server:
        return
    try:
        lines = os.read(reading, BYTES_REPORTS).splitlines()
    except BlockingIOError:  # nothing was reported
        return
    wanted = []
    for line in lines:
        version = Version(*json.loads(line))
        loads[version] += 1
        if loads[version] == OFTEN:
            wanted.append(version)
    if not wanted:
        return
    numba_internals.name_layer_functions(numba_internals.config.THREADING_LAYER)
    for version in wanted:
        try:
            with locked(version.folder, fcntl.LOCK_SH):
                numba_internals.load_ahead(version)
        except (OSError, EOFError, StopIteration, pickle.UnpicklingError) as error:  # each process loads it itself
            warnings.warn(f"Compiled code is not shared: {version.file} ({error!r}).", stacklevel=1)
    gc.freeze()  # children look through none of it for garbage
