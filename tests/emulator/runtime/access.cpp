// The checks follow FastTrack (Flanagan & Freund, PLDI 2009), with strong accesses (atomics, volatile) of the PTX memory
// model as a class of their own:
//   plain read    must know the last plain write
//   plain write   must know the last plain write, all plain reads and all strong accesses since then
//   strong access must know the last plain write; strong accesses race with each other only where their scopes don't reach
// A plain write that changes nothing is no fault, nor is a plain read against an atomic write: see README.md.
#include "own_new.hpp"

#include "access.hpp"

#include "fiber.hpp"
#include "ordering.hpp"
#include "report.hpp"
#include "scheduler.hpp"
#include "settings.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

extern "C" char __executable_start;

namespace emu {

Numbered<AccessSet> read_sets;
Numbered<StrongSet> strong_sets;
Numbered<Split> splits;

std::uint32_t short_site(Site site) {
    return static_cast<std::uint32_t>(site - reinterpret_cast<std::uintptr_t>(&__executable_start)) & ~kSameValue;
}
Site long_site(std::uint32_t site) {
    site &= ~kSameValue;
    return site == 0 ? 0 : site + reinterpret_cast<std::uintptr_t>(&__executable_start);
}

namespace {

// A plain write, unordered with another access, that is about to happen. If it turns out to change the value, it is a race.
struct SameValue {
    bool waiting = false;
    std::uintptr_t address;
    std::size_t bytes;
    unsigned char before[16];
    ReportedAccess mine, other;
};
SameValue same_value;

[[noreturn]] void race(const ReportedAccess& mine, const ReportedAccess& other, const char* why = "") {
    fatal("race", Text("a ") + mine.what + " and a " + other.what + " of the same memory are not in order" + why, {mine, other});
}

// What one access is, for all the cells that it touches.
struct Access {
    Thread& by;
    std::uintptr_t address;
    std::size_t bytes;
    std::uint32_t site;
    bool will_happen;   // the value is in memory when the thread comes back: same-value writes can be told

