//! Launches by the host that are captured into a graph. Memory that a launch takes in its stream becomes nodes of the graph, and CUDA
//! refuses to do with such a graph what it does with others: there is one executable graph of it at a time, it is no part of another
//! graph and isn't cloned, and an executable graph isn't updated by it.

use std::collections::HashSet;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::mentions::mentions_word;
use gridfuse_analysis::hir::resolve::other_mentions;

use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::lex::{self, Token, TokenKind};
use crate::facts::site::{Site, function_around};

/// Functions that may call the one that launches, at most.
const MAX_CALLERS: usize = 100;

/// What begins a graph that is captured.
const BEGINS: [&str; 3] = [
    "cudaStreamBeginCapture",
    "cudaStreamBeginCaptureToGraph",
    "cuStreamBeginCapture",
];

/// What may be done with a graph that has memory of its own, as long as one executable graph is made of it.
const FITS: [&str; 12] = [
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "cudaGraphInstantiate",
    "cudaGraphInstantiateWithFlags",
    "cudaGraphInstantiateWithParams",
    "cudaGraphUpload",
    "cudaGraphLaunch",
    "cudaGraphDestroy",
    "cudaGraphExecDestroy",
    "cudaGraphDebugDotPrint",
    "cudaGraphCreate",
    "cudaGraphGetNodes",
];

/// What CUDA refuses for such a graph, or what looks for nodes of it that are others now.
const REFUSED: [&str; 9] = [
    "cudaGraphExecUpdate",
    "cudaGraphAddChildGraphNode",
    "cudaGraphClone",
    "cudaGraphExecChildGraphNodeSetParams",
    "cudaGraphExecKernelNodeSetParams",
    "cudaGraphKernelNodeSetParams",
    "cudaGraphExecNodeSetParams",
    "cudaGraphNodeSetParams",
    "cudaGraphDestroyNode",
];

/// Refuses a launch that gets memory of its stream where the graph that it's captured into is used in a way that CUDA refuses then; what
/// isn't clear is assumed.
pub fn keep(host: &Site<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    let db = host.db;
    let parent = host.child_name();
    let Some(capturing) = captured_by(host) else { return };
    let text = capturing.text(db);
    let (file, start) = (capturing.file(db), capturing.start(db));
    let tokens = lex::code_tokens(&text);
    let word = |i: usize| tokens.get(i).map_or("", |t| t.text(&text));
    let place = |i: usize| {
        let range = tokens
            .get(i)
            .map(|t| TextRange::new(t.start as u32 + start, t.end as u32 + start));
        range.map(|range| FileRange { file, range })
    };
    let calls = |names: &'static [&'static str]| {
        let tokens = &tokens;
        let text = &text;
        (0..tokens.len()).filter(move |i| names.contains(&tokens[*i].text(text)))
    };
    for at in calls(&REFUSED) {
        refusals.add(
            format!(
                "the launch of `{parent}` is captured into a graph, which would have memory of its own: CUDA refuses {}() for it; capture \
                 and instantiate it anew instead",
                word(at)
            ),
            place(at),
        );
    }
    let instantiations: Vec<usize> = (0..tokens.len())
        .filter(|i| word(*i).starts_with("cudaGraphInstantiate"))
        .collect();
    let graph_of = |at: usize| {
        let (open, close) = (at + 1, lex::closing(&text, &tokens, at + 1)?);
        (open..close)
            .filter(|i| tokens[*i].kind == TokenKind::Word)
            .nth(1)
            .map(word)
    };
    for (number, at) in instantiations.iter().enumerate() {
        let before = &instantiations[..number];
        let same = |other: &&usize| graph_of(**other).is_some() && graph_of(**other) == graph_of(*at);
        if let Some(other) = before.iter().find(same)
            && !(*other..*at).any(|i| matches!(word(i), "cudaGraphExecDestroy" | "cudaStreamEndCapture" | "else"))
        {
            refusals.add(
                format!(
                    "the launch of `{parent}` is captured into a graph, which would have memory of its own: CUDA instantiates it once \
                     at a time, and here it is the second time"
                ),
                place(*at),
            );
        }
    }
    let clear = instantiations.len() == 1 && stays(&text, &tokens);
    if !clear {
        edit.assume(assumption::GRAPH_INSTANTIATED_ONCE.of(Reason {
            text: format!(
                "graphs with the launch of `{parent}` are instantiated once at a time, aren't updated, and are no parts of others (as they \
                 have memory of their own)"
            ),
            place: Some(host.here()),
        }));
    }
}

