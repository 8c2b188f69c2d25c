//! Recognises that a link passes on nothing but a running value, so that looking back takes the place of waiting.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::direct;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr};
use gridfuse_analysis::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};

use super::chain::{Chain, Passed, is_wide_integer};
use super::memory::{accesses_in, gaps_in};
use super::overlap::{Overlap, first_thread};
use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::facts::ctype;
use crate::facts::of_macro::is_part_of_macro;
use crate::facts::pure;

/// The running value.
pub struct Running {
    /// The parameter that holds it; `None`: the links only come one after the other.
    pub parameter: Option<usize>,
    /// The type of the chain in `gridfuse.cuh`.
    pub chain_type: String,
    /// Source of what a link adds to it.
    pub own: String,
    /// What has to be taken for granted.
    pub assumes: Option<Assumed>,
}

impl Running {
    /// Finds it; says why there is none.
    pub fn find(chain: &Chain<'_>, overlap: &Overlap, refusals: &mut Refusals) -> Option<Running> {
        let site = &chain.site;
        refuse_what_comes_between(chain, overlap, refusals);
        let new: Vec<usize> = (0..chain.passed.len())
            .filter(|i| chain.passed[*i] == Passed::New)
            .collect();
        let running = match new.as_slice() {
            [] => Some(Running {
                parameter: None,
                chain_type: "gridfuse::DecoupledLookback<>".to_owned(),
                own: String::new(),
                assumes: None,
            }),
            [one] => running(chain, overlap, *one, refusals),
            [_, second, ..] => {
                let arg = site
                    .launch
                    .args
                    .get(*second)
                    .map(|a| site.place(site.body.expr(*a).span));
                refusals.add("more than one argument is known only when the link has run", arg);
                None
            }
        };
        running.filter(|_| refusals.is_empty())
    }
}

/// Between what needn't wait and the launch there is nothing but the conditions of the launch.
fn refuse_what_comes_between(chain: &Chain<'_>, overlap: &Overlap, refusals: &mut Refusals) {
    let site = &chain.site;
    let body = &site.body;
    if !overlap.directly {
        refusals.add(
            "something stands between what can run before the launch and the launch itself",
            Some(chain.place(body.stmt(overlap.waits).span)),
        );
        return;
    }
    let path: Vec<StmtId> = site.places.around(site.facts.expr).collect();
    for (position, stmt) in path.iter().enumerate() {
        if let StmtKind::Block(stmts) = &body.stmt(*stmt).kind
            && Some(*stmt) != body.root
            && stmts.first() != position.checked_sub(1).and_then(|p| path.get(p))
        {
            let first = stmts.first().map_or(site.facts.span, |s| body.stmt(*s).span);
            refusals.add(
                "something stands in front of the launch under its condition",
                Some(chain.place(first)),
            );
        }
        if let StmtKind::If { cond: Some(cond), .. } = &body.stmt(*stmt).kind {
            let span = body.expr(*cond).span;
            let touches = !accesses_in(site, span).is_empty() || !gaps_in(site, span).is_empty();
            if touches || pure::assigns(body, *cond) {
                refusals.add(
                    "the condition of the launch reads memory or changes something",
                    Some(chain.place(span)),
                );
            }
        }
    }
}

