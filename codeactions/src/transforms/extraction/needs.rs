//! What an iteration needs of the thread that looped: the values that the launch hands over, and constants that are declared again.

use std::collections::BTreeMap;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::CountedLoop;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::escape::escapes;
use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::facts::referring::types_may_refer;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::reference_names::may_hold_a_reference;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr, all_stmts};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtKind, Storage};

use super::SerialLoop;
use crate::api::refusal::Refusals;
use crate::edit::lex;
use crate::edit::one_line::one_line;
use crate::facts::calls::is_plain_type;
use crate::facts::child::{Child, copies_plainly};
use crate::facts::pure::{assignments, holds_its_value, is_volatile};
use crate::facts::sizes::size_of;
use crate::facts::unlowered::named_unlowered;
use crate::transforms::continuation::addresses::{hold_addresses, may_be_private};
use crate::transforms::continuation::needs::{has_inner_const, lends_objects, made_of_fields_or_calls};

/// Bytes of arguments that every launch can have, less what the loop itself adds.
const MOST_ARGUMENTS: u64 = 4000;

/// What an iteration needs.
#[derive(Default)]
pub(super) struct Needs {
    /// Values that are handed over, in the order of their declarations: name and parameter.
    pub passed: Vec<(BindingId, String, String)>,
    /// Declarations of constants, to be written again.
    pub constants: Vec<(BindingId, String)>,
    /// The body declares something by the name of a value that it is handed.
    pub clashes: bool,
}

/// Finds out what the body of a loop needs; what can't be handed over is refused.
pub(super) fn collect<'db>(
    serial: &SerialLoop<'db>,
    head: &CountedLoop,
    kernel: &Child<'db>,
    refusals: &mut Refusals,
) -> Needs {
    let (db, function, body) = (serial.db, &serial.function, &*serial.function.body);
    let mut used: BTreeMap<BindingId, Span> = BTreeMap::new();
    let inner = body.stmt(head.body).span;
    for e in all_exprs(body, head.body) {
        let named = match &body.expr(e).kind {
            ExprKind::Name(Name::Local(binding)) => vec![*binding],
            ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.clone(),
            _ => continue,
        };
        for binding in named {
            used.entry(binding).or_insert(body.expr(e).span);
        }
    }
    let mut in_sizes: Vec<BindingId> = Vec::new();
    for stmt in all_stmts(body, head.body) {
        if let StmtKind::Decl(decls) = &body.stmt(stmt).kind {
            let sizes = decls
                .iter()
                .flat_map(|d| body.binding(d.binding).ty.array.iter().flatten());
            for part in sizes.flat_map(|size| all_in_expr(body, *size)) {
                if let ExprKind::Name(Name::Local(binding)) = body.expr(part).kind {
                    used.entry(binding).or_insert(body.expr(part).span);
                    in_sizes.push(binding);
                }
            }
        }
    }
    for (binding, span) in named_unlowered(db, function.item, inner) {
        used.entry(binding).or_insert(span);
        in_sizes.push(binding);
    }
    let declared_inside = |b: BindingId| {
        let span = body.binding(b).span;
        inner.contains(span) && !body.params.contains(&b)
    };
    used.retain(|b, _| *b != head.counter && !declared_inside(*b));
    let mut needs = Needs::default();
    let mut bytes = 0;
    // Where the compiler wants constants beside sizes.
    let words = lex::code_words(serial.source(inner));
    let wants_constants = words.iter().any(|word| {
        matches!(
            *word,
            "case" | "constexpr" | "static_assert" | "alignas" | "__align__" | "enum" | "template"
        )
    });
    if let Some(directive) = directive_in(serial.source(inner)) {
        refusals.add(
            format!("`{directive}` in the loop may name what another kernel doesn't have"),
            Some(serial.here()),
        );
    }
    for (binding, span) in &used {
        if let Some(declaration) = constant(serial, *binding) {
            needs.constants.push((*binding, declaration));
        } else if in_sizes.contains(binding) && !body.params.contains(binding)
            || wants_constants && is_constant(serial, *binding)
        {
            refusals.add(
                format!(
                    "`{}` has to be a constant here, and can't be declared again in another kernel",
                    body.binding(*binding).name
                ),
                Some(function.place(*span)),
            );
        } else if let Some(parameter) = parameter(serial, kernel, *binding, *span, refusals) {
            let variable = body.binding(*binding);
            if !is_plain_type(&variable.ty.base) && variable.ty.pointers == 0 {
                bytes += size_of(&variable.ty).map_or(MOST_ARGUMENTS / 4, |(size, _)| size);
            }
            needs.passed.push((*binding, variable.name.clone(), parameter));
        }
    }
    if bytes > MOST_ARGUMENTS {
        refusals.add(
            "the loop needs more bytes of values than a launch can hand over",
            Some(serial.here()),
        );
    }
    refuse_clashes(serial, &used, refusals);
    let order = |b: &BindingId| {
        (
            body.params.iter().position(|p| p == b).unwrap_or(usize::MAX),
            body.binding(*b).span.start,
        )
    };
    needs.passed.sort_by_key(|(binding, ..)| order(binding));
    let directly = match &body.stmt(head.body).kind {
        StmtKind::Block(stmts) => stmts.clone(),
        _ => Vec::new(),
    };
    // The bounds are handed over, too.
    let head_exprs = [head.first, head.limit].into_iter().flat_map(|e| all_in_expr(body, e));
    let of_head: Vec<BindingId> = head_exprs
        .filter_map(|e| match body.expr(e).kind {
            ExprKind::Name(Name::Local(binding)) => Some(binding),
            _ => None,
        })
        .collect();
    needs.clashes = directly.iter().any(|stmt| match &body.stmt(*stmt).kind {
        StmtKind::Decl(decls) => decls.iter().any(|d| {
            used.keys()
                .chain(&of_head)
                .any(|b| body.binding(*b).name == body.binding(d.binding).name)
        }),
        _ => false,
    });
    needs
}

