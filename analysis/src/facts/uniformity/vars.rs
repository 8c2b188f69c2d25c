//! Which local variables can be followed exactly, and their definitions in SSA form.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::changes::Region;
use super::memory::{Class, Places};
use super::objects::{mentions, objects};
use super::references::class_changes;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::facts::closures::copies_argument;
use crate::facts::runtime_calls::{is_collector, lambdas_of_runtime_calls};
use crate::hir::flow::{BlockId, Dominators, Flow, Step, operands};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtKind, Storage, Type};

/// Index of a variable: a binding, or a field of one.
pub(super) type VarId = usize;
/// Index of a definition.
pub(super) type DefId = usize;

/// The variables of a function.
pub(super) struct Vars {
    /// For each binding that is followed, its variables: one, or one for each field.
    of: Vec<Vec<(Option<String>, VarId)>>,
    /// For each binding: fields may share storage, so that a write to one may change another.
    overlap: Vec<bool>,
    /// Binding of each variable.
    pub binding: Vec<BindingId>,
    /// The lambdas that calls of the runtime get: what they find in a variable of the function isn't known.
    lambdas: Vec<Span>,
}

/// What an assignment changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Target {
    /// These take the value.
    pub strong: Vec<VarId>,
    /// These may take it.
    pub weak: Vec<VarId>,
}

impl Vars {
    pub fn new(places: Places<'_>, escaped: &HashSet<BindingId>, templates: &[String], trusting: bool) -> Vars {
        let body = places.body;
        let mut vars = Vars {
            of: vec![Vec::new(); body.bindings.len()],
            overlap: vec![false; body.bindings.len()],
            binding: Vec::new(),
            lambdas: lambdas_of_runtime_calls(places.db, places.function, body)
                .into_iter()
                .map(|lambda| body.expr(lambda).span)
                .collect(),
        };
        let mut used_fields: HashMap<BindingId, HashSet<&str>> = HashMap::new();
        let callees: HashSet<ExprId> = body
            .exprs
            .iter()
            .filter_map(|e| match e.kind {
                ExprKind::Call { callee, .. } => Some(body.strip_parens(callee)),
                _ => None,
            })
            .collect();
        for (i, e) in body.exprs.iter().enumerate() {
            if let ExprKind::Field {
                base,
                field,
                arrow: false,
            } = &e.kind
                && !callees.contains(&ExprId(i as u32))
                && let ExprKind::Name(Name::Local(b)) = &body.expr(body.strip_parens(*base)).kind
            {
                used_fields.entry(*b).or_default().insert(field);
            }
        }
        for (i, binding) in body.bindings.iter().enumerate() {
            let id = BindingId(i as u32);
            let local = match binding.storage {
                Storage::Local => true,
                Storage::Param => body.params.contains(&id),
                _ => false,
            };
            let ty = &binding.ty;
            if !local || ty.reference || ty.complex || ty.volatile || escaped.contains(&id) {
                continue;
            }
            let kind = match ty.pointers {
                0 => places.class_kind(&ty.base, templates),
                _ => Class::Plain,
            };
            let fields = match kind {
                Class::Opaque if trusting => vec![None],
                Class::Opaque => continue,
                Class::Fields(names, overlap) if ty.array.is_empty() => {
                    vars.overlap[i] = overlap;
                    let known = |f: &str| names.iter().any(|n| n == f);
                    if !used_fields.get(&id).is_none_or(|used| used.iter().all(|f| known(f))) {
                        continue;
                    }
                    names.into_iter().map(Some).collect()
                }
                _ => vec![None],
            };
            for field in fields {
                vars.of[i].push((field, vars.binding.len()));
                vars.binding.push(id);
            }
        }
        vars
    }

    /// A variable that is declared outside of a lambda is used in it at `at`.
    pub fn captured(&self, binding: Span, at: Span) -> bool {
        self.lambdas
            .iter()
            .any(|lambda| lambda.contains(at) && !lambda.contains(binding))
    }

    /// The binding is followed.
    pub fn tracked(&self, binding: BindingId) -> bool {
        !self.of[binding.0 as usize].is_empty()
    }

    /// All variables of a binding.
    pub fn all(&self, binding: BindingId) -> Vec<VarId> {
        self.of[binding.0 as usize].iter().map(|(_, v)| *v).collect()
    }

