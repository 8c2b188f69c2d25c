//! Functions and macros of the user's that look at the error of a call, and do nothing where there is none:
//! `check(cudaStreamCreate(&s), "here")`.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, body};

use crate::edit::lex;
use crate::facts::calls::is_plain_type;
use crate::facts::site::Site;

/// What a statement's expression calls, without the function that looks at the error of that call.
pub fn checked(site: &Site<'_>, statement: ExprId) -> ExprId {
    let whole = site.body.strip_parens(statement);
    let written = !site.body.expr(whole).from_macro;
    looked_at(site, whole).filter(|_| written).unwrap_or(whole)
}

/// The call whose error a function of the user's looks at, as the only thing that it does: `cudaStreamCreate(&s)` of
/// `check(cudaStreamCreate(&s), "here")`.
pub fn looked_at(site: &Site<'_>, outer: ExprId) -> Option<ExprId> {
    let own = &site.body;
    let ExprKind::Call {
        name: Some(name), args, ..
    } = &own.expr(outer).kind
    else {
        return None;
    };
    let called = |arg: &ExprId| matches!(own.expr(own.strip_parens(*arg)).kind, ExprKind::Call { .. });
    let index = args.iter().position(called)?;
    let harmless = |arg: &ExprId| match &own.expr(own.strip_parens(*arg)).kind {
        ExprKind::Literal(_) => true,
        ExprKind::Name(Name::Other(name)) => {
            matches!(name.as_str(), "__FILE__" | "__LINE__" | "__func__" | "__FUNCTION__")
        }
        _ => false,
    };
    if !args.iter().enumerate().all(|(at, arg)| at == index || harmless(arg)) {
        return None;
    }
    let functions = functions_in(site.db, site.parent, name);
    let [function] = functions.as_slice() else { return None };
    let signature = function.signature(site.db);
    let certain = function.has_body(site.db) && signature.template_params.is_none() && !signature.conditional;
    let checks = body(site.db, *function);
    let parameter = *checks.params.get(index)?;
    let left_out = checks.params.get(args.len()..)?;
    let numbers = left_out.iter().all(|param| {
        let written = checks
            .binding(*param)
            .default
            .map(|span| span.shift(function.start(site.db)));
        let text = function.file(site.db).text(site.db);
        written.is_some_and(|range| is_plain_number(range.text(&text)))
    });
    let exact = numbers && checks.problems.is_empty();
    // Nothing is made of the other arguments but numbers and pointers, and these names mean what they mean everywhere.
    let plain = checks.params.iter().all(|param| {
        let ty = &checks.binding(*param).ty;
        *param == parameter || !ty.complex && !ty.reference && (ty.pointers > 0 || is_plain_type(&ty.base))
    });
    let file = function.file(site.db);
    (certain && plain && !is_redefined(site.db, file) && exact && acts_on_errors_alone(&checks, parameter))
        .then(|| own.strip_parens(args[index]))
}

/// A default argument that runs nothing.
fn is_plain_number(code: &str) -> bool {
    matches!(code.trim(), "true" | "false" | "nullptr") || code.trim().parse::<i64>().is_ok()
}