fn running(chain: &Chain<'_>, overlap: &Overlap, index: usize, refusals: &mut Refusals) -> Option<Running> {
    let site = &chain.site;
    let body = &site.body;
    let binding = *body.params.get(index)?;
    let param = chain.kernel.params.get(index)?;
    let arg = *site.launch.args.get(index)?;
    let place = Some(site.place(body.expr(arg).span));
    let is_parameter =
        |e: ExprId| matches!(body.expr(body.strip_parens(e)).kind, ExprKind::Name(Name::Local(b)) if b == binding);
    let pair = |a: ExprId, b: ExprId| match (is_parameter(a), is_parameter(b)) {
        (true, false) => Some(b),
        (false, true) => Some(a),
        _ => None,
    };
    let found = match &body.expr(body.strip_parens(arg)).kind {
        ExprKind::Binary(BinOp::Add, a, b) => pair(*a, *b).map(|own| ("plus", own, "+")),
        ExprKind::Call {
            name: Some(name), args, ..
        } if !hides(site.db, site.parent, name) && functions_named(site.db, site.file, name).is_empty() => {
            match args.as_slice() {
                [a, b] => {
                    let operation = match name.trim_start_matches("::") {
                        "max" | "fmaxf" | "fmax" => Some("maximum"),
                        "min" | "fminf" | "fmin" => Some("minimum"),
                        _ => None,
                    };
                    operation.and_then(|operation| Some((operation, pair(*a, *b)?, name.trim_start_matches("::"))))
                }
                _ => None,
            }
        }
        _ => None,
    };
    let name = &param.name;
    let Some((operation, own, written)) = found else {
        refusals.add(
            format!("the next `{name}` isn't this one plus, or at most or at least, something"),
            place,
        );
        return None;
    };
    let ty = ctype::normalize(&param.ty.base);
    let floating = matches!(ty.as_str(), "float" | "double");
    let same = ctype::type_of(site, own).is_some_and(|t| t == ty);
    let fits = param.ty.is_value()
        && match (written, ty.as_str()) {
            ("+", "float") => same || is_whole_number(chain, own),
            ("+", "double") => same || is_floating(chain, own) == Some(true) || is_whole_number(chain, own),
            ("+", _) => is_wide_integer(&ty) && is_whole_number(chain, own),
            ("max" | "min", _) => same && (floating || is_wide_integer(&ty)),
            ("fmaxf" | "fminf", "float") | ("fmax" | "fmin", "double") => true,
            _ => false,
        };
    if !fits {
        refusals.add(
            format!("the running value `{name}` isn't a sum of integers, a sum of `float`s or `double`s, or the largest or smallest of numbers of one type"),
            place,
        );
    }
    // The order in which links add up depends on which of them knows its value when another one looks.
    let assumes = (written == "+" && floating).then(|| {
        assumption::ROUNDING.of(Reason {
            text: format!(
                "sums in `{name}` may be rounded otherwise, and in each run otherwise, as the links' parts are added up in another order (`promote-overlap` keeps it)"
            ),
            place,
        })
    });
    if !pure::is_immutable_parameter(site.db, site.parent, body, binding) {
        refusals.add(format!("`{name}` is changed"), place);
    }
    if is_part_of_macro(body, own) {
        refusals.add(
            format!("the next `{name}` comes out of a macro: write the sum where it is passed"),
            place,
        );
    }
    if let Some(part) = all_in_expr(body, own).into_iter().find(|e| is_parameter(*e)) {
        refusals.add(
            format!("what the link adds to `{name}` depends on `{name}` itself"),
            Some(chain.place(body.expr(part).span)),
        );
    } else if let Some(part) = not_the_same_early(chain, own) {
        refusals.add(
            "what the link adds may be another value, or an invalid one, for other threads than the first",
            Some(chain.place(body.expr(part).span)),
        );
    }
    if let Some(write) = written_since_barrier(chain, overlap, own) {
        refusals.add(
            "what the link adds is in shared memory, and other threads than the first may read it before this is written: put a `__syncthreads()` in front of the launch",
            Some(chain.place(write)),
        );
    }
    if !launched_by_first(chain) {
        refusals.add(
            "the launching thread isn't known to be the first of its block",
            Some(site.here()),
        );
    }
    Some(Running {
        parameter: Some(index),
        chain_type: format!("gridfuse::DecoupledLookback<{}, gridfuse::{operation}>", param.ty.base),
        own: crate::edit::one_line::flat(site.expr_source(own)),
        assumes,
    })
}

/// An expression certainly has an integer's value.
fn is_whole_number(chain: &Chain<'_>, expr: ExprId) -> bool {
    is_floating(chain, expr) == Some(false)
}

/// Whether an expression has a floating-point number's value; `None`: not known.
fn is_floating(chain: &Chain<'_>, expr: ExprId) -> Option<bool> {
    let ty = ctype::type_of(&chain.site, expr)?;
    match ty.as_str() {
        "float" | "double" => Some(true),
        _ => (is_wide_integer(&ty) || is_narrow_integer(&ty)).then_some(false),
    }
}

fn is_narrow_integer(ty: &str) -> bool {
    matches!(
        ty,
        "bool" | "char" | "signed char" | "unsigned char" | "short" | "unsigned short"
    )
}

