//! Pointers to local and shared memory that are passed to child grids, which cannot access either.
//!
//! A forward dataflow over the control flow: for every local pointer, and every pointer in a local struct, what it may point
//! into. A variable that may change behind the analysis' back (its address is taken, a lambda mentions it) counts as unknown.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::facts::closures::copies_argument;
use crate::facts::effects::{leads_too_far, summary};
use crate::facts::uniformity::class_changes;
use crate::facts::uniformity::memory::{Class, Places, Root};
use crate::hir::flow::{BlockId, Dominators, Flow, Step};
use crate::hir::items::FunctionItem;
use crate::hir::names::unqualified;
use crate::hir::reference_names::may_be_a_reference;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtKind, Storage, body, parameters};

/// Memory that a child grid cannot access.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub enum Private {
    /// A variable of the function, or memory that one of its pointer parameters points into.
    Variable(BindingId),
    /// A `__shared__` variable at namespace scope.
    SharedGlobal(String),
}

/// A pointer that is passed to a child grid.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Escape<'db> {
    /// The argument of the launch, or of a call.
    pub span: Span,
    /// What it points into: for a parameter, whatever the caller passes.
    pub into: Private,
    /// The variable is a parameter that is a pointer itself.
    pub through_parameter: bool,
    /// The child's name, as written at the launch.
    pub child: Option<String>,
    /// A call: the function that passes the pointer on, and the argument there.
    pub passed_on: Option<(FunctionItem<'db>, Span)>,
}

/// What a pointer may point into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// Memory that a child can access, or nothing is known.
    Elsewhere,
    /// Whatever the parameter points into.
    Parameter(BindingId),
    /// This; the pointer was made in this block.
    Private(Private, u32),
}

type Targets = BTreeSet<Target>;

/// Pointers by field: `""` for a plain pointer, `a.b` for a pointer in a struct.
type Value = BTreeMap<String, Targets>;

type State = BTreeMap<(BindingId, String), Targets>;

/// The pointers of a function that are passed to child grids and certainly, or on a path that nothing excludes, point into
/// memory that a child cannot access, or into what a parameter points into.
#[salsa::tracked(cycle_result = recursive)]
pub fn escapes<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Escape<'db>> {
    let signature = function.signature(db);
    if !(signature.kernel || signature.device) || summary(db, function).launches.is_empty() {
        return Vec::new();
    }
    let body = body(db, function);
    // What wasn't understood may set any pointer.
    if !body.problems.is_empty() {
        return Vec::new();
    }
    let flow = Flow::of(&body);
    let analysis = Analysis::new(db, function, &body);
    let states = analysis.states(&flow);
    let post = Dominators::post(&flow);
    let mut found = Vec::new();
    for block in &flow.order {
        let Some(mut state) = states[block.index()].clone() else {
            continue;
        };
        for step in &flow.block(*block).steps {
            if let Step::Expr(expr) = step {
                analysis.leaving(*expr, *block, &state, &post, &mut found);
            }
            analysis.step(step, *block, &mut state);
        }
    }
    found.sort_by_key(|e: &Escape<'_>| e.span);
    found.dedup_by(|a, b| (a.span, &a.into) == (b.span, &b.into));
    found
}

fn recursive<'db>(_: &'db dyn Db, _: salsa::Id, _: FunctionItem<'db>) -> Vec<Escape<'db>> {
    Vec::new()
}

/// Where what a function returns points to.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
enum Returned {
    /// Where this parameter points to.
    Parameter(usize),
    /// Into this shared variable.
    Shared(String),
    /// Elsewhere, or that isn't known.
    Elsewhere,
}

/// Where the pointer that a function returns may point to, or each of those in a class that it returns.
#[salsa::tracked(cycle_result = returned_by_itself)]
fn returned<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<(String, Returned)> {
    let body = body(db, function);
    if !body.problems.is_empty() || body.cut || leads_too_far(db, function) {
        return unknown_result();
    }
    let flow = Flow::of(&body);
    let analysis = Analysis::new(db, function, &body);
    let states = analysis.states(&flow);
    let mut found = Vec::new();
    for block in &flow.order {
        let Some(mut state) = states[block.index()].clone() else {
            continue;
        };
        for step in &flow.block(*block).steps {
            if let Step::Return(value) = step {
                let pointers = analysis.value(*value, *block, &state);
                if pointers.is_empty() {
                    found.extend(unknown_result());
                }
                for (path, targets) in &pointers {
                    let seen = analysis.seen_by_callers(targets).into_iter();
                    found.extend(seen.map(|one| (path.clone(), one)));
                }
            }
            analysis.step(step, *block, &mut state);
        }
    }
    found.dedup();
    found
}