    ReportedAccess mine(const char* what) const { return {what, address, bytes, by.epoch, long_site(site)}; }
    ReportedAccess other(const char* what, Epoch epoch, std::uint32_t at) const { return {what, address, bytes, epoch, long_site(at)}; }
};

const Accessor* unknown_in(Thread& by, const AccessSet& set) {
    for (const Accessor& accessor : set.list)
        if (!knows(by, accessor.by)) return &accessor;
    return nullptr;
}

// The same for what `by` writes or frees. Strong writes come before whatever a thread does that has read what they have written,
// directly or from read-modify-writes behind them (observation order is part of PTX's causality order), as in counting references.
const Accessor* unknown_in(Thread& by, const StrongSet& set) {
    const bool has_read = set.last_reader >> kClockBits == by.epoch >> kClockBits && !set.overwritten && !set.lost_reads;
    for (const Accessor& accessor : set.list)
        if (!(has_read && accessor.write) && !knows(by, accessor.by)) return &accessor;
    return nullptr;
}

__attribute__((noinline)) void read_slowly(const Access& access, Cell& cell) {
    Thread& by = access.by;
    if (cell.write != 0 && !cell.same_value() && !knows(by, cell.write)) race(access.mine("read"), access.other("write", cell.write, cell.write_site));
    if (cell.strong != 0 && (settings.strict_weak_read || access.bytes > 8)) {
        for (const Accessor& accessor : strong_sets[cell.strong].list)
            if (accessor.write && !knows(by, accessor.by)) race(access.mine("read"), access.other("atomic write", accessor.by, accessor.site));
    }
    if (is_set(cell.read)) {
        read_sets[static_cast<std::uint32_t>(cell.read)].add(by, {by.epoch, access.site, false, false});
    } else if (cell.read == 0 || knows(by, cell.read)) {
        cell.read = by.epoch;
        cell.read_site = access.site;
    } else {
        const std::uint32_t set = read_sets.make();
        read_sets[set].list = {{cell.read, cell.read_site, false, false}, {by.epoch, access.site, false, false}};
        cell.read = kReadSet | set;
    }
}

inline void read_cell(const Access& access, Cell& cell) {
    if (cell.read == access.by.epoch) return;
    read_slowly(access, cell);
}

// A conflict that counts only if the write changes the value. Returns whether that must be waited for.
bool conflict(const Access& access, const ReportedAccess& other) {
    if (!access.will_happen || settings.strict_same_value || access.bytes > sizeof same_value.before) race(access.mine("write"), other);
    if (!same_value.waiting) {
        same_value.waiting = true;
        same_value.address = access.address;
        same_value.bytes = access.bytes;
        std::memcpy(same_value.before, reinterpret_cast<const void*>(access.address), access.bytes);
        same_value.mine = access.mine("write");
        same_value.other = other;
    }
    return true;
}

__attribute__((noinline)) void write_slowly(const Access& access, Cell& cell) {
    Thread& by = access.by;
    bool undecided = false;
    if (cell.strong != 0) {
        if (const Accessor* const other = unknown_in(by, strong_sets[cell.strong]))
            race(access.mine("write"), access.other(other->write ? "atomic write" : "volatile read", other->by, other->site));
    }
    if (cell.write != 0 && !knows(by, cell.write)) undecided = conflict(access, access.other("write", cell.write, cell.write_site));
    if (is_set(cell.read)) {
        if (const Accessor* const other = unknown_in(by, read_sets[static_cast<std::uint32_t>(cell.read)]))
            undecided = conflict(access, access.other("read", other->by, other->site));
    } else if (cell.read != 0 && !knows(by, cell.read)) {
        undecided = conflict(access, access.other("read", cell.read, cell.read_site));
    }
    if (undecided) {   // if nothing changes, it is as if it had not happened, for those who know the earlier write
        cell.write_site |= kSameValue;
        return;
    }
    clear(cell);
    cell.write = by.epoch;
    cell.write_site = access.site;
}

inline void write_cell(const Access& access, Cell& cell) {
    if (cell.write == access.by.epoch && cell.read == 0 && cell.strong == 0) return;
    write_slowly(access, cell);
}

// The scope of one of two strong accesses must reach the other.
bool in_scope(const Thread& by, Scope scope, const Accessor& other) {
    return block_of(other.by) == by.block->id || (scope != Scope::Block && !other.block_scope);
}

void strong_cell(const Access& access, Cell& cell, bool read, bool write, Scope scope) {
    Thread& by = access.by;
    if (cell.write != 0 && !knows(by, cell.write))
        race(access.mine(write ? "atomic write" : "volatile read"), access.other("write", cell.write, cell.write_site));
    if (write && settings.strict_weak_read && cell.read != 0) {
        if (!is_set(cell.read)) {
            if (!knows(by, cell.read)) race(access.mine("atomic write"), access.other("read", cell.read, cell.read_site));
        } else if (const Accessor* const other = unknown_in(by, read_sets[static_cast<std::uint32_t>(cell.read)])) {
            race(access.mine("atomic write"), access.other("read", other->by, other->site));
        }
    }
    if (cell.strong == 0) cell.strong = strong_sets.make();
    StrongSet& set = strong_sets[cell.strong];
    const bool block_scope = scope == Scope::Block;
    if (block_scope || (!set.list.empty() && set.list.front().block_scope)) {
        for (const Accessor& other : set.list)
            if ((write || other.write) && !in_scope(by, scope, other) && !knows(by, other.by))
                race(access.mine("atomic access"), access.other("atomic access", other.by, other.site), ": the scope of one doesn't reach the other");
    }
    set.last_reader = read ? by.epoch : 0;
    if (!read) set.overwritten = true;
    if (!set.list.empty() && set.list.back().by == by.epoch && set.list.back().write >= write) {
        if (!write && set.list.back().write) set.lost_reads = true;
        return;
    }
    const Accessor accessor{by.epoch, access.site, block_scope, write};
    set.add(by, accessor);
    if (block_scope && !set.list.front().block_scope) std::swap(set.list.front(), set.list.back());   // where it is looked for
}

Split& split_of(Cell& cell) {
    if (cell.split != 0) return splits[cell.split];
    const std::uint32_t number = splits.make();
    Split& made = splits[number];
    for (Cell& byte : made.bytes) {
        byte = cell;
        if (&byte == &made.bytes[0]) continue;
        if (is_set(cell.read)) {
            const std::uint32_t set = read_sets.make();
            read_sets[set] = read_sets[static_cast<std::uint32_t>(cell.read)];
            byte.read = kReadSet | set;
        }
        if (cell.strong != 0) {
            byte.strong = strong_sets.make();
            strong_sets[byte.strong] = strong_sets[cell.strong];
        }
    }
    cell = Cell{};
    cell.split = number;
    return made;
}

template <class F>
inline void each_cell(Cell* cell, std::uintptr_t address, std::size_t bytes, bool whole_write, F&& check) {
    while (bytes != 0) {
        const unsigned offset = address & 3;
        const unsigned part = static_cast<unsigned>(std::min<std::size_t>(4 - offset, bytes));
        if (part == 4 && cell->split == 0) {
            check(*cell);
        } else {
            Split& split = split_of(*cell);
            for (unsigned i = 0; i < part; ++i) check(split.bytes[offset + i]);
            const auto undecided = [](const Cell& byte) { return byte.same_value(); };
            if (whole_write && part == 4 && std::none_of(split.bytes, split.bytes + 4, undecided)) {   // one again
                const Cell one = split.bytes[0];
                split.bytes[0] = Cell{};
                clear(*cell);
                *cell = one;
            }
        }
        address += part;
        bytes -= part;
        ++cell;
    }
}

inline void check_cells(const Access& access, Cell* cells, bool write) {
    if (write) each_cell(cells, access.address, access.bytes, true, [&](Cell& cell) { write_cell(access, cell); });
    else each_cell(cells, access.address, access.bytes, false, [&](Cell& cell) { read_cell(access, cell); });
}

// ---------------------------------------------------------------------------------------------- where it lies

[[noreturn]] void bad_address(Thread& by, std::uintptr_t address, std::size_t bytes, const char* what, Site site, const char* kind,
                              const Text& message) {
    fatal(kind, message, {{what, address, bytes, by.epoch, site}});
}

// The address is in the arena, but not (wholly) in a live allocation that `by` may use.
[[noreturn]] __attribute__((noinline)) void bad_arena_address(Thread& by, std::uintptr_t address, std::size_t bytes, const char* what, Site site) {
    const std::uint32_t number = *line_of(address);
    Allocation& a = allocation(number);
    if (number == 0 || address - a.begin >= a.bytes || a.bytes - (address - a.begin) < bytes)
        bad_address(by, address, bytes, what, site, "out-of-bounds", "an access outside of any allocation, nearest is " + describe_address(address).allocation);
    if (a.kind == Allocation::Kind::Shared || a.kind == Allocation::Kind::DynamicShared)
        bad_address(by, address, bytes, what, site, "invalid-address", "a pointer to the shared memory of another block");
    ReportedAccess freed{"free", a.begin, a.bytes, a.freed_by, long_site(a.freed_at)};
    fatal("use-after-free", "an access to " + describe(a) + ", which has been freed", {{what, address, bytes, by.epoch, site}, freed});
}

// threadIdx and its like, which g++ instruments in part.
inline bool is_builtin(std::uintptr_t address) {
    return address - reinterpret_cast<std::uintptr_t>(&::blockDim) < sizeof(dim3) || address - reinterpret_cast<std::uintptr_t>(&::gridDim) < sizeof(dim3) ||
           address - reinterpret_cast<std::uintptr_t>(&::threadIdx) < sizeof(uint3) || address - reinterpret_cast<std::uintptr_t>(&::blockIdx) < sizeof(uint3);
}

inline bool usable(const Allocation& a, std::uintptr_t address, std::size_t bytes, const Thread& by) {
    return address - a.begin < a.bytes && a.bytes - (address - a.begin) >= bytes && a.state == Allocation::State::Live &&
           (a.owner == nullptr || a.owner == by.block);
}

// Device code uses an address that is neither in the arena nor on its own stack.
__attribute__((noinline)) Cell* outside_cells(Thread& by, std::uintptr_t address, std::size_t bytes, bool write, const char* what, Site site) {
    if (in_parameters(address) || (!write && is_builtin(address))) return nullptr;
    if (Global* const global = global_at(address)) {
        if (address + bytes > global->allocation.begin + global->allocation.bytes)
            bad_address(by, address, bytes, what, site, "out-of-bounds", "an access over the end of " + describe(global->allocation));
        if (write && global->allocation.kind == Allocation::Kind::Constant && by.block->grid != nullptr)
            bad_address(by, address, bytes, what, site, "invalid-address", "a kernel writes to " + describe(global->allocation));
        return &global->cells[(address - global->cell_base) >> 2];
    }
    if (by.block->grid == nullptr) return nullptr;
    if (is_stack(address)) {
        bad_address(by, address, bytes, what, site, "invalid-address", "a pointer to the local memory of another thread");
    }
    if (const Global* const before = global_before(address))
        bad_address(by, address, bytes, what, site, "out-of-bounds", "an access over the end of " + describe(before->allocation));
    if (!write && (is_builtin(address) || is_read_only(address))) return nullptr;
    if (address < 4096 * 16) bad_address(by, address, bytes, what, site, "invalid-address", "a null pointer");
    if (address - kArenaBase + 4096 < kArenaBytes) bad_arena_address(by, address, bytes, what, site);
    bad_address(by, address, bytes, what, site, "invalid-address", "a kernel uses memory of the host");
}

[[noreturn]] __attribute__((noinline)) void not_written(Thread& by, std::uintptr_t address, std::size_t bytes, Site site) {
    fatal("uninitialised", "a read of memory that nothing has written", {{"read", address, bytes, by.epoch, site}});
}

std::uint32_t last_allocation = 0;   // the one of the last access: mostly the next access's too

inline void check_arena(Thread& by, std::uintptr_t address, std::size_t bytes, const char* what, Site site) {
    if (usable(allocation(last_allocation), address, bytes, by)) return;
    const std::uint32_t number = *line_of(address);
    if (!usable(allocation(number), address, bytes, by)) bad_arena_address(by, address, bytes, what, site);
    last_allocation = number;
}

// Host code touches memory that it shares with the device, or that it must not touch.
__attribute__((noinline)) void host_access(std::uintptr_t address, std::size_t bytes, bool write, bool strong, Site site);

// ---------------------------------------------------------------------------------------- the instrumentation

__attribute__((noinline)) void plain_outside(Thread& by, std::uintptr_t address, unsigned bytes, bool write, Site site) {
    if (!write && is_builtin(address)) return;
    resolve_same_value();
    if (--accesses_to_switch <= 0) count_down();
    if (Cell* const cells = outside_cells(by, address, bytes, write, write ? "write" : "read", site)) {
        by.accessed = true;
        check_cells({by, address, bytes, short_site(site), true}, cells, write);
    }
}

template <unsigned kBytes, bool kWrite>
inline __attribute__((always_inline)) void plain(void* pointer, Site site) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    Thread* by = current;
    if (by == nullptr) {
        if (in_arena(address)) host_access(address, kBytes, kWrite, false, site);
        return;
    }
    if (address - reinterpret_cast<std::uintptr_t>(by->stack) < kStackBytes) return;
    if (__builtin_expect(!in_arena(address), false)) return plain_outside(*by, address, kBytes, kWrite, site);
    if (__builtin_expect(same_value.waiting, false)) resolve_same_value();
    if (__builtin_expect(--accesses_to_switch <= 0, false)) count_down();
    const char* const what = kWrite ? "write" : "read";
    const Access access{*by, address, kBytes, short_site(site), true};
    by->accessed = true;
    check_arena(*by, address, kBytes, what, site);
    // g++ joins two aligned accesses of 8 bytes to one of 16.
    if (__builtin_expect((address & ((kBytes < 8 ? kBytes : 8) - 1)) != 0, false))
        bad_address(*by, address, kBytes, what, site, "invalid-address", "a misaligned access");
    if (kBytes == 16) {
        auto* const written = reinterpret_cast<std::uint16_t*>(written_of(address));
        if (kWrite) *written = 0xffff;
        else if (*written == 0) not_written(*by, address, kBytes, site);
    } else {
        unsigned char& written = *written_of(address);
        const unsigned mask = ((1u << kBytes) - 1) << (address & 7);
        if (kWrite) written = static_cast<unsigned char>(written | mask);
        else if (__builtin_expect((written & mask) == 0, false)) not_written(*by, address, kBytes, site);
    }
    Cell* const cell = cell_of(address);
    if (kBytes == 4) {
        if (__builtin_expect(cell->split == 0, true)) {
            if (kWrite) write_cell(access, *cell);
            else read_cell(access, *cell);
            return;
        }
    }
    if (kBytes == 8) {
        if (__builtin_expect((cell[0].split | cell[1].split) == 0, true)) {
            for (int i = 0; i < 2; ++i) {
                if (kWrite) write_cell(access, cell[i]);
                else read_cell(access, cell[i]);
            }
            return;
        }
    }
    check_cells(access, cell, kWrite);
}

__attribute__((noinline)) void range(void* pointer, std::size_t bytes, bool write, Site site) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    Thread* by = current;
    if (bytes == 0) return;
    if (by == nullptr) {
        if (in_arena(address)) host_access(address, bytes, write, false, site);
        return;
    }
    if (address - reinterpret_cast<std::uintptr_t>(by->stack) < kStackBytes) return;
    resolve_same_value();
    if (--accesses_to_switch <= 0) count_down();
    check_range(*by, address, bytes, write, site);
}

