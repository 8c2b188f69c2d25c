//! `#if` groups: branches that aren't compiled, and groups that cut through a construct.
//!
//! Of a group of which it is known which branch is compiled, only that branch stays. Of others, a group whose branches are whole
//! statements or declarations stays: the tree has all of them, and analyses treat them as alternatives. One whose branches are not
//! (an opening brace in one branch, an `else` that belongs to an `if` across `#if`, half an argument list) would break the tree
//! around it, so one branch is kept and the rest is blanked; the place is noted, because what was blanked isn't analysed.

use std::collections::HashSet;

use super::directives::Directive;
use crate::base::budget::GROUPS;
use crate::base::preprocess::{Branch, TokenKind, lex};
use crate::base::scan::{
    blank, end_of_block_comment, end_of_char, end_of_line_comment, end_of_string, is_word_start, word_at,
};
use crate::base::span::TextRange;

struct Group {
    /// Indices of the directives `#if`, `#elif`…, `#else`.
    heads: Vec<usize>,
}

/// What was done with the groups of a text; each in order.
#[derive(Default)]
pub(super) struct Conditionals {
    /// Groups of which one branch was kept because they cut.
    pub cuts: Vec<TextRange>,
    /// Groups of which it is known what is compiled.
    pub decided: Vec<TextRange>,
    /// What was blanked.
    pub inactive: Vec<TextRange>,
    /// Groups within too many others, which were blanked as a whole; they are among `inactive`, too.
    pub too_deep: Vec<TextRange>,
}

/// Blanks in `out` what isn't compiled, and what can't stay.
pub(super) fn mend(text: &str, out: &mut [u8], directives: &[Directive], branches: &[Branch]) -> Conditionals {
    if directives.iter().all(|d| d.name != "endif") {
        return Conditionals::default();
    }
    let inside = inside_constructs(text);
    let mut found = Conditionals::default();
    let mut open: Vec<Group> = Vec::new();
    // There are groups within the innermost one that is looked at.
    let mut too_deep = false;
    for (index, directive) in directives.iter().enumerate() {
        match directive.name.as_str() {
            "if" | "ifdef" | "ifndef" => open.push(Group { heads: vec![index] }),
            "elif" | "else" | "elifdef" | "elifndef" => {
                if let Some(group) = open.last_mut() {
                    group.heads.push(index);
                }
            }
            "endif" if open.len() > GROUPS => {
                too_deep |= open.pop().is_some();
            }
            "endif" if too_deep && open.len() == GROUPS => {
                too_deep = false;
                let Some(first) = open.pop().and_then(|group| group.heads.first().copied()) else {
                    continue;
                };
                let (start, end) = (directives[first].start, directive.end);
                blank(out, start, end);
                found.too_deep.push(TextRange::new(start as u32, end as u32));
                found.inactive.push(TextRange::new(start as u32, end as u32));
            }
            "endif" => {
                // Inner groups end first, so that outer ones see them already mended.
                if let Some(group) = open.pop() {
                    finish(out, directives, branches, &inside, &group, index, &mut found);
                }
            }
            _ => {}
        }
    }
    found
        .inactive
        .sort_unstable_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut outer: Vec<TextRange> = Vec::new();
    for range in found.inactive {
        if !outer.last().is_some_and(|last| last.contains(range)) {
            outer.push(range);
        }
    }
    // What becomes of a group within a branch that isn't compiled doesn't matter.
    let compiled = |range: &TextRange| !outer.iter().any(|o| o.contains(*range));
    found.cuts.retain(compiled);
    found.too_deep.retain(|range| outer.contains(range));
    found.decided.retain(compiled);
    found.cuts.sort_unstable();
    found.decided.sort_unstable();
    found.inactive = outer;
    found
}

