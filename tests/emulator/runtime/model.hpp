// What there is while a program runs: threads, blocks, grids, and the operations that streams put in order.
#ifndef EMU_MODEL_HPP
#define EMU_MODEL_HPP

// The built-in variables, which the header declares const for device code.
#define GRIDFUSE_EMULATOR_RUNTIME
#include "gridfuse_emulator.hpp"

#include "knowledge.hpp"

#include <cstdint>
#include <vector>

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace emu {

struct Thread;
struct Block;
struct Grid;
struct Op;
struct Allocation;
struct Meeting;
struct ReleaseLog;

/// A place in the program: a return address.
using Site = std::uintptr_t;

/// Why a thread isn't running, for the scheduler and for reports.
enum class Waiting : unsigned char {
    No,
    Barrier,       // __syncthreads
    Warp,          // for other lanes: __syncwarp, shuffles, votes
    Convergence,   // in __activemask, until the scheduler forms a group; counts as runnable
    Child,         // has launched a grid that the schedule runs first
    Children,      // in cudaDeviceSynchronize, for what the block has launched
};

/// What a thread knows through fences and atomics beyond its clocks; most threads never have one.
struct Ordering {
    struct Seen {
        Ptr<ReleaseLog> log;
        std::size_t length;   // of the log when it was seen
    };
    KnowledgePtr block_release, device_release;   // what a strong write passes on since the last fence
    std::vector<Seen> seen;                       // released by writes that this thread has read, not yet acquired
};

/// A thread of a grid, or one of the actors that are treated as one: the host, and every copy in a stream.
struct Thread {
    Block* block = nullptr;
    Epoch epoch = 0;                  // its clock is the last part
    KnowledgePtr known;               // of other blocks
    LanesPtr lanes;                   // of its own block, beyond Block::upto
    Ordering* ordering = nullptr;
    Epoch sure_block = ~0ull;         // a block of which everything up to sure_clock is known: the last answer
    std::uint32_t sure_clock = 0;
    bool accessed = false;            // since the clock was last advanced

    Waiting waiting = Waiting::No;
    bool exited = false;
    cudaError_t last_error = cudaSuccess;
    uint3 index{};
    void* stack_pointer = nullptr;    // null: has not started
    char* stack = nullptr;
    std::uint32_t runnable_at = ~0u;  // its place in the scheduler's list
    Site site = 0;                    // of what it waits in
    Meeting* meeting = nullptr;       // that it waits in
    Grid* child = nullptr;            // that it waits for
    std::uint64_t delayed_until = 0;  // so many picks of the scheduler, if others can run
    std::uint32_t spins = 0;          // strong accesses without progress
    std::uint64_t spins_since = 0;    // what the progress counter was then
    unsigned activemask = 0;          // handed over by the scheduler
    int barrier_result = 0;

    std::uint32_t number() const { return thread_of(epoch); }
    unsigned lane() const { return number() & 31; }
    unsigned warp() const { return number() >> 5; }
    void advance_clock();
};

/// The order of the operations of a stream: each waits for the last.
struct Stream {
    std::uint64_t alive = 0;
    std::uint64_t id = 0;
    bool blocking = false;            // with the legacy default stream
    Block* block = nullptr;           // that created it; null: the host
    std::uint32_t block_id = 0;
    Ptr<Op> last;
    Graph* capture = nullptr;
};

struct Event {
    std::uint64_t alive = 0;
    bool timing = true;
    std::uint32_t block_id = 0;       // 0: the host
    Ptr<Op> recorded;
};

struct SharedVariable {
    const SharedKey* key;
    Allocation* allocation;
};

struct Block {
    std::uint32_t id = 0;
    std::uint32_t upto = 0;           // every thread knows everything of this block up to this clock
    Grid* grid = nullptr;             // null: the host, a copy
    uint3 index{};
    unsigned threads = 0, live = 0, arrived = 0;
    Thread* thread = nullptr;
    BarrierOp barrier = BarrierOp::Sync;
    Site barrier_site = 0;
    int barrier_value = 0;
    KnowledgePtr joining;             // what the threads that wait at the barrier, or have left, know together
    std::uint32_t latest_clock = 0;   // of threads that have left
    Meeting* meetings = nullptr;      // of its warps, in a list
    std::vector<SharedVariable> shared;
    Allocation* dynamic_shared = nullptr;
    Stream null_stream;
    std::vector<Ptr<Op>> launched;    // by its threads, where kernels may wait for that
    std::uint32_t unstarted = 0;      // threads that have not run yet
};

/// Something in a stream. Starts when all it waits for is done.
struct Op {
    enum class Kind : unsigned char { Grid, Work, Nothing };
    unsigned references = 0;
    Kind kind = Kind::Nothing;
    bool done = false, started = false, counted = false;
    unsigned waits_for = 0;
    std::uint64_t sequence = 0;
    Grid* parent = nullptr;           // launched by a thread of this grid; null: by the host
    std::vector<Op*> successors;      // each holds a reference
    std::vector<Thread*> awaiting;    // that are in cudaDeviceSynchronize until it is done
    KnowledgePtr start, end;

    virtual ~Op() = default;
    /// Does it at once; not for grids.
    virtual void execute(Thread&) {}
};

struct Closure {   // shared by the launches of a graph
    unsigned references = 0;
    rt::KernelCode code{};
    void* memory = nullptr;
    ~Closure();
};

struct Grid final : Op {
    Ptr<Closure> closure;
    rt::LaunchShape shape{};
    std::uint64_t blocks = 0, started_blocks = 0, finished_blocks = 0;
    unsigned block_threads = 0;
    std::uint32_t first_id = 0;
    std::uint64_t order_stride = 1, order_offset = 0;
    unsigned depth = 0;
    unsigned children = 0;            // not complete, tail launches aside
    KnowledgePtr gathered;            // what its threads and children know that are complete
    std::vector<Ptr<Op>> tail;        // launched to cudaStreamTailLaunch, in order
    std::size_t next_tail = 0;
    std::vector<Thread*> waiting;     // launchers that the schedule holds until this grid is complete

    uint3 block_index(std::uint64_t number) const;
};

/// Marks a stream or an event that has been created and not destroyed.
constexpr std::uint64_t kAlive = 0x676f6f642d68616eull;

/// The thread that runs, on its fiber; null on a host thread that runs host code.
extern __thread Thread* current __attribute__((tls_model("local-exec")));

}   // namespace emu

#endif
