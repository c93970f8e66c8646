// Steps of conjugate gradients for the factors of each row: a block has a row, and its warps share the entries.
//
// Each warp has all vectors of the row, column n in lane n % 32, and computes the same; only the sums over entries are
// exchanged. Columns lie in registers, K a lane, or in global memory where K is 0.
#include "../gpu/blocks.cuh"

// Blocks that a multiprocessor should hold: with as many registers nothing is spilled.
constexpr int BLOCKS_SM = 4;

template <class T, int K>
struct Vector {
    T kept[K];

    __device__ explicit Vector(T*) {}
    __device__ T& operator[](i64 k) { return kept[k]; }
};

template <class T>
struct Vector<T, 0> {
    T* own;

    __device__ explicit Vector(T* start) : own(start + threadIdx.x % 32) {}
    __device__ T& operator[](i64 k) { return own[32 * k]; }
};

// Call `visit(k, n)` for the columns n of this lane.
template <int K, class Visit>
__device__ void each_column(i64 width, Visit visit) {
    const i64 lane = threadIdx.x % 32;
    if constexpr (K > 0) {
#pragma unroll
        for (int k = 0; k < K; k++)
            if (32 * k + lane < width) visit(k, 32 * k + lane);
    } else {
        for (i64 k = 0; 32 * k + lane < width; k++) visit(k, 32 * k + lane);
    }
}

// Scratch has, for each block, 4 * WARPS vectors of `width` values where K is 0, and is not read elsewhere.
template <class T, int K>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM) als_conjugate(
    const void* indptr, const void* indices, int wide, const T* data, const T* y, const T* diagonal, const T* ridge,
    T weight_scale, T weight_shift, T target_scale, T target_shift, i64 steps, T* x, i64 rows, i64 width, T* scratch) {
    SHARED(T, near, K > 0 ? WARPS * 32 * K : 1);
    const Indices starts(indptr, wide), columns(indices, wide);
    const Group<32> lanes;
    const int warp = threadIdx.x / 32;
    T* const far = scratch + (K > 0 ? 0 : 4 * WARPS * width * blockIdx.x);
    T* const own = far + WARPS * width + 3 * warp * width;
    Vector<T, K> p(own), q(own + width), residual(own + 2 * width);
    // The place of column n among the sums of a warp.
    const auto sum_at = [&](int of_warp, i64 n) -> T& {
        if constexpr (K > 0)
            return near[of_warp * 32 * K + n];
        else
            return far[of_warp * width + n];
    };
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const i64 start = starts.shared(r), stop = starts.shared(r + 1);
        const T extra = fetch(ridge + r);
        T* const out = x + r * width;
        const auto dots = [&](i64 n) { return fetch(diagonal + n) + extra; };
        each_column<K>(width, [&](i64 k, i64 n) {
            if (start == stop && warp == 0) out[n] = 0;
            p[k] = start < stop ? out[n] : (T)0;
        });
        T rz = 0;
        for (i64 step = 0; step <= steps; step++) {  // step 0 is the residual: q = -dots * x + sum of (v - w * dot) y
            each_column<K>(width, [&](i64 k, i64) { q[k] = 0; });
            for (i64 e = start + warp; e < stop; e += WARPS) {
                const T* const from = y + columns.shared(e) * width;
                T row[K > 0 ? K : 1], dot = 0;
                each_column<K>(width, [&](i64 k, i64 n) {
                    const T value = fetch(from + n);
                    if constexpr (K > 0) row[k] = value;
                    dot += value * p[k];
                });
                const T value = fetch(data + e), weighted = (weight_scale * value + weight_shift) * lanes.sum(dot);
                const T scale = step == 0 ? target_scale * value + target_shift - weighted : weighted;
                each_column<K>(width, [&](i64 k, i64 n) {
                    if constexpr (K > 0)
                        q[k] += scale * row[k];
                    else
                        q[k] += scale * fetch(from + n);
                });
            }
            each_column<K>(width, [&](i64 k, i64 n) { sum_at(warp, n) = q[k]; });
            __syncthreads();
            each_column<K>(width, [&](i64 k, i64 n) {
                T total = (step == 0 ? -dots(n) : dots(n)) * p[k];
                for (int other = 0; other < WARPS; other++) total += sum_at(other, n);
                q[k] = total;
            });
            __syncthreads();  // the sums have been read
            T length = 0;
            if (step > 0) {
                T pq = 0;
                each_column<K>(width, [&](i64 k, i64) { pq += p[k] * q[k]; });
                pq = lanes.sum(pq);
                length = pq > 0 ? rz / pq : (T)0;
            }
            const T before = rz;
            rz = 0;
            each_column<K>(width, [&](i64 k, i64 n) {
                if (step > 0 && warp == 0) out[n] += length * p[k];
                residual[k] = step > 0 ? residual[k] - length * q[k] : q[k];
                rz += residual[k] * (residual[k] / dots(n));
            });
            rz = lanes.sum(rz);
            const T ratio = before > 0 ? rz / before : (T)0;
            each_column<K>(width, [&](i64 k, i64 n) {
                p[k] = step > 0 ? residual[k] / dots(n) + ratio * p[k] : residual[k] / dots(n);
            });
        }
    }
}
