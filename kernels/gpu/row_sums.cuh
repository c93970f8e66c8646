// Weighted sums of table rows, which products, gradients and fused updates share: result r is the sum over the entries
// k = starts[r] to starts[r + 1] - 1 of weight(k) * table[row(k)].
//
// A group of L * E lanes has a result: L lanes side by side along its columns, V packs of W values each, and E such
// sets that take entries in turn. `FLIGHT` entries of each set are loaded before they are added. Results of more than
// `length` entries are cut: the entries are taken in pieces of that length wherever results start, and the sums of
// pieces are added in their order by a second kernel. Nothing depends on which group comes first.
#pragma once
#include "device.cuh"

constexpr int FLIGHT = 2;

// Entries in CSR form: the column is the table's row.
template <class T>
struct Weighted {
    static constexpr bool has_weight = true;
    Indices rows;
    const T* weights;

    __device__ i64 row(i64 k) const { return rows[k]; }
    __device__ T weight(i64 k) const { return stream(weights + k); }
};

// The same where every weight is one.
template <class T>
struct Ones {
    static constexpr bool has_weight = false;
    Indices rows;

    __device__ i64 row(i64 k) const { return rows[k]; }
    __device__ T weight(i64) const { return 1; }
};

// The sums of pieces that belong to a cut result: `first` is the piece it starts in.
template <class T>
struct Pieces {
    static constexpr bool has_weight = false;
    i64 first;
    bool is_inside;

    // A piece has two places: for the result that its first entry belongs to, and for the one that starts inside it.
    __device__ i64 row(i64 piece) const { return 2 * piece + (piece == first && is_inside); }
    __device__ T weight(i64) const { return 1; }
};

// What a lane holds of a result.
template <class T_, int W_, int L_, int E_, int V_>
struct Sum {
    typedef T_ T;
    static constexpr int W = W_, L = L_, E = E_, V = V_, G = L_ * E_, COLUMNS = W_ * L_ * V_;

    Group<G> group;
    T at[V][W];

    // Columns that belong to this lane start at `block + column(v)`.
    __device__ int column(int v) const { return (v * L + group.lane % L) * W; }

    // Whether this lane writes: the other sets hold the same.
    __device__ bool writes() const { return group.lane < L; }

    __device__ void clear() {
#pragma unroll
        for (int v = 0; v < V; v++)
#pragma unroll
            for (int w = 0; w < W; w++) at[v][w] = 0;
    }

    // Add entries first to last - 1, columns from `block` on; `total` must follow. The table may be of a narrower type.
    template <class Entries, class X>
    __device__ void add(const Entries& entries, i64 first, i64 last, const X* table, int width, int block, u64 policy) {
        const int set = group.lane / L;
        for (i64 base = first; base < last; base += G) {
            const i64 own = base + group.lane;
            const i64 row = own < last ? entries.row(own) : 0;
            T weight = 1;
            if (Entries::has_weight && own < last) weight = entries.weight(own);
            const int count = (int)least<i64>(G, last - base);
            for (int t = 0; t < count; t += E * FLIGHT) {
                Pack<X, W> loaded[FLIGHT][V];
                T weights[FLIGHT];
#pragma unroll
                for (int u = 0; u < FLIGHT; u++) {
                    const int entry = t + u * E + set;
                    const i64 place = group.from(row, entry % G) * width + block;
                    if (Entries::has_weight) weights[u] = group.from(weight, entry % G);
#pragma unroll
                    for (int v = 0; v < V; v++)
                        if (entry < count && block + column(v) < width)
                            loaded[u][v] = load<X, W>(table + place + column(v), policy);
                }
#pragma unroll
                for (int u = 0; u < FLIGHT; u++)
#pragma unroll
                    for (int v = 0; v < V; v++)
                        if (t + u * E + set < count && block + column(v) < width)
#pragma unroll
                            for (int w = 0; w < W; w++) {
                                const T value = widened(loaded[u][v].at[w]);
                                at[v][w] = Entries::has_weight ? fma(weights[u], value, at[v][w]) : at[v][w] + value;
                            }
            }
        }
    }

    // From the sums of the sets to their sum, in every lane.
    __device__ void total() {
        if (E > 1)
#pragma unroll
            for (int v = 0; v < V; v++)
#pragma unroll
                for (int w = 0; w < W; w++) at[v][w] = group.sum(at[v][w], L);
    }

    // To a row of `out`.
    __device__ void store_to(T* out, i64 row, int width, int block) const {
        if (!writes()) return;
#pragma unroll
        for (int v = 0; v < V; v++)
            if (block + column(v) < width) {
                Pack<T, W> pack;
#pragma unroll
                for (int w = 0; w < W; w++) pack.at[w] = at[v][w];
                store<T, W>(out + row * width + block + column(v), pack);
            }
    }
};

// Blocks that should fit a multiprocessor at once, which leaves 64, 80 or 96 registers a thread: without it ptxas 13.0
// takes fewer than a kernel needs, and spills.
template <class S>
constexpr int BLOCKS_SM = S::V > 1 ? 5 : sizeof(typename S::T) > 4 ? 6 : 8;

