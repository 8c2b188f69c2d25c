//! The fixes of findings as SARIF has them: what is replaced by what.

use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;
use gridfuse_codeactions::api::rewrite::{At, Options, Target};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::handlers::rewrite_by_id;
use serde_sarif::sarif::{ArtifactChange, ArtifactContent, ArtifactLocation, Fix, Message, Region, Replacement};

use crate::fixes::small_edit;
use crate::launches::around;
use crate::schema::Finding;

/// How places are written.
pub struct Writing<'a> {
    /// The database.
    pub db: &'a Database,
    /// A file.
    pub file: &'a dyn Fn(&std::path::Path) -> ArtifactLocation,
    /// A place in it.
    pub region: &'a dyn Fn(FileRange) -> Region,
    /// A file that is known.
    pub known: &'a dyn Fn(&std::path::Path) -> Option<SourceFile>,
}

/// The fixes of a finding. Those that create a file are left out: SARIF has no words for that.
pub fn fixes(writing: &Writing<'_>, diagnostic: &Diagnostic, finding: &Finding) -> Vec<Fix> {
    let small = diagnostic.edit.as_ref().zip(small_edit(writing.db, diagnostic));
    let small = small.map(|(small, edit)| (small.title.to_owned(), edit));
    let site = around(writing.db, diagnostic.place);
    let rewrites = finding.fixes.iter().filter_map(|fix| {
        let rewrite = rewrite_by_id(fix.rewrite)?;
        let at = match rewrite.target {
            Target::Launch(_) => At::Launch(site?.id),
            Target::Place(_) => At::Place(diagnostic.place),
        };
        let edit = rewrite.apply(writing.db, at, &Options::default()).ok()?;
        let assumed: Vec<&str> = edit
            .assumptions
            .iter()
            .map(|assumed| assumed.reason.text.as_str())
            .collect();
        let title = match assumed.is_empty() {
            true => fix.title.to_string(),
            false => format!("{}, which is right if {}", fix.title, assumed.join("; and ")),
        };
        Some((title, edit))
    });
    small
        .into_iter()
        .chain(rewrites)
        .filter_map(|(title, edit)| written(writing, &title, &edit))
        .collect()
}

fn written(writing: &Writing<'_>, title: &str, edit: &SourceEdit) -> Option<Fix> {
    if !edit.creates.is_empty() || edit.edits.is_empty() {
        return None;
    }
    let changes = edit.edits.iter().map(|(path, edits)| {
        let file = (writing.known)(path)?;
        let replacements: Vec<Replacement> = edits
            .iter()
            .map(|edit| {
                let deleted = (writing.region)(FileRange {
                    file,
                    range: edit.range,
                });
                let content = ArtifactContent::builder().text(edit.insert.clone()).build();
                Replacement::builder()
                    .deleted_region(deleted)
                    .inserted_content(content)
                    .build()
            })
            .collect();
        let change = ArtifactChange::builder().artifact_location((writing.file)(path));
        Some(change.replacements(replacements).build())
    });
    let changes: Vec<ArtifactChange> = changes.collect::<Option<_>>()?;
    let description = Message::builder().text(format!("{title}.")).build();
    Some(
        Fix::builder()
            .artifact_changes(changes)
            .description(description)
            .build(),
    )
}
