//! Takes `skip-silent-stores` back.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::body;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::silent_store::silent_stores;

use super::in_child;
use super::layer::Peeled;
use crate::api::rewrite::Layer;
use crate::emit::look_first::comment_length;

/// Takes it off the child of one of the launches that have it, counted from 0; `None` where there are fewer.
pub fn peel<'db>(db: &'db dyn Db, parent: FunctionItem<'db>, nth: usize) -> Option<Option<Peeled>> {
    in_child::peel(db, parent, nth, Layer::LookedFirst, added)
}

/// A function launches a kernel that has it.
pub fn is_there<'db>(db: &'db dyn Db, parent: FunctionItem<'db>) -> bool {
    in_child::is_there(db, parent, added)
}

/// What was added to a function: in front of each store, and behind it.
fn added(db: &dyn Db, function: FunctionItem<'_>) -> Vec<FileRange> {
    let (file, start) = (function.file(db), function.start(db));
    let text = file.text(db);
    let body = body(db, function);
    let stores = silent_stores(&body).into_iter().filter_map(|silent| {
        let whole = body.stmt(silent.stmt).span.shift(start);
        let store = body.stmt(silent.store).span.shift(start);
        let length = comment_length(&text, store.end as usize)?;
        let range = |start: u32, end: u32| FileRange {
            file,
            range: TextRange::new(start, end),
        };
        Some([
            range(whole.start, store.start),
            range(store.end, store.end + length as u32),
        ])
    });
    stores.flatten().collect()
}
