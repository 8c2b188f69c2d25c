//! Takes back what a rewrite has added to the code of a child.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::launch::{Child, LaunchFacts, Launchers, launches};
use gridfuse_analysis::hir::items::FunctionItem;

use super::layer::Peeled;
use crate::api::rewrite::{Layer, Options};
use crate::edit::builder::EditBuilder;

/// What was added to a kernel: the pieces.
pub type Added = for<'db> fn(&'db dyn Db, FunctionItem<'db>) -> Vec<FileRange>;

/// Takes the pieces off the child of one of the launches that have some, counted from 0; `None` where there are fewer.
pub fn peel<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    nth: usize,
    layer: Layer,
    added: Added,
) -> Option<Option<Peeled>> {
    let own = launches(db, parent).iter().enumerate();
    let have = own.filter_map(|(index, facts)| Some((in_child(db, facts, added)?, index as u32)));
    let (pieces, index) = have.into_iter().nth(nth)?;
    let mut edit = EditBuilder::new(db);
    for piece in pieces {
        edit.replace(piece, "");
    }
    Some(edit.finish().ok().map(|edit| Peeled {
        edits: vec![edit],
        layer,
        options: Options::default(),
        index,
        function: None,
    }))
}

/// A function launches a kernel that has some.
pub fn is_there<'db>(db: &'db dyn Db, parent: FunctionItem<'db>, added: Added) -> bool {
    launches(db, parent)
        .iter()
        .any(|facts| in_child(db, facts, added).is_some())
}

/// Those of the child of a launch by device code, if there are some.
fn in_child<'db>(db: &'db dyn Db, facts: &LaunchFacts<'db>, added: Added) -> Option<Vec<FileRange>> {
    let Child::Kernel(child) = facts.child else { return None };
    let by_device = facts.launchers != Launchers::Host;
    Some(added(db, child)).filter(|pieces| by_device && !pieces.is_empty())
}
