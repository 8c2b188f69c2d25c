#include "own_new.hpp"

#include "warp.hpp"

#include "access.hpp"
#include "report.hpp"
#include "scheduler.hpp"
#include "settings.hpp"

#include <algorithm>

#define SITE reinterpret_cast<emu::Site>(__builtin_return_address(0))

namespace emu {

namespace {

Thread& self_in_kernel(const char* what) {
    if (current == nullptr) fatal("unsupported", Text("host code calls ") + what);
    resolve_same_value();
    return *current;
}

// ------------------------------------------------------------------------------------------------- the block

void complete_barrier(Block& block) {
    std::uint32_t upto = block.latest_clock;
    for (unsigned i = 0; i < block.threads; ++i)
        if (!block.thread[i].exited) upto = std::max(upto, clock_of(block.thread[i].epoch));
    if (upto == kMaxClock) fatal("unsupported", "more than 2^24 synchronisations of one thread");
    // Threads that have left count as if they had arrived: what they did comes before the barrier.
    block.upto = upto;
    block.arrived = 0;
    for (unsigned i = 0; i < block.threads; ++i) {
        Thread& thread = block.thread[i];
        if (thread.exited) continue;
        thread.epoch = make_epoch(block.id, i, upto + 1);
        thread.accessed = false;
        thread.known = block.joining;
        thread.lanes = LanesPtr();
        thread.barrier_result = block.barrier_value;
        if (thread.waiting == Waiting::Barrier) resume(thread);
    }
    ++progress;
}

// -------------------------------------------------------------------------------------------------- the warp

// Lanes that have not ended. Only these are waited for: "all non-exited threads named in mask" (CUDA C++ Programming Guide).
unsigned present(const Block& block, unsigned warp) {
    unsigned mask = 0;
    for (unsigned lane = 0; lane < 32 && warp * 32 + lane < block.threads; ++lane)
        if (!block.thread[warp * 32 + lane].exited) mask |= 1u << lane;
    return mask;
}

const char* name(WarpOp op) {
    switch (op) {
        case WarpOp::Sync: return "__syncwarp";
        case WarpOp::Shuffle: return "a shuffle";
        case WarpOp::Ballot: return "a vote";
        case WarpOp::MatchAny: return "__match_any_sync";
        case WarpOp::MatchAll: return "__match_all_sync";
        case WarpOp::Reduce: return "a __reduce function";
    }
    return "a warp function";
}

Text hex(unsigned mask) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", mask);
    return text;
}

void unlink(Block& block, Meeting* meeting) {
    Meeting** at = &block.meetings;
    while (*at != meeting) at = &(*at)->next;
    *at = meeting->next;
}

// All lanes are there. Only __syncwarp orders memory.
void complete_meeting(Block& block, Meeting& meeting, const Thread* running) {
    meeting.complete = true;
    ++progress;
    Thread* const lanes = block.thread + meeting.warp * 32;
    if (meeting.op == WarpOp::Sync) {
        LanesPtr all;
        KnowledgePtr known;
        for (unsigned rest = meeting.arrived; rest != 0; rest &= rest - 1) {
            const Thread& thread = lanes[__builtin_ctz(rest)];
            join(all, thread.lanes);
            join(known, thread.known);
        }
        for (unsigned rest = meeting.arrived; rest != 0; rest &= rest - 1) {
            const Thread& thread = lanes[__builtin_ctz(rest)];
            set(all, thread.number(), clock_of(thread.epoch));
        }
        for (unsigned rest = meeting.arrived; rest != 0; rest &= rest - 1) {
            Thread& thread = lanes[__builtin_ctz(rest)];
            thread.lanes = all;
            thread.known = known;
            thread.advance_clock();
        }
    }
    for (unsigned rest = meeting.arrived; rest != 0; rest &= rest - 1) {
        Thread& thread = lanes[__builtin_ctz(rest)];
        if (&thread != running) resume(thread);
    }
}

// Waits until all lanes that `mask` names are here. Then they have the values in the result, until `leave_meeting`.
Meeting& meet(Thread& self, WarpOp op, unsigned mask, std::uint64_t value, Site site) {
    Block& block = *self.block;
    const unsigned lane = self.lane(), warp = self.warp();
    if ((mask >> lane & 1) == 0)
        fatal("invalid-argument", Text(name(op)) + " at " + describe_site(site) + " by " + describe(self) + ": lane " + number(lane) +
                                      " is not in the mask " + hex(mask));
    Meeting* meeting = nullptr;
    for (Meeting* m = block.meetings; m != nullptr; m = m->next) {
        if (m->warp != warp || m->complete || (m->mask >> lane & 1) == 0) continue;
        if (m->mask == mask && m->op == op) {
            meeting = m;
            break;
        }
        // Lanes of it are named here as well, so that each side waits for the other.
        if ((m->arrived & mask) != 0)
            fatal("barrier-divergence", "lanes of a warp wait for each other at different places: " + Text(name(m->op)) + " with mask " +
                                            hex(m->mask) + " at " + describe_site(m->site) + ", " + name(op) + " with mask " + hex(mask) + " at " +
                                            describe_site(site) + " by " + describe(self));
    }
    if (meeting == nullptr) {
        meeting = new Meeting;
        meeting->warp = warp;
        meeting->op = op;
        meeting->mask = mask;
        meeting->site = site;
        meeting->next = block.meetings;
        block.meetings = meeting;
    }
    meeting->arrived |= 1u << lane;
    meeting->values[lane] = value;
    if (meeting->arrived == (mask & present(block, warp))) {
        complete_meeting(block, *meeting, &self);
    } else {
        self.meeting = meeting;
        wait(Waiting::Warp, site);
        self.meeting = nullptr;
    }
    return *meeting;
}

void leave_meeting(Thread& self, Meeting& meeting) {
    meeting.taken |= 1u << self.lane();
    if (meeting.taken != meeting.arrived) return;
    unlink(*self.block, &meeting);
    delete &meeting;
}

}   // namespace

