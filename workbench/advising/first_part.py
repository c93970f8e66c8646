"""The first part of a large text file, for advice within a budget that reading the whole file would use up.

The beginning of the file is read twice and timed once, which gives the time that the whole file would take. If that is
more than the limit, the first lines are copied into the cache folder: as many as are read in half of the limit.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workbench import atomic_files, data
from workbench.data import content
from workbench.data.cache import PARTS
from workbench.data.files.opened import compression_of, open_text
from workbench.sweeps.problem import parameters_of_file
from workbench.sweeps.spec import FILES

READERS = ("svmlight", "table", "vw", "ratings")
"""Data sets that read a row from each line, so that the first lines are data of the same kind."""
QUOTING = ("table", "ratings")
"""Those in which a line may end within quotes."""
LEAST_BYTES = 24 << 20
"""Files below this size are read whole: no reader takes longer for them than half of the smallest budget."""
SAMPLE_BYTES = 2 << 20
"""Bytes of text that are read to see how fast reading is."""
MIB = 1 << 20


class FirstPart(NamedTuple):
    """A copy of the first lines of a file: its path, its bytes of text, its share of the file (0 to 1), and how long
    the whole file would take to read, in seconds."""

    path: Path
    bytes_text: int
    share: float
    seconds_whole: float

    def describe(self, original: str, rows: int, budget: float) -> str:
        """Return a sentence on which part of the file `original` was read and what budget reads it all.

        `rows` were read; `budget` is in seconds.
        """
        return (
            f"Only the first {rows:,} rows of {original} were read, about {100 * self.share:.2g} % of the file: all of "
            f"it takes about {self.seconds_whole:.0f} s to read, more than half of the budget of {budget:g} s. "
            f"For all rows take a budget of {self.seconds_for_all:.0f} s or more."
        )

    @property
    def seconds_for_all(self) -> float:
        """Budget in seconds with which the whole file is read: somewhat more than twice its reading time."""
        return 2.2 * self.seconds_whole + 5


def first_part(settings: Mapping[str, Any], limit: float) -> FirstPart | None:
    """Copy the first lines of a large file into the cache and describe the copy; None if all is to be read.

    `settings` name reader and file. None if reading the file takes at most `limit` seconds, if it is in the data cache
    already, if it is small or is not read line by line, and if it cannot be read at all: then the reader reports why.
    """
    path, dataset = settings.get("path"), settings["dataset"]
    if not path or dataset not in READERS or settings.get("labels") or not os.path.isfile(path):
        return None
    size = os.path.getsize(path)
    if size < LEAST_BYTES or data.is_cached(dataset, **_parameters(settings, path)):
        return None
    try:
        return _cut(settings, Path(path), size, limit)
    except data.DataError:
        return None


def _cut(settings: Mapping[str, Any], path: Path, size: int, limit: float) -> FirstPart | None:
    """Copy a first part of the file `path` that takes half of `limit` seconds to read into the cache; return it.

    None if all of the file (`size` bytes) takes at most `limit`. A sample is read twice to time it and then removed.
    DataError if it cannot be read.
    """
    folder = content.cache_folder() / PARTS / _hash_of(path, settings["dataset"])
    folder.mkdir(parents=True, exist_ok=True)
    sample = folder / "sample" / path.name
    is_quoting = settings["dataset"] in QUOTING
    try:
        bytes_sample, packed = _copy_lines(path, sample, SAMPLE_BYTES, is_quoting)
        seconds = _seconds_to_read(settings, sample)
        whole = seconds * size / packed
        if whole <= limit:
            return None
        part = folder / path.name
        wanted = max(int(bytes_sample * limit / 2 / seconds), bytes_sample)
        if not _is_usable(part, path, wanted):
            _copy_lines(path, part, wanted, is_quoting)
        bytes_part = part.stat().st_size
        return FirstPart(part, bytes_part, min(bytes_part / bytes_sample * packed / size, 1.0), whole)
    finally:
        shutil.rmtree(sample.parent, ignore_errors=True)


def _is_usable(part: Path, path: Path, wanted: int) -> bool:
    """Return whether a part copied earlier is newer than the file and has about `wanted` bytes.

    Records belong to content: the same part keeps those of earlier advice, a part with other rows starts without any.
    """
    if not part.exists():
        return False
    state = part.stat()
    return state.st_mtime_ns > path.stat().st_mtime_ns and wanted / 3 < state.st_size < wanted * 2


def _hash_of(path: Path, dataset: str) -> str:
    """Return a hash (16 hex digits) of the data set's name and the full path of the file."""
    name = f"{dataset}\0{path.resolve()}".encode("utf-8", "surrogateescape")
    return hashlib.blake2b(name, digest_size=8).hexdigest()


def _parameters(settings: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """Return the arguments of the data source for the settings, with `path` as their file."""
    return parameters_of_file(dict.fromkeys(FILES) | dict(settings) | {"path": str(path)})


def _seconds_to_read(settings: Mapping[str, Any], sample: Path) -> float:
    """Return the seconds of reading the sample a second time, when the code for it is loaded; above 0."""
    dataset, parameters = settings["dataset"], _parameters(settings, sample)
    data.load(dataset, cache=False, **parameters)
    start = time.perf_counter()
    data.load(dataset, cache=False, **parameters)
    return max(time.perf_counter() - start, 1e-6)


def _copy_lines(source: Path, target: Path, most: int, is_quoting: bool) -> tuple[int, int]:
    """Copy the first whole lines of a text file, decompressed, up to `most` bytes, at least one line.

    Returns (bytes of text copied, bytes of the file that they came from). `target` is written atomically; its folder is
    created. With `is_quoting` a line may end within quotes.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_text(source) as file:
        text = file.read(most)
        end = _end_of_lines(text, is_quoting)
        while not end and (more := file.read(MIB)):
            text += more
            end = _end_of_lines(text, is_quoting)
        is_packed = bool(compression_of(source))
        position = os.lseek(file.fileno(), 0, os.SEEK_CUR) if is_packed else len(text)
    kept = text[: end or len(text)]
    atomic_files.write(target, kept)
    return len(kept), max(position * len(kept) // max(len(text), 1), 1)


def _end_of_lines(text: bytes, is_quoting: bool) -> int:
    r"""Return the number of bytes up to the end of the last whole row; 0 if there is none.

    >>> _end_of_lines(b'a,b\n1,"x\ny', is_quoting=True), _end_of_lines(b'a,b\n1,"x\ny', is_quoting=False)
    (4, 9)
    """
    end = text.rfind(b"\n") + 1
    while end and is_quoting and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, end - 1) + 1
    return end
