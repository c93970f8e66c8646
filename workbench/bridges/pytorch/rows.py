"""Sparse rows as plain tensors, which workers pass on and `torch.compile` traces; sparse tensors, and back."""

import copy
import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from kernels import structure, threads
from kernels.structure import plain
from workbench import data, formats
from workbench.bridges.contracts import Framework, Source, Violation, feed_of, require, require_row_gradients
from workbench.bridges.pytorch.library import follow, torch
from workbench.bridges.validation_rules import ERROR, WARNING
from workbench.data.batches import slicing
from workbench.data.profiles import row_hashes
from workbench.formats import arrays
from workbench.formats.compressed import assemble
from workbench.formats.parts import Parts

# Gradients on their way to an optimizer of PyTorch: still row-sparse, and each row once.


PYTORCH = Framework(
    "a torch.sparse_coo tensor",
    "Leave is_coalesced unset, or call gradient.coalesce()",
    "Adagrad and SparseAdam of PyTorch step wrongly where it is marked as coalesced, without a word",
    "memory next to the weight is written to",
)


def require_row_sparse(gradients: Iterable[torch.Tensor | None], names: Iterable[str]) -> None:
    """Raise ContractError for gradients that are dense, that repeat a row and say they do not, or name one outside.

    An L2 term in the loss, for one, makes the gradient of a weight strided: optimizers that are lazy then step every
    row, or refuse it. None passes, as do repeated rows of a tensor that is not marked as coalesced. O(U log U).

    >>> require_row_sparse([torch.ones(3, 2)], ["weight"])
    Traceback (most recent call last):
        ...
    workbench.bridges.contracts.ContractError: error, gradient -> optimizer, sparse: The gradient of weight is dense. \
Expected: a torch.sparse_coo tensor, the active rows. Take regularizers and dense terms off this weight. Otherwise: \
every row is stepped, or the optimizer is not lazy, without a word.
    """
    pairs = [(gradient, name) for gradient, name in zip(gradients, names, strict=True) if gradient is not None]
    require_row_gradients((gradient for gradient, _ in pairs), (name for _, name in pairs), PYTORCH, _rows_of)


def _rows_of(gradient: torch.Tensor) -> tuple[np.ndarray, int] | None:
    """Return the row indices, int64 [U], of a COO gradient, and the count of rows of its weight; None if it is dense.

    Repeated rows are summed before, unless the gradient is marked as coalesced.
    """
    if gradient.layout is not torch.sparse_coo or gradient.sparse_dim() != 1:
        return None
    summed = gradient if gradient.is_coalesced() else gradient.coalesce()
    return summed._indices()[0].numpy(), gradient.shape[0]


LAYOUTS = ("csr", "coo")
DTYPES = (torch.float32, torch.float64)
INDEX_DTYPES = (torch.int32, torch.int64)


class SparseRows(NamedTuple):
    """R rows of a sparse matrix of `features` columns in CSR form, as tensors: what our modules take.

    `indptr` [R + 1] and `indices` [z] int32 or int64, the same for both; `data` [z] float32 or float64, or None if
    every value is one.
    """

    indptr: torch.Tensor
    indices: torch.Tensor
    data: torch.Tensor | None
    features: int


