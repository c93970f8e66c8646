// A dense matrix from CSR form: a warp clears a row and adds its entries, 32 at a time. Where a column comes twice among
// them the first of its lanes adds for all, in their order.
#include "../gpu/device.cuh"

template <class T>
__global__ void __launch_bounds__(THREADS) csr_to_dense(
    const void* indptr, const void* indices, int wide, const T* data, T* out, i64 rows, i64 columns) {
    constexpr unsigned ALL = 0xffffffffu;
    const Indices starts(indptr, wide), column(indices, wide);
    const Group<32> warp;
    for (i64 r = warp.first(); r < rows; r += warp.count()) {
        for (i64 c = warp.lane; c < columns; c += 32) out[r * columns + c] = 0;
        warp.sync();  // entries are added to what other lanes cleared
        const i64 first = starts.shared(r), last = starts.shared(r + 1);
        for (i64 base = first; base < last; base += 32) {
            const i64 k = base + warp.lane;
            const bool is_there = k < last;
            const i64 c = is_there ? column[k] : -1 - warp.lane;
            const T own = is_there ? data[k] : 0;
            const unsigned alike = __match_any_sync(ALL, c);
            const bool is_first = is_there && (alike & ((1u << warp.lane) - 1)) == 0;
            T total = is_first ? out[r * columns + c] + own : 0;
            if (__any_sync(ALL, is_there && !is_first))
                for (int lane = 1; lane < 32; lane++) {
                    const T value = warp.from(own, lane);
                    if (is_first && lane > warp.lane && (alike >> lane & 1)) total += value;
                }
            if (is_first) out[r * columns + c] = total;
            warp.sync();  // the next entries may add to what other lanes wrote
        }
    }
}
