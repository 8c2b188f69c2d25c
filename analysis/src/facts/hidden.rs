//! Code that runs without being called by its name: operators, and what classes run when their objects are made, copied, converted and
//! destroyed.
//!
//! Most of it does nothing but compute a value (`a + b` of complex numbers), and then nobody needs to know of it. What does more is
//! found by how it is used, and counts as something of which nothing is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::db::{Db, SourceFile};
use crate::base::preprocess::MacroState;
use crate::base::scan::without_comments;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::bindings::binds_by_get;
use crate::facts::functors::called_operators;
use crate::facts::plain_operands::{Types, fields_of};
use crate::facts::uniformity::memory::Places;
use crate::hir::declarator::declared_name;
use crate::hir::declarator::is_array;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::library::known;
use crate::hir::macros::function_macros;
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, functions_in, functions_named, meaning_in};
use crate::hir::word::Word;
use crate::hir::{BinOp, Body, ExprId, ExprKind, Name, StmtKind, Storage, UnOp, body, parameters};

/// Something that a function may run though it doesn't call it by name, and that does more than compute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Hidden {
    /// What it is: `operator<<`, `~Buffer`, `a constructor of Buffer`.
    pub what: String,
    /// What runs it; the function from its name on where it may run anywhere in it.
    pub span: Span,
    /// It isn't known where in the function it runs.
    pub anywhere: bool,
}

/// What does more than compute, of what a file and the files that it includes define.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
struct Harmful {
    /// Operators as they are written, with their names. `""` for one of which it isn't known which it is.
    operators: BTreeMap<String, String>,
    /// Classes, and names of types that hold or stand for one, with what runs.
    classes: BTreeMap<String, String>,
    /// Those of them of which device code may run something.
    on_device: BTreeMap<String, String>,
    /// Variables of the files whose types have to do with such classes, as (name, type).
    objects: BTreeMap<String, String>,
}

impl Harmful {
    fn operator(&self, symbol: &str) -> Option<&String> {
        self.operators.get(symbol).or_else(|| self.operators.get(""))
    }

    /// Classes that a function may have to do with: what is the host's alone no function runs that is the device's alone.
    fn classes_for(&self, db: &dyn Db, function: FunctionItem<'_>) -> &BTreeMap<String, String> {
        match runs_on_device_alone(db, function) {
            true => &self.on_device,
            false => &self.classes,
        }
    }
}

/// Whether no code of the host runs a function, as far as its head says.
fn runs_on_device_alone(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let signature = function.signature(db);
    (signature.kernel || signature.device && !signature.host) && signature.uncertain.is_none()
}

/// What a function may run without calling it, callees not included.
#[salsa::tracked(returns(clone))]
pub fn hidden<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Vec<Hidden>> {
    let harmful = harmful(db, function.file(db));
    let body = &*body(db, function);
    let types = Types::of(db, function, body);
    let mut found = Vec::new();
    for stmt in &body.stmts {
        if let StmtKind::RangeFor { range, .. } = &stmt.kind
            && !types.is_plain(*range, 0)
        {
            found.push(Hidden {
                what: "what a range-based `for` calls".to_owned(),
                span: stmt.span,
                anywhere: false,
            });
        }
    }
    if binds_by_get(db, function) {
        found.push(Hidden {
            what: "what a structured binding calls".to_owned(),
            span: Span::new(function.signature(db).name_span.start, function.text(db).len() as u32),
            anywhere: true,
        });
    }
    let classes = harmful.classes_for(db, function);
    if harmful.operators.is_empty() && classes.is_empty() {
        return Arc::new(found);
    }
    for (symbol, span) in operators_used(db, function, body) {
        if let Some(name) = harmful.operator(symbol) {
            found.push(Hidden {
                what: name.clone(),
                span,
                anywhere: false,
            });
        }
    }
    if let Some(what) = touches(db, function, body, classes, &harmful.objects) {
        found.push(Hidden {
            what,
            span: Span::new(function.signature(db).name_span.start, function.text(db).len() as u32),
            anywhere: true,
        });
    }
    Arc::new(found)
}

