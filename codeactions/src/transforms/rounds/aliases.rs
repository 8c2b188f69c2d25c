//! Other names of the host's variables: references, lambdas, pointers. The kernel has copies, which nobody changes by another name.

use std::collections::BTreeSet;

use gridfuse_analysis::facts::uniformity::variables_of_place;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Storage};

use super::api;
use super::host_loop::HostLoop;
use super::kept;
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::facts::cluster::Function;
use crate::runtime::is_header;

/// Refuses a loop that changes a variable which it uses by another name as well.
pub fn refuse_aliases(host: &HostLoop<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    let body = &host.function.body;
    let used: BTreeSet<BindingId> = all_exprs(body, host.stmt)
        .into_iter()
        .filter_map(|e| host.local(e))
        .filter(|b| !host.inner.contains(b) && !api::is_error(&host.function, *b))
        .collect();
    for binding in &used {
        let own = body.binding(*binding);
        if let Some(call) = registered(host, *binding) {
            refusals.add(
                format!(
                    "`{}` is memory that the device may write: use a pointer to it",
                    own.name
                ),
                Some(host.function.place(body.expr(call).span)),
            );
        }
        if let Some(given) = given_to_a_kernel(host, *binding) {
            refusals.add(
                format!(
                    "`{}` is memory of the host's that a kernel gets: use a pointer to it",
                    own.name
                ),
                Some(host.function.place(body.expr(given).span)),
            );
        }
        if let Some(given) = given_away(host, *binding) {
            let (expr, calls_back) = given;
            let place = Some(host.function.place(body.expr(expr).span));
            if calls_back {
                refusals.add(
                    format!(
                        "`{}` is changed by a function that the stream calls: use memory that the device can write",
                        own.name
                    ),
                    place,
                );
            } else {
                edit.assume(assumption::SEPARATE_VARIABLES.of(Reason {
                    text: format!(
                        "only the loop changes `{}` while it runs: nobody else does by `{}`",
                        own.name,
                        host.flat(expr)
                    ),
                    place,
                }));
            }
        }
        if !own.ty.reference {
            continue;
        }
        let objects = objects(host, *binding);
        let other = used.iter().find(|other| {
            *other != binding
                && (host.varying.contains(binding) || host.varying.contains(other))
                && !objects.is_disjoint(&self::objects(host, **other))
        });
        if let Some(other) = other {
            refusals.add(
                format!(
                    "`{}` and `{}` are names of one variable, which changes in the loop: use one of them",
                    own.name,
                    body.binding(*other).name
                ),
                Some(host.function.place(own.span)),
            );
        } else if objects.is_empty() && host.varying.contains(binding) {
            edit.assume(assumption::SEPARATE_VARIABLES.of(Reason {
                text: format!(
                    "`{}` is another variable than all others of the loop, and not in memory that its kernels use",
                    own.name
                ),
                place: Some(host.function.place(own.span)),
            }));
        }
    }
}

/// The variables of the function of which a variable is a part: itself if it is no reference; none where that isn't known.
fn objects(host: &HostLoop<'_>, binding: BindingId) -> BTreeSet<BindingId> {
    let body = &host.function.body;
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut todo = vec![binding];
    while let Some(next) = todo.pop() {
        if !seen.insert(next) {
            continue;
        }
        let own = body.binding(next);
        match body.initialiser(next) {
            _ if !own.ty.reference => {
                found.insert(next);
            }
            Some(init) if own.storage == Storage::Local => todo.extend(parts_of(host, init)),
            _ => {}
        }
    }
    found
}

fn parts_of(host: &HostLoop<'_>, place: ExprId) -> Vec<BindingId> {
    let Function { db, item, body, .. } = &host.function;
    variables_of_place(*db, *item, body, place)
}

/// The argument of a launch that is the address of a variable of the host's.
fn given_to_a_kernel(host: &HostLoop<'_>, binding: BindingId) -> Option<ExprId> {
    let mut args = host.launches.iter().flat_map(|site| &site.launch.args);
    args.find(|arg| addressed(host, **arg) == Some(binding) || points_to(host, **arg, binding))
        .copied()
}

/// Whether an expression names a pointer that the function sets to the address of a variable.
fn points_to(host: &HostLoop<'_>, expr: ExprId, binding: BindingId) -> bool {
    let body = &host.function.body;
    let mut named = all_in_expr(body, expr).into_iter().filter_map(|e| host.local(e));
    named.any(|pointer| {
        let set = body.exprs.iter().filter_map(|e| match e.kind {
            ExprKind::Assign { place, value, .. } if host.local(place) == Some(pointer) => Some(value),
            _ => None,
        });
        let mut values = set.chain(body.initialiser(pointer));
        values.any(|value| addressed(host, value) == Some(binding))
    })
}

