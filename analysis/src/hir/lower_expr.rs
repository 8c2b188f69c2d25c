//! Lowering of expressions, macro expansion included.

use tree_sitter::Node;

use super::literal;
use super::lower::{Lowering, MAX_DEPTH, MAX_EXPANSION, Source, on_a_large_stack, words};
use super::types::*;
use crate::items::MacroItem;
use crate::parse::parse_text;
use crate::span::Span;

/// Words of the built-in variables.
fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "threadIdx" => Builtin::ThreadIdx,
        "blockIdx" => Builtin::BlockIdx,
        "blockDim" => Builtin::BlockDim,
        "gridDim" => Builtin::GridDim,
        "warpSize" => Builtin::WarpSize,
        _ => return None,
    })
}

fn binary_operator(text: &str) -> Option<BinOp> {
    Some(match text {
        "+" => BinOp::Add,
        "-" => BinOp::Sub,
        "*" => BinOp::Mul,
        "/" => BinOp::Div,
        "%" => BinOp::Rem,
        "<<" => BinOp::Shl,
        ">>" => BinOp::Shr,
        "&" | "bitand" => BinOp::BitAnd,
        "|" | "bitor" => BinOp::BitOr,
        "^" | "xor" => BinOp::BitXor,
        "==" => BinOp::Eq,
        "!=" | "not_eq" => BinOp::Ne,
        "<" => BinOp::Lt,
        "<=" => BinOp::Le,
        ">" => BinOp::Gt,
        ">=" => BinOp::Ge,
        _ => return None,
    })
}

