// Losses and their gradient by element: blocks of fixed size whose losses are summed in one order.
#pragma once
#include "blocks.cuh"

constexpr i64 ELEMENTS = 32 * THREADS;

// gradient = slope / rows; sums[b] = the losses of elements b * ELEMENTS and on. `element(s, t, loss)` gives the slope.
// Rows from `counted[0]` on, where that is there, have no part: their gradient is left as it is.
template <class T, class Element>
__device__ void each_element(
    const T* scores, const T* targets, T* gradient, i64 rows, i64 width, const i64* counted, int is_counted,
    double* sums, i64 blocks, Element element) {
    if (is_counted) rows = least(rows, counted[0]);
    const i64 size = rows * width;
    const T scale = (T)(1.0 / most(rows, (i64)1));
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