template <bool kWrite>
inline __attribute__((always_inline)) void strong(void* pointer, unsigned bytes, Site site) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (current == nullptr) {
        if (in_arena(address)) host_access(address, bytes, kWrite, true, site);
        return;
    }
    if (kWrite) {
        if (check_strong(address, bytes, false, true, Scope::System, site)) write_released(*current, address, false);
        ++progress;
    } else {
        spin();   // before the check: nothing may come between that and the read
        if (check_strong(address, bytes, true, false, Scope::System, site)) read_released(*current, address);
    }
}

}   // namespace

bool knows_slowly(Thread& thread, Epoch epoch) {
    const std::uint32_t block = block_of(epoch);
    if (block == thread.block->id) return thread.lanes && clock_of(epoch) <= thread.lanes->clock(thread_of(epoch));
    if (!thread.known) return false;
    if (thread.known->is_complete(block)) {
        thread.sure_block = block;
        thread.sure_clock = kMaxClock;
        return true;
    }
    const Knowledge::Partly* const known = thread.known->find(block);
    if (known == nullptr) return false;
    if (clock_of(epoch) <= known->upto) {
        thread.sure_block = block;
        thread.sure_clock = known->upto;
        return true;
    }
    return known->lanes && clock_of(epoch) <= known->lanes->clock(thread_of(epoch));
}

