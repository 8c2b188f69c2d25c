//! Hover: a launch, its arguments and config, a kernel, and what rewrites have added.

mod collected;
mod device_sync;
mod generated;
pub mod kernel;
pub mod launch;
pub mod operand;

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::Child;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{Meaning, meaning};
use tower_lsp_server::ls_types::{Hover, HoverContents, HoverParams, MarkupContent, MarkupKind};

use super::convert::path_of;
use super::markdown::{aligned, describe, plain_text};
use super::measured;
use super::state::Snapshot;
use crate::launches::{LaunchSite, by_function, function_at, overlapping, place_in};
use crate::through_calls::through_calls;

/// What to show at a position.
pub fn hover(snapshot: &Snapshot, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let file = snapshot.file(&path_of(&at.text_document.uri))?;
    let offset = snapshot.offset(file, at.position);
    let (text, place) = content(snapshot, file, offset)?;
    Some(Hover {
        contents: HoverContents::Markup(for_client(snapshot, text)),
        range: Some(snapshot.range(place)),
    })
}

/// What can be shown of a launch before the verdicts of the rewrites are worked out.
pub fn known(snapshot: &Snapshot, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let file = snapshot.file(&path_of(&at.text_document.uri))?;
    let offset = snapshot.offset(file, at.position);
    let here = overlapping(&snapshot.db, file, TextRange::empty(offset));
    let Some(site) = here.iter().find(|site| site.device_side()) else {
        return Some(unknown());
    };
    let mut text = describe(snapshot, |describe| {
        launch::markdown(&describe.launch_without_rewrites(site), "", snapshot)
    });
    text.push_str("\nThe verdicts of the rewrites are still being worked out: point here again in a moment.\n");
    Some(Hover {
        contents: HoverContents::Markup(for_client(snapshot, text)),
        range: Some(snapshot.range(site.place)),
    })
}

/// What is shown while nothing is known yet.
pub fn unknown() -> Hover {
    Hover {
        contents: HoverContents::Markup(MarkupContent {
            kind: MarkupKind::Markdown,
            value: "gridfuse is still reading this code: point here again in a moment.".to_owned(),
        }),
        range: None,
    }
}

/// The text as the client can show it.
pub fn for_client(snapshot: &Snapshot, text: String) -> MarkupContent {
    let (kind, value) = match snapshot.session.plain_hovers {
        true => (MarkupKind::PlainText, plain_text(&text)),
        false => (MarkupKind::Markdown, page_for_client(snapshot, text)),
    };
    MarkupContent { kind, value }
}

/// The text as a document in Markdown.
pub fn page_for_client(snapshot: &Snapshot, text: String) -> String {
    if snapshot.session.aligned_tables {
        return aligned(&text);
    }
    text
}

/// The text about what stands at `offset`, and the place that it is about: the narrowest thing there.
pub fn content(snapshot: &Snapshot, file: SourceFile, offset: u32) -> Option<(String, FileRange)> {
    let db = &snapshot.db;
    if let Some(found) = generated::at(snapshot, file, offset).or_else(|| collected::hover(snapshot, file, offset)) {
        return Some(found);
    }
    let here = overlapping(db, file, TextRange::empty(offset));
    // The innermost: a launch may stand in an argument of something bigger.
    let site = here
        .iter()
        .filter(|site| site.device_side())
        .min_by_key(|site| site.place.range.end - site.place.range.start);
    if let Some(site) = site {
        return Some(operand::at(snapshot, site, offset).unwrap_or_else(|| {
            let best = measured::best(snapshot, site.id.function);
            let mut text = describe(snapshot, |describe| {
                launch::markdown(&describe.launch(site), &best, snapshot)
            });
            text.push_str(&measured::markdown(snapshot, site.id.function));
            (text, site.place)
        }));
    }
    if let Some(found) = device_sync::at(snapshot, file, offset) {
        return Some(found);
    }
    let (kernel, place) = kernel_at(snapshot, file, offset, here.first())?;
    Some((kernel::markdown(snapshot, kernel), place))
}

/// The kernel whose name stands at `offset`: in its definition or declaration, in a launch by host code, or elsewhere.
fn kernel_at<'db>(
    snapshot: &'db Snapshot,
    file: SourceFile,
    offset: u32,
    host_launch: Option<&LaunchSite<'db>>,
) -> Option<(FunctionItem<'db>, FileRange)> {
    let db = &snapshot.db;
    if let Some(site) = host_launch
        && let Child::Kernel(kernel) = &site.facts.child
    {
        return Some((*kernel, site.place));
    }
    // A device function that launches, or calls one that does, is part of its callers' launches.
    let launches = |function: FunctionItem<'db>| {
        function.signature(db).device
            && (!by_function(db, function).is_empty() || !through_calls(db, function).is_empty())
    };
    named_at(snapshot, file, offset).filter(|(function, _)| function.signature(db).kernel || launches(*function))
}

/// The function with a body whose name stands at `offset`: its own definition, else the only one that the name can mean.
pub fn named_at<'db>(snapshot: &'db Snapshot, file: SourceFile, offset: u32) -> Option<(FunctionItem<'db>, FileRange)> {
    let db = &snapshot.db;
    if let Some(function) = function_at(db, file, offset)
        && function.has_body(db)
    {
        let place = place_in(db, function, function.signature(db).name_span);
        if place.range.touches(offset) {
            return Some((function, place));
        }
    }
    let text = file.text(db);
    let range = word(&text, offset)?;
    let Meaning::Functions(functions) = meaning(db, file, range.text(&text)) else {
        return None;
    };
    let mut defined = functions.into_iter().filter(|f| f.has_body(db));
    let function = defined.next()?;
    defined
        .next()
        .is_none()
        .then_some((function, FileRange { file, range }))
}

/// The identifier around `offset`.
fn word(text: &str, offset: u32) -> Option<TextRange> {
    let part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let (before, after) = text.split_at_checked(offset as usize)?;
    let start = offset - before.chars().rev().take_while(part).count() as u32;
    let end = offset + after.chars().take_while(part).count() as u32;
    (start < end).then_some(TextRange::new(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_under_the_cursor() {
        let text = "a(b_1, ü)";
        assert_eq!(word(text, 3), Some(TextRange::new(2, 5)));
        assert_eq!(word(text, 5), Some(TextRange::new(2, 5)));
        assert_eq!(word(text, 6), None);
        assert_eq!(word(text, 8), None);
        assert_eq!(word(text, 99), None);
    }
}