fn returned_by_itself<'db>(_: &'db dyn Db, _: salsa::Id, _: FunctionItem<'db>) -> Vec<(String, Returned)> {
    unknown_result()
}

fn unknown_result() -> Vec<(String, Returned)> {
    vec![(String::new(), Returned::Elsewhere)]
}

/// Variables that may be set other than by an assignment that the analysis sees.
pub(crate) fn changed_elsewhere<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body) -> HashSet<BindingId> {
    changed_by_what_is_unclear(db, function, body, &HashSet::new())
}

/// The same; what is `clear` is understood though the body doesn't say so.
fn changed_by_what_is_unclear<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    clear: &HashSet<ExprId>,
) -> HashSet<BindingId> {
    let mut found = class_changes(db, function).clone();
    let places = Places { db, function, body };
    let object = |e: ExprId| denoted(&places, e);
    for (index, expr) in body.exprs.iter().enumerate() {
        match &expr.kind {
            _ if clear.contains(&ExprId(index as u32)) => {}
            ExprKind::AddrOf(place) => found.extend(object(*place)),
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => found.extend(mentions),
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => {
                let by_reference = match callee(db, function, body, *target, name.as_deref(), args) {
                    Callee::Known(_) => continue,
                    Callee::Functions(all, _) => Some(all),
                    _ => None,
                };
                for (i, arg) in args.iter().enumerate() {
                    let by_value = by_reference.as_ref().is_some_and(|all| {
                        all.iter().all(|f| {
                            parameters(db, *f)
                                .get(i)
                                .is_some_and(|p| !p.ty.reference && !p.ty.complex)
                        })
                    });
                    if !by_value && !copies_argument(db, function, body, *target, i) {
                        found.extend(object(*arg));
                    }
                }
                // A member function may change its object.
                if let ExprKind::Field { base, arrow: false, .. } = &body.expr(body.strip_parens(*target)).kind {
                    found.extend(object(*base));
                }
            }
            _ => {}
        }
    }
    for stmt in &body.stmts {
        match &stmt.kind {
            StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } => found.extend(mentions),
            StmtKind::Decl(decls) => {
                for decl in decls.iter().filter(|d| body.binding(d.binding).ty.reference) {
                    found.extend(decl.init.into_iter().flat_map(object));
                }
            }
            _ => {}
        }
    }
    found
}

/// The local variables of which a place may be the whole or a part: `x`, `x.f`, `(0, x)`, `c ? x : y`, `(int&)x`.
pub(crate) fn denoted(places: &Places<'_>, e: ExprId) -> Vec<BindingId> {
    let body = places.body;
    let mut found = Vec::new();
    let mut pending = vec![e];
    while let Some(e) = pending.pop() {
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => found.push(*b),
            ExprKind::Paren(inner)
            | ExprKind::Comma(_, inner)
            | ExprKind::Assign { place: inner, .. }
            | ExprKind::IncDec {
                place: inner,
                prefix: true,
                ..
            }
            | ExprKind::Field {
                base: inner,
                arrow: false,
                ..
            } => pending.push(*inner),
            ExprKind::Conditional { then, otherwise, .. } => pending.extend([*then, *otherwise]),
            ExprKind::Cast { ty, operand, .. } if ty.contains('&') => pending.push(*operand),
            // An element of an array that is a field.
            ExprKind::Index { base, .. } if is_array_field(places, *base) => pending.push(*base),
            _ => {}
        }
    }
    found
}

fn is_array_field(places: &Places<'_>, e: ExprId) -> bool {
    let field = matches!(
        places.body.expr(places.body.strip_parens(e)).kind,
        ExprKind::Field { arrow: false, .. }
    );
    field && places.shape(e).is_none_or(|s| s.dims > 0 || s.pointers == 0)
}

