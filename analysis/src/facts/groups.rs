//! Cooperative groups: which threads a variable or a call names, and what its member functions do.

use crate::base::db::Db;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Library, Outcome, Together, group_member, library};
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::visible::visible_names;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name};

/// The threads of a cooperative group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The thread alone.
    Thread,
    /// Threads of one warp.
    Warp,
    /// The block.
    Block,
    /// The grid.
    Grid,
    /// Some threads.
    Some,
}

/// The functions that make groups of CUDA's, with the groups that they make.
const MAKERS: &[(&str, Group)] = &[
    ("this_thread", Group::Thread),
    ("this_thread_block", Group::Block),
    ("this_grid", Group::Grid),
    ("coalesced_threads", Group::Warp),
    ("this_cluster", Group::Some),
];

const TYPES: &[(&str, Group)] = &[
    ("thread_block", Group::Block),
    ("grid_group", Group::Grid),
    ("coalesced_group", Group::Warp),
    ("thread_group", Group::Some),
    ("cluster_group", Group::Some),
];

/// Variables that are followed to what they are made of.
const MAX_VARIABLES: u32 = 8;

/// The group that an expression names; `None` when it is none, or not known to be one.
pub fn group(db: &dyn Db, function: FunctionItem<'_>, body: &Body, expr: ExprId) -> Option<Group> {
    Search { db, function, body }.group(expr, 0)
}

/// What a call does whose callee is a member function of a cooperative group.
pub fn group_call(db: &dyn Db, function: FunctionItem<'_>, body: &Body, callee: ExprId) -> Option<(Group, Library)> {
    let ExprKind::Field {
        base,
        field,
        arrow: false,
    } = &body.expr(body.strip_parens(callee)).kind
    else {
        return None;
    };
    let group = group(db, function, body, *base)?;
    let mut library = group_member(field)?;
    if library.together != Together::Alone {
        library.together = match group {
            Group::Thread => Together::Alone,
            Group::Warp => Together::Warp,
            Group::Block => Together::Block,
            Group::Grid | Group::Some => Together::Group,
        };
    }
    if group == Group::Block && library.is_barrier() && field != "sync" {
        // Arriving is no waiting.
        library.together = Together::Group;
    }
    Some((group, library))
}

/// The built-in variables that decide which threads of which grid a group has.
pub fn decided_by(group: Group) -> &'static [&'static str] {
    match group {
        Group::Thread | Group::Warp => &[],
        Group::Block => &["threadIdx", "blockDim"],
        Group::Grid | Group::Some => &["threadIdx", "blockIdx", "blockDim", "gridDim"],
    }
}

/// The group that a call of this name makes: `cg::this_grid`.
pub fn made_by(name: &str) -> Option<Group> {
    let maker = library(name).filter(|made| made.result == Outcome::Varying)?;
    let last = unqualified(name);
    let group = MAKERS
        .iter()
        .find(|(known, _)| *known == last)
        .map(|(_, group)| *group)?;
    maker.looks_around().then_some(group)
}

struct Search<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
}

impl Search<'_, '_> {
    fn group(&self, expr: ExprId, depth: u32) -> Option<Group> {
        let expr = self.body.strip_parens(expr);
        match &self.body.expr(expr).kind {
            ExprKind::Name(Name::Local(binding)) => self.variable(*binding, depth),
            ExprKind::Call {
                name: Some(name), args, ..
            } if self.is_of_library(name) => match unqualified(name) {
                "tiled_partition" => Some(self.tile(self.body.expr(expr).span, args)),
                _ => made_by(name),
            },
            _ => None,
        }
    }

    fn variable(&self, binding: BindingId, depth: u32) -> Option<Group> {
        let variable = self.body.binding(binding);
        let ty = &variable.ty;
        if ty.pointers > 0 || !ty.array.is_empty() || depth > MAX_VARIABLES {
            return None;
        }
        let written = ty.base.trim_start_matches("const ").trim();
        let name = written.split('<').next().unwrap_or(written).trim();
        if name == "auto" {
            let init = self.body.initialiser(binding)?;
            return self.group(init, depth + 1);
        }
        let of_groups = ["cg::", "cooperative_groups::", "::cooperative_groups::"];
        let plain = match of_groups.iter().find_map(|scope| name.strip_prefix(scope)) {
            Some(plain) => plain,
            // Where `using namespace` makes it known.
            None if !name.contains("::") && self.is_unknown(name) => name,
            None => return None,
        };
        // A class of the user's by that name may be meant, in whatever namespace it is.
        let types = &visible_names(self.db, self.function.file(self.db)).types;
        if types.iter().any(|known| unqualified(known) == plain) {
            return None;
        }
        if plain == "thread_block_tile" {
            return Some(tile_of(written));
        }
        TYPES.iter().find(|(known, _)| *known == plain).map(|(_, group)| *group)
    }

    /// `tiled_partition<32>(block)`: up to a warp; of any size where that is an argument.
    fn tile(&self, span: crate::base::span::Span, args: &[ExprId]) -> Group {
        match args {
            [_] => tile_of(span.text(&self.function.text(self.db))),
            _ => Group::Some,
        }
    }

    fn is_of_library(&self, name: &str) -> bool {
        library(name).is_some() && self.is_unknown(name)
    }

    fn is_unknown(&self, name: &str) -> bool {
        meaning_in(self.db, self.function, name) == Meaning::Unknown
            && !crate::hir::scope::hides(self.db, self.function, name)
    }
}

/// `…<32>…`: a tile of so many threads.
fn tile_of(written: &str) -> Group {
    let size = written.split_once('<').and_then(|(_, rest)| {
        let end = rest.find([',', '>'])?;
        rest.get(..end)?.trim().parse::<u32>().ok()
    });
    match size {
        Some(1..=32) => Group::Warp,
        _ => Group::Some,
    }
}
