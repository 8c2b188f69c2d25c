//! Ways to install gridfuse, each tried in an empty directory with nothing of the project, and what is written down of that.

pub mod cross;
pub mod page;
pub mod record;
#[cfg(unix)]
pub mod registry;
#[cfg(unix)]
pub mod routes;
