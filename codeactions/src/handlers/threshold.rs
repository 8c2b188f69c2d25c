//! `threshold`

use gridfuse_analysis::db::Db;
use gridfuse_analysis::hir::{BinOp, Body, Builtin, ExprId, ExprKind, Literal, Name, StmtId, StmtKind};
use gridfuse_analysis::launch::{LaunchId, Stream};
use gridfuse_analysis::resolve::{Meaning, meaning};
use gridfuse_analysis::span::{FileRange, Span};
use gridfuse_analysis::summary::summary;

use super::{finish, verdict};
use crate::child::Child;
use crate::ctype;
use crate::edit::{EditBuilder, SourceEdit};
use crate::effects::{Effects, effects};
use crate::fission::{BlockThreads, Fission, SerialNames, constant_bytes};
use crate::include::Header;
use crate::lex;
use crate::names::{Names, camel};
use crate::order;
use crate::outline::{self, Form};
use crate::pure;
use crate::rewrite::{Ineligible, OptionSpec, Options, Reason, Rewrite, Verdict};
use crate::site::{Refusals, Site};
use crate::style::{self, Style};
use crate::target;

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "threshold",
    title: "Run small child grids in the launching thread",
    doc: DOC,
    options: &[
        OptionSpec {
            name: "threshold",
            default: "64",
            doc: "Child grids of fewer threads run in the launching thread. A child with barriers: by default, grids of one block of up to 256 threads.",
        },
        OptionSpec {
            name: "local-memory",
            default: "4096",
            doc: "The most bytes of local memory that a child with barriers may take in one thread.",
        },
    ],
    check,
    apply,
};

const DOC: &str = r#"Runs child grids that are too small to be worth a launch serially, in the thread that would have launched them.

The child's body becomes a device function for one thread of a grid; a small grid is a loop over its threads. What counts as
small is a named constant to be tuned. When the number of threads wanted can be told from the grid size, as in
`(count + 127) / 128`, that number is compared, and only those threads run.

A child whose threads meet at `__syncthreads()` is split there: what stands between two barriers runs for one thread of the block
after the other. Control flow around a barrier stays around these loops, shared memory becomes a local array, and so does a variable
of a thread that is used on both sides of a barrier:

```cuda
gridfuse::for_each_block(grid, block, [&](uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
    /* __shared__ */ int sums[64];
    gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
        sums[threadIdx.x] = in[threadIdx.x];
    });
    // __syncthreads();
    for (int stride = 32; stride > 0; stride /= 2) {
        gridfuse::for_each_thread(blockDim, [&](uint3 threadIdx) {
            if (threadIdx.x < stride) sums[threadIdx.x] += sums[threadIdx.x + stride];
        });
        // __syncthreads();
    }
});
```

Local memory is set aside for every thread that the GPU can hold, so that its size is limited (`local-memory`). Atomics on shared
memory become plain operations, which nothing can interrupt in one thread.

## Needs
- Threads of the child that don't talk to each other but at barriers that all threads of the block reach alike, and through shared
  memory of a constant size: no warp operations but `__syncwarp()`, no waiting.
- No launches in the child, no recursion, no inline assembly, no callees that read the built-in variables.
- A configuration without side effects, the NULL stream, `cudaStreamFireAndForget` or a stream that the function has created.

In the NULL stream it assumes that the grids don't rely on each other's order, unless only one thread of a block launches, once.

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

// Child grids of expand with fewer threads run in the launching thread.
constexpr int kExpandThreshold = 64;

__device__ __forceinline__ void expand_thread(uint3 threadIdx, uint3 blockIdx, dim3 gridDim,
                                              dim3 blockDim, const int* col, int* dist, int level,
                                              int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMin(&dist[col[begin + i]], level + 1);
}

__global__ void expand(const int* col, int* dist, int level, int begin, int count) {
    expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, begin, count);
}

