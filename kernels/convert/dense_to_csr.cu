// The values of a dense matrix that are not zero: a warp counts a row, and after a scan fills its entries.
#include "../gpu/device.cuh"

constexpr unsigned ALL = 0xffffffffu;

template <class T>
__global__ void __launch_bounds__(THREADS) count_stored(const T* dense, i64 rows, i64 columns, i64* counts) {
    const Group<32> warp;
    for (i64 r = warp.first(); r < rows; r += warp.count()) {
        i64 own = 0;
        for (i64 c = warp.lane; c < columns; c += 32) own += dense[r * columns + c] != 0;
        own = warp.sum(own);
        if (warp.lane == 0) counts[r] = own;
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    fill_stored(const T* dense, i64 rows, i64 columns, const void* indptr, void* indices, int wide, T* data) {
    const Indices starts(indptr, wide);
    const IndicesOut column(indices, wide);
    const Group<32> warp;
    for (i64 r = warp.first(); r < rows; r += warp.count()) {
        i64 next = starts.shared(r);
        for (i64 base = 0; base < columns; base += 32) {
            const i64 c = base + warp.lane;
            const T value = c < columns ? dense[r * columns + c] : 0;
            const unsigned stored = __ballot_sync(ALL, value != 0);
            if (value != 0) {
                const i64 place = next + __popc(stored & ((1u << warp.lane) - 1));
                column.set(place, c);
                data[place] = value;
            }
            next += __popc(stored);
        }
    }
}
