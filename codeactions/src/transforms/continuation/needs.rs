//! What a continuation needs of the kernel that it is a part of: what is handed over, what is computed again.

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Dependence, unchanged};
use gridfuse_analysis::facts::effects::{Found, effects, is_pure, summary};
use gridfuse_analysis::facts::escape::escapes;
use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::facts::left_behind::has_operators;
use gridfuse_analysis::facts::uniformity::Level;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::library::library;
use gridfuse_analysis::hir::mentions::file_words;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::reference_names::may_hold_a_reference;
use gridfuse_analysis::hir::resolve::{Meaning, functions_in, meaning_in};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::walk::{all_in_expr, all_stmts};
use gridfuse_analysis::hir::{BindingId, Body, Builtin, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};

use super::addresses::{hold_addresses, stored_address};
use super::{Around, Given, Runs, Tail};
use crate::api::refusal::Reason;
use crate::edit::lex;
use crate::facts::calls;
use crate::facts::calls::is_plain_type;
use crate::facts::child::copies_plainly;
use crate::facts::own_name;
use crate::facts::pure::{assignments, holds_its_value, is_volatile};
use crate::facts::unlowered::named_unlowered;

impl Tail<'_, '_> {
    /// Finds out what the continuation needs.
    pub fn collect(&mut self) -> Result<(), Reason> {
        let body = self.body();
        let mut needed: Vec<ExprId> = self.moved_exprs();
        let mut unlowered: Vec<Span> = self.moved.clone();
        let path = body.stmt(self.path()).span;
        for (index, stmt) in body.stmts.iter().enumerate() {
            if !matches!(stmt.kind, StmtKind::Return(_)) || self.moves(stmt.span) || self.runs == Runs::One {
                continue;
            }
            let id = StmtId(index as u32);
            // Nobody does where no launch fails.
            if self.checked.has(stmt.span) {
                continue;
            }
            if path.start <= stmt.span.start && stmt.span.end <= path.end {
                return Err(self.at("some threads leave the kernel where others get to the wait", stmt.span));
            }
            if self.runs == Runs::Some {
                let (holder, cond, negated) = self.simple_return(id)?;
                self.again(cond)?;
                needed.push(cond);
                unlowered.push(body.expr(cond).span);
                self.returns.entry(holder).or_default().push((cond, negated));
            }
        }
        let guards: Vec<(ExprId, bool)> = self
            .levels
            .iter()
            .enumerate()
            .filter(|(level, _)| self.asks_again(*level))
            .filter_map(|(_, around)| match around {
                Around::Guard { cond, constexpr, .. } => Some((*cond, *constexpr)),
                Around::Block { .. } => None,
            })
            .collect();
        for (cond, constexpr) in guards {
            if constexpr {
                return Err(self.at(
                    "an `if constexpr` around the wait can't be repeated",
                    body.expr(cond).span,
                ));
            }
            self.again(cond)?;
            needed.push(cond);
            unlowered.push(body.expr(cond).span);
        }
        for stmt in self.moved_stmts().into_iter().flat_map(|s| all_stmts(body, s)) {
            if let StmtKind::Asm { mentions, .. } = &body.stmt(stmt).kind {
                for binding in mentions.clone() {
                    self.give(binding, body.stmt(stmt).span)?;
                }
            }
        }
        for expr in needed {
            self.names_in(expr)?;
        }
        for part in unlowered {
            self.unlowered_in(part)?;
        }
        self.refuse_changeable_extents()?;
        if let Some(store) = stored_address(self.wait.db, self.wait.function, body) {
            return Err(self.at(
                "this may leave the address of shared or local memory for another kernel, which can't use it",
                body.expr(store).span,
            ));
        }
        let facts = summary(self.wait.db, self.wait.function);
        if let Some(span) = facts.dynamic_shared.iter().find(|span| self.moves(**span)) {
            return Err(self.at(
                "what follows uses dynamic shared memory, whose size isn't known there",
                *span,
            ));
        }
        self.refuse_own_name()?;
        self.refuse_clashes()?;
        match unchanged(self.wait.db, self.wait.function, &self.reads) {
            Dependence::None(_) => Ok(()),
            Dependence::Conflict(a, b) => {
                let write = if a.kind.reads_only() { b } else { a };
                let place = FileRange {
                    file: write.function.file(self.wait.db),
                    range: write.span.shift(write.function.start(self.wait.db)),
                };
                let name = unqualified(write.function.name(self.wait.db));
                let verb = write.kind.verb();
                Err(self.reason(
                    format!("what follows can't be computed again from memory that `{name}` {verb}"),
                    place,
                ))
            }
            Dependence::Unknown(doubt) => {
                let read = self.reads.first().map_or(self.wait.call, |e| *e);
                Err(self.at(
                    format!("what is read here may have changed after the wait: {}", doubt.reason),
                    body.expr(read).span,
                ))
            }
        }
    }

