// The memory of the device: where it lies, what is allocated, and which bytes have been written.
//
// Everything lies at fixed addresses, so that a run doesn't depend on address space randomisation. Addresses are not
// used again after a free (there are 64 GB of them): a stale pointer is always found out. The one exception is shared
// memory, which every block takes anew; a stale pointer to it belongs to another block, which is found out too.
#ifndef EMU_MEMORY_HPP
#define EMU_MEMORY_HPP

#include "shadow.hpp"

#include "text.hpp"
#include <vector>

namespace emu {

constexpr std::uintptr_t kArenaBase = 0x1000'0000'0000;
constexpr std::size_t kArenaBytes = 64ull << 30;
constexpr std::uintptr_t kCellBase = 0x1100'0000'0000;        // 8 bytes for each byte of the arena
constexpr std::uintptr_t kWrittenBase = 0x1200'0000'0000;     // a bit for each byte
constexpr std::uintptr_t kLineBase = 0x1300'0000'0000;        // an allocation's number for each line
constexpr std::uintptr_t kAllocationBase = 0x1400'0000'0000;
constexpr std::uintptr_t kParameterBase = 0x1b00'0000'0000;   // arguments of launches
constexpr std::size_t kParameterBytes = 16ull << 30;
constexpr unsigned kLineShift = 6;
constexpr std::size_t kDeviceBytes = 8ull << 30;              // as much as programs are told there is
constexpr std::uint32_t kMaxAllocations = 1u << 25;

struct Allocation {
    enum class Kind : unsigned char { None, Device, Async, Managed, Pinned, Heap, Shared, DynamicShared, Global, Constant, ManagedGlobal };
    enum class State : unsigned char { Free, Live };
    std::uintptr_t begin;
    std::size_t bytes, reserved;
    std::uint32_t number;        // its index
    std::uint32_t serial;        // among its kind
    Kind kind;
    State state;
    bool captured;               // belongs to a graph
    Block* owner;                // of shared memory
    Epoch allocated_by, freed_by;
    std::uint32_t allocated_at, freed_at;
    const char* name;            // of a variable
};

/// Address space at a fixed place, without memory until it is touched.
void reserve(std::uintptr_t at, std::size_t bytes, const char* what);
void prepare_memory();

inline bool in_arena(std::uintptr_t address) { return address - kArenaBase < kArenaBytes; }
inline bool in_parameters(std::uintptr_t address) { return address - kParameterBase < kParameterBytes; }
inline Cell* cell_of(std::uintptr_t address) { return reinterpret_cast<Cell*>(kCellBase + ((address - kArenaBase) >> 2) * sizeof(Cell)); }
inline unsigned char* written_of(std::uintptr_t address) { return reinterpret_cast<unsigned char*>(kWrittenBase + ((address - kArenaBase) >> 3)); }
inline std::uint32_t* line_of(std::uintptr_t address) { return reinterpret_cast<std::uint32_t*>(kLineBase) + ((address - kArenaBase) >> kLineShift); }
inline Allocation& allocation(std::uint32_t number) { return reinterpret_cast<Allocation*>(kAllocationBase)[number]; }
/// The allocation whose line this is; its bounds must be looked at.
inline Allocation& allocation_at(std::uintptr_t address) { return allocation(*line_of(address)); }

/// Bytes of device malloc: cudaLimitMallocHeapSize.
extern std::size_t heap_limit;

/// Null if there is not enough.
Allocation* allocate(Allocation::Kind kind, std::size_t bytes, std::size_t alignment);
/// Its bytes are not to be accessed any more.
void release(Allocation& freed);
/// A graph's memory, once more.
void revive(Allocation& freed);
std::size_t allocated_bytes();
void report_leaks();

/// Shared memory of a block; taken again by others when the block is gone.
Allocation* take_shared(Block& block, Allocation::Kind kind, std::size_t bytes, std::size_t alignment);
void give_shared(Allocation& shared);

/// Bytes that have been written, or not.
void set_written(std::uintptr_t address, std::size_t bytes, bool written);
bool any_written(std::uintptr_t address, std::size_t bytes);
void copy_written(std::uintptr_t to, std::uintptr_t from, std::size_t bytes);

/// Variables at namespace scope, which lie where the linker put them.
struct Global {
    Allocation allocation;
    std::vector<Cell> cells;   // made when first accessed
    std::uintptr_t cell_base = 0;
};
Global* global_at(std::uintptr_t address);
/// One that ends shortly before the address, which is in none.
Global* global_before(std::uintptr_t address);
/// Memory of the program that nobody can write: literals, constants, tables of virtual functions.
bool is_read_only(std::uintptr_t address);

struct AddressDescription {
    Text allocation;
    std::uint64_t offset = 0;
};
AddressDescription describe_address(std::uintptr_t address);
Text describe(const Allocation& allocation);
const char* describe(Allocation::Kind kind);

}   // namespace emu

#endif
