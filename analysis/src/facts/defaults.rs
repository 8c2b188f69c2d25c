//! Default arguments: what a call evaluates that doesn't stand in it.

use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::hidden::some_class_runs_unseen;
use crate::facts::named::{StandsFor, stands_for};
use crate::hir::items::FunctionItem;
use crate::hir::library::{known, vector_fields};
use crate::hir::resolve::{Meaning, declarations_of, meaning_in};
use crate::hir::{body, parameters};

/// Whether a call of a function with so many arguments evaluates a default argument that may do more than name a value: call something,
/// write, look at the number of the thread.
#[salsa::tracked(returns(copy))]
pub(crate) fn default_may_run<'db>(db: &'db dyn Db, function: FunctionItem<'db>, count: usize) -> bool {
    // A declaration apart may have them.
    let mut heads = declarations_of(db, function).into_iter().chain([function]);
    heads.any(|head| {
        let left_out = || parameters(db, head).iter().skip(count);
        left_out().any(|p| p.has_default) && {
            let (body, text) = (body(db, head), head.text(db));
            let mut defaults = body.params.iter().skip(count).filter_map(|b| body.binding(*b).default);
            defaults.any(|span| !is_value(db, head, span.text(&text)))
        }
    })
}

/// A default argument that every call gets alike.
pub(crate) fn constant_default(file_text: &str, default: Span) -> bool {
    let text = default.text(file_text).trim_start_matches('=').trim();
    matches!(text, "true" | "false" | "nullptr" | "NULL") || text.parse::<f64>().is_ok()
}

/// Whether an expression, as it is written, is a value that is made of constants by the language's own operators.
fn is_value(db: &dyn Db, head: FunctionItem<'_>, text: &str) -> bool {
    let text = text.trim().trim_start_matches('=').trim();
    // Assignments and increments; comparisons of constants are rare.
    if text.contains('=') || text.contains("++") || text.contains("--") || text.contains(['[', '"', ';']) {
        return false;
    }
    let names = names(text);
    let alone = matches!(names.as_slice(), [(name, called)] if *name == text && !called);
    names.iter().all(|(name, called)| {
        let meaning = || meaning_in(db, head, name);
        let is_number = is_keyword(name) || vector_fields(name).is_some() || *name == "dim3";
        match called {
            // An object of a class may run its constructor.
            true => {
                let template = head.signature(db).scope_names.iter().any(|own| own == name);
                is_number
                    || (template || matches!(meaning(), Meaning::Type)) && !some_class_runs_unseen(db, head)
                    || known(name).is_some_and(|l| l.is_pure()) && matches!(meaning(), Meaning::Unknown)
            }
            // Operators of enumerations may be the user's.
            false if matches!(meaning(), Meaning::Enumerator(_)) => alone,
            false => is_number || stands_for(db, head, name) == StandsFor::Value && !is_builtin(name),
        }
    })
}

fn is_builtin(name: &str) -> bool {
    matches!(name, "threadIdx" | "blockIdx" | "blockDim" | "gridDim")
}

fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "true"
            | "false"
            | "nullptr"
            | "NULL"
            | "sizeof"
            | "int"
            | "unsigned"
            | "signed"
            | "long"
            | "short"
            | "char"
            | "bool"
            | "float"
            | "double"
            | "size_t"
            | "const"
    )
}

/// The names in a text, qualified as they are written, each with whether it is called or made an object of: `T()`, `T{}`.
fn names(text: &str) -> Vec<(&str, bool)> {
    let part = |c: char| c == '_' || c.is_alphanumeric();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text.get(at..).and_then(|rest| rest.find(part)).map(|i| i + at) {
        let rest = text.get(start..).unwrap_or("");
        let end = start + rest.find(|c: char| !part(c)).unwrap_or(rest.len());
        at = end;
        let rest = text.get(end..).unwrap_or("").trim_start();
        let before = text.get(..start).unwrap_or("").trim_end();
        let number = text
            .get(start..)
            .is_some_and(|s| s.starts_with(|c: char| c.is_ascii_digit()));
        // The last part of a qualified name stands for all of it; a member for its object.
        if number || rest.starts_with("::") || before.ends_with(['.', '\'']) {
            continue;
        }
        let called = rest.starts_with(['(', '{']) || rest.starts_with('<') && rest.contains(['(', '{']);
        found.push((text.get(qualified_from(text, start)..end).unwrap_or(text), called));
    }
    found
}

/// Where the qualified name begins whose last part begins at `at`.
fn qualified_from(text: &str, mut at: usize) -> usize {
    loop {
        let before = text.get(..at).unwrap_or("");
        let Some(scope) = before.strip_suffix("::") else {
            return at;
        };
        let start = scope
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |i| i + 1);
        if start == scope.len() {
            return scope.len();
        }
        at = start;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::hir::items::items;
    use crate::host::Host;

    #[test]
    fn defaults_that_are_values() {
        let may_run = |default: &str| {
            let mut host = Host::new();
            let text = format!(
                r#"__device__ int total;
enum Flag {{ A, B }};
__device__ Flag operator|(Flag a, Flag b) {{ total = 1; return a; }}
const int N = 4;
struct Tile {{ static constexpr int SIZE = 3; }};
namespace n {{ __device__ int x; }}
__device__ int get() {{ return total; }}
#define WIDTH 32
template <class T, int K> __device__ void f(T k, int v = {default}) {{}}
"#
            );
            let file = host.set_file(Path::new("/w/a.cu"), text);
            let db = host.db();
            let f = items(db, file).functions.iter().copied().find(|f| f.name(db) == "f");
            f.is_some_and(|f| default_may_run(db, f, 1))
        };
        for value in [
            "3",
            "-1",
            "0xFFu",
            "1.5f * 2",
            "'a'",
            "true",
            "nullptr",
            "N",
            "N * 2 + K",
            "A",
            "Flag::A",
            "Tile::SIZE",
            "WIDTH",
            "T()",
            "T{}",
            "int(N)",
            "sizeof(T)",
            "INT_MAX",
            "cudaStreamDefault",
            "dim3(1, 2)",
            "max(N, 3)",
        ] {
            assert!(!may_run(value), "{value}");
        }
        for value in [
            "total",
            "get()",
            "total++",
            "total = 3",
            "A | B",
            "n::x",
            "threadIdx.x",
            "blockIdx.x * N",
            "atomicAdd(&total, 1)",
            "*p",
            "q",
            "0xA + A()",
            "Tile::other",
            "unseen()",
        ] {
            assert!(may_run(value), "{value}");
        }
    }
}
