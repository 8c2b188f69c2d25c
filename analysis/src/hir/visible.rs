//! What a file sees: its own items and those of the files that it includes.

use std::collections::{HashMap, HashSet};

use crate::base::db::{Db, SourceFile};
use crate::base::include::resolve_include;
use crate::base::literal::integer_literal;
use crate::base::parse::masked;
use crate::base::preprocess::{MacroItem, MacroState, preprocessed};
use crate::base::words::words;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, GlobalItem, TypeItem, items};
use crate::hir::made_items::{made_by_includers, renamed_by_macros};
use crate::hir::names::{also_stands_for, unqualified};
use crate::hir::word::{Word, WordSet};

/// All that is visible in a file: its own items and those of its includes (transitively).
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Visible<'db> {
    /// Functions by unqualified name, definitions and declarations.
    pub functions: HashMap<String, Vec<FunctionItem<'db>>>,
    /// Namespace-scope variables by name.
    pub globals: HashMap<String, GlobalItem>,
    /// Enumerators.
    pub enumerators: HashMap<String, Option<i64>>,
    /// Names of namespaces and classes in which functions and variables stand.
    pub scopes: HashSet<String>,
    /// Words of what was blanked because it is too large, and names that macros declare: any of them may be declared in another way than
    /// it seems.
    pub blanked: WordSet,
}

/// The visible names that decide how an expression reads: macros and types.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Names {
    /// Macros by name. A name with several different definitions is in `ambiguous_macros` as well.
    pub macros: HashMap<String, MacroItem>,
    /// Names that are not one macro everywhere in the file (`#if` alternatives, redefinition, `#undef`).
    pub ambiguous_macros: HashSet<String>,
    /// Those of them that are numbers in all their known definitions, and a macro in any case.
    pub constant_macros: HashSet<String>,
    /// Names of classes, structs, unions and enums.
    pub types: HashSet<String>,
    /// Names of classes, and of what stands for them, of which a constant object may change: they have a `mutable` field, or one of such a
    /// class, or are derived from one.
    pub mutable: HashSet<String>,
    /// Type aliases: name → what they stand for; where there are several, all of it, with [`EITHER`](crate::hir::names::EITHER) between.
    pub aliases: HashMap<String, String>,
}

/// Functions and variables visible in `file`.
#[salsa::tracked]
pub fn visible<'db>(db: &'db dyn Db, file: SourceFile) -> Visible<'db> {
    let mut found = Visible::default();
    let files = included_files(db, file);
    for &file in files {
        let items = items(db, file);
        found.blanked.extend(&items.blanked.words);
        found.blanked.extend(&made_by_includers(db, files, &items.loose).words);
        for include in &items.inner_includes {
            if let Some(inner) = resolve_include(db, file, include) {
                found.blanked.extend(words(&masked(db, inner).text).map(Word::new));
            }
        }
        for function in &items.functions {
            let scopes = function.name(db).rsplit_once("::").into_iter();
            found
                .scopes
                .extend(scopes.flat_map(|(scopes, _)| scopes.split("::")).map(str::to_owned));
            found
                .functions
                .entry(unqualified(function.name(db)).to_owned())
                .or_default()
                .push(*function);
        }
        for global in &items.globals {
            let scopes = global.scopes.iter().flat_map(|scopes| scopes.split("::"));
            found
                .scopes
                .extend(scopes.filter(|scope| !scope.is_empty()).map(str::to_owned));
            found
                .globals
                .entry(global.name.clone())
                .and_modify(|known| {
                    // Two variables of one name (namespaces, alternatives): keep only what holds for both.
                    known.constant &= global.constant && known.init == global.init;
                    known.constant_memory &= global.constant_memory;
                    known.shared |= global.shared;
                    known.restrict |= global.restrict;
                    known.scopes.extend(global.scopes.iter().cloned());
                    known.pointer |= global.pointer || known.dims != global.dims || known.base != global.base;
                    if known.init != global.init {
                        known.init = None;
                    }
                })
                .or_insert_with(|| global.clone());
        }
        for ty in &items.types {
            for (name, value) in ty.enumerators.iter().zip(&ty.enumerator_values) {
                // Two of one name: only what holds for both.
                found
                    .enumerators
                    .entry(name.clone())
                    .and_modify(|known| *known = known.filter(|known| Some(*known) == *value))
                    .or_insert(*value);
            }
        }
    }
    let names = found.functions.keys().chain(found.globals.keys()).map(String::as_str);
    let renamed = renamed_by_macros(db, files, names);
    found.blanked.extend(&renamed);
    // A constant object of a class with a mutable field is none.
    let mutable = &visible_names(db, file).mutable;
    if !mutable.is_empty() {
        for global in found.globals.values_mut() {
            global.constant &= !words(&global.base).any(|word| mutable.contains(word));
        }
    }
    found
}

