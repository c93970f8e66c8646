// out = A @ x, A in CSR form: a group of lanes sums the rows of x that a row of A names.
#include "../gpu/row_sums.cuh"

template <class S>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM<S>) csr_dense(
    RESULTS, const void* indices, const typename S::T* data, const typename S::T* x, typename S::T* out,
    typename S::T* partial, int width, int keeps) {
    const Weighted<typename S::T> weighted{Indices(indices, wide), data};
    sum_rows<S>(RESULTS_HERE, weighted, x, partial, width, keeps, Store<S>{out, width});
}
