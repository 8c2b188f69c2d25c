//! The value of one expression from those of its operands (El Hajj, dissertation 2018, §3.4.1, and what CUDA adds to it).

use super::differing_operators::{made_of_the_thread, result_may_differ};
use super::engine::{Engine, Mode, Trust};
use super::level::{Cause, Level};
use super::memory::{Class, MemoryClass, Root, is_constant_value};
use super::methods::methods;
use super::rows::wraps_warps;
use super::value::Value;
use super::vars::At;
use super::written::{Origins, origins};
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::facts::effects::direct;
use crate::facts::hidden::{operator_use, runs_unseen, symbol, unary};
use crate::hir::flow::BlockId;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Library, Outcome, constant};
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::visible::visible_names;
use crate::hir::{BinOp, BindingId, Builtin, ExprId, ExprKind, Literal, Name, Storage};

impl<'a, 'db: 'a> Engine<'a, 'db> {
    fn all(&self, list: &[ExprId]) -> Value {
        list.iter().fold(Value::CONSTANT, |v, e| v.join(self.of(*e)))
    }

    /// The value of an expression whose operands were evaluated before.
    pub(super) fn eval(&mut self, block: BlockId, step: usize, e: ExprId) -> Value {
        let value = self.eval_own(block, step, e);
        value.join(self.unnamed(e))
    }

    /// What code that is called by no name adds to an expression: a user's operator, a conversion of the object that it is.
    fn unnamed(&mut self, e: ExprId) -> Value {
        let body = self.body;
        let span = body.expr(e).span;
        if self.operators
            && let Some((symbol, operands)) = operator_use(body, e)
        {
            let value = self.operator(symbol, &operands, span);
            if value.level > Level::Constant {
                return value;
            }
        }
        if !self.classes || self.trust == Trust::Assumed {
            return Value::CONSTANT;
        }
        let shape = self.places.shape(e);
        let object = shape.filter(|shape| shape.pointers == 0 && shape.dims == 0);
        match object.filter(|shape| self.runs(&shape.base)) {
            Some(shape) => self.varying(
                format!(
                    "an object of {}, which may run code that is called by no name",
                    shape.base
                ),
                span,
            ),
            None => Value::CONSTANT,
        }
    }

    /// Making, copying or converting an object of this type may run something that does more than compute.
    pub(super) fn runs(&self, ty: &str) -> bool {
        self.classes && self.trust != Trust::Assumed && runs_unseen(self.db, self.function, ty)
    }

    fn eval_own(&mut self, block: BlockId, step: usize, e: ExprId) -> Value {
        let body = self.body;
        let span = body.expr(e).span;
        match &body.expr(e).kind {
            ExprKind::Literal(_) | ExprKind::SizeOf => Value::CONSTANT,
            ExprKind::Name(Name::Builtin(b)) => self.builtin(*b, span),
            ExprKind::Name(Name::Local(b)) => self.local(block, step, e, *b),
            ExprKind::Name(Name::Other(name)) => self.other(name, e),
            ExprKind::Paren(inner) => self.of(*inner),
            ExprKind::Unary(op, inner) => self.of(*inner).join(self.operator(unary(*op), &[*inner], span)),
            ExprKind::Binary(op, a, b) => match self.warp_index(*op, *a, *b) {
                Some(value) => value,
                None => {
                    let operator = self.operator(symbol(*op), &[*a, *b], span);
                    self.of(*a).join(self.of(*b)).join(operator)
                }
            },
            ExprKind::Logical { and, lhs, rhs } => {
                let operator = self.operator(if *and { "&&" } else { "||" }, &[*lhs, *rhs], span);
                self.of(*lhs).join(self.of(*rhs)).join(operator)
            }
            ExprKind::Conditional { cond, then, otherwise } => {
                self.of(*cond).join(self.of(*then)).join(self.of(*otherwise))
            }
            ExprKind::Comma(_, last) => self.of(*last),
            ExprKind::Assign { op: None, value, .. } => self.of(*value),
            ExprKind::Assign { op, place, value } => {
                let old = self.old(block, e, *place);
                let symbol = op.map(|op| format!("{}=", symbol(op))).unwrap_or_default();
                let operator = self.operator(&symbol, &[*place, *value], span);
                old.join(self.of(*value)).join(operator)
            }
            ExprKind::IncDec { place, .. } => self.old(block, e, *place),
            ExprKind::Deref(_) | ExprKind::Index { .. } => self.load(block, step, e),
            ExprKind::Field { base, arrow, .. } => {
                let inner = body.strip_parens(*base);
                let own = self.reads(block, At::Expr(e));
                if !own.is_empty() {
                    return own.into_iter().fold(Value::CONSTANT, Value::join);
                }
                let place = matches!(
                    body.expr(inner).kind,
                    ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Field { .. }
                );
                // A field of an object in a variable is as uniform as the object.
                match *arrow || (place && !matches!(self.places.root(inner), Root::Object(_))) {
                    true => self.load(block, step, e),
                    false => self.of(*base),
                }
            }
            ExprKind::AddrOf(inner) => self.address_of(*inner, span),
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => self.call(block, *target, name.as_deref(), args, span),
            ExprKind::Construct { ty, args } => self.construct(ty, args, span),
            ExprKind::InitList(args) => self.all(args),
            ExprKind::Cast { ty, operand, .. } => {
                let templates = &self.function.signature(self.db).template_types;
                match ty.contains('&') || self.places.class_kind(ty, templates) == Class::Opaque && !ty.contains('*') {
                    true => self.varying(format!("conversion to {ty}"), span),
                    false => self.of(*operand),
                }
            }
            ExprKind::New(_) => self.varying("memory allocated by each thread", span),
            ExprKind::Launch(_) | ExprKind::Delete(_) => Value::CONSTANT,
            ExprKind::Lambda { .. } => self.varying("a lambda", span),
            ExprKind::Unknown { .. } => {
                let text = format!("`{}` isn't understood", self.quote(span));
                self.varying(text, span)
            }
        }
    }

    fn builtin(&mut self, b: Builtin, span: Span) -> Value {
        match b {
            Builtin::ThreadIdx => self.varying(format!("depends on {}", self.builtin_text(b, span)), span),
            Builtin::BlockIdx => self.value(Level::Block, format!("depends on {}", self.builtin_text(b, span)), span),
            Builtin::BlockDim | Builtin::GridDim => {
                self.value(Level::Grid, format!("depends on {}", self.builtin_text(b, span)), span)
            }
            Builtin::WarpSize => Value::CONSTANT,
        }
    }

    /// `threadIdx.x` where that is what stands there, else the name alone.
    fn builtin_text(&self, b: Builtin, span: Span) -> String {
        let name = match b {
            Builtin::ThreadIdx => "threadIdx",
            Builtin::BlockIdx => "blockIdx",
            Builtin::BlockDim => "blockDim",
            Builtin::GridDim => "gridDim",
            Builtin::WarpSize => "warpSize",
        };
        let rest = Span::new(span.end, span.end + 2).text(&self.text);
        let whole = span.text(&self.text) == name && matches!(rest, ".x" | ".y" | ".z");
        format!("{name}{}", if whole { rest } else { "" })
    }

    /// What an operator adds to its operands: nothing, unless it is a user's that looks at the number of the thread.
    pub(super) fn operator(&mut self, symbol: &str, operands: &[ExprId], span: Span) -> Value {
        match result_may_differ(self.places, symbol, operands) {
            true => self.varying(format!("`operator{symbol}` may look at the number of the thread"), span),
            false => Value::CONSTANT,
        }
    }

    /// `threadIdx.x / 32`: the warp's index, in blocks where warps don't wrap around rows.
    fn warp_index(&mut self, op: BinOp, a: ExprId, b: ExprId) -> Option<Value> {
        let body = self.body;
        let by = match &body.expr(body.strip_parens(b)).kind {
            ExprKind::Literal(Literal::Int(n)) => Some(*n),
            ExprKind::Name(Name::Builtin(Builtin::WarpSize)) => Some(32),
            _ => None,
        }?;
        let fits = matches!((op, by), (BinOp::Div, 32) | (BinOp::Shr, 5));
        let a = body.strip_parens(a);
        let ExprKind::Field { base, field, .. } = &body.expr(a).kind else {
            return None;
        };
        let thread = matches!(
            body.expr(body.strip_parens(*base)).kind,
            ExprKind::Name(Name::Builtin(Builtin::ThreadIdx))
        );
        // What a launch in sight contradicts isn't assumed.
        if !fits || !thread || field != "x" || wraps_warps(self.db, self.function) {
            return None;
        }
        let span = body.expr(a).span;
        let mut value = self.value(Level::Warp, "depends on threadIdx.x", span);
        value.assumes = self.causes.assume(Cause {
            text: "blocks are one-dimensional, or blockDim.x is a multiple of 32".to_owned(),
            span,
        })?;
        Some(value)
    }

    /// The value of a place before an assignment changes it.
    fn old(&mut self, block: BlockId, e: ExprId, place: ExprId) -> Value {
        let reads = self.reads(block, At::Expr(e));
        match reads.is_empty() {
            true => self.of(place),
            false => {
                let address = self.address(place);
                reads.into_iter().fold(address, Value::join)
            }
        }
    }

    fn local(&mut self, block: BlockId, step: usize, e: ExprId, b: BindingId) -> Value {
        let (declared, used) = (self.body.binding(b).span, self.body.expr(e).span);
        if self.vars.tracked(b) && !self.vars.captured(declared, used) {
            let reads = self.reads(block, At::Expr(e));
            // The name that an assignment writes isn't read.
            let value = reads.into_iter().fold(Value::CONSTANT, Value::join);
            return match self.hardly.get(&b).cloned() {
                Some(text) if value.level < Level::Varying => self.assuming(value, text, self.body.binding(b).span),
                _ => value,
            };
        }
        let binding = self.body.binding(b);
        let (name, span) = (binding.name.clone(), binding.span);
        let at = self.body.expr(e).span;
        match binding.storage {
            // An array by itself is its address, which is of no use for the other threads' elements.
            Storage::Shared | Storage::ExternShared if binding.ty.array.is_empty() => self.shared(block, step, b, at),
            _ if binding.ty.volatile => self.varying(format!("`{name}` is volatile"), span),
            Storage::Param if binding.ty.reference && binding.ty.const_base && self.body.params.contains(&b) => {
                self.const_reference(b, at)
            }
            _ if binding.ty.reference => self.varying(format!("`{name}` is a reference"), span),
            Storage::Static => self.varying(format!("`{name}` is a static variable"), span),
            _ => self.varying(
                format!("`{name}` may change through a pointer, a reference or a lambda"),
                span,
            ),
        }
    }

    /// The value, as long as `text` holds.
    fn assuming(&mut self, value: Value, text: String, span: Span) -> Value {
        match self.causes.assume(Cause { text, span }) {
            Some(bit) => Value {
                assumes: value.assumes | bit,
                ..value
            },
            None => self.varying("too many assumptions", span),
        }
    }

    /// A `const T&` parameter: the argument's value, as long as nothing here writes such memory.
    fn const_reference(&mut self, b: BindingId, at: Span) -> Value {
        let ty = &self.body.binding(b).ty;
        let templates = &self.function.signature(self.db).template_types;
        let class = self.places.class_of(&ty.base, u32::from(ty.pointers));
        let opaque = ty.pointers == 0 && self.places.class_kind(&ty.base, templates) == Class::Opaque;
        let name = self.body.binding(b).name.clone();
        let index = self.body.params.iter().position(|p| *p == b).unwrap_or(64);
        if opaque || index >= super::OBJECT || self.mode == Mode::Own {
            return self.varying(format!("`{name}` is a reference"), at);
        }
        let value = Value {
            params: 1 << index,
            ..Value::CONSTANT
        };
        let from = self.origins_of_binding(b);
        self.memory(value, class, &name, false, from, at)
    }

    /// A name that isn't local.
    fn other(&mut self, name: &str, e: ExprId) -> Value {
        if let Some(value) = self.names.get(name) {
            return *value;
        }
        let span = self.body.expr(e).span;
        let value = self.named(name, span, Value::CONSTANT, MemoryClass::Any);
        self.names.insert(name.to_owned(), value);
        value
    }

    /// A variable outside the function, or an element of it at `address`.
    fn named(&mut self, name: &str, span: Span, address: Value, class: MemoryClass) -> Value {
        let signature = self.function.signature(self.db);
        if signature.template_names.iter().any(|t| t == name) {
            return address;
        }
        // In a member function a plain name may be a field, whatever else has that name.
        if signature.member && self.places.some_field(name) {
            if self.mode == Mode::Parametric && self.trust == Trust::Assumed {
                self.sources.add(Origins::param(super::OBJECT as u32).field(name));
                return address.join(Value {
                    params: 1 << super::OBJECT,
                    ..Value::CONSTANT
                });
            }
            return self.varying(format!("{name} may be a field"), span);
        }
        match meaning_in(self.db, self.function, name) {
            Meaning::Enumerator(_) | Meaning::Functions(_) | Meaning::Type => address,
            Meaning::Global(g) if g.shared => self.varying(format!("{name} is in shared memory"), span),
            Meaning::Global(g) if g.constant && !g.managed && (!g.device || g.init.is_some()) => address,
            Meaning::Global(g) if g.constant_memory => {
                let value = self
                    .value(Level::Grid, format!("depends on {name}, in constant memory"), span)
                    .join(address);
                match is_constant_value(self.db, self.function.file(self.db), name) {
                    true => value,
                    false => self.memory(value, class, name, false, Origins::global(name), span),
                }
            }
            Meaning::Global(_) => {
                let value = self
                    .value(Level::Grid, format!("depends on the global {name}"), span)
                    .join(address);
                self.memory(value, class, name, false, Origins::global(name), span)
            }
            Meaning::Unknown if constant(name) => address,
            Meaning::Unknown
                if visible_names(self.db, self.function.file(self.db))
                    .constant_macros
                    .contains(name) =>
            {
                address
            }
            Meaning::Unknown if (signature.member || name.contains("::")) && self.places.static_constant(name) => {
                address
            }
            Meaning::Macro(_) | Meaning::Unknown => self.varying(format!("it isn't known what {name} is"), span),
        }
    }

    /// How the address of a place differs between threads, whatever is stored there.
    pub(super) fn address(&mut self, mut place: ExprId) -> Value {
        let body = self.body;
        let mut value = Value::CONSTANT;
        for _ in 0..256 {
            match &body.expr(place).kind {
                ExprKind::Paren(e)
                | ExprKind::Field {
                    base: e, arrow: false, ..
                } => place = *e,
                ExprKind::Field { base, .. } => return value.join(self.of(*base)),
                ExprKind::Deref(pointer) => return value.join(self.of(*pointer)),
                ExprKind::Index { base, index } => {
                    value = value.join(self.of(*index));
                    let inner = body.strip_parens(*base);
                    let named = matches!(&body.expr(inner).kind, ExprKind::Name(Name::Other(_)));
                    let shape = self.places.shape(inner);
                    let pointer = shape.as_ref().is_some_and(|s| s.dims == 0 && s.pointers > 0);
                    let local = matches!(self.places.root(place), Root::Object(_));
                    if pointer || !(local || named) {
                        return value.join(self.of(inner));
                    }
                    place = inner;
                }
                ExprKind::Name(Name::Local(b)) if body.binding(*b).ty.reference => {
                    let name = body.binding(*b).name.clone();
                    let span = body.expr(place).span;
                    return self.varying(format!("`{name}` is a reference"), span);
                }
                ExprKind::Name(_) => return value,
                _ => {
                    let span = body.expr(place).span;
                    return self.varying(format!("`{}` can't be followed", self.quote(span)), span);
                }
            }
        }
        self.varying("this expression is too deep", body.expr(place).span)
    }

    fn address_of(&mut self, inner: ExprId, span: Span) -> Value {
        match self.places.root(inner) {
            // What lies there belongs to the thread (or the block): equal addresses don't mean equal values.
            Root::Object(b) => {
                let name = self.body.binding(b).name.clone();
                self.varying(format!("address of {name}"), span)
            }
            Root::Global(_) | Root::Through(_) | Root::Other => self.address(inner),
        }
    }

    fn load(&mut self, block: BlockId, step: usize, e: ExprId) -> Value {
        let span = self.body.expr(e).span;
        let address = self.address(e);
        let class = self.places.class(e);
        match self.places.root(e) {
            Root::Object(b) => match self.body.binding(b).storage {
                Storage::Shared | Storage::ExternShared => {
                    let shared = self.shared(block, step, b, span);
                    shared.join(address)
                }
                _ => match self.base_value(e, b) {
                    Some(value) => value.join(address),
                    None => self.varying(format!("`{}` can't be followed", self.quote(span)), span),
                },
            },
            Root::Through(b) => {
                let binding = self.body.binding(b);
                let ty = &binding.ty;
                let name = binding.name.clone();
                let parameter = self.immutable.contains(&b);
                // An object that stands for a pointer.
                let object = ty.pointers == 0 && ty.array.is_empty();
                if ty.reference || ty.volatile || ty.complex || object && self.trust != Trust::Assumed {
                    return self.varying(format!("read from `{name}`"), span);
                }
                // In a kernel, for its whole run; in a function, other threads may have written before it is called.
                if parameter && self.kernel && ty.const_base && ty.restrict && ty.pointers == 1 {
                    let read = self.value(Level::Grid, format!("read from `{name}`"), span);
                    return address.join(read);
                }
                let read = self.value(Level::Grid, format!("read from `{name}`"), span);
                let from = self.origins(e);
                self.memory(address.join(read), class, &name, parameter && self.kernel, from, span)
            }
            Root::Global(name) => self.named(&name, span, address, class),
            Root::Other => {
                let name = self.quote(span);
                let read = self.value(Level::Grid, format!("loads `{name}`"), span);
                let from = self.origins(e);
                self.memory(address.join(read), class, &name, false, from, span)
            }
        }
    }

    /// The value of the variable that an element or field is taken from.
    fn base_value(&mut self, e: ExprId, b: BindingId) -> Option<Value> {
        let body = self.body;
        let mut at = e;
        for _ in 0..256 {
            match &body.expr(at).kind {
                ExprKind::Name(Name::Local(found)) => {
                    return (*found == b && self.vars.tracked(b)).then(|| self.of(at));
                }
                ExprKind::Paren(inner) | ExprKind::Index { base: inner, .. } => at = *inner,
                ExprKind::Field { base, arrow: false, .. } => at = *base,
                _ => return None,
            }
        }
        None
    }

    /// Where the memory that `e` denotes comes from, where that matters.
    fn origins(&self, e: ExprId) -> Origins {
        match self.trust {
            Trust::Assumed => origins(self.db, self.function, self.body, e),
            Trust::Proved | Trust::Settled => Origins::default(),
        }
    }

    fn origins_of_binding(&self, b: BindingId) -> Origins {
        let index = self.body.params.iter().position(|p| *p == b);
        match index {
            Some(i) => Origins::param(i as u32),
            None => Origins::anywhere(),
        }
    }

    /// A load from memory that is as uniform as `value` if nothing writes it meanwhile. `private`: it can't be shared memory.
    fn memory(
        &mut self,
        value: Value,
        class: MemoryClass,
        name: &str,
        private: bool,
        from: Origins,
        span: Span,
    ) -> Value {
        if self.volatile_cast {
            return self.varying(format!("read from `{name}`, which may be volatile"), span);
        }
        let clash = self
            .effects
            .writes
            .iter()
            .find(|w| w.class.may_alias(class) && !(private && w.shared))
            .map(|w| w.span);
        let mut apart = "";
        if let Some(write) = clash {
            if self.trust == Trust::Settled {
                return self.settled(value, name, span);
            }
            if self.trust == Trust::Proved || from.meets(&self.written) {
                return self.varying(format!("read from `{name}`, which may change here"), write);
            }
            apart = ", nor does what the other parameters lead to overlap with it";
        }
        match self.trust {
            Trust::Proved | Trust::Settled => drop(self.loads.insert(class)),
            Trust::Assumed => self.sources.add(from),
        }
        self.assuming(
            value,
            format!("nothing else writes `{name}` while the grid runs{apart}"),
            span,
        )
    }

    fn shared(&mut self, block: BlockId, step: usize, b: BindingId, span: Span) -> Value {
        let name = self.body.binding(b).name.clone();
        match self.shared.settled(block, step, b) {
            true => self.value(
                Level::Block,
                format!("read from the shared variable `{name}` after a barrier"),
                span,
            ),
            false => self.varying(
                format!("read from shared memory: another thread may write `{name}` meanwhile"),
                span,
            ),
        }
    }

    /// What is loaded from memory that the function writes, as long as no thread of the block does so meanwhile.
    fn settled(&mut self, value: Value, name: &str, span: Span) -> Value {
        let read = self.value(Level::Block, format!("read from `{name}`"), span);
        self.assuming(
            value.join(read),
            format!("all threads of a block find the same in `{name}`: none of them writes it before all have read it"),
            span,
        )
    }

    fn construct(&mut self, ty: &str, args: &[ExprId], span: Span) -> Value {
        let templates = &self.function.signature(self.db).template_types;
        let opaque = !ty.contains('*') && self.places.is_opaque(ty, templates);
        // A template parameter may stand for a class of which that is known.
        let template = self.classes && templates.iter().any(|t| t == ty);
        let unknown = (opaque || template || self.runs(ty)) && self.trust != Trust::Assumed;
        match ty.contains('&') || unknown || made_of_the_thread(self.places, ty) {
            true => self.varying(format!("constructs {ty}"), span),
            false => self.all(args),
        }
    }

    fn call(&mut self, block: BlockId, target: ExprId, name: Option<&str>, args: &[ExprId], span: Span) -> Value {
        let label = name.unwrap_or("a function").to_owned();
        match callee(self.db, self.function, self.body, target, name, args) {
            Callee::Type(ty) => self.construct(&ty, args, span),
            Callee::Unknown => match self.method(target, args, span) {
                Some(value) => value,
                None => self.varying(format!("result of {label}, of which nothing is known"), span),
            },
            Callee::Known(library) => self.library(library, &label, block, args, span),
            Callee::Functions(candidates, library) => {
                let mut value = Value::CONSTANT;
                for f in candidates {
                    value = value.join(self.result_of(f, &label, args, None, span));
                }
                if let Some(library) = library {
                    value = value.join(self.library(library, &label, block, args, span));
                }
                value
            }
        }
    }

    /// The result of a member function, by the standards of [`Trust::Assumed`].
    fn method(&mut self, target: ExprId, args: &[ExprId], span: Span) -> Option<Value> {
        if self.trust != Trust::Assumed {
            return None;
        }
        let body = self.body;
        let ExprKind::Field { base, field, arrow } = &body.expr(body.strip_parens(target)).kind else {
            return None;
        };
        let found = methods(self.db, self.places, target, args.len());
        if found.is_empty() {
            return None;
        }
        let base = *base;
        let mut object = self.of(base);
        if *arrow || !matches!(self.places.root(base), Root::Object(_)) {
            let address = if *arrow { object } else { self.address(base) };
            let read = self
                .value(Level::Grid, format!("result of {field}()"), span)
                .join(address);
            let from = self.origins(base);
            object = self.memory(
                read,
                MemoryClass::Any,
                &self.quote(body.expr(base).span),
                false,
                from,
                span,
            );
        }
        let label = format!("{field}()");
        let results: Vec<Value> = found
            .into_iter()
            .map(|f| self.result_of(f, &label, args, Some((base, object)), span))
            .collect();
        Some(results.into_iter().fold(Value::CONSTANT, Value::join))
    }

    /// The result of a call of `f`, for an object where it is a member function.
    fn result_of(
        &mut self,
        f: FunctionItem<'db>,
        label: &str,
        args: &[ExprId],
        object: Option<(ExprId, Value)>,
        span: Span,
    ) -> Value {
        let flow = match self.trust {
            Trust::Proved | Trust::Settled => super::result_flow(self.db, f),
            Trust::Assumed => super::assumed_result_flow(self.db, f),
        };
        let mut v = Value {
            level: flow.level,
            ..Value::CONSTANT
        };
        if let Some(cause) = &flow.why {
            v.cause = self.causes.add(Cause {
                text: format!("result of {label}: {cause}"),
                span,
            });
        }
        let mut value = v;
        for (i, arg) in flow
            .params
            .iter()
            .enumerate()
            .filter(|(_, flows)| **flows)
            .map(|(i, _)| (i, args.get(i)))
        {
            let v = match arg {
                Some(arg) => self.of(*arg),
                None if flow.constant_defaults.get(i) == Some(&true) => Value::CONSTANT,
                None => self.varying(format!("a default argument of {label}"), span),
            };
            value = value.join(v);
        }
        if flow.object {
            value = value.join(match object {
                Some((_, object)) => object,
                None => self.varying(format!("{label} reads its object"), span),
            });
        }
        for assumed in &flow.assumes {
            let text = format!("{assumed} ({label})");
            value = match self.causes.assume(Cause { text, span }) {
                Some(bit) => Value {
                    assumes: value.assumes | bit,
                    ..value
                },
                None => self.varying("too many assumptions", span),
            };
        }
        if self.trust == Trust::Assumed && flow.sources != Origins::default() {
            let mut from = Origins {
                params: Default::default(),
                ..flow.sources.clone()
            };
            for (i, field) in &flow.sources.params {
                let base = object.map(|(base, _)| base).filter(|_| *i as usize == super::OBJECT);
                if let Some(arg) = base.or_else(|| args.get(*i as usize).copied()) {
                    from.add(self.origins(arg).field(field));
                }
            }
            if from.meets(&self.written) {
                value = value.join(self.varying(format!("{label} loads memory that is written here"), span));
            }
            self.sources.add(from);
        }
        for class in &flow.loads {
            self.loads.insert(*class);
            let clash = self
                .effects
                .writes
                .iter()
                .find(|w| w.class.may_alias(*class))
                .map(|w| w.span);
            match clash {
                Some(_) if self.trust == Trust::Settled => {
                    value = self.settled(value, &format!("what {label} reads"), span);
                }
                Some(write) => {
                    value = value.join(self.varying(format!("{label} loads memory that may be written here"), write));
                }
                None => {}
            }
        }
        value
    }

    fn library(&mut self, library: Library, name: &str, block: BlockId, args: &[ExprId], span: Span) -> Value {
        let arg = |e: &Engine<'_, '_>, i: usize| args.get(i).map(|a| e.of(*a));
        match library.result {
            Outcome::Nothing => Value::CONSTANT,
            Outcome::Arguments => self.all(args),
            Outcome::ReadOnly => {
                // `*p` and `&x[i]` alike: as uniform as the address.
                let read = self.value(Level::Grid, format!("loaded with {name}"), span);
                self.all(args).join(read)
            }
            Outcome::Vote => match arg(self, 0).is_some_and(|mask| mask.within(Level::Warp)) {
                true => self.value(Level::Warp, format!("result of {name}"), span),
                false => self.varying(format!("result of {name} with a mask that may differ"), span),
            },
            Outcome::Active => {
                // Threads that a branch has parted need not come together again behind it, nor in a function that is called there.
                let parting = (0_u32..)
                    .zip(&self.branches)
                    .filter(|(_, branch)| !branch.within(Level::Warp));
                let apart = { parting }.any(|(from, _)| self.flow.leads(BlockId(from), block));
                let alone = self.kernel && direct(self.db, self.function).calls.is_empty() && !apart;
                let together = alone && self.divergence[block.index()].within(Level::Warp);
                let level = if together && self.mode == Mode::Own {
                    Level::Warp
                } else {
                    Level::Varying
                };
                self.value(level, format!("result of {name}"), span)
            }
            Outcome::Lane | Outcome::OtherLane => {
                let mask = arg(self, 0).is_some_and(|mask| mask.within(Level::Warp));
                let lane = arg(self, 2).is_some_and(|lane| lane.within(Level::Warp));
                let same = arg(self, 1).filter(|x| x.within(Level::Warp) && mask && args.len() <= 4 && args.len() >= 3);
                match same {
                    Some(value) => value,
                    None if library.result == Outcome::Lane && mask && lane && args.len() == 3 => {
                        self.value(Level::Warp, format!("result of {name}"), span)
                    }
                    None => self.varying(format!("result of {name}"), span),
                }
            }
            Outcome::Block => self.value(Level::Block, format!("result of {name}"), span),
            Outcome::Varying => self.varying(format!("result of {name}"), span),
        }
    }
}
