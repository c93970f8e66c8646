"""out[i] = source[index[i]], whole rows.

Arguments  source float32|float64 [D, N]; index int32|int64 [z]
Writes     out [z, N], overwritten; nothing else changes
Assumes    0 <= index < D; rows in any order, repeated or not
Cost       no flops; reads z*index + U*N*value bytes, U being the distinct rows, writes z*N*value
Parallel   over rows, in parts of equal height; the result is unique
Limits     D*N < 2**63
Source     Definition; rows that come from memory are asked for ahead of their use
"""

import numpy as np

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.source import NARROW, Source, blocks, c_name, source
from kernels.vector.gather import RowLoop, work_of
from kernels.vector.lanes import AHEAD
from kernels.vector.tiles import is_far

# Launches of kernels that copy whole rows in words: `rows/take.cu` and `rows/scatter.cu`.

WORDS = {16: "Pack<int, 4>", 8: "Pack<int, 2>", 4: "Pack<int, 1>", 2: "short"}
"""C++ types of a word by its bytes."""

GROUPS = (1, 4, 32)
"""Lanes that copy a row."""


def names_of(kernel: str) -> list[str]:
    """Return the C++ names of all variants of a kernel: word types times lanes, such as "take<short, 4>"."""
    return [f"{kernel}<{word}, {group}>" for word in WORDS.values() for group in GROUPS]


def group_of(words: int) -> int:
    """Return the number of lanes that copy a row of `words` words: 1, 4 or 32."""
    return next((lanes for lanes in GROUPS if lanes >= words), GROUPS[-1])


def copy_rows(code: Source, kernel: str, source, index, out, count: int) -> None:
    """Queue the copy of `count` rows from `source` to `out` by `kernel` of `code`, which applies `index` to either.

    Both are device arrays with rows of the same length and dtype.
    """
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


def reference(source, index, out):
    """Copy rows: out[i] = source[index[i]] in plain loops.

    source float32|float64 [D, N]; index int32|int64 [z], repeated or not. out [z, N] is overwritten.
    """
    for i in range(out.shape[0]):
        for n in range(out.shape[1]):
            out[i, n] = source[index[i], n]


def _row(lane, u, source, index, out):
    """Emit vector code for row u: out[u] = source[index[u]].

    source [D, N], index [z]; out [z, N] is overwritten.
    """

    def block(j, _):
        """Emit the copy of the columns of one tile, from column j on; `_` is unused."""
        if lane.cut.far_rows:
            source.row(index[(u + AHEAD).least(index.last)], j).prefetch()
        out.row(u, j).store(source.row(index[u], j).load())

    lane.blocks(block)


_rows = RowLoop(_row)


def cpu(source, index, out):
    """Copy rows: out[i] = source[index[i]] on the CPU.

    source float32|float64 [D, N]; index int32|int64 [z], repeated or not. out [z, N] is overwritten.
    """
    rows, width = out.shape
    _rows.run((width, out.itemsize, is_far(source.nbytes)), rows, work_of(rows, width), source, index, out)


_PACKS = (4, 1)
"""Values of half the memory that a lane widens at once."""

_WIDENED = [f"take_widened<{kind}, {w}, {g}>" for kind in NARROW.values() for w in _PACKS for g in GROUPS]
_CUDA = source(__file__, names_of("take") + _WIDENED)


def gpu(source, index, out):
    """Copy rows: out[i] = source[index[i]] on a CUDA device.

    Operands as `cpu`, on the device; a source of two bytes per value may be widened to a float32 `out`. out [z, N] is
    overwritten.
    """
    if source.dtype == out.dtype:
        copy_rows(_CUDA, "take", source, index, out, out.shape[0])
    elif out.size:
        device, (rows, width) = devices.device_of(out), out.shape
        is_packed = width % _PACKS[0] == 0 and device.is_aligned(source) and device.is_aligned(out)
        pack = _PACKS[0] if is_packed else _PACKS[1]
        lanes = group_of(width // pack)
        name = f"take_widened<{c_name(source.dtype)}, {pack}, {lanes}>"
        sizes = index.dtype == np.int64, out, rows, width // pack
        device.launch(_CUDA, name, blocks(rows * lanes), source, index, *sizes)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call with sizes `s`: distinct rows are read once, all results written."""
    return Cost(0, s.z * s.index + (s.U + s.z) * s.N * s.value, s.z * s.N * s.value)


def arguments(case: Case) -> tuple:
    """Build operands from `case`: a table, an index with a row for every entry of A, and a result."""
    return case.dense(case.D, case.N), case.indices, case.garbage(case.indices.size, case.N)


register_kernel(__name__, "take_rows", "source:f[D,N] index:i[z]<D out:f[z,N]")
