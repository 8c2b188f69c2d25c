//! Finding launch sites: in a file, at a place, of a kernel.

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::launch::{Child, LaunchFacts, LaunchId, Launchers, launches, waits_after};
use gridfuse_analysis::hir::extents::functions_near;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::resolve::{launches_by_name, may_launch as may_launch_any};

use crate::line_index::line_index;

/// A launch site with its facts and its place in the file.
#[derive(Clone, Copy)]
pub struct LaunchSite<'db> {
    /// Identity.
    pub id: LaunchId<'db>,
    /// What is known about it.
    pub facts: &'db LaunchFacts<'db>,
    /// Where it stands.
    pub place: FileRange,
}

impl<'db> LaunchSite<'db> {
    /// A kernel or a device function launches, not host code.
    pub fn device_side(&self) -> bool {
        self.facts.launchers != Launchers::Host
    }

    /// A span of the launching function as a place in the file.
    pub fn at(&self, db: &dyn Db, span: Span) -> FileRange {
        place_in(db, self.id.function, span)
    }
}

/// A span of a function as a place in its file.
pub fn place_in(db: &dyn Db, function: FunctionItem<'_>, span: Span) -> FileRange {
    FileRange {
        file: function.file(db),
        range: span.shift(function.start(db)),
    }
}

/// The launches in one function, in source order.
pub fn by_function<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<LaunchSite<'db>> {
    // The test saves lowering the many functions that launch nothing.
    if !function.has_body(db) || !may_launch_any(db, function) {
        return Vec::new();
    }
    launches(db, function)
        .iter()
        .enumerate()
        .map(|(index, facts)| LaunchSite {
            id: LaunchId {
                function,
                index: index as u32,
            },
            facts,
            place: place_in(db, function, facts.span),
        })
        .collect()
}

/// Every launch of a file, in source order.
pub fn in_file<'db>(db: &'db dyn Db, file: SourceFile) -> Vec<LaunchSite<'db>> {
    let mut sites: Vec<LaunchSite<'db>> = items(db, file)
        .functions
        .iter()
        .flat_map(|function| by_function(db, *function))
        .collect();
    sites.sort_by_key(|site| site.place.range);
    sites
}

/// The rewrite that replaces a wait for child grids.
pub const REPLACES_WAIT: &str = "replace-device-sync";

/// The rewrite that takes others back.
pub const REVERT: &str = "revert";

/// The call by which a launch's function waits for the child grids afterwards.
pub fn wait_for(db: &dyn Db, site: &LaunchSite<'_>) -> Option<FileRange> {
    let waits = waits_after(db, site.id.function);
    let wait = waits.get(site.id.index as usize).copied().flatten()?;
    Some(site.at(db, wait.span)).filter(|place| is_wait(db, *place))
}

/// A call that waits, not a function that does.
pub fn is_wait(db: &dyn Db, place: FileRange) -> bool {
    place.range.text(&place.file.text(db)).contains("Synchronize")
}

/// Two ranges have a byte in common, or touch where one of them is empty.
pub fn overlap(a: TextRange, b: TextRange) -> bool {
    if a.start == a.end || b.start == b.end {
        a.start <= b.end && b.start <= a.end
    } else {
        a.start < b.end && b.start < a.end
    }
}

/// The launches of a file that have a byte in common with `range`, in source order.
pub fn overlapping<'db>(db: &'db dyn Db, file: SourceFile, range: TextRange) -> Vec<LaunchSite<'db>> {
    let near = functions_near(db, file, range).into_iter().filter(|function| {
        let start = function.start(db);
        overlap(TextRange::new(start, start + function.text(db).len() as u32), range)
    });
    let mut sites: Vec<LaunchSite<'db>> = near.flat_map(|function| by_function(db, function)).collect();
    sites.retain(|site| overlap(site.place.range, range));
    sites.sort_by_key(|site| site.place.range);
    sites
}

/// The launch that a diagnostic at `place` speaks of: the smallest one around it, else the first one in it, else the first one
/// of the function that it lies in.
pub fn around<'db>(db: &'db dyn Db, place: FileRange) -> Option<LaunchSite<'db>> {
    let mut sites = overlapping(db, place.file, place.range);
    if sites.is_empty() {
        sites = function_at(db, place.file, place.range.start).map_or_else(Vec::new, |f| by_function(db, f));
    }
    sites
        .iter()
        .filter(|site| site.place.range.contains(place.range))
        .min_by_key(|site| site.place.range.end - site.place.range.start)
        .or_else(|| sites.first())
        .copied()
}

/// The function whose text covers `offset`.
pub fn function_at<'db>(db: &'db dyn Db, file: SourceFile, offset: u32) -> Option<FunctionItem<'db>> {
    functions_near(db, file, TextRange::new(offset, offset))
        .into_iter()
        .filter(|function| {
            let start = function.start(db);
            let end = start + function.text(db).len() as u32;
            TextRange::new(start, end).touches(offset)
        })
        .min_by_key(|function| function.text(db).len())
}

/// The text of the function whose head is on `line`, from 0, among those that `launches`.
pub fn function_headed_on<'db>(
    db: &'db dyn Db,
    file: SourceFile,
    line: u32,
    launches: impl Fn(FunctionItem<'db>) -> bool,
) -> Option<TextRange> {
    let index = line_index(db, file);
    let line_of = |offset: u32| index.line(offset).0;
    let function = items(db, file).functions.iter().find(|function| {
        let start = function.start(db);
        let head = line_of(start)..=line_of(function.signature(db).params_span.shift(start).end);
        head.contains(&line) && launches(**function)
    })?;
    let start = function.start(db);
    let length = u32::try_from(function.text(db).len()).unwrap_or(u32::MAX);
    Some(TextRange::new(start, start.saturating_add(length)))
}

/// The launch's kernel is, or may be, `kernel`.
pub fn may_launch(site: &LaunchSite<'_>, kernel: FunctionItem<'_>) -> bool {
    match &site.facts.child {
        Child::Kernel(child) => *child == kernel,
        Child::Ambiguous(children) => children.contains(&kernel),
        Child::Unknown => false,
    }
}

/// Every launch of `kernel` in the workspace, by file and place.
pub fn of_kernel<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Vec<LaunchSite<'db>> {
    let name = kernel.name(db).rsplit("::").next().unwrap_or_default();
    let files = Workspace::get(db).files(db);
    let mut sites = Vec::new();
    for file in files.values() {
        if launches_by_name(db, *file).contains_key(name) {
            sites.extend(in_file(db, *file).into_iter().filter(|site| may_launch(site, kernel)));
        }
    }
    sites
}
