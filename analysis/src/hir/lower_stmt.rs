//! Lowering of statements.

use tree_sitter::Node;

use super::declarator::typedef_target;
use super::declarator::{base_type, declarator};
use super::lower::{Lowering, MAX_DEPTH, Source, on_a_large_stack};
use super::lower_expr::has_syntax_error;
use super::types::*;
use crate::base::fields;
use crate::base::parse::parse_text;
use crate::base::preprocess::Branch;
use crate::base::span::Span;
use crate::hir::assembly::assembly_text;

impl Lowering<'_> {
    /// Lowers a statement; never fails.
    pub(super) fn stmt(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        if self.depth >= MAX_DEPTH {
            self.problem(source.span(node), "nested too deeply");
            return self.unknown_stmt(node, source, Vec::new(), Vec::new());
        }
        self.depth += 1;
        let id = on_a_large_stack(|| self.stmt_inner(node, source));
        self.depth -= 1;
        id
    }

    fn stmt_inner(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        let field = |name: &str| node.child_by_field_name(name);
        if has_syntax_error(node) {
            self.problem(span, "a syntax error");
            // A block keeps its structure: the broken piece is one of its statements. Everything else may mean anything.
            if node.kind() != "compound_statement" {
                return self.unknown_from_children(node, source);
            }
        }
        let kind = match node.kind() {
            "compound_statement" => {
                self.scopes.push(Default::default());
                let stmts = self.stmts_of(node, source);
                self.scopes.pop();
                StmtKind::Block(stmts)
            }
            "expression_statement" => match first_named(node) {
                None => StmtKind::Empty,
                Some(inner) => return self.expression_statement(node, inner, source),
            },
            "declaration" => return self.declaration(node, source),
            "init_statement" => match first_named(node) {
                Some(inner) => return self.stmt(inner, source),
                None => StmtKind::Empty,
            },
            "if_statement" => return self.if_statement(node, source),
            "else_clause" => match first_named(node) {
                Some(inner) => return self.stmt(inner, source),
                None => StmtKind::Empty,
            },
            "while_statement" | "do_statement" | "for_statement" => return self.looping(node, source),
            "for_range_loop" => return self.range_for(node, source),
            "switch_statement" | "case_statement" | "labeled_statement" => return self.labelled(node, source),
            "try_statement" => match self.try_statement(node, source) {
                Some(body) => return body,
                None => return self.unknown_from_children(node, source),
            },
            "throw_statement" => return self.throw(node, source),
            "break_statement" => StmtKind::Break,
            "continue_statement" => StmtKind::Continue,
            "return_statement" => {
                let value = first_named(node).map(|v| self.expr(v, source));
                StmtKind::Return(value)
            }
            "goto_statement" => match field("label") {
                Some(label) => StmtKind::Goto(source.of(label).to_owned()),
                None => return self.unknown_stmt(node, source, Vec::new(), Vec::new()),
            },
            "attributed_statement" => {
                let mut cursor = node.walk();
                match node.named_children(&mut cursor).last() {
                    Some(inner) if inner.kind() != "attribute_declaration" => return self.stmt(inner, source),
                    _ => StmtKind::Empty,
                }
            }
            "preproc_if" | "preproc_ifdef" => return self.preprocessor(node, source),
            "alias_declaration" | "type_definition" => {
                self.declare_aliases(node, source);
                StmtKind::Empty
            }
            "using_declaration" | "namespace_alias_definition" => {
                self.declare_using(source.of(node), span);
                StmtKind::Empty
            }
            "static_assert_declaration" | "preproc_call" | "preproc_def" | "preproc_function_def" | "comment" | ";" => {
                StmtKind::Empty
            }
            "preproc_include" => {
                self.problem(span, "an #include in a function");
                self.body.cut = true;
                return self.unknown_stmt(node, source, Vec::new(), Vec::new());
            }
            "struct_specifier" | "class_specifier" | "enum_specifier" | "union_specifier" => {
                self.declare_type(node, source);
                StmtKind::Empty
            }
            // A statement position that holds a bare expression (macro arguments parsed as statements and the like).
            kind if kind.ends_with("_expression") || matches!(kind, "identifier" | "number_literal") => {
                let value = self.expr(node, source);
                StmtKind::Expr(value)
            }
            _ => return self.unknown_from_children(node, source),
        };
        self.add_stmt(kind, span)
    }

    /// A loop, but one over a range.
    fn looping(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        let field = |name: &str| node.child_by_field_name(name);
        let kind = match node.kind() {
            "while_statement" => {
                self.scopes.push(Default::default());
                let (init, cond) = self.condition(field("condition"), source);
                let body = self.stmt_or_missing(field("body"), node, source);
                self.scopes.pop();
                StmtKind::While { cond, init, body }
            }
            "do_statement" => {
                let body = self.stmt_or_missing(field("body"), node, source);
                // `do { … } while (0)` is a block, as macros have it.
                let once = field("condition").is_some_and(|c| {
                    let value = source.of(c).trim_matches(['(', ')', ' ']);
                    matches!(value, "0" | "false")
                });
                if once && field("body").is_some_and(|body| !leaves_loop(body)) {
                    return self.add_stmt(StmtKind::Block(vec![body]), span);
                }
                match field("condition") {
                    Some(condition) => {
                        let cond = self.expr(condition, source);
                        StmtKind::DoWhile { body, cond }
                    }
                    None => return self.unknown_stmt(node, source, vec![body], Vec::new()),
                }
            }
            "for_statement" => {
                self.scopes.push(Default::default());
                let init = field("initializer").map(|n| self.for_initializer(n, source));
                let cond = field("condition").map(|n| self.expr(n, source));
                let step = field("update").map(|n| self.expr(n, source));
                let body = self.stmt_or_missing(field("body"), node, source);
                self.scopes.pop();
                StmtKind::For { init, cond, step, body }
            }
            _ => return self.unknown_from_children(node, source),
        };
        self.add_stmt(kind, span)
    }

    /// What jumps lead to, and the `switch` from which they do.
    fn labelled(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        let field = |name: &str| node.child_by_field_name(name);
        let kind = match node.kind() {
            "switch_statement" => {
                self.scopes.push(Default::default());
                let (init, cond) = self.condition(field("condition"), source);
                let body = self.stmt_or_missing(field("body"), node, source);
                self.scopes.pop();
                match (init, cond) {
                    (None, Some(cond)) => StmtKind::Switch { cond, body },
                    (init, cond) => {
                        let stmts = init.into_iter().chain([body]).collect();
                        return self.unknown_stmt(node, source, stmts, cond.into_iter().collect());
                    }
                }
            }
            "case_statement" => {
                let value = field("value");
                let mut cursor = node.walk();
                let children: Vec<_> = node
                    .named_children(&mut cursor)
                    .filter(|c| Some(*c) != value && c.kind() != "comment")
                    .collect();
                let value = value.map(|v| self.expr(v, source));
                let stmts = children.into_iter().map(|c| self.stmt(c, source)).collect();
                StmtKind::Case { value, stmts }
            }
            "labeled_statement" => {
                let label = field("label");
                let name = label.map_or("", |l| source.of(l)).to_owned();
                let mut cursor = node.walk();
                let inner = node
                    .named_children(&mut cursor)
                    .filter(|c| Some(*c) != label && c.kind() != "comment")
                    .last();
                let inner = inner.map(|n| self.stmt(n, source));
                StmtKind::Label(name, inner)
            }
            _ => return self.unknown_from_children(node, source),
        };
        self.add_stmt(kind, span)
    }

    /// Names that a `using` or a `typedef` gives to types.
    fn declare_aliases(&mut self, node: Node<'_>, source: Source<'_>) {
        let mut cursor = node.walk();
        let declared: Vec<_> = node
            .children_by_field_name("declarator", &mut cursor)
            .chain(node.child_by_field_id(fields::NAME.id()))
            .collect();
        let ty = node.child_by_field_id(fields::TYPE.id()).map(|ty| match ty.kind() {
            "type_descriptor" => ty.child_by_field_id(fields::TYPE.id()).unwrap_or(ty),
            _ => ty,
        });
        let number = ty.is_some_and(|ty| matches!(ty.kind(), "primitive_type" | "sized_type_specifier"));
        for declared in declared {
            if let Some(name) = type_name(declared) {
                self.body.declared.insert(source.of(name).to_owned());
                self.local_types.insert(source.of(name).to_owned(), !number);
                let target = match node.kind() {
                    "alias_declaration" => node
                        .child_by_field_id(fields::TYPE.id())
                        .map_or("", |ty| source.of(ty))
                        .to_owned(),
                    _ => typedef_target(node, declared, |node| source.of(node)),
                };
                self.declare_alias(source.of(name), &target);
                self.hide(source.of(name), source.span(name));
            }
        }
        if let Some(ty) = node.child_by_field_id(fields::TYPE.id()) {
            self.declare_type(ty, source);
        }
    }

    /// The statements among a node's children, in order.
    fn stmts_of(&mut self, node: Node<'_>, source: Source<'_>) -> Vec<StmtId> {
        let mut cursor = node.walk();
        let children: Vec<_> = node
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "comment")
            .collect();
        children.into_iter().map(|c| self.stmt(c, source)).collect()
    }

    pub(super) fn stmt_or_missing(&mut self, node: Option<Node<'_>>, around: Node<'_>, source: Source<'_>) -> StmtId {
        match node {
            Some(node) => {
                // A body that is a declaration or a single statement has a scope of its own.
                self.scopes.push(Default::default());
                let id = self.stmt(node, source);
                self.scopes.pop();
                id
            }
            None => self.unknown_stmt(around, source, Vec::new(), Vec::new()),
        }
    }

    fn expression_statement(&mut self, node: Node<'_>, inner: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        if inner.kind() == "gnu_asm_expression" {
            let parts = self.asm_operands(inner, source);
            let mentions = self.mentions(source.of(inner));
            let text = assembly_text(source.of(inner));
            return self.add_stmt(StmtKind::Asm { text, mentions, parts }, span);
        }
        let macro_name = match inner.kind() {
            "identifier" => Some(source.of(inner)),
            "call_expression" => inner.child_by_field_id(fields::FUNCTION.id()).map(|f| source.of(f)),
            _ => None,
        };
        // A macro that could not be expanded. What an expansion calls is no macro any more.
        let hides = macro_name.is_some_and(|name| self.lookup(name).is_none() && self.hides_control_flow(name))
            && !source.is_expansion(inner);
        if !hides && let Some(declared) = self.declaration_in_brackets(inner, source) {
            return declared;
        }
        let value = self.expr(inner, source);
        if hides {
            let mut mentions = self.mentions(source.of(node));
            if let Some(item) = macro_name.and_then(|name| self.names.macros.get(name)) {
                mentions.extend(self.mentions(&item.body));
            }
            return self.add_stmt(
                StmtKind::Unknown {
                    stmts: Vec::new(),
                    exprs: vec![value],
                    mentions,
                },
                span,
            );
        }
        self.add_stmt(StmtKind::Expr(value), span)
    }

    fn asm_operands(&mut self, node: Node<'_>, source: Source<'_>) -> Vec<ExprId> {
        let mut found = Vec::new();
        for list in ["output_operands", "input_operands"] {
            let Some(list) = node.child_by_field_name(list) else {
                continue;
            };
            let mut cursor = list.walk();
            let values: Vec<_> = list
                .named_children(&mut cursor)
                .filter_map(|o| o.child_by_field_id(fields::VALUE.id()))
                .collect();
            found.extend(values.into_iter().map(|v| self.expr(v, source)));
        }
        found
    }

    fn if_statement(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        let mut cursor = node.walk();
        let constexpr = node.children(&mut cursor).any(|c| c.kind() == "constexpr");
        self.scopes.push(Default::default());
        let (init, cond) = self.condition(node.child_by_field_id(fields::CONDITION.id()), source);
        let then = self.stmt_or_missing(node.child_by_field_id(fields::CONSEQUENCE.id()), node, source);
        let otherwise = node
            .child_by_field_id(fields::ALTERNATIVE.id())
            .map(|n| self.stmt_or_missing(Some(n), node, source));
        self.scopes.pop();
        self.add_stmt(
            StmtKind::If {
                init,
                cond,
                constexpr,
                then,
                otherwise,
            },
            span,
        )
    }

    /// A `condition_clause`: its init statement or declaration, and its value.
    fn condition(&mut self, node: Option<Node<'_>>, source: Source<'_>) -> (Option<StmtId>, Option<ExprId>) {
        let Some(node) = node else { return (None, None) };
        if node.kind() != "condition_clause" {
            return (None, Some(self.expr(node, source)));
        }
        let init = node
            .child_by_field_id(fields::INITIALIZER.id())
            .map(|n| self.stmt(n, source));
        match node.child_by_field_id(fields::VALUE.id()) {
            Some(value) if value.kind() == "declaration" => {
                let declared = self.condition_declaration(value, source);
                match init {
                    None => (Some(declared), None),
                    Some(init) => {
                        let span = source.span(node);
                        let both = self.add_stmt(StmtKind::Block(vec![init, declared]), span);
                        (Some(both), None)
                    }
                }
            }
            Some(value) => (init, Some(self.expr(value, source))),
            None => (init, Some(self.unknown(node, source, Vec::new()))),
        }
    }

    /// `int y = g()` in a condition: declarator and value are fields of the declaration itself.
    fn condition_declaration(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        let base = base_type(node, source.text);
        let init = node.child_by_field_id(fields::VALUE.id()).map(|v| self.expr(v, source));
        let Some(written) = node.child_by_field_id(fields::DECLARATOR.id()) else {
            return self.unknown_stmt(node, source, Vec::new(), init.into_iter().collect());
        };
        let binding = self.local(written, base, Storage::Local, span, source);
        self.add_stmt(StmtKind::Decl(vec![LocalDecl { binding, init }]), span)
    }

    fn for_initializer(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        if node.kind() == "declaration" {
            return self.declaration(node, source);
        }
        if let Some(declared) = self.declaration_in_brackets(node, source) {
            return declared;
        }
        let value = self.expr(node, source);
        self.add_stmt(StmtKind::Expr(value), source.span(node))
    }

    fn preprocessor(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        let mut branches: Vec<Vec<StmtId>> = Vec::new();
        let mut exhaustive = false;
        let mut live = false;
        let mut next = Some(node);
        while let Some(part) = next {
            let alternative = part.child_by_field_id(fields::ALTERNATIVE.id());
            next = alternative;
            let known = self.branches.get(&source.span(part).start).copied().unwrap_or_default();
            exhaustive |= part.kind() == "preproc_else";
            if known == Branch::Dead {
                continue;
            }
            let skip = [
                part.child_by_field_id(fields::CONDITION.id()),
                part.child_by_field_id(fields::NAME.id()),
                alternative,
            ];
            let mut cursor = part.walk();
            let children: Vec<_> = part
                .named_children(&mut cursor)
                .filter(|c| c.kind() != "comment" && !skip.contains(&Some(*c)))
                .collect();
            // Declarations of a branch stay visible behind `#endif`: same scope on purpose.
            let stmts = children.into_iter().map(|c| self.stmt(c, source)).collect();
            branches.push(stmts);
            if known == Branch::Live {
                live = true;
                break;
            }
        }
        if !exhaustive && !live {
            branches.push(Vec::new());
        }
        self.add_stmt(StmtKind::Preprocessor { branches }, span)
    }

    pub(super) fn declaration(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        if let Some(ty) = node.child_by_field_id(fields::TYPE.id()) {
            self.declare_type(ty, source);
        }
        let base = base_type(node, source.text);
        let mut storage = Storage::Local;
        let mut is_extern = false;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match source.of(child) {
                "__shared__" => storage = Storage::Shared,
                "static" if storage == Storage::Local => storage = Storage::Static,
                "extern" => is_extern = true,
                _ => {}
            }
        }
        if storage == Storage::Shared && is_extern {
            storage = Storage::ExternShared;
        }
        let mut cursor = node.walk();
        let declarators: Vec<_> = node.children_by_field_name("declarator", &mut cursor).collect();
        if declarators.is_empty() {
            return self.add_stmt(StmtKind::Empty, span);
        }
        if is_extern && storage != Storage::ExternShared {
            // `extern int x;` in a function: a global under its own name.
            self.hide_declared(&declarators, source);
            return self.add_stmt(StmtKind::Empty, span);
        }
        let mut decls = Vec::new();
        for written in declarators {
            if let Some(list) = bound_names(written) {
                decls.extend(self.structured_binding(written, list, source, span));
                continue;
            }
            let value = if written.kind() == "init_declarator" {
                written.child_by_field_id(fields::VALUE.id())
            } else {
                None
            };
            // The initialiser is lowered before the name comes into scope, except that `int x = x` means the new x: that is
            // undefined behaviour and not worth modelling.
            let init = value.map(|v| self.initializer(v, &base, source));
            let inner = written
                .child_by_field_id(fields::DECLARATOR.id())
                .filter(|_| written.kind() == "init_declarator");
            let parts = declarator(inner.unwrap_or(written), source.text);
            let init = match (init, parts.call) {
                (None, Some(list)) if !parts.complex => match self.constructor_arguments(list, &base, source) {
                    Some(init) => Some(init),
                    // `T x();` declares a function.
                    None => {
                        self.hide_declared(&[written], source);
                        continue;
                    }
                },
                (init, _) => init,
            };
            // `int& r(x)` and `int* p{&x}` make no object of their type, as `= T(x)` does: they are what is in the brackets.
            let in_brackets = value.is_none_or(|v| matches!(v.kind(), "argument_list" | "initializer_list"));
            let leads = in_brackets && (parts.reference || parts.pointers > 0) && parts.sizes.is_empty();
            let init = init.map(|init| match &self.body.expr(init).kind {
                ExprKind::Construct { args, .. } | ExprKind::InitList(args) if leads && args.len() == 1 => args[0],
                _ => init,
            });
            let binding = self.local(inner.unwrap_or(written), base.clone(), storage, span, source);
            decls.push(LocalDecl { binding, init });
        }
        let kind = if decls.is_empty() {
            StmtKind::Empty
        } else {
            StmtKind::Decl(decls)
        };
        self.add_stmt(kind, span)
    }

    fn initializer(&mut self, value: Node<'_>, base: &Type, source: Source<'_>) -> ExprId {
        match value.kind() {
            // `dim3 g(a, b)` and `dim3 g{a, b}`
            "argument_list" => {
                let args = self.list(value, source);
                let kind = ExprKind::Construct {
                    ty: base.base.clone(),
                    args,
                };
                self.add_expr(kind, value, source)
            }
            _ => self.expr(value, source),
        }
    }

    /// `dim3 g(n, m)` parses as a function declaration when the arguments look like types: parse the list again.
    fn constructor_arguments(&mut self, list: Node<'_>, base: &Type, source: Source<'_>) -> Option<ExprId> {
        if list.named_child_count() == 0 {
            return None;
        }
        const PREFIX: &str = "void f() { x";
        let text = format!("{PREFIX}{}; }}", source.of(list));
        let tree = parse_text(&text, None);
        let args = tree
            .root_node()
            .named_child(0)
            .and_then(|f| f.child_by_field_id(fields::BODY.id()))
            .and_then(|b| b.named_child(0))
            .and_then(|s| s.named_child(0))
            .filter(|c| c.kind() == "call_expression")
            .and_then(|c| c.child_by_field_id(fields::ARGUMENTS.id()));
        let inner = Source {
            text: &text,
            shift: list.start_byte() as i64 + source.shift - PREFIX.len() as i64,
            map: source.map,
        };
        let args = match args {
            Some(args) if !tree.root_node().has_error() => self.list(args, inner),
            _ => vec![self.unknown(list, source, Vec::new())],
        };
        Some(self.add_expr(
            ExprKind::Construct {
                ty: base.base.clone(),
                args,
            },
            list,
            source,
        ))
    }

    /// Declares one local variable.
    pub(super) fn local(
        &mut self,
        written: Node<'_>,
        base: Type,
        storage: Storage,
        decl_span: Span,
        source: Source<'_>,
    ) -> BindingId {
        let parts = declarator(written, source.text);
        let mut ty = parts.refine(base);
        ty.array = parts
            .sizes
            .iter()
            .map(|size| size.map(|s| self.expr(s, source)))
            .collect();
        let span = source.span(parts.name.unwrap_or(written));
        let name = parts.name.map(|n| source.of(n).to_owned()).unwrap_or_default();
        self.declare(Binding {
            name,
            ty,
            storage,
            span,
            decl_span,
            default: None,
        })
    }

    /// `auto [a, b] = e;`: each name is a reference into something that isn't modelled.
    fn structured_binding(
        &mut self,
        written: Node<'_>,
        list: Node<'_>,
        source: Source<'_>,
        decl_span: Span,
    ) -> Vec<LocalDecl> {
        let value = written.child_by_field_id(fields::VALUE.id());
        let init = value.map(|v| self.expr(v, source));
        // By a reference, the names change what it is made from.
        let mentions = match source.of(written).trim_start().starts_with('&') {
            true => self.mentions(value.map_or(source.of(written), |v| source.of(v))),
            false => Vec::new(),
        };
        let parts: Vec<ExprId> = init.into_iter().collect();
        self.bind_names(written, list, &parts, &mentions, source, decl_span)
    }

    /// Declares the names of a structured binding. `parts`, `mentions`: what they are made of, and the variables that they may change.
    pub(super) fn bind_names(
        &mut self,
        written: Node<'_>,
        list: Node<'_>,
        parts: &[ExprId],
        mentions: &[BindingId],
        source: Source<'_>,
        decl_span: Span,
    ) -> Vec<LocalDecl> {
        let mut cursor = list.walk();
        let names: Vec<_> = list
            .named_children(&mut cursor)
            .filter(|c| c.kind() == "identifier")
            .collect();
        let mut decls = Vec::new();
        for name in names {
            let binding = self.declare_opaque(source.of(name), source.span(name), decl_span);
            let opaque = self.add_expr(
                ExprKind::Unknown {
                    parts: parts.to_vec(),
                    mentions: mentions.to_vec(),
                },
                written,
                source,
            );
            decls.push(LocalDecl {
                binding,
                init: Some(opaque),
            });
        }
        decls
    }

    pub(super) fn unknown_stmt(
        &mut self,
        node: Node<'_>,
        source: Source<'_>,
        stmts: Vec<StmtId>,
        exprs: Vec<ExprId>,
    ) -> StmtId {
        let span = source.span(node);
        let reason = if node.is_error() {
            "a syntax error"
        } else {
            "this statement is not understood"
        };
        self.problem(span, reason);
        let mentions = self.mentions(source.of(node));
        self.add_stmt(StmtKind::Unknown { stmts, exprs, mentions }, span)
    }

    fn unknown_from_children(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let mut stmts = Vec::new();
        let mut exprs = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<_> = node
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "comment")
            .collect();
        for child in children {
            let kind = child.kind();
            if kind.ends_with("_statement")
                || matches!(kind, "declaration" | "catch_clause" | "preproc_if" | "preproc_ifdef")
            {
                stmts.push(self.stmt(child, source));
            } else if kind.ends_with("_expression") {
                exprs.push(self.expr(child, source));
            }
        }
        self.unknown_stmt(node, source, stmts, exprs)
    }
}

