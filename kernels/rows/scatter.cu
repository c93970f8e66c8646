// out[index[i]] = values[i]: a group of G lanes copies a row in words.
#include "../gpu/device.cuh"

template <class Word, int G>
__global__ void __launch_bounds__(THREADS, 8)
    scatter(const Word* values, const void* index, int wide, Word* out, i64 rows, i64 words) {
    const Indices place(index, wide);
    const Group<G> group;
    for (i64 i = group.first(); i < rows; i += group.count()) {
        Word* to = out + place.shared(i) * words;
        for (i64 n = group.lane; n < words; n += G) to[n] = values[i * words + n];
    }
}