    /// Variables named directly by an expression: `names` has all its parts.
    fn names_in(&mut self, expr: ExprId) -> Result<(), Reason> {
        let body = self.body();
        for part in all_in_expr(body, expr) {
            let named = match &body.expr(part).kind {
                ExprKind::Name(_) => part,
                // A pointer to a function, which may look like a declaration of one.
                ExprKind::Call { name: Some(name), .. } if self.kernel_declares(name) => {
                    return Err(self.at(
                        format!("`{name}` can't be handed to another kernel"),
                        body.expr(part).span,
                    ));
                }
                ExprKind::Call { callee, .. } => body.strip_parens(*callee),
                _ => continue,
            };
            if let ExprKind::Name(Name::Local(binding)) = &body.expr(named).kind {
                self.give(*binding, body.expr(named).span)?;
            }
        }
        Ok(())
    }

    /// `int (*f)() = one;` stands in the kernel.
    fn kernel_declares(&self, name: &str) -> bool {
        let text = self.wait.function.text(self.wait.db);
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        [format!("(*{name})("), format!("(*{name}[")]
            .iter()
            .any(|head| compact.contains(head))
            && !self.body().bindings.iter().any(|b| b.name == name)
    }

    /// `__func__` is another name in the continuation.
    fn refuse_own_name(&self) -> Result<(), Reason> {
        let start = self.wait.start;
        let moves = |found: &&Found| {
            let range = found.place.range;
            let own = found.place.file == self.wait.file && range.start >= start;
            own && self.moves(Span::new(range.start - start, range.end - start))
        };
        // As a default argument it is the name of whoever calls.
        let db = self.wait.db;
        let mut files = included_files(db, self.wait.file).iter();
        if files.any(|file| file_words(db, *file).contains("__builtin_FUNCTION")) {
            return Err(self.reason(
                "what follows may use __builtin_FUNCTION(), which is another name in another kernel",
                self.wait.here(),
            ));
        }
        let names = effects(self.wait.db, self.wait.function);
        let mut tells = names.own_name.iter().filter(moves);
        match tells.find(|name| !own_name::is_told_of_errors_alone(self.kernel, name)) {
            Some(name) => Err(self.reason(
                format!(
                    "what follows uses {}, which is another name in another kernel",
                    name.what
                ),
                name.place,
            )),
            None => Ok(()),
        }
    }

    /// Variables that a part of the kernel names where nothing is lowered: `sum<K>(d)`.
    fn unlowered_in(&mut self, part: Span) -> Result<(), Reason> {
        for (binding, used) in named_unlowered(self.wait.db, self.wait.function, part) {
            self.give(binding, used)?;
            self.refuse_changeable(binding, used)?;
        }
        Ok(())
    }

    /// A constant that an argument of the launch has to bring is none any more.
    fn refuse_changeable(&self, binding: BindingId, used: Span) -> Result<(), Reason> {
        let passed = matches!(self.given.get(&binding), Some(Given::Passed(_)));
        if !passed || !self.is_constant(binding) {
            return Ok(());
        }
        let name = &self.body().binding(binding).name;
        Err(self.at(
            format!("`{name}` has to be a constant here, and can't be declared again in another kernel"),
            used,
        ))
    }

    /// Sizes of arrays that move are constants.
    fn refuse_changeable_extents(&self) -> Result<(), Reason> {
        let body = self.body();
        let arrays = body.bindings.iter().filter(|b| self.moves(b.span));
        let sizes = arrays.flat_map(|b| b.ty.array.iter().flatten());
        for part in sizes.flat_map(|size| all_in_expr(body, *size)) {
            if let ExprKind::Name(Name::Local(binding)) = body.expr(part).kind {
                self.refuse_changeable(binding, body.expr(part).span)?;
            }
        }
        Ok(())
    }

