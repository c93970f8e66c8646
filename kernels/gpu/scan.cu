// Where parts start, from their lengths: the running sum of int64, in tiles of fixed size.
#include "blocks.cuh"

constexpr i64 TILE = 16 * THREADS;

// The sum of each tile.
__global__ void __launch_bounds__(THREADS) sum_tiles(const i64* counts, i64 size, i64* sums, i64 tiles) {
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        i64 own = 0, total;
        for (i64 k = tile * TILE + threadIdx.x; k < least(size, (tile + 1) * TILE); k += THREADS) own += counts[k];
        scan_block(own, total);
        if (threadIdx.x == 0) sums[tile] = total;
    }
}

// By one block: each sum becomes that of the tiles before it.
__global__ void __launch_bounds__(THREADS) scan_sums(i64* sums, i64 tiles) {
    i64 before = 0;
    for (i64 base = 0; base < tiles; base += THREADS) {
        const i64 k = base + threadIdx.x;
        i64 total;
        const i64 own = scan_block(k < tiles ? sums[k] : 0, total);
        if (k < tiles) sums[k] = before + own;
        before += total;
    }
}

// starts[k] = the sum of counts[0..k-1], for k = 0 to size; `sums` from the kernels before, unless there is one tile.
__global__ void __launch_bounds__(THREADS)
    scan_tiles(const i64* counts, i64 size, const i64* sums, i64 tiles, void* starts, int wide) {
    const IndicesOut out(starts, wide);
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        i64 before = tiles > 1 ? sums[tile] : 0;
        for (i64 base = tile * TILE; base < least(size, (tile + 1) * TILE); base += THREADS) {
            const i64 k = base + threadIdx.x;
            i64 total;
            const i64 own = scan_block(k < size ? counts[k] : 0, total);
            if (k < size) out.set(k, before + own);
            before += total;
        }
        if (tile == tiles - 1 && threadIdx.x == 0) out.set(size, before);
    }
}
