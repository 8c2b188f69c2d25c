//! `coarsen`

use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::hir::resolve::{Meaning, meaning};

use crate::api::refusal::Ineligible;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Axis, Family, Launches, Layer, Measured, OptionSpec, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::{Names, camel};
use crate::edit::style;
use crate::emit::described;
use crate::emit::launch_bounds;
use crate::emit::outline::{self};
use crate::emit::target;
use crate::emit::was;
use crate::facts::barriers;
use crate::facts::child::Child;
use crate::facts::configured::refuse_configured;
use crate::facts::grid_stride::is_grid_stride;
use crate::facts::launch_errors;
use crate::facts::movable;
use crate::facts::movable::Form;
use crate::facts::movable::KEPT_BLOCK;
use crate::facts::pure;
use crate::facts::site::Site;
use crate::facts::surroundings::{self, Errors};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "coarsen",
    title: "Launch fewer blocks, each with more work",
    doc: DOC,
    options: &[
        OptionSpec {
            name: "factor",
            default: "4",
            doc: "How many blocks of the child a block runs, one at a time.",
        },
        OptionSpec {
            name: "blocks",
            default: "none",
            doc: "In place of a factor: no more blocks than this in x.",
        },
    ],
    target: Target::Launch(Launches::Any),
    family: Family::Coarsening,
    measured: Measured::Alone,
    tunes: Some(Axis::Factor("factor")),
    unattended: false,
    undo: Undo::Layer(Layer::Coarsened),
    run: apply,
};

const DOC: &str = r#"Launches a child grid with fewer blocks, each of which does the work of several blocks of the original grid, one at a time.

The child's body becomes a device function that can run as any block of any grid; the coarsened kernel is a loop over blocks. The
original grid is passed as an argument, so the body sees the block and grid indices that it would have seen. Grids of two and
three dimensions get smaller in x. Where the child is a grid-stride loop already, which does its work with any number of blocks,
it is launched with fewer blocks and stays as it is.

A block has a price: it is scheduled, and it repeats what all blocks of a launch do at their beginning. In an aggregated grid it also
looks up which launch it belongs to, so `coarsen` is worth most in front of `aggregate-*`. Where a grid is too small to fill the GPU,
fewer blocks make it slower.

## Needs
- Blocks of the child that don't wait for each other: no spinning on memory, no grid barrier.
- Barriers and warp operations that all threads of a block (of a warp) reach, with no early return in front of them.
- A child without inline assembly; arguments that are plain values. Functions that it calls and that read `blockIdx` or `gridDim` get
  copies that take them as parameters.
- A grid size without side effects, as it is written twice.

A block that uses shared memory waits at a barrier before it begins with the next one.

Apply it before `aggregate-*` and after `threshold`.

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
#include "gridfuse.cuh"

// How many blocks of expand a block of expand_coarsened runs, one at a time.
constexpr int kExpandCoarsening = 4;

// The body of expand, for any block of any grid; `gridfuse revert` takes it back.
__device__ __forceinline__ void expand_body(uint3 blockIdx, dim3 gridDim, dim3 blockDim,
                                            const int* col, int* dist, int level, int begin,
                                            int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

// What a plain launch of expand runs; `gridfuse revert` takes it back.
__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    expand_body(blockIdx, gridDim, blockDim, col, dist, level, begin, count);
}

