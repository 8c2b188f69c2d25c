//! Cooperative groups in a child that one thread runs: which thread this is and how many there are becomes arithmetic with the built-in
//! variables, which are parameters there, and `block.sync()` is a barrier.

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::Effects;
use gridfuse_analysis::facts::groups::{Group, group};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, StmtId, StmtKind, Storage};

use crate::edit::lex;
use crate::facts::child::Child;
use crate::facts::unknown_use::unknown_use;
use crate::facts::uses::named;

/// The groups of a child.
#[derive(Debug, Default)]
pub struct Groups {
    /// The variables that hold them, which nobody needs any more.
    pub variables: BTreeSet<BindingId>,
    /// Calls of their member functions, with what they become.
    pub members: BTreeMap<ExprId, Member>,
    /// Calls that let the threads of a group wait for each other.
    syncs: BTreeSet<ExprId>,
    /// Calls that make groups or ask them for something.
    calls: Vec<Span>,
}

/// A call of a member function.
#[derive(Debug)]
pub struct Member {
    /// The code that takes its place.
    pub code: String,
    /// All threads of a block get the same.
    pub common: bool,
}

/// A group of which each thread can tell who it is.
#[derive(Clone)]
enum Kind {
    Block,
    Grid,
    /// A tile of the block, of so many threads, as written.
    Tile(String),
}

impl Groups {
    /// Those of a child that holds some; `None` where it holds none, or uses one in another way.
    pub fn of(child: &Child<'_>) -> Option<Groups> {
        let body: &Body = &child.body;
        let mut search = Search {
            child,
            kinds: BTreeMap::new(),
            groups: Groups::default(),
            seen: BTreeSet::new(),
        };
        for stmt in &body.stmts {
            if let StmtKind::Decl(decls) = &stmt.kind {
                for decl in decls {
                    search.variable(decl.binding, decl.init)?;
                }
            }
        }
        for (index, expr) in body.exprs.iter().enumerate() {
            if let ExprKind::Call { callee, args, .. } = &expr.kind {
                search.call(ExprId(index as u32), body.strip_parens(*callee), args)?;
            }
        }
        // A group that is handed to somebody else stands for the thread that runs all.
        let all = { (0..body.exprs.len() as u32).map(ExprId) }.filter(|e| search.kind(*e).is_some());
        let mut lost = all.filter(|e| !search.seen.contains(e) && !matches!(body.expr(*e).kind, ExprKind::Paren(_)));
        if lost.next().is_some() || search.groups.calls.is_empty() {
            return None;
        }
        Some(search.groups)
    }

    /// Whether a statement lets the threads of a group wait for each other.
    pub fn is_sync(&self, body: &Body, stmt: StmtId) -> bool {
        match body.stmt(stmt).kind {
            StmtKind::Expr(expr) => self.syncs.contains(&body.strip_parens(expr)),
            _ => false,
        }
    }

    /// What the child does, without what its groups read: that becomes parameters.
    pub fn left_out_of(&self, child: &Child<'_>, effects: &Effects) -> Effects {
        let mut effects = effects.clone();
        let seen = |place: &gridfuse_analysis::base::place::FileRange| {
            let within = |span: &Span| span.shift(child.start).contains(place.range);
            place.file == child.file && self.calls.iter().any(within)
        };
        effects.builtins_in_callees.retain(|(_, _, place)| !seen(place));
        effects
    }
}

struct Search<'a, 'db> {
    child: &'a Child<'db>,
    kinds: BTreeMap<BindingId, Kind>,
    groups: Groups,
    /// The expressions that name or make a group, and of which is known what they are for.
    seen: BTreeSet<ExprId>,
}

impl Search<'_, '_> {
    fn body(&self) -> &Body {
        &self.child.body
    }

