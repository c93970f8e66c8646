// The sum of float64 values in one order: parts of fixed size by a block each, and those by one.
#include "blocks.cuh"

constexpr i64 PART = 32 * THREADS;

__device__ inline double sum_between(const double* values, i64 first, i64 last) {
    double own = 0;
#pragma unroll 8
    for (i64 k = first + threadIdx.x; k < last; k += THREADS) own += values[k];
    return sum_block(own);
}

__global__ void __launch_bounds__(THREADS) sum_parts(const double* values, i64 size, double* parts, i64 count) {
    for (i64 part = blockIdx.x; part < count; part += gridDim.x) {
        const double sum = sum_between(values, part * PART, least(size, (part + 1) * PART));
        if (threadIdx.x == 0) parts[part] = sum;
    }
}

__global__ void __launch_bounds__(THREADS) sum_all(const double* values, i64 size, double* total) {
    const double sum = sum_between(values, 0, size);
    if (threadIdx.x == 0) *total = sum;
}