    /// The variables that a name or a field of a name reads; empty for anything else.
    pub fn read(&self, body: &Body, e: ExprId) -> Vec<VarId> {
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => self.all(*b),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => match &body.expr(body.strip_parens(*base)).kind {
                ExprKind::Name(Name::Local(b)) => self.of[b.0 as usize]
                    .iter()
                    .filter(|(f, _)| f.as_deref() == Some(field))
                    .map(|(_, v)| *v)
                    .collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// What an assignment to `place` changes.
    pub fn target(&self, places: Places<'_>, place: ExprId) -> Target {
        let body = places.body;
        let place = body.strip_parens(place);
        match &body.expr(place).kind {
            ExprKind::Name(Name::Local(b)) => {
                let array = !body.binding(*b).ty.array.is_empty();
                let all = self.all(*b);
                if array && body.binding(*b).storage != Storage::Param {
                    return Target {
                        strong: vec![],
                        weak: all,
                    };
                }
                Target {
                    strong: all,
                    weak: vec![],
                }
            }
            ExprKind::Field { base, arrow: false, .. }
                if matches!(
                    &body.expr(body.strip_parens(*base)).kind,
                    ExprKind::Name(Name::Local(_))
                ) =>
            {
                let strong = self.read(body, place);
                let weak = match &body.expr(body.strip_parens(*base)).kind {
                    ExprKind::Name(Name::Local(b)) if self.overlap[b.0 as usize] => {
                        self.all(*b).into_iter().filter(|v| !strong.contains(v)).collect()
                    }
                    _ => vec![],
                };
                Target { strong, weak }
            }
            _ => {
                let mut weak = BTreeSet::new();
                for b in objects(places, place) {
                    weak.extend(self.all(b));
                }
                Target {
                    strong: vec![],
                    weak: weak.into_iter().collect(),
                }
            }
        }
    }
}

/// The parameter types of every declaration that a call of a function without a visible definition may mean; `None` when
/// there is none.
pub(super) fn declared<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> Option<Vec<Vec<Type>>> {
    let Meaning::Functions(all) = meaning_in(db, function, name) else {
        return None;
    };
    let types = |f: &FunctionItem<'db>| crate::hir::parameters(db, *f).iter().map(|p| p.ty.clone()).collect();
    Some(all.iter().map(types).collect())
}

/// A parameter of this type can't change the variable that is handed to it.
fn takes_value(ty: &Type) -> bool {
    !ty.complex && (!ty.reference || (ty.const_base && ty.pointers == 0))
}

/// Variables that code may change which doesn't name them.
#[derive(Debug, Default)]
pub(super) struct Escaped {
    /// They may be changed.
    pub surely: HashSet<BindingId>,
    /// They are only changed by what is most unlikely to do so, in words.
    pub hardly: HashMap<BindingId, String>,
}

/// The local variables that something else than the code that names them may read or write. `trusting`: those that are just
/// handed to a function of which nothing is known, by their name, are set apart.
pub(super) fn escaped(db: &dyn Db, function: FunctionItem<'_>, places: Places<'_>, trusting: bool) -> Escaped {
    let body = places.body;
    let mut search = Escapes {
        db,
        function,
        places,
        templates: &function.signature(db).template_types,
        trusting,
        found: Escaped::default(),
    };
    let ours = lambdas_of_runtime_calls(db, function, body);
    for (index, expr) in body.exprs.iter().enumerate() {
        match &expr.kind {
            // It changes what is assigned in it; what else stands there is looked at by itself.
            ExprKind::Lambda {
                mentions,
                body: Some(inner),
                ..
            } if ours.contains(&ExprId(index as u32)) => {
                let assigned = Region::of_stmt(body, *inner).assigned(body);
                search
                    .found
                    .surely
                    .extend(mentions.iter().filter(|b| assigned.contains(b)));
            }
            kind => search.expr(kind),
        }
    }
    for stmt in &body.stmts {
        search.stmt(&stmt.kind);
    }
    let Escaped { mut surely, mut hardly } = search.found;
    surely.extend(unsequenced(body));
    surely.extend(class_changes(db, function));
    // What stands where something wasn't understood may change whatever is named there.
    let text = function.text(db);
    for (span, _) in &body.problems {
        let words = span.text(&text).split(|c: char| !c.is_alphanumeric() && c != '_');
        let words: HashSet<&str> = words.collect();
        let named = body
            .bindings
            .iter()
            .enumerate()
            .filter(|(_, b)| words.contains(b.name.as_str()));
        surely.extend(named.map(|(i, _)| BindingId(i as u32)));
    }
    hardly.retain(|b, _| !surely.contains(b));
    Escaped { surely, hardly }
}

struct Escapes<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    places: Places<'a>,
    templates: &'a [String],
    trusting: bool,
    found: Escaped,
}

impl Escapes<'_, '_> {
    /// The variables that this is, or is a part of.
    fn objects(&mut self, e: ExprId) {
        self.found.surely.extend(objects(self.places, e));
    }

