"""Launches of `scan.cu`, `sort.cu`, `indices.cu` and `plan.cu`: indices of conversions, and the batch plan."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from kernels import devices
from kernels.contract import KernelError
from kernels.gpu.row_sums import PIECE, Lengths
from kernels.gpu.source import FLOATS, blocks, c_name, grid, source
from kernels.plan import BatchPlan, index_type, row_length

_SCAN = source(__file__, ["sum_tiles", "scan_sums", "scan_tiles"], "scan.cu")
_SORT = source(__file__, ["count_digits", "move_keys"], "sort.cu")
_PLAIN = ["survey", "mark_heads", "list_heads", "find_starts", "find_rows", "gather_indices"]
_CODE = source(__file__, [*_PLAIN, *[f"gather_values<{value}>" for value in FLOATS]])

TILE = 2048
"""Elements of a tile, in `scan.cu` and `sort.cu`."""

DIGIT_BITS = 8


def is_wide(array: Any) -> bool:
    """Return whether an index array is int64 rather than int32."""
    return array.dtype.itemsize == 8


def scan(counts: Any, dtype: DTypeLike) -> Any:
    """Return the exclusive prefix sum [n + 1] of device array counts int64 [n], the total last, as `dtype`."""
    device, size = devices.device_of(counts), counts.size
    tiles = max(-(-size // TILE), 1)
    sums = device.empty(tiles, np.int64)  # [tiles]
    if tiles > 1:
        device.launch(_SCAN, "sum_tiles", grid(tiles), counts, size, sums, tiles)
        device.launch(_SCAN, "scan_sums", 1, sums, tiles)
    starts = device.empty(size + 1, dtype)
    device.launch(_SCAN, "scan_tiles", grid(tiles), counts, size, sums, tiles, starts, is_wide(starts))
    return starts


def sort(keys: Any, limit: int, kind: np.dtype) -> tuple[Any, Any]:
    """Return (keys in ascending order, previous position of each, of dtype `kind`); stable radix sort on the device.

    `keys` are int32 or int64 in [0, limit); they are not changed.
    """
    device, size = devices.device_of(keys), keys.size
    bits = max(int(limit - 1).bit_length(), 1)
    passes = -(-bits // DIGIT_BITS)
    width = -(-bits // passes)
    digits, tiles = 1 << width, max(-(-size // TILE), 1)
    counts = device.empty(digits * tiles, np.int64)  # [digits, tiles]
    places = device.empty(size, kind)
    for number in range(passes):
        shift, how = np.int32(number * width), np.int32(digits)
        device.launch(_SORT, "count_digits", grid(tiles), keys, is_wide(keys), size, shift, how, counts, tiles)
        starts = scan(counts, np.int64)
        keys_out, places_out = device.empty(size, keys.dtype), device.empty(size, kind)
        pairs = keys, keys_out, is_wide(keys), places, places_out, is_wide(places), number == 0
        device.launch(_SORT, "move_keys", grid(tiles), *pairs, size, shift, how, starts, tiles)
        keys, places = keys_out, places_out
    return keys, places


def survey(keys: Any, limit: int) -> tuple[int, int, int]:
    """Return (position of the first key outside [0, limit) or -1, least key if negative else 0, largest key or 0).

    Waits for the device.
    """
    device, size = devices.device_of(keys), keys.size
    numbers = device.zeros(3, np.int64)
    device.launch(_CODE, "survey", blocks(size), keys, is_wide(keys), size, limit, numbers)
    first, low, high = map(int, device.read(numbers))  # synchronize!
    return size - first if first else -1, low, high


def runs(keys: Any, kind: np.dtype) -> tuple[Any, Any]:
    """Return distinct keys int64 [U] of ascending `keys`, and the start of each run, of dtype `kind` [U + 1].

    Waits for the device, which has U.
    """
    device, size = devices.device_of(keys), keys.size
    flags = device.empty(size, np.int64)
    device.launch(_CODE, "mark_heads", blocks(size), keys, is_wide(keys), size, flags)
    ranks = scan(flags, np.int64)
    unique, starts = device.empty(size, np.int64), device.empty(size + 1, kind)
    ends = unique, starts, is_wide(starts)
    device.launch(_CODE, "list_heads", blocks(size), keys, is_wide(keys), size, ranks, *ends)
    count = int(device.read(ranks[size:])[0])  # synchronize!
    return unique[:count], starts[: count + 1]


def starts_of(keys: Any, rows: int, kind: np.dtype) -> Any:
    """Return row pointers [rows + 1] of dtype `kind` from ascending row indices `keys`, on the device."""
    device = devices.device_of(keys)
    starts = device.empty(rows + 1, kind)
    device.launch(_CODE, "find_starts", blocks(rows + 1), keys, is_wide(keys), keys.size, starts, is_wide(starts), rows)
    return starts


def rows_of(starts: Any, size: int, kind: np.dtype) -> Any:
    """Return the row of each of `size` entries, of dtype `kind` [size], from row pointers [R + 1], on the device."""
    device = devices.device_of(starts)
    out = device.empty(size, kind)
    device.launch(_CODE, "find_rows", blocks(size), starts, is_wide(starts), starts.size - 1, out, is_wide(out), size)
    return out


def gathered(source_array: Any, places: Any, dtype: np.dtype | None = None) -> Any:
    """Return source_array[places] as a new device array, converted to `dtype` if given; indices are not checked."""
    device = devices.device_of(places)
    out = device.empty(places.size, dtype or source_array.dtype)
    if out.dtype.kind == "f":
        name = f"gather_values<{c_name(out.dtype)}>"
        device.launch(_CODE, name, blocks(out.size), source_array, places, is_wide(places), out, out.size)
    else:
        wide = source_array, is_wide(source_array), places, is_wide(places), out, is_wide(out)
        device.launch(_CODE, "gather_indices", blocks(out.size), *wide, out.size)
    return out


def as_kind(array: Any, kind: np.dtype) -> Any:
    """Return indices as dtype `kind`: the array itself if it has this dtype, else a copy."""
    return array if array.dtype == kind else array.astype(kind)


def group(key: Any, other: Any, data: Any, n_keys: int, word: str) -> tuple[Any, Any, Any]:
    """Return entries (starts [n_keys + 1], other, data) grouped by `key`, stable, on the device.

    Raises KernelError for a key outside [0, n_keys), which the message calls `word`. Waits for the device.
    """
    kind = index_type(key.size, key.dtype)
    wrong, _, _ = survey(key, n_keys)
    if wrong >= 0:
        value = int(devices.device_of(key).read(key[wrong : wrong + 1])[0])
        raise KernelError(
            f"Entry {wrong} has {word} {value}; allowed are 0 to {n_keys - 1}. Check where it comes from."
        )
    ordered, places = sort(key, n_keys, kind)
    return starts_of(ordered, n_keys, kind), gathered(other, places, kind), gathered(data, places)


_LENGTHS = source(__file__, ["longest_of", "length_keys"], "plan.cu")

LONG_TAIL = 2
"""The longest result has so many times the mean number of entries, or more, where results are put in order. A guess:
not measured on a GPU."""


def build(indptr: Any, indices: Any, n_columns: int, in_order_of_length: bool = False) -> BatchPlan:
    """Compute the plan of a CSR batch: `indptr` [R + 1], `indices` [z] (int32 or int64), `n_columns` features.

    Its arrays are on the device. `indptr` must start at 0. With `in_order_of_length`, `row_order` and `column_order`
    are computed if lengths vary much: one more sort each, for batches that repeat. Waits for the device (five values
    are read). Raises ValueError for an index outside [0, n_columns) or inconsistent row pointers.
    """
    device, size, rows = devices.device_of(indices), indices.size, indptr.size - 1
    ends = int(device.read(indptr[:1])[0]), int(device.read(indptr[rows:])[0])  # synchronize!
    if ends[0] or ends[1] != size:
        raise ValueError(
            f"indptr goes from {ends[0]} to {ends[1]}, indices holds {size} entries; on a device the row starts of a "
            "batch begin with 0 and end with the number of its entries."
        )
    wrong, _, _ = survey(indices, n_columns)
    if wrong >= 0:
        column = int(device.read(indices[wrong : wrong + 1])[0])
        raise ValueError(f"Entry {wrong} has column {column}; allowed are 0 to {n_columns - 1}.")
    kind = index_type(max(size, rows + 1))
    ordered, permutation = sort(indices, n_columns, kind)
    columns, segments = runs(ordered, kind)
    rows_in_order = gathered(rows_of(indptr, size, kind), permutation)
    longest_row, longest_run = _longest(indptr, segments)
    orders = (_order(indptr, size, longest_row), _order(segments, size, longest_run)) if in_order_of_length else ()
    length, shape = row_length(rows, size, longest_row), (rows, int(n_columns))
    return BatchPlan(shape, columns, segments, rows_in_order, permutation, longest_run, length, longest_row, *orders)


def in_order(plan: BatchPlan, data: Any) -> Any:
    """Return the batch's values `data` [z] in the column order of the plan, a new device array."""
    return gathered(data, plan.permutation)


