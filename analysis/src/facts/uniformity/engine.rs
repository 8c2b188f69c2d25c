//! The fixed point: levels of definitions, expressions, branches and blocks of one function.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::differing_operators::some_result_may_differ;
use super::level::{Cause, Level};
use super::memory::{Class, Places};
use super::shared::Shared;
use super::value::{Causes, Value};
use super::vars::{self, At, DefId, Escaped, Source, Ssa, Vars};
use super::written::{Origins, written};
use crate::base::budget::UNIFORMITY_STEPS;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::dependence::integer;
use crate::facts::effects::{MemoryEffects, memory_effects};
use crate::facts::hidden::{some_class_runs_unseen, symbol};
use crate::facts::launch::is_scalar;
use crate::hir::flow::{
    BlockId, Condition, ControlDependence, Dominators, Flow, LoopId, Loops, Step, Terminator, divergent_joins,
};
use crate::hir::items::FunctionItem;
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtKind, Storage};

/// For whom a function is analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// For itself: parameters of a kernel are the same for the grid, others may be anything.
    Own,
    /// For its callers: which parameters flow into the result.
    Parametric,
}

/// How sure the result has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Only what is proved, but that no other grid writes what is read.
    Proved,
    /// The same, but that of memory which the function itself writes, all threads of a block find the same at one place.
    Settled,
    /// Also what every reader of the code takes for granted: different pointer parameters lead to different memory, functions
    /// that can't be seen take their arguments by value, a device function is called from where calls can be seen.
    Assumed,
}

pub(super) struct Engine<'a, 'db> {
    pub db: &'db dyn Db,
    pub function: FunctionItem<'db>,
    pub body: &'a Body,
    pub text: Arc<str>,
    pub places: Places<'a>,
    pub mode: Mode,
    pub trust: Trust,
    pub kernel: bool,
    pub flow: Flow,
    pub vars: Vars,
    pub ssa: Ssa,
    pub shared: Shared,
    pub effects: Arc<MemoryEffects>,
    pub causes: Causes,
    pub exprs: Vec<Option<Value>>,
    pub branches: Vec<Value>,
    pub divergence: Vec<Value>,
    pub names: HashMap<String, Value>,
    /// Types of memory that the result depends on (parametric): a caller that writes such memory can't rely on it.
    pub loads: std::collections::BTreeSet<super::memory::MemoryClass>,
    /// Memory that the result depends on, by the parameter that leads there (parametric and trusting).
    pub sources: Origins,
    /// What is written while the function runs (trusting).
    pub written: Arc<Origins>,
    /// Variables that are taken to be changed only by the code that names them, with what that takes for granted.
    pub hardly: HashMap<BindingId, String>,
    /// Somewhere a pointer is cast to one to volatile.
    pub volatile_cast: bool,
    /// Parameters that keep their arguments.
    pub immutable: HashSet<BindingId>,
    /// Some class in sight runs code that is called by no name.
    pub classes: bool,
    /// Some user's operator looks at the number of the thread.
    pub operators: bool,
    /// What leads to the cases of a `switch`, once somebody has asked.
    cases: OnceCell<HashMap<ExprId, Vec<Option<ExprId>>>>,
    defs: Vec<Value>,
    post: Dominators,
    dependence: ControlDependence,
    loops: Loops,
    /// Joins of each branch, once it's known to diverge.
    joins: HashMap<BlockId, Vec<BlockId>>,
    /// How divergent the merging of paths at a block is.
    join_level: Vec<Value>,
    /// For each loop and each of its exits: the branches inside the loop that decide it.
    deciders: Vec<Vec<Vec<BlockId>>>,
    reaching_exits: HashMap<(LoopId, BlockId), Rc<[usize]>>,
    /// Why threads leave a loop at different times, by the block that decides it: every variable behind the loop asks.
    leaving: HashMap<BlockId, u32>,
}

