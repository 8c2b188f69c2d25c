#include "own_new.hpp"

#include "knowledge.hpp"

#include <algorithm>

namespace emu {

namespace {

// The object to change: this one if nobody else sees it, or else a copy.
template <class T>
T& own(Ptr<T>& pointer) {
    if (!pointer) {
        pointer = Ptr<T>(new T);
    } else if (pointer->references > 1) {
        T* const copy = new T(*pointer);
        copy->references = 0;
        pointer = Ptr<T>(copy);
    }
    return *pointer;
}

bool covers(const Lanes* lanes, const Lanes& other) {
    if (lanes == nullptr) return other.entries.empty();
    auto at = lanes->entries.begin();
    for (const Lanes::Entry& entry : other.entries) {
        while (at != lanes->entries.end() && at->thread < entry.thread) ++at;
        if (at == lanes->entries.end() || at->thread != entry.thread || at->clock < entry.clock) return false;
    }
    return true;
}

bool covers(const Knowledge& knowledge, const Knowledge& other, Knowledge::Range except) {
    auto range = knowledge.complete.begin();
    for (const Knowledge::Range& wanted : other.complete) {
        while (range != knowledge.complete.end() && range->end < wanted.end) ++range;
        if (range == knowledge.complete.end() || range->first > wanted.first) return false;
    }
    for (const Knowledge::Partly& wanted : other.partly) {
        if (wanted.block >= except.first && wanted.block < except.end) continue;
        if (knowledge.is_complete(wanted.block)) continue;
        const Knowledge::Partly* const partly = knowledge.find(wanted.block);
        if (partly == nullptr || partly->upto < wanted.upto) return false;
        if (wanted.lanes && wanted.lanes != partly->lanes) {
            for (const Lanes::Entry& entry : wanted.lanes->entries)
                if (entry.clock > partly->upto && (!partly->lanes || partly->lanes->clock(entry.thread) < entry.clock)) return false;
        }
    }
    return true;
}

void insert(std::vector<Knowledge::Range>& ranges, Knowledge::Range range) {
    auto first = std::lower_bound(ranges.begin(), ranges.end(), range.first,
                                  [](const Knowledge::Range& r, std::uint32_t block) { return r.end < block; });
    auto last = first;
    while (last != ranges.end() && last->first <= range.end) {
        range.first = std::min(range.first, last->first);
        range.end = std::max(range.end, last->end);
        ++last;
    }
    if (first == last) {
        ranges.insert(first, range);
    } else {
        *first = range;
        ranges.erase(first + 1, last);
    }
}

void drop_complete(Knowledge& knowledge) {
    auto& partly = knowledge.partly;
    partly.erase(std::remove_if(partly.begin(), partly.end(), [&](const Knowledge::Partly& p) { return knowledge.is_complete(p.block); }),
                 partly.end());
}

void merge(Knowledge& knowledge, std::uint32_t block, std::uint32_t upto, const LanesPtr& lanes) {
    auto at = std::lower_bound(knowledge.partly.begin(), knowledge.partly.end(), block,
                               [](const Knowledge::Partly& p, std::uint32_t b) { return p.block < b; });
    if (at == knowledge.partly.end() || at->block != block) {
        knowledge.partly.insert(at, {block, upto, lanes});
        return;
    }
    if (upto > at->upto) {
        at->upto = upto;
        if (at->lanes) {
            Lanes& mine = own(at->lanes);
            mine.entries.erase(std::remove_if(mine.entries.begin(), mine.entries.end(), [&](const Lanes::Entry& e) { return e.clock <= upto; }),
                               mine.entries.end());
        }
    }
    if (lanes) join(at->lanes, lanes);
}

}   // namespace

std::uint32_t Lanes::clock(std::uint32_t thread) const {
    const auto at = std::lower_bound(entries.begin(), entries.end(), thread, [](const Entry& e, std::uint32_t t) { return e.thread < t; });
    return at != entries.end() && at->thread == thread ? at->clock : 0;
}

void join(LanesPtr& into, const LanesPtr& from) {
    if (!from || into == from || covers(into.get(), *from)) return;
    if (!into || covers(from.get(), *into)) {
        into = from;
        return;
    }
    std::vector<Lanes::Entry> both;
    both.reserve(into->entries.size() + from->entries.size());
    auto a = into->entries.begin(), b = from->entries.begin();
    while (a != into->entries.end() || b != from->entries.end()) {
        if (b == from->entries.end() || (a != into->entries.end() && a->thread < b->thread)) both.push_back(*a++);
        else if (a == into->entries.end() || b->thread < a->thread) both.push_back(*b++);
        else {
            both.push_back({a->thread, std::max(a->clock, b->clock)});
            ++a, ++b;
        }
    }
    LanesPtr joined(new Lanes);
    joined->entries = std::move(both);
    into = std::move(joined);
}

void set(LanesPtr& into, std::uint32_t thread, std::uint32_t clock) {
    Lanes& lanes = own(into);
    const auto at = std::lower_bound(lanes.entries.begin(), lanes.entries.end(), thread,
                                     [](const Lanes::Entry& e, std::uint32_t t) { return e.thread < t; });
    if (at != lanes.entries.end() && at->thread == thread) at->clock = std::max(at->clock, clock);
    else lanes.entries.insert(at, {thread, clock});
}

bool Knowledge::is_complete(std::uint32_t block) const {
    // The newest grids are asked for most.
    if (complete.empty()) return false;
    if (block >= complete.back().first) return block < complete.back().end;
    const auto at = std::lower_bound(complete.begin(), complete.end(), block, [](const Range& r, std::uint32_t b) { return r.end <= b; });
    return at != complete.end() && at->first <= block;
}

const Knowledge::Partly* Knowledge::find(std::uint32_t block) const {
    const auto at = std::lower_bound(partly.begin(), partly.end(), block, [](const Partly& p, std::uint32_t b) { return p.block < b; });
    return at != partly.end() && at->block == block ? &*at : nullptr;
}

bool Knowledge::covers(Epoch e) const {
    const std::uint32_t block = block_of(e);
    if (is_complete(block)) return true;
    const Partly* const known = find(block);
    if (known == nullptr) return false;
    return clock_of(e) <= known->upto || (known->lanes && clock_of(e) <= known->lanes->clock(thread_of(e)));
}

void join(KnowledgePtr& into, const KnowledgePtr& from, Knowledge::Range except) {
    if (!from || into == from) return;
    if (into ? covers(*into, *from, except) : false) return;
    if (!into && except.first == except.end) {
        into = from;
        return;
    }
    const KnowledgePtr keep = from;   // `into` may own it
    Knowledge& knowledge = own(into);
    for (const Knowledge::Range& range : keep->complete) insert(knowledge.complete, range);
    for (const Knowledge::Partly& partly : keep->partly)
        if (partly.block < except.first || partly.block >= except.end) merge(knowledge, partly.block, partly.upto, partly.lanes);
    drop_complete(knowledge);
}

void add_complete(KnowledgePtr& into, Knowledge::Range range) {
    if (range.first == range.end) return;
    Knowledge& knowledge = own(into);
    insert(knowledge.complete, range);
    drop_complete(knowledge);
}

void add_partly(KnowledgePtr& into, std::uint32_t block, std::uint32_t upto, const LanesPtr& lanes) {
    if (into && into->is_complete(block)) return;
    merge(own(into), block, upto, lanes);
}

}   // namespace emu
