//! What becomes of the host's variables that change in the loop.

use gridfuse_analysis::hir::{BindingId, ExprKind, Name, StmtKind, Storage};

use super::host_loop::HostLoop;
use super::kept::is_kept;
use crate::api::refusal::Refusals;
use crate::facts::calls::is_plain_type;
use crate::facts::ctype;

/// The names that mean the block's own in a kernel.
pub const BUILT_IN: [&str; 5] = ["threadIdx", "blockIdx", "gridDim", "blockDim", "warpSize"];

/// A variable of the host's that changes in the loop.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The variable.
    pub binding: BindingId,
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: String,
    /// It has a value when the loop begins.
    pub begins: bool,
    /// What it holds when the loop ends may be read.
    pub ends: bool,
}

/// The variables, in the order of their declarations. One that can't be held in a register of each thread is refused.
pub fn variables(host: &HostLoop<'_>, refusals: &mut Refusals) -> Vec<Variable> {
    let body = &host.function.body;
    let all = host.varying.iter().map(|binding| {
        let own = body.binding(*binding);
        refuse_type(host, *binding, refusals);
        let (begins, ends) = lives(host, *binding);
        Variable {
            binding: *binding,
            name: own.name.clone(),
            ty: spelled(host, *binding),
            begins,
            ends,
        }
    });
    all.collect()
}

/// Refuses a variable of a name that each kernel has.
pub fn refuse_built_in(host: &HostLoop<'_>, binding: BindingId, refusals: &mut Refusals) {
    let own = host.function.body.binding(binding);
    // What a block calls so would hide it.
    if BUILT_IN.contains(&own.name.as_str()) {
        refusals.add(
            format!(
                "`{}` is called as a variable that each kernel has: give it another name",
                own.name
            ),
            Some(host.function.place(own.span)),
        );
    }
}

/// Refuses a variable of a type that the kernel can't have in each thread.
pub fn refuse_type(host: &HostLoop<'_>, binding: BindingId, refusals: &mut Refusals) {
    refuse_built_in(host, binding, refusals);
    let own = host.function.body.binding(binding);
    let declared: String = host.source(own.decl_span).split_whitespace().collect();
    let lives_on = host
        .function
        .body
        .declaration(binding)
        .is_some_and(|(stmt, _)| host.source(host.function.body.stmt(stmt).span).contains("thread_local"));
    if lives_on || own.ty.base.contains("long double") {
        let why = match lives_on {
            true => "lives on after the call, as it is `thread_local`: copy it to a variable of the function",
            false => "is a `long double`, which device code doesn't have",
        };
        refusals.add(format!("`{}` {why}", own.name), Some(host.function.place(own.span)));
    }
    if declared.contains("*const*") {
        refusals.add(
            format!(
                "`{}` points to constant pointers: copy it to a variable of a simpler type",
                own.name
            ),
            Some(host.function.place(own.span)),
        );
    }
    let plain = own.ty.pointers > 0 || is_plain_type(&ctype::normalize(&own.ty.base)) || own.ty.base == "dim3";
    if !plain || own.ty.complex || !own.ty.array.is_empty() || own.ty.volatile || own.ty.base == "auto" {
        refusals.add(
            format!(
                "`{}` is used in the loop and is neither a number nor a pointer",
                own.name
            ),
            Some(host.function.place(own.span)),
        );
    }
}

/// The type of a variable that changes, as a declaration has it: a reference is what it refers to.
pub fn spelled(host: &HostLoop<'_>, binding: BindingId) -> String {
    let ty = &host.function.body.binding(binding).ty;
    let base = match ty.pointers {
        0 => ty.base.clone(),
        _ => ty.text.trim_start_matches("static ").to_owned(),
    };
    format!("{base}{}", "*".repeat(usize::from(ty.pointers)))
}

/// Whether a variable has a value in front of the loop, and whether what it has behind it may be read.
fn lives(host: &HostLoop<'_>, binding: BindingId) -> (bool, bool) {
    let body = &host.function.body;
    let own = body.binding(binding);
    let loop_span = host.span();
    let (mut before, mut after) = (false, false);
    for expr in body.exprs.iter().filter(|e| !loop_span.contains(e.span)) {
        let here = match &expr.kind {
            ExprKind::Name(Name::Local(b)) => *b == binding,
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.contains(&binding),
            _ => false,
        };
        before |= here && expr.span.start < loop_span.start;
        after |= here && expr.span.start >= loop_span.end;
    }
    let mut repeated = false;
    for stmt in &body.stmts {
        match &stmt.kind {
            StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } if mentions.contains(&binding) => {
                (before, after) = (true, true);
            }
            StmtKind::Goto(_) => repeated = true,
            // What the head of a loop declares lives through all of its iterations, what its body declares through one.
            StmtKind::While { body: inner, .. }
            | StmtKind::DoWhile { body: inner, .. }
            | StmtKind::For { body: inner, .. }
            | StmtKind::RangeFor { body: inner, .. } => {
                let around = stmt.span != loop_span && stmt.span.contains(loop_span);
                repeated |= around && !body.stmt(*inner).span.contains(own.span);
            }
            _ => {}
        }
    }
    let kept = is_kept(host, binding);
    let outside = own.ty.reference || !matches!(own.storage, Storage::Local | Storage::Param);
    let initialised = body.initialiser(binding).is_some() || own.storage != Storage::Local;
    (
        initialised || before || repeated || outside,
        // The next run of the loop begins with what this one leaves.
        after || kept || outside || repeated,
    )
}
