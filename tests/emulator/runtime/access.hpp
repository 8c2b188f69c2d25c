// Checks of accesses to memory: bounds, lifetime, written before read, and races.
#ifndef EMU_ACCESS_HPP
#define EMU_ACCESS_HPP

#include "fiber.hpp"
#include "memory.hpp"

namespace emu {

/// Sites are kept in 31 bits: relative to the program's start.
std::uint32_t short_site(Site site);
Site long_site(std::uint32_t site);

/// Whether `thread` knows of everything up to this point: it happened before.
bool knows(Thread& thread, Epoch epoch);

/// An access of any size by an actor, outside of the instrumentation: a copy, memset in a kernel.
void check_range(Thread& by, std::uintptr_t address, std::size_t bytes, bool write, Site site);
/// The same where reading what nobody has written is no fault: copies of structures with padding.
void check_copy(Thread& by, std::uintptr_t to, std::uintptr_t from, std::size_t bytes, Site site);
/// A function of CUDA's stores a result for its caller: in a kernel that is a write like any other.
template <class T>
void give(T* to, T value) {
    if (current != nullptr && reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(current->stack) >= kStackBytes)
        check_range(*current, reinterpret_cast<std::uintptr_t>(to), sizeof(T), true, reinterpret_cast<Site>(__builtin_return_address(0)));
    *to = value;
}
/// Memory is taken away: like a write to all of it.
void check_free(Thread& by, Allocation& freed, Site site);

/// An atomic or volatile access of the current thread. False if the address is one of the thread's own, where nobody else is.
bool check_strong(std::uintptr_t address, unsigned bytes, bool read, bool write, Scope scope, Site site);
/// A read-modify-write works on global and shared memory alone: a GPU traps where a pointer leads into local memory.
void check_not_local(std::uintptr_t address, unsigned bytes, Site site);
/// The set of strong accesses of a location, made if `make`; null for memory without a shadow.
StrongSet* strong_set(std::uintptr_t address, bool make);

/// A write that was unordered with another access has happened meanwhile: has it changed the value?
void resolve_same_value();

/// Whether the pointer may be used by CUDA's functions; for them to return an error where it isn't.
Allocation* live_allocation(std::uintptr_t address, std::size_t bytes);

}   // namespace emu

#endif