/// The same where a statement looks at the error itself: `if (cudaStreamCreate(&s) != cudaSuccess) …`. The call, in which `operand` stands;
/// nothing else of the statement is run where it succeeds.
pub fn checked_by_if(site: &Site<'_>, stmt: StmtId, operand: ExprId) -> Option<ExprId> {
    let body = &site.body;
    let StmtKind::If {
        init: None,
        cond: Some(cond),
        constexpr: false,
        otherwise: None,
        then,
    } = body.stmt(stmt).kind
    else {
        return None;
    };
    let cond = body.strip_parens(cond);
    let success = |e: ExprId| matches!(&body.expr(body.strip_parens(e)).kind, ExprKind::Name(Name::Other(name)) if name == "cudaSuccess");
    let call = match body.expr(cond).kind {
        ExprKind::Binary(BinOp::Ne, call, other) | ExprKind::Binary(BinOp::Ne, other, call) if success(other) => call,
        _ => cond,
    };
    let call = body.strip_parens(call);
    // With any other flag the call fails in a kernel.
    let flag = |e: &ExprId| matches!(&body.expr(body.strip_parens(*e)).kind, ExprKind::Name(Name::Other(name)) if name == "cudaStreamNonBlocking");
    let called = match &body.expr(call).kind {
        ExprKind::Call { args, .. } => args.iter().skip(1).all(flag),
        _ => false,
    };
    let written = [cond, call].iter().all(|e| !body.expr(*e).from_macro);
    // What stands there is run by nobody who doesn't fail, and is gone with the call.
    let inside = body.stmt(then).span;
    let entered = body
        .stmts
        .iter()
        .any(|stmt| matches!(stmt.kind, StmtKind::Label(..) | StmtKind::Case { .. }) && inside.contains(stmt.span));
    let ExprKind::Name(Name::Local(stream)) = body.expr(operand).kind else {
        return None;
    };
    let used = body.exprs.iter().any(|expr| {
        let mentions = match &expr.kind {
            ExprKind::Launch(_) => true,
            ExprKind::Name(Name::Local(b)) => *b == stream,
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.contains(&stream),
            _ => false,
        };
        mentions && inside.contains(expr.span)
    });
    let source = site.source(body.stmt(stmt).span);
    let whole = source.starts_with("if") && !source.lines().any(|line| line.trim_start().starts_with('#'));
    (called && written && whole && !entered && !used && !is_redefined(site.db, site.file)).then_some(call)
}

/// The same where a macro looks at the error: `CHECK(cudaStreamDestroy(s));`, where that is `do { cudaError_t error = (…); if (error !=
/// cudaSuccess) …; } while (0)` and nothing else. The statement, and the call in which `operand` stands.
pub fn checked_by_macro(site: &Site<'_>, operand: ExprId) -> Option<(StmtId, ExprId)> {
    let body = &site.body;
    let declaration = site.places.statement_of(operand)?;
    let StmtKind::Decl(declared) = &body.stmt(declaration).kind else {
        return None;
    };
    let [error] = declared.as_slice() else { return None };
    let call = body.strip_parens(error.init?);
    let block = site.places.parent(declaration)?;
    let StmtKind::Block(inside) = &body.stmt(block).kind else {
        return None;
    };
    let [first, second] = inside.as_slice() else {
        return None;
    };
    let StmtKind::If {
        init: None,
        cond: Some(cond),
        otherwise: None,
        ..
    } = &body.stmt(*second).kind
    else {
        return None;
    };
    let ty = &body.binding(error.binding).ty;
    let plain = ty.is_value() && matches!(ty.base.as_str(), "cudaError_t" | "auto");
    let looks = plain && *first == declaration && is_failure(body, *cond, error.binding);
    let whole = match site.places.parent(block) {
        Some(around) => match &body.stmt(around).kind {
            StmtKind::DoWhile { cond, .. } if is_false(body, *cond) => around,
            _ => block,
        },
        None => block,
    };
    // The macro's use is the whole statement, and what it expands to no other one.
    let span = body.stmt(whole).span;
    let words = lex::code_words(site.source(span));
    let used = words.get(1) == Some(&"(") && !matches!(words.first(), Some(&"do" | &"{"));
    let alone = site
        .places
        .parent(whole)
        .is_some_and(|around| match &body.stmt(around).kind {
            StmtKind::Block(all) => {
                let overlap = |other: &&StmtId| {
                    body.stmt(**other).span.start < span.end && span.start < body.stmt(**other).span.end
                };
                all.iter().filter(overlap).count() == 1
            }
            _ => false,
        });
    let made = body.expr(call).from_macro && matches!(body.expr(call).kind, ExprKind::Call { .. });
    (looks && used && alone && made && !is_redefined(site.db, site.file)).then_some((whole, call))
}

fn is_false(body: &Body, cond: ExprId) -> bool {
    matches!(
        body.expr(body.strip_parens(cond)).kind,
        ExprKind::Literal(Literal::Int(0) | Literal::Bool(false))
    )
}

/// The words by which a program asks for errors.
const WORDS: [&str; 5] = [
    "cudaError_t",
    "cudaSuccess",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaDeviceSynchronize",
];

