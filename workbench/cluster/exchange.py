"""Arrays sent between the ranks of an MPI job: everything a sharded store needs of a communicator.

Each method is collective: all ranks call the same methods in the same order. Sent arrays go from the memory where they
are, received ones into buffers that are reused by the next call with the same name.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from workbench.kvstore import StoreError


def world() -> Any:
    """Return the communicator of all ranks of this MPI job, of one rank without `mpiexec`; ImportError without MPI."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError("Training on several machines needs MPI: pip install 'sparse-workbench[mpi]'.") from error
    return MPI.COMM_WORLD


@final
class Exchange:
    """Collective calls on a communicator of mpi4py, or one with its methods `Alltoall`, `Ialltoall`, `Alltoallv`,
    `Ialltoallv`, `Allgatherv` and `allgather`.

    `bytes_moved` counts bytes of arrays to and from other ranks.
    """

    def __init__(self, communicator: Any = None) -> None:
        """Use `communicator`, by default that of all ranks of the job."""
        self.communicator = world() if communicator is None else communicator
        self.rank, self.ranks = int(self.communicator.rank), int(self.communicator.size)
        self.bytes_moved = 0
        self.buffers: dict[str, np.ndarray] = {}

    def buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an uninitialised array in the memory of the last call with this name, which grows as needed."""
        dtype, size = np.dtype(dtype), math.prod(shape)
        if self.buffers.get(name, np.empty(0)).nbytes < size * dtype.itemsize:
            self.buffers[name] = np.empty(size * dtype.itemsize * 5 // 4, np.uint8)
        return self.buffers.get(name, np.empty(0, np.uint8))[: size * dtype.itemsize].view(dtype).reshape(shape)

    def counts(self, what: str, counts: np.ndarray) -> np.ndarray:
        """Send counts to the ranks, and return those that came from them: both int64 `[values, ranks]`.

        StoreError on every rank if they do not all call this with the same `what`.
        """
        header, came = self._headers(what, counts)
        self.communicator.Alltoall(header, came)
        return self._checked(what, header, came)

    def begin_counts(self, what: str, counts: np.ndarray) -> Callable[[], np.ndarray]:
        """Begin what `counts` does; the function that is returned waits for it and returns what came."""
        header, came = self._headers(what, counts)
        request = self.communicator.Ialltoall(header, came)

        def wait() -> np.ndarray:
            """Wait for the counts and return them."""
            request.Wait()
            return self._checked(what, header, came)

        return wait

    def _headers(self, what: str, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what is sent to each rank, a hash of `what` and its counts, and the array for what comes."""
        header = np.empty((self.ranks, 1 + len(counts)), np.int64)
        header[:, 0], header[:, 1:] = zlib.crc32(what.encode()), counts.T
        return header, np.empty_like(header)

    def _checked(self, what: str, header: np.ndarray, came: np.ndarray) -> np.ndarray:
        """Return the counts that came; StoreError if a rank has called something else."""
        if (came[:, 0] != header[0, 0]).any():
            others = np.flatnonzero(came[:, 0] != header[0, 0]).tolist()
            raise StoreError(f"Rank {self.rank} calls {what}, ranks {others} something else; all call the same.")
        return came[:, 1:].T

    def rows(self, name: str, sent: np.ndarray, counts: Sequence[int], received: Sequence[int]) -> np.ndarray:
        """Send rows, `counts` of them to each rank in order; return those that came, `received` from each, in order.

        `sent` is contiguous `[sum(counts), ...]`; the result `[sum(received), ...]` is a buffer of `name`.
        """
        came, *both = self._of_rows(name, sent, counts, received)
        self.communicator.Alltoallv(*both)
        return came

    def begin_rows(
        self, name: str, sent: np.ndarray, counts: Sequence[int], received: Sequence[int]
    ) -> Callable[[], np.ndarray]:
        """Begin what `rows` does; the function that is returned waits for it and returns the rows that came.

        `sent` is not to be changed before.
        """
        came, *both = self._of_rows(name, sent, counts, received)
        request = self.communicator.Ialltoallv(*both)

        def wait() -> np.ndarray:
            """Wait for the rows and return them; holds what is sent until then."""
            request.Wait()
            both.clear()
            return came

        return wait

    def _of_rows(self, name: str, sent: np.ndarray, counts: Sequence[int], received: Sequence[int]) -> tuple:
        """Return (array for the rows that come, [sent, elements to each], [array, elements from each]); count bytes."""
        came = self.buffer(name, (sum(received), *sent.shape[1:]), sent.dtype)
        if np.may_share_memory(sent, came):  # long messages would be overwritten while they are sent
            raise StoreError(f"Rows are sent from the buffer {name!r} that others are received in; name another one.")
        width = math.prod(sent.shape[1:])
        own = [[count * width for count in each] for each in (counts, received)]
        away = sum(own[0]) + sum(own[1]) - own[0][self.rank] - own[1][self.rank]
        self.bytes_moved += away * sent.dtype.itemsize
        return came, [sent, own[0]], [came, own[1]]

    def all_rows(self, name: str, own: np.ndarray, counts: Sequence[int], out: np.ndarray | None = None) -> np.ndarray:
        """Return the rows of all ranks in order, `counts` of each; `own` are those of this one, contiguous.

        The result is `out`, contiguous, or a buffer of `name`.
        """
        came = self.buffer(name, (sum(counts), *own.shape[1:]), own.dtype) if out is None else out
        width = math.prod(own.shape[1:])
        self.communicator.Allgatherv(own, [came, [count * width for count in counts]])
        self.bytes_moved += came.nbytes + (self.ranks - 2) * own.nbytes
        return came

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in order; any objects, pickled."""
        return self.communicator.allgather(value)

    def agree(self, error: Exception | None) -> None:
        """Raise StoreError on every rank if `error` is not None on one; the message is that of the first."""
        if self.ranks == 1 and error is not None:
            raise error
        said = self.gather(None if error is None else f"Rank {self.rank}: {error}")
        if wrong := [one for one in said if one is not None]:
            raise StoreError(wrong[0]) from error
