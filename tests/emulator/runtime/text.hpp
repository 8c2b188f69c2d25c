// Strings for reports.
//
// libstdc++'s own std::string is a template whose instances the program has too, there with instrumentation; the linker
// would give them to the runtime as well. A type of its own has instances of its own.
#ifndef EMU_TEXT_HPP
#define EMU_TEXT_HPP

#include <cstdio>
#include <string>

namespace emu {

struct CharTraits : std::char_traits<char> {};
using Text = std::basic_string<char, CharTraits>;

inline Text number(long long value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%lld", value);
    return digits;
}

}   // namespace emu

#endif