// The result that entry k belongs to, or -1.
__device__ inline i64 owner(const Indices& starts, i64 rows, i64 k) {
    const i64 row = lower_bound(starts, rows + 1, k + 1) - 1;
    return row < rows ? row : -1;
}

// What kernels take of the results: where their entries start; how many there are, in arrays that may have room for
// more; the pieces that long ones are cut into, 0 where none is needed; and what `Lengths` in row_sums.py tells of them.
#define RESULTS                                                                                                 \
    const void *starts, int wide, i64 rows, i64 room, i64 pieces, i64 length, i64 constant, const int *order,       \
        int is_ordered, const i64 *counted, int is_counted
#define RESULTS_HERE                                                                                            \
    Results(Indices(starts, wide), is_counted ? least(rows, fetch(counted)) : rows, room, pieces, length, constant, \
            is_ordered ? order : nullptr)

struct Results {
    Indices starts;
    i64 rows, entries, pieces, length;
    i64 constant;      // entries of each, or below 0
    const int* order;  // which of them groups take in turn, or null

    __device__ Results(Indices starts, i64 rows, i64 room, i64 pieces, i64 length, i64 constant, const int* order)
        : starts(starts), rows(rows), pieces(pieces), length(length), constant(constant), order(order) {
        entries = least(room, start(rows));
    }

    // Where the entries of a result start: computed where that is possible, which spares a load that others wait for.
    __device__ i64 start(i64 row) const { return constant < 0 ? starts.shared(row) : row * constant; }
    __device__ i64 taken(i64 turn) const { return order ? stream(order + turn) : turn; }
    __device__ bool is_cut(i64 first, i64 last) const { return pieces > 0 && last - first > length; }
    __device__ i64 of(i64 entry) const {
        if (constant < 0) return owner(starts, rows, entry);
        return entry < entries ? entry / constant : -1;
    }
};

// First kernel: results that are not cut, handed to `done(row, block, sum, pass)` column block by column block, and the
// sums of pieces, for `partial` [2 * pieces, width]. `done` may ask for a second pass over the blocks of a result.
template <class S, class Entries, class X, class Done>
__device__ void sum_rows(
    const Results& results, Entries entries, const X* table, typename S::T* partial, int width, bool keeps, Done done) {
    const u64 policy = policy_of(keeps);
    const i64 pieces = results.pieces;  // come first, for nothing takes longer
    for (i64 item = Group<S::G>::first(); item < pieces + results.rows; item += Group<S::G>::count()) {
        const bool is_piece = item < pieces;
        const i64 begin = is_piece ? item * results.length : 0, end = least(begin + results.length, results.entries);
        if (is_piece && begin >= end) continue;
        i64 row = is_piece ? results.of(begin) : results.taken(item - pieces);
        for (int side = 0; side <= is_piece; side++) {  // of a piece the result it starts in, and that it ends in
            if (side == 1) {
                const i64 last_row = results.of(end - 1);
                if (last_row == row) break;
                row = last_row;
            }
            if (row < 0) continue;
            i64 first = results.start(row), last = results.start(row + 1);
            if (results.is_cut(first, last) != is_piece) continue;
            if (is_piece)
                first = most(first, begin), last = least(last, end);
            else
                done.before(row, Group<S::G>().lane);
            for (int pass = 0; pass < (is_piece ? 1 : done.passes()); pass++)
                for (int block = 0; block < width; block += S::COLUMNS) {
                    S sum;
                    sum.clear();
                    sum.add(entries, first, last, table, width, block, policy);
                    sum.total();
                    if (is_piece)
                        sum.store_to(partial, 2 * item + side, width, block);
                    else
                        done(row, block, sum, pass);
                }
        }
    }
}

// Second kernel: results that were cut.
template <class S, class Done>
__device__ void sum_pieces(const Results& results, const typename S::T* partial, int width, Done done) {
    for (i64 turn = Group<S::G>::first(); turn < results.rows; turn += Group<S::G>::count()) {
        const i64 row = results.taken(turn), first = results.start(row), last = results.start(row + 1);
        if (!results.is_cut(first, last)) {
            if (results.order) break;  // the others have no more entries than this one
            continue;
        }
        const i64 piece = first / results.length;
        const Pieces<typename S::T> pieces{piece, first > piece * results.length};
        for (int pass = 0; pass < done.passes(); pass++)
            for (int block = 0; block < width; block += S::COLUMNS) {
                S sum;
                sum.clear();
                sum.add(pieces, piece, (last - 1) / results.length + 1, partial, width, block, policy_of(false));
                sum.total();
                done(row, block, sum, pass);
            }
    }
}

// Writes results to `out` [rows, width].
template <class S>
struct Store {
    typename S::T* out;
    int width;
    __device__ static int passes() { return 1; }
    __device__ void before(i64, int) const {}
    __device__ void operator()(i64 row, int block, const S& sum, int) const { sum.store_to(out, row, width, block); }
};
