"""Launches of kernels that copy whole rows in words: `rows/take.cu` and `rows/scatter.cu`."""

import numpy as np

from kernels import devices
from kernels.gpu.source import Source, blocks

WORDS = {16: "Pack<int, 4>", 8: "Pack<int, 2>", 4: "Pack<int, 1>", 2: "short"}
"""C++ types of a word by its bytes."""

GROUPS = (1, 4, 32)
"""Lanes that copy a row."""


def names_of(kernel: str) -> list[str]:
    """Return every variant of a kernel with a word type and a group size as template arguments."""
    return [f"{kernel}<{word}, {group}>" for word in WORDS.values() for group in GROUPS]


def group_of(words: int) -> int:
    """Return the lanes for a row of `words` words."""
    return next((lanes for lanes in GROUPS if lanes >= words), GROUPS[-1])


def copy_rows(code: Source, kernel: str, source, index, out, count: int) -> None:
    """Copy `count` rows of `source` to `out` with `kernel` and `index`; both have rows of the same length."""
    width = out.shape[1]
    if not count or not width:
        return
    device, bytes_row = devices.device_of(out), width * out.itemsize
    is_aligned = device.is_aligned(source) and device.is_aligned(out)
    word = next(word for word in WORDS if word <= out.itemsize or (is_aligned and bytes_row % word == 0))
    words, wide = bytes_row // word, index.dtype == np.int64
    group = group_of(words)
    name = f"{kernel}<{WORDS[word]}, {group}>"
    device.launch(code, name, blocks(count * group), source, index, wide, out, count, words)
