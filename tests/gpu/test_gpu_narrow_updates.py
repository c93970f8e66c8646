"""Updates of weights of two bytes a value on the emulated device."""

import functools

import numpy as np
import pytest

import kernels
from kernels import KernelError
from kernels.gpu import indices as gpu_plan
from kernels.gpu import narrow, rounding
from kernels.gpu import source as gpu_source
from kernels.gpu.rounding import NEAREST, Rounding
from kernels.rules.rule import get_rule
from tests.support.cases import CASES
from tests.support.emulator.device import emulator
from tests.support.gpu_implementations import GPU_CASES, aligned, gaps, not_run, run_on, shifted
from tests.support.implementations import same_bits
from tests.support.narrow_implementations import (
    CALLS,
    HOWS,
    KINDS,
    RULES,
    assert_update_is_right,
    call_update,
    cases_of,
    expected_bits,
    with_tables,
)
from tests.support.rounding_model import numbers_of, rounded, widened

pytestmark = pytest.mark.usefixtures("ascending")

each_kind = pytest.mark.parametrize("kind", KINDS)
each_pair = pytest.mark.parametrize(("rule", "call"), CALLS, ids=map("-".join, CALLS))
each_call = pytest.mark.parametrize("call", ["dense", "lazy", "fused"])
each_way = pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)


def test_rules_are_those_of_the_registry() -> None:
    assert {"sgd", "momentum", "adagrad", "group_adagrad", "adam", "ftrl"} <= set(RULES)


@each_way
@each_kind
@each_pair
def test_updates_of_narrow_weights(rule: str, call: str, kind: str, how: Rounding) -> None:
    """Near the reference, and exactly the float32 twin's weights, rounded as the model rounds, and its states."""
    for case in cases_of(rule):
        came = assert_update_is_right(emulator, call, rule, case, kind, how)
        given, wide = with_tables(kernels.get(f"{rule}_{call}").arguments(case), (0,), kind)
        assert same_bits(came, expected_bits(emulator, f"{rule}_{call}", wide, kind, how))
        if call != "dense":
            left = np.setdiff1d(np.arange(case.D), case.indices)
            assert same_bits([came[0][left]], [given[0][left]])


