// Streams, events and graphs: the order in which operations may start.
#ifndef EMU_STREAM_HPP
#define EMU_STREAM_HPP

#include "model.hpp"

#include <functional>
#include <utility>

namespace emu {

/// An operation that is done at once, by an actor of its own.
template <class F>
struct Task final : Op {
    F work;
    explicit Task(F f) : work(std::move(f)) { kind = Kind::Work; }
    void execute(Thread& actor) override { work(actor); }
};

/// What was captured, as recipes for operations. They run one after the other.
struct Graph {
    unsigned references = 0;
    /// Memory that was taken in the captured stream: CUDA makes one executable graph of it at a time.
    bool has_memory = false;
    unsigned executables = 0;
    std::vector<std::function<Ptr<Op>()>> nodes;
};
struct GraphExec {
    Ptr<Graph> graph;
};
struct Pool {
    std::uint64_t release_threshold = 0;   // kept for whoever asks
};

/// Puts a new operation into a stream: the host's, or, in a kernel, one of the block's. The recipe is called for the
/// operation, now or, if the stream is being captured, whenever the graph is launched.
cudaError_t enqueue(cudaStream_t stream, const std::function<Ptr<Op>()>& make, Ptr<Op>* made = nullptr);
template <class F>
Ptr<Op> task(F work) {
    return Ptr<Op>(new Task<F>(std::move(work)));
}
/// Whether the calling thread (or the host) may use this handle.
bool is_stream(cudaStream_t stream);
bool is_event(cudaEvent_t event);
bool is_capturing(cudaStream_t stream);
/// Says that memory is taken in a stream that is being captured.
void capture_memory(cudaStream_t stream);

extern std::uint64_t pending_launches;   // by kernels, not complete
extern std::uint64_t pending_launch_limit;

/// Of the calling thread, on the host or in a kernel: remembers an error and returns it.
cudaError_t fail(cudaError_t error);

}   // namespace emu

#endif
