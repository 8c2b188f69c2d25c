#include "own_new.hpp"

#include "settings.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace emu {

Settings settings;
Random chance;

namespace {

[[noreturn]] void refuse(const char* name, const char* value) {
    std::fprintf(stderr, "gridfuse-emulator: settings: %s=%s makes no sense\n", name, value);
    _exit(2);
}

bool number(const char* name, std::uint64_t& value) {
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == 0) return false;
    char* end = nullptr;
    errno = 0;
    value = std::strtoull(text, &end, 0);
    if (*end != 0 || *text == '-' || errno != 0) refuse(name, text);
    return true;
}

bool flag(const char* name) {
    std::uint64_t value = 0;
    return number(name, value) && value != 0;
}

}   // namespace

void read_settings() {
    (void)number("GRIDFUSE_EMU_SEED", settings.seed);
    Random derive{settings.seed * 0x2545f4914f6cdd1dull + 7};
    chance.state = derive.next();
    // Each seed is one temper: a schedule that switches all the time finds other faults than one that hardly does.
    constexpr unsigned kSwitchEvery[] = {2, 5, 15, 60, 400, 0};
    settings.switch_every = kSwitchEvery[derive.below(sizeof kSwitchEvery / sizeof *kSwitchEvery)];
    constexpr unsigned kResident[] = {1, 2, 3, 4, 8, 16, 32};
    settings.resident = kResident[derive.below(sizeof kResident / sizeof *kResident)];
    settings.children = static_cast<Children>(derive.below(4));
    settings.block_order = static_cast<BlockOrder>(derive.below(3));
    settings.host_patience = static_cast<unsigned>(derive.below(4));
    // Several threads between two steps of a protocol at the same time: rare unless they are held there.
    constexpr unsigned kDelayOneIn[] = {0, 0, 3, 10, 30};
    settings.delay_one_in = kDelayOneIn[derive.below(sizeof kDelayOneIn / sizeof *kDelayOneIn)];

    std::uint64_t value = 0;
    if (number("GRIDFUSE_EMU_STEPS", value)) settings.step_limit = value;
    if (number("GRIDFUSE_EMU_RESIDENT", value)) {
        if (value == 0 || value > 1024) refuse("GRIDFUSE_EMU_RESIDENT", std::getenv("GRIDFUSE_EMU_RESIDENT"));
        settings.resident = static_cast<unsigned>(value);
    }
    if (number("GRIDFUSE_EMU_NESTING", value)) {
        if (value > 1'000'000) refuse("GRIDFUSE_EMU_NESTING", std::getenv("GRIDFUSE_EMU_NESTING"));
        settings.nesting = static_cast<unsigned>(value);
    }
    if (const char* const children = std::getenv("GRIDFUSE_EMU_SCHEDULE"); children != nullptr && *children != 0) {
        if (std::strcmp(children, "eager") == 0) settings.children = Children::Eager;
        else if (std::strcmp(children, "late") == 0) settings.children = Children::Late;
        else if (std::strcmp(children, "lifo") == 0) settings.children = Children::Lifo;
        else if (std::strcmp(children, "random") == 0) settings.children = Children::Any;
        else refuse("GRIDFUSE_EMU_SCHEDULE", children);
    }
    const char* const report = std::getenv("GRIDFUSE_EMU_REPORT");
    settings.report = report != nullptr && *report != 0 ? report : nullptr;
    settings.strict_same_value = flag("GRIDFUSE_EMU_STRICT_SAME_VALUE");
    settings.strict_weak_read = flag("GRIDFUSE_EMU_STRICT_WEAK_READ");
    settings.leaks = flag("GRIDFUSE_EMU_LEAKS");
    settings.device_sync = flag("GRIDFUSE_EMU_DEVICE_SYNC");
}

}   // namespace emu
