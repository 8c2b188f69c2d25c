//! Rewrites one after the other, for all launches of a file or those of a line, as one edit.

use std::collections::BTreeMap;
use std::sync::Arc;

use gridfuse_analysis::base::closest::closest;
use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::span::TextRange;
use gridfuse_codeactions::api::assumption::Assumed;
use gridfuse_codeactions::api::copy::copy_of;
use gridfuse_codeactions::api::refusal::Reason;
use gridfuse_codeactions::api::rewrite::{Options, Rewrite};
use gridfuse_codeactions::api::sequence::edit_between;
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::api::source_edit::apply_to_text;
use gridfuse_codeactions::api::source_edit::map_range;
use gridfuse_codeactions::handlers::{launch_rewrite, of_launches};

use crate::launches::{LaunchSite, in_file, overlapping};
use crate::pending::Pending;

/// Understands `threshold+aggregate-block`. `Err` is a sentence.
pub fn steps(recipe: &str) -> Result<Vec<&'static Rewrite>, String> {
    let step = |id: &str| launch_rewrite(id).ok_or_else(|| unknown(id, of_launches()));
    recipe.split('+').map(str::trim).map(step).collect()
}

/// Says that no rewrite is called so, and which one is meant, or else which there are.
pub fn unknown(id: &str, known: impl Iterator<Item = &'static Rewrite>) -> String {
    let all: Vec<&Rewrite> = known.collect();
    let ids = || all.iter().map(|rewrite| rewrite.id);
    let mut family = of_family(id, &all);
    if family.is_empty() && closest(id, ids()).is_none() {
        // `agregate`
        let families = all.iter().map(|rewrite| rewrite.family.name());
        family = closest(id, families).map_or_else(Vec::new, |family| of_family(family, &all));
    }
    let meant = match closest(id, ids()) {
        Some(meant) if family.is_empty() => vec![meant],
        _ => family,
    };
    let meant: Vec<String> = meant.iter().map(|id| format!("`{id}`")).collect();
    match meant.split_last() {
        None => format!(
            "no rewrite is called `{id}`; there are: {}",
            ids().collect::<Vec<_>>().join(", ")
        ),
        Some((meant, [])) => format!("no rewrite is called `{id}`; did you mean {meant}?"),
        Some((last, others)) => {
            format!(
                "no rewrite is called `{id}`; did you mean {} or {last}?",
                others.join(", ")
            )
        }
    }
}

/// The rewrites that a word stands for which begins their names, or which they are sorted under.
fn of_family(word: &str, known: &[&Rewrite]) -> Vec<&'static str> {
    let begins = |id: &str| id.strip_prefix(word).is_some_and(|rest| rest.starts_with('-'));
    let ids = |is_meant: &dyn Fn(&Rewrite) -> bool| -> Vec<&'static str> {
        let meant = known.iter().filter(|rewrite| is_meant(rewrite));
        meant.map(|rewrite| rewrite.id).collect()
    };
    match ids(&|rewrite| begins(rewrite.id)) {
        none if none.is_empty() => ids(&|rewrite| rewrite.family.name() == word),
        named => named,
    }
}

