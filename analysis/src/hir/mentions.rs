//! Which functions mention which names: how a kernel's launches, a function's callers and every other use of a name are found without
//! reading the workspace.
//!
//! Three levels, each a query of its own: the words of a function ([`words_in`], read anew when its text changes), the functions of a
//! file by the names that they mention ([`mentions_by_name`], put together anew when the words of one of them change), and the files of
//! the workspace by the names that are mentioned in them ([`files_by_name`]). Names are those that functions of the workspace have.
//! The exact places are found where somebody asks for them, in the functions that mention a name.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tree_sitter::{Node, Tree};

use crate::base::db::{Db, SourceFile, Workspace};
use crate::base::parse::{masked, parse_text};
use crate::base::place::FileRange;
use crate::base::preprocess::{MacroState, TokenKind, lex};
use crate::base::span::{Span, TextRange};
use crate::base::words::words;
use crate::hir::items::{FunctionItem, FunctionText, items};
use crate::hir::macros::function_macros;
use crate::hir::made_words::{MadeWord, made_between, made_in};
use crate::hir::named_in_strings::LOOK_UP;
use crate::hir::names::unqualified;
use crate::hir::outline::{item_tree, outline_in_text};
use crate::hir::settled::{patched_items, settled_rest};
use crate::hir::word::{CountsOutside, Word, WordMap, WordSet};

/// The words of a function's code and of the macros that it uses, and those that are made in it, sorted.
#[salsa::tracked]
fn words_in<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Box<[Word]> {
    let text = function.text(db);
    let mut found: Vec<Word> = code_words(&text).map(Word::new).collect();
    let macros = function_macros(db, function).states.values().flatten();
    for (_, state) in macros {
        if let MacroState::Defined(item) = state {
            found.extend(words(&item.body).map(Word::new));
        }
    }
    found.extend(made_in(db, function).iter().map(|made| Word::new(&made.word)));
    found.sort_unstable();
    found.dedup();
    found.into()
}

/// The words of a text, without those of comments and literals.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    lex(text, true)
        .into_iter()
        .filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Directive))
        .flat_map(|token| words(text.get(token.start..token.end).unwrap_or("")))
}

/// All words of a file's code, in whatever branch of `#if` they stand.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct FileWords(Arc<WordSet>);

impl FileWords {
    /// Whether the word is one of them. In rare cases it says so of one that isn't.
    pub fn contains(&self, word: &str) -> bool {
        self.0.contains(&Word::new(word))
    }
}

/// All words of a file's code, and of the macros that its functions use.
#[salsa::tracked(returns(clone))]
pub fn file_words(db: &dyn Db, file: SourceFile) -> FileWords {
    let mut found: WordSet = words_outside(db, file).iter().copied().collect();
    for function in &items(db, file).functions {
        found.extend(words_in(db, *function));
    }
    FileWords(Arc::new(found))
}

/// The words of a file that aren't in the text of a function as it is parsed, sorted.
#[salsa::tracked]
fn words_outside(db: &dyn Db, file: SourceFile) -> Box<[Word]> {
    let text = file.text(db);
    let mut found: Vec<Word> = Vec::new();
    for gap in gaps(db, file) {
        found.extend(code_words(gap.text(&text)).map(Word::new));
        found.extend(
            made_between(db, file, &text, *gap)
                .iter()
                .map(|made| Word::new(&made.word)),
        );
    }
    // What is blanked in functions.
    let masked = masked(db, file);
    let specifiers = masked.specifiers.iter().map(|s| TextRange::new(s.start, s.end));
    for blanked in masked.inactive.iter().copied().chain(specifiers) {
        found.extend(words(blanked.text(&text)).map(Word::new));
    }
    found.sort_unstable();
    found.dedup();
    found.into()
}

/// The stretches of a file between its functions, in order. Each begins and ends where no comment or literal is open.
#[salsa::tracked]
pub fn gaps(db: &dyn Db, file: SourceFile) -> Vec<TextRange> {
    let mut found = Vec::new();
    let mut at = 0;
    for (function, &start) in items(db, file).functions.iter().zip(&outline_in_text(db, file).starts) {
        if at < start {
            found.push(TextRange::new(at, start));
        }
        at = at.max(start + function.text(db).len() as u32);
    }
    let end = file.text(db).len() as u32;
    if at < end {
        found.push(TextRange::new(at, end));
    }
    found
}

