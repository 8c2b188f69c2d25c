// Fences and what they order together with atomics and volatile accesses: PTX's fence-fence synchronisation.
//
// A fence followed by a strong write passes on what the thread knew at the fence; a strong read of that write, or of a
// read-modify-write that follows it, followed by a fence, learns it. A fence of block scope does so within the block only.
#ifndef EMU_ORDERING_HPP
#define EMU_ORDERING_HPP

#include "model.hpp"

namespace emu {

void fence(Thread& thread, Scope scope);
/// A strong write by `thread` is about to happen. A read-modify-write passes on what the value before it passed on.
void write_released(Thread& thread, std::uintptr_t address, bool is_read_modify_write);
/// A strong read by `thread` is about to happen.
void read_released(Thread& thread, std::uintptr_t address);

}   // namespace emu

#endif
