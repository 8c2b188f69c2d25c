//! What a rewrite and a fix are, what they answer with, and how several are applied one after the other.

pub mod copy;
pub mod fix;
pub mod outcome;
pub mod refusal;
pub mod rewrite;
pub mod sequence;
pub mod source_edit;