/// Whether a loop's body has a `break` or `continue` of that loop.
fn leaves_loop(body: Node<'_>) -> bool {
    let mut pending = vec![(body, true)];
    while let Some((node, breaks)) = pending.pop() {
        let mut inner_breaks = breaks;
        match node.kind() {
            "break_statement" if breaks => return true,
            "continue_statement" => return true,
            "lambda_expression" | "while_statement" | "do_statement" | "for_statement" | "for_range_loop" => continue,
            "switch_statement" => inner_breaks = false,
            // What isn't understood may be one.
            "ERROR" => return true,
            _ => {}
        }
        let mut cursor = node.walk();
        pending.extend(node.children(&mut cursor).map(|child| (child, inner_breaks)));
    }
    false
}

/// The name in the declarator of a `typedef`: it stands in front of sizes and parameters. The grammar knows some names of libraries, as
/// `uint32_t`, wherever they stand.
fn type_name(node: Node<'_>) -> Option<Node<'_>> {
    let mut pending = vec![node];
    while let Some(node) = pending.pop() {
        if matches!(node.kind(), "type_identifier" | "primitive_type") {
            return Some(node);
        }
        let mut cursor = node.walk();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        pending.extend(children.into_iter().rev());
    }
    None
}

fn first_named(node: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).find(|c| c.kind() != "comment")
}

/// The names that a declarator of a structured binding lists: `[a, b]` in `auto [a, b] = e` and in `auto& [a, b] = e`.
pub(super) fn bound_names(declarator: Node<'_>) -> Option<Node<'_>> {
    let mut next = Some(declarator);
    while let Some(current) = next {
        match current.kind() {
            "structured_binding_declarator" => return Some(current),
            // With its value in brackets, `auto& [a, b](e)`, it's parsed as a function.
            "init_declarator" | "function_declarator" => next = current.child_by_field_id(fields::DECLARATOR.id()),
            "reference_declarator" => next = current.named_child(0),
            _ => return None,
        }
    }
    None
}