bool knows(Thread& thread, Epoch epoch) {
    const std::uint32_t block = block_of(epoch);
    if (block == thread.sure_block && clock_of(epoch) <= thread.sure_clock) return true;
    if (block == block_of(thread.epoch) && (thread_of(epoch) == thread.number() || clock_of(epoch) <= thread.block->upto)) return true;
    return knows_slowly(thread, epoch);
}

void AccessSet::add(const Thread& by, Accessor accessor) {
    if (!list.empty() && list.back().by == accessor.by && !accessor.write) return;
    if (list.size() >= prune_at) {
        auto& reader = const_cast<Thread&>(by);   // knows() keeps its last answer there
        // What the accessor knows of is implied by the accessor: who knows the accessor knows that too. But an access
        // of narrower scope, or a write, says more than a later one that is not.
        list.erase(std::remove_if(list.begin(), list.end(),
                                  [&](const Accessor& a) {
                                      const bool implied = a.write <= accessor.write && a.block_scope <= accessor.block_scope && knows(reader, a.by);
                                      if (implied && !a.write && accessor.write) lost_reads = true;
                                      return implied;
                                  }),
                   list.end());
        std::stable_sort(list.begin(), list.end(), [](const Accessor& a, const Accessor& b) {
            return std::make_tuple(!a.block_scope, a.by >> kClockBits, !a.write, ~clock_of(a.by)) <
                   std::make_tuple(!b.block_scope, b.by >> kClockBits, !b.write, ~clock_of(b.by));
        });
        list.erase(std::unique(list.begin(), list.end(),
                               [](const Accessor& a, const Accessor& b) {
                                   return a.by >> kClockBits == b.by >> kClockBits && a.block_scope == b.block_scope && a.write == b.write;
                               }),
                   list.end());
        prune_at = std::max<std::size_t>(16, 2 * list.size());
    }
    list.push_back(accessor);
}