def to_tensor(x: Any, layout: str = "csr", *, width: int | None = None) -> torch.Tensor:
    """Return a sparse tensor of a matrix x [R, D] in any format, its columns sorted and each once in a row.

    csr shares indices and values where x is so already, and keeps int32 or int64; coo has int64 coordinates [2, z] of
    its own, shares the values and is marked as coalesced. Else a copy is sorted and summed, O(nnz log nnz) and as many
    bytes again: PyTorch itself makes a tensor of unsorted or repeated columns, and computes with it wrongly. Arrays
    that are read-only are copied, and a matrix in another format is converted first. Raises ContractError for what
    PyTorch would compute with in silence: columns out of range, row starts that fall, arrays of different length, NaN,
    other columns than `width`, of which None allows any; ValueError for another layout. O(nnz).

    >>> to_tensor(scipy.sparse.csr_array(np.float32([[0, 2], [0, 0]]))).values()
    tensor([2.])
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it is one of {', '.join(LAYOUTS)}.")
    x = arrays.canonical(checked(x, "matrix -> tensor", width))
    if layout == "coo":
        coo = formats.to_format(x, "coo")
        places = torch.from_numpy(np.stack([axis.astype(np.int64, copy=False) for axis in coo.coords]))
        values = _tensor_over(coo.data)
        return torch.sparse_coo_tensor(places, values, coo.shape, is_coalesced=True, check_invariants=False)
    indptr, indices, values = map(_tensor_over, (x.indptr, x.indices, x.data))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return torch.sparse_csr_tensor(indptr, indices, values, x.shape, check_invariants=False)


def from_tensor(tensor: torch.Tensor) -> Any:
    """Return the csr_array or coo_array of a sparse tensor in CSR or COO layout, over its memory.

    A coo tensor that holds duplicates keeps them. Raises ContractError for an invalid one: PyTorch itself lets columns
    out of range pass; TypeError for another layout or device. O(nnz).
    """
    tensor = _require_cpu(tensor)
    shape = tuple(tensor.shape)
    if tensor.layout is torch.sparse_csr and len(shape) == 2:
        parts = tensor.crow_indices(), tensor.col_indices(), tensor.values()
        arrays = dict(zip(("indptr", "indices", "data"), (part.numpy() for part in parts), strict=True))
    elif tensor.layout is torch.sparse_coo and tensor.sparse_dim() == len(shape) == 2:
        row, col = tensor._indices().numpy()
        arrays = {"row": row, "col": col, "data": tensor._values().numpy()}
    else:
        raise TypeError(
            f"A tensor of layout {tensor.layout} and shape {list(shape)} came; from_tensor takes matrices in the "
            "layouts torch.sparse_csr and torch.sparse_coo. Call tensor.to_sparse_csr()."
        )
    kind = "csr" if "indptr" in arrays else "coo"
    require(Parts(kind, shape, arrays), for_="pytorch", boundary="tensor -> matrix")
    if kind == "csr":
        return assemble("csr", arrays["indptr"], arrays["indices"], arrays["data"], shape)
    return scipy.sparse.coo_array((arrays["data"], (arrays["row"], arrays["col"])), shape=shape)


def rows_of(x: Any) -> SparseRows:
    """Return the rows of a matrix in any format, of a sparse tensor in CSR or COO layout, or `SparseRows` themselves.

    Over the same memory for csr matrices and tensors. CSR tensors are not checked, O(1); matrices and COO tensors are,
    O(nnz), and raise ContractError. Gradients reach the values of tensors. Raises TypeError for a tensor in another
    layout.
    """
    if isinstance(x, SparseRows):
        return x
    if isinstance(x, torch.Tensor):
        if x.layout is torch.sparse_coo:
            return _rows_of_coo(x)
        if x.layout is not torch.sparse_csr:
            raise TypeError(
                f"A tensor of layout {x.layout} came as sparse rows; give SparseRows, a SciPy matrix, or a tensor in "
                "the layout torch.sparse_csr."
            )
        return SparseRows(x.crow_indices(), x.col_indices(), x.values(), x.shape[1])
    x = checked(x, "matrix -> rows")
    return SparseRows(_tensor_over(x.indptr), _tensor_over(x.indices), _tensor_over(x.data), x.shape[1])


def _rows_of_coo(tensor: torch.Tensor) -> SparseRows:
    """Return the rows of a COO tensor, as autograd knows them where it requires a gradient.

    O(nnz log nnz) for one that is not marked as coalesced, with its duplicates summed. Raises ContractError for an
    invalid tensor, TypeError for another number of dimensions.
    """
    if not tensor.requires_grad:
        return rows_of(from_tensor(tensor))
    from_tensor(tensor)  # for its checks
    tensor = tensor.coalesce()
    row, col = tensor.indices()
    starts = torch.searchsorted(row, torch.arange(tensor.shape[0] + 1))
    return SparseRows(starts, col.contiguous(), tensor.values(), tensor.shape[1])


def checked(x: Any, boundary: str, width: int | None = None) -> Any:
    """Return `x` as a csr_array that PyTorch may have, itself if it is one. O(nnz).

    Raises ContractError for what is wrong, TypeError for a tensor. `width` is the required count of columns, None for
    any.
    """
    if isinstance(x, torch.Tensor):
        raise TypeError(
            "A tensor came where a matrix is to be handed to PyTorch. Use it as it is, or call from_tensor."
        )
    if not _is_sound(x, width):
        require(x, for_="pytorch", boundary=boundary, width=width)
    return formats.to_format(x, "csr")


def _is_sound(x: Any, width: int | None) -> bool:
    """Return whether x is a valid csr_array of finite floats with `width` columns, None for any number.

    One compiled pass and one for NaN, where `require` takes many.
    """
    sound = type(x) is scipy.sparse.csr_array and formats.get("csr").is_sound(x) and x.dtype in formats.FLOATS
    return sound and width in (None, x.shape[1]) and bool(np.isfinite(x.data).all())


def arrays_of(rows: SparseRows) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return (indptr, indices, data) as kernels take them, over the tensors' memory; data of None stays None.

    Raises TypeError for other types and lengths, O(1); indices are not looked at.
    """
    indptr, indices, data = rows[:3]
    fits = indptr.dtype == indices.dtype and indices.dtype in INDEX_DTYPES and indptr.ndim == indices.ndim == 1
    if not fits or (data is not None and (data.dtype not in DTYPES or data.shape != indices.shape)):
        _refuse(rows)
    return plain(indptr.numpy()), plain(indices.numpy()), None if data is None else plain(data.detach().numpy())