impl Lowering<'_> {
    /// Lowers an expression; never fails.
    pub(super) fn expr(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        if self.depth >= MAX_DEPTH {
            self.problem(source.span(node), "nested too deeply");
            return self.unknown(node, source, Vec::new());
        }
        self.depth += 1;
        let id = on_a_large_stack(|| self.expr_inner(node, source));
        self.depth -= 1;
        id
    }

    fn expr_inner(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let span = source.span(node);
        let text = source.of(node);
        if has_syntax_error(node) {
            // What the parser skipped may be anything: `(x = tid, n)` comes out as `x = n`.
            self.problem(span, "a syntax error");
            let parts = self.parts(node, source);
            return self.unknown(node, source, parts);
        }
        let field = |name: &str| node.child_by_field_name(name);
        let kind = match node.kind() {
            "number_literal" => match literal::number(text) {
                Some(literal) => ExprKind::Literal(literal),
                None => return self.unknown(node, source, Vec::new()),
            },
            "char_literal" => match literal::character(text) {
                Some(literal) => ExprKind::Literal(literal),
                None => return self.unknown(node, source, Vec::new()),
            },
            "string_literal" | "raw_string_literal" | "concatenated_string" => ExprKind::Literal(Literal::Str),
            "true" => ExprKind::Literal(Literal::Bool(true)),
            "false" => ExprKind::Literal(Literal::Bool(false)),
            "null" | "nullptr" => ExprKind::Literal(Literal::Null),
            "identifier" | "field_identifier" | "type_identifier" | "primitive_type" | "this" => {
                return self.name(node, source);
            }
            "qualified_identifier" if template_arguments(node).is_none() => {
                let name = without_template_arguments(text);
                ExprKind::Name(Name::Other(name))
            }
            // Callees and kernels don't come here. `a < b && c ? d : e >> 1` is such a node as well.
            "qualified_identifier" | "template_function" => return self.template_or_comparison(node, source),
            "template_method" => match field("name") {
                Some(name) => return self.name(name, source),
                None => return self.unknown(node, source, Vec::new()),
            },
            "parenthesized_expression" => match single_child(node) {
                Some(inner) if !node.has_error() || inner.kind() != "ERROR" => {
                    let inner = self.expr(inner, source);
                    ExprKind::Paren(inner)
                }
                _ => return self.unknown(node, source, Vec::new()),
            },
            "unary_expression" => {
                let Some(argument) = field("argument") else {
                    return self.unknown(node, source, Vec::new());
                };
                let operator = field("operator").map_or("", |o| source.of(o));
                let operand = self.expr(argument, source);
                match operator {
                    "-" => ExprKind::Unary(UnOp::Neg, operand),
                    "+" => ExprKind::Unary(UnOp::Plus, operand),
                    "!" | "not" => ExprKind::Unary(UnOp::Not, operand),
                    "~" | "compl" => ExprKind::Unary(UnOp::BitNot, operand),
                    _ => return self.unknown(node, source, vec![operand]),
                }
            }
            "pointer_expression" => {
                let Some(argument) = field("argument") else {
                    return self.unknown(node, source, Vec::new());
                };
                let address = field("operator").is_some_and(|o| source.of(o) == "&");
                let operand = self.expr(argument, source);
                if address {
                    ExprKind::AddrOf(operand)
                } else {
                    ExprKind::Deref(operand)
                }
            }
            "binary_expression" => {
                let (Some(left), Some(right)) = (field("left"), field("right")) else {
                    return self.unknown(node, source, Vec::new());
                };
                let operator = field("operator").map_or("", |o| source.of(o));
                let lhs = self.expr(left, source);
                let rhs = self.expr(right, source);
                match operator {
                    "&&" | "and" => ExprKind::Logical { and: true, lhs, rhs },
                    "||" | "or" => ExprKind::Logical { and: false, lhs, rhs },
                    _ => match binary_operator(operator) {
                        Some(op) => ExprKind::Binary(op, lhs, rhs),
                        None => return self.unknown(node, source, vec![lhs, rhs]),
                    },
                }
            }
            "assignment_expression" => {
                let (Some(left), Some(right)) = (field("left"), field("right")) else {
                    return self.unknown(node, source, Vec::new());
                };
                let operator = field("operator").map_or("=", |o| source.of(o));
                let place = self.expr(left, source);
                let value = self.expr(right, source);
                let op = match operator.strip_suffix('=') {
                    Some("") => None,
                    Some(op) => match binary_operator(op) {
                        Some(op) => Some(op),
                        None => return self.unknown(node, source, vec![place, value]),
                    },
                    None => return self.unknown(node, source, vec![place, value]),
                };
                ExprKind::Assign { op, place, value }
            }
            "update_expression" => {
                let (Some(argument), Some(operator)) = (field("argument"), field("operator")) else {
                    return self.unknown(node, source, Vec::new());
                };
                let prefix = operator.start_byte() < argument.start_byte();
                let increment = source.of(operator) == "++";
                let place = self.expr(argument, source);
                ExprKind::IncDec {
                    place,
                    increment,
                    prefix,
                }
            }
            "conditional_expression" => {
                let (Some(cond), Some(then), Some(otherwise)) =
                    (field("condition"), field("consequence"), field("alternative"))
                else {
                    return self.unknown(node, source, Vec::new());
                };
                let cond = self.expr(cond, source);
                let then = self.expr(then, source);
                let otherwise = self.expr(otherwise, source);
                ExprKind::Conditional { cond, then, otherwise }
            }
            "comma_expression" => {
                let (Some(left), Some(right)) = (field("left"), field("right")) else {
                    return self.unknown(node, source, Vec::new());
                };
                let left = self.expr(left, source);
                let right = self.expr(right, source);
                ExprKind::Comma(left, right)
            }
            "field_expression" => {
                let (Some(argument), Some(name)) = (field("argument"), field("field")) else {
                    return self.unknown(node, source, Vec::new());
                };
                let arrow = field("operator").is_some_and(|o| source.of(o) == "->");
                let base = self.expr(argument, source);
                let field = without_template_arguments(source.of(name));
                ExprKind::Field { base, field, arrow }
            }
            "subscript_expression" => {
                let indices = field("indices").map(|list| self.list(list, source)).unwrap_or_default();
                let Some(argument) = field("argument") else {
                    return self.unknown(node, source, indices);
                };
                let base = self.expr(argument, source);
                match indices.as_slice() {
                    [index] => ExprKind::Index { base, index: *index },
                    _ => {
                        let mut parts = indices;
                        parts.push(base);
                        return self.unknown(node, source, parts);
                    }
                }
            }
            "cast_expression" => {
                let (Some(ty), Some(value)) = (field("type"), field("value")) else {
                    return self.unknown(node, source, Vec::new());
                };
                let ty = source.of(ty).to_owned();
                let reinterpret = ty.contains('*') || ty.contains('&');
                let operand = self.expr(value, source);
                ExprKind::Cast {
                    ty,
                    operand,
                    reinterpret,
                }
            }
            "compound_literal_expression" => {
                let ty = field("type").map_or("", |t| source.of(t)).to_owned();
                let args = field("value").map(|list| self.list(list, source)).unwrap_or_default();
                ExprKind::Construct { ty, args }
            }
            "initializer_list" => {
                let items = self.list(node, source);
                ExprKind::InitList(items)
            }
            "argument_list" | "subscript_argument_list" => {
                let items = self.list(node, source);
                match items.as_slice() {
                    [one] => ExprKind::Paren(*one),
                    _ => ExprKind::InitList(items),
                }
            }
            "sizeof_expression" | "alignof_expression" => ExprKind::SizeOf,
            "new_expression" => {
                let mut parts = Vec::new();
                for name in ["placement", "declarator", "arguments"] {
                    if let Some(child) = field(name) {
                        parts.extend(self.parts(child, source));
                    }
                }
                ExprKind::New(parts)
            }
            "delete_expression" => {
                let Some(operand) = last_named_child(node) else {
                    return self.unknown(node, source, Vec::new());
                };
                let operand = self.expr(operand, source);
                ExprKind::Delete(operand)
            }
            "lambda_expression" => return self.lambda(node, source),
            "call_expression" => return self.call(node, source),
            _ => {
                let parts = self.parts(node, source);
                return self.unknown(node, source, parts);
            }
        };
        self.add_expr(kind, span, source)
    }

    /// What is parsed as a name with template arguments, and may be comparisons: not understood, but with all that is in it.
    fn template_or_comparison(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let mut parts = Vec::new();
        if let Some(arguments) = template_arguments(node) {
            parts = self.parts(arguments, source);
        }
        self.unknown(node, source, parts)
    }

    /// What is called or launched.
    fn callee(&mut self, function: Node<'_>, source: Source<'_>) -> ExprId {
        match (function.kind(), function.child_by_field_name("name")) {
            ("template_function", Some(name)) => self.name(name, source),
            ("qualified_identifier", _) => {
                let name = without_template_arguments(source.of(function));
                self.add_expr(ExprKind::Name(Name::Other(name)), source.span(function), source)
            }
            _ => self.expr(function, source),
        }
    }

    /// An expression that is not understood; `parts` are the sub-expressions that are.
    pub(super) fn unknown(&mut self, node: Node<'_>, source: Source<'_>, parts: Vec<ExprId>) -> ExprId {
        let mentions = self.mentions(source.of(node));
        let span = source.span(node);
        if node.is_error() || node.is_missing() {
            self.problem(span, "a syntax error");
        }
        self.add_expr(ExprKind::Unknown { parts, mentions }, span, source)
    }

    /// All named children as expressions (of a node that isn't understood itself).
    pub(super) fn parts(&mut self, node: Node<'_>, source: Source<'_>) -> Vec<ExprId> {
        let mut cursor = node.walk();
        let children: Vec<_> = node
            .named_children(&mut cursor)
            .filter(|c| {
                !matches!(
                    c.kind(),
                    "comment" | "type_descriptor" | "template_argument_list" | "statement_identifier" | "preproc_arg"
                )
            })
            .collect();
        children.into_iter().map(|c| self.expr(c, source)).collect()
    }

    /// The expressions of an argument list or an initialiser list.
    pub(super) fn list(&mut self, node: Node<'_>, source: Source<'_>) -> Vec<ExprId> {
        let mut cursor = node.walk();
        let children: Vec<_> = node
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "comment")
            .collect();
        children.into_iter().map(|c| self.expr(c, source)).collect()
    }

    fn name(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let span = source.span(node);
        let text = source.of(node);
        let name = if let Some(binding) = self.lookup(text) {
            Name::Local(binding)
        } else if let Some(builtin) = builtin(text) {
            Name::Builtin(builtin)
        } else {
            match text {
                "NULL" => return self.add_expr(ExprKind::Literal(Literal::Null), span, source),
                _ => {
                    if let Some(item) = self.object_macro(text)
                        && let Some(id) = self.expand(&item.body, span)
                    {
                        return id;
                    }
                    Name::Other(text.to_owned())
                }
            }
        };
        self.add_expr(ExprKind::Name(name), span, source)
    }

    fn object_macro(&self, name: &str) -> Option<MacroItem> {
        let item = self.names.macros.get(name)?;
        (item.params.is_none() && !item.body.is_empty() && !self.names.ambiguous_macros.contains(name))
            .then(|| item.clone())
    }

    fn function_macro(&self, name: &str) -> Option<MacroItem> {
        let item = self.names.macros.get(name)?;
        (item.params.is_some() && !self.names.ambiguous_macros.contains(name)).then(|| item.clone())
    }

    /// Parses a macro's replacement as one expression and lowers it at the place of use.
    fn expand(&mut self, replacement: &str, at: Span) -> Option<ExprId> {
        if self.expansion >= MAX_EXPANSION {
            return None;
        }
        let wrapped = format!("void f() {{ x = {replacement}\n; }}");
        let tree = parse_text(&wrapped, None);
        let root = tree.root_node();
        if root.has_error() {
            return None;
        }
        // translation_unit / function_definition / compound_statement / expression_statement / assignment / right
        let body = root.named_child(0)?.child_by_field_name("body")?;
        if body.named_child_count() != 1 {
            return None;
        }
        let statement = body.named_child(0).filter(|s| s.kind() == "expression_statement")?;
        let assignment = statement
            .named_child(0)
            .filter(|a| a.kind() == "assignment_expression")?;
        let value = assignment.child_by_field_name("right")?;
        // `x = a, b` would parse as `(x = a), b`: not a single assignment then, so the check above refuses it.
        self.expansion += 1;
        let source = Source {
            text: &wrapped,
            shift: 0,
            fixed: Some(at),
        };
        let id = self.expr(value, source);
        self.expansion -= 1;
        Some(id)
    }

    /// Expands `NAME(args)` of a function-like macro whose replacement is an expression.
    fn expand_call(&mut self, item: &MacroItem, arguments: Node<'_>, source: Source<'_>, at: Span) -> Option<ExprId> {
        let params = item.params.as_ref()?;
        if item.body.contains('#') || params.iter().any(|p| p == "...") {
            return None;
        }
        let mut cursor = arguments.walk();
        let args: Vec<&str> = arguments
            .named_children(&mut cursor)
            .filter(|c| c.kind() != "comment")
            .map(|c| source.of(c))
            .collect();
        if args.len() != params.len() || args.iter().any(|a| a.contains("//")) {
            return None;
        }
        let replaced = substitute(&item.body, params, &args);
        self.expand(&replaced, at)
    }

    fn call(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let mut cursor = node.walk();
        let config = node
            .named_children(&mut cursor)
            .find(|c| c.kind() == "kernel_call_syntax");
        if let Some(config) = config {
            return self.launch(node, config, source);
        }
        let span = source.span(node);
        let (Some(function), Some(arguments)) = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        ) else {
            return self.unknown(node, source, Vec::new());
        };
        let callee_text = source.of(function);
        // Casts that look like calls.
        if function.kind() == "template_function"
            && let Some(name) = function.child_by_field_name("name").map(|n| source.of(n))
            && matches!(name, "static_cast" | "const_cast" | "reinterpret_cast" | "dynamic_cast")
        {
            let args = self.list(arguments, source);
            let ty = function
                .child_by_field_name("arguments")
                .map(|a| {
                    source
                        .of(a)
                        .trim_start_matches('<')
                        .trim_end_matches('>')
                        .trim()
                        .to_owned()
                })
                .unwrap_or_default();
            if let [operand] = args.as_slice() {
                let kind = ExprKind::Cast {
                    ty,
                    operand: *operand,
                    reinterpret: name == "reinterpret_cast",
                };
                return self.add_expr(kind, span, source);
            }
            return self.unknown(node, source, args);
        }
        if function.kind() == "primitive_type" {
            let args = self.list(arguments, source);
            let ty = callee_text.to_owned();
            let kind = match args.as_slice() {
                [operand] => ExprKind::Cast {
                    ty,
                    operand: *operand,
                    reinterpret: false,
                },
                _ => ExprKind::Construct { ty, args },
            };
            return self.add_expr(kind, span, source);
        }
        let plain = function.kind() == "identifier";
        if plain && self.lookup(callee_text).is_none() {
            if let Some(item) = self.function_macro(callee_text) {
                if let Some(id) = self.expand_call(&item, arguments, source, span) {
                    return id;
                }
                let parts = self.list(arguments, source);
                let id = self.unknown(node, source, parts);
                // The replacement may name locals, too.
                let more = self.mentions(&item.body);
                if let ExprKind::Unknown { mentions, .. } = &mut self.body.exprs[id.0 as usize].kind {
                    mentions.extend(more);
                    mentions.sort_unstable();
                    mentions.dedup();
                }
                return id;
            }
            let is_type = callee_text == "dim3"
                || self.names.types.contains(callee_text)
                || self.names.aliases.contains_key(callee_text)
                || self.template_types.iter().any(|t| t == callee_text);
            if is_type {
                let args = self.list(arguments, source);
                let ty = callee_text.to_owned();
                return self.add_expr(ExprKind::Construct { ty, args }, span, source);
            }
        }
        let name = match function.kind() {
            "identifier" if self.lookup(callee_text).is_none() => Some(callee_text.to_owned()),
            "qualified_identifier" | "template_function" => Some(without_template_arguments(callee_text)),
            _ => None,
        };
        // `a < b && c > (d)` looks like a call of `a<b && c>`.
        if function.kind() == "template_function"
            && let Some(variable) = function.child_by_field_name("name")
            && self.lookup(source.of(variable)).is_some()
        {
            let mut parts = self.list(arguments, source);
            parts.push(self.template_or_comparison(function, source));
            return self.unknown(node, source, parts);
        }
        let template_args = template_arguments(function).map(|n| source.span(n));
        let callee = self.callee(function, source);
        let args = self.list(arguments, source);
        self.add_expr(
            ExprKind::Call {
                callee,
                name,
                template_args,
                args,
            },
            span,
            source,
        )
    }

    fn launch(&mut self, node: Node<'_>, config: Node<'_>, source: Source<'_>) -> ExprId {
        let span = source.span(node);
        let (Some(function), Some(arguments)) = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        ) else {
            let parts = self.parts(node, source);
            return self.unknown(node, source, parts);
        };
        let mut cursor = node.walk();
        if node.children(&mut cursor).any(|c| c.is_error()) {
            self.problem(span, "a syntax error beside the launch");
        }
        let mut name_node = function;
        while name_node.kind() == "parenthesized_expression"
            && let Some(inner) = single_child(name_node)
        {
            name_node = inner;
        }
        let named = match name_node.kind() {
            "identifier" => self.lookup(source.of(name_node)).is_none(),
            "qualified_identifier" | "template_function" => true,
            _ => false,
        };
        let kernel = named.then(|| without_template_arguments(source.of(name_node)));
        let template_node = if named { template_arguments(name_node) } else { None };
        let template_args = template_node.map(|n| source.span(n));
        let mut name_span = source.span(name_node);
        if let Some(template) = template_args {
            name_span.end = name_span.end.min(template.start);
        }
        let callee = self.callee(function, source);
        let config_ids = self.list(config, source);
        let args = self.list(arguments, source);
        let launch = Launch {
            callee,
            kernel,
            name_span,
            template_args,
            config_span: source.span(config),
            config: config_ids,
            args,
            args_span: source.span(arguments),
            in_lambda: self.lambdas > 0,
        };
        let id = self.add_expr(ExprKind::Launch(Box::new(launch)), span, source);
        self.body.launches.push(id);
        id
    }

    fn lambda(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let mentions = self.mentions(source.of(node));
        self.scopes.push(Default::default());
        self.lambdas += 1;
        if let Some(list) = node
            .child_by_field_name("declarator")
            .and_then(|d| d.child_by_field_name("parameters"))
        {
            self.parameters(list, source);
        }
        let body = node.child_by_field_name("body").map(|b| self.stmt(b, source));
        self.lambdas -= 1;
        self.scopes.pop();
        let span = source.span(node);
        self.add_expr(ExprKind::Lambda { mentions, body }, span, source)
    }

    /// Whether a call or a name used as a statement is a macro that may hide control flow.
    pub(super) fn hides_control_flow(&self, name: &str) -> bool {
        self.names.ambiguous_macros.contains(name)
            || self.names.macros.get(name).is_some_and(|item| {
                words(&item.body).any(|w| {
                    matches!(
                        w,
                        "return" | "break" | "continue" | "goto" | "if" | "for" | "while" | "do" | "switch" | "else"
                    )
                })
            })
    }
}

