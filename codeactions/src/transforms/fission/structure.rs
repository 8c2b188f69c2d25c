//! What is done once for a block and what is done for each of its threads: the tree of barriers, of the control flow around them,
//! and of the regions between them.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::is_pure;
use gridfuse_analysis::hir::resolve::{Meaning, functions_named, meaning_in};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr, all_stmts, parts};
use gridfuse_analysis::hir::{
    BindingId, Body, Builtin, ExprId, ExprKind, Literal, LocalDecl, Name, StmtId, StmtKind, Storage,
};

use super::groups::Groups;
use super::reasons::reason;
use crate::api::refusal::Reason;
use crate::edit::lex;
use crate::facts::calls;
use crate::facts::calls::is_plain_type;
use crate::facts::child::Child;
use crate::facts::ctype::is_integer;
use crate::facts::pure::{assignments, only_assigned};
use crate::facts::uses::{named, root, variables};

/// A part of the body.
#[derive(Clone, Debug)]
pub enum Item {
    /// Statements that each thread runs.
    Region(Vec<StmtId>),
    /// A barrier.
    Barrier(StmtId),
    /// A declaration of shared memory.
    Shared(StmtId),
    /// A statement that is run once: it sets variables of the block, or leaves a loop or the kernel.
    Once(StmtId),
    /// Control flow around barriers, with what it controls.
    Control {
        /// The `if`, loop or block.
        stmt: StmtId,
        /// Branches, or the loop's body.
        bodies: Vec<Branch>,
    },
}

/// The statements of one branch.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The branch: a block or a single statement.
    pub stmt: StmtId,
    /// What is in it.
    pub items: Vec<Item>,
}

/// Builds the tree, given which variables belong to the block.
pub struct Structure<'a, 'db> {
    child: &'a Child<'db>,
    /// Variables that have one value for the whole block, and are set by statements that run once.
    block: &'a BTreeSet<BindingId>,
    /// Parameters that the child changes.
    changed: &'a BTreeSet<BindingId>,
    /// Its cooperative groups.
    groups: &'a Groups,
    /// Declarations and expressions that set such variables and run once.
    pub once: BTreeSet<Setter>,
    /// What the control flow around barriers depends on.
    pub heads: Vec<ExprId>,
}

/// What sets a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setter {
    /// Its declaration.
    Declaration(BindingId),
    /// An assignment.
    Assignment(ExprId),
}

/// Where a branch or the body stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Body,
    Branch,
    Loop,
}

impl<'a, 'db> Structure<'a, 'db> {
    /// Nothing looked at yet.
    pub fn new(
        child: &'a Child<'db>,
        block: &'a BTreeSet<BindingId>,
        changed: &'a BTreeSet<BindingId>,
        groups: &'a Groups,
    ) -> Self {
        Structure {
            child,
            block,
            changed,
            groups,
            once: BTreeSet::new(),
            heads: Vec::new(),
        }
    }

