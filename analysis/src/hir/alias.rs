//! What a type's name hides: `typedef int& Ref;` makes of `Ref x` a reference, which analyses must not take for a value.

use std::borrow::Cow;
use std::collections::HashSet;

use super::lower::Lowering;
use super::reference_names::{makes_a_reference, may_be_a_reference, stands_for_a_reference};
use super::types::{ExprId, ExprKind, Type};
use crate::base::preprocess::reads_as_restrict;
use crate::base::words::words;
use crate::hir::names::also_stands_for;
use crate::hir::names::{unqualified, without_template_arguments};
use crate::hir::visible::visible;

/// So many names that stand for each other are followed; what more of them hide isn't known.
const STEPS: usize = 64;

/// `typedef struct { const int* __restrict__ p; } S;`: what the members are says nothing about the type itself. Other text stays whole.
fn without_class_body(target: &str) -> Cow<'_, str> {
    let mut first = words(target).filter(|word| !matches!(*word, "const" | "volatile"));
    let class = first
        .next()
        .is_some_and(|word| matches!(word, "struct" | "class" | "union"));
    let Some(open) = target.find('{').filter(|_| class) else {
        return Cow::Borrowed(target);
    };
    let mut depth = 0u32;
    for (at, c) in target.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Cow::Owned(format!("{} {}", &target[..open], &target[at + 1..]));
        }
    }
    Cow::Borrowed(target)
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

    /// A macro of the file that may stand for a reference: those in a function's head aren't expanded.
    fn is_a_reference_by_macro(&self, word: &str) -> bool {
        self.names.macros.contains_key(word) && stands_for_a_reference(self.db, self.file, word)
    }

    /// Whether a macro may make a parameter a reference, wherever it stands in its declaration: `int AMP x`.
    pub(super) fn is_a_reference_by_a_macro_in(&self, declaration: &str) -> bool {
        let end = declaration.find(['[', '=']).unwrap_or(declaration.len());
        words(&declaration[..end]).any(|word| self.is_a_reference_by_macro(word))
    }

    /// Whether a type's text has an `&` of its own, or what stands for one.
    fn shows_a_reference(&self, text: &str) -> bool {
        let operand = |at: usize| self.decltype_is_a_reference(text.get(at + "decltype".len()..).unwrap_or(""));
        text.contains('&')
            || words(text).any(|word| word == "bitand")
            || text.match_indices("decltype").any(|(at, _)| operand(at))
    }

    /// The type with the reference and the `volatile` that its name hides.
    pub(super) fn seen_through(&self, mut ty: Type) -> Type {
        let mut hidden = match ty.base.strip_prefix("decltype") {
            Some(operand) => {
                ty.restrict |= self.decltype_is_restrict(operand);
                self.decltype_is_a_reference(operand)
            }
            None => words(&ty.base).any(|word| word == "bitand"),
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
                hidden |= self.is_a_reference_by_macro(word);
                // All of the type may be a macro.
                if let Some(item) = self.names.macros.get(word) {
                    ty.restrict |= words(&item.body).any(reads_as_restrict);
                    pending.push(item.body.clone());
                }
                match self.stands_for(word) {
                    Some(target) if seen.len() <= STEPS => {
                        let target = without_class_body(target);
                        let target = target.as_ref();
                        hidden |= self.shows_a_reference(target);
                        ty.volatile |= words(target).any(|word| word == "volatile");
                        ty.restrict |= words(target).any(reads_as_restrict);
                        pending.push(without_template_arguments(target));
                    }
                    Some(_) => hidden = true,
                    // A member of a class or of a library: `typename T::reference`, `std::add_lvalue_reference_t<T>`.
                    None => hidden |= makes_a_reference(word),
                }
            }
        }
        if hidden {
            ty.reference = true;
            // `const Ref x` is no reference to something constant: the `const` counts for nothing.
            ty.const_base = false;
        } else if ty.pointers == 0 && ty.array.is_empty() && self.may_be_composed_to_a_reference(&ty.base) {
            // Nothing may be made of it that holds for a value only, or for a reference only.
            ty.reference = true;
            ty.complex = true;
            ty.const_base = false;
        }
        ty
    }

    /// Whether template arguments may make a reference of a type: `S<Ref>::type`, `Id<Ref>`. A class that has them is a value.
    fn may_be_composed_to_a_reference(&self, ty: &str) -> bool {
        let Some((head, _)) = ty.split_once('<') else {
            return ty.contains("::") && may_be_a_reference(self.db, self.file, ty);
        };
        let plain = without_template_arguments(ty);
        let last = unqualified(head.trim());
        let is_whole = unqualified(&plain) == last;
        let class = is_whole && !self.names.aliases.contains_key(last) && !last.ends_with("_t");
        !class && may_be_a_reference(self.db, self.file, ty)
    }

    /// Shows what the types of casts hide: `(Ref)x` and `Ref(x)` are `x` itself where `Ref` stands for a reference.
    pub(super) fn show_hidden_references(&mut self) {
        for index in 0..self.body.exprs.len() {
            let shown = self.shown(&self.body.exprs[index].kind);
            if let Some((ty, operand)) = shown {
                let reinterpret = true;
                self.body.exprs[index].kind = ExprKind::Cast {
                    ty,
                    operand,
                    reinterpret,
                };
            }
        }
        self.body.own_types = self
            .local_types
            .iter()
            .map(|(name, may_be)| (name.clone(), *may_be))
            .collect();
    }

    /// The type with its `&`, and what is cast to it.
    fn shown(&self, cast: &ExprKind) -> Option<(String, ExprId)> {
        let (ty, operand, made) = match cast {
            ExprKind::Cast { ty, operand, .. } => (ty, *operand, false),
            ExprKind::Construct { ty, args } => match args.as_slice() {
                [operand] => (ty, *operand, true),
                _ => return None,
            },
            _ => return None,
        };
        if ty.contains(['*', '&']) {
            return None;
        }
        let written = Type {
            base: ty.clone(),
            ..Type::default()
        };
        let seen = self.seen_through(written);
        // What may be a class is made.
        let shows = seen.reference && !(seen.complex && made);
        shows.then(|| (format!("{ty}&"), operand))
    }

    /// `decltype` of a name takes the `__restrict__` of the variable over.
    fn decltype_is_restrict(&self, operand: &str) -> bool {
        let globals = &visible(self.db, self.file).globals;
        let local = |name: &str| self.body.bindings.iter().any(|b| b.name == name && b.ty.restrict);
        words(operand).any(|name| local(name) || globals.get(name).is_some_and(|global| global.restrict))
    }

    /// `decltype` of anything but the name of a value is a reference, or may be.
    fn decltype_is_a_reference(&self, operand: &str) -> bool {
        let inside = operand.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let Some(name) = inside.map(str::trim) else { return true };
        if let Some(binding) = self.lookup(name) {
            return self.body.binding(binding).ty.reference;
        }
        // Where all is lowered, no variable is in scope any more.
        let mut named = self
            .body
            .bindings
            .iter()
            .filter(|binding| binding.name == name)
            .peekable();
        self.body.root.is_none() || named.peek().is_none() || named.any(|binding| binding.ty.reference)
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
        may_be_a_reference(self.db, self.file, template_arguments) || words(template_arguments).any(hides)
    }

    /// The same for all that is named in front of a call: `F<Ref>::put(x)`.
    pub(super) fn names_a_reference_somewhere(&self, callee: &str) -> bool {
        let mut depth = 0u32;
        let mut within = |c: &char| {
            let before = depth;
            match c {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                _ => {}
            }
            before > 0
        };
        let arguments: String = callee.chars().filter(|c| within(c)).collect();
        !arguments.is_empty() && self.names_a_reference(&arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::without_class_body;

    #[test]
    fn members_are_not_the_type() {
        let without = "struct   (declarator)";
        assert_eq!(
            without_class_body("struct { int& r; struct { int* __restrict__ p; } in; } (declarator)"),
            without
        );
        for whole in [
            "int& (declarator)",
            "decltype(S{}.r)",
            "struct S& (declarator)",
            "struct { int& r;",
        ] {
            assert_eq!(without_class_body(whole), whole);
        }
    }
}
