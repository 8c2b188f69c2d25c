//! The grid as a cooperative group in a body that moves: `cg::this_grid()` asks the GPU, which runs another grid there. Where the body asks it
//! only for numbers, the built-in variables answer, which are parameters. So they do where a block is asked which one of the grid it is.

use std::collections::BTreeMap;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::groups::{Group, group};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, StmtKind, Storage};

use super::child::Child;
use super::unknown_use::unknown_use;
use super::uses::named;

/// The function of the runtime that answers.
pub const VIEW: &str = "gridfuse::view_of";

/// Member functions of a grid that say numbers, and let nobody wait.
const NUMBERS: [&str; 8] = [
    "thread_rank",
    "num_threads",
    "size",
    "block_rank",
    "num_blocks",
    "block_index",
    "dim_blocks",
    "group_dim",
];

/// The groups that a child asks for numbers of a grid.
#[derive(Debug, Default)]
pub struct GridViews {
    /// What is written there becomes the first argument of [`VIEW`].
    pub viewed: Vec<Span>,
    /// Calls that read the built-in variables no more.
    calls: Vec<Span>,
}

impl GridViews {
    /// Those of a child; none where one of its grids has any other use.
    pub fn of(child: &Child<'_>) -> GridViews {
        let mut search = Search {
            child,
            variables: BTreeMap::new(),
            views: GridViews::default(),
            met: Vec::new(),
        };
        search.all().map_or_else(GridViews::default, |()| search.views)
    }

    /// A place in the child lies in a call that reads the built-in variables no more.
    pub fn answer(&self, child: &Child<'_>, place: FileRange) -> bool {
        let within = |span: &Span| span.shift(child.start).contains(place.range);
        place.file == child.file && self.calls.iter().any(within)
    }
}

/// How a variable with a grid is treated.
#[derive(Clone, Copy, PartialEq)]
enum Variable {
    /// `auto`: it holds what answers.
    Answers,
    /// It holds a grid; who asks it asks what answers.
    Grid,
}

struct Search<'a, 'db> {
    child: &'a Child<'db>,
    variables: BTreeMap<BindingId, Variable>,
    views: GridViews,
    /// Expressions that are a grid, of which is known what they are for.
    met: Vec<ExprId>,
}

impl Search<'_, '_> {
    fn body(&self) -> &Body {
        &self.child.body
    }

    /// `cg::this_grid()`
    fn makes_grid(&self, expr: ExprId) -> bool {
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &self.body().expr(expr).kind
        else {
            return false;
        };
        unqualified(name) == "this_grid"
            && args.is_empty()
            && group(self.child.db, self.child.item, self.body(), expr) == Some(Group::Grid)
    }

    /// `None` where one of the grids has another use.
    fn all(&mut self) -> Option<()> {
        let child = self.child;
        let body: &Body = &child.body;
        for stmt in &body.stmts {
            let StmtKind::Decl(decls) = &stmt.kind else { continue };
            for decl in decls {
                if let Some(init) = decl.init.map(|init| body.strip_parens(init))
                    && self.makes_grid(init)
                {
                    self.variable(decl.binding, init)?;
                }
            }
        }
        for (index, expr) in body.exprs.iter().enumerate() {
            if let ExprKind::Call { callee, args, .. } = &expr.kind {
                self.call(ExprId(index as u32), body.strip_parens(*callee), args)?;
            }
        }
        let grids = (0..body.exprs.len() as u32).map(ExprId).filter(|expr| {
            let variable = named(body, *expr).is_some_and(|b| self.variables.contains_key(&b));
            variable || self.makes_grid(*expr)
        });
        let mut lost = grids.filter(|expr| !self.met.contains(expr));
        lost.next().is_none().then_some(())
    }

    /// A variable that holds a grid.
    fn variable(&mut self, binding: BindingId, init: ExprId) -> Option<()> {
        let child = self.child;
        let variable = child.body.binding(binding);
        let plain = variable.ty.is_value() && variable.storage == Storage::Local && !variable.ty.volatile;
        if !plain || unknown_use(child, binding).is_some() {
            return None;
        }
        let base = variable.ty.base.trim_start_matches("const ").trim();
        let kind = if base == "auto" {
            Variable::Answers
        } else {
            Variable::Grid
        };
        self.variables.insert(binding, kind);
        self.made(init, kind == Variable::Answers)
    }

    /// A call of `cg::this_grid()` whose use is known. `answers`: what answers takes its place.
    fn made(&mut self, expr: ExprId, answers: bool) -> Option<()> {
        let span = self.body().expr(expr).span;
        self.met.push(expr);
        self.views.calls.push(span);
        match answers {
            true => self.view(expr),
            false => (!self.body().expr(expr).from_macro).then_some(()),
        }
    }

    /// Lets what answers take the place of a grid; `None` where built-in variables can't be written there.
    fn view(&mut self, expr: ExprId) -> Option<()> {
        let body = self.body();
        let span = body.expr(expr).span;
        let in_lambda =
            |e: &gridfuse_analysis::hir::Expr| matches!(e.kind, ExprKind::Lambda { .. }) && e.span.contains(span);
        if body.expr(expr).from_macro || body.exprs.iter().any(in_lambda) {
            return None;
        }
        self.views.viewed.push(span);
        Some(())
    }

    /// A call of a member function; `None` where it is one of a grid, and says something else than numbers.
    fn call(&mut self, call: ExprId, callee: ExprId, args: &[ExprId]) -> Option<()> {
        let child = self.child;
        let body: &Body = &child.body;
        let ExprKind::Field {
            base,
            field,
            arrow: false,
        } = &body.expr(callee).kind
        else {
            return Some(());
        };
        let base = body.strip_parens(*base);
        if field == "group_index" && args.is_empty() && !body.expr(call).from_macro {
            let is_block = group(self.child.db, self.child.item, body, base) == Some(Group::Block);
            if is_block && self.view(base).is_some() {
                self.views.calls.push(body.expr(call).span);
            }
            return Some(());
        }
        let variable = named(body, base).and_then(|b| self.variables.get(&b).copied());
        if variable.is_none() && !self.makes_grid(base) {
            return Some(());
        }
        if body.expr(call).from_macro || !args.is_empty() || !NUMBERS.contains(&field.as_str()) {
            return None;
        }
        let span = body.expr(call).span;
        self.views.calls.push(span);
        match variable {
            None => self.made(base, true),
            Some(Variable::Answers) => {
                self.met.push(base);
                Some(())
            }
            Some(Variable::Grid) => {
                self.met.push(base);
                self.view(base)
            }
        }
    }
}
