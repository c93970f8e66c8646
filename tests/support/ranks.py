"""Ranks of an MPI job as threads of this process: what stores do is the same, and is tested without MPI."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

SECONDS = 60.0


class ThreadRank:
    """Communicator of one rank, with the methods of mpi4py that stores call."""

    def __init__(self, rank: int, size: int, shared: list, barrier: threading.Barrier) -> None:
        self.rank, self.size, self.shared, self.barrier = rank, size, shared, barrier

    def allgather(self, value: Any) -> list[Any]:
        self.shared[self.rank] = value
        self.barrier.wait(SECONDS)
        came = list(self.shared)
        self.barrier.wait(SECONDS)
        return came

    def Alltoall(self, sent: np.ndarray, received: np.ndarray) -> None:  # noqa: N802
        for rank, of_rank in enumerate(self.allgather(sent.copy())):
            received[rank] = of_rank[self.rank]

    def Alltoallv(self, sent: list, received: list) -> None:  # noqa: N802
        array, counts = sent
        assert array.flags.c_contiguous
        assert sum(counts) == array.size
        everything = self.allgather((array.reshape(-1).copy(), np.cumsum([0, *counts])))
        parts = [values[ends[self.rank] : ends[self.rank + 1]] for values, ends in everything]
        assert [part.size for part in parts] == list(received[1])
        received[0].reshape(-1)[...] = np.concatenate(parts)

    def Ialltoall(self, sent: np.ndarray, received: np.ndarray) -> "ThreadRank":  # noqa: N802
        self.Alltoall(sent, received)
        return self

    def Ialltoallv(self, sent: list, received: list) -> "ThreadRank":  # noqa: N802
        self.Alltoallv(sent, received)
        return self

    def Wait(self) -> None:  # noqa: N802
        pass

    def Allgatherv(self, sent: np.ndarray, received: list) -> None:  # noqa: N802
        parts = [part.reshape(-1) for part in self.allgather(sent.copy())]
        assert [part.size for part in parts] == list(received[1])
        received[0].reshape(-1)[...] = np.concatenate(parts)


def on_ranks(count: int, work: Callable[[ThreadRank], Any]) -> list[Any]:
    """What `work(communicator)` returns on each rank; the first error of one is raised, and ends the others."""
    shared, barrier = [None] * count, threading.Barrier(count)
    results, errors = [None] * count, list[BaseException]()

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadRank(rank, count, shared, barrier))
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * SECONDS)
    if errors:
        raise errors[0]
    return results