// Runs expand in fewer blocks, each for several of its blocks; `gridfuse revert` takes it back.
__global__ void expand_coarsened(dim3 grid, const int* col, int* dist, int level, int begin,
                                 int count) {
    for (unsigned block = blockIdx.x; block < grid.x; block += gridDim.x)
        expand_body(make_uint3(block, blockIdx.y, blockIdx.z), grid, blockDim, col, dist, level,
                    begin, count);
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) expand_coarsened<<<gridfuse::coarsened((count + 127) / 128, kExpandCoarsening),
                                      128>>>(
        (count + 127) / 128, col, dist, level, begin, count);
}
```

## Source
Olabi, Gómez Luna, Mutlu, Hwu, El Hajj: A Compiler Framework for Optimizing Dynamic Parallelism on GPUs, CGO 2022, §3.2
(coarsening).
"#;

/// How much coarser.
#[derive(Clone, Copy)]
enum Amount {
    /// So many blocks in one.
    Factor(u64),
    /// So many blocks in all.
    Blocks(u64),
}

impl Amount {
    fn of(ctx: &RewriteCtx<'_, '_>) -> Result<Amount, Ineligible> {
        if ctx.given("blocks").is_none() {
            return ctx.positive("factor").map(Amount::Factor);
        }
        if ctx.given("factor").is_some() {
            return Err(refuse("`factor` and `blocks` exclude each other", None));
        }
        ctx.positive("blocks").map(Amount::Blocks)
    }

    /// The function of the runtime that makes the grid.
    fn function(self) -> &'static str {
        match self {
            Amount::Factor(_) => "gridfuse::coarsened",
            Amount::Blocks(_) => "gridfuse::coarsened_to",
        }
    }

    fn value(self) -> u64 {
        match self {
            Amount::Factor(n) | Amount::Blocks(n) => n,
        }
    }

    fn constant(self, child: &str) -> String {
        match self {
            Amount::Factor(_) => format!("k{}Coarsening", camel(child)),
            Amount::Blocks(_) => format!("k{}Blocks", camel(child)),
        }
    }
}

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let amount = Amount::of(ctx)?;
    let db = ctx.db;
    let mut draft = Draft::begin(ctx)?;
    let Draft {
        site, edit, refusals, ..
    } = &mut draft;
    site.refuse_common(refusals);
    target::refuse_place(site, refusals);
    target::refuse_operands(site, refusals);
    refuse_grid(site, refusals);
    surroundings::assume_nothing_else(site, Errors::Vanish, edit);
    let child = draft.child();
    let Draft {
        site, edit, refusals, ..
    } = &mut draft;
    if let Some(child) = &child {
        target::refuse_unseen(site, child, refusals);
    }
    let loops = child.as_ref().is_some_and(is_grid_stride);
    if let Some(child) = child.as_ref().filter(|_| !loops) {
        refuse_configured(child, refusals);
        refuse_child(child, refusals, edit);
    }
    let header = draft.header();
    let (child, header) = draft.settle(child.zip(header))?;
    let Draft { site, names, edit, .. } = &mut draft;
    header.include_in(db, edit, site.file);
    if loops {
        let comment = match amount {
            Amount::Factor(_) => format!(
                "So many times fewer blocks of {} are launched; its threads loop.",
                child.name
            ),
            Amount::Blocks(_) => format!(
                "At most so many blocks of {} are launched in x; its threads loop.",
                child.name
            ),
        };
        let constant = constant(&child, amount, &comment, names, edit);
        replace_grid(site, &child, amount, &constant, edit);
    } else {
        let (kernel, constant) = generate(site, &child, amount, names, edit);
        replace_launch(site, &child, amount, &constant, &kernel, edit);
    }
    draft.finish()
}

fn refuse_grid(site: &Site<'_>, refusals: &mut Refusals) {
    let grid = site.facts.grid.operand.expr;
    if let Some([1, ..]) = site.facts.grid.constant {
        let child = site.child_name();
        let place = Some(site.place(site.facts.grid.operand.span));
        refusals.add(
            format!("a grid of `{child}` has one block in x: there are no fewer"),
            place,
        );
    }
    if let Some(part) = pure::not_repeatable(site, grid) {
        refusals.add(
            "the grid size calls or changes something, so it can't be evaluated twice",
            Some(site.place(site.body.expr(part).span)),
        );
    }
}

fn refuse_child<'db>(child: &Child<'db>, refusals: &mut Refusals, edit: &mut EditBuilder<'db>) {
    let db = child.db;
    let name = &child.name;
    let worker = child.worker();
    let effects = effects(db, worker);
    movable::refuse_to_outline(child, Form::Block, KEPT_BLOCK, &effects, refusals);
    launch_errors::assume_none(name, &effects, edit);
    if let Some(wait) = effects.waits.first() {
        refusals.add(
            format!("`{name}` may wait for another thread, perhaps of a block that comes later"),
            Some(wait.place),
        );
    }
    if let Some(event) = effects.events.first() {
        refusals.add(format!("`{name}` uses events: {}", event.what), Some(event.place));
    }
    for reason in barriers::refuse_divergent(db, worker, name, &effects, false, refusals) {
        edit.assume(reason);
    }
}

/// The constant in front of the child: an earlier rewrite's with the same value, or a new one.
fn constant(child: &Child<'_>, amount: Amount, comment: &str, names: &mut Names, edit: &mut EditBuilder<'_>) -> String {
    let wanted = amount.constant(&child.name);
    // One of another scope isn't seen here, and neither is one that stands further down.
    let scope = child
        .item
        .name(child.db)
        .rsplit_once("::")
        .map_or(String::new(), |(scope, _)| format!("{scope}::"));
    let in_front = |text: &str| {
        text.get(..child.start as usize)
            .is_some_and(|front| front.contains(&wanted))
    };
    if let Meaning::Global(known) = meaning(child.db, child.file, &wanted)
        && known.constant
        && known.scopes.iter().all(|of| *of == scope)
        && (in_front(&child.text) || !child.text.contains(&wanted))
        && known.init.as_deref() == Some(amount.value().to_string().as_str())
    {
        return wanted;
    }
    let constant = names.fresh(&wanted);
    let style = edit.style(child.file);
    let indent = style::indent_at(&child.text, child.start as usize).to_owned();
    let comment = described::lines(comment, &style, style::columns(&indent));
    let head = format!("{comment}\nconstexpr int {constant} = {};\n\n", amount.value());
    // In front of the body, of which the child may be no more than a call.
    let body = child
        .outlined
        .as_ref()
        .filter(|o| o.function.file(child.db) == child.file);
    let front = body.map_or(child.front(), |o| o.function.start(child.db).min(child.front()));
    let at = target::above_comment(child.db, child.file, front as usize);
    let mut text = style.fit(&head, &indent);
    text.push_str(&indent);
    edit.insert(child.file, at as u32, text);
    constant
}

/// Writes the coarsened kernel behind the child, unless it is there; gives its name and that of the constant.
fn generate<'db>(
    site: &Site<'db>,
    child: &Child<'db>,
    amount: Amount,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) -> (String, String) {
    let mut behind = outline::behind(edit, child);
    let own = child.launch_bounds.as_ref().map(|b| crate::edit::one_line::one_line(b));
    let bounds = own.or_else(|| launch_bounds::of_generated([site]));
    let bounds = bounds.map_or(String::new(), |b| format!("{b} "));
    let wanted = format!("{}_coarsened", child.name);
    let comment = |kernel: &str| match amount {
        Amount::Factor(_) => format!(
            "How many blocks of {} a block of {kernel} runs, one at a time.",
            child.name
        ),
        Amount::Blocks(_) => {
            format!(
                "{kernel} is launched with at most so many blocks in x, each for several blocks of {}.",
                child.name
            )
        }
    };
    if let Some(outlined) = &child.outlined
        && let Meaning::Functions(known) = meaning(child.db, child.file, &wanted)
        && let [known] = known.as_slice()
    {
        let code = coarsened_kernel(child, &bounds, &wanted, &outlined.name, outlined.takes_thread, &behind);
        if lex::code_words(&known.text(child.db)) == lex::code_words(&code) {
            let constant = constant(child, amount, &comment(&wanted), names, edit);
            return (wanted, constant);
        }
    }
    let kernel = names.fresh(&wanted);
    let constant = constant(child, amount, &comment(&kernel), names, edit);
    let worker = outline::outline(edit, &mut behind, child, Form::Block, KEPT_BLOCK, names);
    let code = coarsened_kernel(child, &bounds, &kernel, &worker.name, worker.takes_thread(), &behind);
    let what = format!("Runs {} in fewer blocks, each for several of its blocks", child.name);
    behind.add(format!("{}{code}", behind.taken_back(&what)));
    behind.finish(edit, child);
    (kernel, constant)
}

/// `bounds`: what stands in front of its name.
fn coarsened_kernel(
    child: &Child<'_>,
    bounds: &str,
    kernel: &str,
    worker: &str,
    takes_thread: bool,
    behind: &outline::Behind,
) -> String {
    let (grid, block) = (child.local("grid"), child.local("block"));
    let mut params = vec![format!("dim3 {grid}")];
    params.extend(child.params.iter().map(|p| crate::edit::one_line::one_line(&p.decl)));
    let mut items = vec![
        format!("make_uint3({block}, blockIdx.y, blockIdx.z)"),
        grid.clone(),
        "blockDim".to_owned(),
    ];
    if takes_thread {
        items.insert(0, "threadIdx".to_owned());
    }
    items.extend(child.params.iter().map(|p| p.name.clone()));
    let call = behind.call(2, &format!("{worker}{}(", child.template_args), &items, ");");
    let shared = !effects(child.db, child.worker()).shared.is_empty();
    let (open, close) = if shared {
        (
            " {",
            "\n\t\t__syncthreads();   // the next one uses the shared memory again\n\t}",
        )
    } else {
        ("", "")
    };
    let body =
        format!("\tfor (unsigned {block} = blockIdx.x; {block} < {grid}.x; {block} += gridDim.x){open}\n{call}{close}");
    let template = child
        .template
        .as_ref()
        .map_or(String::new(), |t| format!("{}\n", crate::edit::one_line::one_line(t)));
    let linkage = child.linkage();
    behind.function(
        &format!("{template}{linkage}__global__ void {bounds}{kernel}("),
        &params,
        &body,
    )
}

fn coarse_grid(site: &Site<'_>, child: &Child<'_>, amount: Amount, constant: &str) -> String {
    format!(
        "{}({}, {})",
        amount.function(),
        crate::edit::one_line::flat(site.expr_source(site.facts.grid.operand.expr)),
        crate::facts::qualified::qualified(site, child, constant)
    )
}

/// The same kernel with a smaller grid.
fn replace_grid(site: &Site<'_>, child: &Child<'_>, amount: Amount, constant: &str, edit: &mut EditBuilder<'_>) {
    let grid = coarse_grid(site, child, amount, constant);
    let (place, operand) = (site.place(site.facts.span), site.place(site.facts.grid.operand.span));
    let style = edit.style(site.file);
    let text = &site.text;
    let (start, end) = (place.range.start as usize, place.range.end as usize);
    let (first, last) = (style::line_start(text, start), style::line_end(text, end));
    let columns = |from: usize, to: usize| text.get(from..to).map_or(0, |code| code.trim_end().chars().count());
    let one_line = !place.range.text(text).contains('\n');
    let longer = grid.chars().count() - columns(operand.range.start as usize, operand.range.end as usize);
    if !one_line || columns(first, last) > style.width || columns(first, last) + longer <= style.width {
        edit.replace(operand, grid);
        return;
    }
    let source = |expr| crate::edit::one_line::flat(site.expr_source(expr));
    let mut config: Vec<String> = site.launch.config.iter().map(|operand| source(*operand)).collect();
    was::note_unless_plain(site, &config, edit);
    if let Some(first) = config.first_mut() {
        *first = grid;
    }
    let arguments: Vec<String> = site.launch.args.iter().map(|arg| source(*arg)).collect();
    let template_args = site.launch.template_args.map_or("", |t| site.source(t));
    let name = format!("{}{template_args}", site.source(site.launch.name_span));
    let code = was::laid_out(text, place.range, &style, &name, &config, &arguments);
    edit.replace(place, code);
}

/// The coarsened kernel with a smaller grid, and the original one as its first argument.
fn replace_launch(
    site: &Site<'_>,
    child: &Child<'_>,
    amount: Amount,
    constant: &str,
    kernel: &str,
    edit: &mut EditBuilder<'_>,
) {
    let style = edit.style(site.file);
    let place = site.place(site.facts.span);
    let name = crate::facts::qualified::qualified(site, child, kernel);
    let source = |expr| crate::edit::one_line::flat(site.expr_source(expr));
    let template_args = site.launch.template_args.map_or("", |t| site.source(t));
    let mut config: Vec<String> = site.launch.config.iter().map(|operand| source(*operand)).collect();
    was::note_unless_plain(site, &config, edit);
    let mut items = vec![source(site.facts.grid.operand.expr)];
    if let Some(first) = config.first_mut() {
        *first = coarse_grid(site, child, amount, constant);
    }
    items.extend(site.launch.args.iter().map(|arg| source(*arg)));
    let name = format!("{name}{template_args}");
    let code = was::laid_out(&site.text, place.range, &style, &name, &config, &items);
    edit.replace(place, code);
}
