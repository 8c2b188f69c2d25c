#include "own_new.hpp"

#include "report.hpp"

#include "memory.hpp"
#include "settings.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unistd.h>

extern "C" char __executable_start;

namespace emu {

namespace {

// Who had a range of block numbers. Kept for good: an access may be reported long after its grid is gone.
struct Origin {
    std::uint32_t first;
    std::uint64_t count;
    dim3 grid, block;
    const char* name;   // of the kernel, or of the operation
    const void* function;
    const char* file;
    int line;
};
std::vector<Origin> origins;

const Origin* origin_of(std::uint32_t block) {
    auto at = std::upper_bound(origins.begin(), origins.end(), block, [](std::uint32_t b, const Origin& o) { return b < o.first; });
    if (at == origins.begin()) return nullptr;
    --at;
    return block - at->first < at->count ? &*at : nullptr;
}

struct Place {
    Text function, file;
    int line = 0;
};

Text run_addr2line(std::uintptr_t offset) {
    char command[4200], path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return "";
    path[length] = 0;
    if (std::strchr(path, '\'') != nullptr) return "";
    std::snprintf(command, sizeof command, "addr2line -e '%s' -f -C -i 0x%llx 2>/dev/null", path, static_cast<unsigned long long>(offset));
    FILE* const pipe = popen(command, "r");
    if (pipe == nullptr) return "";
    Text output;
    char buffer[512];
    while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
    pclose(pipe);
    return output;
}

bool is_own_header(const Text& file) {
    return file.find("/include/emulator/") != Text::npos || file.find("/gridfuse_emulator.hpp") != Text::npos;
}

// Where an address lies in the source: the innermost function that is not one of the emulator's headers.
const Place& locate(std::uintptr_t address) {
    static std::map<std::uintptr_t, Place> known;
    const auto found = known.find(address);
    if (found != known.end()) return found->second;
    Place place;
    const auto base = reinterpret_cast<std::uintptr_t>(&__executable_start);
    // A position independent executable's addresses count from its start; __executable_start is where it was loaded.
    Text text = run_addr2line(address < base ? address : (base < 0x1000000 ? address : address - base));
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end_function = text.find('\n', at);
        if (end_function == Text::npos) break;
        const std::size_t end_file = text.find('\n', end_function + 1);
        if (end_file == Text::npos) break;
        const Text function = text.substr(at, end_function - at);
        Text file = text.substr(end_function + 1, end_file - end_function - 1);
        at = end_file + 1;
        int line = 0;
        const std::size_t discriminator = file.find(" (");
        if (discriminator != Text::npos) file.resize(discriminator);
        const std::size_t colon = file.rfind(':');
        if (colon != Text::npos) {
            line = std::atoi(file.c_str() + colon + 1);
            file.resize(colon);
        }
        if (file == "??") file.clear();
        place = {function == "??" ? "" : function, file, line};
        if (!is_own_header(file)) break;
    }
    return known.emplace(address, place).first->second;
}

Text json(const Text& text) {
    Text result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\', result += c;
        else if (static_cast<unsigned char>(c) < 32) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", c);
            result += escape;
        } else result += c;
    }
    return result + "\"";
}

Text triple(unsigned x, unsigned y, unsigned z, char open, char close) {
    return open + number(x) + "," + number(y) + "," + number(z) + close;
}

struct Who {
    Text kernel;
    uint3 block{}, thread{};
    bool is_thread = false;
    const Origin* origin = nullptr;
};

Text name_of(const char* name, const void* function) {
    if (name != nullptr) return name;
    if (function == nullptr) return "a kernel";
    Text symbol = locate(reinterpret_cast<std::uintptr_t>(function)).function;
    const std::size_t parameters = symbol.find('(', symbol.rfind("(anonymous namespace)") == Text::npos ? 0 : symbol.rfind("(anonymous namespace)") + 21);
    if (parameters != Text::npos && parameters > 0) symbol.resize(parameters);
    return symbol.empty() ? "a kernel" : symbol;
}

Who who_is(Epoch by) {
    Who who;
    const Origin* const origin = origin_of(block_of(by));
    who.origin = origin;
    if (origin == nullptr) return who;
    if (origin->file == nullptr) {
        who.kernel = origin->name;
        return who;
    }
    who.is_thread = true;
    who.kernel = name_of(origin->name, origin->function);
    const std::uint64_t number = block_of(by) - origin->first;
    who.block = {unsigned(number % origin->grid.x), unsigned(number / origin->grid.x % origin->grid.y),
                 unsigned(number / origin->grid.x / origin->grid.y)};
    const unsigned t = thread_of(by);
    who.thread = {t % origin->block.x, t / origin->block.x % origin->block.y, t / origin->block.x / origin->block.y};
    return who;
}

