//! gridfuse in a browser: a question about one program as JSON goes in, the answer as JSON comes out. What is in the answer are the types
//! that the command line prints. [`memory`] hands texts over to JavaScript, [`session`] answers.

pub mod answers;
pub mod memory;
pub mod questions;
pub mod session;