/// The graphs of a function go nowhere, but to what may be done with them once, in no loop of their own.
fn stays(text: &str, tokens: &[Token]) -> bool {
    let word = |i: usize| tokens.get(i).map_or("", |t| t.text(text));
    let Some(end) = (0..tokens.len()).find(|i| word(*i) == "cudaStreamEndCapture") else {
        return false;
    };
    let Some(close) = lex::closing(text, tokens, end + 1) else {
        return false;
    };
    let Some(graph) = (end + 2..close)
        .rev()
        .find(|i| tokens[*i].kind == TokenKind::Word)
        .map(word)
    else {
        return false;
    };
    let mentions: Vec<usize> = (0..tokens.len()).filter(|i| word(*i) == graph).collect();
    let declared = mentions
        .first()
        .is_some_and(|at| at.checked_sub(1).is_some_and(|before| word(before) == "cudaGraph_t"));
    let loops = |at: usize| enclosing_loops(text, tokens, at);
    let once = (0..tokens.len())
        .filter(|i| word(*i).starts_with("cudaGraphInstantiate"))
        .all(|at| loops(at) == loops(end));
    declared
        && once
        && mentions
            .iter()
            .skip(1)
            .all(|at| callee(text, tokens, *at).is_some_and(|name| FITS.contains(&name)))
}

/// The name of the call that something is an argument of.
fn callee<'t>(text: &'t str, tokens: &[Token], at: usize) -> Option<&'t str> {
    let mut depth = 0usize;
    for index in (0..at).rev() {
        match tokens[index].text(text) {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth > 0 => depth -= 1,
            "(" => {
                let name = tokens.get(index.checked_sub(1)?)?;
                return (name.kind == TokenKind::Word).then(|| name.text(text));
            }
            "[" | "{" | ";" => return None,
            _ => {}
        }
    }
    None
}

/// Where the loops begin in whose blocks a token stands.
fn enclosing_loops(text: &str, tokens: &[Token], at: usize) -> Vec<usize> {
    let word = |i: usize| tokens.get(i).map_or("", |t| t.text(text));
    let ends = |index: usize| {
        let open = index + 1;
        let body = match word(index) {
            "do" => open,
            _ => lex::closing(text, tokens, open)? + 1,
        };
        match word(body) {
            "{" => lex::closing(text, tokens, body),
            _ => (body..tokens.len()).find(|i| word(*i) == ";"),
        }
    };
    (0..at)
        .filter(|i| matches!(word(*i), "for" | "while" | "do") && ends(*i).is_some_and(|end| at < end))
        .collect()
}

/// The function that captures what a launch by the host puts into its stream: the one that launches, or one that calls it.
fn captured_by<'db>(host: &Site<'db>) -> Option<FunctionItem<'db>> {
    let db = host.db;
    let mut seen: HashSet<FunctionItem<'db>> = HashSet::new();
    let mut todo = vec![host.parent];
    while let Some(function) = todo.pop() {
        if !seen.insert(function) || seen.len() > MAX_CALLERS {
            continue;
        }
        if BEGINS.iter().any(|begin| mentions_word(db, function, begin)) {
            return Some(function);
        }
        let mentions = other_mentions(db, function);
        todo.extend(mentions.into_iter().filter_map(|mention| function_around(db, mention)));
    }
    None
}