    /// A variable that may stand where the compiler wants a constant.
    fn is_constant(&self, binding: BindingId) -> bool {
        let Some((stmt, init)) = self.declaration(binding) else {
            return false;
        };
        let variable = self.body().binding(binding);
        let words = self.kernel.source(self.type_of_declaration(stmt));
        let value = |init| constant_value(self.wait.db, self.wait.function, self.body(), init).is_some();
        lex::identifiers(words).any(|word| word == "constexpr") || variable.ty.const_base && init.is_some_and(value)
    }

    /// What stands in a declaration before the first name that it declares: types and attributes.
    fn type_of_declaration(&self, stmt: StmtId) -> Span {
        let body = self.body();
        let span = body.stmt(stmt).span;
        let first = match &body.stmt(stmt).kind {
            StmtKind::Decl(decls) => decls.iter().map(|d| body.binding(d.binding).span.start).min(),
            _ => None,
        };
        Span::new(span.start, first.unwrap_or(span.end).max(span.start))
    }

    /// Declares a variable in the continuation as in the kernel, where that's possible.
    fn declare_again(&mut self, binding: BindingId, init: ExprId) -> Result<(), Reason> {
        // Before what it is made of, so that a cycle would end.
        self.given.insert(binding, Given::Declared);
        if let Err(why) = self.again(init) {
            self.given.remove(&binding);
            return Err(why);
        }
        self.names_in(init)?;
        self.unlowered_in(self.body().expr(init).span)?;
        self.type_again(binding)
    }

    /// What the type of a variable that is declared again is made of.
    fn type_again(&mut self, binding: BindingId) -> Result<(), Reason> {
        match self.declaration(binding) {
            Some((stmt, _)) => self.unlowered_in(self.type_of_declaration(stmt)),
            None => Ok(()),
        }
    }

    /// The `if` in a block on the way to the wait that does nothing else at its end than to leave the kernel.
    fn simple_return(&self, stmt: StmtId) -> Result<(StmtId, ExprId, bool), Reason> {
        let body = self.body();
        let unclear = || {
            self.at(
                "threads leave the kernel here before the wait, and which ones can't be found out again",
                body.stmt(stmt).span,
            )
        };
        let mut inner = stmt;
        let mut outer = self.wait.places.parent(inner).ok_or_else(unclear)?;
        if let StmtKind::Block(stmts) = &body.stmt(outer).kind {
            if stmts.last() != Some(&inner) {
                return Err(unclear());
            }
            inner = outer;
            outer = self.wait.places.parent(inner).ok_or_else(unclear)?;
        }
        let StmtKind::If {
            init: None,
            cond: Some(cond),
            constexpr: false,
            then,
            ..
        } = &body.stmt(outer).kind
        else {
            return Err(unclear());
        };
        let on_the_way = self.levels.iter().any(|level| match level {
            Around::Block { .. } => level.before().contains(&outer),
            Around::Guard { .. } => false,
        });
        if !on_the_way {
            return Err(unclear());
        }
        Ok((outer, *cond, *then != inner))
    }

    /// Whether a variable is assigned to before the wait.
    fn assigned_before(&self, binding: BindingId) -> bool {
        let body = self.body();
        let all = assignments(self.wait.db, self.wait.function, body, binding);
        all.iter().any(|e| !self.moves(body.expr(*e).span))
    }

    /// Whether a variable is used by what stays, beside its declaration.
    fn used_before(&self, binding: BindingId) -> bool {
        let body = self.body();
        let named = |kind: &ExprKind| matches!(kind, ExprKind::Name(Name::Local(b)) if *b == binding);
        let exprs = body.exprs.iter().any(|e| named(&e.kind) && !self.moves(e.span));
        let stmts = body.stmts.iter().any(|s| {
            matches!(&s.kind, StmtKind::Asm { mentions, .. } if mentions.contains(&binding)) && !self.moves(s.span)
        });
        exprs || stmts
    }

    /// The declaration of a variable, on the way to the wait.
    fn declaration(&self, binding: BindingId) -> Option<(StmtId, Option<ExprId>)> {
        self.declaration_in(&self.levels, binding)
    }

