// Losses and their gradient by element: blocks of fixed size whose losses are summed in one order.
#pragma once
#include "blocks.cuh"

constexpr i64 ELEMENTS = 32 * THREADS;

// gradient = slope * scale; sums[b] = the losses of elements b * ELEMENTS and on. `element(s, t, loss)` gives the slope.
template <class T, class Element>
__device__ void each_element(
    const T* scores, const T* targets, T* gradient, i64 size, T scale, double* sums, i64 blocks, Element element) {
    for (i64 block = blockIdx.x; block < blocks; block += gridDim.x) {
        double own = 0;
        const i64 first = block * ELEMENTS;
        for (i64 k = first + threadIdx.x; k < least(size, first + ELEMENTS); k += THREADS) {
            double loss;
            gradient[k] = element(stream(scores + k), stream(targets + k), loss) * scale;
            own += loss;
        }
        own = sum_block(own);
        if (threadIdx.x == 0) sums[block] = own;
    }
}
