//! `unused-suppression`

use super::KINDS;
use crate::db::{Db, SourceFile};
use crate::diagnostic::{Diagnostic, Edit, Kind, Severity};
use crate::settings::settings;
use crate::span::FileRange;
use crate::suppress::allowed;

pub(super) const KIND: Kind = Kind {
    id: "unused-suppression",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &[],
    // It's about comments, which stand anywhere in a file: see `unused_suppressions`.
    find: |_, _| Vec::new(),
};

const DOC: &str = r#"A comment that keeps a diagnostic quiet which isn't reported there.

## What it does
Finds ids in `// gridfuse: allow(id)` that keep nothing quiet. A diagnostic that `gridfuse.toml` switches off is left out: nobody
knows whether it would be reported.

## Why is this bad
The code was mended and the comment stayed. It tells the reader of a problem that there isn't, and hides the next one of that
kind. `gridfuse check --fix` removes it.

## Example
```cuda
__global__ void child(float* rows) { rows[blockIdx.x * 64 + threadIdx.x] *= 2.0f; }

__global__ void parent(float* matrix) {
    if (threadIdx.x == 0)
        child<<<3, 64>>>(matrix);  // gridfuse: allow(launch-in-loop) only three
}
```

## Use instead
```cuda
__global__ void child(float* rows) { rows[blockIdx.x * 64 + threadIdx.x] *= 2.0f; }

__global__ void parent(float* matrix) {
    if (threadIdx.x == 0)
        child<<<3, 64>>>(matrix);
}
```
"#;

/// The suppressions of a file that keep none of the findings in it quiet.
pub(super) fn unused_suppressions(
    db: &dyn Db,
    file: SourceFile,
    severity: Severity,
    findings: &[Diagnostic],
) -> Vec<Diagnostic> {
    let settings = settings(db, file);
    let mut found = Vec::new();
    for allow in allowed(db, file) {
        let Some(id) = &allow.id else { continue };
        let Some(kind) = KINDS.iter().find(|kind| kind.id == id.as_str()) else {
            continue;
        };
        let judged = kind.id != KIND.id && settings.severity(kind.id, kind.severity).is_some();
        if !judged
            || findings
                .iter()
                .any(|finding| allow.silences(finding.id, finding.place.range))
        {
            continue;
        }
        found.push(Diagnostic {
            id: KIND.id,
            severity,
            place: FileRange {
                file,
                range: allow.place,
            },
            message: format!("`{id}` isn't reported here: this comment keeps nothing quiet"),
            label: "keeps nothing quiet".to_owned(),
            related: Vec::new(),
            help: Some("remove it".to_owned()),
            rewrites: KIND.rewrites,
            edit: Some(Edit {
                title: "Remove this suppression",
                range: allow.removal,
                insert: String::new(),
            }),
        });
    }
    found
}
