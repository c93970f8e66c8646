// out[i] = source[index[i]]: a group of G lanes copies a row in words.
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