def lengths_of(starts: Any, in_order_of_length: bool = False) -> Lengths:
    """Return the `Lengths` of results whose entries begin at `starts` [R + 1], for repeated launches.

    Waits for the device. `in_order_of_length`: also compute their order by length.
    """
    rows = starts.size - 1
    size, (longest,) = int(devices.device_of(starts).read(starts[rows:])[0]), _longest(starts)  # synchronize!
    order = _order(starts, size, longest) if in_order_of_length else None
    return Lengths(row_length(rows, size, longest), longest, order)


def _longest(*each: Any) -> list[int]:
    """Return the largest difference of consecutive starts of each array; waits for the device."""
    device = devices.device_of(each[0])
    most = device.zeros(len(each), np.int64)
    for place, starts in enumerate(each):
        count = starts.size - 1
        arguments = starts, is_wide(starts), count, most[place : place + 1]
        device.launch(_LENGTHS, "longest_of", blocks(count), *arguments)
    return list(map(int, device.read(most)))  # synchronize!


def _order(starts: Any, entries: int, longest: int) -> Any:
    """Return result indices in descending order of entries, int32 [R].

    None if lengths are similar or int32 is too narrow. `entries` are all entries, `longest` those of the longest
    result.
    """
    device, count, limit = devices.device_of(starts), starts.size - 1, PIECE + 1
    if longest * count < LONG_TAIL * entries or longest < LONG_TAIL or index_type(count) != np.int32:
        return None
    keys = device.empty(count, np.int32)
    arguments = starts, is_wide(starts), count, np.int32(limit), keys
    device.launch(_LENGTHS, "length_keys", blocks(count), *arguments)
    return sort(keys, limit + 1, np.dtype(np.int32))[1]
