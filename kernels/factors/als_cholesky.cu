// The factors of each row by a Cholesky factorization: a block has a row, whose matrix lies in global memory.
#include "../gpu/blocks.cuh"

// Columns of a square of the matrix, and rows of a sum that are in shared memory at a time.
constexpr int SQUARE = 32, AT_ONCE = 16;

// Blocks that a multiprocessor should hold: with as many registers nothing is spilled.
constexpr int BLOCKS_SM = 4;

// A square of the matrix: this lane has one of its columns and SQUARE / WARPS of its rows, and a sum of that column.
template <class T>
struct Square {
    T at[SQUARE / WARPS], target;
};

// Add weight * a * b' and target * b for `count` rows, of which `row(k, weight, target)` is where number k starts: a is
// its columns from `top` on, b those from `first` on. The whole block calls it.
template <class T, class Row>
__device__ Square<T> plus_products(Square<T> sums, i64 count, i64 top, i64 first, i64 width, Row row) {
    SHARED(T, left, AT_ONCE * SQUARE);
    SHARED(T, right, AT_ONCE * SQUARE);
    SHARED(T, weights, AT_ONCE);
    SHARED(T, targets, AT_ONCE);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i64 i = top + lane, j = first + lane;
    for (i64 start = 0; start < count; start += AT_ONCE) {
        const int here = (int)least(count - start, (i64)AT_ONCE);
        __syncthreads();  // the rows before have been read
        for (int e = warp; e < here; e += WARPS) {
            T weight, target;
            const T* const from = row(start + e, weight, target);
            left[e * SQUARE + lane] = i < width ? from[i] : (T)0;
            right[e * SQUARE + lane] = j < width ? from[j] : (T)0;
            if (lane == 0) weights[e] = weight, targets[e] = target;
        }
        __syncthreads();
        for (int e = 0; e < here; e++) {
            const T own = right[e * SQUARE + lane], scaled = weights[e] * own;
#pragma unroll
            for (int t = 0; t < SQUARE / WARPS; t++) sums.at[t] += scaled * left[e * SQUARE + warp + WARPS * t];
            sums.target += targets[e] * own;
        }
    }
    return sums;
}

// Rows top to top + SQUARE - 1 of the matrix become rows of its factor, and those of `out` are divided by it: what the
// rows above take from them has been subtracted. The whole block calls it.
template <class T>
__device__ void eliminate(T* matrix, T* out, i64 top, i64 width) {
    SHARED(T, diagonal, SQUARE * SQUARE);
    const i64 end = least(top + SQUARE, width);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, size = (int)(end - top);
    __syncthreads();
    for (int i = warp; i < size; i += WARPS)
        if (i <= lane && lane < size) diagonal[i * SQUARE + lane] = matrix[(top + i) * width + top + lane];
    __syncthreads();
    for (int k = 0; k < size; k++) {
        const T pivot = sqrt(diagonal[k * SQUARE + k]);
        __syncthreads();  // every thread has read it
        if (warp == 0 && lane >= k && lane < size) diagonal[k * SQUARE + lane] /= pivot;
        __syncthreads();
        for (int i = k + 1 + warp; i < size; i += WARPS) {
            const T scale = diagonal[k * SQUARE + i];
            if (lane >= i && lane < size) diagonal[i * SQUARE + lane] -= scale * diagonal[k * SQUARE + lane];
        }
        __syncthreads();
    }
    // Each thread has columns of the rows, and one thread the right side.
    for (i64 n = end + threadIdx.x; n <= width; n += THREADS) {
        T* const column = n < width ? matrix + top * width + n : out + top;
        const i64 step = n < width ? width : 1;
        for (int k = 0; k < size; k++) {
            T value = column[k * step];
            for (int i = 0; i < k; i++) value -= diagonal[i * SQUARE + k] * column[i * step];
            column[k * step] = value / diagonal[k * SQUARE + k];
        }
    }
    for (int i = warp; i < size; i += WARPS)
        if (i <= lane && lane < size) matrix[(top + i) * width + top + lane] = diagonal[i * SQUARE + lane];
    __syncthreads();
}

// `matrices` has width * width values for each block, of which the upper triangle is used.
template <class T>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM) als_cholesky(
    const void* indptr, const void* indices, int wide, const T* data, const T* y, const T* diagonal, const T* ridge,
    T weight_scale, T weight_shift, T target_scale, T target_shift, T* x, i64 rows, i64 width, T* matrices) {
    const Indices starts(indptr, wide), columns(indices, wide);
    const Group<32> lanes;
    const int warp = threadIdx.x / 32;
    T* const matrix = matrices + width * width * blockIdx.x;
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const i64 start = starts.shared(r), count = starts.shared(r + 1) - start;
        const T extra = fetch(ridge + r);
        T* const out = x + r * width;
        const auto entry = [&](i64 k, T& weight, T& target) {
            const T value = fetch(data + start + k);
            weight = weight_scale * value + weight_shift;
            target = target_scale * value + target_shift;
            return y + columns.shared(start + k) * width;
        };
        const auto above = [&](i64 k, T& weight, T& target) {
            weight = -1;
            target = -out[k];
            return (const T*)matrix + k * width;
        };
        for (i64 top = 0; top < width; top += SQUARE) {
            for (i64 first = top; first < width; first += SQUARE) {
                Square<T> sums{};
                sums = plus_products(sums, count, top, first, width, entry);
                sums = plus_products(sums, top, top, first, width, above);
                const i64 j = first + lanes.lane;
                if (j >= width) continue;
#pragma unroll
                for (int t = 0; t < SQUARE / WARPS; t++) {
                    const i64 i = top + warp + WARPS * t;
                    if (i < j) matrix[i * width + j] = sums.at[t];
                    if (i == j) matrix[i * width + j] = sums.at[t] + (fetch(diagonal + i) + extra);
                }
                if (top == first && warp == 0) out[j] = sums.target;
            }
            eliminate(matrix, out, top, width);
        }
        for (i64 k = width - 1; k >= 0 && warp == 0; k--) {
            T total = 0;
            for (i64 n = k + 1 + lanes.lane; n < width; n += 32) total += matrix[k * width + n] * out[n];
            total = lanes.sum(total);
            if (lanes.lane == 0) out[k] = (out[k] - total) / matrix[k * width + k];
            lanes.sync();
        }
        __syncthreads();  // the matrix has been read
    }
}
