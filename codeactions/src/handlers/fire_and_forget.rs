//! `fire-and-forget`

use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::Stream;
use gridfuse_analysis::hir::ExprId;

use crate::api::refusal::Ineligible;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::edit::lex::{self, TokenKind};
use crate::edit::style;
use crate::emit::was;
use crate::facts::order;
use crate::facts::site::Site;
use crate::facts::surroundings::{self, Errors};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "fire-and-forget",
    title: "Launch into the fire-and-forget stream",
    doc: DOC,
    options: &[],
    target: Target::Launch(Launches::Any),
    family: Family::Stream,
    measured: Measured::Alone,
    tunes: Some(Axis::Granularity(0)),
    unattended: true,
    undo: Undo::Layer(Layer::InNoOrder),
    run: apply,
};

const DOC: &str = r#"Launches child grids into `cudaStreamFireAndForget` rather than the NULL stream.

Grids that the threads of one block launch into the NULL stream run one at a time. A fire-and-forget grid is in no order with other grids:
it starts as soon as there is room. The parent grid still isn't complete before its children are.

## Needs
- The launch goes into the NULL stream, from a kernel or a device function.
- No device-side synchronisation or events in the launching function, and no `cudaMemsetAsync` or `cudaMemcpyAsync` in the NULL stream
  on memory that the grids may use, too.

It assumes that the grids don't rely on each other's order, unless only one thread of a block launches, once.

## Before
```cuda
__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expand<<<(count + 127) / 128, 128>>>(col, dist, level, begin, count);
}
```

## After
```cuda
__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expand<<<(count + 127) / 128, 128, 0, cudaStreamFireAndForget>>>(
        col, dist, level, begin, count);
}
```

## Source
CUDA C++ Programming Guide, CUDA Dynamic Parallelism, "The Fire-and-Forget Stream". The hand-tuned variant in the evaluations of
El Hajj (dissertation, 2018) and Olabi et al. (CGO 2022) is a stream for each thread; this is its cheaper successor.
"#;

const STREAM: &str = "cudaStreamFireAndForget";

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let db = ctx.db;
    let mut draft = Draft::begin(ctx)?;
    let Draft {
        site, edit, refusals, ..
    } = &mut draft;
    site.refuse_common(refusals);
    let stream_place = site.facts.stream_operand.as_ref().map(|o| site.place(o.span));
    match site.facts.stream {
        Stream::Null => {}
        Stream::FireAndForget => refusals.add(format!("it goes into {STREAM} already"), stream_place),
        Stream::TailLaunch => refusals.add(
            "a tail launch runs after the launching grid, a fire-and-forget launch at once",
            stream_place,
        ),
        Stream::PerThread => refusals.add(
            "it goes into the thread's own stream (cudaStreamPerThread, `--default-stream per-thread`), not the NULL stream",
            stream_place,
        ),
        Stream::Created(_) => refusals.add("it goes into a stream of its own already", stream_place),
        Stream::Other => refusals.add("which stream it goes into isn't known", stream_place),
    }
    let effects = effects(db, site.parent);
    // A launch that fails does so in this stream, too.
    surroundings::assume_nothing_else(site, Errors::Stay, edit);
    let who = format!("`{}` or a function it calls", site.parent_name());
    let waits = effects
        .syncs
        .iter()
        .map(|found| (surroundings::waits_for_children(&who, &found.what), found));
    let events = effects
        .events
        .iter()
        .map(|found| (format!("{who} uses {}", found.what), found));
    for (what, found) in waits.chain(events) {
        if found.place.file == site.file && site.body.exprs.iter().any(|e| site.place(e.span) == found.place) {
            continue;
        }
        if refusals.is_empty() {
            refusals.add(what, Some(found.place));
        }
    }
    if site.facts.stream == Stream::Null {
        order::stream_operations(site, refusals, edit);
        order::null_stream(site, order::AtOnce::Nothing, &[], refusals, edit);
    }
    refusals.check()?;

    launch_into(site, edit);
    draft.finish()
}

/// Writes the stream into the launch, which gets further lines where one would be too wide.
fn launch_into(site: &Site<'_>, edit: &mut EditBuilder<'_>) {
    let operands = &site.launch.config;
    let of = |expr: &ExprId| site.expr_source(*expr).to_owned();
    let mut config: Vec<String> = operands.iter().map(of).collect();
    let told = match config.as_slice() {
        [_, _] => true,
        [_, _, shared] => shared != "0",
        _ => false,
    };
    let added = match operands.len() {
        2 => format!(", 0, {STREAM}"),
        3 => format!(", {STREAM}"),
        _ => String::new(),
    };
    let replaced = operands.get(3).map_or(0, |stream| of(stream).len());
    let here = site.here();
    let arguments: Vec<String> = site.launch.args.iter().map(of).collect();
    let template = site.launch.template_args.map_or("", |written| site.source(written));
    let name = format!("{}{template}", site.source(site.launch.name_span));
    let style = edit.style(site.file);
    let end = here.range.end as usize;
    let line = site
        .text
        .get(style::line_start(&site.text, end)..style::line_end(&site.text, end));
    let longer = added.len().max(if replaced > 0 { STREAM.len() } else { 0 });
    // The stream may stand on another line than the last one.
    let width = line.map_or(0, |line| {
        (style::columns(line.trim_end()) + longer).saturating_sub(replaced)
    });
    let is_plain =
        site.source(site.facts.span) == was::plain(&site.text, here.range, &style, &name, &config, &arguments);
    // Comments among its parts would be lost.
    let has_comments = lex::tokens(site.source(site.facts.span))
        .iter()
        .any(|token| token.kind == TokenKind::Comment);
    let is_laid_out = !site.facts.from_macro && width > style.width && (is_plain || !has_comments);
    if !told || is_laid_out && !is_plain {
        was::note(site, edit);
    }
    if is_laid_out {
        config.resize(3, "0".to_owned());
        config.push(STREAM.to_owned());
        edit.replace(
            here,
            was::laid_out(&site.text, here.range, &style, &name, &config, &arguments),
        );
        return;
    }
    let last = operands.last().map_or(site.facts.span, |c| site.body.expr(*c).span);
    let end = last.shift(site.start).end;
    match operands.len() {
        2 | 3 => edit.insert(site.file, end, added),
        _ => edit.replace(site.place(last), STREAM),
    }
}