__device__ inline void expand_serial(dim3 grid, dim3 block, const int* col, int* dist, int level,
                                     int begin, int count) {
    gridfuse::for_each_thread(grid, block, count, [&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
        expand_thread(threadIdx, blockIdx, gridDim, blockDim, col, dist, level, begin, count);
    });
}

__global__ void visit(const int* row, const int* col, int* dist, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || dist[v] != level) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) {
        if (count < kExpandThreshold)
            expand_serial((count + 127) / 128, 128, col, dist, level, begin, count);
        else
            expand<<<(count + 127) / 128, 128>>>(col, dist, level, begin, count);
    }
}
```

## Source
Olabi, Gómez Luna, Mutlu, Hwu, El Hajj: A Compiler Framework for Optimizing Dynamic Parallelism on GPUs, CGO 2022, §3.1
(thresholding). Stratton, Stone, Hwu: MCUDA: An Efficient Implementation of CUDA Kernels for Multi-core CPUs, LCPC 2008 (barriers).
"#;

fn check<'db>(db: &'db dyn Db, launch: LaunchId<'db>, options: &Options) -> Verdict {
    verdict(apply(db, launch, options))
}

fn apply<'db>(db: &'db dyn Db, launch: LaunchId<'db>, options: &Options) -> Result<SourceEdit, Ineligible> {
    options.validate(REWRITE.options)?;
    let threshold = options.positive("threshold", REWRITE.options)?;
    let local_memory = options.positive("local-memory", REWRITE.options)?;
    let site = Site::new(db, launch)?;
    let mut refusals = Refusals::default();
    site.refuse_common(&mut refusals);
    let mut edit = EditBuilder::new(db);
    refuse_stream(&site, &mut refusals, &mut edit);
    target::refuse_place(&site, &mut refusals);
    target::refuse_operands(&site, &mut refusals);
    target::refuse_effects_in_config(&site, &mut refusals);
    let mut names = Names::default();
    names.add_file(db, site.file);
    let child = site.child(&mut refusals).and_then(|item| {
        names.add_file(db, item.file(db));
        Child::read(db, item, &mut names, &mut refusals)
    });
    let mut split = None;
    if let Some(child) = &child {
        let effects = effects(db, child.worker());
        refuse_child(&site, child, &effects, &mut refusals);
        if child.outlined.is_none() && meets(&effects) && refusals.is_empty() {
            let given = options.0.contains_key("threshold").then_some(threshold);
            split = split_at_barriers(&site, child, &effects, given, local_memory, &mut refusals);
        }
    }
    let header = Header::for_file(db, site.file)
        .map_err(|r| refusals.add(r.text, r.place))
        .ok();
    refusals.check()?;
    let (Some(child), Some(header), Some(statement)) = (&child, header, site.facts.statement) else {
        return Err(crate::site::refuse("the launch is not understood", Some(site.here())));
    };

    if let Some(load) = effects(db, child.worker()).read_only.first() {
        edit.assume(Reason {
            text: format!(
                "`{}` writes nothing that `{}` reads by {}, which may miss what the same kernel has written",
                site.parent_name(),
                child.name,
                load.what
            ),
            place: Some(load.place),
        });
    }
    header.include_in(db, &mut edit, site.file);
    header.include_in(db, &mut edit, child.file);
    let count = Count::find(&site, child).filter(|_| split.is_none());
    let generated = match &split {
        Some((fission, threshold)) => generate_split(child, fission, *threshold, &mut names, &mut edit),
        None => generate(&site, child, count.as_ref(), threshold, options, &mut names, &mut edit)?,
    };
    replace_launch(&site, child, count.as_ref(), statement, &generated, &mut edit);
    finish(edit)
}

fn refuse_stream(site: &Site<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    let operand = site.facts.stream_operand.as_ref();
    let place = operand.map(|o| site.place(o.span));
    match &site.facts.stream {
        Stream::FireAndForget => {}
        Stream::Null => {
            for reason in order::null_stream(site) {
                edit.assume(reason);
            }
        }
        Stream::Created(binding) => {
            let created = order::created_stream(site, *binding);
            let name = operand.map_or("", |o| site.source(o.span));
            if let Some(reason) = order::shared_stream(site, &created, name) {
                edit.assume(reason);
            }
        }
        Stream::TailLaunch => refusals.add(
            "a tail launch runs after the launching grid, so not in its threads",
            place,
        ),
        Stream::PerThread => refusals.add(
            "launches into each thread's own stream (cudaStreamPerThread, `--default-stream per-thread`) are not supported",
            place,
        ),
        Stream::Other => refusals.add("which stream it goes into isn't known", place),
    }
}

/// The threads of a block work together.
fn meets(effects: &Effects) -> bool {
    !(effects.barriers.is_empty() && effects.warp.is_empty() && effects.shared.is_empty())
}

/// The child's body split at its barriers, with the threshold: the one that was asked for, or the one that grids of one block
/// are below.
fn split_at_barriers<'a, 'db>(
    site: &Site<'db>,
    child: &'a Child<'db>,
    effects: &Effects,
    threshold: Option<u64>,
    local_memory: u64,
    refusals: &mut Refusals,
) -> Option<(Fission<'a, 'db>, u64)> {
    /// The largest block that is run by one thread without being asked for.
    const LARGEST: u64 = 256;
    let default = REWRITE
        .options
        .first()
        .and_then(|o| o.default.parse().ok())
        .unwrap_or(64);
    let block = site
        .facts
        .block
        .constant
        .map(|b| b.iter().fold(1u64, |n, x| n.saturating_mul(*x)));
    let block = block.filter(|b| (1..=1024).contains(b));
    let threshold = match (threshold, block) {
        (Some(given), _) => given,
        (None, Some(block)) if block <= LARGEST => default.max(block + 1),
        (None, _) => default,
    };
    if let Some(block) = block.filter(|b| *b >= threshold) {
        refusals.add(
            format!(
                "a block of `{}` has {block} threads, so that no grid is below the threshold of {threshold}; ask for a threshold above {block}",
                child.name
            ),
            Some(site.place(site.facts.block.operand.span)),
        );
        return None;
    }
    let threads = BlockThreads {
        most: block.unwrap_or(threshold),
        constant: block.is_some(),
    };
    let shared_bytes = site.facts.shared.as_ref().and_then(|o| constant_bytes(site, o.expr));
    match Fission::of(child, effects, threads, shared_bytes, local_memory) {
        Ok(fission) => Some((fission, threshold)),
        Err(reasons) => {
            for reason in reasons {
                refusals.add(reason.text, reason.place);
            }
            None
        }
    }
}

fn refuse_child(site: &Site<'_>, child: &Child<'_>, effects: &Effects, refusals: &mut Refusals) {
    let name = &child.name;
    outline::refuse_to_outline(child, Form::Thread, effects, refusals);
    target::refuse_unseen(site, child, refusals);
    // An earlier rewrite has moved the body.
    let none = Vec::new();
    let moved = |list| if child.outlined.is_some() { list } else { &none };
    let lists = [
        (moved(&effects.barriers), "waits at a barrier"),
        (moved(&effects.warp), "works together with its warp"),
        (moved(&effects.shared), "uses shared memory"),
        (&effects.launches, "launches grids itself"),
        (&effects.waits, "may wait for another thread"),
        (&effects.recursion, "is recursive, or calls a recursive function"),
        (&effects.events, "uses events"),
    ];
    for (list, what) in lists {
        if let Some(first) = list.first() {
            refusals.add(format!("`{name}` {what}: {}", first.what), Some(first.place));
        }
    }
    let summary = summary(site.db, child.worker());
    let worker = child.worker();
    let place = |span: Span| {
        Some(FileRange {
            file: worker.file(site.db),
            range: span.shift(worker.start(site.db)),
        })
    };
    if let Some(span) = summary.may_wait.filter(|_| effects.waits.is_empty()) {
        refusals.add(format!("`{name}` may wait for another thread"), place(span));
    }
    if let Some(span) = summary
        .barriers
        .filter(|_| effects.barriers.is_empty() && effects.warp.is_empty())
    {
        refusals.add(format!("`{name}` waits at a barrier"), place(span));
    }
    if site.facts.recursive {
        refusals.add(
            format!("`{name}` launches itself or its parent again"),
            Some(child.place()),
        );
    }
}

/// The number of threads wanted, when it can be compared with the threshold and the child runs no other threads.
struct Count {
    /// The expression at the launch.
    expr: ExprId,
    /// Name of the child's parameter that receives it.
    parameter: String,
}

impl Count {
    /// The launch has the form `child<<<ceil(count / b), b>>>(…, count, …)` and all that the child does is guarded by
    /// `i < count`. Then a grid of `count` threads is as good as the whole one, also for a negative `count`.
    fn find(site: &Site<'_>, child: &Child<'_>) -> Option<Count> {
        let threads = site.facts.threads.as_ref()?;
        let [block, 1, 1] = site.facts.block.constant? else {
            return None;
        };
        let one_dimensional = matches!(site.facts.grid.components, Some([Some(_), None, None]));
        if !(1..=1024).contains(&block) || !one_dimensional || child.outlined.is_some() {
            return None;
        }
        let wanted = lex::code_words(site.source(threads.span));
        let (index, guard_type) = guard(child)?;
        let argument = site.launch.args.get(index)?;
        let param = child.params.get(index)?;
        let same = lex::code_words(site.expr_source(*argument)) == wanted
            && !site.body.expr(*argument).from_macro
            && pure::not_repeatable(site, *argument).is_none()
            && stands_for_itself(&site.body, *argument);
        let ty = ctype::type_of(site, *argument)?;
        let agree = ty == ctype::normalize(&param.ty.base) && ty == guard_type;
        (same && agree && matches!(ty.as_str(), "int" | "unsigned int")).then(|| Count {
            expr: *argument,
            parameter: param.name.clone(),
        })
    }
}

/// A plain variable: what it is doesn't change between the comparison and the launch.
fn stands_for_itself(body: &Body, expr: ExprId) -> bool {
    matches!(&body.expr(body.strip_parens(expr)).kind, ExprKind::Name(Name::Local(_)))
        || matches!(&body.expr(body.strip_parens(expr)).kind, ExprKind::Field { base, arrow: false, .. }
            if stands_for_itself(body, *base))
        || matches!(&body.expr(body.strip_parens(expr)).kind, ExprKind::Binary(_, a, b)
            if stands_for_itself(body, *a) && stands_for_itself(body, *b))
        || matches!(
            &body.expr(body.strip_parens(expr)).kind,
            ExprKind::Literal(Literal::Int(_))
        )
}

/// The index of the parameter that guards the whole body, and the type in which it is compared: the body is
/// `int i = blockIdx.x * blockDim.x + threadIdx.x;` and `if (i < n) …` or `if (i >= n) return; …`. Further conditions may follow,
/// as in `if (i < n && …) …` and `if (i >= n || …) return; …`: a thread without work doesn't come to them.
fn guard(child: &Child<'_>) -> Option<(usize, String)> {
    let body: &Body = &child.body;
    let StmtKind::Block(stmts) = &body.stmt(body.root?).kind else {
        return None;
    };
    let mut stmts = stmts.iter().filter(|s| !matches!(body.stmt(**s).kind, StmtKind::Empty));
    let StmtKind::Decl(decls) = &body.stmt(*stmts.next()?).kind else {
        return None;
    };
    let [decl] = decls.as_slice() else { return None };
    let variable = body.binding(decl.binding);
    if !variable.ty.is_value() || variable.ty.volatile || !is_thread_index(body, decl.init?) {
        return None;
    }
    let guard_type = ctype::normalize(&variable.ty.base);
    let StmtKind::If {
        init: None,
        cond: Some(cond),
        then,
        otherwise: None,
        ..
    } = &body.stmt(*stmts.next()?).kind
    else {
        return None;
    };
    let (first, and) = first_condition(body, *cond);
    let ExprKind::Binary(op, left, right) = body.expr(first).kind else {
        return None;
    };
    let is_index =
        |e: ExprId| matches!(body.expr(body.strip_parens(e)).kind, ExprKind::Name(Name::Local(b)) if b == decl.binding);
    let (op, limit) = match (is_index(left), is_index(right)) {
        (true, false) => (op, right),
        (false, true) => (
            match op {
                BinOp::Gt => BinOp::Lt,
                BinOp::Le => BinOp::Ge,
                _ => return None,
            },
            left,
        ),
        _ => return None,
    };
    let leaves = || match &body.stmt(*then).kind {
        StmtKind::Return(None) => true,
        StmtKind::Block(inner) => {
            matches!(inner.as_slice(), [only] if matches!(body.stmt(*only).kind, StmtKind::Return(None)))
        }
        _ => false,
    };
    let rest_is_empty = stmts.next().is_none();
    let guarded = match op {
        BinOp::Lt => rest_is_empty && and != Some(false),
        BinOp::Ge => leaves() && and != Some(true),
        _ => false,
    };
    let ExprKind::Name(Name::Local(limit)) = body.expr(body.strip_parens(limit)).kind else {
        return None;
    };
    let index = body.params.iter().position(|p| *p == limit)?;
    (guarded && pure::is_immutable_parameter(child.db, child.file, body, limit)).then_some((index, guard_type))
}

/// The condition that is looked at first, `a` of `a && b && …` or `a || b || …`; and whether the others are joined to it by `&&`.
fn first_condition(body: &Body, cond: ExprId) -> (ExprId, Option<bool>) {
    let cond = body.strip_parens(cond);
    let ExprKind::Logical { and, lhs, .. } = body.expr(cond).kind else {
        return (cond, None);
    };
    match first_condition(body, lhs) {
        (first, inner) if inner.is_none_or(|inner| inner == and) => (first, Some(and)),
        // `a && b || c`: none of them decides.
        _ => (cond, None),
    }
}

/// `blockIdx.x * blockDim.x + threadIdx.x` in any order, casts to integers aside.
fn is_thread_index(body: &Body, expr: ExprId) -> bool {
    let field_x = |e: ExprId, wanted: Builtin| {
        let mut e = body.strip_parens(e);
        while let ExprKind::Cast { operand, ty, .. } = &body.expr(e).kind
            && matches!(ty.as_str(), "int" | "unsigned" | "unsigned int")
        {
            e = body.strip_parens(*operand);
        }
        matches!(&body.expr(e).kind, ExprKind::Field { base, field, arrow: false }
            if field == "x" && matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(b)) if b == wanted))
    };
    let product = |e: ExprId| {
        matches!(body.expr(body.strip_parens(e)).kind, ExprKind::Binary(BinOp::Mul, a, b)
            if (field_x(a, Builtin::BlockIdx) && field_x(b, Builtin::BlockDim))
                || (field_x(a, Builtin::BlockDim) && field_x(b, Builtin::BlockIdx)))
    };
    matches!(body.expr(body.strip_parens(expr)).kind, ExprKind::Binary(BinOp::Add, a, b)
        if (product(a) && field_x(b, Builtin::ThreadIdx)) || (product(b) && field_x(a, Builtin::ThreadIdx)))
}

/// Names of what was generated.
struct Generated {
    constant: String,
    serial: String,
}

fn generate<'db>(
    site: &Site<'db>,
    child: &Child<'db>,
    count: Option<&Count>,
    threshold: u64,
    options: &Options,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) -> Result<Generated, Ineligible> {
    let db = site.db;
    let mut behind = outline::behind(edit, child);
    let wanted_constant = format!("k{}Threshold", camel(&child.name));
    let wanted_serial = format!("{}_serial", child.name);

    // An earlier rewrite of another launch of this child has made what is needed.
    if let Some(outlined) = &child.outlined
        && count.is_none()
        && let (Meaning::Global(constant), Meaning::Functions(serial)) = (
            meaning(db, child.file, &wanted_constant),
            meaning(db, child.file, &wanted_serial),
        )
        && let [serial] = serial.as_slice()
        && constant.constant
        && (!options.0.contains_key("threshold") || constant.init.as_deref() == Some(threshold.to_string().as_str()))
    {
        let text = serial.text(db);
        let whole_grid = lex::code_words(&text);
        let expected = ["for_each_thread", "(", "grid", ",", "block", ",", "["];
        if whole_grid.windows(expected.len()).any(|w| w == expected) && whole_grid.contains(&outlined.name.as_str()) {
            return Ok(Generated {
                constant: wanted_constant,
                serial: wanted_serial,
            });
        }
    }

    let constant = names.fresh(&wanted_constant);
    let worker = outline::outline(edit, &mut behind, child, Form::Thread, names);
    let serial = names.fresh(&wanted_serial);
    let local = |wanted: &str| {
        let mut name = wanted.to_owned();
        while child.params.iter().any(|p| p.name == name) {
            name.insert_str(0, "launch_");
        }
        name
    };
    let (grid, block) = (local("grid"), local("block"));

    // The constant and the comment stand in front of the function with the body.
    let style = behind.style().clone();
    let indent = style::indent_at(&child.text, child.start as usize).to_owned();
    let head = format!(
        "// Child grids of {} with fewer threads run in the launching thread.\nconstexpr int {constant} = {threshold};\n\n",
        child.name
    );
    let at = target::above_comment(child.db, child.file, child.front() as usize);
    let mut text = style.fit(&head, &indent);
    text.push_str(&indent);
    edit.insert(child.file, at as u32, text);

    let mut params = vec![format!("dim3 {grid}"), format!("dim3 {block}")];
    params.extend(child.params.iter().map(|p| outline::one_line(&p.decl)));
    let (prefix, items) = worker.call(child, child.params.iter().map(|p| p.name.clone()));
    let call = behind.call(2, &prefix, &items, ");");
    let limit = count.map_or(String::new(), |c| format!("{}, ", c.parameter));
    let body = format!(
        "\tgridfuse::for_each_thread({grid}, {block}, {limit}[&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {{\n\
         {call}\n\t}});"
    );
    let is_static = if child.is_static { "static " } else { "" };
    let template = child.template.as_ref().map_or(String::new(), |t| format!("{t}\n"));
    let head = format!("{template}{is_static}__device__ inline void {serial}(");
    let code = behind.function(&head, &params, &body);
    behind.add(code);
    behind.finish(edit, child);
    Ok(Generated { constant, serial })
}

/// The constant and the serial function of a child that is split at its barriers; the child stays as it is.
fn generate_split<'db>(
    child: &Child<'db>,
    fission: &Fission<'_, 'db>,
    threshold: u64,
    names: &mut Names,
    edit: &mut EditBuilder<'db>,
) -> Generated {
    let db = child.db;
    let mut behind = outline::behind(edit, child);
    let style = behind.style().clone();
    let indent = style::indent_at(&child.text, child.start as usize).to_owned();
    let function = |constant: &str, serial: &str| {
        let locals = SerialNames {
            grid: fission.local("grid"),
            block: fission.local("block"),
            threads: fission
                .constant_threads()
                .map_or(constant.to_owned(), |threads| threads.to_string()),
        };
        let mut params = vec![format!("dim3 {}", locals.grid), format!("dim3 {}", locals.block)];
        params.extend(child.params.iter().map(|p| outline::one_line(&p.decl)));
        let is_static = if child.is_static { "static " } else { "" };
        let template = child.template.as_ref().map_or(String::new(), |t| format!("{t}\n"));
        let head = format!("{template}{is_static}__device__ inline void {serial}(");
        behind.function(&head, &params, &fission.code(&locals))
    };
    let wanted_constant = format!("k{}Threshold", camel(&child.name));
    let wanted_serial = format!("{}_serial", child.name);
    // An earlier rewrite of another launch of this child may have made the same.
    if let (Meaning::Global(constant), Meaning::Functions(serial)) = (
        meaning(db, child.file, &wanted_constant),
        meaning(db, child.file, &wanted_serial),
    ) && let [serial] = serial.as_slice()
        && constant.constant
        && constant.init.as_deref() == Some(threshold.to_string().as_str())
    {
        let same = function(&wanted_constant, &wanted_serial);
        if lex::code_words(&serial.text(db)) == lex::code_words(&same) {
            return Generated {
                constant: wanted_constant,
                serial: wanted_serial,
            };
        }
    }
    let constant = names.fresh(&wanted_constant);
    let serial = names.fresh(&wanted_serial);
    let head = format!(
        "// Child grids of {} with fewer threads run in the launching thread.\nconstexpr int {constant} = {threshold};\n\n",
        child.name
    );
    let at = target::above_comment(child.db, child.file, child.front() as usize);
    let mut text = style.fit(&head, &indent);
    text.push_str(&indent);
    edit.insert(child.file, at as u32, text);
    let comment = format!(
        "// {} in one thread: what stands between two barriers runs for one thread of the block after the other.\n",
        child.name
    );
    let code = function(&constant, &serial);
    behind.add(format!("{comment}{code}"));
    behind.finish(edit, child);
    Generated { constant, serial }
}

/// Puts the comparison in front of the launch.
fn replace_launch(
    site: &Site<'_>,
    child: &Child<'_>,
    count: Option<&Count>,
    statement: StmtId,
    generated: &Generated,
    edit: &mut EditBuilder<'_>,
) {
    let style: Style = edit.style(site.file);
    let span = site.body.stmt(statement).span;
    let place = site.place(span);
    let indent = style::indent_at(&site.text, place.range.start as usize).to_owned();
    let unit = style.unit.clone();
    let qualify = |name: &str| target::qualified(site, child, name);
    let levels = if target::is_sole(site, statement) { 2 } else { 1 };
    let column = style::columns(&indent) + levels * style::columns(&unit);

    let grid = target::flat(site.expr_source(site.facts.grid.operand.expr));
    let block = target::flat(site.expr_source(site.facts.block.operand.expr));
    let constant = qualify(&generated.constant);
    let condition = match count {
        Some(count) => {
            let source = site.expr_source(count.expr);
            let simple = matches!(
                site.body.expr(count.expr).kind,
                ExprKind::Name(_) | ExprKind::Field { .. } | ExprKind::Paren(_)
            );
            if simple || lex::code_tokens(source).len() <= 3 {
                format!("{source} < {constant}")
            } else {
                format!("({source}) < {constant}")
            }
        }
        None => format!("gridfuse::below_threshold({grid}, {block}, {constant})"),
    };
    let template_args = site.launch.template_args.map_or("", |t| site.source(t));
    let mut items = vec![grid, block];
    items.extend(site.launch.args.iter().map(|a| target::flat(site.expr_source(*a))));
    let call = style
        .list(
            column,
            &format!("{}{template_args}(", qualify(&generated.serial)),
            &items,
            ");",
        )
        .replace('\n', "\n\t");
    let launch = style::reindent(&site.source(span).replace("\r\n", "\n"), &indent, "\t");
    let code = format!("if ({condition})\n\t{call}\nelse\n\t{launch}");
    target::replace_statement(site, statement, &code, edit);
}
