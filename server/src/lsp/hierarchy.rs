//! Call hierarchy over launches: who launches a kernel, from host and device, and what a function launches.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::Child;
use gridfuse_analysis::hir::items::FunctionItem;
use tower_lsp_server::ls_types::{
    CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, CallHierarchyPrepareParams, Range,
    SymbolKind,
};

use super::convert::path_of;
use super::hover::named_at;
use super::state::Snapshot;
use crate::launches::{LaunchSite, by_function, of_kernel, overlapping, place_in};

/// The function at a position: of a launch its kernel, else the function that is named there, if it has to do with launches.
pub fn prepare(snapshot: &Snapshot, params: &CallHierarchyPrepareParams) -> Option<Vec<CallHierarchyItem>> {
    let db = &snapshot.db;
    let at = &params.text_document_position_params;
    let file = snapshot.file(&path_of(&at.text_document.uri))?;
    let offset = snapshot.offset(file, at.position);
    let sites = overlapping(db, file, TextRange::empty(offset));
    let functions = match named_at(snapshot, file, offset) {
        Some((function, _)) => vec![function],
        None => children(
            sites
                .iter()
                .min_by_key(|site| site.place.range.end - site.place.range.start)?,
        ),
    };
    let concerned = functions
        .into_iter()
        .filter(|function| function.signature(db).kernel || !by_function(db, *function).is_empty());
    let found: Vec<_> = concerned.filter_map(|function| item(snapshot, function)).collect();
    (!found.is_empty()).then_some(found)
}

/// The kernels that a launch may launch.
fn children<'db>(site: &LaunchSite<'db>) -> Vec<FunctionItem<'db>> {
    match &site.facts.child {
        Child::Kernel(kernel) => vec![*kernel],
        Child::Ambiguous(kernels) => kernels.clone(),
        Child::Unknown => Vec::new(),
    }
}

fn item(snapshot: &Snapshot, function: FunctionItem<'_>) -> Option<CallHierarchyItem> {
    let db = &snapshot.db;
    let file = function.file(db);
    let start = function.start(db);
    let whole = FileRange {
        file,
        range: TextRange::new(start, start + function.text(db).len() as u32),
    };
    let signature = function.signature(db);
    Some(CallHierarchyItem {
        name: function.name(db).to_string(),
        kind: SymbolKind::FUNCTION,
        tags: None,
        detail: Some(kind(db, function).to_string()),
        uri: snapshot.uri(file.path(db))?,
        range: snapshot.range(whole),
        selection_range: snapshot.range(place_in(db, function, signature.name_span)),
        data: None,
    })
}

fn kind(db: &dyn Db, function: FunctionItem<'_>) -> &'static str {
    let signature = function.signature(db);
    match (signature.kernel, signature.device) {
        (true, _) => "kernel",
        (false, true) => "device function",
        (false, false) => "host function",
    }
}

/// The function that an item stands for.
fn function_of<'db>(snapshot: &'db Snapshot, item: &CallHierarchyItem) -> Option<FunctionItem<'db>> {
    let file = snapshot.file(&path_of(&item.uri))?;
    let offset = snapshot.offset(file, item.selection_range.start);
    named_at(snapshot, file, offset).map(|(function, _)| function)
}

/// Launches grouped by a function, in the order in which the functions first come.
fn grouped<'db>(
    snapshot: &Snapshot,
    pairs: impl Iterator<Item = (FunctionItem<'db>, LaunchSite<'db>)>,
) -> Vec<(CallHierarchyItem, Vec<Range>)> {
    let mut groups: Vec<(FunctionItem<'db>, Vec<Range>)> = Vec::new();
    for (function, site) in pairs {
        let range = snapshot.range(site.place);
        match groups.iter_mut().find(|(known, _)| *known == function) {
            Some((_, ranges)) => ranges.push(range),
            None => groups.push((function, vec![range])),
        }
    }
    let items = groups.into_iter();
    items
        .filter_map(|(function, ranges)| Some((item(snapshot, function)?, ranges)))
        .collect()
}

/// The functions that launch a kernel.
pub fn incoming(snapshot: &Snapshot, item: &CallHierarchyItem) -> Option<Vec<CallHierarchyIncomingCall>> {
    let kernel = function_of(snapshot, item)?;
    let sites = of_kernel(&snapshot.db, kernel);
    let groups = grouped(snapshot, sites.into_iter().map(|site| (site.id.function, site)));
    let calls = groups.into_iter();
    Some(
        calls
            .map(|(from, from_ranges)| CallHierarchyIncomingCall { from, from_ranges })
            .collect(),
    )
}

/// The kernels that a function launches.
pub fn outgoing(snapshot: &Snapshot, item: &CallHierarchyItem) -> Option<Vec<CallHierarchyOutgoingCall>> {
    let function = function_of(snapshot, item)?;
    let sites = by_function(&snapshot.db, function);
    let pairs = sites
        .into_iter()
        .flat_map(|site| children(&site).into_iter().map(move |kernel| (kernel, site)));
    let groups = grouped(snapshot, pairs);
    let calls = groups.into_iter();
    Some(
        calls
            .map(|(to, from_ranges)| CallHierarchyOutgoingCall { to, from_ranges })
            .collect(),
    )
}
