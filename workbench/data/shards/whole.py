"""Folders that are whole or not there: written beside their place, under a lock, and moved there at the end."""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from workbench.data.errors import DataError

LOCK = "lock"
ADVICE = {
    errno.ENOSPC: "The disk is full; free some of it, or choose a folder on another one",
    errno.EACCES: "Choose a folder that you may write to",
    errno.EROFS: "Choose a folder on a disk that can be written to",
}


@contextlib.contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """A new folder beside the one that is wanted, which becomes it at the end, or is gone after an error.

    It is locked, so that what a killed process left is known from what another one is at.
    """
    if folder.exists():
        raise DataError(f"There is already {folder}; remove it, or choose another name.")
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        partial.mkdir(parents=True, exist_ok=True)
        with (partial / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DataError(f"{folder} is being written by another process; wait for it, or stop it.") from None
            try:
                _clear(partial)
                yield partial
                partial.rename(folder)  # with its lock: without it another process could clear what is whole
                (folder / LOCK).unlink()
                _sync(folder.parent)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
    except OSError as error:
        advice = ADVICE.get(error.errno or 0, "Choose another folder")
        raise DataError(f"{folder} cannot be written: {error.strerror or error}. {advice}.") from error


def _clear(folder: Path) -> None:
    """Remove what is in a folder, but for the lock."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
