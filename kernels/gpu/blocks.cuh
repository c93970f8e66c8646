// What the threads of a block do together: scans and sums in one fixed order.
#pragma once
#include "device.cuh"

constexpr int WARPS = THREADS / 32;

// The sum of `value` over the threads before this one; `total` becomes the sum over all. All threads call it, and may
// call it again at once.
__device__ inline i64 scan_block(i64 value, i64& total) {
    SHARED(i64, sums, WARPS);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i64 scanned = value;
    for (int by = 1; by < 32; by *= 2) {
        const i64 before = __shfl_up_sync(0xffffffffu, scanned, by);
        if (lane >= by) scanned += before;
    }
    __syncthreads();  // those of the call before have been read
    if (lane == 31) sums[warp] = scanned;
    __syncthreads();
    total = 0;
    i64 before = 0;
    for (int other = 0; other < WARPS; other++) {
        if (other == warp) before = total;
        total += sums[other];
    }
    return before + scanned - value;
}

// The sum over the threads, in each of them.
__device__ inline double sum_block(double value) {
    SHARED(double, sums, WARPS);
    const Group<32> warp;
    value = warp.sum(value);
    __syncthreads();
    if (warp.lane == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    double total = 0;
    for (int other = 0; other < WARPS; other++) total += sums[other];
    return total;
}