struct Analysis<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    places: Places<'a>,
    unknown: HashSet<BindingId>,
}

impl<'a, 'db: 'a> Analysis<'a, 'db> {
    fn new(db: &'db dyn Db, function: FunctionItem<'db>, body: &'a Body) -> Analysis<'a, 'db> {
        let places = Places { db, function, body };
        let mut analysis = Analysis {
            db,
            function,
            body,
            places,
            unknown: HashSet::new(),
        };
        let designated = (0..body.exprs.len() as u32)
            .map(ExprId)
            .filter(|e| analysis.designated(*e).is_some());
        let mut unknown = changed_by_what_is_unclear(db, function, body, &designated.collect());
        unknown.extend(analysis.handed_on_arrays());
        analysis.unknown = unknown;
        analysis
    }

    /// What the pointers may point into where blocks begin.
    fn states(&self, flow: &Flow) -> Vec<Option<State>> {
        let mut entry = State::new();
        for parameter in &self.body.params {
            if self.body.binding(*parameter).ty.is_pointer_like() {
                entry.insert(
                    (*parameter, String::new()),
                    Targets::from([Target::Parameter(*parameter)]),
                );
            }
        }
        let mut states: Vec<Option<State>> = vec![None; flow.blocks.len()];
        states[Flow::ENTRY.index()] = Some(entry);
        // Sets only grow, so this ends.
        let mut pending: BTreeSet<(u32, BlockId)> = BTreeSet::from([(0, Flow::ENTRY)]);
        while let Some((_, block)) = pending.pop_first() {
            self.db.unwind_if_revision_cancelled();
            let Some(mut state) = states[block.index()].clone() else {
                continue;
            };
            for step in &flow.block(block).steps {
                self.step(step, block, &mut state);
            }
            for to in flow.block(block).targets() {
                let merged = match &states[to.index()] {
                    None => state.clone(),
                    Some(old) => {
                        let mut merged = old.clone();
                        for (key, targets) in &state {
                            merged.entry(key.clone()).or_default().extend(targets.iter().cloned());
                        }
                        merged
                    }
                };
                if states[to.index()].as_ref() != Some(&merged) {
                    states[to.index()] = Some(merged);
                    pending.insert((flow.position[to.index()], *to));
                }
            }
        }
        states
    }

    /// The field and the value of `.field = value`.
    fn designated(&self, e: ExprId) -> Option<(String, ExprId)> {
        let expr = self.body.expr(e);
        let ExprKind::Unknown { parts, .. } = &expr.kind else {
            return None;
        };
        if expr.from_macro {
            return None;
        }
        let text = self.function.text(self.db);
        let (field, _) = expr.span.text(&text).strip_prefix('.')?.split_once('=')?;
        let field = field.trim();
        let plain = !field.is_empty() && field.chars().all(|c| c.is_alphanumeric() || c == '_');
        Some((plain.then(|| field.to_owned())?, *parts.last()?))
    }

    /// Objects with arrays of pointers that are used other than by one of their elements: whoever gets them may set these.
    fn handed_on_arrays(&self) -> HashSet<BindingId> {
        let body = self.body;
        let mut elements: HashSet<ExprId> = HashSet::new();
        for expr in &body.exprs {
            if let ExprKind::Index { base, .. } = &expr.kind {
                elements.insert(body.strip_parens(*base));
            }
        }
        let whole = (0..body.exprs.len() as u32).map(ExprId).filter(|e| {
            let place = matches!(
                body.expr(*e).kind,
                ExprKind::Name(Name::Local(_)) | ExprKind::Field { arrow: false, .. }
            );
            let array = |e: ExprId| self.places.shape(e).is_some_and(|s| s.dims > 0 && s.pointers > 0);
            place && !elements.contains(e) && array(*e)
        });
        whole.filter_map(|e| self.key(e)).map(|(binding, _)| binding).collect()
    }

    /// What callers know of where a pointer points to that is returned.
    fn seen_by_callers(&self, targets: &Targets) -> Vec<Returned> {
        let one = |target: &Target| match target {
            Target::Parameter(p) => {
                let index = self.body.params.iter().position(|other| other == p);
                index.map_or(Returned::Elsewhere, Returned::Parameter)
            }
            Target::Private(Private::SharedGlobal(name), _) => Returned::Shared(name.clone()),
            Target::Private(Private::Variable(b), _) => {
                let binding = self.body.binding(*b);
                match binding.storage {
                    Storage::Shared | Storage::ExternShared => Returned::Shared(binding.name.clone()),
                    _ => Returned::Elsewhere,
                }
            }
            Target::Elsewhere => Returned::Elsewhere,
        };
        targets.iter().map(one).collect()
    }

    /// What a call's result may point into.
    fn result(&self, e: ExprId, block: BlockId, state: &State) -> Value {
        let ExprKind::Call {
            callee: target,
            name,
            args,
            ..
        } = &self.body.expr(e).kind
        else {
            return elsewhere();
        };
        let Callee::Functions(all, None) = callee(self.db, self.function, self.body, *target, name.as_deref(), args)
        else {
            return elsewhere();
        };
        let [function] = all.as_slice() else { return elsewhere() };
        if function.signature(self.db).member || self.returns_a_reference(*function) {
            return elsewhere();
        }
        let mut value = Value::new();
        for (path, one) in returned(self.db, *function) {
            if path.is_empty() && !self.returns_a_pointer(*function) {
                return elsewhere();
            }
            let targets = value.entry(path.clone()).or_default();
            let arg = match one {
                Returned::Parameter(index) => args.get(*index),
                _ => None,
            };
            match (one, arg) {
                (_, Some(arg)) => targets.extend(self.value(*arg, block, state).into_values().flatten()),
                (Returned::Shared(name), _) => {
                    targets.insert(Target::Private(Private::SharedGlobal(name.clone()), block.0));
                }
                _ => {
                    targets.insert(Target::Elsewhere);
                }
            }
        }
        if value.is_empty() { elsewhere() } else { value }
    }

    fn returns_a_reference(&self, function: FunctionItem<'db>) -> bool {
        let head = function.signature(self.db).head_span;
        let text = function.text(self.db);
        let head = head.text(&text);
        head.contains('(') || may_be_a_reference(self.db, function.file(self.db), head)
    }

    fn returns_a_pointer(&self, function: FunctionItem<'db>) -> bool {
        let head = function.signature(self.db).head_span;
        let text = function.text(self.db);
        head.text(&text).contains('*')
    }

    fn step(&self, step: &Step, block: BlockId, state: &mut State) {
        match step {
            Step::Decl { binding, init } => {
                let value = match init {
                    Some(init) => self.initial(*binding, *init, block, state),
                    None => Value::new(),
                };
                assign(state, *binding, "", value);
            }
            Step::Element { binding, .. } => assign(state, *binding, "", elsewhere()),
            Step::Expr(e) => {
                if let ExprKind::Assign { op: None, place, value } = &self.body.expr(*e).kind
                    && let Some((binding, path)) = self.key(*place)
                {
                    let value = self.value(*value, block, state);
                    assign(state, binding, &path, value);
                }
            }
            Step::Stmt(_) | Step::Return(_) | Step::Opaque(_) => {}
        }
    }

    /// The arguments of a launch, or of a call that passes them on to one.
    fn leaving(&self, expr: ExprId, block: BlockId, state: &State, post: &Dominators, found: &mut Vec<Escape<'db>>) {
        let body = self.body;
        let mut check = |arg: ExprId, child: Option<String>, passed_on: Option<(FunctionItem<'db>, Span)>| {
            for targets in self.value(arg, block, state).values() {
                let Some((into, through_parameter)) = self.private(targets, block, post) else {
                    continue;
                };
                found.push(Escape {
                    span: body.expr(arg).span,
                    into,
                    through_parameter,
                    child: child.clone(),
                    passed_on,
                });
            }
        };
        match &body.expr(expr).kind {
            ExprKind::Launch(launch) => {
                for arg in &launch.args {
                    check(*arg, launch.kernel.clone(), None);
                }
            }
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => {
                let Callee::Functions(all, None) = callee(self.db, self.function, body, *target, name.as_deref(), args)
                else {
                    return;
                };
                let [function] = all.as_slice() else { return };
                if leads_too_far(self.db, *function) {
                    return;
                }
                let callee_body = crate::hir::body(self.db, *function);
                for escape in escapes(self.db, *function) {
                    let Private::Variable(binding) = escape.into else {
                        continue;
                    };
                    let index = callee_body.params.iter().position(|p| *p == binding);
                    if let Some(arg) = index.and_then(|i| args.get(i))
                        && escape.through_parameter
                    {
                        check(*arg, escape.child.clone(), Some((*function, escape.span)));
                    }
                }
            }
            _ => {}
        }
    }

    /// What a child cannot access, when the pointer points there on every path, or at least whenever it was set to it.
    fn private(&self, targets: &Targets, block: BlockId, post: &Dominators) -> Option<(Private, bool)> {
        let mut found = None;
        let mut all = true;
        for target in targets {
            match target {
                Target::Elsewhere => all = false,
                Target::Parameter(p) => found = found.or(Some((Private::Variable(*p), true))),
                Target::Private(private, made) => {
                    if post.dominates(block, BlockId(*made)) {
                        return Some((private.clone(), false));
                    }
                    if found.as_ref().is_none_or(|(_, parameter)| *parameter) {
                        found = Some((private.clone(), false));
                    }
                }
            }
        }
        let mixed = targets.iter().any(|t| matches!(t, Target::Parameter(_))) && targets.len() > 1;
        found.filter(|_| all && !mixed)
    }

    /// A local variable, or a field of one.
    fn key(&self, place: ExprId) -> Option<(BindingId, String)> {
        match &self.body.expr(place).kind {
            ExprKind::Name(Name::Local(b)) => (!self.body.binding(*b).ty.reference).then(|| (*b, String::new())),
            ExprKind::Paren(e) => self.key(*e),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => {
                let (binding, path) = self.key(*base)?;
                Some((binding, join(&path, field)))
            }
            ExprKind::Index { base, index } if self.is_array_of_pointers(*base) => {
                let (binding, path) = self.key(*base)?;
                Some((binding, join(&path, &self.element(*index))))
            }
            _ => None,
        }
    }

    fn is_array_of_pointers(&self, e: ExprId) -> bool {
        self.places.shape(e).is_some_and(|s| s.dims == 1 && s.pointers > 0)
    }

    /// The element of an array of pointers, as a field.
    fn element(&self, index: ExprId) -> String {
        match self.body.expr(self.body.strip_parens(index)).kind {
            ExprKind::Literal(Literal::Int(index)) => format!("[{index}]"),
            _ => SOME_ELEMENT.to_owned(),
        }
    }

    fn initial(&self, binding: BindingId, init: ExprId, block: BlockId, state: &State) -> Value {
        let ty = &self.body.binding(binding).ty;
        if ty.pointers > 0
            && ty.array.len() == 1
            && let ExprKind::InitList(args) = &self.body.expr(init).kind
        {
            return self.elements(args, block, state);
        }
        if ty.is_value()
            && let ExprKind::InitList(args) | ExprKind::Construct { args, .. } = &self.body.expr(init).kind
            && let Some(value) = self.fields(&ty.base, args, block, state)
        {
            return value;
        }
        if ty.is_value() || ty.is_pointer_like() && ty.array.is_empty() {
            self.value(init, block, state)
        } else {
            Value::new()
        }
    }

    /// A struct made from its fields in order; `None` when that isn't certain.
    fn fields(&self, ty: &str, args: &[ExprId], block: BlockId, state: &State) -> Option<Value> {
        let names = match self
            .places
            .class_kind(ty, &self.function.signature(self.db).template_types)
        {
            Class::Fields(names, _) if names.len() >= args.len() => names,
            _ => return None,
        };
        let mut value = Value::new();
        for (name, arg) in names.iter().zip(args) {
            let (name, arg) = match self.designated(*arg) {
                Some((field, value)) => (field, value),
                None => (name.clone(), *arg),
            };
            let inner = match &self.body.expr(arg).kind {
                ExprKind::InitList(inner) => self.field_list(ty, &name, inner, block, state),
                _ => self.value(arg, block, state),
            };
            for (path, targets) in inner {
                value.insert(join(&name, &path), targets);
            }
        }
        Some(value)
    }

    /// A list in braces for one field: an array's elements, or the fields of a class.
    fn field_list(&self, ty: &str, name: &str, args: &[ExprId], block: BlockId, state: &State) -> Value {
        match self.places.field(ty.trim_start_matches("struct ").trim(), name) {
            Some(shape) if shape.dims == 1 && shape.pointers > 0 => self.elements(args, block, state),
            Some(shape) if shape.dims == 0 && shape.pointers == 0 => {
                self.fields(&shape.base, args, block, state).unwrap_or_else(elsewhere)
            }
            _ => elsewhere(),
        }
    }

    /// The elements of an array of pointers.
    fn elements(&self, args: &[ExprId], block: BlockId, state: &State) -> Value {
        let mut value = Value::new();
        for (index, arg) in args.iter().enumerate() {
            let targets = self.value(*arg, block, state).into_values().flatten();
            value.insert(format!("[{index}]"), targets.collect());
        }
        value
    }

    fn value(&self, e: ExprId, block: BlockId, state: &State) -> Value {
        let body = self.body;
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => {
                let binding = body.binding(*b);
                if !binding.ty.array.is_empty() && binding.storage != Storage::Param {
                    return self.address(e, block, state);
                }
                if binding.ty.reference || binding.storage == Storage::Static || self.unknown.contains(b) {
                    return elsewhere();
                }
                let own = state
                    .range((*b, String::new())..)
                    .take_while(|((other, _), _)| other == b);
                own.map(|((_, path), targets)| (path.clone(), targets.clone()))
                    .collect()
            }
            ExprKind::Name(Name::Other(_)) => self.address(e, block, state),
            ExprKind::Literal(Literal::Null | Literal::Int(0)) => Value::new(),
            ExprKind::Paren(e) | ExprKind::Comma(_, e) => self.value(*e, block, state),
            ExprKind::Assign { op: None, value, .. } => self.value(*value, block, state),
            ExprKind::Cast { ty, operand, .. } if ty.contains('*') => {
                self.value(self.without_offset(*operand), block, state)
            }
            // A pointer as a number, or a number that is one.
            ExprKind::Cast { ty, operand, .. } if holds_a_pointer(&self.places.alias(ty.trim())) => {
                self.value(*operand, block, state)
            }
            ExprKind::Call { .. } => self.result(e, block, state),
            ExprKind::Index { base, .. } if self.is_array_of_pointers(*base) => match self.key(e) {
                Some((binding, path)) => self.element_of(binding, &path, state),
                None => elsewhere(),
            },
            ExprKind::AddrOf(place) => self.address(*place, block, state),
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                let pointer = |e: ExprId| self.places.shape(e).is_some_and(|s| s.pointers > 0 || s.dims > 0);
                match (pointer(*a), pointer(*b)) {
                    (true, false) => self.value(*a, block, state),
                    (false, true) => self.value(*b, block, state),
                    _ => elsewhere(),
                }
            }
            ExprKind::Conditional { then, otherwise, .. } => {
                let mut both = self.value(*then, block, state);
                for (path, targets) in self.value(*otherwise, block, state) {
                    both.entry(path).or_default().extend(targets);
                }
                both
            }
            ExprKind::Construct { ty, args } => self.fields(ty, args, block, state).unwrap_or_else(elsewhere),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => {
                if self.places.shape(e).is_some_and(|s| s.dims > 0) {
                    return self.address(e, block, state);
                }
                let inner = self.value(*base, block, state);
                let below = inner.into_iter().filter_map(|(path, targets)| {
                    let rest = path.strip_prefix(field.as_str())?;
                    let rest = if rest.is_empty() { rest } else { rest.strip_prefix('.')? };
                    Some((rest.to_owned(), targets))
                });
                below.collect()
            }
            ExprKind::Index { .. } | ExprKind::Deref(_) if self.places.shape(e).is_some_and(|s| s.dims > 0) => {
                self.address(e, block, state)
            }
            _ => elsewhere(),
        }
    }

    /// A number that is a pointer, without what is added to it.
    fn without_offset(&self, e: ExprId) -> ExprId {
        let body = self.body;
        let literal = |e: ExprId| matches!(body.expr(body.strip_parens(e)).kind, ExprKind::Literal(Literal::Int(_)));
        match body.expr(body.strip_parens(e)).kind {
            ExprKind::Binary(BinOp::Add | BinOp::Sub, number, offset) if literal(offset) => number,
            ExprKind::Binary(BinOp::Add, offset, number) if literal(offset) => number,
            _ => e,
        }
    }

    /// What an element of an array of pointers may point into; of one that isn't known, what any of them may.
    fn element_of(&self, binding: BindingId, path: &str, state: &State) -> Value {
        let declared = self.body.binding(binding);
        if declared.ty.reference || declared.storage != Storage::Local || self.unknown.contains(&binding) {
            return elsewhere();
        }
        let array = path.rsplit_once('.').map_or("", |(array, _)| array);
        let any = join(array, SOME_ELEMENT);
        let own = state.iter().filter(|((other, key), _)| {
            let inside = key
                .strip_prefix(array)
                .is_some_and(|rest| rest.trim_start_matches('.').starts_with('['));
            *other == binding && (*key == path || *key == any || path == any && inside)
        });
        let targets: Targets = own.flat_map(|(_, targets)| targets.iter().cloned()).collect();
        match targets.is_empty() {
            true => elsewhere(),
            false => Value::from([(String::new(), targets)]),
        }
    }

    /// A pointer to a place.
    fn address(&self, place: ExprId, block: BlockId, state: &State) -> Value {
        let target = match self.places.root(place) {
            Root::Object(b) => match self.body.binding(b).storage {
                Storage::Static => Target::Elsewhere,
                _ => Target::Private(Private::Variable(b), block.0),
            },
            Root::Through(b) => {
                let ty = &self.body.binding(b).ty;
                if ty.reference || self.unknown.contains(&b) {
                    return elsewhere();
                }
                let targets = state.get(&(b, String::new())).cloned();
                return Value::from([(String::new(), targets.unwrap_or_default())]);
            }
            Root::Global(name) => match meaning_in(self.db, self.function, &name) {
                Meaning::Global(global) if global.shared => {
                    Target::Private(Private::SharedGlobal(unqualified(&name).to_owned()), block.0)
                }
                _ => Target::Elsewhere,
            },
            Root::Other => Target::Elsewhere,
        };
        Value::from([(String::new(), Targets::from([target]))])
    }
}