    /// Whether a variable is in scope where a thread that comes from the wait launches the continuation.
    fn is_at_launch(&self, binding: BindingId) -> bool {
        let around = self.levels.get(self.outermost..).unwrap_or(&[]);
        let by_loop = self
            .looped
            .as_ref()
            .is_some_and(|l| l.declaration(self, binding).is_some());
        by_loop || self.body().params.contains(&binding) || self.declaration_in(around, binding).is_some()
    }

    pub(super) fn declaration_in(&self, levels: &[Around], binding: BindingId) -> Option<(StmtId, Option<ExprId>)> {
        let body = self.body();
        let before = levels.iter().flat_map(Around::before);
        before.copied().find_map(|stmt| match &body.stmt(stmt).kind {
            StmtKind::Decl(decls) => decls.iter().find(|d| d.binding == binding).map(|d| (stmt, d.init)),
            _ => None,
        })
    }

    /// Sees to it that a variable is there in the continuation.
    fn give(&mut self, binding: BindingId, used: Span) -> Result<(), Reason> {
        let (db, body) = (self.wait.db, self.body());
        let variable = body.binding(binding);
        let looped = self.looped.as_ref();
        let of_loop = looped.is_some_and(|looped| looped.hands_over(self, binding));
        let declared_there = self.moves(variable.span) && !body.params.contains(&binding) && !of_loop;
        if declared_there || self.given.contains_key(&binding) || self.streams.contains_key(&binding) {
            return Ok(());
        }
        let name = &variable.name;
        // What the loop has done to it before the wait, it does again in the continuation.
        let unused_yet = looped.is_none() && !self.used_before(binding);
        if let Some(index) = body.params.iter().position(|p| *p == binding) {
            let assigned = match looped {
                Some(_) => !assignments(db, self.wait.function, body, binding).is_empty(),
                None => self.assigned_before(binding),
            };
            if assigned || !holds_its_value(db, self.wait.function, body, binding) {
                self.may_pass(binding, used)?;
            }
            let decl = crate::edit::one_line::one_line(&self.kernel.params[index].decl);
            self.given.insert(binding, Given::Passed(decl));
            return Ok(());
        }
        match variable.storage {
            Storage::Local => {}
            Storage::Shared if unused_yet && self.declaration(binding).is_some() => {
                self.given.insert(binding, Given::Declared);
                return self.extents(binding);
            }
            Storage::Shared => {
                return Err(self.at(format!("shared memory (`{name}`) doesn't live as long as that"), used));
            }
            Storage::ExternShared => {
                return Err(self.at(
                    format!("what follows uses dynamic shared memory (`{name}`), whose size isn't known there"),
                    used,
                ));
            }
            Storage::Static | Storage::Param => {
                return Err(self.at(format!("`{name}` can't be handed to another kernel"), used));
            }
        }
        if let Some(renewed) = self.renewed(binding) {
            if renewed.used {
                self.given.insert(binding, Given::Declared);
            }
            self.streams.insert(binding, renewed);
            return Ok(());
        }
        let declaration = self.declaration(binding);
        if let Some((_, None)) = declaration
            && unused_yet
        {
            // Nothing is in it yet.
            self.given.insert(binding, Given::Declared);
            return self.extents(binding);
        }
        let constant = self.is_constant(binding);
        let declared_const = |stmt| {
            let mut words = lex::identifiers(self.kernel.source(self.type_of_declaration(stmt)));
            words.any(|word| word == "constexpr" || word == "const" && variable.ty.pointers == 0)
        };
        let in_loop = looped.and_then(|looped| looped.declaration(self, binding));
        if of_loop && in_loop.is_some_and(declared_const) {
            return Err(self.at(
                format!("`{name}` may have to be a constant here; declare it in front of the loop"),
                used,
            ));
        }
        if let Some((_, Some(init))) = declaration
            && constant
            && self.declare_again(binding, init).is_ok()
        {
            return Ok(());
        }
        if self.runs == Runs::One && self.is_at_launch(binding) {
            self.may_pass(binding, used)?;
            let decl = format!("{} {name}", variable.ty.spelled());
            self.given.insert(binding, Given::Passed(decl));
            return Ok(());
        }
        let plain = variable.ty.array.is_empty() && holds_its_value(db, self.wait.function, body, binding);
        let why = match declaration {
            Some((_, Some(init))) if plain && !self.assigned_before(binding) => {
                match self.declare_again(binding, init) {
                    Ok(()) => return Ok(()),
                    Err(why) if self.given.contains_key(&binding) => return Err(why),
                    Err(why) => Some(why),
                }
            }
            _ => None,
        };
        match self.may_pass(binding, used) {
            Ok(()) => {
                let decl = format!("{} {name}", variable.ty.spelled());
                self.given.insert(binding, Given::Passed(decl));
                Ok(())
            }
            Err(reason) => Err(why.unwrap_or(reason)),
        }
    }

