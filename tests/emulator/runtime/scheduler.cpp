#include "own_new.hpp"

#include "scheduler.hpp"

#include "access.hpp"
#include "fiber.hpp"
#include "memory.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "stream.hpp"
#include "warp.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

// The definitions of the built-in variables, which the header declares const.
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emu {

__thread Thread* current = nullptr;
int accesses_to_switch = 1;
std::uint64_t progress = 1;
Thread host_thread;

namespace {

constexpr unsigned kMaxDepth = 64;   // the grids of all deeper levels share their places
// More than any loop that gives up by itself will do.
constexpr std::uint32_t kStuckSpins = 16384;

std::vector<Thread*> runnable;
std::vector<Block*> live_blocks;
std::vector<Ptr<Grid>> starting;       // grids with blocks that have not started
unsigned starting_at[kMaxDepth];       // how many of them, by depth
std::vector<Ptr<Op>> ready;            // operations that nothing holds back any more
std::vector<Thread*> held;             // launchers that wait for a child because the schedule says so
unsigned starting_cooperative = 0;
unsigned deepest = 0;                  // depth of any grid so far
unsigned resident[kMaxDepth];          // blocks, by the depth of their grid
unsigned level(const Grid& grid) { return std::min(grid.depth, kMaxDepth - 1); }
std::uint64_t unfinished = 0;          // operations submitted and not done
std::uint64_t steps = 0;
std::uint32_t next_block_id = 2;       // 1 is the host
void* host_stack_pointer = nullptr;

// Why the host lets the device run.
Op* host_goal = nullptr;
bool host_goal_all = false;
bool host_may_go = false;
std::uint64_t host_turns = 0;          // turns until it goes on anyway; 0: no limit

int stuck = 0;                         // runnable threads that have spun long enough to know that nothing changes
std::uint64_t stuck_since = 0;

std::recursive_mutex host_mutex;

// ------------------------------------------------------------------------------------ blocks and their threads

std::vector<Thread*> idle_threads[11];   // arrays, by size: a power of two
unsigned size_class(unsigned threads) {
    unsigned size = 0;
    while ((1u << size) < threads) ++size;
    return size;
}
std::vector<Block*> idle_blocks;

void add_runnable(Thread& thread) {
    thread.runnable_at = static_cast<std::uint32_t>(runnable.size());
    runnable.push_back(&thread);
}

void remove_runnable(Thread& thread) {
    Thread* const last = runnable.back();
    runnable[thread.runnable_at] = last;
    last->runnable_at = thread.runnable_at;
    runnable.pop_back();
    thread.runnable_at = ~0u;
}

void start_block(Grid& grid) {
    const std::uint64_t position = grid.started_blocks++;
    const std::uint64_t number = static_cast<std::uint64_t>(
        (static_cast<unsigned __int128>(position) * grid.order_stride + grid.order_offset) % grid.blocks);
    Block* block;
    if (idle_blocks.empty()) {
        block = new Block;
    } else {
        block = idle_blocks.back();
        idle_blocks.pop_back();
    }
    *block = Block{};
    block->id = grid.first_id + static_cast<std::uint32_t>(number);
    block->grid = &grid;
    block->index = grid.block_index(number);
    block->threads = block->live = grid.block_threads;
    block->null_stream.alive = kAlive;
    block->null_stream.block = block;
    block->null_stream.block_id = block->id;
    auto& idle = idle_threads[size_class(block->threads)];
    if (idle.empty()) {
        block->thread = new Thread[1u << size_class(block->threads)];
    } else {
        block->thread = idle.back();
        idle.pop_back();
    }
    const unsigned dx = grid.shape.block.x, dy = grid.shape.block.y;
    uint3 index{0, 0, 0};
    for (unsigned i = 0; i < block->threads; ++i) {
        Thread& thread = block->thread[i];
        thread = Thread{};
        thread.block = block;
        thread.epoch = make_epoch(block->id, i, 1);
        thread.known = grid.start;
        thread.index = index;
        if (++index.x == dx) {
            index.x = 0;
            if (++index.y == dy) index.y = 0, ++index.z;
        }
        add_runnable(thread);
    }
    live_blocks.push_back(block);
    ++resident[level(grid)];
}

void complete(Op& op);

// All blocks have ended: waits for the grids it has launched, then for those in its tail, one by one.
void go_on_with_tail(Grid& grid) {
    if (grid.finished_blocks != grid.blocks || grid.children != 0) return;
    if (grid.next_tail < grid.tail.size()) {
        const Ptr<Op> next = grid.tail[grid.next_tail++];
        grid.tail[grid.next_tail - 1] = Ptr<Op>();
        ++grid.children;
        next->counted = true;
        add_complete(grid.gathered, {grid.first_id, grid.first_id + static_cast<std::uint32_t>(grid.blocks)});
        join(next->start, grid.gathered);
        submit(next);
        return;
    }
    complete(grid);
}

void finish_block(Block* block) {
    Grid& grid = *block->grid;
    for (const SharedVariable& variable : block->shared) give_shared(*variable.allocation);
    if (block->dynamic_shared != nullptr) give_shared(*block->dynamic_shared);
    drop_meetings(*block);
    join(grid.gathered, block->joining, {grid.first_id, grid.first_id + static_cast<std::uint32_t>(grid.blocks)});
    for (unsigned i = 0; i < block->threads; ++i) {
        Thread& thread = block->thread[i];
        thread.known = KnowledgePtr();
        thread.lanes = LanesPtr();
        delete thread.ordering;
        thread.ordering = nullptr;
    }
    idle_threads[size_class(block->threads)].push_back(block->thread);
    live_blocks.erase(std::find(live_blocks.begin(), live_blocks.end(), block));
    --resident[level(grid)];
    block->joining = KnowledgePtr();
    block->null_stream.last = Ptr<Op>();
    block->launched.clear();
    idle_blocks.push_back(block);
    ++grid.finished_blocks;
    if (grid.finished_blocks == grid.blocks) {
        const Ptr<Op> keep(&grid);
        go_on_with_tail(grid);
    }
}

void complete(Op& op) {
    const Ptr<Op> keep(&op);
    ++progress;
    op.done = true;
    --unfinished;
    if (op.kind == Op::Kind::Grid) {
        Grid& grid = static_cast<Grid&>(op);
        add_complete(grid.gathered, {grid.first_id, grid.first_id + static_cast<std::uint32_t>(grid.blocks)});
        join(grid.gathered, grid.start);
        grid.end = grid.gathered;
        grid.gathered = KnowledgePtr();
        grid.closure = Ptr<Closure>();
        for (Thread* launcher : grid.waiting) {
            held.erase(std::find(held.begin(), held.end(), launcher));
            launcher->child = nullptr;
            resume(*launcher);
        }
        grid.waiting.clear();
        --grid.references;   // its blocks'; `keep` is left
    }
    op.start = KnowledgePtr();
    for (Thread* waiting : op.awaiting) resume(*waiting);
    op.awaiting.clear();
    std::vector<Op*> successors;
    successors.swap(op.successors);
    for (Op* next : successors) {
        join(next->start, op.end);
        if (--next->waits_for == 0) ready.push_back(Ptr<Op>(next));
        --next->references;   // never the last: it waits in a stream or is ready now
        if (next->references == 0) delete next;
    }
    if (host_goal == &op) host_may_go = true;
    if (Grid* const parent = op.parent; parent != nullptr && op.counted) {
        --parent->children;
        if (op.kind == Op::Kind::Grid) --pending_launches;
        join(parent->gathered, op.end, {parent->first_id, parent->first_id + static_cast<std::uint32_t>(parent->blocks)});
        op.parent = nullptr;
        const Ptr<Op> keep_parent(parent);
        --parent->references;   // the child's
        go_on_with_tail(*parent);
    }
}

void start(const Ptr<Op>& op) {
    op->started = true;
    ++progress;
    if (op->kind == Op::Kind::Grid) {
        Grid& grid = static_cast<Grid&>(*op);
        grid.first_id = take_block_ids(grid.blocks);
        remember_blocks(grid.first_id, grid.blocks, &grid, nullptr);
        starting.push_back(Ptr<Grid>(&grid));
        ++starting_at[level(grid)];
        starting_cooperative += grid.shape.cooperative;
        deepest = std::max(deepest, level(grid));
        ++grid.references;   // its blocks'
        return;
    }
    if (op->kind == Op::Kind::Work) {
        // An actor of its own, of one block.
        Block block;
        Thread actor;
        block.id = take_block_ids(1);
        block.threads = block.live = 1;
        actor.block = &block;
        actor.epoch = make_epoch(block.id, 0, 1);
        actor.known = op->start;
        Thread* const before = std::exchange(current, nullptr);
        op->execute(actor);
        current = before;
        op->end = op->start;
        add_complete(op->end, {block.id, block.id + 1});
    } else {
        op->end = op->start;
    }
    complete(*op);
}

// ----------------------------------------------------------------------------------------------- what is next

bool block_may_start(const Grid& grid) { return resident[level(grid)] < settings.resident || grid.shape.cooperative; }

// Starts a block, if one may start.
bool start_some_block() {
    bool room = false;   // most often there is none
    for (unsigned depth = 0; depth <= deepest; ++depth)
        room = room || (starting_at[depth] != 0 && (resident[depth] < settings.resident || starting_cooperative != 0));
    if (!room) return false;
    const std::size_t first = static_cast<std::size_t>(chance.below(starting.size()));
    for (std::size_t i = 0; i < starting.size(); ++i) {
        const std::size_t at = (first + i) % starting.size();
        Grid& grid = *starting[at];
        if (!block_may_start(grid)) continue;
        const Ptr<Grid> keep = starting[at];
        do start_block(grid);   // the blocks of a cooperative grid are there together
        while (grid.shape.cooperative && grid.started_blocks < grid.blocks);
        if (grid.started_blocks == grid.blocks) {
            --starting_at[level(grid)];
            starting_cooperative -= grid.shape.cooperative;
            starting[at] = starting.back();
            starting.pop_back();
        }
        return true;
    }
    return false;
}

bool take_ready(std::size_t at) {
    const Ptr<Op> op = ready[at];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
    start(op);
    return true;
}

// Starts an operation, if the schedule wants that now. `idle`: nothing else can go on.
bool start_some_operation(bool idle) {
    if (ready.empty()) return false;
    std::size_t at = static_cast<std::size_t>(chance.below(ready.size()));
    const bool child = ready[at]->parent != nullptr;
    if (!child) return (idle || chance.one_in(4)) && take_ready(at);
    switch (settings.children) {
        case Children::Eager: return take_ready(ready.size() - 1);
        // Blocks that wait for children may take the room that others wait for.
        case Children::Late: return idle && (starting.empty() || settings.device_sync) && take_ready(at);
        case Children::Lifo: return (idle || chance.one_in(8)) && take_ready(ready.size() - 1);
        case Children::Any: return (idle || chance.one_in(8)) && take_ready(at);
    }
    return false;
}

bool release_held() {
    if (held.empty()) return false;
    const std::vector<Thread*> all = std::move(held);
    held.clear();
    for (Thread* launcher : all) {
        auto& waiting = launcher->child->waiting;
        waiting.erase(std::find(waiting.begin(), waiting.end(), launcher));
        launcher->child = nullptr;
        resume(*launcher);
    }
    return true;
}

bool all_stuck() { return stuck_since == progress && stuck >= static_cast<int>(runnable.size()) && !runnable.empty(); }

[[noreturn]] void report_deadlock(bool spinning) {
    Text message = spinning ? "no thread can go on any more: " : "threads wait for ever: ";
    message += describe_waiting();
    std::size_t missing = 0;
    for (const Ptr<Grid>& grid : starting) missing += grid->blocks - grid->started_blocks;
    if (missing != 0) message += "; " + number(missing) + " blocks have no room to start beside those that run";
    fatal(spinning ? "deadlock" : "barrier-divergence", message);
}

// The lanes that wait at the same __activemask as this one, or some of them, go on together.
void form_group(Thread& chosen) {
    Block& block = *chosen.block;
    const unsigned first = chosen.number() & ~31u;
    unsigned mask = 1u << chosen.lane();
    const bool all = !chance.one_in(4);
    for (unsigned lane = 0; lane < 32 && first + lane < block.threads; ++lane) {
        Thread& other = block.thread[first + lane];
        if (&other != &chosen && other.waiting == Waiting::Convergence && other.site == chosen.site && (all || chance.one_in(2)))
            mask |= 1u << lane;
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) == 0) continue;
        Thread& member = block.thread[first + lane];
        member.waiting = Waiting::No;
        member.activemask = mask;
    }
}

