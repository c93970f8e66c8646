"""The emulated device refuses accesses that nothing orders, and writes of what is loaded past the caches."""

from pathlib import Path

import numpy as np
import pytest

from kernels.gpu.source import Source
from tests.support.emulator.device import EmulatorError, emulator, run

UNORDERED = "with nothing in between that orders it"
RACES = {
    "without_barrier": """
__global__ void without_barrier(int* out) {
    SHARED(int, kept, 128);
    kept[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = kept[127 - threadIdx.x];
}""",
    "in_turns": """
__device__ int of_thread(unsigned k) {
    SHARED(int, kept, 1);
    if (threadIdx.x == k) kept[0] = k;
    __syncthreads();
    return kept[0];
}
__global__ void in_turns(int* out) {
    const int one = of_thread(7), other = of_thread(9);  // the same memory, which some may not have read yet
    out[threadIdx.x] = 1000 * one + other;
}""",
    "of_blocks": "__global__ void of_blocks(int* out) { *out = blockIdx.x; }",
    "of_one_value": "__global__ void of_one_value(int* out) { *out = 1; }",
    "after_shuffle": """
__global__ void after_shuffle(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __shfl_sync(0xffffffffu, 1, 0);
    const int value = out[threadIdx.x ^ 1];
    __syncthreads();
    out[threadIdx.x] = value;
}""",
    "before_shuffle": """
__global__ void before_shuffle(int* out) {
    const int value = out[threadIdx.x / 32 * 32];
    __shfl_sync(0xffffffffu, 1, 0);
    out[threadIdx.x] = value;
}""",
    "of_warps": """
__global__ void of_warps(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncwarp();
    const int value = out[127 - threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = value;
}""",
    "other_lanes": """
__global__ void other_lanes(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncwarp(threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u);
    const int value = out[threadIdx.x ^ 16];
    __syncthreads();
    out[threadIdx.x] = value;
}""",
    "half_atomic": """
__global__ void half_atomic(int* out) {
    atomicAdd(&out[0], 1);
    if (threadIdx.x == 3) out[1] = out[0];
}""",
}
LOADED = {
    "own_place": """
__global__ void own_place(int* out) { out[threadIdx.x] = *read_only(out + threadIdx.x) + 1; }""",
    "written_before": """
__global__ void written_before(int* out) {
    out[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = *read_only(out + (127 - threadIdx.x));
}""",
}
ORDERED = {
    "by_barrier": """
__global__ void by_barrier(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const int value = out[127 - threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = value;
}""",
    "by_lanes": """
__global__ void by_lanes(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncwarp();
    const int value = out[threadIdx.x ^ 31];
    __syncwarp(0xffffffffu);
    out[threadIdx.x ^ 1] = value;
}""",
    "by_atomics": """
__global__ void by_atomics(int* out) {
    atomicAdd(&out[threadIdx.x % 2], 1);
    atomicMax(&out[threadIdx.x % 2], 2);
    __syncthreads();
    const int value = out[1];
    __syncthreads();
    out[threadIdx.x] = value;
}""",
    "side_by_side": """
__global__ void side_by_side(int* out) { ((short*)out)[threadIdx.x] = 1, ((short*)out)[threadIdx.x + 128] = 2; }""",
    "only_loaded": """
__global__ void only_loaded(int* out) {
    const int value = *read_only(out + 127);
    if (threadIdx.x < 127) out[threadIdx.x] = value;
}""",
}
LANES = np.arange(128)
EXPECTED = {
    "by_barrier": LANES[::-1],
    "by_lanes": LANES ^ 1 ^ 31,
    "by_atomics": np.full(128, 65),
    "side_by_side": np.repeat([0x10001, 0x20002], 64),
    "only_loaded": np.ones(128),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Source:
    file = Path(tmp_path_factory.mktemp("cuda")) / "races.cu"
    probes = {**RACES, **LOADED, **ORDERED}
    file.write_text("\n".join(probes.values()), encoding="utf-8")
    return Source(file, tuple(probes))


def ones():
    return emulator.put(np.ones(128, np.int32))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", RACES)
def test_what_nothing_orders_is_an_error(source: Source, name: str, seed: int) -> None:
    blocks, threads = (8, 1) if name == "of_blocks" else (1, 128)
    with pytest.raises(EmulatorError, match=rf"^{name}: .*, which thread \d+ .*, {UNORDERED}"):
        run(source, name, blocks, threads, (ones(),), seed)


def test_error_says_who_met_where(source: Source) -> None:
    who = "^of_blocks: block 1, thread 0: writes byte 0 of the array of argument 0, which thread 0 of block 0 wrote, "
    with pytest.raises(EmulatorError, match=who):
        run(source, "of_blocks", 6, 1, (ones(),))
    with pytest.raises(EmulatorError, match=r"of shared memory, which thread \d+ of block 0 (read|wrote), "):
        run(source, "without_barrier", 1, 128, (ones(),))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", LOADED)
def test_write_of_what_is_loaded_past_the_caches_is_an_error(source: Source, name: str, seed: int) -> None:
    with pytest.raises(EmulatorError, match=rf"^{name}: .*(loads|loaded) past the caches"):
        run(source, name, 1, 128, (ones(),), seed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ORDERED)
def test_what_is_ordered_is_not_refused(source: Source, name: str, seed: int) -> None:
    out = ones()
    run(source, name, 1, 128, (out,), seed)
    np.testing.assert_array_equal(emulator.read(out), EXPECTED[name])
