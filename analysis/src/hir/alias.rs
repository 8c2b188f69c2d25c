//! What a type's name hides: `typedef int& Ref;` makes of `Ref x` a reference, which analyses must not take for a value.

use std::collections::HashSet;

use tree_sitter::Node;

use super::lower::{Lowering, words};
use super::lower_expr::without_template_arguments;
use super::types::Type;
use crate::fields;
use crate::resolve::also_stands_for;

/// So many names that stand for each other are followed; what more of them hide isn't known.
const STEPS: usize = 64;

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
        "type_identifier" => "",
        _ if text(declarator).contains('&') => "& (declarator)",
        _ => " (declarator)",
    };
    format!("{qualifier}{ty}{form}")
}

/// Whether `const_cast<int&>(x)` or `(int&)x` may stand in a function's text.
pub(super) fn casts_const_away(text: &str) -> bool {
    text.contains("const_cast") || text.contains("&)")
}

impl Lowering<'_> {
    /// Notes what a name stands for that the function declares for itself; another block may declare another one.
    pub(super) fn declare_alias(&mut self, name: &str, target: &str) {
        also_stands_for(self.local_aliases.entry(name.to_owned()).or_default(), target);
    }

    fn stands_for(&self, name: &str) -> Option<&str> {
        if let Some(target) = self.local_aliases.get(name) {
            return Some(target);
        }
        if self.local_types.contains_key(name) {
            return None;
        }
        self.names.aliases.get(name).map(String::as_str)
    }

    /// The type with the reference and the `volatile` that its name hides.
    pub(super) fn seen_through(&self, mut ty: Type) -> Type {
        let mut hidden = match ty.base.strip_prefix("decltype") {
            Some(operand) => self.decltype_is_a_reference(operand),
            None => false,
        };
        let mut pending = vec![without_template_arguments(&ty.base)];
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(text) = pending.pop() {
            if text.starts_with("decltype") {
                continue;
            }
            // All words: one name may stand for several types.
            for word in words(&text) {
                if !seen.insert(word.to_owned()) {
                    continue;
                }
                match self.stands_for(word) {
                    Some(target) if seen.len() <= STEPS => {
                        hidden |= target.contains('&');
                        ty.volatile |= words(target).any(|word| word == "volatile");
                        pending.push(without_template_arguments(target));
                    }
                    Some(_) => hidden = true,
                    // A member of a class or of a library: `typename T::reference`, `std::add_lvalue_reference_t<T>`.
                    None => {
                        hidden |=
                            word.contains("reference") && !word.starts_with("remove_") && word != "reference_wrapper";
                    }
                }
            }
        }
        if hidden {
            ty.reference = true;
            // `const Ref x` is no reference to something constant: the `const` counts for nothing.
            ty.const_base = false;
        }
        ty
    }

    /// `decltype` of anything but the name of a value is a reference, or may be.
    fn decltype_is_a_reference(&self, operand: &str) -> bool {
        let inside = operand.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let variable = inside.and_then(|name| self.lookup(name.trim()));
        variable.is_none_or(|binding| self.body.binding(binding).ty.reference)
    }

    /// Whether template arguments may make a parameter a reference: `f<int&>(x)`, `f<Ref>(x)`.
    pub(super) fn names_a_reference(&self, template_arguments: &str) -> bool {
        let hides = |word: &str| {
            let ty = Type {
                base: word.to_owned(),
                ..Type::default()
            };
            self.seen_through(ty).reference
        };
        template_arguments.contains('&') || words(template_arguments).any(hides)
    }
}
