//! Values, places and effects: what device code computes as the host did, and what the host passes.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{GlobalItem, items};
use gridfuse_analysis::hir::library::constant;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr};
use gridfuse_analysis::hir::{BinOp, BindingId, ExprId, ExprKind, Literal, Name, StmtId, Storage};

use super::super::api;
use super::super::classes::{Own, class_named, is_reference, of_field, of_variable, taken_apart};
use super::super::early;
use super::super::host_loop::HostLoop;
use super::super::kept;
use super::super::kernels::varies;
use super::super::variables;
use super::{Param, Translation, last_name};
use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::edit::lex;
use crate::edit::names::is_macro;
use crate::edit::style;
use crate::facts::calls::{VECTORS, is_plain_type};
use crate::facts::child::copies_plainly;
use crate::facts::cluster::Function;
use crate::facts::ctype;
use crate::facts::pure;
use crate::runtime::is_header;

impl Translation<'_, '_> {
    /// A parameter for what the host knows.
    pub(super) fn param(&mut self, ty: &str, wanted: &str, value: String) -> String {
        if let Some(known) = self.params.iter().find(|p| p.value == value && p.ty == ty) {
            return known.name.clone();
        }
        let mut name = wanted.to_owned();
        let is_device_variable = |name: &str| {
            let meaning = meaning_in(self.host.function.db, self.host.function.item, name);
            matches!(meaning, Meaning::Global(global) if global.managed || global.device)
        };
        let is_own = |name: &str| {
            name == value && (self.body.bindings.iter().any(|b| b.name == name) || self.host_constant(name).is_some())
        };
        let taken = |name: &str| {
            self.params.iter().any(|p| p.name == name)
                || name == self.rounds
                || variables::BUILT_IN.contains(&name)
                || is_device_variable(name)
                || is_macro(self.host.function.db, self.host.file(), name)
                || !is_own(name) && self.words.contains(name)
        };
        let mut number = 2;
        while taken(&name) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        self.params.push(Param {
            ty: ty.to_owned(),
            name: name.clone(),
            value,
        });
        name
    }

    /// A variable of the host's, as the kernel names it.
    pub(super) fn variable(&mut self, binding: BindingId, span: Span) -> String {
        let name = self.body.binding(binding).name.clone();
        if self.host.changes(binding) {
            return name;
        }
        if api::is_error(&self.host.function, binding) {
            self.refuse(format!("the loop asks what `{name}` is"), span);
        }
        variables::refuse_type(self.host, binding, self.refusals);
        if self.body.binding(binding).ty.reference {
            let read = self.read_through(binding);
            self.assume_unchanged(&name, &read, span);
        }
        let ty = variables::spelled(self.host, binding);
        self.param(&ty, &name, name.clone())
    }

    /// The host computes in front of the loop what only a round of it computed, at this statement.
    pub(super) fn early(&mut self, expr: ExprId, stmt: Option<StmtId>) {
        let reached = stmt.is_some_and(|stmt| early::is_reached(self.host, stmt));
        if reached || !early::may_fail(self.body, expr, |e| self.is_constant(e)) {
            return;
        }
        let what = self.host.flat(expr);
        if self.computed.insert(what.clone()) {
            self.edit.assume(assumption::COMPUTED_EARLY.of(Reason {
                text: format!("the host can compute `{what}` even where no round of the loop does so"),
                place: Some(self.host.function.place(self.span(expr))),
            }));
        }
    }

    /// Whether an expression reads memory that the host shares with the device.
    pub(super) fn reads_memory(&self, expr: ExprId) -> bool {
        let mut parts = all_in_expr(self.body, expr).into_iter();
        self.object(expr).is_none() && parts.any(|e| self.shared_pointer_of(e).is_some())
    }

