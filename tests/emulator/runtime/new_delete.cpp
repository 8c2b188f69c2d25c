// The program's new and delete. In a kernel they are the device's malloc and free, and new returns null when there is no
// memory, as in CUDA.
#include "device_memory.hpp"

#include <cstdlib>
#include <new>

#define SITE reinterpret_cast<emu::Site>(__builtin_return_address(0))

namespace {

void* make(std::size_t bytes, emu::Site site) {
    if (bytes == 0) bytes = 1;
    if (emu::current != nullptr) return emu::heap_allocate(bytes, site);
    void* const memory = std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

void destroy(void* address, emu::Site site) {
    if (emu::current != nullptr) emu::heap_free(address, site);
    else std::free(address);
}

}   // namespace

void* operator new(std::size_t bytes) { return make(bytes, SITE); }
void* operator new[](std::size_t bytes) { return make(bytes, SITE); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return emu::current != nullptr ? emu::heap_allocate(bytes, SITE) : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return emu::current != nullptr ? emu::heap_allocate(bytes, SITE) : std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* address) noexcept { destroy(address, SITE); }
void operator delete[](void* address) noexcept { destroy(address, SITE); }
void operator delete(void* address, std::size_t) noexcept { destroy(address, SITE); }
void operator delete[](void* address, std::size_t) noexcept { destroy(address, SITE); }
