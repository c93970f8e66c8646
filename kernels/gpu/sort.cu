// A stable radix sort of keys, not negative, with the places they had: for each digit from the lowest on, keys are
// counted by block and digit, the counts are scanned, and every key is put where its digit, block, warp and turn say.
// Nothing depends on which block comes first.
#include "blocks.cuh"

constexpr int MOST_DIGITS = 256;
constexpr int STEPS = 16;
constexpr i64 CHUNK = 32 * STEPS;      // keys of a warp
constexpr i64 TILE = WARPS * CHUNK;    // keys of a block

__device__ inline int digit_of(i64 key, int shift, int digits) { return (int)(key >> shift) & (digits - 1); }

// counts[digit * tiles + tile], to be scanned.
__global__ void __launch_bounds__(THREADS)
    count_digits(const void* keys, int wide, i64 size, int shift, int digits, i64* counts, i64 tiles) {
    SHARED(int, found, MOST_DIGITS);
    const Indices key(keys, wide);
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        for (int d = threadIdx.x; d < digits; d += THREADS) found[d] = 0;
        __syncthreads();
        for (i64 k = tile * TILE + threadIdx.x; k < least(size, (tile + 1) * TILE); k += THREADS)
            atomicAdd(&found[digit_of(key[k], shift, digits)], 1);
        __syncthreads();
        for (int d = threadIdx.x; d < digits; d += THREADS) counts[d * tiles + tile] = found[d];
        __syncthreads();
    }
}

// Keys and places in the order of one more digit; `places` is not read in the first pass, where a key's place is its own.
__global__ void __launch_bounds__(THREADS) move_keys(
    const void* keys, void* keys_out, int wide, const void* places, void* places_out, int wide_places, int is_first,
    i64 size, int shift, int digits, const i64* starts, i64 tiles) {
    SHARED(i64, next, WARPS * MOST_DIGITS);
    const Indices key(keys, wide), place(places, wide_places);
    const IndicesOut key_out(keys_out, wide), place_out(places_out, wide_places);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const i64 chunk = tile * TILE + warp * CHUNK;
        for (int d = threadIdx.x; d < WARPS * MOST_DIGITS; d += THREADS) next[d] = 0;
        __syncthreads();
        for (i64 k = chunk + lane; k < least(size, chunk + CHUNK); k += 32)
            atomicAdd((u64*)&next[warp * MOST_DIGITS + digit_of(key[k], shift, digits)], (u64)1);
        __syncthreads();
        for (int d = threadIdx.x; d < digits; d += THREADS) {
            i64 start = starts[d * tiles + tile];
            for (int w = 0; w < WARPS; w++) {
                const i64 count = next[w * MOST_DIGITS + d];
                next[w * MOST_DIGITS + d] = start;
                start += count;
            }
        }
        __syncthreads();
        for (int step = 0; step < STEPS; step++) {
            const i64 k = chunk + step * 32 + lane;
            const bool is_there = k < size;
            const i64 own = is_there ? key[k] : 0;
            const int digit = is_there ? digit_of(own, shift, digits) : MOST_DIGITS;
            const unsigned alike = __match_any_sync(0xffffffffu, digit);
            const int turn = __popc(alike & ((1u << lane) - 1));
            i64 target = 0;
            if (is_there) {
                target = next[warp * MOST_DIGITS + digit] + turn;
                key_out.set(target, own);
                place_out.set(target, is_first ? k : place[k]);
            }
            __syncwarp();  // all have read where their digit goes on
            if (is_there && turn == 0) next[warp * MOST_DIGITS + digit] = target + __popc(alike);
            __syncwarp();
        }
        __syncthreads();
    }
}
