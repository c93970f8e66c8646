#include "row_sums.cuh"

// The second kernel of products and gradients: results of many entries, from the sums of their pieces.
template <class S>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM)
    add_pieces(
        const void* starts, int wide, const typename S::T* partial, typename S::T* out, int width, i64 rows, i64 entries,
        i64 count, i64 length) {
    sum_pieces<S>(Indices(starts, wide), partial, width, Cut{rows, entries, count, length}, Store<S>{out, width});
}
