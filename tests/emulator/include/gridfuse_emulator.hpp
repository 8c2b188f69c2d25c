// What a translated CUDA program sees of the emulator: the language extensions of CUDA as functions and objects, and
// CUDA's runtime API. See README.md beside this directory.
#ifndef GRIDFUSE_EMULATOR_HPP
#define GRIDFUSE_EMULATOR_HPP

#include "emulator/types.hpp"

#include "emulator/device.hpp"

#include "emulator/host.hpp"

// As nvcc does for a .cu file.
#include <cassert>
#include <cstdio>
#include <cstdlib>

#endif
