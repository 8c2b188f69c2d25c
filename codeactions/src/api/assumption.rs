//! What rewrites take for granted: every kind of it, in one table.

use crate::api::refusal::Reason;

/// A kind of thing that a rewrite takes for granted: one entry of [`ASSUMPTIONS`]. Nobody else can make one.
#[derive(Debug)]
pub struct Assumption {
    id: &'static str,
    title: &'static str,
    doc: &'static str,
}

impl Assumption {
    /// Its id, kebab-case: `pending-launches`.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// What is taken for granted, in few words.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Markdown: what is taken for granted, what goes wrong where it doesn't hold, and how to check it or to make it unnecessary.
    pub fn doc(&self) -> &'static str {
        self.doc
    }

    /// It is taken for granted in these words, at this place.
    pub fn of(&'static self, reason: Reason) -> Assumed {
        Assumed {
            reason,
            kind: self,
            contradicted: false,
        }
    }
}

impl PartialEq for Assumption {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Assumption {}

/// Something that an edit takes for granted. [`Assumption::of`] makes it.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Assumed {
    /// What, and where.
    pub reason: Reason,
    /// Of what kind it is.
    pub kind: &'static Assumption,
    /// The accesses that it names contradict it: one grid reads, changes or frees what another one writes. It may still hold, where that
    /// is meant to be read at any time; but nobody is to be talked into it.
    pub contradicted: bool,
}

impl Assumed {
    /// The same in other words, or at another place.
    pub fn with(&self, change: impl FnOnce(&Reason) -> Reason) -> Assumed {
        Assumed {
            reason: change(&self.reason),
            ..*self
        }
    }
}

/// The words of several, for those who tell reasons of all sorts.
pub fn reasons(of: &[Assumed]) -> Vec<Reason> {
    of.iter().map(|assumed| assumed.reason.clone()).collect()
}

macro_rules! assumptions {
    ($($name:ident: $id:literal, $title:literal, $doc:literal;)+) => {
        $(
            #[doc = $title]
            pub static $name: Assumption = Assumption { id: $id, title: $title, doc: $doc };
        )+

        /// Every kind of assumption: those about order first, then about errors, memory, sizes, and what isn't in sight.
        pub static ASSUMPTIONS: &[&Assumption] = &[$(&$name),+];
    };
}

