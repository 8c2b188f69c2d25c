// What is remembered about every four bytes of device memory: who accessed them last.
#ifndef EMU_SHADOW_HPP
#define EMU_SHADOW_HPP

#include "model.hpp"

#include <deque>
#include <vector>

namespace emu {

/// In Cell::write_site: several unordered writes have left one value.
constexpr std::uint32_t kSameValue = 1u << 31;

/// FastTrack's state of a variable: the last write, and the reads since then, as one epoch while they are in order.
/// All zero: nobody has accessed it since everyone knew of it.
struct Cell {
    Epoch write;                // the last plain write
    Epoch read;                 // plain reads since then: one epoch, or kReadSet | index
    std::uint32_t write_site;   // relative to kCodeBase
    std::uint32_t read_site;
    std::uint32_t strong;       // strong accesses since the last plain write: index of a StrongSet, 0 if none
    std::uint32_t split;        // index of a Split, 0 if none: bytes that are accessed one by one have cells of their own
    bool same_value() const { return write_site & kSameValue; }
};
static_assert(sizeof(Cell) == 32);

constexpr Epoch kReadSet = Epoch(kMaxBlock + 1) << (kClockBits + kThreadBits);
inline bool is_set(Epoch read) { return read >= kReadSet; }

struct Accessor {
    Epoch by;
    std::uint32_t site;
    bool block_scope;
    bool write;
};

/// Accesses that are not in order among themselves.
struct AccessSet {
    std::vector<Accessor> list;
    std::size_t prune_at = 16;
    bool lost_reads = false;   // the list had reads that are implied by writes in it
    /// Only what `by`, who is added, doesn't know stays, and the latest of every thread.
    void add(const Thread& by, Accessor accessor);
};

/// What threads pass on through a location: the knowledge of each write that follows a fence. Only ever grows, so that a
/// reader remembers how much of it it has seen.
struct ReleaseLog {
    struct Entry {
        KnowledgePtr block, device;   // what the writer's last fences of each scope cover
        std::uint32_t block_id;
    };
    unsigned references = 0;
    std::vector<Entry> entries;
};

struct StrongSet : AccessSet {
    Ptr<ReleaseLog> log;
    Epoch last_reader = 0;      // who made the last strong access, if that was a read or a read-modify-write
    bool overwritten = false;   // by a strong write that has read nothing
};

struct Split {
    Cell bytes[4];
};

/// Objects that cells name by number.
template <class T>
class Numbered {
public:
    T& operator[](std::uint32_t number) { return objects_[number]; }
    std::uint32_t make() {
        if (!free_.empty()) {
            const std::uint32_t number = free_.back();
            free_.pop_back();
            objects_[number] = T();
            return number;
        }
        if (objects_.empty()) objects_.emplace_back();   // 0 means none
        objects_.emplace_back();
        return static_cast<std::uint32_t>(objects_.size() - 1);
    }
    void release(std::uint32_t number) {
        objects_[number] = T();
        free_.push_back(number);
    }

private:
    std::deque<T> objects_;   // never moved
    std::vector<std::uint32_t> free_;
};

extern Numbered<AccessSet> read_sets;
extern Numbered<StrongSet> strong_sets;
extern Numbered<Split> splits;

/// Back to "nobody has accessed it".
void clear(Cell& cell);
void clear_cells(Cell* cells, std::size_t count);

}   // namespace emu

#endif