void clear(Cell& cell) {
    if (is_set(cell.read)) read_sets.release(static_cast<std::uint32_t>(cell.read));
    if (cell.strong != 0) strong_sets.release(cell.strong);
    if (cell.split != 0) {
        for (Cell& byte : splits[cell.split].bytes) clear(byte);
        splits.release(cell.split);
    }
    cell = Cell{};
}

void clear_cells(Cell* cells, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        Cell& cell = cells[i];
        if ((cell.write | cell.read | cell.strong | cell.split) != 0) clear(cell);
    }
}

void resolve_same_value() {
    if (!same_value.waiting) return;
    same_value.waiting = false;
    if (std::memcmp(same_value.before, reinterpret_cast<const void*>(same_value.address), same_value.bytes) != 0)
        race(same_value.mine, same_value.other);
}

void check_range(Thread& by, std::uintptr_t address, std::size_t bytes, bool write, Site site) {
    if (bytes == 0) return;
    const char* const what = write ? "write" : "read";
    by.accessed = true;
    // A range of a kernel's happens after this; a copy's may have happened.
    const Access access{by, address, bytes, short_site(site), by.block->grid != nullptr && bytes <= 16};
    if (!in_arena(address)) {
        if (Cell* const cells = outside_cells(by, address, bytes, write, what, site)) check_cells(access, cells, write);
        return;
    }
    check_arena(by, address, bytes, what, site);
    if (write) set_written(address, bytes, true);
    else if (!any_written(address, std::min<std::size_t>(bytes, 64)) && !any_written(address, bytes)) not_written(by, address, bytes, site);
    check_cells(access, cell_of(address), write);
}