/// A directive in the text of a loop, but for `#pragma unroll` with a number or nothing.
fn directive_in(text: &str) -> Option<&str> {
    let directives = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('#') || line.contains("_Pragma"));
    let mut named = directives.filter(|line| {
        let words: Vec<&str> = line.trim_start_matches('#').split_whitespace().collect();
        match words.as_slice() {
            ["pragma", "unroll" | "nounroll"] => false,
            ["pragma", "unroll", count] => !count.bytes().all(|b| b.is_ascii_digit()),
            _ => true,
        }
    });
    named.next()
}

/// The declaration of a constant that is made of literals alone: `const int k = 4;`
fn constant(serial: &SerialLoop<'_>, binding: BindingId) -> Option<String> {
    let body = &*serial.function.body;
    let (stmt, init) = body.declaration(binding)?;
    let StmtKind::Decl(decls) = &body.stmt(stmt).kind else {
        return None;
    };
    let literal = |e: ExprId| {
        matches!(
            body.expr(e).kind,
            ExprKind::Literal(_) | ExprKind::Paren(_) | ExprKind::Unary(..) | ExprKind::Binary(..)
        )
    };
    let plain = body.binding(binding).ty.is_value() && is_plain_type(&body.binding(binding).ty.base);
    let whole = decls.len() == 1 && all_in_expr(body, init?).into_iter().all(literal);
    (plain && whole && is_constant(serial, binding)).then(|| one_line(serial.source(body.stmt(stmt).span)))
}

/// A variable that may stand where the compiler wants a constant.
fn is_constant(serial: &SerialLoop<'_>, binding: BindingId) -> bool {
    let (function, body) = (&serial.function, &*serial.function.body);
    let Some((stmt, init)) = body.declaration(binding) else {
        return false;
    };
    let variable = body.binding(binding);
    let head = Span::new(
        body.stmt(stmt).span.start,
        variable.span.start.max(body.stmt(stmt).span.start),
    );
    let value = |init| constant_value(serial.db, function.item, body, init).is_some();
    lex::identifiers(serial.source(head)).any(|word| word == "constexpr")
        || variable.ty.const_base && variable.ty.pointers == 0 && init.is_some_and(value)
}

