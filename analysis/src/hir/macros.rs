//! A function's text with its macros expanded, and where each part comes from.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::db::{Db, SourceFile};
use crate::base::mask::mask;
use crate::base::preprocess::MacroItem;
use crate::base::preprocess::expand::Expander;
use crate::base::preprocess::token::{Lexeme, Token, TokenKind, glues, lex, spelled, token};
use crate::base::preprocess::{Branch, MacroState, preprocessed};
use crate::base::span::Span;
use crate::base::words::words;
use crate::hir::items::{FunctionItem, items};

/// Bytes that expansions may add to a function.
const MAX_GROWTH: usize = 1 << 18;

/// What the macros mean that a function's body uses, and what becomes of the branches in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct FunctionMacros {
    /// By name, also those that the macros' own texts use: from which offset in the function on it means what.
    pub states: BTreeMap<String, Vec<(u32, MacroState)>>,
    /// By the offset of `#if`, `#elif`, `#else` in the function: what becomes of the text behind it, where that is known for this
    /// function though not for the file: a kernel isn't compiled for the host.
    pub branches: BTreeMap<u32, Branch>,
}

/// The macros of a function. The same as long as neither they nor the function's words change.
#[salsa::tracked]
pub fn function_macros<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> FunctionMacros {
    let mut found = FunctionMacros::default();
    let text = function.text(db);
    let file = function.file(db);
    let known = preprocessed(db, file);
    let body = function.body_span(db).text(&text);
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut pending: Vec<&str> = words(body).collect();
    while let Some(name) = pending.pop() {
        let Some((name, states)) = known.states.get_key_value(name) else {
            continue;
        };
        if names.insert(name) {
            for (_, state) in states {
                if let MacroState::Defined(item) = state {
                    pending.extend(words(&item.body));
                }
            }
        }
    }
    let conditional = body.contains("#");
    if names.is_empty() && !conditional {
        return found;
    }
    let states = names.iter().filter_map(|name| Some((*name, known.states.get(*name)?)));
    let settled =
        |states: &[(u32, MacroState)]| matches!(states, [(index, _)] if *index <= leading_directives(db, file));
    if !conditional && states.clone().all(|(_, states)| settled(states)) {
        for (name, states) in states {
            let first = states.first().map(|(_, state)| (0, state.clone()));
            found.states.insert(name.to_owned(), first.into_iter().collect());
        }
        return found;
    }
    // Only here it matters where the function stands.
    let offsets = function.directives(db);
    let first = function.directives_before(db) as usize;
    let last = first + offsets.len();
    for (name, states) in states {
        let before = states.partition_point(|(index, _)| *index as usize <= first);
        let mut here = Vec::new();
        if let Some((_, state)) = before.checked_sub(1).and_then(|last| states.get(last)) {
            here.push((0, state.clone()));
        }
        for (index, state) in states
            .iter()
            .skip(before)
            .take_while(|(index, _)| *index as usize <= last)
        {
            let offset = (*index as usize)
                .checked_sub(first + 1)
                .and_then(|line| offsets.get(line));
            here.push((offset.copied().unwrap_or_default(), state.clone()));
        }
        if !here.is_empty() {
            found.states.insert(name.to_owned(), here);
        }
    }
    let signature = function.signature(db);
    let on_device = signature.kernel || signature.device;
    let own = match (on_device, signature.host) {
        (true, false) => &known.device,
        (false, true) => &known.host,
        _ => &known.branches,
    };
    for (offset, branch) in offsets.iter().zip(own.get(first..).unwrap_or_default()) {
        if *branch != Branch::Maybe {
            found.branches.insert(*offset, *branch);
        }
    }
    found
}

/// What is known of a name as a macro at an offset in a function. `None`: nothing in sight defines or undefines it before.
pub fn macro_at<'db>(db: &'db dyn Db, function: FunctionItem<'db>, offset: u32, name: &str) -> Option<&'db MacroState> {
    let states = preprocessed(db, function.file(db)).states.get(name)?;
    let within = function.directives(db).partition_point(|directive| *directive < offset);
    let index = function.directives_before(db) as usize + within;
    let before = states.partition_point(|(from, _)| *from as usize <= index);
    before
        .checked_sub(1)
        .and_then(|last| states.get(last))
        .map(|(_, state)| state)
}

/// Number of directives in front of the first function.
fn leading_directives(db: &dyn Db, file: SourceFile) -> u32 {
    let first = items(db, file).functions.first();
    first.map_or(u32::MAX, |function| function.directives_before(db))
}

