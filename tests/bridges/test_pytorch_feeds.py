"""Batches and rows for a DataLoader: each once, the same ones for the same seed and epoch, in workers of every kind."""

import numpy as np
import pytest
import scipy.sparse

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from kernels import threads  # noqa: E402
from kernels.threads import clear  # noqa: E402
from tests.support.clocks import SECONDS  # noqa: E402
from tests.support.torch_rows import dense, drawn, invalid  # noqa: E402
from workbench import data  # noqa: E402
from workbench.bridges.contracts import ContractError  # noqa: E402
from workbench.bridges.pytorch import FeedDataset, RowDataset, SparseRows, collate, from_tensor, rows_of, to_tensor  # noqa: E402
from workbench.formats.compressed import assemble  # noqa: E402

ROWS = 41
X = drawn(rows=ROWS)
Y = np.arange(ROWS)


def feed(**options) -> FeedDataset:
    return FeedDataset(data.Batches(X, Y, rows=4, **options))


def matrix(rows: SparseRows) -> np.ndarray:
    parts = (part.numpy() for part in (rows.indptr, rows.indices, rows.data))
    return dense(assemble("csr", *parts, (len(rows.indptr) - 1, rows.features)))


def labels(loader) -> list[list[int]]:
    return [y.tolist() for _, y in loader]


@pytest.mark.parametrize(("workers", "context"), [(0, None), (2, "fork"), (1, "spawn")])
def test_every_batch_comes_once_with_its_labels(workers, context):
    loader = DataLoader(feed(shuffle=True), batch_size=None, num_workers=workers, multiprocessing_context=context)
    seen = []
    for rows, y in loader:
        np.testing.assert_array_equal(matrix(rows), dense(X)[y.numpy()])
        seen += y.tolist()
    assert sorted(seen) == list(range(ROWS))
    assert len(loader) == 11


def test_epochs_differ_and_repeat_also_where_workers_live_on():
    def epochs(**options) -> list:
        dataset = feed(shuffle=True)
        loader = DataLoader(dataset, batch_size=None, **options)
        seen = []
        for number in (0, 1, 0):
            dataset.set_epoch(number)
            seen.append(labels(loader))
        return seen

    alone = epochs()
    assert alone[0] == alone[2] != alone[1]
    lasting = epochs(num_workers=2, multiprocessing_context="fork", persistent_workers=True)
    assert lasting[0] == lasting[2] != lasting[1]
    assert sorted(lasting[1]) == sorted(alone[1])


def test_more_workers_than_batches():
    dataset = FeedDataset(data.Batches(X[:3], Y[:3], rows=4))
    assert labels(DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")) == [[0, 1, 2]]


def test_workers_that_are_forked_after_a_parallel_kernel_live():
    clear(np.ones(10**6), threads.equal_count(10**6, 4))
    options = {"num_workers": 2, "multiprocessing_context": "fork", "timeout": SECONDS}
    loader = DataLoader(feed(shuffle=True), batch_size=None, **options)
    assert len(labels(loader)) == 11


def test_a_feed_without_labels_and_one_with_sparse_labels():
    rows, y = next(iter(FeedDataset(data.Batches(X, rows=4))))
    assert y is None
    assert rows.features == 30
    _, y = next(iter(FeedDataset(data.Batches(X, X, rows=4))))
    np.testing.assert_array_equal(matrix(y), dense(X)[:4])


def test_a_data_set_is_cut_into_batches():
    dataset = data.load("uniform", rows=50, features=40, density=0.1, cache=False)
    sizes = [len(y) for _, y in FeedDataset(dataset, rows=20)]
    assert sizes == [20, 20, 10]
    with pytest.raises(data.DataError, match=r"data\.Feed"):
        FeedDataset(X)


@pytest.mark.parametrize(("workers", "context"), [(0, None), (2, "fork"), (1, "spawn")])
def test_a_folder_larger_than_memory_is_opened_by_its_path_also_by_workers(tmp_path, workers, context):
    made = data.load("uniform", rows=90, features=40, density=0.1, cache=False)
    data.convert(made, tmp_path / "x.sparse")
    feed = FeedDataset(tmp_path / "x.sparse", rows=20, shuffle=True)
    assert isinstance(feed.feed, data.StoredBatches)
    given = list(DataLoader(feed, batch_size=None, num_workers=workers, multiprocessing_context=context))
    sums = np.concatenate([matrix(rows).sum(axis=1) for rows, _ in given])
    np.testing.assert_allclose(np.sort(sums), np.sort(made.x.toarray().sum(axis=1)), rtol=1e-5)
    assert sum(len(y) for _, y in given) == 90


def test_a_file_of_data_is_opened_by_its_path(tmp_path):
    (tmp_path / "x.svm").write_text("1 1:0.5 3:2\n0 2:1\n")
    ((rows, y),) = FeedDataset(str(tmp_path / "x.svm"))
    assert (rows.indices.tolist(), y.tolist()) == ([0, 2, 1], [1, 0])


def test_batches_that_a_loader_stacked_are_refused_with_the_way_out():
    from workbench.bridges.pytorch import SparseLinear

    rows, _ = next(iter(DataLoader(feed())))
    with pytest.raises(TypeError, match="batch_size=None"):
        SparseLinear(30, 2)(rows)


@pytest.mark.parametrize(("workers", "context"), [(0, None), (2, "fork")])
def test_rows_that_a_sampler_picks(workers, context):
    loader = DataLoader(
        RowDataset(X, Y), 4, shuffle=True, collate_fn=collate, num_workers=workers, multiprocessing_context=context
    )
    seen = []
    for rows, y in loader:
        np.testing.assert_array_equal(matrix(rows), dense(X)[y.numpy()])
        seen += y.tolist()
    assert sorted(seen) == list(range(ROWS))


def test_rows_one_by_one_are_joined():
    listed = [(X[[row]], Y[row]) for row in (3, 0, 4)]
    for items in (listed, [(rows_of(x), y) for x, y in listed], [(to_tensor(x), y) for x, y in listed]):
        rows, y = collate(items)
        np.testing.assert_array_equal(matrix(rows), dense(X)[[3, 0, 4]])
        assert y.tolist() == [3, 0, 4]


def test_rows_with_and_without_values_are_joined_with_ones():
    one = SparseRows(torch.tensor([0, 1]), torch.tensor([2]), None, 3)
    two = SparseRows(torch.tensor([0, 1]), torch.tensor([1]), torch.tensor([5.0]), 3)
    assert collate([(one, 0), (two, 1)])[0].data.tolist() == [1, 5]
    assert collate([(one, 0), (one, 1)])[0].data is None


def test_rows_of_different_width_and_invalid_ones_are_refused():
    with pytest.raises(ValueError, match=r"30.*31"):
        collate([(drawn(), 0), (drawn(columns=31), 0)])
    with pytest.raises(data.DataError, match="41 rows"):
        RowDataset(X, Y[:-1])
    with pytest.raises(ContractError, match="range"):
        RowDataset(assemble("csr", *invalid()["column too large"], (3, 5)))
    with pytest.raises(IndexError, match="0 to 40"):
        RowDataset(X, Y).__getitems__([41])


def test_read_only_labels_are_copied():
    y = np.arange(4.0)
    y.setflags(write=False)
    _, given = next(iter(FeedDataset(data.Batches(scipy.sparse.csr_array(np.eye(4, dtype=np.float32)), y, rows=4))))
    given.zero_()
    assert y[3] == 3
    assert from_tensor(to_tensor(X)).shape == X.shape
