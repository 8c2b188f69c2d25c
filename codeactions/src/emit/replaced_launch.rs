//! A launch expression becomes a call: of an aggregator, or of a function that does the same.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::{ExprKind, Literal};

use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::style;
use crate::emit::split::Split;
use crate::facts::site::Site;

/// Replaces the launch expression by a call of the aggregator. `block`: the block size, where it is written otherwise than there;
/// `otherwise`: what is done with a launch that finds no room.
pub fn replace_launch(
    site: &Site<'_>,
    split: &Split<'_>,
    block: Option<String>,
    aggregator: &str,
    otherwise: Option<String>,
    edit: &mut EditBuilder<'_>,
) {
    let fields: Vec<String> = split.varying().map(|p| p.initialiser.clone()).collect();
    replace_launch_by(site, split, &fields, block, aggregator, otherwise, edit);
}

/// The same with these initialisers of the arguments that differ.
pub fn replace_launch_by(
    site: &Site<'_>,
    split: &Split<'_>,
    fields: &[String],
    block: Option<String>,
    aggregator: &str,
    otherwise: Option<String>,
    edit: &mut EditBuilder<'_>,
) {
    let mut kept = vec![site.facts.grid.operand.span, site.facts.block.operand.span];
    let mut items: Vec<String> = kept
        .iter()
        .map(|s| crate::edit::one_line::flat(site.source(*s)))
        .collect();
    if let (Some(block), Some(item)) = (block, items.get_mut(1)) {
        *item = block;
    }
    if let Some(shared) = &site.facts.shared {
        let zero = matches!(
            site.body.expr(site.body.strip_parens(shared.expr)).kind,
            ExprKind::Literal(Literal::Int(0))
        );
        if !zero {
            kept.push(shared.span);
            items.push(crate::edit::one_line::flat(site.source(shared.span)));
        }
    }
    kept.extend(split.varying().filter_map(|p| Some(site.body.expr(p.arg?).span)));
    items.push(format!("{{{}}}", fields.join(", ")));
    replace_by_call_and(
        site,
        &format!("{aggregator}.launch("),
        &items,
        otherwise.as_deref(),
        &kept,
        edit,
    );
}

/// Replaces a launch expression by a call. Comments between operands that aren't `kept` stay behind the statement.
pub fn replace_by_call(site: &Site<'_>, prefix: &str, items: &[String], kept: &[Span], edit: &mut EditBuilder<'_>) {
    replace_by_call_and(site, prefix, items, None, kept, edit);
}

/// The same with a last argument that takes lines of its own; tabs stand for the indentation that it has beyond the statement's.
fn replace_by_call_and(
    site: &Site<'_>,
    prefix: &str,
    items: &[String],
    last: Option<&str>,
    kept: &[Span],
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
    let code = style.list(column, prefix, items, if last.is_some() { "," } else { ")" });
    // Aligned below the first item, wherever the statement begins in its line.
    let align = " ".repeat(before.chars().count() - indent.chars().count());
    let mut code = code.replace('\n', &format!("{}{indent}{align}", style.newline));
    if let Some(last) = last {
        let lines = last
            .replace('\t', &style.unit)
            .replace('\n', &format!("{}{indent}", style.newline));
        code.push_str(&format!("{lines})"));
    }
    edit.replace(place, code);

    let source = site.source(span).to_owned();
    let lost: Vec<String> = lex::comments(&source)
        .iter()
        .filter(|c| {
            let at = span.start + c.start as u32;
            !kept.iter().any(|k| k.start <= at && at < k.end)
        })
        .map(|c| {
            c.text(&source)
                .trim_start_matches("//")
                .trim_start_matches("/*")
                .trim_end_matches("*/")
        })
        .map(crate::edit::one_line::one_line)
        .filter(|c| !c.is_empty())
        .collect();
    if let Some(statement) = site.facts.statement.filter(|_| !lost.is_empty()) {
        let end = site.body.stmt(statement).span.shift(site.start).end;
        let rest = site
            .text
            .get(end as usize..style::line_end(&site.text, end as usize))
            .unwrap_or("");
        let text = lost.join("; ");
        let comment = if rest.trim().is_empty() {
            format!("   // {text}")
        } else {
            format!(" /* {text} */")
        };
        edit.insert(site.file, end, comment);
    }
}
