//! Random programs with dynamic parallelism whose results depend on no schedule.
//!
//! That is so by construction. Every thread that can launch has a number of its own, derived from the numbers of the threads
//! above it; a child writes only to places that its number gives it, or by atomics that commute, and reads only what nothing
//! changes, what its launching thread has written before the launch, or what a grid before it in the same stream has written.
//! Programs that rely on such an order say so in [`Program::ordered_sites`]: there, what rewrites assume of it is false.

mod allocated;
mod bound;
mod caller;
mod child;
mod counted;
mod cycles;
mod declared;
mod fission;
mod grouped;
mod hidden;
mod hoisted;
mod host;
mod host_rounds;
mod host_search;
mod in_common;
mod instances;
mod kept;
mod launch;
mod meant;
mod names;
mod narrowed;
mod ordered;
mod parent;
mod pasted;
mod plan;
mod preprocessed;
mod refused;
mod scope;
mod selves;
mod shape;
mod streams;
mod tickets;
mod unshown;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Expr, Function, Item, Layout, Param, Program};
use super::random::Random;
use plan::{Buffer, Kernel};
use scope::{Helper, Scope};

/// What chooses the programs with something for rewrites of places, and the like, and how many of a hundred they are; half of them have nothing else.
const PLACES: u64 = 0x0070_6c61_6365_7321;
const WITH_PLACES: u64 = 24;

/// The program of a seed.
pub fn generate(seed: u64) -> Program {
    let mut generator = Generator::new(seed);
    generator.kernels(seed);
    generator.shapes(seed);
    generator.declarations(seed);
    generator.meanings(seed);
    generator.readings(seed);
    generator.countings(seed);
    generator.unseen(seed);
    generator.rounds(seed);
    generator.places(seed);
    generator.searches(seed);
    generator.shared(seed);
    generator.learned(seed);
    generator.bodies();
    generator.main();
    generator.finish()
}

/// What adds a shape.
type Shape = fn(&mut Generator);

/// A program in the making.
struct Generator {
    random: Random,
    features: BTreeSet<&'static str>,
    ordered_sites: BTreeSet<u32>,
    two_dimensional: BTreeSet<String>,
    /// See [`Program::beyond_the_grammar`].
    beyond_the_grammar: bool,
    next_site: u32,
    /// Names at namespace scope that are taken.
    names: BTreeSet<String>,
    /// Macros, types, constants, helpers: what stands first.
    head: Vec<Item>,
    /// Kernels by index, children before parents.
    kernels: Vec<Kernel>,
    /// Finished functions by kernel.
    functions: BTreeMap<usize, Vec<Function>>,
    buffers: Vec<Buffer>,
    /// What expressions everywhere may use.
    common: Scope,
    /// Functions and tables that only device code can use.
    device: Scope,
    helpers: Vec<Helper>,
    /// Names of macros and functions for the number of a thread.
    global_id: Vec<String>,
    /// Block sizes with a name.
    block_constants: Vec<(String, i64)>,
    ceil_div: Option<String>,
    /// The classes of the functors that kernels get, by the kernels' names.
    functors: BTreeMap<String, String>,
    /// The host launches in a `try`.
    tried: bool,
    /// Structs for arguments: name and members.
    structs: BTreeSet<&'static str>,
    /// Vertices: threads of the parents that do anything.
    n: i64,
    /// Out-degrees of the vertices.
    degrees: Vec<i64>,
    main: Vec<Item>,
    /// See [`Program::unfound`].
    unfound: BTreeMap<String, String>,
    /// What the names of included files end with.
    suffix: Option<&'static str>,
    /// See [`Program::waits`].
    waits: usize,
}

