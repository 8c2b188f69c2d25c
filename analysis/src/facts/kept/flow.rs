//! Where the addresses of a function's objects go, step by step: from each mention of a variable upwards through the expressions that it
//! stands in.

use std::collections::BTreeSet;

use super::called::{Called, called, operators};
use super::{Leak, Leaks, Passed, leaks};
use crate::base::db::Db;
use crate::base::words::words;
use crate::facts::hidden::operator_use;
use crate::facts::referring::types_may_refer;
use crate::facts::uniformity::memory::{Places, Shape};
use crate::hir::included::included_files;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Library, Memory};
use crate::hir::plain_types::{is_plain_type, is_vector_type};
use crate::hir::visible::visible_names;
use crate::hir::walk::operands;
use crate::hir::{
    BinOp, BindingId, Body, ExprId, ExprKind, Name, Parameter, StmtKind, Storage, Type, UnOp, parameters,
};

/// Whose address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// A variable's of the function.
    Variable(BindingId),
    /// A built-in variable's of CUDA.
    Builtin,
    /// The object's of which the function is a member.
    This,
}

/// How far from the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Its own address.
    Itself,
    /// What it holds: an address, if it is a pointer; what it refers to, if it is a reference.
    Held,
    /// What lies where that leads, at any depth.
    Deeper,
}

impl Level {
    fn deeper(self) -> Level {
        match self {
            Level::Itself => Level::Held,
            Level::Held | Level::Deeper => Level::Deeper,
        }
    }
}

/// Who gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sink {
    /// A variable of the function.
    Variable(BindingId),
    /// Memory that others see, or somebody who isn't seen.
    Anywhere,
    /// The caller.
    Returned,
}

/// One step of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub subject: Subject,
    pub level: Level,
    pub sink: Sink,
}

impl Edge {
    pub fn new(subject: Subject, level: Level, sink: Sink) -> Edge {
        Edge { subject, level, sink }
    }
}

/// What an expression is in relation to a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    subject: Subject,
    level: Level,
    /// It is the object of that address (or a part of it), rather than the address.
    place: bool,
}

impl State {
    fn place(self) -> State {
        State { place: true, ..self }
    }

    fn value(self) -> State {
        State { place: false, ..self }
    }

    fn deeper(self) -> State {
        State {
            level: self.level.deeper(),
            ..self
        }
    }
}

/// What an expression stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// Another expression.
    Expr(ExprId),
    /// It initialises a variable.
    Initialiser(BindingId),
    /// A range-based `for` goes over it.
    Range(BindingId),
    /// `return`
    Return,
    /// A statement that isn't understood, or assembly.
    Unseen,
    /// A condition, or a statement that drops its value.
    Dropped,
}

/// A reader of one body.
pub(super) struct Flow<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    places: Places<'a>,
    /// By expression.
    around: Vec<Around>,
}

/// Steps that are still to be made, and those that lead to somebody.
#[derive(Default)]
struct Steps {
    todo: Vec<(ExprId, State)>,
    edges: BTreeSet<Edge>,
}

impl Steps {
    /// The expression is this as well.
    fn go(&mut self, e: ExprId, state: State) {
        self.todo.push((e, state));
    }

    fn give(&mut self, state: State, sink: Sink) {
        // Nobody keeps a built-in variable's value, which holds no address.
        if state.subject != Subject::Builtin || state.level == Level::Itself {
            self.edges.insert(Edge::new(state.subject, state.level, sink));
        }
    }
}