/// What of an expression may not be evaluated by every thread.
fn not_the_same_early(chain: &Chain<'_>, expr: ExprId) -> Option<ExprId> {
    let body = &chain.site.body;
    let first = |all: &[ExprId]| all.iter().find_map(|e| not_the_same_early(chain, *e));
    match &body.expr(expr).kind {
        ExprKind::Literal(_) => None,
        ExprKind::Name(Name::Local(b)) => {
            let ty = &body.binding(*b).ty;
            (ty.reference || ty.volatile || ty.complex).then_some(expr)
        }
        ExprKind::Name(Name::Other(_)) => (!chain.holds(expr, &|_| true)).then_some(expr),
        ExprKind::Paren(e) | ExprKind::Unary(_, e) => first(&[*e]),
        ExprKind::Field { base, arrow: false, .. } => first(&[*base]),
        ExprKind::Cast {
            operand,
            reinterpret: false,
            ..
        } => first(&[*operand]),
        ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, a, b) => first(&[*a, *b]),
        ExprKind::Index { base, index } => {
            let array = matches!(body.expr(body.strip_parens(*base)).kind,
                ExprKind::Name(Name::Local(b)) if !body.binding(b).ty.array.is_empty());
            let constant = chain.holds(*index, &|_| false)
                && matches!(
                    body.expr(body.strip_parens(*index)).kind,
                    ExprKind::Literal(Literal::Int(_)) | ExprKind::Name(Name::Other(_)) | ExprKind::Binary(..)
                );
            (!array || !constant).then_some(expr)
        }
        _ => Some(expr),
    }
}

/// Where shared memory that `own` reads may be written with no barrier of the block between that and the launch: all threads evaluate
/// `own` there.
fn written_since_barrier(chain: &Chain<'_>, overlap: &Overlap, own: ExprId) -> Option<Span> {
    let body = &chain.site.body;
    let shared =
        |binding: &BindingId| matches!(body.binding(*binding).storage, Storage::Shared | Storage::ExternShared);
    let named = |expr: ExprId| {
        let all = all_in_expr(body, expr).into_iter();
        all.filter_map(|e| match body.expr(e).kind {
            ExprKind::Name(Name::Local(binding)) => Some(binding),
            _ => None,
        })
    };
    let read: Vec<BindingId> = named(own).filter(shared).collect();
    if read.is_empty() {
        return None;
    }
    let StmtKind::Block(stmts) = &body.stmt(body.root?).kind else {
        return Some(body.expr(own).span);
    };
    let early = stmts.iter().take_while(|stmt| **stmt != overlap.waits);
    let early: Vec<StmtId> = early.copied().collect();
    let barriers = &direct(chain.site.db, chain.site.parent).facts.barriers;
    // One of the whole block that all threads meet: nothing else is evaluated in the statement behind it, or decides about it.
    let is_barrier = |stmt: &StmtId| {
        let StmtKind::Expr(expr) = body.stmt(*stmt).kind else {
            return false;
        };
        let call = body.expr(body.strip_parens(expr));
        let of_block =
            matches!(&call.kind, ExprKind::Call { name: Some(name), .. } if name.starts_with("__syncthreads"));
        of_block && barriers.iter().any(|barrier| call.span.contains(*barrier))
    };
    let since = early.iter().rposition(is_barrier).map_or(0, |last| last + 1);
    let names_it = |expr: ExprId| named(expr).any(|binding| read.contains(&binding));
    // A pointer or a reference that was made before, whether it leads there isn't asked.
    let others = early.iter().any(|stmt| leads_to(body, *stmt, &read));
    let by_another = |place: ExprId| others && !is_elsewhere(chain, place);
    let writes = |expr: &ExprId| match &body.expr(*expr).kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } | ExprKind::AddrOf(place) => {
            names_it(*place) || by_another(*place)
        }
        ExprKind::Call { .. } | ExprKind::Construct { .. } | ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => {
            names_it(*expr) || others && pure::not_skippable(&chain.site, *expr).is_some()
        }
        _ => false,
    };
    let behind = early.get(since..).unwrap_or_default().iter();
    let all = behind.flat_map(|stmt| all_exprs(body, *stmt));
    let write = all.into_iter().find(|expr| writes(expr))?;
    Some(body.expr(write).span)
}

