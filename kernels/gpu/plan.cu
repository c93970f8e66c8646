// Numbers of entries between neighbouring starts: of the rows of a batch, and of its columns.
#include "device.cuh"

__device__ inline i64 length_of(const Indices& starts, i64 k) { return starts.shared(k + 1) - starts.shared(k); }

// longest[0], which starts at 0, = the most entries; depends on no order.
__global__ void __launch_bounds__(THREADS) longest_of(const void* starts, int wide, i64 count, i64* longest) {
    const Indices start(starts, wide);
    i64 own = 0;
    for (i64 k = this_thread(); k < count; k += all_threads()) own = most(own, length_of(start, k));
    if (own) atomicMax(longest, own);
}

// keys[k] = `limit` - the entries of k, or 0 where these are more: ascending keys are descending numbers of entries.
__global__ void __launch_bounds__(THREADS)
    length_keys(const void* starts, int wide, i64 count, int limit, int* keys) {
    const Indices start(starts, wide);
    for (i64 k = this_thread(); k < count; k += all_threads())
        keys[k] = limit - (int)least<i64>(limit, length_of(start, k));
}
