"""Check of a DataLoader's workers for silent faults: rows that come twice, too many threads, unsafe starts."""

import copy
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from kernels import threads
from workbench import formats
from workbench.bridges.contracts import Violation
from workbench.bridges.pytorch.follow import follow
from workbench.bridges.pytorch.library import torch
from workbench.bridges.pytorch.rows import SparseRows, arrays_of, rows_of
from workbench.bridges.validation_rules import ERROR, WARNING
from workbench.data.profiles.row_hashes import row_hashes
from workbench.formats.compressed import assemble

BOUNDARY = "DataLoader -> training"
UNSAFE = ("tensorflow", "jax")
"""Libraries whose threads stay behind in a fork, so that a worker that calls them waits for ever."""


def init_worker(worker: int) -> None:
    """Prepare a worker, as `DataLoader(..., worker_init_fn=init_worker)`: its kernels run on its one thread."""
    follow()


def check_loader(loader: torch.utils.data.DataLoader) -> list[Violation]:
    """Check the workers of a DataLoader, a violation for each fault. It takes two epochs of the data.

    One is that of the workers, the other the same without any: rows that come more often than there, or never, are an
    error. Warnings are workers whose kernels run on so many threads that all together have more than the machine, and
    workers forked from a process with threads that do not survive it. Numba's do: `kernels` sees to that.

    A batch is rows, or a tuple that begins with them: `SparseRows`, sparse or dense tensors, SciPy matrices
    (`ContractError` for another). The data must be the same each time. 8 bytes of memory a row.
    """
    if not loader.num_workers:
        return []
    given = list(_epoch(loader, loader.num_workers))
    alone = list(_epoch(loader, 0))
    found = [*_of_rows(given, alone, loader.num_workers), *_of_threads(given, loader.num_workers)]
    return [*found, *_of_start(_start_method(loader))]


class _Seen(NamedTuple):
    """A batch: hashes of its rows, uint64 [R], and the threads that kernels have where it was made."""

    hashes: np.ndarray
    threads: int


class _Watched:
    """The collate function of a loader, which also tells of where it ran."""

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self.collate = collate

    def __call__(self, items: Any) -> _Seen:
        batch = self.collate(items)
        count = threads.get_threads()
        x = batch[0] if isinstance(batch, tuple | list) and not isinstance(batch, SparseRows) else batch
        return _Seen(row_hashes(_matrix(x)), count)


def _matrix(x: Any) -> Any:
    """Return the rows of a batch as a csr array without duplicates."""
    if isinstance(x, torch.Tensor) and x.layout is torch.strided and x.ndim == 2:
        return scipy.sparse.csr_array(x.detach().numpy())
    indptr, indices, values = arrays_of(rows := rows_of(x))
    values = np.ones(indices.size, np.float32) if values is None else values
    x = assemble("csr", indptr.copy(), indices.copy(), values.copy(), (indptr.size - 1, rows.features))
    formats.validate(x)
    x.sum_duplicates()
    return x


def _epoch(loader: torch.utils.data.DataLoader, workers: int) -> Iterator[_Seen]:
    """Yield an epoch of the loader with so many workers; the loader itself stays as it is."""
    like = copy.copy(loader)
    changed = {"num_workers": workers, "collate_fn": _Watched(loader.collate_fn), "_iterator": None}
    changed |= {"persistent_workers": False} | ({} if workers else {"timeout": 0})
    vars(like).update(changed)  # most of which a loader refuses to have set
    yield from like


def _of_rows(given: list[_Seen], alone: list[_Seen], workers: int) -> Iterator[Violation]:
    """Yield a violation if rows came twice or never from several workers, by their hashes."""
    came, there = (np.concatenate([np.empty(0, np.uint64), *(seen.hashes for seen in side)]) for side in (given, alone))
    _, number = np.unique(np.concatenate([came, there]), return_inverse=True)
    count = int(number.max(initial=-1)) + 1
    surplus = np.bincount(number[: came.size], minlength=count) - np.bincount(number[came.size :], minlength=count)
    twice, never = int(surplus[surplus > 0].sum()), -int(surplus[surplus < 0].sum())
    if twice or never:
        what = f"{workers} workers give {came.size:,} rows of {there.size:,}: {twice:,} too often, {never:,} never"
        advice = "Share rows out by torch.utils.data.get_worker_info() in __iter__, or take FeedDataset"
        effect = "an epoch has other rows than the data, and no error comes"
        yield Violation("workers", BOUNDARY, ERROR, what, "each row once", advice, effect)


def _of_threads(given: list[_Seen], workers: int) -> Iterator[Violation]:
    """Yield a warning if workers together run more kernel threads than there are cores."""
    most, cores = max((seen.threads for seen in given), default=1), os.cpu_count() or 1
    if most > 1 and most * workers > cores:
        came = f"Kernels run on {most} threads in each of {workers} workers, on {cores} cores"
        advice = "Pass worker_init_fn=init_worker, which leaves them one each, or take FeedDataset"
        effect = "they take turns, and the training waits for them"
        yield Violation("threads", BOUNDARY, WARNING, came, "one thread a worker", advice, effect)


def _start_method(loader: torch.utils.data.DataLoader) -> str:
    """Return how the workers of a loader are started: "fork", "forkserver" or "spawn"."""
    context = loader.multiprocessing_context
    return context.get_start_method() if context is not None else torch.multiprocessing.get_start_method()


def _of_start(method: str) -> Iterator[Violation]:
    """Yield a warning if workers are forked from a process with libraries that do not survive it."""
    loaded = [name for name in UNSAFE if name in sys.modules]
    if method == "fork" and loaded:
        came = f"Workers are forked from a process that has loaded {' and '.join(loaded)}"
        advice = 'Pass multiprocessing_context="forkserver" or "spawn"'
        effect = "a worker that calls it waits for ever"
        yield Violation("start method", BOUNDARY, WARNING, came, "processes that start anew", advice, effect)
