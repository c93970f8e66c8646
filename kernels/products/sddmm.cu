// out[k] = a[row of k] . b[indices[k]]: L lanes have a run of entries, whatever rows these are in, and add up the
// products of an entry by shuffles. The loads of `FLIGHT` entries are on their way at a time; rows of `a` come from the
// first-level cache, for neighbouring entries share them.
#include "../gpu/row_sums.cuh"

constexpr i64 RUN = 16;

template <class S, class A = typename S::T, class B = A>
__global__ void __launch_bounds__(THREADS, BLOCKS_SM<S>) sddmm(
    const void* indptr, int wide, const void* indices, const A* a, const B* b, typename S::T* out, i64 rows,
    i64 entries, int width, int keeps) {
    typedef typename S::T T;
    constexpr int L = S::L, V = S::V, W = S::W;
    const Indices starts(indptr, wide), column(indices, wide);
    const Group<L> group;
    const u64 policy = policy_of(keeps);
    for (i64 run = group.first(); run * RUN < entries; run += group.count()) {
        const i64 last = least(entries, (run + 1) * RUN);
        i64 row = owner(starts, rows, run * RUN);
        if (row < 0) continue;  // entries behind the last row
        i64 end = starts.shared(row + 1);
        for (i64 k = run * RUN; k < last; k += FLIGHT) {
            T sums[FLIGHT];
            i64 place_a[FLIGHT], place_b[FLIGHT];
#pragma unroll
            for (int u = 0; u < FLIGHT; u++) {
                sums[u] = 0;
                while (k + u < last && k + u >= end) end = starts.shared(++row + 1);
                place_a[u] = row * width;
                place_b[u] = k + u < last ? column[k + u] * width : 0;
            }
            for (int block = 0; block < width; block += S::COLUMNS) {
                Pack<A, W> left[FLIGHT][V];
                Pack<B, W> right[FLIGHT][V];
#pragma unroll
                for (int u = 0; u < FLIGHT; u++)
#pragma unroll
                    for (int v = 0; v < V; v++) {
                        const int n = block + (v * L + group.lane) * W;
                        if (k + u < last && n < width) {
                            left[u][v] = load<A, W>(a + place_a[u] + n, policy);
                            right[u][v] = load<B, W>(b + place_b[u] + n, policy);
                        }
                    }
#pragma unroll
                for (int u = 0; u < FLIGHT; u++)
#pragma unroll
                    for (int v = 0; v < V; v++)
                        if (k + u < last && block + (v * L + group.lane) * W < width)
#pragma unroll
                            for (int w = 0; w < W; w++)
                                sums[u] = fma(widened(left[u][v].at[w]), widened(right[u][v].at[w]), sums[u]);
            }
#pragma unroll
            for (int u = 0; u < FLIGHT; u++) {
                const T total = group.sum(sums[u]);
                if (group.lane == 0 && k + u < last) out[k + u] = total;
            }
        }
    }
}
