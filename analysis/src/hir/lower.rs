//! From the syntax tree of one function to its [`Body`].

use crate::base::words::words_but_members;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tree_sitter::Node;

use super::alias::casts_const_away;
use super::declarator::{base_type, declarator};
use super::types::*;
use crate::base::budget;
use crate::base::db::Db;
use crate::base::db::SourceFile;
use crate::base::fields;
use crate::base::parse::parse_text;
use crate::base::preprocess::Branch;
use crate::base::span::Span;
use crate::hir::included::included_files;
use crate::hir::items::FunctionItem;
use crate::hir::items::FunctionText;
use crate::hir::items::items;
use crate::hir::macros::Expanded;
use crate::hir::macros::expand_function;
use crate::hir::macros::function_macros;
use crate::hir::visible::Names;
use crate::hir::visible::visible;
use crate::hir::visible::visible_names;

/// Nesting beyond which an expression or statement is not followed: real code stays far below, and the stack is finite.
pub(super) const MAX_DEPTH: u32 = 180;
/// Runs one level of the recursion, on a new stretch of stack when little is left: worker threads have small stacks.
pub(super) fn on_a_large_stack<T>(level: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(256 << 10, 2 << 20, level)
}

/// The lowered body of a function, macros expanded. Depends on the function's text, its signature and the macros and types visible
/// in its file; not on its position.
#[salsa::tracked(returns(clone))]
pub fn body<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Body> {
    let text = function.text(db);
    let names = visible_names(db, function.file(db));
    let signature = function.signature(db);
    let macros = function_macros(db, function);
    let expanded = expand_function(&text, function.body_span(db), macros);
    let mut tree = parse_text(expanded.as_ref().map_or(&text, |e| &e.text), None);
    let mut map = expanded.as_ref();
    if map.is_some() && tree.root_node().has_error() {
        // Unless it can't be parsed either way, the uses of macros stay, as something that isn't understood.
        let as_written = parse_text(&text, None);
        if !as_written.root_node().has_error() {
            (tree, map) = (as_written, None);
        }
    }
    let mut lowering = Lowering {
        db,
        file: function.file(db),
        names,
        branches: &macros.branches,
        template_types: &signature.template_types,
        template_names: &signature.template_names,
        member: signature.member,
        local_types: HashMap::new(),
        local_aliases: HashMap::new(),
        casts_const_away: casts_const_away(map.map_or(&text, |e| &e.text)),
        unwrapped: HashSet::new(),
        body: Body::default(),
        scopes: vec![HashMap::new()],
        depth: 0,
        lambdas: 0,
    };
    let source = Source {
        text: map.map_or(&text, |e| &e.text),
        shift: 0,
        map,
    };
    match find_function(tree.root_node()) {
        Some(definition) if too_large(definition) => {
            lowering.head(definition, source);
            lowering.forget_statements(function.body_span(db));
        }
        Some(definition) => {
            // What the parser made of the rest of a broken function is no part of it.
            if definition.end_byte() < source.text.trim_end().len() && tree.root_node().has_error() {
                lowering.problem(Span::new(0, text.len() as u32), "a syntax error");
            }
            lowering.function(definition, source);
        }
        None => lowering.problem(Span::new(0, text.len() as u32), "this function could not be parsed"),
    }
    if function.has_body(db) && lowering.body.root.is_none() {
        lowering.problem(Span::new(0, text.len() as u32), "this function could not be parsed");
    }
    lowering.show_hidden_references();
    let jumps = |s: &&Stmt| matches!(s.kind, StmtKind::Goto(_));
    let most = match signature.kernel || signature.device {
        true => budget::LAUNCHES,
        false => budget::HOST_LAUNCHES,
    };
    let gotos = lowering.body.stmts.iter().filter(jumps).count();
    let too_many = lowering.body.launches.len() > most || gotos > budget::GOTOS;
    if too_many || map.is_some_and(|expanded| expanded.too_large) {
        lowering.forget_statements(function.body_span(db));
    }
    for large in function.large(db) {
        lowering.problem(*large, budget::TOO_LARGE);
        lowering.body.cut = true;
    }
    let in_expansions = map.map(|m| m.cuts.as_slice()).unwrap_or_default();
    for cut in function.cuts(db).iter().chain(in_expansions) {
        lowering.problem(*cut, "an #if cuts through this statement");
        lowering.body.cut = true;
    }
    Arc::new(lowering.body)
}

/// The parameters of a function. Stays the same when only its body changes, so callers don't depend on the body.
#[salsa::tracked]
pub fn parameters<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Parameter> {
    match function.source(db) {
        FunctionText::Kept(_) => parameters_in_text(db, function).clone(),
        FunctionText::Edited(edited) => edited.facts(db).parameters.clone(),
    }
}

