// Happens-before, as vector clocks.
//
// FastTrack (Flanagan & Freund, PLDI 2009) keeps a clock for every thread of every thread. A GPU program has millions
// of threads, so, as in BARRACUDA (Eizenberg et al., PLDI 2017), clocks are compressed along CUDA's hierarchy:
//   * a barrier brings all clocks of a block to the same number, so that "everything in block b up to clock c" is one entry;
//   * a grid that is complete is known as a whole: its blocks have consecutive numbers, so it is a range;
//   * what is known of single threads (launches, fences, __syncwarp) is a short list beside that.
// All of it is immutable once shared, so that passing knowledge on (a launch, a barrier) is copying a pointer.
#ifndef EMU_KNOWLEDGE_HPP
#define EMU_KNOWLEDGE_HPP

#include <cstdint>
#include <utility>
#include <vector>

namespace emu {

/// A pointer that counts. Only one fiber runs at a time, so the count is a plain number.
template <class T>
class Ptr {
public:
    Ptr() = default;
    Ptr(T* object) : object_(object) { if (object_ != nullptr) ++object_->references; }
    Ptr(const Ptr& other) : Ptr(other.object_) {}
    Ptr(Ptr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ptr& operator=(const Ptr& other) {
        if (object_ != other.object_) Ptr(other).swap(*this);
        return *this;
    }
    Ptr& operator=(Ptr&& other) noexcept {
        Ptr(std::move(other)).swap(*this);
        return *this;
    }
    ~Ptr() { if (object_ != nullptr && --object_->references == 0) destroy(object_); }
    void swap(Ptr& other) noexcept { std::swap(object_, other.object_); }
    T* get() const { return object_; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    explicit operator bool() const { return object_ != nullptr; }
    bool operator==(const Ptr& other) const { return object_ == other.object_; }
    bool operator!=(const Ptr& other) const { return object_ != other.object_; }

private:
    // Not inlined: g++ doesn't follow the counts and warns of a use after the free.
    __attribute__((noinline)) static void destroy(T* object) { delete object; }

    T* object_ = nullptr;
};

/// One point in the life of one thread: 30 bits block, 10 bits thread in the block, 24 bits clock. 0 is "never".
using Epoch = std::uint64_t;
constexpr unsigned kClockBits = 24, kThreadBits = 10;
constexpr std::uint32_t kMaxClock = (1u << kClockBits) - 1;
constexpr std::uint32_t kMaxBlock = (1u << 30) - 2;   // the last number marks what is no epoch
constexpr Epoch make_epoch(std::uint32_t block, std::uint32_t thread, std::uint32_t clock) {
    return Epoch(block) << (kClockBits + kThreadBits) | Epoch(thread) << kClockBits | clock;
}
constexpr std::uint32_t block_of(Epoch e) { return std::uint32_t(e >> (kClockBits + kThreadBits)); }
constexpr std::uint32_t thread_of(Epoch e) { return std::uint32_t(e >> kClockBits) & ((1u << kThreadBits) - 1); }
constexpr std::uint32_t clock_of(Epoch e) { return std::uint32_t(e) & kMaxClock; }

/// What is known of single threads of a block, beyond what is known of all of it. Sorted by thread.
struct Lanes {
    struct Entry {
        std::uint32_t thread, clock;
    };
    unsigned references = 0;
    std::vector<Entry> entries;

    std::uint32_t clock(std::uint32_t thread) const;
};
using LanesPtr = Ptr<Lanes>;

/// `into` learns what `from` knows.
void join(LanesPtr& into, const LanesPtr& from);
void set(LanesPtr& into, std::uint32_t thread, std::uint32_t clock);

/// What is known of other blocks.
struct Knowledge {
    struct Range {
        std::uint32_t first, end;   // of complete blocks
    };
    struct Partly {
        std::uint32_t block, upto;   // all its threads up to this clock, and
        LanesPtr lanes;              // some of them further
    };
    unsigned references = 0;
    std::vector<Range> complete;   // ascending, with gaps between
    std::vector<Partly> partly;    // ascending; none of them complete

    bool covers(Epoch e) const;
    bool is_complete(std::uint32_t block) const;
    const Partly* find(std::uint32_t block) const;
};
using KnowledgePtr = Ptr<Knowledge>;

/// `into` learns what `from` knows, but for single threads of the blocks in `except` (which will be complete anyway).
void join(KnowledgePtr& into, const KnowledgePtr& from, Knowledge::Range except = {0, 0});
/// `into` learns that these blocks are complete.
void add_complete(KnowledgePtr& into, Knowledge::Range range);
/// `into` learns more about one block.
void add_partly(KnowledgePtr& into, std::uint32_t block, std::uint32_t upto, const LanesPtr& lanes);

}   // namespace emu

#endif
