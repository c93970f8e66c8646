// Runs the threads of a block as fibers, block after block, and tells what goes wrong by kernel, block and thread.
#include "accesses.h"
#include "cuda.h"
#include "order.h"
#include "switch.h"

#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <sys/mman.h>
#include <map>
#include <vector>

namespace emulator {

Index thread_index, block_index, block_size, grid_size;

namespace {

constexpr size_t STACK = 64 << 10, GUARD = 4096, SHARED_BYTES = 48 << 10;
constexpr int WARP = 32;

enum State { READY, AT_BARRIER, IN_WARP, FINISHED };

struct Fiber {
    Context context;
    char* stack;
    State state;
    Place place;
    Operation operation;
    unsigned mask;
    uint64_t value, result;
    int argument, width;
};

std::vector<Fiber> fibers;
Context scheduler;
int current;
// Threads of the block that have returned, those that wait at a barrier, and where, which is the same place for all.
unsigned returned_count, barrier_count;
Place barrier_place;
bool failed;
const char* kernel_name;
void (*kernel_body)(void**);
void** kernel_args;
char* message;
size_t message_size;
alignas(64) char shared_memory[SHARED_BYTES];
std::map<const void*, size_t> declared;
size_t shared_used;
sigjmp_buf on_signal;

void describe(Place place, const char* format, va_list rest) {
    int n = snprintf(message, message_size, "%s: block %u, thread %u", kernel_name, block_index.x, thread_index.x);
    if (place.line) n += snprintf(message + n, message_size - n, " at %s:%d", place.file, place.line);
    n += snprintf(message + n, message_size - n, ": ");
    vsnprintf(message + n, message_size - n, format, rest);
    failed = true;
}

// From the scheduler itself.
void report(int thread, Place place, const char* format, ...) {
    thread_index.x = thread;
    va_list rest;
    va_start(rest, format);
    describe(place, format, rest);
    va_end(rest);
}

void leave() { emulator_switch(&fibers[current].context, &scheduler); }

void enter() {
    kernel_body(kernel_args);
    fibers[current].state = FINISHED;
    returned_count++;
    leave();
}

void prepare(Fiber& fiber) {
    fiber.state = READY;
    start_context(fiber.context, fiber.stack + GUARD, STACK, enter);
}

void make_fibers(size_t count) {
    while (fibers.size() < count) {
        Fiber fiber{};
        fiber.stack = (char*)mmap(nullptr, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(fiber.stack, GUARD, PROT_NONE);
        fibers.push_back(fiber);
    }
}

const char* WAITS[] = {"ready", "at a barrier", "for lanes of its warp", "returned"};

// Nothing can run and not all have returned: say who waits where for whom.
void report_deadlock() {
    const int count = (int)block_size.x;
    for (int t = 0; t < count; t++) {
        const Fiber& waiting = fibers[t];
        if (waiting.state != AT_BARRIER && waiting.state != IN_WARP) continue;
        for (int other = 0; other < count; other++) {
            const bool is_met = waiting.state == AT_BARRIER
                                    ? fibers[other].state == AT_BARRIER
                                    : other / WARP != t / WARP || !(waiting.mask >> (other % WARP) & 1) ||
                                          fibers[other].state == IN_WARP;
            if (is_met) continue;
            report(t, waiting.place, "waits %s that thread %d does not reach; that one %s%s", WAITS[waiting.state], other,
                   fibers[other].state == FINISHED ? "has " : "waits ", WAITS[fibers[other].state]);
            return;
        }
    }
    report(0, {"", 0}, "threads wait for each other");
}

void run_block(std::vector<unsigned>& order) {
    std::memset(shared_memory, 0xff, SHARED_BYTES);  // NaN and -1
    begin_block(shared_memory, SHARED_BYTES);
    returned_count = barrier_count = 0;
    for (unsigned t = 0; t < block_size.x; t++) prepare(fibers[t]);
    if (is_unfair) order_warps(order, WARP);
    while (returned_count < block_size.x) {
        bool has_run = false;
        if (!is_unfair) permute(order);
        for (unsigned t : order) {
            if (fibers[t].state != READY) continue;
            current = (int)t;
            thread_index = {t, 0, 0};
            has_run = true;
            emulator_switch(&scheduler, &fibers[t].context);
            if (failed) return;
            if (is_unfair && fibers[t].state != FINISHED) break;
        }
        if (!has_run) return report_deadlock();
    }
}

int lane_of(int thread) { return thread % WARP; }

bool is_same(Place one, Place other) {
    return one.line == other.line && (one.file == other.file || !std::strcmp(one.file, other.file));
}

uint64_t result_of(Fiber* lanes, int lane) {
    const Fiber& own = lanes[lane];
    const int width = own.width, inside = lane & (width - 1), base = lane - inside;  // a power of two, as CUDA has it
    int source = lane;
    uint64_t found = 0;
    switch (own.operation) {
        case SYNC: return 0;
        case BALLOT:
        case MATCH:
            for (int other = 0; other < WARP; other++)
                if (own.mask >> other & 1 && (own.operation == MATCH ? lanes[other].value == own.value : lanes[other].value))
                    found |= 1u << other;
            return found;
        case SHUFFLE: source = base + (own.argument & (width - 1)); break;
        case SHUFFLE_XOR: source = (inside ^ own.argument) < width ? base + (inside ^ own.argument) : lane; break;
        case SHUFFLE_UP: source = inside >= own.argument ? lane - own.argument : lane; break;
        case SHUFFLE_DOWN: source = inside + own.argument < width ? lane + own.argument : lane; break;
    }
    if (!(own.mask >> source & 1))
        fail(own.place, "lane %d reads lane %d, which is not in its mask %08x", lane, source, own.mask);
    return lanes[source].value;
}

void on_fault(int signal, siginfo_t* info, void*) {
    const int n = snprintf(message, message_size, "%s: block %u, thread %u: ", kernel_name, block_index.x, thread_index.x);
    if (signal == SIGFPE)
        snprintf(message + n, message_size - n, "divides by zero");
    else
        snprintf(message + n, message_size - n, "touches address %p", info->si_addr);
    failed = true;
    siglongjmp(on_signal, 1);
}

}  // namespace

void fail(Place place, const char* format, ...) {
    va_list rest;
    va_start(rest, format);
    describe(place, format, rest);
    va_end(rest);
    for (;;) leave();
}

void* shared(const void* declaration, size_t bytes, size_t alignment) {
    const auto found = declared.find(declaration);
    if (found != declared.end()) return shared_memory + found->second;
    const size_t start = (shared_used + alignment - 1) / alignment * alignment;
    if (start + bytes > SHARED_BYTES) fail({"", 0}, "declares more than 48 KiB of shared memory");
    shared_used = start + bytes;
    declared[declaration] = start;
    return shared_memory + start;
}

// Why the current thread may not wait at a barrier there: another thread has returned, or waits at another one.
[[noreturn]] void refuse_barrier(Place place) {
    for (unsigned t = 0; t < block_size.x; t++) {
        const Fiber& other = fibers[t];
        if (other.state == FINISHED) fail(place, "waits at a barrier that thread %u does not reach; that one has returned", t);
        if (other.state == AT_BARRIER && !is_same(other.place, place))
            fail(place, "waits at a barrier while thread %u waits at that of line %d", t, other.place.line);
    }
    fail(place, "waits at a barrier that was miscounted");
}

void barrier(Place place) {
    if (returned_count || (barrier_count && !is_same(barrier_place, place))) refuse_barrier(place);
    Fiber& own = fibers[current];
    own.state = AT_BARRIER;
    own.place = barrier_place = place;
    if (++barrier_count < block_size.x) return leave();
    barriers_passed++;
    barrier_count = 0;
    for (unsigned t = 0; t < block_size.x; t++) fibers[t].state = READY;
}

uint64_t meet(Operation operation, unsigned mask, uint64_t value, int argument, int width, Place place) {
    const int lane = lane_of(current), first = current - lane;
    Fiber* lanes = &fibers[first];
    Fiber& own = lanes[lane];
    own.operation = operation, own.mask = mask, own.value = value, own.argument = argument, own.width = width;
    own.place = place;
    own.state = IN_WARP;
    if (!(mask >> lane & 1)) fail(place, "lane %d is not in its own mask %08x", lane, mask);
    bool all_here = true;
    for (int other = 0; other < WARP; other++) {
        if (!(mask >> other & 1)) continue;
        if (first + other >= (int)block_size.x || lanes[other].state == FINISHED)
            fail(place, "lane %d of mask %08x is not there", other, mask);
        if (lanes[other].state != IN_WARP)
            all_here = false;
        else if (lanes[other].mask != mask || lanes[other].operation != operation)
            fail(place, "lane %d of mask %08x waits in line %d with mask %08x", other, mask, lanes[other].place.line,
                 lanes[other].mask);
    }
    if (!all_here) {
        leave();
        return own.result;
    }
    for (int other = 0; other < WARP; other++)
        if (mask >> other & 1) lanes[other].result = result_of(lanes, other);
    for (int other = 0; other < WARP; other++)
        if (mask >> other & 1) lanes[other].state = READY;
    if (operation == SYNC) lanes_met(first, mask);
    return own.result;
}

}  // namespace emulator

using namespace emulator;

// Runs all blocks, in an order that the seed gives: 0 ascending, odd fair, even unfair; returns 0, or 1 with a message.
extern "C" int emulator_run(
    const char* name, unsigned blocks, unsigned threads, uint64_t seed, void (*body)(void**), void** args, char* text,
    size_t size) {
    static char handler_stack[64 << 10];
    kernel_name = name, kernel_body = body, kernel_args = args, message = text, message_size = size, failed = false;
    grid_size = {blocks, 1, 1}, block_size = {threads, 1, 1};
    random_state = seed * 0x9e3779b97f4a7c15ull;
    is_unfair = seed && seed % 2 == 0;
    make_fibers(threads);
    declared.clear();
    shared_used = 0;
    stack_t own_stack{handler_stack, 0, sizeof(handler_stack)}, old_stack;
    struct sigaction action {}, old_fault, old_bus, old_arithmetic;
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaltstack(&own_stack, &old_stack);
    sigaction(SIGSEGV, &action, &old_fault);
    sigaction(SIGBUS, &action, &old_bus);
    sigaction(SIGFPE, &action, &old_arithmetic);
    std::vector<unsigned> order(threads), block_order(blocks);
    for (unsigned t = 0; t < threads; t++) order[t] = t;
    for (unsigned b = 0; b < blocks; b++) block_order[b] = b;
    permute(block_order);
    if (sigsetjmp(on_signal, 1) == 0)
        for (unsigned b = 0; b < blocks && !failed; b++) {
            block_index = {block_order[b], 0, 0};
            run_block(order);
        }
    sigaction(SIGSEGV, &old_fault, nullptr);
    sigaction(SIGBUS, &old_bus, nullptr);
    sigaction(SIGFPE, &old_arithmetic, nullptr);
    sigaltstack(&old_stack, nullptr);
    return failed;
}
