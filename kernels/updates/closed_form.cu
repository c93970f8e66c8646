// Named rows times a factor, or with a state times a matrix of two by two: a group of G lanes a row.
#include "../gpu/device.cuh"

template <class T, int G>
__global__ void __launch_bounds__(THREADS)
    closed_form(T* weights, const i64* rows, const T* factor, i64 count, i64 width) {
    const Group<G> group;
    for (i64 u = group.first(); u < count; u += group.count()) {
        T* const row = weights + rows[u] * width;
        const T by = factor[u];
        for (i64 n = group.lane; n < width; n += G) row[n] *= by;
    }
}

template <class T, int G>
__global__ void __launch_bounds__(THREADS)
    closed_form_pair(T* weights, T* state, const i64* rows, const T* matrix, i64 count, i64 width) {
    const Group<G> group;
    for (i64 u = group.first(); u < count; u += group.count()) {
        const i64 start = rows[u] * width;
        const T a = matrix[4 * u], b = matrix[4 * u + 1], c = matrix[4 * u + 2], d = matrix[4 * u + 3];
        for (i64 n = start + group.lane; n < start + width; n += G) {
            const T w = weights[n], s = state[n];
            weights[n] = a * w + b * s;
            state[n] = c * w + d * s;
        }
    }
}
