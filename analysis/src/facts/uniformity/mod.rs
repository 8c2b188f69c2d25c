//! Uniformity and divergence: which values are the same for all threads of a warp, a block or the grid, and which
//! statements such a group reaches together.
//!
//! After El Hajj, dissertation 2018, §3.4.1, with levels in place of one bit. A forward dataflow over SSA form: a value is
//! as varying as its operands; a variable that is set differently on paths that a branch separates is as varying as the
//! branch where they meet (sync dependence), and so is one that is set in a loop that threads leave at different times
//! (temporal divergence): Karrenberg and Hack 2012; Rosemann, Moll, Hack, POPL 2021. Memory is taken for uniform only
//! where nothing that runs meanwhile may write it.

mod callers;
mod changes;
mod differing_operators;
mod engine;
mod eval;
mod indirect;
mod level;
pub(crate) mod memory;
mod methods;
mod objects;
mod operators;
mod references;
mod rows;
mod shared;
mod value;
mod vars;
mod wait;
mod written;

use std::sync::Arc;

pub(crate) use callers::{called_recursively, calls_of, only_known_calls};
pub use changes::{changes_around, immutable_parameter};
pub use differing_operators::runs_code_of_no_name;
pub use level::*;
pub use operators::variables_of_place;
pub use references::class_changes;
pub(crate) use wait::waiting_loops;

use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::effects::leads_too_far;
use crate::facts::hidden::runs_unseen;
use crate::hir::items::FunctionItem;
use crate::hir::reference_names::may_be_a_reference;
use crate::hir::{ExprId, StmtId, body};
use engine::{Engine, Mode, Trust};
use memory::MemoryClass;
use value::Value;
use written::Origins;

/// Uniformity of every expression and divergence of every statement of a function: what is proved, but that no other grid
/// writes what is read. Rewrites go by this.
#[salsa::tracked(returns(clone))]
pub fn uniformity<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<FunctionUniformity> {
    analyse(db, function, Trust::Proved)
}

/// The same, as far as all threads of a block find the same where they read memory at one place that the function itself writes. Each
/// level says which reads these are.
#[salsa::tracked(returns(clone))]
pub fn settled_uniformity<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<FunctionUniformity> {
    analyse(db, function, Trust::Settled)
}

/// The same with what every reader of the code takes for granted and no compiler can know: that different pointer parameters
/// lead to different memory, that functions without a visible definition don't change the variables handed to them, that a
/// device function is called from where its calls can be seen alone. Each level says which of these it needs.
#[salsa::tracked(returns(clone))]
pub fn assumed_uniformity<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<FunctionUniformity> {
    let mut found = analyse(db, function, Trust::Assumed);
    if !function.signature(db).kernel && !called_recursively(db, function) {
        let calls = calls_of(db, function);
        let mut guard: Option<Uniformity> = None;
        for call in calls {
            let levels = assumed_uniformity(db, call.caller);
            let stmt = crate::facts::launch::statement_places(db, call.caller).statement_of(call.expr);
            let Some(outer) = stmt.and_then(|s| levels.divergence.get(&s)) else {
                continue;
            };
            if guard.as_ref().is_none_or(|g| g.level < outer.level) {
                guard = Some(outer.clone());
            }
        }
        if let Some(mut guard) = guard {
            // The place of the cause is in another function.
            if let Some(why) = &mut guard.why {
                why.text = format!("where this function is called, {}", why.text);
                why.span = Span::default();
            }
            guard.assumes.clear();
            let own = Arc::make_mut(&mut found);
            let all = own.launch_divergence.values_mut().chain(own.divergence.values_mut());
            for inner in all.filter(|inner| inner.level < guard.level) {
                *inner = guard.clone();
            }
        }
    }
    found
}

/// Expressions of a function of which no smaller one takes too many steps.
pub(crate) const MAY_TAKE_LONG: usize = 1_000;

fn analyse<'db>(db: &'db dyn Db, function: FunctionItem<'db>, trust: Trust) -> Arc<FunctionUniformity> {
    let body = body(db, function);
    let mut result = FunctionUniformity::default();
    let unknown = |text: &str, span: Span| Uniformity {
        level: Level::Varying,
        why: Some(Cause {
            text: text.to_owned(),
            span,
        }),
        assumes: Vec::new(),
    };
    // What takes too many steps by one standard does so by the others.
    let engine = match trust != Trust::Proved && body.exprs.len() > MAY_TAKE_LONG && uniformity(db, function).too_large
    {
        true => None,
        false => Engine::new(db, function, &body, Mode::Own, trust),
    };
    let Some(engine) = engine else {
        result.too_large = body.root.is_some() && !body.cut;
        let text = "this function can't be analysed";
        for (i, e) in body.exprs.iter().enumerate() {
            result.exprs.insert(ExprId(i as u32), unknown(text, e.span));
        }
        for (i, s) in body.stmts.iter().enumerate() {
            result.divergence.insert(StmtId(i as u32), unknown(text, s.span));
        }
        for launch in &body.launches {
            result
                .launch_divergence
                .insert(*launch, unknown(text, body.expr(*launch).span));
        }
        return Arc::new(result);
    };
    let export = |value: Value| {
        let assumes = match value.level {
            Level::Varying => Vec::new(),
            _ => {
                let all = engine.causes.assumes.iter().take(64).enumerate();
                all.filter(|(i, _)| value.assumes & (1 << i) != 0)
                    .map(|(_, c)| c.clone())
                    .collect()
            }
        };
        Uniformity {
            level: value.level,
            why: engine.causes.get(value.cause).cloned(),
            assumes,
        }
    };
    for (i, value) in engine.exprs.iter().enumerate() {
        if let Some(value) = value {
            result.exprs.insert(ExprId(i as u32), export(*value));
        }
    }
    for (i, stmt) in body.stmts.iter().enumerate() {
        let id = StmtId(i as u32);
        let divergence = match engine.flow.stmt_block.get(&id) {
            Some(block) if engine.flow.reachable(*block) => export(engine.divergence[block.index()]),
            Some(_) => continue,
            None => unknown("it isn't known who calls this lambda", stmt.span),
        };
        result.divergence.insert(id, divergence);
    }
    for id in &body.launches {
        let divergence = match engine.flow.expr_block.get(id) {
            Some(block) if engine.flow.reachable(*block) => export(engine.divergence[block.index()]),
            Some(_) => continue,
            None => unknown("it isn't known who calls this lambda", body.expr(*id).span),
        };
        result.launch_divergence.insert(*id, divergence);
    }
    Arc::new(result)
}

