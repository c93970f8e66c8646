// out = A @ x, A in CSR form with every stored value one: a group of lanes sums the rows of x that a row of A names.
#include "../gpu/row_sums.cuh"

template <class S>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM) csr_dense_ones(
    const void* indptr, int wide, const void* indices, const typename S::T* x, typename S::T* out,
    typename S::T* partial, int width, i64 rows, i64 entries, i64 count, i64 length, int keeps) {
    const Ones<typename S::T> ones{Indices(indices, wide)};
    const Cut cut = cut_of(Indices(indptr, wide), rows, entries, count, length);
    sum_rows<S>(Indices(indptr, wide), ones, x, partial, width, cut, keeps, Store<S>{out, width});
}
