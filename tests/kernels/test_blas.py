"""Dense products by BLAS: the bits of all its threads whatever it yields to, and its threads given back."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from kernels import blas, choosing, threads
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


def set_free(monkeypatch: pytest.MonkeyPatch, are_free: bool) -> None:
    """State whether other programs leave the cores to this process."""
    monkeypatch.setattr(choosing, "load", SimpleNamespace(leaves=lambda count, now: are_free))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    monkeypatch.setattr(blas, "library", lambda: found)
    monkeypatch.setattr(blas, "_bits", {})
    set_free(monkeypatch, True)
    share_out(monkeypatch, None)
    threads.set_threads(2)
    return found


def operands(rows: int, columns: int, width: int, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.standard_normal((rows, columns)).astype(dtype), random.standard_normal((columns, width)).astype(dtype)


SHAPES = [(256, 2048, 16), (2048, 256, 16), (256, 1024, 1), (842, 402, 100), (192, 1188, 8), (450, 2397, 1)]
"""Of these about half have other bits on one thread, with the OpenBLAS of NumPy 2.3 on an AMD EPYC 9004."""


@needs_two
@pytest.mark.parametrize("in_c_order", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_that_yields_has_the_bits_of_all_threads(
    shape: tuple[int, int, int], dtype: type, in_c_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if blas.library() is None:
        pytest.skip("NumPy has another BLAS than OpenBLAS")
    share_out(monkeypatch, None)
    threads.set_threads(2)
    x, y = operands(*shape, dtype=dtype)
    left = x if in_c_order else np.asfortranarray(x)
    set_free(monkeypatch, False)
    for _ in range(2):
        assert np.array_equal(np.matmul(left, y), blas.matmul(left, y))


@needs_two
@pytest.mark.parametrize("are_same", [True, False])
def test_products_of_a_shape_with_other_bits_on_one_thread_stay_on_all(
    are_same: bool, library: Library, monkeypatch
) -> None:
    x, y = operands(256, 2048, 16)
    key = x.shape, 16, True, "f", 2
    blas._bits[key] = are_same
    set_free(monkeypatch, False)
    blas.matmul(x, y)
    assert library.given == ([1, 2] if are_same else [])


@needs_two
def test_bits_are_compared_before_the_first_product_on_one_thread(library: Library, monkeypatch) -> None:
    x, y = operands(256, 2048, 16)
    blas.matmul(x, y)
    assert not blas._bits
    set_free(monkeypatch, False)
    blas.matmul(x, y)
    assert list(blas._bits) == [((256, 2048), 16, True, "f", 2)]


@needs_two
def test_a_product_yields_with_the_kernels_and_gives_the_threads_back(library: Library, monkeypatch) -> None:
    x, y = operands(256, 2048, 16)
    out = np.empty((256, 16), np.float32)
    assert blas.matmul(x, y, out) is out
    assert library.given == []
    blas._bits[x.shape, 16, True, "f", 2] = True
    set_free(monkeypatch, False)
    assert np.array_equal(blas.matmul(x, y), np.matmul(x, y))
    assert library.given == [1, 2]
    with pytest.raises(ValueError, match="mismatch"):
        blas.matmul(x, y, np.empty((3, 3), np.float32))
    assert library.given == [1, 2, 1, 2]


@needs_two
@pytest.mark.parametrize(
    ("left", "right"),
    [((256, 2048), (2048,)), ((2000, 2001), (2001, 2)), ((64, 64), (64, 1)), ((2, 300, 300), (300, 9))],
)
def test_other_products_are_left_as_they_are(library: Library, left: tuple, right: tuple, monkeypatch) -> None:
    set_free(monkeypatch, False)
    assert blas.matmul(np.ones(left, np.float32), np.ones(right, np.float32)).flat[0] == left[-1]
    assert library.given == []


@needs_two
@pytest.mark.parametrize("asked", [threads.serial, threads.parallel])
def test_who_asks_for_threads_leaves_blas_alone(library: Library, asked, monkeypatch) -> None:
    set_free(monkeypatch, False)
    with asked():
        blas.matmul(*operands(256, 2048, 16))
    assert library.given == []


def test_products_of_several_threads_take_turns(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, leave = threading.Event(), threading.Event()
    multiply, x = np.matmul, np.ones((3, 3))

    def slow(left, right, out=None):
        inside.set()
        assert leave.wait(60)
        return multiply(left, right, out=out)

    monkeypatch.setattr(np, "matmul", slow)
    one, other = (threading.Thread(target=blas.matmul, args=(x, x), daemon=True) for _ in range(2))
    one.start()
    assert inside.wait(60)
    inside.clear()
    other.start()
    assert not inside.wait(0.05)
    leave.set()
    assert inside.wait(60)
    one.join(60)
    other.join(60)