    /// The group that an expression names or makes.
    fn kind(&self, expr: ExprId) -> Option<Kind> {
        let body = self.body();
        let expr = body.strip_parens(expr);
        if let Some(binding) = named(body, expr) {
            return self.kinds.get(&binding).cloned();
        }
        let ExprKind::Call {
            name: Some(name),
            args,
            template_args,
            ..
        } = &body.expr(expr).kind
        else {
            return None;
        };
        let made = group(self.child.db, self.child.item, body, expr)?;
        match (unqualified(name), made, args.as_slice()) {
            ("this_thread_block", Group::Block, []) => Some(Kind::Block),
            ("this_grid", Group::Grid, []) => Some(Kind::Grid),
            ("tiled_partition", _, [of]) if matches!(self.kind(*of), Some(Kind::Block)) => {
                let written = self.child.source((*template_args)?);
                let size = lex::code_words(written.trim().strip_prefix('<')?.strip_suffix('>')?);
                let [size] = size.as_slice() else { return None };
                let own = |b: &gridfuse_analysis::hir::Binding| b.name == *size;
                // A constant of a wider type would make the rank wider, too.
                let number = size.parse::<u32>().is_ok();
                let code = if number {
                    (*size).to_owned()
                } else {
                    format!("unsigned({size})")
                };
                (!body.bindings.iter().any(own)).then_some(Kind::Tile(code))
            }
            _ => None,
        }
    }

    /// Notes what a group is made for, with what it is made of; `None` where that comes out of a macro.
    fn made(&mut self, expr: ExprId) -> Option<()> {
        let expr = self.body().strip_parens(expr);
        if self.body().expr(expr).from_macro {
            return None;
        }
        self.seen.insert(expr);
        let ExprKind::Call { args, .. } = &self.body().expr(expr).kind else {
            return Some(());
        };
        let (args, span) = (args.clone(), self.body().expr(expr).span);
        self.groups.calls.push(span);
        args.into_iter().try_for_each(|arg| self.made(arg))
    }

    /// A variable that holds a group has no other use than that; `None` where it may have.
    fn variable(&mut self, binding: BindingId, init: Option<ExprId>) -> Option<()> {
        let Some((init, kind)) = init.and_then(|init| Some((init, self.kind(init)?))) else {
            return Some(());
        };
        let body = self.body();
        let variable = body.binding(binding);
        let plain = variable.ty.is_value() && variable.storage == Storage::Local && !variable.ty.volatile;
        if !plain || unknown_use(self.child, binding).is_some() {
            return None;
        }
        self.kinds.insert(binding, kind);
        self.groups.variables.insert(binding);
        self.made(init)
    }

    /// A call of a member function; `None` where it isn't known what that is.
    fn call(&mut self, call: ExprId, callee: ExprId, args: &[ExprId]) -> Option<()> {
        let ExprKind::Field {
            base,
            field,
            arrow: false,
        } = &self.body().expr(callee).kind
        else {
            return Some(());
        };
        let Some(kind) = self.kind(*base) else { return Some(()) };
        let (base, field) = (*base, field.clone());
        if self.body().expr(call).from_macro || !args.is_empty() {
            return None;
        }
        if field == "sync" && !matches!(kind, Kind::Grid) {
            self.groups.syncs.insert(call);
        } else {
            let (code, common) = member(&kind, &field)?;
            self.groups.members.insert(call, Member { code, common });
            self.groups.calls.push(self.body().expr(call).span);
        }
        self.made(base)
    }
}

/// What a member function computes, and whether all threads of a block get the same.
fn member(kind: &Kind, field: &str) -> Option<(String, bool)> {
    let rank = "gridfuse::thread_rank(threadIdx, blockDim)";
    let threads = "gridfuse::thread_count(blockDim)";
    let (code, common) = match (kind, field) {
        (Kind::Block, "thread_rank") => (rank.to_owned(), false),
        (Kind::Block, "size" | "num_threads") => (threads.to_owned(), true),
        (Kind::Block, "thread_index") => ("dim3(threadIdx)".to_owned(), false),
        (Kind::Block, "group_index") => ("dim3(blockIdx)".to_owned(), true),
        (Kind::Block, "group_dim" | "dim_threads") => ("dim3(blockDim)".to_owned(), true),
        (Kind::Grid, "thread_rank") => (
            "gridfuse::thread_rank(threadIdx, blockIdx, blockDim, gridDim)".to_owned(),
            false,
        ),
        (Kind::Grid, "size" | "num_threads") => ("gridfuse::thread_count(blockDim, gridDim)".to_owned(), true),
        (Kind::Tile(size), "thread_rank") => (format!("({rank} % {size})"), false),
        (Kind::Tile(size), "meta_group_rank") => (format!("({rank} / {size})"), false),
        (Kind::Tile(size), "size" | "num_threads") => match size.parse::<u32>() {
            Ok(number) => (format!("{number}u"), true),
            Err(_) => (size.clone(), true),
        },
        _ => return None,
    };
    Some((code, common))
}