void thread_left_barrier(Block& block) {
    if (block.arrived != 0 && block.arrived == block.live) complete_barrier(block);
}

void thread_left_warp(Thread& thread) {
    Block& block = *thread.block;
    for (Meeting* m = block.meetings; m != nullptr; m = m->next) {
        if (m->warp != thread.warp() || m->complete || (m->mask >> thread.lane() & 1) == 0) continue;
        if (m->arrived == (m->mask & present(block, m->warp))) complete_meeting(block, *m, nullptr);
    }
}

void drop_meetings(Block& block) {
    while (block.meetings != nullptr) {
        Meeting* const next = block.meetings->next;
        delete block.meetings;
        block.meetings = next;
    }
}

namespace rt {

int barrier(BarrierOp op, int predicate) {
    const Site site = SITE;
    Thread& self = self_in_kernel("__syncthreads");
    Block& block = *self.block;
    if (block.arrived == 0) {
        block.barrier = op;
        block.barrier_site = site;
        block.barrier_value = op == BarrierOp::And;
    } else if (block.barrier != op || !same_line(block.barrier_site, site)) {
        fatal("barrier-divergence", "threads of a block meet at different barriers: " + describe_site(block.barrier_site) + " and, " + describe(self) +
                                        ", " + describe_site(site));
    }
    switch (op) {
        case BarrierOp::Sync: break;
        case BarrierOp::Count: block.barrier_value += predicate != 0; break;
        case BarrierOp::And: block.barrier_value &= predicate != 0; break;
        case BarrierOp::Or: block.barrier_value |= predicate != 0; break;
    }
    ++block.arrived;
    join(block.joining, self.known);
    if (block.arrived == block.live) {
        complete_barrier(block);
        if (settings.switch_every != 0) yield();
    } else {
        wait(Waiting::Barrier, site);
    }
    return self.barrier_result;
}

void warp_sync(unsigned mask) {
    const Site site = SITE;
    Thread& self = self_in_kernel("__syncwarp");
    leave_meeting(self, meet(self, WarpOp::Sync, mask, 0, site));
}

std::uint64_t shuffle(unsigned mask, std::uint64_t bits, ShuffleMode mode, int lane, int width) {
    const Site site = SITE;
    Thread& self = self_in_kernel("a shuffle");
    if (width <= 0 || width > 32 || (width & (width - 1)) != 0)
        fatal("invalid-argument", "a shuffle of width " + number(width) + " at " + describe_site(site));
    Meeting& meeting = meet(self, WarpOp::Shuffle, mask, bits, site);
    const int own = static_cast<int>(self.lane()), first = own & ~(width - 1), last = first + width - 1;
    int source = own;
    switch (mode) {
        case ShuffleMode::Index: source = first | (lane & (width - 1)); break;
        case ShuffleMode::Up: source = own - lane < first ? own : own - lane; break;
        case ShuffleMode::Down: source = static_cast<unsigned>(lane) > 31 || own + lane > last ? own : own + lane; break;
        case ShuffleMode::Xor: source = (own ^ lane) > last ? own : (own ^ lane) & 31; break;
    }
    // The value of a lane that takes no part is undefined: anything, and not the same every time.
    const std::uint64_t result = meeting.arrived >> source & 1 ? meeting.values[source] : chance.next();
    leave_meeting(self, meeting);
    return result;
}

unsigned ballot(unsigned mask, int predicate) {
    const Site site = SITE;
    Thread& self = self_in_kernel("a vote");
    Meeting& meeting = meet(self, WarpOp::Ballot, mask, predicate != 0, site);
    unsigned result = 0;
    for (unsigned rest = meeting.arrived; rest != 0; rest &= rest - 1)
        if (meeting.values[__builtin_ctz(rest)] != 0) result |= rest & -rest;
    leave_meeting(self, meeting);
    return result;
}

unsigned match_any(unsigned mask, std::uint64_t bits) {
    const Site site = SITE;
    Thread& self = self_in_kernel("__match_any_sync");
    Meeting& meeting = meet(self, WarpOp::MatchAny, mask, bits, site);
    unsigned result = 0;
    for (unsigned rest = meeting.arrived; rest != 0; rest &= rest - 1)
        if (meeting.values[__builtin_ctz(rest)] == bits) result |= rest & -rest;
    leave_meeting(self, meeting);
    return result;
}

unsigned match_all(unsigned mask, std::uint64_t bits, int* all) {
    const Site site = SITE;
    Thread& self = self_in_kernel("__match_all_sync");
    Meeting& meeting = meet(self, WarpOp::MatchAll, mask, bits, site);
    bool same = true;
    for (unsigned rest = meeting.arrived; rest != 0; rest &= rest - 1) same = same && meeting.values[__builtin_ctz(rest)] == bits;
    const unsigned result = same ? meeting.arrived : 0;
    leave_meeting(self, meeting);
    *all = same;
    return result;
}

unsigned reduce(unsigned mask, unsigned value, Reduction op) {
    const Site site = SITE;
    Thread& self = self_in_kernel("a __reduce function");
    Meeting& meeting = meet(self, WarpOp::Reduce, mask, value, site);
    unsigned result = value;
    for (unsigned rest = meeting.arrived & ~(1u << self.lane()); rest != 0; rest &= rest - 1) {
        const unsigned other = static_cast<unsigned>(meeting.values[__builtin_ctz(rest)]);
        switch (op) {
            case Reduction::AddUnsigned: result += other; break;
            case Reduction::MinUnsigned: result = std::min(result, other); break;
            case Reduction::MaxUnsigned: result = std::max(result, other); break;
            case Reduction::MinSigned: result = static_cast<unsigned>(std::min(static_cast<int>(result), static_cast<int>(other))); break;
            case Reduction::MaxSigned: result = static_cast<unsigned>(std::max(static_cast<int>(result), static_cast<int>(other))); break;
            case Reduction::And: result &= other; break;
            case Reduction::Or: result |= other; break;
            case Reduction::Xor: result ^= other; break;
        }
    }
    leave_meeting(self, meeting);
    return result;
}

unsigned active_mask() {
    const Site site = SITE;
    (void)self_in_kernel("__activemask");
    return gather(site);
}

}   // namespace rt

}   // namespace emu
