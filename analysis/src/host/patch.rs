//! Edits inside the body of one function: what the file says is known without reading all of it again.
//!
//! Masking, directives and items are found by reading a file from its beginning. Where an edit leaves a body closed in itself, nothing
//! outside of it reads another way, so that what was found before holds, a little further down. What can't be told that way is read
//! anew; that is the answer whenever there is a doubt.

use std::sync::Arc;

use crate::base::budget::FILE_BYTES;
use crate::base::db::Db;
use crate::base::db::PatchedText;
use crate::base::db::SourceFile;
use crate::base::mask::Directive;
use crate::base::mask::{is_cast_in_brackets, is_masked_word};
use crate::base::parse::large_ranges;
use crate::base::parse::masked;
use crate::base::preprocess::SpecifierMacros;
use crate::base::preprocess::branches;
use crate::base::preprocess::file_directives;
use crate::base::preprocess::lines_in_text;
use crate::base::preprocess::specifier_macros;
use crate::base::scan::end_of_char;
use crate::base::scan::end_of_line_comment;
use crate::base::scan::end_of_number;
use crate::base::scan::end_of_string;
use crate::base::scan::is_word_start;
use crate::base::scan::word_at;
use crate::base::span::Span;
use crate::facts::uniformity::memory::constant_values_in_text;
use crate::hir::items::FunctionText;
use crate::hir::items::Written;
use crate::hir::mentions::counts_outside_in_text;
use crate::hir::outline::Form;
use crate::hir::outline::Outline;
use crate::hir::outline::OutlineInText;
use crate::hir::outline::outline_in_text;
use crate::hir::settled::{PatchedItems, kept_of};

/// Bytes of a body that is looked at like this: it is far from any limit.
const MOST: usize = 64 << 10;

/// Brackets within each other, likewise.
const DEEPEST: usize = 64;

/// What a text says, where it differs from an earlier one in one body alone.
pub(super) struct Patch {
    pub text: PatchedText,
    pub items: PatchedItems,
}

impl Patch {
    /// What the file will say when the bytes from `start` to `end` are `insert`. `None`: it has to be read.
    pub fn after(db: &dyn Db, file: SourceFile, start: usize, end: usize, insert: &str) -> Option<Patch> {
        // Where the items are kept that are known like this.
        kept_of(db, file)?;
        let before = outline_in_text(db, file);
        if before.form != Form::Bare || !before.errors.is_empty() {
            return None;
        }
        let index = before
            .starts
            .partition_point(|s| (*s as usize) <= start)
            .checked_sub(1)?;
        let (at, function) = (*before.starts.get(index)?, before.outline.functions.get(index)?);
        let FunctionText::Kept(written) = &function.source else {
            return None;
        };
        let body = written.body_span.shift(at);
        let inside = (body.start as usize) < start && end < body.end as usize;
        let blanked = [&written.cuts, &written.large, &written.decided];
        let untouched = blanked.iter().all(|ranges| ranges.is_empty()) && written.directives.is_empty();
        if !inside || !untouched || !function.has_body || function.signature.member {
            return None;
        }
        let text = file.text(db);
        let old = text.get(body.start as usize..body.end as usize)?;
        let (head, tail) = (text.get(body.start as usize..start)?, text.get(end..body.end as usize)?);
        if head.len() + insert.len() + tail.len() > MOST || text.len() + insert.len() > FILE_BYTES {
            return None;
        }
        let new = [head, insert, tail].concat();
        let macros = specifier_macros(db, file);
        let same = written.body_span.text(&written.text) == old;
        if !same || !is_closed(old, macros) || !is_closed(&new, macros) || !large_ranges(db, file).is_empty() {
            return None;
        }
        // It may pop macros, in all of the file.
        if old.contains("_Pragma") || new.contains("_Pragma") {
            return None;
        }
        // Those who read a text don't agree on what comments are that continue on the next line.
        let goes_on = |at: &usize| {
            let behind = text
                .get(at + 1..)
                .unwrap_or("")
                .trim_start_matches([' ', '\t', '\x0b', '\x0c']);
            behind.starts_with(['\n', '\r'])
        };
        let continued = memchr::memchr_iter(b'\\', text.as_bytes()).filter(goes_on);
        let in_comment = |at: usize| {
            let line = text.get(..at).unwrap_or("").rsplit('\n').next().unwrap_or("");
            line.contains("//")
        };
        if continued.into_iter().any(in_comment) {
            return None;
        }
        let (removed, added) = (end - start, insert.len());
        let moved = |place: u32| {
            if place as usize > start {
                place - removed as u32 + added as u32
            } else {
                place
            }
        };
        let own = written.body_span;
        let own_head = written.text.get(..own.start as usize)?;
        let behind = written.text.get(own.end as usize..)?;
        let next = Written {
            text: [own_head, &new, behind].concat().into(),
            body_span: Span::new(own.start, own.start + new.len() as u32),
            ..Written::clone(written)
        };
        let mut outline = Outline::clone(&before.outline);
        outline.functions.get_mut(index)?.source = FunctionText::Kept(Arc::new(next));
        let directives = file_directives(db, file);
        let directives = directives.iter().map(|directive| Directive {
            start: moved(directive.start as u32) as usize,
            end: moved(directive.end as u32) as usize,
            name: directive.name.clone(),
        });
        // Nothing in the body is masked, neither before nor behind the edit.
        let masked = masked(db, file).spliced(start, end, insert, moved)?;
        Some(Patch {
            text: PatchedText {
                directives: Arc::new(directives.collect()),
                lines: lines_in_text(db, file).clone(),
                masked: Arc::new(masked),
                branches: branches(db, file).clone(),
                macros: macros.clone(),
            },
            items: PatchedItems {
                outline: OutlineInText {
                    outline: Arc::new(outline),
                    starts: before.starts.iter().map(|start| moved(*start)).collect(),
                    errors: Vec::new(),
                    form: Form::Bare,
                },
                outside: counts_outside_in_text(db, file).clone(),
                constants: constant_values_in_text(db, file).clone(),
            },
        })
    }
}

