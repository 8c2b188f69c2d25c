//! What a function reads and writes, with all that it calls and launches.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::equation::WORD;
use super::guard::Guard;
use super::integer::{Integer, integer};
use super::location::{Location, Root, sum};
use super::polynomial::{Interval, Polynomial, Symbol};
use super::renaming::{Image, Renaming};
use super::subscript::{Evaluator, Value, default_range};
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::facts::effects::{direct, leads_too_far};
use crate::facts::launch::{Child, Extent, LaunchFacts, launches};
use crate::facts::named::{StandsFor, stands_for};
use crate::facts::uniformity::memory::MemoryClass;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Library, Memory, Scope, known};
use crate::hir::names::unqualified;
use crate::hir::silent_store::silent_stores;
use crate::hir::{
    BinOp, Body, Builtin, ExprId, ExprKind, Launch, Literal, Name, Parameter, StmtKind, Storage, UnOp, body, parameters,
};

/// An operation on a place that others may do in any order with the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
#[allow(missing_docs)]
pub enum Operation {
    Add,
    Multiply,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes; the number, when it writes a constant.
    Write(Option<i128>),
    /// Reads and writes with nothing in between, by any other way.
    Update {
        /// `x += e`, `x *= e`: the operation, when its result isn't used.
        operation: Option<Operation>,
    },
    /// An atomic read and write.
    Atomic {
        /// The operation, when order doesn't matter: the result isn't used, and the numbers are integers.
        operation: Option<Operation>,
    },
    /// Frees it.
    Free,
}

impl Kind {
    /// It only reads.
    pub fn reads_only(self) -> bool {
        self == Kind::Read
    }

    /// It reads something that others may have written.
    pub fn reads(self) -> bool {
        match self {
            Kind::Read | Kind::Update { .. } => true,
            Kind::Atomic { operation } => operation.is_none(),
            Kind::Write(_) | Kind::Free => false,
        }
    }

    /// The order of the two makes no difference, even for one place.
    pub fn commutes(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::Read, Kind::Read) => true,
            (Kind::Write(Some(a)), Kind::Write(Some(b))) => a == b,
            (Kind::Atomic { operation: Some(a) }, Kind::Atomic { operation: Some(b) }) => a == b,
            _ => false,
        }
    }

    /// As a verb.
    pub fn verb(self) -> &'static str {
        match self {
            Kind::Read => "reads",
            Kind::Write(_) => "writes",
            Kind::Update { .. } => "changes",
            Kind::Atomic { .. } => "updates atomically",
            Kind::Free => "frees",
        }
    }
}

/// An access to memory that other threads may see, in terms of the function that it's listed for.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Access<'db> {
    /// Whose memory.
    pub root: Root,
    /// Where; `None`: anywhere.
    pub offset: Option<Value>,
    /// What the offset counts in; `None`: not known.
    pub unit: Option<String>,
    /// The part of the unit.
    pub path: String,
    /// Size of what is accessed, or its type's name.
    pub width: Option<String>,
    /// What it does.
    pub kind: Kind,
    /// When it happens.
    pub guards: Vec<Guard>,
    /// The function in which it stands.
    pub function: FunctionItem<'db>,
    /// Where in that function.
    pub span: Span,
    /// The expression of the listing function that does it, or leads to it.
    pub at: ExprId,
}

/// Why the accesses may not be all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Gap<'db> {
    /// A fragment of a sentence.
    pub reason: String,
    /// The function in which it stands.
    pub function: FunctionItem<'db>,
    /// Where.
    pub span: Span,
    /// The expression of the listing function that leads to it, where there is one.
    pub at: Option<ExprId>,
    /// It only prints.
    pub prints: bool,
    /// It only reads.
    pub reads: bool,
    /// It may be anywhere in the function that it's listed for: its span is no place.
    pub whole: bool,
}

/// All that a function does to memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Footprint<'db> {
    /// The accesses.
    pub accesses: Vec<Access<'db>>,
    /// What isn't known.
    pub gaps: Vec<Gap<'db>>,
    /// Values of the symbols in them.
    pub ranges: BTreeMap<Symbol, Interval>,
    /// The number of renamed symbols.
    pub fresh: u32,
}