// Another lane of the warp, that may yet reach the place where `thread` waits.
Thread* other_lane(const Thread& thread) {
    const unsigned first = thread.number() & ~31u;
    Block& block = *thread.block;
    const unsigned offset = static_cast<unsigned>(chance.below(32));
    for (unsigned i = 0; i < 32; ++i) {
        const unsigned number = first + (offset + i) % 32;
        if (number >= block.threads) continue;
        Thread& other = block.thread[number];
        if (other.runnable_at != ~0u && other.waiting == Waiting::No) return &other;
    }
    return nullptr;
}

std::uint64_t picks = 0;

Thread* some_runnable() {
    ++picks;
    Thread* chosen = nullptr;
    for (int attempt = 0; attempt < 8; ++attempt) {
        chosen = runnable[static_cast<std::size_t>(chance.below(runnable.size()))];
        if (chosen->delayed_until <= picks) break;
    }
    return chosen;
}

// The thread to run, or null for the host.
Thread* pick() {
    if (++steps > settings.step_limit)
        fatal("livelock", "the limit of " + number(settings.step_limit) + " steps is reached: " + describe_waiting());
    for (;;) {
        if (host_may_go) return nullptr;
        if (host_turns != 0 && --host_turns == 0) return nullptr;
        if (!ready.empty()) start_some_operation(false);
        if (!starting.empty() && (runnable.empty() || chance.one_in(4))) start_some_block();
        if (all_stuck() || runnable.empty()) {
            if (start_some_block() || start_some_operation(true) || release_held()) {
                stuck = 0;
                continue;
            }
            if (host_may_go) return nullptr;
            if (runnable.empty()) {
                if (!live_blocks.empty()) report_deadlock(false);
                return nullptr;   // nothing to do
            }
            if (host_turns != 0) {   // the host may be what they wait for
                host_turns = 0;
                return nullptr;
            }
            report_deadlock(true);
        }
        Thread* chosen = some_runnable();
        if (chosen->waiting == Waiting::Convergence) {
            // Mostly, lanes that are on their way are let come first.
            if (!chance.one_in(16))
                if (Thread* const other = other_lane(*chosen)) chosen = other;
            if (chosen->waiting == Waiting::Convergence) form_group(*chosen);
        }
        return chosen;
    }
}

