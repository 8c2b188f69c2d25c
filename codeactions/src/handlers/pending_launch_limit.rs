//! `raise-pending-launch-limit` and `restore-pending-launch-limit`

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::launch::{Bound, Launchers, launch_counts, launches, statement_places};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::resolve::launch_sites_of;
use gridfuse_analysis::hir::{ExprKind, Name, StmtKind, body};

use crate::api::assumption;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Family, Measured, Offered, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::EditBuilder;
use crate::edit::builder::finish;
use crate::edit::style;
use crate::facts::program::files_of;
use crate::facts::site::Site;
use crate::facts::site::function_around;
use crate::facts::site::site_at;
use crate::runtime::is_header;

pub(super) const RAISE: Rewrite = Rewrite {
    id: "raise-pending-launch-limit",
    title: "Raise the pending-launch limit",
    doc: RAISE_DOC,
    options: &[],
    target: Target::Place(Offered::ByDiagnostics),
    family: Family::Repair,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Not("what was there was wrong"),
    run: raise,
};

pub(super) const RESTORE: Rewrite = Rewrite {
    id: "restore-pending-launch-limit",
    title: "Restore the default pending-launch limit",
    doc: RESTORE_DOC,
    options: &[],
    target: Target::Place(Offered::Everywhere),
    family: Family::Repair,
    measured: Measured::No,
    tunes: None,
    unattended: false,
    undo: Undo::Not("what was there was wrong"),
    run: restore,
};

const LIMIT: &str = "cudaLimitDevRuntimePendingLaunchCount";

const RAISE_DOC: &str = r#"Raises the limit of pending launches to what one grid launches, at the beginning of the host function that launches the parent.

Each launch costs more with a higher limit: on an H200 2 µs and more instead of 0.8. Fewer launches (`aggregate-*`) are better.

## Needs
- A number of launches that is known, and one host function that launches the parent.

It assumes that no kernel runs before that function: after one, the limit can't be changed any more.

## Before
```cuda
__global__ void child(float* row) { row[threadIdx.x] *= 2.0f; }

__global__ void parent(float* matrix) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    child<<<1, 64, 0, cudaStreamFireAndForget>>>(matrix + 64 * r);
}

void run(float* matrix) {
    parent<<<64, 128>>>(matrix);
}
```

## After
```cuda
__global__ void child(float* row) { row[threadIdx.x] *= 2.0f; }

__global__ void parent(float* matrix) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    child<<<1, 64, 0, cudaStreamFireAndForget>>>(matrix + 64 * r);
}

void run(float* matrix) {
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 8192);
    parent<<<64, 128>>>(matrix);
}
```

## Source
CUDA C++ Programming Guide, CUDA Dynamic Parallelism, "Pending Kernel Launches"; the diagnostic `pending-launch-limit`.
"#;

const RESTORE_DOC: &str = r#"Takes out a call that raises the limit of pending launches, once the program's launches are collected and need no such limit.

Each launch costs more while the limit is raised: on an H200 2 µs and more instead of 0.8. An aggregated search through a graph takes up to
twice as long (see [measurements](../measurements.md), `p2048`).

## Needs
- The call is a statement of its own.
- Device code launches by `gridfuse::Aggregator` alone.

It assumes that no grid has more than 2048 collected launches pending: one for each of its blocks with `PerBlock`.

## Before
```cuda
#include "gridfuse.cuh"

struct child_args { int row; };

__global__ void child_aggregated(gridfuse::Batch<child_args> batch, float* matrix) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const child_args& args) {
        matrix[64 * args.row + threadIdx.x] *= 2.0f;
    });
}

__global__ void parent(float* matrix, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> children(arena, matrix);
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    children.launch(1, 64, {r});
}

void run(float* matrix) {
    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 8192);
    parent<<<64, 128>>>(matrix, gridfuse::arena_for(64, 128));
}
```

## After
```cuda
#include "gridfuse.cuh"

struct child_args { int row; };

__global__ void child_aggregated(gridfuse::Batch<child_args> batch, float* matrix) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const child_args& args) {
        matrix[64 * args.row + threadIdx.x] *= 2.0f;
    });
}

__global__ void parent(float* matrix, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> children(arena, matrix);
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    children.launch(1, 64, {r});
}

void run(float* matrix) {
    parent<<<64, 128>>>(matrix, gridfuse::arena_for(64, 128));
}
```

## Source
CUDA C++ Programming Guide, CUDA Dynamic Parallelism, "Pending Kernel Launches"; measured on an H200.
"#;

