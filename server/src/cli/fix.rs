//! `gridfuse check --fix`: applies the fixes that may be applied unattended, one after the other. After each, everything is looked at
//! anew, so that no fix is applied to a program that another one has changed under it, and a second run finds nothing to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_codeactions::api::rewrite::{At, Options, Target};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::handlers::rewrite_by_id;

use super::CliError;
use super::project::Project;
use crate::changes::{Change, record, texts_after};
use crate::fixes::{small_edit, unattended};
use crate::launches::around;
use crate::schema::Fixed;

/// More fixes than any program has diagnostics to be fixed: fixes that undo each other must come to an end.
const MAX_FIXES: usize = 10_000;

/// A fix on offer: what it is, and its edit.
struct Offer {
    fixed: Fixed,
    /// Where it was found, for the list of those that were tried in vain.
    key: (PathBuf, &'static str, u32),
    edit: SourceEdit,
}

/// Applies the fixes in memory; what was applied, in order, and the changes.
pub fn fix_all(project: &mut Project) -> Result<(Vec<Fixed>, BTreeMap<PathBuf, Change>), CliError> {
    let mut fixed = Vec::new();
    let mut changes: BTreeMap<PathBuf, Change> = BTreeMap::new();
    let mut in_vain = BTreeSet::new();
    loop {
        let before = fixed.len();
        for file in project.asked() {
            while fixed.len() < MAX_FIXES
                && let Some(offer) = next_in(project, file, &in_vain)
            {
                if apply(project, &offer.edit, &mut changes)? {
                    fixed.push(offer.fixed);
                } else {
                    in_vain.insert(offer.key);
                }
            }
        }
        if fixed.len() == before {
            break;
        }
    }
    changes.retain(|_, change| change.before.as_deref() != Some(&change.after));
    Ok((fixed, changes))
}

/// The first fix of a file.
fn next_in(project: &Project, file: SourceFile, in_vain: &BTreeSet<(PathBuf, &'static str, u32)>) -> Option<Offer> {
    let db = project.host.db();
    let path = file.path(db).to_path_buf();
    diagnostics(db, file).iter().find_map(|diagnostic| {
        let key = (path.clone(), diagnostic.id, diagnostic.place.range.start);
        if in_vain.contains(&key) {
            return None;
        }
        let (title, edit) = fix_of(project, diagnostic)?;
        let fixed = project.describe(|_, describe| Fixed {
            id: diagnostic.id,
            title,
            place: describe.place(diagnostic.place),
        });
        Some(Offer { fixed, key, edit })
    })
}

fn fix_of(project: &Project, diagnostic: &Diagnostic) -> Option<(&'static str, SourceEdit)> {
    let db = project.host.db();
    if let (Some(small), Some(edit)) = (&diagnostic.edit, small_edit(db, diagnostic)) {
        return Some((small.title, edit));
    }
    let mut candidates = diagnostic.rewrites.iter().filter(|id| unattended(id)).peekable();
    candidates.peek()?;
    let site = around(db, diagnostic.place).filter(|site| site.device_side());
    candidates.find_map(|id| {
        let rewrite = rewrite_by_id(id)?;
        let at = match rewrite.target {
            // Whoever wrote a macro for the launch is asked before it is written out.
            Target::Launch(_) => At::Launch(site.filter(|site| !site.facts.from_macro)?.id),
            Target::Place(_) => At::Place(diagnostic.place),
        };
        let edit = rewrite.apply(db, at, &Options::default()).ok()?;
        edit.assumptions.is_empty().then_some((rewrite.title, edit))
    })
}

/// Makes an edit in memory, unless a file that it touches has more errors then.
fn apply(project: &mut Project, edit: &SourceEdit, changes: &mut BTreeMap<PathBuf, Change>) -> Result<bool, CliError> {
    let texts = texts_after(project, edit)?;
    let errors = |project: &Project| {
        let db = project.host.db();
        let files = texts.iter().filter_map(|(path, _, _)| project.host.file(path));
        let found = files.flat_map(|file| diagnostics(db, file));
        found
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .count()
    };
    let before = errors(project);
    for (path, _, after) in &texts {
        project.host.set_file(path, after.as_str());
    }
    if errors(project) > before {
        for (path, before, _) in &texts {
            match before {
                Some(text) => {
                    project.host.set_file(path, text.clone());
                }
                None => project.host.remove_file(path),
            }
        }
        return Ok(false);
    }
    for edited in texts {
        record(changes, edited);
    }
    Ok(true)
}