def require_sound(arrays: tuple[np.ndarray, np.ndarray, np.ndarray | None], features: int, boundary: str) -> None:
    """Raise ContractError for indices that kernels could not follow, below 0 or not below `features`; O(R + z).

    `arrays` is (indptr, indices, data or None) in CSR form; `boundary` names the call in the message. Row pointers that
    do not ascend are refused too.
    """
    indptr, indices, data = arrays
    if structure.is_compressed(indptr, indices, features):
        return
    data = np.ones(indices.size, np.float32) if data is None else data
    shape = max(indptr.size - 1, 0), features
    require(
        Parts("csr", shape, {"data": data, "indices": indices, "indptr": indptr}), for_="pytorch", boundary=boundary
    )
    raise AssertionError("kernels.structure refuses what the contracts let pass; report it.")


def _refuse(rows: SparseRows) -> None:
    """Raise TypeError with the types and shapes of invalid sparse rows and those allowed."""
    names = ("indptr", "indices", "data")
    text = ", ".join(
        f"{name} {part.dtype} {list(part.shape)}".replace("torch.", "")
        for name, part in zip(names, rows[:3], strict=True)
        if part is not None
    )
    raise TypeError(
        f"Sparse rows came as {text}. Allowed: indptr [R + 1] and indices [z], both int32 or both int64, and data [z], "
        "float32 or float64, or None for ones. Convert with tensor.to(...); where a DataLoader stacked batches, give "
        "it batch_size=None."
    )


def _tensor_over(array: np.ndarray) -> torch.Tensor:
    """Return a tensor over the array's memory; over a copy where the array is read-only or has gaps."""
    return torch.from_numpy(array if array.flags.carray else np.array(array, order="C"))


def _require_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor detached, over its memory. Raises TypeError unless it is a tensor on the CPU."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"A {type(tensor).__name__} came; from_tensor takes a sparse torch.Tensor.")
    if tensor.device.type != "cpu":
        raise TypeError(f"The tensor is on {tensor.device}; arrays are on the cpu. Call tensor.cpu().")
    return tensor.detach()


