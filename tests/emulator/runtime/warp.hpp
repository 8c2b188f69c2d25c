// Where the threads of a block, or the lanes of a warp, meet.
#ifndef EMU_WARP_HPP
#define EMU_WARP_HPP

#include "model.hpp"

namespace emu {

/// Lanes of a warp that do one thing together: those named in a mask.
struct Meeting {
    unsigned warp = 0;
    WarpOp op = WarpOp::Sync;
    unsigned mask = 0;      // as the program says
    unsigned arrived = 0;
    unsigned taken = 0;     // lanes that have their results
    bool complete = false;
    Site site = 0;
    std::uint64_t values[32];
    Meeting* next = nullptr;
};

/// A thread has ended: others may have waited for it alone.
void thread_left_barrier(Block& block);
void thread_left_warp(Thread& thread);
void drop_meetings(Block& block);

}   // namespace emu

#endif