    /// The sizes of an array are needed with it.
    fn extents(&mut self, binding: BindingId) -> Result<(), Reason> {
        let extents: Vec<ExprId> = self
            .body()
            .binding(binding)
            .ty
            .array
            .iter()
            .flatten()
            .copied()
            .collect();
        for extent in extents {
            self.again(extent)?;
            self.names_in(extent)?;
            self.unlowered_in(self.body().expr(extent).span)?;
        }
        self.type_again(binding)
    }

    /// Whether the value that a variable has at the wait can be an argument of the launch.
    fn may_pass(&self, binding: BindingId, used: Span) -> Result<(), Reason> {
        let (db, body) = (self.wait.db, self.body());
        let variable = body.binding(binding);
        let (name, ty) = (&variable.name, &variable.ty);
        let copied = ty.array.is_empty()
            && !ty.reference
            && !ty.complex
            && !is_volatile(db, self.wait.function, variable)
            && ty.base != "auto"
            && !["cudaStream_t", "cudaEvent_t"].contains(&unqualified(&ty.base))
            && !has_inner_const(self.source(variable.decl_span))
            && copies_plainly(db, self.wait.function, ty, 0).is_ok();
        if !copied {
            return Err(self.at(format!("`{name}` can't be handed to another kernel"), used));
        }
        if !body.params.contains(&binding) && may_hold_a_reference(db, self.wait.file, &ty.base) {
            return Err(self.at(
                format!("`{name}` may hold a reference to shared or local memory, which another kernel can't use"),
                used,
            ));
        }
        let private = body.bindings.iter().any(|b| {
            !b.ty.array.is_empty() && b.storage != Storage::Param
                || matches!(b.storage, Storage::Shared | Storage::ExternShared)
        }) || body.exprs.iter().any(|e| matches!(e.kind, ExprKind::AddrOf(_)))
            || escapes(db, self.wait.function).iter().any(|e| !e.through_parameter)
            // A function may give the address of its own.
            || !effects(db, self.wait.function).shared.is_empty()
            || lends_objects(db, self.wait.file, body);
        if hold_addresses(db, self.wait.function, body).contains(&binding) {
            return Err(self.at(
                format!("`{name}` may hold the address of shared or local memory, which another kernel can't use"),
                used,
            ));
        }
        let points = ty.pointers > 0 || !is_plain_type(&ty.base);
        let private = private || made_of_fields_or_calls(db, self.wait.file, body, binding);
        if private && points && !self.is_of_the_heap(binding) {
            return Err(self.at(
                format!("`{name}` may point at shared or local memory, which another kernel can't use"),
                used,
            ));
        }
        match self.runs {
            Runs::One | Runs::All if !self.is_at_launch(binding) => Err(self.at(
                format!("`{name}` is declared in a block that ends before what follows, and can't be computed again"),
                used,
            )),
            Runs::One => Ok(()),
            Runs::All if holds_its_value(db, self.wait.function, body, binding) && self.same_everywhere(binding) => {
                Ok(())
            }
            _ => Err(self.at(
                format!("`{name}` may differ between threads, and can't be computed again"),
                used,
            )),
        }
    }

    /// A pointer that is nothing but what `malloc` gives: memory of the device, which all grids can use until it is freed.
    fn is_of_the_heap(&self, binding: BindingId) -> bool {
        let (db, function, body) = (self.wait.db, self.wait.function, self.body());
        let Some(mut init) = body.initialiser(binding) else {
            return false;
        };
        while let ExprKind::Paren(inner) | ExprKind::Cast { operand: inner, .. } = body.expr(init).kind {
            init = inner;
        }
        let allocates = match &body.expr(init).kind {
            ExprKind::Call { name: Some(name), .. } => {
                matches!(name.trim_start_matches("::"), "malloc" | "std::malloc")
                    && !hides(db, function, name)
                    && functions_in(db, function, name).is_empty()
            }
            _ => false,
        };
        let ty = &body.binding(binding).ty;
        allocates
            && ty.pointers > 0
            && holds_its_value(db, function, body, binding)
            && assignments(db, function, body, binding).is_empty()
    }

