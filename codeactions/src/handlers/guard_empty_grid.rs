//! `guard-empty-grid`

use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::{BinOp, Body, ExprId, ExprKind, Name, body};

use crate::api::assumption;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::api::rewrite::{Family, Measured, Offered, Rewrite, RewriteCtx, Target, Undo};
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::edit::style;
use crate::emit::target;
use crate::facts::compared::never_compared;
use crate::facts::ctype;
use crate::facts::operand::compared;
use crate::facts::pure;
use crate::facts::site::Site;
use crate::facts::surroundings::{self, Errors};

pub(super) const REWRITE: Rewrite = Rewrite {
    id: "guard-empty-grid",
    title: "Skip the launch when the grid is empty",
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

const DOC: &str = r#"Puts a condition in front of a launch whose grid may have no blocks.

A launch of no blocks fails with `cudaErrorInvalidConfiguration`, does nothing, and takes as long as one that succeeds.

## Needs
- A one-dimensional grid whose size is an integer, or `(n + b - 1) / b` with an integer `n`, without side effects.
- A launch that is a statement of its own. Evaluating its arguments changes nothing: without blocks they aren't evaluated.

If `n` is 0, the grid size `(n - 1) / b + 1` is one block, or huge when `n` is unsigned: the rewrite assumes that the child does nothing
then. A negative `n` may stand for blocks, too, where the grid size rounds toward zero or is unsigned: unless it is known not to, the
condition is `n != 0`.

## Before
```cuda
__global__ void child(const int* edges, int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[edges[begin + i]] = 1;
}

__global__ void parent(const int* row, const int* edges, int* out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    child<<<(count + 127) / 128, 128, 0, cudaStreamFireAndForget>>>(edges, out, begin, count);
}
```

## After
```cuda
__global__ void child(const int* edges, int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[edges[begin + i]] = 1;
}

__global__ void parent(const int* row, const int* edges, int* out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0)
        child<<<(count + 127) / 128, 128, 0, cudaStreamFireAndForget>>>(edges, out, begin, count);
}
```

## Source
CUDA C++ Programming Guide, "Execution Configuration"; the diagnostic `empty-grid`.
"#;

fn apply(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let mut draft = Draft::begin(ctx)?;
    let Draft { site, refusals, .. } = &mut draft;
    site.refuse_common(refusals);
    surroundings::refuse_asked(site, refusals);
    target::refuse_place(site, refusals);
    let wanted = wanted(site);
    if wanted.is_none() {
        refusals.add(
            "the grid has several dimensions, or its size is not a number",
            Some(site.place(site.facts.grid.operand.span)),
        );
        refusals.check()?;
    }
    let Some(wanted) = wanted else {
        return Err(draft.not_understood());
    };
    let ty = integer(site, &wanted, refusals);
    refuse_twice_or_not_at_all(site, wanted.expr, refusals);
    let statement = site.facts.statement;
    let statement = draft.settle(statement)?;
    let Draft { site, edit, .. } = &mut draft;
    surroundings::assume_nothing_else(site, Errors::Stay, edit);
    let mut number = crate::edit::one_line::flat(site.expr_source(wanted.expr));
    if wanted.of_variable {
        number.push_str(".x");
    }
    if wanted.form == Form::LessOne {
        if let Some(parameter) = never_compared(site, &number) {
            let text = format!(
                "`{}` works without comparing `{parameter}` with anything: the block that is launched when `{number}` is 0 does something",
                site.child_name()
            );
            draft.refusals.add(text, Some(draft.site.here()));
            return draft.finish();
        }
        edit.assume(assumption::EMPTY_WORK.of(Reason {
            text: format!(
                "`{}` does nothing when `{number}` is 0, whatever its grid",
                site.child_name()
            ),
            place: Some(site.here()),
        }));
    }
    let condition = condition(site, &wanted, ty.as_deref(), &number);
    let span = site.body.stmt(statement).span;
    let indent = style::indent_at(&site.text, site.place(span).range.start as usize).to_owned();
    let launch = style::reindent(&site.source(span).replace("\r\n", "\n"), &indent, "\t");
    target::replace_statement(site, statement, &format!("if ({condition})\n\t{launch}"), edit);
    draft.finish()
}

const UNSIGNED: [&str; 4] = ["unsigned int", "unsigned long", "unsigned long long", "size_t"];

/// The integer type of what decides the size of the grid; another one is refused.
fn integer(site: &Site<'_>, wanted: &Wanted, refusals: &mut Refusals) -> Option<String> {
    // The components of a dim3 are unsigned.
    let ty = if wanted.of_variable {
        Some("unsigned int".to_owned())
    } else {
        ctype::type_of(site, wanted.expr)
    };
    let signed = ["int", "long", "long long"];
    let ty = ty.filter(|ty| UNSIGNED.contains(&ty.as_str()) || signed.contains(&ty.as_str()));
    if ty.is_none() {
        let place = site.place(site.body.expr(wanted.expr).span);
        refusals.add(
            "what decides the size of the grid isn't known to be an integer",
            Some(place),
        );
    }
    ty
}

/// Refuses what would be evaluated twice, or not at all.
fn refuse_twice_or_not_at_all(site: &Site<'_>, expr: ExprId, refusals: &mut Refusals) {
    if let Some(part) = pure::not_repeatable(site, expr) {
        let place = site.place(site.body.expr(part).span);
        refusals.add(
            "the grid size calls or changes something, so it can't be evaluated twice",
            Some(place),
        );
    }
    let operands = site.launch.config.iter().chain(&site.launch.args);
    if let Some(part) = operands.copied().find_map(|e| pure::not_skippable(site, e)) {
        let span = site.body.expr(part).span;
        let what = crate::edit::one_line::flat(site.source(span));
        refusals.add(
            format!(
                "`{what}` may change something, and wouldn't be evaluated when there are no blocks; evaluate it in a statement in front of the launch"
            ),
            Some(site.place(span)),
        );
    }
}

/// The condition under which there are blocks. `number` is what decides it, and `ty` its type.
fn condition(site: &Site<'_>, wanted: &Wanted, ty: Option<&str>, number: &str) -> String {
    let no_blocks_below = match wanted.form {
        Form::Blocks => ty == Some("int"),
        Form::RoundedUp { int } => int,
        Form::Zero | Form::LessOne => false,
    };
    let operator = if no_blocks_below || ty.is_some_and(|ty| UNSIGNED.contains(&ty)) {
        ">"
    } else {
        "!="
    };
    format!("{} {operator} 0", compared(site, wanted.expr, number, 3))
}

/// What a number says about the grid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// It is the number of blocks.
    Blocks,
    /// `(n + b - 1) / b`. `int`: nothing in it is unsigned, or has another size.
    RoundedUp { int: bool },
    /// There are no blocks when it is 0.
    Zero,
    /// `(n - 1) / b + 1`, which is not 0 when `n` is.
    LessOne,
}

