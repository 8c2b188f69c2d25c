//! Expressions that may be evaluated twice, or at the top of a kernel instead of where they stand.

use std::collections::{HashMap, HashSet};

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::facts::effects::is_pure;
use gridfuse_analysis::facts::hidden::{Hidden, hidden, may_run_unseen};
use gridfuse_analysis::facts::uniformity::{Level, class_changes, runs_code_of_no_name, variables_of_place};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::reference_names::may_hold_a_reference;
use gridfuse_analysis::hir::resolve::{Meaning, functions_in, functions_named, meaning_in};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::{
    BinOp, Binding, BindingId, Body, Builtin, ExprId, ExprKind, Literal, Name, StmtKind, Storage, body,
};

use crate::edit::lex;
use crate::facts::calls;
use crate::facts::calls::is_plain_type;
use crate::facts::cluster::Function;
use crate::facts::cluster::is_batch;
use crate::facts::moved;
use crate::facts::moved::Spot;
use crate::facts::site::Site;
use crate::facts::unlowered::named_unlowered;
use crate::runtime::is_header;

/// The operands directly inside an expression that is made of understood parts; `None` for the others.
fn operands(body: &Body, expr: ExprId) -> Option<Vec<ExprId>> {
    Some(match &body.expr(expr).kind {
        ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::SizeOf => Vec::new(),
        ExprKind::Paren(e)
        | ExprKind::Unary(_, e)
        | ExprKind::Deref(e)
        | ExprKind::AddrOf(e)
        | ExprKind::Cast { operand: e, .. }
        | ExprKind::Field { base: e, .. } => vec![*e],
        ExprKind::Binary(_, a, b)
        | ExprKind::Comma(a, b)
        | ExprKind::Logical { lhs: a, rhs: b, .. }
        | ExprKind::Index { base: a, index: b } => vec![*a, *b],
        ExprKind::Conditional { cond, then, otherwise } => vec![*cond, *then, *otherwise],
        ExprKind::Call { args, .. } | ExprKind::Construct { args, .. } | ExprKind::InitList(args) => args.clone(),
        _ => return None,
    })
}

/// Why an expression can't be evaluated a second time: the part that has a side effect or isn't understood.
pub fn not_repeatable(site: &Site<'_>, expr: ExprId) -> Option<ExprId> {
    let body = &site.body;
    let span = body.expr(expr).span;
    let runs = |h: &Hidden| h.span == span || h.anywhere && is_object(site, expr);
    if hidden(site.db, site.parent).iter().any(runs) {
        return Some(expr);
    }
    match &body.expr(expr).kind {
        ExprKind::Call { callee, args, .. } if args.is_empty() && counts_elements(site, *callee) => return None,
        ExprKind::Call { name, .. } if !name.as_deref().is_some_and(|name| calls_pure(site, name)) => {
            return Some(expr);
        }
        ExprKind::Construct { ty, .. } if !is_plain_type(ty) => return Some(expr),
        // A field of an object is read without running anything for the object.
        ExprKind::Field {
            base,
            field,
            arrow: false,
        } if matches!(&body.expr(*base).kind, ExprKind::Name(Name::Local(b)) if !body.binding(*b).ty.volatile)
            && !is_field_of_object(site, field) =>
        {
            return None;
        }
        ExprKind::Name(Name::Local(binding)) if body.binding(*binding).ty.volatile => return Some(expr),
        // Each use is another number.
        ExprKind::Name(Name::Other(name)) if name == COUNTER => return Some(expr),
        _ => {}
    }
    match operands(body, expr) {
        Some(inner) => inner.into_iter().find_map(|e| not_repeatable(site, e)),
        None => Some(expr),
    }
}

/// `list.size` of a variable that is one of the standard library's containers, which tells how many elements there are.
fn counts_elements(site: &Site<'_>, callee: ExprId) -> bool {
    let body = &site.body;
    let ExprKind::Field {
        base,
        field,
        arrow: false,
    } = &body.expr(body.strip_parens(callee)).kind
    else {
        return false;
    };
    let ExprKind::Name(Name::Local(binding)) = body.expr(*base).kind else {
        return false;
    };
    let ty = &body.binding(binding).ty;
    let class = ty.base.trim().trim_start_matches("const ").trim_start_matches("::");
    let of_library = class.strip_prefix("std::").unwrap_or("");
    let name = of_library.split('<').next().unwrap_or("").trim_end();
    matches!(&**field, "size" | "length")
        && ty.pointers == 0
        && !ty.volatile
        && matches!(name, "vector" | "array" | "string" | "deque" | "span" | "string_view")
        && !included_files(site.db, site.file)
            .iter()
            .any(|file| *has_its_own_std(site.db, *file))
}