/// How a function's result depends on its arguments.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub(crate) struct ResultFlow {
    /// The level that it has whatever the arguments are.
    pub level: Level,
    /// Why.
    pub why: Option<String>,
    /// For each parameter: whether it flows into the result.
    pub params: Vec<bool>,
    /// For each parameter: its default argument is a literal.
    pub constant_defaults: Vec<bool>,
    /// What the level takes for granted.
    pub assumes: Vec<String>,
    /// Memory that the result was loaded from.
    pub loads: Vec<MemoryClass>,
    /// The object that a member function is called for flows into the result.
    pub object: bool,
    /// Where the memory lies that the result was loaded from, where that is taken for proof that nothing writes it.
    pub sources: Origins,
}

/// The result of a function in terms of its arguments. Recursive functions: nothing is known.
#[salsa::tracked(returns(clone), cycle_result = recursive_result)]
pub(crate) fn result_flow<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<ResultFlow> {
    analyse_result(db, function, Trust::Proved)
}

/// The same by the standards of [`assumed_uniformity`].
#[salsa::tracked(returns(clone), cycle_result = recursive_result)]
pub(crate) fn assumed_result_flow<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<ResultFlow> {
    analyse_result(db, function, Trust::Assumed)
}

fn analyse_result<'db>(db: &'db dyn Db, function: FunctionItem<'db>, trust: Trust) -> Arc<ResultFlow> {
    let body = body(db, function);
    let head = function.signature(db).head_span;
    let text = function.text(db);
    let nothing = |why: &str| {
        Arc::new(ResultFlow {
            level: Level::Varying,
            why: Some(why.to_owned()),
            ..ResultFlow::default()
        })
    };
    if leads_too_far(db, function) {
        return nothing("it calls too many functions");
    }
    if may_be_a_reference(db, function.file(db), head.text(&text)) {
        return nothing("it returns a reference");
    }
    // What is returned becomes an object of the result's type.
    let behind = text
        .get(function.signature(db).params_span.end as usize..)
        .unwrap_or("");
    let behind = behind
        .get(..behind.find(['{', ';']).unwrap_or(behind.len()))
        .unwrap_or("");
    let behind = behind.split_once("->").map_or("", |(_, ty)| ty);
    let runs = |ty: &str| runs_unseen(db, function, ty);
    if trust != Trust::Assumed && (runs(head.text(&text)) || runs(behind)) {
        return nothing("making or converting what it returns may run code that is called by no name");
    }
    let Some(engine) = Engine::new(db, function, &body, Mode::Parametric, trust) else {
        return nothing("the function can't be analysed");
    };
    // Merging at the exit is part of the definition that reaches it.
    let value = match engine.result() {
        Some(value) => value,
        None => return nothing("it never returns"),
    };
    let count = body.params.len();
    let assumed = engine.causes.assumes.iter().take(64).enumerate();
    let defaults = body.params.iter().map(|p| {
        let default = body.binding(*p).default;
        default.is_some_and(|d| crate::facts::defaults::constant_default(&text, d))
    });
    Arc::new(ResultFlow {
        level: value.level,
        why: engine.causes.get(value.cause).map(|c| c.text.clone()),
        object: value.params & (1 << OBJECT) != 0,
        sources: engine.sources.clone(),
        params: (0..count).map(|i| i < OBJECT && value.params & (1 << i) != 0).collect(),
        constant_defaults: defaults.collect(),
        assumes: assumed
            .filter(|(i, _)| value.assumes & (1 << i) != 0)
            .map(|(_, c)| c.text.clone())
            .collect(),
        loads: engine.loads.iter().copied().collect(),
    })
}

/// The parameter that stands for the object of a member function.
const OBJECT: usize = 63;

fn recursive_result(_: &dyn Db, _: salsa::Id, _: FunctionItem<'_>) -> Arc<ResultFlow> {
    Arc::new(ResultFlow {
        level: Level::Varying,
        why: Some("the function is recursive".to_owned()),
        ..ResultFlow::default()
    })
}
