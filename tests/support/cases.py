"""Hostile inputs by name: every kernel is run on all of them. `CASES` is built without kernels, by NumPy alone."""

import numpy as np

from kernels import Case


def random_case(
    R: int, D: int, z: int, N: int, seed: int = 0, *, dtype: type = np.float32, index: type = np.int32
) -> Case:
    """A [R, D] with z entries in random places: rows may be empty, columns unsorted and repeated."""
    random = np.random.default_rng(seed)
    return from_rows(random.integers(0, R, z), random.integers(0, D, z), R, D, N, seed, dtype=dtype, index=index)


def from_rows(
    rows: np.ndarray, columns: np.ndarray, R: int, D: int, N: int, seed: int = 0, *, dtype=np.float32, index=np.int32
) -> Case:
    """A case with an entry at each (row, column), in that order within a row."""
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate(([0], np.bincount(rows, minlength=R).cumsum())).astype(index)
    data = np.random.default_rng((seed, 1)).standard_normal(len(rows)).astype(dtype)
    return Case(indptr, np.asarray(columns)[order].astype(index), data, D, N, seed)


def sorted_case(case: Case) -> Case:
    """The same with the columns of each row sorted and unique."""
    rows = np.repeat(np.arange(case.R), np.diff(case.indptr))
    places = np.unique(rows * max(case.D, 1) + case.indices)
    rows, columns = np.divmod(places, max(case.D, 1))
    types = {"dtype": case.dtype, "index": case.indices.dtype}
    return from_rows(rows, columns, case.R, case.D, case.N, case.seed, **types)


def with_data(case: Case, values: dict[int, float]) -> Case:
    """The same with some values replaced, by position."""
    data = case.data.copy()
    for position, value in values.items():
        data[position] = value
    return Case(case.indptr, case.indices, data, case.D, case.N, case.seed)


def _full_row() -> Case:
    columns = np.concatenate((np.arange(150) % 40, [1, 2, 3]))
    return from_rows(np.concatenate((np.full(150, 4), [0, 5, 8])), columns, 9, 40, 3)


def _full_column() -> Case:
    return from_rows(np.tile(np.arange(60), 2), np.concatenate((np.full(60, 2), np.arange(60) % 7)), 60, 7, 4)


_wide = {"dtype": np.float64, "index": np.int64}
CASES: dict[str, Case] = {
    "plain": random_case(7, 11, 20, 3),
    "no rows": random_case(0, 5, 0, 3),
    "no columns": random_case(4, 0, 0, 3),
    "nothing": random_case(0, 0, 0, 1),
    "no entries": random_case(4, 5, 0, 2),
    "one entry": random_case(1, 1, 1, 1),
    "empty rows": from_rows(np.array([3, 3, 17]), np.array([1, 4, 0]), 20, 5, 3),
    "duplicates": from_rows(np.array([0, 0, 0, 0, 2, 2]), np.array([3, 1, 3, 3, 0, 0]), 3, 4, 2),
    "explicit zeros": with_data(random_case(5, 6, 12, 2), {0: 0.0, 3: -0.0, 11: 0.0}),
    "nan and inf": with_data(random_case(6, 9, 25, 3), {0: np.nan, 7: np.inf, 12: -np.inf, 13: np.inf}),
    "full row": _full_row(),
    "full column": _full_column(),
    "sorted": sorted_case(random_case(30, 25, 200, 5)),
    "sorted, wide": sorted_case(random_case(30, 25, 200, 33)),
    "many columns": random_case(6, 5000, 40, 2),
    "many rows": random_case(300, 11, 600, 33),
    "narrow": random_case(40, 30, 300, 1, seed=1),
    "width 2": random_case(9, 8, 30, 2, seed=1),
    "width 5": random_case(9, 8, 30, 5, seed=1),
    "width 16": random_case(9, 8, 30, 16, seed=1),
    "width 33": random_case(9, 8, 60, 33, seed=1),
    "width 64": random_case(9, 8, 60, 64, seed=1),
    "width 100": random_case(9, 8, 60, 100, seed=1),
    "width 257": random_case(5, 6, 30, 257, seed=1),
    "64 bits": random_case(12, 14, 60, 5, **_wide),
    "64 bits, narrow": random_case(12, 14, 60, 1, seed=1, **_wide),
    "64 bits, wide": random_case(12, 14, 60, 33, seed=1, **_wide),
}