fn finish(
    out: &mut [u8],
    directives: &[Directive],
    known: &[Branch],
    inside: &HashSet<usize>,
    group: &Group,
    endif: usize,
    found: &mut Conditionals,
) {
    let Some(&first) = group.heads.first() else { return };
    let last = &directives[endif];
    let whole_group = TextRange::new(directives[first].start as u32, last.end as u32);
    let mut branches: Vec<(usize, usize)> = Vec::new();
    let mut drop = |out: &mut [u8], (start, end): (usize, usize)| {
        blank(out, start, end);
        found.inactive.push(TextRange::new(start as u32, end as u32));
    };
    let mut open = false;
    for (position, &head) in group.heads.iter().enumerate() {
        let end = group
            .heads
            .get(position + 1)
            .map_or(last.start, |next| directives[*next].start);
        let range = (directives[head].end, end);
        match known.get(head).copied().unwrap_or_default() {
            Branch::Dead => drop(out, range),
            Branch::Live => branches.push(range),
            Branch::Maybe => {
                branches.push(range);
                open = true;
            }
        }
    }
    if !open {
        // `#if 0` is decided by itself.
        let conditions = group.heads.iter().map(|head| &directives[*head]);
        let depends = conditions.into_iter().any(|d| {
            let rest = out.get(d.start..d.end).unwrap_or_default();
            let words = crate::base::words::words(std::str::from_utf8(rest).unwrap_or("")).filter(|w| *w != d.name);
            words.count() > 0
        });
        if depends {
            found.decided.push(whole_group);
        }
        for &index in group.heads.iter().chain([&endif]) {
            blank(out, directives[index].start, directives[index].end);
        }
        return;
    }
    let followed_by_else = next_word(out, last.end) == Some("else");
    let inside = inside.contains(&directives[first].start);
    if !followed_by_else && !inside && branches.iter().all(|(start, end)| whole(out, *start, *end)) {
        return;
    }
    found.cuts.push(whole_group);
    for range in branches.iter().skip(1) {
        blank(out, range.0, range.1);
        found.inactive.push(TextRange::new(range.0 as u32, range.1 as u32));
    }
    for &index in group.heads.iter().chain([&endif]) {
        blank(out, directives[index].start, directives[index].end);
    }
}

/// Where the directives stand that come in the middle of a statement: behind an operator, an `else`, the head of a loop.
fn inside_constructs(text: &str) -> HashSet<usize> {
    let lexemes = lex(text, true);
    let mut found = HashSet::new();
    // For each open parenthesis: whether it is that of a statement's head.
    let mut open: Vec<bool> = Vec::new();
    let mut inside = false;
    let mut before = "";
    for lexeme in &lexemes {
        if lexeme.kind == TokenKind::Directive {
            if inside {
                found.insert(lexeme.start);
            }
            continue;
        }
        let word = text.get(lexeme.start..lexeme.end).unwrap_or("");
        inside = match word {
            "(" => {
                open.push(matches!(before, "if" | "for" | "while" | "switch" | "constexpr"));
                true
            }
            ")" => open.pop().unwrap_or(false),
            "}" => {
                open.clear();
                false
            }
            "{" | ";" | ":" | "]" | ">" | ">>" | "++" | "--" | "..." | "\\" | "@" | "#" | "##" => false,
            // Lists of enumerators and initialisers are told by their branches.
            "," => open.last().is_some(),
            "else" | "do" | "return" | "case" | "goto" | "throw" | "co_return" => true,
            _ => lexeme.kind == TokenKind::Punctuation,
        };
        before = word;
    }
    found
}

fn next_word(bytes: &[u8], mut at: usize) -> Option<&str> {
    loop {
        match bytes.get(at)? {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => at += 1,
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = end_of_line_comment(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => at = end_of_block_comment(bytes, at),
            byte if is_word_start(*byte) => {
                let len = bytes[at..]
                    .iter()
                    .take_while(|b| **b == b'_' || b.is_ascii_alphanumeric())
                    .count();
                return std::str::from_utf8(&bytes[at..at + len]).ok();
            }
            _ => return None,
        }
    }
}

/// Whether a branch consists of whole statements, declarations or directives.
fn whole(bytes: &[u8], start: usize, end: usize) -> bool {
    let mut stack: Vec<u8> = Vec::new();
    let mut first: Option<usize> = None;
    let mut last = b';';
    let mut at = start;
    let mut line_fresh = true;
    while at < end {
        let byte = bytes[at];
        match byte {
            b'\n' => {
                line_fresh = true;
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = end_of_line_comment(bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = end_of_block_comment(bytes, at);
                continue;
            }
            b'#' | b'%' if line_fresh && (byte == b'#' || bytes.get(at + 1) == Some(&b':')) => {
                at = crate::base::scan::end_of_directive(bytes, at);
                continue;
            }
            _ => {}
        }
        line_fresh = false;
        first.get_or_insert(at);
        last = byte;
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'\'' => at = end_of_char(bytes, at),
            b'(' | b'[' | b'{' => {
                stack.push(byte);
                at += 1;
            }
            b')' | b']' | b'}' => {
                let opener = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if stack.pop() != Some(opener) {
                    return false;
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    let Some(first) = first else { return true };
    let starts_inside = matches!(
        bytes[first],
        b',' | b')' | b']' | b'?' | b';' | b'=' | b'&' | b'|' | b'<' | b'>' | b'.' | b'%' | b'^' | b'/'
    ) || std::str::from_utf8(&bytes[first..end]).ok().and_then(|t| word_at(t, 0)) == Some("else");
    stack.is_empty() && !starts_inside && matches!(last, b';' | b'}' | b':')
}