/// Whether a file declares something in `std`, or by that name.
#[salsa::tracked]
fn has_its_own_std(db: &dyn Db, file: SourceFile) -> bool {
    let text = file.text(db);
    let tokens = lex::code_tokens_of(db, file);
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text(&text));
    (0..tokens.len()).filter(|index| word(*index) == "std").any(|index| {
        let before = |by: usize| index.checked_sub(by).map_or("", word);
        let declared = match before(1) {
            "namespace" => before(2) != "using",
            "struct" | "class" | "union" | "enum" | "typename" => true,
            _ => false,
        };
        declared || word(index + 1) == "="
    })
}

/// The compiler counts the uses of this macro.
const COUNTER: &str = "__COUNTER__";

/// Whether what is called by this name computes from its arguments and from memory, and changes nothing.
fn calls_pure(site: &Site<'_>, name: &str) -> bool {
    if hides(site.db, site.parent, name) {
        return false;
    }
    if calls::is_pure(site.db, site.parent, name) {
        return true;
    }
    // A name that the user has for a function may be a member's in the runtime header.
    let of_runtime = |file: SourceFile| is_header(site.db, file);
    let bodies: Vec<_> = functions_named(site.db, site.file, name)
        .into_iter()
        .filter(|f| f.has_body(site.db) && (name.contains("gridfuse::") || !of_runtime(f.file(site.db))))
        .collect();
    !bodies.is_empty() && bodies.iter().all(|f| is_pure(site.db, *f))
}

/// Why evaluating an expression can't be left out: the part that may change something or wait for somebody, or isn't understood.
pub fn not_skippable(site: &Site<'_>, expr: ExprId) -> Option<ExprId> {
    let body = &site.body;
    match &body.expr(expr).kind {
        ExprKind::Lambda { .. } => return None,
        ExprKind::Paren(_) | ExprKind::Unary(..) | ExprKind::Binary(..) | ExprKind::Cast { .. } => {}
        ExprKind::Conditional { .. } | ExprKind::Logical { .. } | ExprKind::InitList(_) => {}
        ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::AddrOf(_) | ExprKind::Comma(..) => {}
        ExprKind::Field { base, field, .. }
            if !matches!(body.expr(*base).kind, ExprKind::Name(_)) && !is_field_of_object(site, field) => {}
        ExprKind::Construct { ty, .. } if !may_run_unseen(site.db, site.parent, ty) => {}
        ExprKind::Call { name: Some(name), .. } if calls::only_loads(name) || calls_pure(site, name) => {}
        // A value is read, or the address of one is taken.
        ExprKind::Name(_) if !is_object(site, expr) => return None,
        _ => return not_repeatable(site, expr),
    }
    let span = body.expr(expr).span;
    if hidden(site.db, site.parent).iter().any(|h| h.span == span) {
        return Some(expr);
    }
    let inner = operands(body, expr).unwrap_or_default();
    inner.into_iter().find_map(|e| not_skippable(site, e))
}

/// A variable of a class that may run something when it is used.
fn is_object(site: &Site<'_>, expr: ExprId) -> bool {
    match &site.body.expr(expr).kind {
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &site.body.binding(*binding).ty;
            ty.pointers == 0 && may_run_unseen(site.db, site.parent, &ty.base)
        }
        ExprKind::Name(Name::Other(name)) => match meaning_in(site.db, site.parent, name) {
            Meaning::Global(global) => !global.pointer && may_run_unseen(site.db, site.parent, &global.base),
            _ => false,
        },
        _ => false,
    }
}

/// A field that may be an object of such a class.
fn is_field_of_object(site: &Site<'_>, field: &str) -> bool {
    let files = included_files(site.db, site.file).iter();
    let fields = files.flat_map(|file| items(site.db, *file).types.iter().flat_map(|class| &class.fields));
    let mut named = fields.filter(|(_, declarator)| lex::identifiers(declarator).next() == Some(field));
    named.any(|(ty, _)| may_run_unseen(site.db, site.parent, ty))
}

/// Whether evaluating `expr` changes a variable.
pub fn assigns(body: &Body, expr: ExprId) -> bool {
    match &body.expr(expr).kind {
        ExprKind::Assign { .. } | ExprKind::IncDec { .. } => true,
        ExprKind::Call { callee, args, .. } => assigns(body, *callee) || args.iter().any(|a| assigns(body, *a)),
        ExprKind::New(parts) | ExprKind::Unknown { parts, .. } => parts.iter().any(|p| assigns(body, *p)),
        ExprKind::Delete(_) | ExprKind::Lambda { .. } | ExprKind::Launch(_) => true,
        _ => operands(body, expr)
            .unwrap_or_default()
            .into_iter()
            .any(|e| assigns(body, e)),
    }
}