[[noreturn]] void thread_main();

// Leaves the current stack for that of `next`; null: the host's. Returns when the current one is chosen again.
void switch_to(Thread* next, void** save) {
    void* to;
    if (next == nullptr) {
        to = host_stack_pointer;
    } else {
        if (next->stack_pointer == nullptr) {
            next->stack = take_stack();
            next->stack_pointer = prepare_stack(next->stack, thread_main);
        }
        to = next->stack_pointer;
        const Block& block = *next->block;
        ::threadIdx = next->index;
        ::blockIdx = block.index;
        ::blockDim = block.grid->shape.block;
        ::gridDim = block.grid->shape.grid;
    }
    current = next;
    emu_switch_stack(save, to);
}

void check_stack(const Thread& thread) {
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const auto low = reinterpret_cast<std::uintptr_t>(thread.stack);
    if (here - low < kStackReserve || here - low > kStackBytes) fatal("unsupported", "the stack of " + describe(thread) + " is too small");
}

void leave() {
    Thread* const self = current;
    resolve_same_value();
    check_stack(*self);
    Thread* const next = pick();
    if (next != self) switch_to(next, &self->stack_pointer);
}

// The current thread leaves its kernel.
[[noreturn]] void end_thread() {
    Thread& self = *current;
    resolve_same_value();
    ++progress;
    Block& block = *self.block;
    self.exited = true;
    remove_runnable(self);
    give_stack(self.stack);
    self.stack = nullptr;
    join(block.joining, self.known);
    block.latest_clock = std::max(block.latest_clock, clock_of(self.epoch));
    --block.live;
    if (block.live == 0) {
        finish_block(&block);
    } else {
        thread_left_warp(self);
        thread_left_barrier(block);
    }
    void* unused;
    Thread* const next = pick();
    switch_to(next, &unused);
    __builtin_unreachable();
}

