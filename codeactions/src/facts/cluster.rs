//! Who takes part when launches are collected: the kernels that declare aggregators, the device functions that get them from
//! their callers, and all launches in these.
//!
//! A thread that writes down a launch meets others of its warp again, while the device runtime of CUDA 13.0 may let threads
//! that launch at that time wait for ever. So a kernel collects all its launches or none, and whoever can't leave one of them
//! out draws the others in: callers of a function that launches, kernels that launch a kernel that needs an arena, and kernels
//! that are launched and come back to launch again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::effects::{OWN_HEAD, effects};
use gridfuse_analysis::facts::launch::{Child, LaunchId, launches, statement_places};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{
    declarations_of, functions_in, functions_named, launch_sites_of, may_launch, runs_on_device,
};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::syntax_error::syntax_error;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtKind, body};

use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::facts::members;
use crate::facts::site::{Site, function_around};
use crate::runtime::is_header;

/// A function with the answers that its text gives.
pub struct Function<'db> {
    /// The database.
    pub db: &'db dyn Db,
    /// The function.
    pub item: FunctionItem<'db>,
    /// Its file.
    pub file: SourceFile,
    /// The file's text.
    pub text: Arc<str>,
    /// Its offset in it.
    pub start: u32,
    /// Its body.
    pub body: Arc<Body>,
}

impl<'db> Function<'db> {
    /// Looks at a function.
    pub fn new(db: &'db dyn Db, item: FunctionItem<'db>) -> Function<'db> {
        let file = item.file(db);
        Function {
            db,
            item,
            file,
            text: file.text(db),
            start: item.start(db),
            body: body(db, item),
        }
    }

    /// Its name without namespaces.
    pub fn name(&self) -> &'db str {
        unqualified(self.item.name(self.db))
    }

    /// A span of it as a place.
    pub fn place(&self, span: Span) -> FileRange {
        FileRange {
            file: self.file,
            range: span.shift(self.start),
        }
    }

    /// Where its name stands.
    pub fn name_place(&self) -> FileRange {
        self.place(self.item.signature(self.db).name_span)
    }

    /// The source of an expression.
    pub fn source(&self, expr: ExprId) -> &str {
        self.body.expr(expr).span.shift(self.start).text(&self.text)
    }

    /// It is a kernel.
    pub fn is_kernel(&self) -> bool {
        self.item.signature(self.db).kernel
    }

    /// The name of its batch, where it is a kernel that an aggregator launches.
    pub fn batch(&self) -> Option<&str> {
        let first = self.body.binding(*self.body.params.first()?);
        let base = first.ty.base.trim_start_matches("::");
        let is_batch = is_batch(base) && first.ty.is_value();
        (self.is_kernel() && is_batch).then_some(first.name.as_str())
    }

    /// Whether it is one that runs blocks of different shapes.
    pub fn has_shaped_batch(&self) -> bool {
        let first = self.body.params.first().map(|first| &self.body.binding(*first).ty.base);
        self.batch().is_some() && first.is_some_and(|base| base.contains(SHAPED_BATCH))
    }

    /// Index and name of its arena, where it has one.
    pub fn arena(&self) -> Option<(usize, String)> {
        let index = self.body.params.iter().position(|p| {
            let ty = &self.body.binding(*p).ty;
            ty.base.trim_start_matches("::") == ARENA && ty.is_value()
        })?;
        Some((index, self.body.binding(self.body.params[index]).name.clone()))
    }
}

/// The type of the parameter.
pub const ARENA: &str = "gridfuse::Arena";

/// The type of an aggregated kernel's first parameter, without its argument.
pub const BATCH: &str = "gridfuse::Batch";

/// The same for a kernel that launches in its turn, or that such a kernel launches.
pub const NESTED_BATCH: &str = "gridfuse::NestedBatch";

/// The same for a kernel whose launches have blocks of different shapes. It collects no launches itself.
pub const SHAPED_BATCH: &str = "gridfuse::ShapedBatch";

/// The type is one of these.
pub fn is_batch(ty: &str) -> bool {
    let name = ty.split_once('<').map(|(name, _)| name.trim_end());
    name.is_some_and(|name| [BATCH, NESTED_BATCH, SHAPED_BATCH].contains(&name))
}

