//! Words that no text spells whole: macros paste them together with `##`, or they go on behind the end of a line (`re\`, `c`).

use std::collections::BTreeSet;

use crate::base::db::{Db, SourceFile};
use crate::base::preprocess::expand::Expander;
use crate::base::preprocess::token::{TokenKind, lex};
use crate::base::preprocess::{MacroState, Preprocessed, file_directives, preprocessed};
use crate::base::scan::word_across_lines;
use crate::base::span::{Span, TextRange};
use crate::base::words::words;
use crate::hir::items::FunctionItem;
use crate::hir::macros::{function_macros, macro_at, one_use, state_at};

/// A word that is made, and where: the use of the macro, or the text from the word's begin to its end.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct MadeWord {
    pub word: String,
    /// Relative to the text that it is made in.
    pub span: Span,
}

/// The words that are made in a function, relative to it.
#[salsa::tracked]
pub fn made_in<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<MadeWord> {
    let text = function.text(db);
    let mut found = continued_words(&text);
    if !macros_paste(db, function.file(db)) {
        return found;
    }
    let body = function.body_span(db);
    // In front of the body: default arguments, a trailing return type, initialisers of members.
    let head = Span::new(0, body.start);
    if may_paste(head.text(&text), preprocessed(db, function.file(db))) {
        let find = |name: &str, at: usize| macro_at(db, function, at as u32, name);
        pasted(&text, head, &find, &mut found);
    }
    let macros = function_macros(db, function);
    if macros.states.values().flatten().any(|(_, state)| pastes(state)) {
        let find = |name: &str, at: usize| state_at(macros, name, at as u32);
        pasted(&text, body, &find, &mut found);
    }
    found
}

/// The words that are made in a stretch of a file between its functions, relative to the file.
pub(crate) fn made_between(db: &dyn Db, file: SourceFile, text: &str, gap: TextRange) -> Vec<MadeWord> {
    let mut found: Vec<MadeWord> = continued_words(gap.text(text));
    for made in &mut found {
        let place = made.span.shift(gap.start);
        made.span = Span::new(place.start, place.end);
    }
    let known = preprocessed(db, file);
    if macros_paste(db, file) && may_paste(gap.text(text), known) {
        let directives = file_directives(db, file);
        let find = |name: &str, at: usize| {
            let states = known.states.get(name)?;
            let index = directives.partition_point(|directive| directive.start < at);
            let before = states.partition_point(|(from, _)| *from as usize <= index);
            states.get(before.checked_sub(1)?).map(|(_, state)| state)
        };
        pasted(text, Span::new(gap.start, gap.end), &find, &mut found);
    }
    found
}

/// Whether one of a file's macros pastes.
#[salsa::tracked(returns(copy))]
fn macros_paste(db: &dyn Db, file: SourceFile) -> bool {
    preprocessed(db, file)
        .states
        .values()
        .flatten()
        .any(|(_, state)| pastes(state))
}

/// Whether a text uses a macro that pastes, also by way of others.
fn may_paste(text: &str, known: &Preprocessed) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut pending: Vec<&str> = words(text).collect();
    while let Some(name) = pending.pop() {
        let Some((name, states)) = known.states.get_key_value(name) else {
            continue;
        };
        if !seen.insert(name) {
            continue;
        }
        for (_, state) in states {
            if pastes(state) {
                return true;
            }
            if let MacroState::Defined(item) = state {
                pending.extend(words(&item.body));
            }
        }
    }
    false
}

/// Whether a macro's text puts tokens together.
fn pastes(state: &MacroState) -> bool {
    matches!(state, MacroState::Defined(item) if item.body.contains("##") || item.body.contains("%:%:"))
}

/// The words that come out of macros in a range of a text and that aren't written there. Any macro may paste, by what it is given.
fn pasted<'m>(
    text: &str,
    range: Span,
    state_at: &dyn Fn(&str, usize) -> Option<&'m MacroState>,
    found: &mut Vec<MadeWord>,
) {
    let (inner, start) = (range.text(text), range.start as usize);
    let lexemes = lex(inner, true);
    let mut at = 0;
    while let Some(lexeme) = lexemes.get(at) {
        let offset = start + lexeme.start;
        let find = |name: &str| match state_at(name, offset) {
            Some(MacroState::Defined(item)) => Some(item),
            _ => None,
        };
        let word = inner.get(lexeme.start..lexeme.end).unwrap_or("");
        let next = (lexeme.kind == TokenKind::Word && find(word).is_some())
            .then(|| one_use(&Expander::new(&find), &find, inner, &lexemes, at))
            .flatten()
            .flatten();
        let Some((tokens, next)) = next else {
            at += 1;
            continue;
        };
        let end = lexemes.get(next - 1).map_or(lexeme.end, |last| last.end);
        let written: BTreeSet<&str> = words(inner.get(lexeme.start..end).unwrap_or("")).collect();
        let made = tokens.into_iter().filter(|token| token.kind == TokenKind::Word);
        let mut made: Vec<String> = made.map(|token| token.text).collect();
        made.sort_unstable();
        made.dedup();
        made.retain(|word| !written.contains(word.as_str()));
        let span = Span::new(offset as u32, (start + end) as u32);
        found.extend(made.into_iter().map(|word| MadeWord { word, span }));
        at = next;
    }
}

/// The words of a text that go on behind the end of a line.
fn continued_words(text: &str) -> Vec<MadeWord> {
    let mut found: Vec<MadeWord> = Vec::new();
    for splice in memchr::memchr_iter(b'\\', text.as_bytes()) {
        let is_part = |c: &u8| *c == b'_' || c.is_ascii_alphanumeric();
        let before = text.as_bytes().get(..splice).unwrap_or_default();
        let begin = splice - before.iter().rev().take_while(|byte| is_part(byte)).count();
        let (word, end) = word_across_lines(text, begin);
        // The rest of a word that goes on twice is no word of its own.
        let rest = found.last().is_some_and(|made| begin < made.span.end as usize);
        if begin < splice && end > splice && !rest && word.starts_with(|c: char| !c.is_ascii_digit()) {
            let span = Span::new(begin as u32, end as u32);
            found.push(MadeWord { word, span });
        }
    }
    found
}
