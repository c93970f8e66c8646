// The part of CUDA that the kernels use, as host code. Threads of a block are fibers of one thread; a barrier, a shuffle
// or a vote switches to another fiber. `runtime.cpp` is what runs them.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define SHARED(type, name, count)                                                                   \
    static char name##_declared;                                                                    \
    emulator::Shared<type> name(                                                                    \
        (type*)emulator::shared(&name##_declared, sizeof(type) * (count), alignof(type)), count, __LINE__)
#define threadIdx (emulator::thread_index)
#define blockIdx (emulator::block_index)
#define blockDim (emulator::block_size)
#define gridDim (emulator::grid_size)

namespace emulator {

struct Index {
    unsigned x, y, z;
};
extern Index thread_index, block_index, block_size, grid_size;

// Where in the kernel's text a switch point stands.
struct Place {
    const char* file;
    int line;
};

enum Operation { SYNC, SHUFFLE, SHUFFLE_XOR, SHUFFLE_UP, SHUFFLE_DOWN, BALLOT, MATCH };

enum Access { READ, READ_ONLY, WRITE, ATOMIC };
// An access is coming, which must be ordered after those before it: see `accesses.h`.
void touch(const void* place, size_t bytes, Access access);

void barrier(Place place);
// Lanes of `mask` meet; returns what the operation gives this lane.
uint64_t meet(Operation operation, unsigned mask, uint64_t value, int argument, int width, Place place);
// The memory of a declaration: the same for all threads of a block, and whenever it is come by.
void* shared(const void* declaration, size_t bytes, size_t alignment);
[[noreturn]] void fail(Place place, const char* format, ...);

// Shared memory that refuses places outside it.
template <class T>
struct Shared {
    T* start;
    long long count;
    int line;
    Shared(T* start, long long count, int line) : start(start), count(count), line(line) {}
    template <class K>
    T& operator[](K k) const {
        if ((long long)k < 0 || (long long)k >= count)
            fail({"", line}, "place %lld of the shared array of %lld declared here", (long long)k, count);
        return start[k];
    }
};

template <class T>
uint64_t bits(T value) {
    uint64_t raw = 0;
    static_assert(sizeof(T) <= 8, "a lane hands over up to 8 bytes");
    std::memcpy(&raw, &value, sizeof(T));
    return raw;
}

template <class T>
T value_of(uint64_t raw) {
    T value;
    std::memcpy(&value, &raw, sizeof(T));
    return value;
}

template <class T>
T shuffle(Operation operation, unsigned mask, T value, int argument, int width, Place place) {
    return value_of<T>(meet(operation, mask, bits(value), argument, width, place));
}

// Kinds of a kernel's parameters, one letter each, and a call with their values.
template <class T>
constexpr char kind() {
    if (std::is_pointer<T>::value) return 'p';
    if (std::is_same<T, float>::value) return 'f';
    if (std::is_same<T, double>::value) return 'd';
    return sizeof(T) == 4 ? 'i' : sizeof(T) == 8 ? 'l' : '?';
}

template <class... A>
void kinds(void (*)(A...), char* letters) {
    const char all[] = {kind<A>()..., 0};
    std::memcpy(letters, all, sizeof(all));
}

template <class... A, size_t... K>
void call_with(void (*kernel)(A...), void** args, std::index_sequence<K...>) {
    kernel(*(std::remove_cv_t<A>*)args[K]...);
}

template <class... A>
void call(void (*kernel)(A...), void** args) {
    call_with(kernel, args, std::index_sequence_for<A...>());
}

}  // namespace emulator

#define PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(PLACE) { emulator::barrier({file, line}); }
inline void __syncwarp(unsigned mask = ~0u, PLACE) { emulator::meet(emulator::SYNC, mask, 0, 0, 32, {file, line}); }

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, PLACE) {
    return emulator::shuffle(emulator::SHUFFLE, mask, value, source, width, {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, PLACE) {
    return emulator::shuffle(emulator::SHUFFLE_XOR, mask, value, bits, width, {file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int by, int width = 32, PLACE) {
    return emulator::shuffle(emulator::SHUFFLE_UP, mask, value, by, width, {file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int by, int width = 32, PLACE) {
    return emulator::shuffle(emulator::SHUFFLE_DOWN, mask, value, by, width, {file, line});
}
inline unsigned __ballot_sync(unsigned mask, bool vote, PLACE) {
    return (unsigned)emulator::meet(emulator::BALLOT, mask, vote, 0, 32, {file, line});
}
inline bool __any_sync(unsigned mask, bool vote, PLACE) { return __ballot_sync(mask, vote, file, line) != 0; }
inline bool __all_sync(unsigned mask, bool vote, PLACE) { return __ballot_sync(mask, vote, file, line) == mask; }
template <class T>
unsigned __match_any_sync(unsigned mask, T value, PLACE) {
    return (unsigned)emulator::meet(emulator::MATCH, mask, emulator::bits(value), 0, 32, {file, line});
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz(bits) : 32; }

// What is loaded past the caches, which do not see what the kernel writes.
template <class T>
const T* read_only(const T* place) {
    emulator::touch(place, sizeof(T), emulator::READ_ONLY);
    return place;
}

#define ATOMICALLY template <class T> __attribute__((no_sanitize("thread")))

ATOMICALLY T atomicAdd(T* place, T value) {
    emulator::touch(place, sizeof(T), emulator::ATOMIC);
    const T old = *place;
    *place = old + value;
    return old;
}
ATOMICALLY T atomicMin(T* place, T value) {
    emulator::touch(place, sizeof(T), emulator::ATOMIC);
    const T old = *place;
    if (value < old) *place = value;
    return old;
}
ATOMICALLY T atomicMax(T* place, T value) {
    emulator::touch(place, sizeof(T), emulator::ATOMIC);
    const T old = *place;
    if (old < value) *place = value;
    return old;
}

using std::copysign;
using std::exp;
using std::fabs;
using std::fma;
using std::isinf;
using std::isnan;
using std::log;
using std::log1p;
using std::sqrt;