    /// An array that is used as a pointer.
    fn array_value(&mut self, e: ExprId) {
        let body = self.places.body;
        let inner = body.strip_parens(e);
        if matches!(
            body.expr(inner).kind,
            ExprKind::Name(Name::Local(_)) | ExprKind::Index { .. } | ExprKind::Field { .. }
        ) && self.places.shape(inner).is_some_and(|s| s.dims > 0)
        {
            self.objects(inner);
        }
    }

    /// Not so for a collector of our runtime, which copies what it is made of.
    fn is_unsafe_type(&self, ty: &str) -> bool {
        !is_collector(ty) && (ty.contains('&') || self.places.is_opaque(ty, self.templates))
    }

    fn expr(&mut self, kind: &ExprKind) {
        let body = self.places.body;
        match kind {
            ExprKind::AddrOf(e) => self.objects(*e),
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => {
                self.found.surely.extend(mentions);
            }
            ExprKind::Cast { ty, operand, .. } if ty.contains('&') => self.objects(*operand),
            ExprKind::Construct { ty, args } if self.is_unsafe_type(ty) => args.iter().for_each(|a| self.objects(*a)),
            ExprKind::New(args) => args.iter().for_each(|a| self.objects(*a)),
            ExprKind::Binary(BinOp::Shl | BinOp::Shr, stream, operand) => {
                if let ExprKind::Name(Name::Other(name)) = &body.expr(body.strip_parens(*stream)).kind
                    && !self.function.signature(self.db).template_names.contains(name)
                    && matches!(meaning_in(self.db, self.function, name), Meaning::Unknown)
                {
                    self.objects(*operand);
                }
            }
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => self.call(*target, name.as_deref(), args),
            _ => {}
        }
        for operand in operands(kind) {
            let element = matches!(kind, ExprKind::Index { base, .. } if *base == operand);
            if !element && !matches!(kind, ExprKind::Paren(_)) {
                self.array_value(operand);
            }
        }
    }

    fn call(&mut self, target: ExprId, name: Option<&str>, args: &[ExprId]) {
        let (db, places) = (self.db, self.places);
        let body = places.body;
        // A member function may change its object.
        if let ExprKind::Field { base, field, .. } = &body.expr(body.strip_parens(target)).kind {
            // The runtime's collectors take what they launch by value.
            let takes_launches = matches!(field.as_str(), "launch" | "launch_at_once");
            if takes_launches
                && let ExprKind::Name(Name::Local(collector)) = body.expr(body.strip_parens(*base)).kind
                && is_collector(&body.binding(collector).ty.base)
            {
                return self.objects(*base);
            }
            for b in objects(places, *base) {
                let binding = body.binding(b);
                let input = body.params.contains(&b) || binding.ty.const_base;
                self.changed(b, input, || format!("{field}() doesn't change {}", binding.name));
            }
        }
        match callee(db, self.function, body, target, name, args) {
            Callee::Known(_) => {}
            Callee::Type(ty) if !self.is_unsafe_type(&ty) => {}
            Callee::Functions(candidates, _) => {
                for f in candidates {
                    let parameters = crate::hir::parameters(db, f);
                    for (i, arg) in args.iter().enumerate() {
                        if !parameters.get(i).is_some_and(|p| takes_value(&p.ty)) {
                            self.objects(*arg);
                        }
                    }
                }
            }
            Callee::Type(ty) => {
                for b in args.iter().flat_map(|a| objects(places, *a)) {
                    let name = &body.binding(b).name;
                    let input = body.params.contains(&b);
                    self.changed(b, input, || format!("the constructor of {ty} doesn't change {name}"));
                }
            }
            Callee::Unknown => self.unknown_call(target, name.unwrap_or("a function"), args),
        }
    }