impl<'a, 'db: 'a> Engine<'a, 'db> {
    /// `None` when the function is too large or was cut by the preprocessor: nothing is known about it then.
    pub fn new(
        db: &'db dyn Db,
        function: FunctionItem<'db>,
        body: &'a Body,
        mode: Mode,
        trust: Trust,
    ) -> Option<Engine<'a, 'db>> {
        let signature = function.signature(db);
        if body.root.is_none() || body.cut {
            return None;
        }
        let places = Places { db, function, body };
        let flow = Flow::of(body);
        let dominators = Dominators::of(&flow);
        let trusting = trust == Trust::Assumed;
        let Escaped {
            surely: escaped,
            hardly,
        } = vars::escaped(db, function, places, trusting);
        let mut immutable: HashSet<BindingId> = body.params.iter().copied().filter(|p| !escaped.contains(p)).collect();
        for e in &body.exprs {
            if let ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } = &e.kind {
                for b in super::objects::objects(places, *place) {
                    immutable.remove(&b);
                }
            }
        }
        let vars = Vars::new(places, &escaped, &signature.template_types, trusting);
        let ssa = vars::ssa(&flow, &dominators, &vars, places)?;
        let post = Dominators::post(&flow);
        let loops = Loops::of(&flow);
        let dependence = ControlDependence::new(&flow, &post, &loops);
        let effects = memory_effects(db, function);
        let shared = match signature.kernel && mode == Mode::Own {
            true => Shared::new(&flow, db, function, places, &effects),
            false => Shared::default(),
        };
        let n = flow.blocks.len();
        let mut engine = Engine {
            db,
            function,
            body,
            text: function.text(db),
            places,
            mode,
            trust,
            kernel: signature.kernel,
            shared,
            effects,
            causes: Causes::default(),
            cases: OnceCell::new(),
            exprs: vec![None; body.exprs.len()],
            branches: vec![Value::CONSTANT; n],
            divergence: vec![Value::CONSTANT; n],
            names: HashMap::new(),
            loads: Default::default(),
            sources: Origins::default(),
            written: if trusting {
                written(db, function)
            } else {
                Arc::default()
            },
            hardly,
            volatile_cast: body
                .exprs
                .iter()
                .any(|e| matches!(&e.kind, ExprKind::Cast { ty, .. } if ty.contains("volatile"))),
            immutable,
            classes: some_class_runs_unseen(db, function),
            operators: some_result_may_differ(db, function.file(db)),
            defs: vec![Value::CONSTANT; ssa.defs.len()],
            post,
            dependence,
            loops,
            joins: HashMap::new(),
            join_level: vec![Value::CONSTANT; n],
            deciders: Vec::new(),
            reaching_exits: HashMap::new(),
            leaving: HashMap::new(),
            flow,
            vars,
            ssa,
        };
        engine.find_deciders();
        engine.solve().then_some(engine)
    }

    /// A `Varying` value with its cause.
    pub fn varying(&mut self, text: impl Into<String>, span: Span) -> Value {
        self.value(Level::Varying, text, span)
    }

    pub fn value(&mut self, level: Level, text: impl Into<String>, span: Span) -> Value {
        let text = text.into();
        Value {
            level,
            cause: self.causes.add(Cause { text, span }),
            ..Value::CONSTANT
        }
    }

    /// Source text for a message, shortened.
    pub fn quote(&self, span: Span) -> String {
        let text: Vec<&str> = span.text(&self.text).split_whitespace().collect();
        let text = text.join(" ");
        match text.char_indices().nth(60) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    fn find_deciders(&mut self) {
        for (i, l) in self.loops.all.iter().enumerate() {
            let id = LoopId(i as u32);
            let mut of_loop = Vec::new();
            let mut memo: HashMap<BlockId, Vec<BlockId>> = HashMap::new();
            for (from, _) in &l.exits {
                let found = memo.entry(*from).or_insert_with(|| {
                    let mut seen = std::collections::BTreeSet::from([*from]);
                    let mut stack = vec![*from];
                    while let Some(b) = stack.pop() {
                        // What decides whether there is another iteration decides nothing within it.
                        if b == l.header {
                            continue;
                        }
                        for (x, _) in &self.dependence.of[b.index()] {
                            if self.loops.contains(id, *x) && seen.insert(*x) {
                                stack.push(*x);
                            }
                        }
                    }
                    seen.into_iter().collect()
                });
                of_loop.push(found.clone());
            }
            self.deciders.push(of_loop);
        }
    }

    /// The value that the function returns; `None` when it never does.
    pub fn result(&self) -> Option<Value> {
        self.ssa.returned.map(|d| self.defs[d])
    }

    fn irreducible(&self, block: BlockId) -> bool {
        self.loops.around(block).any(|l| self.loops.get(l).irreducible)
    }

    /// Whether that came to an end: each round takes a look at all, and where variables are made from each other in loops it may take as
    /// many rounds as there are variables.
    fn solve(&mut self) -> bool {
        let mut left = UNIFORMITY_STEPS;
        let order = self.flow.order.clone();
        for def in 0..=self.ssa.result {
            self.defs[def] = match self.vars.binding.get(def) {
                Some(b) => self.entry_value(*b),
                None => self.varying("nothing is returned on some path", Span::default()),
            };
        }
        loop {
            self.db.unwind_if_revision_cancelled();
            let mut changed = false;
            for block in &order {
                let work = self.ssa.phis[block.index()].len() + self.flow.block(*block).steps.len();
                match left.checked_sub(work) {
                    Some(rest) => left = rest,
                    None => return false,
                }
                for i in 0..self.ssa.phis[block.index()].len() {
                    let phi = self.ssa.phis[block.index()][i];
                    let value = self.phi(phi);
                    changed |= self.set_def(phi, value);
                }
                for i in 0..self.flow.block(*block).steps.len() {
                    let step = self.flow.block(*block).steps[i].clone();
                    changed |= self.step(*block, i, &step);
                }
                changed |= self.branch(*block);
            }
            changed |= self.update_divergence(&order);
            if !changed {
                return true;
            }
        }
    }

    /// The value of a variable on entry.
    fn entry_value(&mut self, b: BindingId) -> Value {
        let binding = self.body.binding(b);
        let (name, span) = (binding.name.clone(), binding.span);
        let index = self.body.params.iter().position(|p| *p == b);
        match (index, self.mode) {
            (None, _) => self.varying(format!("`{name}` may be used before it gets a value"), span),
            (Some(_), Mode::Own) if self.kernel => {
                self.value(Level::Grid, format!("depends on the parameter `{name}`"), span)
            }
            (Some(i), Mode::Own) if self.trust == Trust::Assumed => self.handed_in(i, &name, span),
            (Some(_), Mode::Own) => {
                self.varying(format!("depends on the parameter `{name}`, which callers choose"), span)
            }
            (Some(i), Mode::Parametric) if i < super::OBJECT => Value {
                params: 1 << i,
                ..Value::CONSTANT
            },
            (Some(_), Mode::Parametric) => self.varying("too many parameters", span),
        }
    }

    /// What the callers of a device function hand to a parameter.
    fn handed_in(&mut self, index: usize, name: &str, span: Span) -> Value {
        let Some(given) = super::callers::given(self.db, self.function).get(index).cloned() else {
            return self.varying(format!("depends on the parameter `{name}`, which callers choose"), span);
        };
        let why = given.why.unwrap_or_else(|| "callers choose it".to_owned());
        let mut value = self.value(given.level, format!("depends on the parameter `{name}`: {why}"), span);
        let text = format!("all calls of `{}` are in sight", self.function.name(self.db));
        match self.causes.assume(Cause {
            text,
            span: Span::default(),
        }) {
            Some(bit) => {
                value.assumes |= bit;
                value
            }
            None => self.varying("too many assumptions", span),
        }
    }

    fn set_def(&mut self, def: DefId, value: Value) -> bool {
        let new = self.defs[def].join(value);
        let changed = !new.same(self.defs[def]);
        if changed {
            self.defs[def] = new;
        }
        changed
    }

    fn phi(&mut self, phi: DefId) -> Value {
        let Source::Phi(operands) = &self.ssa.defs[phi].source else {
            return self.defs[phi];
        };
        let (operands, block) = (operands.clone(), self.ssa.defs[phi].block);
        if self.irreducible(block) {
            return self.varying("a goto leads into the middle of a loop here", Span::default());
        }
        let mut value = Value::CONSTANT;
        for (pred, def) in operands {
            value = value.join(self.read_def(def, block, Some(pred)));
        }
        value = value.join(self.join_level[block.index()]);
        let around = self.loops.around(block).next();
        if value.level == Level::Constant && around.is_some_and(|l| self.loops.get(l).header == block) {
            let name = self
                .vars
                .binding
                .get(self.ssa.defs[phi].var)
                .map(|b| self.body.binding(*b));
            let (name, span) = name.map_or(Default::default(), |b| (b.name.clone(), b.span));
            let changing = self.value(Level::Grid, format!("{name} changes from iteration to iteration"), span);
            value = value.join(changing);
        }
        value
    }

    /// The value of a definition where `block` reads it (`from`: on the edge from that block).
    fn read_def(&mut self, def: DefId, block: BlockId, from: Option<BlockId>) -> Value {
        let mut value = self.defs[def];
        let home = self.ssa.defs[def].block;
        let left: Vec<LoopId> = self
            .loops
            .around(home)
            .take_while(|l| !self.loops.contains(*l, block))
            .collect();
        for l in left {
            value = value.join(self.after_loop(l, block, from));
        }
        value
    }

    /// How divergent leaving the loop is for threads that get to `block` (temporal divergence).
    fn after_loop(&mut self, l: LoopId, block: BlockId, from: Option<BlockId>) -> Value {
        if self.loops.get(l).irreducible {
            return self.varying("a goto leads into the middle of a loop", Span::default());
        }
        let exits = match from {
            Some(pred) if self.loops.contains(l, pred) => {
                let edge = (pred, block);
                let exits = &self.loops.get(l).exits;
                exits
                    .iter()
                    .enumerate()
                    .filter(|(_, e)| **e == edge)
                    .map(|(i, _)| i)
                    .collect()
            }
            _ => self.exits_reaching(l, from.unwrap_or(block)),
        };
        let mut value = Value::CONSTANT;
        for exit in exits.iter() {
            for at in 0..self.deciders[l.0 as usize][*exit].len() {
                let decider = self.deciders[l.0 as usize][*exit][at];
                let mut v = self.branches[decider.index()];
                if v.level > Level::Constant {
                    v.cause = self.leaves_at_different_times(decider);
                }
                value = value.join(v);
            }
        }
        value
    }

    /// The cause that threads leave a loop at different times, as this block decides.
    fn leaves_at_different_times(&mut self, decider: BlockId) -> u32 {
        if let Some(cause) = self.leaving.get(&decider) {
            return *cause;
        }
        let span = self.condition_span(decider);
        let text = format!(
            "the trip count of this loop differs between threads: `{}`",
            self.quote(span)
        );
        let cause = self.causes.add(Cause { text, span });
        self.leaving.insert(decider, cause);
        cause
    }

    /// The exits of a loop from which `block` is reached without going through the loop again.
    fn exits_reaching(&mut self, l: LoopId, block: BlockId) -> Rc<[usize]> {
        if let Some(found) = self.reaching_exits.get(&(l, block)) {
            return found.clone();
        }
        let mut seen = std::collections::HashSet::from([block]);
        let mut stack = vec![block];
        while let Some(b) = stack.pop() {
            for p in &self.flow.preds[b.index()] {
                if !self.loops.contains(l, *p) && seen.insert(*p) {
                    stack.push(*p);
                }
            }
        }
        let exits = self.loops.get(l).exits.iter().enumerate();
        let found: Rc<[usize]> = exits.filter(|(_, (_, to))| seen.contains(to)).map(|(i, _)| i).collect();
        self.reaching_exits.insert((l, block), found.clone());
        found
    }

    /// What a step at this block reads: the definitions of an expression's or a condition's variables.
    pub fn reads(&mut self, block: BlockId, at: At) -> Vec<Value> {
        let defs = self.ssa.uses.get(&(block, at)).cloned().unwrap_or_default();
        defs.into_iter().map(|d| self.read_def(d, block, None)).collect()
    }

    pub fn of(&self, e: ExprId) -> Value {
        self.exprs[e.0 as usize].unwrap_or(Value::CONSTANT)
    }

    fn step(&mut self, block: BlockId, index: usize, step: &Step) -> bool {
        let mut changed = false;
        match step {
            Step::Expr(e) => {
                let mut value = self.eval(block, index, *e);
                let slot = &mut self.exprs[e.0 as usize];
                match slot {
                    Some(old) => {
                        value = old.join(value);
                        changed |= !value.same(*old);
                    }
                    None => changed = true,
                }
                if changed {
                    *slot = Some(value);
                }
                changed |= self.assign(block, *e);
            }
            Step::Decl { binding, init } => {
                let defs = self
                    .ssa
                    .makes
                    .get(&(block, At::Binding(*binding)))
                    .cloned()
                    .unwrap_or_default();
                let parts = self.init_parts(*binding, *init, defs.len());
                for (def, value) in defs.into_iter().zip(parts) {
                    changed |= self.set_def(def, value);
                }
            }
            Step::Element { binding, range } => {
                let value = self.element(*range);
                let defs = self
                    .ssa
                    .makes
                    .get(&(block, At::Binding(*binding)))
                    .cloned()
                    .unwrap_or_default();
                for def in defs {
                    changed |= self.set_def(def, value);
                }
            }
            Step::Return(e) => {
                let value = self.of(*e);
                let defs = self.ssa.makes.get(&(block, At::Return)).cloned().unwrap_or_default();
                for def in defs {
                    changed |= self.set_def(def, value);
                }
            }
            Step::Stmt(_) | Step::Opaque(_) => {}
        }
        changed
    }

    /// What the iterations of a range-for have in common.
    fn element(&mut self, range: ExprId) -> Value {
        let span = self.body.expr(range).span;
        match &self.body.expr(self.body.strip_parens(range)).kind {
            ExprKind::InitList(_) => self.of(range),
            _ => self.varying(format!("an element of `{}`", self.quote(span)), span),
        }
    }

    /// Values of the variables of a declared binding.
    fn init_parts(&mut self, binding: BindingId, init: Option<ExprId>, count: usize) -> Vec<Value> {
        let b = self.body.binding(binding);
        let (name, span) = (b.name.clone(), b.span);
        let dim3 = b.ty.pointers == 0 && self.places.alias(&b.ty.base) == "dim3";
        let base = b.ty.base.clone();
        let made = b.ty.pointers == 0 && self.runs(&base);
        match init {
            Some(_) if made => {
                let value = self.varying(format!("making `{name}` may run code that is called by no name"), span);
                vec![value; count]
            }
            Some(e) if b.storage == Storage::Local => self.parts(e, count),
            None if dim3 && b.ty.array.is_empty() => vec![Value::CONSTANT; count],
            _ => {
                let value = self.varying(format!("`{name}` may be used before it gets a value"), span);
                vec![value; count]
            }
        }
    }

    /// Splits the value of an expression over the fields that it is assigned to.
    fn parts(&mut self, e: ExprId, count: usize) -> Vec<Value> {
        let inner = self.body.strip_parens(e);
        let whole = vec![self.of(e); count];
        if count < 2 {
            return whole;
        }
        let args = match &self.body.expr(inner).kind {
            ExprKind::Construct { args, .. } | ExprKind::InitList(args) | ExprKind::Call { args, .. } => args.clone(),
            _ => return whole,
        };
        let vector = match &self.body.expr(inner).kind {
            ExprKind::Construct { ty, .. } => match self.places.class_kind(ty, &[]) {
                Class::Fields(fields, overlap) => fields.len() == count && !overlap,
                _ => false,
            },
            ExprKind::InitList(args) => args.len() == count,
            ExprKind::Call { name: Some(n), .. } => {
                n == "dim3" || n.starts_with("make_") && crate::hir::library::known(n).is_some_and(|l| l.is_pure())
            }
            _ => false,
        };
        // `dim3(other)` copies; anything nested in braces may be spread over several fields.
        let plain = |e: &ExprId| !matches!(self.body.expr(*e).kind, ExprKind::InitList(_));
        let copies = matches!(args.as_slice(), [one] if !is_scalar(self.db, self.function, self.body, *one));
        if !vector || args.len() > count || copies || !args.iter().all(plain) {
            return whole;
        }
        let given = args.iter().map(|a| self.of(*a));
        given.chain(std::iter::repeat(Value::CONSTANT)).take(count).collect()
    }

    /// Gives the variables that the expression changes their new values.
    fn assign(&mut self, block: BlockId, e: ExprId) -> bool {
        let defs = self.ssa.makes.get(&(block, At::Expr(e))).cloned().unwrap_or_default();
        if defs.is_empty() {
            return false;
        }
        let old = self.reads(block, At::Expr(e));
        let (place, parts, keeps) = match &self.body.expr(e).kind {
            ExprKind::Assign { op: None, place, value } => {
                let target = self.vars.target(self.places, *place);
                let parts = match target.strong.len() {
                    0 | 1 => vec![self.of(*value); defs.len()],
                    n => self.parts(*value, n),
                };
                (*place, parts, false)
            }
            ExprKind::Assign { op, place, value } => {
                let symbol = op.map(|op| format!("{}=", symbol(op))).unwrap_or_default();
                let operator = self.operator(&symbol, &[*place, *value], self.body.expr(e).span);
                // A user's operator may make one field of another.
                let object = self.of(e);
                (
                    *place,
                    vec![self.of(*value).join(operator).join(object); defs.len()],
                    true,
                )
            }
            ExprKind::IncDec { place, .. } => (*place, vec![self.of(e); defs.len()], true),
            _ => return false,
        };
        let strong = self.vars.target(self.places, place).strong.len();
        // Which element or which of several objects is written matters as much as the value.
        let address = self.address(place);
        let value = self.of(e);
        let mut changed = false;
        for (i, def) in defs.into_iter().enumerate() {
            let before = old.get(i).copied().unwrap_or(Value::CONSTANT);
            let new = if i >= strong {
                before.join(value).join(address)
            } else {
                let new = parts.get(i).copied().unwrap_or(value);
                if keeps { new.join(before) } else { new }
            };
            changed |= self.set_def(def, new);
        }
        changed
    }

    pub fn condition_span(&self, block: BlockId) -> Span {
        match &self.flow.block(block).end {
            Terminator::Branch { on, .. } => match on {
                Condition::Expr(e) | Condition::Range(e) => self.body.expr(*e).span,
                Condition::Binding(b) => self.body.binding(*b).decl_span,
                Condition::Opaque(span) => *span,
                Condition::Uniform => Span::default(),
            },
            _ => Span::default(),
        }
    }

    fn branch(&mut self, block: BlockId) -> bool {
        let Terminator::Branch { on, .. } = &self.flow.block(block).end else {
            return false;
        };
        let value = match on.clone() {
            Condition::Expr(e) => self.of(e),
            Condition::Binding(b) if self.vars.tracked(b) => {
                let reads = self.reads(block, At::Binding(b));
                reads.into_iter().fold(Value::CONSTANT, Value::join)
            }
            Condition::Binding(b) => {
                let binding = self.body.binding(b);
                let (name, span) = (binding.name.clone(), binding.span);
                self.varying(format!("`{name}` can't be followed"), span)
            }
            Condition::Range(range) => self.element(range),
            Condition::Uniform => Value::CONSTANT,
            Condition::Opaque(span) => self.varying("this code isn't understood", span),
        };
        let new = self.branches[block.index()].join(value);
        if new.same(self.branches[block.index()]) {
            return false;
        }
        self.branches[block.index()] = new;
        let joins = match self.joins.get(&block) {
            Some(joins) => joins.clone(),
            None => {
                let joins = divergent_joins(&self.flow, &self.post, &self.loops, block);
                self.joins.insert(block, joins.clone());
                joins
            }
        };
        let span = self.condition_span(block);
        let text = format!("depends on `{}`, which {}", self.quote(span), differs(new.level));
        let cause = self.causes.add(Cause { text, span });
        for join in joins {
            let value = Value { cause, ..new };
            self.join_level[join.index()] = self.join_level[join.index()].join(value);
        }
        true
    }

    fn update_divergence(&mut self, order: &[BlockId]) -> bool {
        let mut any = false;
        loop {
            let mut changed = false;
            for block in order {
                let mut value = self.divergence[block.index()];
                for (x, edge) in self.dependence.of[block.index()].clone() {
                    let mut own = self.branches[x.index()];
                    let outer = self.divergence[x.index()];
                    let new = value.join(own).join(outer);
                    if new.same(value) {
                        continue;
                    }
                    let span = self.condition_span(x);
                    // Several cases lead here.
                    let ways = self.dependence.of[block.index()].iter();
                    let only_way = ways.filter(|(branch, _)| *branch == x).count() == 1;
                    own.cause = self.causes.add(Cause {
                        text: self.who_gets_here(x, edge, only_way),
                        span,
                    });
                    value = value.join(own).join(outer);
                }
                if self.irreducible(*block) && value.level < Level::Varying {
                    value = self.varying("a goto leads into the middle of a loop here", Span::default());
                }
                if !value.same(self.divergence[block.index()]) {
                    self.divergence[block.index()] = value;
                    changed = true;
                }
            }
            any |= changed;
            if !changed {
                return any;
            }
        }
    }

    fn who_gets_here(&self, branch: BlockId, edge: u32, only_way: bool) -> String {
        let Terminator::Branch { on, many, .. } = &self.flow.block(branch).end else {
            return String::new();
        };
        let quoted = self.quote(self.condition_span(branch));
        match on {
            Condition::Opaque(_) => "code that isn't understood may lead elsewhere".to_owned(),
            Condition::Range(_) => format!("only threads that are still in the loop over `{quoted}` get here"),
            Condition::Expr(on) if *many => match self.case_of(*on, edge).filter(|_| only_way) {
                Some(value) => {
                    let value = self.quote(self.body.expr(value).span);
                    format!("only threads with `{} == {value}` get here", self.compared(*on, quoted))
                }
                None => format!("only threads with certain values of `{quoted}` get here"),
            },
            _ if *many => format!("only threads with certain values of `{quoted}` get here"),
            Condition::Expr(on) if self.is_number(*on) => {
                let quoted = self.compared(*on, quoted);
                match edge {
                    0 => format!("only threads with `{quoted} != 0` get here"),
                    _ => format!("threads with `{quoted} != 0` don't get here"),
                }
            }
            _ if edge == 0 => format!("only threads with `{quoted}` get here"),
            _ => format!("threads with `{quoted}` don't get here"),
        }
    }

    /// The value of the case to which an edge of a `switch` over `on` leads.
    fn case_of(&self, on: ExprId, edge: u32) -> Option<ExprId> {
        let cases = self.cases.get_or_init(|| cases_of_switches(self.body));
        *cases.get(&on)?.get(edge as usize)?
    }

    /// A condition that is true where a number isn't 0: `count`, `r & 3`.
    fn is_number(&self, on: ExprId) -> bool {
        match &self.body.expr(self.body.strip_parens(on)).kind {
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &self.body.binding(*binding).ty;
                ty.is_value() && ty.base != "bool" && integer(&self.places.alias(&ty.base)).is_some()
            }
            ExprKind::Binary(op, ..) => {
                use BinOp::{Eq, Ge, Gt, Le, Lt, Ne};
                !matches!(op, Lt | Le | Gt | Ge | Eq | Ne)
            }
            _ => false,
        }
    }

    /// A text as an operand of a comparison.
    fn compared(&self, on: ExprId, quoted: String) -> String {
        match self.body.expr(on).kind {
            ExprKind::Binary(..)
            | ExprKind::Logical { .. }
            | ExprKind::Conditional { .. }
            | ExprKind::Assign { .. } => {
                format!("({quoted})")
            }
            _ => quoted,
        }
    }
}