/// Where a file may be read from to know what stands in front of `at`: the nearest place before it at which a function begins or ends.
pub fn anchor(db: &dyn Db, file: SourceFile, at: u32) -> u32 {
    let functions = &items(db, file).functions;
    let before = functions.partition_point(|f| f.start(db) < at);
    let ends = functions.iter().take(before).rev().take(2);
    ends.flat_map(|f| [f.start(db) + f.text(db).len() as u32, f.start(db)])
        .find(|place| *place < at)
        .unwrap_or(0)
}

/// Whether a function mentions a word, or a macro that it uses does.
pub fn mentions_word(db: &dyn Db, function: FunctionItem<'_>, word: &str) -> bool {
    words_in(db, function).binary_search(&Word::new(word)).is_ok()
}

/// Whether a word stands in a file's functions, or in its code outside of them.
pub(crate) fn has_word(db: &dyn Db, file: SourceFile, word: &str) -> bool {
    let mut functions = items(db, file).functions.iter();
    functions.any(|function| mentions_word(db, *function, word))
        || counts_outside(db, file).contains_key(&Word::new(word))
}

/// The names of functions that a function mentions, as its text says now.
pub(crate) fn names_in_text(db: &dyn Db, function: FunctionItem<'_>) -> Vec<Word> {
    let names = function_names(db);
    let words = words_in(db, function).iter().copied();
    words.filter(|word| names.contains(word)).collect()
}

/// Unqualified names of all functions of the workspace, and of those that look kernels up.
#[salsa::tracked]
fn function_names(db: &dyn Db) -> WordSet {
    let Some(workspace) = Workspace::try_get(db) else {
        return WordSet::default();
    };
    let files = workspace.files(db);
    let own = files.values().flat_map(|file| names_in(db, *file)).copied();
    own.chain(LOOK_UP.iter().map(|name| Word::new(name))).collect()
}

/// Whether a function of the workspace has this unqualified name.
pub(crate) fn is_function_name(db: &dyn Db, name: &str) -> bool {
    function_names(db).contains(&Word::new(name))
}

/// Unqualified names of a file's functions.
#[salsa::tracked]
fn names_in(db: &dyn Db, file: SourceFile) -> BTreeSet<Word> {
    let functions = items(db, file).functions.iter();
    functions.map(|f| Word::new(unqualified(f.name(db)))).collect()
}

/// What a file mentions under one name.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
struct InFile<'db> {
    /// The functions that do, in source order.
    functions: Vec<FunctionItem<'db>>,
    /// Places outside of functions.
    outside: u32,
    /// One of these declares a function, or may: what stands there isn't parsed.
    declared: bool,
}

/// What a file mentions, by the names of functions.
#[salsa::tracked]
fn mentions_by_name<'db>(db: &'db dyn Db, file: SourceFile) -> WordMap<InFile<'db>> {
    let names = function_names(db);
    let mut found: WordMap<InFile<'db>> = WordMap::default();
    for function in &items(db, file).functions {
        let words = match function.source(db) {
            FunctionText::Kept(_) => words_in(db, *function).as_ref(),
            FunctionText::Edited(edited) => &edited.facts(db).names,
        };
        for word in words.iter().filter(|word| names.contains(word)) {
            found.entry(*word).or_default().functions.push(*function);
        }
    }
    for (word, (outside, declared)) in counts_outside(db, file) {
        if names.contains(word) {
            let entry = found.entry(*word).or_default();
            (entry.outside, entry.declared) = (*outside, *declared);
        }
    }
    found
}

/// The files of the workspace by the names of functions that they mention, in the order of their paths.
#[salsa::tracked]
fn files_by_name(db: &dyn Db) -> WordMap<Vec<SourceFile>> {
    let mut found: WordMap<Vec<SourceFile>> = WordMap::default();
    let Some(workspace) = Workspace::try_get(db) else {
        return found;
    };
    for file in workspace.files(db).values() {
        for word in named_in(db, *file).iter() {
            found.entry(*word).or_default().push(*file);
        }
    }
    found
}

