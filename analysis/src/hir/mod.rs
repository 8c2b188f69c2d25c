//! A function body in CUDA's terms: bindings, expressions and statements with function-relative spans, independent of the parser.
//!
//! Lowering is total: what it doesn't understand becomes [`ExprKind::Unknown`] or [`StmtKind::Unknown`], which every
//! analysis must treat as "may do anything".

mod alias;
pub mod assembly;
mod casts;
mod class_names;
pub(crate) mod declarator;
pub mod extents;
pub mod flow;
pub mod included;
pub mod items;
pub mod library;
mod literal;
mod lower;
mod lower_declared;
mod lower_expr;
mod lower_stmt;
mod lower_try;
pub mod macros;
mod made_items;
mod made_words;
pub mod mentions;
mod named_in_strings;
pub mod names;
pub mod number_types;
pub(crate) mod outline;
mod outline_classes;
pub mod plain_types;
pub mod reference_names;
pub mod related;
pub mod resolve;
pub mod runtime_header;
pub mod scope;
pub(crate) mod settled;
pub mod silent_store;
pub mod special_members;
pub mod stream_ordered;
pub mod syntax_error;
mod types;
pub mod visible;
pub mod walk;
pub mod word;
pub mod written_out;

pub(crate) use lower::parameters_in_text;
pub use lower::{body, parameters};
pub use types::*;
