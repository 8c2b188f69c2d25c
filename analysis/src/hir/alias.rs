//! What a type's name hides: `typedef int& Ref;` makes of `Ref x` a reference, which analyses must not take for a value.

use std::collections::HashSet;

use super::lower::Lowering;
use super::types::Type;
use crate::base::words::words;
use crate::hir::names::also_stands_for;
use crate::hir::names::without_template_arguments;

/// So many names that stand for each other are followed; what more of them hide isn't known.
const STEPS: usize = 64;

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
