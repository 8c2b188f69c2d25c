#include "own_new.hpp"

#include "stream.hpp"

#include "access.hpp"
#include "memory.hpp"
#include "report.hpp"
#include "scheduler.hpp"
#include "settings.hpp"

#include <new>

namespace emu {

std::uint64_t pending_launches = 0;
std::uint64_t pending_launch_limit = 2048;

namespace {

// Handles are addresses in a place of their own, so that a wrong one can be told.
template <class T, std::uintptr_t kBase>
class Handles {
public:
    static constexpr std::size_t kMost = 1u << 22;

    T& make() {
        if (made_ == 0) reserve(kBase, kMost * sizeof(T), "handles");
        T* at;
        if (!free_.empty()) {
            at = free_.back();
            free_.pop_back();
        } else {
            if (made_ == kMost) fatal("unsupported", "more than four million streams or events at a time");
            at = reinterpret_cast<T*>(kBase) + made_++;
        }
        return *new (at) T;
    }
    void release(T& object) {
        object.~T();
        new (&object) T;
        free_.push_back(&object);
    }
    bool holds(const T* object) const {
        const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(object) - kBase;
        return offset < made_ * sizeof(T) && offset % sizeof(T) == 0 && object->alive == kAlive;
    }

private:
    std::size_t made_ = 0;
    std::vector<T*> free_;
};

Handles<Stream, 0x1c00'0000'0000> streams;
Handles<Event, 0x1d00'0000'0000> events;
std::uint64_t stream_ids = 2;

// The host's: the legacy default stream orders itself with all streams that are not non-blocking.
Ptr<Op> legacy_last;
std::vector<Stream*> blocking_streams;
Stream per_thread_stream;

__thread cudaError_t host_error = cudaSuccess;

bool is_default(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

std::uint32_t caller_id() { return current == nullptr ? 0 : current->block->id; }

void enqueue_on_host(cudaStream_t stream, Op& op, const Ptr<Op>& keep) {
    op.start = release(host_thread);
    if (is_default(stream)) {
        wait_for(op, legacy_last);
        for (Stream* other : blocking_streams) wait_for(op, other->last);
        wait_for(op, per_thread_stream.last);
        legacy_last = keep;
        return;
    }
    Stream& s = stream == cudaStreamPerThread ? per_thread_stream : *stream;
    wait_for(op, s.last);
    if (s.blocking || &s == &per_thread_stream) wait_for(op, legacy_last);
    s.last = keep;
}

void enqueue_in_kernel(Thread& self, cudaStream_t stream, Op& op, const Ptr<Op>& keep) {
    Grid& parent = *self.block->grid;
    op.start = release(self);
    op.parent = &parent;
    ++parent.references;   // until the operation is complete
    if (stream == cudaStreamTailLaunch) {
        parent.tail.push_back(keep);   // counted and submitted when its turn comes
        return;
    }
    op.counted = true;
    ++parent.children;
    if (settings.device_sync) self.block->launched.push_back(keep);
    if (stream == cudaStreamFireAndForget) return;
    Stream& s = stream == nullptr ? self.block->null_stream : *stream;
    wait_for(op, s.last);
    s.last = keep;
}

Ptr<Op> nothing() { return Ptr<Op>(new Op); }

cudaError_t make_stream(cudaStream_t* made, unsigned flags) {
    if (made == nullptr || flags > cudaStreamNonBlocking) return fail(cudaErrorInvalidValue);
    // On the device there are non-blocking streams only.
    if (current != nullptr && flags != cudaStreamNonBlocking) return fail(cudaErrorInvalidValue);
    Stream& stream = streams.make();
    stream.alive = kAlive;
    stream.id = ++stream_ids;
    stream.block_id = caller_id();
    stream.blocking = current == nullptr && flags == cudaStreamDefault;
    if (stream.blocking) blocking_streams.push_back(&stream);
    give(made, &stream);
    return cudaSuccess;
}

}   // namespace

bool is_stream(cudaStream_t stream) {
    if (is_default(stream) || stream == cudaStreamPerThread) return current == nullptr || stream == nullptr;
    if (stream == cudaStreamTailLaunch || stream == cudaStreamFireAndForget) return current != nullptr;
    return streams.holds(stream) && stream->block_id == caller_id();
}

void capture_memory(cudaStream_t stream) { stream->capture->has_memory = true; }

bool is_event(cudaEvent_t event) { return events.holds(event) && event->block_id == caller_id(); }

bool is_capturing(cudaStream_t stream) {
    return current == nullptr && stream != cudaStreamPerThread && !is_default(stream) && stream->capture != nullptr;
}

cudaError_t enqueue(cudaStream_t stream, const std::function<Ptr<Op>()>& make, Ptr<Op>* made) {
    if (!is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
    if (is_capturing(stream)) {
        stream->capture->nodes.push_back(make);
        return cudaSuccess;
    }
    const Ptr<Op> op = make();
    if (made != nullptr) *made = op;
    if (current == nullptr) {
        enqueue_on_host(stream, *op, op);
        submit(op);
    } else {
        enqueue_in_kernel(*current, stream, *op, op);
        if (stream != cudaStreamTailLaunch) submit(op);
    }
    return cudaSuccess;
}

cudaError_t fail(cudaError_t error) {
    (current != nullptr ? current->last_error : host_error) = error;
    return error;
}

}   // namespace emu

using namespace emu;

cudaError_t cudaGetLastError() {
    cudaError_t& error = current != nullptr ? current->last_error : host_error;
    const cudaError_t result = error;
    error = cudaSuccess;
    return result;
}

cudaError_t cudaPeekAtLastError() { return current != nullptr ? current->last_error : host_error; }

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    const HostLock lock;
    return make_stream(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    const HostLock lock;
    return make_stream(stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
    const HostLock lock;
    return make_stream(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    const HostLock lock;
    if (!streams.holds(stream) || !is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
    // What is in it still runs, and still orders the legacy default stream.
    if (stream->blocking) {
        for (std::size_t i = 0; i < blocking_streams.size(); ++i) {
            if (blocking_streams[i] != stream) continue;
            blocking_streams.erase(blocking_streams.begin() + static_cast<std::ptrdiff_t>(i));
            break;
        }
        if (stream->last && !stream->last->done) {
            const Ptr<Op> both = nothing();
            wait_for(*both, legacy_last);
            wait_for(*both, stream->last);
            legacy_last = both;
            submit(both);
        }
    }
    streams.release(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const HostLock lock;
    if (current != nullptr) fatal("unsupported", "a kernel calls cudaStreamSynchronize, which CUDA 12 has no more");
    if (!is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
    if (is_capturing(stream)) return fail(cudaErrorStreamCaptureUnsupported);
    if (!is_default(stream)) {
        host_wait((stream == cudaStreamPerThread ? per_thread_stream : *stream).last);
        return cudaSuccess;
    }
    Ptr<Op> marker;
    if (const cudaError_t error = enqueue(stream, nothing, &marker)) return error;
    host_wait(marker);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    const HostLock lock;
    if (!is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
    host_passes(true);
    const Ptr<Op> last = is_default(stream) ? legacy_last : (stream == cudaStreamPerThread ? per_thread_stream : *stream).last;
    if (last && !last->done) return cudaErrorNotReady;
    host_wait(last);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    const HostLock lock;
    if (!is_event(event)) return fail(cudaErrorInvalidResourceHandle);
    const Ptr<Op> recorded = event->recorded;
    return enqueue(stream, [recorded] {
        Ptr<Op> op = nothing();
        wait_for(*op, recorded);
        return op;
    });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
    const HostLock lock;
    if (!is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
    *id = is_default(stream) ? 1 : stream == cudaStreamPerThread ? 2 : stream->id;
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    const HostLock lock;
    return enqueue(stream, [function, data] { return task([function, data](Thread&) { function(data); }); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
    const HostLock lock;
    if (made == nullptr) return fail(cudaErrorInvalidValue);
    Event& event = events.make();
    event.alive = kAlive;
    event.timing = (flags & cudaEventDisableTiming) == 0;
    event.block_id = caller_id();
    give(made, &event);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* made) { return cudaEventCreateWithFlags(made, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    const HostLock lock;
    if (!is_event(event)) return fail(cudaErrorInvalidResourceHandle);
    events.release(*event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const HostLock lock;
    if (!is_event(event)) return fail(cudaErrorInvalidResourceHandle);
    Ptr<Op> marker;
    const cudaError_t error = enqueue(stream, nothing, &marker);
    if (marker) event->recorded = marker;
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const HostLock lock;
    if (!is_event(event)) return fail(cudaErrorInvalidResourceHandle);
    host_wait(event->recorded);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    const HostLock lock;
    if (!is_event(event)) return fail(cudaErrorInvalidResourceHandle);
    host_passes(true);
    if (event->recorded && !event->recorded->done) return cudaErrorNotReady;
    host_wait(event->recorded);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
    const HostLock lock;
    if (!is_event(start) || !is_event(stop) || !start->recorded || !stop->recorded) return fail(cudaErrorInvalidResourceHandle);
    if (!start->recorded->done || !stop->recorded->done) return fail(cudaErrorNotReady);
    // There is no time here; a number that is the same in every run.
    *milliseconds = static_cast<float>(stop->recorded->sequence - start->recorded->sequence) * 0.001f;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    const HostLock lock;
    if (is_default(stream) || !is_stream(stream) || stream->capture != nullptr) return fail(cudaErrorStreamCaptureUnsupported);
    stream->capture = new Graph;
    ++stream->capture->references;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    const HostLock lock;
    if (!is_stream(stream) || !is_capturing(stream)) return fail(cudaErrorInvalidValue);
    *graph = stream->capture;
    stream->capture = nullptr;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    const HostLock lock;
    if (!is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
    *status = is_capturing(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    static __thread cudaStreamCaptureMode now = cudaStreamCaptureModeGlobal;
    std::swap(*mode, now);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
    const HostLock lock;
    if (graph == nullptr) return fail(cudaErrorInvalidValue);
    if (graph->has_memory && graph->executables != 0) return fail(cudaErrorNotSupported);
    ++graph->executables;
    *executable = new GraphExec{Ptr<Graph>(graph)};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    const HostLock lock;
    if (executable == nullptr) return fail(cudaErrorInvalidValue);
    for (const auto& node : executable->graph->nodes)
        if (const cudaError_t error = enqueue(stream, node)) return error;
    host_passes();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    const HostLock lock;
    if (graph == nullptr) return fail(cudaErrorInvalidValue);
    if (--graph->references == 0) delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    const HostLock lock;
    if (executable != nullptr) --executable->graph->executables;
    delete executable;
    return cudaSuccess;
}
