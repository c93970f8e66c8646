// A @ B by expansion: every product of two entries is a term; terms are sorted by row and column, stable, so that those
// of an element stand together in the order of A's entries, and are added in it.
#include "../gpu/device.cuh"

// counts[k] = the terms that entry k of A has: the entries of a row of B.
__global__ void __launch_bounds__(THREADS)
    count_terms(const void* a_indices, const void* b_indptr, int wide, i64 entries, i64* counts) {
    const Indices column(a_indices, wide), start(b_indptr, wide);
    for (i64 k = this_thread(); k < entries; k += all_threads()) {
        const i64 row = column[k];
        counts[k] = start.shared(row + 1) - start.shared(row);
    }
}

// Row, column and value of each term; `starts` [entries + 1] are the scanned counts, `rows` those of A's entries.
template <class T>
__global__ void __launch_bounds__(THREADS) expand_terms(
    const i64* starts, const i64* rows, const void* a_indices, const void* b_indptr, const void* b_indices, int wide,
    const T* a_data, const T* b_data, i64 entries, i64 terms, i64* row, i64* column, T* values) {
    const Indices start(starts, 1), middle(a_indices, wide), b_start(b_indptr, wide), b_column(b_indices, wide);
    for (i64 t = this_thread(); t < terms; t += all_threads()) {
        const i64 k = lower_bound(start, entries + 1, t + 1) - 1;
        const i64 j = b_start.shared(middle.shared(k)) + (t - start.shared(k));
        row[t] = rows[k];
        column[t] = b_column.shared(j);
        values[t] = a_data[k] * b_data[j];
    }
}

// flags[t] = 1 where an element's terms start; terms in the order `places`, `rows` in that order already.
__global__ void __launch_bounds__(THREADS)
    mark_elements(const i64* rows, const i64* columns, const i64* places, i64 terms, i64* flags) {
    for (i64 t = this_thread(); t < terms; t += all_threads())
        flags[t] = t == 0 || rows[t] != rows[t - 1] || columns[places[t]] != columns[places[t - 1]];
}

// Each element: its row, its column and the sum of its terms; `ranks` are the scanned flags.
template <class T>
__global__ void __launch_bounds__(THREADS) add_terms(
    const i64* rows, const i64* columns, const i64* places, const T* values, const i64* ranks, i64 terms, i64* row,
    void* indices, int wide, T* data) {
    const IndicesOut column(indices, wide);
    for (i64 t = this_thread(); t < terms; t += all_threads()) {
        const i64 place = ranks[t];
        if (ranks[t + 1] == place) continue;
        T total = values[places[t]];
        for (i64 next = t + 1; next < terms && ranks[next + 1] == place + 1; next++) total += values[places[next]];
        row[place] = rows[t];
        column.set(place, columns[places[t]]);
        data[place] = total;
    }
}
