//! Casts to a named type that the parser, which doesn't know what the name means, takes for something else: `(T)*p` for a
//! multiplication, `(T)&x` for a bitwise and, `(T)-x` for a subtraction, `(T)(x)` for a call.

use std::collections::HashSet;

use tree_sitter::Node;

use super::literal;
use super::lower::{Lowering, MAX_DEPTH, Source};
use super::lower_expr::{binary_operator, builtin, has_syntax_error, single_child};
use super::types::*;
use crate::base::fields;
use crate::hir::included::included_files;
use crate::hir::items::items;
use crate::hir::library::constant;
use crate::hir::library::vector_fields;
use crate::hir::names::unqualified;
use crate::hir::names::without_template_arguments;
use crate::hir::visible::visible;

/// What a name in parentheses may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sense {
    Type,
    Value,
    /// Nothing in sight has that name, or both a type and a value have.
    Either,
}

/// An operand in a chain of binary operators.
struct Operand<'t> {
    first: Node<'t>,
    /// The parenthesis in front of the name.
    open: Option<Node<'t>>,
    last: Node<'t>,
    /// It is nothing but this name in parentheses, behind the prefixes.
    name: Option<Node<'t>>,
    /// What stands in front of the name, the outermost first: unary operators and casts. Only where the parser took the name for a
    /// type.
    prefixes: Vec<Node<'t>>,
}

/// The operand as far as it is lowered.
struct Unit<'t> {
    first: Node<'t>,
    last: Node<'t>,
    /// `None` for a parenthesised name that may be a type: only an expression when it isn't one.
    expr: Option<ExprId>,
}

