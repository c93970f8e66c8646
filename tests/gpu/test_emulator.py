"""The emulated device tells what real ones hide: places out of range, barriers and lanes that do not meet."""

from pathlib import Path

import numpy as np
import pytest

from kernels.gpu.source import Source
from tests.support.emulator import build as emulator_build
from tests.support.emulator.device import EmulatorError, emulator, run, source_of


@pytest.fixture(scope="module")
def source() -> Source:
    return source_of(Path(__file__).with_name("probes.cu"))


def counting(size: int = 128):
    return emulator.put(np.arange(size, dtype=np.int32))


def ones(size: int = 128):
    return emulator.put(np.ones(size, np.int32))


def test_barrier_makes_what_others_wrote_visible(source: Source) -> None:
    for seed in range(4):
        out = ones()
        run(source, "reversed", 1, 128, (counting(), out), seed)
        np.testing.assert_array_equal(emulator.read(out), np.arange(128)[::-1])


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("left_barrier", "o", r"thread \d+ at probes.cu:\d+: waits at a barrier that thread 70 does not reach"),
        ("two_barriers", "o", r"thread \d+ at probes.cu:\d+: waits at a barrier while thread \d+ waits at that"),
        ("barrier_or_lanes", "o", r"waits for lanes of its warp that thread 1 does not reach; .* waits at a barrier"),
        ("past_end", "io", r"thread 127: touches address 0x\w+, 0 bytes past the end of argument 0, int32\[128\]"),
        ("past_end_written", "o", r"thread 125: touches address 0x\w+, 0 bytes past the end of argument 0"),
        ("before_start", "o", "wrote before the start of argument 0"),
        ("far_before", "o", r"thread 0: touches address 0x\w+, before the start of argument 0"),
        ("odd_pack", "io", "touches address"),
        ("divergent_shuffle", "o", r"lane 5 of mask ffffffff is not there"),
        ("other_mask", "o", r"waits for lanes of its warp that thread 16 does not reach; that one has returned"),
        ("not_in_mask", "o", "lane 16 is not in its own mask 0000ffff"),
        ("lane_outside", "o", "lane 0 reads lane 8, which is not in its mask 000000ff"),
        ("shared_past_end", "o", r"thread 100 at :\d+: place 100 of the shared array of 100"),
        ("much_shared", "o", "declares more than 48 KiB of shared memory"),
        ("divided", "io", "thread 0: divides by zero"),
    ],
)
def test_fault_is_an_error_with_kernel_and_thread(source: Source, name: str, args: str, words: str) -> None:
    given = tuple({"i": counting, "o": ones}[letter]() for letter in args)
    with pytest.raises(EmulatorError, match=rf"^{name}: .*({words})"):
        run(source, name, 1, 128, given)
    out = ones()
    run(source, "reversed", 1, 128, (counting(), out))  # and the next kernel runs
    assert emulator.read(out)[0] == 127


def test_shared_memory_that_nobody_wrote_is_nan(source: Source) -> None:
    out = emulator.put(np.zeros(256, np.float32))
    run(source, "shared_unwritten", 2, 128, (out,))
    assert np.isnan(emulator.read(out)).all()


def test_memory_that_nobody_wrote_is_nan() -> None:
    assert np.isnan(emulator.read(emulator.empty((3, 5), np.float64))).all()


def test_votes_and_shuffles_are_those_of_cuda(source: Source) -> None:
    out, t = ones(768), np.arange(128)
    run(source, "votes", 1, 128, (out,))
    lane, inside = t % 32, t % 8
    expected = [
        np.full(128, 11),
        0xFF << (lane // 8 * 8),
        np.where(lane >= 3, t - 3, t),
        np.where(inside < 6, t + 2, t),
        t - inside + 5,
        t ^ 4,
    ]
    came = emulator.read(out).view(np.uint32)
    np.testing.assert_array_equal(came, np.concatenate(expected).astype(np.uint32))


@pytest.mark.parametrize(
    "args",
    [
        lambda: (ones(), 1, True, np.float32(1)),
        lambda: (ones(), True, True, np.float64(1)),
        lambda: (ones(), 1, True),
        lambda: (1, 1, True, np.float64(1)),
    ],
)
def test_arguments_of_other_kinds_are_refused(source: Source, args) -> None:
    run(source, "kinds", 1, 32, (ones(), 1, True, np.float64(1)))
    with pytest.raises(EmulatorError, match="takes parameters of the kinds plid, was given"):
        run(source, "kinds", 1, 32, args())


def test_host_arrays_and_python_floats_are_refused(source: Source) -> None:
    with pytest.raises(EmulatorError, match="takes arrays of the device and numbers, not ndarray"):
        run(source, "reversed", 1, 128, (np.ones(128, np.int32), ones()))
    with pytest.raises(TypeError, match=r"Python float 1\.5; pass it as dtype\.type\(1\.5\)"):
        run(source, "kinds", 1, 32, (ones(), 1, True, 1.5))


def test_unknown_kernel_is_refused(source: Source) -> None:
    with pytest.raises(ValueError, match=r"probes has no kernel 'other'; it has reversed, "):
        emulator.launch(source, "other", 1)


def test_what_the_compiler_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "wrong.cu").write_text("__global__ void wrong() { int unused }")
    with pytest.raises(emulator_build.BuildError, match="g\\+\\+ refuses wrong:"):
        run(Source(tmp_path / "wrong.cu", ("wrong",)), "wrong", 1, 32, ())


def test_device_arrays_do_no_work_of_the_host() -> None:
    array = ones()
    assert array[3:].size == 125
    with pytest.raises(TypeError, match="cut along the first axis"):
        array[3]
    for attribute in ("sum", "max", "tolist", "ctypes"):
        assert not hasattr(array, attribute)