impl Generator {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let n = *random.pick(&[5, 12, 20, 33, 40, 48]);
        let big = *random.pick(&[20, 40, 70]);
        let (every, few) = (random.range(5, 13), random.range(2, 6));
        let degrees = (0..n)
            .map(|v| if v % every == 3 { big } else { (v * 7 + 1) % few })
            .collect();
        Generator {
            random,
            features: BTreeSet::new(),
            ordered_sites: BTreeSet::new(),
            two_dimensional: BTreeSet::new(),
            beyond_the_grammar: false,
            next_site: 1,
            names: ["main", "show", "upload", "Mode", "Range", "Graph"]
                .map(str::to_owned)
                .into(),
            head: Vec::new(),
            kernels: Vec::new(),
            functions: BTreeMap::new(),
            buffers: Vec::new(),
            common: Scope::default(),
            device: Scope::default(),
            helpers: Vec::new(),
            global_id: Vec::new(),
            block_constants: Vec::new(),
            ceil_div: None,
            functors: BTreeMap::new(),
            tried: false,
            structs: BTreeSet::new(),
            n,
            degrees,
            main: Vec::new(),
            unfound: BTreeMap::new(),
            suffix: None,
            waits: 0,
        }
    }

    /// What there is to run. Some programs have something that nobody sees who only looks at the launching function and at what it
    /// names; that may be all there is. Chosen by a sequence of its own: programs without it are what they would be without this.
    fn kernels(&mut self, seed: u64) {
        let (mut places, alone) = (Random::new(seed ^ PLACES), 50);
        if places.chance(WITH_PLACES) && places.chance(alone) {
            return;
        }
        let mut random = Random::new(seed ^ 0x0075_6e73_6565_6e21);
        let chosen = random.chance(35);
        if !chosen || random.chance(30) {
            self.plan();
            self.ordered();
            self.selves();
        }
        if !chosen {
            return;
        }
        let others = std::mem::replace(&mut self.random, random);
        match self.random.below(5) {
            0 => self.bound(),
            1 => self.hidden_code(),
            2 => self.fission(),
            3 => self.tickets(),
            _ => self.caller(),
        }
        self.random = others;
    }

    /// Some programs have blocks of two dimensions that are written in a way of their own. Chosen by a sequence of its own, too.
    fn shapes(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x0073_6861_7065_7321);
        if random.chance(12) {
            let others = std::mem::replace(&mut self.random, random);
            self.shaped();
            self.random = others;
        }
    }

    /// Some programs have declarations that don't look like ones. Chosen by a sequence of its own, too.
    fn declarations(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x0064_6563_6c61_7265);
        if random.chance(12) {
            let others = std::mem::replace(&mut self.random, random);
            self.declared();
            self.random = others;
        }
    }

    /// Some programs have names that mean something else than what stands nearest. Chosen by a sequence of its own, too.
    fn meanings(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x006d_6561_6e69_6e67);
        if random.chance(20) {
            let others = std::mem::replace(&mut self.random, random);
            self.meant();
            self.random = others;
        }
    }

    /// Some programs have words that the compiler reads otherwise than a glance does. Chosen by a sequence of its own, too.
    fn readings(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x0072_6561_6469_6e67);
        if random.chance(20) {
            let others = std::mem::replace(&mut self.random, random);
            match self.random.below(4) {
                0 => self.pasted(),
                _ => self.preprocessed(),
            }
            self.random = others;
        }
    }

    /// Some programs have launches whose operands, counts or sizes are more than they look like. Chosen by a sequence of its own, too.
    fn countings(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x636f_756e_7469_6e67);
        if random.chance(20) {
            let others = std::mem::replace(&mut self.random, random);
            match self.random.below(6) {
                0 => self.narrowed(),
                1 => self.refused(),
                _ => self.counted(),
            }
            self.random = others;
        }
    }

    /// Some programs have what neither the launching function nor the files that are there show, or files whose names end as those of
    /// headers don't. Chosen by a sequence of its own, too.
    fn unseen(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x756e_7368_6f77_6e21);
        if random.chance(6) {
            self.feature("included file of another name");
            self.suffix = Some(*random.pick(&[".inl", ".inc", ".hpp", ".cpp", ".h"]));
        }
        if random.chance(20) {
            let others = std::mem::replace(&mut self.random, random);
            self.unshown();
            self.random = others;
        }
    }

    /// Some programs have cycles of tail launches, or functors, or a host that catches exceptions. Chosen by a sequence of its own, too.
    fn rounds(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x0072_6f75_6e64_7321);
        if random.chance(8) {
            self.feature("host that catches exceptions");
            self.tried = true;
        }
        if random.chance(15) {
            let others = std::mem::replace(&mut self.random, random);
            self.cycles();
            self.random = others;
        }
    }

    /// Some programs have what rewrites of places are for: waits, loops of the host; memory that kernels allocate; arguments that can't be
    /// moved. Chosen by a sequence of its own, too.
    fn places(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ PLACES);
        if random.chance(WITH_PLACES) {
            let others = std::mem::replace(&mut self.random, random);
            match self.random.below(5) {
                0 => self.host_rounds(),
                1 => self.allocated(),
                2 => self.hoisted(),
                _ => self.waits(),
            }
            self.random = others;
        }
    }

    /// Some programs have a host that searches in rounds. Chosen by a sequence of its own, too.
    fn searches(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x0073_6561_7263_6865);
        if random.chance(12) {
            let others = std::mem::replace(&mut self.random, random);
            self.host_search();
            self.random = others;
        }
    }

    /// Some programs have threads that share what no name says. Chosen by a sequence of its own, too.
    fn shared(&mut self, seed: u64) {
        let mut random = Random::new(seed ^ 0x0073_6861_7265_6421);
        if random.chance(12) {
            let others = std::mem::replace(&mut self.random, random);
            self.in_common();
            self.random = others;
        }
    }

    /// Some programs have what rewrites keep over barriers, children of several shapes, streams in arrays, or launchers with several instances. Each is chosen by a sequence
    /// of its own, too.
    fn learned(&mut self, seed: u64) {
        let shapes: [(u64, Shape); 4] = [
            (0x696e_7374_616e_6365, Self::instances),
            (0x6772_6f75_7065_6421, Self::grouped),
            (0x0073_7472_6561_6d73, Self::streams),
            (0x006b_6570_7421_2121, Self::keeping),
        ];
        for (sequence, shape) in shapes {
            let mut random = Random::new(seed ^ sequence);
            if random.chance(12) {
                let others = std::mem::replace(&mut self.random, random);
                shape(self);
                self.random = others;
            }
        }
    }

    fn feature(&mut self, name: &'static str) {
        self.features.insert(name);
    }

    fn site(&mut self) -> u32 {
        let site = self.next_site;
        self.next_site += 1;
        site
    }

    /// A name at namespace scope.
    fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        name
    }

    fn text(&mut self, text: impl Into<String>) {
        self.head.push(Item::Text(text.into()));
    }

    fn finish(mut self) -> Program {
        let mut items = self.head;
        let head_end = items.len();
        let mut last_child = head_end;
        for (kernel, functions) in &self.functions {
            items.append(&mut self.kernels[*kernel].before);
            items.extend(functions.iter().cloned().map(Item::Function));
            if !self.kernels[*kernel].parent {
                last_child = items.len();
            }
        }
        let kernels_end = items.len();
        items.extend(self.main);
        let random = &mut self.random;
        // A child behind its parent, declared in front.
        if random.chance(4)
            && let Some(Item::Function(function)) = items.get(last_child.wrapping_sub(1)).cloned()
            && last_child > head_end
            && function.head.contains("__global__")
            && function.params.iter().all(|p| p.default.is_none())
        {
            self.features.insert("child behind its parent");
            items.insert(kernels_end, Item::Function(function.clone()));
            items[last_child - 1] = Item::Text(declaration(&function));
        }
        let mut cuts = Vec::new();
        if random.chance(25) {
            self.features.insert("several files");
            cuts = match random.below(4) {
                0 => vec![last_child, kernels_end],
                1 => vec![kernels_end],
                _ => vec![last_child],
            };
        }
        if self.suffix.is_some() && cuts.is_empty() {
            cuts = vec![kernels_end];
        }
        let crlf = random.chance(4);
        if crlf {
            self.features.insert("crlf");
        }
        let layout = Layout {
            indent: random.pick::<&str>(&["    ", "    ", "  ", "\t"]),
            allman: random.chance(20),
            crlf,
            header_suffix: {
                let usual = random.pick::<&str>(&[".cuh", ".cuh", ".cu"]);
                self.suffix.unwrap_or(usual)
            },
        };
        Program {
            items,
            cuts,
            layout,
            features: self.features,
            ordered_sites: self.ordered_sites,
            two_dimensional: self.two_dimensional,
            beyond_the_grammar: self.beyond_the_grammar,
            unfound: self.unfound,
            waits: self.waits,
        }
    }
}

