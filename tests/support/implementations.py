"""How the twins of a kernel are called and compared, for all tests of kernels."""

import numpy as np
import pytest

import kernels
from kernels import Case, Kernel


def get(name: str) -> Kernel:
    kernel = kernels.get(name)
    if kernel.cpu is None:
        pytest.skip(f"{name}: {kernel.unavailable}")
    return kernel


def copies(args: tuple) -> tuple:
    return tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)


def not_finite(kernel: Kernel, case: Case) -> tuple:
    """The kernel's own arguments with NaN and both infinities in each array of floats."""
    args = copies(kernel.arguments(case))
    for arg, (_, kind, _) in zip(args, kernel.parsed, strict=True):
        if kind == "f":
            arg.flat[[0, arg.size // 2, -1]] = np.nan, -np.inf, np.inf
    return args


def run(function, args: tuple) -> list:
    """Call on copies; the result's parts, then every argument as the call left it."""
    args = copies(args)
    with np.errstate(all="ignore"):
        result = function(*args)
    parts = result if isinstance(result, tuple) else () if result is None else (result,)
    return [*parts, *args]


def same_bits(one: list, other: list) -> bool:
    return all(
        np.array_equal(np.asarray(a), np.asarray(b), equal_nan=np.asarray(a).dtype.kind == "f")
        and np.asarray(a).dtype == np.asarray(b).dtype
        and np.asarray(a).tobytes() == np.asarray(b).tobytes()
        for a, b in zip(one, other, strict=True)
    )


def allowed_error(case: Case, expected: np.ndarray) -> dict:
    """Rounding of the longest sum that the case can make, twice: the reference rounds as well."""
    finite = np.abs(expected[np.isfinite(expected)])
    eps = np.finfo(case.dtype).eps * 2 * max(case.indices.size, case.D, case.R, 8)
    return {"rtol": eps, "atol": eps * max(finite.max(initial=0), 1e-3)}


def assert_close(case: Case, came: list, expected: list) -> None:
    for one, other in zip(came, expected, strict=True):
        assert type(one) is type(other)
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype.kind == "f":
            np.testing.assert_allclose(one, other, **allowed_error(case, other))
        else:
            np.testing.assert_array_equal(one, other)


def assert_inputs_unchanged(kernel: Kernel, before: tuple, after: list) -> None:
    for (name, kind, _), old, new in zip(kernel.parsed, before, after[-len(before) :], strict=True):
        if kind != "s" and name not in kernel.writes:
            assert old.tobytes() == new.tobytes(), f"{kernel.name} changed {name}"


def strided(array: object) -> object:
    """The same values with gaps in memory."""
    if not isinstance(array, np.ndarray):
        return array
    roomy = np.full([2 * length + 1 for length in array.shape], 99, array.dtype)
    view = roomy[tuple(slice(1, None, 2) for _ in array.shape)]
    view[...] = array
    return view
