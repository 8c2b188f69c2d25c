//! A launch expression becomes a call: of an aggregator, or of a function that does the same.

use gridfuse_analysis::hir::{ExprKind, Literal};

use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::style;
use crate::emit::split::Split;
use crate::emit::was;
use crate::facts::site::Site;

/// Replaces the launch expression by a call of the aggregator. `sizes`: grid and block size, where they are written otherwise than there;
/// `otherwise`: what is done with a launch that finds no room.
pub fn replace_launch(
    site: &Site<'_>,
    split: &Split<'_>,
    sizes: [Option<String>; 2],
    aggregator: &str,
    otherwise: Option<String>,
    edit: &mut EditBuilder<'_>,
) {
    let fields: Vec<String> = split.varying().map(|p| p.initialiser.clone()).collect();
    write(
        site,
        &fields,
        config(site),
        sizes,
        &format!("{aggregator}.launch"),
        otherwise,
        edit,
    );
}

/// A note that says what the launch was, unless the call of the aggregator does.
pub fn note_unless_plain(site: &Site<'_>, edit: &mut EditBuilder<'_>) {
    was::note_unless_plain(site, &config(site), edit);
}

/// The same by a call of this function, with these initialisers of the arguments that differ. A note says what the launch was.
pub fn replace_launch_by(
    site: &Site<'_>,
    fields: &[String],
    block: Option<String>,
    function: &str,
    edit: &mut EditBuilder<'_>,
) {
    was::note(site, edit);
    write(site, fields, config(site), [None, block], function, None, edit);
}

/// Grid, block, and shared memory where there is some.
fn config(site: &Site<'_>) -> Vec<String> {
    let mut kept = vec![site.facts.grid.operand.span, site.facts.block.operand.span];
    let shared = site.facts.shared.as_ref().filter(|shared| {
        let expr = site.body.expr(site.body.strip_parens(shared.expr));
        !matches!(expr.kind, ExprKind::Literal(Literal::Int(0)))
    });
    kept.extend(shared.map(|shared| shared.span));
    kept.into_iter()
        .map(|span| crate::edit::one_line::flat(site.source(span)))
        .collect()
}

fn write(
    site: &Site<'_>,
    fields: &[String],
    config: Vec<String>,
    sizes: [Option<String>; 2],
    function: &str,
    otherwise: Option<String>,
    edit: &mut EditBuilder<'_>,
) {
    let mut items = config;
    for (item, size) in items.iter_mut().zip(sizes) {
        if let Some(size) = size {
            *item = crate::edit::one_line::flat(&size);
        }
    }
    items.push(format!("{{{}}}", fields.join(", ")));
    let prefix = format!("{function}(");
    replace_by_call_and(site, &prefix, &items, otherwise.as_deref(), edit);
}

/// Replaces a launch expression by a call.
pub fn replace_by_call(site: &Site<'_>, prefix: &str, items: &[String], edit: &mut EditBuilder<'_>) {
    replace_by_call_and(site, prefix, items, None, edit);
}

/// The same with a last argument that takes lines of its own; tabs stand for the indentation that it has beyond the statement's.
fn replace_by_call_and(
    site: &Site<'_>,
    prefix: &str,
    items: &[String],
    last: Option<&str>,
    edit: &mut EditBuilder<'_>,
) {
    let style = edit.style(site.file);
    let span = site.facts.span;
    let place = site.place(span);
    let start = place.range.start as usize;
    let line = style::line_start(&site.text, start);
    let before = site.text.get(line..start).unwrap_or("");
    let indent = style::indent_at(&site.text, start);
    let column = style::columns(indent) + before.chars().count() - indent.chars().count();
    // What ends its statement on its line is as wide as it was, with a comment there.
    let end = place.range.end as usize;
    let rest = site.text.get(end..style::line_end(&site.text, end)).unwrap_or("");
    let closes = |word: &str| matches!(word, ";" | ")" | "}");
    let rest = match lex::code_words(rest).into_iter().all(closes) {
        true => rest.trim_end(),
        false => "",
    };
    let suffix = match last {
        Some(_) => ",".to_owned(),
        None => format!("){rest}"),
    };
    let mut code = style.list(column, prefix, items, &suffix);
    // Aligned below the first item, wherever the statement begins in its line; below the line's beginning where little is left of it.
    let mut align = " ".repeat(before.chars().count() - indent.chars().count());
    if code.contains('\n') && align.len() * 2 > style.width {
        align = style.unit.repeat(2);
        let column = style::columns(indent) + style::columns(&align);
        code = format!("{prefix}\n{}", style.list(column, "", items, &suffix));
    }
    if last.is_none() {
        code.truncate(code.len() - rest.len());
    }
    let mut code = code.replace('\n', &format!("{}{indent}{align}", style.newline));
    if let Some(last) = last {
        let lines = last
            .replace('\t', &style.unit)
            .replace('\n', &format!("{}{indent}", style.newline));
        code.push_str(&format!("{lines})"));
    }
    edit.replace(place, code);
}