/// Whether an expression is made of variables, literals and operators alone, so that nothing happens when it isn't evaluated.
pub fn is_plain_condition(body: &Body, expr: ExprId) -> bool {
    match &body.expr(expr).kind {
        ExprKind::Call { .. } | ExprKind::Construct { .. } | ExprKind::InitList(_) => false,
        _ => operands(body, expr).is_some_and(|all| all.into_iter().all(|e| is_plain_condition(body, e))),
    }
}

/// Whether an expression holds a part that isn't understood.
pub fn unknown_part(body: &Body, expr: ExprId) -> Option<ExprId> {
    match &body.expr(expr).kind {
        ExprKind::Unknown { .. } | ExprKind::Lambda { .. } | ExprKind::InitList(_) | ExprKind::Launch(_) => Some(expr),
        ExprKind::Assign { place, value, .. } => unknown_part(body, *place).or_else(|| unknown_part(body, *value)),
        ExprKind::IncDec { place, .. } => unknown_part(body, *place),
        ExprKind::Call { callee, args, .. } => {
            let named = matches!(body.expr(*callee).kind, ExprKind::Name(_) | ExprKind::Field { .. });
            let args = || args.iter().find_map(|a| unknown_part(body, *a));
            if named { args() } else { Some(expr) }
        }
        _ => operands(body, expr)
            .unwrap_or_default()
            .into_iter()
            .find_map(|e| unknown_part(body, e)),
    }
}

/// Whether a parameter keeps the value that the function was called with: nothing writes it or takes its address or binds a
/// reference to it. `body` is the function's.
pub fn is_immutable_parameter(db: &dyn Db, function: FunctionItem<'_>, body: &Body, binding: BindingId) -> bool {
    body.params.contains(&binding) && keeps_first_value(db, function, body, binding)
}

/// Whether a variable keeps the value that it is declared with.
pub fn keeps_first_value(db: &dyn Db, function: FunctionItem<'_>, body: &Body, binding: BindingId) -> bool {
    only_assigned(db, function, body, binding) && assignments(db, function, body, binding).is_empty()
}

/// The assignments to a variable, to all of it or to a part. `body` is the function's, here and below.
pub fn assignments<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    binding: BindingId,
) -> &'db [ExprId] {
    debug_assert!(std::ptr::eq(body, &*gridfuse_analysis::hir::body(db, function)));
    let all = changes(db, function).assigned.get(&binding);
    all.map(Vec::as_slice).unwrap_or_default()
}

/// Whether nothing but assignments, which can be seen, changes a variable behind its declaration.
pub fn only_assigned(db: &dyn Db, function: FunctionItem<'_>, body: &Body, binding: BindingId) -> bool {
    debug_assert!(std::ptr::eq(body, &*gridfuse_analysis::hir::body(db, function)));
    !body.binding(binding).ty.volatile && holds_its_value(db, function, body, binding)
}

/// The same of a variable that may be a pointer to what is `volatile`: that one stays what it is, while what it points at may change.
pub fn holds_its_value(db: &dyn Db, function: FunctionItem<'_>, body: &Body, binding: BindingId) -> bool {
    !changes(db, function).called.contains(&binding) && holds_its_value_but_for_members(db, function, body, binding)
}

/// Whether a variable keeps the value that it is declared with, if the member functions do that are called of it.
pub fn keeps_first_value_but_for_members(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    binding: BindingId,
) -> bool {
    !body.binding(binding).ty.volatile
        && holds_its_value_but_for_members(db, function, body, binding)
        && assignments(db, function, body, binding).is_empty()
}

fn holds_its_value_but_for_members(db: &dyn Db, function: FunctionItem<'_>, body: &Body, binding: BindingId) -> bool {
    let variable = body.binding(binding);
    matches!(variable.storage, Storage::Param | Storage::Local)
        && !variable.ty.reference
        && !variable.ty.complex
        && !is_volatile(db, function, variable)
        && !variable.name.is_empty()
        && !class_changes(db, function).contains(&binding)
        && !changes(db, function).otherwise.contains(&binding)
}

