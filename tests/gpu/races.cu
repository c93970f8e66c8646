// Accesses that nothing orders, loads past the caches of what is written, and accesses that are ordered.
// Read by test_emulator_races.py.

__global__ void without_barrier(int* out) {
    SHARED(int, kept, 128);
    kept[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = kept[127 - threadIdx.x];
}

__device__ int of_thread(unsigned k) {
    SHARED(int, kept, 1);
    if (threadIdx.x == k) kept[0] = k;
    __syncthreads();
    return kept[0];
}
__global__ void in_turns(int* out) {
    const int one = of_thread(7), other = of_thread(9);  // the same memory, which some may not have read yet
    out[threadIdx.x] = 1000 * one + other;
}

__global__ void of_blocks(int* out) { *out = blockIdx.x; }

__global__ void of_one_value(int* out) { *out = 1; }

__global__ void after_shuffle(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __shfl_sync(0xffffffffu, 1, 0);
    const int value = out[threadIdx.x ^ 1];
    __syncthreads();
    out[threadIdx.x] = value;
}

__global__ void before_shuffle(int* out) {
    const int value = out[threadIdx.x / 32 * 32];
    __shfl_sync(0xffffffffu, 1, 0);
    out[threadIdx.x] = value;
}

__global__ void of_warps(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncwarp();
    const int value = out[127 - threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = value;
}

__global__ void other_lanes(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncwarp(threadIdx.x % 32 < 16 ? 0xffffu : 0xffff0000u);
    const int value = out[threadIdx.x ^ 16];
    __syncthreads();
    out[threadIdx.x] = value;
}

__global__ void half_atomic(int* out) {
    atomicAdd(&out[0], 1);
    if (threadIdx.x == 3) out[1] = out[0];
}

__global__ void own_place(int* out) { out[threadIdx.x] = *read_only(out + threadIdx.x) + 1; }

__global__ void written_before(int* out) {
    out[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = *read_only(out + (127 - threadIdx.x));
}

__global__ void by_barrier(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const int value = out[127 - threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = value;
}

__global__ void by_lanes(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncwarp();
    const int value = out[threadIdx.x ^ 31];
    __syncwarp(0xffffffffu);
    out[threadIdx.x ^ 1] = value;
}

__global__ void by_atomics(int* out) {
    atomicAdd(&out[threadIdx.x % 2], 1);
    atomicMax(&out[threadIdx.x % 2], 2);
    __syncthreads();
    const int value = out[1];
    __syncthreads();
    out[threadIdx.x] = value;
}

__global__ void side_by_side(int* out) { ((short*)out)[threadIdx.x] = 1, ((short*)out)[threadIdx.x + 128] = 2; }

__global__ void only_loaded(int* out) {
    const int value = *read_only(out + 127);
    if (threadIdx.x < 127) out[threadIdx.x] = value;
}
