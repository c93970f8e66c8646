"""Values and states, whole or as the parts that shards hold: cut, and joined again, bit for bit."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.cluster.partition import Move, Partition
from workbench.formats import RowSparse


def cut(array: Any, partition: Partition) -> list[Any]:
    """The part of each shard, None where it holds no row; an array without rows goes to the last shard whole."""
    if not array.ndim:
        return [None] * (partition.shards - 1) + [array]
    parts: list[Any] = [None] * partition.shards
    pieces = partition.cut(array.indices) if isinstance(array, RowSparse) else None
    for shard in range(partition.shards):
        if not (count := partition.count(shard)):
            continue
        if pieces is None:
            parts[shard] = array[partition.owned(shard)]
        else:
            at, rows = pieces[shard]
            parts[shard] = RowSparse.assemble(array.values[at], rows, (count, *array.shape[1:]))
    return parts


def joined(parts: Mapping[int, Any], partition: Partition | Move) -> Any:
    """The whole array of the parts by shard, or its rows that move. O(size), row_sparse O(stored log stored)."""
    first = next(iter(parts.values()))
    if not first.ndim:
        return first
    shape = (partition.rows, *first.shape[1:])
    if isinstance(first, RowSparse):
        numbers = np.concatenate([partition.numbers(shard, part.indices) for shard, part in parts.items()])
        order = np.argsort(numbers)
        order = order[np.searchsorted(numbers, 0, sorter=order) :]
        values = np.concatenate([part.values for part in parts.values()])
        return RowSparse.assemble(values[order], numbers[order], shape)
    whole = np.empty(shape, first.dtype)
    for shard, part in parts.items():
        numbers = partition.owned(shard)
        is_there = numbers >= 0
        whole[numbers if is_there.all() else numbers[is_there]] = part if is_there.all() else part[is_there]
    return whole