/// Where the function gives away the address of a variable, or a reference to it, to somebody who may keep it; whether that is a function
/// that the device's runtime calls back.
fn given_away(host: &HostLoop<'_>, binding: BindingId) -> Option<(ExprId, bool)> {
    let Function { db, item, body, .. } = &host.function;
    let all = || (0..body.exprs.len() as u32).map(ExprId);
    let is_address =
        |e: &ExprId| matches!(body.expr(*e).kind, ExprKind::AddrOf(_)) && addressed(host, *e) == Some(binding);
    let calls_back = |name: &str| {
        matches!(
            name.trim_start_matches("::"),
            "cudaLaunchHostFunc" | "cudaStreamAddCallback"
        )
    };
    let mut kept: BTreeSet<ExprId> = all().filter(is_address).collect();
    for call in all() {
        let ExprKind::Call { name, args, .. } = &body.expr(call).kind else {
            continue;
        };
        let addresses = || args.iter().flat_map(|arg| all_in_expr(body, *arg)).filter(is_address);
        let name = name.as_deref().unwrap_or("");
        if let Some(address) = addresses().next()
            && calls_back(name)
        {
            return Some((address, true));
        }
        // A library's function and one that is in sight give it back; what another file has may keep it.
        let functions = functions_in(*db, *item, name);
        if functions.is_empty() || functions.iter().all(|f| f.has_body(*db)) {
            addresses().for_each(|address| {
                kept.remove(&address);
            });
        }
    }
    for site in &host.launches {
        // A kernel that gets it is refused.
        for arg in &site.launch.args {
            for part in all_in_expr(body, *arg) {
                kept.remove(&part);
            }
        }
    }
    let refers = |e: &ExprId| match &body.expr(*e).kind {
        ExprKind::Lambda { mentions, .. } => {
            let head = host
                .source(body.expr(*e).span)
                .split(']')
                .next()
                .unwrap_or("")
                .to_owned();
            mentions.contains(&binding) && head.contains('&')
        }
        _ => false,
    };
    // A function in sight may make a variable memory of the device's.
    let registered = || {
        kept::keepers(host, binding)
            .into_iter()
            .next()
            .filter(|_| registers(host))
    };
    let found = kept.into_iter().next().or_else(|| all().find(refers));
    let found = found.or_else(registered)?;
    Some((found, false))
}

/// The variable in whose memory an address is, casts aside.
fn addressed(host: &HostLoop<'_>, expr: ExprId) -> Option<BindingId> {
    let body = &host.function.body;
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Cast { operand, .. } => addressed(host, *operand),
        ExprKind::AddrOf(place) => {
            let mut place = body.strip_parens(*place);
            while let ExprKind::Field { base, arrow: false, .. } | ExprKind::Index { base, .. } = body.expr(place).kind
            {
                place = body.strip_parens(base);
            }
            host.local(place).filter(|b| body.binding(*b).ty.pointers == 0)
        }
        _ => None,
    }
}

/// Whether the program makes memory of the host's memory that the device can write.
fn registers(host: &HostLoop<'_>) -> bool {
    let db = host.function.db;
    let mut files = included_files(db, host.file()).iter();
    files.any(|file| {
        let text = file.text(db);
        text.contains(REGISTER) && !is_header(db, *file) && lex::identifiers(&text).any(|word| word == REGISTER)
    })
}

/// The function that does so.
const REGISTER: &str = "cudaHostRegister";

/// The call that makes memory of the host's, which may be that of a variable, memory that the device can write.
fn registered(host: &HostLoop<'_>, binding: BindingId) -> Option<ExprId> {
    let body = &host.function.body;
    let calls = (0..body.exprs.len() as u32).map(ExprId);
    // Somebody may have its address: a call of CUDA's runtime keeps none.
    let addresses = body.exprs.iter().filter(|e| match e.kind {
        ExprKind::AddrOf(place) => host.local(place) == Some(binding),
        _ => false,
    });
    let handed: Vec<ExprId> = body
        .exprs
        .iter()
        .filter_map(|e| match &e.kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } if api::named(&host.function, name).is_some() => Some(args),
            _ => None,
        })
        .flatten()
        .copied()
        .filter(|arg| host.address_of(*arg) == Some(binding))
        .collect();
    let kept = addresses.count() > handed.len();
    calls.into_iter().find(|call| match &body.expr(*call).kind {
        ExprKind::Call {
            name: Some(name), args, ..
        } => {
            name.trim_start_matches("::") == REGISTER
                && (kept || args.first().and_then(|arg| host.address_of(*arg)) == Some(binding))
        }
        _ => false,
    })
}