    /// All threads of the grid have set the variable to the same value, when they are at the wait.
    fn same_everywhere(&self, binding: BindingId) -> bool {
        let body = self.body();
        let level = |e: ExprId| self.uniformity.exprs.get(&e).is_some_and(|u| u.level <= Level::Grid);
        let together = |s: StmtId| {
            self.uniformity
                .divergence
                .get(&s)
                .is_some_and(|u| u.level <= Level::Grid)
        };
        let declared = match self.declaration(binding) {
            Some((stmt, Some(init))) => together(stmt) && level(init),
            Some((_, None)) => true,
            None => body.params.contains(&binding),
        };
        declared
            && assignments(self.wait.db, self.wait.function, body, binding)
                .iter()
                .all(|&e| {
                    if self.moves(body.expr(e).span) {
                        return true;
                    }
                    let Some(stmt) = self.wait.places.statement_of(e) else {
                        return false;
                    };
                    let alone = matches!(body.stmt(stmt).kind, StmtKind::Expr(x) if body.strip_parens(x) == e);
                    let value = match &body.expr(e).kind {
                        ExprKind::Assign { value, .. } => level(*value),
                        _ => true,
                    };
                    alone && together(stmt) && value && level(e)
                })
    }

    /// Whether an expression can be computed again in the continuation; notes what it reads.
    fn again(&mut self, expr: ExprId) -> Result<(), Reason> {
        let (db, body) = (self.wait.db, self.body());
        let span = body.expr(expr).span;
        let no =
            |tail: &Self, what: &str| Err(tail.at(format!("{what} can't be computed again in another kernel"), span));
        if body.expr(expr).from_macro && !matches!(body.expr(expr).kind, ExprKind::Literal(_)) {
            return no(self, "what comes out of a macro");
        }
        match &body.expr(expr).kind {
            ExprKind::Literal(Literal::Str) => no(self, "a string"),
            // One thread goes on in a grid of its own.
            ExprKind::Name(Name::Builtin(builtin))
                if self.runs == Runs::One && *builtin != Builtin::WarpSize && !self.has_one_thread() =>
            {
                no(self, "the number of a thread")
            }
            ExprKind::Literal(_) | ExprKind::SizeOf | ExprKind::Name(Name::Builtin(_)) => Ok(()),
            ExprKind::Name(Name::Local(binding)) => {
                let variable = body.binding(*binding);
                let name = &variable.name;
                let settled = holds_its_value(db, self.wait.function, body, *binding)
                    && !self.assigned_before(*binding)
                    && variable.ty.array.is_empty();
                let init = self.declaration(*binding).and_then(|(_, init)| init);
                match variable.storage {
                    Storage::Param if settled && body.params.contains(binding) => Ok(()),
                    Storage::Local if settled && self.given.contains_key(binding) => Ok(()),
                    // Its value is handed over.
                    Storage::Local if settled && self.runs == Runs::One && self.is_at_launch(*binding) => Ok(()),
                    Storage::Local if settled && init.is_some() => match init {
                        Some(init) => self.again(init),
                        None => Ok(()),
                    },
                    _ => no(self, &format!("`{name}`")),
                }
            }
            ExprKind::Name(Name::Other(name)) => match meaning_in(db, self.wait.function, name) {
                Meaning::Enumerator(_) => Ok(()),
                Meaning::Global(global) if global.constant && !global.shared || global.constant_memory => Ok(()),
                Meaning::Global(_) => {
                    self.reads.insert(expr);
                    Ok(())
                }
                Meaning::Unknown if self.wait.function.signature(db).template_names.contains(name) => Ok(()),
                _ => no(self, &format!("`{name}`")),
            },
            ExprKind::Paren(e)
            | ExprKind::Unary(_, e)
            | ExprKind::Field {
                base: e, arrow: false, ..
            } => self.again(*e),
            ExprKind::Deref(e)
            | ExprKind::Field {
                base: e, arrow: true, ..
            } => {
                self.reads.insert(expr);
                self.again(*e)
            }
            ExprKind::Index { base, index } => {
                self.reads.insert(expr);
                self.again(*base)?;
                self.again(*index)
            }
            ExprKind::Binary(_, a, b) | ExprKind::Logical { lhs: a, rhs: b, .. } => {
                self.again(*a)?;
                self.again(*b)
            }
            ExprKind::Conditional { cond, then, otherwise } => {
                self.again(*cond)?;
                self.again(*then)?;
                self.again(*otherwise)
            }
            ExprKind::Cast {
                ty,
                operand,
                reinterpret: false,
            } if is_plain_type(ty) => self.again(*operand),
            ExprKind::Construct { ty, args } if is_plain_type(ty) => args.iter().try_for_each(|a| self.again(*a)),
            ExprKind::Call {
                name: Some(name), args, ..
            } => {
                let known = match library(name) {
                    _ if hides(db, self.wait.function, name) => false,
                    _ if calls::is_pure(db, self.wait.function, name) => true,
                    Some(_) => false,
                    None => {
                        let bodies: Vec<_> = functions_in(db, self.wait.function, name)
                            .into_iter()
                            .filter(|f| f.has_body(db))
                            .collect();
                        let values = |f: &gridfuse_analysis::hir::items::FunctionItem<'_>| {
                            let callee = gridfuse_analysis::hir::body(db, *f);
                            let touches = callee.exprs.iter().any(|e| {
                                matches!(
                                    e.kind,
                                    ExprKind::Deref(_) | ExprKind::Index { .. } | ExprKind::Field { arrow: true, .. }
                                )
                            });
                            let globals = callee.exprs.iter().any(|e| {
                                matches!(&e.kind, ExprKind::Name(Name::Other(n))
                                    if matches!(meaning_in(db, *f, n), Meaning::Global(g) if !g.constant && !g.constant_memory))
                            });
                            !touches && !globals
                        };
                        !bodies.is_empty() && bodies.iter().all(|f| is_pure(db, *f) && values(f))
                    }
                };
                if !known {
                    return no(self, &format!("a call of `{name}`"));
                }
                args.iter().try_for_each(|a| self.again(*a))
            }
            _ => no(self, "this"),
        }
    }

    /// Variables that stand in different blocks of the kernel, or that what moves hides, end up in one block. Parameters of the
    /// continuation are in scope in all of it, and are handed over by their names.
    fn refuse_clashes(&self) -> Result<(), Reason> {
        let body = self.body();
        let in_sight = visible_names(self.wait.db, self.wait.file);
        let mut seen: BTreeMap<&str, BindingId> = BTreeMap::new();
        for (binding, given) in &self.given {
            let variable = body.binding(*binding);
            let clash = || {
                self.at(
                    format!("several variables are named `{}`", variable.name),
                    variable.span,
                )
            };
            if seen.insert(&variable.name, *binding).is_some() {
                return Err(clash());
            }
            let passed = matches!(given, Given::Passed(_));
            // In sizes, declarations and casts a type is named, too.
            let is_type = in_sight.types.contains(&variable.name) || in_sight.aliases.contains_key(&variable.name);
            let hidden = (0..body.bindings.len() as u32).map(BindingId).any(|other| {
                let theirs = body.binding(other);
                let inner = passed && theirs.span.start > variable.span.start && self.runs != Runs::Some;
                let hides = self.moves(theirs.span) || inner && self.is_at_launch(other);
                other != *binding && theirs.name == variable.name && hides
            });
            let own = passed && !body.params.contains(binding);
            let outer = |kind: &ExprKind| match kind {
                ExprKind::Name(Name::Other(n)) | ExprKind::Call { name: Some(n), .. } => *n == variable.name,
                _ => false,
            };
            // A loop that goes on may name what the file has before the variable is declared, in sizes and template arguments, too.
            let meant = meaning_in(self.wait.db, self.wait.function, &variable.name);
            let of_file = self.looped.is_some() && !matches!(meant, Meaning::Unknown);
            if hidden || own && (is_type || of_file || body.exprs.iter().any(|e| outer(&e.kind))) {
                return Err(clash());
            }
        }
        Ok(())
    }
}

