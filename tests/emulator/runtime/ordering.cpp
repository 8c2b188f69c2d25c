#include "own_new.hpp"

#include "ordering.hpp"

#include "access.hpp"
#include "scheduler.hpp"
#include "settings.hpp"

#include <algorithm>
#include <cstring>

#define SITE reinterpret_cast<emu::Site>(__builtin_return_address(0))

namespace emu {

namespace {

constexpr std::size_t kLongLog = 1024;

Ordering& ordering_of(Thread& thread) {
    if (thread.ordering == nullptr) thread.ordering = new Ordering;
    return *thread.ordering;
}

// One entry for each block instead of one for each write.
Ptr<ReleaseLog> shortened(const ReleaseLog& log) {
    Ptr<ReleaseLog> result(new ReleaseLog);
    std::vector<ReleaseLog::Entry> sorted = log.entries;
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.block_id < b.block_id; });
    for (const ReleaseLog::Entry& entry : sorted) {
        if (result->entries.empty() || result->entries.back().block_id != entry.block_id) {
            result->entries.push_back(entry);
        } else {
            join(result->entries.back().block, entry.block);
            join(result->entries.back().device, entry.device);
        }
    }
    return result;
}

std::uint64_t load(const volatile void* address, unsigned bytes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, const_cast<const void*>(address), bytes);
    return bits;
}

}   // namespace

void fence(Thread& thread, Scope scope) {
    Ordering& ordering = ordering_of(thread);
    for (const Ordering::Seen& seen : ordering.seen) {
        for (std::size_t i = 0; i < seen.length; ++i) {
            const ReleaseLog::Entry& entry = seen.log->entries[i];
            if (entry.block_id == thread.block->id) acquire(thread, entry.block);
            else if (scope != Scope::Block) acquire(thread, entry.device);
        }
    }
    if (scope != Scope::Block) ordering.seen.clear();
    const KnowledgePtr passed_on = release(thread);
    ordering.block_release = passed_on;
    if (scope != Scope::Block) ordering.device_release = passed_on;
}

void write_released(Thread& thread, std::uintptr_t address, bool is_read_modify_write) {
    const Ordering* const ordering = thread.ordering;
    const bool releases = ordering != nullptr && ordering->block_release;
    StrongSet* const set = strong_set(address, releases);
    if (set == nullptr) return;
    if (!is_read_modify_write) set->log = Ptr<ReleaseLog>();
    if (!releases) return;
    if (!set->log) set->log = Ptr<ReleaseLog>(new ReleaseLog);
    else if (set->log->entries.size() >= kLongLog && (set->log->entries.size() & (set->log->entries.size() - 1)) == 0)
        set->log = shortened(*set->log);
    set->log->entries.push_back({ordering->block_release, ordering->device_release, thread.block->id});
}

void read_released(Thread& thread, std::uintptr_t address) {
    const StrongSet* const set = strong_set(address, false);
    if (set == nullptr || !set->log) return;
    auto& seen = ordering_of(thread).seen;
    for (Ordering::Seen& one : seen) {
        if (one.log == set->log) {
            one.length = set->log->entries.size();
            return;
        }
    }
    seen.push_back({set->log, set->log->entries.size()});
}

namespace rt {

void fence(Scope scope) {
    if (current == nullptr) return;
    resolve_same_value();
    emu::fence(*current, scope);
}

std::uint64_t atomic_load(const volatile void* address, unsigned bytes, Scope scope, bool will_write) {
    if (current != nullptr) {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        spin();
        if (will_write) check_not_local(at, bytes, SITE);
        if (check_strong(at, bytes, true, will_write, scope, SITE)) read_released(*current, at);
    }
    return load(address, bytes);
}

void atomic_store(volatile void* address, unsigned bytes, std::uint64_t bits, Scope scope, bool is_read_modify_write) {
    if (current != nullptr) {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        if (!is_read_modify_write && !check_strong(at, bytes, false, true, scope, SITE)) {
            std::memcpy(const_cast<void*>(address), &bits, bytes);
            return;
        }
        write_released(*current, at, is_read_modify_write);
        if (load(address, bytes) != bits) ++progress;
    }
    std::memcpy(const_cast<void*>(address), &bits, bytes);
}

}   // namespace rt

}   // namespace emu

// --------------------------------------------------------- what g++ -fsanitize=thread calls in place of std::atomic