def special_weights(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros of both signs, the smallest and the largest numbers, infinite ones and NaN, in turn."""
    least, largest, infinite = 1, (0x7BFF if kind == "float16" else 0x7F7F), (0x7C00 if kind == "float16" else 0x7F80)
    some = np.array([0, least, largest, infinite, 0x7FFF, 0x0203], np.uint16)
    return np.resize(np.concatenate((some, some | 0x8000)), shape).view(kind)


@each_way
@each_kind
@each_pair
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_weights_and_gradients(rule: str, call: str, kind: str, how: Rounding) -> None:
    """Numbers below the normal ones, infinite ones and NaN, and steps that leave the type's range."""
    for name in ("width 5", "width 16"):
        args = list(kernels.get(f"{rule}_{call}").arguments(CASES[name]))
        args[0] = special_weights(kind, args[0].shape)
        last = [arg for arg in args if isinstance(arg, np.ndarray)][-1]  # the gradient, g, or a table of settings
        last.flat[[0, last.size // 2, -1]] = np.nan, -np.inf, 1e38
        expected = expected_bits(emulator, f"{rule}_{call}", [widened(args[0]), *args[1:]], kind, how)
        came = call_update(emulator, call, rule, args, how)
        touched = slice(None) if call == "dense" else np.unique(CASES[name].indices)
        assert same_bits([came[0][touched]], [expected[0][touched]])
        for one, other in zip(came[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(one, other)


@each_kind
def test_a_step_out_of_range_becomes_infinite(kind: str) -> None:
    largest = 65504 if kind == "float16" else 3.3895314e38
    for how in HOWS.values():
        weights = rounded(np.array([[largest, -largest, 1]], np.float32), kind)
        gradient = np.array([[-largest, largest, 0]], np.float32)
        came = call_update(emulator, "dense", "sgd", [weights, gradient, 1.0, 0.0, 1.0, np.inf], how)[0]
        np.testing.assert_array_equal(widened(came), [[np.inf, -np.inf, 1]])


@each_kind
@each_call
@pytest.mark.parametrize("rule", ["adam", "group_adagrad"])
def test_same_bits_whichever_thread_and_block_comes_first(rule: str, call: str, kind: str, monkeypatch) -> None:
    for case in (GPU_CASES["hot columns"], GPU_CASES["width 260"]):
        given, _ = with_tables(kernels.get(f"{rule}_{call}").arguments(case), (0,), kind)
        expected = call_update(emulator, call, rule, given, HOWS["random"])
        for emulator.seed, blocks in ((1, 2**20), (2, 2)):
            monkeypatch.setattr(gpu_source, "MOST_BLOCKS", blocks)
            assert same_bits(call_update(emulator, call, rule, given, HOWS["random"]), expected)
        monkeypatch.undo()
        emulator.seed = 0


def call_with(put, call: str, rule: str, args: list, how: Rounding) -> list:
    there = [put(emulator, arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    getattr(narrow, call)(rule, *there, rounding=how)
    return [emulator.read(arg) for arg in there if hasattr(arg, "address")]


@pytest.mark.covering
@each_kind
@each_call
@pytest.mark.parametrize("width", [4, 16, 40, 100, 260])
def test_alignment_and_gaps_change_no_bit(width: int, call: str, kind: str) -> None:
    """Random numbers belong to elements, whether these are moved one by one or in packs."""
    case = GPU_CASES[f"width {width}"] if f"width {width}" in GPU_CASES else CASES["width 16"]
    given, _ = with_tables(kernels.get(f"adagrad_{call}").arguments(case), (0,), kind)
    results = [call_with(put, call, "adagrad", given, HOWS["random"]) for put in (aligned, shifted, gaps)]
    assert same_bits(results[0][:2], results[2][:2])
    if call != "fused":  # whose sums depend on the tile
        assert same_bits(results[0], results[1])


@each_kind
def test_what_is_known_of_the_lengths_changes_no_bit(kind: str) -> None:
    for case in (GPU_CASES["hot columns"], CASES["width 16"]):
        given, _ = with_tables(kernels.get("adagrad_fused").arguments(case), (0,), kind)
        lengths = gpu_plan.lengths_of(emulator.put(given[3]), in_order_of_length=True)
        call = functools.partial(narrow.fused, "adagrad", rounding=HOWS["random"], lengths=lengths)
        expected = call_update(emulator, "fused", "adagrad", given, HOWS["random"])
        assert same_bits(run_on(emulator, call, tuple(given))[: len(expected)], expected)


@each_kind
def test_seed_and_step_change_the_random_numbers(kind: str) -> None:
    args = with_tables(kernels.get("sgd_lazy").arguments(CASES["width 64"]), (0,), kind)[0]
    hows = Rounding(0, 0), Rounding(1, 0), Rounding(0, 1), NEAREST
    results = [call_update(emulator, "lazy", "sgd", args, how) for how in hows]
    for number, one in enumerate(results):
        assert all(not same_bits(one[:1], other[:1]) for other in results[:number])


@each_kind
def test_step_may_be_on_the_device(kind: str) -> None:
    args = with_tables(kernels.get("adagrad_fused").arguments(GPU_CASES["hot columns"]), (0,), kind)[0]
    expected = call_update(emulator, "fused", "adagrad", args, Rounding(3, 2**35))
    came = call_update(emulator, "fused", "adagrad", args, Rounding(3, emulator.put(np.array([2**35]))))
    assert same_bits(came, expected)


@each_kind
def test_steps_too_small_for_the_type_are_right_on_average(kind: str) -> None:
    """Sixty steps of a sixteenth of a last place: rounded to the nearest nothing moves."""
    place = 2.0 ** (-10 if kind == "float16" else -7)
    weights, gradient = rounded(np.ones((64, 64), np.float32), kind), np.full((64, 64), -place / 16, np.float32)
    there = {name: emulator.put(weights) for name in HOWS}
    for step in range(60):
        for name, seed in (("nearest", None), ("random", 5)):
            numbers = 1.0, 0.0, 1.0, np.inf
            narrow.dense("sgd", there[name], emulator.put(gradient), *numbers, rounding=Rounding(seed, step))
    assert same_bits([emulator.read(there["nearest"])], [weights])
    moved = (widened(emulator.read(there["random"])).astype(np.float64) - 1) / place
    deviation = np.sqrt(60 * (1 / 16) * (15 / 16) / moved.size)
    np.testing.assert_allclose(moved.mean(), 60 / 16, atol=4 * deviation, rtol=0)
    np.testing.assert_allclose(moved.std(), np.sqrt(60 * (1 / 16) * (15 / 16)), rtol=0.1)


def wrong_calls() -> list[tuple]:
    """(call, rule, place, what is put there, what the message says)."""
    lazy = list(kernels.get("adagrad_lazy").arguments(CASES["plain"]))
    fused = list(kernels.get("group_adagrad_fused").arguments(CASES["plain"]))
    return [
        ("lazy", "adagrad", 0, lazy[0], "weights is float32; allowed is float16, or uint16, which holds bfloat16"),
        ("lazy", "adagrad", 1, lazy[1].astype(np.float64), "history is float64; allowed is float32"),
        ("lazy", "adagrad", 1, lazy[1].astype(np.float16), "history is float16; allowed is float32"),
        ("lazy", "adagrad", 1, lazy[1][1:], r"history has shape \[10, 3\], but D is 11"),
        ("lazy", "adagrad", 2, lazy[2].astype(np.int32), "rows is int32; allowed is int64"),
        ("fused", "group_adagrad", 1, lazy[1], "history has 2 axes; it needs 1"),
        ("fused", "group_adagrad", 6, fused[6].astype(np.float16), "g is float16; allowed is float32"),
        ("fused", "group_adagrad", 4, fused[4].astype(np.int64), "rows is int64; allowed is int32 or int64, the same"),
    ]


@pytest.mark.parametrize("wrong", wrong_calls(), ids=lambda wrong: f"{wrong[0]}-{wrong[4].partition(' ')[0]}")
def test_wrong_arguments_are_refused_by_name(wrong: tuple) -> None:
    call, rule, place, array, words = wrong
    args = with_tables(kernels.get(f"{rule}_{call}").arguments(CASES["plain"]), (0,), "float16")[0]
    call_update(emulator, call, rule, args, NEAREST)
    with pytest.raises(KernelError, match=f"^{rule}_{call}: {words}"):
        call_update(emulator, call, rule, [*args[:place], array, *args[place + 1 :]], NEAREST)


def test_wrong_calls_are_refused() -> None:
    args = with_tables(kernels.get("adagrad_lazy").arguments(CASES["plain"]), (0,), "uint16")[0]
    there = [emulator.put(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    with pytest.raises(KernelError, match=r"^adagrad_lazy takes 9 arguments \(weights:h\[D,N\] .* clip\), not 8"):
        narrow.lazy("adagrad", *there[:-1])
    with pytest.raises(KernelError, match="unknown_dense"):
        narrow.lazy("unknown", *there)
    numbers = *get_rule("adam").example[:-1], 0
    with pytest.raises(KernelError, match="step is 0; it counts from 1"):
        narrow.dense("adam", there[0], there[1], there[1], there[1], *numbers)
    with pytest.raises(KernelError, match=r"^There is no sgd_step_by_step: a step of sgd without a gradient"):
        narrow.step_by_step("sgd", *there)
    replayed = with_tables(kernels.get("adam_step_by_step").arguments(CASES["plain"]), (0,), "uint16")[0]
    replayed = list(map(emulator.put, (*replayed[:-1], replayed[-1][:, 1:])))
    with pytest.raises(KernelError, match="adam_step_by_step: table has 8 columns; a row holds the 9 settings"):
        narrow.step_by_step("adam", *replayed)
    with pytest.raises(TypeError, match="pass CuPy arrays"):
        narrow.lazy("adagrad", *args)
    with pytest.raises(KernelError, match="seed is -1"):
        narrow.lazy("adagrad", *there, rounding=rounding.Rounding(-1))


@each_kind
@pytest.mark.parametrize("tile", ["narrow", "width 5", "width 4", "width 64", "width 128", "width 256", "hot columns"])
def test_every_tile(tile: str, kind: str) -> None:
    case, how = GPU_CASES[tile], HOWS["random"]
    for call in ("lazy", "fused"):
        given, wide = with_tables(kernels.get(f"adagrad_{call}").arguments(case), (0,), kind)
        came = call_with(aligned, call, "adagrad", given, how)
        there = [aligned(emulator, arg) if isinstance(arg, np.ndarray) else arg for arg in wide]
        kernels.get(f"adagrad_{call}").gpu(*there)
        weights = emulator.read(there[0])
        expected = rounded(weights, kind, numbers_of(weights.shape, how.seed, how.step))
        assert same_bits(came[:2], [expected, emulator.read(there[1])])


def test_every_variant_that_launchers_name_was_run(request: pytest.FixtureRequest) -> None:
    assert not_run(request, emulator.launches, "narrow updates") == []
