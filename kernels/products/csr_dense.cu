// out = A @ x, A in CSR form: a group of lanes sums the rows of x that a row of A names.
#include "../gpu/row_sums.cuh"

template <class S>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM) csr_dense(
    const void* indptr, int wide, const void* indices, const typename S::T* data, const typename S::T* x,
    typename S::T* out, typename S::T* partial, int width, i64 rows, i64 entries, i64 count, i64 length, int keeps) {
    const Weighted<typename S::T> weighted{Indices(indices, wide), data};
    const Cut cut = cut_of(Indices(indptr, wide), rows, entries, count, length);
    sum_rows<S>(Indices(indptr, wide), weighted, x, partial, width, cut, keeps, Store<S>{out, width});
}