namespace {

bool acquires(int order) { return order == 1 || order == 2 || order == 4 || order == 5; }
bool releases(int order) { return order == 3 || order == 4 || order == 5; }

// In a kernel a plain operation is atomic: nothing else runs between check_strong and its end.
template <class T, class F>
T modify(volatile T* address, int order, emu::Site site, F&& next) {
    using namespace emu;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (releases(order)) fence(*current, Scope::System);
    spin();
    check_not_local(at, sizeof(T), site);
    const bool shared = check_strong(at, sizeof(T), true, true, Scope::System, site);
    if (shared) read_released(*current, at);
    const T old = *address;
    T value = old;
    if (next(old, value)) {
        if (shared) write_released(*current, at, true);
        if (value != old) ++progress;
        *address = value;
    }
    if (acquires(order)) fence(*current, Scope::System);
    return old;
}

template <class T>
T load_atomic(const volatile T* address, int order, emu::Site site) {
    using namespace emu;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    spin();
    if (check_strong(at, sizeof(T), true, false, Scope::System, site)) read_released(*current, at);
    const T value = *address;
    if (acquires(order)) fence(*current, Scope::System);
    return value;
}

template <class T>
void store_atomic(volatile T* address, T value, int order, emu::Site site) {
    using namespace emu;
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (releases(order)) fence(*current, Scope::System);
    if (check_strong(at, sizeof(T), false, true, Scope::System, site)) write_released(*current, at, false);
    ++progress;
    *address = value;
}

}   // namespace

#define ATOMIC(bits, T)                                                                                                   \
    T __tsan_atomic##bits##_load(const volatile T* a, int order) {                                                        \
        return emu::current != nullptr ? load_atomic(a, order, SITE) : __atomic_load_n(a, __ATOMIC_SEQ_CST);              \
    }                                                                                                                     \
    void __tsan_atomic##bits##_store(volatile T* a, T v, int order) {                                                     \
        if (emu::current != nullptr) store_atomic(a, v, order, SITE);                                                     \
        else __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                                    \
    }                                                                                                                     \
    T __tsan_atomic##bits##_exchange(volatile T* a, T v, int order) {                                                     \
        if (emu::current == nullptr) return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                  \
        return modify(a, order, SITE, [v](T, T& next) { next = v; return true; });                                        \
    }                                                                                                                     \
    ATOMIC_FETCH(bits, T, add, next = T(old + v))                                                                         \
    ATOMIC_FETCH(bits, T, sub, next = T(old - v))                                                                         \
    ATOMIC_FETCH(bits, T, and, next = T(old & v))                                                                         \
    ATOMIC_FETCH(bits, T, or, next = T(old | v))                                                                          \
    ATOMIC_FETCH(bits, T, xor, next = T(old ^ v))                                                                         \
    ATOMIC_FETCH(bits, T, nand, next = T(~(old & v)))                                                                     \
    bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* expected, T v, int order, int) {                 \
        if (emu::current == nullptr) return __atomic_compare_exchange_n(a, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
        const T wanted = *expected;                                                                                       \
        const T old = modify(a, order, SITE, [v, wanted](T o, T& next) { next = v; return o == wanted; });                \
        *expected = old;                                                                                                  \
        return old == wanted;                                                                                             \
    }                                                                                                                     \
    bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* expected, T v, int order, int failure) {           \
        return __tsan_atomic##bits##_compare_exchange_strong(a, expected, v, order, failure);                             \
    }                                                                                                                     \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T* a, T expected, T v, int order, int failure) {                \
        __tsan_atomic##bits##_compare_exchange_strong(a, &expected, v, order, failure);                                   \
        return expected;                                                                                                  \
    }
#define ATOMIC_FETCH(bits, T, name, expression)                                                                           \
    T __tsan_atomic##bits##_fetch_##name(volatile T* a, T v, int order) {                                                 \
        if (emu::current == nullptr) return __atomic_fetch_##name(a, v, __ATOMIC_SEQ_CST);                                \
        return modify(a, order, SITE, [v](T old, T& next) { expression; return true; });                                  \
    }

extern "C" {
ATOMIC(8, std::uint8_t)
ATOMIC(16, std::uint16_t)
ATOMIC(32, std::uint32_t)
ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int order) {
    if (emu::current != nullptr && order != 0) emu::fence(*emu::current, emu::Scope::System);
    else __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}
}
