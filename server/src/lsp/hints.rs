//! Inlay hints: how uniform the arguments and the config of a launch are.

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::Operand;
use gridfuse_analysis::facts::uniformity::{Level, uniformity};
use gridfuse_analysis::hir::body;
use gridfuse_analysis::hir::items::items;
use tower_lsp_server::ls_types::{
    InlayHint, InlayHintLabel, InlayHintParams, InlayHintTooltip, MarkupContent, MarkupKind, Position,
};

use super::convert::path_of;
use super::hover::operand::{self, Role};
use super::state::Snapshot;
use crate::collected::collectors;
use crate::hints::Hints;
use crate::launches::{LaunchSite, overlap, overlapping, place_in};

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
        for (role, operand) in operand::of(&site) {
            let wanted = match role {
                Role::Argument => shown.arguments,
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

/// The hints of launches that a rewrite has collected.
fn of_collected(snapshot: &Snapshot, file: SourceFile, range: TextRange, shown: Hints) -> Vec<InlayHint> {
    let db = &snapshot.db;
    let mut hints = Vec::new();
    for function in &items(db, file).functions {
        for launch in collectors(db, *function)
            .iter()
            .flat_map(|collector| &collector.launches)
        {
            if !overlap(place_in(db, *function, launch.span).range, range) {
                continue;
            }
            let (config, arguments) = (
                shown.config.then_some(&launch.config),
                shown.arguments.then_some(&launch.arguments),
            );
            let levels = uniformity(db, *function);
            let config = config
                .into_iter()
                .flatten()
                .zip([Role::Grid, Role::Block, Role::Shared]);
            let arguments = arguments
                .into_iter()
                .flatten()
                .map(|argument| (argument, Role::Argument));
            for (expr, role) in config.chain(arguments) {
                let level = levels.exprs.get(expr).map_or(Level::Varying, |found| found.level);
                let place = place_in(db, *function, body(db, *function).expr(*expr).span);
                if let Some(label) = label(&role, level).filter(|_| overlap(place.range, range)) {
                    hints.push(plain(snapshot.range(place).end, label));
                }
            }
        }
    }
    hints
}

/// What is shown after a value; nothing after a constant, as that is mostly a literal: one sees it.
fn label(role: &Role, level: Level) -> Option<String> {
    let uniform = match level {
        Level::Constant => return None,
        Level::Grid => "grid-uniform",
        Level::Block => "block-uniform",
        Level::Warp => "warp-uniform",
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

fn plain(position: Position, label: String) -> InlayHint {
    InlayHint {
        position,
        label: InlayHintLabel::String(label),
        kind: None,
        text_edits: None,
        tooltip: None,
        padding_left: Some(true),
        padding_right: Some(false),
        data: None,
    }
}

fn hint(snapshot: &Snapshot, site: &LaunchSite<'_>, role: &Role, operand: &Operand) -> Option<InlayHint> {
    let label = label(role, operand.uniformity.level)?;
    let position = snapshot.range(site.at(&snapshot.db, operand.span)).end;
    Some(InlayHint {
        tooltip: Some(InlayHintTooltip::MarkupContent(MarkupContent {
            kind: MarkupKind::Markdown,
            value: operand::markdown(snapshot, site, role, operand),
        })),
        ..plain(position, label)
    })
}
