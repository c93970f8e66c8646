#include "row_sums.cuh"

// The second kernel of products and gradients: results of many entries, from the sums of their pieces.
template <class S>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM<S>)
    add_pieces(RESULTS, const typename S::T* partial, typename S::T* out, int width) {
    sum_pieces<S>(RESULTS_HERE, partial, width, Store<S>{out, width});
}
