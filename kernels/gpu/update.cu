// Steps of an update rule: on every row, on rows that are named, fused with the gradient, and repeated without one. The
// struct `Rule` stands before this text, made from the rule's formula.
#include "rounding.cuh"
#include "row_sums.cuh"

constexpr int MOST_STATES = 3, MOST_SETTINGS = 10;

// As BLOCKS_SM, with room for weights and states: 80 registers; the widest tiles and double have 96 with one state, 128
// with more.
template <class S>
constexpr int FUSED_SM = 6 - (S::V > 1 || sizeof(typename S::T) > 4 ? (Rule::STATES < 2 ? Rule::STATES : 2) : 0);

// What every kernel takes: the arrays, of which unused states are not read, and the settings, unused ones 0. Weights may
// be of half the memory, X; what is computed with them and all else is T.
#define ARRAYS(X) X *weights, T *state0, T *state1, T *state2
#define NUMBERS T n0, T n1, T n2, T n3, T n4, T n5, T n6, T n7, T n8, T n9
// Without numbers, where they are at `live` alone.
#define RULE_AT(live) Stepper<T, T>{weights, {state0, state1, state2}, {}, live, Rounding()}
#define RULE_BY(X, live, rounding) \
    Stepper<T, X>{weights, {state0, state1, state2}, {n0, n1, n2, n3, n4, n5, n6, n7, n8, n9}, live, rounding}

// A sum over lanes that have different columns; `S` as in `row_sums.cuh`.
template <class S>
__device__ typename S::T sum_lanes(const S& sum, typename S::T value) {
    for (int offset = S::L / 2; offset > 0; offset /= 2)
        value += __shfl_xor_sync(sum.group.mask, value, offset, S::G);
    return value;
}

template <class T, class X>
struct Stepper {
    X* weights;
    T* states[MOST_STATES];
    T given[MOST_SETTINGS];
    // The settings where they change from step to step without a new launch being made, else null.
    const T* live;
    Rounding rounding;

    // Read where they are used, so that they hold no registers while rows are summed.
    __device__ void read_settings(T* settings) const {
#pragma unroll
        for (int k = 0; k < Rule::SETTINGS; k++) settings[k] = live ? fetch(live + k) : given[k];
    }

    // Step W elements from `place` of the weights on, by the gradient; states of a rule by row are in `shared`.
    template <int W>
    __device__ void pack(i64 place, const T* gradient, T mean, T* shared) const {
        T settings[MOST_SETTINGS];
        read_settings(settings);
        const Pack<X, W> held = load_own<X, W>(weights + place);
        Pack<T, W> weight, old[MOST_STATES];
#pragma unroll
        for (int s = 0; s < MOST_STATES; s++)
            if (s < Rule::STATES && !Rule::BY_ROW) old[s] = load_own<T, W>(states[s] + place);
        T state[MOST_STATES];
#pragma unroll
        for (int w = 0; w < W; w++) {
#pragma unroll
            for (int s = 0; s < MOST_STATES; s++)
                if (s < Rule::STATES) state[s] = Rule::BY_ROW ? shared[s] : old[s].at[w];
            weight.at[w] = widened(held.at[w]);
            Rule::step(weight.at[w], state, gradient[w], mean, settings);
#pragma unroll
            for (int s = 0; s < MOST_STATES; s++)
                if (s < Rule::STATES && !Rule::BY_ROW) old[s].at[w] = state[s];
        }
        store_own<X, W>(weights + place, rounding.rounded<X>(weight, place));
#pragma unroll
        for (int s = 0; s < MOST_STATES; s++)
            if (s < Rule::STATES && !Rule::BY_ROW) store_own<T, W>(states[s] + place, old[s]);
        if (Rule::BY_ROW)
#pragma unroll
            for (int s = 0; s < MOST_STATES; s++)
                if (s < Rule::STATES) shared[s + MOST_STATES] = state[s];
    }