/// An expanded text, and where its parts come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// `#if` groups that cut through a construct, as the macros in them are expanded.
    pub cuts: Vec<Span>,
    /// Something in it is too large to be analysed, and was blanked.
    pub too_large: bool,
    segments: Vec<Segment>,
    /// Uses of macros, in order.
    uses: Vec<Span>,
    /// Words of expansions that are written as an argument of the macro: from where to where in the expanded text, and in the source.
    arguments: Vec<(usize, usize, Span)>,
}

/// A stretch of the expanded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Where it begins in the expanded text.
    at: usize,
    /// Where that is in the source.
    origin: u32,
    /// The end of a macro's use that it is the expansion of, and its own end without the space that pads it; `None`: it is copied.
    macro_end: Option<(u32, usize)>,
}

impl Expanded {
    fn segment(&self, at: usize) -> Option<&Segment> {
        let before = self.segments.partition_point(|segment| segment.at <= at);
        before.checked_sub(1).and_then(|last| self.segments.get(last))
    }

    /// The word at an offset of the expanded text, as it is written as an argument.
    fn argument(&self, at: usize) -> Option<Span> {
        let before = self.arguments.partition_point(|(from, ..)| *from <= at);
        let (_, to, span) = before.checked_sub(1).and_then(|last| self.arguments.get(last))?;
        (at < *to).then_some(*span)
    }

    /// What a range of the expanded text is in the source: what comes out of a macro is the macro's whole use.
    pub fn span(&self, start: usize, end: usize) -> Span {
        let copied = |segment: &Segment, at: usize| segment.origin + (at - segment.at) as u32;
        let from = self.segment(start).map_or(0, |segment| match segment.macro_end {
            None => copied(segment, start),
            Some(_) => segment.origin,
        });
        let last = if end > start { end - 1 } else { start };
        // Where all of it is an argument, that is the place.
        if let (Some(first), Some(last)) = (self.argument(start), self.argument(last))
            && first.start <= last.end
            && self.segment(start) == self.segment(end.saturating_sub(1))
        {
            return first.cover(last);
        }
        let to = self.segment(last).map_or(0, |segment| match segment.macro_end {
            None => copied(segment, end.max(segment.at)),
            Some((use_end, _)) => use_end,
        });
        Span::new(from, to.max(from))
    }

    /// A range of the expanded text is nothing but the expansion of a macro, or lies in an argument.
    pub fn is_expansion(&self, start: usize, end: usize) -> bool {
        self.argument(start).is_some() || self.uses.binary_search(&self.span(start, end)).is_ok()
    }

    /// A range of the expanded text is, in the source, a text that means the same: neither end lies within an expansion.
    pub fn is_whole(&self, start: usize, end: usize) -> bool {
        let begins = self
            .segment(start)
            .is_none_or(|segment| segment.macro_end.is_none() || start == segment.at + 1);
        let ends = end > start
            && self
                .segment(end - 1)
                .is_none_or(|segment| segment.macro_end.is_none_or(|(_, own_end)| end == own_end));
        begins && ends
    }
}

/// Expands the macros in a function's body. `None`: there are none, or it would be too much.
pub fn expand_function(text: &str, body: Span, macros: &FunctionMacros) -> Option<Expanded> {
    if macros.states.is_empty() {
        return None;
    }
    let (from, to) = (body.start as usize, body.end as usize);
    let inner = text.get(from..to)?;
    let lexemes = lex(inner, true);
    let mut out = Expanded {
        text: String::with_capacity(text.len()),
        cuts: Vec::new(),
        too_large: false,
        segments: Vec::new(),
        uses: Vec::new(),
        arguments: Vec::new(),
    };
    // Start of what is not copied yet.
    let mut copied = 0;
    let mut at = 0;
    while let Some(lexeme) = lexemes.get(at) {
        let offset = (from + lexeme.start) as u32;
        let find = |name: &str| match state_at(macros, name, offset) {
            Some(MacroState::Defined(item)) => Some(item),
            _ => None,
        };
        let expander = Expander::new(&find);
        let used = if lexeme.kind == TokenKind::Word {
            one_use(&expander, &find, inner, &lexemes, at)?
        } else {
            None
        };
        let Some((replaced, next)) = used else {
            at += 1;
            continue;
        };
        let end = lexemes.get(next - 1).map_or(lexeme.end, |last| last.end);
        copy(&mut out, text, copied, from + lexeme.start);
        let span = Span::new(offset, (from + end) as u32);
        out.uses.push(span);
        if !replaced.is_empty() {
            let start = out.text.len();
            out.text.push(' ');
            spell(&mut out, &replaced, from);
            let own_end = out.text.len();
            out.text.push(' ');
            out.segments.push(Segment {
                at: start,
                origin: span.start,
                macro_end: Some((span.end, own_end)),
            });
        }
        copied = from + end;
        at = next;
        if out.text.len() > text.len() + MAX_GROWTH {
            return None;
        }
    }
    if out.uses.is_empty() {
        return None;
    }
    copy(&mut out, text, copied, text.len());
    // What is blanked in sources is blanked in expansions, too: attributes, execution spaces of lambdas.
    let masked = mask(&out.text, &[]);
    out.text = masked.text.to_string();
    let cuts = masked.cuts.iter();
    out.cuts = cuts.map(|cut| out.span(cut.start as usize, cut.end as usize)).collect();
    out.too_large = !masked.large.is_empty();
    Some(out)
}

