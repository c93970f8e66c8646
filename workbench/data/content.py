"""Hash of the content of data files: it identifies what was read, whatever the name and the time of the file.

The hash is stored with the state of the file (size, times, inode) in the cache folder, so that an unchanged file is not
hashed again.
"""

import contextlib
import hashlib
import io
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from workbench import atomic_files
from workbench.data.errors import DataError

# Folder of the data cache.


VARIABLE = "WORKBENCH_CACHE"
NAME = "sparse-workbench"


def cache_folder(given: str | Path | None = None) -> Path:
    """Return the cache folder: `given`, else that in WORKBENCH_CACHE, else one in the user's cache folder.

    Not created.
    """
    if chosen := given or os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / NAME
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    return Path(os.environ.get(variable) or Path.home() / ".cache") / NAME


NOTES = "content"
"""Subfolder of the cache folder with a note for each file, or list of files, that was hashed."""
BYTES_QUICK = 1 << 24
"""Size of files that are hashed in about 20 ms."""
SECONDS_SETTLED = 0.1
"""A hash is stored if the file is older than this. File systems stamp times in ticks of up to 10 ms, so that a file
which is written twice within a tick has the same state for both contents."""
DIGEST_BYTES = 16

Paths = Iterable[str | os.PathLike | None]


class State(NamedTuple):
    """State of a file, which changes with its content; a new state does not imply new content."""

    kind: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


States = Mapping[str, State | None]
"""State of each file by its full name; None for a missing file."""


def states_of(paths: Paths) -> States:
    """Return {real path: state} of the files in order, None for a file that cannot be read.

    None among `paths` is skipped.
    """
    return {os.path.realpath(path): _state(path) for path in paths if path is not None}


def _state(path: str | os.PathLike) -> State | None:
    """Return the state of a file (size, times, inode), or None if it cannot be read."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return State(stat.S_IFMT(status.st_mode), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def first_changed_file(before: States, after: States) -> str:
    """Return the real path of the first file whose state differs between both, or that only one has; "" if none."""
    return next((name for name in {**before, **after} if before.get(name) != after.get(name)), "")


def stored_hash(states: States, where: str | Path | None = None) -> str | None:
    """Return the content hash that the cache folder `where` stores for files in these states; None if none or damaged.

    Returns "" if a file is missing or neither file nor folder.
    """
    kinds = {0 if state is None else state.kind for state in states.values()}
    if not kinds or not kinds <= {stat.S_IFREG, stat.S_IFDIR}:
        return ""
    try:
        note = json.loads(_note(states, where).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # none, or damaged: the file is hashed, and the note is replaced
        return None
    if not isinstance(note, dict) or note.get("states") != _text(states) or not isinstance(note.get("hash"), str):
        return None
    return note["hash"]


def hash_of(paths: Paths, where: str | Path | None = None) -> str:
    """Return the hash of the content of the files, 32 hexadecimal digits; "" if there is no file or one is unreadable.

    For a single file it is that of `b2sum --length 128`; for several it depends on their order and on their names below
    the first one, if that is a folder. Files are read unless their hash is stored in the cache folder `where`,
    which is updated. Raises DataError if a file changes meanwhile.
    """
    states = states_of(paths)
    if (stored := stored_hash(states, where)) is not None:
        return stored
    try:
        hashes = {name: _hash(name) for name, state in states.items() if state and state.kind == stat.S_IFREG}
    except OSError:  # whoever reads the data reports why it cannot be read
        return ""
    if name := first_changed_file(states, states_of(states)):
        raise DataError(f"{name} has changed while it was read; read it again when it is complete.")
    is_one = len(states) == len(hashes) == 1
    combined = next(iter(hashes.values())) if is_one else _combine_hashes(hashes, next(iter(states)))
    _store(states, combined, where)
    return combined


def is_quick(states: States) -> bool:
    """Return whether the files are small enough (16 MiB in total) to be hashed unnoticed."""
    return sum(state.size for state in states.values() if state is not None) <= BYTES_QUICK


def _hash(name: str) -> str:
    """Return the BLAKE2b hash of a file's content, 32 hexadecimal digits; OSError if it cannot be read."""
    with open(name, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=DIGEST_BYTES)).hexdigest()


def _combine_hashes(hashes: Mapping[str, str], first: str) -> str:
    """Return one hash of several files from {path: hash}, their names below the folder `first` included."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for name, content in hashes.items():
        below = name.removeprefix(first) if name.startswith(os.path.join(first, "")) else ""
        digest.update(f"{below}\0{content}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


Watch = Callable[[str, int, int], None]
"""Called with the name of a file, the bytes read of it, and its size."""
_watch: Watch | None = None


@contextlib.contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Call `watch(path, bytes read, size)` after each read of a data file in the `with` block, in that thread.

    It is global to the process; the watch before is restored at the end.
    """
    global _watch
    before, _watch = _watch, watch
    try:
        yield
    finally:
        _watch = before


@final
class WatchedFile(io.FileIO):
    """A file open for reading that tells the watch, if there is one, how much was read."""

    def __init__(self, path: str | os.PathLike) -> None:
        """Open the file for reading."""
        super().__init__(os.fspath(path), "rb")
        self._full_name, self._size = os.path.realpath(path), os.fstat(self.fileno()).st_size

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the file, call the watch if set, and return the number of bytes."""
        count = super().readinto(buffer) or 0
        if _watch is not None:
            _watch(self._full_name, self.tell(), self._size)
        return count


def _is_settled(state: State) -> bool:
    """Return whether a file was last changed over 0.1 s ago, so that its time stamps identify its content."""
    return time.time() - max(state.mtime_ns, state.ctime_ns) / 1e9 > SECONDS_SETTLED


def _text(states: States) -> str:
    """Return a hash, 32 hexadecimal digits, of paths and states of files."""
    return hashlib.blake2b(repr(list(states.items())).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _note(states: States, where: str | Path | None) -> Path:
    """Return the path of the JSON file below the cache folder `where` that stores the hash for these paths."""
    names = hashlib.blake2b("\0".join(states).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return cache_folder(where) / NOTES / f"{names}.json"


def _store(states: States, content: str, where: str | Path | None) -> None:
    """Write the hash of files in these states to the cache folder `where`, atomically.

    Does nothing if a file was changed within the last 0.1 s; a folder that cannot be written is ignored.
    """
    if not all(_is_settled(state) for state in states.values() if state is not None):
        return
    path = _note(states, where)
    with contextlib.suppress(OSError):  # a cache folder that cannot be written costs another look at the file
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.write(path, json.dumps({"states": _text(states), "hash": content}))
