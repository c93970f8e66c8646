// The factors of each row by a Cholesky factorization: a block has a row, whose matrix lies in global memory.
#include "../gpu/blocks.cuh"

// Columns of a square of the matrix, and entries whose rows of y are in shared memory at a time.
constexpr int SQUARE = 32, AT_ONCE = 16;

// out = the solution of matrix @ solution = out, by the whole block. Only the upper triangle of the matrix is used; it
// becomes its factor.
template <class T>
__device__ void solve(T* matrix, T* out, i64 width) {
    const Group<32> lanes;
    const int warp = threadIdx.x / 32;
    for (i64 k = 0; k < width; k++) {
        T* const own = matrix + k * width;
        const T pivot = sqrt(own[k]);
        __syncthreads();  // every thread has read it
        for (i64 n = k + threadIdx.x; n < width; n += THREADS) own[n] /= pivot;
        if (threadIdx.x == 0) out[k] /= pivot;
        __syncthreads();
        for (i64 i = k + 1 + warp; i < width; i += WARPS) {
            const T scale = own[i];
            for (i64 n = i + lanes.lane; n < width; n += 32) matrix[i * width + n] -= scale * own[n];
            if (lanes.lane == 0) out[i] -= scale * out[k];
        }
        __syncthreads();
    }
    if (warp > 0) return;
    for (i64 k = width - 1; k >= 0; k--) {
        T total = 0;
        for (i64 n = k + 1 + lanes.lane; n < width; n += 32) total += matrix[k * width + n] * out[n];
        total = lanes.sum(total);
        if (lanes.lane == 0) out[k] = (out[k] - total) / matrix[k * width + k];
        lanes.sync();
    }
}

// `matrices` has width * width values for each block.
template <class T>
__global__ void __launch_bounds__(THREADS) als_cholesky(
    const void* indptr, const void* indices, int wide, const T* data, const T* y, const T* diagonal, const T* ridge,
    T weight_scale, T weight_shift, T target_scale, T target_shift, T* x, i64 rows, i64 width, T* matrices) {
    SHARED(T, left, AT_ONCE * SQUARE);
    SHARED(T, right, AT_ONCE * SQUARE);
    SHARED(T, weights, AT_ONCE);
    SHARED(T, targets, AT_ONCE);
    const Indices starts(indptr, wide), columns(indices, wide);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T* const matrix = matrices + width * width * blockIdx.x;
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const i64 start = starts.shared(r), stop = starts.shared(r + 1);
        const T extra = fetch(ridge + r);
        T* const out = x + r * width;
        for (i64 top = 0; top < width; top += SQUARE) {
            for (i64 first = top; first < width; first += SQUARE) {
                const i64 above = top + lane, j = first + lane;
                T sums[SQUARE / WARPS] = {}, target = 0;
                for (i64 k = start; k < stop; k += AT_ONCE) {
                    const int count = (int)least(stop - k, (i64)AT_ONCE);
                    __syncthreads();  // the rows before have been read
                    for (int e = warp; e < count; e += WARPS) {
                        const T* const from = y + columns.shared(k + e) * width;
                        left[e * SQUARE + lane] = above < width ? fetch(from + above) : (T)0;
                        right[e * SQUARE + lane] = j < width ? fetch(from + j) : (T)0;
                        if (lane > 0) continue;
                        const T value = fetch(data + k + e);
                        weights[e] = weight_scale * value + weight_shift;
                        targets[e] = target_scale * value + target_shift;
                    }
                    __syncthreads();
                    for (int e = 0; e < count; e++) {
                        const T of_j = right[e * SQUARE + lane], scaled = weights[e] * of_j;
#pragma unroll
                        for (int t = 0; t < SQUARE / WARPS; t++)
                            sums[t] += scaled * left[e * SQUARE + warp + WARPS * t];
                        target += targets[e] * of_j;
                    }
                }
                if (j >= width) continue;
#pragma unroll
                for (int t = 0; t < SQUARE / WARPS; t++) {
                    const i64 i = top + warp + WARPS * t;
                    if (i < j) matrix[i * width + j] = sums[t];
                    if (i == j) matrix[i * width + j] = sums[t] + (fetch(diagonal + i) + extra);
                }
                if (top == first && warp == 0) out[j] = target;
            }
        }
        __syncthreads();
        solve(matrix, out, width);
        __syncthreads();  // the matrix has been read
    }
}