[[noreturn]] void thread_main() {
    Closure& closure = *current->block->grid->closure;
    closure.code.run(closure.memory);
    end_thread();
}

// The host runs the device until `host_may_go`, until its turns are used up, or until nothing is left.
void run_device() {
    // The host may have changed what threads wait for.
    ++progress;
    stuck = 0;
    for (;;) {
        Thread* const next = pick();
        if (next == nullptr) return;
        switch_to(next, &host_stack_pointer);
        // Back: another fiber has chosen the host.
        if (host_may_go || (host_goal == nullptr && !host_goal_all && host_turns == 0)) return;
        if (unfinished == 0) return;
    }
}

void host_learns(const KnowledgePtr& knowledge) { acquire(host_thread, knowledge); }

}   // namespace

std::uint32_t take_block_ids(std::uint64_t count) {
    if (count > kMaxBlock - next_block_id) fatal("unsupported", "more than 2^30 blocks altogether");
    const std::uint32_t first = next_block_id;
    next_block_id += static_cast<std::uint32_t>(count);
    return first;
}

void Thread::advance_clock() {
    if (clock_of(epoch) == kMaxClock) fatal("unsupported", "more than 2^24 synchronisations of one thread");
    ++epoch;
    accessed = false;
}

uint3 Grid::block_index(std::uint64_t number) const {
    return {static_cast<unsigned>(number % shape.grid.x), static_cast<unsigned>(number / shape.grid.x % shape.grid.y),
            static_cast<unsigned>(number / shape.grid.x / shape.grid.y)};
}

