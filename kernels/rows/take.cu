// out[i] = source[index[i]]: a group of G lanes copies a row in words, or widens one of half the memory.
#include "../gpu/device.cuh"

template <class Word, int G>
__global__ void __launch_bounds__(THREADS, 8)
    take(const Word* source, const void* index, int wide, Word* out, i64 rows, i64 words) {
    const Indices place(index, wide);
    const Group<G> group;
    for (i64 i = group.first(); i < rows; i += group.count()) {
        const Word* from = source + place.shared(i) * words;
        for (i64 n = group.lane; n < words; n += G) out[i * words + n] = from[n];
    }
}

template <class X, int W, int G>
__global__ void __launch_bounds__(THREADS)
    take_widened(const X* source, const void* index, int wide, float* out, i64 rows, i64 packs) {
    const Indices place(index, wide);
    const Group<G> group;
    const u64 policy = policy_of(false);
    for (i64 i = group.first(); i < rows; i += group.count()) {
        const X* from = source + place.shared(i) * packs * W;
        for (i64 n = group.lane; n < packs; n += G) {
            const Pack<X, W> held = load<X, W>(from + n * W, policy);
            Pack<float, W> pack;
#pragma unroll
            for (int w = 0; w < W; w++) pack.at[w] = widened(held.at[w]);
            store<float, W>(out + (i * packs + n) * W, pack);
        }
    }
}