/// Replaces parameter names in a macro's replacement text by the arguments, in one pass over its words.
fn substitute(body: &str, params: &[String], args: &[&str]) -> String {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let len = if is_word(first) {
            rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, tail) = rest.split_at(len);
        match params.iter().position(|p| p == word) {
            Some(index) => out.push_str(args.get(index).copied().unwrap_or("")),
            None => out.push_str(word),
        }
        rest = tail;
    }
    out
}

/// The parser skipped or invented something directly inside this node.
pub(super) fn has_syntax_error(node: Node<'_>) -> bool {
    if !node.has_error() {
        return false;
    }
    let mut cursor = node.walk();
    node.is_error() || node.children(&mut cursor).any(|c| c.is_error() || c.is_missing())
}

fn single_child(node: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    let mut children = node.named_children(&mut cursor).filter(|c| c.kind() != "comment");
    let first = children.next();
    if children.next().is_some() { None } else { first }
}

fn last_named_child(node: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(|c| c.kind() != "comment")
        .last()
}

/// The template arguments of a callee: `f<T>`, `ns::f<T>`.
fn template_arguments(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "template_function" => node.child_by_field_name("arguments"),
        "qualified_identifier" => node.child_by_field_name("name").and_then(template_arguments),
        _ => None,
    }
}

/// `ns::child<N, T>` → `ns::child`; white space removed.
pub(crate) fn without_template_arguments(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0u32;
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 && !c.is_whitespace() => out.push(c),
            _ => {}
        }
    }
    out
}
