"""Text of rows without labels: noticed by its first rows, and read from a copy in which each row has the label 0."""

import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.data.dataset.record import Dataset
from workbench.data.errors import ADVICE_LABELS_FILE, MissingLabelsError
from workbench.data.files.opened import open_text

ROWS_SEEN = 20
_SVMLIGHT = re.compile(rb"\s*[0-9]+:\S")
_BAR = re.compile(rb"\s*(\||'?\S+\|)")


def lacks_svmlight_label(line: bytes) -> bool:
    """Return whether the line of svmlight text begins with an entry, where a label stands in others."""
    return _SVMLIGHT.match(line) is not None


def lacks_vw_label(line: bytes) -> bool:
    """Return whether nothing, or a tag alone, stands before the first bar of a line of Vowpal Wabbit."""
    return _BAR.match(line) is not None


def require_labels(path: str | os.PathLike, lacks_label: Callable[[bytes], bool]) -> None:
    """Raise `MissingLabelsError` if none of the first rows has a label."""
    if are_unlabelled(path, lacks_label):
        raise MissingLabelsError(f"{path} has no labels: its rows begin with features.\n{ADVICE_LABELS_FILE}")


def are_unlabelled(path: str | os.PathLike, lacks_label: Callable[[bytes], bool]) -> bool:
    """Return whether there are rows, and none of the first ones has a label."""
    with open_text(path) as file:
        rows = list(itertools.islice((line for line in file if line.strip() and line[:1] != b"#"), ROWS_SEEN))
    return bool(rows) and all(map(lacks_label, rows))


@contextmanager
def with_zero_labels(path: str | os.PathLike, lacks_label: Callable[[bytes], bool]) -> Iterator[Path]:
    """Copy the file, unpacked, with the label 0 before each row that lacks one; the copy is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        copy = Path(folder) / Path(path).name
        with open_text(path) as file, copy.open("wb") as out:
            for line in file:
                is_row = line.strip() and line[:1] != b"#"
                out.write(b"0 " + line if is_row and lacks_label(line) else line)
        yield copy


def read_unlabelled(
    path: str | os.PathLike, lacks_label: Callable[[bytes], bool], read: Callable[[Path], Dataset]
) -> Dataset:
    """Read the rows of a file some of which have no label; messages name the file itself."""
    with with_zero_labels(path, lacks_label) as copy:
        try:
            return read(copy)
        except MissingLabelsError:
            raise
        except ValueError as error:
            raise type(error)(str(error).replace(str(copy), str(path))) from None