/// `const char* const* names`: what the pointers in between are is part of no type that is written again.
pub fn has_inner_const(declaration: &str) -> bool {
    let head = declaration.split('=').next().unwrap_or("");
    let between = head
        .find('*')
        .zip(head.rfind('*'))
        .and_then(|(first, last)| head.get(first..last));
    between.is_some_and(|between| lex::identifiers(between).any(|word| word == "const"))
}

/// Whether a member function or a user's operator gets a variable, which may keep its address: `cursor.bind(x)`, `*holder = x`.
pub fn lends_objects(db: &dyn Db, file: SourceFile, body: &Body) -> bool {
    let is_variable = |e: ExprId| part_of(body, e).is_some_and(|b| body.binding(b).ty.pointers == 0);
    let is_object = |e: ExprId| {
        part_of(body, e).is_some_and(|b| body.binding(b).ty.pointers == 0 && !is_plain_type(&body.binding(b).ty.base))
    };
    let has_operators = || has_operators(db, file);
    let lends = |kind: &ExprKind| match kind {
        ExprKind::Call { callee, args, .. } => match &body.expr(body.strip_parens(*callee)).kind {
            ExprKind::Field { base, .. } => is_object(*base) || args.iter().any(|arg| is_variable(*arg)),
            _ => false,
        },
        ExprKind::Unary(_, e) | ExprKind::Deref(e) => is_object(*e) && has_operators(),
        ExprKind::Index { base: a, index: b } | ExprKind::Binary(_, a, b) => {
            (is_object(*a) || is_object(*b)) && has_operators()
        }
        ExprKind::Assign { place, value, .. } => {
            let plain = part_of(body, *place).is_some_and(|b| is_plain_type(&body.binding(b).ty.base));
            !plain && is_variable(*value) && has_operators()
        }
        _ => false,
    };
    body.exprs.iter().any(|e| lends(&e.kind))
}

