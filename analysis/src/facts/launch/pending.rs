//! How many launches may be pending at once.

use std::sync::Arc;

use super::config::constant_value;
use crate::base::db::{Db, SourceFile, Workspace};
use crate::base::file_settings::settings;
use crate::base::limits::PENDING_LAUNCHES;
use crate::base::parse::masked;
use crate::hir::items::items;
use crate::hir::settled::settled_rest;
use crate::hir::{ExprKind, Name, body};

const LIMIT: &str = "cudaLimitDevRuntimePendingLaunchCount";

/// The limit of pending launches for what a file launches: what the settings say, else the largest that a `cudaDeviceSetLimit` in the workspace sets,
/// else CUDA's own. `None`: a call sets it to something that isn't constant.
pub fn pending_launch_limit(db: &dyn Db, file: SourceFile) -> Option<u64> {
    match settings(db, file).pending_launches {
        Some(limit) => Some(limit),
        None => limit_set_by_program(db),
    }
}

/// The same by what the program says.
#[salsa::tracked(returns(copy))]
fn limit_set_by_program(db: &dyn Db) -> Option<u64> {
    let files = Workspace::try_get(db)
        .map(|workspace| workspace.files(db))
        .unwrap_or_default();
    let mut found: Option<u64> = None;
    for file in files.values() {
        for limit in limits_set_in(db, *file) {
            let limit = (*limit)?;
            found = Some(found.map_or(limit, |other| other.max(limit)));
        }
    }
    Some(found.unwrap_or(PENDING_LAUNCHES))
}

/// What the calls in a file set the limit to.
fn limits_set_in(db: &dyn Db, file: SourceFile) -> &[Option<u64>] {
    match settled_rest(db, file) {
        Some(settled) => &settled.limits,
        None => limits_set_in_text(db, file),
    }
}

/// The same as the text says now.
#[salsa::tracked]
pub(crate) fn limits_set_in_text(db: &dyn Db, file: SourceFile) -> Arc<Vec<Option<u64>>> {
    if !file.text(db).contains(LIMIT) {
        return Arc::default();
    }
    let mut found = Vec::new();
    // What was blanked may set it.
    let text = file.text(db);
    let mut large = masked(db, file).large.clone().into_iter();
    if large.any(|range| range.text(&text).contains(LIMIT)) {
        found.push(None);
    }
    for function in items(db, file).functions.iter().filter(|f| f.has_body(db)) {
        if !function.text(db).contains(LIMIT) {
            continue;
        }
        let body = body(db, *function);
        let before = found.len();
        for expr in &body.exprs {
            if let ExprKind::Call { args, .. } = &expr.kind
                && let [which, value, ..] = args.as_slice()
                && matches!(&body.expr(body.strip_parens(*which)).kind,
                    ExprKind::Name(Name::Other(name)) if name.trim_start_matches("::") == LIMIT)
            {
                let value = constant_value(db, *function, &body, *value);
                found.push(value.and_then(|n| u64::try_from(n).ok()));
            }
        }
        if found.len() == before {
            // It's set in a way that isn't seen.
            found.push(None);
        }
    }
    Arc::new(found)
}
