//! Same-length masking: blanks what tree-sitter-cuda cannot parse, keeping every offset and newline, so that the tree's
//! positions are positions in the user's text.
//!
//! What is blanked: `__align__(8)`, `__cluster_dims__(…)`, `__maxnreg__(…)`, `__launch_bounds__` with three arguments,
//! calling-convention words, `#pragma` lines (a `#pragma unroll` between `if (c)` and `for` would give the `if` an empty
//! body), lambda execution spaces (`[=] __device__ (…)`), and the user's own macros that stand for what is written in front of
//! functions (`#define KERNEL __global__`), whose meaning is kept in [`Masked::specifiers`]. `#define RESTRICT __restrict__` becomes `restrict`,
//! and `(unsigned(x) + 1)` the same with `uint32_t`. Branches of `#if` that aren't compiled are blanked,
//! and `#if` groups that cut through a construct are reduced to one branch ([`Masked::cuts`]).

mod conditionals;
mod directives;
mod large;

use std::sync::Arc;

use tree_sitter::{InputEdit, Point, Tree};

use crate::base::budget::FILE_BYTES;
use crate::base::preprocess::{Branch, SpecifierMacros, SpecifierUse, Specifiers, reads_as_restrict};
use crate::base::scan::{
    blank, commas, end_of_block_comment, end_of_char, end_of_line_comment, end_of_number, end_of_raw_string,
    end_of_string, is_raw_prefix, is_word_start, matching, skip_space, word_at,
};
use crate::base::span::TextRange;
use crate::base::words::words;
use conditionals::Conditionals;
pub use directives::{Directive, directives};

/// A masked text.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Masked {
    /// Same length and newlines as the original; empty when the file is too large.
    pub text: Arc<str>,
    /// Macros that were blanked because they stand for specifiers of functions, in order.
    pub specifiers: Vec<Specifiers>,
    /// `#if` groups of which one branch was kept because they cut through a construct, in order.
    pub cuts: Vec<TextRange>,
    /// `#if` groups of which it is known which branch is compiled, if any, in order.
    pub decided: Vec<TextRange>,
    /// Branches that were blanked, in order: what stands there isn't analysed.
    pub inactive: Vec<TextRange>,
    /// What was blanked because it is too large, in order; it is among `inactive`, too. See [`crate::base::budget`].
    pub large: Vec<TextRange>,
}

impl Masked {
    /// The same where the bytes from `start` to `end`, in which and around which nothing is masked, are `insert`; `moved` says where a
    /// place is then.
    pub(crate) fn spliced(&self, start: usize, end: usize, insert: &str, moved: impl Fn(u32) -> u32) -> Option<Masked> {
        let (head, tail) = (self.text.get(..start)?, self.text.get(end..)?);
        let all = |ranges: &[TextRange]| -> Vec<TextRange> {
            let range = |range: &TextRange| TextRange::new(moved(range.start), moved(range.end));
            ranges.iter().map(range).collect()
        };
        let specifiers = self.specifiers.iter().map(|specifiers| Specifiers {
            start: moved(specifiers.start),
            end: moved(specifiers.end),
            ..specifiers.clone()
        });
        Some(Masked {
            text: [head, insert, tail].concat().into(),
            specifiers: specifiers.collect(),
            cuts: all(&self.cuts),
            decided: all(&self.decided),
            inactive: all(&self.inactive),
            large: all(&self.large),
        })
    }
}

/// Names that are blanked together with a following parenthesised argument list.
const WITH_ARGUMENTS: &[&str] = &[
    "__align__",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "__attribute__",
    "__declspec",
    "__nv_pure__",
    "_Pragma",
];

/// Names that are blanked alone.
const WORDS: &[&str] = &[
    "__stdcall",
    "__cdecl",
    "__fastcall",
    "__vectorcall",
    "CUDARTAPI",
    "CUDART_CB",
    "CUDACB",
    "WINAPI",
    "__inline_hint__",
];

/// The execution spaces among attributes, as the words that CUDA's headers define for them: `__attribute__((host, device))`.
fn spaces_in(attributes: &str) -> Vec<String> {
    let named = words(attributes).filter_map(|word| match word.trim_matches('_') {
        "global" => Some("__global__"),
        "device" => Some("__device__"),
        "host" => Some("__host__"),
        _ => None,
    });
    named.map(str::to_owned).collect()
}

