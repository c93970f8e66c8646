// Tells races, and writes of what was loaded past the caches: kernels are compiled with -fsanitize=thread, so that they
// call a function here before each access to memory. Two accesses of which one writes must be ordered by a barrier, or
// by __syncwarp where both are of one warp; shuffles and votes order nothing.
#pragma once
#include "cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace emulator {

constexpr int LANES = 32, READERS = 3, MOST_THREADS = 1024;
constexpr size_t USUAL = 4, SMALLEST = 2;  // bytes of a cell
static_assert(USUAL == 4 && SMALLEST == 2, "as `touch` shifts");

// Who was there, and when: barriers that the block had passed, and how often the thread had met others by __syncwarp.
struct Visit {
    unsigned block, barriers, meetings;
    uint16_t thread;
    bool is_there, is_atomic;
};

// Bytes that are accessed together: who wrote them last, and the last of those who have read them since.
struct Cell {
    Visit write, reads[READERS];
    uint8_t oldest;
    bool is_read_only;
};

// Memory of an argument, or below 0 that shared by a block.
struct Watched {
    uintptr_t start, end;
    int argument;
    Cell* cells;
    size_t grain;  // bytes of a cell: the smallest access that came
};

std::vector<Watched> watched;
Watched* latest;
// Those of shared memory, which are made once: a block clears what the one before it touched.
std::vector<Cell> shared_cells;
size_t shared_touched;
unsigned barriers_passed;
// meetings[t][lane]: how far thread t knows that lane of its warp to be.
unsigned meetings[MOST_THREADS][LANES];

inline void watch(uintptr_t start, uintptr_t end, int argument) {
    start -= start % USUAL;
    for (const Watched& other : watched)
        if (other.start == start) return;  // two arguments in one array
    watched.push_back({start, end, argument, (Cell*)calloc((end - start) / USUAL + 1, sizeof(Cell)), USUAL});
    latest = nullptr;
}

// An access comes that is smaller than the cells of an argument: its halves have each what was known of the whole.
inline void refine(Watched& in) {
    const size_t count = (in.end - in.start) / USUAL + 1;
    Cell* const halves = (Cell*)calloc(2 * count, sizeof(Cell));
    for (size_t half = 0; half < 2 * count; half++) halves[half] = in.cells[half / 2];
    free(in.cells);
    in.cells = halves;
    in.grain = SMALLEST;
}

inline void forget_all() {
    for (const Watched& each : watched)
        if (each.argument >= 0) free(each.cells);
    watched.clear();
    latest = nullptr;
}

// A block of so many threads begins, with other shared memory.
inline void begin_block(const void* shared, size_t bytes) {
    barriers_passed = 0;
    std::memset(meetings, 0, block_size.x * sizeof(meetings[0]));
    if (watched.empty() || watched.back().argument >= 0) {
        shared_cells.resize(bytes / SMALLEST + 1);
        watched.push_back({(uintptr_t)shared, (uintptr_t)shared + bytes, -1, shared_cells.data(), SMALLEST});
        latest = nullptr;
    }
    std::fill_n(shared_cells.begin(), std::min(shared_touched, shared_cells.size()), Cell{});
    shared_touched = 0;
}

// Lanes of a warp that begins with thread `first` meet by __syncwarp.
inline void lanes_met(unsigned first, unsigned mask) {
    unsigned known[LANES] = {};
    for (int lane = 0; lane < LANES; lane++)
        if (mask >> lane & 1) {
            meetings[first + lane][lane]++;
            for (int other = 0; other < LANES; other++)
                if (known[other] < meetings[first + lane][other]) known[other] = meetings[first + lane][other];
        }
    for (int lane = 0; lane < LANES; lane++)
        if (mask >> lane & 1) std::memcpy(meetings[first + lane], known, sizeof(known));
}

inline Watched* holder(uintptr_t address) {
    if (latest && address >= latest->start && address < latest->end) return latest;
    for (Watched& each : watched)
        if (address >= each.start && address < each.end) return latest = &each;
    return nullptr;  // a local variable
}