/// The values of the cases of each `switch`, by its condition, in the order of the text; of `default` none.
fn cases_of_switches(body: &Body) -> HashMap<ExprId, Vec<Option<ExprId>>> {
    let is_wanted = |kind: &StmtKind| matches!(kind, StmtKind::Switch { .. } | StmtKind::Case { .. });
    let mut stmts: Vec<_> = body.stmts.iter().filter(|stmt| is_wanted(&stmt.kind)).collect();
    stmts.sort_by_key(|stmt| (stmt.span.start, std::cmp::Reverse(stmt.span.end)));
    let mut found: HashMap<ExprId, Vec<Option<ExprId>>> = HashMap::new();
    // The switches around, the innermost one last, with where they end.
    let mut around: Vec<(u32, ExprId)> = Vec::new();
    for stmt in stmts {
        while around.last().is_some_and(|(end, _)| *end <= stmt.span.start) {
            around.pop();
        }
        match stmt.kind {
            StmtKind::Switch { cond, .. } => around.push((stmt.span.end, cond)),
            StmtKind::Case { value, .. } => {
                if let Some((_, cond)) = around.last() {
                    found.entry(*cond).or_default().push(value);
                }
            }
            _ => {}
        }
    }
    found
}

/// How the values of a level differ.
pub(super) fn differs(level: Level) -> &'static str {
    match level {
        Level::Constant => "is constant",
        Level::Grid => "is the same for the grid",
        Level::Block => "differs between blocks",
        Level::Warp => "differs between warps",
        Level::Varying => "differs between threads",
    }
}
