//! `unused-suppression`

use super::KINDS;
use crate::base::db::{Db, SourceFile};
use crate::base::file_settings::settings;
use crate::base::place::FileRange;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Diagnostic, Edit, Kind};
use crate::diagnostics::suppress::{allowed, independent};
use crate::facts::launch::{Child, launches};
use crate::hir::items::{FunctionItem, items};
use crate::hir::{StmtKind, body};

pub(super) const KIND: Kind = Kind {
    id: "unused-suppression",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &[],
    // It's about comments, which stand anywhere in a file: see `unused_suppressions`.
    find: |_, _| Vec::new(),
};

const DOC: &str = r#"A comment that suppresses a diagnostic where there is none, or that is about nothing.

## What it does
Finds ids in `// gridfuse: allow(id)` that keep nothing quiet. A diagnostic that `gridfuse.toml` switches off is left out: nobody
knows whether it would be reported.

It also finds comments `// gridfuse: independent` that aren't about a statement of a recursive kernel, in front of its launch of itself
(see [promote-overlap](../rewrites/promote-overlap.md)).

## Why is this bad
The code was mended and the comment stayed. It tells the reader of a problem that isn't there, and hides the next one of that kind.
`gridfuse check --fix` removes it.

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
    let mut found = unused_markers(db, file, severity);
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

/// `// gridfuse: independent` where no rewrite asks for it.
fn unused_markers(db: &dyn Db, file: SourceFile, severity: Severity) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let markers = independent(db, file);
    if markers.is_empty() {
        return found;
    }
    let lines: Vec<u32> = items(db, file)
        .functions
        .iter()
        .flat_map(|function| markable(db, *function))
        .collect();
    for marker in markers {
        let covers = |start: &u32| marker.covers.start <= *start && *start < marker.covers.end;
        if lines.iter().any(covers) {
            continue;
        }
        found.push(Diagnostic {
            id: KIND.id,
            severity,
            place: FileRange {
                file,
                range: marker.place,
            },
            message: "no statement begins here that a kernel runs before it launches itself: this comment says nothing"
                .to_owned(),
            label: "says nothing".to_owned(),
            related: Vec::new(),
            help: Some("remove it, or put it in front of such a statement".to_owned()),
            rewrites: KIND.rewrites,
            edit: Some(Edit {
                title: "Remove this comment",
                range: marker.removal,
                insert: String::new(),
            }),
        });
    }
    found
}

/// Where the statements of a kernel's body begin that come before a launch of itself. What was a kernel before it was promoted keeps
/// its comments.
fn markable<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<u32> {
    let body = body(db, function);
    let Some(StmtKind::Block(stmts)) = body.root.map(|root| &body.stmt(root).kind) else {
        return Vec::new();
    };
    let own = launches(db, function)
        .iter()
        .filter(|facts| matches!(facts.child, Child::Kernel(kernel) if kernel == function));
    let last = own.map(|facts| facts.span.start).max();
    let first = body.params.first().map(|p| &body.binding(*p).ty.base);
    let promoted = first.is_some_and(|base| {
        PROMOTED
            .iter()
            .any(|name| base.trim_start_matches("::").starts_with(name))
    });
    let starts = stmts.iter().map(|stmt| body.stmt(*stmt).span);
    starts
        .filter(|span| promoted || last.is_some_and(|last| span.end <= last))
        .map(|span| span.start + function.start(db))
        .collect()
}

/// The types of the first parameter of what `promote-overlap` and `promote-lookback` make of a kernel's body.
const PROMOTED: [&str; 2] = ["gridfuse::Chain<", "gridfuse::DecoupledLookback<"];
