"""PyTorch, imported in this one place: the extra `peers` has it, `import workbench` does without."""

import os

import numba

from kernels import threads

try:
    import torch
    from torch.utils.weak import WeakTensorKeyDictionary
except ImportError as error:
    raise ImportError(
        "workbench.bridges.pytorch needs PyTorch: pip install 'sparse-workbench[peers]', or for the CPU alone "
        "pip install torch --index-url <the index of CPU builds that PyTorch's own page of installation names>."
    ) from error

__all__ = ["WeakTensorKeyDictionary", "torch"]


# Threads: kernels called from PyTorch run on as many as PyTorch has.
#
# PyTorch and Numba each bring an OpenMP of their own, so `torch.set_num_threads` alone leaves kernels on all cores,
# and a DataLoader's workers, which PyTorch keeps on one thread each, would crowd them.

_most = int(vars(numba.config)["NUMBA_NUM_THREADS"])


def _after_fork() -> None:
    """Let `follow` give this forked process one thread: GNU's OpenMP does not survive a fork."""
    global _most
    _most = 1


os.register_at_fork(after_in_child=_after_fork)


def follow() -> None:
    """Let the next kernels of this thread run on `torch.get_num_threads()` threads, on as many as there are at most."""
    count = min(torch.get_num_threads(), _most)
    if threads.get_threads() != count:
        threads.set_threads(count)