    /// What is handed to a function of which nothing is known.
    fn unknown_call(&mut self, target: ExprId, name: &str, args: &[ExprId]) {
        let places = self.places;
        let body = places.body;
        let declared = declared(self.db, self.function, name);
        for (i, arg) in args.iter().enumerate() {
            let by_value = declared
                .as_deref()
                .is_some_and(|all| all.iter().all(|params| params.get(i).is_some_and(takes_value)));
            if by_value || copies_argument(self.db, self.function, body, target, i) {
                continue;
            }
            // A parameter is seldom the result of another function; a variable often is.
            let input = declared.is_none() && !name.to_ascii_lowercase().contains("swap");
            for b in objects(places, *arg) {
                let binding = body.binding(b);
                let ty = &binding.ty;
                let constant = match ty.pointers {
                    0 => ty.const_base && places.class_kind(&ty.base, self.templates) == Class::Plain,
                    _ => ty.const_pointer,
                };
                if !constant || !ty.array.is_empty() {
                    let input = input && body.params.contains(&b);
                    self.changed(b, input, || format!("{name}() doesn't change {}", binding.name));
                }
            }
        }
    }

    /// Something of which nothing is known may change a variable. `input`: it is most unlikely to, as `text` says.
    fn changed(&mut self, b: BindingId, input: bool, text: impl FnOnce() -> String) {
        match self.trusting && input {
            true => drop(self.found.hardly.insert(b, text())),
            false => drop(self.found.surely.insert(b)),
        }
    }

    fn stmt(&mut self, kind: &StmtKind) {
        let body = self.places.body;
        match kind {
            StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } => self.found.surely.extend(mentions),
            StmtKind::Return(Some(e)) | StmtKind::Expr(e) => self.array_value(*e),
            StmtKind::RangeFor { binding, range, .. } => {
                let ty = &body.binding(*binding).ty;
                if ty.reference && !ty.const_base {
                    self.objects(*range);
                }
                self.array_value(*range);
            }
            StmtKind::Decl(decls) => {
                for d in decls {
                    let ty = &body.binding(d.binding).ty;
                    let Some(init) = d.init else { continue };
                    self.array_value(init);
                    // The reference may sit inside a class (a structured binding, a view).
                    let holds = ty.pointers == 0 && self.is_unsafe_type(&ty.base);
                    let complex = ty.complex && !is_collector(&ty.base);
                    if complex || holds || (ty.reference && !(ty.const_base && ty.pointers == 0)) {
                        self.bound(init);
                    }
                }
            }
            _ => {}
        }
    }

    /// What a reference is bound to.
    fn bound(&mut self, init: ExprId) {
        let body = self.places.body;
        let mut stack = vec![init];
        while let Some(e) = stack.pop() {
            self.objects(e);
            match &body.expr(e).kind {
                ExprKind::InitList(args) | ExprKind::Construct { args, .. } => stack.extend(args),
                ExprKind::Paren(e) => stack.push(*e),
                _ => {}
            }
        }
    }
}

/// Variables that one operand of an expression changes while another mentions them, in no certain order.
fn unsequenced(body: &Body) -> HashSet<BindingId> {
    let n = body.exprs.len();
    let mut changes = vec![false; n];
    let mut out = HashSet::new();
    let mut budget = 100_000usize;
    for (i, expr) in body.exprs.iter().enumerate() {
        let parts = operands(&expr.kind);
        let own = matches!(expr.kind, ExprKind::Assign { .. } | ExprKind::IncDec { .. });
        let inside = parts.iter().any(|p| changes.get(p.0 as usize).copied().unwrap_or(true));
        changes[i] = own || inside;
        let ordered = matches!(
            expr.kind,
            ExprKind::Logical { .. } | ExprKind::Conditional { .. } | ExprKind::Comma(..) | ExprKind::InitList(_)
        );
        // `a.x = a.y = v`: the right assignment is done before the left one.
        let chained = matches!(&expr.kind, ExprKind::Assign { op: None, place, .. } if path(body, *place));
        if !inside || parts.len() < 2 || ordered || chained {
            continue;
        }
        let mut seen: Vec<(HashSet<BindingId>, HashSet<BindingId>)> = Vec::new();
        for part in &parts {
            let (mut changed, mut mentioned) = (HashSet::new(), HashSet::new());
            let mut stack = vec![*part];
            while let Some(e) = stack.pop() {
                budget = budget.saturating_sub(1);
                match &body.expr(e).kind {
                    ExprKind::Name(Name::Local(b)) => {
                        mentioned.insert(*b);
                    }
                    ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                        let mut root = *place;
                        for _ in 0..64 {
                            match &body.expr(root).kind {
                                ExprKind::Paren(e)
                                | ExprKind::Field { base: e, .. }
                                | ExprKind::Index { base: e, .. }
                                | ExprKind::Comma(_, e) => root = *e,
                                ExprKind::Name(Name::Local(b)) => {
                                    changed.insert(*b);
                                    break;
                                }
                                _ => {
                                    changed.extend(mentions(body, *place));
                                    break;
                                }
                            }
                        }
                    }
                    _ => {}
                }
                stack.extend(operands(&body.expr(e).kind));
                if budget == 0 {
                    return (0..body.bindings.len() as u32).map(BindingId).collect();
                }
            }
            seen.push((changed, mentioned));
        }
        for (i, (changed, _)) in seen.iter().enumerate() {
            for (j, (_, mentioned)) in seen.iter().enumerate() {
                if i != j {
                    out.extend(changed.intersection(mentioned));
                }
            }
        }
    }
    out
}

