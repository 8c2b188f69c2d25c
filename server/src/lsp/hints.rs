//! Inlay hints: how uniform the arguments and the config of a launch are.

use gridfuse_analysis::facts::launch::Operand;
use gridfuse_analysis::facts::uniformity::Level;
use tower_lsp_server::ls_types::{
    InlayHint, InlayHintLabel, InlayHintParams, InlayHintTooltip, MarkupContent, MarkupKind,
};

use super::convert::path_of;
use super::hover::operand;
use super::state::Snapshot;
use crate::launches::{LaunchSite, overlap, overlapping};

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
    let mut hints = Vec::new();
    for site in overlapping(&snapshot.db, file, range) {
        if !site.device_side() {
            continue;
        }
        for (role, operand) in operand::of(&site) {
            let wanted = match role {
                operand::Role::Argument => shown.arguments,
                _ => shown.config,
            };
            let place = site.at(&snapshot.db, operand.span);
            if wanted && overlap(place.range, range) {
                hints.extend(hint(snapshot, &site, &role, operand));
            }
        }
    }
    hints
}

fn hint(snapshot: &Snapshot, site: &LaunchSite<'_>, role: &operand::Role, operand: &Operand) -> Option<InlayHint> {
    let label = match operand.uniformity.level {
        // Mostly a literal: one sees it.
        Level::Constant => return None,
        Level::Grid => "⟨grid⟩",
        Level::Block => "⟨block⟩",
        Level::Warp => "⟨warp⟩",
        Level::Varying => "⟨varies⟩",
    };
    Some(InlayHint {
        position: snapshot.range(site.at(&snapshot.db, operand.span)).end,
        label: InlayHintLabel::String(label.to_string()),
        kind: None,
        text_edits: None,
        tooltip: Some(InlayHintTooltip::MarkupContent(MarkupContent {
            kind: MarkupKind::Markdown,
            value: operand::markdown(snapshot, site, role, operand),
        })),
        padding_left: Some(false),
        padding_right: Some(false),
        data: None,
    })
}
