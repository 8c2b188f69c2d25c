//! `__launch_bounds__` of parents that collect launches: what those that are there allow, and where they are needed.
//!
//! A kernel takes as many registers as the function that it calls with the most; a launch takes some for each word of its arguments,
//! and the functions of the runtime that hand out memory to nested launches take their own. ptxas keeps to the launch bounds of the kernel itself, and refuses to
//! let it call functions that need more than these leave. Without launch bounds a kernel of large blocks may come to need more than
//! there are: then its launch fails ("too many resources requested").

use gridfuse_analysis::db::{Db, SourceFile};
use gridfuse_analysis::hir::Type;
use gridfuse_analysis::parse::parse;
use gridfuse_analysis::resolve::{Meaning, meaning};
use gridfuse_analysis::span::FileRange;

use crate::cluster::Function;
use crate::edit::EditBuilder;
use crate::lex;
use crate::rewrite::Reason;
use crate::room::size_of;
use crate::site::{Refusals, Site};

/// Registers of a multiprocessor, on every GPU that the runtime supports.
const REGISTERS: u64 = 65536;

/// The most registers that it takes to launch a child with arguments of these types, as ptxas counts for sm_90: found by trying, for
/// arguments of 8 to 200 bytes, when the runtime still had functions of its own for launches that don't fit. It is inlined there now and
/// takes fewer (`docs/overhead.md`), so this is on the safe side. `nested`: the child launches in its turn. `None`: a type isn't known.
pub fn needed<'a>(arguments: impl Iterator<Item = &'a Type>, nested: bool) -> Option<u64> {
    let sizes: Option<Vec<u64>> = arguments.map(|ty| Some(size_of(ty)?.0.div_ceil(4))).collect();
    let words: u64 = sizes?.iter().sum();
    Some((if nested { 72 } else { 24 } + 2 * words).max(48))
}

/// What is written in front of a kernel's name about its registers.
#[derive(Debug, PartialEq, Eq)]
enum Bounds {
    Nothing,
    /// As many registers for each thread as this; `None`: that isn't known.
    Registers(Option<u64>),
}

/// A kernel that collects launches may have to keep to a number of registers: refuses one that has too few, and adds launch bounds
/// where a few registers more than now would be too many. `launches`: those by the host, if there are no others.
pub fn keep(
    function: &Function<'_>,
    launches: Option<&[Site<'_>]>,
    needed: Option<u64>,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'_>,
) {
    let name = function.item.signature(function.db).name_span.shift(function.start);
    let place = Some(FileRange {
        file: function.file,
        range: name,
    });
    let title = function.name();
    match (bounds(function.db, function.file, head(function), function.start), needed) {
        (Bounds::Registers(Some(left)), Some(needed)) if left < needed => refusals.add(
            format!("the launch bounds of `{title}` leave {left} registers for a thread, and what launches needs up to {needed}"),
            place,
        ),
        (Bounds::Registers(Some(left)), Some(needed)) if left >= needed => {}
        // All that a function may have.
        (Bounds::Registers(Some(255)), _) => {}
        (Bounds::Registers(_), _) => edit.assume(Reason {
            text: format!("the launch bounds of `{title}` leave enough registers for what launches (or ptxas will say that they don't)"),
            place,
        }),
        (Bounds::Nothing, Some(needed)) => {
            let Some(threads) = launches.and_then(largest_block) else {
                return;
            };
            let left = REGISTERS / threads.max(1);
            if threads > 1024 || left >= 2 * 64 {
                return;
            }
            if left < needed {
                refusals.add(
                    format!("a block of `{title}` has {threads} threads, which leaves {left} registers for each; what launches needs up to {needed}"),
                    place,
                );
            } else {
                edit.insert(function.file, name.start, format!("__launch_bounds__({threads}) "));
            }
        }
        (Bounds::Nothing, None) => {}
    }
}

/// The number of threads of the largest block, if all are constant.
pub fn largest_block(launches: &[Site<'_>]) -> Option<u64> {
    let threads = |host: &Site<'_>| {
        let block = host.facts.block.constant?;
        Some(block.iter().fold(1u64, |n, x| n.saturating_mul(*x)))
    };
    let sizes: Option<Vec<u64>> = launches.iter().map(threads).collect();
    sizes?.into_iter().max()
}

/// The text in front of a function's name.
fn head<'a>(function: &'a Function<'_>) -> &'a str {
    let name = function.item.signature(function.db).name_span.shift(function.start);
    let head = function.text.get(function.start as usize..name.start as usize);
    head.unwrap_or("")
}

fn bounds(db: &dyn Db, file: SourceFile, head: &str, offset: u32) -> Bounds {
    let parsed = parse(db, file);
    let macros = &parsed.masked().specifiers;
    let bounding = |text: &str| text.contains("launch_bounds") || text.contains("maxnreg");
    let tokens = lex::code_tokens(head);
    for (index, token) in tokens.iter().enumerate() {
        let word = token.text(head);
        if matches!(word, "__launch_bounds__" | "__maxnreg__") {
            let arguments: Option<Vec<Option<u64>>> = arguments(head, &tokens, index + 1)
                .map(|list| list.iter().map(|argument| number(db, file, argument)).collect());
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
        // Blocks of any size that there is.
        [_] => (1024, 1),
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
fn number(db: &dyn Db, file: SourceFile, text: &str) -> Option<u64> {
    let literal = |text: &str| text.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok();
    literal(text).or_else(|| match meaning(db, file, text) {
        Meaning::Global(global) if global.constant => literal(global.init.as_deref()?.trim()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_that_launch_bounds_leave() {
        assert_eq!(registers("__launch_bounds__", &[Some(128)]), Some(64));
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
