//! Lowering of expressions, macro expansion included.

use crate::base::fields;
use tree_sitter::Node;

use super::literal;
use super::lower::{Lowering, MAX_DEPTH, Source, on_a_large_stack};
use super::types::*;
use crate::base::words::words;
use crate::hir::names::without_template_arguments;

/// Words of the built-in variables.
pub(super) fn builtin(name: &str) -> Option<Builtin> {
    Some(match name {
        "threadIdx" => Builtin::ThreadIdx,
        "blockIdx" => Builtin::BlockIdx,
        "blockDim" => Builtin::BlockDim,
        "gridDim" => Builtin::GridDim,
        "warpSize" => Builtin::WarpSize,
        _ => return None,
    })
}

pub(super) fn binary_operator(text: &str) -> Option<BinOp> {
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
        if let Some(id) = self.cast_in_front(node, source) {
            return id;
        }
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
            "template_method" => match node.child_by_field_name("name") {
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
            "unary_expression" | "pointer_expression" | "binary_expression" | "cast_expression" => {
                return self.operation(node, source);
            }
            "assignment_expression" | "update_expression" => return self.assignment(node, source),
            "conditional_expression" | "comma_expression" | "field_expression" | "subscript_expression" => {
                return self.selection(node, source);
            }
            "compound_literal_expression"
            | "initializer_list"
            | "argument_list"
            | "subscript_argument_list"
            | "new_expression"
            | "delete_expression" => return self.object(node, source),
            "sizeof_expression" | "alignof_expression" => ExprKind::SizeOf,
            "lambda_expression" => return self.lambda(node, source),
            "call_expression" => return self.call(node, source),
            "user_defined_literal" => return self.user_defined_literal(node, source),
            _ => {
                let parts = self.parts(node, source);
                return self.unknown(node, source, parts);
            }
        };
        self.add_expr(kind, node, source)
    }

    /// An operation on values: what may be a chain of casts is looked at as one.
    fn operation(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let field = |name: &str| node.child_by_field_name(name);
        let kind = match node.kind() {
            "unary_expression" => {
                let Some(argument) = field("argument") else {
                    return self.unknown(node, source, Vec::new());
                };
                if let Some(id) = self.chain_with_casts(node, source) {
                    return id;
                }
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
                if let Some(id) = self.chain_with_casts(node, source) {
                    return id;
                }
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
                if let Some(id) = self.chain_with_casts(node, source) {
                    return id;
                }
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
            "cast_expression" => {
                let (Some(ty), Some(value)) = (field("type"), field("value")) else {
                    return self.unknown(node, source, Vec::new());
                };
                if let Some(id) = self.chain_with_casts(node, source) {
                    return id;
                }
                let ty = source.of(ty).to_owned();
                let reinterpret = ty.contains('*') || ty.contains('&');
                let operand = self.expr(value, source);
                ExprKind::Cast {
                    ty,
                    operand,
                    reinterpret,
                }
            }
            _ => {
                let parts = self.parts(node, source);
                return self.unknown(node, source, parts);
            }
        };
        self.add_expr(kind, node, source)
    }

    /// What changes a place.
    fn assignment(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let field = |name: &str| node.child_by_field_name(name);
        let kind = match node.kind() {
            "assignment_expression" => {
                let (Some(left), Some(right)) = (field("left"), field("right")) else {
                    return self.unknown(node, source, Vec::new());
                };
                let written = field("operator");
                let operator = written.map_or("=", |o| source.of(o));
                let place = self.expr(left, source);
                let value = self.expr(right, source);
                // `Ref(x) = v`: where that is no declaration, what it changes is what a type that is a reference refers to.
                if self.converts(left, source) {
                    return self.unknown(node, source, vec![place, value]);
                }
                // `a < b && c >= d`, read as an assignment to `a<b && c>`: nobody writes that without a space.
                let is_comparison = written.is_some_and(|o| o.start_byte() == left.end_byte());
                if is_comparison && source.of(left).ends_with('>') {
                    return self.unknown(node, source, vec![place, value]);
                }
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
                if self.converts(argument, source) {
                    return self.unknown(node, source, vec![place]);
                }
                ExprKind::IncDec {
                    place,
                    increment,
                    prefix,
                }
            }
            _ => {
                let parts = self.parts(node, source);
                return self.unknown(node, source, parts);
            }
        };
        self.add_expr(kind, node, source)
    }

    /// What gives one of several values: of two, of an object's, of an array's.
    fn selection(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let field = |name: &str| node.child_by_field_name(name);
        let kind = match node.kind() {
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
                let operator = field("operator").map_or("", |o| source.of(o));
                let arrow = operator == "->";
                let base = self.expr(argument, source);
                // A pointer to a member says which: `object.*member`.
                if operator.ends_with('*') {
                    return self.unknown(node, source, vec![base]);
                }
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
            _ => {
                let parts = self.parts(node, source);
                return self.unknown(node, source, parts);
            }
        };
        self.add_expr(kind, node, source)
    }

    /// What makes an object of values, or ends one.
    fn object(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let field = |name: &str| node.child_by_field_name(name);
        let kind = match node.kind() {
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
            _ => {
                let parts = self.parts(node, source);
                return self.unknown(node, source, parts);
            }
        };
        self.add_expr(kind, node, source)
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
        match (function.kind(), function.child_by_field_id(fields::NAME.id())) {
            ("template_function", Some(name)) => self.name(name, source),
            ("qualified_identifier", _) => {
                let name = without_template_arguments(source.of(function));
                self.add_expr(ExprKind::Name(Name::Other(name)), function, source)
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
        self.add_expr(ExprKind::Unknown { parts, mentions }, node, source)
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
        let text = source.of(node);
        let name = if let Some(binding) = self.lookup(text) {
            Name::Local(binding)
        } else if let Some(builtin) = builtin(text) {
            Name::Builtin(builtin)
        } else {
            match text {
                "NULL" => return self.add_expr(ExprKind::Literal(Literal::Null), node, source),
                _ => Name::Other(text.to_owned()),
            }
        };
        self.add_expr(ExprKind::Name(name), node, source)
    }

    /// `1_km`: a call of the literal operator.
    fn user_defined_literal(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let mut cursor = node.walk();
        let parts: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
        let [literal, suffix] = parts.as_slice() else {
            let parts = self.parts(node, source);
            return self.unknown(node, source, parts);
        };
        let literal = self.expr(*literal, source);
        let name = format!("operator\"\"{}", source.of(*suffix));
        let callee = self.add_expr(ExprKind::Name(Name::Other(name.clone())), *suffix, source);
        let call = ExprKind::Call {
            callee,
            name: Some(name),
            template_args: None,
            args: vec![literal],
        };
        self.add_expr(call, node, source)
    }

    fn call(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let mut cursor = node.walk();
        let config = node
            .named_children(&mut cursor)
            .find(|c| c.kind() == "kernel_call_syntax");
        if let Some(config) = config {
            return self.launch(node, config, source);
        }
        let (Some(function), Some(arguments)) = (
            node.child_by_field_id(fields::FUNCTION.id()),
            node.child_by_field_id(fields::ARGUMENTS.id()),
        ) else {
            return self.unknown(node, source, Vec::new());
        };
        if let Some(id) = self.cast_like_a_call(node, source) {
            return id;
        }
        let callee_text = source.of(function);
        // Casts that look like calls.
        if function.kind() == "template_function"
            && let Some(name) = function.child_by_field_id(fields::NAME.id()).map(|n| source.of(n))
            && matches!(name, "static_cast" | "const_cast" | "reinterpret_cast" | "dynamic_cast")
        {
            let args = self.list(arguments, source);
            let ty = function
                .child_by_field_id(fields::ARGUMENTS.id())
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
                return self.add_expr(kind, node, source);
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
            return self.add_expr(kind, node, source);
        }
        let plain = function.kind() == "identifier";
        if plain && self.lookup(callee_text).is_none() {
            let names = self.names;
            // A use of a macro that could not be expanded. What an expansion calls is no macro any more.
            if let Some(item) = names.macros.get(callee_text).filter(|item| item.params.is_some())
                && !source.is_expansion(function)
            {
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
                return self.add_expr(ExprKind::Construct { ty, args }, node, source);
            }
        }
        let name = match function.kind() {
            "identifier" if self.lookup(callee_text).is_none() => Some(callee_text.to_owned()),
            "qualified_identifier" | "template_function" => Some(without_template_arguments(callee_text)),
            _ => None,
        };
        // `a < b && c > (d)` looks like a call of `a<b && c>`.
        if function.kind() == "template_function"
            && let Some(variable) = function.child_by_field_id(fields::NAME.id())
            && self.lookup(source.of(variable)).is_some()
        {
            let mut parts = self.list(arguments, source);
            parts.push(self.template_or_comparison(function, source));
            return self.unknown(node, source, parts);
        }
        let template_args = template_arguments(function);
        // What is passed by value according to the function's text may be passed by reference: nothing is known of such a call.
        let by_reference = matches!(function.kind(), "template_function" | "qualified_identifier")
            && self.names_a_reference_somewhere(callee_text);
        let name = name.filter(|_| !by_reference);
        let template_args = template_args.map(|n| source.span(n));
        let callee = self.callee(function, source);
        let args = self.list(arguments, source);
        self.add_expr(
            ExprKind::Call {
                callee,
                name,
                template_args,
                args,
            },
            node,
            source,
        )
    }

    fn launch(&mut self, node: Node<'_>, config: Node<'_>, source: Source<'_>) -> ExprId {
        let span = source.span(node);
        let (Some(function), Some(arguments)) = (
            node.child_by_field_id(fields::FUNCTION.id()),
            node.child_by_field_id(fields::ARGUMENTS.id()),
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
        let whole = [config, arguments].iter().all(|list| {
            let mut cursor = list.walk();
            source.is_whole(*list) && list.named_children(&mut cursor).all(|c| source.is_whole(c))
        }) && statement_around(node).is_none_or(|statement| source.is_whole(statement));
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
        let id = self.add_expr(ExprKind::Launch(Box::new(launch)), node, source);
        // Parts of the launch that come out of a macro together can't be told apart in the source.
        self.body.exprs[id.0 as usize].from_macro |= !whole;
        self.body.launches.push(id);
        id
    }

    fn lambda(&mut self, node: Node<'_>, source: Source<'_>) -> ExprId {
        let mentions = self.mentions(source.of(node));
        self.scopes.push(Default::default());
        self.lambdas += 1;
        let list = node
            .child_by_field_id(fields::DECLARATOR.id())
            .and_then(|d| d.child_by_field_id(fields::PARAMETERS.id()));
        let params = list.map(|list| self.parameters(list, source)).unwrap_or_default();
        let body = node.child_by_field_id(fields::BODY.id()).map(|b| self.stmt(b, source));
        self.lambdas -= 1;
        self.scopes.pop();
        self.add_expr(ExprKind::Lambda { mentions, params, body }, node, source)
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

/// The parser skipped or invented something directly inside this node.
pub(super) fn has_syntax_error(node: Node<'_>) -> bool {
    if !node.has_error() {
        return false;
    }
    let mut cursor = node.walk();
    node.is_error() || node.children(&mut cursor).any(|c| c.is_error() || c.is_missing())
}

/// The statement that an expression is part of.
fn statement_around(node: Node<'_>) -> Option<Node<'_>> {
    let mut next = node.parent();
    while let Some(around) = next {
        if around.kind().ends_with("_statement") || around.kind() == "declaration" {
            return Some(around);
        }
        next = around.parent();
    }
    None
}

pub(super) fn single_child(node: Node<'_>) -> Option<Node<'_>> {
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
        "template_function" => node.child_by_field_id(fields::ARGUMENTS.id()),
        "qualified_identifier" => node.child_by_field_id(fields::NAME.id()).and_then(template_arguments),
        _ => None,
    }
}