/// Whether a variable is `volatile` itself, and not only what it points at: `volatile int* p` is not.
pub fn is_volatile(db: &dyn Db, function: FunctionItem<'_>, variable: &Binding) -> bool {
    let ty = &variable.ty;
    let text = function.file(db).text(db);
    let declaration = variable.decl_span.shift(function.start(db)).text(&text);
    let volatile = |code: &str| lex::identifiers(code).filter(|word| *word == "volatile").count();
    ty.volatile && (ty.pointers == 0 || volatile(&ty.text) != 1 || volatile(declaration) != 1)
}

/// What a function's body does to its variables behind their declarations. Rewrites ask of every parameter and of every variable in turn:
/// all are found out at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
struct Changes {
    /// The assignments to each, in order.
    assigned: HashMap<BindingId, Vec<ExprId>>,
    /// Those that something else may change: a pointer or a reference to them, or what isn't understood.
    otherwise: HashSet<BindingId>,
    /// Those of which member functions are called, which may change their object.
    called: HashSet<BindingId>,
}

#[salsa::tracked]
fn changes<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Changes {
    let body = &*body(db, function);
    let mut found = Changes::default();
    let roots = |place: ExprId| variables_of_place(db, function, body, place);
    // What a kernel that an earlier rewrite has made does in the lambda that it passes to for_each_block is seen.
    let first = body.params.first().map(|p| &body.binding(*p).ty.base);
    let in_batch = first.is_some_and(|base| is_batch(base));
    for (index, expr) in body.exprs.iter().enumerate() {
        match &expr.kind {
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                for binding in roots(*place) {
                    let all = found.assigned.entry(binding).or_default();
                    if all.last() != Some(&ExprId(index as u32)) {
                        all.push(ExprId(index as u32));
                    }
                }
            }
            ExprKind::AddrOf(place) => found.otherwise.extend(roots(*place)),
            // A function may take its argument by reference. The library's tell.
            ExprKind::Call { name, args, callee, .. } => {
                if let ExprKind::Field { base, arrow: false, .. } = &body.expr(body.strip_parens(*callee)).kind {
                    let changed = roots(*base).into_iter();
                    found.called.extend(changed.filter(|b| !body.binding(*b).ty.const_base));
                }
                let name = name.as_deref();
                let mut harmless: Option<bool> = None;
                for (position, arg) in args.iter().enumerate() {
                    let mut passed = roots(*arg);
                    passed.retain(|b| {
                        let ty = &body.binding(*b).ty;
                        !(ty.const_base && ty.is_value())
                    });
                    if passed.is_empty() {
                        continue;
                    }
                    let kept = || name.is_some_and(|name| calls::keeps_arguments(db, function, name));
                    if *harmless.get_or_insert_with(kept) {
                        break;
                    }
                    if !name.is_some_and(|name| takes_by_value(db, function, name, position)) {
                        found.otherwise.extend(passed);
                    }
                }
            }
            ExprKind::Construct { ty, args } if !is_plain_type(ty) => {
                found.otherwise.extend(args.iter().flat_map(|arg| roots(*arg)));
            }
            ExprKind::Lambda { body: Some(_), .. } if in_batch => {}
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => found.otherwise.extend(mentions),
            _ => {}
        }
    }
    for stmt in &body.stmts {
        match &stmt.kind {
            StmtKind::Decl(decls) => {
                let bound = decls.iter().filter(|d| {
                    let ty = &body.binding(d.binding).ty;
                    ty.reference || ty.complex
                });
                found.otherwise.extend(bound.filter_map(|d| d.init).flat_map(roots));
            }
            StmtKind::RangeFor { range, .. } => found.otherwise.extend(roots(*range)),
            StmtKind::Unknown { mentions, .. } | StmtKind::Asm { mentions, .. } => found.otherwise.extend(mentions),
            _ => {}
        }
    }
    found
}

/// Every function that `name` may mean has its parameter `index` by value.
pub fn takes_by_value(db: &dyn Db, function: FunctionItem<'_>, name: &str, index: usize) -> bool {
    let functions = functions_in(db, function, name);
    !functions.is_empty()
        && functions.iter().all(|f| {
            let body = body(db, *f);
            body.params.get(index).is_some_and(|p| {
                let ty = &body.binding(*p).ty;
                !ty.reference && !ty.complex
            })
        })
}

/// A function in which an expression is to be evaluated first of all, and what is known there.
pub struct Top<'a, 'db> {
    /// The function.
    pub function: &'a Function<'db>,
    /// What is the same for all threads at this level may be used.
    pub level: Level,
    /// The built-in variables mean what they mean in the body.
    pub builtins: bool,
    /// Whether the parameter with this index is there.
    pub has: &'a dyn Fn(usize) -> bool,
}

