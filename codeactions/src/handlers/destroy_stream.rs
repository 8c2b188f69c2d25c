//! `destroy-stream`

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::launch::Places;
use gridfuse_analysis::facts::streams::created_streams;
use gridfuse_analysis::hir::{BindingId, Body, ExprKind, Name, StmtId, StmtKind, body};

use crate::api::refusal::Ineligible;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Family, Measured, Offered, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::EditBuilder;
use crate::edit::builder::finish;
use crate::edit::style;
use crate::facts::site::function_around;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "destroy-stream",
    title: "Destroy the stream after its last launch",
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

const DOC: &str = r#"Adds `cudaStreamDestroy` after the last launch into a stream that a thread has created.

The launched grids run all the same; only the handle is given back.

## Needs
- A stream that is created and used in the block in which it is declared, and not handed to another function.

## Before
```cuda
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    child<<<1, 64, 0, stream>>>(out + 64 * threadIdx.x);
}
```

## After
```cuda
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void parent(int* out) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    child<<<1, 64, 0, stream>>>(out + 64 * threadIdx.x);
    cudaStreamDestroy(stream);
}
```

## Source
CUDA C++ Programming Guide, CUDA Dynamic Parallelism, "Streams"; the diagnostic `leaked-stream`.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let (db, place) = (ctx.db, ctx.place()?);
    let nothing = || refuse("no stream that is never destroyed is created here", Some(place));
    let function = function_around(db, place).ok_or_else(nothing)?;
    let body = body(db, function);
    let start = function.start(db);
    let stream = created_streams(db, function)
        .iter()
        .find(|s| {
            let range = s.created.shift(start);
            !s.destroyed && range.start <= place.range.end && place.range.start <= range.end
        })
        .ok_or_else(nothing)?;
    let name = body.binding(stream.binding).name.clone();
    let refused = |why: &str, at: Span| {
        let range = at.shift(start);
        refuse(
            format!("`{name}` {why}"),
            Some(FileRange {
                file: place.file,
                range,
            }),
        )
    };
    if stream.escapes || !body.problems.is_empty() {
        return Err(refused("may be used elsewhere", stream.created));
    }
    let leaves = body
        .stmts
        .iter()
        .any(|s| matches!(s.kind, StmtKind::Goto(_) | StmtKind::Label(..) | StmtKind::Asm { .. }));
    let ty = &body.binding(stream.binding).ty;
    let last = last_use(&body, stream.binding, stream.created).filter(|_| !leaves && ty.array.is_empty());
    let Some(last) = last else {
        return Err(refused(
            "isn't created and used in the block where it is declared",
            stream.created,
        ));
    };
    let mut edit = EditBuilder::new(db);
    let text = edit.text(place.file);
    let at = body.stmt(last).span.shift(start);
    let style = edit.style(place.file);
    let indent = style::indent_at(&text, at.start as usize).to_owned();
    let code = format!("{}{indent}cudaStreamDestroy({name});", style.newline);
    // Behind a comment in the same line.
    let end = style::logical_line_end(&text, at.end as usize);
    let rest = text.get(at.end as usize..end).unwrap_or("");
    let whole = rest.trim().is_empty() || rest.trim_start().starts_with("//");
    let at = if whole && !rest.trim().is_empty() {
        end as u32
    } else {
        at.end
    };
    edit.insert(place.file, at, code);
    finish(edit)
}

/// The last statement of the block that declares a stream in which it is used; the stream is created there, too, for sure.
fn last_use(body: &Body, binding: BindingId, created: Span) -> Option<StmtId> {
    let places = Places::of(body);
    let (declaration, _) = body.declaration(binding)?;
    let block = places.parent(declaration)?;
    let StmtKind::Block(stmts) = &body.stmt(block).kind else {
        return None;
    };
    let creation = stmts.iter().position(|s| body.stmt(*s).span.contains(created))?;
    let StmtKind::Expr(_) = body.stmt(stmts[creation]).kind else {
        return None;
    };
    let uses: Vec<Span> = body
        .exprs
        .iter()
        .filter(|e| matches!(e.kind, ExprKind::Name(Name::Local(b)) if b == binding))
        .map(|e| e.span)
        .collect();
    let last = stmts
        .iter()
        .rposition(|s| uses.iter().any(|u| body.stmt(*s).span.contains(*u)))?;
    // Where control can't get behind it, it would do nothing.
    let goes_on = !matches!(body.stmt(stmts[last]).kind, StmtKind::Return(_));
    (last > creation && goes_on).then(|| stmts[last])
}
