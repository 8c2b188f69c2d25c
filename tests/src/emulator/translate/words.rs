//! Single words of CUDA that a macro in a header could not stand for.

use super::edits::Edits;
use super::stream::{Scope, Stream};

/// Functions that exist on the host and in kernels.
const LIBRARY: [&str; 5] = ["malloc", "free", "memcpy", "memset", "memmove"];

/// Translates attributes and calls of a stream.
pub fn translate(stream: &Stream<'_>, edits: &mut Edits) {
    for at in 0..stream.len() {
        match stream.word(at) {
            // Standard headers use these as names in attributes: a macro would break them.
            "__noinline__" if stream.before(at) != "(" => {
                edits.replace_tokens(stream, at..at + 1, "__attribute__((noinline))");
            }
            "__forceinline__" => {
                let inline = if is_inline_already(stream, at) { "" } else { "inline" };
                edits.replace_tokens(stream, at..at + 1, inline);
            }
            "__launch_bounds__" | "__cluster_dims__" | "__maxnreg__" | "__block_size__" => {
                if let Some(close) = stream.partner(at + 1).filter(|_| stream.word(at + 1) == "(") {
                    edits.replace_tokens(stream, at..close + 1, "");
                }
            }
            word if LIBRARY.contains(&word) && stream.word(at + 1) == "(" => {
                if let Some(start) = call_start(stream, at) {
                    edits.replace_tokens(stream, start..at + 1, format!("::emu::device_{word}"));
                }
            }
            _ => {}
        }
    }
}

/// Whether another specifier of the declaration says `inline`.
fn is_inline_already(stream: &Stream<'_>, at: usize) -> bool {
    let (start, _) = stream.declaration_start(at);
    let specifiers = (start..stream.len()).take_while(|at| !matches!(stream.word(*at), "(" | ";" | "{" | "="));
    let inline = |word: &str| matches!(word, "inline" | "__inline__" | "__inline");
    let mut others = specifiers
        .filter(|other| inline(stream.word(*other)) || *other < at && stream.word(*other) == "__forceinline__");
    others.next().is_some()
}

/// The first token of a call of the C library's function at `at`: `malloc`, `::malloc`, `std::malloc`. `None` if it is
/// something else of that name.
fn call_start(stream: &Stream<'_>, at: usize) -> Option<usize> {
    let mut start = at;
    if stream.after_scope_operator(at) {
        start = at - 2;
        if stream.before(start) == "std" {
            start -= 1;
            if stream.after_scope_operator(start) {
                start -= 2;
            }
        } else if start > 0
            && (stream.is_word(start - 1) || stream.before(start) == ">")
            && !operand_follows(stream.before(start))
        {
            return None;
        }
    }
    let before = stream.before(start);
    let member = before == "." || before == ">" && start >= 2 && stream.before(start - 1) == "-";
    let declared = start > 0 && stream.is_word(start - 1) && !operand_follows(before);
    // `void* malloc(…)` at namespace scope is no call.
    let declaration = stream.scope(at) != Scope::Body;
    (!member && !declared && !declaration).then_some(start)
}

fn operand_follows(word: &str) -> bool {
    matches!(word, "return" | "else" | "do" | "case" | "throw" | "delete")
}

/// Whether a stream says something that means another thing, or nothing, inside of a namespace.
pub fn global(stream: &Stream<'_>) -> bool {
    (0..stream.len()).any(|at| match stream.word(at) {
        "extern" => stream.word(at + 1).starts_with('"'),
        "namespace" => stream.word(at + 1) == "std" || stream.word(at + 1) == "cuda",
        ":" if stream.scope_operator(at) && !stream.after_scope_operator(at + 1) => {
            let qualified = at > 0
                && (stream.is_word(at - 1) && !operand_follows(stream.before(at))
                    || matches!(stream.before(at), ">" | ")"));
            let of_others = |word: &str| {
                word.starts_with("cuda") || word.starts_with("__") || word == "std" || LIBRARY.contains(&word)
            };
            !qualified && stream.is_word(at + 2) && !of_others(stream.word(at + 2))
        }
        _ => false,
    })
}

/// Gives `main` another name, and the `return 0` at its end that it then needs. Whether there is one.
pub fn rename_main(stream: &Stream<'_>, edits: &mut Edits) -> bool {
    let mut found = false;
    for at in 0..stream.len() {
        if stream.word(at) != "main" || stream.word(at + 1) != "(" || stream.scope(at) != Scope::Namespace {
            continue;
        }
        let body = stream.partner(at + 1).map(|close| close + 1);
        let Some(body) = body.filter(|body| stream.word(*body) == "{") else {
            continue;
        };
        if let Some(close) = stream.partner(body) {
            edits.replace_tokens(stream, at..at + 1, "emu_main");
            edits.insert(stream.start(close), "return 0; ");
            found = true;
        }
    }
    found
}
