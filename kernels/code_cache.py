"""Compiled code on disk, for several processes at once.

Numba 0.68 writes a function's index first, then the file of the new version under the index's next number, without a
lock. Of two processes that save two versions at one moment each may take that number: the index then has the code of
one under the types of the other, and a later process runs it. With the lock here they take turns; a save takes some ms.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numba
from numba.core.caching import FunctionCache


class CodeCache(FunctionCache):
    """Numba's own cache of a function's versions; one process at a time uses the folder."""

    def load_overload(self, sig, target_context):
        """The compiled version of a signature, or None."""
        with self._alone():
            return super().load_overload(sig, target_context)

    def save_overload(self, sig, data):
        """Keep the compiled version of a signature."""
        with self._alone():
            super().save_overload(sig, data)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        folder = Path(self.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "numba.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def njit(**options: object) -> Callable:
    """`numba.njit` with these options, for functions whose code is kept on disk."""

    def decorate(function: Callable) -> Callable:
        """The function compiled, with a cache of its own."""
        dispatcher = numba.njit(**options)(function)
        dispatcher._cache = CodeCache(function)
        return dispatcher

    return decorate
