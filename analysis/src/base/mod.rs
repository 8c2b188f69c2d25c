//! From files to syntax trees: the database, texts and their trees, the preprocessor, and what a project says about itself.

pub mod budget;
pub mod closest;
pub mod command;
pub mod compile;
pub mod db;
pub(crate) mod fields;
pub mod file_settings;
pub mod include;
pub mod limits;
pub(crate) mod literal;
pub mod mask;
pub mod parse;
pub mod parsed;
pub mod place;
pub mod preprocess;
pub(crate) mod scan;
pub mod settings;
pub mod severity;
pub(crate) mod skeleton;
pub mod span;
pub(crate) mod tree_cache;
pub(crate) mod words;