    // What W elements add to the mean of their row.
    template <int W>
    __device__ T part(i64 place, const T* gradient) const {
        T sum = 0, settings[MOST_SETTINGS];
        read_settings(settings);
#pragma unroll
        for (int w = 0; w < W; w++) sum += Rule::average(widened(weights[place + w]), gradient[w], settings);
        return sum;
    }

    // The states of a rule by row: old ones to `shared[0..]`, new ones from `shared[MOST_STATES..]`.
    __device__ void load_row(i64 row, T* shared) const {
        for (int s = 0; s < Rule::STATES; s++) shared[s] = states[s][row];
    }
    __device__ void store_row(i64 row, const T* shared) const {
        for (int s = 0; s < Rule::STATES; s++) states[s][row] = shared[s + MOST_STATES];
    }
};

// Every element by itself: for rules that are not by row.
template <class T, int W>
__device__ void step_elements(const Stepper<T, T>& rule, const T* gradient, i64 packs) {
    T none[2 * MOST_STATES];
    for (i64 k = this_thread(); k < packs; k += all_threads()) {
        const Pack<T, W> g = load_own<T, W>(gradient + k * W);
        rule.template pack<W>(k * W, g.at, 0, none);
    }
}

template <class T, int W>
__global__ void __launch_bounds__(THREADS) dense(ARRAYS(T), const T* gradient, i64 packs, NUMBERS) {
    step_elements<T, W>(RULE_BY(T, nullptr, Rounding()), gradient, packs);
}

template <class T, int W>
__global__ void __launch_bounds__(THREADS) dense_live(ARRAYS(T), const T* gradient, i64 packs, const T* live) {
    step_elements<T, W>(RULE_AT(live), gradient, packs);
}

// The rows `rows[u]`, or all of them where `is_named` is 0, by row u of the gradient: G lanes a row.
template <int W, int G, class T, class X>
__device__ void step_rows(
    const Stepper<T, X>& rule, const i64* rows, int is_named, const T* gradient, i64 count, i64 width) {
    const Group<G> group;
    for (i64 u = group.first(); u < count; u += group.count()) {
        const i64 row = is_named ? stream(rows + u) : u;
        T mean = 0, shared[2 * MOST_STATES];
        if (Rule::BY_ROW) {
            rule.load_row(row, shared);
            for (i64 n = group.lane * W; n < width; n += G * W)
                mean += rule.template part<W>(row * width + n, load_own<T, W>(gradient + u * width + n).at);
            mean = group.sum(mean) / (T)width;
            group.sync();  // all lanes have loaded the states before one stores them
        }
        for (i64 n = group.lane * W; n < width; n += G * W) {
            const Pack<T, W> g = load_own<T, W>(gradient + u * width + n);
            rule.template pack<W>(row * width + n, g.at, mean, shared);
        }
        if (Rule::BY_ROW && group.lane == 0) rule.store_row(row, shared);
    }
}

template <class T, int W, int G, class X = T>
__global__ void __launch_bounds__(THREADS, 6)
    lazy(ARRAYS(X), const i64* rows, int is_named, const T* gradient, i64 count, i64 width, ROUNDING, NUMBERS) {
    step_rows<W, G>(RULE_BY(X, nullptr, ROUNDING_HERE), rows, is_named, gradient, count, width);
}

template <class T, int W, int G>
__global__ void __launch_bounds__(THREADS, 6)
    rows_live(ARRAYS(T), const T* gradient, i64 count, i64 width, const T* live) {
    step_rows<W, G>(RULE_AT(live), nullptr, 0, gradient, count, width);
}

