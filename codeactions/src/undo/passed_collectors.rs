//! Collectors that a kernel hands on to a function, which launches: the call and the function lose the argument, and the launches are put
//! back there.

use std::collections::BTreeSet;
use std::ops::Range;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::Body;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{declarations_of, functions_named};

use super::aggregated::{self, remove_items};
use super::collector::{Aggregator, declared, tokens_in};
use super::launch::Looks;
use super::text::{list, place, source};
use crate::edit::builder::EditBuilder;
use crate::edit::lex::{self, Token};
use crate::edit::style;
use crate::facts::members;
use crate::facts::site::function_around;

/// The type of a parameter that is a collector of the kernel.
const TYPE: &str = "gridfuse::Aggregator<";

/// The beginning of the type where the kernel's own threads run what is launched.
const REUSED: &str = "gridfuse::ThreadReuse";

/// The kernel whose collectors a function gets, and the function; `None` where several kernels share it, or the kernel's whole body has
/// moved there.
pub fn kernel_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<(FunctionItem<'db>, FunctionItem<'db>)> {
    if function.signature(db).kernel {
        let (_, callee, _) = calls(db, function, &collectors(db, function)).into_iter().next()?;
        return (kernel_of(db, callee)?.0 == function).then_some((function, callee));
    }
    let kernel = only_caller(db, function)?;
    // Of a type parameter only the call says that it stands for a collector.
    if !names_collector(db, function)
        && !calls(db, kernel, &collectors(db, kernel))
            .iter()
            .any(|(_, callee, _)| *callee == function)
    {
        return None;
    }
    let code = source(db, kernel);
    let plain = kernel.signature(db).kernel && code.contains(TYPE) && !code.contains("NestedBatch<");
    (plain && !is_whole_body(db, kernel)).then_some((kernel, function))
}

/// The function that hands a collector on to this one, where there is only one.
pub fn only_caller<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<FunctionItem<'db>> {
    if !takes_collector(db, function) {
        return None;
    }
    let mut callers: Vec<FunctionItem<'db>> = Vec::new();
    for mention in members::all_mentions(db, function) {
        let around = function_around(db, mention).filter(|f| *f != function)?;
        if !callers.contains(&around) {
            callers.push(around);
        }
    }
    match callers.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

/// The names of a kernel's collectors.
fn collectors(db: &dyn Db, kernel: FunctionItem<'_>) -> Vec<String> {
    let text = kernel.file(db).text(db);
    let tokens = tokens_in(db, kernel.file(db), place(db, kernel).range);
    let declared = declared(&text, &tokens).into_iter();
    let names = declared.filter_map(|at| {
        let (_, close) = list(&text, &tokens, at + 4)?;
        Some(tokens.get(close + 1)?.text(&text).to_owned())
    });
    names.collect()
}

/// Whether a function has a parameter that is a collector, or may be one: a reference to a type that is deduced.
fn takes_collector(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let body = || gridfuse_analysis::hir::body(db, function);
    let any = |body: &Body| (0..body.params.len()).any(|index| type_parameter(db, function, body, index).is_some());
    names_collector(db, function) || !function.signature(db).template_types.is_empty() && any(&body())
}

/// The type parameter `Children` of which a parameter `Children& children` is: the place in the list, from the end.
fn type_parameter(db: &dyn Db, function: FunctionItem<'_>, body: &Body, index: usize) -> Option<usize> {
    let ty = &body.binding(*body.params.get(index)?).ty;
    let signature = function.signature(db);
    let plain = ty.reference && !ty.const_base && ty.pointers == 0 && signature.template_types.contains(&ty.base);
    let place = signature.template_names.iter().rev().position(|name| *name == ty.base);
    place.filter(|_| plain)
}

/// Whether a function has a parameter whose type is that of a collector.
fn names_collector(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let params = function.signature(db).params_span;
    let code = params.text(&function.text(db)).to_owned();
    code.contains(TYPE) || code.contains(REUSED)
}

