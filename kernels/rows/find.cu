// out[i] = the place of indices[i] in ascending `stored`, or -1.
#include "../gpu/device.cuh"

__global__ void __launch_bounds__(THREADS)
    find(const void* indices, int wide, i64 size, const i64* stored, i64 count, i64* out) {
    const Indices index(indices, wide), known(stored, 1);
    for (i64 i = this_thread(); i < size; i += all_threads()) {
        const i64 own = index[i], place = lower_bound(known, count, own);
        out[i] = place < count && known.shared(place) == own ? place : -1;
    }
}
