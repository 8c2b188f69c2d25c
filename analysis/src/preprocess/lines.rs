//! What the directives of a file say.

use std::sync::Arc;

use super::MacroState;
use super::token::{TokenKind, lex, spelled, token, tokens};
use crate::db::{Db, SourceFile};
use crate::items::{IncludeItem, MacroItem};
use crate::mask::{file_directives, word_at};

/// One directive.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum Line {
    /// `#if`, `#ifdef X` as `defined X`, `#ifndef X` as `!defined X`.
    If(String),
    /// `#elif`, `#elifdef`, `#elifndef`
    Elif(String),
    Else,
    Endif,
    /// [`MacroState::Defined`], which is shared by all who read the file.
    Define(Arc<MacroState>),
    Undef(String),
    /// `None`: what is included isn't a plain name.
    Include(Option<IncludeItem>),
    PragmaOnce,
    /// `#error`: what is compiled doesn't reach it.
    Error,
    /// A pragma, a `#line`, or something that isn't understood.
    Other,
}

/// The directives of a file, each as it is written, wherever it stands.
pub(super) fn lines(db: &dyn Db, file: SourceFile) -> &[Line] {
    match file.settled_lines(db) {
        Some(lines) => lines,
        None => lines_in_text(db, file),
    }
}

/// The same as the text says now.
#[salsa::tracked]
pub(crate) fn lines_in_text(db: &dyn Db, file: SourceFile) -> Arc<Vec<Line>> {
    if let Some(patched) = file.patched(db) {
        return patched.lines.clone();
    }
    let text = file.text(db);
    let directives = file_directives(db, file);
    let lines = directives.iter().map(|d| line(&d.name, d.rest(&text)));
    Arc::new(lines.collect())
}

fn line(name: &str, rest: &str) -> Line {
    let first = || {
        let words = tokens(rest);
        words
            .first()
            .filter(|t| t.kind == TokenKind::Word)
            .map(|t| t.text.clone())
    };
    let plain = || spelled(&tokens(rest));
    match name {
        "if" => Line::If(plain()),
        "ifdef" => Line::If(format!("defined({})", first().unwrap_or_default())),
        "ifndef" => Line::If(format!("!defined({})", first().unwrap_or_default())),
        "elif" => Line::Elif(plain()),
        "elifdef" => Line::Elif(format!("defined({})", first().unwrap_or_default())),
        "elifndef" => Line::Elif(format!("!defined({})", first().unwrap_or_default())),
        "else" => Line::Else,
        "endif" => Line::Endif,
        "define" => macro_item(rest).map_or(Line::Other, |item| Line::Define(Arc::new(MacroState::Defined(item)))),
        "undef" => first().map_or(Line::Other, Line::Undef),
        "include" | "include_next" | "import" => Line::Include(IncludeItem::parse(rest)),
        "pragma" if first().as_deref() == Some("once") => Line::PragmaOnce,
        "error" => Line::Error,
        _ => Line::Other,
    }
}

/// Understands what stands behind `#define`.
pub(super) fn macro_item(rest: &str) -> Option<MacroItem> {
    let rest = rest.trim_start_matches([' ', '\t']);
    let name = word_at(rest, 0)?;
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let behind = rest.get(name.len()..)?;
    let (params, body) = if behind.starts_with('(') {
        let (list, body) = behind.get(1..)?.split_once(')')?;
        let list = spelled(&tokens(list));
        let params = list.split(',').map(|p| p.trim().to_owned());
        (Some(params.filter(|p| !p.is_empty()).collect()), body)
    } else {
        (None, behind)
    };
    Some(MacroItem {
        name: name.to_owned(),
        params,
        body: normalized_body(body),
    })
}

/// A macro's replacement on one line, without comments.
fn normalized_body(body: &str) -> String {
    let found: Vec<_> = lex(body, false).into_iter().map(|l| token(body, l)).collect();
    spelled(&found)
}
