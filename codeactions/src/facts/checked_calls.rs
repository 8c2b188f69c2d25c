//! Functions of the user's that look at the error of a call, and do nothing where there is none: `check(cudaStreamCreate(&s), "here")`.

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};

use crate::edit::lex;
use crate::facts::calls::is_plain_type;
use crate::facts::site::Site;

/// What a statement's expression calls, without the function that looks at the error of that call.
pub fn checked(site: &Site<'_>, statement: ExprId) -> ExprId {
    let whole = site.body.strip_parens(statement);
    inner_call(site, whole).unwrap_or(whole)
}

fn inner_call(site: &Site<'_>, outer: ExprId) -> Option<ExprId> {
    let own = &site.body;
    let ExprKind::Call {
        name: Some(name), args, ..
    } = &own.expr(outer).kind
    else {
        return None;
    };
    if own.expr(outer).from_macro {
        return None;
    }
    let called = |arg: &ExprId| matches!(own.expr(own.strip_parens(*arg)).kind, ExprKind::Call { .. });
    let index = args.iter().position(called)?;
    let harmless = |arg: &ExprId| matches!(own.expr(own.strip_parens(*arg)).kind, ExprKind::Literal(_));
    if !args.iter().enumerate().all(|(at, arg)| at == index || harmless(arg)) {
        return None;
    }
    let functions = functions_in(site.db, site.parent, name);
    let [function] = functions.as_slice() else { return None };
    let signature = function.signature(site.db);
    let certain = function.has_body(site.db) && signature.template_params.is_none() && !signature.conditional;
    let checks = body(site.db, *function);
    let parameter = *checks.params.get(index)?;
    let exact = checks.params.len() == args.len() && checks.problems.is_empty();
    // Nothing is made of the other arguments but numbers and pointers, and these names mean what they mean everywhere.
    let plain = checks.params.iter().all(|param| {
        let ty = &checks.binding(*param).ty;
        *param == parameter || !ty.complex && !ty.reference && (ty.pointers > 0 || is_plain_type(&ty.base))
    });
    let names = visible_names(site.db, function.file(site.db));
    let redefined = ["cudaError_t", "cudaSuccess"].iter().any(|name| {
        names.types.contains(*name) || names.macros.contains_key(*name) || names.ambiguous_macros.contains(*name)
    }) || gives_meaning(site, function.file(site.db));
    (certain && plain && !redefined && exact && acts_on_errors_alone(&checks, parameter))
        .then(|| own.strip_parens(args[index]))
}

/// Whether a file, or one that it includes, gives the type of errors another meaning, in a namespace or a class perhaps:
/// `using cudaError_t = Mine;`, `typedef Mine cudaError_t;`, `struct cudaError_t {`.
fn gives_meaning(site: &Site<'_>, file: SourceFile) -> bool {
    let included = included_files(site.db, file).iter().copied();
    std::iter::once(file).chain(included).any(|file| {
        let text = file.text(site.db);
        lex::code_tokens_of(site.db, file).windows(2).any(|pair| {
            pair[0].text(&text) == "cudaError_t" && matches!(pair[1].text(&text), "=" | ";" | "{" | ":" | "final")
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
    let is =
        |e: ExprId| matches!(checks.expr(checks.strip_parens(e)).kind, ExprKind::Name(Name::Local(b)) if b == error);
    let success = |e: ExprId| matches!(&checks.expr(checks.strip_parens(e)).kind, ExprKind::Name(Name::Other(name)) if name == "cudaSuccess");
    match checks.expr(checks.strip_parens(*cond)).kind {
        ExprKind::Binary(BinOp::Ne, a, b) => is(a) && success(b) || success(a) && is(b),
        ExprKind::Name(_) => is(*cond),
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
