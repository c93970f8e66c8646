// The sum of float64 values by one block, in one order.
#include "blocks.cuh"

__global__ void __launch_bounds__(THREADS) sum_all(const double* values, i64 size, double* total) {
    double own = 0;
    for (i64 k = threadIdx.x; k < size; k += THREADS) own += values[k];
    own = sum_block(own);
    if (threadIdx.x == 0) *total = own;
}
