//! Macros that stand for what is written in front of a function's name: `#define KERNEL __global__ void`,
//! `#define BOUNDS(n) __launch_bounds__(n)`, `#define DEFINE_KERNEL(name) __global__ void name`.

use std::collections::{BTreeMap, BTreeSet};

use super::MacroState;
use super::expand::Expander;
use super::token::{Token, TokenKind, spelled, token};
use crate::base::preprocess::MacroItem;

/// Words that make a macro one that stands for specifiers.
pub(super) const MARKS: &[&str] = &[
    "__global__",
    "__device__",
    "__host__",
    "__forceinline__",
    "__noinline__",
    "__launch_bounds__",
    "__attribute__",
    "__attribute",
    "__declspec",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "__inline__",
    "\"C\"",
    "__restrict__",
    "__restrict",
];

/// Whether a word says `__restrict__` of a pointer, or has the name that users give to a macro which does: `RESTRICT`, `__RESTRICT__`,
/// `MY_RESTRICT`.
pub fn reads_as_restrict(word: &str) -> bool {
    let upper = |c: char| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit();
    matches!(word, "__restrict__" | "__restrict" | "restrict")
        || word.trim_end_matches('_').ends_with("RESTRICT") && word.chars().all(upper)
}

/// Words that may stand beside them.
const SPECIFIERS: &[&str] = &[
    "inline",
    "__inline",
    "static",
    "constexpr",
    "extern",
    "friend",
    "virtual",
    "explicit",
];

/// Specifiers with an argument list.
const WITH_ARGUMENTS: &[&str] = &[
    "__launch_bounds__",
    "__attribute__",
    "__attribute",
    "__declspec",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "alignas",
];

/// Words of other things: a template header, a variable, a statement.
const NEVER: &[&str] = &[
    "template",
    "typename",
    "class",
    "struct",
    "union",
    "enum",
    "namespace",
    "using",
    "typedef",
    "operator",
    "return",
    "if",
    "for",
    "while",
    "do",
    "switch",
    "sizeof",
    "new",
    "delete",
    "asm",
    "requires",
    "__shared__",
    "__constant__",
    "__managed__",
    "__grid_constant__",
];

/// The macros of a file that may stand for specifiers, and those that their texts use: by name, from which number of directives on
/// it means what. The same as long as none of them changes, whatever else does.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct SpecifierMacros {
    pub(super) states: BTreeMap<String, Vec<(u32, MacroState)>>,
    /// Those of `states` that may stand for specifiers themselves.
    pub(super) heads: BTreeSet<String>,
    /// What the files that include this one define, for names that it doesn't.
    pub(super) from_includers: BTreeMap<String, Vec<MacroItem>>,
}

/// What a macro's use in front of a function stands for.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Specifiers {
    /// Where the use begins.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
    /// The specifiers, one after the other, with their argument lists.
    pub words: Vec<String>,
    /// It is this in any case: no `#if` that isn't decided has a say in it, and nothing in it is unknown.
    pub certain: bool,
}

impl Specifiers {
    /// Whether a word without arguments is among them.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }

    /// `name(…)` among them.
    pub fn with_arguments(&self, name: &str) -> Option<&str> {
        let rest = |w: &&String| {
            w.strip_prefix(name)
                .is_some_and(|rest| rest.trim_start().starts_with('('))
        };
        self.words.iter().find(rest).map(String::as_str)
    }
}

/// A use of such a macro in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpecifierUse {
    pub specifiers: Specifiers,
    /// The type behind the specifiers; empty when the macro has none.
    pub ty: String,
    /// A stretch of the macro's arguments that stays: the function's name, a type.
    pub kept: Option<(usize, usize)>,
}

impl SpecifierUse {
    /// Whether the macro stands for `__restrict__` and nothing else, as far as is known.
    pub(crate) fn is_restrict(&self) -> bool {
        self.specifiers.words.iter().all(|word| reads_as_restrict(word))
    }
}