/// Whether something becomes of a word when a text is masked, macros aside.
pub(crate) fn is_masked_word(word: &str) -> bool {
    let space = matches!(word, "__global__" | "__device__" | "__host__" | "__launch_bounds__");
    space || WORDS.contains(&word) || WITH_ARGUMENTS.contains(&word)
}

/// Whether `(unsigned(x) * 2)` begins in front of a word: the grammar takes what follows for a parameter, and has no trouble with a name
/// of the same type that is one word of the same length.
pub(crate) fn is_cast_in_brackets(text: &str, at: usize) -> bool {
    let behind = text.get(at..).and_then(|rest| rest.strip_prefix("unsigned"));
    let before = text.get(..at).unwrap_or("").trim_end_matches([' ', '\t']);
    behind.is_some_and(|behind| behind.starts_with('(')) && before.ends_with('(')
}

/// Masks one text of which no macros are known. `branches`: for each of its [`directives`] what becomes of the text behind it; those
/// that are missing aren't known.
pub fn mask(text: &str, branches: &[Branch]) -> Masked {
    mask_with(text, &directives(text), branches, &SpecifierMacros::default())
}

/// The same where its directives and macros are known.
pub(crate) fn mask_with(text: &str, directives: &[Directive], branches: &[Branch], macros: &SpecifierMacros) -> Masked {
    if text.len() > FILE_BYTES {
        let whole = vec![TextRange::new(0, text.len() as u32)];
        return Masked {
            text: "".into(),
            specifiers: Vec::new(),
            cuts: Vec::new(),
            decided: Vec::new(),
            inactive: whole.clone(),
            large: whole,
        };
    }
    let mut masker = Masker {
        text,
        bytes: text.as_bytes(),
        directives,
        macros,
        out: text.as_bytes().to_vec(),
        specifiers: Vec::new(),
        next_directive: 0,
        at: 0,
        line_fresh: true,
    };
    masker.run();
    let Masker {
        mut out, specifiers, ..
    } = masker;
    let Conditionals {
        cuts,
        decided,
        mut inactive,
        too_deep,
    } = conditionals::mend(text, &mut out, directives, branches);
    let mut large = large::blank_large(&mut out, directives);
    if !too_deep.is_empty() {
        large.retain(|range| !too_deep.iter().any(|group| group.contains(*range)));
        large.extend(
            too_deep
                .iter()
                .filter(|group| !large.iter().any(|l| l.contains(**group)))
                .copied()
                .collect::<Vec<_>>(),
        );
        large.sort_unstable();
    }
    if !large.is_empty() {
        inactive.retain(|range| !large.iter().any(|l| l.contains(*range)));
        inactive.extend(&large);
        inactive.sort_unstable();
    }
    // Only whole ASCII words and spans between ASCII delimiters were blanked byte by byte, so the text is still UTF-8;
    // should that ever be wrong, the unmasked text is the safe answer.
    let masked = String::from_utf8(out).unwrap_or_else(|_| text.to_owned());
    Masked {
        text: masked.into(),
        specifiers,
        cuts,
        decided,
        inactive,
        large,
    }
}

/// Masks words and directives, from the front to the end.
struct Masker<'a> {
    text: &'a str,
    bytes: &'a [u8],
    directives: &'a [Directive],
    macros: &'a SpecifierMacros,
    /// The text with what has been masked.
    out: Vec<u8>,
    /// The macros that stand for specifiers.
    specifiers: Vec<Specifiers>,
    next_directive: usize,
    at: usize,
    /// Nothing but blanks stands in front in the line, so that a directive may begin.
    line_fresh: bool,
}

