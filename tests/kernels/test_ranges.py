"""Products that add to rows of the result, cut into ranges of those rows: the bits of one thread, whatever the cut."""

import numpy as np
import pytest

import kernels
from kernels import threads
from kernels.products import csc_dense
from tests.support.thread_counts import needs_two, share_out

R, D, ENTRIES = 90, 70, 12

pytestmark = pytest.mark.usefixtures("kept_threads")


def matrix(order: str, index: type, value: type) -> tuple[np.ndarray, ...]:
    """CSC [R, D] with empty columns, one row that most columns have, duplicates and an explicit zero."""
    random = np.random.default_rng(5)
    lengths = random.integers(0, 2 * ENTRIES, D)
    lengths[[0, 7, D - 1]] = 0
    columns = [np.where(random.random(count) < 0.3, 11, random.integers(0, R, count)) for count in lengths]
    columns = [np.sort(column) if order == "sorted" else column for column in columns]
    indptr, indices = np.concatenate(([0], np.cumsum(lengths))).astype(index), np.concatenate(columns).astype(index)
    data = random.standard_normal(indices.size).astype(value)
    data[3] = 0
    return indptr, indices, data


def product(entries: tuple, width: int, kernel: str = "csc_dense") -> np.ndarray:
    x = np.random.default_rng(6).standard_normal((D, width)).astype(entries[2].dtype)
    out = np.full((R, width), np.nan, x.dtype)
    kernels.get(kernel).cpu(*entries, x, out)
    return out


@needs_two
@pytest.mark.parametrize("kernel", ["csc_dense", "csr_t_dense_full"])
@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("width", [1, 16, 33])
@pytest.mark.parametrize("order", ["sorted", "unsorted"])
@pytest.mark.parametrize(("index", "value"), [(np.int32, np.float32), (np.int64, np.float64)])
def test_ranges_have_the_bits_of_one_thread(kernel, count, width, order, index, value, monkeypatch) -> None:
    entries, cuts = matrix(order, index, value), []
    threads.set_threads(1)
    serial = product(entries, width, kernel)
    threads.set_threads(2)
    share_out(monkeypatch)
    monkeypatch.setattr(csc_dense, "RANGE", 1)
    monkeypatch.setattr(csc_dense, "get_threads", lambda: count)
    cut = csc_dense._by_range
    monkeypatch.setattr(csc_dense, "_by_range", lambda *args: cuts.append(cut(*args)) or cuts[-1])
    assert product(entries, width, kernel).tobytes() == serial.tobytes()
    is_narrow = width * serial.itemsize < 64
    assert [found is None for found in cuts] == [order == "unsorted" and is_narrow]


@pytest.mark.parametrize("order", ["sorted", "unsorted"])
def test_entries_of_a_column_stand_in_the_order_of_ranges(order) -> None:
    indptr, indices, data = matrix(order, np.int32, np.float32)
    edges = csc_dense.edges_of(indices, 3)
    assert edges.size == 2
    assert 0 < edges[0] < edges[1]
    places, in_order = csc_dense.split(indptr, indices, edges)
    assert in_order == (order == "sorted")
    assert (places.shape, places.dtype) == ((4, D), indptr.dtype)
    grouped = csc_dense.group(places, indices, data, edges)
    for c in range(D):
        own = slice(indptr[c], indptr[c + 1])
        number = np.searchsorted(edges, indices[own], side="right")
        stable = np.argsort(number, kind="stable")
        assert places[:, c].tolist() == [own.start, *(own.start + np.cumsum(np.bincount(number, minlength=3)))]
        for array, made in zip((indices, data), grouped, strict=True):
            assert made[own].tobytes() == array[own][stable].tobytes()
            assert in_order <= (made[own].tobytes() == array[own].tobytes())


def test_ranges_have_about_as_many_entries() -> None:
    indices = np.random.default_rng(0).zipf(1.3, 20_000).clip(0, 10**6).astype(np.int32)
    edges = csc_dense.edges_of(indices, 4)
    held = np.bincount(np.searchsorted(edges, indices, side="right"), minlength=4)
    assert held.max() < 0.5 * indices.size


def test_one_row_with_every_entry_is_one_range() -> None:
    indices = np.full(10 * D, 4, np.int32)
    starts = np.arange(0, 10 * D + 1, 10, dtype=np.int32)
    places, in_order = csc_dense.split(starts, indices, csc_dense.edges_of(indices, 2))
    assert in_order
    assert (places[1] == places[0]).all()
    assert (places[2] - places[1] == 10).all()
