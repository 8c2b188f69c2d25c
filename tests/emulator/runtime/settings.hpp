// What a run is told through the environment, and the random numbers that every choice comes from.
#ifndef EMU_SETTINGS_HPP
#define EMU_SETTINGS_HPP

#include <cstddef>
#include <cstdint>

namespace emu {

/// splitmix64: the same numbers everywhere, and cheap.
struct Random {
    std::uint64_t state = 1;
    std::uint64_t next() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    /// Less than `n`, which is not 0.
    std::uint64_t below(std::uint64_t n) { return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64); }
    bool one_in(std::uint64_t n) { return below(n) == 0; }
};

/// When a grid starts that another grid has launched.
enum class Children { Eager, Late, Lifo, Any };
/// In which order the blocks of a grid start.
enum class BlockOrder { Ascending, Descending, Scattered };

struct Settings {
    std::uint64_t seed = 1;
    const char* report = nullptr;      // a path; null: stderr
    std::uint64_t step_limit = 2'000'000'000;
    Children children = Children::Any;
    BlockOrder block_order = BlockOrder::Ascending;
    unsigned resident = 8;             // blocks at a time
    unsigned switch_every = 20;        // accesses between two switches, on average; 0: only where a thread must wait
    unsigned delay_one_in = 0;         // of so many atomic writes one comes late, after many switches; 0: none
    unsigned host_patience = 2;        // how readily the device runs while the host goes on: 0 never, 3 always
    unsigned nesting = 0;              // levels of grids that may be nested; 0: any number
    bool strict_same_value = false;    // two unordered writes of one value are a fault
    bool strict_weak_read = false;     // a plain read unordered with an atomic write is a fault
    bool leaks = false;                // leaks go to the report
    bool device_sync = false;          // kernels may wait for their children, as before CUDA 12
};

extern Settings settings;
extern Random chance;   // schedules; nothing else may draw from it, so that a run is a function of seed and program

/// Reads the environment and derives the rest from the seed. Ends the process on a value that makes no sense.
void read_settings();

}   // namespace emu

#endif