impl Top<'_, '_> {
    /// Whether an expression can be evaluated as the first thing in the kernel, with the same value and no effect: it is made
    /// of parameters that don't change, literals, constants and the built-in variables that are the same for a whole block, or
    /// for a whole grid, as the level says.
    pub fn holds(&self, expr: ExprId) -> bool {
        let function = self.function;
        let Function { db, item, body, .. } = function;
        let there = |binding: BindingId| body.params.iter().position(|p| *p == binding).is_some_and(self.has);
        let unlowered = || named_unlowered(*db, *item, body.expr(expr).span);
        self.is_made_of_known(expr)
            && !runs_code_of_no_name(*db, *item, expr)
            && unlowered().into_iter().all(|(binding, _)| there(binding))
            && moved::another_meaning(function, expr, Spot::top(function)).is_none()
    }

    /// A field of this object may be a reference: what it leads to may change though the object stays as it is.
    fn may_be_of_others(&self, object: ExprId) -> bool {
        let Function { db, item, body, .. } = self.function;
        let base = match &body.expr(body.strip_parens(object)).kind {
            ExprKind::Field { base, arrow: false, .. } => return self.may_be_of_others(*base),
            ExprKind::Name(Name::Local(binding)) => body.binding(*binding).ty.base.clone(),
            ExprKind::Name(Name::Other(name)) => match meaning_in(*db, *item, name) {
                Meaning::Global(global) => global.base,
                _ => return true,
            },
            ExprKind::Name(Name::Builtin(_)) => return false,
            _ => return true,
        };
        may_hold_a_reference(*db, item.file(*db), &base)
    }

    fn is_made_of_known(&self, expr: ExprId) -> bool {
        let Function { db, body, .. } = self.function;
        let all = |inner: &[ExprId]| inner.iter().all(|e| self.is_made_of_known(*e));
        match &body.expr(expr).kind {
            ExprKind::Literal(Literal::Str) => false,
            ExprKind::Literal(_) | ExprKind::SizeOf => true,
            ExprKind::Name(Name::Local(binding)) => {
                let index = body.params.iter().position(|p| p == binding);
                index.is_some_and(|i| (self.has)(i)) && is_immutable_parameter(*db, self.function.item, body, *binding)
            }
            ExprKind::Name(Name::Builtin(builtin)) => match builtin {
                Builtin::ThreadIdx => false,
                Builtin::BlockIdx => self.builtins && self.level > Level::Grid,
                Builtin::WarpSize => true,
                _ => self.builtins,
            },
            ExprKind::Name(Name::Other(name)) => match meaning_in(*db, self.function.item, name) {
                Meaning::Enumerator(_) => true,
                Meaning::Global(global) => (global.constant && !global.shared) || global.constant_memory,
                Meaning::Unknown => self.function.item.signature(*db).template_names.contains(name),
                _ => false,
            },
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => self.is_made_of_known(*e),
            ExprKind::Field { base, arrow: false, .. } => self.is_made_of_known(*base) && !self.may_be_of_others(*base),
            // Where the launch isn't reached, the division isn't either.
            ExprKind::Binary(BinOp::Div | BinOp::Rem, a, b) => {
                self.is_made_of_known(*a)
                    && matches!(&body.expr(body.strip_parens(*b)).kind, ExprKind::Literal(Literal::Int(n)) if *n > 0)
            }
            ExprKind::Binary(_, a, b) => all(&[*a, *b]),
            ExprKind::Logical { lhs, rhs, .. } => all(&[*lhs, *rhs]),
            ExprKind::Conditional { cond, then, otherwise } => all(&[*cond, *then, *otherwise]),
            ExprKind::Cast {
                ty,
                operand,
                reinterpret,
            } => (!reinterpret && is_plain_type(ty)) && self.is_made_of_known(*operand),
            _ => false,
        }
    }
}

/// Whether an expression is the name of a constant of the host, which has no address in device code: it may be read there, and
/// not bound to a reference.
pub fn names_host_constant(function: &Function<'_>, expr: ExprId) -> bool {
    match &function.body.expr(expr).kind {
        ExprKind::Paren(e) => names_host_constant(function, *e),
        ExprKind::Conditional { then, otherwise, .. } => {
            names_host_constant(function, *then) || names_host_constant(function, *otherwise)
        }
        ExprKind::Name(Name::Other(name)) => {
            matches!(meaning_in(function.db, function.item, name), Meaning::Global(g) if !g.constant_memory && !g.device)
        }
        _ => false,
    }
}
