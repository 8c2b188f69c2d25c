//! `__launch_bounds__` of parents that collect launches, and of kernels that take the place of a child: what those that are there allow,
//! and where they are needed.
//!
//! A kernel takes as many registers as the function that it calls with the most, and ptxas refuses to let it call functions that need
//! more than its launch bounds leave. Without launch bounds a kernel of large blocks may come to need more than there are: then its
//! launch fails ("too many resources requested").

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::parse::masked;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::dependence::most_threads;
use gridfuse_analysis::hir::Type;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};

use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::registers;
use crate::facts::site::Site;
use crate::facts::sizes::size_of;

/// Registers of a multiprocessor, on every GPU that the runtime supports.
const REGISTERS: u64 = 65536;

/// The most that a thread can have.
const MOST_REGISTERS: u64 = 255;

/// Blocks of so many threads fit whatever their registers are.
const SMALL_BLOCK: u64 = 256;

/// What a parent can be held to when its children launch nothing: ptxas compiles aggregators of every granularity with 32 registers, for
/// arguments of 8 to 200 bytes (of which it spills 24 at most), as all that launches is inlined and hands over one argument after the other.
const PLAIN: u64 = 32;

/// The same when children launch in their turn: `PoolView::allocate_from`, which a kernel calls for their memory, takes 46 for itself,
/// and ptxas gives out eight at a time.
const NESTED: u64 = 48;

/// The registers of a kernel that launches, as ptxas counts for sm_90.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// Compiled with optimization. `None`: not known.
    optimized: Option<u64>,
    /// Compiled for debugging (`-G`), which inlines nothing, so that functions pass each word of the arguments in a register.
    debugging: Option<u64>,
}

impl Needed {
    /// By a kernel that collects launches of a child with arguments of so many [`words`]. `nested`: the child launches in its turn.
    pub fn to_collect(words: Option<u64>, nested: bool) -> Needed {
        let (optimized, base) = if nested { (NESTED, 72) } else { (PLAIN, 32) };
        Needed {
            optimized: Some(optimized),
            debugging: words.map(|words| (base + 2 * words).max(optimized)),
        }
    }

    /// By a kernel that calls a function of its own for a launch that doesn't fit, as `Recursion`, `Loop` and `Chain` do: found by trying
    /// for arguments of 8 to 200 bytes.
    pub fn to_launch_alone<'a>(arguments: impl Iterator<Item = &'a Type>) -> Needed {
        let registers = words(arguments).map(|words| (24 + 2 * words).max(48));
        Needed {
            optimized: registers,
            debugging: registers,
        }
    }

    /// By a kernel that does both.
    pub fn and(self, other: Needed) -> Needed {
        let larger = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
        Needed {
            optimized: larger(self.optimized, other.optimized),
            debugging: larger(self.debugging, other.debugging),
        }
    }

    /// With optimization; `None`: not known.
    pub fn optimized(self) -> Option<u64> {
        self.optimized
    }

    /// Whether ptxas may refuse a kernel with so many registers that is compiled for debugging.
    fn is_too_large_for_debugging(self, left: u64) -> bool {
        self.debugging.is_none_or(|needed| left < needed)
    }
}

/// How many words of 32 bits arguments of these types come to. `None`: a type isn't known.
pub fn words<'a>(mut arguments: impl Iterator<Item = &'a Type>) -> Option<u64> {
    arguments.try_fold(0, |words, ty| Some(words + size_of(ty)?.0.div_ceil(4)))
}

/// What is written in front of a kernel's name about its registers.
#[derive(Debug, PartialEq, Eq)]
enum Bounds {
    Nothing,
    /// As many registers for each thread as this; `None`: that isn't known.
    Registers(Option<u64>),
}

/// A kernel that launches may have to keep to a number of registers: refuses one that has too few, and adds launch bounds
/// where a few registers more than now would be too many. `launches`: those by the host, if there are no others.
pub fn keep(
    function: &Function<'_>,
    launches: Option<&[Site<'_>]>,
    needed: Needed,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'_>,
) {
    let name = function.item.signature(function.db).name_span.shift(function.start);
    let place = Some(FileRange {
        file: function.file,
        range: name,
    });
    let title = function.name();
    let assume_optimized = |edit: &mut EditBuilder<'_>, left: u64| {
        if needed.is_too_large_for_debugging(left) {
            let registers = needed.debugging.map_or("more".to_owned(), |n| format!("up to {n}"));
            edit.assume(assumption::NO_DEBUG_BUILD.of(Reason {
                text: format!("`{title}` isn't compiled for debugging (-G), where what launches needs {registers} registers of a thread's {left}"),
                place,
            }));
        }
    };
    match (bounds(function.db, function.item, head(function), function.start), needed.optimized) {
        (Bounds::Registers(Some(left)), Some(needed)) if left < needed => refusals.add(
            format!("the launch bounds of `{title}` leave {left} registers for a thread, and what launches needs up to {needed}"),
            place,
        ),
        // All that a function may have.
        (Bounds::Registers(Some(MOST_REGISTERS)), _) => {}
        (Bounds::Registers(Some(left)), Some(_)) => assume_optimized(edit, left),
        (Bounds::Registers(_), _) => edit.assume(assumption::ENOUGH_REGISTERS.of(Reason {
            text: format!("the launch bounds of `{title}` leave enough registers for what launches (or ptxas will say that they don't)"),
            place,
        })),
        (Bounds::Nothing, Some(_)) => {
            let Some(threads) = launches.and_then(largest_block) else {
                return;
            };
            let left = REGISTERS / threads.max(1);
            // A block of 1,024 leaves 64, which is enough.
            if threads <= 1024 && left < 2 * 64 {
                assume_optimized(edit, left);
                edit.insert(function.file, name.start, format!("__launch_bounds__({threads}) "));
            }
        }
        (Bounds::Nothing, None) => {}
    }
}

