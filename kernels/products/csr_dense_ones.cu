// out = A @ x, A in CSR form with every stored value one: a group of lanes sums the rows of x that a row of A names.
#include "../gpu/row_sums.cuh"

template <class S, class X = typename S::T>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM<S>) csr_dense_ones(
    RESULTS, const void* indices, const X* x, typename S::T* out, typename S::T* partial, int width,
    int keeps) {
    const Ones<typename S::T> ones{Indices(indices, wide)};
    sum_rows<S>(RESULTS_HERE, ones, x, partial, width, keeps, Store<S>{out, width});
}
