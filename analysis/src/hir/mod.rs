//! A function body in CUDA's terms: bindings, expressions and statements with function-relative spans, independent of the parser.
//!
//! Lowering is total: what it doesn't understand becomes [`ExprKind::Unknown`] or [`StmtKind::Unknown`], which every
//! analysis must treat as "may do anything".

mod alias;
mod casts;
mod declarator;
mod literal;
mod lower;
mod lower_expr;
mod lower_stmt;
mod types;

pub(crate) use alias::typedef_target;
pub(crate) use literal::integer_literal;
pub(crate) use lower::parameters_in_text;
pub(crate) use lower::words;
pub use lower::{Parameter, body, parameters};
pub(crate) use lower_expr::without_template_arguments;
pub use types::*;
