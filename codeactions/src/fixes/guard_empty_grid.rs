//! `guard-empty-grid`

use gridfuse_analysis::db::Db;
use gridfuse_analysis::hir::ExprKind;
use gridfuse_analysis::span::FileRange;

use super::{Fix, site_at};
use crate::ctype;
use crate::edit::{EditBuilder, SourceEdit};
use crate::effects::effects;
use crate::handlers::finish;
use crate::launch_errors;
use crate::lex;
use crate::pure;
use crate::rewrite::{Ineligible, Options, Reason};
use crate::site::{Refusals, Site, refuse};
use crate::style;
use crate::target;

pub(super) const FIX: Fix = Fix {
    id: "guard-empty-grid",
    title: "Launch only when there is something to do",
    doc: DOC,
    options: &[],
    everywhere: false,
    apply,
};

const DOC: &str = r#"Puts a condition in front of a launch whose grid may have no blocks.

A launch of no blocks fails with `cudaErrorInvalidConfiguration`, does nothing, and takes as long as one that succeeds.

## Needs
- A one-dimensional grid whose size is an integer, or `(n + b - 1) / b` with an integer `n`, without side effects.
- A launch that is a statement of its own.

Where the grid size is `(n - 1) / b + 1` for an unsigned `n`, which is huge when `n` is 0, it assumes that the child does nothing
then.

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

fn apply(db: &dyn Db, place: FileRange, options: &Options) -> Result<SourceEdit, Ineligible> {
    options.validate(FIX.options)?;
    let site = site_at(db, place)?;
    let mut refusals = Refusals::default();
    site.refuse_common(&mut refusals);
    launch_errors::refuse_asked(site.parent_name(), &effects(db, site.parent), &mut refusals);
    target::refuse_place(&site, &mut refusals);
    let wanted = wanted(&site).ok_or_else(|| {
        refuse(
            "the grid has several dimensions, or its size is not a number",
            Some(site.place(site.facts.grid.operand.span)),
        )
    });
    let (expr, wraps) = match wanted {
        Ok(found) => found,
        Err(Ineligible(reasons)) => {
            for reason in reasons {
                refusals.add(reason.text, reason.place);
            }
            refusals.check()?;
            return Err(refuse("the launch is not understood", Some(site.here())));
        }
    };
    let integer = ctype::type_of(&site, expr).is_some_and(|ty| {
        [
            "int",
            "unsigned int",
            "long",
            "unsigned long",
            "long long",
            "unsigned long long",
            "size_t",
        ]
        .contains(&ty.as_str())
    });
    if !integer {
        let place = site.place(site.body.expr(expr).span);
        refusals.add(
            "what decides the size of the grid isn't known to be an integer",
            Some(place),
        );
    }
    if let Some(part) = pure::not_repeatable(&site, expr) {
        let place = site.place(site.body.expr(part).span);
        refusals.add(
            "the grid size calls or changes something, so it can't be evaluated twice",
            Some(place),
        );
    }
    refusals.check()?;
    let Some(statement) = site.facts.statement else {
        return Err(refuse("the launch is not understood", Some(site.here())));
    };
    let mut edit = EditBuilder::new(db);
    let number = target::flat(site.expr_source(expr));
    if wraps {
        edit.assume(Reason {
            text: format!(
                "`{}` does nothing when `{number}` is 0, whatever its grid",
                site.child_name()
            ),
            place: Some(site.here()),
        });
    }
    let simple = matches!(
        site.body.expr(expr).kind,
        ExprKind::Name(_) | ExprKind::Field { .. } | ExprKind::Paren(_) | ExprKind::Index { .. }
    );
    let condition = if simple || lex::code_tokens(&number).len() == 1 {
        format!("{number} > 0")
    } else {
        format!("({number}) > 0")
    };
    let span = site.body.stmt(statement).span;
    let indent = style::indent_at(&site.text, site.place(span).range.start as usize).to_owned();
    let launch = style::reindent(&site.source(span).replace("\r\n", "\n"), &indent, "\t");
    target::replace_statement(&site, statement, &format!("if ({condition})\n\t{launch}"), &mut edit);
    finish(edit)
}

/// The number that is 0 when the grid has no blocks, and whether the grid is then huge instead.
fn wanted(site: &Site<'_>) -> Option<(gridfuse_analysis::hir::ExprId, bool)> {
    if let Some(threads) = &site.facts.threads {
        let [block, 1, 1] = site.facts.block.constant? else {
            return None;
        };
        return (block > 0).then_some((threads.expr, threads.form == "(n - 1) / b + 1"));
    }
    match site.facts.grid.components? {
        [Some(x), None, None] => Some((x, false)),
        _ => None,
    }
}