/// Whether a kernel does nothing but call a function with its collectors.
fn is_whole_body(db: &dyn Db, kernel: FunctionItem<'_>) -> bool {
    let text = kernel.file(db).text(db);
    let tokens = tokens_in(db, kernel.file(db), kernel.body_span(db).shift(kernel.start(db)));
    let statements = tokens.iter().filter(|token| token.text(&text) == ";").count();
    // One call may hand several on.
    let calls = calls(db, kernel, &collectors(db, kernel)).into_iter();
    let calls: BTreeSet<usize> = calls.map(|(_, _, open)| open).collect();
    statements == declared(&text, &tokens).len() + calls.len()
}

/// The functions that a kernel hands these collectors on to.
pub fn callees<'db>(
    db: &'db dyn Db,
    kernel: FunctionItem<'db>,
    aggregators: &[Aggregator<'db>],
) -> Vec<FunctionItem<'db>> {
    let names: Vec<String> = aggregators.iter().map(|aggregator| aggregator.name.clone()).collect();
    let calls = calls(db, kernel, &names).into_iter();
    calls.map(|(_, callee, _)| callee).collect()
}

/// The calls in a function that hand one of these collectors on: the token of the collector's name, the function that is called, and the
/// token of the parenthesis.
fn calls<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>, names: &[String]) -> Vec<(usize, FunctionItem<'db>, usize)> {
    let file = kernel.file(db);
    let text = file.text(db);
    let tokens = tokens_in(db, file, place(db, kernel).range);
    let word = |index: usize| tokens.get(index).map_or("", |t: &Token| t.text(&text));
    let mut found = Vec::new();
    for at in 2..tokens.len() {
        let handed_on = names.iter().any(|name| name == word(at)) && matches!(word(at + 1), "," | ")");
        if !handed_on || !matches!(word(at - 1), "(" | ",") {
            continue;
        }
        let mut depth = 0i32;
        let open = (0..at).rev().find(|before| {
            depth += match word(*before) {
                ")" | "]" | "}" => 1,
                "(" | "[" | "{" => -1,
                _ => 0,
            };
            depth < 0
        });
        let Some(open) = open.filter(|open| *open > 0 && word(*open) == "(") else {
            continue;
        };
        // Template arguments may be written.
        let mut name = open - 1;
        if word(name) == ">" {
            let ends_here = |first: &usize| {
                word(*first) == "<" && list(&text, &tokens, *first).is_some_and(|(_, close)| close == name)
            };
            match (1..name).rev().find(ends_here) {
                Some(first) => name = first - 1,
                None => continue,
            }
        }
        let functions = functions_named(db, file, word(name)).into_iter();
        let mut functions = functions.filter(|f| f.has_body(db) && takes_collector(db, *f));
        found.extend(functions.next().map(|callee| (at, callee, open)));
    }
    found
}