// The rows `rows[u]` by gradients of zero, a step for each row of `table` [steps, SETTINGS] from since[u] on.
template <class T, int G, class X = T>
__global__ void __launch_bounds__(THREADS) step_by_step(
    ARRAYS(X), const i64* rows, const i64* since, const T* table, i64 steps, i64 count, i64 width, ROUNDING) {
    T* const states[] = {state0, state1, state2};
    const Rounding to = ROUNDING_HERE;
    const Group<G> group;
    for (i64 u = group.first(); u < count; u += group.count()) {
        const i64 row = rows[u], first = since[u];
        for (i64 n = group.lane; n < width; n += G) {
            const i64 place = row * width + n;
            Pack<T, 1> weight = {{widened(weights[place])}};
            T state[MOST_STATES];
            for (int s = 0; s < Rule::STATES; s++) state[s] = states[s][place];
            for (i64 missed = first; missed < steps; missed++)
                Rule::step(weight.at[0], state, (T)0, (T)0, table + missed * Rule::SETTINGS);
            store_own<X, 1>(weights + place, to.rounded<X>(weight, place));
            for (int s = 0; s < Rule::STATES; s++) states[s][place] = state[s];
        }
    }
}

// Takes the gradient of a touched column from `sum_rows` and steps the row of weights that it belongs to. A rule by row
// whose rows are wider than a tile comes twice by every column block: for the mean, then for the step.
template <class S, class X>
struct Apply {
    typedef typename S::T T;
    Stepper<T, X> rule;
    const i64* columns;
    int width;
    T mean, shared[2 * MOST_STATES];

    __device__ int passes() const { return Rule::BY_ROW && width > S::COLUMNS ? 2 : 1; }

    // The weights are on their way while the gradient is summed.
    __device__ void before(i64 u, int lane) const {
        const i64 place = fetch(columns + u) * width;
        for (int n = lane * (int)(128 / sizeof(T)); n < width; n += S::G * (int)(128 / sizeof(T))) {
            prefetch(rule.weights + place + n);
            for (int s = 0; s < Rule::STATES && !Rule::BY_ROW; s++) prefetch(rule.states[s] + place + n);
        }
    }

    __device__ void add_to_mean(i64 row, int block, const S& sum) {
        if (block == 0) {
            mean = 0;
            rule.load_row(row, shared);
        }
#pragma unroll
        for (int v = 0; v < S::V; v++)
            if (block + sum.column(v) < width)
                mean += rule.template part<S::W>(row * width + block + sum.column(v), sum.at[v]);
        if (block + S::COLUMNS < width) return;
        mean = sum_lanes(sum, mean) / (T)width;
        sum.group.sync();  // all lanes have loaded weights and states before some store them
    }

    __device__ void operator()(i64 u, int block, const S& sum, int pass) {
        const i64 row = fetch(columns + u);
        if (Rule::BY_ROW && pass == 0) add_to_mean(row, block, sum);
        if (pass + 1 < passes()) return;
#pragma unroll
        for (int v = 0; v < S::V; v++)
            if (sum.writes() && block + sum.column(v) < width)
                rule.template pack<S::W>(row * width + block + sum.column(v), sum.at[v], mean, shared);
        if (Rule::BY_ROW && sum.group.lane == 0 && block + S::COLUMNS >= width) rule.store_row(row, shared);
    }
};

template <class S, class X = typename S::T, class T = typename S::T>
__global__ void __launch_bounds__(THREADS, FUSED_SM<S>) fused(
    ARRAYS(X), RESULTS, const i64* columns, const void* entry_rows, const T* values, const T* g, T* partial, int width,
    const T* live, int is_live, int keeps, ROUNDING, NUMBERS) {
    const Weighted<T> weighted{Indices(entry_rows, wide), values};
    Apply<S, X> apply{RULE_BY(X, is_live ? live : nullptr, ROUNDING_HERE), columns, width, 0, {}};
    sum_rows<S>(RESULTS_HERE, weighted, g, partial, width, keeps, apply);
}

template <class S, class X = typename S::T, class T = typename S::T>
__global__ void __launch_bounds__(THREADS, FUSED_SM<S>) fused_pieces(
    ARRAYS(X), RESULTS, const i64* columns, const T* partial, int width, const T* live, int is_live, ROUNDING,
    NUMBERS) {
    Apply<S, X> apply{RULE_BY(X, is_live ? live : nullptr, ROUNDING_HERE), columns, width, 0, {}};
    sum_pieces<S>(RESULTS_HERE, partial, width, apply);
}