/// The reason of a gap that is an access that nothing is known of but where it is.
pub(super) const VOLATILE: &str = "a volatile access";

/// The reason of a gap that is a loop whose end another thread may decide.
pub(super) const WAITS: &str = "a loop may wait for another thread";

/// More accesses than this aren't listed one by one.
const MAX_ACCESSES: usize = 160;

/// Of what isn't known of a callee or child, this many reasons are listed; and as many places where it prints.
const MAX_GAPS: usize = 16;

/// What a function does to memory, callees and child grids included.
#[salsa::tracked(returns(clone), cycle_result = recursive)]
pub fn footprint<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Footprint<'db>> {
    collect(db, function, true)
}

/// What a function does to memory, callees included, but not the grids that it launches.
#[salsa::tracked(returns(clone), cycle_result = recursive)]
pub fn own_footprint<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Footprint<'db>> {
    collect(db, function, false)
}

/// What the child grids of one launch do to memory, in terms of the launching function.
#[salsa::tracked(returns(clone))]
pub fn child_footprint<'db>(db: &'db dyn Db, function: FunctionItem<'db>, index: u32) -> Arc<Footprint<'db>> {
    let body = body(db, function);
    let evaluator = Evaluator::new(db, function, &body);
    let mut scan = Scan {
        db,
        function,
        body: &body,
        evaluator: &evaluator,
        launches: true,
        looks: HashSet::new(),
        found: Footprint::default(),
    };
    if let Some(facts) = launches(db, function).get(index as usize)
        && let ExprKind::Launch(launch) = &body.expr(facts.expr).kind
    {
        scan.launch(facts.expr, launch, facts);
    }
    scan.finish()
}

fn recursive<'db>(db: &'db dyn Db, _: salsa::Id, function: FunctionItem<'db>) -> Arc<Footprint<'db>> {
    Arc::new(Footprint {
        gaps: vec![Gap {
            reason: format!("`{}` is recursive", function.name(db)),
            function,
            span: function.signature(db).name_span,
            at: None,
            prints: false,
            reads: false,
            whole: true,
        }],
        ..Footprint::default()
    })
}

fn collect<'db>(db: &'db dyn Db, function: FunctionItem<'db>, launches: bool) -> Arc<Footprint<'db>> {
    let body = body(db, function);
    let evaluator = Evaluator::new(db, function, &body);
    let mut scan = Scan {
        db,
        function,
        body: &body,
        evaluator: &evaluator,
        launches,
        looks: silent_stores(&body).into_iter().map(|silent| silent.look).collect(),
        found: Footprint::default(),
    };
    scan.gaps_of_body();
    for i in 0..body.exprs.len() {
        scan.expr(ExprId(i as u32));
    }
    scan.finish()
}

struct Scan<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    evaluator: &'a Evaluator<'a, 'db>,
    launches: bool,
    /// Where the body looks whether a store would change anything.
    looks: HashSet<ExprId>,
    found: Footprint<'db>,
}