void check_copy(Thread& by, std::uintptr_t to, std::uintptr_t from, std::size_t bytes, Site site) {
    if (bytes == 0) return;
    by.accessed = true;
    auto cells_of = [&](std::uintptr_t address, bool write) -> Cell* {
        const char* const what = write ? "write" : "read";
        if (address - reinterpret_cast<std::uintptr_t>(by.stack) < kStackBytes) return nullptr;
        if (!in_arena(address)) return outside_cells(by, address, bytes, write, what, site);
        check_arena(by, address, bytes, what, site);
        return cell_of(address);
    };
    Cell* const source = cells_of(from, false);
    Cell* const target = cells_of(to, true);
    if (source != nullptr) check_cells({by, from, bytes, short_site(site), false}, source, false);
    if (target != nullptr) check_cells({by, to, bytes, short_site(site), false}, target, true);
    if (in_arena(to)) {
        if (in_arena(from)) copy_written(to, from, bytes);
        else set_written(to, bytes, true);
    }
}

// Whether the last of the strong accesses is an atomic write, of the device's scope, by this thread.
static bool is_last_write_of(const Thread& by, const StrongSet& set) {
    if (set.list.empty() || set.list.front().block_scope) return false;
    const Accessor& last = set.list.back();
    return last.write && last.by >> kClockBits == by.epoch >> kClockBits;
}

void check_free(Thread& by, Allocation& freed, Site site) {
    const Access access{by, freed.begin, freed.bytes, short_site(site), false};
    Cell* const cells = cell_of(freed.begin);
    for (std::size_t i = 0; i < (freed.bytes + 3) / 4; ++i) {
        auto check = [&](Cell& cell) {
            if (cell.write != 0 && !knows(by, cell.write)) race(access.mine("free"), access.other("write", cell.write, cell.write_site));
            if (cell.read != 0) {
                if (!is_set(cell.read)) {
                    if (!knows(by, cell.read)) race(access.mine("free"), access.other("read", cell.read, cell.read_site));
                } else if (const Accessor* const other = unknown_in(by, read_sets[static_cast<std::uint32_t>(cell.read)])) {
                    race(access.mine("free"), access.other("read", other->by, other->site));
                }
            }
            // What comes before the freeing thread's own atomic in the order of the location comes before all that follows that:
            // the last to give back a reference may free the counter.
            if (cell.strong != 0 && !is_last_write_of(by, strong_sets[cell.strong]))
                if (const Accessor* const other = unknown_in(by, strong_sets[cell.strong]))
                    race(access.mine("free"), access.other("atomic access", other->by, other->site));
        };
        if (cells[i].split != 0) {
            for (Cell& byte : splits[cells[i].split].bytes) check(byte);
        } else {
            check(cells[i]);
        }
    }
}

void check_not_local(std::uintptr_t address, unsigned bytes, Site site) {
    Thread& by = *current;
    if (address - reinterpret_cast<std::uintptr_t>(by.stack) < kStackBytes || in_parameters(address))
        bad_address(by, address, bytes, "atomic write", site, "invalid-address", "an atomic operation on the thread's local memory, which has none");
}

