// Memory functions in kernels: malloc and free, memcpy and memset, shared variables.
#include "own_new.hpp"

#include "device_memory.hpp"

#include "access.hpp"
#include "fiber.hpp"
#include "report.hpp"
#include "scheduler.hpp"
#include "stream.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#define SITE reinterpret_cast<emu::Site>(__builtin_return_address(0))

namespace emu {

std::size_t heap_limit = 8 << 20;

namespace {

constexpr std::size_t kMostSharedPlain = 227 * 1024;
std::size_t heap_bytes = 0;

void check_shared_total(const Block& block) {
    std::size_t total = block.dynamic_shared != nullptr ? block.dynamic_shared->bytes : 0;
    for (const SharedVariable& variable : block.shared) total += variable.allocation->bytes;
    if (total > kMostSharedPlain) fatal("launch-error", kernel_name(*block.grid) + " uses more shared memory than there is: " + number(total) + " bytes");
}

}   // namespace

void* heap_allocate(std::size_t bytes, Site site) {
    resolve_same_value();
    bytes = std::max(bytes, std::size_t(1));   // a place of its own, as on an H100
    if (bytes > heap_limit || heap_bytes + bytes > heap_limit) return nullptr;
    Allocation* const made = allocate(Allocation::Kind::Heap, bytes, 16);
    if (made == nullptr) return nullptr;
    heap_bytes += bytes;
    made->allocated_by = current->epoch;
    made->allocated_at = short_site(site);
    return reinterpret_cast<void*>(made->begin);
}

void heap_free(void* address, Site site) {
    resolve_same_value();
    if (address == nullptr) return;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    Allocation* const a = in_arena(at) ? &allocation_at(at) : nullptr;
    if (a == nullptr || a->number == 0 || a->begin != at || a->kind != Allocation::Kind::Heap)
        fatal("invalid-argument", "free of a pointer that is not from malloc in a kernel", {{"free", at, 0, current->epoch, site}});
    if (a->state == Allocation::State::Free)
        fatal("double-free", "free of " + describe(*a) + ", which has been freed", {{"free", at, a->bytes, current->epoch, site}, {"free", at, a->bytes, a->freed_by, long_site(a->freed_at)}});
    if (--accesses_to_switch <= 0) {
        count_down();
        if (a->state == Allocation::State::Free) return heap_free(address, site);   // meanwhile
    }
    check_free(*current, *a, site);
    a->freed_by = current->epoch;
    a->freed_at = short_site(site);
    heap_bytes -= a->bytes;
    release(*a);
}

namespace rt {

bool in_kernel() { return current != nullptr; }

void* shared(const SharedKey* key, std::size_t bytes, std::size_t alignment) {
    if (current == nullptr) fatal("unsupported", "host code uses a __shared__ variable");
    Block& block = *current->block;
    for (const SharedVariable& variable : block.shared)
        if (variable.key == key) return reinterpret_cast<void*>(variable.allocation->begin);
    Allocation* const made = take_shared(block, Allocation::Kind::Shared, bytes, alignment);
    block.shared.push_back({key, made});
    check_shared_total(block);
    return reinterpret_cast<void*>(made->begin);
}

void* dynamic_shared(std::size_t alignment) {
    if (current == nullptr) fatal("unsupported", "host code uses __shared__ memory");
    Block& block = *current->block;
    if (block.dynamic_shared == nullptr) {
        block.dynamic_shared = take_shared(block, Allocation::Kind::DynamicShared, block.grid->shape.shared_bytes, alignment);
        check_shared_total(block);
    }
    return reinterpret_cast<void*>(block.dynamic_shared->begin);
}

unsigned dynamic_shared_bytes() { return current == nullptr ? 0 : static_cast<unsigned>(current->block->grid->shape.shared_bytes); }

void* device_malloc(std::size_t bytes) { return current != nullptr ? heap_allocate(bytes, SITE) : std::malloc(bytes); }

void device_free(void* address) {
    if (current != nullptr) heap_free(address, SITE);
    else std::free(address);
}

void copy(void* to, const void* from, std::size_t bytes) {
    if (current != nullptr && bytes != 0) {
        resolve_same_value();
        if (--accesses_to_switch <= 0) count_down();
        check_copy(*current, reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from), bytes, SITE);
    }
    std::memmove(to, from, bytes);
}

void fill(void* to, int value, std::size_t bytes) {
    if (current != nullptr && bytes != 0) {
        const auto at = reinterpret_cast<std::uintptr_t>(to);
        resolve_same_value();
        if (--accesses_to_switch <= 0) count_down();
        if (at - reinterpret_cast<std::uintptr_t>(current->stack) >= kStackBytes) check_range(*current, at, bytes, true, SITE);
    }
    std::memset(to, value, bytes);
}

unsigned lane() { return current == nullptr ? 0 : current->lane(); }
unsigned warp() { return current == nullptr ? 0 : current->warp(); }
unsigned sm() { return current == nullptr ? 0 : current->block->id % static_cast<unsigned>(max_resident()); }

unsigned long long clock() {
    static unsigned long long ticks = 0;
    return ticks += 16;
}

void sleep() {
    if (current != nullptr) yield();
}

void trap() {
    const Site site = SITE;
    if (current == nullptr) std::abort();
    fatal("trap", "__trap() at " + describe_site(site) + " by " + describe(*current));
}

}   // namespace rt

}   // namespace emu

// assert() in a kernel.
extern "C" [[noreturn]] void __assert_fail(const char* expression, const char* file, unsigned line, const char* function) noexcept {
    if (emu::current != nullptr)
        emu::fatal("trap", emu::Text("assert(") + expression + ") fails at " + file + ":" + emu::number(line) + " by " + emu::describe(*emu::current));
    std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
    std::abort();
}