impl Masker<'_> {
    fn run(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            let (bytes, at) = (self.bytes, self.at);
            match byte {
                b'\n' => {
                    self.line_fresh = true;
                    self.at += 1;
                    continue;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if bytes.get(at + 1) == Some(&b'/') => self.at = end_of_line_comment(bytes, at),
                b'/' if bytes.get(at + 1) == Some(&b'*') => self.at = end_of_block_comment(bytes, at),
                _ => {
                    let fresh = std::mem::replace(&mut self.line_fresh, false);
                    match byte {
                        b'"' => self.at = end_of_string(bytes, at),
                        b'\'' => self.at = end_of_char(bytes, at),
                        b'#' if fresh => self.directive(),
                        b'%' if fresh && bytes.get(at + 1) == Some(&b':') => {
                            // The grammar doesn't know that it is another spelling of `#`.
                            self.out[at..at + 2].copy_from_slice(b"# ");
                            self.directive();
                        }
                        b'[' => self.bracket(),
                        _ if is_word_start(*byte) => self.word(),
                        b'0'..=b'9' => self.at = end_of_number(bytes, at),
                        _ => self.at += 1,
                    }
                }
            }
        }
    }

    /// Goes behind a directive; pragmas are blanked.
    fn directive(&mut self) {
        while self
            .directives
            .get(self.next_directive)
            .is_some_and(|d| d.start < self.at)
        {
            self.next_directive += 1;
        }
        match self.directives.get(self.next_directive).filter(|d| d.start == self.at) {
            Some(directive) => {
                self.next_directive += 1;
                if directive.name == "pragma" {
                    blank(&mut self.out, self.at, directive.end);
                } else {
                    self.mark(directive);
                }
                self.at = directive.end;
            }
            None => self.at += 1,
        }
    }

    /// The grammar wants nothing but blanks and tabs between `#` and the directive's name: where something else stands there, the `#` is
    /// put in front of the name; or the directive is blanked, as the tree needs no more than the conditional ones.
    fn mark(&mut self, directive: &Directive) {
        let gap = directive.gap(self.text);
        let Some(between) = self.bytes.get(gap.clone()) else {
            return;
        };
        if between.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
            return;
        }
        let is_conditional = directive.name.starts_with("if") || directive.name.starts_with('e');
        if !between.ends_with(b"\n") {
            blank(&mut self.out, directive.start, gap.end);
            self.out[gap.end - 1] = b'#';
        } else if !is_conditional {
            blank(&mut self.out, directive.start, directive.end);
        }
    }

    /// `[…] __device__ (` : an execution space on a lambda is blanked.
    fn bracket(&mut self) {
        let bytes = self.bytes;
        self.at += 1;
        let attribute = bytes.get(self.at) == Some(&b'[');
        if attribute {
            return;
        }
        let Some(close) = matching(bytes, self.at - 1, b'[', b']') else {
            return;
        };
        let mut next = skip_space(bytes, close + 1);
        while let Some(word) = word_at(self.text, next).filter(|w| matches!(*w, "__device__" | "__host__")) {
            let after = skip_space(bytes, next + word.len());
            if !matches!(bytes.get(after), Some(b'(' | b'{' | b'_')) {
                break;
            }
            blank(&mut self.out, next, next + word.len());
            next = after;
        }
    }

    /// Goes behind a word, and behind its arguments where they are masked along with it.
    fn word(&mut self) {
        let (text, bytes, at) = (self.text, self.bytes, self.at);
        let word = word_at(text, at).unwrap_or("");
        let end = at + word.len();
        self.at = end;
        let arguments = || {
            let open = skip_space(bytes, end);
            let opens = bytes.get(open) == Some(&b'(');
            let close = opens.then(|| matching(bytes, open, b'(', b')')).flatten();
            close.map(|close| (open, close))
        };
        if is_raw_prefix(word) && bytes.get(end) == Some(&b'"') {
            self.at = end_of_raw_string(bytes, end);
        } else if WORDS.contains(&word) {
            blank(&mut self.out, at, end);
        } else if is_cast_in_brackets(text, at) {
            self.out[at..end].copy_from_slice(b"uint32_t");
        } else if WITH_ARGUMENTS.contains(&word)
            && arguments().is_some_and(|(open, close)| runs_at_the_end(text.get(open..close).unwrap_or("")))
        {
            // It isn't understood.
        } else if WITH_ARGUMENTS.contains(&word) {
            blank(&mut self.out, at, end);
            if let Some((open, close)) = arguments() {
                blank(&mut self.out, open, close + 1);
                self.at = close + 1;
                let words = spaces_in(text.get(open..close).unwrap_or(""));
                if !words.is_empty() {
                    self.specifiers.push(Specifiers {
                        start: at as u32,
                        end: close as u32 + 1,
                        words,
                        certain: true,
                    });
                }
            }
        } else if word == "__launch_bounds__" {
            if let Some((open, close)) = arguments() {
                if commas(bytes, open, close) > 1 {
                    blank(&mut self.out, at, close + 1);
                }
                self.at = close + 1;
            }
        } else if self.macros.mentions(word)
            && let Some(used) = self.macros.use_at(text, at, word, self.next_directive as u32)
            && !used.specifiers.words.iter().any(|word| runs_at_the_end(word))
        {
            if used.is_restrict() {
                show_restrict(&mut self.out, word, at, &used);
                return;
            }
            self.at = used.specifiers.end as usize;
            show_rest(&mut self.out, bytes, end, &used);
            self.specifiers.push(used.specifiers);
        }
    }
}