/// Macros and types visible in `file`.
#[salsa::tracked]
pub fn visible_names(db: &dyn Db, file: SourceFile) -> Names {
    let mut found = Names::default();
    let preprocessed = preprocessed(db, file);
    for (name, states) in &preprocessed.states {
        let definitions = states.iter().filter_map(|(_, state)| match state {
            MacroState::Defined(item) => Some(item),
            _ => None,
        });
        if let Some(item) = definitions.clone().next() {
            found.macros.insert(name.clone(), item.clone());
            let number = |item: &MacroItem| item.params.is_none() && integer_literal(&item.body).is_some();
            let defined = |state: &MacroState| matches!(state, MacroState::Defined(_) | MacroState::DefinedSomehow);
            let last = states.last().is_some_and(|(_, state)| defined(state));
            if states.len() > 1 && last && definitions.clone().all(number) {
                found.constant_macros.insert(name.clone());
            }
        }
        // What the program gives a name by default is what it is behind that.
        let default = || match states.split_last() {
            Some(((_, MacroState::Defined(_)), before)) => {
                let none = |(_, state): &_| matches!(state, MacroState::Undefined | MacroState::Unknown);
                preprocessed.defaulted.contains(name) && before.iter().all(none)
            }
            _ => false,
        };
        let single = matches!(
            states.as_slice(),
            [(_, MacroState::Defined(_))] | [(0, MacroState::Undefined)]
        );
        if !single && !default() {
            found.ambiguous_macros.insert(name.clone());
        }
    }
    for &file in included_files(db, file) {
        let items = items(db, file);
        found.types.extend(items.types.iter().map(|t| t.name.clone()));
        for (name, target) in &items.aliases {
            // Namespaces, classes and branches of `#if` may each have one of that name: any of them may be meant.
            also_stands_for(found.aliases.entry(name.clone()).or_default(), target);
        }
    }
    found.mutable = mutable(db, file, &found.aliases);
    found
}

/// See [`Names::mutable`].
fn mutable(db: &dyn Db, file: SourceFile, aliases: &HashMap<String, String>) -> HashSet<String> {
    let files = included_files(db, file).iter();
    let classes: Vec<_> = files.flat_map(|file| &items(db, *file).types).collect();
    let mut found: HashSet<String> = HashSet::new();
    if !classes.iter().any(|class| class.mutable) {
        return found;
    }
    loop {
        let before = found.len();
        let names_one = |text: &str| words(text).any(|word| found.contains(word));
        let inside = |class: &TypeItem| class.fields.iter().any(|(ty, _)| names_one(ty)) || names_one(&class.bases);
        let of_classes = classes.iter().filter(|class| class.mutable || inside(class));
        let of_aliases = aliases.iter().filter(|(_, target)| names_one(target));
        let names = of_classes.map(|class| class.name.clone());
        let more: Vec<String> = names.chain(of_aliases.map(|(name, _)| name.clone())).collect();
        found.extend(more);
        if found.len() == before {
            return found;
        }
    }
}
