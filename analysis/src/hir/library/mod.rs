//! What the functions of CUDA and of the C++ library do: one table, which all analyses and rewrites ask. A function that isn't in it may
//! do anything; what a program defines itself by such a name isn't meant by it.

mod constants;
mod pattern;
mod table;

use std::collections::HashSet;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

pub use crate::hir::library::constants::constant;
pub use crate::hir::library::constants::vector_fields;
use crate::hir::stream_ordered::Operation;

/// What a library function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Library {
    /// What its result depends on.
    pub result: Outcome,
    /// What it does to memory.
    pub memory: Memory,
    /// Who must take part.
    pub together: Together,
    /// What else it does.
    pub does: Does,
    /// What it does when its turn in a stream has come, and which argument names the stream.
    pub stream: Option<(Operation, usize)>,
}

/// What the result of a function depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum Outcome {
    /// There is none.
    Nothing,
    /// Its arguments alone.
    Arguments,
    /// Its arguments, and memory behind the first that nothing writes while the grid runs.
    ReadOnly,
    /// One value for the threads of the mask that is its first argument.
    Vote,
    /// Which threads of the warp happen to run together.
    Active,
    /// The value of the lane that the third argument names.
    Lane,
    /// The value of another lane for each.
    OtherLane,
    /// One value for all threads of the block.
    Block,
    /// Anything else.
    Varying,
}

/// What a function does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum Memory {
    /// Nothing.
    Untouched,
    /// Reads what its first argument points at, by a cache that takes for granted that nothing writes it while the grid runs.
    ReadOnly,
    /// Reads what its first argument points at, which other threads may change meanwhile.
    Loads {
        /// Each load asks the memory anew.
        volatile: bool,
    },
    /// Stores its second argument through its first.
    Stores,
    /// Reads and writes what its first argument points at in one step, for the threads of this scope.
    Atomic(Scope),
    /// Reads and writes what these arguments point at.
    Through {
        /// The arguments through which it writes.
        writes: Args,
        /// The arguments through which it reads.
        reads: Args,
        /// It may be more than one value of the type that is pointed at.
        whole: bool,
    },
    /// Gives back what its first argument points at.
    Frees,
    /// Reads memory by a texture or surface, which may be anywhere.
    Handle {
        /// It writes it.
        writes: bool,
    },
    /// Changes its arguments themselves, which it takes by reference.
    References,
}

/// A set of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Args(u8);

impl Args {
    /// None of them.
    pub const NONE: Args = Args(0);
    /// The last one.
    pub const LAST: Args = Args(1 << 7);

    /// These, by their places.
    pub const fn of(places: &[u8]) -> Args {
        let mut set = 0;
        let mut at = 0;
        while at < places.len() {
            set |= 1 << places[at];
            at += 1;
        }
        Args(set)
    }

    /// The places of those that a call with `count` arguments has.
    pub fn places(self, count: usize) -> impl Iterator<Item = usize> {
        (0..count).filter(move |place| {
            let last = self.0 & Args::LAST.0 != 0 && place + 1 == count;
            last || *place < 7 && self.0 & (1 << place) != 0
        })
    }
}

/// The threads among which something is one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum Scope {
    /// Those of the block.
    Block,
    /// Those of the GPU.
    Device,
    /// All.
    System,
}

/// The threads that must take part in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum Together {
    /// The thread that calls, and no other.
    Alone,
    /// Threads of its warp.
    Warp,
    /// All threads of its block.
    Block,
    /// Some group of threads, which the arguments name.
    Group,
}

/// What else a function does: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Does(u16);

impl Does {
    /// Nothing.
    pub const NOTHING: Does = Does(0);
    /// Waits for all that must take part.
    pub const BARRIER: Does = Does(1);
    /// Orders the thread's accesses to memory.
    pub const FENCE: Does = Does(1 << 1);
    /// Prints.
    pub const PRINTS: Does = Does(1 << 2);
    /// May end the program.
    pub const TRAPS: Does = Does(1 << 3);
    /// Waits for child grids.
    pub const WAITS_FOR_CHILDREN: Does = Does(1 << 4);
    /// Reads the error of a launch.
    pub const READS_ERROR: Does = Does(1 << 5);
    /// Allocates memory.
    pub const ALLOCATES: Does = Does(1 << 6);
    /// Launches a grid.
    pub const LAUNCHES: Does = Does(1 << 7);
    /// Looks at which thread calls it, at a clock, or at what else differs between two calls.
    pub const LOOKS_AROUND: Does = Does(1 << 8);
    /// Waits for what is in a stream.
    pub const WAITS_FOR_STREAM: Does = Does(1 << 9);
    /// There is none of it for device code.
    pub const HOST: Does = Does(1 << 10);
    /// What it does depends on the kind of memory that an address is of: of shared memory, most often.
    pub const ASKS_FOR_MEMORY: Does = Does(1 << 11);

