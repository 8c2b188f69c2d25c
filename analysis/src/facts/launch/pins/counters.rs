//! Numbers that are drawn from counters in memory: `atomicAdd(&counter, 1) == …`.

use super::numbers::{Dims, MAX, Number};
use super::{Pins, is_loop};
use crate::base::db::Db;
use crate::base::words::words;
use crate::facts::callee::library_called;
use crate::facts::dependence::{passed_members, writers};
use crate::facts::launch::config::{definition, through_variables};
use crate::facts::launch::places::statement_places;
use crate::facts::uniformity::memory::{Class, MemoryClass, Places as TypePlaces};
use crate::facts::uniformity::{Level, calls_of};
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, TypeItem, items};
use crate::hir::library::{Does, vector_fields};
use crate::hir::names::{unqualified, without_template_arguments};
use crate::hir::resolve::{launch_sites_of, runs_on_device};
use crate::hir::scope::hides_class;
use crate::hir::{BinOp, BindingId, Body, Builtin, Expr, ExprId, ExprKind, Name, StmtKind, Storage};
use std::collections::HashMap;

impl Pins<'_, '_> {
    /// What `atomicAdd` gives is had by one thread alone: of the grid, or of the block when there is a counter for each. `wanted`: the
    /// number that it is compared with.
    pub(super) fn ticket(&self, expr: ExprId, wanted: ExprId) -> Option<Number> {
        let body = self.body;
        let mut expr = body.strip_parens(expr);
        if let ExprKind::Name(Name::Local(binding)) = body.expr(expr).kind {
            // Another type may hold fewer numbers.
            self.converted(Number::default(), &body.binding(binding).ty.base)
                .filter(|n| n.most.is_none())?;
            expr = body.strip_parens(definition(self.db, self.function, body, binding)?);
        }
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &body.expr(expr).kind
        else {
            return None;
        };
        let [counter, step] = args.as_slice() else { return None };
        let place = match &body.expr(body.strip_parens(*counter)).kind {
            ExprKind::AddrOf(place) => *place,
            _ => *counter,
        };
        // A user's function may have the same name.
        library_called(self.db, self.function, name)?;
        let level = self.address(place);
        let once = || !self.is_repeated(expr) && self.is_drawn_by_one_of_a_block(expr);
        let last = match name.trim_start_matches("::") {
            // More at once and it goes around before all have drawn; a sum of floating-point numbers stays as it is from some number on.
            "atomicAdd" if matches!(self.constant(*step), Some(1..=32)) && self.counts(*counter) => {
                level <= Level::Grid
                    && self.constant(*step) == Some(1)
                    && self.is_number_of_blocks(wanted, true)
                    && once()
            }
            // It starts again behind its bound.
            "atomicInc" => {
                let blocks = self.is_number_of_blocks(*step, false) || self.is_number_of_blocks(*step, true);
                let never = self.constant(*step) == Some(MAX) || level <= Level::Grid && blocks && once();
                never.then_some(())?;
                level <= Level::Grid && self.is_number_of_blocks(wanted, true) && once()
            }
            _ => return None,
        };
        let set_back = self.resets && self.is_set_back(*counter, place, expr, last);
        (!set_back).then_some(())?;
        (level <= Level::Block).then_some(Number {
            all_threads: true,
            all_blocks: level <= Level::Grid,
            exact: true,
            // The one whose number it is isn't the same each time, either because another number is drawn or because another is wanted.
            turns: self.is_repeated(expr) || !self.lasts(wanted),
            last,
            ..Number::default()
        })
    }