/// A kernel that takes over the code of another one may come to need any number of registers: adds launch bounds where its blocks are so
/// large that there might not be as many. With launch bounds of its own it keeps to these. They are for the largest block that there can
/// be: its parameters stay as they are, so it may be launched in other ways than `launches`, which aren't seen.
pub fn keep_with_more_code(function: &Function<'_>, launches: Option<&[Site<'_>]>, edit: &mut EditBuilder<'_>) {
    let bounds = bounds(function.db, function.item, head(function), function.start);
    let Some(threads) = launches.and_then(largest_block) else {
        return;
    };
    if bounds == Bounds::Nothing && threads <= 1024 && may_take_too_many(threads) {
        let name = function.item.signature(function.db).name_span.shift(function.start);
        edit.insert(function.file, name.start, "__launch_bounds__(1024) ");
    }
}

/// A kernel without launch bounds, of blocks whose size isn't known, comes to need some registers more: assumes that its blocks are small
/// enough for that, where it isn't clear that blocks of any size are. Launch bounds that hold for any size would do, but then functions
/// that it calls, and that aren't inlined, may not have more either, and such a program doesn't link. `more`: functions whose code it
/// takes over.
pub fn assume_enough<'db>(
    function: &Function<'db>,
    launches: &[Site<'db>],
    more: &[FunctionItem<'db>],
    edit: &mut EditBuilder<'db>,
) {
    let db = function.db;
    let bounds = bounds(db, function.item, head(function), function.start);
    if bounds != Bounds::Nothing || largest_block(launches).is_some() {
        return;
    }
    let threads = most_threads(db, function.item).max(1);
    let mut code = [function.item].into_iter().chain(more.iter().copied());
    let needed = code.try_fold(PLAIN, |sum, item| Some(sum + registers::of_code(db, item)?));
    let left = REGISTERS / (threads.div_ceil(32) * 32) / 8 * 8;
    if !may_take_too_many(threads) || needed.is_some_and(|needed| needed <= left) {
        return;
    }
    let name = function.item.signature(db).name_span.shift(function.start);
    edit.assume(assumption::ENOUGH_REGISTERS.of(Reason {
        text: format!(
            "blocks of `{}` have at most {SMALL_BLOCK} threads (the rewritten kernel may need more registers)",
            function.name()
        ),
        place: Some(FileRange {
            file: function.file,
            range: name,
        }),
    }));
}

/// `__launch_bounds__` for a kernel that takes the place of a child which has none: it takes some registers more than the child, and a
/// block of so many threads may leave it too few. `None`: any number fits, or how large the blocks of these launches are isn't known.
pub fn of_generated<'a, 'db: 'a>(launches: impl IntoIterator<Item = &'a Site<'db>>) -> Option<String> {
    let threads = largest_block(launches)?;
    (threads <= 1024 && may_take_too_many(threads)).then(|| format!("__launch_bounds__({threads})"))
}

/// Whether a block of so many threads doesn't fit if each of them has as many registers as there can be. They are given out to whole
/// warps, eight at a time.
fn may_take_too_many(threads: u64) -> bool {
    threads.div_ceil(32) * 32 * MOST_REGISTERS.next_multiple_of(8) > REGISTERS
}

/// The most threads of a block that a child's launch bounds allow. `None`: it has none; `Some(None)`: how many isn't known.
pub fn allowed_threads(child: &Child<'_>) -> Option<Option<u64>> {
    let bounds = child.launch_bounds.as_ref()?;
    let tokens = lex::code_tokens(bounds);
    let most = arguments(bounds, &tokens, 1).and_then(|list| number(child.db, child.item, list.first()?));
    Some(most)
}

/// The number of threads of the largest block, if all are constant.
pub fn largest_block<'a, 'db: 'a>(launches: impl IntoIterator<Item = &'a Site<'db>>) -> Option<u64> {
    let threads = |host: &Site<'_>| {
        let block = host.facts.block.constant?;
        Some(block.iter().fold(1u64, |n, x| n.saturating_mul(*x)))
    };
    let sizes: Option<Vec<u64>> = launches.into_iter().map(threads).collect();
    sizes?.into_iter().max()
}