/// Gives a kernel that gets aggregators of its own a nested batch.
pub fn make_nested<'db>(kernel: &Function<'db>, edit: &mut EditBuilder<'db>) {
    let db = kernel.db;
    for item in declarations_of(db, kernel.item).into_iter().chain([kernel.item]) {
        let file = item.file(db);
        let params = item.signature(db).params_span.shift(item.start(db));
        let text = file.text(db);
        let old = format!("{BATCH}<");
        if let Some(at) = params.text(&text).find(&old) {
            let start = params.start + at as u32;
            let range = TextRange::new(start, start + BATCH.len() as u32);
            edit.replace(FileRange { file, range }, NESTED_BATCH);
        }
    }
}

/// A call by one of the functions of another one.
pub struct Call {
    /// Index of the caller.
    pub caller: usize,
    /// Index of the callee.
    pub callee: usize,
    /// The call, in the caller's body.
    pub expr: ExprId,
    /// The arguments.
    pub args: Vec<ExprId>,
    /// The argument list with its parentheses, in the caller's file.
    pub list: TextRange,
    /// It stands in a loop, or may be repeated by a jump.
    pub repeated: bool,
}

/// Functions that change together: more aren't looked at.
const MAX_MEMBERS: usize = 100;

/// All that changes together.
pub struct Cluster<'db> {
    /// Kernels and device functions that launch, or that call such functions.
    pub functions: Vec<Function<'db>>,
    /// Calls among them.
    pub calls: Vec<Call>,
    /// Their launches.
    pub sites: Vec<Site<'db>>,
    /// For each launch, the index of the function that it stands in.
    pub site_of: Vec<usize>,
}

impl<'db> Cluster<'db> {
    /// The functions' files and texts, and those of their declarations: what their new variables and parameters must not be called stands there.
    pub fn texts(&self) -> Vec<(SourceFile, String)> {
        let all = self.functions.iter().flat_map(|function| {
            let db = function.db;
            let declarations = declarations_of(db, function.item);
            let all = std::iter::once(function.item).chain(declarations);
            all.map(move |item| (item.file(db), item.text(db).to_string()))
        });
        all.collect()
    }

    /// Everything that has to change when the launches of a function are collected. What is in the way is refused.
    pub fn find(db: &'db dyn Db, start: FunctionItem<'db>, refusals: &mut Refusals) -> Cluster<'db> {
        let mut members: Vec<FunctionItem<'db>> = Vec::new();
        let mut calls: Vec<(FunctionItem<'db>, FunctionItem<'db>, ExprId)> = Vec::new();
        let mut todo = vec![start];
        while let Some(item) = todo.pop() {
            if members.contains(&item) {
                continue;
            }
            // What is left as it is would no longer fit.
            if members.len() > MAX_MEMBERS {
                refusals.add(format!("more than {MAX_MEMBERS} functions would have to change"), None);
                break;
            }
            members.push(item);
            let function = Function::new(db, item);
            if function.has_shaped_batch() {
                let text = format!(
                    "`{}` runs blocks of different shapes, and collects no launches of its own",
                    function.name()
                );
                refusals.add(text, Some(function.name_place()));
            }
            if function.is_kernel() {
                todo.extend(launching_callees(db, item));
                if function.batch().is_none() {
                    let device = launch_sites_of(db, item).into_iter().map(|id| id.function);
                    todo.extend(device.filter(|f| runs_on_device(db, *f)));
                }
            } else {
                refuse_function(&function, refusals);
                for (caller, expr) in callers(&function, refusals) {
                    calls.push((caller, item, expr));
                    todo.push(caller);
                }
            }
            for facts in launches(db, item) {
                if let Child::Kernel(child) = facts.child
                    && facts.recursive
                {
                    todo.push(child);
                }
            }
        }
        members.sort_by_key(|f| (f.file(db).path(db).to_path_buf(), f.start(db)));
        let index = |item: FunctionItem<'db>| members.iter().position(|m| *m == item);
        let functions: Vec<Function<'db>> = members.iter().map(|item| Function::new(db, *item)).collect();
        let mut found = Vec::new();
        for (caller, callee, expr) in calls {
            if let (Some(caller), Some(callee)) = (index(caller), index(callee)) {
                found.extend(call(&functions[caller], caller, callee, expr, refusals));
            }
        }
        found.sort_by_key(|c| (c.caller, c.list.start));
        let mut sites = Vec::new();
        let mut site_of = Vec::new();
        for (at, function) in functions.iter().enumerate() {
            for number in 0..launches(db, function.item).len() {
                let id = LaunchId {
                    function: function.item,
                    index: number as u32,
                };
                if let Ok(site) = Site::new(db, id) {
                    sites.push(site);
                    site_of.push(at);
                }
            }
        }
        Cluster {
            functions,
            calls: found,
            sites,
            site_of,
        }
    }

    /// The functions that this one calls, itself first.
    pub fn reached_from(&self, function: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::from([function]);
        let mut todo = vec![function];
        while let Some(at) = todo.pop() {
            for call in self.calls.iter().filter(|c| c.caller == at) {
                if seen.insert(call.callee) {
                    todo.push(call.callee);
                }
            }
        }
        seen
    }

    /// The index of a function.
    pub fn index(&self, item: FunctionItem<'db>) -> Option<usize> {
        self.functions.iter().position(|f| f.item == item)
    }

    /// The launches that one thread of a kernel may come to one after the other, as its calls of device functions repeat: for
    /// each function whether that is so.
    pub fn is_repeated(&self, function: usize) -> bool {
        let mut seen = HashSet::new();
        let mut todo = vec![function];
        while let Some(at) = todo.pop() {
            if !seen.insert(at) {
                continue;
            }
            let mut callers: BTreeMap<usize, usize> = BTreeMap::new();
            for call in self.calls.iter().filter(|c| c.callee == at) {
                if call.repeated || call.caller == at {
                    return true;
                }
                *callers.entry(call.caller).or_default() += 1;
                todo.push(call.caller);
            }
            if callers.values().any(|n| *n > 1) || callers.len() > 1 && !self.functions[at].is_kernel() {
                return true;
            }
        }
        false
    }
}