void yield() { leave(); }

void count_down() {
    const std::uint64_t every = settings.switch_every;
    // Even a schedule that only switches where it must has to be fair in the end.
    const std::uint64_t next = every == 0 ? 100'000 : 1 + chance.below(2 * every);
    accesses_to_switch = static_cast<int>(next);
    steps += next;
    leave();
}

void delay() {
    current->delayed_until = picks + 1 + chance.below(300);
    leave();
}

void wait(Waiting reason, Site site) {
    Thread& self = *current;
    self.waiting = reason;
    self.site = site;
    remove_runnable(self);
    leave();
}

void resume(Thread& thread) {
    thread.waiting = Waiting::No;
    add_runnable(thread);
    ++progress;
}

void spin() {
    Thread& self = *current;
    if (self.spins_since != progress) {
        self.spins_since = progress;
        self.spins = 0;
    }
    if (++self.spins == kStuckSpins) {
        if (stuck_since != progress) {
            stuck_since = progress;
            stuck = 0;
        }
        ++stuck;
    }
    if (self.spins > 4) leave();
}

void hold(Grid& child) {
    Thread& self = *current;
    self.child = &child;
    child.waiting.push_back(&self);
    held.push_back(&self);
    wait(Waiting::Child, 0);
}

void wait_for_children() {
    Thread& self = *current;
    const std::vector<Ptr<Op>> launched = self.block->launched;   // others may launch meanwhile
    for (const Ptr<Op>& op : launched) {
        if (!op->done) {
            op->awaiting.push_back(&self);
            wait(Waiting::Children, 0);
        }
        acquire(self, op->end);
    }
    if (launched.empty()) yield();
}

unsigned gather(Site site) {
    Thread& self = *current;
    self.waiting = Waiting::Convergence;
    self.site = site;
    self.activemask = 0;
    while (self.waiting == Waiting::Convergence) leave();
    return self.activemask;
}

void wait_for(Op& op, const Ptr<Op>& before) {
    if (!before) return;
    if (before->done) {
        join(op.start, before->end);
        return;
    }
    before->successors.push_back(&op);
    ++op.references;
    ++op.waits_for;
}