bool check_strong(std::uintptr_t address, unsigned bytes, bool read, bool write, Scope scope, Site site) {
    Thread& by = *current;
    if (address - reinterpret_cast<std::uintptr_t>(by.stack) < kStackBytes) return false;
    resolve_same_value();
    if (--accesses_to_switch <= 0) count_down();
    if (write && settings.delay_one_in != 0 && chance.one_in(settings.delay_one_in)) delay();
    const char* const what = write ? "atomic write" : "volatile read";
    const Access access{by, address, bytes, short_site(site), false};
    Cell* cells;
    if (!in_arena(address)) {
        cells = outside_cells(by, address, bytes, write, what, site);
        if (cells == nullptr) return false;
    } else {
        check_arena(by, address, bytes, what, site);
        cells = cell_of(address);
        if (read && !any_written(address, bytes)) not_written(by, address, bytes, site);
        if (write) set_written(address, bytes, true);
    }
    if ((address & (bytes - 1)) != 0) bad_address(by, address, bytes, what, site, "invalid-address", "a misaligned access");
    by.accessed = true;
    each_cell(cells, address, bytes, false, [&](Cell& cell) { strong_cell(access, cell, read, write, scope); });
    return true;
}

StrongSet* strong_set(std::uintptr_t address, bool make) {
    Cell* cell;
    if (in_arena(address)) {
        cell = cell_of(address);
    } else {
        Global* const global = global_at(address);
        if (global == nullptr) return nullptr;
        cell = &global->cells[(address - global->cell_base) >> 2];
    }
    if (cell->split != 0) cell = &splits[cell->split].bytes[address & 3];
    if (cell->strong == 0) {
        if (!make) return nullptr;
        cell->strong = strong_sets.make();
    }
    return &strong_sets[cell->strong];
}

Allocation* live_allocation(std::uintptr_t address, std::size_t bytes) {
    if (!in_arena(address)) return nullptr;
    Allocation& a = allocation_at(address);
    return address - a.begin < a.bytes && a.bytes - (address - a.begin) >= bytes && a.state == Allocation::State::Live ? &a : nullptr;
}

namespace {

void host_access(std::uintptr_t address, std::size_t bytes, bool write, bool is_strong, Site site) {
    const HostLock lock;
    const char* const what = write ? "write" : "read";
    Allocation& a = allocation_at(address);
    if (!usable(a, address, bytes, host_thread)) bad_arena_address(host_thread, address, bytes, what, site);
    if (a.kind != Allocation::Kind::Managed && a.kind != Allocation::Kind::Pinned)
        bad_address(host_thread, address, bytes, what, site, "host-access", "host code uses memory of the device");
    const Access access{host_thread, address, bytes, short_site(site), false};
    Cell* const cells = cell_of(address);
    if (write) set_written(address, bytes, true);
    else if (!any_written(address, bytes)) not_written(host_thread, address, bytes, site);
    if (is_strong) {
        each_cell(cells, address, bytes, false, [&](Cell& cell) { strong_cell(access, cell, !write, write, Scope::System); });
        host_passes(true);
    } else {
        check_cells(access, cells, write);
    }
}

}   // namespace

}   // namespace emu

// ---------------------------------------------------------------- what g++ -fsanitize=thread calls before an access

#define SITE reinterpret_cast<emu::Site>(__builtin_return_address(0))
#define ACCESS(bytes)                                                                                                    \
    void __tsan_read##bytes(void* p) { emu::plain<bytes, false>(p, SITE); }                                              \
    void __tsan_write##bytes(void* p) { emu::plain<bytes, true>(p, SITE); }                                              \
    void __tsan_unaligned_read##bytes(void* p) { emu::range(p, bytes, false, SITE); }                                    \
    void __tsan_unaligned_write##bytes(void* p) { emu::range(p, bytes, true, SITE); }                                    \
    void __tsan_volatile_read##bytes(void* p) { emu::strong<false>(p, bytes, SITE); }                                    \
    void __tsan_volatile_write##bytes(void* p) { emu::strong<true>(p, bytes, SITE); }                                    \
    void __tsan_unaligned_volatile_read##bytes(void* p) { emu::strong<false>(p, bytes, SITE); }                          \
    void __tsan_unaligned_volatile_write##bytes(void* p) { emu::strong<true>(p, bytes, SITE); }

extern "C" {
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void* p, std::size_t bytes) { emu::range(p, bytes, false, SITE); }
void __tsan_write_range(void* p, std::size_t bytes) { emu::range(p, bytes, true, SITE); }
void __tsan_vptr_read(void** p) { emu::plain<8, false>(p, SITE); }
void __tsan_vptr_update(void** p, void*) { emu::plain<8, true>(p, SITE); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