/// Whether an object of this type, a variable's of a function, may be one that runs something unseen.
pub fn may_run_unseen(db: &dyn Db, function: FunctionItem<'_>, base: &str) -> bool {
    let harmful = harmful(db, function.file(db));
    let (templates, classes) = (
        &function.signature(db).template_types,
        harmful.classes_for(db, function),
    );
    let may = |word: &str| word == "auto" || classes.contains_key(word) || templates.iter().any(|t| t == word);
    !classes.is_empty() && words(base).any(may)
}

#[salsa::tracked(returns(clone))]
fn harmful(db: &dyn Db, file: SourceFile) -> Arc<Harmful> {
    let files = included_files(db, file);
    // What the runtime header's classes do is known where it matters.
    let own = files
        .iter()
        .filter(|f| f.path(db).file_name().is_none_or(|n| n != "gridfuse.cuh"));
    let own: Vec<SourceFile> = own.copied().collect();
    let mut found = Harmful {
        classes: classes(db, &own, false),
        on_device: classes(db, &own, true),
        ..Harmful::default()
    };
    for global in own.iter().flat_map(|f| &items(db, *f).globals) {
        if words(&global.base).any(|word| found.classes.contains_key(word)) {
            let types = found.objects.entry(global.name.clone()).or_default();
            types.push_str(&format!("{} ", global.base));
        }
    }
    if own
        .iter()
        .any(|f| items(db, *f).blanked.words.contains(&Word::new("operator")))
    {
        found
            .operators
            .insert(String::new(), "an operator that isn't parsed".to_owned());
    }
    let mut harmless: Vec<(FunctionItem<'_>, String)> = Vec::new();
    for function in own.iter().flat_map(|f| &items(db, *f).functions) {
        let Some(symbol) = symbol_of(db, *function) else {
            continue;
        };
        if !function.has_body(db)
            && functions_named(db, file, function.name(db))
                .iter()
                .any(|f| f.has_body(db))
        {
            continue;
        }
        let name = unqualified(function.name(db)).to_owned();
        if only_computes(db, *function, &symbol, 0) {
            harmless.push((*function, symbol));
        } else {
            found.operators.insert(symbol, name);
        }
    }
    // What uses something harmful isn't harmless.
    loop {
        let before = harmless.len();
        harmless.retain(|(function, symbol)| {
            let body = &*body(db, *function);
            let used = operators_used(db, *function, body);
            let harms = used.iter().any(|(used, _)| found.operator(used).is_some())
                || touches(db, *function, body, &found.classes, &found.objects).is_some();
            if harms {
                found
                    .operators
                    .insert(symbol.clone(), unqualified(function.name(db)).to_owned());
            }
            !harms
        });
        if harmless.len() == before {
            break;
        }
    }
    Arc::new(found)
}

/// Classes whose objects run something, and names of types that hold such objects or stand for them. `on_device`: something that isn't the
/// host's alone.
fn classes(db: &dyn Db, files: &[SourceFile], on_device: bool) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let all = || files.iter().map(|file| items(db, *file));
    for name in all().flat_map(|items| &items.blanked.classes) {
        found.insert(name.clone(), format!("a member of {name} that isn't parsed"));
    }
    for class in all().flat_map(|items| &items.types) {
        if let Some(what) = class.hidden.filter(|_| !on_device || !class.hidden_from_device) {
            found.insert(class.name.clone(), format!("{what} of {}", class.name));
        }
    }
    loop {
        let before = found.len();
        let mut named = |name: &str, text: &str| {
            let what = words(text).find_map(|word| found.get(word)).cloned();
            if let Some(what) = what.filter(|_| !found.contains_key(name)) {
                found.insert(name.to_owned(), what);
            }
        };
        for items in all() {
            for class in &items.types {
                named(&class.name, &class.bases);
                // A pointer runs nothing.
                let fields = class.fields.iter().filter(|(_, declarator)| !declarator.contains('*'));
                fields.for_each(|(ty, _)| named(&class.name, ty));
            }
            for (name, stands_for) in &items.aliases {
                named(name, stands_for);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// What a function may run because of the classes that it has to do with: by their names, or by those of the file's variables that are
/// `objects` of them.
fn touches(
    db: &dyn Db,
    function: FunctionItem<'_>,
    body: &Body,
    classes: &BTreeMap<String, String>,
    objects: &BTreeMap<String, String>,
) -> Option<String> {
    if classes.is_empty() {
        return None;
    }
    let of_text = |text: &str| words(text).find_map(|word| classes.get(word)).cloned();
    // A member has to do with its own class, which runs nothing because of that.
    let own = class_of(db, function);
    let inside = function.text(db);
    // An object may be declared by a macro: `SCOPED_CHECK(out, v);`.
    let states = function_macros(db, function).states.values().flatten();
    let by_macros = states.filter_map(|(_, state)| match state {
        MacroState::Defined(item) => Some(&*item.body),
        _ => None,
    });
    let hides = |word: &str| {
        let own = body.bindings.iter().any(|binding| binding.name == word);
        own && !body
            .exprs
            .iter()
            .any(|e| matches!(&e.kind, ExprKind::Name(Name::Other(name)) if unqualified(name) == word))
    };
    let of_object = |word: &str| objects.get(word).filter(|_| !hides(word)).and_then(|ty| of_text(ty));
    let found = words(&inside)
        .chain(by_macros.flat_map(words))
        .filter(|word| *word != own)
        .find_map(|word| classes.get(word).cloned().or_else(|| of_object(word)));
    if found.is_some() {
        return found;
    }
    let template = !function.signature(db).template_types.is_empty();
    if template {
        return classes.values().next().cloned();
    }
    // What it passes may be converted, what it gets may have to be destroyed.
    let called = body.exprs.iter().filter_map(|expr| match &expr.kind {
        ExprKind::Call { name: Some(name), .. } => Some(name),
        _ => None,
    });
    let called: BTreeSet<&String> = called.collect();
    let mut heads = called.into_iter().flat_map(|name| functions_in(db, function, name));
    heads.find_map(|callee| {
        let signature = callee.signature(db);
        let text = callee.text(db);
        of_text(text.get(..signature.params_span.end as usize).unwrap_or(&text))
    })
}

/// The symbol of a function that is an operator: `<<`, `[]`; empty where it isn't understood.
pub(crate) fn symbol_of(db: &dyn Db, function: FunctionItem<'_>) -> Option<String> {
    let name: String = unqualified(function.name(db)).split_whitespace().collect();
    let symbol = name.strip_prefix("operator")?;
    if symbol.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
        return None;
    }
    // The grammar takes `>>` for something else, and a name has no `>` where template arguments would end.
    let text = function.text(db);
    let signature = function.signature(db);
    let written = text.get(signature.name_span.start as usize..signature.params_span.start as usize);
    let written: Option<String> = written
        .map(without_comments)
        .and_then(|name| Some(name.split("operator").last()?.split_whitespace().collect()));
    Some(match written {
        Some(written) if symbol.is_empty() || written == "->" || written == "->*" => written,
        _ => symbol.to_owned(),
    })
}

/// The operators in a body that may be a class's, as they are written.
fn operators_used<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body) -> Vec<(&'static str, Span)> {
    let types = Types::of(db, function, body);
    let mut found = Vec::new();
    for (index, expr) in body.exprs.iter().enumerate() {
        let used = operator_use(body, ExprId(index as u32));
        let used = used.filter(|(_, operands)| operands.iter().any(|e| !types.is_plain(*e, 0)));
        // Those are followed as any call is.
        let used = used.filter(|(symbol, operands)| *symbol != "()" || !is_followed(db, function, body, operands));
        if let Some((symbol, _)) = used {
            found.push((symbol, expr.span));
        }
    }
    found
}

/// Whether it is known which `operator()` a call of an object runs.
fn is_followed<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, operands: &[ExprId]) -> bool {
    let known = |operand: &ExprId| match body.expr(*operand).kind {
        ExprKind::Name(Name::Local(object)) => called_operators(db, function, body, object).is_some(),
        _ => false,
    };
    operands.iter().all(known)
}

/// The operator that an expression is, as it is written, with its operands that may be a class's: the object comes first.
pub(crate) fn operator_use(body: &Body, e: ExprId) -> Option<(&'static str, Vec<ExprId>)> {
    Some(match &body.expr(e).kind {
        ExprKind::Binary(op, a, b) => (symbol(*op), vec![*a, *b]),
        ExprKind::Logical { and, lhs, rhs } => (if *and { "&&" } else { "||" }, vec![*lhs, *rhs]),
        ExprKind::Comma(a, b) => (",", vec![*a, *b]),
        ExprKind::Unary(op, e) => (unary(*op), vec![*e]),
        ExprKind::Assign { op, place, .. } => (op.map_or("=", assigning), vec![*place]),
        ExprKind::IncDec { place, increment, .. } => (if *increment { "++" } else { "--" }, vec![*place]),
        ExprKind::Deref(e) => ("*", vec![*e]),
        ExprKind::AddrOf(e) => ("&", vec![*e]),
        ExprKind::Field { base, arrow: true, .. } => ("->", vec![*base]),
        ExprKind::Index { base, .. } => ("[]", vec![*base]),
        ExprKind::Call { callee, name: None, .. } => ("()", vec![*callee]),
        ExprKind::Call { callee, .. } => {
            // A function's name has no type.
            let target = body.strip_parens(*callee);
            match body.expr(target).kind {
                ExprKind::Name(Name::Local(_)) => ("()", vec![target]),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Whether making, copying or converting an object of this type in a function, where it isn't the function's own template parameter, runs
/// something that does more than compute: a class in sight does, or one that it is made of.
pub(crate) fn runs_unseen(db: &dyn Db, function: FunctionItem<'_>, ty: &str) -> bool {
    let harmful = harmful(db, function.file(db));
    let classes = harmful.classes_for(db, function);
    !classes.is_empty() && words(ty).any(|word| classes.contains_key(word))
}

/// Whether some class in sight does, so that a template parameter may stand for one.
pub(crate) fn some_class_runs_unseen(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    !harmful(db, function.file(db)).classes_for(db, function).is_empty()
}

/// The same by what the classes themselves say, for those who are asked for that answer.
pub(crate) fn some_class_says_so(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let alone = runs_on_device_alone(db, function);
    included_files(db, function.file(db)).iter().any(|file| {
        let items = items(db, *file);
        let mut classes = items.types.iter();
        !items.blanked.classes.is_empty()
            || classes.any(|class| class.hidden.is_some() && !(alone && class.hidden_from_device))
    })
}

/// The class that a function is a member of.
pub(crate) fn class_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> &'db str {
    function.name(db).rsplit("::").nth(1).unwrap_or("")
}

/// Whether an operator does nothing but compute its result, or change its own object where that is what such an operator is for.
///
/// `[]`, `()`, `*` and `->` may read memory: where they are used they are looked into as calls.
fn only_computes(db: &dyn Db, function: FunctionItem<'_>, symbol: &str, depth: u32) -> bool {
    if depth > MAX_DEPTH || !function.has_body(db) || symbol.is_empty() && depth == 0 {
        return false;
    }
    let body = &*body(db, function);
    let file = function.file(db);
    if !body.problems.is_empty() {
        return false;
    }
    let own_variables = body
        .bindings
        .iter()
        .all(|b| matches!(b.storage, Storage::Param | Storage::Local));
    let plain_stmts = body.stmts.iter().all(|stmt| {
        !matches!(
            stmt.kind,
            StmtKind::Asm { .. } | StmtKind::Unknown { .. } | StmtKind::RangeFor { .. }
        )
    });
    let assigns =
        matches!(symbol, "++" | "--") || symbol.ends_with('=') && !matches!(symbol, "==" | "!=" | "<=" | ">=");
    let one_operand =
        parameters(db, function).is_empty() || !function.signature(db).member && parameters(db, function).len() == 1;
    let reads = matches!(symbol, "[]" | "()" | "->") || symbol == "*" && one_operand;
    let fields = fields_of(db, file, class_of(db, function));
    let fields: Vec<(String, bool)> = fields
        .map(|(_, declarator)| (declared_name(&declarator).to_owned(), is_array(&declarator)))
        .collect();
    let reading = Reading {
        db,
        body,
        places: Places { db, function, body },
        fields,
        assigns,
        reads,
        depth,
    };
    own_variables && plain_stmts && (0..body.exprs.len()).all(|i| reading.harmless(ExprId(i as u32)))
}

/// How deep functions are looked into that operators call.
const MAX_DEPTH: u32 = 4;

struct Reading<'a> {
    db: &'a dyn Db,
    body: &'a Body,
    places: Places<'a>,
    /// Of the class that it is a member of, each with whether it is an array.
    fields: Vec<(String, bool)>,
    /// It may change its own object.
    assigns: bool,
    /// It may read memory.
    reads: bool,
    depth: u32,
}

impl Reading<'_> {
    fn is_this(&self, e: ExprId) -> bool {
        matches!(&self.body.expr(self.body.strip_parens(e)).kind, ExprKind::Name(Name::Other(name)) if name == "this")
    }

    fn is_field(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }

    fn array(&self, e: ExprId) -> bool {
        let inner = self.body.strip_parens(e);
        let own = match &self.body.expr(inner).kind {
            ExprKind::Name(Name::Other(name)) => Some(name),
            ExprKind::Field {
                base,
                field,
                arrow: true,
            } if self.is_this(*base) => Some(field),
            _ => None,
        };
        if let Some(name) = own.filter(|name| self.is_field(name)) {
            return self.fields.iter().all(|(field, array)| field != name || *array);
        }
        self.places
            .shape(self.body.strip_parens(e))
            .is_some_and(|shape| shape.dims > 0)
    }

    fn harmless(&self, e: ExprId) -> bool {
        match &self.body.expr(e).kind {
            ExprKind::Literal(_)
            | ExprKind::SizeOf
            | ExprKind::Paren(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Logical { .. }
            | ExprKind::Conditional { .. }
            | ExprKind::Comma(..)
            | ExprKind::InitList(_)
            | ExprKind::Construct { .. }
            | ExprKind::Cast { .. }
            | ExprKind::Name(Name::Local(_))
            | ExprKind::Field { arrow: false, .. } => true,
            ExprKind::Name(Name::Other(name)) => self.known_name(name, e),
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => self.own(*place),
            ExprKind::Deref(base) | ExprKind::Field { base, arrow: true, .. } => self.reads || self.is_this(*base),
            ExprKind::Index { base, .. } => self.reads || self.array(*base),
            ExprKind::Call { name: Some(name), .. } => self.harmless_call(name),
            _ => false,
        }
    }

    /// A field, a constant, a function that is called.
    fn known_name(&self, name: &str, e: ExprId) -> bool {
        if name == "this" || self.is_field(name) {
            return true;
        }
        let called = self.body.exprs.iter().any(|expr| match &expr.kind {
            ExprKind::Call { callee, .. } => self.body.strip_parens(*callee) == e,
            _ => false,
        });
        called
            || match meaning_in(self.db, self.places.function, name) {
                Meaning::Global(global) => global.constant && !global.pointer,
                Meaning::Enumerator(_) | Meaning::Type => true,
                _ => false,
            }
    }

    fn harmless_call(&self, name: &str) -> bool {
        let functions = functions_in(self.db, self.places.function, name);
        // What classes do when their objects are made is seen to by name.
        let constructs = matches!(meaning_in(self.db, self.places.function, name), Meaning::Type)
            || functions.iter().any(|f| class_of(self.db, *f) == unqualified(name));
        if functions.is_empty() || constructs {
            return constructs || known(name).is_some_and(|l| l.is_pure());
        }
        functions
            .iter()
            .all(|f| f.has_body(self.db) && only_computes(self.db, *f, "", self.depth + 1))
    }

    /// A place that the operator may write: a variable of its own, or its object if that is what it is for.
    fn own(&self, place: ExprId) -> bool {
        match &self.body.expr(place).kind {
            ExprKind::Name(Name::Local(b)) => {
                let binding = self.body.binding(*b);
                let by_value = !binding.ty.reference && !binding.ty.complex;
                by_value || self.assigns && self.body.params.first() == Some(b)
            }
            ExprKind::Name(Name::Other(name)) => self.assigns && self.is_field(name),
            ExprKind::Paren(inner) => self.own(*inner),
            ExprKind::Field { base, arrow: false, .. } => self.own(*base),
            ExprKind::Field { base, arrow: true, .. } | ExprKind::Deref(base) => self.assigns && self.is_this(*base),
            ExprKind::Index { base, .. } => self.array(*base) && self.own(*base),
            _ => false,
        }
    }
}

/// How an operator is written.
pub(crate) fn symbol(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Rem => "%",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::BitAnd => "&",
        BinOp::BitOr => "|",
        BinOp::BitXor => "^",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
    }
}

/// The same with an assignment: `+=`.
fn assigning(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+=",
        BinOp::Sub => "-=",
        BinOp::Mul => "*=",
        BinOp::Div => "/=",
        BinOp::Rem => "%=",
        BinOp::Shl => "<<=",
        BinOp::Shr => ">>=",
        BinOp::BitAnd => "&=",
        BinOp::BitOr => "|=",
        BinOp::BitXor => "^=",
        // There is no such assignment.
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => "",
    }
}

/// How an operator with one operand is written.
pub(crate) fn unary(op: UnOp) -> &'static str {
    match op {
        UnOp::Neg => "-",
        UnOp::Plus => "+",
        UnOp::Not => "!",
        UnOp::BitNot => "~",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::host::Host;

    /// What the function `f` of a program runs unseen.
    fn of(text: &str) -> Vec<(String, bool)> {
        let mut host = Host::new();
        let file = host.set_file(Path::new("/w/a.cu"), text.to_owned());
        let db = host.db();
        let all = items(db, file)
            .functions
            .iter()
            .filter(|f| unqualified(f.name(db)) == "f");
        all.flat_map(|f| {
            hidden(db, *f)
                .iter()
                .map(|h| (h.what.clone(), h.anywhere))
                .collect::<Vec<_>>()
        })
        .collect()
    }

    /// The same with an operator and a body.
    fn with(definitions: &str, body: &str) -> Vec<(String, bool)> {
        of(&format!(
            r#"__device__ int total;
struct S {{ int x; int v[2]; int* p; __device__ int norm() const {{ return x; }} }};
{definitions}
__device__ int f(S s, S t, int* a, int n) {{ {body} }}
"#
        ))
    }

    #[test]
    fn operators_that_compute() {
        for definition in [
            "__device__ S operator+(S a, const S& b) { S r = a; r.x += b.x; for (int i = 0; i < 2; ++i) r.v[i] += b.v[i]; return r; }",
            "__device__ S& operator+=(S& a, const S& b) { a.x = a.x + b.x; return a; }\n__device__ S operator+(S a, const S& b) { a += b; return a; }",
            "__device__ bool operator<(const S& a, const S& b) { return min(a.x, 3) < b.x; }",
            "__device__ int twice(int x) { return x + x; }\n__device__ S operator+(const S& a, const S& b) { return S{twice(a.x), {0, 0}, a.p}; }",
            "struct T { int x; friend __device__ T operator+(T a, T b) { return T{a.x + b.x}; } };",
        ] {
            assert_eq!(with(definition, "s = s + t; s += t; return s < t;"), [], "{definition}");
        }
        // Fields and template parameters that are numbers.
        let shift = r#"struct T { unsigned bits, *p; template <int N> __device__ unsigned f() { return bits + N + p[N]; } };
__device__ int operator+(S a, int n) { total = n; return n; }"#;
        let text = format!(
            "__device__ int total;\nstruct S {{ int x; }};\n{shift}\ntemplate <int N> __device__ int f(int n) {{ return n + N; }}\n"
        );
        assert_eq!(of(&text), []);
        // It isn't used, or on numbers alone.
        let writes = "__device__ int operator+(S a, int n) { total = n; return n; }";
        assert_eq!(
            with(
                writes,
                "return n + 1 + a[n] + (int)threadIdx.x - s.norm() * blockDim.x;"
            ),
            []
        );
        assert_eq!(
            with(writes, "int k = n; k += s.x + s.v[1] + *s.p; return max(k + 1, n + k);"),
            []
        );
    }

    #[test]
    fn vectors() {
        let vector = r#"class vec3 {
 public:
  __device__ vec3() {}
  __device__ vec3(float e0, float e1, float e2) { e[0] = e0; e[1] = e1; e[2] = e2; }
  __device__ vec3 operator-() const { return vec3(-e[0], -e[1], -e[2]); }
  __device__ float operator[](int i) const { return e[i]; }
  __device__ float& operator[](int i) { return e[i]; }
  __device__ vec3& operator+=(const vec3& v2);
  __device__ float length() const { return sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2]); }
  float e[3];
};
std::ostream& operator<<(std::ostream& os, const vec3& t) { os << t.e[0]; return os; }
__device__ vec3 operator+(const vec3& a, const vec3& b) { return vec3(a.e[0] + b.e[0], a.e[1] + b.e[1], a.e[2] + b.e[2]); }
__device__ vec3 operator*(float t, const vec3& v) { return vec3(t * v.e[0], t * v.e[1], t * v.e[2]); }
__device__ vec3& vec3::operator+=(const vec3& v) { e[0] += v.e[0]; this->e[1] += v.e[1]; return *this; }
"#;
        let kernel = "__global__ void f(vec3* out, const vec3* in, int n) { int i = threadIdx.x; vec3 v = in[i]; v += 2.0f * v; out[i] = -(v + vec3(1, 2, n << 3)); }\n";
        assert_eq!(of(&format!("{vector}{kernel}")), []);
        // The same where the elements are elsewhere.
        let elsewhere = vector.replace("float e[3];", "float* e;");
        assert!(!of(&format!("{elsewhere}{kernel}")).is_empty());
    }

    #[test]
    fn operators_that_do_more() {
        for (definition, body) in [
            (
                "__device__ int operator+(S a, int n) { total = n; return n; }",
                "return s + 1;",
            ),
            (
                "__device__ int operator+(S a, int n) { return *a.p + n; }",
                "return n + (s + 1);",
            ),
            (
                "__device__ int operator+(S a, int n) { return a.p[n]; }",
                "return s + n;",
            ),
            (
                "__device__ S& operator+=(S& a, int n) { a.p[0] = n; return a; }",
                "s += n; return 0;",
            ),
            (
                "__device__ S& operator+=(S& a, S& b) { b.x = 1; return a; }",
                "s += t; return 0;",
            ),
            (
                "__device__ S& operator+=(S& a, int n) { atomicAdd(a.p, n); return a; }",
                "s += n; return 0;",
            ),
            (
                "__device__ S& operator<<(S& a, int n) { __syncthreads(); return a; }",
                "s << n; return 0;",
            ),
            (
                "__device__ S& operator>>(S& a, int& n) { n = 1; return a; }",
                "s >> n; return 0;",
            ),
            ("__device__ S& operator>>(S& a, int& n);", "s >> n; return 0;"),
            ("__device__ bool operator!(S& a) { ++a.x; return true; }", "return !s;"),
            (
                "__device__ S operator,(S a, S b) { ++total; return b; }",
                "return (s, t).x;",
            ),
            (
                "__device__ bool operator&&(S a, S b) { ++total; return true; }",
                "return s && t;",
            ),
            (
                "__device__ S& operator++(S& a) { *a.p = 1; return a; }",
                "++s; return 0;",
            ),
            (
                "__device__ S operator+(S a, S b) { a -= b; return a; }\n__device__ S& operator-=(S& a, S b) { *a.p = 1; return a; }",
                "return (s + t).x;",
            ),
            (
                "enum E { A };\n__device__ E& operator++(E& e) { total = 1; return e; }",
                "E e = A; ++e; return 0;",
            ),
            (
                "enum class F { A, B };\n__device__ F operator|(F a, F b) { ++total; return a; }",
                "return (int)(F::A | F::B);",
            ),
            (
                "enum E { A };\nusing O = E;\n__device__ int operator,(O a, int b) { total = b; return b; }",
                "O e = A; return (e, n);",
            ),
            (
                "struct T { int* p; __device__ T& operator=(int n) { *p = n; return *this; } };",
                "T u; u = 1; return 0;",
            ),
            (
                "struct T { int* p; __device__ int operator[](int n) { return (*p)++; } };",
                "T u{a}; return u[n];",
            ),
            (
                "struct T { int* p; friend __device__ int operator+(T a, T b) { return (*a.p)++; } };",
                "T u{a}; return u + u;",
            ),
            (
                "template <class A> __device__ int operator+(S s, A b) { total = 1; return 0; }",
                "auto k = s; return k + n;",
            ),
        ] {
            let found = with(definition, body);
            assert!(
                !found.is_empty()
                    && found
                        .iter()
                        .all(|(what, anywhere)| what.starts_with("operator") && !anywhere),
                "{definition}: {found:?}"
            );
        }
    }

    #[test]
    fn classes_that_run_something() {
        let buffer = "struct Buffer { int* p; __device__ Buffer(int n) { p = (int*)malloc(n); }\n __device__ ~Buffer() { free(p); } };";
        let guard = "struct Sync { __device__ ~Sync() { __syncthreads(); } };";
        for (definitions, body, what) in [
            (buffer, "Buffer b(n); return 0;", "the destructor of Buffer"),
            (
                &format!("{guard}\nstruct Both {{ int n; Sync sync; }};"),
                "Both b; return 0;",
                "the destructor of Sync",
            ),
            (
                &format!("{guard}\nstruct Derived : public Sync {{ int n; }};"),
                "Derived b; return 0;",
                "the destructor of Sync",
            ),
            (
                &format!("{guard}\nusing Guard = Sync;"),
                "Guard g; return 0;",
                "the destructor of Sync",
            ),
            (
                &format!("{buffer}\n__device__ int get(const Buffer& b);"),
                "return get(n);",
                "the destructor of Buffer",
            ),
            (
                "struct Next { mutable int n; __device__ operator int() const { return n++; } };",
                "Next m{n}; int k = m; return k;",
                "a conversion of Next",
            ),
        ] {
            assert_eq!(with(definitions, body), [(what.to_owned(), true)], "{definitions}");
        }
        // What was blanked isn't empty.
        let deep = format!(
            "{}1{}",
            "(".repeat(crate::base::budget::BRACKETS),
            ")".repeat(crate::base::budget::BRACKETS)
        );
        let large = format!("struct Large {{ int* p; __device__ ~Large() {{ *p = {deep}; }} }};");
        let found = with(&large, "Large l{a}; return 0;");
        assert_eq!(found, [("a member that is too large of Large".to_owned(), true)]);
        let range = "struct Range { int* p; __device__ int* begin() const { return p; } __device__ int* end() const { return p + 2; } };";
        let found = with(
            range,
            "Range r{a}; for (int x : r) n += x; for (int x : s.v) n += x; return n;",
        );
        assert_eq!(found, [("what a range-based `for` calls".to_owned(), false)]);
        // Nobody has to do with it.
        assert_eq!(with(buffer, "return n;"), []);
        // What the host alone makes is no business of a function of the device, whatever its template parameters are.
        let hosts = "struct Rows { int* p; Rows(int n) { p = (int*)malloc(n); } ~Rows() { free(p); } };";
        let template = |head: &str| format!("{hosts}\ntemplate <class T> {head} f(T t) {{ return t; }}\n");
        assert_eq!(of(&template("__device__ T")), []);
        assert_eq!(of(&template("__global__ void")), []);
        assert_eq!(of(&template("__host__ __device__ T")).len(), 1);
        assert_eq!(of(&template("T")).len(), 1);
        let both = template("__device__ T").replace("~Rows", "__device__ ~Rows");
        assert_eq!(of(&both), [("the destructor of Rows".to_owned(), true)]);
        assert_eq!(
            with(
                "struct Plain { int x; __device__ Plain(int x) : x(x) {} __device__ operator int() const { return x; } };",
                "Plain p(n); return p;"
            ),
            []
        );
    }
}