// Whether what `visit` did is over, and seen, for this thread.
inline bool is_over(const Visit& visit) {
    const unsigned own = thread_index.x;
    if (visit.block != block_index.x) return false;
    if (visit.thread == own || visit.barriers < barriers_passed) return true;
    return visit.thread / LANES == own / LANES && meetings[own][visit.thread % LANES] > visit.meetings;
}

[[noreturn]] inline void refuse(Access access, const Watched& in, size_t byte, const char* before, const Visit& visit) {
    static const char* const NOW[] = {"reads", "loads past the caches", "writes", "changes by an atomic"};
    char where[40] = "shared memory";
    if (in.argument >= 0) snprintf(where, sizeof(where), "the array of argument %d", in.argument);
    fail({"", 0}, "%s byte %zu of %s, which thread %u of block %u %s", NOW[access], byte, where, visit.thread,
         visit.block, before);
}

void touch(const void* place, size_t bytes, Access access) {
    const uintptr_t address = (uintptr_t)place;
    Watched* const in = holder(address);
    if (!in) return;
    if (bytes < in->grain && in->grain > SMALLEST) refine(*in);
    const unsigned own = thread_index.x;
    const Visit visit{block_index.x, barriers_passed, meetings[own][own % LANES], (uint16_t)own, true, access == ATOMIC};
    const size_t grain = in->grain, shift = grain == USUAL ? 2 : 1, end = address + bytes - in->start;
    if (in->argument < 0) shared_touched = std::max(shared_touched, end / SMALLEST + 1);
    for (size_t byte = (address - in->start) >> shift << shift; byte < end; byte += grain) {
        Cell& cell = in->cells[byte >> shift];
        if (cell.write.is_there) {
            if (access == READ_ONLY) refuse(access, *in, byte, "wrote", cell.write);
            if (!is_over(cell.write) && !(access == ATOMIC && cell.write.is_atomic))
                refuse(access, *in, byte, "wrote, with nothing in between that orders it", cell.write);
        }
        if (access == READ || access == READ_ONLY) {
            cell.is_read_only |= access == READ_ONLY;
            Visit* kept = &cell.reads[cell.oldest];
            for (Visit& read : cell.reads)
                if (read.is_there && read.thread == own && read.block == visit.block) kept = &read;
            if (kept == &cell.reads[cell.oldest]) cell.oldest = cell.oldest + 1 == READERS ? 0 : cell.oldest + 1;
            *kept = visit;
            continue;
        }
        for (const Visit& read : cell.reads) {
            if (read.is_there && cell.is_read_only) refuse(access, *in, byte, "loaded past the caches", read);
            if (read.is_there && !is_over(read))
                refuse(access, *in, byte, "read, with nothing in between that orders it", read);
        }
        cell = {visit, {}, 0, cell.is_read_only};
    }
}

}  // namespace emulator

// Memory of an argument of the next launch.
extern "C" void emulator_watch(uintptr_t start, uintptr_t end, int argument) { emulator::watch(start, end, argument); }
extern "C" void emulator_forget() { emulator::forget_all(); }

// What g++ calls.
#define ON_ACCESS(name, bytes, access) \
    extern "C" void __tsan_##name##bytes(void* place) { emulator::touch(place, bytes, emulator::access); }
#define ON_ACCESSES(bytes)                     \
    ON_ACCESS(read, bytes, READ)               \
    ON_ACCESS(write, bytes, WRITE)             \
    ON_ACCESS(unaligned_read, bytes, READ)     \
    ON_ACCESS(unaligned_write, bytes, WRITE)   \
    ON_ACCESS(volatile_read, bytes, READ)      \
    ON_ACCESS(volatile_write, bytes, WRITE)
ON_ACCESSES(1)
ON_ACCESSES(2)
ON_ACCESSES(4)
ON_ACCESSES(8)
ON_ACCESSES(16)
extern "C" void __tsan_read_range(void* place, size_t bytes) { emulator::touch(place, bytes, emulator::READ); }
extern "C" void __tsan_write_range(void* place, size_t bytes) { emulator::touch(place, bytes, emulator::WRITE); }
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