/// An element of an array that isn't known.
const SOME_ELEMENT: &str = "[?]";

/// A number as wide as a pointer.
fn holds_a_pointer(ty: &str) -> bool {
    let plain = ty.strip_prefix("std::").unwrap_or(ty);
    let wide = [
        "size_t",
        "uintptr_t",
        "intptr_t",
        "uint64_t",
        "int64_t",
        "ptrdiff_t",
        "long long",
        "unsigned long long",
        "unsigned long",
        "long",
        "CUdeviceptr",
    ];
    wide.contains(&plain)
}

fn elsewhere() -> Value {
    Value::from([(String::new(), Targets::from([Target::Elsewhere]))])
}

fn join(path: &str, field: &str) -> String {
    match (path, field) {
        ("", one) | (one, "") => one.to_owned(),
        _ => format!("{path}.{field}"),
    }
}

/// Sets a variable, or a field of it with all fields in that.
fn assign(state: &mut State, binding: BindingId, path: &str, value: Value) {
    // Another element of an array may be the one that isn't known.
    let path_of_all = path
        .strip_suffix(SOME_ELEMENT)
        .map_or(path, |array| array.trim_end_matches('.'));
    let inside = |other: &str| {
        let path = path_of_all;
        path.is_empty() || other == path || other.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'))
    };
    // Of this variable alone: each assignment looks for it among thousands.
    let own = state.range((binding, String::new())..);
    let own = own.map(|(key, _)| key).take_while(|(b, _)| *b == binding);
    let old: Vec<_> = own.filter(|(_, other)| inside(other)).cloned().collect();
    for key in old {
        state.remove(&key);
    }
    for (below, targets) in value {
        state.insert((binding, join(path, &below)), targets);
    }
}
