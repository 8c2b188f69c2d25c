//! `unknown-suppression`

use super::KINDS;
use crate::base::closest::closest;
use crate::base::db::{Db, SourceFile};
use crate::base::place::FileRange;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Diagnostic, Kind};
use crate::diagnostics::suppress::allowed;

pub(super) const KIND: Kind = Kind {
    id: "unknown-suppression",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &[],
    // It's about comments, which stand anywhere in a file: see `unknown_suppressions`.
    find: |_, _| Vec::new(),
};

const DOC: &str = r#"A comment that should keep a diagnostic quiet and cannot.

## What it does
Finds comments that begin with `gridfuse:` and aren't of the form `gridfuse: allow(id)` or `allow(id, id)` (nor `gridfuse: independent`
or `gridfuse: run …`, which say other things), and those that name a diagnostic that doesn't exist. A suppression is about its own line or,
when it stands alone, about the next line with code. What follows the parenthesis is the reason, for the reader.

## Why is this bad
The diagnostic that it was meant for is reported all the same, or will be, unnoticed, after the comment lost its meaning.

## Example
```cuda
__global__ void child(float* row) { row[threadIdx.x] *= 2.0f; }

__global__ void parent(float* matrix) {
    if (threadIdx.x == 0)
        for (int r = 0; r < 3; ++r)
            child<<<1, 64>>>(matrix + 64 * r);  // gridfuse: allow(launch-in-loops) only three
}
```

## Use instead
```cuda
__global__ void child(float* row) { row[threadIdx.x] *= 2.0f; }

__global__ void parent(float* matrix) {
    if (threadIdx.x == 0)
        for (int r = 0; r < 3; ++r)
            child<<<1, 64>>>(matrix + 64 * r);  // gridfuse: allow(launch-in-loop) only three
}
```
"#;

/// The findings of a file, with this severity.
pub(super) fn unknown_suppressions(db: &dyn Db, file: SourceFile, severity: Severity) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for allow in allowed(db, file) {
        let mut help = "`gridfuse list` names them all".to_owned();
        let (message, label) = match &allow.id {
            None => (
                "this comment addresses gridfuse and is not of the form `gridfuse: allow(id) reason`".to_owned(),
                "not understood",
            ),
            Some(id) if KINDS.iter().all(|kind| kind.id != id.as_str()) => {
                if let Some(meant) = closest(id, KINDS.iter().map(|kind| kind.id)) {
                    help = format!("did you mean `{meant}`? {help}");
                }
                (format!("there is no diagnostic `{id}`"), "no such diagnostic")
            }
            Some(_) => continue,
        };
        found.push(Diagnostic {
            id: KIND.id,
            severity,
            place: FileRange {
                file,
                range: allow.place,
            },
            message,
            label: label.to_owned(),
            related: Vec::new(),
            help: Some(help),
            rewrites: KIND.rewrites,
            edit: None,
        });
    }
    found
}