# Data for `torch.utils.data.DataLoader`: batches of a feed, shared out among workers, and rows that it picks.

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
        """Make or keep the feed of a source, at epoch 0. Raises DataError for a source that is none."""
        self.feed = feed_of(source, "FeedDataset", rows=rows, shuffle=shuffle, seed=seed, last=last)
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()  # workers that live on see it change

    def set_epoch(self, number: int) -> None:
        """Let the next pass be epoch `number`, counted from 0, in workers that are running, too."""
        self._epoch.fill_(number)

    def __len__(self) -> int:
        """Return the count of batches of the epoch that was set, of all workers together."""
        return self.feed.count(int(self._epoch))

    def __iter__(self) -> Iterator[Item]:
        """Yield the batches of the epoch that was set, as (rows, labels); in a worker its consecutive share of them."""
        epoch = int(self._epoch)
        count, worker = self.feed.count(epoch), torch.utils.data.get_worker_info()
        if worker is None:
            yield from map(_item, self.feed.epoch(epoch))
            return
        first, end = (count * place // worker.num_workers for place in (worker.id, worker.id + 1))
        follow()
        yield from map(_item, itertools.islice(self.feed.epoch(epoch, first), end - first))


def _item(batch: data.Batch) -> Item:
    """Return (sparse rows, labels) of a batch, as tensors; labels are None if it has none."""
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
        """Keep x as csr and y as an array.

        Raises ContractError for an invalid x, DataError for another count of labels.
        """
        self.x = checked(x, "matrix -> DataLoader")
        self.y = None if y is None else np.asarray(y)
        if self.y is not None and len(self.y) != self.x.shape[0]:
            raise data.DataError(f"y has {len(self.y)} entries for {self.x.shape[0]} rows of x; it needs one for each.")

    def __len__(self) -> int:
        """Return the count of rows R."""
        return self.x.shape[0]

    def __getitem__(self, row: int) -> Item:
        """Return the one row of that number and its label, as a batch of one.

        Raises IndexError if it is out of range.
        """
        return self.__getitems__([row])

    def __getitems__(self, rows: Sequence[int]) -> Item:
        """Return copies of the rows of these numbers, in this order, and their labels, None without any.

        Raises IndexError for a number out of range.
        """
        numbers = np.asarray(rows, np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(f"Rows {numbers.min()} to {numbers.max()} were asked for; there are 0 to {len(self) - 1}.")
        follow()
        x = slicing.gather_rows("csr", self.x, numbers)
        indptr, indices, values = map(torch.from_numpy, (x.indptr, x.indices, x.data))
        labels = None if self.y is None else torch.from_numpy(self.y[numbers])
        return SparseRows(indptr, indices, values, x.shape[1]), labels


def collate(items: Any) -> Item:
    """Return the batch of a DataLoader over rows: what `RowDataset` gives, or a list of `(row, label)` joined.

    A row is anything that `rows_of` takes, of one row or more; labels are joined as PyTorch does. Raises ValueError if
    rows have different numbers of columns.
    """
    if isinstance(items, tuple) and isinstance(items[0], SparseRows):
        return items
    rows, labels = zip(*items, strict=True)
    return joined([rows_of(row) for row in rows]), torch.utils.data.default_collate(list(labels))


def joined(parts: Sequence[SparseRows]) -> SparseRows:
    """Return sparse rows one under another, in new memory, values of ones where only some have them.

    Raises ValueError if their numbers of features differ.
    """
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
    """Return the values [z] of sparse rows; new ones of `dtype` if they are implied."""
    return torch.ones(rows.indices.shape, dtype=dtype) if rows.data is None else rows.data


def _labels(y: Any) -> Any:
    """Return labels as a tensor over their memory where it can be, or as sparse rows if they are sparse."""
    if isinstance(y, np.ndarray):
        return torch.from_numpy(y if y.flags.carray else np.array(y, order="C"))
    return rows_of(y)


# Check of a DataLoader's workers for silent faults: rows that come twice, too many threads, unsafe starts.

WORKERS_BOUNDARY = "DataLoader -> training"
UNSAFE = ("tensorflow", "jax")
"""Libraries whose threads stay behind in a fork, so that a worker that calls them waits for ever."""


def init_worker(worker: int) -> None:
    """Prepare a worker, as `DataLoader(..., worker_init_fn=init_worker)`: its kernels run on its one thread."""
    follow()


def check_loader(loader: torch.utils.data.DataLoader) -> list[Violation]:
    """Return a violation for each fault of the workers of a DataLoader; [] without workers. Takes two epochs.

    One is that of the workers, the other the same without any: rows that come more often than there, or never, are an
    error. Warnings are workers whose kernels run on so many threads that all together have more than the machine, and
    workers forked from a process with threads that do not survive it; Numba's do. A batch is rows, or a tuple that
    begins with them: `SparseRows`, sparse or dense tensors, SciPy matrices (ContractError for an invalid one). The data
    must be the same each time.
    """
    if not loader.num_workers:
        return []
    given = list(_epoch(loader, loader.num_workers))
    alone = list(_epoch(loader, 0))
    found = [*_check_rows_of_workers(given, alone, loader.num_workers), *_check_threads(given, loader.num_workers)]
    context = loader.multiprocessing_context or torch.multiprocessing
    return [*found, *_check_start_method(context.get_start_method())]


class _Seen(NamedTuple):
    """A batch: hashes of its rows, uint64 [R], and the threads that kernels have where it was made."""

    hashes: np.ndarray
    threads: int


class _Watched:
    """The collate function of a loader, which also tells of where it ran."""

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        """Keep the collate function of the loader."""
        self.collate = collate

    def __call__(self, items: Any) -> _Seen:
        """Return the row hashes of the batch that the loader's function makes, and how many threads kernels have."""
        batch = self.collate(items)
        count = threads.get_threads()
        x = batch[0] if isinstance(batch, tuple | list) and not isinstance(batch, SparseRows) else batch
        return _Seen(row_hashes(_matrix(x)), count)


def _matrix(x: Any) -> Any:
    """Return the rows of a batch as a new csr array without duplicates.

    Raises ContractError or FormatError for invalid ones, TypeError for what is no rows.
    """
    if isinstance(x, torch.Tensor) and x.layout is torch.strided and x.ndim == 2:
        return scipy.sparse.csr_array(x.detach().numpy())
    indptr, indices, values = arrays_of(rows := rows_of(x))
    values = np.ones(indices.size, np.float32) if values is None else values
    x = assemble("csr", indptr.copy(), indices.copy(), values.copy(), (indptr.size - 1, rows.features))
    formats.validate(x)
    x.sum_duplicates()
    return x


def _epoch(loader: torch.utils.data.DataLoader, workers: int) -> Iterator[_Seen]:
    """Yield an epoch of the loader with so many workers; the loader itself stays as it is."""
    like = copy.copy(loader)
    changed = {"num_workers": workers, "collate_fn": _Watched(loader.collate_fn), "_iterator": None}
    changed |= {"persistent_workers": False} | ({} if workers else {"timeout": 0})
    vars(like).update(changed)  # most of which a loader refuses to have set
    yield from like


def _check_rows_of_workers(given: list[_Seen], alone: list[_Seen], workers: int) -> Iterator[Violation]:
    """Yield a violation, an error, if rows came too often or never from several workers, by their hashes.

    `given` are the batches of the workers, `alone` those without any.
    """
    came, there = (np.concatenate([np.empty(0, np.uint64), *(seen.hashes for seen in side)]) for side in (given, alone))
    _, number = np.unique(np.concatenate([came, there]), return_inverse=True)
    count = int(number.max(initial=-1)) + 1
    surplus = np.bincount(number[: came.size], minlength=count) - np.bincount(number[came.size :], minlength=count)
    twice, never = int(surplus[surplus > 0].sum()), -int(surplus[surplus < 0].sum())
    if twice or never:
        what = f"{workers} workers give {came.size:,} rows of {there.size:,}: {twice:,} too often, {never:,} never"
        advice = "Share rows out by torch.utils.data.get_worker_info() in __iter__, or take FeedDataset"
        effect = "an epoch has other rows than the data, and no error comes"
        yield Violation("workers", WORKERS_BOUNDARY, ERROR, what, "each row once", advice, effect)


def _check_threads(given: list[_Seen], workers: int) -> Iterator[Violation]:
    """Yield a warning if workers together run more kernel threads than there are cores."""
    most, cores = max((seen.threads for seen in given), default=1), os.cpu_count() or 1
    if most > 1 and most * workers > cores:
        came = f"Kernels run on {most} threads in each of {workers} workers, on {cores} cores"
        advice = "Pass worker_init_fn=init_worker, which leaves them one each, or take FeedDataset"
        effect = "they take turns, and the training waits for them"
        yield Violation("threads", WORKERS_BOUNDARY, WARNING, came, "one thread a worker", advice, effect)


def _check_start_method(method: str) -> Iterator[Violation]:
    """Yield a warning if workers are forked from a process that has loaded libraries of `UNSAFE`."""
    loaded = [name for name in UNSAFE if name in sys.modules]
    if method == "fork" and loaded:
        came = f"Workers are forked from a process that has loaded {' and '.join(loaded)}"
        advice = 'Pass multiprocessing_context="forkserver" or "spawn"'
        effect = "a worker that calls it waits for ever"
        yield Violation("start method", WORKERS_BOUNDARY, WARNING, came, "processes that start anew", advice, effect)
