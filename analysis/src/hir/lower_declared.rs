//! What declares names in a block and doesn't look like it: declarations that the grammar takes for assignments and calls, and names that
//! stand in no declarator.

use tree_sitter::Node;

use super::declarator::base_type;
use super::lower::{Lowering, Source};
use super::types::*;
use crate::base::fields;
use crate::base::parse::parse_text;
use crate::base::span::Span;
use crate::base::words::words;

/// What a text begins with that holds one statement.
const PREFIX: &str = "void f() { ";

impl Lowering<'_> {
    /// `T (&r) = x;` and `T (x);`, which are parsed as an assignment to a call and as a call: what can be a declaration is one (C++17,
    /// \[stmt.ambig\]). `None`: it can't.
    pub(super) fn declaration_in_brackets(&mut self, node: Node<'_>, source: Source<'_>) -> Option<StmtId> {
        let call = leftmost_call(node)?;
        let is_assigned = call
            .parent()
            .is_some_and(|parent| parent.kind() == "assignment_expression");
        let list = self.declares_in_brackets(call, is_assigned, source)?;
        // The same without the brackets is what the grammar knows.
        let begin = node.start_byte();
        let mut text = source.of(node).as_bytes().to_vec();
        for byte in &mut text[list.start_byte() - begin..list.end_byte() - begin] {
            if matches!(*byte, b'(' | b')') {
                *byte = b' ';
            }
        }
        let text = format!("{PREFIX}{}; }}", String::from_utf8(text).unwrap_or_default());
        let tree = parse_text(&text, None);
        let inner = Source {
            text: &text,
            shift: begin as i64 + source.shift - PREFIX.len() as i64,
            map: source.map,
        };
        let declaration = tree
            .root_node()
            .named_child(0)
            .and_then(|f| f.child_by_field_id(fields::BODY.id()))
            .and_then(|block| block.named_child(0))
            .filter(|s| s.kind() == "declaration" && !tree.root_node().has_error());
        Some(match declaration {
            Some(declaration) => self.declaration(declaration, inner),
            None => self.unknown_stmt(node, source, Vec::new(), Vec::new()),
        })
    }

    /// The brackets of a call that may be a declarator's: its function is a type, and in them stands a name, behind `&` or `*` perhaps.
    /// `is_assigned`: the call stands on the left of an assignment.
    fn declares_in_brackets<'t>(&self, call: Node<'t>, is_assigned: bool, source: Source<'_>) -> Option<Node<'t>> {
        let function = call.child_by_field_id(fields::FUNCTION.id())?;
        let list = call.child_by_field_id(fields::ARGUMENTS.id())?;
        let mut cursor = call.walk();
        if call
            .named_children(&mut cursor)
            .any(|child| child.kind() == "kernel_call_syntax")
            || list.named_child_count() != 1
        {
            return None;
        }
        let mut next = list.named_child(0)?;
        let mut leads = false;
        while next.kind() != "identifier" {
            leads |= next.kind() == "pointer_expression";
            next = match next.kind() {
                "pointer_expression" => next.child_by_field_id(fields::ARGUMENT.id())?,
                "parenthesized_expression" if next.named_child_count() == 1 => next.named_child(0)?,
                _ => return None,
            };
        }
        let known = || self.lookup(source.of(next)).is_some() || !self.is_undeclared(source.of(next));
        // A function that isn't in sight may return a reference, and be given the address of what there is.
        let declares = self.names_a_type(function, source) || is_assigned && leads && !known();
        declares.then_some(list)
    }

    /// No variable in sight has this name.
    fn is_undeclared(&self, name: &str) -> bool {
        super::lower_expr::builtin(name).is_none()
            && !crate::hir::visible::visible(self.db, self.file)
                .globals
                .contains_key(name)
            && !self.names.macros.contains_key(name)
    }

    /// What is called is a type.
    pub(super) fn names_a_type(&self, function: Node<'_>, source: Source<'_>) -> bool {
        let text = source.of(function);
        match function.kind() {
            "primitive_type" | "sized_type_specifier" => true,
            "identifier" if self.lookup(text).is_some() => false,
            "identifier" | "qualified_identifier" | "template_function" => {
                let name = source.of(last_name(function));
                let own = self.local_types.contains_key(name) || self.template_types.iter().any(|ty| ty == name);
                let in_sight = || self.names.types.contains(name) || self.names.aliases.contains_key(name);
                (own || name == "dim3" || in_sight() && !self.is_a_function(name))
                    && !self.names.macros.contains_key(name)
            }
            _ => false,
        }
    }

    /// A function in sight has the name of a type, and hides it: `struct stat` beside `stat()`. Constructors don't.
    fn is_a_function(&self, name: &str) -> bool {
        let functions = crate::hir::visible::visible(self.db, self.file).functions.get(name);
        let constructor = format!("{name}::{name}");
        functions.is_some_and(|all| all.iter().any(|f| !f.name(self.db).ends_with(&constructor)))
    }

    /// A place is a conversion that is written as a call.
    pub(super) fn converts(&self, place: Node<'_>, source: Source<'_>) -> bool {
        let mut next = place;
        while next.kind() == "parenthesized_expression" && next.named_child_count() == 1 {
            let Some(inner) = next.named_child(0) else { break };
            next = inner;
        }
        let function = next.child_by_field_id(fields::FUNCTION.id());
        next.kind() == "call_expression" && function.is_some_and(|function| self.names_a_type(function, source))
    }

    /// A name that means something else from here on than the variable outside of the block: what a `using`, an enumeration, an
    /// anonymous union, an `extern` or a function that is declared here calls so.
    pub(super) fn hide(&mut self, name: &str, span: Span) {
        if self.lookup(name).is_none() {
            return;
        }
        self.declare_opaque(name, span, span);
    }

    /// A name for something that isn't modelled: it may be any object, and change whenever something does.
    pub(super) fn declare_opaque(&mut self, name: &str, span: Span, decl_span: Span) -> BindingId {
        let ty = Type {
            text: "auto".into(),
            base: "auto".into(),
            reference: true,
            complex: true,
            ..Type::default()
        };
        self.declare(Binding {
            name: name.to_owned(),
            ty,
            storage: Storage::Local,
            span,
            decl_span,
            default: None,
        })
    }

    /// The names of a declaration whose variables live elsewhere: `extern int x;`.
    pub(super) fn hide_declared(&mut self, declarators: &[Node<'_>], source: Source<'_>) {
        for written in declarators {
            let parts = super::declarator::declarator(*written, source.text);
            if let Some(name) = parts.name {
                self.hide(source.of(name), source.span(name));
            }
        }
    }

    /// Notes what `using n::x;`, `using namespace n;` and `namespace m = n;` do to names.
    pub(super) fn declare_using(&mut self, text: &str, span: Span) {
        match words(text).collect::<Vec<_>>().as_slice() {
            ["namespace", name, ..] => {
                self.body.declared.insert((*name).to_owned());
            }
            ["using", "namespace", ..] => self.body.opens_namespace = true,
            names => {
                if let Some(name) = names.last() {
                    self.body.declared.insert((*name).to_owned());
                    self.hide(name, span);
                }
            }
        }
    }

    /// Notes the name of a class or enum that the function defines, an enum's enumerators, and the members of an anonymous union.
    pub(super) fn declare_type(&mut self, node: Node<'_>, source: Source<'_>) {
        let Some(body) = node.child_by_field_id(fields::BODY.id()) else {
            return;
        };
        let own = node.child_by_field_id(fields::NAME.id());
        let mut cursor = body.walk();
        let members: Vec<_> = body.named_children(&mut cursor).collect();
        if node.kind() == "enum_specifier" {
            let names = members
                .iter()
                .filter_map(|enumerator| enumerator.child_by_field_id(fields::NAME.id()));
            for name in names {
                self.body.declared.insert(source.of(name).to_owned());
                self.hide(source.of(name), source.span(name));
            }
        } else if own.is_none() && node.kind() == "union_specifier" {
            for member in members {
                let mut cursor = member.walk();
                let declarators: Vec<_> = member.children_by_field_name("declarator", &mut cursor).collect();
                self.hide_declared(&declarators, source);
            }
        }
        if let Some(name) = own {
            self.body.declared.insert(source.of(name).to_owned());
            self.local_types.insert(source.of(name).to_owned(), true);
            self.hide(source.of(name), source.span(name));
        }
    }

    /// The variable of a loop over a range, or the names that it binds, and its body.
    pub(super) fn range_for(&mut self, node: Node<'_>, source: Source<'_>) -> StmtId {
        let span = source.span(node);
        self.scopes.push(Default::default());
        let over = node.child_by_field_id(fields::RIGHT.id());
        let range = over.map(|n| self.expr(n, source));
        let base = base_type(node, source.text);
        let declared = node.child_by_field_id(fields::DECLARATOR.id());
        let result = match (range, declared) {
            (Some(range), Some(declared)) => {
                let binding = self.local(declared, base, Storage::Local, span, source);
                let bound = super::lower_stmt::bound_names(declared).map(|list| {
                    // By a reference, the names change what is gone through.
                    let by_reference = declared.kind() == "reference_declarator";
                    let through = over.filter(|_| by_reference).map_or("", |over| source.of(over));
                    let mentions = self.mentions(through);
                    let decls = self.bind_names(declared, list, &[], &mentions, source, span);
                    self.add_stmt(StmtKind::Decl(decls), source.span(declared))
                });
                let mut body = self.stmt_or_missing(node.child_by_field_id(fields::BODY.id()), node, source);
                if let Some(bound) = bound {
                    body = self.add_stmt(StmtKind::Block(vec![bound, body]), span);
                }
                self.add_stmt(StmtKind::RangeFor { binding, range, body }, span)
            }
            (range, _) => self.unknown_stmt(node, source, Vec::new(), range.into_iter().collect()),
        };
        self.scopes.pop();
        result
    }
}

/// The name at the end of a qualified one, without template arguments: what `Policy<float>::note` calls is `note`.
fn last_name(function: Node<'_>) -> Node<'_> {
    let mut next = function;
    while matches!(
        next.kind(),
        "qualified_identifier" | "template_function" | "template_type" | "dependent_name"
    ) {
        let Some(name) = next.child_by_field_id(fields::NAME.id()) else {
            break;
        };
        next = name;
    }
    next
}

/// The call that stands first in a statement: it is the statement, or what its first assignment writes to.
fn leftmost_call(node: Node<'_>) -> Option<Node<'_>> {
    let mut next = node;
    loop {
        next = match next.kind() {
            "call_expression" => return Some(next),
            "comma_expression" | "assignment_expression" => next.child_by_field_id(fields::LEFT.id())?,
            "subscript_expression" => next.child_by_field_id(fields::ARGUMENT.id())?,
            _ => return None,
        };
    }
}