/// The device functions with launches that a function calls, directly or not.
fn launching_callees<'db>(db: &'db dyn Db, from: FunctionItem<'db>) -> Vec<FunctionItem<'db>> {
    let mut seen = HashSet::from([from]);
    let mut asked = HashSet::new();
    let mut todo = vec![from];
    let mut found = Vec::new();
    while let Some(item) = todo.pop() {
        for expr in &body(db, item).exprs {
            let ExprKind::Call { name: Some(name), .. } = &expr.kind else {
                continue;
            };
            // What a name means in a file is asked once: hundreds of overloads may call one another by it.
            if hides(db, item, name) || !asked.insert((item.file(db), name.clone())) {
                continue;
            }
            for callee in functions_in(db, item, name) {
                let ours = is_header(db, callee.file(db));
                if ours || !callee.has_body(db) || callee.signature(db).kernel || !seen.insert(callee) {
                    continue;
                }
                // The test saves a look at the many functions that launch nothing.
                if may_launch(db, callee) && !launches(db, callee).is_empty() {
                    found.push(callee);
                }
                todo.push(callee);
            }
        }
    }
    found
}

/// A function that asks for its own head can't get another parameter.
pub fn refuse_own_head(function: &Function<'_>, refusals: &mut Refusals) {
    for found in &effects(function.db, function.item).own_name {
        if OWN_HEAD.contains(&found.what.as_str()) {
            let text = format!("`{}` uses {}, which tells its parameters", function.name(), found.what);
            refusals.add(text, Some(found.place));
        }
    }
}

/// A device function that can't get another parameter.
fn refuse_function(function: &Function<'_>, refusals: &mut Refusals) {
    let db = function.db;
    refuse_own_head(function, refusals);
    let signature = function.item.signature(db);
    let name = function.name();
    let here = Some(function.name_place());
    if signature.host || !signature.device {
        refusals.add(
            format!("`{name}`, which launches or calls what launches, is a function of the host, too"),
            here,
        );
    }
    if signature.conditional {
        refusals.add(
            format!("`{name}` is defined under an #if, where another definition may take its place"),
            here,
        );
    }
    if (signature.member || name.contains("operator")) && !members::can_be_given(db, function.item) {
        refusals.add(
            format!("`{name}` is a member function, which can't be given an aggregator"),
            here,
        );
    }
    if let Some(declaration) = declarations_of(db, function.item).first() {
        let declaration = Function::new(db, *declaration);
        refusals.add(
            format!("`{name}` is declared apart from its definition, and can't be given an aggregator there"),
            Some(declaration.name_place()),
        );
    }
    let others = functions_named(db, function.file, function.item.name(db));
    if let Some(other) = others.into_iter().find(|f| f.has_body(db) && *f != function.item) {
        refusals.add(
            format!("`{name}` has several definitions (an overload or a specialisation)"),
            Some(Function::new(db, other).name_place()),
        );
    }
    if let Some(error) = syntax_error(db, function.item) {
        refusals.add(
            format!("`{name}` isn't understood completely: a syntax error"),
            Some(function.place(error)),
        );
    }
    for (span, reason) in &function.body.problems {
        refusals.add(
            format!("`{name}` isn't understood completely: {reason}"),
            Some(function.place(*span)),
        );
    }
}

