"""The gradient without a plan: what it is by definition, the same bits always, memory that is left clear."""

import numpy as np
import pytest

import kernels
from kernels import Case, KernelError, plan, sorting
from tests.support.cases import CASES
from tests.support.thread_counts import share_out

NARROW = {name: case for name, case in CASES.items() if case.D}


def by_plan(case: Case, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    batch = plan.build(case.indptr, case.indices, case.D)
    values = np.empty((batch.touched, g.shape[1]), g.dtype)
    kernels.get("csr_t_dense").reference(batch.segments, batch.rows, batch.in_order(case.data), g, values)
    return batch.columns, values


def without(case: Case, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return sorting.gradient(case.indptr, case.indices, case.data, g, case.D)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("case", NARROW.values(), ids=NARROW)
def test_it_is_what_a_plan_gives(case: Case, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    g = case.dense(case.R, width)
    expected, one = by_plan(case, g), without(case, g)
    share_out(monkeypatch)
    two = without(case, g)
    np.testing.assert_array_equal(one[0], expected[0])
    np.testing.assert_allclose(one[1], expected[1], rtol=2e-5, atol=2e-5)
    assert [part.dtype for part in one] == [part.dtype for part in expected]
    assert [part.tobytes() for part in one] == [part.tobytes() for part in two]


def test_columns_out_of_range_are_refused_and_the_next_call_is_right() -> None:
    case = CASES["plain"]
    g, beyond = case.dense(case.R, 1), case.indices.copy()
    beyond[3] = -1
    with pytest.raises(KernelError, match=r"Column numbers lie from -1 to \d+; allowed are 0 to 10"):
        sorting.gradient(case.indptr, beyond, case.data, g, case.D)
    np.testing.assert_allclose(without(case, g)[1], by_plan(case, g)[1], rtol=2e-5, atol=2e-5)


def test_large_batches_of_narrow_rows_do_without_a_plan() -> None:
    assert sorting.suits(130_000, 500_000, 1)
    assert not sorting.suits(130_000, 100_000, 3)
    assert not sorting.suits(130_000, 1_000_000, 1)
    assert not sorting.suits(1_000, 1_000, 1)
