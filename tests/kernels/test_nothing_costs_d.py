"""Nothing costs O(D): with 10^7 features and a tiny batch, a kernel touches few pages and allocates next to nothing.

Operands with a row for every feature are memory that is promised but not there until it is touched, so what a call
touches can be counted: by the page faults of the process, not by a clock.
"""

import gc
import mmap
import resource
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

import kernels
from kernels import Case, plan
from tests.support.cases import random_case
from tests.support.implementations import get

D = 10**7
FAULTS = 2000
"""Pages that a call may touch: a sweep over one array of D float32 touches 9,766."""
BYTES = 2**20
"""Bytes that a call may hold at once beyond its operands: one for each feature would be 10^7."""

DENSE_BY_NATURE = (
    *("csr_t_dense_full", "csr_to_csc", "csr_to_dense", "csc_dense", "dense_to_csr"),
    *("dense_csr", "dense_csr_t"),
)
"""Operands or result have a place for every feature: a dense gradient, a column pointer, a dense matrix."""
NAMES = [
    name
    for name in kernels.names()
    if "." not in name
    and name not in DENSE_BY_NATURE
    and not (name.endswith("_dense") and "weights" in get(name).writes)
]

pytestmark = pytest.mark.skipif(not hasattr(mmap, "MADV_NOHUGEPAGE"), reason="counts pages as Linux does")


class Untouched(np.ndarray):
    """Zeros that element-wise functions leave as they are, so that what is derived from them is not touched either."""

    def __array_ufunc__(self, *_args: object, **_options: object) -> "Untouched":
        return self


def untouched(*shape: int) -> Untouched:
    size = 4 * int(np.prod(shape))
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)  # else a fault would stand for 512 pages
    return np.frombuffer(memory, np.float32).reshape(shape).view(Untouched)


class WideCase(Case):
    """A case whose dense operands of D rows are not there until they are touched."""

    def dense(self, *shape: int, salt: int = 0) -> np.ndarray:
        return untouched(*shape) if shape[0] == self.D else super().dense(*shape, salt=salt)

    def garbage(self, *shape: int) -> np.ndarray:
        return untouched(*shape) if shape[0] == self.D else super().garbage(*shape)


def tiny_batch(features: int = D) -> WideCase:
    case = random_case(8, features, 60, 1)
    return WideCase(case.indptr, case.indices, case.data, features, 1)


def cost_of(function: Callable, *args: object) -> tuple[int, int]:
    """(page faults, most bytes held at once) of a call; a search for garbage touches all that the process has."""
    gc.disable()
    tracemalloc.start()
    try:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        function(*args)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()


def arguments(name: str) -> list:
    return [np.asarray(arg) if isinstance(arg, np.ndarray) else arg for arg in get(name).arguments(tiny_batch())]


@pytest.mark.parametrize("name", NAMES)
def test_kernel_with_many_features_touches_little(name: str) -> None:
    kernel = get(name)
    kernel.cpu(*arguments(name))  # compiles
    faults, held = cost_of(kernel.cpu, *arguments(name))
    assert faults < FAULTS
    assert held < BYTES


@pytest.mark.parametrize("features", [10**8, 2**31 - 1, 10**15])
def test_plan_with_many_features_touches_little(features: int) -> None:
    case = random_case(8, features, 60, 1, index=np.int64)
    plan.build(case.indptr, case.indices, features)
    faults, held = cost_of(plan.build, case.indptr, case.indices, features)
    assert faults < FAULTS
    assert held < BYTES


def test_count_of_pages_sees_a_sweep_over_the_features() -> None:
    features = 10**7
    faults, _ = cost_of(lambda: untouched(features).fill(1))
    assert faults > FAULTS
    _, held = cost_of(lambda: np.empty(features, np.int8))
    assert held > BYTES
