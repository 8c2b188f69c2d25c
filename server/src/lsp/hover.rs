//! Hover on a launch and on a kernel's name.

use std::path::Path;

use gridfuse_analysis::db::SourceFile;
use gridfuse_analysis::items::FunctionItem;
use gridfuse_analysis::launch::Child;
use gridfuse_analysis::resolve::{Meaning, meaning};
use gridfuse_analysis::span::{FileRange, TextRange};
use tower_lsp_server::ls_types::{Hover, HoverContents, HoverParams, MarkupContent, MarkupKind};

use super::convert::path_of;
use super::state::Snapshot;
use crate::describe::{Describe, launchers, recursion};
use crate::launches::{Site, by_function, function_at, of_kernel, overlapping, place_in};
use crate::schema::{Launch, Note, Operand, Place};

/// At most this many launches of a kernel are listed.
const MAX_LISTED: usize = 20;

/// What to show at a position.
pub fn hover(snapshot: &Snapshot, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let file = snapshot.file(&path_of(&at.text_document.uri))?;
    let offset = snapshot.offset(file, at.position);
    let (text, place) = content(snapshot, file, offset)?;
    Some(Hover {
        contents: HoverContents::Markup(MarkupContent {
            kind: MarkupKind::Markdown,
            value: text,
        }),
        range: Some(snapshot.range(place)),
    })
}

fn content(snapshot: &Snapshot, file: SourceFile, offset: u32) -> Option<(String, FileRange)> {
    let db = &snapshot.db;
    let uri = |path: &Path| {
        let uri = snapshot.uri(path);
        uri.map_or_else(|| path.display().to_string(), |uri| uri.as_str().to_string())
    };
    let describe = Describe { db, path: &uri };
    let here = overlapping(db, file, TextRange::empty(offset));
    // The innermost: a launch may stand in an argument of something bigger.
    let site = here
        .iter()
        .filter(|site| site.device_side())
        .min_by_key(|site| site.place.range.end - site.place.range.start);
    if let Some(site) = site {
        return Some((launch(&describe.launch(site)), site.place));
    }
    let (kernel, place) = kernel_at(snapshot, file, offset, here.first())?;
    Some((kernel_text(&describe, kernel), place))
}

/// The kernel whose name stands at `offset`: in its definition or declaration, in a launch by host code, or elsewhere.
fn kernel_at<'db>(
    snapshot: &'db Snapshot,
    file: SourceFile,
    offset: u32,
    host_launch: Option<&Site<'db>>,
) -> Option<(FunctionItem<'db>, FileRange)> {
    let db = &snapshot.db;
    if let Some(site) = host_launch
        && let Child::Kernel(kernel) = &site.facts.child
    {
        return Some((*kernel, site.place));
    }
    if let Some(function) = function_at(db, file, offset)
        && function.signature(db).kernel
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
    let mut kernels = functions
        .into_iter()
        .filter(|f| f.signature(db).kernel && f.has_body(db));
    let kernel = kernels.next()?;
    kernels.next().is_none().then_some((kernel, FileRange { file, range }))
}

/// The identifier around `offset`.
fn word(text: &str, offset: u32) -> Option<TextRange> {
    let part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let (before, after) = text.split_at_checked(offset as usize)?;
    let start = offset - before.chars().rev().take_while(part).count() as u32;
    let end = offset + after.chars().take_while(part).count() as u32;
    (start < end).then_some(TextRange::new(start, end))
}

/// Code in a table's cell.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let short: String = if text.chars().count() > 60 {
        text.chars().take(59).chain(['…']).collect()
    } else {
        text.to_string()
    };
    format!("`{}`", short.replace('`', "'").replace('|', "\\|"))
}