impl<'db> Scan<'_, 'db> {
    fn finish(mut self) -> Arc<Footprint<'db>> {
        if self.found.accesses.len() > MAX_ACCESSES {
            let dropped = self.found.accesses.split_off(MAX_ACCESSES);
            // Where each of them is matters to who asks about a part of the function.
            let places: BTreeSet<ExprId> = dropped.iter().map(|access| access.at).collect();
            for at in places {
                self.gap_at("it accesses memory in too many places", at);
            }
        }
        self.found.ranges.extend(self.evaluator.ranges());
        Arc::new(self.found)
    }

    fn gap(&mut self, reason: impl Into<String>, span: Span, at: Option<ExprId>) {
        let gap = Gap {
            reason: reason.into(),
            function: self.function,
            span,
            at,
            prints: false,
            reads: false,
            whole: false,
        };
        if !self.found.gaps.contains(&gap) {
            self.found.gaps.push(gap);
        }
    }

    /// An access of which nothing else is told.
    fn volatile_access(&mut self, reads: bool, span: Span, at: ExprId) {
        let gap = Gap {
            reason: VOLATILE.to_owned(),
            function: self.function,
            span,
            at: Some(at),
            prints: false,
            reads,
            whole: false,
        };
        if !self.found.gaps.contains(&gap) {
            self.found.gaps.push(gap);
        }
    }

    /// A gap at an expression that has no other of this reason.
    fn gap_at(&mut self, reason: &str, at: ExprId) {
        self.found.gaps.push(Gap {
            reason: reason.to_owned(),
            function: self.function,
            span: self.body.expr(at).span,
            at: Some(at),
            prints: false,
            reads: false,
            whole: false,
        });
    }

    /// What isn't understood, whatever it may access.
    fn gaps_of_body(&mut self) {
        let facts = &direct(self.db, self.function).facts;
        for (name, span) in &facts.unknown_calls {
            let reason = match name.as_str() {
                "" => "a part of it isn't understood".to_owned(),
                name => format!("what `{name}` does isn't known"),
            };
            self.gap(reason, *span, None);
        }
        for span in &facts.asm {
            self.gap("inline assembly", *span, None);
        }
        for span in &facts.may_wait {
            self.gap(WAITS, *span, None);
        }
        for span in &facts.prints {
            self.found.gaps.push(Gap {
                reason: "it prints, and the order of the lines would change".to_owned(),
                function: self.function,
                span: *span,
                at: None,
                prints: true,
                reads: false,
                whole: false,
            });
        }
        for stmt in &self.body.stmts {
            if let StmtKind::RangeFor { range, .. } = stmt.kind {
                let e = self.body.strip_parens(range);
                if !matches!(
                    self.evaluator.location(e),
                    Some(Location {
                        root: Root::Object(_),
                        ..
                    })
                ) {
                    self.gap(
                        "what a range-based `for` reads isn't followed",
                        self.body.expr(e).span,
                        None,
                    );
                }
            }
        }
    }

    fn access(&mut self, place: Location, width: Option<String>, kind: Kind, at: ExprId) {
        // The thread's own variables matter to the thread alone.
        if let Root::Object(b) = place.root
            && self.body.binding(b).storage == Storage::Static
        {
            self.gap("a static variable", self.body.expr(at).span, Some(at));
            return;
        }
        let guards = self.evaluator.guards(at);
        self.found.accesses.push(Access {
            root: place.root,
            offset: place.offset,
            unit: place.unit,
            path: place.path,
            width,
            kind,
            guards,
            function: self.function,
            span: self.body.expr(at).span,
            at,
        });
    }

    fn expr(&mut self, e: ExprId) {
        let body = self.body;
        let expr = body.expr(e);
        match &expr.kind {
            ExprKind::Name(Name::Local(_) | Name::Other(_))
            | ExprKind::Deref(_)
            | ExprKind::Index { .. }
            | ExprKind::Field { .. } => self.place(e),
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => match callee(self.db, self.function, body, *target, name.as_deref(), args) {
                Callee::Functions(candidates, library) => {
                    for f in candidates {
                        self.call(e, f, args);
                    }
                    if let Some(library) = library {
                        self.library(e, library, name.as_deref().unwrap_or(""), args);
                    }
                }
                Callee::Known(library) => self.library(e, library, name.as_deref().unwrap_or(""), args),
                Callee::Type(_) | Callee::Unknown => {}
            },
            ExprKind::Launch(launch) if self.launches => {
                let all = launches(self.db, self.function);
                if let Some(facts) = all.iter().find(|l| l.expr == e) {
                    self.launch(e, launch, facts);
                }
            }
            // `at(p, i) = x`: what a call returns a reference to.
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } if !self.names_memory(*place) => {
                self.gap("it writes what isn't known", expr.span, Some(e));
            }
            ExprKind::Delete(pointer) => {
                let place = self.evaluator.pointer(*pointer);
                self.access(anywhere(place.root), None, Kind::Free, e);
            }
            _ => {}
        }
    }

    /// Whether an expression that is written is one that [`Scan::place`] understands.
    fn names_memory(&self, place: ExprId) -> bool {
        match &self.body.expr(self.body.strip_parens(place)).kind {
            ExprKind::Name(Name::Local(_) | Name::Other(_)) | ExprKind::Deref(_) | ExprKind::Index { .. } => true,
            ExprKind::Field { base, arrow, .. } => *arrow || self.names_memory(*base),
            _ => false,
        }
    }

    /// An expression that may name memory.
    fn place(&mut self, e: ExprId) {
        if self.looks.contains(&e) {
            return;
        }
        let body = self.body;
        let parents = &self.evaluator.parents;
        let mut inner = e;
        let mut outer = parents.get(&inner).copied();
        while let Some(o) = outer.filter(|o| matches!(body.expr(*o).kind, ExprKind::Paren(_))) {
            inner = o;
            outer = parents.get(&inner).copied();
        }
        let shape = self.evaluator.places.shape(e);
        let array = shape.as_ref().is_some_and(|s| s.dims > 0);
        let kind = match outer.map(|o| (&body.expr(o).kind, o)) {
            // A part of a bigger place, a name that is called, an address.
            Some((ExprKind::Field { arrow: false, .. } | ExprKind::AddrOf(_), _)) => return,
            Some((ExprKind::Index { base, .. }, _)) if *base == inner && array => return,
            Some((ExprKind::Call { callee, .. }, _)) if *callee == inner => return,
            Some((ExprKind::Launch(launch), _)) if launch.callee == inner => return,
            Some((ExprKind::Assign { op: None, place, value }, _)) if *place == inner => {
                Kind::Write(self.constant(*value).filter(|n| self.stored_alike(e, *n)))
            }
            Some((
                ExprKind::Assign {
                    op: Some(op), place, ..
                },
                o,
            )) if *place == inner => Kind::Update {
                operation: operation_of(*op).filter(|_| self.unused(o)),
            },
            Some((ExprKind::IncDec { .. }, o)) => Kind::Update {
                operation: Some(Operation::Add).filter(|_| self.unused(o)),
            },
            _ if array => return,
            _ => Kind::Read,
        };
        // It is the whole unit that is read, and written for one field of it.
        let bits = matches!(body.expr(e).kind, ExprKind::Field { .. }) && self.evaluator.places.is_bit_field(e);
        let kind = match kind {
            Kind::Write(_) | Kind::Update { .. } if bits => Kind::Update { operation: None },
            other => other,
        };
        // Plain variables of the thread, and names that stand for constants or functions.
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b))
                if !body.binding(*b).ty.reference
                    && matches!(body.binding(*b).storage, Storage::Param | Storage::Local) =>
            {
                return;
            }
            ExprKind::Name(Name::Other(name)) => {
                let stands_for = stands_for(self.db, self.function, name);
                match stands_for {
                    StandsFor::Value if kind.reads_only() => return,
                    StandsFor::Variable => {}
                    // Where it is, `location` doesn't know, either.
                    StandsFor::Unknown if kind.reads_only() => {}
                    StandsFor::Value | StandsFor::Unknown => {
                        let reason = format!("it writes `{name}`, and what that is isn't known");
                        self.gap(reason, body.expr(e).span, Some(e));
                        return;
                    }
                }
            }
            _ => {}
        }
        if self.evaluator.places.refers(e) {
            let reason = "what a member that is a reference refers to isn't known";
            return self.gap(reason.to_owned(), body.expr(e).span, Some(e));
        }
        let Some(mut place) = self.evaluator.location(e) else {
            return;
        };
        if bits {
            place.path.truncate(place.path.rfind('.').unwrap_or(0));
        }
        if let Root::Object(b) = place.root
            && body.binding(b).ty.array.is_empty()
            && matches!(body.binding(b).storage, Storage::Local | Storage::Param)
        {
            // A field of a local struct.
            return;
        }
        let volatile = match &body.expr(e).kind {
            ExprKind::Index { base, .. } | ExprKind::Deref(base) => self.volatile(*base),
            ExprKind::Name(Name::Local(b)) => body.binding(*b).ty.volatile,
            _ => false,
        };
        if volatile {
            self.volatile_access(kind.reads_only(), body.expr(e).span, e);
            return;
        }
        // An operator of a class may do anything.
        if let Some(shape) = shape
            && shape.pointers == 0
            && self
                .evaluator
                .places
                .is_opaque(&shape.base, &self.function.signature(self.db).template_types)
            && !cuda_type(&shape.base)
        {
            let reason = format!("what copying a `{}` does isn't known", shape.base);
            self.gap(reason, body.expr(e).span, Some(e));
        }
        let width = self.evaluator.width(e);
        self.access(place, width, kind, e);
    }

    fn volatile(&self, pointer: ExprId) -> bool {
        let mut todo = vec![pointer];
        while let Some(e) = todo.pop() {
            match &self.body.expr(e).kind {
                ExprKind::Name(Name::Local(b)) if self.body.binding(*b).ty.volatile => return true,
                ExprKind::Cast { ty, .. } if ty.contains("volatile") => return true,
                kind => todo.extend(crate::hir::flow::operands(kind)),
            }
        }
        false
    }

    fn constant(&self, e: ExprId) -> Option<i128> {
        match &self.body.expr(self.body.strip_parens(e)).kind {
            ExprKind::Literal(Literal::Int(n)) => Some(*n),
            ExprKind::Literal(Literal::Bool(b)) => Some(i128::from(*b)),
            ExprKind::Unary(UnOp::Neg, inner) => self.constant(*inner)?.checked_neg(),
            _ => None,
        }
    }

    /// All types of one size store the number as the same bits as this place does: not so a floating-point 1.
    fn stored_alike(&self, place: ExprId, n: i128) -> bool {
        let shape = self.evaluator.places.shape(place);
        let base = shape
            .filter(|s| s.pointers == 0)
            .map(|s| self.evaluator.places.alias(&s.base));
        n == 0 || base.is_some_and(|base| integer(&base).is_some() && (base != "bool" || n == 1))
    }

    /// The value of an expression goes nowhere.
    fn unused(&self, e: ExprId) -> bool {
        let mut e = e;
        while let Some(outer) = self.evaluator.parents.get(&e).copied() {
            match &self.body.expr(outer).kind {
                ExprKind::Paren(_) => e = outer,
                ExprKind::Cast { ty, .. } if ty == "void" => return true,
                _ => return false,
            }
        }
        let Some(stmt) = self.evaluator.around.statement_of(e) else {
            return false;
        };
        match &self.body.stmt(stmt).kind {
            StmtKind::Expr(whole) => *whole == e,
            StmtKind::For { step, .. } => *step == Some(e),
            _ => false,
        }
    }

    fn library(&mut self, e: ExprId, library: Library, name: &str, args: &[ExprId]) {
        let span = self.body.expr(e).span;
        let Some(first) = args.first().copied() else { return };
        let width = self.evaluator.width_behind(first);
        let pointee = |scan: &Self, arg: ExprId| scan.evaluator.pointer(arg).at(Some(Value::constant(0, Integer::INT)));
        match library.memory {
            Memory::Atomic(scope) => {
                let place = pointee(self, first);
                let class = self.evaluator.places.pointee_class(first);
                let kind = Kind::Atomic {
                    operation: atomic_operation(name, class).filter(|_| self.unused(e)),
                };
                // Which number is smaller depends on the sign.
                let compares = matches!(
                    kind,
                    Kind::Atomic {
                        operation: Some(Operation::Minimum | Operation::Maximum)
                    }
                );
                let unsigned = self.evaluator.unsigned_behind(first);
                let width = width.map(|w| {
                    if compares && unsigned {
                        format!("unsigned {w}")
                    } else {
                        w
                    }
                });
                let kind = match scope {
                    // Atomic among the threads of a block only.
                    Scope::Block => Kind::Update { operation: None },
                    Scope::Device | Scope::System => kind,
                };
                self.access(place, width, kind, e);
            }
            Memory::Stores => {
                let place = pointee(self, first);
                self.access(place, width, Kind::Write(None), e);
            }
            Memory::ReadOnly => {
                let place = pointee(self, first);
                self.access(place, width, Kind::Read, e);
            }
            Memory::Loads { volatile } => {
                let place = pointee(self, first);
                self.access(place, width, Kind::Read, e);
                if volatile {
                    self.volatile_access(true, span, e);
                }
            }
            Memory::Through { writes, reads, whole } => {
                let written: Vec<usize> = writes.places(args.len()).collect();
                for at in written.iter().copied().chain(reads.places(args.len())) {
                    let Some(pointer) = args.get(at).copied() else { continue };
                    let kind = match written.contains(&at) {
                        true => Kind::Write(None),
                        false => Kind::Read,
                    };
                    match whole {
                        true => {
                            let root = self.evaluator.pointer(pointer).root;
                            self.access(anywhere(root), None, kind, e);
                        }
                        false => {
                            let place = pointee(self, pointer);
                            let width = self.evaluator.width_behind(pointer);
                            self.access(place, width, kind, e);
                        }
                    }
                }
            }
            Memory::Frees => {
                let root = self.evaluator.pointer(first).root;
                self.access(anywhere(root), None, Kind::Free, e);
            }
            Memory::Handle { .. } => self.gap(format!("what `{name}` copies isn't followed"), span, Some(e)),
            Memory::Untouched | Memory::References => {}
        }
    }

    /// Whether what `target` does, as the expression runs it, isn't followed; then a gap says so.
    fn is_beyond(&mut self, e: ExprId, target: FunctionItem<'db>) -> bool {
        let far = leads_too_far(self.db, target);
        if far {
            self.gap_at("it leads to more functions than are followed", e);
        }
        far
    }

    fn call(&mut self, e: ExprId, target: FunctionItem<'db>, args: &[ExprId]) {
        if self.is_beyond(e, target) {
            return;
        }
        let callee = if self.launches {
            footprint(self.db, target)
        } else {
            own_footprint(self.db, target)
        };
        let same = |symbol: &Symbol| {
            let own = matches!(symbol, Symbol::Builtin(..)).then(|| Polynomial::symbol(symbol.clone()));
            own.map(|p| (p, Vec::new()))
        };
        self.instantiate(e, target, &callee, args, &same, &BTreeMap::new());
    }

    fn launch(&mut self, e: ExprId, launch: &Launch, facts: &LaunchFacts<'db>) {
        let span = self.body.expr(e).span;
        let Child::Kernel(kernel) = facts.child else {
            let reason = match &facts.child {
                Child::Ambiguous(_) => "several kernels fit the launch",
                _ => "the definition of the launched kernel isn't known",
            };
            self.gap(reason, span, Some(e));
            return;
        };
        if facts.in_lambda {
            self.gap("a launch in a lambda", span, Some(e));
        }
        if self.is_beyond(e, kernel) {
            return;
        }
        let child = footprint(self.db, kernel);
        // The child's built-in variables: sizes are those of the launch.
        let mut sizes: BTreeMap<(Builtin, u8), Option<Value>> = BTreeMap::new();
        let mut ranges = BTreeMap::new();
        for (size, index, extent) in [
            (Builtin::GridDim, Builtin::BlockIdx, &facts.grid),
            (Builtin::BlockDim, Builtin::ThreadIdx, &facts.block),
        ] {
            for axis in 0..3u8 {
                let value = size_value(self.evaluator, extent, axis);
                let bound = size_range(self.evaluator, value.as_ref(), Symbol::Builtin(size, axis));
                ranges.insert(Symbol::Builtin(size, axis), bound);
                let last = bound.hi.map(|hi| hi - 1);
                ranges.insert(Symbol::Builtin(index, axis), Interval { lo: Some(0), hi: last });
                sizes.insert((size, axis), value);
            }
        }
        let builtins = |symbol: &Symbol| match symbol {
            Symbol::Builtin(b @ (Builtin::GridDim | Builtin::BlockDim), axis) => {
                let value = sizes.get(&(*b, *axis)).and_then(Option::as_ref)?;
                Some((value.polynomial.clone(), value.fits.clone()))
            }
            _ => None,
        };
        self.instantiate(e, kernel, &child, &launch.args, &builtins, &ranges);
    }

    /// Adds what a callee or child does, in terms of this function.
    fn instantiate(
        &mut self,
        e: ExprId,
        target: FunctionItem<'db>,
        theirs: &Footprint<'db>,
        args: &[ExprId],
        builtins: &dyn Fn(&Symbol) -> Option<Image>,
        ranges: &BTreeMap<Symbol, Interval>,
    ) {
        // Whoever asks for a part of this function has all or none of them: a few say the same as all.
        for (prints, reads) in [(false, false), (false, true), (true, false)] {
            let gaps = theirs
                .gaps
                .iter()
                .filter(|gap| gap.prints == prints && gap.reads == reads);
            let gaps = gaps.take(MAX_GAPS).map(|gap| Gap {
                at: Some(e),
                whole: false,
                ..gap.clone()
            });
            self.found.gaps.extend(gaps);
        }
        if self.found.accesses.len() > MAX_ACCESSES {
            if !theirs.accesses.is_empty() {
                self.gap_at("it accesses memory in too many places", e);
            }
            return;
        }
        let guards = self.evaluator.guards(e);
        let names = parameters(self.db, target);
        let evaluator = self.evaluator;
        let image = |symbol: &Symbol| match symbol {
            Symbol::Parameter(index) => {
                let arg = args.get(*index as usize)?;
                let ty = &names.get(*index as usize)?.ty;
                let (ty, _, true) = integer(&evaluator.places.alias(&ty.base))? else {
                    return None;
                };
                let value = evaluator.value(*arg)?.convert(ty)?;
                Some((value.polynomial, value.fits))
            }
            _ => builtins(symbol),
        };
        let mut renaming = Renaming::new(&image, &theirs.ranges, ranges, self.found.fresh);
        let mut found = Vec::new();
        for access in &theirs.accesses {
            let offset = access.offset.as_ref().and_then(|o| renaming.value(o));
            let Some(place) = self.place_in_caller(access, offset, target, names, args) else {
                continue;
            };
            let mut all = guards.clone();
            all.extend(access.guards.iter().filter_map(|g| renaming.guard(g)));
            found.push(Access {
                root: place.root,
                offset: place.offset,
                unit: place.unit,
                guards: all,
                at: e,
                ..access.clone()
            });
        }
        self.found.fresh = renaming.fresh;
        let ranges = renaming.ranges;
        self.found.ranges.extend(ranges);
        self.found.accesses.extend(found);
    }

    /// Where an access of a callee or child is, in terms of this function; `None`: in memory of its own.
    fn place_in_caller(
        &self,
        access: &Access<'db>,
        offset: Option<Value>,
        target: FunctionItem<'db>,
        names: &[Parameter],
        args: &[ExprId],
    ) -> Option<Location> {
        let unknown = anywhere(Root::Unknown);
        Some(match &access.root {
            Root::Object(_) => return None,
            Root::Unknown => unknown,
            Root::Global(_) => Location {
                root: access.root.clone(),
                offset,
                unit: access.unit.clone(),
                path: String::new(),
            },
            Root::Member(index, path) => {
                let arg = args.get(*index as usize).map(|a| self.body.strip_parens(*a));
                let Some(ExprKind::Name(Name::Local(b))) = arg.map(|a| &self.body.expr(a).kind) else {
                    return Some(unknown);
                };
                match self.body.params.iter().position(|p| p == b) {
                    Some(own) if self.evaluator.variables.keeps_argument(*b) => Location {
                        root: Root::Member(own as u32, path.clone()),
                        offset,
                        unit: access.unit.clone(),
                        path: String::new(),
                    },
                    _ => unknown,
                }
            }
            Root::Parameter(index) => {
                let (Some(arg), Some(parameter)) = (args.get(*index as usize), names.get(*index as usize)) else {
                    return Some(unknown);
                };
                let base = if parameter.ty.reference {
                    self.evaluator.location(*arg).unwrap_or_else(|| unknown.clone())
                } else {
                    let pointer = self.evaluator.pointer(*arg);
                    Location {
                        root: pointer.root,
                        offset: pointer.offset,
                        unit: pointer.unit,
                        path: String::new(),
                    }
                };
                // Pointers to different types don't convert: a template's type is the argument's.
                let template = target.signature(self.db).template_types.contains(&parameter.ty.base)
                    && access.unit.as_ref() == Some(&parameter.ty.base)
                    && parameter.ty.pointers + u8::from(parameter.ty.reference) == 1;
                let same = base.path.is_empty() && base.unit.is_some() && (base.unit == access.unit || template);
                let whole = if base.root == Root::Unknown {
                    None
                } else {
                    offset.zip(base.offset)
                };
                Location {
                    offset: whole.filter(|_| same).and_then(|(a, b)| sum(a, b, false)),
                    unit: base.unit.filter(|_| same),
                    root: base.root,
                    path: String::new(),
                }
            }
        })
    }
}