/// The text in front of a function's name.
fn head<'a>(function: &'a Function<'_>) -> &'a str {
    let name = function.item.signature(function.db).name_span.shift(function.start);
    let head = function.text.get(function.start as usize..name.start as usize);
    head.unwrap_or("")
}

fn bounds(db: &dyn Db, item: FunctionItem<'_>, head: &str, offset: u32) -> Bounds {
    let masked = masked(db, item.file(db));
    let macros = &masked.specifiers;
    let bounding = |text: &str| text.contains("launch_bounds") || text.contains("maxnreg");
    let tokens = lex::code_tokens(head);
    for (index, token) in tokens.iter().enumerate() {
        let word = token.text(head);
        if matches!(word, "__launch_bounds__" | "__maxnreg__") {
            let arguments: Option<Vec<Option<u64>>> = arguments(head, &tokens, index + 1)
                .map(|list| list.iter().map(|argument| number(db, item, argument)).collect());
            return Bounds::Registers(arguments.and_then(|list| registers(word, &list)));
        }
        let meaning = macros.iter().find(|used| used.start == offset + token.start as u32);
        if meaning.is_some_and(|used| used.words.iter().any(|word| bounding(word))) || bounding(word) {
            return Bounds::Registers(None);
        }
    }
    Bounds::Nothing
}

/// What the arguments of an attribute come to.
fn registers(word: &str, arguments: &[Option<u64>]) -> Option<u64> {
    if word == "__maxnreg__" {
        return arguments.first().copied().flatten();
    }
    let (threads, blocks) = match arguments {
        // Without a number of blocks, one has to fit; of any size that there is, if that isn't known.
        [threads] => (threads.unwrap_or(1024), 1),
        [threads, blocks, ..] => ((*threads)?, (*blocks)?.max(1)),
        [] => return None,
    };
    let threads = threads.div_ceil(32).saturating_mul(32).saturating_mul(blocks).max(32);
    // ptxas gives out eight at a time, and 255 at most.
    Some((REGISTERS / threads / 8 * 8).min(255))
}

/// The arguments in the parentheses that begin at a token.
fn arguments<'a>(text: &'a str, tokens: &[lex::Token], open: usize) -> Option<Vec<&'a str>> {
    let mut depth = 0;
    let mut from = tokens.get(open).filter(|t| t.text(text) == "(")?.end;
    let mut list = Vec::new();
    for token in tokens.get(open..)? {
        match token.text(text) {
            "(" => depth += 1,
            ")" => depth -= 1,
            "," if depth == 1 => {
                list.push(text.get(from..token.start)?.trim());
                from = token.end;
            }
            _ => {}
        }
        if depth == 0 {
            list.push(text.get(from..token.start)?.trim());
            return Some(list);
        }
    }
    None
}

/// A literal, or a constant that is one.
fn number(db: &dyn Db, item: FunctionItem<'_>, text: &str) -> Option<u64> {
    let literal = |text: &str| text.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok();
    literal(text).or_else(|| match meaning_in(db, item, text) {
        Meaning::Global(global) if global.constant => literal(global.init.as_deref()?.trim()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_that_are_needed() {
        let plain = Needed::to_collect(words([].iter()), false);
        assert_eq!((plain.optimized, plain.debugging), (Some(32), Some(32)));
        let unknown = [Type::default()];
        let nested = Needed::to_collect(words(unknown.iter()), true);
        assert_eq!((nested.optimized, nested.debugging), (Some(48), None));
        assert!(nested.is_too_large_for_debugging(254));
        assert_eq!(plain.and(nested), nested);
        assert_eq!(plain.and(Needed::to_launch_alone(unknown.iter())).optimized, None);
    }

    #[test]
    fn blocks_that_may_take_too_many_registers() {
        assert!(!may_take_too_many(256));
        assert!(may_take_too_many(257));
        assert!(may_take_too_many(1024));
    }

    #[test]
    fn registers_that_launch_bounds_leave() {
        assert_eq!(registers("__launch_bounds__", &[Some(128)]), Some(255));
        assert_eq!(registers("__launch_bounds__", &[Some(500)]), Some(128));
        assert_eq!(registers("__launch_bounds__", &[Some(1024)]), Some(64));
        assert_eq!(registers("__launch_bounds__", &[None]), Some(64));
        assert_eq!(registers("__launch_bounds__", &[Some(256), Some(4)]), Some(64));
        assert_eq!(registers("__launch_bounds__", &[Some(250), Some(8)]), Some(32));
        assert_eq!(
            registers("__launch_bounds__", &[Some(1024), Some(2), Some(1)]),
            Some(32)
        );
        assert_eq!(registers("__launch_bounds__", &[Some(256), None]), None);
        assert_eq!(registers("__launch_bounds__", &[Some(64), Some(1)]), Some(255));
        assert_eq!(registers("__maxnreg__", &[Some(40)]), Some(40));
    }
}