impl<'a, 'db: 'a> Flow<'a, 'db> {
    pub fn new(db: &'db dyn Db, function: FunctionItem<'db>, body: &'a Body) -> Self {
        let mut around = vec![Around::Dropped; body.exprs.len()];
        let mut set = |e: ExprId, to: Around| {
            if let Some(slot) = around.get_mut(e.0 as usize) {
                *slot = to;
            }
        };
        for (index, expr) in body.exprs.iter().enumerate() {
            for operand in operands(&expr.kind) {
                set(operand, Around::Expr(ExprId(index as u32)));
            }
        }
        for stmt in &body.stmts {
            match &stmt.kind {
                StmtKind::Decl(decls) => {
                    for decl in decls {
                        if let Some(init) = decl.init {
                            set(init, Around::Initialiser(decl.binding));
                        }
                    }
                }
                StmtKind::RangeFor { binding, range, .. } => set(*range, Around::Range(*binding)),
                StmtKind::Return(Some(value)) => set(*value, Around::Return),
                StmtKind::Asm { parts, .. } => parts.iter().for_each(|e| set(*e, Around::Unseen)),
                StmtKind::Unknown { exprs, .. } => exprs.iter().for_each(|e| set(*e, Around::Unseen)),
                _ => {}
            }
        }
        Flow {
            db,
            function,
            body,
            places: Places { db, function, body },
            around,
        }
    }

    /// All steps that lead to somebody.
    pub fn edges(&self) -> BTreeSet<Edge> {
        let body = self.body;
        let mut steps = Steps::default();
        let mention = |steps: &mut Steps, b: &BindingId| {
            steps.give(self.mentioned(*b), Sink::Anywhere);
        };
        for (index, expr) in body.exprs.iter().enumerate() {
            let e = ExprId(index as u32);
            match &expr.kind {
                ExprKind::Name(Name::Local(b)) => {
                    steps.go(e, self.mentioned(*b));
                    // It may be a reference.
                    if body.binding(*b).ty.complex {
                        steps.go(e, self.mentioned(*b).deeper());
                    }
                }
                ExprKind::Name(Name::Builtin(_)) => steps.go(
                    e,
                    State {
                        subject: Subject::Builtin,
                        level: Level::Itself,
                        place: true,
                    },
                ),
                ExprKind::Name(Name::Other(name)) if self.function.signature(self.db).member => {
                    // `this`, or a member of it.
                    let state = State {
                        subject: Subject::This,
                        level: Level::Held,
                        place: name != "this",
                    };
                    steps.go(e, state);
                }
                ExprKind::Unknown { mentions, .. } | ExprKind::Lambda { mentions, .. } => {
                    mentions.iter().for_each(|b| mention(&mut steps, b));
                }
                _ => {}
            }
        }
        for stmt in &body.stmts {
            if let StmtKind::Asm { mentions, .. } | StmtKind::Unknown { mentions, .. } = &stmt.kind {
                mentions.iter().for_each(|b| mention(&mut steps, b));
            }
        }
        let mut seen = BTreeSet::new();
        while let Some((e, state)) = steps.todo.pop() {
            if seen.insert((e, state)) {
                self.step(e, state, &mut steps);
            }
        }
        steps.edges
    }

    /// What a variable's name is. A reference is what it refers to.
    fn mentioned(&self, b: BindingId) -> State {
        let refers = self.body.binding(b).ty.reference;
        State {
            subject: Subject::Variable(b),
            level: if refers { Level::Held } else { Level::Itself },
            place: true,
        }
    }

    /// What an expression is as a value: an array's is its address, an object's is what it holds.
    fn read(&self, e: ExprId, state: State) -> Vec<State> {
        if !state.place {
            return vec![state];
        }
        let (address, held) = (state.value(), state.value().deeper());
        match self.decays(e, state) {
            Some(true) => vec![address],
            Some(false) => vec![held],
            None => vec![address, held],
        }
    }

    /// The same where it becomes a number, which no array does.
    fn read_as_number(&self, e: ExprId, state: State) -> Vec<State> {
        match self.decays(e, state) {
            None if state.place => vec![state.value().deeper()],
            _ => self.read(e, state),
        }
    }

    /// Whether an expression is an array; `None`: it may be.
    fn decays(&self, e: ExprId, state: State) -> Option<bool> {
        if state.subject == Subject::Builtin {
            return Some(false);
        }
        let own = self.body.strip_parens(e);
        if let ExprKind::Name(Name::Local(b)) = self.body.expr(own).kind {
            let binding = self.body.binding(b);
            // A parameter that is declared as an array is a pointer.
            if binding.storage == Storage::Param && !binding.ty.reference && !binding.ty.complex {
                return Some(false);
            }
        }
        // The library has no function that returns a reference to an array.
        let known =
            matches!(self.body.expr(own).kind, ExprKind::Call { .. }) && matches!(self.called(own), Called::Known(_));
        match known {
            true => Some(false),
            false => self.places.shape(e).map(|s| s.dims > 0),
        }
    }

    fn called(&self, call: ExprId) -> Called<'db> {
        called(self.db, self.function, self.body, &self.places, call)
    }

    /// The expression that this one stands in; what it comes to without one.
    fn expression_around(&self, e: ExprId, state: State, steps: &mut Steps) -> Option<ExprId> {
        match self.around.get(e.0 as usize)? {
            Around::Expr(up) => return Some(*up),
            Around::Initialiser(variable) => self.initialises(*variable, e, state, steps),
            Around::Range(variable) => {
                let sink = match self.decays(e, state) {
                    Some(true) => Sink::Variable(*variable),
                    _ => Sink::Anywhere,
                };
                steps.give(state, sink);
            }
            Around::Return => self.returned(e, state, steps),
            Around::Unseen => steps.give(state, Sink::Anywhere),
            Around::Dropped => {}
        }
        None
    }

    /// One step upwards.
    fn step(&self, e: ExprId, state: State, steps: &mut Steps) {
        let Some(up) = self.expression_around(e, state, steps) else {
            return;
        };
        self.by_operator(e, up, state, steps);
        let values = || self.read(e, state);
        match &self.body.expr(up).kind {
            ExprKind::Paren(_) => steps.go(up, state),
            ExprKind::Field { base, field, .. } => {
                let places: Vec<State> = match &self.body.expr(up).kind {
                    ExprKind::Field { arrow: true, .. } => values().into_iter().map(State::place).collect(),
                    _ => vec![state],
                };
                for place in places {
                    steps.go(up, place);
                    if self.may_be_reference(*base, field) {
                        steps.go(up, place.deeper());
                    }
                }
            }
            ExprKind::Index { base, index } if *index == e => {
                let leads = |s: Shape| s.pointers > 0 || s.dims > 0;
                let is_number = !self.decays(e, state).unwrap_or(true) && self.places.shape(*base).is_some_and(leads);
                if !is_number {
                    values().into_iter().for_each(|s| steps.give(s, Sink::Anywhere));
                }
            }
            ExprKind::Index { .. } => {
                let elements = values().into_iter().map(State::place);
                elements.for_each(|s| steps.go(up, s));
            }
            ExprKind::Deref(_) => values().into_iter().for_each(|s| steps.go(up, s.place())),
            ExprKind::AddrOf(_) => match state.place {
                true => steps.go(up, state.value()),
                // An operator of the program's, perhaps.
                false => steps.give(state, Sink::Anywhere),
            },
            ExprKind::Assign { place, value, .. } if *value == e => {
                let sink = self.own_root(*place).map_or(Sink::Anywhere, Sink::Variable);
                let is_number = self
                    .places
                    .shape(*place)
                    .is_some_and(|s| s.pointers == 0 && self.is_number(&s.base));
                let assigned = match is_number {
                    true => self.read_as_number(e, state),
                    false => values(),
                };
                for value in assigned {
                    steps.give(value, sink);
                    steps.go(up, value);
                }
                if state.place && self.copies_unseen(*place) && self.copies_unseen(e) {
                    steps.give(state, Sink::Anywhere);
                }
            }
            ExprKind::Assign { .. } | ExprKind::IncDec { .. } => steps.go(up, state),
            ExprKind::Conditional { cond, .. } if *cond == e => {}
            ExprKind::Conditional { .. } => {
                steps.go(up, state);
                values().into_iter().for_each(|s| steps.go(up, s));
            }
            ExprKind::Comma(first, _) if *first == e => {}
            ExprKind::Comma(..) => steps.go(up, state),
            // What compares is no address any more.
            ExprKind::Logical { .. } | ExprKind::Unary(UnOp::Not, _) | ExprKind::Delete(_) => {}
            ExprKind::Binary(BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, ..) => {}
            ExprKind::Binary(BinOp::Add | BinOp::Sub, ..) | ExprKind::Unary(UnOp::Plus, _) => {
                values().into_iter().for_each(|s| steps.go(up, s));
            }
            // `new (at) int*(&x)` is no product.
            ExprKind::Binary(_, a, b)
                if [a, b]
                    .iter()
                    .any(|e| matches!(self.body.expr(**e).kind, ExprKind::New(_))) =>
            {
                steps.give(state, Sink::Anywhere);
            }
            // No array is multiplied, shifted or negated.
            ExprKind::Binary(..) | ExprKind::Unary(..) => {
                let numbers = self.read_as_number(e, state);
                numbers.into_iter().for_each(|s| steps.go(up, s));
            }
            ExprKind::Cast { ty, .. } => {
                let ty = self.places.alias(ty);
                if ty.contains('&') {
                    steps.go(up, state);
                } else if !self.holds_values(&ty) {
                    steps.give(state, Sink::Anywhere);
                }
                values().into_iter().for_each(|s| steps.go(up, s));
            }
            ExprKind::Construct { ty, .. } => self.made(ty, e, up, state, steps),
            ExprKind::InitList(_) => match self.made_by_list(up) {
                Some(ty) => self.made(&ty, e, up, state, steps),
                None => {
                    steps.give(state, Sink::Anywhere);
                    values().into_iter().for_each(|s| steps.go(up, s));
                }
            },
            ExprKind::Call { callee, args, .. } => {
                let passed = match args.iter().position(|arg| *arg == e) {
                    Some(index) => Passed::Argument(index),
                    None if *callee == e => Passed::Object,
                    None => return steps.give(state, Sink::Anywhere),
                };
                self.passed(up, passed, e, state, steps);
            }
            ExprKind::Launch(_) => values().into_iter().for_each(|s| steps.give(s, Sink::Anywhere)),
            ExprKind::Literal(_)
            | ExprKind::Name(_)
            | ExprKind::SizeOf
            | ExprKind::New(_)
            | ExprKind::Lambda { .. }
            | ExprKind::Unknown { .. } => steps.give(state, Sink::Anywhere),
        }
    }

    /// An operator of the program that takes the expression.
    fn by_operator(&self, e: ExprId, up: ExprId, state: State, steps: &mut Steps) {
        let Some((symbol, objects)) = operator_use(self.body, up) else {
            return;
        };
        // A class's, or an enumeration's: those of numbers and pointers are the language's.
        let of_program = |e: &ExprId| {
            let shape = self.places.shape(*e);
            shape.is_none_or(|s| s.pointers == 0 && s.dims == 0 && !self.is_plain(&self.places.alias(&s.base)))
        };
        if state.subject == Subject::Builtin || !objects.iter().any(of_program) {
            return;
        }
        let Some(functions) = operators(self.db, self.function, symbol) else {
            return steps.give(state, Sink::Anywhere);
        };
        if functions.is_empty() {
            return;
        }
        let mut all = Leaks::default();
        for function in &functions {
            all = match leaks(self.db, *function) {
                Some(leaks) => leaks.values().fold(all, |all, more| all.or(*more)),
                None => Leaks::ALL,
            };
        }
        let mut given = self.read(e, state);
        given.extend(state.place.then_some(state.value()));
        given.into_iter().for_each(|s| self.leak(up, all, s, steps));
    }

    /// A value of an object that is made.
    fn made(&self, ty: &str, e: ExprId, up: ExprId, state: State, steps: &mut Steps) {
        if !self.holds_values(ty) {
            steps.give(state, Sink::Anywhere);
            steps.go(up, state.value());
        }
        self.read(e, state).into_iter().for_each(|s| steps.go(up, s));
    }

    /// What a list in braces makes, if that is certain.
    fn made_by_list(&self, list: ExprId) -> Option<String> {
        match *self.around.get(list.0 as usize)? {
            Around::Initialiser(variable) => {
                let ty = &self.body.binding(variable).ty;
                (!ty.reference && !ty.complex).then(|| match ty.pointers {
                    0 => ty.base.clone(),
                    _ => "void*".to_owned(),
                })
            }
            Around::Return => self.return_type(),
            Around::Expr(up) => match &self.body.expr(up).kind {
                ExprKind::Assign { place, .. } => self.places.shape(*place).map(|s| match s.pointers {
                    0 => s.base,
                    _ => "void*".to_owned(),
                }),
                // Of an array, or of a class whose parts are values.
                ExprKind::InitList(_) => self.made_by_list(up),
                _ => None,
            },
            _ => None,
        }
    }

    /// An object of this type holds copies of the values that it is made of, and no code that isn't seen makes it.
    fn holds_values(&self, ty: &str) -> bool {
        let ty = self.places.alias(ty.trim());
        if ty.contains('&') {
            return false;
        }
        let templates: &[String] = match self.types_refer() {
            true => &[],
            false => &self.function.signature(self.db).template_types,
        };
        self.is_plain(&ty)
            || ty.ends_with('*')
            || templates.contains(&ty)
            || self.places.is_enumeration(&ty)
            || !ty.contains('<') && !self.places.is_opaque(&ty, templates)
    }

    /// Copying an object of an expression's class may run code that isn't seen.
    fn copies_unseen(&self, place: ExprId) -> bool {
        let shape = self.places.shape(place);
        shape.is_none_or(|s| s.pointers == 0 && s.dims == 0 && !self.holds_values(&s.base))
    }

    fn initialises(&self, variable: BindingId, e: ExprId, state: State, steps: &mut Steps) {
        let binding = self.body.binding(variable);
        let ty = &binding.ty;
        // A structured binding has no name of one variable.
        let named = binding.name.chars().all(|c| c == '_' || c.is_alphanumeric());
        let sink = match binding.storage {
            Storage::Local | Storage::Param if named => Sink::Variable(variable),
            _ => Sink::Anywhere,
        };
        if ty.reference || ty.complex {
            steps.give(state, sink);
        }
        let values = match ty.pointers == 0 && !ty.complex && self.is_number(&ty.base) {
            true => self.read_as_number(e, state),
            false => self.read(e, state),
        };
        if ty.pointers == 0 && ty.array.is_empty() && state.place {
            let shape = self.places.shape(e);
            let kept = match (ty.base.as_str(), &shape) {
                ("auto", Some(s)) => s.pointers == 0 && s.dims == 0 && !self.holds_values(&s.base),
                ("auto", None) => true,
                (base, _) => !ty.reference && !self.holds_values(base),
            };
            if kept {
                steps.give(state, Sink::Anywhere);
            }
        }
        values.into_iter().for_each(|s| steps.give(s, sink));
    }

    fn returned(&self, e: ExprId, state: State, steps: &mut Steps) {
        let ty = self.return_type();
        let by_value = ty.as_ref().is_some_and(|ty| self.holds_values(ty));
        if state.place && !by_value {
            steps.give(state, Sink::Returned);
        }
        let values = match ty.is_some_and(|ty| self.is_number(&ty)) {
            true => self.read_as_number(e, state),
            false => self.read(e, state),
        };
        for value in values {
            steps.give(value, Sink::Returned);
        }
    }

    /// The type that the function's head says, if it is one that is understood.
    fn return_type(&self) -> Option<String> {
        let text = self.function.text(self.db);
        let head = self.function.signature(self.db).head_span.text(&text);
        if head.contains(['&', '<', '(']) {
            return None;
        }
        let of_function = |word: &&str| {
            let plain = ["inline", "constexpr", "static", "const", "void", "friend"].contains(word);
            plain || word.starts_with("__") && word.ends_with("__")
        };
        let ty: Vec<&str> = words(head).filter(|word| !of_function(word)).collect();
        let known = !ty.is_empty() && ty.iter().all(|word| !["auto", "decltype"].contains(word));
        match (known, head.contains('*')) {
            (true, true) => Some(format!("{}*", ty.join(" "))),
            (true, false) => Some(ty.join(" ")),
            _ => None,
        }
    }

    /// What a call gets.
    fn passed(&self, call: ExprId, passed: Passed, e: ExprId, state: State, steps: &mut Steps) {
        let values = || self.read(e, state);
        match self.called(call) {
            Called::Known(library) => self.passed_to_library(call, passed, library, e, state, steps),
            Called::Class(ty) => self.made(&ty, e, call, state, steps),
            Called::Functions(all) => {
                for function in all {
                    let Some(leaks) = leaks(self.db, function) else {
                        self.passed_to_unseen(call, true, e, state, steps);
                        continue;
                    };
                    // One more than it has parameters.
                    let leak = leaks.get(&passed).copied().unwrap_or(Leaks::ALL);
                    let params = parameters(self.db, function);
                    let param = match passed {
                        Passed::Argument(index) => params.get(index),
                        Passed::Object => None,
                    };
                    match param {
                        Some(param) if !self.takes_reference(call, function, param) => {
                            if state.place && !self.copies_alone(function, param, e) {
                                steps.give(state, Sink::Anywhere);
                            }
                            values().into_iter().for_each(|s| self.leak(call, leak, s, steps));
                        }
                        _ => {
                            self.leak(call, leak, state.value(), steps);
                            values().into_iter().for_each(|s| self.leak(call, leak, s, steps));
                        }
                    }
                }
            }
            // It is the name of what is called.
            Called::Unseen => self.passed_to_unseen(call, false, e, state, steps),
        }
    }

    /// Somebody gets it of whom nothing is known. `own`: he is a function of the program.
    fn passed_to_unseen(&self, call: ExprId, own: bool, e: ExprId, state: State, steps: &mut Steps) {
        // Of who isn't seen it is not said that he keeps a built-in variable, which all pass to everybody.
        if own || state.subject != Subject::Builtin {
            steps.give(state, Sink::Anywhere);
            steps.go(call, state.value());
        }
        self.read(e, state)
            .into_iter()
            .for_each(|s| steps.give(s, Sink::Anywhere));
    }

    fn passed_to_library(
        &self,
        call: ExprId,
        passed: Passed,
        library: Library,
        e: ExprId,
        state: State,
        steps: &mut Steps,
    ) {
        for value in self.read(e, state) {
            match library.memory {
                Memory::Atomic(_) | Memory::Stores if passed != Passed::Argument(0) => {
                    steps.give(value, Sink::Anywhere);
                }
                // What lies in the objects, not where they lie.
                Memory::Through { .. } => steps.give(value.deeper(), Sink::Anywhere),
                _ => {}
            }
            // What it gives back may be made of what it got, or of what lies there.
            if library.memory != Memory::Frees && passed != Passed::Object {
                steps.go(call, value);
                if library.memory != Memory::Untouched {
                    steps.go(call, value.deeper());
                }
            }
        }
        // It may take a reference and return it, as `std::max` does.
        if state.place && passed != Passed::Object && state.subject != Subject::Builtin {
            steps.go(call, state);
        }
    }

    /// What comes of an address that a function gets.
    fn leak(&self, call: ExprId, leaks: Leaks, given: State, steps: &mut Steps) {
        let each = [(leaks.itself, given.value()), (leaks.inside, given.value().deeper())];
        for (Leak { on, back }, state) in each {
            if on {
                steps.give(state, Sink::Anywhere);
            }
            if back {
                steps.go(call, state);
                steps.go(call, state.place());
            }
        }
    }

    /// A parameter refers to its argument, or may: by its type, or by a template argument of the call.
    fn takes_reference(&self, call: ExprId, callee: FunctionItem<'db>, param: &Parameter) -> bool {
        let Type { reference, complex, .. } = param.ty;
        if reference || complex {
            return true;
        }
        // `W<T>::set(x)`: what the class is given for its parameter isn't seen in the call.
        let signature = callee.signature(self.db);
        if signature.member && signature.template_types.contains(&param.ty.base) && self.types_refer() {
            return true;
        }
        let ExprKind::Call {
            template_args: Some(span),
            ..
        } = &self.body.expr(call).kind
        else {
            return false;
        };
        let text = self.function.text(self.db);
        let given = span.text(&text);
        let plain = |word: &str| {
            let templates = &self.function.signature(self.db).template_names;
            self.is_plain(word)
                || word.starts_with(|c: char| c.is_ascii_digit())
                || templates.iter().any(|t| t == word) && !self.types_refer()
                || word == "const"
        };
        given.contains('&') || !words(given).all(plain)
    }

    /// A parameter that isn't a reference is a copy, which no code that isn't seen makes.
    fn copies_alone(&self, callee: FunctionItem<'db>, param: &Parameter, argument: ExprId) -> bool {
        let ty = &param.ty;
        let of_argument = ty.base == "auto" || callee.signature(self.db).template_types.contains(&ty.base);
        match of_argument {
            _ if ty.pointers > 0 || !ty.array.is_empty() => true,
            true => !self.copies_unseen(argument),
            false => self.holds_values(&ty.base),
        }
    }

    /// The function's own variable that is written where this place is.
    fn own_root(&self, place: ExprId) -> Option<BindingId> {
        match &self.body.expr(place).kind {
            ExprKind::Paren(inner) => self.own_root(*inner),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => self.own_root(*base).filter(|_| !self.may_be_reference(*base, field)),
            ExprKind::Index { base, .. } if self.places.shape(*base).is_some_and(|s| s.dims > 0) => {
                self.own_root(*base)
            }
            ExprKind::Name(Name::Local(b)) => {
                let variable = self.body.binding(*b);
                // A parameter that is declared as an array is a pointer.
                let own = match variable.storage {
                    Storage::Local => true,
                    Storage::Param => variable.ty.array.is_empty(),
                    _ => false,
                };
                (own && !variable.ty.reference && !variable.ty.complex).then_some(*b)
            }
            _ => None,
        }
    }

    /// Whether code in sight may declare a reference by this name, as a member of some class: a template's argument may be one.
    fn may_be_reference(&self, object: ExprId, field: &str) -> bool {
        let of_template = |s: Shape| self.places.alias(&s.base).contains('<');
        if self.places.shape(object).is_none_or(of_template) {
            return true;
        }
        included_files(self.db, self.function.file(self.db)).iter().any(|file| {
            let text = file.text(self.db);
            text.match_indices(field).any(|(at, _)| {
                let before = text.get(..at).unwrap_or("").trim_end();
                let after = text.get(at + field.len()..).unwrap_or("").trim_start();
                before.ends_with('&') && !before.ends_with("&&") && after.starts_with([';', ',', '{', '=', '['])
            })
        })
    }

    /// A type of the program may refer to something, so that a template's parameter may.
    fn types_refer(&self) -> bool {
        types_may_refer(self.db, self.function.file(self.db))
    }

    /// A number by its type.
    fn is_number(&self, ty: &str) -> bool {
        self.is_plain(ty) && !is_vector_type(ty) && !["auto", "void", "dim3"].contains(&ty)
    }

    /// One of the language's or CUDA's types: the program may have a class of that name.
    fn is_plain(&self, ty: &str) -> bool {
        is_plain_type(ty) && !visible_names(self.db, self.function.file(self.db)).types.contains(ty)
    }
}