fn anywhere(root: Root) -> Location {
    Location {
        root,
        offset: None,
        unit: None,
        path: String::new(),
    }
}

/// A component of a grid or block size, as the launching function computes it.
pub(super) fn size_value(evaluator: &Evaluator<'_, '_>, extent: &Extent, axis: u8) -> Option<Value> {
    match extent.components?[usize::from(axis)] {
        None => Some(Value::constant(1, Integer::UNSIGNED)),
        Some(e) => evaluator.value(e)?.convert(Integer::UNSIGNED),
    }
}

/// The values that it can have in a launch that doesn't fail.
pub(super) fn size_range(evaluator: &Evaluator<'_, '_>, value: Option<&Value>, size: Symbol) -> Interval {
    let allowed = default_range(&size);
    let Some(value) = value else { return allowed };
    let ranges = evaluator.ranges();
    let range = |s: &Symbol| default_range(s).meet(ranges.get(s).copied().unwrap_or(Interval::ALL));
    let own = value.polynomial.interval(&range);
    let exact = value.fits.iter().all(|f| f.value.interval(&range).within(f.range));
    allowed.meet(if exact { own } else { positive(own) })
}

/// The interval of a grid or block size that the arithmetic may have wrapped around: any, but for what it can't be.
fn positive(range: Interval) -> Interval {
    match (range.lo, range.hi) {
        // Negative sizes turn into ones that no launch may have: 2³² less at most half of it.
        (Some(lo), Some(hi)) if lo > -WORD / 2 && hi < WORD => Interval::new(lo.max(0), hi),
        _ => Interval::ALL,
    }
}

