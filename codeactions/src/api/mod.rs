//! What a rewrite is, what it answers with, and how several are applied one after the other.

pub mod assumption;
pub mod copy;
pub mod outcome;
pub mod refusal;
pub mod rewrite;
pub mod sequence;
pub mod source_edit;
pub mod written_out;
