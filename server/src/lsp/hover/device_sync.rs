//! A wait for child grids in device code: what it is, and whether it can be replaced.

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::hir::{ExprKind, body};
use gridfuse_codeactions::api::assumption::reasons;
use gridfuse_codeactions::api::refusal::Reason;
use gridfuse_codeactions::api::rewrite::Options;
use gridfuse_codeactions::handlers::place_rewrite;

use super::super::markdown::{describe, note, words};
use super::super::state::Snapshot;
use super::word;
use crate::launches::{function_at, place_in};

/// The calls that wait.
const WAITS: [&str; 2] = ["cudaDeviceSynchronize", "cudaThreadSynchronize"];

/// The rewrite that replaces them.
const REPLACE: &str = "replace-device-sync";

/// The text about the wait whose name stands at `offset`; `None`: there is none, or it is the host's.
pub fn at(snapshot: &Snapshot, file: SourceFile, offset: u32) -> Option<(String, FileRange)> {
    let db = &snapshot.db;
    let text = file.text(db);
    let named = word(&text, offset)?;
    let name = WAITS.into_iter().find(|wait| *wait == named.text(&text))?;
    let function = function_at(db, file, offset)?;
    let signature = function.signature(db);
    if !(signature.kernel || signature.device) || signature.host {
        return None;
    }
    let body = body(db, function);
    let mut calls = body.exprs.iter().filter(|expr| match &expr.kind {
        ExprKind::Call { name: Some(called), .. } => called.trim_start_matches("::") == name,
        _ => false,
    });
    let place = calls.find_map(|call| {
        let place = place_in(db, function, call.span);
        place.range.touches(offset).then_some(place)
    })?;
    let mut out = format!(
        "**`{name}()` in device code** waits until the grids that the block has launched are complete\n\nCUDA 12 took it out of device \
         code: for sm_90 it doesn't compile, for older GPUs only in a legacy mode.\n\n"
    );
    let rewrite = place_rewrite(REPLACE)?;
    let title = match snapshot.pages.rewrite(rewrite.id) {
        Some(page) => format!("[{}]({page})", rewrite.title),
        None => rewrite.title.to_string(),
    };
    let notes = |reasons: &[Reason]| {
        describe(snapshot, |describe| {
            let home = describe.place(place).path;
            let all = reasons.iter().map(|reason| note(&describe.reason(reason), &home));
            all.collect::<Vec<_>>().join("; ")
        })
    };
    match rewrite.apply(db, place, &Options::default()) {
        Ok(edit) => {
            out.push_str(&format!(
                "**{title}** fits here: {}.\n",
                match edit.edits.values().flatten().any(|edit| edit.insert.contains("cudaStreamTailLaunch")) {
                    true =>
                        "what follows becomes a kernel of its own, launched into `cudaStreamTailLaunch`; it starts when all children are \
                         complete",
                    false => "nothing that follows needs the wait, so it goes away",
                }
            ));
            if !edit.assumptions.is_empty() {
                out.push_str(&format!(
                    "\nTakes for granted: {}.\n",
                    notes(&reasons(&edit.assumptions))
                ));
            }
        }
        Err(refused) => {
            let reasons = notes(&refused.0);
            out.push_str(&format!(
                "**{title}** doesn't fit here: {reasons}.\n\nBy hand: {}.\n",
                words("put what has to run after all children into a kernel, and launch it into cudaStreamTailLaunch")
            ));
        }
    }
    Some((out, place))
}
