#include "own_new.hpp"

#include "memory.hpp"

#include "access.hpp"
#include "report.hpp"
#include "settings.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace emu {

namespace {

std::uintptr_t next_address = kArenaBase + 4096;   // the first page stays free: nothing lies before the first allocation
std::uint32_t next_number = 1;
std::size_t live_bytes = 0;
std::uint32_t serials[16];

struct Registered {
    std::uintptr_t address;
    std::size_t bytes;
    const char* name;
    Space space;
};
// Registered before main; sorted when first asked for.
std::vector<Registered>& registered() {
    static std::vector<Registered>* const list = new std::vector<Registered>;
    return *list;
}
std::vector<Global>* globals = nullptr;

constexpr std::size_t kLine = std::size_t(1) << kLineShift;
constexpr std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

// Bytes nobody owns, behind an allocation: more for large ones, whose rows are longer.
std::size_t red_zone(std::size_t bytes) { return round_up(std::clamp<std::size_t>(bytes / 8, kLine, 4096), kLine); }

Allocation* carve(Allocation::Kind kind, std::size_t bytes, std::size_t alignment) {
    const std::size_t align = std::max(alignment, kLine);
    const std::uintptr_t begin = round_up(next_address, align);
    const std::size_t reserved = round_up(std::max<std::size_t>(bytes, 1), kLine);
    const std::size_t zone = red_zone(bytes);
    if (begin + reserved + zone > kArenaBase + kArenaBytes || next_number == kMaxAllocations)
        fatal("unsupported", "the program has allocated more than 64 GB altogether");
    next_address = begin + reserved + zone;
    Allocation& made = allocation(next_number);
    made = Allocation{};
    made.begin = begin;
    made.bytes = bytes;
    made.reserved = reserved;
    made.number = next_number++;
    made.kind = kind;
    made.state = Allocation::State::Live;
    std::fill_n(line_of(begin), reserved >> kLineShift, made.number);
    return &made;
}

// Shared memory that no block uses, by size: 64 bytes times a power of two.
std::vector<Allocation*> idle_shared[32];
unsigned shared_class(std::size_t bytes) {
    unsigned size = 0;
    while ((kLine << size) < bytes) ++size;
    return size;
}

int segments(dl_phdr_info* info, std::size_t, void* data) {
    auto& ranges = *static_cast<std::vector<std::pair<std::uintptr_t, std::uintptr_t>>*>(data);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
        if ((header.p_type == PT_LOAD && (header.p_flags & PF_W) == 0) || header.p_type == PT_GNU_RELRO)
            ranges.push_back({begin, begin + header.p_memsz});
    }
    return 0;
}

}   // namespace

void reserve(std::uintptr_t at, std::size_t bytes, const char* what) {
    void* const want = reinterpret_cast<void*>(at);
    void* const got = mmap(want, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != want) {
        std::fprintf(stderr, "gridfuse-emulator: unsupported: no address space for %s: %s\n", what, std::strerror(errno));
        _exit(2);
    }
}

void prepare_memory() {
    reserve(kArenaBase, kArenaBytes, "device memory");
    reserve(kCellBase, kArenaBytes * 8, "shadow cells");
    reserve(kWrittenBase, kArenaBytes / 8, "written bits");
    reserve(kLineBase, (kArenaBytes >> kLineShift) * 4, "the table of lines");
    reserve(kAllocationBase, std::size_t(kMaxAllocations) * sizeof(Allocation), "the table of allocations");
    reserve(kParameterBase, kParameterBytes, "arguments");
}

Allocation* allocate(Allocation::Kind kind, std::size_t bytes, std::size_t alignment) {
    if (bytes > kDeviceBytes - std::min(live_bytes, kDeviceBytes)) return nullptr;
    Allocation* const made = carve(kind, bytes, alignment);
    made->serial = ++serials[static_cast<int>(kind)];
    live_bytes += bytes;
    return made;
}