    fn body(&self) -> &'a Body {
        &self.child.body
    }

    fn is_barrier(&self, stmt: StmtId) -> bool {
        is_barrier(self.body(), stmt) || self.groups.is_sync(self.body(), stmt)
    }

    fn refuse<T>(&self, text: impl Into<String>, span: Span) -> Result<T, Reason> {
        Err(reason(text, self.child.place_of(span)))
    }

    /// The parts of the whole body.
    pub fn of_body(&mut self) -> Result<Vec<Item>, Reason> {
        let Some(root) = self.body().root else {
            return Ok(Vec::new());
        };
        self.branch(root, Around::Body)
    }

    fn branch(&mut self, stmt: StmtId, around: Around) -> Result<Vec<Item>, Reason> {
        match &self.body().stmt(stmt).kind {
            StmtKind::Block(stmts) => self.list(stmts, around),
            _ => self.list(&[stmt], around),
        }
    }

    fn list(&mut self, stmts: &[StmtId], around: Around) -> Result<Vec<Item>, Reason> {
        let mut items: Vec<Item> = Vec::new();
        for stmt in stmts {
            let item = self.item(*stmt, around)?;
            match (item, items.last_mut()) {
                (Some(item), _) => {
                    // A pragma belongs to the loop behind it.
                    if matches!(item, Item::Control { .. })
                        && let Some(Item::Region(region)) = items.last_mut()
                        && let Some(last) = region.last()
                        && self.is_pragma(*last)
                    {
                        let pragma = *last;
                        region.pop();
                        if region.is_empty() {
                            items.pop();
                        }
                        items.push(Item::Once(pragma));
                    }
                    items.push(item);
                }
                (None, Some(Item::Region(region))) => region.push(*stmt),
                (None, _) => items.push(Item::Region(vec![*stmt])),
            }
        }
        Ok(items)
    }

    fn is_pragma(&self, stmt: StmtId) -> bool {
        let stmt = self.body().stmt(stmt);
        matches!(stmt.kind, StmtKind::Empty) && self.child.source(stmt.span).starts_with('#')
    }

    /// The text of a declaration isn't what it stands for: the name, `__shared__` or the initial value come out of a macro.
    fn is_declared_by_a_macro(&self, span: Span, declaration: &LocalDecl) -> bool {
        let binding = self.body().binding(declaration.binding);
        let source = self.child.source(span);
        let shared = matches!(binding.storage, Storage::Shared | Storage::ExternShared);
        let has = |wanted: &str| lex::code_tokens(source).iter().any(|t| t.text(source) == wanted);
        let set = || source.contains(['=', '{']) || source.contains(&format!("{}(", binding.name));
        // What has no name, `auto [x, y]` among them, is declared as it is written.
        let named = binding.name.chars().all(|c| c == '_' || c.is_alphanumeric());
        named && (!has(&binding.name) || shared && !has("__shared__") || declaration.init.is_some() && !set())
    }

    /// The part that a statement is by itself; `None`: each thread runs it.
    fn item(&mut self, stmt: StmtId, around: Around) -> Result<Option<Item>, Reason> {
        let body = self.body();
        let statement = body.stmt(stmt);
        if self.is_barrier(stmt) {
            return Ok(Some(Item::Barrier(stmt)));
        }
        if let StmtKind::Decl(decls) = &statement.kind
            && let Some(hidden) = decls.iter().find(|d| self.is_declared_by_a_macro(statement.span, d))
        {
            let name = &body.binding(hidden.binding).name;
            return self.refuse(
                format!("a macro declares `{name}`, whose declaration has to be changed here; write it out"),
                statement.span,
            );
        }
        match &statement.kind {
            StmtKind::Decl(decls)
                if decls
                    .iter()
                    .any(|d| matches!(body.binding(d.binding).storage, Storage::Shared | Storage::ExternShared)) =>
            {
                let exprs = parts(body, stmt).1;
                self.heads.extend(exprs);
                return Ok(Some(Item::Shared(stmt)));
            }
            StmtKind::Decl(decls) => {
                let known = !decls.is_empty()
                    && decls.iter().all(|d| {
                        let common = |i| self.is_common(i) || self.is_constant(d.binding, i);
                        self.block.contains(&d.binding) && d.init.is_none_or(common)
                    });
                if known {
                    self.once.extend(decls.iter().map(|d| Setter::Declaration(d.binding)));
                    return Ok(Some(Item::Once(stmt)));
                }
            }
            StmtKind::Expr(expr) => {
                if let Some(set) = self.setters(*expr) {
                    self.once.extend(set);
                    return Ok(Some(Item::Once(stmt)));
                }
            }
            // In the body itself the threads' regions end by themselves; what runs once leaves the block.
            StmtKind::Return(None) | StmtKind::Break | StmtKind::Continue => {
                return Ok((around != Around::Body).then_some(Item::Once(stmt)));
            }
            _ => {}
        }
        let barrier = all_stmts(body, stmt).into_iter().find(|s| self.is_barrier(*s));
        let leaves = self.leaves(stmt);
        let is_if = matches!(statement.kind, StmtKind::If { .. });
        if barrier.is_none() && (leaves.is_none() || !is_if && self.returns_only(stmt)) {
            return Ok(None);
        }
        match self.control(stmt)? {
            Some(item) => Ok(Some(item)),
            None if barrier.is_some() => {
                let span = barrier.map_or(statement.span, |b| body.stmt(b).span);
                self.refuse(
                    format!(
                        "`{}` waits at a barrier in a branch or loop of which it isn't certain that all threads of the block take it alike",
                        self.child.name
                    ),
                    span,
                )
            }
            // Threads that leave the kernel at different times; only loops must be left together.
            None => match leaves {
                Some(span) if !self.returns_only(stmt) => self.refuse(
                    format!(
                        "threads of `{}` leave a loop around a barrier at different times",
                        self.child.name
                    ),
                    span,
                ),
                _ => Ok(None),
            },
        }
    }

    /// The `if`, loop or block as control flow that all threads of the block take alike; `None` when that isn't certain.
    fn control(&mut self, stmt: StmtId) -> Result<Option<Item>, Reason> {
        let body = self.body();
        let (heads, bodies, around) = match &body.stmt(stmt).kind {
            StmtKind::Block(_) => (Vec::new(), vec![stmt], Around::Branch),
            StmtKind::If {
                init: None,
                cond: Some(cond),
                then,
                otherwise,
                ..
            } if self.is_common(*cond) => {
                let bodies = std::iter::once(*then).chain(*otherwise).collect();
                (vec![*cond], bodies, Around::Branch)
            }
            StmtKind::While {
                init: None,
                cond: Some(cond),
                body: inner,
            } if self.is_common(*cond) => (vec![*cond], vec![*inner], Around::Loop),
            StmtKind::DoWhile { body: inner, cond } if self.is_common(*cond) => {
                (vec![*cond], vec![*inner], Around::Loop)
            }
            StmtKind::For {
                init,
                cond,
                step,
                body: inner,
            } if cond.is_none_or(|c| self.is_common(c)) => {
                let mut set = Vec::new();
                if let Some(init) = init {
                    match &body.stmt(*init).kind {
                        StmtKind::Empty => {}
                        StmtKind::Decl(decls)
                            if decls.iter().all(|d| {
                                self.block.contains(&d.binding) && d.init.is_none_or(|i| self.is_common(i))
                            }) =>
                        {
                            set.extend(decls.iter().map(|d| Setter::Declaration(d.binding)));
                        }
                        StmtKind::Expr(expr) => match self.setters(*expr) {
                            Some(more) => set.extend(more),
                            None => return Ok(None),
                        },
                        _ => return Ok(None),
                    }
                }
                let mut heads: Vec<ExprId> = cond.iter().copied().collect();
                if let Some(step) = step {
                    match self.setters(*step) {
                        Some(more) => set.extend(more),
                        None => return Ok(None),
                    }
                    heads.push(*step);
                }
                self.once.extend(set);
                if let Some(init) = init {
                    heads.extend(parts(body, *init).1);
                }
                (heads, vec![*inner], Around::Loop)
            }
            _ => return Ok(None),
        };
        self.heads.extend(heads);
        let mut branches = Vec::new();
        for inner in bodies {
            branches.push(Branch {
                stmt: inner,
                items: self.branch(inner, around)?,
            });
        }
        Ok(Some(Item::Control { stmt, bodies: branches }))
    }

    /// The assignments of an expression that does nothing but set variables of the block to values that all threads have in
    /// common.
    fn setters(&self, expr: ExprId) -> Option<Vec<Setter>> {
        let body = self.body();
        let ours = |place: ExprId| root(body, place).is_some_and(|b| self.block.contains(&b));
        match &body.expr(expr).kind {
            ExprKind::Paren(e) => self.setters(*e),
            ExprKind::Assign { place, value, .. } if ours(*place) && self.is_common(*value) => {
                Some(vec![Setter::Assignment(expr)])
            }
            ExprKind::IncDec { place, .. } if ours(*place) => Some(vec![Setter::Assignment(expr)]),
            ExprKind::Comma(a, b) => {
                let mut all = self.setters(*a)?;
                all.extend(self.setters(*b)?);
                Some(all)
            }
            _ => None,
        }
    }

    /// Whether an expression can be evaluated for the block as a whole: nothing in it belongs to a thread, and it changes
    /// nothing.
    fn is_common(&self, expr: ExprId) -> bool {
        let body = self.body();
        let db = self.child.db;
        let all = |inner: &[ExprId]| inner.iter().all(|e| self.is_common(*e));
        if let Some(member) = self.groups.members.get(&expr) {
            return member.common;
        }
        match &body.expr(expr).kind {
            ExprKind::Literal(literal) => *literal != Literal::Str,
            ExprKind::SizeOf => lex::identifiers(self.child.source(body.expr(expr).span))
                .all(|word| !body.bindings.iter().any(|b| b.name == word)),
            ExprKind::Name(Name::Local(binding)) => {
                let variable = body.binding(*binding);
                match variable.storage {
                    Storage::Param => {
                        body.params.contains(binding)
                            && (!self.changed.contains(binding) || self.block.contains(binding))
                    }
                    Storage::Shared | Storage::ExternShared => true,
                    Storage::Local => self.block.contains(binding),
                    Storage::Static => false,
                }
            }
            ExprKind::Name(Name::Builtin(builtin)) => *builtin != Builtin::ThreadIdx,
            ExprKind::Name(Name::Other(name)) => match meaning_in(db, self.child.item, name) {
                Meaning::Enumerator(_) | Meaning::Global(_) => true,
                Meaning::Unknown => self.child.item.signature(db).template_names.contains(name),
                _ => false,
            },
            ExprKind::Paren(e)
            | ExprKind::Unary(_, e)
            | ExprKind::Deref(e)
            | ExprKind::Field { base: e, .. }
            | ExprKind::Cast { operand: e, .. } => self.is_common(*e),
            ExprKind::Binary(_, a, b)
            | ExprKind::Logical { lhs: a, rhs: b, .. }
            | ExprKind::Index { base: a, index: b } => all(&[*a, *b]),
            ExprKind::Conditional { cond, then, otherwise } => all(&[*cond, *then, *otherwise]),
            ExprKind::Construct { ty, args } => is_plain_type(ty) && all(args),
            ExprKind::Call { name, args, .. } => {
                let pure = name.as_deref().is_some_and(|name| {
                    if hides(db, self.child.item, name) {
                        return false;
                    }
                    if calls::is_pure(db, self.child.item, name) {
                        return true;
                    }
                    let functions = functions_named(db, self.child.file, name);
                    let bodies: Vec<_> = functions.into_iter().filter(|f| f.has_body(db)).collect();
                    !bodies.is_empty() && bodies.iter().all(|f| is_pure(db, *f))
                });
                pure && all(args)
            }
            _ => false,
        }
    }

    /// The variable is `constexpr`: the compiler computes its value, which no thread has for itself.
    fn is_constant(&self, binding: BindingId, init: ExprId) -> bool {
        let body = self.body();
        let declared = self.child.source(body.binding(binding).decl_span);
        let mut names = variables(body, &all_in_expr(body, init)).into_iter();
        lex::identifiers(declared).any(|word| word == "constexpr") && names.all(|b| self.block.contains(&b))
    }

    /// The first `return`, or the first `break` or `continue` of a loop around the statement.
    fn leaves(&self, stmt: StmtId) -> Option<Span> {
        let body = self.body();
        let mut todo = vec![(stmt, false, false)];
        while let Some((next, in_loop, in_switch)) = todo.pop() {
            let statement = body.stmt(next);
            match &statement.kind {
                StmtKind::Return(_) => return Some(statement.span),
                StmtKind::Break if !in_loop && !in_switch => return Some(statement.span),
                StmtKind::Continue if !in_loop => return Some(statement.span),
                _ => {}
            }
            let is_loop = matches!(
                statement.kind,
                StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. } | StmtKind::RangeFor { .. }
            );
            let is_switch = matches!(statement.kind, StmtKind::Switch { .. });
            for inner in parts(body, next).0 {
                todo.push((inner, in_loop || is_loop, in_switch || is_switch));
            }
        }
        None
    }

    /// Whether a statement is left by `return` alone.
    fn returns_only(&self, stmt: StmtId) -> bool {
        let body = self.body();
        let mut todo = vec![(stmt, false, false)];
        while let Some((next, in_loop, in_switch)) = todo.pop() {
            let kind = &body.stmt(next).kind;
            match kind {
                StmtKind::Break if !in_loop && !in_switch => return false,
                StmtKind::Continue if !in_loop => return false,
                _ => {}
            }
            let is_loop = matches!(
                kind,
                StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. } | StmtKind::RangeFor { .. }
            );
            let is_switch = matches!(kind, StmtKind::Switch { .. });
            for inner in parts(body, next).0 {
                todo.push((inner, in_loop || is_loop, in_switch || is_switch));
            }
        }
        true
    }
}

