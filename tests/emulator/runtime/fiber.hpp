// Stacks of their own for threads, and switching between them.
#ifndef EMU_FIBER_HPP
#define EMU_FIBER_HPP

#include <cstddef>
#include <cstdint>

namespace emu {

/// Virtual; pages are only used when touched. Enough for printf and deep recursion in device code.
constexpr std::size_t kStackBytes = 128 * 1024;
constexpr std::uintptr_t kStackBase = 0x1a00'0000'0000;
constexpr std::size_t kMaxStacks = 64 * 1024;
/// Less than this left is an overflow.
constexpr std::size_t kStackReserve = 8 * 1024;

void reserve_stacks();
char* take_stack();
/// The stack may still be in use until the next switch: a new fiber overwrites its top only.
void give_stack(char* stack);
/// A pointer into this stack has been passed on: no other thread gets it, so that a use of the pointer is found out.
void never_reuse(std::uintptr_t address);
/// The stack pointer of a fiber that will call `entry`, which never returns.
void* prepare_stack(char* stack, void (*entry)());

inline bool is_stack(std::uintptr_t address) { return address - kStackBase < kMaxStacks * kStackBytes; }

/// Saves the registers that a call preserves, keeps the stack pointer in `*save` and goes on where `load` was saved.
extern "C" void emu_switch_stack(void** save, void* load);

}   // namespace emu

#endif
