// out[k] = a[row of k] . b[indices[k]], a in CSR form: a thread has an entry of the pattern, and adds the terms in the
// order of a's entries.
#include "../gpu/row_sums.cuh"

template <class T>
__global__ void __launch_bounds__(THREADS) sampled_csr(
    const void* indptr, const void* indices, const void* a_indptr, const void* a_indices, int wide, const T* a_data,
    const T* b, T* out, i64 rows, i64 entries, i64 width) {
    const Indices starts(indptr, wide), column(indices, wide), a_starts(a_indptr, wide), a_column(a_indices, wide);
    for (i64 k = this_thread(); k < entries; k += all_threads()) {
        const i64 row = owner(starts, rows, k);
        if (row < 0) continue;  // entries behind the last row
        const T* other = b + column[k] * width;
        T total = 0;
        for (i64 j = a_starts[row]; j < a_starts[row + 1]; j++) total += a_data[j] * other[a_column[j]];
        out[k] = total;
    }
}
