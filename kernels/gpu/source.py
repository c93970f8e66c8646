"""CUDA sources: their text with all includes, and the names of the kernels that launchers use."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernels.operands import KernelError

TYPES = {"float32": "float", "float64": "double", "int32": "int", "int64": "i64"}
"""What CUDA sources call a dtype."""

NARROW = {"float16": "Half", "uint16": "Brain"}
"""What CUDA sources call a dtype of two bytes a value; uint16 holds bfloat16, which NumPy and CuPy do not know."""

FLOATS = ("float", "double")

THREADS = 128
"""Threads of a block, as in `device.cuh`."""

MOST_BLOCKS = 2**20
"""Blocks of a launch; kernels loop over what is more."""

_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """A `.cu` file and the names, template arguments included, of the kernels launched from it."""

    file: Path
    names: tuple[str, ...]
    title: str = ""
    """What it is known by; the name of the file without its suffix where none is given."""
    before: str = ""
    """Text that stands before that of the file."""

    def __post_init__(self) -> None:
        """Set the title to the file's name without suffix if none is given."""
        object.__setattr__(self, "title", self.title or self.file.stem)

    @functools.cached_property
    def text(self) -> str:
        """Return the CUDA source with `before` in front and this package's headers inserted, each once.

        Reads the files.
        """
        return (self.before and f'#line 1 "{self.title}"\n{self.before}') + _with_includes(self.file.resolve(), set())

    def check(self, name: str) -> None:
        """Raise KernelError for a kernel `name` that the source does not list."""
        if name not in self.names:
            raise KernelError(f"{self.title} has no kernel {name!r}; it has {', '.join(self.names)}.")


def _with_includes(file: Path, seen: set[Path]) -> str:
    """Return the text of a file with its includes inserted; files in `seen` count as "", others are added to it."""
    if file in seen:
        return ""
    seen.add(file)
    parts, line = [f'#line 1 "{file.name}"\n'], 1
    text = file.read_text(encoding="utf-8").replace("#pragma once\n", "\n")
    pieces = _INCLUDE.split(text)  # text and names of headers in turn
    for piece, header in zip(pieces[::2], [*pieces[1::2], None], strict=True):
        parts.append(piece)
        line += piece.count("\n") + 1
        if header:
            parts += [_with_includes((file.parent / header).resolve(), seen), f'\n#line {line} "{file.name}"\n']
    return "".join(parts)


sources: dict[str, Source] = {}
"""Every source by its title; complete once all kernels are registered."""


def source(python_file: str, names: list[str], file: str = "", title: str = "", before: str = "") -> Source:
    """Return the `Source` of the `.cu` file next to `python_file`, with kernels `names`, and register it by its title.

    `file` is another file name there. Raises KernelError if another source has the title.
    """
    path = Path(python_file).with_name(file) if file else Path(python_file).with_suffix(".cu")
    entry = Source(path, tuple(names), title, before)
    if sources.setdefault(entry.title, entry) != entry:
        raise KernelError(f"{entry.file} has the title {entry.title!r} of {sources[entry.title].file}; choose another.")
    return entry


def c_name(dtype: np.dtype) -> str:
    """Return the CUDA name of a dtype, such as "float", "i64" or "Brain" for uint16, which stands for bfloat16."""
    name = np.dtype(dtype).name
    return NARROW[name] if name in NARROW else TYPES[name]


def grid(blocks_wanted: int) -> int:
    """Return the blocks of a launch for `blocks_wanted` blocks of work: at least 1, at most `MOST_BLOCKS`."""
    return min(max(blocks_wanted, 1), MOST_BLOCKS)


def blocks(threads: int) -> int:
    """Return the blocks of 128 threads for `threads` threads: at least 1, at most `MOST_BLOCKS`."""
    return grid(-(-threads // THREADS))
