//! The transformations behind the rewrites.

pub mod accumulate;
pub mod aggregate;
pub mod continuation;
pub mod extraction;
pub mod fission;
pub mod in_launcher;
pub mod iteration;
pub mod promotion;
pub mod refused_launches;
pub mod rounds;
pub mod self_launch;
pub mod stream;