    /// The pointer by which an expression reads memory, as it is written; the name of a managed variable.
    pub(super) fn shared_pointer_of(&self, expr: ExprId) -> Option<String> {
        match &self.body.expr(expr).kind {
            ExprKind::Deref(pointer) => Some(self.host.flat(*pointer)),
            ExprKind::Index { base, .. } => Some(self.host.flat(*base)),
            ExprKind::Name(Name::Other(name)) => {
                match meaning_in(self.host.function.db, self.host.function.item, name) {
                    Meaning::Global(global) if global.managed => Some(name.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether an expression reads memory that the host changes in the loop, or that a kernel of it gets a pointer to, by which it may
    /// write.
    pub(super) fn changes_in_memory(&self, expr: ExprId) -> bool {
        let read: Vec<String> = all_in_expr(self.body, expr)
            .into_iter()
            .filter_map(|e| self.shared_pointer_of(e))
            .collect();
        let stored = |pointer: &String| {
            all_exprs(self.body, self.host.stmt)
                .into_iter()
                .any(|e| match self.body.expr(e).kind {
                    ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                        self.shared_pointer_of(self.body.strip_parens(place)).as_ref() == Some(pointer)
                    }
                    _ => false,
                })
        };
        let written = |pointer: &String| {
            let launches = self.host.launches.iter().zip(&self.kernels.of_launch);
            launches.into_iter().any(|(site, kernel)| {
                let params = self.kernels.all.get(*kernel).map_or(&[][..], |kernel| &kernel.params);
                let mut given = site.launch.args.iter().zip(params);
                given.any(|(arg, param)| !param.ty.const_base && self.host.flat(*arg) == *pointer)
            })
        };
        read.iter().any(|pointer| stored(pointer) || written(pointer))
    }

    /// What the host computes for every round, from what doesn't change. At this statement of the loop it was computed before.
    pub(super) fn outside(&mut self, expr: ExprId, stmt: Option<StmtId>) {
        self.early(expr, stmt);
        let span = self.span(expr);
        let what = self.host.flat(expr);
        if pure::not_repeatable(&self.host.launches[self.shape.block], expr).is_some() {
            self.refuse(
                format!("`{what}` may be another value in another round: compute it before the loop"),
                span,
            );
        }
        let parts = all_in_expr(self.body, expr);
        let taken_apart = taken_apart(self.body, &parts);
        let own = |e: &ExprId| match self.body.expr(*e).kind {
            _ if taken_apart.contains(e) => Own::Yes,
            ExprKind::Field { .. } => of_field(self.host, *e),
            ExprKind::Name(Name::Local(variable)) if !self.body.binding(variable).ty.reference => {
                of_variable(self.host, variable)
            }
            _ => Own::Yes,
        };
        if let Some(field) = parts.iter().find(|e| own(e) == Own::No) {
            let what = self.host.flat(*field);
            self.refuse(
                format!(
                    "`{what}` may be a reference to what changes in the loop: copy it to a variable before the loop"
                ),
                span,
            );
        }
        let shared = parts.into_iter().any(|e| match &self.body.expr(e).kind {
            _ if own(&e) == Own::Unknown => true,
            ExprKind::Deref(_) | ExprKind::Index { .. } | ExprKind::Field { arrow: true, .. } => true,
            ExprKind::Name(Name::Local(b)) => self.body.binding(*b).ty.reference,
            ExprKind::Name(Name::Other(name)) => !self.is_constant_name(name),
            _ => false,
        });
        if shared {
            let read = self.read_by(expr);
            self.assume_unchanged(&what, &read, span);
        }
    }

    /// The struct of which an expression is a field, or an element of a field that is an array, where a kernel can have a copy of it.
    pub(super) fn object(&self, expr: ExprId) -> Option<BindingId> {
        let (field, indexed) = match &self.body.expr(self.body.strip_parens(expr)).kind {
            ExprKind::Index { base, .. } => (self.body.strip_parens(*base), true),
            _ => (self.body.strip_parens(expr), false),
        };
        let ExprKind::Field {
            base,
            field,
            arrow: false,
        } = &self.body.expr(field).kind
        else {
            return None;
        };
        let binding = self.host.local(*base).filter(|b| !self.host.changes(*b))?;
        let own = self.body.binding(binding);
        let db = self.host.function.db;
        let class = class_named(db, self.host.file(), &own.ty.base)?;
        let declared = class
            .fields
            .iter()
            .find(|(_, name)| lex::identifiers(name).next() == Some(field))?;
        // What a copy of it refers to is the host's.
        let fits = own.ty.pointers == 0
            && !class.fields.iter().any(is_reference)
            && !class.guarded
            && own.ty.array.is_empty()
            && !own.ty.complex
            && declared.1.contains('[') == indexed
            && is_number_or_pointer(declared)
            && !self.body.declared.contains(&own.ty.base)
            && copies_plainly(db, self.host.function.item, &own.ty, 0).is_ok();
        fits.then_some(binding)
    }

    /// The kernel gets a copy of a struct.
    pub(super) fn copy_object(&mut self, binding: BindingId, span: Span) {
        variables::refuse_built_in(self.host, binding, self.refusals);
        let own = self.body.binding(binding);
        let (ty, name) = (own.ty.base.clone(), own.name.clone());
        if own.ty.reference {
            let read = self.read_through(binding);
            self.assume_unchanged(&name, &read, span);
        }
        self.param(&ty, &name, name.clone());
    }

    /// Whether a name is a constant that device code may use.
    pub(super) fn is_constant_name(&self, name: &str) -> bool {
        match meaning_in(self.host.function.db, self.host.function.item, name) {
            Meaning::Enumerator(_) => !asks_for_the_side(self.host),
            Meaning::Global(global) => is_constant_global(self.host, &global, 0),
            _ => constant(name),
        }
    }

    /// The type of a number of the host's that never changes, and that device code doesn't see.
    pub(super) fn host_constant(&self, name: &str) -> Option<String> {
        match meaning_in(self.host.function.db, self.host.function.item, name) {
            Meaning::Global(global) => {
                let number = global.constant && !global.pointer && global.dims == 0 && is_plain_type(&global.base);
                let number = number && !is_long_double(&global);
                (number && !global.constant_memory && !global.device).then(|| global.base.clone())
            }
            _ => None,
        }
    }

    /// Whether an expression is made of constants that the kernel sees as the host does.
    pub(super) fn is_constant(&self, expr: ExprId) -> bool {
        match &self.body.expr(expr).kind {
            ExprKind::Literal(literal) => *literal != Literal::Str,
            ExprKind::SizeOf => self.odd_size(expr).is_none(),
            ExprKind::Name(Name::Other(name)) => self.is_constant_name(name),
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => self.is_constant(*e),
            ExprKind::Binary(_, a, b) => self.is_constant(*a) && self.is_constant(*b),
            ExprKind::Cast { ty, operand, .. } => is_plain_type(ty) && self.is_constant(*operand),
            ExprKind::Construct { ty, args } => {
                (ty == "dim3" || is_plain_type(ty)) && args.iter().all(|e| self.is_constant(*e))
            }
            _ => false,
        }
    }

    /// The variable of the host's alone whose size an expression is.
    pub(super) fn odd_size(&self, expr: ExprId) -> Option<String> {
        let source = self.host.source(self.span(expr));
        let known = |name: &str| {
            let named: Vec<BindingId> = (0..self.body.bindings.len() as u32)
                .map(BindingId)
                .filter(|b| self.body.binding(*b).name == name)
                .collect();
            named.is_empty() || named.iter().any(|b| self.host.changes(*b))
        };
        let sides = asks_for_the_side(self.host);
        let may_differ = |name: &str| sides && !is_plain_type(name) && name != "sizeof";
        let own_type =
            |name: &str| may_differ(name) || self.body.declared.contains(name) || NAMES_OF_FUNCTIONS.contains(&name);
        lex::identifiers(source)
            .find(|name| !known(name) || own_type(name))
            .map(str::to_owned)
    }

    /// The text of an expression as the kernel has it.
    pub(super) fn text_of(&mut self, expr: ExprId) -> String {
        self.refuse_part_of_macro(expr);
        let from = self.edits.len();
        self.value(expr);
        let text = self.edited(self.span(expr), from);
        crate::edit::one_line::one_line(&text)
    }

    /// The text of a span with the edits from one on, which it takes.
    pub(super) fn edited(&mut self, span: Span, from: usize) -> String {
        let mut edits = self.edits.split_off(from);
        edits.sort_by_key(|(at, _)| (at.start, at.end));
        let (mut out, mut at) = (String::new(), span.start);
        for (place, text) in edits {
            if place.start < at || place.end > span.end {
                // Two of them want the same text.
                self.refuse("the loop is not understood", span);
                return out;
            }
            out.push_str(self.host.source(Span::new(at, place.start)));
            let start = (place.start + self.host.function.start) as usize;
            let indent = style::indent_at(&self.host.function.text, start).to_owned();
            out.push_str(&self.style.fit(&text, &indent));
            at = place.end;
        }
        out.push_str(self.host.source(Span::new(at, span.end)));
        out
    }

    /// A pointer into the device's memory.
    pub(super) fn pointer(&mut self, expr: ExprId) -> String {
        let mut inner = expr;
        while let ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } = self.body.expr(inner).kind
            && self.span(e) == self.span(expr)
        {
            inner = e;
        }
        if inner != expr {
            // A macro is the whole of it, with its casts.
            self.refuse_part_of_macro(expr);
            let from = self.edits.len();
            self.value(inner);
            return self.edited(self.span(expr), from);
        }
        match &self.body.expr(expr).kind {
            ExprKind::Paren(e) => self.pointer(*e),
            // A pointer to what may change is one to void: what is needed of the cast is what makes one out of anything else.
            ExprKind::Cast { operand, .. } => {
                let ty = self.host.local(*operand).map(|b| &self.body.binding(b).ty);
                if ty.is_some_and(|ty| ty.pointers > 0 && !ty.const_base) {
                    return self.pointer(*operand);
                }
                self.refuse_part_of_macro(expr);
                let from = self.edits.len();
                self.value(*operand);
                self.edited(self.span(expr), from)
            }
            _ => self.text_of(expr),
        }
    }

    /// Whether device code may use a pointer that the host uses itself.
    pub(super) fn is_shared(&self, pointer: ExprId) -> bool {
        let Some(binding) = self.host.local(pointer) else {
            // A field has no name by itself: it is the one that is written alike.
            let text = self.host.flat(pointer);
            let mut sites = self.host.launches.iter();
            return sites.any(|site| site.launch.args.iter().any(|arg| self.host.flat(*arg) == text));
        };
        let args = self.host.launches.iter().flat_map(|site| &site.launch.args);
        let given: Vec<BindingId> = args.filter_map(|arg| self.host.local(*arg)).collect();
        if given.contains(&binding) {
            // What it gets in the loop a kernel gets as well.
            let mut assigned =
                all_exprs(self.body, self.host.stmt)
                    .into_iter()
                    .filter_map(|e| match self.body.expr(e).kind {
                        ExprKind::Assign { place, value, .. } if self.host.local(place) == Some(binding) => Some(value),
                        _ => None,
                    });
            return assigned.all(|value| {
                self.host
                    .local(value)
                    .is_some_and(|b| given.contains(&b) || self.host.inner.contains(&b))
            });
        }
        self.is_allocated(binding)
    }

    /// Whether all that a pointer gets, in sight, is memory that both can use.
    fn is_allocated(&self, binding: BindingId) -> bool {
        let allocates = |e: &ExprId| match &self.body.expr(*e).kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } if SHARED.contains(&name.trim_start_matches("::")) => args.first().copied(),
            _ => None,
        };
        let own = self.body.binding(binding);
        let nothing = |e: ExprId| {
            matches!(
                self.body.expr(e).kind,
                ExprKind::Literal(Literal::Int(0) | Literal::Null)
            )
        };
        let begins = self
            .body
            .initialiser(binding)
            .is_none_or(|e| nothing(self.body.strip_parens(e)));
        let calls = (0..self.body.exprs.len() as u32).map(ExprId);
        let given: Vec<ExprId> = calls
            .filter_map(|e| allocates(&e))
            .filter(|arg| self.host.address_of(*arg) == Some(binding))
            .flat_map(|arg| all_in_expr(self.body, arg))
            .collect();
        let allocated = !given.is_empty();
        // Who else gets its address, or a reference to it, may set it.
        let keepers = kept::keepers(self.host, binding);
        let begins = begins && keepers.iter().all(|place| given.contains(place));
        let others = self.body.exprs.iter().filter(|e| match &e.kind {
            ExprKind::Assign { place, value, .. } => self.host.local(*place) == Some(binding) && !nothing(*value),
            ExprKind::IncDec { place, .. } => self.host.local(*place) == Some(binding),
            _ => false,
        });
        let others = others.count();
        own.storage == Storage::Local && !own.ty.reference && begins && allocated && others == 0
    }

    /// The pointer through which the host reaches memory that it shares with the device; refused where it may be the host's alone.
    pub(super) fn shared_place(&mut self, place: ExprId) -> Option<String> {
        let bare = self.body.strip_parens(place);
        let span = self.span(place);
        match &self.body.expr(bare).kind {
            ExprKind::Deref(pointer) => self.shared_pointer(*pointer, span),
            ExprKind::Index { base, index } if api::is_zero(&self.host.function, *index) => {
                self.shared_pointer(*base, span)
            }
            ExprKind::Name(Name::Other(name)) => {
                match meaning_in(self.host.function.db, self.host.function.item, name) {
                    Meaning::Global(global) if global.managed && global.dims == 0 && is_number(&global) => {
                        Some(format!("&{name}"))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub(super) fn shared_pointer(&mut self, pointer: ExprId, span: Span) -> Option<String> {
        let local = self.host.local(pointer);
        if !self.is_shared(pointer) {
            let what = self.host.flat(pointer);
            self.refuse(
                format!("`{what}` isn't known to point to memory that device code can read: pass it to a kernel of the loop, or use a variable"),
                span,
            );
        } else if !local.is_some_and(|binding| self.is_allocated(binding)) {
            let what = self.host.flat(pointer);
            self.edit.assume(assumption::SHARED_POINTERS.of(Reason {
                text: format!("`{what}` points to memory that the host and the device can use"),
                place: Some(self.host.function.place(span)),
            }));
        }
        if !self.points_to_number(pointer) {
            let what = self.host.flat(pointer);
            self.refuse(
                format!("`{what}` isn't known to point to numbers: a class or a pointer may be read and written by code of its own"),
                span,
            );
        }
        if self.body.expr(pointer).from_macro {
            self.refuse("a pointer that comes out of a macro is read", span);
        }
        Some(self.text_of(pointer))
    }

    /// Whether a variable points to numbers of the language; of what isn't one variable the type isn't known here.
    fn points_to_number(&self, pointer: ExprId) -> bool {
        let Some(binding) = self.host.local(pointer) else {
            let declared = self.declared_type(pointer);
            let base = declared.as_deref().and_then(|ty| ty.strip_suffix('*'));
            return base.is_some_and(|base| {
                let base = ctype::normalize(base.trim());
                is_plain_type(&base) && !VECTORS.contains(&base.as_str())
            });
        };
        let ty = &self.body.binding(binding).ty;
        let function = &self.host.function;
        let base = ctype::normalize(&ty.base);
        let number = is_plain_type(&base) && !VECTORS.contains(&base.as_str());
        ty.pointers == 1 && ty.array.is_empty() && (number || ctype::is_integer(function.db, function.file, &ty.base))
    }

    /// A value that every thread computes.
    pub(super) fn value(&mut self, expr: ExprId) {
        let span = self.span(expr);
        match &self.body.expr(expr).kind {
            ExprKind::Literal(Literal::Float(text)) if text.ends_with(['l', 'L']) => {
                self.refuse("device code has no `long double`", span);
            }
            ExprKind::Literal(literal) if *literal != Literal::Str => {}
            ExprKind::SizeOf => {
                if let Some(name) = self.odd_size(expr) {
                    self.refuse(
                        format!("the size of `{name}` isn't known in a kernel: write its type"),
                        span,
                    );
                }
            }
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => self.value(*e),
            ExprKind::Binary(_, a, b) if [a, b].iter().any(|e| api::is_vector(&self.host.function, **e)) => {
                self.refuse(self.cannot_move(span), span);
            }
            ExprKind::Binary(op, a, b) => {
                self.refuse_rounding(expr, *op);
                self.value(*a);
                self.value(*b);
            }
            ExprKind::Logical { lhs, rhs, .. } => {
                self.value(*lhs);
                self.value(*rhs);
            }
            ExprKind::Conditional { cond, then, otherwise } => {
                self.value(*cond);
                self.value(*then);
                self.value(*otherwise);
            }
            ExprKind::Cast {
                ty,
                operand,
                reinterpret: false,
            } if is_plain_type(ty) => self.value(*operand),
            ExprKind::Construct { ty, args } if ty == "dim3" || is_plain_type(ty) => {
                args.iter().for_each(|e| self.value(*e));
            }
            ExprKind::Name(Name::Local(binding)) => {
                let name = self.variable(*binding, span);
                if name != self.body.binding(*binding).name {
                    self.replace(expr, name);
                }
            }
            ExprKind::Name(Name::Other(name)) if self.is_constant_name(name) => {}
            ExprKind::Name(Name::Other(name)) if self.host_constant(name).is_some() => {
                let ty = self.host_constant(name).unwrap_or_default();
                let given = self.param(&ty, name.rsplit("::").next().unwrap_or(name), name.clone());
                if given != *name {
                    self.replace(expr, given);
                }
            }
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } if self
                .host
                .local(*base)
                .is_some_and(|b| self.body.binding(b).ty.base == "dim3")
                && matches!(field.as_str(), "x" | "y" | "z") =>
            {
                self.value(*base);
            }
            ExprKind::Index { index, .. } if self.object(expr).is_some() => {
                self.object(expr).into_iter().for_each(|b| self.copy_object(b, span));
                self.value(*index);
            }
            ExprKind::Field { .. } if !varies(self.host, expr) => match self.object(expr) {
                Some(binding) => self.copy_object(binding, span),
                None => self.field(expr),
            },
            _ => match self.shared_place(expr) {
                Some(place) => self.replace(expr, format!("{}.load({place})", self.rounds)),
                None => self.refuse(self.cannot_move(span), span),
            },
        }
    }

    /// The type that the class of an object declares for a field; `None` where the class or the field isn't known, or the field is an array
    /// or a reference.
    fn declared_type(&self, field: ExprId) -> Option<String> {
        let ExprKind::Field { base, field, arrow } = &self.body.expr(self.body.strip_parens(field)).kind else {
            return None;
        };
        let class_name = match self.host.local(*base) {
            Some(binding) => {
                let ty = &self.body.binding(binding).ty;
                (ty.pointers == u8::from(*arrow) && ty.array.is_empty() && !ty.complex).then(|| ty.base.clone())?
            }
            None => self.declared_type(*base).filter(|_| !arrow)?,
        };
        let function = &self.host.function;
        if self.body.declared.contains(&class_name) {
            return None;
        }
        let mut files = included_files(function.db, function.file).iter();
        let class = files.find_map(|file| {
            items(function.db, *file)
                .types
                .iter()
                .find(|class| class.name == class_name)
        })?;
        if !class.template_names.is_empty() {
            return None;
        }
        let mut named = class
            .fields
            .iter()
            .filter(|(_, name)| lex::identifiers(name).next() == Some(field));
        let (ty, name) = named.next()?;
        let odd = named.next().is_some() || name.contains(['[', '&', '(', ':']);
        (!odd).then(|| format!("{}{}", ty.trim(), "*".repeat(name.matches('*').count())))
    }

    /// A field of an object of the host's: passed by value.
    pub(super) fn field(&mut self, expr: ExprId) {
        let span = self.span(expr);
        let value = self.host.flat(expr);
        let plain = |ty: &String| ty.ends_with('*') || is_plain_type(&ctype::normalize(ty));
        let ty = self.declared_type(expr).filter(plain);
        let passed = ty.and_then(|ty| {
            self.outside(expr, None);
            let wanted = last_name(self.body, expr)?.to_owned();
            Some(self.param(&ty, &wanted, value.clone()))
        });
        match passed {
            Some(name) => self.replace(expr, name),
            None => self.refuse(
                format!("the type of `{value}` isn't known: copy it to a variable before the loop"),
                span,
            ),
        }
    }

    /// What the device rounds otherwise, as it multiplies and adds in one step.
    pub(super) fn refuse_rounding(&mut self, expr: ExprId, op: BinOp) {
        let arithmetic = matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div);
        let ty = ctype::type_of(&self.host.launches[self.shape.block], expr);
        let floating = match ty {
            Some(ty) => matches!(ty.as_str(), "float" | "double"),
            None => !self.is_whole(expr),
        };
        if arithmetic && floating {
            let what = self.host.flat(expr);
            self.edit.assume(assumption::ROUNDING.of(Reason {
                text: format!("`{what}` may be rounded as the device does it, which multiplies and adds in one step"),
                place: Some(self.host.function.place(self.span(expr))),
            }));
        }
    }

    /// Whether an expression is made of integers and pointers alone.
    fn is_whole(&self, expr: ExprId) -> bool {
        let Function { db, item, file, .. } = &self.host.function;
        let integer = |ty: &str| ctype::is_integer(*db, *file, ty) || matches!(ty, "bool" | "size_t");
        match &self.body.expr(expr).kind {
            ExprKind::Literal(literal) => matches!(literal, Literal::Int(_) | Literal::Bool(_) | Literal::Null),
            ExprKind::SizeOf | ExprKind::Logical { .. } | ExprKind::Name(Name::Builtin(_)) => true,
            ExprKind::Paren(e) | ExprKind::Unary(_, e) | ExprKind::Assign { place: e, .. } => self.is_whole(*e),
            ExprKind::Binary(op, a, b) => {
                matches!(
                    op,
                    BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge | BinOp::Rem
                ) || self.is_whole(*a) && self.is_whole(*b)
            }
            ExprKind::Conditional { then, otherwise, .. } => self.is_whole(*then) && self.is_whole(*otherwise),
            ExprKind::Cast { ty, .. } | ExprKind::Construct { ty, .. } => integer(ty) || ty.trim_end().ends_with('*'),
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &self.body.binding(*binding).ty;
                ty.pointers > 0 || integer(&ty.base) || ty.base == "dim3"
            }
            ExprKind::Name(Name::Other(name)) => match meaning_in(*db, *item, name) {
                Meaning::Enumerator(_) => true,
                Meaning::Global(global) => global.pointer || integer(&global.base),
                _ => false,
            },
            ExprKind::Index { base, .. } | ExprKind::Deref(base) => match self.host.local(*base) {
                Some(binding) => integer(&self.body.binding(binding).ty.base),
                None => false,
            },
            ExprKind::Field { .. } => self
                .declared_type(expr)
                .is_some_and(|ty| integer(&ty) || ty.ends_with('*')),
            _ => false,
        }
    }

    /// An expression that is evaluated for what it changes.
    pub(super) fn effect(&mut self, expr: ExprId) {
        let span = self.span(expr);
        match &self.body.expr(expr).kind {
            ExprKind::Paren(e) => self.effect(*e),
            ExprKind::Comma(a, b) => {
                self.effect(*a);
                self.effect(*b);
            }
            ExprKind::Assign { op, place, value } => {
                if self.host.local(*place).is_some_and(|b| self.host.changes(b)) {
                    if let Some(op) = op {
                        self.refuse_rounding(*place, *op);
                    }
                    self.value(*value);
                    return;
                }
                match self.shared_place(*place) {
                    Some(place) if op.is_none() => {
                        let value = self.text_of(*value);
                        self.replace(expr, format!("{}.store({place}, {value})", self.rounds));
                    }
                    _ => self.refuse(self.cannot_move(span), span),
                }
            }
            ExprKind::IncDec { place, .. } if self.host.local(*place).is_some_and(|b| self.host.changes(b)) => {}
            ExprKind::Call {
                name: Some(name), args, ..
            } if api::named(&self.host.function, name) == Some(api::Call::Swap) => {
                let named: Vec<Option<BindingId>> = args.iter().map(|arg| self.host.local(*arg)).collect();
                match named.as_slice() {
                    [Some(a), Some(b)] => {
                        let (a, b) = (&self.body.binding(*a).name, &self.body.binding(*b).name);
                        let text = format!("{}.swap({a}, {b})", self.rounds);
                        self.replace(expr, text);
                    }
                    _ => self.refuse(self.cannot_move(span), span),
                }
            }
            ExprKind::Cast { ty, operand, .. } if ty == "void" => self.effect(*operand),
            _ => self.refuse(self.cannot_move(span), span),
        }
    }
}

/// Whether a variable is a number of the language.
fn is_number(global: &GlobalItem) -> bool {
    !global.pointer && is_plain_type(&ctype::normalize(&global.base)) && !VECTORS.contains(&global.base.as_str())
}

/// Whether a field, by its type and name as they are written, is a number or a pointer of the language.
fn is_number_or_pointer((ty, name): &(String, String)) -> bool {
    let ty = ty.trim();
    name.contains('*') || ty.ends_with('*') || is_plain_type(ty) || is_plain_type(&ctype::normalize(ty))
}

/// Whether the program says other things to the compiler of the host and to that of the device, so that a constant, or the size of a type,
/// may be another one there.
fn asks_for_the_side(host: &HostLoop<'_>) -> bool {
    let db = host.function.db;
    let mut files = included_files(db, host.file()).iter();
    files.any(|file| {
        let text = file.text(db);
        // Large files are searched before they are read word by word.
        text.contains(SIDE) && !is_header(db, *file) && lex::identifiers(&text).any(|word| word.starts_with(SIDE))
    })
}

/// What allocates memory that the host and the device can use, and gives a pointer to it by its first argument.
const SHARED: [&str; 4] = [
    "cudaMallocManaged",
    "cudaMallocHost",
    "cudaHostAlloc",
    "cudaHostGetDevicePointer",
];

/// What the macros begin with that only the device's compiler defines: `__CUDA_ARCH__`, `__CUDA_ARCH_FEAT_SM90_ALL`.
const SIDE: &str = "__CUDA_ARCH";

/// What names the function in which it stands.
const NAMES_OF_FUNCTIONS: [&str; 5] = [
    "__func__",
    "__FUNCTION__",
    "__PRETTY_FUNCTION__",
    "__builtin_FUNCTION",
    "source_location",
];

/// Whether a variable is a constant that the compiler knows, and so device code does: one whose initialiser is made of such. What a
/// function computes is none: when the program starts, the host's variable gets it.
fn is_constant_global(host: &HostLoop<'_>, global: &GlobalItem, depth: u32) -> bool {
    let Function { db, item, .. } = &host.function;
    let known = |word: &str| {
        is_plain_type(word)
            || matches!(
                word,
                "sizeof" | "static_cast" | "true" | "false" | "unsigned" | "signed" | "long" | "short"
            )
            || match meaning_in(*db, *item, word) {
                Meaning::Enumerator(_) => true,
                Meaning::Global(of) => depth < 8 && is_constant_global(host, &of, depth + 1),
                _ => constant(word),
            }
    };
    let made_of_known = |init: &String| lex::identifiers(init).all(known);
    let number = global.constant && !global.pointer && global.dims == 0 && !is_long_double(global);
    number && global.init.as_ref().is_some_and(made_of_known)
}

/// Whether a variable is of a type that is a `double` to the device.
fn is_long_double(global: &GlobalItem) -> bool {
    ctype::normalize(&global.base).contains("long double")
}