    /// A pointer to whole numbers, as far as its type is seen.
    pub(super) fn counts(&self, pointer: ExprId) -> bool {
        let places = TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        };
        match self.body.expr(self.body.strip_parens(pointer)).kind {
            ExprKind::AddrOf(place) => !matches!(places.class(place), MemoryClass::Float | MemoryClass::Double),
            _ => !matches!(places.pointee_class(pointer), MemoryClass::Float | MemoryClass::Double),
        }
    }

    pub(super) fn is_drawn_by_one_of_a_block(&self, expr: ExprId) -> bool {
        let Some(depth) = self.depth.checked_sub(1) else {
            return false;
        };
        let inner = Pins { depth, ..*self };
        inner.one_per_block(&inner.pinned_at(&statement_places(self.db, self.function), expr))
    }

    /// `gridDim.x`, or the product of all dimensions that grids have; `less`: less 1.
    pub(super) fn is_number_of_blocks(&self, expr: ExprId, less: bool) -> bool {
        let body = self.body;
        let mut expr = through_variables(self.db, self.function, body, expr);
        if less {
            let ExprKind::Binary(BinOp::Sub, blocks, one) = body.expr(expr).kind else {
                return false;
            };
            if self.constant(one) != Some(1) {
                return false;
            }
            expr = through_variables(self.db, self.function, body, blocks);
        }
        let mut seen = Dims::default();
        let mut todo = vec![expr];
        while let Some(next) = todo.pop() {
            match &body.expr(through_variables(self.db, self.function, body, next)).kind {
                ExprKind::Binary(BinOp::Mul, a, b) => todo.extend([*a, *b]),
                ExprKind::Field { base, field, .. }
                    if body.expr(*base).kind == ExprKind::Name(Name::Builtin(Builtin::GridDim)) =>
                {
                    let axis = ["x", "y", "z"].iter().position(|d| d == field);
                    let Some(slot) = axis.and_then(|axis| seen.get_mut(axis)) else {
                        return false;
                    };
                    *slot = true;
                }
                _ => return false,
            }
        }
        (0..3).all(|d| seen[d] || !self.blocks[d])
    }

    /// Something else than this draw may change the counter, so that a number is drawn twice. What fills a counter of the block before
    /// the draw doesn't, nor what the one does who has drawn the `last` number.
    pub(super) fn is_set_back(&self, pointer: ExprId, counter: ExprId, draw: ExprId, last: bool) -> bool {
        let body = self.body;
        let Some(root) = root_name(body, counter) else {
            return true;
        };
        // What goes by another pointer, or by another name.
        let Some(writers) = writers(self.db, self.function, pointer) else {
            return true;
        };
        let shared = matches!(&root, Name::Local(b) if body.binding(*b).storage == Storage::Shared);
        let drawn = body.expr(draw).span;
        // Where another pointer of the same object leads to, its name doesn't say.
        let members = passed_members(self.db, self.function);
        let own = members.get(&body.strip_parens(pointer));
        let elsewhere = |e: ExprId| {
            let by_pointer = member_behind(body, e, &members);
            own.is_some() && by_pointer.is_some() && by_pointer != own
        };
        let names = |e: ExprId| root_name(body, e).as_ref() == Some(&root) && !elsewhere(e);
        let address = |e: ExprId| leads_to(self.db, self.function, body, e, &root, &elsewhere);
        if self.is_changed_elsewhere(&root) {
            return true;
        }
        let other = |place: ExprId| self.is_other_member(place, counter);
        let changes = |e: &ExprKind| match e {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => names(*place) && !other(*place),
            ExprKind::Call { name, args, .. } => {
                let library = name.as_deref().and_then(|n| library_called(self.db, self.function, n));
                let atomic = name
                    .as_deref()
                    .is_some_and(|n| n.trim_start_matches("::").starts_with("atomic"));
                let counts = match (name.as_deref(), library, args.as_slice()) {
                    // Nothing but the place whose address it gets.
                    (_, Some(_), [pointer, values @ ..]) if atomic && !values.iter().any(|value| address(*value)) => {
                        match body.expr(body.strip_parens(*pointer)).kind {
                            ExprKind::AddrOf(place) if other(place) => true,
                            _ => self.counts_on(name.as_deref(), args),
                        }
                    }
                    (_, Some(_), _) if atomic => self.counts_on(name.as_deref(), args),
                    (_, Some(library), _) => library.only_loads() || library.does.has(Does::PRINTS),
                    _ => false,
                };
                !counts && args.iter().any(|arg| address(*arg))
            }
            ExprKind::Launch(launch) => launch.args.iter().any(|arg| address(*arg)),
            ExprKind::Construct { ty, args } => !self.is_plain(ty) && args.iter().any(|arg| address(*arg)),
            ExprKind::New(args) => args.iter().any(|arg| address(*arg)),
            _ => false,
        };
        let places = statement_places(self.db, self.function);
        (0..body.exprs.len() as u32).map(ExprId).any(|e| {
            let expr = body.expr(e);
            let by_its_name = || match &expr.kind {
                ExprKind::Call { args, .. } => args.iter().any(|arg| address(*arg)),
                _ => names(e),
            };
            let otherwise = || writers.contains(&e) && !by_its_name();
            if e == draw || !changes(&expr.kind) && !otherwise() {
                return false;
            }
            if shared && expr.span.end <= drawn.start && !self.is_repeated(draw) && !self.is_repeated(e) {
                return false;
            }
            let Some(depth) = self.depth.checked_sub(1) else {
                return true;
            };
            let lenient = Pins {
                depth,
                resets: false,
                ..*self
            };
            !(last && lenient.pinned_at(&places, e).iter().any(|number| number.last))
        })
    }

    /// A call that adds little to a counter.
    fn counts_on(&self, name: Option<&str>, args: &[ExprId]) -> bool {
        match (name, args) {
            (Some("atomicAdd" | "::atomicAdd"), [_, step]) => matches!(self.constant(*step), Some(0..=32)),
            _ => false,
        }
    }

    /// Another member of the object of which the counter is one: `control->changed` beside `control->done`.
    fn is_other_member(&self, place: ExprId, counter: ExprId) -> bool {
        let body = self.body;
        let member = |place: ExprId| {
            let mut place = body.strip_parens(place);
            loop {
                let ExprKind::Field { base, field, arrow } = &body.expr(place).kind else {
                    return None;
                };
                let base = body.strip_parens(*base);
                match &body.expr(base).kind {
                    ExprKind::Name(Name::Local(binding)) => return Some((*binding, field.as_str(), *arrow)),
                    // What another pointer leads to is no part of it.
                    _ if *arrow => return None,
                    _ => place = base,
                }
            }
        };
        let Some(((object, one, arrow), (other, another, _))) = member(place).zip(member(counter)) else {
            return false;
        };
        let ty = &body.binding(object).ty;
        let expected = if arrow { 1 } else { 0 };
        let shape = ty.pointers == expected && ty.array.is_empty() && !ty.complex;
        object == other && one != another && shape && self.are_apart(&ty.base, [one, another])
    }

    /// Two fields of a class don't share storage.
    fn are_apart(&self, class: &str, fields: [&str; 2]) -> bool {
        let places = TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        };
        let name = without_template_arguments(&places.alias(class));
        let name = unqualified(name.strip_prefix("struct ").unwrap_or(&name));
        let files = included_files(self.db, self.function.file(self.db)).iter();
        let types = files.flat_map(|file| &items(self.db, *file).types);
        let mut named = types.filter(|item| item.name == name).peekable();
        let has = |item: &TypeItem, field: &str| {
            let mut own = item.fields.iter();
            own.any(|(ty, own)| own == field && !ty.contains('&'))
        };
        let apart = |item: &TypeItem| !item.shares_storage && fields.iter().all(|field| has(item, field));
        !hides_class(self.db, self.function, name) && named.peek().is_some() && named.all(apart)
    }

    /// A device function or a child kernel may change the counter, or another variable here points to it.
    pub(super) fn is_changed_elsewhere(&self, root: &Name) -> bool {
        let (db, body) = (self.db, self.body);
        let within = |e: ExprId| {
            let span = body.expr(e).span;
            let names = |inner: &Expr| inner.kind == ExprKind::Name(root.clone()) && span.contains(inner.span);
            body.exprs.iter().any(names)
        };
        let keeps = |binding: BindingId, value: ExprId| {
            let ty = &body.binding(binding).ty;
            if ty.reference && ty.const_base && ty.pointers == 0 {
                return false;
            }
            // A reference is to what is read otherwise.
            if ty.reference || ty.complex {
                return within(value);
            }
            let class = || ty.array.is_empty() && !self.is_plain(&ty.base);
            (ty.pointers > 0 || ty.base == "auto" || class()) && self.points_to(value, &within)
        };
        let aliased = body.stmts.iter().any(|stmt| match &stmt.kind {
            StmtKind::Decl(decls) => decls.iter().any(|d| d.init.is_some_and(|init| keeps(d.binding, init))),
            _ => false,
        });
        let assigned = body.exprs.iter().any(|expr| match &expr.kind {
            ExprKind::Assign { place, value, .. } => match &body.expr(body.strip_parens(*place)).kind {
                ExprKind::Name(Name::Local(b)) => keeps(*b, *value),
                _ => false,
            },
            _ => false,
        });
        if aliased || assigned {
            return true;
        }
        let Name::Other(name) = root else { return false };
        let last = unqualified(name);
        // Kernels that run this function set the counter back as well as it does.
        let mut callers: Vec<FunctionItem<'_>> = Vec::new();
        let mut todo = vec![self.function];
        while let Some(next) = todo.pop() {
            for call in calls_of(db, next).iter().filter(|_| !next.signature(db).kernel) {
                if !callers.contains(&call.caller) {
                    callers.push(call.caller);
                    todo.push(call.caller);
                }
            }
        }
        let files = included_files(db, self.function.file(db)).iter();
        let mut functions = files.flat_map(|file| &items(db, *file).functions).copied();
        functions.any(|other| {
            let signature = other.signature(db);
            let on_device = runs_on_device(db, other);
            let launched = || {
                let sites = launch_sites_of(db, other);
                sites.iter().any(|site| site.function == self.function)
            };
            let may = other != self.function && other.has_body(db) && on_device;
            let runs = || on_device && !signature.kernel || launched() || callers.contains(&other);
            may && words(&other.text(db)).any(|word| word == last) && runs()
        })
    }

    /// Whether a value may be an address of what `within` finds in expressions: not an element that is read, a number that is drawn.
    pub(super) fn points_to(&self, value: ExprId, within: &dyn Fn(ExprId) -> bool) -> bool {
        let body = self.body;
        match &body.expr(value).kind {
            ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => self.points_to(*e, within),
            ExprKind::Deref(_) | ExprKind::Index { .. } => false,
            // Of a class it may keep a reference.
            ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } => parts.iter().any(|e| within(*e)),
            // The library returns numbers, but for what adds up addresses.
            ExprKind::Call { name: Some(name), .. } if library_called(self.db, self.function, name).is_some() => false,
            _ => within(value),
        }
    }

    /// A number or a vector of numbers.
    pub(super) fn is_plain(&self, ty: &str) -> bool {
        let places = TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        };
        let vector = vector_fields(&places.alias(ty)).is_some();
        ty.contains('*') || vector || places.class_kind(ty, &[]) == Class::Plain
    }

    /// One thread may come to an expression more than once.
    pub(super) fn is_repeated(&self, expr: ExprId) -> bool {
        let body = self.body;
        let span = body.expr(expr).span;
        body.stmts
            .iter()
            .any(|stmt| matches!(stmt.kind, StmtKind::Goto(_)) || is_loop(&stmt.kind) && stmt.span.contains(span))
    }

    /// How uniform the place of a counter is: a name, or an element of what a name denotes.
    pub(super) fn address(&self, place: ExprId) -> Level {
        let body = self.body;
        match &body.expr(body.strip_parens(place)).kind {
            ExprKind::Name(Name::Other(_)) => Level::Constant,
            ExprKind::Name(Name::Local(binding)) => match body.binding(*binding).storage {
                Storage::Shared | Storage::ExternShared => Level::Block,
                _ => self.levels.of(place),
            },
            ExprKind::Index { base, index } => self.address(*base).join(self.levels.of(*index)),
            ExprKind::Field { base, .. } | ExprKind::Deref(base) => self.address(*base),
            _ => Level::Varying,
        }
    }
}

