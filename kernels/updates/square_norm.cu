// The sum of squares: blocks of fixed size in float64, whose sums are added in their order.
#include "../gpu/blocks.cuh"

constexpr i64 ELEMENTS = 32 * THREADS;

template <class T>
__global__ void __launch_bounds__(THREADS) square_norm(const T* values, i64 size, double* sums, i64 blocks) {
    for (i64 block = blockIdx.x; block < blocks; block += gridDim.x) {
        double own = 0;
        const i64 first = block * ELEMENTS;
        for (i64 k = first + threadIdx.x; k < least(size, first + ELEMENTS); k += THREADS) {
            const double value = stream(values + k);
            own += value * value;
        }
        own = sum_block(own);
        if (threadIdx.x == 0) sums[block] = own;
    }
}
