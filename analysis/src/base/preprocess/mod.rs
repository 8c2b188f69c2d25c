//! The preprocessor, as far as analyses need it: which branches of `#if` are compiled, what macros mean where, and what a
//! function's text is with its macros expanded.
//!
//! Nothing is guessed, but for one thing: where no command line is known, a name has the value that the program gives it by
//! `#ifndef X`, `#define X 32`; who relies on that says so ([`Preprocessed::defaulted`]). What another name means that may be defined
//! by a header outside of the workspace, or on a command line that isn't known, is not known; a condition that depends on it is undecided, and both branches stay. A file is compiled in several
//! passes (for the host, for each architecture, by several commands): what is decided holds in all of them.

mod branch;
mod condition;
pub(crate) mod expand;
mod libraries;
mod line;
mod lines;
mod specifiers;
mod specifiers_of_file;
pub(crate) mod token;
mod walk;

pub use branch::Branch;
pub use line::IncludeItem;
pub(crate) use line::Line;
pub use lines::file_directives;
pub(crate) use lines::lines_in_text;
pub(crate) use specifiers::{SpecifierMacros, SpecifierUse};
pub use specifiers::{Specifiers, reads_as_restrict};
pub(crate) use specifiers_of_file::specifier_macros;
pub(crate) use token::{Lexeme, TokenKind, lex};
pub use walk::Preprocessed;
pub(crate) use walk::branches;
pub(crate) use walk::gave_up;
pub use walk::preprocessed;

/// A `#define`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct MacroItem {
    /// Name.
    pub name: String,
    /// Parameter names of a function-like macro.
    pub params: Option<Vec<String>>,
    /// Replacement text, comments and line continuations removed.
    pub body: String,
}

/// What is known about a macro's name at some place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum MacroState {
    /// It is this macro.
    Defined(MacroItem),
    /// It is no macro.
    Undefined,
    /// It is a macro, but its text isn't known.
    DefinedSomehow,
    /// Not known.
    Unknown,
}

impl MacroState {
    /// What is known when either may be the case.
    fn join(&self, other: &MacroState) -> MacroState {
        use MacroState::*;
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Defined(_) | DefinedSomehow, Defined(_) | DefinedSomehow) => DefinedSomehow,
            _ => Unknown,
        }
    }
}
