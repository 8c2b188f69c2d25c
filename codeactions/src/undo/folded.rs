//! Uses of macros that were written out so that their launches could be rewritten: the lines that a note tells come back where writing
//! them out makes just what stands there.

use std::path::Path;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::host::Host;

use crate::api::source_edit::apply_to_text;
use crate::edit::style;
use crate::emit::unfolded::{Form, notes, unfold};
use crate::emit::was::Note;
use crate::facts::site::function_around;

/// The text of a file with all uses of macros back in it that notes tell; `None` where none is. The host's file is as it was afterwards.
pub fn folded(host: &mut Host, path: &Path, text: &str) -> Option<String> {
    let mut now = text.to_owned();
    let mut from = now.len();
    while let Some(note) = last_note(host, path, from) {
        from = note.lines.start as usize;
        if let Some(folded) = fold(host, path, &now, &note) {
            now = folded;
        }
        host.set_file(path, now.clone());
    }
    host.set_file(path, text.to_owned());
    (now != text).then_some(now)
}

/// The last note in front of an offset.
fn last_note(host: &Host, path: &Path, before: usize) -> Option<Note> {
    let (db, file) = (host.db(), host.file(path)?);
    let functions = gridfuse_analysis::hir::items::items(db, file).functions.iter();
    let all = functions.filter(|f| f.has_body(db)).flat_map(|f| notes(db, *f));
    all.filter(|note| (note.lines.start as usize) < before)
        .max_by_key(|note| note.lines.start)
}

/// The text with the lines of a note in the place of what they stand for.
fn fold(host: &mut Host, path: &Path, text: &str, note: &Note) -> Option<String> {
    let (start, end) = (note.lines.start as usize, note.lines.end as usize);
    let (before, behind) = (text.get(..start)?, text.get(end..)?);
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let lines = format!("{}{}{newline}", style::indent_at(text, start), note.launch);
    // What was written out still stands behind the lines here.
    let used = format!("{before}{lines}{behind}");
    host.set_file(path, used.clone());
    let (db, file) = (host.db(), host.file(path)?);
    let range = TextRange::new(start as u32, (start + lines.len()) as u32);
    let only = FileRange { file, range };
    let function = function_around(db, only)?;
    [Form::Bare, Form::Block].into_iter().find_map(|form| {
        let edit = unfold(db, &[function], Some(only), Some(form))?;
        let edits = edit.edits.get(path).filter(|_| edit.edits.len() == 1)?;
        let made = apply_to_text(path, &used, edits).ok()?;
        let written = made.get(start..made.len().checked_sub(behind.len())?)?;
        let rest = text.get(start..)?.strip_prefix(written)?;
        Some(format!("{before}{lines}{rest}"))
    })
}
