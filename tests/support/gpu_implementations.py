"""How GPU twins are called and compared, for the tests on the emulator and on a real device."""

import functools
import re
from collections.abc import Callable

import numpy as np
import pytest

import kernels
from benchmarks import competitors
from kernels import Case
from kernels.devices import Device
from kernels.gpu.row_sums import tiles
from kernels.gpu.source import sources
from tests.support.cases import CASES, from_rows, random_case
from tests.support.implementations import assert_close, assert_inputs_unchanged, run

OURS = [name for name in kernels.names() if "." not in name]
WITHOUT = [name for name in OURS if kernels.get(name).gpu is None]
WITH = [name for name in OURS if name not in WITHOUT]
COMPETITORS = [kernel for kernel in map(kernels.get, kernels.names()) if kernel.competitor_of and kernel.gpu]
COMPETITORS += [kernel for kernel in map(competitors.get, competitors.names()) if kernel.gpu]

_wide = {"dtype": np.float64, "index": np.int64}


def _of_lengths(lengths: list[int], D: int, N: int, seed: int = 0, **types) -> Case:
    """A case whose rows have these lengths, with columns in no order."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.random.default_rng(seed).integers(0, D, rows.size)
    return from_rows(rows, columns, len(lengths), D, N, seed, **types)


def _hot_columns(N: int, **types) -> Case:
    """Column 3 is in every row, column 5 in two of three, the others here and there."""
    rows = np.concatenate((np.arange(700), np.flatnonzero(np.arange(700) % 3), np.arange(0, 700, 9)))
    columns = np.concatenate((np.full(700, 3), np.full(466, 5), np.arange(78) % 11))
    return from_rows(rows, columns, 700, 11, N, **types)


LONG = {
    "long rows": _of_lengths([0, 3, 128, 129, 0, 255, 1000, 1, 0], 50, 5),
    "long rows, vectors": _of_lengths([127, 1, 500, 128, 128, 300], 50, 64, seed=1),
    "long rows from a piece's start": _of_lengths([128, 400, 112, 256, 129], 40, 16),
    "long rows, 64 bits": _of_lengths([1, 260, 0, 130], 30, 6, seed=1, **_wide),
    "hot columns": _hot_columns(3),
    "hot columns, vectors": _hot_columns(16, index=np.int64),
    "hot columns, 64 bits": _hot_columns(6, **_wide),
    "hot columns, 64 bits, odd": _hot_columns(5, **_wide),
}
"""Sums of many entries, which a device cuts into pieces."""

WIDTHS = {
    "64 bits, odd": random_case(9, 7, 40, 3, seed=1, **_wide),
    **{f"width {N}": random_case(9, 8, 40, N, seed=1) for N in (4, 8, 12, 32, 128, 256, 260, 512, 600)},
    **{f"64 bits, width {N}": random_case(9, 8, 40, N, seed=1, **_wide) for N in (2, 3, 4, 9, 16, 32, 64, 130, 514)},
}


def _tile_cases() -> dict[str, tuple[Case, bool]]:
    """For each tile of a weighted sum a case with sums that are cut, and whether its arrays are out of alignment."""
    cases = {}
    for value, types in (("float", {}), ("double", _wide)):
        for tile in tiles(value):
            width = tile.pack * tile.lanes * tile.packs
            cases[tile.name(value)] = _of_lengths([300, 0, 20, 1], 9, width, seed=1, **types), tile.pack == 1
    return cases


TILES = _tile_cases()
GPU_CASES = {**CASES, **LONG, **WIDTHS, "two rows, width 164": random_case(2, 8, 12, 164, seed=1)}

SOME = ("plain", "width 33", "width 64", "64 bits", "many rows", "hot columns", "long rows")
"""Cases for tests that repeat a call."""

ALIKE = ("sgd", "momentum", "nesterov", "adamw", "ftrl", "rmsprop", "centered", "signum")
"""Rules that differ from adagrad and adam in their formula alone."""

FEW = ("plain", "no rows", "nothing", "no entries", "explicit zeros", "nan and inf", "width 33", "64 bits")
FEW += ("long rows, vectors", "hot columns", "hot columns, 64 bits", "width 260", "64 bits, width 64")
FEW_CUBIC = tuple("two rows, width 164" if case == "width 260" else case for case in FEW)
"""Of a wide matrix a block eliminates several squares, and more columns than it has threads."""

CUBIC = ("als_cholesky",)
"""Kernels whose work grows with the cube of the width: wide cases would take minutes on the emulator."""

BY_ROWS = (*CUBIC, "als_conjugate")
"""Kernels of which a block solves a row on its own: a few rows show what many do."""

DISTINCT = [name for name in WITH if name.split("_")[0] not in ALIKE]


def pairs(names: list[str]) -> dict[str, tuple[str, Case]]:
    """Each kernel on each case; rules that are alike, and cubic kernels, on few of them."""
    return {
        f"{name}-{case}": (name, GPU_CASES[case])
        for name in names
        for case in GPU_CASES
        if (case in FEW_CUBIC if name in CUBIC else (case in FEW or name in DISTINCT))
    }


def run_on(device: Device, function, args: tuple, put: Callable[[Device, np.ndarray], object] | None = None) -> list:
    """Call with copies on the device; the result's parts, then every argument as the call left it, on the host.

    `put` copies an array to the device in another way than usual.
    """
    copied = functools.partial(put, device) if put else device.put
    there = [copied(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    result = function(*there)
    parts = result if isinstance(result, tuple) else () if result is None else (result,)
    return [device.read(one) if hasattr(one, "shape") and one.shape != () else one for one in (*parts, *there)]


def assert_gpu_is_reference(device: Device, name: str, case: Case) -> list:
    """Values, dtypes and every array written are those of the reference; returns what came."""
    kernel = kernels.get(name)
    args = kernel.arguments(case)
    came = run_on(device, kernel.gpu, args)
    assert_close(case, came, run(kernel.reference, args))
    assert_inputs_unchanged(kernel, args, came)
    return came


def aligned(device: Device, array: np.ndarray, by: int = 0) -> object:
    """On the emulated device, so many elements after where 16 bytes start."""
    roomy = device.put(np.full(array.size + 32 // array.itemsize + by, 99, array.dtype))
    first = next(k for k in range(roomy.size) if (roomy.address + k * array.itemsize) % 16 == 0) + by
    view = roomy[first : first + array.size].reshape(array.shape)
    view.host[...] = array
    return view


shifted = functools.partial(aligned, by=1)


def gaps(device: Device, array: np.ndarray) -> object:
    """On the emulated device with gaps in memory."""
    roomy = device.put(np.full([2 * length + 1 for length in array.shape], 99, array.dtype))
    view = type(roomy)(roomy.host[tuple(slice(1, None, 2) for _ in array.shape)], roomy.region)
    view.host[...] = array
    return view


PARTS = dict.fromkeys(("lazy", "fused", "fused_pieces", "step_by_step"), "narrow updates")


def part_of(name: str) -> str:
    """Which module of tests runs the variant `name` of a kernel: one for all but those for two bytes a value."""
    if name.startswith(("round_values", "next_step")):
        return "rounding"
    if not re.search(r"\b(Half|Brain|short)\b", name):
        return "wide"
    return PARTS.get(name.partition("<")[0], "narrow")


def not_run(request: pytest.FixtureRequest, launches: dict[str, int], part: str) -> list[str]:
    """Variants of that part that the tests of the module left out; a selection of them proves nothing."""
    here = [item for item in request.session.items if getattr(item, "module", None) is request.module]
    own = {item.originalname for item in here}  # doctests have no module
    if len(own) < sum(name.startswith("test_") for name in dir(request.module)):
        pytest.skip("only some of the tests were selected")
    named = {name for source in sources.values() for name in source.names if part_of(name) == part}
    assert named
    return sorted(named - set(launches))
