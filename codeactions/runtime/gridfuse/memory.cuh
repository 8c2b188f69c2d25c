// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Memory of the device for one launch in a stream.

#ifndef GRIDFUSE_MEMORY_CUH
#define GRIDFUSE_MEMORY_CUH

#include "lock.cuh"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gridfuse {
inline namespace v2 {

namespace detail {

/// Arena memory between launches: what a launch in a stream has used, the next launch in the same
/// stream may use without asking CUDA for it, as it runs later. (Two calls of the pool cost about 2
/// us a launch.)
class KeptMemory {
public:
    /// Memory of at least `bytes` that was given back in this stream, or null. `bytes` becomes its
    /// size, `zeros` the number of bytes at its front that are zero when a launch in this stream
    /// begins; `turn` is as it was given.
    void* take(int device, unsigned long long stream, std::size_t& bytes, std::size_t& zeros,
               unsigned& turn) {
        const Lock lock(held_);
        for (Piece& piece : pieces_) {
            if (piece.memory != nullptr && piece.stream == stream && piece.device == device &&
                piece.bytes >= bytes) {
                void* const memory = piece.memory;
                piece.memory = nullptr;
                bytes = piece.bytes;
                zeros = piece.zeros;
                turn = piece.turn;
                return memory;
            }
        }
        return nullptr;
    }

    /// Keeps memory for later launches in this stream, whose id is `id`; false if there is no place
    /// for it, or if it would be more than `most` bytes of the device. What is kept of this stream
    /// makes way, as that is large enough for later launches.
    bool give(int device, cudaStream_t stream, unsigned long long id, void* memory,
              std::size_t bytes, std::size_t zeros, unsigned turn, std::size_t most) {
        void* leaving[kPieces];
        std::size_t count = 0;
        const bool kept = keep({memory, bytes, zeros, id, device, turn}, most, leaving, count);
        // Not while the lock is held: others would spin for as long.
        for (std::size_t i = 0; i < count; ++i) (void)cudaFreeAsync(leaving[i], stream);
        return kept;
    }

    static KeptMemory& instance() {
        static KeptMemory kept;
        return kept;
    }

    /// What launches leave that take turns with the front of their memory: see Follower.
    static KeptMemory& of_followers() {
        static KeptMemory kept;
        return kept;
    }

private:
    struct Piece {
        void* memory = nullptr;
        std::size_t bytes = 0;
        std::size_t zeros = 0;
        unsigned long long stream = 0;   // its id, which no later stream has again
        int device = 0;
        unsigned turn = 0;
    };

    /// Puts a piece among those that are kept; `leaving`: the memory of `count` pieces of its
    /// stream that make way.
    bool keep(const Piece& given, std::size_t most, void** leaving, std::size_t& count) {
        const Lock lock(held_);
        std::size_t own = given.bytes, others = 0;
        for (const Piece& piece : pieces_) {
            if (piece.memory != nullptr && piece.device == given.device)
                (piece.stream == given.stream ? own : others) += piece.bytes;
        }
        if (others > most || given.bytes > most - others) return false;
        for (Piece& piece : pieces_) {
            if (own <= most - others) break;
            if (piece.memory == nullptr || piece.device != given.device ||
                piece.stream != given.stream)
                continue;
            leaving[count++] = piece.memory;
            piece.memory = nullptr;
            own -= piece.bytes;
        }
        for (Piece& piece : pieces_) {
            if (piece.memory == nullptr) {
                piece = given;
                return true;
            }
        }
        return false;
    }

    static constexpr std::size_t kPieces = 16;
    std::atomic<bool> held_{false};
    Piece pieces_[kPieces];
};

/// Memory for one launch in a stream, taken and given back in stream order.
class StreamMemory {
public:
    explicit StreamMemory(KeptMemory& kept = KeptMemory::instance()) : kept_(kept) {}
    ~StreamMemory() {
        if (memory_ == nullptr) return;
        if (keep_ && kept_.give(device_, stream_, stream_id_, memory_, bytes_, states_, turn_ ^ 1,
                                most_kept(device_)))
            return;
        (void)cudaFreeAsync(memory_, stream_);
    }
    StreamMemory(const StreamMemory&) = delete;
    StreamMemory& operator=(const StreamMemory&) = delete;

    /// Takes `bytes` bytes, the first `states` of them zero: the kernel leaves them so. False if
    /// there are none.
    bool take(cudaStream_t stream, std::size_t states, std::size_t bytes) {
        stream_ = stream;
        if (cudaGetDevice(&device_) != cudaSuccess) return false;
        // The memory of a graph belongs to the graph, which runs when and where it likes.
        cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
        keep_ = cudaStreamIsCapturing(stream_, &capturing) == cudaSuccess &&
                capturing == cudaStreamCaptureStatusNone &&
                cudaStreamGetId(stream_, &stream_id_) == cudaSuccess;
        bytes_ = bytes;
        states_ = states;
        std::size_t zeros = 0;
        void* memory = keep_ ? kept_.take(device_, stream_id_, bytes_, zeros, turn_) : nullptr;
        // A process waits some 8 ms for its first allocation in stream order, and 0.1 ms for this
        // one: what is kept takes it once.
        if (memory == nullptr && keep_ && bytes <= most_kept(device_)) memory = allocate(bytes);
        if (memory == nullptr) {
            const cudaMemPool_t pool = pool_of(device_);
            if (pool == nullptr ||
                cudaMallocFromPoolAsync(&memory, bytes, pool, stream_) != cudaSuccess)
                return false;
        }
        if (zeros < states && cudaMemsetAsync(memory, 0, states, stream_) != cudaSuccess) {
            (void)cudaFreeAsync(memory, stream_);
            return false;
        }
        memory_ = static_cast<unsigned char*>(memory);
        return true;
    }

    /// The kernel doesn't leave the front as it was.
    void spoil() { states_ = 0; }

    unsigned char* memory() const { return memory_; }
    int device() const { return device_; }

    /// 0 and 1 by turns, from one launch with the same memory to the next.
    unsigned turn() const { return turn_; }

    /// Whether it outlives the launch: not in a graph.
    bool is_kept() const { return keep_; }

private:
    static constexpr int kDevices = 64;

    // What is kept of a device's memory at most, and what its pool keeps: a part of all that it
    // has. The rest of it goes back to the system, for whoever asks for memory next.
    static std::size_t most_kept(int device) {
        static std::atomic<std::size_t> most[kDevices];
        if (device < 0 || device >= kDevices) return 0;
        std::size_t known = most[device].load(std::memory_order_relaxed);
        if (known == 0) {
            std::size_t available = 0, all = 0;
            if (cudaMemGetInfo(&available, &all) != cudaSuccess) return 0;
            known = all / 16;
            most[device].store(known, std::memory_order_relaxed);
        }
        return known;
    }

    // Memory that is there at once, for all streams; null if there is none.
    static void* allocate(std::size_t bytes) {
        // That is no part of a graph that some stream is capturing.
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) return nullptr;
        void* memory = nullptr;
        if (cudaMalloc(&memory, bytes) != cudaSuccess) memory = nullptr;
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
        return memory;
    }

    // A pool of our own for each device, which keeps the memory that is given back: the default
    // pool returns it to the system at every synchronisation, and has to ask for it again.
    static cudaMemPool_t pool_of(int device) {
        static std::atomic<cudaMemPool_t> pools[kDevices];
        if (device < 0 || device >= kDevices) return nullptr;
        if (const cudaMemPool_t pool = pools[device].load(std::memory_order_acquire)) return pool;
        // Making a pool is no part of a graph that some stream is capturing.
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) return nullptr;
        cudaMemPoolProps properties = {};
        properties.allocType = cudaMemAllocationTypePinned;
        properties.handleTypes = cudaMemHandleTypeNone;
        properties.location.type = cudaMemLocationTypeDevice;
        properties.location.id = device;
        cudaMemPool_t pool = nullptr;
        if (cudaMemPoolCreate(&pool, &properties) == cudaSuccess) {
            std::uint64_t keep = most_kept(device);
            (void)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
            // Another thread may have made one meanwhile: that one is the pool then.
            cudaMemPool_t first = nullptr;
            if (!pools[device].compare_exchange_strong(first, pool, std::memory_order_acq_rel,
                                                       std::memory_order_acquire)) {
                (void)cudaMemPoolDestroy(pool);
                pool = first;
            }
        } else {
            pool = nullptr;
        }
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
        return pool;
    }

    KeptMemory& kept_;
    unsigned char* memory_ = nullptr;
    cudaStream_t stream_ = nullptr;
    unsigned long long stream_id_ = 0;
    std::size_t bytes_ = 0;
    std::size_t states_ = 0;
    int device_ = 0;
    unsigned turn_ = 0;
    bool keep_ = false;
};

}   // namespace detail

}   // inline namespace v2
}   // namespace gridfuse

#endif   // GRIDFUSE_MEMORY_CUH
