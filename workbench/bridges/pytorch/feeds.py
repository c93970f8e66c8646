"""Data for `torch.utils.data.DataLoader`: batches of a feed, shared out among workers, and rows that it picks."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from workbench import data
from workbench.bridges.feeds import Source, feed_of
from workbench.bridges.pytorch.follow import follow
from workbench.bridges.pytorch.library import torch
from workbench.bridges.pytorch.rows import SparseRows, checked, rows_of
from workbench.data.batches import slicing

Item = tuple[SparseRows, torch.Tensor | None]


class FeedDataset(torch.utils.data.IterableDataset):
    """The batches of a `data.Feed` as `(SparseRows, labels)`: for `DataLoader(..., batch_size=None)`.

    Of a `data.Dataset`, and of a path, batches are cut here: `rows` in each, and `shuffle`, `seed` and `last` as in
    `data.Batches`. A path names a file of data or a folder `X.sparse`, which is read as it is trained on and may be
    larger than memory. Labels are a tensor, `SparseRows` where they are csr, None if there are none.

    Workers share an epoch out: each has consecutive batches of it, so that none comes twice and none reads what others
    do. What comes, and in which order, follows from the feed, the epoch and the number of workers alone. Say which
    epoch it is by `set_epoch` before each one, also with persistent workers; a shuffled feed has another order in each.
    Kernels that a worker calls stay on its one thread. Workers that are spawned get a copy of what the feed holds, and
    open a folder anew.

    >>> import scipy.sparse
    >>> x = scipy.sparse.eye_array(3, dtype=np.float32, format="csr")
    >>> feed = data.Batches(x, np.arange(3), rows=2)
    >>> [y.tolist() for _, y in torch.utils.data.DataLoader(FeedDataset(feed), batch_size=None)]
    [[0, 1], [2]]
    """

    def __init__(
        self, source: Source, *, rows: int = 256, shuffle: bool = False, seed: int = 0, last: str = "keep"
    ) -> None:
        self.feed = feed_of(source, "FeedDataset", rows=rows, shuffle=shuffle, seed=seed, last=last)
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()  # workers that live on see it change

    def set_epoch(self, number: int) -> None:
        """Let the next pass be epoch `number`, counted from 0."""
        self._epoch.fill_(number)

    def __len__(self) -> int:
        return self.feed.count(int(self._epoch))

    def __iter__(self) -> Iterator[Item]:
        epoch = int(self._epoch)
        count, worker = self.feed.count(epoch), torch.utils.data.get_worker_info()
        if worker is None:
            yield from map(_item, self.feed.epoch(epoch))
            return
        first, end = (count * place // worker.num_workers for place in (worker.id, worker.id + 1))
        follow()
        yield from map(_item, itertools.islice(self.feed.epoch(epoch, first), end - first))


def _item(batch: data.Batch) -> Item:
    """Return (sparse rows, labels or None) of a batch, as tensors."""
    return rows_of(batch.x), _labels(batch.y) if batch.labels else None


class RowDataset(torch.utils.data.Dataset):
    """Rows of a matrix x [R, D] in any format with labels y [R] or [R, N]: for a DataLoader that picks and shuffles.

    It has a whole batch at once from the rows that a sampler picked: pass `collate_fn=collate`.

    >>> import scipy.sparse
    >>> x = scipy.sparse.eye_array(4, dtype=np.float32, format="csr")
    >>> loader = torch.utils.data.DataLoader(RowDataset(x, np.arange(4)), batch_size=2, collate_fn=collate)
    >>> [(rows.indices.tolist(), y.tolist()) for rows, y in loader]
    [([0, 1], [0, 1]), ([2, 3], [2, 3])]
    """

    def __init__(self, x: Any, y: Any = None) -> None:
        self.x = checked(x, "matrix -> DataLoader")
        self.y = None if y is None else np.asarray(y)
        if self.y is not None and len(self.y) != self.x.shape[0]:
            raise data.DataError(f"y has {len(self.y)} entries for {self.x.shape[0]} rows of x; it needs one for each.")

    def __len__(self) -> int:
        return self.x.shape[0]

    def __getitem__(self, row: int) -> Item:
        return self.__getitems__([row])

    def __getitems__(self, rows: Sequence[int]) -> Item:
        """Return the rows of these indices, in this order; raises IndexError for an index out of range."""
        numbers = np.asarray(rows, np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(f"Rows {numbers.min()} to {numbers.max()} were asked for; there are 0 to {len(self) - 1}.")
        follow()
        x = slicing.gather_rows("csr", self.x, numbers)
        indptr, indices, values = map(torch.from_numpy, (x.indptr, x.indices, x.data))
        labels = None if self.y is None else torch.from_numpy(self.y[numbers])
        return SparseRows(indptr, indices, values, x.shape[1]), labels


def collate(items: Any) -> Item:
    """Return the batch of a DataLoader over rows: what `RowDataset` gives; of a list of `(row, label)` one under
    another.

    A row is anything that `rows_of` takes, of one row or more; labels are joined as PyTorch does. All rows need the
    same number of columns (`ValueError`).
    """
    if isinstance(items, tuple) and isinstance(items[0], SparseRows):
        return items
    rows, labels = zip(*items, strict=True)
    return joined([rows_of(row) for row in rows]), torch.utils.data.default_collate(list(labels))


def joined(parts: Sequence[SparseRows]) -> SparseRows:
    """Sparse rows one under another."""
    if len(widths := {part.features for part in parts}) > 1:
        raise ValueError(f"Rows of {sorted(widths)} columns came for one batch; all have the same number of features.")
    starts, before = [parts[0].indptr], int(parts[0].indptr[-1])
    for part in parts[1:]:
        starts.append(part.indptr[1:] + before)
        before += int(part.indptr[-1])
    values = None
    if any(part.data is not None for part in parts):
        given = next(part.data for part in parts if part.data is not None)
        values = torch.cat([_values(part, given.dtype) for part in parts])
    indices = torch.cat([part.indices for part in parts])
    return SparseRows(torch.cat(starts).to(indices.dtype), indices, values, parts[0].features)


def _values(rows: SparseRows, dtype: torch.dtype) -> torch.Tensor:
    """Return the values of sparse rows, ones if they are implied."""
    return torch.ones(rows.indices.shape, dtype=dtype) if rows.data is None else rows.data


def _labels(y: Any) -> Any:
    """Return labels as a tensor, or as sparse rows if they are sparse."""
    if isinstance(y, np.ndarray):
        return torch.from_numpy(y if y.flags.carray else np.array(y, order="C"))
    return rows_of(y)