/// The number that is 0 when the grid has no blocks.
struct Wanted {
    expr: ExprId,
    /// It is a `dim3` variable, of which the x is meant.
    of_variable: bool,
    form: Form,
}

fn wanted(site: &Site<'_>) -> Option<Wanted> {
    let facts = &site.facts;
    let body = &site.body;
    let [Some(x), y, z] = facts.grid.components? else {
        return None;
    };
    let found = |expr, form| Wanted {
        expr,
        of_variable: false,
        form,
    };
    let operand = facts.grid.operand.expr;
    if facts.threads.is_none() && (y.is_some() || z.is_some()) {
        return None;
    }
    if !body.expr(operand).span.contains(body.expr(x).span) {
        // The names in its initialiser may mean something else by now.
        let variable = matches!(
            body.expr(body.strip_parens(operand)).kind,
            ExprKind::Name(Name::Local(_))
        );
        return variable.then_some(Wanted {
            expr: operand,
            of_variable: true,
            form: Form::Blocks,
        });
    }
    let inside = |e: ExprId| body.expr(x).span.contains(body.expr(e).span);
    let Some(threads) = facts.threads.as_ref().filter(|t| inside(t.expr)) else {
        return Some(found(x, Form::Blocks));
    };
    let [block, 1, 1] = facts.block.constant? else {
        return None;
    };
    let form = match threads.form {
        "(n + b - 1) / b" => Form::RoundedUp {
            int: is_int_throughout(site, x),
        },
        "(n - 1) / b + 1" => Form::LessOne,
        _ if calls_less_one(site, x) => Form::LessOne,
        _ => Form::Zero,
    };
    (block > 0).then(|| found(threads.expr, form))
}

/// Whether all operands are of type `int`.
fn is_int_throughout(site: &Site<'_>, expr: ExprId) -> bool {
    match site.body.expr(expr).kind {
        ExprKind::Paren(e) => is_int_throughout(site, e),
        ExprKind::Binary(_, a, b) => is_int_throughout(site, a) && is_int_throughout(site, b),
        ExprKind::Cast { .. } => false,
        _ => ctype::type_of(site, expr).is_some_and(|ty| ty == "int"),
    }
}

/// Whether a call's function may compute `(n - 1) / b + 1`.
fn calls_less_one(site: &Site<'_>, expr: ExprId) -> bool {
    fn bare(body: &Body, mut expr: ExprId) -> ExprId {
        while let ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } = body.expr(expr).kind {
            expr = e;
        }
        expr
    }
    let ExprKind::Call { name: Some(name), .. } = &site.body.expr(bare(&site.body, expr)).kind else {
        return false;
    };
    functions_in(site.db, site.parent, name).iter().any(|function| {
        let body = body(site.db, *function);
        body.exprs.iter().any(|expr| match expr.kind {
            ExprKind::Binary(BinOp::Div, numerator, _) => match body.expr(bare(&body, numerator)).kind {
                ExprKind::Binary(BinOp::Sub, a, _) => {
                    !matches!(body.expr(bare(&body, a)).kind, ExprKind::Binary(BinOp::Add, ..))
                }
                _ => false,
            },
            _ => false,
        })
    })
}
