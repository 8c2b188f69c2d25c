// Faults and facts: what the user reads, and the lines of JSON that a driver reads.
#ifndef EMU_REPORT_HPP
#define EMU_REPORT_HPP

#include "model.hpp"

#include "text.hpp"
#include <vector>

namespace emu {

/// One access, as far as it is known.
struct ReportedAccess {
    const char* what = "read";
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    Epoch by = 0;       // 0: not known
    Site site = 0;
};

/// A fault: writes it and ends the process with exit code 70.
[[noreturn]] void fatal(const char* kind, const Text& message, const std::vector<ReportedAccess>& accesses = {});
/// A fact that is no fault: goes to the report alone.
void note(const char* kind, const Text& message, const std::vector<ReportedAccess>& accesses = {});

/// "thread (3,0,0) of block (1,0,0) of child (bfs.cu:58)"
Text describe(Epoch by);
Text describe(const Thread& thread);
Text describe_site(Site site);
/// Whether two addresses are code of the same line (a compiler may copy code).
bool same_line(Site a, Site b);
Text kernel_name(const Grid& grid);

/// Remembers who the threads of these blocks are, for reports that come later. `grid` null: an operation of the host.
void remember_blocks(std::uint32_t first, std::uint64_t count, const Grid* grid, const char* operation);

}   // namespace emu

#endif