fn operation_of(op: BinOp) -> Option<Operation> {
    Some(match op {
        BinOp::Add | BinOp::Sub => Operation::Add,
        BinOp::Mul => Operation::Multiply,
        BinOp::BitAnd => Operation::And,
        BinOp::BitOr => Operation::Or,
        BinOp::BitXor => Operation::Xor,
        _ => return None,
    })
}

/// What an atomic function does to an integer, when order doesn't matter. Floating-point sums depend on it.
fn atomic_operation(name: &str, class: MemoryClass) -> Option<Operation> {
    let name = name.strip_prefix("gridfuse::warp_aggregated::").unwrap_or(name);
    let integer = matches!(class, MemoryClass::Int | MemoryClass::Long | MemoryClass::Short);
    let name = unqualified(name).trim_end_matches("_system");
    Some(match name {
        "atomicAdd" | "atomicSub" if integer => Operation::Add,
        "atomicMin" if integer => Operation::Minimum,
        "atomicMax" if integer => Operation::Maximum,
        "atomicAnd" if integer => Operation::And,
        "atomicOr" if integer => Operation::Or,
        "atomicXor" if integer => Operation::Xor,
        _ => return None,
    })
}

/// CUDA's vector types and handles copy as they are.
fn cuda_type(base: &str) -> bool {
    crate::hir::library::vector_fields(base).is_some() || known(base).is_some_and(|l| l.is_pure())
}
