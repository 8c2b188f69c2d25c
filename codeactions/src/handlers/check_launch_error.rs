//! `check-launch-error`

use gridfuse_analysis::base::preprocess::MacroState;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::macros::macro_at;

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Family, Measured, Offered, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::edit::include::add_system_include;
use crate::edit::style;
use crate::emit::target;
use crate::facts::surroundings::{self, Errors};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "check-launch-error",
    title: "Check the launch and print its error",
    doc: DOC,
    options: &[],
    target: Target::Place(Offered::ByDiagnostics),
    family: Family::Repair,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Not("what was there was wrong"),
    run: apply,
};

const DOC: &str = r#"Prints why a launch by device code failed, when it did.

The host doesn't learn of it, so without this the work is just not done. Where rewrites collect launches or do without them, code that
looks at their errors no longer sees any; these rewrites name that as an assumption.

## Needs
- A launch that is a statement of its own, in a function that doesn't look at errors yet.

## Before
```cuda
__global__ void child(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = n; }

__global__ void parent(int* out, const int* counts) {
    int n = counts[threadIdx.x];
    if (n > 0) child<<<1, 64, 0, cudaStreamFireAndForget>>>(out, n);
}
```

## After
```cuda
#include <cstdio>

__global__ void child(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = n; }

__global__ void parent(int* out, const int* counts) {
    int n = counts[threadIdx.x];
    if (n > 0) {
        child<<<1, 64, 0, cudaStreamFireAndForget>>>(out, n);
        if (cudaError_t error = cudaGetLastError()) printf("child: %s\n", cudaGetErrorString(error));
    }
}
```

## Source
CUDA C++ Programming Guide, CUDA Dynamic Parallelism, "API Errors and Launch Failures"; the diagnostic `unchecked-launch`.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let db = ctx.db;
    let mut draft = Draft::begin(ctx)?;
    let Draft {
        site,
        edit: _,
        refusals,
        ..
    } = &mut draft;
    site.refuse_common(refusals);
    surroundings::refuse_asked(site, refusals);
    target::refuse_place(site, refusals);
    let taken = |name: &str| site.body.bindings.iter().any(|b| b.name == name);
    for name in ["printf", "cudaGetLastError", "cudaGetErrorString"] {
        if taken(name) {
            refusals.add(
                format!("`{}` has a variable named `{name}`", site.parent_name()),
                Some(site.here()),
            );
        }
    }
    for name in [
        "error",
        "printf",
        "cudaError_t",
        "cudaGetLastError",
        "cudaGetErrorString",
    ] {
        let state = macro_at(db, site.parent, site.facts.span.start, name);
        if matches!(state, Some(MacroState::Defined(_) | MacroState::DefinedSomehow)) {
            refusals.add(format!("`{name}` is a macro here"), Some(site.here()));
        }
    }
    let statement = site.facts.statement;
    let statement = draft.settle(statement)?;
    let Draft { site, edit, .. } = &mut draft;
    surroundings::assume_nothing_else(site, Errors::Stay, edit);
    let printing = included_files(db, site.file).iter().any(|f| {
        let text = f.text(db);
        ["<cstdio>", "<stdio.h>"].iter().any(|name| text.contains(name))
    });
    if !printing {
        add_system_include(edit, site.file, "cstdio");
    }
    let span = site.body.stmt(statement).span;
    let indent = style::indent_at(&site.text, site.place(span).range.start as usize).to_owned();
    let launch = style::reindent(&site.source(span).replace("\r\n", "\n"), &indent, "");
    let check = format!(
        "if (cudaError_t error = cudaGetLastError()) printf(\"{}: %s\\n\", cudaGetErrorString(error));",
        site.child_name()
    );
    target::replace_statement(site, statement, &format!("{launch}\n{check}"), edit);
    draft.finish()
}
