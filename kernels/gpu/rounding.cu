// Values rounded to a type of half the memory, and the number of the step that random numbers depend on.
#include "rounding.cuh"

template <class X, int W>
__global__ void __launch_bounds__(THREADS) round_values(const float* values, X* out, i64 packs, ROUNDING) {
    const Rounding to = ROUNDING_HERE;
    for (i64 k = this_thread(); k < packs; k += all_threads())
        store_own<X, W>(out + k * W, to.rounded<X>(load_own<float, W>(values + k * W), k * W));
}

__global__ void __launch_bounds__(THREADS) next_step(i64* counter) {
    if (this_thread() == 0) counter[0]++;
}
