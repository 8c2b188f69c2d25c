//! How severe a diagnostic is.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Slow or fragile.
    Warning,
    /// Does not compile or computes the wrong thing.
    Error,
}