/// Takes the collectors away that a kernel hands on to a function, and puts the launches back there; the parameters that are gone.
pub fn put_back<'db>(
    db: &'db dyn Db,
    aggregators: &[Aggregator<'db>],
    kernel: FunctionItem<'db>,
    launched: (&str, Looks),
    edit: &mut EditBuilder<'db>,
) -> Option<Vec<FileRange>> {
    let mut gone = Vec::new();
    let file = kernel.file(db);
    let text = file.text(db);
    let tokens = tokens_in(db, file, place(db, kernel).range);
    let mut done: Vec<FunctionItem<'db>> = Vec::new();
    let names: Vec<String> = aggregators.iter().map(|aggregator| aggregator.name.clone()).collect();
    for (open, callee, handed_on) in by_call(calls(db, kernel, &names)) {
        let (arguments, _) = list(&text, &tokens, open)?;
        let position = |at: &usize| {
            arguments
                .iter()
                .position(|argument| argument.start == tokens[*at].start)
        };
        let positions: Vec<usize> = handed_on.iter().map(position).collect::<Option<_>>()?;
        remove_items(edit, file, &arguments, &positions);
        // Further calls of the function lose the arguments, too; the function loses them once.
        if done.contains(&callee) {
            continue;
        }
        done.push(callee);
        let body = gridfuse_analysis::hir::body(db, callee);
        let param = |index: usize| body.params.get(index).map(|param| body.binding(*param).name.clone());
        let mut own = Vec::new();
        for (at, position) in handed_on.iter().zip(&positions) {
            let mut known = aggregators.iter().find(|a| a.name == tokens[*at].text(&text))?.clone();
            known.name = param(*position)?;
            if type_parameter(db, callee, &body, *position).is_some() {
                known.noted = known.kernel.contains('<');
            }
            // What all launches share has the name there that the function's parameter has.
            for shared in known.arguments.iter_mut().skip(1) {
                let same = arguments.iter().position(|a| text.get(a.clone()) == Some(shared));
                if let Some(name) = same.and_then(param) {
                    *shared = name;
                }
            }
            own.push(known);
        }
        let range = callee.body_span(db).shift(callee.start(db));
        aggregated::launches(db, &own, callee, range, launched, edit)?;
        let types = positions
            .iter()
            .filter_map(|index| type_parameter(db, callee, &body, *index));
        remove_types(db, callee, &types.collect::<Vec<_>>(), edit)?;
        for declared in declarations_of(db, callee).into_iter().chain([callee]) {
            let (file, text) = (declared.file(db), declared.file(db).text(db));
            let params = declared.signature(db).params_span.shift(declared.start(db));
            let tokens = lex::code_tokens_of(db, file);
            let (range, open) = (params, tokens.iter().position(|t| t.start as u32 == params.start)?);
            let (params, _) = list(&text, tokens, open)?;
            for position in &positions {
                let param = params.get(*position)?;
                let range = TextRange::new(param.start as u32, param.end as u32);
                gone.push(FileRange { file, range });
            }
            match joined(edit, file, range, &params, &positions) {
                Some(first) => edit.replace(FileRange { file, range: first }, ""),
                None => remove_items(edit, file, &params, &positions),
            }
        }
    }
    Some(gone)
}

/// Takes type parameters away that a function has for collectors, by their places from the end of the list.
fn remove_types<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    places: &[usize],
    edit: &mut EditBuilder<'db>,
) -> Option<()> {
    if places.is_empty() {
        return Some(());
    }
    let (file, text) = (function.file(db), function.file(db).text(db));
    let start = function.signature(db).template_params?.shift(function.start(db)).start;
    let tokens = lex::code_tokens_of(db, file);
    let open = tokens.iter().position(|token| token.start as u32 == start)?;
    let (types, _) = list(&text, tokens, open)?;
    let place = |place: &usize| types.len().checked_sub(place + 1);
    let mut places: Vec<usize> = places.iter().map(place).collect::<Option<_>>()?;
    places.sort_unstable();
    remove_items(edit, file, &types, &places);
    Some(())
}

/// The collectors that each call hands on, in the order of its arguments: the token of the call's parenthesis, the function that is called, and
/// the tokens of the collectors' names.
fn by_call(calls: Vec<(usize, FunctionItem<'_>, usize)>) -> Vec<(usize, FunctionItem<'_>, Vec<usize>)> {
    let mut found: Vec<(usize, FunctionItem<'_>, Vec<usize>)> = Vec::new();
    for (at, callee, open) in calls {
        match found.last_mut().filter(|(known, ..)| *known == open) {
            Some((.., handed_on)) => handed_on.push(at),
            None => found.push((open, callee, vec![at])),
        }
    }
    found
}

/// What is in front of a function's own parameters, where these stand on a line of their own only because of the collectors: without them, they
/// have room behind the function's name.
fn joined(
    edit: &mut EditBuilder<'_>,
    file: SourceFile,
    list: TextRange,
    params: &[Range<usize>],
    gone: &[usize],
) -> Option<TextRange> {
    let text = edit.text(file);
    let all_in_front = gone.iter().enumerate().all(|(index, gone)| index == *gone);
    let (first, next) = (params.first()?, params.get(gone.len()).filter(|_| all_in_front)?);
    let open = list.start as usize + 1;
    let broken = text.get(open..first.start)?.contains('\n');
    let own = text.get(next.start..list.end as usize)?;
    let head = text.get(style::line_start(&text, open)..open)?;
    let fits = head.chars().count() + own.chars().count() <= edit.style(file).width;
    (broken && fits && !own.contains('\n')).then_some(TextRange::new(open as u32, next.start as u32))
}
