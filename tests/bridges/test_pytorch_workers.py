"""What goes wrong without a word in workers, in a saved state, and on the way of a gradient, is told."""

import sys

import numba
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, IterableDataset, get_worker_info  # noqa: E402

from kernels import threads  # noqa: E402
from kernels.threads import clear  # noqa: E402
from tests.support.torch_rows import drawn  # noqa: E402
from workbench import data  # noqa: E402
from workbench.bridges.contracts import ContractError  # noqa: E402
from workbench.bridges.pytorch import (  # noqa: E402
    FeedDataset,
    RowDataset,
    SparseLinear,
    check_loader,
    collate,
    init_worker,
    require_row_sparse,
    rows_of,
)
from workbench.bridges.pytorch.rows import _check_threads, _Seen, _Watched  # noqa: E402

X = drawn(rows=41)


class Unshared(IterableDataset):
    """Rows that every worker gives; with `loses`, the second worker gives none."""

    def __init__(self, loses: bool = False) -> None:
        self.loses = loses

    def __iter__(self):
        worker = get_worker_info()
        if self.loses and worker is not None and worker.id:
            return
        end = 20 if self.loses and worker is not None else 41
        yield from (rows_of(X[start : min(start + 8, end)]) for start in range(0, end, 8))


def forked(dataset, **options) -> DataLoader:
    return DataLoader(dataset, num_workers=2, multiprocessing_context="fork", **options)


def told(breaches) -> dict[str, str]:
    return {breach.contract: breach.came for breach in breaches}


def test_rows_that_every_worker_gives_come_twice_in_pytorch_and_are_told():
    loader = forked(Unshared(), batch_size=None)
    assert sum(len(rows.indptr) - 1 for rows in loader) == 82, "PyTorch says nothing"
    found = check_loader(loader)
    assert told(found)["workers"] == "2 workers give 82 rows of 41: 41 too often, 0 never"
    assert found[0].severity == "error"
    assert "get_worker_info" in found[0].advice


def test_rows_that_no_worker_gives_are_told():
    found = check_loader(forked(Unshared(loses=True), batch_size=None))
    assert told(found)["workers"] == "2 workers give 20 rows of 41: 0 too often, 21 never"


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Unshared(), batch_size=None),
        forked(FeedDataset(data.Batches(X, np.arange(41), rows=4, shuffle=True)), batch_size=None),
        forked(RowDataset(X, np.arange(41)), batch_size=8, shuffle=True, collate_fn=collate, persistent_workers=True),
        forked(torch.utils.data.TensorDataset(torch.ones(5, 3)), batch_size=2),
    ],
    ids=["no workers", "feed", "rows", "dense"],
)
def test_workers_that_share_rows_out_pass_and_the_loader_stays_as_it_was(loader):
    clear(np.ones(10**6), threads.equal_count(10**6, 4))
    before = dict(vars(loader))
    assert "workers" not in told(check_loader(loader))
    assert vars(loader) == before


def test_batches_that_are_no_rows_are_refused():
    with pytest.raises(ContractError, match="container: A builtins"):
        _Watched(list)(["a"])


def test_a_refusal_that_a_worker_passes_on_as_text_stays_one():
    assert str(ContractError("what a worker said")) == "what a worker said"


def test_kernels_on_more_threads_than_the_machine_has_are_told(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert not list(_check_threads([_Seen(np.empty(0, np.uint64), 1)], 8))
    (found,) = _check_threads([_Seen(np.empty(0, np.uint64), 2)], 2)
    assert found.came == "Kernels run on 2 threads in each of 2 workers, on 2 cores"


def test_kernels_of_a_worker_run_on_as_many_threads_as_it_has():
    before = torch.get_num_threads(), threads.get_threads()
    try:
        threads.set_threads(numba.config.NUMBA_NUM_THREADS)
        torch.set_num_threads(1)  # as a DataLoader does in its workers
        init_worker(0)
        assert threads.get_threads() == 1
    finally:
        torch.set_num_threads(before[0])
        threads.set_threads(before[1])


def test_a_fork_beside_threads_that_do_not_survive_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", object())
    found = check_loader(forked(FeedDataset(data.Batches(X, rows=8)), batch_size=None))
    assert "tensorflow" in told(found)["start method"]
    monkeypatch.delitem(sys.modules, "tensorflow")
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert not check_loader(forked(FeedDataset(data.Batches(X, rows=8)), batch_size=None))


def test_gradients_that_became_dense_or_repeat_rows_are_refused():
    layer = SparseLinear(30, 2)
    layer(X).sum().backward()
    require_row_sparse([layer.weight.grad, None], ["weight", "unused"])
    (layer(X).sum() + (layer.weight**2).sum()).backward()  # an L2 term: PyTorch says nothing
    with pytest.raises(ContractError, match="sparse: The gradient of weight is dense"):
        require_row_sparse([layer.weight.grad], ["weight"])
    places, values = torch.tensor([[1, 1]]), torch.ones(2, 2)
    believed = torch.sparse_coo_tensor(places, values, (3, 2), is_coalesced=True, check_invariants=False)
    with pytest.raises(ContractError, match="duplicates: The gradient of w repeats 1 row"):
        require_row_sparse([believed], ["w"])
    require_row_sparse([torch.sparse_coo_tensor(places, values, (3, 2), check_invariants=False)], ["w"])
    outside = torch.sparse_coo_tensor(
        torch.tensor([[7]]), values[:1], (3, 2), is_coalesced=True, check_invariants=False
    )
    with pytest.raises(ContractError, match="range"):
        require_row_sparse([outside], ["w"])
