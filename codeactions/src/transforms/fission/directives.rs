//! Directives of the preprocessor between a child's barriers: code is moved over them, and would mean something else there.

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::StmtId;

use super::structure::Item;
use crate::edit::lex;
use crate::facts::child::Child;

/// The first directive in a part of the child that changes what a macro stands for, or may: with its words.
pub fn changes_macros(child: &Child<'_>, part: Span) -> Option<(String, Span)> {
    let text = child.source(part);
    if !text.contains(['#', '_', '%', '?']) {
        return None;
    }
    let tokens = lex::code_tokens(text);
    let word = |at: usize| tokens.get(at).map_or("", |t| t.text(text));
    let begins_line = |at: usize| {
        let before = tokens.get(at).and_then(|t| text.get(..t.start)).unwrap_or("");
        let line = before.get(before.rfind('\n').map_or(0, |at| at + 1)..).unwrap_or("");
        lex::is_blank(line)
    };
    (0..tokens.len()).find_map(|at| {
        // `%:` is another way to write `#`.
        let first = match (word(at), word(at + 1)) {
            ("#", _) if begins_line(at) => at + 1,
            ("%", ":") if begins_line(at) => at + 2,
            ("_Pragma" | "__pragma", _) => at + 2,
            _ => return None,
        };
        let (name, second) = (word(first), word(first + 1));
        let changes = match name {
            "define" | "undef" | "include" | "include_next" | "import" => true,
            "pragma" => matches!(second, "push_macro" | "pop_macro"),
            other => other.contains("push_macro") || other.contains("pop_macro"),
        };
        let at = Span::new(
            part.start + tokens[at].start as u32,
            part.start + tokens.get(first).map_or(tokens[at].end, |t| t.end) as u32,
        );
        let words = match name {
            "pragma" => format!("#pragma {second}"),
            other if other.starts_with('"') => "_Pragma".to_owned(),
            other => format!("#{other}"),
        };
        changes.then_some((words, at))
    })
}

/// A part of the child goes on over a directive, which needs a line of its own.
pub fn divide(child: &Child<'_>, part: Span) -> bool {
    let text = child.source(part);
    text.contains('\n')
        && lex::code_tokens(text)
            .iter()
            .any(|t| matches!(t.text(text), "#" | "%" | "?"))
        && text
            .lines()
            .skip(1)
            .any(|line| line.trim_start().starts_with(['#', '%', '?']))
}

/// The parts of the child from an `#if` to its `#endif`, those within another one left out. Which of the branches is compiled is decided, or
/// they are statements of their own.
pub fn conditionals(child: &Child<'_>, part: Span) -> Vec<Span> {
    let text = child.source(part);
    let mut found = Vec::new();
    let mut open = Vec::new();
    for directive in lex::conditions(text) {
        let code = text.get(directive.clone()).unwrap_or("");
        let word = lex::code_words(code).into_iter().nth(1).unwrap_or_default();
        if word.starts_with("if") {
            open.push(directive.start);
        } else if word == "endif"
            && let Some(start) = open.pop()
            && open.is_empty()
        {
            let end = directive.start + code.trim_end().len();
            found.push(Span::new(part.start + start as u32, part.start + end as u32));
        }
    }
    found
}

/// An `#if` of which the branches are compiled in different sections, or around a statement of which only parts are: what is between it and
/// its `#endif` comes to stand apart.
pub fn torn(child: &Child<'_>, items: &[Item], part: Span) -> Option<Span> {
    let body = &child.body;
    let span = |stmt: &StmtId| body.stmt(*stmt).span;
    let spans = |item: &Item| -> Vec<Span> {
        match item {
            Item::Region(all) => all.iter().map(span).collect(),
            Item::Barrier(stmt) | Item::Shared(stmt) | Item::Once(stmt) | Item::Control { stmt, .. } => {
                vec![span(stmt)]
            }
        }
    };
    let here = conditionals(child, part).into_iter().find(|around| {
        let inside = |span: &Span| around.start < span.end && span.start < around.end;
        let within = |item: &&Item| spans(item).iter().any(|span| span.contains(*around));
        let touched = |item: &&Item| spans(item).iter().any(inside);
        let divided = items
            .iter()
            .filter(touched)
            .any(|item| matches!(item, Item::Control { .. }));
        !items.iter().any(|item| within(&item)) && (divided || items.iter().filter(touched).count() > 1)
    });
    here.or_else(|| {
        let branches = items.iter().filter_map(|item| match item {
            Item::Control { bodies, .. } => Some(bodies),
            _ => None,
        });
        let mut branches = branches.flatten();
        branches.find_map(|branch| torn(child, &branch.items, span(&branch.stmt)))
    })
}
