// What every kernel here is written with: loads and stores with cache hints, packs of 16 bytes, groups of lanes.
//
// The only file with inline PTX. Where `__CUDA_ARCH__` is not defined, as on the host emulator of the tests, the same
// functions are plain C++.
#pragma once

typedef long long i64;
typedef unsigned long long u64;

#if defined(__CUDA_ARCH__)
#define SHARED(type, name, count) __shared__ type name[count]
#elif !defined(SHARED)
#error "The host emulator defines SHARED and read_only() before it includes this file."
#endif

// Threads of a block, in every kernel.
constexpr int THREADS = 128;

template <class T>
__device__ T least(T a, T b) {
    return b < a ? b : a;
}

template <class T>
__device__ T most(T a, T b) {
    return a < b ? b : a;
}

// Of the whole grid: this thread, and how many there are.
__device__ inline i64 this_thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 all_threads() { return (i64)gridDim.x * blockDim.x; }

// How long the second-level cache should hold what is loaded. Read once: the first to go.
#if defined(__CUDA_ARCH__)
__device__ inline u64 policy_of(bool keeps) {
    u64 last, normal;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(last));
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(normal));
    return keeps ? last : normal;
}

__device__ inline u64 policy_of_stream() {
    u64 policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
#else
inline u64 policy_of(bool) { return 0; }
inline u64 policy_of_stream() { return 0; }
#endif

// A value that is read once and that the kernel does not write: past the first-level cache.
template <class T>
__device__ inline T stream(const T* place) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "stream() loads 4 or 8 bytes");
#if defined(__CUDA_ARCH__)
    union {
        T value;
        unsigned low;
        u64 whole;
    } loaded;
    if (sizeof(T) == 4)
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.b32 %0, [%1], %2;"
                     : "=r"(loaded.low)
                     : "l"(place), "l"(policy_of_stream()));
    else
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.b64 %0, [%1], %2;"
                     : "=l"(loaded.whole)
                     : "l"(place), "l"(policy_of_stream()));
    return loaded.value;
#else
    return *read_only(place);
#endif
}

// A value that the kernel does not write and that is read again soon.
template <class T>
__device__ inline T fetch(const T* place) {
#if defined(__CUDA_ARCH__)
    return __ldg(place);
#else
    return *read_only(place);
#endif
}

// Ask for the line that `place` is in, which will be read soon.
__device__ inline void prefetch(const void* place) {
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" : : "l"(place));
#endif
}

// W values side by side, one memory access.
template <class T, int W>
struct alignas(W * sizeof(T)) Pack {
    T at[W];
};

// Values that take half the memory and are computed with as float: IEEE's, and the upper half of a float.
struct Half {
    static constexpr unsigned INFINITE = 0x7c00;
    unsigned short bits;
};
struct Brain {
    static constexpr unsigned INFINITE = 0x7f80;
    unsigned short bits;
};

__device__ inline float widened(float value) { return value; }
__device__ inline double widened(double value) { return value; }

__device__ inline float float_of(unsigned bits) {
    union {
        unsigned bits;
        float value;
    } both;
    both.bits = bits;
    return both.value;
}

__device__ inline float widened(Brain value) { return float_of((unsigned)value.bits << 16); }

__device__ inline float widened(Half value) {
#if defined(__CUDA_ARCH__)
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
#else
    const unsigned sign = (value.bits & 0x8000u) << 16, rest = value.bits & 0x7fffu;
    if (rest >= 0x7c00u) return float_of(sign | 0x7f800000u | (rest & 0x3ffu) << 13);         // infinite or NaN
    if (rest >= 0x0400u) return float_of(sign | ((rest << 13) + ((127u - 15u) << 23)));      // normal
    return (sign ? -1.0f : 1.0f) * (float)rest * float_of((127u - 24u) << 23);               // below that
#endif
}

// The nearest value of half the memory, of two the even one; NaN is 0x7fff. On the host it is in `rounding.cuh`.
#if defined(__CUDA_ARCH__)
__device__ inline void to_nearest(float value, Half& narrow) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
}
__device__ inline void to_nearest(float value, Brain& narrow) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
}
#endif

