//! Branches of `#if`.

/// What becomes of a branch of `#if`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Branch {
    /// It is compiled, and no other branch is.
    Live,
    /// It is not compiled.
    Dead,
    /// Not known.
    #[default]
    Maybe,
}