impl SpecifierMacros {
    /// Whether a word may be such a macro.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        self.heads.contains(word) || self.from_includers.contains_key(word)
    }

    /// The use of such a macro at `at` of a text, behind the first `directives` directives.
    pub(crate) fn use_at(&self, text: &str, at: usize, word: &str, directives: u32) -> Option<SpecifierUse> {
        let variants: Vec<&MacroItem>;
        let mut certain = true;
        match self.state(word, directives) {
            Some(MacroState::Defined(item)) => variants = vec![item],
            Some(MacroState::Undefined) => return None,
            Some(MacroState::DefinedSomehow | MacroState::Unknown) => {
                // One of several definitions, or one under an `#if`.
                certain = false;
                let before = self.states.get(word).into_iter().flatten();
                variants = before
                    .filter(|(index, _)| *index <= directives)
                    .filter_map(|(_, state)| match state {
                        MacroState::Defined(item) => Some(item),
                        _ => None,
                    })
                    .collect();
            }
            None => {
                certain = false;
                variants = self.from_includers.get(word).into_iter().flatten().collect();
            }
        }
        let mut found: Option<SpecifierUse> = None;
        for item in variants {
            let Some(one) = self.variant(text, at, item, directives) else {
                certain = false;
                continue;
            };
            match &mut found {
                None => found = Some(one),
                Some(known) => {
                    certain &= *known == one;
                    let new = one.specifiers.words.into_iter().filter(|w| !known.specifiers.has(w));
                    known.specifiers.words.extend(new.collect::<Vec<_>>());
                }
            }
        }
        let mut found = found.filter(|f| !f.specifiers.words.is_empty())?;
        found.specifiers.certain &= certain;
        Some(found)
    }

    fn state(&self, name: &str, directives: u32) -> Option<&MacroState> {
        let states = self.states.get(name)?;
        let before = states.partition_point(|(index, _)| *index <= directives);
        before
            .checked_sub(1)
            .and_then(|last| states.get(last))
            .map(|(_, state)| state)
    }

    /// What the use at `at` is when the macro is `item`.
    fn variant(&self, text: &str, at: usize, item: &MacroItem, directives: u32) -> Option<SpecifierUse> {
        let find = |name: &str| {
            if name == item.name {
                return Some(item);
            }
            match self.state(name, directives) {
                Some(MacroState::Defined(item)) => Some(item),
                // Where all that is known is one definition, its words are shown, though they aren't certain.
                None => match self.from_includers.get(name).map(Vec::as_slice) {
                    Some([only]) => Some(only),
                    _ => None,
                },
                _ => None,
            }
        };
        let mut end = at + item.name.len();
        let mut taken = vec![Token {
            kind: TokenKind::Word,
            text: item.name.clone(),
            space: false,
            hidden: Vec::new(),
            origin: Some((at, end)),
        }];
        if item.params.is_some() {
            let rest = text.get(end..)?;
            let mut depth = 0u32;
            for lexeme in super::token::lex(
                rest.get(..rest.len().min(MAX_ARGUMENTS)).or_else(|| rest.get(..0))?,
                true,
            ) {
                let mut next = token(rest, lexeme);
                match (lexeme.kind, next.text.as_str()) {
                    (TokenKind::Directive, _) => return None,
                    (_, "(") => depth += 1,
                    (_, ")") => depth = depth.checked_sub(1)?,
                    _ => {}
                }
                if depth == 0 && next.text != ")" {
                    return None;
                }
                next.origin = Some((end + lexeme.start, end + lexeme.end));
                taken.push(next);
                if depth == 0 {
                    end += lexeme.end;
                    break;
                }
            }
            if depth > 0 || taken.len() == 1 {
                return None;
            }
        }
        let expanded = Expander::new(&find).expand(taken).ok()?;
        let (words, ty, kept, certain) = self.read(&expanded, text, at + item.name.len())?;
        Some(SpecifierUse {
            specifiers: Specifiers {
                start: at as u32,
                end: end as u32,
                words,
                certain,
            },
            ty,
            kept,
        })
    }

    /// The specifiers in an expansion, the type behind them, and what of it is written as an argument (behind `name_end`).
    #[allow(clippy::type_complexity, reason = "the parts are named in the sentence above")]
    fn read(
        &self,
        tokens: &[Token],
        text: &str,
        name_end: usize,
    ) -> Option<(Vec<String>, String, Option<(usize, usize)>, bool)> {
        let mut words: Vec<String> = Vec::new();
        let mut ty: Vec<Token> = Vec::new();
        let mut kept: Option<(usize, usize)> = None;
        let mut certain = true;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let word = token.text.as_str();
            let next = tokens.get(at + 1).map_or("", |t| t.text.as_str());
            if WITH_ARGUMENTS.contains(&word) && next == "(" {
                let end = at + 1 + group(tokens.get(at + 1..)?, "(", ")")?;
                words.push(spelled(tokens.get(at..end)?));
                at = end;
                continue;
            }
            at += 1;
            if word == "[" && next == "[" {
                let end = at - 1 + group(tokens.get(at - 1..)?, "[", "]")?;
                words.push(spelled(tokens.get(at - 1..end)?));
                at = end;
            } else if MARKS.contains(&word) || SPECIFIERS.contains(&word) {
                words.push(word.to_owned());
            } else if let Some((start, end)) = token.origin.filter(|(start, _)| *start >= name_end) {
                // One stretch of the source.
                kept = match kept {
                    None => Some((start, end)),
                    Some((first, last)) if text.get(last..start).is_some_and(|t| t.trim().is_empty()) => {
                        Some((first, end))
                    }
                    Some(_) => return None,
                };
            } else if kept.is_some() {
                return None;
            } else {
                match token.kind {
                    // A macro that is something else under each branch of an `#if`: an attribute, or nothing.
                    TokenKind::Word if self.states.contains_key(word) || self.from_includers.contains_key(word) => {
                        certain = false;
                    }
                    TokenKind::Word if NEVER.contains(&word) => return None,
                    TokenKind::Word => ty.push(token.clone()),
                    TokenKind::Punctuation if matches!(word, "*" | "&" | "::" | "<" | ">" | ",") && !ty.is_empty() => {
                        ty.push(token.clone());
                    }
                    TokenKind::Number if !ty.is_empty() => ty.push(token.clone()),
                    _ => return None,
                }
            }
        }
        Some((words, spelled(&ty).trim().to_owned(), kept, certain))
    }
}

/// Bytes of a macro's arguments that are read.
const MAX_ARGUMENTS: usize = 1 << 12;

/// The number of tokens in the group that begins with `open`.
fn group(tokens: &[Token], open: &str, close: &str) -> Option<usize> {
    let mut depth = 0u32;
    for (index, token) in tokens.iter().enumerate() {
        if token.text == open {
            depth += 1;
        } else if token.text == close {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}