fn path(body: &Body, mut e: ExprId) -> bool {
    loop {
        match &body.expr(e).kind {
            ExprKind::Paren(inner)
            | ExprKind::Field {
                base: inner,
                arrow: false,
                ..
            } => e = *inner,
            ExprKind::Name(_) => return true,
            _ => return false,
        }
    }
}

/// Where a definition comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// The value on entry.
    Entry,
    /// Merges definitions: one for each incoming edge.
    Phi(Vec<(BlockId, DefId)>),
    /// A step of its block.
    Step,
}

/// One definition of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Def {
    pub var: VarId,
    pub block: BlockId,
    pub source: Source,
}

/// A place in a body where definitions are made or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Expr(ExprId),
    Binding(BindingId),
    Return,
}

/// Definitions and uses of all variables, in SSA form (Cytron et al. 1991).
pub(super) struct Ssa {
    pub defs: Vec<Def>,
    /// The definitions that a step reads: for an assignment, the old ones of what it changes.
    pub uses: HashMap<(BlockId, At), Vec<DefId>>,
    /// The definitions that a step makes, strong ones first.
    pub makes: HashMap<(BlockId, At), Vec<DefId>>,
    /// Phi definitions at the head of each block.
    pub phis: Vec<Vec<DefId>>,
    /// Variable of the return value.
    pub result: VarId,
    /// Its definition at the exit.
    pub returned: Option<DefId>,
}

/// What a step does to variables: reads, writes (strong, weak).
fn accesses(vars: &Vars, places: Places<'_>, result: VarId, step: &Step) -> Option<(At, Vec<VarId>, Target)> {
    let body = places.body;
    match step {
        Step::Expr(e) => match &body.expr(*e).kind {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                let target = vars.target(places, *place);
                let old = target.strong.iter().chain(&target.weak).copied().collect();
                Some((At::Expr(*e), old, target))
            }
            _ => {
                let read = vars.read(body, *e);
                (!read.is_empty()).then(|| (At::Expr(*e), read, Target::default()))
            }
        },
        Step::Decl { binding, .. } | Step::Element { binding, .. } => {
            let target = Target {
                strong: vars.all(*binding),
                weak: vec![],
            };
            Some((At::Binding(*binding), vec![], target))
        }
        Step::Return(_) => {
            let target = Target {
                strong: vec![result],
                weak: vec![],
            };
            Some((At::Return, vec![], target))
        }
        Step::Stmt(_) | Step::Opaque(_) => None,
    }
}

/// Builds SSA form. `None` when the function is too large for it.
pub(super) fn ssa(flow: &Flow, dominators: &Dominators, vars: &Vars, places: Places<'_>) -> Option<Ssa> {
    let result = vars.binding.len();
    let mut ssa = Ssa {
        defs: Vec::new(),
        uses: HashMap::new(),
        makes: HashMap::new(),
        phis: vec![Vec::new(); flow.blocks.len()],
        result,
        returned: None,
    };
    for v in 0..=result {
        ssa.defs.push(Def {
            var: v,
            block: Flow::ENTRY,
            source: Source::Entry,
        });
    }
    let made = Made::of(flow, vars, places, result);
    place_phis(&mut ssa, flow, dominators, &made)?;
    name_uses(&mut ssa, flow, dominators, vars, places);
    Some(ssa)
}

/// Where variables are made.
struct Made {
    /// Of each variable, the blocks that make it.
    blocks: Vec<BTreeSet<BlockId>>,
    /// Of each, whether a block reads it that hasn't made it itself.
    crossing: Vec<bool>,
}

