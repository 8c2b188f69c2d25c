//! Writing code into files as their owner would: the builder of edits, tokens, names, the style of a file, its includes.

pub mod argument;
pub mod branches;
pub mod builder;
mod counted;
pub mod defaulted;
pub mod include;
pub mod lex;
mod macros;
pub mod names;
pub mod one_line;
pub mod style;
