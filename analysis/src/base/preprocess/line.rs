//! What one directive says.

use std::sync::Arc;

use super::token::{TokenKind, lex, spelled, token, tokens};
use super::{MacroItem, MacroState};
use crate::base::scan::word_at;

/// An `#include`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct IncludeItem {
    /// The path as written.
    pub path: String,
    /// `<…>`
    pub system: bool,
}

impl IncludeItem {
    /// Reads what stands behind `#include`. `None`: a macro, or nothing.
    pub fn parse(rest: &str) -> Option<IncludeItem> {
        let rest = rest.trim_start();
        let (system, closer) = match rest.as_bytes().first()? {
            b'<' => (true, '>'),
            b'"' => (false, '"'),
            _ => return None,
        };
        let (path, _) = rest.get(1..)?.split_once(closer)?;
        let path = path.to_owned();
        (!path.contains('\n')).then_some(IncludeItem { path, system })
    }
}

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
    /// `#pragma pop_macro("X")`: it means what it meant earlier.
    PopMacro(String),
    /// `#error`: what is compiled doesn't reach it.
    Error,
    /// A pragma, a `#line`, or something that isn't understood.
    Other,
}

/// Reads what stands behind a directive's name.
pub(super) fn line(name: &str, rest: &str) -> Line {
    // Lines are put together before words are told apart.
    let rest = &rest.replace("\\\r\n", "").replace("\\\n", "");
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
        "pragma" if first().as_deref() == Some("pop_macro") => {
            let name = rest.split('"').nth(1);
            name.map_or(Line::Other, |name| Line::PopMacro(name.trim().to_owned()))
        }
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