/// Whether the words of errors may mean something else in a file.
pub fn is_redefined(db: &dyn Db, file: SourceFile) -> bool {
    let names = visible_names(db, file);
    let redefined = WORDS.iter().any(|name| {
        names.types.contains(*name) || names.macros.contains_key(*name) || names.ambiguous_macros.contains(*name)
    });
    redefined || gives_meaning(db, file) || compares_otherwise(db, file)
}

/// Whether an operator of the user's may be what compares an error with another one.
fn compares_otherwise(db: &dyn Db, file: SourceFile) -> bool {
    let included = included_files(db, file).iter().copied();
    let functions = std::iter::once(file)
        .chain(included)
        .flat_map(|file| items(db, file).functions.iter());
    functions
        .filter(|function| {
            let name = unqualified(function.name(db)).split_whitespace().collect::<String>();
            matches!(
                name.as_str(),
                "operator!=" | "operator==" | "operator!" | "operator||" | "operator&&"
            )
        })
        .any(|function| {
            let text = function.text(db);
            let parameters = function.signature(db).params_span.text(&text);
            let generic = function.signature(db).template_params.is_some();
            generic || lex::identifiers(parameters).any(|word| matches!(word, "cudaError_t" | "cudaError" | "auto"))
        })
}

/// Whether a file, or one that it includes, gives a word of errors another meaning, in a namespace or a class perhaps:
/// `using cudaError_t = Mine;`, `typedef Mine cudaError_t;`, `struct cudaError_t {`, `int cudaSuccess = 1;`, `E cudaGetLastError(int*);`.
fn gives_meaning(db: &dyn Db, file: SourceFile) -> bool {
    let included = included_files(db, file).iter().copied();
    std::iter::once(file).chain(included).any(|file| {
        let text = file.text(db);
        lex::code_tokens_of(db, file).windows(2).any(|pair| {
            let (first, second) = (pair[0].text(&text), pair[1].text(&text));
            // A name behind a type, not behind what begins a statement or an operand.
            let declares = lex::identifiers(first).next() == Some(first)
                && !matches!(first, "return" | "else" | "do" | "case" | "throw" | "cudaError_t")
                || matches!(first, "*" | "&" | ">") && second == "cudaPeekAtLastError";
            let ty = first == "cudaError_t" && matches!(second, "=" | ";" | "{" | ":" | "final");
            let named = WORDS.iter().skip(1).any(|word| *word == second);
            ty || named && (declares || first == "cudaError_t")
        })
    })
}

/// A body that is `if (error != cudaSuccess) …`, and nothing else.
fn acts_on_errors_alone(checks: &Body, error: BindingId) -> bool {
    let ty = &checks.binding(error).ty;
    if ty.reference || ty.complex || ty.pointers > 0 || ty.base != "cudaError_t" {
        return false;
    }
    let Some(only) = checks.root.and_then(|root| sole(checks, root)) else {
        return false;
    };
    let StmtKind::If {
        init: None,
        cond: Some(cond),
        otherwise: None,
        ..
    } = &checks.stmt(only).kind
    else {
        return false;
    };
    is_failure(checks, *cond, error)
}

/// `error != cudaSuccess`, or the error as a condition.
fn is_failure(checks: &Body, cond: ExprId, error: BindingId) -> bool {
    let is =
        |e: ExprId| matches!(checks.expr(checks.strip_parens(e)).kind, ExprKind::Name(Name::Local(b)) if b == error);
    let success = |e: ExprId| matches!(&checks.expr(checks.strip_parens(e)).kind, ExprKind::Name(Name::Other(name)) if name == "cudaSuccess");
    match checks.expr(checks.strip_parens(cond)).kind {
        ExprKind::Binary(BinOp::Ne, a, b) => is(a) && success(b) || success(a) && is(b),
        ExprKind::Name(_) => is(cond),
        _ => false,
    }
}

/// The only statement of a block.
fn sole(body: &Body, block: StmtId) -> Option<StmtId> {
    match &body.stmt(block).kind {
        StmtKind::Block(all) => match all.as_slice() {
            [one] => Some(*one),
            _ => None,
        },
        _ => None,
    }
}