void release(Allocation& freed) {
    freed.state = Allocation::State::Free;
    live_bytes -= freed.bytes;
    // Large memory goes back to the system, with its shadow: the addresses stay taken.
    const std::uintptr_t first = round_up(freed.begin, 4096), end = (freed.begin + freed.reserved) / 4096 * 4096;
    if (end > first && end - first >= (64 << 10) && !freed.captured) {
        (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
        (void)madvise(cell_of(first), (end - first) * 8, MADV_DONTNEED);
    }
}

void revive(Allocation& freed) {
    if (freed.state == Allocation::State::Free) live_bytes += freed.bytes;
    freed.state = Allocation::State::Live;
    set_written(freed.begin, freed.bytes, false);
}

std::size_t allocated_bytes() { return live_bytes; }

void report_leaks() {
    for (std::uint32_t i = 1; i < next_number; ++i) {
        const Allocation& a = allocation(i);
        if (a.state != Allocation::State::Live || a.owner != nullptr) continue;
        if (a.kind == Allocation::Kind::Shared || a.kind == Allocation::Kind::DynamicShared || a.captured) continue;
        note("leak", describe(a) + " is never freed", {{"allocation", a.begin, a.bytes, a.allocated_by, long_site(a.allocated_at)}});
    }
}

Allocation* take_shared(Block& block, Allocation::Kind kind, std::size_t bytes, std::size_t alignment) {
    const unsigned size = shared_class(std::max(bytes, alignment));
    Allocation* shared;
    if (idle_shared[size].empty()) {
        shared = carve(kind, kLine << size, kLine << std::min(size, 6u));
    } else {
        shared = idle_shared[size].back();
        idle_shared[size].pop_back();
    }
    shared->kind = kind;
    shared->state = Allocation::State::Live;
    shared->bytes = bytes;
    shared->owner = &block;
    shared->allocated_by = make_epoch(block.id, 0, 1);
    return shared;
}

void give_shared(Allocation& shared) {
    clear_cells(cell_of(shared.begin), (shared.bytes + 3) / 4);
    set_written(shared.begin, shared.bytes, false);
    shared.state = Allocation::State::Free;
    shared.owner = nullptr;
    idle_shared[shared_class(shared.reserved)].push_back(&shared);
}

void set_written(std::uintptr_t address, std::size_t bytes, bool written) {
    while (bytes != 0 && (address & 7) != 0) {
        unsigned char& bits = *written_of(address);
        const unsigned char bit = static_cast<unsigned char>(1u << (address & 7));
        bits = written ? bits | bit : bits & ~bit;
        ++address, --bytes;
    }
    std::memset(written_of(address), written ? 0xff : 0, bytes / 8);
    address += bytes / 8 * 8;
    if (bytes % 8 != 0) {
        unsigned char& bits = *written_of(address);
        const unsigned char mask = static_cast<unsigned char>((1u << bytes % 8) - 1);
        bits = written ? bits | mask : bits & ~mask;
    }
}

bool any_written(std::uintptr_t address, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (*written_of(address + i) >> ((address + i) & 7) & 1) return true;
    return false;
}

void copy_written(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) {
    if (((to | from) & 7) == 0) {
        std::memmove(written_of(to), written_of(from), bytes / 8);
        to += bytes / 8 * 8;
        from += bytes / 8 * 8;
        bytes %= 8;
    }
    for (std::size_t i = 0; i < bytes; ++i) set_written(to + i, 1, any_written(from + i, 1));
}

namespace {

// All of them, by address.
std::vector<Global>& all_globals() {
    if (globals != nullptr) return *globals;
    globals = new std::vector<Global>;
    auto& list = registered();
    std::sort(list.begin(), list.end(), [](const Registered& a, const Registered& b) { return a.address < b.address; });
    for (const Registered& r : list) {
        if (!globals->empty() && globals->back().allocation.begin == r.address) {
            // An inline variable of several files, or another member of a union.
            globals->back().allocation.bytes = std::max(globals->back().allocation.bytes, r.bytes);
            continue;
        }
        Global global{};
        global.allocation.begin = r.address;
        global.allocation.bytes = r.bytes;
        global.allocation.kind = r.space == Space::Device     ? Allocation::Kind::Global
                                 : r.space == Space::Constant ? Allocation::Kind::Constant
                                                              : Allocation::Kind::ManagedGlobal;
        global.allocation.state = Allocation::State::Live;
        global.allocation.name = r.name;
        global.cell_base = r.address & ~std::uintptr_t(3);
        globals->push_back(std::move(global));
    }
    return *globals;
}

// The last one that begins at the address or before.
Global* last_global(std::uintptr_t address) {
    auto& all = all_globals();
    const auto at = std::upper_bound(all.begin(), all.end(), address, [](std::uintptr_t a, const Global& g) { return a < g.allocation.begin; });
    return at == all.begin() ? nullptr : &*(at - 1);
}

}   // namespace

Global* global_at(std::uintptr_t address) {
    Global* const global = last_global(address);
    if (global == nullptr || address - global->allocation.begin >= global->allocation.bytes) return nullptr;
    if (global->cells.empty()) global->cells.resize((global->allocation.begin + global->allocation.bytes - global->cell_base + 3) / 4);
    return global;
}

Global* global_before(std::uintptr_t address) {
    Global* const global = last_global(address);
    return global != nullptr && address - (global->allocation.begin + global->allocation.bytes) < 1024 ? global : nullptr;
}

bool is_read_only(std::uintptr_t address) {
    static const auto* const ranges = [] {
        auto* const list = new std::vector<std::pair<std::uintptr_t, std::uintptr_t>>;
        dl_iterate_phdr(segments, list);
        return list;
    }();
    for (const auto& range : *ranges)
        if (address >= range.first && address < range.second) return true;
    return false;
}

const char* describe(Allocation::Kind kind) {
    switch (kind) {
        case Allocation::Kind::Device: return "cudaMalloc";
        case Allocation::Kind::Async: return "cudaMallocAsync";
        case Allocation::Kind::Managed: return "cudaMallocManaged";
        case Allocation::Kind::Pinned: return "cudaMallocHost";
        case Allocation::Kind::Heap: return "device malloc";
        case Allocation::Kind::Shared: return "shared variable";
        case Allocation::Kind::DynamicShared: return "dynamic shared memory";
        case Allocation::Kind::Global: return "__device__ variable";
        case Allocation::Kind::Constant: return "__constant__ variable";
        case Allocation::Kind::ManagedGlobal: return "__managed__ variable";
        case Allocation::Kind::None: break;
    }
    return "memory";
}

Text describe(const Allocation& a) {
    Text text = describe(a.kind);
    if (a.name != nullptr) text += Text(" ") + a.name;
    if (a.serial != 0) text += " #" + number(a.serial);
    text += " (" + number(a.bytes) + " bytes)";
    if (a.owner != nullptr) text += " of block " + number(a.owner->index.x) + "," + number(a.owner->index.y) + "," + number(a.owner->index.z);
    return text;
}

AddressDescription describe_address(std::uintptr_t address) {
    if (in_arena(address)) {
        // The last allocation that begins before it. Numbers ascend with addresses.
        std::uint32_t low = 0, high = next_number;
        while (high - low > 1) {
            const std::uint32_t middle = low + (high - low) / 2;
            (allocation(middle).begin <= address ? low : high) = middle;
        }
        if (low == 0) return {};
        return {describe(allocation(low)), address - allocation(low).begin};
    }
    if (const Global* const global = global_at(address)) return {describe(global->allocation), address - global->allocation.begin};
    return {};
}

RegisterGlobal::RegisterGlobal(const volatile void* address, std::size_t bytes, const char* name, Space space) {
    registered().push_back({reinterpret_cast<std::uintptr_t>(address), bytes, name, space});
}

}   // namespace emu

// What own_new.hpp names.
extern "C" void* emu_runtime_new(std::size_t bytes) {
    void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) std::abort();
    return memory;
}
extern "C" void emu_runtime_delete(void* address) { std::free(address); }