/// Applies the steps to the device-side launches of a file, or to those that touch `within`. Launches that a step refuses stay as
/// they are; `Err`: a step refused them all, and why.
pub fn apply(
    db: &dyn Db,
    file: SourceFile,
    within: Option<TextRange>,
    steps: &[&'static Rewrite],
) -> Result<SourceEdit, Vec<String>> {
    let path = file.path(db);
    let sites = match within {
        Some(range) => overlapping(db, file, range),
        None => in_file(db, file),
    };
    let device = sites.iter().filter(|site| site.device_side());
    let mut targets: Vec<TextRange> = device.map(|site| site.place.range).collect();
    let mut host = copy_of(db).ok_or_else(Vec::new)?;
    let mut creates = BTreeMap::new();
    let mut assumptions: Vec<Assumed> = Vec::new();
    for rewrite in steps {
        let mut refusals: Vec<String> = Vec::new();
        let mut left = Vec::new();
        let mut pending = Pending::new(targets);
        while let Some(target) = pending.next() {
            let now = host.file(path).ok_or_else(Vec::new)?;
            let edit = {
                let here = overlapping(host.db(), now, target);
                let exact = here.iter().find(|site| site.place.range == target);
                let Some(site) = exact.or_else(|| here.iter().find(|site| LaunchSite::device_side(site))) else {
                    // An edit for another launch has taken this one along, or no launch is left of it.
                    continue;
                };
                match rewrite.apply(host.db(), site.id, &Options::default()) {
                    Ok(edit) => edit,
                    Err(refusal) => {
                        let reason = |reason: Reason| format!("{}: {}", rewrite.id, reason.text);
                        refusals.extend(refusal.0.into_iter().map(reason));
                        pending.refuse(target);
                        continue;
                    }
                }
            };
            let mut texts: Vec<(_, Arc<str>)> = Vec::new();
            for (edited, list) in &edit.edits {
                let before: Option<Arc<str>> = host.file(edited).map(|file| file.text(host.db()));
                let after = before.and_then(|before| apply_to_text(edited, &before, list).ok());
                let after = after.ok_or_else(|| vec!["the edits of the steps don't fit together".to_owned()])?;
                texts.push((edited.clone(), after.into()));
            }
            let moved = |range: TextRange| edit.edits.get(path).map_or(range, |list| map_range(range, list));
            pending.rewritten(moved);
            left = left.into_iter().map(moved).collect();
            left.push(moved(target));
            for (path, text) in texts.into_iter().chain(edit.creates.clone()) {
                host.set_file(&path, text);
            }
            creates.extend(edit.creates);
            for assumed in &edit.assumptions {
                let is_known = |known: &Assumed| known.reason.text == assumed.reason.text;
                if !assumptions.iter().any(is_known) {
                    // Its place may be in a text that nobody has seen.
                    let without_place = |reason: &Reason| Reason {
                        place: None,
                        ..reason.clone()
                    };
                    assumptions.push(assumed.with(without_place));
                }
            }
        }
        if left.is_empty() {
            refusals.dedup();
            if refusals.is_empty() {
                refusals.push(format!("{}: there is no launch to rewrite", rewrite.id));
            }
            return Err(refusals);
        }
        targets = left;
    }
    Ok(SourceEdit {
        edits: edit_between(db, &host),
        // A later step may have added to what an earlier one has created.
        creates: (creates.into_keys())
            .filter_map(|path| host.file(&path).map(|file| (path.clone(), file.text(host.db()))))
            .collect(),
        assumptions,
    })
}

#[cfg(test)]
mod tests {
    use gridfuse_codeactions::handlers::REWRITES;

    use super::unknown;

    #[test]
    fn who_names_a_family_is_told_what_is_in_it() {
        let told = |id: &str| unknown(id, REWRITES.iter());
        let aggregate = told("aggregate");
        for id in ["`aggregate-grid`", "`aggregate-block`", " or `"] {
            assert!(aggregate.contains(id), "{aggregate}");
        }
        assert!(
            !aggregate.contains("promote") && !aggregate.contains("there are"),
            "{aggregate}"
        );
        assert_eq!(
            told("agregate").replace("agregate", "aggregate"),
            told("aggregate"),
            "{}",
            told("agregate")
        );
        assert!(told("retune").contains("`retune-grid`, "), "{}", told("retune"));
        assert!(
            told("flatten").ends_with("did you mean `flatten-recursion`?"),
            "{}",
            told("flatten")
        );
        assert!(told("pormote").ends_with("did you mean `promote`?"));
        assert!(told("a").contains("there are: optimize, "), "{}", told("a"));
    }
}