/// The tree of `old` with the difference to `new` recorded, ready to be passed to an incremental parse of `new`.
/// Both are masked texts: an edit can change what is masked far away from it, so the difference is taken here.
pub fn edited_tree(tree: &Tree, old: &str, new: &str) -> Tree {
    let (old_bytes, new_bytes) = (old.as_bytes(), new.as_bytes());
    let prefix = old_bytes.iter().zip(new_bytes).take_while(|(a, b)| a == b).count();
    let longest = old_bytes.len().min(new_bytes.len()) - prefix;
    let suffix = old_bytes
        .iter()
        .rev()
        .zip(new_bytes.iter().rev())
        .take(longest)
        .take_while(|(a, b)| a == b)
        .count();
    let (old_end, new_end) = (old_bytes.len() - suffix, new_bytes.len() - suffix);
    let mut tree = tree.clone();
    tree.edit(&InputEdit {
        start_byte: prefix,
        old_end_byte: old_end,
        new_end_byte: new_end,
        start_position: point(old_bytes, prefix),
        old_end_position: point(old_bytes, old_end),
        new_end_position: point(new_bytes, new_end),
    });
    tree
}

fn point(bytes: &[u8], at: usize) -> Point {
    let before = &bytes[..at];
    let row = before.iter().filter(|b| **b == b'\n').count();
    let line = before.iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    Point { row, column: at - line }
}

/// Whether an attribute makes a function run at the end of a variable's scope: `cleanup(f)`.
fn runs_at_the_end(attribute: &str) -> bool {
    words(attribute).any(|word| matches!(word, "cleanup" | "__cleanup__"))
}

/// Writes `restrict` in place of a macro that stands for it in any case and has a name which says so. Others read as what they are
/// written as.
fn show_restrict(out: &mut [u8], word: &str, at: usize, used: &SpecifierUse) {
    let alone = used.ty.is_empty() && used.kept.is_none();
    if alone && used.specifiers.certain && reads_as_restrict(word) {
        blank(out, at, at + word.len());
        // All such names end in it.
        let restrict = b"restrict";
        out[at..at + restrict.len()].copy_from_slice(restrict);
    }
}

/// Blanks the use of a macro that stands for specifiers, whose name ends at `name_end`; what else it stands for stays visible for
/// the parser: the type, and what is written as its argument.
fn show_rest(out: &mut [u8], bytes: &[u8], name_end: usize, used: &SpecifierUse) {
    let (start, end) = (used.specifiers.start as usize, used.specifiers.end as usize);
    blank(out, start, end);
    let mut room = start..end;
    if let Some((from, to)) = used.kept {
        out[from..to].copy_from_slice(&bytes[from..to]);
        room.end = from.saturating_sub(1);
    }
    let fits = room.len() >= used.ty.len() && !bytes[room].contains(&b'\n') && used.ty.is_ascii();
    if fits {
        out[start..start + used.ty.len()].copy_from_slice(used.ty.as_bytes());
    } else if end == name_end {
        // The name reads as a type, too.
        out[start..end].copy_from_slice(&bytes[start..end]);
    }
}