fn raise(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let (db, place) = (ctx.db, ctx.place()?);
    let site = site_at(db, place)?;
    let counts = launch_counts(db, site.parent);
    let count = counts.get(site.id.index as usize).map(|c| &c.per_grid);
    let wanted = count.map_or(0, |c| match c.at_most {
        Bound::Constant(n) => n,
        _ => c.at_least,
    });
    if wanted <= gridfuse_analysis::base::limits::PENDING_LAUNCHES {
        return Err(refuse("how many launches there are isn't known", Some(site.here())));
    }
    if let Some(call) = limits_in_program(db, site.file).first() {
        return Err(refuse("the limit is set here already", Some(*call)));
    }
    let hosts: Vec<Site<'_>> = launch_sites_of(db, site.parent)
        .into_iter()
        .filter_map(|id| Site::new(db, id).ok())
        .collect();
    let Some(host) = hosts.first().filter(|h| h.facts.launchers == Launchers::Host) else {
        return Err(refuse(
            format!("no host function launches `{}`", site.parent_name()),
            Some(site.here()),
        ));
    };
    if let Some(other) = hosts.iter().find(|h| h.parent != host.parent) {
        return Err(refuse(
            format!("several functions launch `{}`", site.parent_name()),
            Some(other.here()),
        ));
    }
    let mut edit = EditBuilder::new(db);
    edit.assume(assumption::LIMIT_SET_FIRST.of(Reason {
        text: format!("no kernel has run when `{}` is called", host.parent_name()),
        place: Some(host.here()),
    }));
    let open = host.parent.body_span(db).shift(host.start).start as usize + 1;
    let style = edit.style(host.file);
    let indent = format!("{}{}", style::indent_at(&host.text, host.start as usize), style.unit);
    let rest = host.text.get(open..style::line_end(&host.text, open)).unwrap_or("");
    if !rest.trim().is_empty() {
        return Err(refuse(
            "the function's first statement stands on the line of its brace",
            Some(host.here()),
        ));
    }
    let code = format!("{}{indent}cudaDeviceSetLimit({LIMIT}, {wanted});", style.newline);
    edit.insert(host.file, open as u32, code);
    finish(edit)
}

fn restore(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let (db, place) = (ctx.db, ctx.place()?);
    let nothing = || refuse("the limit of pending launches isn't set here", Some(place));
    let function = function_around(db, place).ok_or_else(nothing)?;
    if !function.text(db).contains(LIMIT) {
        return Err(nothing());
    }
    let lowered = body(db, function);
    let places = statement_places(db, function);
    let start = function.start(db);
    let statement = lowered.exprs.iter().enumerate().find_map(|(index, expr)| {
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &expr.kind
        else {
            return None;
        };
        let which = args.first().map(|a| &lowered.expr(lowered.strip_parens(*a)).kind);
        let limit = matches!(which, Some(ExprKind::Name(Name::Other(n))) if n == LIMIT);
        let range = expr.span.shift(start);
        let here = range.start <= place.range.end && place.range.start <= range.end;
        let id = gridfuse_analysis::hir::ExprId(index as u32);
        let stmt = places.statement_of(id)?;
        (name == "cudaDeviceSetLimit" && limit && here).then_some((stmt, id))
    });
    let (statement, call) = statement.ok_or_else(nothing)?;
    let alone = matches!(lowered.stmt(statement).kind, StmtKind::Expr(e) if lowered.strip_parens(e) == call)
        && places
            .parent(statement)
            .is_some_and(|p| matches!(lowered.stmt(p).kind, StmtKind::Block(_)));
    if !alone {
        return Err(refuse("the call is part of a larger statement", Some(place)));
    }
    let mut collected = false;
    for file in Workspace::try_get(db).map(|w| w.files(db)).unwrap_or_default().values() {
        if is_header(db, *file) {
            continue;
        }
        collected |= file.text(db).contains("gridfuse::Aggregator");
        for function in items(db, *file).functions.iter().filter(|f| f.has_body(db)) {
            let direct = launches(db, *function).iter().find(|l| l.launchers != Launchers::Host);
            if let Some(launch) = direct {
                let range = launch.span.shift(function.start(db));
                return Err(refuse(
                    "device code launches directly here, and may need the limit",
                    Some(FileRange { file: *file, range }),
                ));
            }
        }
    }
    if !collected {
        return Err(refuse("no launch of the program is collected", Some(place)));
    }
    let mut edit = EditBuilder::new(db);
    edit.assume(assumption::PENDING_LAUNCHES.of(Reason {
        text: "no more than 2048 collected launches are pending at a time (one for each block of the parent with `PerBlock`)"
            .to_owned(),
        place: Some(place),
    }));
    edit.delete_lines(FileRange {
        file: place.file,
        range: lowered.stmt(statement).span.shift(start),
    });
    finish(edit)
}

/// Where the program that a file is a part of names the limit.
fn limits_in_program(db: &dyn Db, file: SourceFile) -> Vec<FileRange> {
    let found = files_of(db, file).into_iter().filter_map(|file| {
        let at = file.text(db).find(LIMIT)? as u32;
        let range = gridfuse_analysis::base::span::TextRange::new(at, at + LIMIT.len() as u32);
        Some(FileRange { file, range })
    });
    found.collect()
}
