//! The names of classes and enums, in their definitions.

use tree_sitter::Node;

use crate::base::fields;

/// The name of a class or an enum.
pub(super) fn class_name(node: Node<'_>) -> Option<Node<'_>> {
    let written = node.child_by_field_id(fields::NAME.id());
    written.or_else(|| name_by_typedef(node, node.parent()?))
}

/// `typedef struct { … } Name, *Pointer;`: the name that a class or an enum without one gets for linkage, and by which it is known
/// ([dcl.typedef]). It is the first that stands for the type itself.
pub(super) fn name_by_typedef<'t>(node: Node<'t>, around: Node<'t>) -> Option<Node<'t>> {
    if around.kind() != "type_definition" || around.child_by_field_id(fields::TYPE.id()) != Some(node) {
        return None;
    }
    let unnamed = node.child_by_field_id(fields::NAME.id()).is_none();
    // `typedef const struct { … } Name;` stands for something else than the class.
    let at_once = node.prev_sibling().is_some_and(|before| before.kind() == "typedef");
    let mut cursor = around.walk();
    let first = around
        .children_by_field_name("declarator", &mut cursor)
        .find(|declarator| declarator.kind() == "type_identifier")?;
    let mut cursor = around.walk();
    let whole = around.children(&mut cursor).all(|part| {
        let declarator = part.kind() == "type_identifier" || part.kind().ends_with("_declarator");
        part == node || declarator || matches!(part.kind(), "typedef" | "," | ";" | "comment")
    });
    (unnamed && at_once && whole).then_some(first)
}