/// `__syncthreads();` or, for the whole warp, `__syncwarp();`: to wait for more threads than asked for does no harm where all
/// threads of the block come along.
pub fn is_barrier(body: &Body, stmt: StmtId) -> bool {
    let StmtKind::Expr(expr) = body.stmt(stmt).kind else {
        return false;
    };
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Call {
            name: Some(name), args, ..
        } => args.is_empty() && matches!(name.trim_start_matches("::"), "__syncthreads" | "__syncwarp"),
        _ => false,
    }
}

/// Variables that could be one for the whole block: plain ones that nothing but assignments changes, and such parameters, which `changed`
/// are.
pub fn candidates(child: &Child<'_>, changed: &BTreeSet<BindingId>) -> BTreeSet<BindingId> {
    let body: &Body = &child.body;
    let Some(root_stmt) = body.root else {
        return BTreeSet::new();
    };
    let mut found = BTreeSet::new();
    for stmt in all_stmts(body, root_stmt) {
        if let StmtKind::Decl(decls) = &body.stmt(stmt).kind {
            found.extend(decls.iter().map(|d| d.binding));
        }
    }
    found.extend(changed);
    found.retain(|b| {
        let variable = body.binding(*b);
        let ty = &variable.ty;
        (variable.storage == Storage::Local || changed.contains(b))
            && !ty.reference
            && !ty.complex
            && !ty.volatile
            && ty.array.is_empty()
    });
    let hidden = hidden_changes(child);
    found.retain(|b| !hidden.contains(b) && only_assigned(child.db, child.item, body, *b));
    // An element of a member array is no part that is followed.
    let seen = |b: BindingId| {
        assignments(child.db, child.item, body, b)
            .iter()
            .all(|e| match &body.expr(*e).kind {
                ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => root(body, *place) == Some(b),
                _ => false,
            })
    };
    found.retain(|b| seen(*b));
    found
}