    /// Both.
    pub const fn and(self, other: Does) -> Does {
        Does(self.0 | other.0)
    }

    /// All of `other` is in the set.
    pub const fn has(self, other: Does) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Library {
    /// Its result depends on its arguments alone, and it does nothing else.
    pub fn is_pure(&self) -> bool {
        *self == table::PURE
    }

    /// It only loads, by way of a cache of its own.
    pub fn only_loads(&self) -> bool {
        let loads = matches!(
            self.memory,
            Memory::ReadOnly | Memory::Loads { .. } | Memory::Handle { writes: false }
        );
        loads && self.together == Together::Alone && self.does == Does::NOTHING
    }

    /// It changes none of its arguments themselves: it takes them by value, or by reference to const.
    pub fn keeps_arguments(&self) -> bool {
        self.memory != Memory::References
    }

    /// It waits for others that must take part.
    pub fn is_barrier(&self) -> bool {
        self.does.has(Does::BARRIER)
    }

    /// What other threads or grids have written before it is there behind it.
    pub fn orders_memory(&self) -> bool {
        let orders = [
            Does::BARRIER,
            Does::FENCE,
            Does::WAITS_FOR_CHILDREN,
            Does::WAITS_FOR_STREAM,
        ];
        self.stream.is_some() || orders.iter().any(|d| self.does.has(*d))
    }

    /// It is a barrier for all threads of the block.
    pub fn is_block_barrier(&self) -> bool {
        self.is_barrier() && self.together == Together::Block
    }

    /// Threads of the warp exchange something, or wait for each other.
    pub fn is_of_warp(&self) -> bool {
        self.together == Together::Warp
    }

    /// Its result may be another for another thread, or at another time, with the same arguments and the same memory.
    pub fn looks_around(&self) -> bool {
        let others = [
            Outcome::Vote,
            Outcome::Active,
            Outcome::Lane,
            Outcome::OtherLane,
            Outcome::Block,
        ];
        self.does.has(Does::LOOKS_AROUND) || others.contains(&self.result)
    }

    /// The analyses can tell what it does from these attributes alone.
    pub(crate) fn is_followed(&self) -> bool {
        let followed = match self.memory {
            Memory::References => false,
            // Some of them write through a pointer, and which one is meant only types tell.
            Memory::Handle { .. } => self.stream.is_some(),
            _ => true,
        };
        followed && !self.does.has(Does::LAUNCHES) && !self.does.has(Does::WAITS_FOR_STREAM)
    }

    /// It may change memory that something else may see.
    pub fn changes_memory(&self) -> bool {
        match self.memory {
            Memory::Untouched | Memory::ReadOnly | Memory::Loads { .. } | Memory::Handle { writes: false } => false,
            Memory::Through { writes, .. } => writes != Args::NONE,
            Memory::Stores
            | Memory::Atomic(_)
            | Memory::Frees
            | Memory::Handle { writes: true }
            | Memory::References => true,
        }
    }

    /// The places of the arguments through which a call with `count` of them writes.
    pub fn writes(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let set = match self.memory {
            Memory::Stores | Memory::Atomic(_) => Args::of(&[0]),
            Memory::Through { writes, .. } => writes,
            _ => Args::NONE,
        };
        set.places(count)
    }
}

/// The namespace of the runtime header with atomic operations that are called as CUDA's, and do for a warp what those do for a thread.
pub const TOGETHER: &str = "gridfuse::warp_aggregated::";

/// Where a function of the table is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Namespace {
    /// In the global one alone.
    Global,
    /// In the global one, in `std` and in `cuda::std`.
    Anywhere,
    /// In `std` and in `cuda::std`. By its name alone, a function of the program's may be meant.
    Standard,
    /// In `cooperative_groups`.
    Groups,
    /// There as well; its name says what it is where `using namespace` makes it known.
    GroupMaker,
    /// A member function of a cooperative group.
    Member,
    /// In `gridfuse`, the runtime header's.
    Runtime,
}

/// A part of the table, by name.
type ByName = FxHashMap<String, (Namespace, Library)>;

