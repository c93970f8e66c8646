"""Launches of kernels that copy whole rows in words: `rows/take.cu` and `rows/scatter.cu`."""

import numpy as np

from kernels import devices
from kernels.gpu.source import Source, blocks

WORDS = (4, 2, 1)
"""Widths of a word in units of four bytes."""

GROUPS = (1, 4, 32)
"""Lanes that copy a row."""


def names_of(kernel: str) -> list[str]:
    """Every variant of a kernel with a word and a group for its template arguments."""
    return [f"{kernel}<Pack<int, {word}>, {group}>" for word in WORDS for group in GROUPS]


def copy_rows(code: Source, kernel: str, source, index, out, count: int) -> None:
    """Copy `count` rows of `source` to `out` as `kernel` does with `index`; both have rows of the same length."""
    width = out.shape[1]
    if not count or not width:
        return
    device, units = devices.of(out), width * out.itemsize // 4
    is_aligned = device.is_aligned(source) and device.is_aligned(out)
    word = 4 if is_aligned and units % 4 == 0 else out.itemsize // 4
    group = next((lanes for lanes in GROUPS if lanes * word >= units), GROUPS[-1])
    name, wide = f"{kernel}<Pack<int, {word}>, {group}>", index.dtype == np.int64
    device.launch(code, name, blocks(count * group), source, index, wide, out, count, units // word)
