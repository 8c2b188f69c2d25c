//! Which instances of a child a function collects, and what their collectors are called: what [`super::instances`] has found.

use std::collections::{BTreeMap, BTreeSet};

use crate::edit::lex;

/// The instances of groups whose template arguments depend on who calls the function that launches.
#[derive(Default)]
pub struct Instances {
    /// By function and group: the template arguments of each instance, as they are called in the function.
    pub of: BTreeMap<(usize, usize), Vec<String>>,
    /// By call and group: which of the caller's instances each of the callee's is.
    pub passed: BTreeMap<(usize, usize), Vec<usize>>,
    /// By group: what the collectors of the instances are called, everywhere.
    pub names: BTreeMap<usize, Vec<String>>,
    /// The launches whose template arguments depend on the function that they stand in.
    pub dependent: BTreeSet<usize>,
}

impl Instances {
    /// The template arguments of a group's instances in a function; `None` where the launches say them.
    pub fn of(&self, function: usize, group: usize) -> Option<&[String]> {
        self.of.get(&(function, group)).map(Vec::as_slice)
    }

    /// Whether a group has several.
    pub fn has(&self, group: usize) -> bool {
        self.names.contains_key(&group)
    }

    /// The name of an instance's collector.
    pub fn name(&self, group: usize, number: usize) -> Option<&String> {
        self.names.get(&group)?.get(number)
    }

    /// Of the instances that a function needs, those that a call of it hands on, by their numbers in the caller.
    pub fn handed_on(&self, call: usize, group: usize) -> Option<&[usize]> {
        self.passed.get(&(call, group)).map(Vec::as_slice)
    }

    /// Which instance a launch of a function has, by the template arguments that stand there.
    pub fn number(&self, function: usize, group: usize, arguments: &str) -> usize {
        let known = self.of(function, group).unwrap_or(&[]);
        known.iter().position(|known| is_same(known, arguments)).unwrap_or(0)
    }
}

/// Whether two lists of template arguments are written alike.
pub fn is_same(a: &str, b: &str) -> bool {
    lex::code_words(a) == lex::code_words(b)
}