/// Words in a table's cell.
fn words(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn link(place: &Place, home: &str) -> String {
    let line = place.start.line;
    let name = place.path.rsplit('/').next().unwrap_or_default();
    let shown = if place.path == home {
        format!("line {line}")
    } else {
        format!("{name}:{line}")
    };
    if place.path.contains("://") {
        format!("[{shown}]({}#L{line})", place.path)
    } else {
        shown
    }
}

fn note(note: &Note, home: &str) -> String {
    match &note.place {
        Some(place) => format!("{} ({})", words(&note.text), link(place, home)),
        None => words(&note.text),
    }
}

fn row(what: &str, operand: &Operand, home: &str) -> String {
    let mut why: Vec<String> = operand.uniformity.why.iter().map(|cause| note(cause, home)).collect();
    why.extend(
        operand
            .uniformity
            .assumes
            .iter()
            .map(|cause| format!("assumes {}", note(cause, home))),
    );
    if operand.changes_in_loop {
        why.push("changes in the loop".to_string());
    }
    format!(
        "| {what} | {} | {} | {} |\n",
        code(&operand.text),
        operand.uniformity.level,
        why.join("; ")
    )
}

/// A launch in Markdown.
fn launch(launch: &Launch) -> String {
    let home = launch.place.path.as_str();
    let name = launch.child.name.as_deref().unwrap_or("(computed)");
    let mut out = format!("**launch of `{name}`**");
    match (launch.child.status, launch.child.definitions.first()) {
        ("known", Some(child)) => out.push_str(&format!(" ({})", link(&child.place, home))),
        ("ambiguous", _) => out.push_str(" (several definitions fit)"),
        _ => out.push_str(" (no definition found)"),
    }
    out.push_str(&format!(
        " by {} of `{}`\n\n",
        launchers(launch.launchers),
        launch.parent.name
    ));
    let mut facts = Vec::new();
    if let Some(first) = launch.loops.first() {
        facts.push(format!("in a loop ({})", link(first, home)));
    }
    let cause = launch
        .divergence
        .why
        .as_ref()
        .map(|cause| format!(": {}", note(cause, home)));
    facts.push(format!(
        "reached {}{}",
        launch.divergence.level,
        cause.unwrap_or_default()
    ));
    if launch.recursive {
        facts.push(format!("recursive, {}", recursion(&launch.count)));
    }
    facts.push(match launch.stream {
        "null" => "NULL stream".to_string(),
        other => format!("stream: {other}"),
    });
    if let Some(threads) = &launch.threads {
        facts.push(format!("child threads: {}", code(&threads.text)));
    }
    out.push_str(&facts.join(" · "));
    out.push_str(&format!(
        "\n\nlaunches: {} per thread, {} per block, {} per grid · threads per child grid: {}",
        code(&launch.count.per_thread),
        code(&launch.count.per_block),
        code(&launch.count.per_grid),
        code(&launch.count.child_threads)
    ));
    out.push_str("\n\n| | value | uniformity | why |\n|---|---|---|---|\n");
    out.push_str(&row("*grid*", &launch.grid.operand, home));
    out.push_str(&row("*block*", &launch.block.operand, home));
    if let Some(shared) = &launch.shared {
        out.push_str(&row("*shared memory*", shared, home));
    }
    for (index, arg) in launch.args.iter().enumerate() {
        let name = arg
            .parameter
            .clone()
            .map_or_else(|| format!("{}", index + 1), |name| code(&name));
        out.push_str(&row(&name, arg, home));
    }
    if !launch.rewrites.is_empty() {
        out.push_str("\n| rewrite | verdict | |\n|---|---|---|\n");
        for rewrite in &launch.rewrites {
            let reasons: Vec<String> = rewrite.reasons.iter().map(|reason| note(reason, home)).collect();
            let verdict = rewrite.verdict;
            out.push_str(&format!("| {} | {verdict} | {} |\n", rewrite.title, reasons.join("; ")));
        }
    }
    out
}

/// A kernel's launches, in and out, in Markdown.
fn kernel_text(describe: &Describe<'_>, kernel: FunctionItem<'_>) -> String {
    let db = describe.db;
    let own = describe.function(kernel);
    let home = own.place.path.as_str();
    let mut out = format!("**kernel `{}`**", own.name);
    let list = |out: &mut String, title: &str, sites: &[Site<'_>], outgoing: bool| {
        if sites.is_empty() {
            return;
        }
        out.truncate(out.trim_end().len());
        out.push_str(&format!("\n\n{title}:\n"));
        for site in sites.iter().take(MAX_LISTED) {
            let place = describe.place(site.place);
            let other = if outgoing {
                site.facts
                    .kernel_name
                    .clone()
                    .unwrap_or_else(|| "(computed)".to_string())
            } else {
                site.id.function.name(db).to_string()
            };
            let by = launchers(site.facts.launchers);
            out.push_str(&format!("- `{other}`, {}, by {by}\n", link(&place, home)));
        }
        if sites.len() > MAX_LISTED {
            out.push_str(&format!("- and {} more\n", sites.len() - MAX_LISTED));
        }
    };
    let outgoing = by_function(db, kernel);
    let incoming = of_kernel(db, kernel);
    list(&mut out, "Launches", &outgoing, true);
    list(&mut out, "Launched from", &incoming, false);
    if outgoing.is_empty() && incoming.is_empty() {
        out.push_str("\n\nNo launch of it, and none by it, is known.");
    }
    out
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

    #[test]
    fn cells_keep_the_table_whole() {
        assert_eq!(code("a || b"), "`a \\|\\| b`");
        assert_eq!(words("a | b\nc"), "a \\| b c");
        assert_eq!(code(&"x".repeat(70)).chars().count(), 62);
    }
}
