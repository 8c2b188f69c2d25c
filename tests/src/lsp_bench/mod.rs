//! Measures language servers over standard input and output, each with the same script: what `gridfuse-bench` runs.
//!
//! | module | what it is for |
//! |---|---|
//! | [`echo`] | a server that does nothing, to measure the client itself |
//! | [`inputs`] | what the servers are given: files and workspaces |
//! | [`generate`] | programs of any length and workspaces of any number of files |
//! | [`launch`] | the launch of a source that is asked about, and where to edit |
//! | [`page`] | `docs/responsiveness.md` |
//! | [`plot`] | its plots |
//! | [`record`] | what was measured, as JSON |
//! | [`run`] | servers and inputs, one after the other |
//! | [`script`] | what is done with one server and one input |
//! | [`servers`] | how servers are started |
//! | [`session`] | a client with a clock |
//! | [`watch`] | processor time, memory and idleness of a process |

pub mod echo;
pub mod generate;
pub mod inputs;
pub mod launch;
pub mod page;
pub mod plot;
pub mod record;
pub mod run;
pub mod script;
pub mod servers;
pub mod session;
pub mod watch;
