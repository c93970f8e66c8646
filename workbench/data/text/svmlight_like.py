"""Text that is svmlight but for one thing, read from a copy that is: words as labels, and fields as libffm has them.

A line of libffm is `label field:column:value ...`. The field says which of several factors a field-aware model takes;
what a feature is, its column says alone, so that the field is left out. Columns of a row are sorted, and the values of
a column that comes twice are summed.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from workbench.data.files.opened import open_text, refuse_endless
from workbench.data.files.types import LIBFFM, WORDS_AS_LABELS, looks_like

WITHOUT_FIELDS = (
    "Fields of libffm text are left out: the features are its columns, which a model that is not field-aware takes."
)


class Rewritten(NamedTuple):
    """A copy of a file as svmlight text, and the labels of its rows if they are words."""

    path: Path
    words: list[str] | None


def variant_of(path: str | os.PathLike) -> str:
    """Return what the text looks like, `LIBFFM` or `WORDS_AS_LABELS`; "" if it is neither, or cannot be read."""
    try:
        refuse_endless(path)
        what = looks_like(path)[0]
    except (OSError, ValueError):
        return ""
    return what if what in (LIBFFM, WORDS_AS_LABELS) else ""


@contextmanager
def rewritten(path: str | os.PathLike, variant: str) -> Iterator[Rewritten]:
    """Copy the file, unpacked, as svmlight text; the copy is gone afterwards. Lines keep their numbers."""
    words: list[str] = []
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        copy = Path(folder) / Path(path).name
        with open_text(path) as file, copy.open("wb") as out:
            for line in file:
                if not line.strip() or line[:1] == b"#":
                    out.write(line)
                elif variant == LIBFFM:
                    out.write(_without_fields(line))
                else:
                    word, _, rest = line.strip().partition(b" ")
                    words.append(word.decode())
                    out.write(b"0 " + rest + b"\n")
        yield Rewritten(copy, None if variant == LIBFFM else words)


def _without_fields(line: bytes) -> bytes:
    """Return a line of libffm as svmlight text; a token of another form stays, for the reader to refuse."""
    label, *tokens = line.split()
    values: dict[int, float] = {}
    try:
        for token in tokens:
            _, column, value = token.split(b":")
            values[int(column)] = values.get(int(column), 0.0) + float(value)
    except ValueError:
        return line
    return (
        b" ".join([label, *(b"%d:%s" % (column, repr(values[column]).encode()) for column in sorted(values))]) + b"\n"
    )
