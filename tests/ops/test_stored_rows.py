"""Stored rows: retain, add, scatter and merge on the shapes that their merge walks could get wrong."""

import numpy as np
import pytest

from kernels import KernelError
from tests.support.implementations import get

LISTS = [[], [0], [7], [0, 1, 2, 3], [2, 3, 9], [1, 5, 8, 9, 40], list(range(0, 50, 7))]


def values_of(indices: list[int], scale: float) -> np.ndarray:
    return scale * np.outer(np.add(indices, 1), [1.0, 10.0])


@pytest.mark.parametrize("left", LISTS)
@pytest.mark.parametrize("right", LISTS)
def test_sum_has_the_rows_of_either_side(left: list[int], right: list[int]) -> None:
    a, b = values_of(left, 1).reshape(-1, 2), values_of(right, 0.5).reshape(-1, 2)
    union, sums = get("add_rows").cpu(np.array(left, np.int64), a, np.array(right, np.int64), b)
    dense = np.zeros((50, 2))
    dense[left] += a
    dense[right] += b
    assert union.tolist() == sorted({*left, *right})
    np.testing.assert_array_equal(sums, dense[union])


@pytest.mark.parametrize("stored", LISTS)
@pytest.mark.parametrize("wanted", LISTS)
@pytest.mark.parametrize("order", ["ascending", "backwards, twice"])
def test_retained_rows_are_those_wanted_and_stored(stored: list[int], wanted: list[int], order: str) -> None:
    asked = wanted if order == "ascending" else wanted[::-1] * 2
    values = values_of(stored, 1).reshape(-1, 2)
    kept, rows = get("retain_rows").cpu(np.array(stored, np.int64), values, np.array(asked, np.int64))
    assert kept.tolist() == sorted({*stored} & {*wanted})
    np.testing.assert_array_equal(rows, values[np.isin(stored, wanted)])


def test_retain_refuses_a_negative_row() -> None:
    with pytest.raises(KernelError, match="a wanted row is -2; rows count from 0"):
        get("retain_rows").trusted(np.array([3]), np.ones((1, 1)), np.array([3, -2]))
    with pytest.raises(KernelError, match=r"\[1\] is -2, out of range"):
        get("retain_rows").cpu(np.array([3]), np.ones((1, 1)), np.array([3, -2]))


def test_scatter_leaves_other_rows_alone() -> None:
    out = np.full((6, 3), 7.0)
    get("scatter_rows").cpu(np.ones((2, 3)), np.array([4, 1]), out)
    assert out[:, 0].tolist() == [7, 1, 7, 7, 1, 7]


def test_take_undoes_scatter() -> None:
    random = np.random.default_rng(0)
    values, index = random.standard_normal((40, 5)), random.permutation(90)[:40]
    table, back = np.zeros((90, 5)), np.empty((40, 5))
    get("scatter_rows").cpu(values, index, table)
    get("take_rows").cpu(table, index, back)
    np.testing.assert_array_equal(back, values)


def test_merging_the_rows_of_both_sides_adds_them() -> None:
    left, right = np.array([1, 4, 6]), np.array([0, 4, 5, 6])
    a, b = values_of(left, 1), values_of(right, 2)
    one = get("add_rows").cpu(left, a, right, b)
    other = get("merge_rows").cpu(np.concatenate((right, left)), np.concatenate((b, a)))
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)
