//! What a diagnostic is. The diagnostics themselves are one file each in [`crate::diagnostics`].

use crate::base::db::Db;
use crate::base::place::FileRange;
use crate::base::severity::Severity;
use crate::base::span::{Span, TextRange};
use crate::hir::items::FunctionItem;

/// A further place that explains a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Related {
    /// Where.
    pub place: FileRange,
    /// What is there.
    pub message: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Diagnostic {
    /// Id of its kind: `launch-in-loop`.
    pub id: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Where.
    pub place: FileRange,
    /// One sentence: what is wrong.
    pub message: String,
    /// Label under the caret in text output; short.
    pub label: String,
    /// Causes.
    pub related: Vec<Related>,
    /// What to do.
    pub help: Option<String>,
    /// Ids of rewrites that mend it, best first (whether they are eligible is another question).
    pub rewrites: &'static [&'static str],
    /// A small edit of the same file that mends it and changes nothing that a compiler sees.
    pub edit: Option<Edit>,
}

/// An edit that mends a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Edit {
    /// Imperative: `Remove this suppression`.
    pub title: &'static str,
    /// What is replaced, in the diagnostic's file.
    pub range: TextRange,
    /// By what.
    pub insert: String,
}

/// A cause of a finding: function, place in it, what is there.
pub type Cause<'db> = (FunctionItem<'db>, Span, String);

/// What a diagnostic says, with places relative to functions: independent of where the functions stand in their files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Finding<'db> {
    /// Where in the function.
    pub span: Span,
    /// One sentence: what is wrong.
    pub message: String,
    /// Label under the caret in text output; short.
    pub label: String,
    /// Causes.
    pub related: Vec<Cause<'db>>,
    /// What to do.
    pub help: Option<String>,
}

/// A kind of diagnostic: one entry of the table [`crate::diagnostics::KINDS`].
pub struct Kind {
    /// Its id, kebab-case.
    pub id: &'static str,
    /// Default severity.
    pub severity: Severity,
    /// Markdown with the sections `## What it does`, `## Why is this bad`, `## Example`, `## Use instead`.
    pub doc: &'static str,
    /// Ids of rewrites that mend it, best first.
    pub rewrites: &'static [&'static str],
    /// Finds all in one function that has a body.
    pub find: for<'db> fn(&'db dyn Db, FunctionItem<'db>) -> Vec<Finding<'db>>,
}
