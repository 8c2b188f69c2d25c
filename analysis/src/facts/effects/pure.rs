//! What may be done twice, or left out: functions that compute from their arguments and change nothing.

use crate::base::db::Db;
use crate::base::preprocess::{MacroItem, TokenKind, lex};
use crate::facts::defaults::default_may_run;
use crate::facts::hidden::hidden;
use crate::hir::included::included_files;
use crate::hir::items::FunctionItem;
use crate::hir::library::library;
use crate::hir::plain_types::is_vector_type;
use crate::hir::reference_names::may_hold_a_reference;
use crate::hir::resolve::{Meaning, functions_in, meaning_in};
use crate::hir::runtime_header::is_runtime_header;
use crate::hir::scope::hides;
use crate::hir::{Body, ExprId, ExprKind, Literal, Name, StmtKind, Storage, body};

/// Calls in calls that are followed.
const MAX_DEPTH: u32 = 8;

/// Whether what is called by this name in `function` depends on its arguments alone and changes nothing: a function of the library, or a
/// type of CUDA's that is made.
pub fn computes(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    named_pure(name) && !is_of_program(db, function, name)
}

/// The same, if the program doesn't define it.
fn named_pure(name: &str) -> bool {
    library(name).is_some_and(|known| known.is_pure()) || name == "dim3" || is_vector_type(name)
}

/// Whether `name`, as it is called in `function`, is a function of the library that changes none of its arguments themselves.
pub fn keeps_arguments(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    let kept = named_pure(name) || library(name).is_some_and(|known| known.keeps_arguments());
    kept && !is_of_program(db, function, name)
}

/// Whether a function changes nothing that its caller could see and reads no memory but its arguments', so that it may be
/// called twice: only its own variables are written, only pure functions are called, also by its default arguments.
pub fn is_pure<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    !default_may_run(db, function, 0) && is_pure_within(db, function, 0)
}

fn is_pure_within<'db>(db: &'db dyn Db, function: FunctionItem<'db>, depth: u32) -> bool {
    if depth > MAX_DEPTH || !function.has_body(db) {
        return false;
    }
    let body = body(db, function);
    // Operators and special member functions of classes run without being called by a name.
    if !body.problems.is_empty() || !hidden(db, function).is_empty() {
        return false;
    }
    let calls_pure = |name: &str, arguments: usize| {
        let functions = functions_in(db, function, name);
        let mut bodies = functions.iter().filter(|f| f.has_body(db)).peekable();
        bodies.peek().is_some()
            && bodies.all(|f| !default_may_run(db, *f, arguments) && is_pure_within(db, *f, depth + 1))
    };
    let exprs = body.exprs.iter().all(|expr| match &expr.kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => is_own(db, function, &body, *place),
        ExprKind::Call {
            name: Some(name), args, ..
        } => computes(db, function, name) || calls_pure(name, args.len()),
        ExprKind::Literal(Literal::Str)
        | ExprKind::Call { name: None, .. }
        | ExprKind::Launch(_)
        | ExprKind::New(_)
        | ExprKind::Delete(_)
        | ExprKind::Lambda { .. }
        | ExprKind::AddrOf(_)
        | ExprKind::Unknown { .. } => false,
        _ => true,
    });
    let opaque = |kind: &StmtKind| matches!(kind, StmtKind::Asm { .. } | StmtKind::Unknown { .. });
    exprs && !body.stmts.iter().any(|stmt| opaque(&stmt.kind))
}

/// A variable of the function's own, or a part of one. What is written through a reference that an object holds is somebody else's.
fn is_own(db: &dyn Db, function: FunctionItem<'_>, body: &Body, place: ExprId) -> bool {
    match &body.expr(place).kind {
        ExprKind::Name(Name::Local(b)) => {
            let binding = body.binding(*b);
            let ty = &binding.ty;
            let own_value =
                !ty.reference && (ty.pointers > 0 || !may_hold_a_reference(db, function.file(db), &ty.base));
            own_value && matches!(binding.storage, Storage::Local | Storage::Param)
        }
        ExprKind::Paren(e)
        | ExprKind::Field {
            base: e, arrow: false, ..
        } => is_own(db, function, body, *e),
        _ => false,
    }
}

/// Whether `name`, as it is called in `function`, is something that the program defines.
fn is_of_program(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    if hides(db, function, name) {
        return true;
    }
    let seen = included_files(db, function.file(db));
    let functions = functions_in(db, function, name);
    let mut files = functions.iter().map(|f| f.file(db));
    files.any(|file| seen.contains(&file) && !is_runtime_header(db, file))
        || matches!(meaning_in(db, function, name), Meaning::Macro(item) if !only_computes(&item))
}

/// A macro that is made of its parameters, numbers and operators, and so does what the function does whose name it has.
fn only_computes(item: &MacroItem) -> bool {
    let params = item.params.as_deref().unwrap_or_default();
    let tokens = lex(&item.body, false);
    let mut words = tokens.iter().filter(|t| t.kind == TokenKind::Word);
    let text = |start: usize, end: usize| item.body.get(start..end).unwrap_or("");
    words.all(|word| params.iter().any(|param| param == text(word.start, word.end))) && !changes(&item.body)
}

/// `=`, `++` or `--` stands there.
fn changes(code: &str) -> bool {
    let without = ["==", "!=", "<=", ">="]
        .iter()
        .fold(code.to_owned(), |code, op| code.replace(op, " "));
    without.contains('=') || without.contains("++") || without.contains("--")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::hir::items::items;
    use crate::host::Host;

    #[test]
    fn default_arguments_count() {
        let mut host = Host::new();
        let text = r#"int total;
int next() { return ++total; }
int a(int x, int y = 3) { return y; }
int b(int x, int y = next()) { return y; }
int c(int x = ++total) { return x; }"#;
        let file = host.set_file(Path::new("/a.cu"), text);
        let db = host.db();
        let found = items(db, file).functions.iter().filter(|f| is_pure(db, **f));
        let names: Vec<&str> = found.map(|f| f.name(db)).collect();
        assert_eq!(names, ["a"]);
    }

    fn item(params: &[&str], body: &str) -> MacroItem {
        MacroItem {
            name: "min".to_owned(),
            params: Some(params.iter().map(|p| (*p).to_owned()).collect()),
            body: body.to_owned(),
        }
    }

    #[test]
    fn macros_with_a_functions_name() {
        assert!(only_computes(&item(&["a", "b"], "((a) <= (b) ? (a) : (b))")));
        assert!(!only_computes(&item(&["a", "b"], "((a) = (b))")));
        assert!(!only_computes(&item(&["a", "b"], "lesser(a, b)")));
        assert!(!only_computes(&item(&["a"], "(a++)")));
    }
}
