// out = x.T: a block moves squares through shared memory, so that it reads and writes whole lines.
#include "../gpu/device.cuh"

constexpr int SIDE = 32;
constexpr int PITCH = SIDE + 1;  // a column's values are then in different banks

template <class T>
__global__ void __launch_bounds__(THREADS) transpose(const T* x, T* out, i64 rows, i64 columns) {
    SHARED(T, square, SIDE * PITCH);
    const int across = threadIdx.x % SIDE, first = threadIdx.x / SIDE;
    const i64 wide = (columns + SIDE - 1) / SIDE, high = (rows + SIDE - 1) / SIDE;
    for (i64 s = blockIdx.x; s < wide * high; s += gridDim.x) {
        const i64 r0 = s / wide * SIDE, c0 = s % wide * SIDE;
        for (int down = first; down < SIDE; down += THREADS / SIDE)
            if (r0 + down < rows && c0 + across < columns)
                square[down * PITCH + across] = x[(r0 + down) * columns + c0 + across];
        __syncthreads();
        for (int down = first; down < SIDE; down += THREADS / SIDE)
            if (c0 + down < columns && r0 + across < rows)
                out[(c0 + down) * rows + r0 + across] = square[across * PITCH + down];
        __syncthreads();
    }
}
