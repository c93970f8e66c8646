// Two lengths of a batch plan; `lengths` starts at 0 and depends on no order.
#include "device.cuh"

// lengths[0] = the entries of the fullest column.
__global__ void __launch_bounds__(THREADS) longest_run(const void* segments, int wide, i64 columns, i64* lengths) {
    const Indices start(segments, wide);
    i64 longest = 0;
    for (i64 u = this_thread(); u < columns; u += all_threads())
        longest = most(longest, start.shared(u + 1) - start.shared(u));
    if (longest) atomicMax(&lengths[0], longest);
}

// lengths[1] = 1 where a row has another number of entries than the first.
__global__ void __launch_bounds__(THREADS) row_length(const void* indptr, int wide, i64 rows, i64* lengths) {
    const Indices start(indptr, wide);
    const i64 first = rows > 0 ? start.shared(1) - start.shared(0) : 0;
    for (i64 r = this_thread(); r < rows; r += all_threads())
        if (start.shared(r + 1) - start.shared(r) != first) atomicMax(&lengths[1], (i64)1);
}
