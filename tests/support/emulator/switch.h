// From one stack to another: in a few instructions on x86-64, by the C library elsewhere.
#pragma once
#include <cstddef>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulator {

#if defined(__x86_64__)
// Callee-saved registers are all that a switch by a call has to keep.
asm(R"(
.text
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
extern "C" void emulator_switch(void** from, void** to) asm("emulator_switch");
typedef void* Context;
#else
typedef ucontext_t Context;
void emulator_switch(Context* from, Context* to) { swapcontext(from, to); }
#endif

// A context that begins with a call of `enter`, which must not return, on the stack given.
inline void start_context(Context& context, char* stack, size_t size, void (*enter)()) {
#if defined(__x86_64__)
    void** top = (void**)(stack + size);
    *--top = nullptr;  // where `enter` would return to
    *--top = (void*)enter;
    for (int saved = 0; saved < 6; saved++) *--top = nullptr;
    context = top;
#else
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = size;
    context.uc_link = nullptr;
    makecontext(&context, enter, 0);
#endif
}

}  // namespace emulator
