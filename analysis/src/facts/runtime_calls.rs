//! Calls of our own runtime in rewritten code, by what they are for: the code that they stand for is known without a look into the header.

use crate::base::db::Db;
use crate::hir::items::FunctionItem;
use crate::hir::names::template_arguments;
use crate::hir::resolve::functions_in;
use crate::hir::{Body, ExprId, ExprKind, Name};

/// What a call of the runtime does with the program's own code and memory.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RuntimeCall<'db> {
    /// `children.launch(grid, block, {begin, count})`: these kernels run later. Their parameters, but for the first, get what the collector
    /// was made of, but for the arena.
    Collects {
        /// The kernels.
        kernels: Vec<FunctionItem<'db>>,
        /// What the collector was made of.
        made_of: Vec<ExprId>,
    },
    /// `batch.for_each_block([&](…) { … })`: it runs a lambda, whose body is part of the function's.
    RunsEach,
}

/// Whether a type is a class of the runtime that takes launches.
pub(crate) fn is_collector(ty: &str) -> bool {
    let class = ty.strip_prefix("gridfuse::").and_then(|rest| rest.split('<').next());
    class.is_some_and(|class| {
        matches!(
            class.trim(),
            "Aggregator" | "BlockLoop" | "Chain" | "Loop" | "Recursion" | "ThreadReuse" | "ThreadReuseInStream"
        )
    })
}

/// What a call of the runtime does; `None` where it's none, or one that this doesn't know.
pub(crate) fn runtime_call<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    target: ExprId,
    args: &[ExprId],
) -> Option<RuntimeCall<'db>> {
    match &body.expr(body.strip_parens(target)).kind {
        ExprKind::Field { base, field, .. } => {
            let ExprKind::Name(Name::Local(object)) = body.expr(body.strip_parens(*base)).kind else {
                return None;
            };
            let ty = &body.binding(object).ty.base;
            match field.as_str() {
                "launch" | "launch_at_once" if is_collector(ty) => {
                    let init = body.initialiser(object)?;
                    let (ExprKind::Construct { args: made_of, .. } | ExprKind::InitList(made_of)) =
                        &body.expr(init).kind
                    else {
                        return None;
                    };
                    let kernels = kernels(db, function, ty);
                    let made_of = made_of.clone();
                    (!kernels.is_empty()).then_some(RuntimeCall::Collects { kernels, made_of })
                }
                "for_each_thread" | "for_each_block" if ty.starts_with("gridfuse::") => runs_each(body, args),
                _ => None,
            }
        }
        ExprKind::Name(Name::Other(name)) if name == "gridfuse::for_each_thread" => runs_each(body, args),
        _ => None,
    }
}

/// The lambdas that calls of the runtime get. They run while the function does, and nobody keeps them.
pub(crate) fn lambdas_of_runtime_calls(db: &dyn Db, function: FunctionItem<'_>, body: &Body) -> Vec<ExprId> {
    let mut found = Vec::new();
    for expr in &body.exprs {
        let ExprKind::Call { callee, args, .. } = &expr.kind else {
            continue;
        };
        let lambda = |arg: &ExprId| matches!(body.expr(*arg).kind, ExprKind::Lambda { body: Some(_), .. });
        let mut lambdas = args.iter().copied().filter(lambda).peekable();
        if lambdas.peek().is_some() && runtime_call(db, function, body, *callee, args).is_some() {
            found.extend(lambdas);
        }
    }
    found
}

/// The last argument is a lambda.
fn runs_each<'db>(body: &Body, args: &[ExprId]) -> Option<RuntimeCall<'db>> {
    let last = &body.expr(body.strip_parens(*args.last()?)).kind;
    matches!(last, ExprKind::Lambda { body: Some(_), .. }).then_some(RuntimeCall::RunsEach)
}

/// The kernels that a collector's type names.
fn kernels<'db>(db: &'db dyn Db, function: FunctionItem<'db>, ty: &str) -> Vec<FunctionItem<'db>> {
    let named = ty
        .split_once('<')
        .map_or(Vec::new(), |(_, list)| template_arguments(list));
    let named = named.iter().filter_map(|name| name.split('<').next());
    let meant = named.flat_map(|name| functions_in(db, function, name.trim()));
    meant.filter(|f| f.signature(db).kernel).collect()
}