// Loads for the rows of a table that the kernel does not write; `policy` from `policy_of`.
template <class T, int W>
__device__ inline Pack<T, W> load(const T* place, u64 policy) {
#if defined(__CUDA_ARCH__)
    Pack<T, W> p;
    if constexpr (sizeof(T) == 2) {
        static_assert(W == 1 || W == 4, "a pack is one value or 8 bytes");
        if constexpr (W == 4) {
            union {
                Pack<T, W> pack;
                unsigned word[2];
            } both;
            asm volatile("ld.global.nc.L2::cache_hint.v2.b32 {%0, %1}, [%2], %3;"
                         : "=r"(both.word[0]), "=r"(both.word[1])
                         : "l"(place), "l"(policy));
            return both.pack;
        } else {
            p.at[0].bits = __ldg(&place->bits);
            return p;
        }
    } else if constexpr (W * sizeof(T) == 16) {
        unsigned a, b, c, d;
        asm volatile("ld.global.nc.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "l"(place), "l"(policy));
        union {
            Pack<T, W> pack;
            unsigned word[4];
        } both;
        both.word[0] = a, both.word[1] = b, both.word[2] = c, both.word[3] = d;
        return both.pack;
    } else {
        static_assert(W == 1, "a pack is one value or 16 bytes");
        p.at[0] = __ldg(place);
        return p;
    }
#else
    return *read_only((const Pack<T, W>*)place);
#endif
}

// Plain loads and stores, for what the kernel writes as well.
template <class T, int W>
__device__ inline Pack<T, W> load_own(const T* place) {
    return *(const Pack<T, W>*)place;
}

template <class T, int W>
__device__ inline void store_own(T* place, Pack<T, W> values) {
    *(Pack<T, W>*)place = values;
}

// A store of what is not read again by this kernel.
template <class T, int W>
__device__ inline void store(T* place, Pack<T, W> values) {
#if defined(__CUDA_ARCH__)
    if constexpr (W * sizeof(T) == 16) {
        union {
            Pack<T, W> pack;
            float4 word;
        } both;
        both.pack = values;
        __stcs((float4*)place, both.word);
    } else {
        __stcs(place, values.at[0]);
    }
#else
    *(Pack<T, W>*)place = values;
#endif
}

// An array of int32 or int64; which is the same for all of a kernel's index arrays, and for all its threads.
struct Indices {
    const void* start;
    int wide;

    __device__ Indices(const void* start, int wide) : start(start), wide(wide) {}

    // An element that is read once.
    __device__ i64 operator[](i64 k) const {
        return wide ? stream((const i64*)start + k) : (i64)stream((const int*)start + k);
    }

    // An element that neighbours read too.
    __device__ i64 shared(i64 k) const {
        return wide ? fetch((const i64*)start + k) : (i64)fetch((const int*)start + k);
    }
};

// The same, to be written.
struct IndicesOut {
    void* start;
    int wide;

    __device__ IndicesOut(void* start, int wide) : start(start), wide(wide) {}

    __device__ void set(i64 k, i64 value) const {
        if (wide)
            ((i64*)start)[k] = value;
        else
            ((int*)start)[k] = (int)value;
    }
};

// The first place in ascending `sorted[0..count-1]` whose value is not below `value`.
template <class Sorted>
__device__ i64 lower_bound(const Sorted& sorted, i64 count, i64 value) {
    i64 low = 0, high = count;
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (sorted.shared(middle) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// G lanes of a warp that work on one thing, G a power of two up to 32.
template <int G>
struct Group {
    int lane;
    unsigned mask;

    __device__ Group() {
        const int place = threadIdx.x % 32;
        lane = place % G;
        mask = G == 32 ? 0xffffffffu : ((1u << (G % 32)) - 1) << (place / G * G);
    }

    // This group among those of the grid, and their number.
    __device__ static i64 first() { return this_thread() / G; }
    __device__ static i64 count() { return all_threads() / G; }

    // What lanes read and wrote before this is done for those after it, which neither shuffles nor votes promise.
    __device__ void sync() const {
        if (G > 1) __syncwarp(mask);
    }

    // The value that lane `source` has; every lane of the group calls it.
    template <class T>
    __device__ T from(T value, int source) const {
        return G == 1 ? value : __shfl_sync(mask, value, source, G);
    }

    // The sum over lanes that differ in the bits from `lowest` on, in each of them, always in one order.
    template <class T>
    __device__ T sum(T value, int lowest = 1) const {
        for (int offset = G / 2; offset >= lowest; offset /= 2) value += __shfl_xor_sync(mask, value, offset, G);
        return value;
    }
};