/// The parameter by which the child gets a value, unless that can't be handed over.
fn parameter(
    serial: &SerialLoop<'_>,
    kernel: &Child<'_>,
    binding: BindingId,
    used: Span,
    refusals: &mut Refusals,
) -> Option<String> {
    let (db, function, body) = (serial.db, &serial.function, &*serial.function.body);
    let variable = body.binding(binding);
    let (name, ty) = (&variable.name, &variable.ty);
    let mut refuse = |text: String| {
        refusals.add(text, Some(function.place(used)));
        None
    };
    let changed = assignments(db, function.item, body, binding);
    if let Some(e) = changed.iter().find(|e| serial.contains(**e)) {
        let adds = matches!(
            body.expr(*e).kind,
            ExprKind::Assign { op: Some(_), .. } | ExprKind::IncDec { .. }
        );
        return refuse(match adds {
            true => format!(
                "iterations collect a result in `{name}`, which a child grid can't hand back; collect it in memory by atomic operations"
            ),
            false => {
                format!("an iteration changes `{name}`, which is declared in front of the loop; declare it in the loop")
            }
        });
    }
    match variable.storage {
        Storage::Param if body.params.contains(&binding) => {}
        Storage::Local => {}
        Storage::Shared | Storage::ExternShared => {
            return refuse(format!(
                "an iteration uses shared memory (`{name}`), which another grid doesn't have"
            ));
        }
        Storage::Static | Storage::Param => return refuse(format!("`{name}` can't be handed to another kernel")),
    }
    if !ty.array.is_empty() && variable.storage == Storage::Local {
        return refuse(format!(
            "an iteration uses the local array `{name}`, which another grid doesn't have"
        ));
    }
    if ty.reference {
        return refuse(format!(
            "`{name}` is a reference, which can't be handed to another kernel; use what it refers to"
        ));
    }
    if ty.complex || is_volatile(db, function.item, variable) || ty.volatile {
        return refuse(format!("`{name}` can't be handed to another kernel"));
    }
    let of_template = function.item.signature(db).template_types.contains(&ty.base);
    if ty.is_value() && of_template && types_may_refer(db, function.file) {
        return refuse(format!(
            "`{name}` has the type `{}`, which may be a reference or hold one",
            ty.base
        ));
    }
    if ty.base == "auto" {
        return refuse(format!(
            "the type of `{name}` isn't written; write it instead of `auto`"
        ));
    }
    if !holds_its_value(db, function.item, body, binding) {
        return refuse(format!(
            "something else may change `{name}`, whose address or a reference to it goes elsewhere"
        ));
    }
    if copies_plainly(db, function.item, ty, 0).is_err() || has_inner_const(serial.source(variable.decl_span)) {
        return refuse(format!(
            "`{name}` can't be handed to another kernel: its type isn't known to be copied byte by byte"
        ));
    }
    if ["cudaStream_t", "cudaEvent_t"].contains(&unqualified(&ty.base)) {
        return refuse(format!("`{name}` can't be used in another grid"));
    }
    let position = body.params.iter().position(|p| *p == binding);
    if changed.is_empty()
        && let Some(position) = position
    {
        return Some(one_line(&kernel.params.get(position)?.decl));
    }
    if may_hold_a_reference(db, function.file, &ty.base) || hold_addresses(db, function.item, body).contains(&binding) {
        return refuse(format!(
            "`{name}` may hold the address of shared or local memory, which another kernel can't use"
        ));
    }
    let points = ty.pointers > 0 || !is_plain_type(&ty.base);
    if points && may_point_inside(serial, binding) {
        return refuse(format!(
            "`{name}` may point at shared or local memory, which another kernel can't use"
        ));
    }
    Some(format!("{} {name}", ty.spelled()))
}

/// Whether a pointer, or an object, may lead to memory that the thread or its block has for itself.
fn may_point_inside(serial: &SerialLoop<'_>, binding: BindingId) -> bool {
    let (db, function, body) = (serial.db, &serial.function, &*serial.function.body);
    let arrays = body.bindings.iter().any(|b| {
        !b.ty.array.is_empty() && b.storage != Storage::Param
            || matches!(b.storage, Storage::Shared | Storage::ExternShared)
    });
    let addresses = body.exprs.iter().any(|expr| match expr.kind {
        ExprKind::AddrOf(place) => may_be_private(body, place),
        _ => false,
    });
    arrays
        || addresses
        || escapes(db, function.item)
            .iter()
            .any(|escape| !escape.through_parameter)
        || !effects(db, function.item).shared.is_empty()
        || lends_objects(db, function.file, body)
        || made_of_fields_or_calls(db, function.file, body, binding)
}

/// Refuses names that mean something else in the child, where they are parameters from the beginning.
fn refuse_clashes(serial: &SerialLoop<'_>, used: &BTreeMap<BindingId, Span>, refusals: &mut Refusals) {
    let (function, body) = (&serial.function, &*serial.function.body);
    let in_sight = visible_names(serial.db, function.file);
    let mut seen: BTreeMap<&str, BindingId> = BTreeMap::new();
    for binding in used.keys() {
        let name = body.binding(*binding).name.as_str();
        let is_type = in_sight.types.contains(name) || in_sight.aliases.contains_key(name);
        let outer = |kind: &ExprKind| match kind {
            ExprKind::Name(Name::Other(n)) | ExprKind::Call { name: Some(n), .. } => n == name,
            _ => false,
        };
        let own = !body.params.contains(binding);
        if seen.insert(name, *binding).is_some() || own && (is_type || body.exprs.iter().any(|e| outer(&e.kind))) {
            refusals.add(
                format!("`{name}` is the name of several things in sight; give the variable another one"),
                Some(function.place(body.binding(*binding).span)),
            );
        }
    }
}