/// The same as the function's text says now.
#[salsa::tracked]
pub(crate) fn parameters_in_text<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Parameter> {
    let body = body(db, function);
    body.params
        .iter()
        .map(|id| {
            let binding = body.binding(*id);
            Parameter {
                name: binding.name.clone(),
                ty: binding.ty.clone(),
                has_default: binding.default.is_some(),
            }
        })
        .collect()
}

/// Whether the tree of a function has more nodes or levels than analyses can deal with.
fn too_large(definition: Node<'_>) -> bool {
    if definition.descendant_count() > budget::FUNCTION_NODES {
        return true;
    }
    let mut cursor = definition.walk();
    let mut levels = 0;
    loop {
        if cursor.goto_first_child() {
            levels += 1;
            if levels > budget::FUNCTION_LEVELS {
                return true;
            }
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
            levels -= 1;
        }
    }
}

fn find_function(root: Node<'_>) -> Option<Node<'_>> {
    let mut queue = vec![root];
    while let Some(node) = queue.pop() {
        if node.kind() == "function_definition"
            || (node.kind() == "declaration" && node.child_by_field_id(fields::DECLARATOR.id()).is_some())
        {
            return Some(node);
        }
        if matches!(
            node.kind(),
            "translation_unit" | "template_declaration" | "linkage_specification" | "declaration_list" | "ERROR"
        ) {
            let mut cursor = node.walk();
            let children: Vec<_> = node.named_children(&mut cursor).collect();
            queue.extend(children.into_iter().rev());
        }
    }
    None
}

/// The text that a node's offsets refer to, and how they map to the function: the function itself, the function with its macros
/// expanded, or a piece of it that was parsed again (shifted).
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub text: &'a str,
    pub shift: i64,
    pub map: Option<&'a Expanded>,
}

impl<'a> Source<'a> {
    pub(super) fn of(&self, node: Node<'_>) -> &'a str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn range(&self, node: Node<'_>) -> (usize, usize) {
        let map = |at: usize| usize::try_from(at as i64 + self.shift).unwrap_or(0);
        (map(node.start_byte()), map(node.end_byte()))
    }

    pub(super) fn span(&self, node: Node<'_>) -> Span {
        let (start, end) = self.range(node);
        match self.map {
            Some(map) => map.span(start, end),
            None => Span::new(start as u32, end as u32),
        }
    }

    /// Where what reaches from one node to another stands, and whether a macro has a part in it.
    pub(super) fn between(&self, first: Node<'_>, last: Node<'_>) -> (Span, bool) {
        let (start, end) = (self.range(first).0, self.range(last).1);
        match self.map {
            Some(map) => (
                map.span(start, end),
                map.is_expansion(start, end) || !map.is_whole(start, end),
            ),
            None => (Span::new(start as u32, end as u32), false),
        }
    }

    /// The node comes out of one macro.
    pub(super) fn is_expansion(&self, node: Node<'_>) -> bool {
        let (start, end) = self.range(node);
        self.map.is_some_and(|map| map.is_expansion(start, end))
    }

    /// No macro's expansion is partly in the node and partly outside.
    pub(super) fn is_whole(&self, node: Node<'_>) -> bool {
        let (start, end) = self.range(node);
        self.map.is_none_or(|map| map.is_whole(start, end))
    }
}

pub(super) struct Lowering<'a> {
    pub db: &'a dyn Db,
    pub file: SourceFile,
    pub names: &'a Names,
    pub branches: &'a BTreeMap<u32, Branch>,
    pub template_types: &'a [String],
    pub template_names: &'a [String],
    pub member: bool,
    /// Types that the function declares for itself, and whether they may be classes.
    pub local_types: HashMap<String, bool>,
    /// Somewhere it makes a reference to a constant one to a variable, perhaps.
    pub casts_const_away: bool,
    /// What the names stand for that the function declares for types.
    pub local_aliases: HashMap<String, String>,
    /// Nodes of casts that the parser takes for calls, while only their operand is wanted.
    pub unwrapped: HashSet<usize>,
    pub body: Body,
    pub scopes: Vec<HashMap<String, BindingId>>,
    pub depth: u32,
    pub lambdas: u32,
}