assumptions! {
    LAUNCHES_INDEPENDENT: "launches-independent", "Child grids are independent of each other", "\
A stream runs its grids in the order in which they are launched, and threads of one block share the NULL stream. The rewritten program runs
these grids at the same time, or in another order. Where one of them reads what another one writes, or both change one element without atomic
operations, the results differ from run to run. Check what the child reads and writes: each grid needs elements of its own, or atomic
operations. A launch into `cudaStreamFireAndForget` says in the code that no order is needed, and nothing is assumed.";

    OPERATIONS_INDEPENDENT: "operations-independent", "Child grids are independent of memory operations in their stream", "\
The kernel puts an operation such as `cudaMemsetAsync` into the stream of the launch, and the stream runs both in order. The rewritten program
keeps no such order. If the child reads, writes or frees the same memory, it may find it before or after the operation. Check which memory
the two use. Put one of them into a stream of its own where the order doesn't matter, and nothing is assumed.";

    MARKED_INDEPENDENT: "marked-independent", "A marked statement is independent of the other links", "\
`// gridfuse: independent` says that a statement touches no memory that other links of the chain write, and writes none that they touch. The
rewritten program runs it while earlier links still work. If the comment is wrong, the statement reads old values, or overwrites values that
are still needed. Check its accesses. Without the comment the statement waits for the link before.";

    ITERATIONS_INDEPENDENT: "iterations-independent", "Iterations of a loop are independent of each other", "\
A thread runs the iterations of its loop in order, and then what follows. The rewritten program runs each in a thread of a child grid, at once
and while the kernel goes on. Where one of them reads or changes what another one writes, or what follows uses it, the results differ from
run to run. Look at the accesses that the message names. Pointers that are `__restrict__` lead to memory of their own.";

    OTHER_TIME: "other-time", "A grid may run at another time", "\
What a rewrite has collected, or run in the launching thread, becomes a launch again. Its grid may then start earlier or later than now. If the
parent uses the child's result after the launch, or changes what the child reads, they meet other values. Look at the accesses that the message
names. Nothing is assumed as long as no code has changed since the rewrite.";

    HOST_MAY_WAIT: "host-may-wait", "The host may wait for the parent", "\
The host waits at its launch of the parent, learns how many child grids there are, and launches them. If the parent waits for something that
the host does only later, both wait for ever. If another thread of the host launches into the stream meanwhile, its grid runs between
parent and children. Look at what the stream holds before this launch, and at which threads use it. `aggregate-grid` launches from the device
and doesn't assume this; nor does `outline-iteration` where the loop itself waits.";

    ONE_HOST_THREAD: "one-host-thread", "One thread of the host launches into the stream", "\
The host launches one more grid right after the parent, which runs all children. If another thread of the host launches into the stream at
that moment, its grid runs before the children, where it ran after them. Give each thread of the host a stream of its own, or let the threads
launch under a lock. Where the launches of a thread are counted, the host also allocates memory for as many as all threads may have: the
message says so, and the parent is stopped where there is less.";

    LOOP_ENDS_ALONE: "loop-ends-alone", "The loop ends without other streams", "\
The loop becomes one grid, which keeps its multiprocessors until the loop ends. Work of other streams may have to wait that long. If the loop
ends only when such work has run, or such work ends only when the loop runs, neither goes on. Check that the loop depends on its own kernels
alone, and that no kernel of another stream waits for it.";

    GRAPH_INSTANTIATED_ONCE: "graph-instantiated-once", "A graph is instantiated once at a time", "\
A graph captures the launch, and with it the memory that the rewritten launch has. Two instances of the graph, or a graph of which it is
a part, use the same memory at one time, and launches are lost. Destroy one instance before you make the next, don't update it, and
don't make it a part of another one. Nothing is assumed where the function that captures the graph instantiates it once and gives it to nobody.";

    NO_LAUNCH_FAILS: "no-launch-fails", "No launch fails", "\
The program checks for errors, with `cudaGetLastError()` for example. A launch that the rewrite moves, joins with others or replaces fails at
another time, or not at all, so the check finds something else. As long as nothing fails, both programs compute the same. Run the original
under `compute-sanitizer`, which reports every call that fails; guard launches that may have zero blocks, as they fail, too. Where the error
of a wait for child grids is looked at, the rewritten kernel looks before those grids are complete, and doesn't see what they do wrong.";

    NOTHING_LEFT_IN_MEMORY: "addresses-not-left", "Nothing of its own is left in memory", "\
A thread may write the address of a local or shared variable, or a stream that it has created, into global memory and read it there again
after its wait. The rewritten program reads it in another grid, where neither can be used. It is taken for granted that the kernel doesn't do
so. Pass such things as arguments, or keep them in variables of the kernel.";

    LAUNCHES_ACCEPTED: "launches-accepted", "CUDA accepts the launches", "\
CUDA refuses a launch with more shared memory than the host allows, or with more threads in a block than `__launch_bounds__` names. Its grid
doesn't run. The rewritten program runs that work in another way, where CUDA has nothing to refuse, and so its results change. Check
`cudaGetLastError()` after the launch in the original. Constant sizes in the launch make this unnecessary.";

    PENDING_LAUNCHES: "pending-launches", "Few enough launches are pending", "\
CUDA keeps a slot for each grid that is launched and not yet done: 2048, or as many as `cudaLimitDevRuntimePendingLaunchCount` says. The
rewritten program may need more slots at a time than there are. A launch without a slot fails, and its grid is lost. Count the launches for
your largest input, and raise the limit with `cudaDeviceSetLimit` before the first kernel runs. `cudaGetLastError()` after a launch tells whether
it failed.";

    LIMIT_SET_FIRST: "limit-set-first", "No kernel has run when the limit is set", "\
The rewrite sets the limit of pending launches in the function that launches the parent. Once a kernel has run, CUDA doesn't change the limit
any more: `cudaDeviceSetLimit` fails, and launches are lost as before. Move the call to the start of `main` if other kernels run first. What
the call returns tells whether the limit is set.";

    HEAP_ROOM: "heap-room", "The device's heap has room", "\
Allocations of several threads become one, and its memory stays until the last part of it is freed. So the heap has to hold more at a time. Where
it is full, `malloc` returns a null pointer. Enlarge it with `cudaDeviceSetLimit(cudaLimitMallocHeapSize, …)` before the first kernel runs: it
has 8 MB otherwise.";

    FREES_IN_SIGHT: "frees-in-sight", "All that frees the memory is in sight", "\
An allocation becomes a part of a larger one, which only the runtime header can free. The rewrite changes each `free` and `delete` that it
finds. Code that isn't in sight would hand the part to CUDA's `free`, which corrupts the heap. Look for such code where the pointers leave the
file. Nothing is assumed where the whole program is open, with its `main`.";

    SHARED_MEMORY: "shared-memory", "Enough shared memory is left", "\
Blocks of the rewritten kernel need more shared memory than before, and a block has 48 KiB unless the host allows more. If too little
is left, the program doesn't compile, or the launch fails. Add up the shared arrays of the kernel and the dynamic shared memory of its
launches. Nothing is assumed where all shared arrays have constant sizes that leave enough.";

    LOCAL_MEMORY: "local-memory", "Shared arrays fit into local memory", "\
What one block shares becomes a local array of the thread that runs the block. How large it is depends on template arguments or on constants
that aren't in sight, and all threads that the GPU can hold set that much local memory aside. If it is too much, the kernel is slow, or CUDA
refuses to launch it. Work out the size of the arrays that the message names. Give them a size that is a number, and nothing is assumed.";

    FRESH_SHARED_MEMORY: "fresh-shared-memory", "Shared memory is written before it is read", "\
What follows the wait becomes a kernel of its own, whose shared memory holds nothing yet. A function that counts on what an earlier
call has left there reads garbage. Check that it writes its shared variables before it reads them, in each call.";

    READ_ONLY_LOADS: "read-only-loads", "The kernel doesn't write what it loads as read-only", "\
`__ldg`, `__restrict__` and textures let a load miss what the same kernel has written. So far another grid wrote that memory, or none;
now all of that is one kernel. If it writes what it loads so, the load may give an old value. Check who writes the memory that
the message names. Load it in the ordinary way, without `__ldg` and `__restrict__`, and nothing is assumed.";

    SEPARATE_VARIABLES: "separate-variables", "A reference names a variable of its own", "\
The loop moves to the device, with a copy of each variable that it changes. If a reference names the same variable as another name, or memory
that the kernels use, the copies don't see each other's changes. Check what the callers pass to it. Pass a value, or
use a local variable in the loop, and nothing is assumed.";

    SHARED_POINTERS: "shared-pointers", "The device can use what the host points to", "\
The loop moves to the device, and with it what the host reads and writes through a pointer. A kernel of the loop gets the same pointer, but it
may never use it. If the memory is the host's alone, from `malloc` for example, the rewritten loop fails. Check that it comes from
`cudaMallocManaged` or `cudaMallocHost`. If the function allocates it so itself, nothing is assumed.";

    UNCHANGED_VALUES: "unchanged-values", "Nothing changes what the host reads in each round", "\
The host reads this value in each round of the loop. The rewritten loop runs on the device, with the value from before the loop. If a kernel
or another thread of the host changes it meanwhile, the loop goes on with the old one. Check who writes it. Copy it to a local variable
before the loop, and nothing is assumed.";

    COMPUTED_EARLY: "computed-early", "The host can compute a value before the loop", "\
The host computes before the loop what it computed only inside so far. If no round gets there, the original never did: an invalid pointer
or a division by zero would now stop the program. Check that the expression is valid even then. Compute it before the loop yourself, and
nothing is assumed.";

    PRINTF_BUFFER: "printf-buffer", "The buffer of printf has room", "\
Device code prints into a buffer, which the host empties when it waits. The loop becomes one grid, and the buffer has to hold what
all rounds print. Where it is full, the oldest lines are lost. Enlarge it with `cudaDeviceSetLimit(cudaLimitPrintfFifoSize, …)`, or print
less.";

    ROUNDING: "rounding", "Results may be rounded in another way", "\
The rewritten program adds floating-point numbers in another order, or multiplies and adds in one step. The last digits of a result may
change, for some rewrites in each run. Compare results with a tolerance. `nvcc -fmad=false` keeps multiplication and addition apart, and
`promote-overlap` keeps the order of a chain's sums.";

    EMPTY_WORK: "empty-work", "The child does nothing when there is no work", "\
A grid size such as `(n - 1) / b + 1` is never 0, so the original launches even when `n` is 0. The rewritten program doesn't. If the child
does something then, such as to write a first value, that is missing. Look at what its threads do when `n` is 0. An early
`if (i >= n) return;` is enough.";

    ONE_DIMENSIONAL_BLOCKS: "one-dimensional-blocks", "Blocks have one dimension", "\
`threadIdx.x == 0` picks one thread of a block only if the block has one dimension. In a block of several rows it picks one of each row: several
threads launch or wait, where the rewrite counts on one. The same is true of `blockIdx` and grids. Look at where the kernel is launched:
y and z have to be 1. Compare `threadIdx.y` and `threadIdx.z` with 0 as well, and nothing is assumed.";

    THREADS_MEET: "threads-meet", "All threads of a block meet at its barriers", "\
A block of the rewritten kernel does the work of several blocks, so its threads have to come to each barrier together, and those of a warp to
each exchange. Whether they do depends on what the message says. If they don't, the block hangs, or mixes the data of two rounds.
Check that the condition around the barrier is the same for all threads. Move the barrier out of the condition, and nothing is assumed.";

    ENOUGH_REGISTERS: "enough-registers", "A block has enough registers", "\
A multiprocessor has 65,536 registers, which the threads of a block share. The rewritten kernel may need more of them for each thread. If a large
block doesn't fit any more, its launch fails; if launch bounds are too tight, ptxas says so. `nvcc -Xptxas -v` prints how many registers a
kernel uses. Launch smaller blocks, or blocks of a constant size.";

    NO_DEBUG_BUILD: "no-debug-build", "The program isn't compiled for debugging", "\
Device code that is compiled for debugging (`nvcc -G`) takes more registers, and what launches may need more than a thread of this kernel has.
Then ptxas refuses the kernel, or its launch fails. Optimized code fits. Compile without `-G`; profilers find their lines by `-lineinfo`.
Smaller blocks leave each thread more registers.";

    TEMPLATE_BLOCK_SIZES: "template-block-sizes", "Template arguments fit a block", "\
All kernels of the loop run in blocks of the largest size among them, which template parameters name here. If a block can't have so many
threads, no launch works any more, while the original's small launches did. Check the template arguments of each launch: a block has at most
1024 threads. Constant block sizes make this unnecessary.";

    MACRO_VALUES: "macro-values", "No command line defines a macro", "\
The program defines a macro where nobody else does: `#ifndef BLOCK`, `#define BLOCK 128`. The rewrite relies on that value. A command line
with `-DBLOCK=512` says another one, which may not fit the rewritten code. Apply the rewrite with the value that you compile with. A
`compile_commands.json` tells gridfuse what the command lines define.";

    CONDITIONS_AS_NOW: "conditions-as-now", "An `#if` is decided as it is now", "\
The rewrite edits the branch of an `#if` that is compiled now. The other branches keep their code. Where they are compiled, they may not fit
the rest of the rewritten code, or launch as before. Compile each configuration that you use. Change the other branches in the same way,
or keep launches out of `#if`.";

    DEVICE_LINKING: "device-linking", "The program is linked for device-side launches", "\
A kernel that launches calls CUDA's device runtime, which is linked with relocatable device code. A program that has launched from the host
alone may be compiled without that, and then nvcc refuses the launch. Compile and link with `-rdc=true` (CMake:
`CUDA_SEPARABLE_COMPILATION`), and with `-lcudadevrt` where the linker isn't nvcc. If a `compile_commands.json` says so, nothing is assumed.";

    UNSEEN_CODE: "unseen-code", "Code that isn't in sight leaves the launch alone", "\
The kernel runs code that gridfuse can't see, or may be called by such code. That code could wait for child grids, ask for their errors, or
use the same stream; the rewrite changes when these are launched. Look at the functions that the message names. Open the folder with their
sources, or name their headers' directory with `-I`, and gridfuse looks itself.";

    OTHER_EDITS: "other-edits", "Later edits don't need the rewritten code", "\
`revert` gives back the text from before the rewrite, and other files have changed since then. If one of them now uses what the rewrite
has made, a launch or a function's new parameter, it doesn't compile, or does something else. Look at what you changed since the rewrite.
Nothing is assumed while all other files are as they were.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::ASSUMPTIONS;

    #[test]
    fn ids_are_unique_kebab_case_and_few_words() {
        let ids: BTreeSet<&str> = ASSUMPTIONS.iter().map(|kind| kind.id()).collect();
        assert_eq!(ids.len(), ASSUMPTIONS.len());
        for id in ids {
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
            assert!(id.split('-').count() <= 3, "{id}");
        }
    }

    #[test]
    fn pages_are_short_and_titles_are_no_sentences() {
        for kind in ASSUMPTIONS {
            let (id, doc) = (kind.id(), kind.doc());
            assert!(kind.title().split(' ').count() <= 10, "{id}");
            assert!(!kind.title().ends_with('.') && doc.ends_with('.'), "{id}");
            let sentences = doc.replace('\n', " ").split(". ").count();
            assert!((2..=5).contains(&sentences), "{id} has {sentences} sentences");
        }
    }
}
