// Small work on index arrays, a thread for each element of the result.
#include "device.cuh"

// found[0] = size - the first place whose key is not in 0..limit-1, or 0; found[1] = the least key below 0; found[2] =
// the largest key. All three start at 0 and depend on no order.
__global__ void __launch_bounds__(THREADS) survey(const void* keys, int wide, i64 size, i64 limit, i64* found) {
    const Indices key(keys, wide);
    i64 first = 0, low = 0, high = 0;
    for (i64 k = this_thread(); k < size; k += all_threads()) {
        const i64 own = key[k];
        if (own < 0 || own >= limit) first = most(first, size - k);
        low = least(low, own);
        high = most(high, own);
    }
    if (first) atomicMax(&found[0], first);
    if (low) atomicMin(&found[1], low);
    if (high) atomicMax(&found[2], high);
}

// flags[k] = 1 where ascending keys change.
__global__ void __launch_bounds__(THREADS) mark_heads(const void* keys, int wide, i64 size, i64* flags) {
    const Indices key(keys, wide);
    for (i64 k = this_thread(); k < size; k += all_threads())
        flags[k] = k == 0 || key.shared(k) != key.shared(k - 1);
}

// Of every run of equal keys: the key and where it starts; `ranks` are the scanned flags.
__global__ void __launch_bounds__(THREADS) list_heads(
    const void* keys, int wide, i64 size, const i64* ranks, i64* unique, void* starts, int wide_starts) {
    const Indices key(keys, wide);
    const IndicesOut start(starts, wide_starts);
    for (i64 k = this_thread(); k < size; k += all_threads())
        if (ranks[k + 1] != ranks[k]) {
            unique[ranks[k]] = key[k];
            start.set(ranks[k], k);
        }
    if (this_thread() == 0) start.set(ranks[size], size);
}

// starts[r] = the first of `size` ascending keys that is not below r, for r = 0 to rows.
__global__ void __launch_bounds__(THREADS)
    find_starts(const void* keys, int wide, i64 size, void* starts, int wide_starts, i64 rows) {
    const Indices key(keys, wide);
    const IndicesOut start(starts, wide_starts);
    for (i64 r = this_thread(); r <= rows; r += all_threads()) start.set(r, lower_bound(key, size, r));
}

// out[k] = the row that entry k stands in.
__global__ void __launch_bounds__(THREADS)
    find_rows(const void* starts, int wide, i64 rows, void* out, int wide_out, i64 size) {
    const Indices start(starts, wide);
    const IndicesOut row(out, wide_out);
    for (i64 k = this_thread(); k < size; k += all_threads()) row.set(k, lower_bound(start, rows + 1, k + 1) - 1);
}

// out[k] = source[places[k]].
__global__ void __launch_bounds__(THREADS) gather_indices(
    const void* source, int wide, const void* places, int wide_places, void* out, int wide_out, i64 size) {
    const Indices from(source, wide), place(places, wide_places);
    const IndicesOut to(out, wide_out);
    for (i64 k = this_thread(); k < size; k += all_threads()) to.set(k, from.shared(place[k]));
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    gather_values(const T* source, const void* places, int wide, T* out, i64 size) {
    const Indices place(places, wide);
    for (i64 k = this_thread(); k < size; k += all_threads()) out[k] = fetch(source + place[k]);
}