void write_line(const Text& line) {
    if (settings.report != nullptr) {
        if (FILE* const file = std::fopen(settings.report, "a")) {
            std::fputs(line.c_str(), file);
            std::fclose(file);
            return;
        }
    }
    std::fputs(line.c_str(), stderr);
}

Text to_json(const char* kind, const Text& message, const std::vector<ReportedAccess>& accesses) {
    Text line = "{\"kind\":" + json(kind) + ",\"seed\":" + number(settings.seed) + ",\"message\":" + json(message) + ",\"accesses\":[";
    bool first = true;
    for (const ReportedAccess& access : accesses) {
        if (!first) line += ',';
        first = false;
        char address[32];
        std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(access.address));
        line += "{\"what\":" + json(access.what) + ",\"bytes\":" + number(access.bytes) + ",\"address\":\"" + address + "\"";
        const AddressDescription where = describe_address(access.address);
        if (!where.allocation.empty()) line += ",\"allocation\":" + json(where.allocation) + ",\"offset\":" + number(where.offset);
        const Who who = who_is(access.by);
        if (!who.kernel.empty()) line += ",\"kernel\":" + json(who.kernel);
        if (who.is_thread)
            line += ",\"block\":" + triple(who.block.x, who.block.y, who.block.z, '[', ']') + ",\"thread\":" +
                    triple(who.thread.x, who.thread.y, who.thread.z, '[', ']');
        if (access.site != 0) {
            const Place& place = locate(access.site - 1);
            if (!place.file.empty()) line += ",\"file\":" + json(place.file) + ",\"line\":" + number(place.line);
            if (!place.function.empty()) line += ",\"function\":" + json(place.function);
        }
        line += '}';
    }
    return line + "]}\n";
}

}   // namespace

Text describe_site(Site site) {
    if (site == 0) return "";
    const Place& place = locate(site - 1);
    if (place.file.empty()) return place.function;
    const std::size_t slash = place.file.rfind('/');
    return (slash == Text::npos ? place.file : place.file.substr(slash + 1)) + ":" + number(place.line);
}

bool same_line(Site a, Site b) {
    if (a == b) return true;
    const Place &one = locate(a - 1), &other = locate(b - 1);
    return one.line != 0 && one.line == other.line && one.file == other.file;
}

Text kernel_name(const Grid& grid) { return name_of(grid.closure->code.name, grid.closure->code.function); }

Text describe(Epoch by) {
    const Who who = who_is(by);
    if (who.kernel.empty()) return "an unknown thread";
    if (!who.is_thread) return who.kernel;
    return "thread " + triple(who.thread.x, who.thread.y, who.thread.z, '(', ')') + " of block " +
           triple(who.block.x, who.block.y, who.block.z, '(', ')') + " of " + who.kernel + " (launched at " + who.origin->file + ":" +
           number(who.origin->line) + ")";
}

Text describe(const Thread& thread) { return describe(thread.epoch); }

void remember_blocks(std::uint32_t first, std::uint64_t count, const Grid* grid, const char* operation) {
    Origin origin{};
    origin.first = first;
    origin.count = count;
    if (grid != nullptr) {
        origin.grid = grid->shape.grid;
        origin.block = grid->shape.block;
        origin.name = grid->closure->code.name;
        origin.function = grid->closure->code.function;
        origin.file = grid->shape.file;
        origin.line = grid->shape.line;
    } else {
        origin.name = operation;
    }
    origins.push_back(origin);
}

void fatal(const char* kind, const Text& message, const std::vector<ReportedAccess>& accesses) {
    static bool failing = false;
    if (!failing) {   // a fault while one is being described adds nothing
        failing = true;
        std::fflush(stdout);
        Text text = message;
        for (const ReportedAccess& access : accesses) {
            text += "\n    " + Text(access.what) + " of " + number(access.bytes) + " bytes";
            const AddressDescription where = describe_address(access.address);
            if (!where.allocation.empty()) text += " at offset " + number(where.offset) + " of " + where.allocation;
            if (access.by != 0) text += " by " + describe(access.by);
            if (access.site != 0) text += " at " + describe_site(access.site);
        }
        std::fprintf(stderr, "gridfuse-emulator: %s: %s (seed %llu)\n", kind, text.c_str(), static_cast<unsigned long long>(settings.seed));
        write_line(to_json(kind, message, accesses));
        std::fflush(nullptr);
    }
    _exit(70);
}

void note(const char* kind, const Text& message, const std::vector<ReportedAccess>& accesses) {
    write_line(to_json(kind, message, accesses));
}

}   // namespace emu
