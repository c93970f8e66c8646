// How float values become values of half the memory: the nearest, or one of the two neighbours at random, the nearer the
// likelier, so that steps too small for the type are right on average.
#pragma once
#include "device.cuh"

// The magnitude of a float, from its bits without the sign, in units of the last place of a narrow type times 2^32: the
// upper half are the type's bits after rounding down, the lower half is what that leaves out.
__device__ inline u64 places_of(unsigned bits, Brain) { return (u64)bits << 16; }

__device__ inline u64 places_of(unsigned bits, Half) {
    const int above = (int)(bits >> 23) - 113;  // exponents over that of the smallest normal number
    const u64 digits = (u64)((bits & 0x7fffffu) | 0x800000u) << 32;
    return (digits >> least(13 - least(above, 0), 63)) + ((u64)most(above, 0) << 42);
}

// Up where what rounding down leaves out and `extra`, both in units of 2^-32, make one. What comes to the first power of
// two that is too large is infinite; NaN is 0x7fff, as the device's instructions have it.
template <class X>
__device__ X carried(float value, bool to_even, unsigned extra) {
    union {
        float value;
        unsigned bits;
    } both;
    both.value = value;
    const unsigned sign = both.bits >> 16 & 0x8000u, rest = both.bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return {0x7fff};
    const u64 places = places_of(rest, X());
    if (to_even) extra = 0x7fffffffu + (unsigned)(places >> 32 & 1);
    return {(unsigned short)(sign | (unsigned)least<u64>((places + extra) >> 32, X::INFINITE))};
}

#if !defined(__CUDA_ARCH__)
template <class X>
void to_nearest(float value, X& narrow) {
    narrow = carried<X>(value, true, 0);
}
#endif

// Four numbers of 32 bits, by a counter of 128 bits and a key: Philox4x32-10 of Salmon et al. 2011, "Parallel random
// numbers: as easy as 1, 2, 3", https://doi.org/10.1145/2063384.2063405
__device__ inline Pack<unsigned, 4> philox(u64 low, u64 high, u64 key) {
    unsigned a = (unsigned)low, b = (unsigned)(low >> 32), c = (unsigned)high, d = (unsigned)(high >> 32);
    unsigned left = (unsigned)key, right = (unsigned)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u64 one = (u64)0xd2511f53u * a, other = (u64)0xcd9e8d57u * c;
        a = (unsigned)(other >> 32) ^ b ^ left;
        c = (unsigned)(one >> 32) ^ d ^ right;
        b = (unsigned)other;
        d = (unsigned)one;
        left += 0x9e3779b9u, right += 0xbb67ae85u;
    }
    return {{a, b, c, d}};
}

// What kernels take of it, as `Rounding` in rounding.py has it: 0 for the nearest, 1 at random by `seed` and `step`, 2
// where the step is at `counter`, for launches that are repeated.
#define ROUNDING int rounding, i64 seed, i64 step, const i64 *counter
#define ROUNDING_HERE \
    Rounding { rounding > 0, (u64)seed, (u64)(rounding == 2 ? fetch(counter) : step) }

struct Rounding {
    bool is_random;
    u64 seed, step;

    // W values for the places from `place` on; the random number of a place depends on seed, step and place alone.
    // Values of a type as wide as theirs stay as they are.
    template <class X, class T, int W>
    __device__ Pack<X, W> rounded(const Pack<T, W>& values, i64 place) const {
        Pack<X, W> narrow;
        if constexpr (sizeof(X) == sizeof(T)) {
            narrow = values;
        } else {
            static_assert(W == 1 || W == 4, "a pack takes one number, or all four of a counter");
            Pack<unsigned, 4> numbers;
            if (is_random) numbers = philox((u64)place / 4, step, seed);
            if (W == 1 && place & 1) numbers.at[0] = numbers.at[1], numbers.at[2] = numbers.at[3];
            if (W == 1 && place & 2) numbers.at[0] = numbers.at[2];
#pragma unroll
            for (int w = 0; w < W; w++)
                if (is_random)
                    narrow.at[w] = carried<X>(values.at[w], false, numbers.at[w]);
                else
                    to_nearest(values.at[w], narrow.at[w]);
        }
        return narrow;
    }
};
