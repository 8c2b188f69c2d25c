#include "gridfuse_emulator.hpp"
