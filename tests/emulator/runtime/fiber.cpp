#include "own_new.hpp"

#include "fiber.hpp"

#include "memory.hpp"
#include "report.hpp"

#include <algorithm>
#include <vector>

// A switch is a function call to the compiler, so only what a call preserves is saved (System V x86-64 ABI). The control
// words of the floating point units belong to that, but no device code changes them.
asm(R"(
.text
.p2align 4
.globl emu_switch_stack
.type emu_switch_stack, @function
emu_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emu_switch_stack, .-emu_switch_stack
.p2align 4
.type emu_fiber_entry, @function
emu_fiber_entry:
    subq $248, %rsp
    call *%r12
    ud2
.size emu_fiber_entry, .-emu_fiber_entry
.globl emu_fiber_entry
)");
extern "C" void emu_fiber_entry();

namespace emu {

namespace {
std::vector<char*> free_stacks;
std::size_t stacks_made = 0;
std::vector<char*> never_again;
}   // namespace

void reserve_stacks() { reserve(kStackBase, kMaxStacks * kStackBytes, "stacks"); }

char* take_stack() {
    if (!free_stacks.empty()) {
        char* const stack = free_stacks.back();
        free_stacks.pop_back();
        return stack;
    }
    if (stacks_made == kMaxStacks) fatal("unsupported", "more than " + number(kMaxStacks) + " threads have started and not ended");
    return reinterpret_cast<char*>(kStackBase) + kStackBytes * stacks_made++;
}

void give_stack(char* stack) {
    if (!never_again.empty() && std::find(never_again.begin(), never_again.end(), stack) != never_again.end()) return;
    free_stacks.push_back(stack);
}

void never_reuse(std::uintptr_t address) {
    char* const stack = reinterpret_cast<char*>(address - (address - kStackBase) % kStackBytes);
    if (std::find(never_again.begin(), never_again.end(), stack) == never_again.end()) never_again.push_back(stack);
}

// What emu_switch_stack pops: six registers, then where to return to. emu_fiber_entry leaves the top 256 bytes alone
// (and a stack pointer that the ABI's alignment holds for), so that this can be written while a fiber that has ended still runs further down.
void* prepare_stack(char* stack, void (*entry)()) {
    // Stacks that all begin at the same place of a page would share a few lines of the cache.
    const std::size_t colour = (reinterpret_cast<std::uintptr_t>(stack) - kStackBase) / kStackBytes % 48 * 64;
    auto* const top = reinterpret_cast<std::uintptr_t*>(stack + kStackBytes - colour);
    std::uintptr_t* const frame = top - 8;
    for (int i = 0; i < 6; ++i) frame[i] = 0;
    frame[3] = reinterpret_cast<std::uintptr_t>(entry);              // r12
    frame[6] = reinterpret_cast<std::uintptr_t>(&emu_fiber_entry);   // returned to
    return frame;
}

}   // namespace emu