impl Lowering<'_> {
    /// Puts something that isn't understood in place of everything that the function does.
    fn forget_statements(&mut self, span: Span) {
        let params = self.body.params.len();
        self.body.exprs.clear();
        self.body.launches.clear();
        self.body.stmts.clear();
        self.body.bindings.truncate(params);
        let unknown = StmtKind::Unknown {
            stmts: Vec::new(),
            exprs: Vec::new(),
            mentions: self.body.params.clone(),
        };
        self.body.root = Some(self.add_stmt(unknown, span));
        self.body.cut = true;
        self.problem(span, budget::TOO_LARGE);
    }

    /// Lowers the parameters of a function.
    fn head(&mut self, definition: Node<'_>, source: Source<'_>) {
        let mut next = definition.child_by_field_id(fields::DECLARATOR.id());
        let mut parameters = None;
        while let Some(node) = next {
            if node.kind() == "function_declarator" {
                parameters = node.child_by_field_id(fields::PARAMETERS.id());
                break;
            }
            next = node.child_by_field_id(fields::DECLARATOR.id()).or_else(|| {
                let mut cursor = node.walk();
                node.named_children(&mut cursor)
                    .find(|c| c.kind() == "function_declarator")
            });
        }
        if let Some(parameters) = parameters {
            self.body.params = self.parameters(parameters, source);
        }
    }

    fn function(&mut self, definition: Node<'_>, source: Source<'_>) {
        self.head(definition, source);
        let mut initialisers = Vec::new();
        let mut cursor = definition.walk();
        for child in definition.named_children(&mut cursor) {
            if child.kind() == "field_initializer_list"
                && let Some(found) = self.member_initialisers(child, source)
            {
                initialisers = found;
            } else if matches!(child.kind(), "field_initializer_list" | "ERROR") {
                let span = source.span(child);
                self.problem(span, "this part of the function is not understood");
            }
        }
        let block = definition.child_by_field_id(fields::BODY.id()).or_else(|| {
            let mut cursor = definition.walk();
            // `int main() try { … } catch (…) { … }`
            definition
                .named_children(&mut cursor)
                .find(|child| child.kind() == "try_statement")
        });
        if let Some(block) = block {
            let root = self.stmt(block, source);
            self.body.root = Some(root);
            // They are done before the body, and see the parameters but not its variables.
            if !initialisers.is_empty() {
                initialisers.push(root);
                let span = source.span(block);
                self.body.root = Some(self.add_stmt(StmtKind::Block(initialisers), span));
            }
        }
    }

    /// The assignments that a constructor's member initialiser list stands for. `None` where it does more: where it initialises a
    /// base class, an object of a class, an array or a reference, or calls another constructor.
    fn member_initialisers(&mut self, list: Node<'_>, source: Source<'_>) -> Option<Vec<StmtId>> {
        if list.has_error() {
            return None;
        }
        let mut found = Vec::new();
        let mut cursor = list.walk();
        for initialiser in list.named_children(&mut cursor).filter(|c| c.kind() != "comment") {
            let mut cursor = initialiser.walk();
            let parts: Vec<_> = initialiser
                .children(&mut cursor)
                .filter(|c| c.kind() != "comment")
                .collect();
            let [field, value] = parts.as_slice() else { return None };
            let name = source.of(*field);
            if initialiser.kind() != "field_initializer"
                || field.kind() != "field_identifier"
                || !matches!(value.kind(), "argument_list" | "initializer_list")
                || value.named_child_count() != 1
                || !self.is_plain_field(name)
            {
                return None;
            }
            let value = value.named_child(0).filter(|v| v.kind() != "comment")?;
            found.push((initialiser, *field, value));
        }
        let mut stmts = Vec::new();
        for (initialiser, field, value) in found {
            // The field, also where a parameter has its name.
            let place = ExprKind::Name(Name::Other(source.of(field).to_owned()));
            let place = self.add_expr(place, field, source);
            let value = self.expr(value, source);
            let assigned = self.add_expr(ExprKind::Assign { op: None, place, value }, initialiser, source);
            stmts.push(self.add_stmt(StmtKind::Expr(assigned), source.span(initialiser)));
        }
        Some(stmts)
    }

    /// All classes in sight that have a field of that name have a number or a pointer under it, and nothing else in sight is named so.
    fn is_plain_field(&self, name: &str) -> bool {
        let seen = visible(self.db, self.file);
        if !self.member || seen.globals.contains_key(name) || seen.enumerators.contains_key(name) {
            return false;
        }
        let fields = included_files(self.db, self.file)
            .iter()
            .flat_map(|f| &items(self.db, *f).types)
            .flat_map(|t| &t.fields)
            .filter(|(_, declarator)| crate::hir::declarator::declared_name(declarator) == name);
        let mut any = false;
        for (ty, declarator) in fields {
            any = true;
            let pointer = declarator.trim_start().starts_with('*');
            if declarator.contains(['&', '[', '(', ':']) || !(pointer || self.names_a_number(ty)) {
                return false;
            }
        }
        any
    }

    /// A number type, by its own name or by one that is declared for it.
    fn names_a_number(&self, ty: &str) -> bool {
        let mut ty = ty;
        for _ in 0..8 {
            if super::literal::is_number_type(ty) {
                return true;
            }
            match self.names.aliases.get(ty) {
                Some(target) => ty = target,
                None => return false,
            }
        }
        false
    }

    /// Declares the parameters of a parameter list in the current scope.
    pub(super) fn parameters(&mut self, list: Node<'_>, source: Source<'_>) -> Vec<BindingId> {
        let mut params = Vec::new();
        let mut cursor = list.walk();
        for child in list.children(&mut cursor) {
            match child.kind() {
                "parameter_declaration" | "optional_parameter_declaration" => {
                    let base = base_type(child, source.text);
                    // `(void)`
                    let written = child.child_by_field_id(fields::DECLARATOR.id());
                    if written.is_none() && base.base == "void" {
                        continue;
                    }
                    let found = written.map(|d| declarator(d, source.text)).unwrap_or_default();
                    let mut ty = found.refine(base);
                    ty.reference |= self.is_a_reference_by_a_macro_in(source.of(child));
                    if found.call.is_some() {
                        ty.complex = true;
                    }
                    ty.array = found.sizes.iter().map(|_| None).collect();
                    let span = source.span(found.name.or(written).unwrap_or(child));
                    let name = found.name.map(|n| source.of(n).to_owned()).unwrap_or_default();
                    let default = child
                        .child_by_field_id(fields::DEFAULT_VALUE.id())
                        .map(|d| source.span(d));
                    let decl_span = source.span(child);
                    params.push(self.declare(Binding {
                        name,
                        ty,
                        storage: Storage::Param,
                        span,
                        decl_span,
                        default,
                    }));
                }
                "variadic_parameter_declaration" | "..." | "variadic_parameter" | "ERROR" => {
                    let span = source.span(child);
                    self.problem(span, "a variadic parameter");
                }
                _ => {}
            }
        }
        params
    }

    pub(super) fn declare(&mut self, mut binding: Binding) -> BindingId {
        binding.ty = self.seen_through(binding.ty);
        // Through it the variable may be changed after all.
        binding.ty.const_base &= !(binding.ty.reference && self.casts_const_away);
        binding.ty.const_base &= !(binding.ty.pointers == 0 && self.may_change_though_constant(&binding.ty.base));
        let id = BindingId(self.body.bindings.len() as u32);
        if !binding.name.is_empty()
            && let Some(scope) = self.scopes.last_mut()
        {
            // Twice in one scope is legal only in alternatives of `#if`: one variable, two declarations.
            if let Some(&earlier) = scope.get(&binding.name) {
                let known = &mut self.body.bindings[earlier.0 as usize];
                if known.ty != binding.ty || known.storage != binding.storage {
                    known.ty.complex = true;
                }
                return earlier;
            }
            scope.insert(binding.name.clone(), id);
        }
        self.body.bindings.push(binding);
        id
    }

    /// A constant object of this type may change: of a class in sight with a mutable field, or of one that the function declares itself.
    fn may_change_though_constant(&self, base: &str) -> bool {
        crate::base::words::words(base)
            .any(|word| self.names.mutable.contains(word) || self.local_types.get(word).is_some_and(|class| *class))
    }

    pub(super) fn lookup(&self, name: &str) -> Option<BindingId> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    pub(super) fn problem(&mut self, span: Span, reason: &str) {
        self.body.problems.push((span, reason.to_owned()));
    }

    /// Adds the expression that a node is.
    pub(super) fn add_expr(&mut self, kind: ExprKind, node: Node<'_>, source: Source<'_>) -> ExprId {
        let id = ExprId(self.body.exprs.len() as u32);
        let span = source.span(node);
        self.body.exprs.push(Expr {
            kind,
            span,
            from_macro: source.is_expansion(node) || !source.is_whole(node),
        });
        id
    }

    /// Adds an expression that reaches from one node to another.
    pub(super) fn add_expr_between(
        &mut self,
        kind: ExprKind,
        first: Node<'_>,
        last: Node<'_>,
        source: Source<'_>,
    ) -> ExprId {
        let id = ExprId(self.body.exprs.len() as u32);
        let (span, from_macro) = source.between(first, last);
        self.body.exprs.push(Expr { kind, span, from_macro });
        id
    }

    pub(super) fn add_stmt(&mut self, kind: StmtKind, span: Span) -> StmtId {
        let id = StmtId(self.body.stmts.len() as u32);
        self.body.stmts.push(Stmt { kind, span });
        id
    }

    /// Local variables whose names occur as words in `text`, but for what can only be a member's name.
    pub(super) fn mentions(&self, text: &str) -> Vec<BindingId> {
        let words = words_but_members(text);
        let mut found: Vec<BindingId> = words.filter_map(|word| self.lookup(word)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}