impl Made {
    fn of(flow: &Flow, vars: &Vars, places: Places<'_>, result: VarId) -> Made {
        let mut def_blocks: Vec<BTreeSet<BlockId>> = vec![BTreeSet::new(); result + 1];
        let mut crossing = vec![false; result + 1];
        crossing[result] = true;
        for block in &flow.order {
            let mut here = HashSet::new();
            for step in &flow.block(*block).steps {
                let Some((_, reads, target)) = accesses(vars, places, result, step) else {
                    continue;
                };
                for v in reads {
                    crossing[v] |= !here.contains(&v);
                }
                for v in target.strong.into_iter().chain(target.weak) {
                    here.insert(v);
                    def_blocks[v].insert(*block);
                }
            }
            if let crate::hir::flow::Terminator::Branch {
                on: crate::hir::flow::Condition::Binding(b),
                ..
            } = &flow.block(*block).end
            {
                vars.all(*b).into_iter().for_each(|v| crossing[v] = true);
            }
        }
        Made {
            blocks: def_blocks,
            crossing,
        }
    }
}

/// Puts a choice where ways meet on which a variable was made. `None`: there are too many.
fn place_phis(ssa: &mut Ssa, flow: &Flow, dominators: &Dominators, made: &Made) -> Option<()> {
    const LIMIT: usize = 2_000_000;
    let frontiers = dominators.frontiers(flow);
    for v in 0..=ssa.result {
        if !made.crossing[v] {
            continue;
        }
        let mut placed = HashSet::new();
        let mut work: Vec<BlockId> = made.blocks[v].iter().copied().collect();
        while let Some(b) = work.pop() {
            for join in &frontiers[b.index()] {
                if placed.insert(*join) {
                    ssa.phis[join.index()].push(ssa.defs.len());
                    ssa.defs.push(Def {
                        var: v,
                        block: *join,
                        source: Source::Phi(Vec::new()),
                    });
                    work.push(*join);
                }
            }
        }
        if ssa.defs.len() > LIMIT {
            return None;
        }
    }
    Some(())
}

/// Names every use, walking the dominator tree; `undo` restores what a subtree changed.
fn name_uses(ssa: &mut Ssa, flow: &Flow, dominators: &Dominators, vars: &Vars, places: Places<'_>) {
    let result = ssa.result;
    let mut now: Vec<DefId> = (0..=result).collect();
    enum Walk {
        Enter(BlockId),
        Undo(Vec<(VarId, DefId)>),
    }
    let mut stack = vec![Walk::Enter(Flow::ENTRY)];
    while let Some(walk) = stack.pop() {
        let block = match walk {
            Walk::Undo(old) => {
                for (v, d) in old.into_iter().rev() {
                    now[v] = d;
                }
                continue;
            }
            Walk::Enter(block) => block,
        };
        let mut undo = Vec::new();
        for phi in &ssa.phis[block.index()] {
            let v = ssa.defs[*phi].var;
            undo.push((v, now[v]));
            now[v] = *phi;
        }
        for step in &flow.block(block).steps {
            let Some((at, reads, target)) = accesses(vars, places, result, step) else {
                continue;
            };
            if !reads.is_empty() {
                let list = ssa.uses.entry((block, at)).or_default();
                *list = reads.iter().map(|v| now[*v]).collect();
            }
            for v in target.strong.into_iter().chain(target.weak) {
                let def = ssa.defs.len();
                ssa.defs.push(Def {
                    var: v,
                    block,
                    source: Source::Step,
                });
                undo.push((v, now[v]));
                now[v] = def;
                ssa.makes.entry((block, at)).or_default().push(def);
            }
        }
        if let crate::hir::flow::Terminator::Branch {
            on: crate::hir::flow::Condition::Binding(b),
            ..
        } = &flow.block(block).end
        {
            let list = vars.all(*b).into_iter().map(|v| now[v]).collect();
            ssa.uses.insert((block, At::Binding(*b)), list);
        }
        if block == Flow::EXIT {
            ssa.returned = Some(now[result]);
        }
        for target in flow.block(block).targets() {
            for i in 0..ssa.phis[target.index()].len() {
                let phi = ssa.phis[target.index()][i];
                let def = now[ssa.defs[phi].var];
                if let Source::Phi(operands) = &mut ssa.defs[phi].source
                    && !operands.contains(&(block, def))
                {
                    operands.push((block, def));
                }
            }
        }
        stack.push(Walk::Undo(undo));
        stack.extend(dominators.children(block).iter().map(|c| Walk::Enter(*c)));
    }
}
