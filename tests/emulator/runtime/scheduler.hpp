// Which thread runs next, which grid starts when. All choices come from the seed.
#ifndef EMU_SCHEDULER_HPP
#define EMU_SCHEDULER_HPP

#include "model.hpp"

#include "text.hpp"

namespace emu {

extern int accesses_to_switch;        // counts down to the next switch at an access
extern std::uint64_t progress;        // changes whenever something happens that another thread could wait for
extern Thread host_thread;            // the host, as an actor

/// Gives other threads their turn; the current one stays runnable.
void yield();
/// The countdown has run out: accounts for the steps and perhaps switches.
void count_down();
/// The current thread goes on after many switches, while others can run.
void delay();
/// The current thread waits until `resume`.
void wait(Waiting reason, Site site);
void resume(Thread& thread);
/// The current thread waits until this grid, which it has launched, is complete, or until nothing else can run.
void hold(Grid& child);
/// The current thread waits until all that its block has launched so far is complete, and knows then what that did.
void wait_for_children();
/// Called at an access that may be a step of waiting (a strong read, a failed compare-and-swap).
void spin();
/// The current thread waits for the others of its warp that may reach the same __activemask.
unsigned gather(Site site);

/// A new operation, after those that it waits for.
void wait_for(Op& op, const Ptr<Op>& before);
/// It may start when all it waits for is done.
void submit(const Ptr<Op>& op);

/// The host waits until `op` is done; everything may run meanwhile.
void host_wait(const Ptr<Op>& op);
/// The host waits until nothing is left to do.
void host_wait_all();
/// The host does something that takes time: the device may go on a little. `waiting`: the host may be polling.
void host_passes(bool waiting = false);
bool device_is_idle();

/// Numbers for the blocks of a grid, or for one actor that is none.
std::uint32_t take_block_ids(std::uint64_t count);
/// "3 threads wait at a.cu:12 in __syncthreads; ..."
Text describe_waiting();
std::size_t max_resident();

/// The current thread knows what it did up to here, and starts a new clock; what it passes on.
KnowledgePtr release(Thread& thread);
/// It learns something.
void acquire(Thread& thread, const KnowledgePtr& knowledge);

/// One host thread at a time is in the runtime.
struct HostLock {
    HostLock();
    ~HostLock();
};

}   // namespace emu

#endif