/// The table by name: functions, and member functions.
static FUNCTIONS: LazyLock<(ByName, ByName)> = LazyLock::new(|| {
    let (mut functions, mut members) = (ByName::default(), ByName::default());
    for row in table::ROWS {
        let all = match row.namespace {
            Namespace::Member => &mut members,
            _ => &mut functions,
        };
        for name in row.names.split_whitespace().flat_map(pattern::expand) {
            all.entry(name).or_insert((row.namespace, row.library));
        }
    }
    (functions, members)
});

/// What the library function does that is called by this name, as written; `None` when the table has none.
pub fn library(name: &str) -> Option<Library> {
    if let Some(atomic) = name.strip_prefix(TOGETHER) {
        return library(atomic).filter(|found| matches!(found.memory, Memory::Atomic(_)));
    }
    let name = name.strip_prefix("::").unwrap_or(name);
    let (space, plain) = name.rsplit_once("::").unwrap_or(("", name));
    let (namespace, library) = FUNCTIONS.0.get(plain)?;
    let fits = match space {
        "" => matches!(
            namespace,
            Namespace::Global | Namespace::Anywhere | Namespace::GroupMaker
        ),
        "std" | "cuda::std" => matches!(namespace, Namespace::Anywhere | Namespace::Standard),
        "gridfuse" => *namespace == Namespace::Runtime,
        "cg" | "cooperative_groups" => matches!(namespace, Namespace::Groups | Namespace::GroupMaker),
        _ => false,
    };
    fits.then_some(*library)
}

/// What a member function of a cooperative group does.
pub fn group_member(name: &str) -> Option<Library> {
    FUNCTIONS.1.get(name).map(|(_, library)| *library)
}

/// The same, of functions of which the analyses can tell what they do.
pub(crate) fn known(name: &str) -> Option<Library> {
    library(name).filter(Library::is_followed)
}

/// The functions of CUDA's headers of which the table says nothing on purpose.
pub fn is_left_out(name: &str) -> bool {
    table::LEFT_OUT
        .iter()
        .flat_map(|(names, _)| names.split_whitespace())
        .any(|known| pattern::expand(known).iter().any(|known| known == name))
}

/// The names that the table has more than once.
pub fn repeated() -> Vec<String> {
    let mut seen = HashSet::new();
    let rows = table::ROWS
        .iter()
        .map(|row| (row.namespace == Namespace::Member, row.names));
    let left_out = table::LEFT_OUT.iter().map(|(names, _)| (false, *names));
    rows.chain(left_out)
        .flat_map(|(member, names)| names.split_whitespace().map(move |name| (member, name)))
        .flat_map(|(member, names)| pattern::expand(names).into_iter().map(move |name| (member, name)))
        .filter(|key| !seen.insert(key.clone()))
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_namespaces() {
        for pure in [
            "sinf",
            "std::sin",
            "::sinf",
            "cuda::std::min",
            "erfcf",
            "__float2int_rn",
            "__vadd2",
            "__hadd2_sat",
            "make_int2",
            "__half22float2",
            "std::move",
        ] {
            assert!(library(pure).is_some_and(|l| l.is_pure()), "{pure}");
        }
        for unknown in [
            "cub::max",
            "mine::sinf",
            "atomicity",
            "__read_tid2",
            "read_block2x_rn",
            "std::__syncthreads",
            "cg::sinf",
            "std::this_grid",
            "::move",
            "move",
            "sync",
            "sin2f",
            "thread_rank",
            "",
        ] {
            assert_eq!(library(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn nothing_stands_there_twice() {
        assert_eq!(repeated(), Vec::<String>::new());
    }

    #[test]
    fn what_is_written() {
        let writes = |name: &str, count| library(name).map(|l| l.writes(count).collect::<Vec<_>>());
        assert_eq!(writes("sincosf", 3), Some(vec![1, 2]));
        assert_eq!(writes("frexp", 2), Some(vec![1]));
        assert_eq!(writes("std::remquo", 3), Some(vec![2]));
        assert_eq!(writes("atomicAdd_block", 2), Some(vec![0]));
        assert_eq!(writes("curand_init", 4), Some(vec![3]));
        assert_eq!(writes("curand_init", 3), Some(vec![2]));
        assert_eq!(writes("__match_all_sync", 3), Some(vec![2]));
        assert_eq!(writes("__vibmax_s16x2", 4), Some(vec![2, 3]));
        assert_eq!(writes("gridfuse::warp_aggregated::atomicMax", 2), Some(vec![0]));
        assert_eq!(writes("gridfuse::warp_aggregated::sinf", 1), None);
    }
}
