// Cross-entropy: a group of G lanes has a row, K scores a lane in registers, or none of them where K is 0.
#include "../gpu/blocks.cuh"

template <class T>
__device__ T larger(T a, T b) {
    return a > b || isnan(a) ? a : b;  // NaN if either is
}

// The scores of a row as lanes have them, and their exponentials.
template <class T, int G, int K>
struct Row {
    const T* scores;
    T* gradient;
    i64 width;
    Group<G> group;
    T kept[K > 0 ? K : 1];

    // Call `visit(n, value)` for this lane's columns, first with the scores and later with what `visit` made of them.
    template <class Visit>
    __device__ void each(bool is_first, Visit visit) {
        if constexpr (K > 0) {
#pragma unroll
            for (int k = 0; k < K; k++) {
                const i64 n = k * G + group.lane;
                if (n >= width) continue;
                if (is_first) kept[k] = scores[n];
                visit(n, kept[k]);
            }
        } else {
            for (i64 n = group.lane; n < width; n += G) {
                T value = is_first ? scores[n] : gradient[n];
                visit(n, value);
                gradient[n] = value;
            }
        }
    }
};

// losses[r] = the loss of row r; found[0] becomes rows - the first row whose label is out of range, or stays 0. Rows
// from `counted[0]` on, where that is there, have no part: their loss is 0, and their gradient is left as it is.
template <class T, int G, int K>
__global__ void __launch_bounds__(THREADS) softmax(
    const T* scores, const i64* labels, T* gradient, i64 rows, i64 width, const i64* counted, int is_counted,
    double* losses, i64* found) {
    const i64 used = is_counted ? least(rows, counted[0]) : rows;
    const double scale = 1.0 / most(used, (i64)1);
    for (i64 r = Group<G>::first(); r < rows; r += Group<G>::count()) {
        if (r >= used) {
            if (threadIdx.x % G == 0) losses[r] = 0;
            continue;
        }
        Row<T, G, K> row{scores + r * width, gradient + r * width, width, {}, {}};
        const i64 label = labels[r];
        if (label < 0 || label >= width) {
            if (row.group.lane == 0) atomicMax(found, rows - r), losses[r] = 0;
            continue;
        }
        T highest = scores[r * width];
        row.each(true, [&](i64, T& s) { highest = larger(highest, s); });
        for (int offset = G / 2; offset > 0; offset /= 2)
            highest = larger(highest, __shfl_xor_sync(row.group.mask, highest, offset, G));
        double total = 0;
        row.each(false, [&](i64, T& value) {
            value = exp(value - highest);
            total += value;
        });
        total = row.group.sum(total);
        const double factor = scale / total;
        row.each(false, [&](i64 n, T& value) {
            value = n == label ? (T)((value - total) * factor) : value * (T)factor;  // p - 1 without the cancellation
            if (K > 0) row.gradient[n] = value;
        });
        if (row.group.lane == 0) losses[r] = ((double)highest - row.scores[label]) + log(total);
    }
}
