"""Dense products by BLAS: the same bits on one of its threads and on all, which it gets back."""

import threading

import numpy as np
import pytest

from kernels import blas, choosing, threads
from kernels.choosing import Choices
from tests.support.cores import COSTS, Cores
from tests.support.thread_counts import needs_two, share_out

pytestmark = pytest.mark.usefixtures("kept_threads")


class Library:
    """A BLAS of two threads, which notes how many it was given."""

    def __init__(self) -> None:
        self.count, self.given = 2, []

    def get_num_threads(self) -> int:
        return self.count

    def set_num_threads(self, count: int) -> None:
        self.count = count
        self.given.append(count)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    clock = Cores().clock
    clock.now = 1.0
    monkeypatch.setattr(blas, "library", lambda: found)
    monkeypatch.setattr(choosing, "perf_counter", clock)
    monkeypatch.setattr(threads.this_thread, "choices", Choices())
    monkeypatch.setattr(blas.entry_costs, "costs", lambda count: COSTS)
    share_out(monkeypatch, None)
    threads.set_threads(2)
    return found


def operands(rows: int, columns: int, width: int, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.standard_normal((rows, columns)).astype(dtype), random.standard_normal((columns, width)).astype(dtype)


@needs_two
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(256, 2048, 16), (2048, 256, 16), (256, 1024, 1), (1024, 256, 1), (255, 777, 33)])
def test_a_product_has_the_same_bits_on_any_number_of_threads(shape: tuple[int, int, int], dtype: type) -> None:
    if (openblas := blas.library()) is None:
        pytest.skip("NumPy has another BLAS than OpenBLAS")
    x, y = operands(*shape, dtype=dtype)
    for left in (x, np.ascontiguousarray(x.T).T):
        assert np.array_equal(np.matmul(left, y), blas._alone(openblas, left, y, None))


@needs_two
def test_a_product_yields_with_the_kernels_and_gives_the_threads_back(library: Library) -> None:
    x, y = operands(256, 2048, 16)
    out = np.empty((256, 16), np.float32)
    assert blas.matmul(x, y, out) is out
    assert library.given == []
    threads.this_thread.choices.yielding.shared(1.0, 1.0, 0.0)
    assert np.array_equal(blas.matmul(x, y), np.matmul(x, y))
    assert library.given == [1, 2]
    with pytest.raises(ValueError, match="matmul"):
        blas.matmul(x, y[:-1])
    assert library.given == [1, 2, 1, 2]


@needs_two
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((256, 2048), (2048,)),
        ((8, 70_000), (70_000, 4)),
        ((70_000, 8), (8, 4)),
        ((64, 64), (64, 1)),
        ((2, 300, 300), (300, 9)),
    ],
)
def test_other_products_are_left_as_they_are(library: Library, left: tuple, right: tuple) -> None:
    threads.this_thread.choices.yielding.shared(1.0, 1.0, 0.0)
    assert blas.matmul(np.ones(left, np.float32), np.ones(right, np.float32)).flat[0] == left[-1]
    assert library.given == []


@needs_two
@pytest.mark.parametrize("asked", [threads.serial, threads.parallel])
def test_who_asks_for_threads_leaves_blas_alone(library: Library, asked) -> None:
    threads.this_thread.choices.yielding.shared(1.0, 1.0, 0.0)
    with asked():
        blas.matmul(*operands(256, 2048, 16))
    assert library.given == []


def test_products_at_the_same_time_give_back_what_there_was_before_the_first(library: Library, monkeypatch) -> None:
    inside, leave = threading.Event(), threading.Event()
    multiply = np.matmul

    def slow(left, right, out=None):
        inside.set()
        assert leave.wait(60)
        return multiply(left, right, out=out)

    monkeypatch.setattr(np, "matmul", slow)
    one = threading.Thread(target=blas._alone, args=(library, *operands(3, 3, 3), None))
    one.start()
    assert inside.wait(60)
    monkeypatch.setattr(np, "matmul", multiply)
    blas._alone(library, *operands(3, 3, 3), None)
    assert library.given == [1]
    leave.set()
    one.join()
    assert library.given == [1, 2]
