// flags[u] = 1 for the stored indices that are wanted, some of them more than once; they start at 0.
#include "../gpu/device.cuh"

__global__ void __launch_bounds__(THREADS)
    mark_wanted(const void* indices, i64 stored, const void* wanted, i64 asked, int wide, i64* flags) {
    const Indices index(indices, wide), want(wanted, wide);
    for (i64 v = this_thread(); v < asked; v += all_threads()) {
        const i64 own = want[v], u = lower_bound(index, stored, own);
        if (u < stored && index.shared(u) == own) atomicMax(&flags[u], (i64)1);
    }
}

// The places that are flagged; `ranks` are the scanned flags.
__global__ void __launch_bounds__(THREADS) list_wanted(const i64* ranks, i64 stored, i64* places) {
    for (i64 u = this_thread(); u < stored; u += all_threads())
        if (ranks[u + 1] != ranks[u]) places[ranks[u]] = u;
}