impl Lowering<'_> {
    /// What the name that alone stands in these parentheses is; `None` where it isn't alone.
    pub(super) fn sense_of_parenthesised(&self, node: Node<'_>, source: Source<'_>) -> Option<Sense> {
        let name = parenthesised_name(node)?;
        Some(self.sense_of(name, source))
    }

    fn sense_of(&self, name: Node<'_>, source: Source<'_>) -> Sense {
        let composed = !matches!(name.kind(), "identifier" | "type_identifier");
        self.sense(source.of(name), composed)
    }

    /// What a name (possibly qualified, possibly with template arguments) is.
    fn sense(&self, text: &str, composed: bool) -> Sense {
        let name = without_template_arguments(text);
        let last = unqualified(&name);
        let here = self.local_types.contains_key(last);
        if !composed && self.lookup(last).is_some() {
            return if here { Sense::Either } else { Sense::Value };
        }
        if composed && text.contains('<') && self.lookup(last).is_some() {
            return Sense::Either;
        }
        let is_template_type = |name: &str| self.template_types.iter().any(|t| t == name);
        let mut segments = name.split("::");
        // What a template's type parameter has is a value unless `typename` says otherwise.
        if name.contains("::") && segments.next().is_some_and(is_template_type) {
            return Sense::Value;
        }
        if !composed && is_template_type(last) {
            return Sense::Type;
        }
        if self.names.macros.contains_key(last) || self.names.ambiguous_macros.contains(last) {
            let number = self.names.constant_macros.contains(last);
            return if number { Sense::Value } else { Sense::Either };
        }
        let seen = visible(self.db, self.file);
        let ty = here || self.names.types.contains(last) || self.names.aliases.contains_key(last);
        let value = seen.globals.contains_key(last)
            || seen.enumerators.contains_key(last)
            || self.template_names.iter().any(|t| t == last && !is_template_type(t))
            || (self.member || composed) && self.is_member_variable(last);
        match (ty, value) {
            (true, false) => Sense::Type,
            (false, true) => Sense::Value,
            (true, true) => Sense::Either,
            (false, false) if seen.functions.contains_key(last) => Sense::Either,
            (false, false) if builtin(last).is_some() || last == "NULL" || constant(last) => Sense::Value,
            (false, false) if vector_fields(last).is_some() || last == "dim3" || literal::is_number_type(last) => {
                Sense::Type
            }
            (false, false) => Sense::Either,
        }
    }

    /// Some class in sight has a variable of that name.
    fn is_member_variable(&self, name: &str) -> bool {
        included_files(self.db, self.file)
            .iter()
            .flat_map(|f| &items(self.db, *f).types)
            .any(|t| {
                t.constants.iter().any(|(_, constant)| constant == name)
                    || t.fields
                        .iter()
                        .any(|(_, d)| crate::hir::declarator::declared_name(d) == name)
            })
    }

    /// The cast that a type name in parentheses in front of something makes.
    pub(super) fn named_cast(&self, name: Node<'_>, source: Source<'_>, operand: ExprId) -> ExprKind {
        let ty = source.of(name).to_owned();
        let mut name = without_template_arguments(&ty);
        let mut seen = HashSet::new();
        let mut reinterpret = false;
        while let Some(target) = self.names.aliases.get(unqualified(&name))
            && seen.insert(name.clone())
        {
            // A `(declarator)` is mostly a pointer.
            reinterpret |= target.contains(['*', '&', '(']);
            name.clone_from(target);
        }
        let last = unqualified(&name);
        // A class is made from the operand, which may run code.
        if self.names.types.contains(last) || self.local_types.get(last) == Some(&true) {
            let args = vec![operand];
            return ExprKind::Construct { ty, args };
        }
        ExprKind::Cast {
            ty,
            operand,
            reinterpret,
        }
    }

    /// `(T)(x)`, which the parser takes for a call of `T`.
    pub(super) fn cast_like_a_call(&mut self, call: Node<'_>, source: Source<'_>) -> Option<ExprId> {
        let name = self.type_called(call, source)?;
        let arguments = call.child_by_field_id(fields::ARGUMENTS.id())?;
        if self.unwrapped.contains(&call.id()) {
            return Some(self.expr(arguments, source));
        }
        let kind = match single_child(arguments) {
            Some(_) if !has_syntax_error(arguments) => {
                let operand = self.expr(arguments, source);
                self.named_cast(name, source, operand)
            }
            // `(T)(a, b)`
            _ => {
                let parts = self.list(arguments, source);
                return Some(self.unknown(call, source, parts));
            }
        };
        Some(self.add_expr(kind, call, source))
    }

    /// `(T)(x).y`, `(T)(p)[i]`, `(T)(f)(y)`: what follows the second parentheses is done before the cast.
    pub(super) fn cast_in_front(&mut self, node: Node<'_>, source: Source<'_>) -> Option<ExprId> {
        let mut inner = node;
        let call = loop {
            inner = match inner.kind() {
                "field_expression" | "subscript_expression" => inner.child_by_field_id(fields::ARGUMENT.id())?,
                "call_expression" => inner.child_by_field_id(fields::FUNCTION.id())?,
                "update_expression" => inner
                    .child_by_field_id(fields::ARGUMENT.id())
                    .filter(|argument| argument.start_byte() == inner.start_byte())?,
                _ => return None,
            };
            if self.type_called(inner, source).is_some() {
                break inner;
            }
        };
        let name = self.type_called(call, source)?;
        if !self.unwrapped.insert(call.id()) {
            return None;
        }
        let operand = self.expr(node, source);
        self.unwrapped.remove(&call.id());
        let kind = self.named_cast(name, source, operand);
        Some(self.add_expr(kind, node, source))
    }

    /// The name of the type that alone stands in parentheses where the callee of a call does.
    fn type_called<'t>(&self, call: Node<'t>, source: Source<'_>) -> Option<Node<'t>> {
        let function = call
            .child_by_field_id(fields::FUNCTION.id())
            .filter(|_| call.kind() == "call_expression")?;
        parenthesised_name(function).filter(|name| self.sense_of(*name, source) == Sense::Type)
    }

    /// A chain of binary operators in which a name in parentheses may be a type, and also what the parser took for a cast to a
    /// named type; `None` where there is neither and the parser is right.
    pub(super) fn chain_with_casts(&mut self, node: Node<'_>, source: Source<'_>) -> Option<ExprId> {
        let (mut operands, mut operators) = (Vec::new(), Vec::new());
        let split = self.flatten(node, source, &mut operands, &mut operators);
        let operator = |i: usize| operators.get(i).map_or("", |o: &Node<'_>| source.of(*o));
        // What stands in parentheses in front of an operator that may be a unary one.
        let mut senses = Vec::new();
        let mut guess = false;
        for (i, operand) in operands.iter().enumerate() {
            let unary = matches!(operator(i), "*" | "&" | "bitand" | "+" | "-");
            let sense = operand
                .name
                .filter(|_| unary && operand.prefixes.is_empty())
                .map(|name| self.sense_of(name, source));
            senses.push(sense.filter(|sense| *sense != Sense::Value));
            guess |= operand.name.is_none()
                && (self.hides_operator(operand.first, source) || unary && self.hides_name(operand.first, source));
        }
        if !split && !guess && senses.iter().all(Option::is_none) {
            return None;
        }
        if operators.is_empty() {
            let parts = self.parts(node, source);
            return Some(self.unknown(node, source, parts));
        }
        guess |= operands
            .iter()
            .any(|operand| operand.name.is_none() && !is_operand(operand.first))
            || operands.len() != operators.len() + 1;
        if operands.len() + self.depth as usize > MAX_DEPTH as usize {
            self.problem(source.span(node), "nested too deeply");
            guess = true;
        }
        let mut units: Vec<Unit<'_>> = Vec::new();
        for (operand, sense) in operands.iter().zip(&senses) {
            units.push(Unit {
                first: operand.first,
                last: operand.last,
                expr: match sense {
                    None => Some(self.operand(operand, source)),
                    Some(_) => None,
                },
            });
        }
        // Names of which nothing is in sight: what follows may say what they are.
        let mut casts: Vec<bool> = Vec::new();
        for (i, sense) in senses.iter().enumerate() {
            let next = units.get(i + 1).and_then(|unit| unit.expr);
            let is_cast = match (sense, operator(i), next) {
                (None, ..) => Some(false),
                (Some(Sense::Type), ..) => Some(true),
                (_, _, None) => None,
                // Either reading has the operand's effects and a value that isn't known.
                (_, "+" | "-", _) => Some(false),
                (_, "*", Some(next)) => self.is_number(next).map(|number| !number),
                // An address can't be an operand of a bitwise and.
                (_, _, Some(next)) if self.is_number(next) == Some(false) => Some(true),
                (_, _, Some(next)) => (!self.is_place(next)).then_some(false),
            };
            guess |= is_cast.is_none();
            casts.push(is_cast == Some(true));
        }
        if guess {
            return Some(self.either_reading(node, source, &units, &operators));
        }
        for (i, operand) in operands.iter().enumerate().rev() {
            if units[i].expr.is_some() {
                continue;
            }
            let Some(name) = operand.name.filter(|_| casts[i] && i + 1 < units.len()) else {
                units[i].expr = Some(self.operand(operand, source));
                continue;
            };
            let next = units.remove(i + 1);
            let operator = operators.remove(i);
            let Some(inner) = next.expr else { continue };
            let kind = match source.of(operator) {
                "*" => ExprKind::Deref(inner),
                "+" => ExprKind::Unary(UnOp::Plus, inner),
                "-" => ExprKind::Unary(UnOp::Neg, inner),
                _ => ExprKind::AddrOf(inner),
            };
            let inner = self.add_expr_between(kind, operator, next.last, source);
            let kind = self.named_cast(name, source, inner);
            units[i].expr = Some(self.add_expr_between(kind, operand.first, next.last, source));
            units[i].last = next.last;
        }
        let joined = self.climb(units, &operators, source);
        Some(joined.unwrap_or_else(|| self.unknown(node, source, Vec::new())))
    }

    fn operand(&mut self, operand: &Operand<'_>, source: Source<'_>) -> ExprId {
        let (Some(name), Some(first)) = (operand.name, operand.open) else {
            return self.expr(operand.first, source);
        };
        let inner = self.expr(name, source);
        let mut inner = self.add_expr_between(ExprKind::Paren(inner), first, operand.last, source);
        for prefix in operand.prefixes.iter().rev() {
            let operator = prefix
                .child_by_field_id(fields::OPERATOR.id())
                .map_or("", |o| source.of(o));
            let kind = match (prefix.kind(), operator) {
                ("cast_expression", _) => {
                    let ty = prefix
                        .child_by_field_id(fields::TYPE.id())
                        .map_or("", |ty| source.of(ty));
                    ExprKind::Cast {
                        ty: ty.to_owned(),
                        operand: inner,
                        reinterpret: ty.contains(['*', '&']),
                    }
                }
                ("pointer_expression", "*") => ExprKind::Deref(inner),
                ("pointer_expression", _) => ExprKind::AddrOf(inner),
                (_, "-") => ExprKind::Unary(UnOp::Neg, inner),
                (_, "+") => ExprKind::Unary(UnOp::Plus, inner),
                (_, "!" | "not") => ExprKind::Unary(UnOp::Not, inner),
                (_, "~" | "compl") => ExprKind::Unary(UnOp::BitNot, inner),
                _ => ExprKind::Unknown {
                    parts: vec![inner],
                    mentions: self.mentions(source.of(name)),
                },
            };
            inner = self.add_expr_between(kind, *prefix, operand.last, source);
        }
        inner
    }

    /// The operands and operators of a chain of binary operators, from left to right. Whether there is something among them that
    /// the parser took for a cast.
    fn flatten<'t>(
        &self,
        node: Node<'t>,
        source: Source<'_>,
        operands: &mut Vec<Operand<'t>>,
        operators: &mut Vec<Node<'t>>,
    ) -> bool {
        enum Item<'t> {
            Operand(Operand<'t>),
            Operator(Node<'t>),
            Node(Node<'t>),
        }
        let mut split = false;
        // From the right: left operands nest deeply.
        let mut pending = vec![Item::Node(node)];
        while let Some(item) = pending.pop() {
            let node = match item {
                Item::Operand(operand) => {
                    operands.push(operand);
                    continue;
                }
                Item::Operator(operator) => {
                    operators.push(operator);
                    continue;
                }
                Item::Node(node) => node,
            };
            let parts = (
                node.child_by_field_id(fields::LEFT.id()),
                node.child_by_field_id(fields::OPERATOR.id()),
                node.child_by_field_id(fields::RIGHT.id()),
            );
            if let (Some(left), Some(operator), Some(right)) = parts
                && node.kind() == "binary_expression"
                && !has_syntax_error(node)
                && binary_operator(source.of(operator)).is_some()
            {
                pending.extend([Item::Node(left), Item::Operator(operator), Item::Node(right)]);
            } else if let Some((prefixes, cast)) = self.misread_cast(node, source) {
                split = true;
                let operand = Operand {
                    first: prefixes.first().copied().unwrap_or(cast.open),
                    open: Some(cast.open),
                    last: cast.close,
                    name: Some(cast.name),
                    prefixes,
                };
                pending.extend([
                    Item::Operand(operand),
                    Item::Operator(cast.operator),
                    Item::Node(cast.argument),
                ]);
            } else {
                operands.push(Operand {
                    first: node,
                    open: None,
                    last: node,
                    name: parenthesised_name(node),
                    prefixes: Vec::new(),
                });
            }
        }
        operands.reverse();
        operators.reverse();
        split
    }

    /// What the parser took for a cast to a named type: certain not to be one where something stands in front of it.
    fn misread_cast<'t>(&self, node: Node<'t>, source: Source<'_>) -> Option<(Vec<Node<'t>>, CastParts<'t>)> {
        let mut prefixes = Vec::new();
        let mut inner = node;
        loop {
            if let Some(cast) = cast_parts(inner)
                && (prefixes.is_empty() || self.sense_of(cast.name, source) == Sense::Value)
            {
                return Some((prefixes, cast));
            }
            if !matches!(
                inner.kind(),
                "unary_expression" | "pointer_expression" | "cast_expression"
            ) || has_syntax_error(inner)
            {
                return None;
            }
            prefixes.push(inner);
            inner = operand_behind(inner)?;
        }
    }

    /// Joins operands by the operators' precedence.
    fn climb(&mut self, units: Vec<Unit<'_>>, operators: &[Node<'_>], source: Source<'_>) -> Option<ExprId> {
        let operators: Vec<BinOp> = operators
            .iter()
            .filter_map(|o| binary_operator(source.of(*o)))
            .collect();
        let mut done: Vec<(Unit<'_>, Option<BinOp>)> = Vec::new();
        let mut result = None;
        for (i, mut unit) in units.into_iter().enumerate() {
            let next = operators.get(i).copied();
            while let Some((_, Some(before))) = done.last()
                && next.is_none_or(|next| precedence(*before) >= precedence(next))
                && let Some((left, Some(op))) = done.pop()
            {
                if let (Some(lhs), Some(rhs)) = (left.expr, unit.expr) {
                    let id = self.add_expr_between(ExprKind::Binary(op, lhs, rhs), left.first, unit.last, source);
                    unit.expr = Some(id);
                }
                unit.first = left.first;
            }
            result = unit.expr;
            done.push((unit, next));
        }
        result
    }

    /// A chain that can be read in two ways: all that either does.
    fn either_reading(
        &mut self,
        node: Node<'_>,
        source: Source<'_>,
        units: &[Unit<'_>],
        operators: &[Node<'_>],
    ) -> ExprId {
        let mut parts = Vec::new();
        for (i, unit) in units.iter().enumerate() {
            let Some(operand) = unit.expr else { continue };
            let before = i.checked_sub(1).and_then(|i| operators.get(i));
            let kind = match before.map_or("", |o| source.of(*o)) {
                "*" if self.is_number(operand) != Some(true) => ExprKind::Deref(operand),
                "&" | "bitand" if self.is_place(operand) => ExprKind::AddrOf(operand),
                _ => {
                    parts.push(operand);
                    continue;
                }
            };
            let start = before.copied().unwrap_or(unit.first);
            parts.push(self.add_expr_between(kind, start, unit.last, source));
        }
        self.unknown(node, source, parts)
    }

    /// An operand whose operator the parser took for part of a cast, in a place from which it isn't taken apart.
    fn hides_operator(&self, operand: Node<'_>, source: Source<'_>) -> bool {
        let mut inner = Some(operand);
        while let Some(node) = inner {
            if cast_parts(node).is_some_and(|cast| self.sense_of(cast.name, source) == Sense::Value) {
                return true;
            }
            inner = operand_behind(node);
        }
        false
    }

    /// An operand that ends in a name in parentheses that isn't that of a value: `!(T)` of `!(T)*p`.
    fn hides_name(&self, operand: Node<'_>, source: Source<'_>) -> bool {
        let mut inner = operand;
        loop {
            // `(A)(T)` of `(A)(T)*p`
            if inner.kind() == "call_expression" {
                let is_cast = inner
                    .child_by_field_id(fields::FUNCTION.id())
                    .and_then(|f| self.sense_of_parenthesised(f, source))
                    .is_some_and(|sense| sense != Sense::Value);
                let arguments = inner.child_by_field_id(fields::ARGUMENTS.id()).filter(|_| is_cast);
                return arguments
                    .and_then(single_child)
                    .filter(|name| is_name(*name))
                    .is_some_and(|name| self.sense_of(name, source) != Sense::Value);
            }
            let Some(next) = operand_behind(inner) else {
                return false;
            };
            if let Some(sense) = self.sense_of_parenthesised(next, source) {
                return sense != Sense::Value;
            }
            inner = next;
        }
    }

    /// Certain to be a number, or certain to be a pointer.
    fn is_number(&self, e: ExprId) -> Option<bool> {
        let mut e = e;
        loop {
            e = match &self.body.expr(e).kind {
                ExprKind::Literal(Literal::Int(_) | Literal::Float(_) | Literal::Bool(_))
                | ExprKind::SizeOf
                | ExprKind::Logical { .. } => return Some(true),
                ExprKind::Literal(Literal::Str) | ExprKind::AddrOf(_) => return Some(false),
                ExprKind::Name(Name::Builtin(Builtin::WarpSize)) => return Some(true),
                ExprKind::Name(Name::Local(b)) => {
                    let ty = &self.body.binding(*b).ty;
                    return match ty.complex {
                        true => None,
                        false if ty.is_pointer_like() => Some(false),
                        false => literal::is_number_type(&ty.base).then_some(true),
                    };
                }
                ExprKind::Field { base, arrow: false, .. } => {
                    let builtin = matches!(&self.body.expr(*base).kind,
                        ExprKind::Name(Name::Builtin(b)) if *b != Builtin::WarpSize);
                    return builtin.then_some(true);
                }
                ExprKind::Index { base, .. } => match &self.body.expr(*base).kind {
                    ExprKind::Name(Name::Local(b)) => {
                        let ty = &self.body.binding(*b).ty;
                        let one = usize::from(ty.pointers) + ty.array.len() == 1 && !ty.complex;
                        return (one && literal::is_number_type(&ty.base)).then_some(true);
                    }
                    _ => return None,
                },
                ExprKind::Cast { ty, .. } => return literal::is_number_type(ty).then_some(true),
                ExprKind::Binary(op, a, b) => {
                    return match (self.is_number(*a), self.is_number(*b)) {
                        (Some(true), Some(true)) => Some(true),
                        (Some(false), Some(true)) if matches!(op, BinOp::Add | BinOp::Sub) => Some(false),
                        (Some(true), Some(false)) if *op == BinOp::Add => Some(false),
                        _ => None,
                    };
                }
                ExprKind::Paren(inner) | ExprKind::IncDec { place: inner, .. } => *inner,
                ExprKind::Unary(UnOp::Neg | UnOp::Plus | UnOp::BitNot, inner) => *inner,
                _ => return None,
            };
        }
    }

    /// May have an address.
    fn is_place(&self, e: ExprId) -> bool {
        match &self.body.expr(self.body.strip_parens(e)).kind {
            ExprKind::Literal(literal) => *literal == Literal::Str,
            ExprKind::SizeOf | ExprKind::Unary(..) | ExprKind::Logical { .. } | ExprKind::Name(Name::Builtin(_)) => {
                false
            }
            ExprKind::Binary(_, a, b) => !(self.is_number(*a) == Some(true) && self.is_number(*b) == Some(true)),
            // The built-in variables' address can't be taken.
            ExprKind::Field { base, .. } => !matches!(self.body.expr(*base).kind, ExprKind::Name(Name::Builtin(_))),
            _ => true,
        }
    }
}

/// What the parser takes for a cast of what a unary operator makes.
struct CastParts<'t> {
    open: Node<'t>,
    name: Node<'t>,
    close: Node<'t>,
    operator: Node<'t>,
    argument: Node<'t>,
}

/// A cast to a type that is nothing but a name, of `*x`, `&x`, `+x` or `-x`: the same text as a binary operator's.
fn cast_parts(node: Node<'_>) -> Option<CastParts<'_>> {
    if node.kind() != "cast_expression" || has_syntax_error(node) {
        return None;
    }
    let name = single_child(node.child_by_field_id(fields::TYPE.id())?).filter(|name| is_name(*name))?;
    let value = node.child_by_field_id(fields::VALUE.id())?;
    let operator = value.child_by_field_id(fields::OPERATOR.id())?;
    if !matches!(value.kind(), "unary_expression" | "pointer_expression")
        || !matches!(operator.kind(), "*" | "&" | "bitand" | "+" | "-")
        || has_syntax_error(value)
    {
        return None;
    }
    let mut cursor = node.walk();
    let open = node.children(&mut cursor).find(|c| c.kind() == "(")?;
    let close = node.children(&mut cursor).find(|c| c.kind() == ")")?;
    let argument = value.child_by_field_id(fields::ARGUMENT.id())?;
    Some(CastParts {
        open,
        name,
        close,
        operator,
        argument,
    })
}

fn is_name(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "identifier" | "type_identifier" | "qualified_identifier" | "template_function" | "template_type"
    )
}

/// The name that alone stands in parentheses.
pub(super) fn parenthesised_name(node: Node<'_>) -> Option<Node<'_>> {
    single_child(node).filter(|name| node.kind() == "parenthesized_expression" && !node.has_error() && is_name(*name))
}

/// What an expression ends in, where something stands in front of it.
fn operand_behind(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        "unary_expression" | "pointer_expression" => node.child_by_field_id(fields::ARGUMENT.id()),
        "update_expression" => node
            .child_by_field_id(fields::ARGUMENT.id())
            .filter(|argument| argument.end_byte() == node.end_byte()),
        "cast_expression" => node.child_by_field_id(fields::VALUE.id()),
        "binary_expression" => node.child_by_field_id(fields::RIGHT.id()),
        _ => None,
    }
}

/// Binds at least as tightly as a cast: not something that reaches over the rest of the chain.
fn is_operand(node: Node<'_>) -> bool {
    !node.is_error()
        && !matches!(
            node.kind(),
            "binary_expression"
                | "assignment_expression"
                | "conditional_expression"
                | "comma_expression"
                | "throw_statement"
                | "co_await_expression"
                | "delete_expression"
        )
}

fn precedence(op: BinOp) -> u8 {
    match op {
        BinOp::Mul | BinOp::Div | BinOp::Rem => 7,
        BinOp::Add | BinOp::Sub => 6,
        BinOp::Shl | BinOp::Shr => 5,
        BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => 4,
        BinOp::Eq | BinOp::Ne => 3,
        BinOp::BitAnd => 2,
        BinOp::BitXor => 1,
        BinOp::BitOr => 0,
    }
}
