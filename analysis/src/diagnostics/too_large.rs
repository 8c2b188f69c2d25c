//! `too-large`

use crate::base::budget::{CALLEES, FILE_BYTES, FUNCTION_BYTES, GOTOS, LAUNCHES, TOO_LARGE};
use crate::base::db::{Db, SourceFile};
use crate::base::parse::large_ranges;
use crate::base::place::FileRange;
use crate::base::severity::Severity;
use crate::base::span::TextRange;
use crate::diagnostics::diagnostic::{Diagnostic, Finding, Kind};
use crate::facts::effects::leads_too_far;
use crate::facts::uniformity::{MAY_TAKE_LONG, uniformity};
use crate::hir::body;
use crate::hir::items::FunctionItem;
use crate::hir::items::items;

pub(super) const KIND: Kind = Kind {
    id: "too-large",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &[],
    find: too_large_function,
};

const DOC: &str = r#"A function, a declaration or a file that is too large to be analysed.

## What it does
Finds functions, files and other declarations that are beyond what gridfuse analyses: by their size, by how many launches or jumps a
function has, or by how deeply brackets and blocks nest. The limits count bytes and steps, not time: they are the same on every machine.

## Why is this bad
gridfuse knows nothing of this code. Whatever depends on it counts as unknown: no other diagnostic is reported for it, and no rewrite is
offered that would have to know. Code of this size is written by programs more often than by people.

## Example
```cuda
#define FOUR(...) __VA_ARGS__ __VA_ARGS__ __VA_ARGS__ __VA_ARGS__

__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    // 256 launches.
    FOUR(FOUR(FOUR(FOUR(child<<<1, 32>>>(out);))))
}
```

## Use instead
```cuda
__global__ void child(int* out) { out[blockIdx.x * 32 + threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    if (threadIdx.x == 0) child<<<256, 32>>>(out);
}
```
"#;

fn too_large_function<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let body = body(db, function);
    let large = body.problems.iter().any(|(_, reason)| reason == TOO_LARGE);
    // Of device functions nobody asks what they do but the kernels that call them.
    let device = function.signature(db).kernel || function.signature(db).device;
    let steps = || device && body.exprs.len() > MAY_TAKE_LONG && uniformity(db, function).too_large;
    let far = || function.signature(db).kernel && !body.exprs.is_empty() && leads_too_far(db, function);
    let (message, label) = if large {
        (
            format!("{TOO_LARGE}: nothing is known of what it does"),
            "not analysed".to_owned(),
        )
    } else if steps() {
        (
            "this function is too large: how uniform what it computes is isn't known".to_owned(),
            "not analysed".to_owned(),
        )
    } else if far() {
        (
            format!("this kernel leads to more than {CALLEES} functions: what they do isn't known"),
            "not followed".to_owned(),
        )
    } else {
        return Vec::new();
    };
    vec![Finding {
        span: function.signature(db).name_span,
        message,
        label,
        related: Vec::new(),
        help: Some(format!(
            "a function is analysed up to {} KB, {LAUNCHES} launches, {GOTOS} jumps and {CALLEES} functions that it calls",
            FUNCTION_BYTES >> 10
        )),
    }]
}

/// What is too large outside of functions, with this severity.
pub(super) fn too_large_in_file(db: &dyn Db, file: SourceFile, severity: Severity) -> Vec<Diagnostic> {
    let large = &large_ranges(db, file);
    if large.is_empty() {
        return Vec::new();
    }
    let text = file.text(db);
    let whole = text.len() > FILE_BYTES;
    let functions = &items(db, file).functions;
    let in_function = |range: &TextRange| {
        functions.iter().any(|f| {
            let start = f.start(db);
            f.has_body(db) && (start..start + f.body_span(db).end).contains(&range.start)
        })
    };
    // Of what a table holds nobody wants to know.
    let in_table = |range: &TextRange| {
        let before = text.get(..range.start as usize).unwrap_or("").trim_end();
        before
            .strip_suffix('{')
            .is_some_and(|before| before.trim_end().ends_with('='))
    };
    let (message, help) = match whole {
        true => (
            "this file is too large to be analysed: nothing is known of what stands in it",
            Some(format!("a file is analysed up to {} MB", FILE_BYTES >> 20)),
        ),
        false => (
            "this is too large, or too deep within other things, to be analysed",
            None,
        ),
    };
    let shown = large
        .iter()
        .filter(|range| whole || !in_function(range) && !in_table(range));
    let diagnostic = |range: &TextRange| {
        let rest = range.text(&text);
        let line = rest.find('\n').unwrap_or(rest.len()).min(80);
        let line = (0..=line).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
        Diagnostic {
            id: KIND.id,
            severity,
            place: FileRange {
                file,
                range: TextRange::new(range.start, range.start + line as u32),
            },
            message: message.to_owned(),
            label: "not analysed".to_owned(),
            related: Vec::new(),
            help: help.clone(),
            rewrites: KIND.rewrites,
            edit: None,
        }
    };
    shown.map(diagnostic).collect()
}