/// The names of functions that a file mentions, sorted.
#[salsa::tracked]
fn named_in(db: &dyn Db, file: SourceFile) -> Box<[Word]> {
    let mut found: Vec<Word> = mentions_by_name(db, file).keys().copied().collect();
    found.sort_unstable();
    found.into()
}

/// The files in which the unqualified name of a function is mentioned, in the order of their paths.
pub fn files_mentioning<'db>(db: &'db dyn Db, name: &str) -> &'db [SourceFile] {
    files_by_name(db)
        .get(&Word::new(name))
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The functions of a file that mention the unqualified name of a function, in source order.
pub fn functions_mentioning<'db>(db: &'db dyn Db, file: SourceFile, name: &str) -> &'db [FunctionItem<'db>] {
    let mentioned = mentions_by_name(db, file).get(&Word::new(name));
    mentioned.map(|m| m.functions.as_slice()).unwrap_or_default()
}

/// Whether a name is declared as a function somewhere in a file, or may be.
pub(crate) fn may_declare(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    let Some(mentioned) = mentions_by_name(db, file).get(&Word::new(name)) else {
        return false;
    };
    let inside = |function: &FunctionItem<'_>| {
        let places = mentions_inside(db, *function).get(name);
        places.is_some_and(|all| all.iter().any(|m| m.declared))
    };
    mentioned.declared || mentioned.functions.iter().any(inside)
}

/// How often the unqualified name of a function stands in a file's code.
pub(crate) fn count_mentions(db: &dyn Db, file: SourceFile, name: &str) -> usize {
    let Some(mentioned) = mentions_by_name(db, file).get(&Word::new(name)) else {
        return 0;
    };
    let inside = |function: &FunctionItem<'_>| mentions_inside(db, *function).get(name).map_or(0, Vec::len);
    mentioned.outside as usize + mentioned.functions.iter().map(inside).sum::<usize>()
}

/// A place in a file's code where the name of a function occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place<'db> {
    /// The word; a macro's body or a branch that isn't compiled, when it occurs in there.
    pub place: FileRange,
    /// It is an identifier of its own in this function, not part of something larger.
    pub identifier_in: Option<FunctionItem<'db>>,
}

/// Where the unqualified name of a function stands in a file's code, in source order.
pub(crate) fn places_of<'db>(db: &'db dyn Db, file: SourceFile, name: &str) -> Vec<Place<'db>> {
    let Some(mentioned) = mentions_by_name(db, file).get(&Word::new(name)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for function in &mentioned.functions {
        for mention in mentions_inside(db, *function).get(name).into_iter().flatten() {
            found.push(Place {
                place: FileRange {
                    file,
                    range: mention.span.shift(function.start(db)),
                },
                identifier_in: mention.identifier.then_some(*function),
            });
        }
    }
    if mentioned.outside > 0 {
        let outside = mentions_outside(db, file).get(name).into_iter().flatten();
        found.extend(outside.map(|mention| Place {
            place: FileRange {
                file,
                range: mention.span.shift(0),
            },
            identifier_in: None,
        }));
        found.sort_by_key(|found| found.place.range);
    }
    found
}

/// A place where a word occurs, relative to where the text begins that it was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
struct Mention {
    span: Span,
    identifier: bool,
    declared: bool,
}

/// Where the words of a function's code stand: not in comments and strings, and not as members. By word, relative to the function.
#[salsa::tracked(lru = 256)]
fn mentions_inside<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> HashMap<String, Vec<Mention>> {
    let text = function.text(db);
    let tree = parse_text(&text, None);
    let mut found = HashMap::new();
    walk(&text, &tree, &[], &mut found);
    note_made(&mut found, made_in(db, function));
    // A member of a class is no kernel.
    let signature = function.signature(db);
    if signature.member
        && !signature.name_span.text(&text).contains("::")
        && let Some(own) = found.get_mut(unqualified(function.name(db)))
    {
        own.retain(|mention| !signature.name_span.contains(mention.span));
    }
    found
}

