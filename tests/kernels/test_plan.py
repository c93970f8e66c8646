"""The batch plan: its invariants on every adversarial case, its limits, and what it refuses."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kernels import Case, plan, sorting
from kernels.contract import KernelError
from tests.support.cases import CASES, random_case
from tests.support.thread_counts import share_out

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@every_case
def test_plan_puts_entries_in_column_order(case: Case) -> None:
    built = plan.build(case.indptr, case.indices, case.D)
    rows = np.repeat(np.arange(case.R), np.diff(case.indptr))
    order = np.argsort(case.indices, kind="stable")
    np.testing.assert_array_equal(built.permutation, order)
    np.testing.assert_array_equal(built.rows, rows[order])
    columns, counts = np.unique(case.indices, return_counts=True)
    np.testing.assert_array_equal(built.columns, columns)
    np.testing.assert_array_equal(np.diff(built.segments), counts)
    assert built.segments[0] == 0
    assert built.columns.dtype == np.int64
    assert built.segments.dtype == built.rows.dtype == built.permutation.dtype == np.int32
    assert built.shape == (case.R, case.D)
    assert built.touched == len(columns)
    assert built.longest_run == counts.max(initial=0)


@every_case
def test_plan_leaves_the_batch_as_it_was(case: Case) -> None:
    indptr, indices = case.indptr.copy(), case.indices.copy()
    indptr.flags.writeable = indices.flags.writeable = False
    plan.build(indptr, indices, case.D)
    assert indptr.tobytes() == case.indptr.tobytes()
    assert indices.tobytes() == case.indices.tobytes()


def test_plan_of_a_slice_counts_from_its_first_entry() -> None:
    case = CASES["sorted"]
    first, last = case.indptr[[10, 20]]
    piece = plan.build(case.indptr[10:21], case.indices[first:last], case.D)
    alone = plan.build(case.indptr[10:21] - first, case.indices[first:last].copy(), case.D)
    for name in ("columns", "segments", "rows", "permutation"):
        np.testing.assert_array_equal(getattr(piece, name), getattr(alone, name))


FIELDS = ("columns", "segments", "rows", "permutation")
FACTS = ("shape", "longest_run", "row_length", "longest_row")


@pytest.mark.parametrize("first", [0, 3])
@every_case
def test_plans_made_together_are_those_made_one_by_one(case: Case, first: int) -> None:
    indptr, indices = case.indptr[first:], case.indices[case.indptr[min(first, case.R)] :]
    together = plan.build_each(indptr, indices, case.D, batch_rows=7)
    if together is None:
        assert indptr.size < 2 or case.D == 0 or indices.size > sorting.ENTRIES
        return
    assert len(together) == -(-(indptr.size - 1) // 7)
    for number, made in enumerate(together):
        starts = indptr[7 * number : 7 * number + 8]
        alone = plan.build(starts, indices[starts[0] - indptr[0] : starts[-1] - indptr[0]], case.D)
        for name in FIELDS:
            assert getattr(made, name).dtype == getattr(alone, name).dtype
            np.testing.assert_array_equal(getattr(made, name), getattr(alone, name))
        assert [getattr(made, name) for name in FACTS] == [getattr(alone, name) for name in FACTS]


def test_batches_that_are_not_small_or_not_right_have_no_plans_together(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["plain"]
    beyond, falling = case.indices.copy(), case.indptr.copy()
    beyond[-1], falling[5] = case.D, falling[7] + 1
    assert plan.build_each(case.indptr, case.indices, case.D, case.R) is not None
    assert plan.build_each(case.indptr, beyond, case.D, 7) is None
    assert plan.build_each(falling, case.indices, case.D, 7) is None
    assert plan.build_each(case.indptr, case.indices[:-1], case.D, 7) is None
    many = np.array([0, sorting.ENTRIES + 1], np.int32)
    assert plan.build_each(many, np.zeros(many[1], np.int32), 1, 1) is None
    monkeypatch.setattr(plan, "INT32_LIMIT", 4)
    assert plan.build_each(case.indptr, case.indices, case.D, 7) is None


@every_case
def test_plan_of_coordinates_keeps_the_order_given(case: Case) -> None:
    row = np.repeat(np.arange(case.R, dtype=case.indices.dtype), np.diff(case.indptr))
    by_row, by_coordinates = (
        plan.build(case.indptr, case.indices, case.D),
        plan.build_coo(row, case.indices, (case.R, case.D)),
    )
    back = plan.build_coo(row[::-1], case.indices[::-1], (case.R, case.D))
    for name in ("columns", "segments", "rows", "permutation"):
        np.testing.assert_array_equal(getattr(by_row, name), getattr(by_coordinates, name))
    np.testing.assert_array_equal(back.columns, by_row.columns)
    np.testing.assert_array_equal(back.rows, row[::-1][back.permutation])
    np.testing.assert_array_equal(back.permutation, np.argsort(case.indices[::-1], kind="stable"))


def test_plan_of_strided_indices() -> None:
    case = CASES["plain"]
    roomy = np.repeat(case.indices, 2)
    np.testing.assert_array_equal(
        plan.build(case.indptr, roomy[::2], case.D).permutation,
        plan.build(case.indptr, case.indices, case.D).permutation,
    )


@pytest.mark.parametrize(("lengths", "expected"), [([2, 2, 2], 2), ([2, 1, 3], -1), ([0, 0], 0), ([], -1)])
def test_row_length_is_told_where_all_rows_have_it(lengths: list[int], expected: int) -> None:
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    built = plan.build(indptr, np.zeros(indptr[-1], np.int32), 1)
    assert (built.row_length, built.longest_row) == (expected, max(lengths, default=0))


@pytest.mark.parametrize("wrong", [-1, 11])
def test_plan_refuses_a_column_out_of_range(wrong: int) -> None:
    case = CASES["plain"]
    indices = case.indices.copy()
    indices[3] = wrong
    with pytest.raises(ValueError, match=r"lie from -?\d+ to \d+; allowed are 0 to 10.*check\(x, full=True\)"):
        plan.build(case.indptr, indices, case.D)


def test_plan_refuses_parts_of_different_lengths() -> None:
    case = CASES["sorted"]
    with pytest.raises(ValueError, match=r"indptr speaks of \d+ entries, indices holds \d+; pass the slice"):
        plan.build(case.indptr[10:21], case.indices, case.D)
    with pytest.raises(ValueError, match="row has 2 entries and col 3"):
        plan.build_coo(np.array([0, 1]), np.array([0, 1, 2]), (2, 3))


def test_positions_become_int64_where_int32_is_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["plain"]
    narrow = plan.build(case.indptr, case.indices, case.D)
    monkeypatch.setattr(plan, "INT32_LIMIT", case.indices.size)
    wide = plan.build(case.indptr, case.indices, case.D)
    assert narrow.permutation.dtype == np.int32
    assert wide.permutation.dtype == wide.segments.dtype == wide.rows.dtype == np.int64
    np.testing.assert_array_equal(narrow.permutation, wide.permutation)


PLAN_ARRAYS = ("columns", "segments", "rows", "permutation")


def assert_same_plan(one: plan.BatchPlan, other: plan.BatchPlan) -> None:
    for name in PLAN_ARRAYS:
        assert getattr(one, name).dtype == getattr(other, name).dtype
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.longest_run, one.longest_row, one.row_length) == (
        other.longest_run,
        other.longest_row,
        other.row_length,
    )
    assert one.shape == other.shape


@pytest.mark.covering
@pytest.mark.parametrize("bits", [4, 5, 12])
@pytest.mark.parametrize("parts", [1, 2, 3, 8])
@pytest.mark.parametrize("n_columns", [30, 5000, 2**33])
def test_plan_is_the_same_for_every_width_of_digit_and_number_of_parts(bits, parts, n_columns, monkeypatch) -> None:
    case = random_case(50, min(n_columns, 3000), 900, 1, index=np.int64)
    indices = case.indices * (n_columns // case.D)
    expected = plan.build(case.indptr, indices, n_columns)
    np.testing.assert_array_equal(expected.permutation, np.argsort(indices, kind="stable"))
    monkeypatch.setattr(sorting, "ENTRIES", -1)
    monkeypatch.setattr(plan, "DIGIT_BITS", bits)
    share_out(monkeypatch)
    monkeypatch.setattr(plan, "get_threads", lambda: parts)
    assert_same_plan(plan.build(case.indptr, indices, n_columns), expected)


@every_case
@pytest.mark.parametrize("parts", [2, 8])
def test_parts_with_few_entries_or_none(case: Case, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plan.build(case.indptr, case.indices, case.D)
    monkeypatch.setattr(sorting, "ENTRIES", -1)
    share_out(monkeypatch)
    monkeypatch.setattr(plan, "get_threads", lambda: parts)
    assert_same_plan(plan.build(case.indptr, case.indices, case.D), expected)


@every_case
@pytest.mark.parametrize("spare", [0, -1, -100], ids=["just fits", "no room for rows", "no room for places"])
def test_columns_too_wide_for_a_word(case: Case, spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plan.build(case.indptr, case.indices, case.D)
    ends = case.indices.size - 1, case.R - 1, case.D - 1
    monkeypatch.setattr(sorting, "ENTRIES", -1)
    monkeypatch.setattr(plan, "WORD_BITS", sum(max(end, 1).bit_length() for end in ends) + spare)
    assert_same_plan(plan.build(case.indptr, case.indices, case.D), expected)


@every_case
@pytest.mark.parametrize("parts", [1, 2])
def test_values_that_go_along_are_those_in_order(case: Case, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plan.build(case.indptr, case.indices, case.D)
    monkeypatch.setattr(sorting, "ENTRIES", -1)
    share_out(monkeypatch, parts == 1)
    values = case.data.astype(np.float32)
    made = plan.build(case.indptr, case.indices, case.D, values)
    for name in ("columns", "segments", "rows"):
        np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))
    np.testing.assert_array_equal(made.in_order(values).view(np.uint32), expected.in_order(values).view(np.uint32))


def test_a_plan_made_with_values_has_no_others() -> None:
    case = random_case(100, 300, sorting.ENTRIES + 1, 1)
    made = plan.build(case.indptr, case.indices, case.D, case.data)
    assert made.permutation is None
    with pytest.raises(KernelError, match=re.escape("has no others. Build it without")):
        made.in_order(case.data.copy())


@pytest.mark.parametrize(("kind", "word_bits"), [(np.float64, 64), (np.float32, 40)], ids=["wide values", "no room"])
def test_values_that_fit_no_word_are_looked_up(kind: type, word_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(100, 300, 1000, 1)
    monkeypatch.setattr(sorting, "ENTRIES", -1)
    monkeypatch.setattr(plan, "WORD_BITS", word_bits)
    values = case.data.astype(kind)
    made = plan.build(case.indptr, case.indices, case.D, values)
    np.testing.assert_array_equal(made.in_order(values), values[made.permutation])


@every_case
@pytest.mark.parametrize("columns", [2**8, 2**51], ids=str)
def test_plan_of_few_entries_is_that_of_many(case: Case, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    indices = case.indices.astype(np.int64) * max(columns // max(case.D, 1), 1)
    n_columns = max(columns, case.D)
    small = plan.build(case.indptr.astype(np.int64), indices, n_columns)
    monkeypatch.setattr(sorting, "ENTRIES", -1)
    assert_same_plan(small, plan.build(case.indptr.astype(np.int64), indices, n_columns))


def test_plan_of_few_entries_refuses_starts_that_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    for entries in (sorting.ENTRIES, -1):
        monkeypatch.setattr(sorting, "ENTRIES", entries)
        with pytest.raises(ValueError, match="indptr falls; starts of rows never do"):
            plan.build(np.int32([0, 3, 1, 2]), np.int32([0, 1]), 3)


def test_plan_of_two_threads_at_once_is_that_of_each() -> None:
    cases = [random_case(400, 10**6, 15_000, 1, seed=seed) for seed in range(8)]
    expected = [plan.build(case.indptr, case.indices, case.D) for case in cases]
    with ThreadPoolExecutor(2) as pool:
        built = list(pool.map(lambda case: plan.build(case.indptr, case.indices, case.D), cases))
    for one, other in zip(built, expected, strict=True):
        assert_same_plan(one, other)


def test_bytes_do_not_grow_with_the_number_of_features() -> None:
    indices = np.array([2**40, 5, 2**40, 0])
    built = plan.build(np.array([0, 1, 4]), indices, 2**50)
    assert built.columns.tolist() == [0, 5, 2**40]
    assert built.nbytes == 3 * 8 + (4 + 4 + 4) * 4


@pytest.mark.parametrize("count", [1, 3, 200_000])
def test_values_in_column_order_are_kept_for_the_array_they_were_made_from(count):
    rng = np.random.default_rng(0)
    indices, data = rng.integers(0, 50, count).astype(np.int32), rng.standard_normal(2 * count)
    made = plan.build(np.int32([0, count]), indices, 50)
    before = made.nbytes
    for values in (data[:count], data[count:], data[::2], data[:count].astype(np.float32)):
        read_only = values.copy()
        read_only.flags.writeable = False
        np.testing.assert_array_equal(made.in_order(read_only), values[made.permutation])
        assert made.in_order(read_only) is made.in_order(read_only)
    assert made.nbytes == before + 4 * count


def test_values_of_another_batch_are_refused():
    made = plan.build(np.int32([0, 2]), np.int32([1, 0]), 3)
    with pytest.raises(ValueError, match=r"data has shape \(3,\); the plan is of a batch with 2 entries"):
        made.in_order(np.ones(3))