/// Variables that something other than an assignment may change, or whose address is known.
pub fn hidden_changes(child: &Child<'_>) -> BTreeSet<BindingId> {
    let body: &Body = &child.body;
    let mut found = BTreeSet::new();
    let Some(root_stmt) = body.root else {
        return found;
    };
    for expr in all_exprs(body, root_stmt) {
        match &body.expr(expr).kind {
            ExprKind::AddrOf(place) => found.extend(root(body, *place)),
            ExprKind::Call { name, args, callee, .. } => {
                if let ExprKind::Field { base, arrow: false, .. } = &body.expr(*callee).kind {
                    found.extend(root(body, *base));
                }
                for (index, arg) in args.iter().enumerate() {
                    let harmless = name.as_deref().is_some_and(|name| {
                        calls::keeps_arguments(child.db, child.item, name)
                            || crate::facts::pure::takes_by_value(child.db, child.item, name, index)
                    });
                    if !harmless {
                        found.extend(root(body, *arg));
                        found.extend(named(body, body.strip_parens(*arg)));
                    }
                }
            }
            ExprKind::Construct { ty, args } if !is_plain_type(ty) && !is_integer(child.db, child.file, ty) => {
                found.extend(args.iter().filter_map(|a| root(body, *a)));
            }
            _ => {}
        }
    }
    for stmt in all_stmts(body, root_stmt) {
        match &body.stmt(stmt).kind {
            StmtKind::Decl(decls) => {
                for decl in decls {
                    let ty = &body.binding(decl.binding).ty;
                    if ty.reference || ty.complex {
                        found.extend(decl.init.and_then(|i| root(body, i)));
                    }
                }
            }
            StmtKind::RangeFor { range, .. } => found.extend(root(body, *range)),
            _ => {}
        }
    }
    found
}
