//! Inlay hints: how uniform the arguments and the config of a launch are.

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::Operand;
use gridfuse_analysis::facts::uniformity::Level;
use tower_lsp_server::ls_types::{InlayHint, InlayHintLabel, InlayHintParams, InlayHintTooltip};

use super::convert::path_of;
use super::hover::for_client;
use super::hover::operand::{self, Owner, Role};
use super::state::Snapshot;
use crate::collected;
use crate::hints::Hints;
use crate::launches::{overlap, overlapping};

/// The hints in a range of a document.
pub fn inlay_hints(snapshot: &Snapshot, params: &InlayHintParams) -> Vec<InlayHint> {
    let path = path_of(&params.text_document.uri);
    let shown = snapshot.hints(&path);
    if !shown.arguments && !shown.config {
        return Vec::new();
    }
    let Some(file) = snapshot.file(&path) else {
        return Vec::new();
    };
    let range = snapshot.text_range(file, params.range);
    let mut hints = of_collected(snapshot, file, range, shown);
    for site in overlapping(&snapshot.db, file, range) {
        if !site.device_side() {
            continue;
        }
        let owner = Owner::of(&site);
        for (role, operand) in operand::of(&site) {
            let place = site.at(&snapshot.db, operand.span);
            if wanted(shown, &role) && overlap(place.range, range) {
                hints.extend(hint(snapshot, &owner, &role, operand));
            }
        }
    }
    hints
}

fn wanted(shown: Hints, role: &Role) -> bool {
    match role {
        Role::Argument => shown.arguments,
        _ => shown.config,
    }
}

/// The hints of launches that a rewrite has collected.
fn of_collected(snapshot: &Snapshot, file: SourceFile, range: TextRange, shown: Hints) -> Vec<InlayHint> {
    let db = &snapshot.db;
    let mut hints = Vec::new();
    for found in collected::overlapping(db, file, range) {
        let owner = Owner::of_collected(db, found.function, &found.collector, &found.call);
        for (role, operand) in operand::of_collected(db, found.function, &found.collector, &found.call) {
            if wanted(shown, &role) && overlap(owner.at(db, operand.span).range, range) {
                hints.extend(hint(snapshot, &owner, &role, &operand));
            }
        }
    }
    hints
}

/// What is shown after a value; nothing after a constant, as that is mostly a literal: one sees it.
fn label(role: &Role, level: Level) -> Option<String> {
    let uniform = match level {
        Level::Constant => return None,
        Level::Grid => "uniform",
        Level::Block => "uniform per block",
        Level::Warp => "uniform per warp",
        Level::Varying => "varies",
    };
    Some(match role {
        Role::Grid => format!("grid: {uniform}"),
        Role::Block => format!("block: {uniform}"),
        Role::Shared => format!("shared memory: {uniform}"),
        Role::Stream => format!("stream: {uniform}"),
        Role::Argument => uniform.to_owned(),
    })
}

fn hint(snapshot: &Snapshot, owner: &Owner<'_, '_>, role: &Role, operand: &Operand) -> Option<InlayHint> {
    Some(InlayHint {
        position: snapshot.range(owner.at(&snapshot.db, operand.span)).end,
        label: InlayHintLabel::String(label(role, operand.uniformity.level)?),
        kind: None,
        text_edits: None,
        tooltip: Some(InlayHintTooltip::MarkupContent(for_client(
            snapshot,
            operand::markdown(snapshot, owner, role, operand),
        ))),
        padding_left: Some(true),
        padding_right: Some(false),
        data: None,
    })
}