/// The same for what stands outside of a file's functions, by offset in the file.
#[salsa::tracked(lru = 128)]
fn mentions_outside(db: &dyn Db, file: SourceFile) -> HashMap<String, Vec<Mention>> {
    let masked = masked(db, file);
    let (tree, bodies) = item_tree(db, file);
    let original = file.text(db);
    let mut found = HashMap::new();
    for inactive in &masked.inactive {
        let span = Span::new(inactive.start, inactive.end);
        note_words(&mut found, inactive.text(&original), span);
    }
    let functions: Vec<TextRange> = items(db, file)
        .functions
        .iter()
        .map(|f| TextRange::new(f.start(db), f.start(db) + f.text(db).len() as u32))
        .collect();
    walk(&masked.text, &tree, &functions, &mut found);
    for gap in gaps(db, file) {
        note_made(&mut found, &made_between(db, file, &original, *gap));
    }
    // What was taken for the body of a function, and none was found there.
    for body in &bodies {
        let before = functions.partition_point(|function| function.start <= body.start);
        let around = before.checked_sub(1).and_then(|last| functions.get(last));
        if !around.is_some_and(|function| function.contains(*body)) {
            note_words(&mut found, body.text(&masked.text), Span::new(body.start, body.end));
        }
    }
    found
}

fn counts_outside(db: &dyn Db, file: SourceFile) -> &CountsOutside {
    match settled_rest(db, file) {
        Some(settled) => &settled.outside,
        None => counts_outside_in_text(db, file),
    }
}

/// The same as the text says now.
#[salsa::tracked]
pub(crate) fn counts_outside_in_text(db: &dyn Db, file: SourceFile) -> Arc<CountsOutside> {
    if let Some(patched) = patched_items(db, file) {
        return patched.outside.clone();
    }
    let mut found = CountsOutside::default();
    for (word, places) in mentions_outside(db, file) {
        let entry = found.entry(Word::new(word)).or_default();
        entry.0 += places.len() as u32;
        entry.1 |= places.iter().any(|m| m.declared);
    }
    Arc::new(found)
}

/// A stretch of text that isn't parsed: each of its words once.
fn note_words(found: &mut HashMap<String, Vec<Mention>>, text: &str, span: Span) {
    for word in words(text).collect::<BTreeSet<_>>() {
        let mention = Mention {
            span,
            identifier: false,
            declared: true,
        };
        found.entry(word.to_owned()).or_default().push(mention);
    }
}

/// Words that are made: each may be a declaration, as what they stand in isn't parsed with them.
fn note_made(found: &mut HashMap<String, Vec<Mention>>, made: &[MadeWord]) {
    for MadeWord { word, span } in made {
        let mention = Mention {
            span: *span,
            identifier: false,
            declared: true,
        };
        found.entry(word.clone()).or_default().push(mention);
    }
}

/// Notes the words of a tree, but for those in one of the ranges `without`, which are in order.
fn walk(text: &str, tree: &Tree, without: &[TextRange], found: &mut HashMap<String, Vec<Mention>>) {
    let is_left_out = |node: Node<'_>| {
        let own = TextRange::new(node.start_byte() as u32, node.end_byte() as u32);
        let before = without.partition_point(|range| range.start <= own.start);
        let around = before.checked_sub(1).and_then(|last| without.get(last));
        around.is_some_and(|range| range.contains(own))
    };
    let mut cursor = tree.walk();
    // Whether each node around the cursor is a function's declarator: `Node::parent` would search for it from the root.
    let mut declarators: Vec<bool> = Vec::new();
    loop {
        let node = cursor.node();
        let enter = !is_left_out(node);
        if enter && node.child_count() == 0 {
            let leaf = text.get(node.byte_range()).unwrap_or("");
            let span = Span::new(node.start_byte() as u32, node.end_byte() as u32);
            match node.kind() {
                // A member of a class is no kernel.
                "comment" | "string_content" | "field_identifier" => {}
                "preproc_arg" => note_words(found, leaf, span),
                kind if leaf.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()) => {
                    let mention = Mention {
                        span,
                        identifier: kind == "identifier",
                        declared: declarators.last().copied().unwrap_or_default(),
                    };
                    found.entry(leaf.to_owned()).or_default().push(mention);
                }
                _ => {}
            }
        }
        if enter && node.kind() != "comment" && cursor.goto_first_child() {
            declarators.push(node.kind() == "function_declarator");
            continue;
        }
        let mut done = false;
        while !done && !cursor.goto_next_sibling() {
            done = !cursor.goto_parent();
            declarators.pop();
        }
        if done {
            break;
        }
    }
}
