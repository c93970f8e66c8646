// Two sets of stored rows added. A row of the union stands at the number of rows before it: those of the left side, and
// those that the right side alone has.
#include "../gpu/device.cuh"

// flags[v] = 1 for the indices that the right side alone has.
__global__ void __launch_bounds__(THREADS)
    mark_new(const void* left, i64 left_size, const void* right, i64 right_size, int wide, i64* flags) {
    const Indices one(left, wide), other(right, wide);
    for (i64 v = this_thread(); v < right_size; v += all_threads()) {
        const i64 own = other[v], u = lower_bound(one, left_size, own);
        flags[v] = u == left_size || one.shared(u) != own;
    }
}

// Where each row of the union comes from, or -1; `ranks` are the scanned flags.
__global__ void __launch_bounds__(THREADS) unite(
    const void* left, i64 left_size, const void* right, i64 right_size, int wide, const i64* ranks, void* indices,
    i64* from_left, i64* from_right) {
    const Indices one(left, wide), other(right, wide);
    const IndicesOut united(indices, wide);
    for (i64 k = this_thread(); k < left_size + right_size; k += all_threads()) {
        const bool is_left = k < left_size;
        const i64 v = is_left ? lower_bound(other, right_size, one.shared(k)) : k - left_size;
        if (!is_left && ranks[v + 1] == ranks[v]) continue;
        const i64 own = is_left ? one.shared(k) : other.shared(v);
        const i64 place = ranks[v] + (is_left ? k : lower_bound(one, left_size, own));
        united.set(place, own);
        from_left[place] = is_left ? k : -1;
        from_right[place] = !is_left || (v < right_size && other.shared(v) == own) ? v : -1;
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS) add_rows(
    const T* left, const T* right, const i64* from_left, const i64* from_right, T* sums, i64 rows, i64 width) {
    const Group<32> warp;
    for (i64 w = warp.first(); w < rows; w += warp.count()) {
        const i64 u = from_left[w], v = from_right[w];
        for (i64 n = warp.lane; n < width; n += 32) {
            const T a = u < 0 ? 0 : left[u * width + n], b = v < 0 ? 0 : right[v * width + n];
            sums[w * width + n] = u < 0 ? b : v < 0 ? a : a + b;
        }
    }
}
