// out = A @ x, A in CSR form: a group of lanes sums the rows of x that a row of A names.
#include "../gpu/row_sums.cuh"

template <class S, class X = typename S::T>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM<S>) csr_dense(
    RESULTS, const void* indices, const typename S::T* data, const X* x, typename S::T* out,
    typename S::T* partial, int width, int keeps) {
    const Weighted<typename S::T> weighted{Indices(indices, wide), data};
    sum_rows<S>(RESULTS_HERE, weighted, x, partial, width, keeps, Store<S>{out, width});
}
