//! The abstract values of the analysis.

use std::collections::HashMap;

use super::level::{Cause, Level};

/// A level with its justification, or a level that depends on parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    pub level: Level,
    /// Parameters of the function that flow into it, when it's analysed for its callers.
    pub params: u64,
    /// Assumptions, by index.
    pub assumes: u64,
    /// Index of the cause; 0: none.
    pub cause: u32,
}

impl Value {
    pub const CONSTANT: Value = Value {
        level: Level::Constant,
        params: 0,
        assumes: 0,
        cause: 0,
    };

    pub fn join(self, other: Value) -> Value {
        let first = self.level > other.level || (self.level == other.level && self.cause != 0);
        Value {
            level: self.level.join(other.level),
            params: self.params | other.params,
            assumes: self.assumes | other.assumes,
            cause: if first { self.cause } else { other.cause },
        }
    }

    /// At most this level, whatever the parameters are.
    pub fn within(self, level: Level) -> bool {
        self.params == 0 && self.level <= level
    }

    /// The same but for the cause.
    pub fn same(self, other: Value) -> bool {
        self.level == other.level && self.params == other.params && self.assumes == other.assumes
    }
}

/// Interned causes and assumptions.
#[derive(Default)]
pub(super) struct Causes {
    list: Vec<Cause>,
    index: HashMap<Cause, u32>,
    pub assumes: Vec<Cause>,
}

impl Causes {
    pub fn add(&mut self, cause: Cause) -> u32 {
        if let Some(i) = self.index.get(&cause) {
            return *i;
        }
        self.list.push(cause.clone());
        let i = self.list.len() as u32;
        self.index.insert(cause, i);
        i
    }

    pub fn get(&self, index: u32) -> Option<&Cause> {
        self.list.get((index as usize).checked_sub(1)?)
    }

    /// The bit of an assumption; `None` when there are too many to keep track of.
    pub fn assume(&mut self, cause: Cause) -> Option<u64> {
        let i = match self.assumes.iter().position(|c| *c == cause) {
            Some(i) => i,
            None => {
                self.assumes.push(cause);
                self.assumes.len() - 1
            }
        };
        (i < 64).then(|| 1 << i)
    }
}
