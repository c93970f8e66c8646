"""Calls with tables of two bytes a value and what they are compared with, on the emulator and on a real device."""

import numpy as np

import kernels
from kernels import Case
from kernels.devices import Device
from kernels.gpu import narrow
from kernels.gpu.rounding import NEAREST, Rounding
from tests.support.cases import CASES, random_case
from tests.support.gpu_implementations import FEW, GPU_CASES, run_on
from tests.support.implementations import allowed_error, assert_close, run, same_bits
from tests.support.rounding_model import DIGITS, numbers_of, rounded, widened

KINDS = ("float16", "uint16")

SPECIAL = CASES["nan and inf"]

NARROW = [case for case in GPU_CASES.values() if case.dtype == np.float32 and case is not SPECIAL]
NARROW += [random_case(9, 8, 40, N, seed=1) for N in (13, 29)]
"""Cases for products of tables."""

PRODUCTS = {
    "csr_dense": ("csr_dense", (3,)),
    "csr_dense_ones": ("csr_dense_ones", (2,)),
    "csc_dense": ("csc_dense", (3,)),
    "coo_dense": ("coo_dense", (3,)),
    "csr_t_dense": ("csr_t_dense", (3,)),
    "csr_t_dense_ones": ("csr_t_dense_ones", (2,)),
    "csr_t_dense_full": ("csr_t_dense_full", (3,)),
    "sddmm": ("sddmm", (2, 3)),
    "sddmm with float32": ("sddmm", (3,)),
}
"""Functions of `narrow`, which have their kernels' names, and the places of tables among their arguments."""

RULES = [name.removesuffix("_lazy") for name in kernels.names() if name.endswith("_lazy") and "." not in name]
CALLS = [(rule, call) for rule in RULES for call in ("dense", "lazy", "fused")]
CALLS += [
    (name.removesuffix("_step_by_step"), "step_by_step") for name in kernels.names() if name.endswith("_step_by_step")
]
"""Every rule with the functions of `narrow` that take it."""
SOME = [case for name, case in GPU_CASES.items() if name in (*FEW, "narrow", "width 16", "width 512")]
SOME = [case for case in SOME if case.dtype == np.float32 and case is not SPECIAL]
"""Cases for updates: each tile has one."""


def cases_of(rule: str) -> list[Case]:
    """All of them for a rule of each kind, by element and by row; few for the others, which differ in their formula."""
    return SOME if rule in ("adagrad", "group_adagrad") else SOME[::4]


HOWS = {"nearest": NEAREST, "random": Rounding(2**40 + 7, 2**33 + 5)}


def with_tables(args: tuple, places: tuple[int, ...], kind: str) -> tuple[list, list]:
    """The arguments with narrow arrays at the places, and with the float32 arrays that have the same values."""
    given, wide = list(args), list(args)
    for place in places:
        given[place] = rounded(args[place], kind)
        wide[place] = widened(given[place])
    return given, wide


def assert_product_is_right(device: Device, name: str, case: Case, kind: str, put=None, special: bool = False) -> None:
    """Of a product in `PRODUCTS`: the same as the reference makes of the tables' values; nothing else is written."""
    function, places = PRODUCTS[name]
    args = kernels.get(function).arguments(case)
    if special:
        for place in places:
            args[place].flat[[0, args[place].size // 2, -1]] = np.nan, -np.inf, np.inf
    given, wide = with_tables(args, places, kind)
    there = [(put or device.put)(arg) for arg in given]
    getattr(narrow, function)(*there)
    came = list(map(device.read, there))
    assert_close(case, came[-1:], run(kernels.get(function).reference, tuple(wide))[-1:])
    assert same_bits(came[:-1], given[:-1])


def call_update(device: Device, call: str, rule: str, args: list, how: Rounding) -> list:
    """The arrays after `narrow_updates.<call>`."""
    function = getattr(narrow, call)
    arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
    return run_on(device, lambda *there: function(rule, *there, rounding=how), tuple(args))[: len(arrays)]


def expected_bits(device: Device, name: str, wide: list, kind: str, how: Rounding) -> list:
    """What the float32 twin of the same device makes of it, with its weights rounded as the model has it."""
    weights, *others = run_on(device, kernels.get(name).gpu, tuple(wide))
    numbers = None if how.seed is None else numbers_of(weights.shape, how.seed, how.step)
    return [rounded(weights, kind, numbers), *[other for other in others if isinstance(other, np.ndarray)]]


def assert_update_is_right(device: Device, call: str, rule: str, case: Case, kind: str, how: Rounding) -> list:
    """Within the rounding of the weights what the reference computes from their values; returns what came."""
    kernel = kernels.get(f"{rule}_{call}")
    given, wide = with_tables(kernel.arguments(case), (0,), kind)
    came = call_update(device, call, rule, given, how)
    expected = [arg for arg in run(kernel.reference, tuple(wide)) if isinstance(arg, np.ndarray)]
    assert_close(case, came[1:], expected[1:])
    assert same_bits(came[len(kernel.writes) :], [arg for arg in given[len(kernel.writes) :] if hasattr(arg, "shape")])
    exact = allowed_error(case, expected[0])
    relative = 2.0 ** -(DIGITS[kind] - (how.seed is not None))  # half of a last place, or all of it
    least = 2.0**-24 if kind == "float16" else 0  # below the normal numbers of float16
    allowed = {"rtol": exact["rtol"] + 1.01 * relative, "atol": exact["atol"] + least}
    assert came[0].dtype == kind
    np.testing.assert_allclose(widened(came[0]), expected[0], **allowed)
    return came