fn declaration(function: &Function) -> String {
    let params: Vec<String> = function.params.iter().map(|p| format!("{} {}", p.ty, p.name)).collect();
    let template = function.template.as_ref().map_or(String::new(), |t| format!("{t}\n"));
    format!("{template}{} {}({});", function.head, function.name, params.join(", "))
}

fn param(ty: &str, name: &str) -> Param {
    Param {
        ty: ty.to_owned(),
        name: name.to_owned(),
        default: None,
    }
}

/// `blockIdx.x * blockDim.x + threadIdx.x`
fn thread_index(axis: &str) -> Expr {
    use super::ast::{atom, binary, member};
    binary(
        binary(member(atom("blockIdx"), axis), "*", member(atom("blockDim"), axis)),
        "+",
        member(atom("threadIdx"), axis),
    )
}

#[cfg(test)]
mod tests {
    use super::super::print::print;
    use super::*;

    fn all_are_generated(wanted: &[&'static str]) {
        let mut found = BTreeSet::new();
        for seed in 0..1500 {
            found.extend(generate(seed).features);
        }
        let missing: Vec<&&str> = wanted.iter().filter(|f| !found.contains(*f)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn what_stands_at_places_is_generated() {
        let wanted = [
            "wait for child grids",
            "wait in a loop",
            "two waits",
            "error of a wait",
            "launch behind a wait",
            "launch in a branch before a wait",
            "tail launch before a wait",
            "value kept over a wait",
            "effect before a wait",
            "address kept over a wait",
            "variable that changes before a wait",
            "shared memory kept over a wait",
            "reference kept over a wait",
            "loop that a result of children ends",
            "loop of the host",
            "loop of the host with two kernels",
            "loop of the host in a stream",
            "loop of the host that breaks",
            "grid that changes in a loop of the host",
            "barrier in a kernel of a loop of the host",
            "memory that a kernel allocates",
            "threads that don't allocate",
            "allocations of nothing",
            "argument whose name means something else at the top",
        ];
        all_are_generated(&wanted);
    }

    #[test]
    fn what_is_not_named_is_generated() {
        let wanted = [
            "bound launcher guard",
            "bound argument",
            "bound block size",
            "bound block size of the host",
            "bound stream",
            "bound level",
            "hidden launcher guard",
            "hidden argument",
            "hidden parameter",
            "destructor that sets memory",
            "operator that sets memory",
            "destructor that asks for errors",
            "destructor that launches",
            "dynamic shared memory of vectors",
            "shared memory of vectors",
            "shared memory that is declared static",
            "atomic on shared memory by a reference",
            "a counter that a reference sets back",
            "threads take turns by a number that they draw",
            "a shared flag that a reference sets",
            "a shared flag that a reference sets in a kernel that launches itself",
            "caller asks for the error",
            "caller sets memory",
            "caller orders by an event",
            "another name of a namespace",
            "variable in an object",
            "reference to a variable",
            "variable that a macro declares",
            "part of an anonymous union",
            "variable template",
            "member of a specialisation",
            "member of a partial specialisation",
            "specialised function",
            "operator of an enumeration",
            "increment of an enumeration",
            "default argument that does something",
            "inherited member",
            "overload with a pack of parameters",
            "another name of dim3",
            "reference whose name stands in brackets",
            "name that a block declares without a declarator",
            "shape of a variable",
            "shape that a function gives",
            "shape of a class",
            "shape that is set by another name",
            "written by what another name means",
            "launcher guard by what another name means",
        ];
        all_are_generated(&wanted);
    }

    #[test]
    fn what_is_read_otherwise_is_generated() {
        let wanted = [
            "macro under an unsigned condition",
            "macro that is popped",
            "comment that goes on in front of a directive",
            "macro of the system in a condition",
            "comment in a directive",
            "form feed in a directive",
            "directive over two lines",
            "directive by a digraph",
            "launcher by a misread macro",
            "launcher by a misread macro in a kernel that launches itself",
            "argument by a misread macro",
            "block size of the host by a misread macro",
            "block size by a misread macro",
            "number of launches by a misread macro",
            "kernel's name put together by ##",
            "kernel's name over two lines",
            "counts by a field",
            "counts by an inherited field",
            "counts by a field of a field",
            "counts by a field of a template",
            "counts by a field of another type's name",
            "counts in an operator",
            "counts in a conversion",
            "counts in a constructor",
            "counts in a destructor",
            "counts in a default argument",
            "counts in a loop over a class",
            "counts behind an arrow",
            "operand with an arrow that counts",
            "operand with a literal operator that counts",
            "operand with an operator that counts",
            "operand with a conversion that counts",
            "operand with a member that counts",
            "operand with a default argument that counts",
            "counting grid size",
            "counting block size",
            "counting count",
            "counting argument",
            "counting grid size of the host",
            "counting block size of the host",
            "numbered uses",
            "numbered use in a child",
            "narrower type in a namespace",
            "narrower type in a function",
            "narrower type in a template",
            "narrower type of a namespace that is used",
            "threads leave by assembly",
            "threads of a child leave by assembly",
            "class of a header that isn't found in a child",
            "barrier of a header that isn't found in a child",
            "class of a header that isn't found beside a launch",
            "captured graph, instantiated twice",
            "object of a macro beside a launch",
            "object of a macro in a child",
            "included file of another name",
            "refused empty grid",
            "refused block of no thread",
            "refused block of too many threads",
            "refused block of too many layers",
            "error of a refused launch that changes nothing",
        ];
        all_are_generated(&wanted);
    }

    #[test]
    fn rounds_are_generated() {
        let wanted = [
            "driver of rounds",
            "driver of rounds that is a template",
            "driver with a partner",
            "driver with several children",
            "driver whose threads count",
            "driver that sets a counter",
            "the data decide how many rounds there are",
            "grid-stride loop in a round",
            "functor of a child",
            "host that catches exceptions",
        ];
        all_are_generated(&wanted);
    }

    #[test]
    fn what_rewriters_learned_is_generated() {
        let wanted = [
            "children of several shapes",
            "shape of a child at run time",
            "child that asks its grid",
            "child that asks its block",
            "child whose function asks for the thread",
            "child that numbers the threads of three dimensions",
            "shuffle in blocks of several dimensions",
            "barrier in blocks of several dimensions",
            "tiles in blocks of several dimensions",
            "stride by the size of the grid",
            "streams in an array",
            "order in a stream of an array",
            "launch into each stream of an array",
            "kept reference",
            "kept pointer",
            "kept address",
            "kept constant",
            "kept object with a reference",
            "kept array that a callee gets",
            "macro that changes in a body",
            "condition of the preprocessor in a body",
            "kept trait",
            "kept structure",
            "launch in one instance only",
            "another launch in each instance",
            "launcher that is a template of a type",
            "launcher that is a template of a number",
            "launcher that is a template of a class with a constant",
            "launcher that is a template of a template",
            "launcher that is a template of a functor",
        ];
        all_are_generated(&wanted);
    }

    #[test]
    fn a_seed_names_a_program() {
        let mut without = 0;
        for seed in 0..50 {
            let (once, again) = (print(&generate(seed)), print(&generate(seed)));
            assert_eq!(once.files, again.files);
            // All launches of a program may stand in a macro.
            without += usize::from(once.launches.is_empty());
        }
        assert!(
            without < 10,
            "{without} of 50 programs have no launch that can be rewritten"
        );
    }
}
