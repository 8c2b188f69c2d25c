//! The code of a file that may make sizes of grids and blocks, by the names that lead to it: launches may ask for thousands of names.

use std::collections::{BTreeMap, HashMap};

use crate::base::db::{Db, SourceFile};
use crate::base::span::Span;
use crate::hir::items::{FunctionItem, TypeItem, items};

/// See [`size_code`].
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub(super) struct SizeCode<'db> {
    /// Where functions may assign: by what stands before the first `=`, the function's index and the statement in it.
    assignments: BTreeMap<String, Vec<(u32, Span)>>,
    /// Indices of definitions of static members, by name.
    members: HashMap<String, Vec<u32>>,
    /// Indices of types, by name.
    types: HashMap<String, Vec<u32>>,
    /// Functions by the names of the scopes that they are in.
    scopes: HashMap<String, Vec<FunctionItem<'db>>>,
    /// Indices of types that declare operators by which their objects are converted.
    converted: Vec<u32>,
    /// Functions that are operators, or are in something of that name.
    operators: Vec<FunctionItem<'db>>,
}

/// The code of a file that may make sizes.
#[salsa::tracked(lru = 64)]
pub(super) fn size_code<'db>(db: &'db dyn Db, file: SourceFile) -> SizeCode<'db> {
    let mut found = SizeCode::default();
    let items = items(db, file);
    for (index, function) in (0u32..).zip(&items.functions) {
        found.function(index, *function, function.name(db), &function.text(db));
    }
    for (index, (name, _)) in (0u32..).zip(&items.members) {
        found.members.entry(name.clone()).or_default().push(index);
    }
    for (index, ty) in (0u32..).zip(&items.types) {
        found.types.entry(ty.name.clone()).or_default().push(index);
        if ty.implicit.contains("operator") {
            found.converted.push(index);
        }
    }
    found
}

impl<'db> SizeCode<'db> {
    fn function(&mut self, index: u32, function: FunctionItem<'db>, name: &str, text: &str) {
        if name.contains("operator") {
            self.operators.push(function);
        }
        let mut scopes: Vec<&str> = name.split("::").collect();
        scopes.pop();
        scopes.sort_unstable();
        scopes.dedup();
        for scope in scopes {
            self.scopes.entry(scope.to_owned()).or_default().push(function);
        }
        let mut start = 0;
        for statement in text.split(';') {
            let behind = statement.rfind(['{', '}']).map_or(0, |at| at + 1);
            let set = statement[behind..].trim_start();
            if let Some((place, _)) = set.split_once('=') {
                let end = start + statement.len();
                let span = Span::new((end - set.len()) as u32, end as u32);
                self.assignments
                    .entry(place.to_owned())
                    .or_default()
                    .push((index, span));
            }
            start += statement.len() + 1;
        }
    }

    /// The statements that begin with a name and may assign something, with their functions, as they stand in the file.
    pub(super) fn assignments(&self, db: &'db dyn Db, file: SourceFile, name: &str) -> Vec<(FunctionItem<'db>, Span)> {
        let named = self.assignments.range(name.to_owned()..);
        let named = named.take_while(|(place, _)| place.starts_with(name));
        let mut places: Vec<(u32, Span)> = named.flat_map(|(_, places)| places).copied().collect();
        places.sort_unstable();
        let functions = &items(db, file).functions;
        let found = places
            .into_iter()
            .filter_map(|(index, span)| Some((*functions.get(index as usize)?, span)));
        found.collect()
    }

    /// The definitions of the static members of a name, as they are written.
    pub(super) fn members(&self, db: &'db dyn Db, file: SourceFile, name: &str) -> impl Iterator<Item = &'db str> {
        let all = &items(db, file).members;
        let named = self.members.get(name).into_iter().flatten();
        named.filter_map(|index| all.get(*index as usize).map(|(_, declaration)| declaration.as_str()))
    }

    /// The types of a name.
    pub(super) fn types(&self, db: &'db dyn Db, file: SourceFile, name: &str) -> impl Iterator<Item = &'db TypeItem> {
        let all = &items(db, file).types;
        let named = self.types.get(name).into_iter().flatten();
        named.filter_map(|index| all.get(*index as usize))
    }

    /// The functions in a class or namespace of a name.
    pub(super) fn functions_in(&self, scope: &str) -> impl Iterator<Item = FunctionItem<'db>> {
        self.scopes.get(scope).into_iter().flatten().copied()
    }

    /// The types that declare operators by which their objects are converted.
    pub(super) fn converted(&self, db: &'db dyn Db, file: SourceFile) -> impl Iterator<Item = &'db TypeItem> {
        let all = &items(db, file).types;
        self.converted.iter().filter_map(|index| all.get(*index as usize))
    }

    /// The functions that are operators.
    pub(super) fn operators(&self) -> impl Iterator<Item = FunctionItem<'db>> {
        self.operators.iter().copied()
    }
}