/// Who calls a device function, and where. All mentions of it must be plain calls by device code.
pub fn callers<'db>(function: &Function<'db>, refusals: &mut Refusals) -> Vec<(FunctionItem<'db>, ExprId)> {
    let db = function.db;
    let name = function.name();
    let mut found = Vec::new();
    for mention in members::all_mentions(db, function.item) {
        let caller = function_around(db, mention).map(|f| Function::new(db, f));
        let call = caller.as_ref().and_then(|caller| {
            caller.body.exprs.iter().position(|expr| {
                let ExprKind::Call {
                    callee, name: called, ..
                } = &expr.kind
                else {
                    return false;
                };
                let at = caller.body.expr(*callee);
                let means = match called {
                    Some(called) => {
                        unqualified(called) == name && functions_in(db, caller.item, called).contains(&function.item)
                    }
                    None => members::is_called(db, function.item, caller.item, &caller.body, *callee),
                };
                let here = at.span.shift(caller.start);
                !expr.from_macro
                    && !at.from_macro
                    && here.contains(mention.range)
                    && (called.is_some() || here.end == mention.range.end)
                    && means
            })
        });
        let (Some(caller), Some(call)) = (caller, call) else {
            refusals.add(
                format!("`{name}` is mentioned where it isn't called: some calls may be unseen"),
                Some(mention),
            );
            continue;
        };
        let signature = caller.item.signature(db);
        if !signature.kernel && !signature.device {
            refusals.add(format!("the host calls `{name}`"), Some(mention));
            continue;
        }
        let own = caller.body.exprs[call].span;
        let lambda = caller
            .body
            .exprs
            .iter()
            .any(|e| matches!(e.kind, ExprKind::Lambda { .. }) && e.span.contains(own));
        if lambda && caller.batch().is_none() {
            refusals.add(
                format!("`{name}` is called in a lambda, and who calls that when isn't known"),
                Some(mention),
            );
            continue;
        }
        found.push((caller.item, ExprId(call as u32)));
    }
    if found.is_empty() && refusals.is_empty() {
        refusals.add(
            format!("no kernel in sight calls `{name}`: only a kernel knows when its last thread leaves"),
            Some(function.name_place()),
        );
    }
    found
}

/// A call with the place of its argument list.
fn call(caller: &Function<'_>, at: usize, callee: usize, expr: ExprId, refusals: &mut Refusals) -> Option<Call> {
    let body = &caller.body;
    let ExprKind::Call {
        callee: named,
        template_args,
        args,
        ..
    } = &body.expr(expr).kind
    else {
        return None;
    };
    let span = body.expr(expr).span.shift(caller.start);
    let behind = template_args
        .map_or(body.expr(*named).span, |t| t)
        .shift(caller.start)
        .end;
    let behind = behind.max(body.expr(*named).span.shift(caller.start).end);
    let rest = TextRange::new(behind, span.end).text(&caller.text);
    if !rest.trim_start().starts_with('(') || !rest.ends_with(')') {
        refusals.add(
            "the arguments of this call are not understood",
            Some(caller.place(body.expr(expr).span)),
        );
        return None;
    }
    let open = behind + (rest.len() - rest.trim_start().len()) as u32;
    let places = statement_places(caller.db, caller.item);
    let jumps = body.stmts.iter().any(|stmt| matches!(stmt.kind, StmtKind::Goto(_)));
    Some(Call {
        caller: at,
        callee,
        expr,
        args: args.clone(),
        list: TextRange::new(open, span.end),
        repeated: jumps || !places.loops_around(body, expr).is_empty(),
    })
}

/// The parameter that an expression is nothing but.
pub fn parameter(body: &Body, expr: ExprId) -> Option<(usize, BindingId)> {
    let ExprKind::Name(Name::Local(binding)) = body.expr(body.strip_parens(expr)).kind else {
        return None;
    };
    let index = body.params.iter().position(|p| *p == binding)?;
    Some((index, binding))
}