/// Whether a variable is given what a call gives, or a field of an object here: an array in it is its address, and so may be what a member
/// function gives. It may get it from another variable.
pub fn made_of_fields_or_calls(db: &dyn Db, file: SourceFile, body: &Body, binding: BindingId) -> bool {
    let mut seen = BTreeSet::from([binding]);
    let mut todo = vec![binding];
    while let Some(binding) = todo.pop() {
        let declared = body.initialiser(binding);
        let assigned = body.exprs.iter().filter_map(|expr| match &expr.kind {
            ExprKind::Assign { place, value, .. } if part_of(body, *place) == Some(binding) => Some(*value),
            _ => None,
        });
        for e in declared
            .into_iter()
            .chain(assigned)
            .flat_map(|value| all_in_expr(body, value))
        {
            match &body.expr(e).kind {
                ExprKind::Call { .. } => return true,
                ExprKind::Field {
                    base,
                    field,
                    arrow: false,
                    ..
                } if part_of(body, *base).is_some() && may_be_array(db, file, field) => return true,
                ExprKind::Name(Name::Local(other)) => {
                    let ty = &body.binding(*other).ty;
                    let carries = ty.pointers > 0 || !is_plain_type(&ty.base);
                    if carries && seen.insert(*other) {
                        todo.push(*other);
                    }
                }
                _ => {}
            }
        }
    }
    false
}

/// Whether a field of this name may be an array: one is in sight, or none at all.
fn may_be_array(db: &dyn Db, file: SourceFile, field: &str) -> bool {
    let types = included_files(db, file).iter().flat_map(|file| &items(db, *file).types);
    let mut named = types
        .flat_map(|item| &item.fields)
        .filter(|(_, declared)| lex::identifiers(declared).any(|word| word == field))
        .peekable();
    named.peek().is_none() || named.any(|(ty, declared)| declared.contains('[') || ty.contains('['))
}

/// The variable that an expression names, or a part of it.
fn part_of(body: &Body, e: ExprId) -> Option<BindingId> {
    match &body.expr(e).kind {
        ExprKind::Name(Name::Local(binding)) => Some(*binding),
        ExprKind::Paren(e)
        | ExprKind::Field {
            base: e, arrow: false, ..
        }
        | ExprKind::Index { base: e, .. } => part_of(body, *e),
        _ => None,
    }
}
