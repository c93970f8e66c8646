"""The emulated device tells what real ones hide: places out of range, barriers and lanes that do not meet."""

from pathlib import Path

import numpy as np
import pytest

from kernels.gpu.source import Source
from tests.support.emulator import build as emulator_build
from tests.support.emulator.device import EmulatorError, emulator, run

KERNELS = {
    "reversed": """
__global__ void reversed(const int* in, int* out) {
    SHARED(int, kept, 128);
    kept[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = kept[127 - threadIdx.x];
}""",
    "left_barrier": """
__global__ void left_barrier(int* out) {
    if (threadIdx.x == 70) return;
    __syncthreads();
    out[threadIdx.x] = 1;
}""",
    "two_barriers": """
__global__ void two_barriers(int* out) {
    if (threadIdx.x < 64)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}""",
    "barrier_or_lanes": """
__global__ void barrier_or_lanes(int* out) {
    if (threadIdx.x == 0)
        out[0] = __shfl_sync(0xffffffffu, 1, 0);
    else
        __syncthreads();
}""",
    "past_end": "__global__ void past_end(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x + 1]; }",
    "past_end_written": "__global__ void past_end_written(int* out) { out[threadIdx.x + 3] = 1; }",
    "before_start": "__global__ void before_start(int* out) { out[(int)threadIdx.x - 1] = 1; }",
    "far_before": "__global__ void far_before(int* out) { out[(int)threadIdx.x - 1000] = 1; }",
    "odd_pack": """
struct alignas(16) Four { int at[4]; };
__global__ void odd_pack(const int* in, int* out) {
    Four four = *(const Four*)(in + 1);
    asm volatile("movaps (%0), %%xmm0" : : "r"(in + 1) : "xmm0", "memory");
    out[threadIdx.x] = four.at[0];
}""",
    "divergent_shuffle": """
__global__ void divergent_shuffle(int* out) {
    if (threadIdx.x % 32 == 5) return;
    out[threadIdx.x] = __shfl_sync(0xffffffffu, (int)threadIdx.x, 0);
}""",
    "other_mask": """
__global__ void other_mask(int* out) {
    const unsigned mask = threadIdx.x % 32 < 16 ? 0xffffffffu : 0xffff0000u;
    out[threadIdx.x] = __shfl_xor_sync(mask, (int)threadIdx.x, 1);
}""",
    "not_in_mask": """
__global__ void not_in_mask(int* out) { out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0); }""",
    "lane_outside": """
__global__ void lane_outside(int* out) {
    const unsigned mask = threadIdx.x % 32 < 8 ? 0xffu : 0xffffff00u;
    out[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, 8);
}""",
    "shared_past_end": """
__global__ void shared_past_end(int* out) {
    SHARED(int, kept, 100);
    kept[threadIdx.x] = 1;
    out[threadIdx.x] = 1;
}""",
    "shared_unwritten": """
__global__ void shared_unwritten(float* out) {
    SHARED(float, kept, 128);
    out[blockIdx.x * 128 + threadIdx.x] = kept[threadIdx.x];
}""",
    "much_shared": """
__global__ void much_shared(int* out) {
    SHARED(double, much, 6144);
    SHARED(double, more, 1);
    out[threadIdx.x] = 1;
}""",
    "divided": "__global__ void divided(const int* in, int* out) { out[threadIdx.x] = 700 / in[threadIdx.x]; }",
    "votes": """
__global__ void votes(int* out) {
    const int t = threadIdx.x, lane = t % 32;
    out[t] = __popc(__ballot_sync(0xffffffffu, lane % 3 == 0));
    out[128 + t] = (int)__match_any_sync(0xffffffffu, lane / 8);
    out[256 + t] = __shfl_up_sync(0xffffffffu, t, 3);
    out[384 + t] = __shfl_down_sync(0xffffffffu, t, 2, 8);
    out[512 + t] = __shfl_sync(0xffffffffu, t, 5, 8);
    out[640 + t] = __shfl_xor_sync(0xffffffffu, t, 4, 8);
}""",
    "kinds": "__global__ void kinds(const float* a, long long b, int c, double d) {}",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Source:
    file = Path(tmp_path_factory.mktemp("cuda")) / "probes.cu"
    file.write_text("\n".join(KERNELS.values()), encoding="utf-8")
    return Source(file, tuple(KERNELS))


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
        (
            "two_barriers",
            "o",
            r"thread \d+ at probes.cu:\d+: waits at a barrier while thread \d+ waits at that",
        ),
        (
            "barrier_or_lanes",
            "o",
            r"waits for lanes of its warp that thread 1 does not reach; .* waits at a barrier",
        ),
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
