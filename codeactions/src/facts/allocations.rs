//! Allocations of memory by device code.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::{ExprId, ExprKind, body};

use crate::edit::lex::{self, Token, TokenKind};

/// Functions that belong together: what one allocates, only its partner gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// `malloc`, `free`
    Malloc,
    /// `cudaMalloc`, `cudaFree`
    CudaMalloc,
    /// `new`, `delete`
    New,
    /// `new[]`, `delete[]`
    NewArray,
}

/// A call that allocates or frees.
pub struct Call {
    /// Its kind.
    pub family: Allocator,
    /// It allocates.
    pub allocates: bool,
    /// The call.
    pub expr: ExprId,
}

impl Allocator {
    /// The words in which its functions are written.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Allocator::Malloc => &["malloc", "free"],
            Allocator::CudaMalloc => &["cudaMalloc", "cudaFree"],
            Allocator::New | Allocator::NewArray => &["new", "delete"],
        }
    }
}

/// A function allocates device memory itself.
pub fn allocates(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    calls(db, function).iter().any(|call| call.allocates)
}

/// The allocations and frees of a function.
pub fn calls<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Call> {
    let body = body(db, function);
    let text = function.text(db);
    let mut found = Vec::new();
    for (index, expr) in body.exprs.iter().enumerate() {
        let id = ExprId(index as u32);
        let mut add = |family, allocates| {
            found.push(Call {
                family,
                allocates,
                expr: id,
            });
        };
        match &expr.kind {
            ExprKind::Call { name: Some(name), .. } => {
                let plain = name.trim_start_matches("::");
                let plain = plain.strip_prefix("std::").unwrap_or(plain);
                if may_be_users(db, function, name) {
                    continue;
                }
                match plain {
                    "malloc" => add(Allocator::Malloc, true),
                    "free" => add(Allocator::Malloc, false),
                    "cudaMalloc" => add(Allocator::CudaMalloc, true),
                    "cudaFree" => add(Allocator::CudaMalloc, false),
                    _ => {}
                }
            }
            ExprKind::New(_) if !is_placement(expr.span.text(&text)) => {
                let array = expr.span.text(&text).trim_end().ends_with(']');
                add(if array { Allocator::NewArray } else { Allocator::New }, true);
            }
            ExprKind::Delete(_) => {
                let words = lex::code_words(expr.span.text(&text));
                let array = words.iter().skip_while(|w| **w == ":").nth(1) == Some(&"[");
                add(if array { Allocator::NewArray } else { Allocator::New }, false);
            }
            _ => {}
        }
    }
    found
}

/// Whether the program has a function that a call of `name` may mean. One that begins with `::` or `std::` means no member of a
/// class or another namespace.
pub fn may_be_users(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    let whole = name.trim_start_matches("::");
    let exact = name.starts_with("::") || whole.starts_with("std::");
    hides(db, function, name)
        || functions_named(db, function.file(db), name)
            .iter()
            .any(|f| !exact || f.name(db) == whole)
}

/// `new (place) T`, which allocates nothing.
fn is_placement(text: &str) -> bool {
    let tokens = lex::code_tokens(text);
    let new = tokens.iter().position(|t| t.text(text) == "new");
    new.is_some_and(|at| is_placement_at(text, &tokens, at))
}

/// Whether the `new` at `index` is `new (place) T`, which allocates nothing. `new (T)` and `new (std::nothrow) T` do.
pub fn is_placement_at(code: &str, tokens: &[Token], index: usize) -> bool {
    let word = |at: usize| tokens.get(at).map_or("", |t| t.text(code));
    if word(index + 1) != "(" {
        return false;
    }
    let mut depth = 0;
    for at in index + 1..tokens.len() {
        match word(at) {
            "nothrow" => return false,
            "(" => depth += 1,
            ")" if depth == 1 => {
                return tokens
                    .get(at + 1)
                    .is_some_and(|t| t.kind == TokenKind::Word || t.text(code) == ":" && word(at + 2) == ":");
            }
            ")" => depth -= 1,
            _ => {}
        }
    }
    false
}