/// Whether a body, its braces included, reads the same whatever stands around it, and nothing around it reads another way because of
/// it: its brackets close each other, no comment or literal goes on behind it, and nothing in it is masked.
fn is_closed(body: &str, macros: &SpecifierMacros) -> bool {
    let bytes = body.as_bytes();
    let odd = ["/*", "*/", "\\\n", "\\\r", "R\"", "#", "__constant__"];
    if odd.iter().any(|odd| body.contains(odd)) {
        return false;
    }
    let mut open: Vec<u8> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'/' if bytes.get(at + 1) == Some(&b'/') => end_of_line_comment(bytes, at),
            b'"' => end_of_string(bytes, at),
            b'\'' => end_of_char(bytes, at),
            b'0'..=b'9' => end_of_number(bytes, at),
            b'(' | b'[' | b'{' => {
                open.push(byte);
                at + 1
            }
            b')' | b']' | b'}' => {
                let opener = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if open.pop() != Some(opener) {
                    return false;
                }
                at += 1;
                if open.is_empty() {
                    return at == bytes.len();
                }
                at
            }
            _ if is_word_start(byte) => {
                let word = word_at(body, at).unwrap_or("");
                if is_masked_word(word) || macros.mentions(word) || is_cast_in_brackets(body, at) {
                    return false;
                }
                at + word.len().max(1)
            }
            _ => at + 1,
        };
        if open.is_empty() || open.len() > DEEPEST {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::base::span::TextRange;
    use crate::host::Host;

    #[test]
    fn what_is_closed_in_itself() {
        for (body, expected) in [
            ("{}", true),
            ("{ a[f(1)] = '}' + \"}\"; // }\n }", true),
            ("{ if (x) { } }", true),
            ("{ x = y ) ; }", false),
            ("{ } }", false),
            ("{ // }", false),
            ("{ \"x }", false),
            ("{ { }", false),
            ("{ ( } )", false),
            ("{ 1'000 }", true),
            ("{\n#if A\n}", false),
            ("{ /* a */ }", false),
            ("{ [] __device__ () {} }", false),
            ("{ __align__(8) int x; }", false),
            ("{ R\"(x)\" }", false),
            ("{ x = (unsigned(y) + 1); }", false),
            ("{ x = unsigned(y) + 1; }", true),
        ] {
            assert_eq!(is_closed(body, &SpecifierMacros::default()), expected, "{body}");
        }
    }

    /// Random edits in and around functions: what is known without reading is what a fresh reader finds.
    #[test]
    fn what_is_known_is_what_is_read() {
        const PIECES: [&str; 26] = [
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ";",
            "x",
            "\n",
            " ",
            "//",
            "/*",
            "*/",
            "\"",
            "'",
            "\\\n",
            "#if A\n",
            "#endif\n",
            "__constant__ int c;",
            "f(1);",
            "if (x) { y; }",
            "KERNEL",
            "__device__ ",
            "R\"(",
            "k<<<1, 2>>>(3);",
            "// a\n",
        ];
        const TEXT: &str = r#"#define KERNEL __global__ void
#include "a.h"
__constant__ int table[4];
__device__ int f(int x) {
  return x; // one
}
namespace n {
KERNEL k(int *p) {
  p[0] = f(1);
}
}
struct S {
  S(int a) : x(a) { g(); }
  int x;
};
#ifdef A
void h() { k<<<1, 1>>>(0); }
#endif
template <class T> T last(T t) {
  char c = '}';
  return t;
}
int end;
"#;
        let mut state = 7u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let path = Path::new("/a.cu");
        let mut known = 0;
        for _ in 0..150 {
            let mut host = Host::new();
            let file = host.open_file(path, TEXT);
            for _ in 0..5 {
                let text = file.text(host.db());
                // Mostly behind what may be a statement, and mostly what leaves a body whole.
                let places: Vec<usize> = text.match_indices([';', '{']).map(|(at, _)| at + 1).collect();
                let tame = random(4) > 0 && !places.is_empty();
                let (start, end, piece) = match tame {
                    true => {
                        let at = places[random(places.len())];
                        let closed = [
                            " x;",
                            "f(1);",
                            " if (x) { y; }",
                            "k<<<1, 2>>>(3);",
                            "// a\n",
                            "\n",
                            "{ } ",
                            " KERNEL;",
                        ];
                        (at, at, closed[random(closed.len())])
                    }
                    false => {
                        let start = random(text.len() + 1);
                        let end = (start + random(3) * random(4)).min(text.len());
                        (start, end, PIECES[random(PIECES.len())])
                    }
                };
                host.edit_file(path, TextRange::new(start as u32, end as u32), piece);
                let text = file.text(host.db());
                let mut fresh = Host::new();
                let other = fresh.set_file(path, text.clone());
                let (db, new) = (host.db(), fresh.db());
                known += usize::from(file.patched(db).is_some());
                assert_eq!(outline_in_text(db, file), outline_in_text(new, other), "{text}");
                assert_eq!(file_directives(db, file), file_directives(new, other), "{text}");
                assert_eq!(lines_in_text(db, file), lines_in_text(new, other), "{text}");
                assert_eq!(
                    counts_outside_in_text(db, file),
                    counts_outside_in_text(new, other),
                    "{text}"
                );
                assert_eq!(
                    constant_values_in_text(db, file),
                    constant_values_in_text(new, other),
                    "{text}"
                );
                assert_eq!(large_ranges(db, file), large_ranges(new, other), "{text}");
                assert_eq!(masked(db, file), masked(new, other), "{text}");
                assert_eq!(file.includes(db), other.includes(new), "{text}");
            }
        }
        assert!(known > 100, "{known}");
    }

    /// What a file is masked with, others say: it may change behind the edit of a body.
    #[test]
    fn what_a_header_says_later_counts() {
        let (path, header) = (Path::new("/a.cu"), Path::new("/a.h"));
        let text = "#include \"a.h\"\nKERNEL void k(int *p) {\n  p[0] = 1;\n}\n#ifdef B\nvoid b() { k<<<1, 1>>>(0); }\n#endif\n";
        for later in [
            "#define KERNEL __device__\n",
            "#define KERNEL\n",
            "#define KERNEL __global__\n#define B\n",
            "",
        ] {
            let mut host = Host::new();
            let included = host.open_file(header, "#define KERNEL __global__\n");
            let file = host.open_file(path, text);
            let at = text.len() as u32 - text.split_once("p[0]").map_or(0, |(_, rest)| rest.len() + 4) as u32;
            host.edit_file(path, TextRange::new(at, at), "p[1] = 2; ");
            assert!(file.patched(host.db()).is_some());
            let old = included.text(host.db()).len() as u32;
            host.edit_file(header, TextRange::new(0, old), later);
            let mut fresh = Host::new();
            fresh.set_file(header, later);
            let other = fresh.set_file(path, file.text(host.db()));
            let (db, new) = (host.db(), fresh.db());
            assert_eq!(outline_in_text(db, file), outline_in_text(new, other), "{later}");
            assert_eq!(masked(db, file), masked(new, other), "{later}");
        }
    }
}