void submit(const Ptr<Op>& op) {
    static std::uint64_t sequence = 0;
    op->sequence = ++sequence;
    ++unfinished;
    ++progress;
    if (op->waits_for == 0) ready.push_back(op);
}

void host_wait(const Ptr<Op>& op) {
    if (!op) return;
    if (!op->done) {
        host_goal = op.get();
        host_may_go = false;
        host_turns = 0;
        run_device();
        host_goal = nullptr;
        host_may_go = false;
        if (!op->done) fatal("deadlock", "the host waits for something that can't start");
    }
    host_learns(op->end);
}

void host_wait_all() {
    host_goal_all = true;
    host_turns = 0;
    host_may_go = false;
    while (unfinished != 0) {
        const std::uint64_t before = progress;
        run_device();
        if (unfinished != 0 && before == progress) fatal("deadlock", "the host waits for something that can't start");
    }
    host_goal_all = false;
    if (next_block_id > 2) {
        KnowledgePtr all;
        add_complete(all, {2, next_block_id});
        host_learns(all);
    }
}

void host_passes(bool waiting) {
    if (unfinished == 0 || (settings.host_patience == 0 && !waiting)) return;
    constexpr std::uint64_t kTurns[] = {10, 20, 300, 1'000'000};
    host_turns = 2 + chance.below(kTurns[settings.host_patience]);
    run_device();
    host_turns = 0;
}

bool device_is_idle() { return unfinished == 0; }

std::size_t max_resident() { return settings.resident; }

Text describe_waiting() {
    // Kernel, reason, site → how many.
    std::map<std::tuple<Text, int, Text>, unsigned> groups;
    for (const Block* block : live_blocks)
        for (unsigned i = 0; i < block->threads; ++i) {
            const Thread& thread = block->thread[i];
            if (thread.exited) continue;
            ++groups[{kernel_name(*block->grid), static_cast<int>(thread.waiting), describe_site(thread.site)}];
        }
    Text text;
    for (const auto& [group, count] : groups) {
        const auto& [kernel, reason, site] = group;
        if (!text.empty()) text += "; ";
        text += number(count) + (count == 1 ? " thread of " : " threads of ") + kernel;
        switch (static_cast<Waiting>(reason)) {
            case Waiting::No: text += count == 1 ? " runs" : " run"; break;
            case Waiting::Barrier: text += " in __syncthreads"; break;
            case Waiting::Warp: text += " in a warp function"; break;
            case Waiting::Convergence: text += " in __activemask"; break;
            case Waiting::Child: text += " behind a launch"; break;
            case Waiting::Children: text += " in cudaDeviceSynchronize"; break;
        }
        if (!site.empty()) text += " at " + site;
    }
    return text.empty() ? "no thread runs" : text;
}

KnowledgePtr release(Thread& thread) {
    LanesPtr lanes = thread.lanes;
    set(lanes, thread.number(), clock_of(thread.epoch));
    KnowledgePtr knowledge = thread.known;
    add_partly(knowledge, thread.block->id, thread.block->upto, lanes);
    thread.advance_clock();
    return knowledge;
}

void acquire(Thread& thread, const KnowledgePtr& knowledge) {
    if (!knowledge) return;
    join(thread.known, knowledge);
    if (const Knowledge::Partly* const own = knowledge->find(thread.block->id); own != nullptr && own->lanes) join(thread.lanes, own->lanes);
}

HostLock::HostLock() {
    host_mutex.lock();
    static const bool prepared = [] {
        auto* const block = new Block;
        block->id = 1;
        block->threads = block->live = 1;
        host_thread.block = block;
        host_thread.epoch = make_epoch(1, 0, 1);
        remember_blocks(1, 1, nullptr, "the host");
        return true;
    }();
    (void)prepared;
}
HostLock::~HostLock() { host_mutex.unlock(); }

// PTX's `exit`: nothing on the thread's stack is destroyed, as on a GPU.
void rt::exit_thread() {
    if (current == nullptr) std::abort();
    end_thread();
}

}   // namespace emu