/// An expression is a variable, a part of it or its address, or what is made of such: an argument by which it may be changed. What is
/// `elsewhere` is none.
fn leads_to(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    e: ExprId,
    root: &Name,
    elsewhere: &dyn Fn(ExprId) -> bool,
) -> bool {
    let leads = |e: ExprId| leads_to(db, function, body, e, root, elsewhere);
    if elsewhere(e) {
        return false;
    }
    match &body.expr(e).kind {
        ExprKind::Name(name) => name == root,
        ExprKind::Paren(e)
        | ExprKind::AddrOf(e)
        | ExprKind::Deref(e)
        | ExprKind::Cast { operand: e, .. }
        | ExprKind::Comma(_, e)
        | ExprKind::Field { base: e, .. }
        | ExprKind::Index { base: e, .. } => leads(*e),
        ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b)
        | ExprKind::Conditional {
            then: a, otherwise: b, ..
        } => leads(*a) || leads(*b),
        ExprKind::InitList(parts) | ExprKind::Construct { args: parts, .. } => parts.iter().any(|part| leads(*part)),
        // The library returns numbers.
        ExprKind::Call { name, args, .. } => {
            name.as_deref()
                .is_none_or(|name| library_called(db, function, name).is_none())
                && args.iter().any(|part| leads(*part))
        }
        _ => false,
    }
}

/// The pointer in an object by which a place is reached, or that an expression is: `g.next` of `g.next[i].x` and `*g.next`.
fn member_behind<'a, M>(body: &Body, mut e: ExprId, members: &'a HashMap<ExprId, M>) -> Option<&'a M> {
    loop {
        e = body.strip_parens(e);
        if let Some(member) = members.get(&e) {
            return Some(member);
        }
        e = match &body.expr(e).kind {
            ExprKind::Field { base, .. } | ExprKind::Index { base, .. } | ExprKind::Deref(base) => *base,
            ExprKind::AddrOf(place) => *place,
            ExprKind::Binary(BinOp::Add, base, _) => *base,
            _ => return None,
        }
    }
}

/// The variable of which a place is a part, or that points to it.
fn root_name(body: &Body, mut place: ExprId) -> Option<Name> {
    loop {
        place = body.strip_parens(place);
        place = match &body.expr(place).kind {
            ExprKind::Name(name) => return Some(name.clone()),
            ExprKind::Index { base, .. } | ExprKind::Field { base, .. } | ExprKind::Deref(base) => *base,
            ExprKind::Binary(BinOp::Add, base, _) => *base,
            _ => return None,
        };
    }
}