/// Whether a statement may make something that leads to one of these shared variables: a pointer, a reference, an object with one. Who reads
/// or writes an element makes none, nor does an atomic function.
fn leads_to(body: &Body, stmt: StmtId, shared: &[BindingId]) -> bool {
    let exprs = all_exprs(body, stmt);
    let is_it = |expr: ExprId| matches!(&body.expr(body.strip_parens(expr)).kind, ExprKind::Name(Name::Local(binding)) if shared.contains(binding));
    let names_it = |expr: ExprId| all_in_expr(body, expr).into_iter().any(is_it);
    let bases: Vec<ExprId> = exprs
        .iter()
        .filter_map(|expr| match body.expr(*expr).kind {
            ExprKind::Index { base, .. } => Some(body.strip_parens(base)),
            _ => None,
        })
        .collect();
    let by_atomics: Vec<ExprId> = exprs
        .iter()
        .filter_map(|expr| match &body.expr(*expr).kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } if name.starts_with("atomic") => args.first().copied(),
            _ => None,
        })
        .collect();
    let is_array = |expr: ExprId| match &body.expr(expr).kind {
        ExprKind::Name(Name::Local(binding)) => !body.binding(*binding).ty.is_value(),
        _ => false,
    };
    exprs.iter().any(|expr| match &body.expr(*expr).kind {
        ExprKind::Name(_) => is_it(*expr) && is_array(*expr) && !bases.contains(expr),
        ExprKind::AddrOf(place) => names_it(*place) && !by_atomics.contains(expr),
        ExprKind::Construct { .. } | ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => names_it(*expr),
        ExprKind::Call { args, .. } => args
            .iter()
            .any(|arg| is_it(*arg) || element(body, *arg).is_some_and(is_it)),
        _ => false,
    }) || references(body, stmt).any(names_it)
}

/// The array of `array[i]`.
fn element(body: &Body, expr: ExprId) -> Option<ExprId> {
    match body.expr(body.strip_parens(expr)).kind {
        ExprKind::Index { base, .. } => Some(base),
        _ => None,
    }
}

/// What the references are for that a statement declares.
fn references(body: &Body, stmt: StmtId) -> impl Iterator<Item = ExprId> {
    let declared = (0..body.bindings.len() as u32).map(BindingId);
    let within = body.stmt(stmt).span;
    let here = declared.filter(move |binding| {
        let variable = body.binding(*binding);
        (variable.ty.reference || variable.ty.base.contains("auto")) && within.contains(variable.span)
    });
    here.filter_map(|binding| body.initialiser(binding))
}

/// Whether a place is no shared memory for sure, whatever pointers and references there are: a variable or an array of the thread, or what
/// a parameter leads to that keeps its value.
fn is_elsewhere(chain: &Chain<'_>, place: ExprId) -> bool {
    let site = &chain.site;
    let body = &site.body;
    match &body.expr(place).kind {
        ExprKind::Paren(inner) | ExprKind::Deref(inner) => is_elsewhere(chain, *inner),
        ExprKind::Index { base, .. } | ExprKind::Field { base, arrow: false, .. } => is_elsewhere(chain, *base),
        ExprKind::Binary(BinOp::Add | BinOp::Sub, pointer, _) => is_elsewhere(chain, *pointer),
        ExprKind::Name(Name::Local(binding)) => {
            let variable = body.binding(*binding);
            let kept = variable.ty.pointers == 0 || pure::is_immutable_parameter(site.db, site.parent, body, *binding);
            kept && !variable.ty.reference && !variable.ty.base.contains("auto")
        }
        _ => false,
    }
}

/// The first thread launches directly behind what can run early, and no memory is touched in between.
pub fn launches_at_once(chain: &Chain<'_>, overlap: &Overlap) -> bool {
    let mut refusals = Refusals::default();
    refuse_what_comes_between(chain, overlap, &mut refusals);
    let reads = chain.site.launch.args.iter().any(|arg| {
        let span = chain.site.body.expr(*arg).span;
        !accesses_in(&chain.site, span).is_empty() || !gaps_in(&chain.site, span).is_empty()
    });
    refusals.is_empty() && !reads && launched_by_first(chain)
}

/// A condition on the way to the launch picks the first thread; that it is one thread of the block is known.
fn launched_by_first(chain: &Chain<'_>) -> bool {
    let site = &chain.site;
    let body = &site.body;
    let path: Vec<StmtId> = site.places.around(site.facts.expr).collect();
    path.iter().enumerate().any(|(position, stmt)| {
        let inner = position.checked_sub(1).and_then(|p| path.get(p));
        match &body.stmt(*stmt).kind {
            StmtKind::If {
                cond: Some(cond), then, ..
            } => picks_first(chain, *cond, inner == Some(then)),
            _ => false,
        }
    })
}

fn picks_first(chain: &Chain<'_>, cond: ExprId, outcome: bool) -> bool {
    let body = &chain.site.body;
    match &body.expr(body.strip_parens(cond)).kind {
        ExprKind::Logical { and, lhs, rhs } if *and == outcome => {
            picks_first(chain, *lhs, outcome) || picks_first(chain, *rhs, outcome)
        }
        _ => first_thread(chain, cond, outcome).is_some(),
    }
}
