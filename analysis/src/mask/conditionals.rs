//! `#if` groups that cut through a construct, and `#if 0`.
//!
//! A group whose branches are whole statements or declarations stays: the tree has all of them, and analyses treat them as
//! alternatives. One whose branches are not (an opening brace in one branch, an `else` that belongs to an `if` across `#if`,
//! half an argument list) would break the tree around it, so one branch is kept and the rest is blanked; the place is noted,
//! because what was blanked isn't analysed.

use super::directives::Directive;
use super::{blank, end_of_block_comment, end_of_char, end_of_line, end_of_string, is_word_start, word_at};
use crate::span::TextRange;

struct Group {
    /// Indices of the directives `#if`, `#elif`…, `#else`.
    heads: Vec<usize>,
}

/// Blanks cutting groups in `out`; returns where.
pub(super) fn cut(out: &mut [u8], directives: &[Directive]) -> Vec<TextRange> {
    let mut cuts = Vec::new();
    let mut open: Vec<Group> = Vec::new();
    for (index, directive) in directives.iter().enumerate() {
        match directive.name.as_str() {
            "if" | "ifdef" | "ifndef" => open.push(Group { heads: vec![index] }),
            "elif" | "else" | "elifdef" | "elifndef" => {
                if let Some(group) = open.last_mut() {
                    group.heads.push(index);
                }
            }
            "endif" => {
                // Inner groups end first, so that outer ones see them already mended.
                if let Some(group) = open.pop() {
                    finish(out, directives, &group, index, &mut cuts);
                }
            }
            _ => {}
        }
    }
    cuts.sort_unstable();
    cuts
}

fn finish(out: &mut [u8], directives: &[Directive], group: &Group, endif: usize, cuts: &mut Vec<TextRange>) {
    let Some(&first) = group.heads.first() else { return };
    let last = &directives[endif];
    let mut branches: Vec<(usize, usize)> = Vec::new();
    for (position, &head) in group.heads.iter().enumerate() {
        let end = group
            .heads
            .get(position + 1)
            .map_or(last.start, |next| directives[*next].start);
        branches.push((directives[head].end, end));
    }
    let has_else = group.heads.last().is_some_and(|h| directives[*h].name == "else");
    let condition = std::str::from_utf8(&out[directives[first].start..directives[first].end]).unwrap_or("");
    let never = directives[first].name == "if" && condition.split_whitespace().next_back() == Some("0");
    let simple = branches.len() == 1 || (branches.len() == 2 && has_else);
    if never && simple {
        let directives = group
            .heads
            .iter()
            .chain([&endif])
            .map(|d| (directives[*d].start, directives[*d].end));
        for (start, end) in directives.chain([branches[0]]) {
            blank(out, start, end);
        }
        return;
    }
    let followed_by_else = next_word(out, last.end) == Some("else");
    if !followed_by_else && branches.iter().all(|(start, end)| whole(out, *start, *end)) {
        return;
    }
    cuts.push(TextRange::new(directives[first].start as u32, last.end as u32));
    for &index in group.heads.iter().chain([&endif]) {
        blank(out, directives[index].start, directives[index].end);
    }
    for (start, end) in &branches[1..] {
        blank(out, *start, *end);
    }
}

fn next_word(bytes: &[u8], mut at: usize) -> Option<&str> {
    loop {
        match bytes.get(at)? {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = end_of_line(bytes, at),
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
            b' ' | b'\t' | b'\r' => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = end_of_line(bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = end_of_block_comment(bytes, at);
                continue;
            }
            b'#' if line_fresh => {
                at = super::end_of_directive(bytes, at);
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
