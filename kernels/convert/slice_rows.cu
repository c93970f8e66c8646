// Rows of a CSR matrix in the order asked for: their lengths, and after a scan a thread for each entry of the result.
#include "../gpu/device.cuh"

// found[0] becomes count - the first place whose row is not there, or stays 0; such rows count as empty.
__global__ void __launch_bounds__(THREADS)
    row_lengths(const void* indptr, int wide, i64 size, const i64* rows, i64 count, i64* lengths, i64* found) {
    const Indices starts(indptr, wide);
    for (i64 i = this_thread(); i < count; i += all_threads()) {
        const i64 r = rows[i];
        const bool is_there = r >= 0 && r < size;
        lengths[i] = is_there ? starts.shared(r + 1) - starts.shared(r) : 0;
        if (!is_there) atomicMax(found, count - i);
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS) copy_rows(
    const void* indptr, const void* indices, int wide, const T* data, const i64* rows, i64 count, const i64* starts,
    void* out_indices, int wide_out, T* out_data, i64 stored) {
    const Indices from(indptr, wide), column(indices, wide), start(starts, 1);
    const IndicesOut out(out_indices, wide_out);
    for (i64 k = this_thread(); k < stored; k += all_threads()) {
        const i64 i = lower_bound(start, count + 1, k + 1) - 1;
        const i64 source = from.shared(rows[i]) + (k - start.shared(i));
        out.set(k, column[source]);
        out_data[k] = fetch(data + source);
    }
}
