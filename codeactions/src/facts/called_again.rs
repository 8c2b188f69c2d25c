//! Functions that launch and are called, or launched, again with what their grids have written: `step(u, v); step(v, u);`.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Root, own_footprint};
use gridfuse_analysis::facts::launch::{Child, LaunchFacts, Stream, launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, body};

use crate::api::refusal::Refusals;
use crate::edit::lex;
use crate::facts::cluster::{Function, callers};
use crate::facts::pure::keeps_first_value;
use crate::facts::site::Site;

/// A call after which the grids of a launch read what those of a call before have written; as a fragment of a sentence.
pub fn called_again(site: &Site<'_>) -> Option<String> {
    let flows = flows(site, site.facts);
    let function = Function::new(site.db, site.parent);
    let all = callers(&function, &mut Refusals::default());
    let arguments = |caller: FunctionItem<'_>, call: ExprId| match &body(site.db, caller).expr(call).kind {
        ExprKind::Call { args, .. } => args.iter().map(|arg| words(site, caller, *arg)).collect(),
        _ => Vec::new(),
    };
    let calls: Vec<(FunctionItem<'_>, ExprId, Vec<String>)> = all
        .into_iter()
        .map(|(caller, call)| (caller, call, arguments(caller, call)))
        .collect();
    for (caller, call, args) in &calls {
        for flow in &flows {
            // A default argument says nothing.
            let Some(read) = args.get(flow.read) else { continue };
            let own = *caller == site.parent && *read == flow.written_name;
            let mut others = calls.iter().filter(|(other, expr, _)| other == caller && expr != call);
            let of_another = others.any(|(_, _, before)| before.get(flow.written) == Some(read));
            if own || of_another {
                let code = source(site, *caller, body(site.db, *caller).expr(*call).span);
                return Some(format!("`{code}` lets a grid work on what one before it has written"));
            }
        }
    }
    None
}

/// The same where a kernel launches itself with what another launch of it has written, or `site` is that launch and `other` the other one.
pub fn launched_again(site: &Site<'_>, other: u32) -> Option<String> {
    let all = launches(site.db, site.parent);
    let other = all.get(other as usize)?;
    let recursive = |facts: &LaunchFacts<'_>| facts.child == Child::Kernel(site.parent) && facts.stream == Stream::Null;
    let (launch, again) = match (recursive(site.facts), recursive(other)) {
        (true, false) => (other, site.facts),
        (false, true) => (site.facts, other),
        _ => return None,
    };
    flows(site, launch).into_iter().find_map(|flow| {
        let argument = again.args.get(flow.read)?;
        (words(site, site.parent, argument.expr) == flow.written_name).then(|| {
            format!(
                "`{}` lets a grid work on what one before it has written",
                site.source(again.span)
            )
        })
    })
}

/// Two parameters of the launching function: a grid writes through the one, and reads through the other.
struct FlowBetween {
    written: usize,
    written_name: String,
    read: usize,
}

fn flows(site: &Site<'_>, launch: &LaunchFacts<'_>) -> Vec<FlowBetween> {
    let Child::Kernel(child) = launch.child else {
        return Vec::new();
    };
    let own = &site.body;
    let footprint = own_footprint(site.db, child);
    let used = |writes: bool| {
        let mut found: Vec<usize> = Vec::new();
        for access in footprint.accesses.iter().filter(|a| a.kind.reads_only() != writes) {
            let Root::Parameter(index) = access.root else { continue };
            let parameter = launch
                .args
                .get(index as usize)
                .and_then(|arg| parameter(site, own, arg.expr));
            found.extend(parameter.filter(|index| !found.contains(index)));
        }
        found
    };
    let (written, read) = (used(true), used(false));
    let pairs = written
        .iter()
        .flat_map(|w| read.iter().filter(move |r| *r != w).map(move |r| (*w, *r)));
    pairs
        .map(|(written, read)| FlowBetween {
            written,
            written_name: own.binding(own.params[written]).name.clone(),
            read,
        })
        .collect()
}

/// The parameter of the launching function that an argument is, by index.
fn parameter(site: &Site<'_>, own: &Body, argument: ExprId) -> Option<usize> {
    match own.expr(own.strip_parens(argument)).kind {
        ExprKind::Name(Name::Local(binding)) if keeps_first_value(site.db, site.parent, own, binding) => {
            own.params.iter().position(|param| *param == binding)
        }
        _ => None,
    }
}

/// Whether an argument of a launch in a device function has one value in all calls of the function by the threads of a block: it is a
/// literal, or a parameter to which the calls, which are all in sight, hand on what one parameter of the kernel that calls says.
pub fn same_in_all_calls(site: &Site<'_>, argument: ExprId) -> bool {
    let own = &site.body;
    if let ExprKind::Literal(_) = own.expr(own.strip_parens(argument)).kind {
        return true;
    }
    let Some(index) = parameter(site, own, argument).filter(|_| !site.parent.signature(site.db).kernel) else {
        return false;
    };
    let mut refusals = Refusals::default();
    let calls = callers(&Function::new(site.db, site.parent), &mut refusals);
    let mut handed: Vec<(FunctionItem<'_>, BindingId)> = Vec::new();
    for (caller, call) in &calls {
        let code = body(site.db, *caller);
        let binding = match &code.expr(*call).kind {
            ExprKind::Call { args, .. } => args.get(index).map(|arg| code.strip_parens(*arg)),
            _ => None,
        };
        let binding = binding.and_then(|arg| match code.expr(arg).kind {
            ExprKind::Name(Name::Local(binding)) if code.params.contains(&binding) => Some(binding),
            _ => None,
        });
        match binding.filter(|binding| keeps_first_value(site.db, *caller, &code, *binding)) {
            Some(binding) if caller.signature(site.db).kernel => handed.push((*caller, binding)),
            _ => return false,
        }
    }
    // Each kernel's own.
    let one = |(caller, binding): &(FunctionItem<'_>, BindingId)| {
        handed
            .iter()
            .all(|(other, theirs)| other != caller || theirs == binding)
    };
    refusals.is_empty() && !handed.is_empty() && handed.iter().all(one)
}

fn words(site: &Site<'_>, function: FunctionItem<'_>, expr: ExprId) -> String {
    let span = body(site.db, function).expr(expr).span;
    lex::code_words(&source(site, function, span)).join(" ")
}

fn source(site: &Site<'_>, function: FunctionItem<'_>, span: Span) -> String {
    let text = function.text(site.db);
    span.text(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}
