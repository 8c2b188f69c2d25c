//! Types and declarators.

use crate::base::fields;
use tree_sitter::Node;

use super::types::Type;

/// A declarator taken apart.
#[derive(Default)]
pub(super) struct Declarator<'t> {
    /// The node of the declared name.
    pub name: Option<Node<'t>>,
    pub pointers: u8,
    pub reference: bool,
    pub const_pointer: bool,
    pub volatile: bool,
    pub restrict: bool,
    /// Sizes of the array dimensions, outermost (first written) first.
    pub sizes: Vec<Option<Node<'t>>>,
    /// Something else: function pointer, structured binding, …
    pub complex: bool,
    /// `name(…)`: the parameter list that may also be constructor arguments.
    pub call: Option<Node<'t>>,
}

/// Takes a declarator apart.
pub(super) fn declarator<'t>(node: Node<'t>, text: &str) -> Declarator<'t> {
    let mut found = Declarator::default();
    let mut next = Some(node);
    let mut inside_parens = false;
    while let Some(node) = next {
        next = node.child_by_field_id(fields::DECLARATOR.id());
        match node.kind() {
            "identifier" | "field_identifier" | "type_identifier" => {
                found.name = Some(node);
                break;
            }
            "qualified_identifier" | "operator_name" | "destructor_name" | "template_function" => {
                found.name = Some(node);
                found.complex = true;
                break;
            }
            "pointer_declarator" | "abstract_pointer_declarator" => {
                found.pointers = found.pointers.saturating_add(1);
                found.complex |= inside_parens;
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    if child.kind() == "type_qualifier" {
                        match &text[child.byte_range()] {
                            "const" => found.const_pointer = true,
                            "volatile" => found.volatile = true,
                            "__restrict__" | "__restrict" | "restrict" => found.restrict = true,
                            _ => {}
                        }
                    } else if child.kind() == "ms_pointer_modifier" && text[child.byte_range()].contains("restrict") {
                        found.restrict = true;
                    }
                }
            }
            "reference_declarator" | "abstract_reference_declarator" => {
                found.reference = true;
                // Its inner declarator has no field name.
                let mut cursor = node.walk();
                next = node
                    .named_children(&mut cursor)
                    .find(|c| c.kind() != "comment" && c.kind() != "type_qualifier");
            }
            "array_declarator" | "abstract_array_declarator" => {
                found.sizes.insert(0, node.child_by_field_id(fields::SIZE.id()));
            }
            "function_declarator" => {
                found.call = node.child_by_field_id(fields::PARAMETERS.id());
                if inside_parens || next.is_some_and(|n| n.kind() != "identifier") {
                    found.complex = true;
                }
            }
            "parenthesized_declarator" => {
                inside_parens = true;
                let mut cursor = node.walk();
                next = node.named_children(&mut cursor).find(|c| c.kind() != "comment");
            }
            "attributed_declarator" | "init_declarator" => {
                if next.is_none() {
                    let mut cursor = node.walk();
                    next = node.named_children(&mut cursor).find(|c| c.kind() != "comment");
                }
            }
            _ => {
                found.complex = true;
                break;
            }
        }
    }
    found
}

/// The type in front of the declarators of a declaration or parameter.
pub(super) fn base_type(node: Node<'_>, text: &str) -> Type {
    let mut ty = Type::default();
    let mut words: Vec<&str> = Vec::new();
    let mut cursor = node.walk();
    let type_node = node.child_by_field_id(fields::TYPE.id());
    for child in node.children(&mut cursor) {
        let word = &text[child.byte_range()];
        if Some(child) == type_node {
            ty.base = match child.kind() {
                // `struct S x` and local struct definitions: the name alone.
                "struct_specifier" | "class_specifier" | "enum_specifier" | "union_specifier" => child
                    .child_by_field_id(fields::NAME.id())
                    .map_or(word, |n| &text[n.byte_range()]),
                _ => word,
            }
            .to_owned();
            words.push(if child.child_by_field_id(fields::BODY.id()).is_some() {
                ""
            } else {
                word
            });
            continue;
        }
        match child.kind() {
            "type_qualifier" => match word {
                "const" | "constexpr" => {
                    ty.const_base = true;
                    words.push("const");
                }
                "volatile" => {
                    ty.volatile = true;
                    words.push(word);
                }
                _ => {}
            },
            "storage_class_specifier" | "comment" | "attribute_declaration" | "attribute_specifier" => {}
            _ if type_node.is_some_and(|t| child.start_byte() > t.start_byte()) && child.is_named() => break,
            _ => {}
        }
    }
    words.retain(|w| !w.is_empty());
    ty.text = words.join(" ");
    if ty.text.is_empty() {
        ty.text = ty.base.clone();
    }
    ty
}

impl Declarator<'_> {
    /// Adds what the declarator says to the base type (array extents excepted).
    pub(super) fn refine(&self, mut ty: Type) -> Type {
        ty.pointers = self.pointers;
        ty.reference = self.reference;
        ty.const_pointer = self.const_pointer;
        ty.volatile |= self.volatile;
        ty.restrict = self.restrict;
        ty.complex = self.complex;
        ty
    }
}

/// The name in a declarator such as `*const p` or `a[4]`.
pub(crate) fn declared_name(declarator: &str) -> &str {
    let end = declarator.find(['[', '=', ':', '{']).unwrap_or(declarator.len());
    let head = declarator[..end].trim_end();
    let start = head
        .rfind(|c: char| !c.is_alphanumeric() && c != '_')
        .map_or(0, |i| i + 1);
    head.get(start..).unwrap_or("")
}

/// Whether a field's declarator makes it an array, and no pointer.
pub(crate) fn is_array(declarator: &str) -> bool {
    declarator.contains('[') && !declarator.contains(['*', '&', '('])
}

/// What a name that a `typedef` declares stands for: `int`, `volatile int`, `int& (declarator)`. `declarator`: the one of the name.
pub(crate) fn typedef_target<'a>(
    typedef: Node<'_>,
    declarator: Node<'_>,
    text: impl Fn(Node<'_>) -> &'a str,
) -> String {
    let ty = typedef.child_by_field_id(fields::TYPE.id()).map_or("", &text);
    let mut cursor = typedef.walk();
    let volatile = typedef
        .children(&mut cursor)
        .any(|child| child.kind() == "type_qualifier" && text(child) == "volatile");
    let qualifier = if volatile { "volatile " } else { "" };
    let form = match declarator.kind() {
        // The grammar knows some names of libraries, as `size_t`, wherever they stand.
        "type_identifier" | "primitive_type" => "",
        _ if text(declarator).contains('&') => "& (declarator)",
        _ => " (declarator)",
    };
    format!("{qualifier}{ty}{form}")
}
