// The n largest scores of each row: a warp has a row, and takes the scores that exceed the last of its list one by one.
#include "../gpu/device.cuh"

// Scores of a lane that are compared with the last of the list before any is taken.
constexpr int AT_ONCE = 4;

// The list of a row, its place e in lane e % 32: K places a lane in registers, or all in global memory where K is 0.
template <class T, int K>
struct List {
    T* best;
    i64* places;
    i64 size;
    int lane;
    T scores[K > 0 ? K : 1];
    i64 columns[K > 0 ? K : 1];

    __device__ List(T* best, i64* places, i64 size) : best(best), places(places), size(size), lane(threadIdx.x % 32) {
        if constexpr (K > 0) {
#pragma unroll
            for (int k = 0; k < K; k++) {
                const bool is_place = 32 * k + lane < size;
                scores[k] = is_place ? best[32 * k + lane] : (T)0;
                columns[k] = is_place ? places[32 * k + lane] : 0;
            }
        }
    }

    __device__ T last() const {
        if constexpr (K > 0) {
            T found = 0;
#pragma unroll
            for (int k = 0; k < K; k++) {
                const T own = __shfl_sync(0xffffffffu, scores[k], (int)((size - 1) % 32));
                if (k == (size - 1) / 32) found = own;
            }
            return found;
        } else {
            return best[size - 1];
        }
    }

    // One set of 32 places, the place e of this lane among them, makes room for a score: scores below it move on by
    // one. `before` is what place e - 1 has. Returns whether places before the set stay as they are.
    __device__ bool move(i64 e, T& own, i64& column, T before, i64 column_before, T score, i64 score_column) const {
        const unsigned stays = __ballot_sync(0xffffffffu, e < size && !(own < score));
        if (stays >> lane) return true;
        const bool is_here = e == 0 || !(before < score);
        own = is_here ? score : before;
        column = is_here ? score_column : column_before;
        return stays != 0;
    }

    // Take a score above the last of the list, and its column.
    __device__ void insert(T score, i64 score_column) {
        if constexpr (K > 0) {
            bool is_done = false;
#pragma unroll
            for (int k = K - 1; k >= 0; k--) {
                if (is_done) continue;
                T before = __shfl_up_sync(0xffffffffu, scores[k], 1);
                i64 column_before = __shfl_up_sync(0xffffffffu, columns[k], 1);
                if (k > 0) {
                    const T carried = __shfl_sync(0xffffffffu, scores[most(k - 1, 0)], 31);
                    const i64 column = __shfl_sync(0xffffffffu, columns[most(k - 1, 0)], 31);
                    if (lane == 0) before = carried, column_before = column;
                }
                is_done = move(32 * k + lane, scores[k], columns[k], before, column_before, score, score_column);
            }
        } else {
            for (i64 first = (size - 1) / 32 * 32, is_done = 0; first >= 0 && !is_done; first -= 32) {
                const i64 e = first + lane, own = least(e, size - 1), before = most(own - 1, (i64)0);
                T value = best[own];
                i64 column = places[own];
                const T value_before = best[before];
                const i64 column_before = places[before];
                is_done = move(e, value, column, value_before, column_before, score, score_column);
                __syncwarp();
                if (e < size) best[e] = value, places[e] = column;
                __syncwarp();
            }
        }
    }

    __device__ void store() const {
        if constexpr (K > 0) {
#pragma unroll
            for (int k = 0; k < K; k++)
                if (32 * k + lane < size) best[32 * k + lane] = scores[k], places[32 * k + lane] = columns[k];
        }
    }
};

// Column m of `scores` stands for column first + m.
template <class T, int K>
__global__ void __launch_bounds__(THREADS)
    top_scores(const T* scores, i64 first, T* best, i64* places, i64 rows, i64 width, i64 size) {
    const int lane = threadIdx.x % 32;
    for (i64 r = Group<32>::first(); r < rows; r += Group<32>::count()) {
        List<T, K> list(best + r * size, places + r * size, size);
        const T* const row = scores + r * width;
        T last = list.last();
        for (i64 start = 0; start < width; start += 32 * AT_ONCE) {
            T own[AT_ONCE];
#pragma unroll
            for (int t = 0; t < AT_ONCE; t++) {
                const i64 m = start + 32 * t + lane;
                own[t] = m < width ? stream(row + m) : (T)0;
            }
#pragma unroll
            for (int t = 0; t < AT_ONCE; t++) {
                const bool is_score = start + 32 * t + lane < width;
                unsigned above = __ballot_sync(0xffffffffu, is_score && own[t] > last);
                while (above) {
                    const int source = __ffs((int)above) - 1;
                    const T score = __shfl_sync(0xffffffffu, own[t], source);
                    list.insert(score, first + start + 32 * t + source);
                    last = list.last();
                    above &= __ballot_sync(0xffffffffu, own[t] > last);
                    above &= ~(1u << source);
                }
            }
        }
        list.store();
    }
}
