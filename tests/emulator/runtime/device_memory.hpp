// The heap of kernels.
#ifndef EMU_DEVICE_MEMORY_HPP
#define EMU_DEVICE_MEMORY_HPP

#include "model.hpp"

namespace emu {

/// malloc of the current thread of a kernel; null when the heap is used up.
void* heap_allocate(std::size_t bytes, Site site);
void heap_free(void* address, Site site);

}   // namespace emu

#endif
