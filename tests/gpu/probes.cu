// Kernels that go wrong in one way each, and some that do not, for test_emulator.py.

__global__ void reversed(const int* in, int* out) {
    SHARED(int, kept, 128);
    kept[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = kept[127 - threadIdx.x];
}

__global__ void left_barrier(int* out) {
    if (threadIdx.x == 70) return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

__global__ void two_barriers(int* out) {
    if (threadIdx.x < 64)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

__global__ void barrier_or_lanes(int* out) {
    if (threadIdx.x == 0)
        out[0] = __shfl_sync(0xffffffffu, 1, 0);
    else
        __syncthreads();
}

__global__ void past_end(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x + 1]; }

__global__ void past_end_written(int* out) { out[threadIdx.x + 3] = 1; }

__global__ void before_start(int* out) { out[(int)threadIdx.x - 1] = 1; }

__global__ void far_before(int* out) { out[(int)threadIdx.x - 1000] = 1; }

struct alignas(16) Four { int at[4]; };
__global__ void odd_pack(const int* in, int* out) {
    Four four = *(const Four*)(in + 1);
    asm volatile("movaps (%0), %%xmm0" : : "r"(in + 1) : "xmm0", "memory");
    out[threadIdx.x] = four.at[0];
}

__global__ void divergent_shuffle(int* out) {
    if (threadIdx.x % 32 == 5) return;
    out[threadIdx.x] = __shfl_sync(0xffffffffu, (int)threadIdx.x, 0);
}

__global__ void other_mask(int* out) {
    const unsigned mask = threadIdx.x % 32 < 16 ? 0xffffffffu : 0xffff0000u;
    out[threadIdx.x] = __shfl_xor_sync(mask, (int)threadIdx.x, 1);
}

__global__ void not_in_mask(int* out) { out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0); }

__global__ void lane_outside(int* out) {
    const unsigned mask = threadIdx.x % 32 < 8 ? 0xffu : 0xffffff00u;
    out[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, 8);
}

__global__ void shared_past_end(int* out) {
    SHARED(int, kept, 100);
    kept[threadIdx.x] = 1;
    out[threadIdx.x] = 1;
}

__global__ void shared_unwritten(float* out) {
    SHARED(float, kept, 128);
    out[blockIdx.x * 128 + threadIdx.x] = kept[threadIdx.x];
}

__global__ void much_shared(int* out) {
    SHARED(double, much, 6144);
    SHARED(double, more, 1);
    out[threadIdx.x] = 1;
}

__global__ void divided(const int* in, int* out) { out[threadIdx.x] = 700 / in[threadIdx.x]; }

__global__ void votes(int* out) {
    const int t = threadIdx.x, lane = t % 32;
    out[t] = __popc(__ballot_sync(0xffffffffu, lane % 3 == 0));
    out[128 + t] = (int)__match_any_sync(0xffffffffu, lane / 8);
    out[256 + t] = __shfl_up_sync(0xffffffffu, t, 3);
    out[384 + t] = __shfl_down_sync(0xffffffffu, t, 2, 8);
    out[512 + t] = __shfl_sync(0xffffffffu, t, 5, 8);
    out[640 + t] = __shfl_xor_sync(0xffffffffu, t, 4, 8);
}

__global__ void kinds(const float* a, long long b, int c, double d) {}
