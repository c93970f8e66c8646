"""How values of two bytes are made from float32, on the emulated device."""

import functools

import numpy as np
import pytest

from kernels import KernelError
from kernels.gpu import rounding
from kernels.gpu.rounding import Rounding
from tests.support.emulator.device import emulator
from tests.support.gpu_implementations import not_run, run_on, shifted
from tests.support.implementations import same_bits
from tests.support.rounding_model import boundaries, numbers_of, philox, rounded, widened

KINDS = ["float16", "uint16"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def on_device(values: np.ndarray, kind: str, **how) -> np.ndarray:
    function = functools.partial(rounding.rounded, rounding=Rounding(**how))
    return run_on(emulator, function, (values, np.empty(values.shape, kind)))[-1]


def test_random_numbers_are_the_published_ones() -> None:
    """Random123's known answers for Philox4x32-10, the last of them from digits of pi."""
    full = 0xFFFFFFFF
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
    for counter, key, answer in (
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((full,) * 4, (full,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (*pi, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ):
        assert tuple(philox(np.array([counter]), key)[0]) == answer


@each_kind
def test_model_knows_every_pattern_of_two_bytes(kind: str) -> None:
    patterns = np.arange(2**16, dtype=np.uint16).view(kind)
    wide = widened(patterns)
    expected = np.where(np.isnan(wide), 0x7FFF, patterns.view(np.uint16)).astype(np.uint16).view(kind)
    assert same_bits([rounded(wide, kind)], [expected])
    assert same_bits([rounded(wide, kind, np.full(wide.size, 2**32 - 1))], [expected])


def test_model_is_the_cast_of_numpy() -> None:
    values = boundaries("float16")
    values = values[~np.isnan(values)]
    with np.errstate(over="ignore"):
        assert same_bits([rounded(values, "float16")], [values.astype(np.float16)])


@each_kind
def test_to_the_nearest_at_every_boundary(kind: str) -> None:
    values = boundaries(kind)
    assert same_bits([on_device(values, kind)], [rounded(values, kind)])
    assert same_bits([on_device(values[:-1], kind)], [rounded(values, kind)[:-1]])  # by single values


@each_kind
def test_at_random_as_the_model_has_it(kind: str) -> None:
    values = boundaries(kind)
    for seed, step in ((0, 0), (7, 1), (2**63 - 1, 2**40 + 5)):
        expected = rounded(values, kind, numbers_of(values.shape, seed, step))
        assert same_bits([on_device(values, kind, seed=seed, step=step)], [expected])
        assert same_bits([on_device(values[:-1], kind, seed=seed, step=step)], [expected[:-1]])
    assert not same_bits([expected], [on_device(values, kind, seed=seed, step=0)])
    assert not same_bits([expected], [on_device(values, kind, seed=0, step=step)])


@each_kind
@pytest.mark.parametrize("value", [1.001, -3.0001e-5, 3e-8])
def test_at_random_the_mean_is_right(kind: str, value: float) -> None:
    values = np.full(2**16, value, np.float32)
    came = widened(on_device(values, kind, seed=3, step=9)).astype(np.float64)
    assert len(np.unique(came)) == 2
    np.testing.assert_allclose(came.mean(), values[0], atol=np.ptp(came) / 2 / 256 * 4, rtol=0)  # 4 standard deviations


@each_kind
def test_nothing_is_rounded_to_nothing(kind: str) -> None:
    assert on_device(np.empty((0, 3), np.float32), kind).shape == (0, 3)


def test_wrong_calls_are_refused() -> None:
    values, out = np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float16)
    for args, how, words in (
        ((values.astype(np.float64), out), {}, "are float64, float16; allowed are float32, float16 or uint16"),
        ((values, values), {}, "float32, float32; allowed"),
        ((values[1:], out), {}, r"values \[3, 3\] and out \[4, 3\]"),
        ((values, out), {"seed": -1}, r"seed is -1; allowed are int from 0 to 2\*\*63 - 1, and None"),
        ((values, out), {"seed": 2**63}, "seed is 9223372036854775808"),
        ((values, out), {"seed": 1.5}, "seed is 1.5"),
        ((values, out), {"seed": True}, "seed is True"),
        ((values, out), {"seed": 1, "step": -1}, r"step is -1; allowed are int from 0 to 2\*\*63 - 1, and int64 \[1\]"),
        ((values, out), {"seed": 1, "step": np.zeros(2, np.int64)}, "step is array"),
    ):
        with pytest.raises(KernelError, match=words):
            run_on(emulator, lambda *args, how=how: rounding.rounded(*args, rounding=Rounding(**how)), args)
    for given in ((values, emulator.put(out)), (emulator.put(values), out)):
        with pytest.raises(TypeError, match="pass CuPy arrays"):
            rounding.rounded(*given)


@each_kind
def test_arrays_out_of_alignment_and_with_gaps_give_the_same(kind: str) -> None:
    values, how = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32), Rounding(1, 2)
    expected = on_device(values, kind, seed=1, step=2)
    out = shifted(emulator, np.empty((6, 4), kind))
    rounding.rounded(shifted(emulator, values), out, how)
    assert same_bits([emulator.read(out)], [expected])
    roomy = emulator.put(np.empty((6, 8), kind))
    half = type(roomy)(roomy.host[:, ::2], roomy.region)
    rounding.rounded(emulator.put(values), half, how)
    assert same_bits([half.host.copy()], [expected])


@each_kind
def test_step_may_be_on_the_device(kind: str) -> None:
    values = boundaries(kind)
    out, step = emulator.put(np.empty(values.shape, kind)), emulator.put(np.array([2**40 + 5]))
    rounding.rounded(emulator.put(values), out, Rounding(7, step))
    assert same_bits([emulator.read(out)], [on_device(values, kind, seed=7, step=2**40 + 5)])
    rounding.next_step(step)
    rounding.rounded(emulator.put(values), out, Rounding(7, step))
    assert same_bits([emulator.read(out)], [on_device(values, kind, seed=7, step=2**40 + 6)])


def test_every_variant_that_launchers_name_was_run(request: pytest.FixtureRequest) -> None:
    assert not_run(request, emulator.launches, "rounding") == []