/// Appends an expansion; the tokens' origins count from `from`.
fn spell(out: &mut Expanded, tokens: &[Token], from: usize) {
    let begin = out.text.len();
    for token in tokens {
        if out.text.len() > begin && (token.space || glues(&out.text, &token.text)) {
            out.text.push(' ');
        }
        let at = out.text.len();
        out.text.push_str(&token.text);
        if let Some((start, end)) = token.origin {
            let span = Span::new((from + start) as u32, (from + end) as u32);
            out.arguments.push((at, out.text.len(), span));
        }
    }
}

fn copy(out: &mut Expanded, text: &str, from: usize, to: usize) {
    if from < to {
        out.segments.push(Segment {
            at: out.text.len(),
            origin: from as u32,
            macro_end: None,
        });
        out.text.push_str(text.get(from..to).unwrap_or(""));
    }
}

/// What a name means as a macro at an offset in a function.
pub(crate) fn state_at<'m>(macros: &'m FunctionMacros, name: &str, offset: u32) -> Option<&'m MacroState> {
    let states = macros.states.get(name)?;
    let before = states.partition_point(|(from, _)| *from <= offset);
    before
        .checked_sub(1)
        .and_then(|last| states.get(last))
        .map(|(_, state)| state)
}

/// The expansion of the macro that is used at lexeme `at`, and the lexeme behind the use. Outer `None`: too much; inner `None`: no
/// macro is used there, or it isn't understood.
#[allow(clippy::type_complexity, reason = "the parts are named in the sentence above")]
pub(crate) fn one_use<'m>(
    expander: &Expander<'m>,
    find: &dyn Fn(&str) -> Option<&'m MacroItem>,
    inner: &str,
    lexemes: &[Lexeme],
    at: usize,
) -> Option<Option<(Vec<Token>, usize)>> {
    let text = |lexeme: &Lexeme| inner.get(lexeme.start..lexeme.end).unwrap_or("");
    let Some(item) = lexemes.get(at).and_then(|lexeme| find(text(lexeme))) else {
        return Some(None);
    };
    let mut end = at + 1;
    if item.params.is_some() {
        match closing(inner, lexemes, end) {
            Some(close) => end = close + 1,
            None => return Some(None),
        }
    }
    loop {
        let taken: Vec<Token> = lexemes
            .get(at..end)?
            .iter()
            .map(|l| Token {
                origin: Some((l.start, l.end)),
                ..token(inner, *l)
            })
            .collect();
        let before = spelled(&taken);
        let replaced = expander.expand(taken).ok()?;
        // The expansion may end with the name of a macro whose arguments come behind it.
        let continues = replaced
            .last()
            .and_then(|last| expander.macro_of(last))
            .is_some_and(|item| item.params.is_some());
        if continues && let Some(close) = closing(inner, lexemes, end) {
            end = close + 1;
            continue;
        }
        if spelled(&replaced) == before {
            return Some(None);
        }
        return Some(Some((without_pragmas(replaced), end)));
    }
}

/// The lexeme that closes the parenthesis at `open`; `None`: none opens there, or a directive stands inside.
pub(crate) fn closing(inner: &str, lexemes: &[Lexeme], open: usize) -> Option<usize> {
    let mut depth = 0u32;
    for (index, lexeme) in lexemes.iter().enumerate().skip(open) {
        if lexeme.kind == TokenKind::Directive {
            return None;
        }
        match inner.get(lexeme.start..lexeme.end) {
            Some("(") => depth += 1,
            Some(")") => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (index > open).then_some(index);
        }
    }
    None
}

/// The tokens without `_Pragma(…)`.
fn without_pragmas(tokens: Vec<Token>) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter();
    while let Some(token) = rest.next() {
        if token.text == "_Pragma" {
            // `(`, a string, `)`
            rest.by_ref().take(3).for_each(drop);
        } else {
            out.push(token);
        }
    }
    out
}
