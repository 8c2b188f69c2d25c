//! Takes `aggregate-*` back: all of a kernel's collected launches.

use std::ops::Range;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{declarations_of, functions_named, launch_sites_of};
use gridfuse_analysis::hir::{ExprKind, StmtKind, body};

use super::collector::{Aggregator, declaration, declared, layer_of, tokens_in};
use super::launch::{Looks, delete_note, put_back, put_noted_back, put_statements_back};
use super::layer::{Peeled, of_all_looks};
use super::text::{
    child_of, delete_item, delete_with_gap, is_used_elsewhere, list, place, put_body_back, put_head_back, source,
};
use super::{nested, passed_collectors, reused};
use crate::api::rewrite::Rewrite;
use crate::edit::builder::EditBuilder;
use crate::edit::lex::{self, Token};
use crate::emit::arena::{ARENA_FOR, LAUNCHPAD_FOR};
use crate::facts::child::Child;
use crate::facts::cluster::ARENA;
use crate::facts::kept_value;
use crate::facts::pure;
use crate::facts::site::Site;
use crate::transforms::stream::{self, FOLLOWED_AT_NEED, FOLLOWED_BY, STREAM_ARENA};

/// The statement at the top of a function, with the white space around it, if all that follows it there stands on one line, arguments of
/// calls aside: perhaps the function had one line before the statement came.
fn opens_one_line(db: &dyn Db, function: FunctionItem<'_>, statement: FileRange) -> Option<FileRange> {
    let text = statement.file.text(db);
    let body = function.body_span(db).shift(function.start(db));
    let (before, behind) = (
        text.get(body.start as usize + 1..statement.range.start as usize)?,
        text.get(statement.range.end as usize..body.end as usize)?,
    );
    let rest = behind.trim_start();
    let apart = before.contains('\n') && before.trim().is_empty() && behind.len() > rest.len();
    let start = body.start + 1;
    let end = statement.range.end + (behind.len() - rest.len()) as u32;
    let (mut depth, mut at) = (0i32, 0);
    let mut breaks = false;
    for token in lex::tokens(rest) {
        breaks |= depth == 0 && rest.get(at..token.start).is_some_and(|gap| gap.contains('\n'));
        depth += match token.text(rest) {
            "(" => 1,
            ")" => -1,
            _ => 0,
        };
        at = token.end;
    }
    (apart && !breaks).then_some(FileRange {
        file: statement.file,
        range: TextRange::new(start, end),
    })
}

/// Whether the host passes what all launches share, as a grid follows the parent.
fn is_in_stream(granularity: &str) -> bool {
    granularity.ends_with("PerGridInStream") || granularity == reused::IN_STREAM
}

/// Takes the aggregation off a kernel; `None` where there is none. `why`: why it can't be taken off, where that isn't because it was edited.
pub fn peel<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    table: &[Rewrite],
    stream: &str,
    why: &mut Option<String>,
) -> Option<Option<Peeled>> {
    let code = source(db, parent);
    let through = passed_collectors::kernel_of(db, parent).map(|(kernel, launching)| (kernel, None, launching));
    let through = through.or_else(|| {
        let (kernel, worker) = reused::kernel_with_worker(db, passed_collectors::only_caller(db, parent)?)?;
        (worker != parent).then_some((kernel, Some(worker), parent))
    });
    if let Some((kernel, worker, launching)) = through {
        let name = launching.name(db);
        return Some(of_all_looks(looks_of(stream), |looks| {
            let peeled = peeled(db, kernel, worker, table, (stream, looks), why)?;
            let function = Some(name.to_owned());
            Some(Peeled { function, ..peeled })
        }));
    }
    if nested::is_part(db, parent) {
        return Some(nested::peel(db, parent, table, stream, why));
    }
    if let Some((kernel, worker)) = reused::kernel_with_worker(db, parent) {
        return Some(of_all_looks(looks_of(stream), |looks| {
            peeled(db, kernel, Some(worker), table, (stream, looks), why)
        }));
    }
    if !code.contains("gridfuse::Aggregator") {
        return None;
    }
    Some(of_all_looks(looks_of(stream), |looks| {
        peeled(db, parent, None, table, (stream, looks), why)
    }))
}

/// How launches that now go to a stream may have looked: those that their notes speak of went to others.
pub fn looks_of(stream: &str) -> &'static [Looks] {
    if stream.is_empty() {
        &Looks::ALL
    } else {
        &Looks::UNNOTED
    }
}

/// The same; `worker`: the function that the kernel's body has moved to.
fn peeled<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    worker: Option<FunctionItem<'db>>,
    table: &[Rewrite],
    launched: (&str, Looks),
    why: &mut Option<String>,
) -> Option<Peeled> {
    let own = place(db, parent).range;
    let aggregators = collectors_of(db, parent, why)?;
    let (layer, options) = layer_of(&aggregators.first()?.granularity, table)?;
    let mut edit = EditBuilder::new(db);
    let arenas = arenas_of(&aggregators);
    let mut deleted: Vec<FileRange> = aggregators.iter().map(|aggregator| aggregator.statement).collect();
    let launching = worker.unwrap_or(parent);
    match worker {
        Some(worker) => {
            let range = worker.body_span(db).shift(worker.start(db));
            launches(db, &aggregators, worker, range, launched, &mut edit)?;
            deleted.extend(passed_collectors::put_back(
                db,
                &aggregators,
                worker,
                launched,
                &mut edit,
            )?);
            put_head_back(&mut edit, db, worker, parent, &arenas)?;
            deleted.extend([place(db, parent), place(db, worker)]);
        }
        None => {
            delete_declarations(db, parent, &aggregators, launched.1.one_line(), &mut edit);
            launches(db, &aggregators, parent, own, launched, &mut edit)?;
            deleted.extend(passed_collectors::put_back(
                db,
                &aggregators,
                parent,
                launched,
                &mut edit,
            )?);
        }
    }
    numbers_in_variables(db, launching, &aggregators, &mut edit);
    let callees = passed_collectors::callees(db, launching, &aggregators);
    let mut done: Vec<FunctionItem<'db>> = Vec::new();
    for aggregator in &aggregators {
        let collected = &aggregator.collected;
        let mut declared: Vec<FileRange> = Vec::new();
        if let Some(aggregated) = collected.kernel {
            if done.contains(&aggregated) {
                continue;
            }
            done.push(aggregated);
            let kernel = place(db, aggregated);
            // One that stands further down is declared above, with the struct.
            let further = declarations_of(db, aggregated).into_iter();
            declared.extend(further.map(|declaration| place(db, declaration)));
            let mut except = deleted.clone();
            except.push(kernel);
            except.extend(&declared);
            // What the host launches is listed there.
            except.extend(arena_arguments(db, parent));
            if is_used_elsewhere(db, kernel.file, unqualified(aggregated.name(db)), &except) {
                continue;
            }
            deleted.push(kernel);
            delete_item(&mut edit, kernel);
        }
        let mut except = deleted.clone();
        except.extend(&declared);
        except.push(collected.structure);
        // The size of the arena goes with it, and so does what is done with a launch that finds no room.
        except.extend(arena_arguments(db, parent));
        except.extend([place(db, parent), place(db, launching)]);
        except.extend(callees.iter().map(|callee| place(db, *callee)));
        if !deleted.contains(&collected.structure)
            && !is_used_elsewhere(db, collected.structure.file, &collected.record, &except)
        {
            match declared.as_slice() {
                [] => delete_item(&mut edit, collected.structure),
                [first] if first.file == collected.structure.file => {
                    let range = TextRange::new(collected.structure.range.start, first.range.end);
                    delete_with_gap(&mut edit, FileRange { range, ..*first });
                }
                _ => return None,
            }
            deleted.extend(&declared);
            deleted.push(collected.structure);
        }
        for (_, _, place) in &collected.block {
            if !deleted.contains(place) {
                delete_item(&mut edit, *place);
                deleted.push(*place);
            }
        }
    }
    for launching in callees.into_iter().chain([launching]) {
        delete_serial(db, parent, launching, &mut deleted, &mut edit);
    }
    let mut workers: Vec<FunctionItem<'db>> = Vec::new();
    for aggregator in &aggregators {
        let worker = aggregator.collected.worker;
        if !workers.contains(&worker) {
            workers.push(worker);
            put_body_back(&mut edit, db, worker, &child_of(db, worker)?, &deleted);
        }
    }
    for arena in &arenas {
        remove_arena(db, parent, arena, &deleted, worker.is_some(), &mut edit)?;
    }
    Some(Peeled {
        edits: vec![edit.finish().ok()?],
        layer,
        options,
        index: 0,
        function: worker.map(|_| parent.name(db).to_owned()),
    })
}

/// The collectors that a kernel declares, all of one granularity, with what their launches share.
fn collectors_of<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    why: &mut Option<String>,
) -> Option<Vec<Aggregator<'db>>> {
    let file = parent.file(db);
    let text = file.text(db);
    let tokens: Vec<Token> = tokens_in(db, file, place(db, parent).range);
    let mut aggregators = Vec::new();
    for index in declared(&text, &tokens) {
        aggregators.push(declaration(db, parent, &text, &tokens, index)?);
    }
    let first = aggregators.first()?.granularity.clone();
    if aggregators.iter().any(|a| a.granularity != first) {
        return None;
    }
    if is_in_stream(&first) {
        for aggregator in &mut aggregators {
            let passed = passed_by_host(db, parent, aggregator, why)?;
            aggregator.arguments.extend(passed);
        }
    }
    Some(aggregators)
}

/// The statement `gridfuse::InOrder in_order(ranks, scatters);` of a kernel, which keeps the order of two of its collectors.
fn in_order(db: &dyn Db, parent: FunctionItem<'_>) -> Option<FileRange> {
    let file = parent.file(db);
    let text = file.text(db);
    let tokens = tokens_in(db, file, place(db, parent).range);
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
    let begins = |index: &usize| {
        let head = ["gridfuse", ":", ":", "InOrder"];
        head.iter().enumerate().all(|(k, w)| word(index + k) == *w)
    };
    let begin = (0..tokens.len()).find(begins)?;
    let end = (begin..tokens.len()).find(|index| word(*index) == ";")?;
    let range = TextRange::new(tokens[begin].start as u32, tokens[end].end as u32);
    Some(FileRange { file, range })
}

/// Deletes the declarations at the top of a kernel; `one_line`: with the line's end, where it may have put that there.
pub fn delete_declarations(
    db: &dyn Db,
    parent: FunctionItem<'_>,
    aggregators: &[Aggregator<'_>],
    one_line: bool,
    edit: &mut EditBuilder<'_>,
) {
    if let Some(statement) = in_order(db, parent) {
        edit.delete_lines(statement);
    }
    for aggregator in aggregators {
        match aggregators {
            [only] if one_line && opens_one_line(db, parent, only.statement).is_some() => {
                let whole = opens_one_line(db, parent, only.statement).unwrap_or(only.statement);
                edit.replace(whole, " ");
            }
            _ => edit.delete_lines(aggregator.statement),
        }
    }
}

/// The arenas of a kernel's collectors.
pub fn arenas_of<'a>(aggregators: &'a [Aggregator<'_>]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for arena in aggregators.iter().filter_map(Aggregator::arena) {
        if !found.contains(&arena) {
            found.push(arena);
        }
    }
    found
}

/// Deletes the functions that run launches that find no room, unless something else uses them.
fn delete_serial<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    launching: FunctionItem<'db>,
    deleted: &mut Vec<FileRange>,
    edit: &mut EditBuilder<'db>,
) {
    let file = parent.file(db);
    let text = file.text(db);
    let tokens = tokens_in(db, file, place(db, launching).range);
    for serial in without_room(db, launching, &text, &tokens) {
        let own = place(db, serial);
        let mut except = deleted.clone();
        except.extend([own, place(db, parent), place(db, launching)]);
        if !is_used_elsewhere(db, own.file, unqualified(serial.name(db)), &except) {
            deleted.push(own);
            delete_item(edit, own);
        }
    }
}

/// The functions that run launches that find no room: `[&](dim3 grid, dim3 block, const child_args& args) { child_serial<…>(…); }`.
fn without_room<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    text: &str,
    tokens: &[Token],
) -> Vec<FunctionItem<'db>> {
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(text));
    let mut found: Vec<FunctionItem<'db>> = Vec::new();
    for index in 0..tokens.len() {
        let head = ["[", "&", "]", "(", "dim3"];
        if !head.iter().enumerate().all(|(k, w)| word(index + k) == *w) {
            continue;
        }
        let Some(brace) = (index..tokens.len()).find(|i| word(*i) == "{") else {
            continue;
        };
        let name = tokens[brace + 1..].iter().map(|t| t.text(text));
        let name: String = name.take_while(|w| !matches!(*w, "(" | "<")).collect();
        let functions = functions_named(db, parent.file(db), &name).into_iter();
        for function in functions.filter(|f| f.has_body(db)) {
            if !found.contains(&function) {
                found.push(function);
            }
        }
    }
    found
}

/// Puts plain launches in place of the calls of `launch` in a part of a function: into this stream, unless notes say which, and looking so.
pub fn launches<'db>(
    db: &'db dyn Db,
    aggregators: &[Aggregator<'db>],
    function: FunctionItem<'db>,
    range: TextRange,
    (stream, looks): (&str, Looks),
    edit: &mut EditBuilder<'db>,
) -> Option<()> {
    let file = function.file(db);
    let (text, tokens) = (&*file.text(db), &*tokens_in(db, file, range));
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(text));
    for index in 0..tokens.len() {
        let Some(aggregator) = aggregators.iter().find(|a| a.name == word(index)) else {
            continue;
        };
        let declares = word(index + 1) == "(" && index > 0 && word(index - 1) == ">";
        if declares {
            continue;
        }
        // It is handed on, see [`passed_collectors`].
        if matches!(word(index + 1), "," | ")") {
            continue;
        }
        if word(index + 1) != "." {
            return None;
        }
        if word(index + 2) != "launch" || word(index + 3) != "(" {
            return None;
        }
        let (mut items, close) = list(text, tokens, index + 3)?;
        // What is done with a launch that finds no room.
        items.pop_if(|last| text.get(last.clone()).is_some_and(|code| code.starts_with('[')));
        let (fields, config) = items.split_last()?;
        let open = tokens
            .iter()
            .position(|t| t.start == fields.start && t.text(text) == "{")?;
        let (values, _) = list(text, tokens, open)?;
        let collected = &aggregator.collected;
        if values.len() != collected.fields.len() || !(2..=3).contains(&config.len()) {
            return None;
        }
        let value = |argument: &String| -> Option<String> {
            if let Some(position) = collected.parameters.iter().position(|p| p == argument) {
                let given = aggregator.arguments.get(position + 1)?;
                return Some(given.clone());
            }
            let (_, field) = argument.split_once('.')?;
            let position = collected.fields.iter().position(|(_, name)| name == field)?;
            let code = text.get(values.get(position)?.clone())?;
            Some(without_cast(code, &collected.fields[position].0))
        };
        let arguments: Option<Vec<String>> = collected.arguments.iter().map(value).collect();
        let mut arguments = arguments?;
        let child = match child_of(db, collected.worker) {
            Some(child) => {
                if looks.by_default() {
                    leave_out_defaults(&child, &mut arguments);
                }
                child.name
            }
            None => nested::child_name(db, collected.worker)?,
        };
        let scope = aggregator.kernel.split('<').next().and_then(|k| k.rsplit_once("::"));
        let scope = scope.map_or(String::new(), |(scope, _)| format!("{scope}::"));
        let template = aggregator.kernel.find('<').map_or("", |at| &aggregator.kernel[at..]);
        let template = kept_value::by_name(template, |name| {
            body(db, function).bindings.iter().any(|binding| binding.name == name)
        });
        let config = config.iter().map(|c| text.get(c.clone()).unwrap_or("").to_owned());
        let mut config: Vec<String> = config.collect();
        for (name, value, _) in &collected.block {
            for size in config.iter_mut().take(2) {
                *size = with_numbers(size, name, value);
            }
        }
        let stream = if config.len() == 3 {
            stream.trim_start_matches(", 0")
        } else {
            stream
        };
        config.extend(
            stream
                .trim_start_matches(", ")
                .split(", ")
                .filter(|c| !c.is_empty())
                .map(str::to_owned),
        );
        let range = TextRange::new(tokens[index].start as u32, tokens.get(close)?.end as u32);
        let name = format!("{scope}{child}{template}");
        if aggregator.noted {
            put_noted_back(edit, FileRange { file, range }, &name)?;
            continue;
        }
        put_back(edit, FileRange { file, range }, &name, &config, &arguments, looks)?;
        if !stream.is_empty() {
            delete_note(edit, FileRange { file, range }, &name);
        }
    }
    if looks.noted() {
        put_statements_back(edit, FileRange { file, range });
    }
    Some(())
}

/// Leaves the last arguments out that are the child's default ones.
fn leave_out_defaults(child: &Child<'_>, arguments: &mut Vec<String>) {
    let body = gridfuse_analysis::hir::body(child.db, child.item);
    let text = child.item.text(child.db);
    let default = |index: usize| {
        let param = body.params.get(index)?;
        let default = body.binding(*param).default?;
        Some(lex::code_words(default.text(&text)).concat())
    };
    while let Some(last) = arguments.len().checked_sub(1) {
        let given = arguments.get(last).map(|given| lex::code_words(given).concat());
        if default(last).is_none() || default(last) != given {
            break;
        }
        arguments.pop();
    }
}

/// The places of a constant's name in a code, with its scopes, and the numbers for them: the constant's value, and one less for `name - 1`,
/// which may be in parentheses.
fn numbers_for(code: &str, name: &str, value: &str) -> Vec<(Range<usize>, String)> {
    let tokens = lex::tokens(code);
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(code));
    let less = value.parse::<u32>().ok().and_then(|value| value.checked_sub(1));
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate().filter(|(_, t)| t.text(code) == name) {
        let mut first = index;
        while first >= 2 && word(first - 1) == ":" && word(first - 2) == ":" {
            let is_scope = first >= 3 && lex::identifiers(word(first - 3)).next().is_some();
            first -= if is_scope { 3 } else { 2 };
        }
        let start = tokens.get(first).map_or(token.start, |t| t.start);
        let one = tokens
            .get(index + 2)
            .filter(|t| word(index + 1) == "-" && t.text(code) == "1");
        match (one, less) {
            // Parentheses of its own, not those of a call.
            (Some(_), Some(less))
                if first > 1 && [word(first - 2), word(first - 1), word(index + 3)] == ["+", "(", ")"] =>
            {
                let end = tokens.get(index + 3).map_or(token.end, |t| t.end);
                let start = tokens.get(first - 1).map_or(start, |t| t.start);
                found.push((start..end, less.to_string()));
            }
            (Some(one), Some(less)) => found.push((start..one.end, less.to_string())),
            _ => found.push((start..token.end, value.to_owned())),
        }
    }
    found
}

/// A code with numbers in place of a constant's name.
fn with_numbers(code: &str, name: &str, value: &str) -> String {
    let mut changed = code.to_owned();
    for (place, number) in numbers_for(code, name, value).into_iter().rev() {
        changed.replace_range(place, &number);
    }
    changed
}

/// Puts the numbers back in place of the constants for block sizes, where variables of the function begin with these or are computed from
/// them.
fn numbers_in_variables<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    aggregators: &[Aggregator<'db>],
    edit: &mut EditBuilder<'db>,
) {
    let (file, body) = (parent.file(db), gridfuse_analysis::hir::body(db, parent));
    let text = file.text(db);
    let declarations = body.stmts.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Decl(decls) => Some(decls),
        _ => None,
    });
    for initial in declarations.flatten().filter_map(|declaration| declaration.init) {
        let range = body.expr(initial).span.shift(parent.start(db));
        let blocks = aggregators.iter().flat_map(|aggregator| &aggregator.collected.block);
        for (name, value, _) in blocks {
            for (place, number) in numbers_for(range.text(&text), name, value) {
                let start = range.start + place.start as u32;
                let range = TextRange::new(start, range.start + place.end as u32);
                edit.replace(FileRange { file, range }, number);
            }
        }
    }
}

/// An argument without the conversion that braces need.
fn without_cast(code: &str, ty: &str) -> String {
    let inner = code
        .strip_prefix("static_cast<")
        .and_then(|rest| rest.strip_prefix(ty))
        .and_then(|rest| rest.strip_prefix(">("))
        .and_then(|rest| rest.strip_suffix(')'));
    inner.unwrap_or(code).to_owned()
}

/// The argument makes an arena.
fn makes_arena(code: &str) -> bool {
    let arguments = |name| code.strip_prefix(name).and_then(|rest| rest.chars().next());
    arguments(ARENA_FOR) == Some('(')
        || [LAUNCHPAD_FOR, FOLLOWED_BY, FOLLOWED_AT_NEED]
            .iter()
            .any(|name| arguments(name) == Some('<'))
}

/// The arguments of a launch by the host.
pub fn arguments_of(host: &Site<'_>) -> Option<Vec<Range<usize>>> {
    let tokens = lex::code_tokens_of(host.db, host.file);
    let start = host.launch.args_span.shift(host.start).start;
    let open = tokens.iter().position(|t| t.start as u32 == start)?;
    list(&host.text, tokens, open).map(|(arguments, _)| arguments)
}

/// The arguments `gridfuse::arena_for(…)` or `gridfuse::launchpad_for<…>(…)` of the kernel's launches.
pub fn arena_arguments<'db>(db: &'db dyn Db, parent: FunctionItem<'db>) -> Vec<FileRange> {
    let mut found = Vec::new();
    for id in launch_sites_of(db, parent) {
        let Ok(host) = Site::new(db, id) else { continue };
        let Some(arguments) = arguments_of(&host) else {
            continue;
        };
        let made = arguments.into_iter().filter(|a| {
            let code = host.text.get(a.clone());
            code.is_some_and(makes_arena)
        });
        found.extend(made.map(|a| FileRange {
            file: host.file,
            range: TextRange::new(a.start as u32, a.end as u32),
        }));
    }
    found
}

/// What all launches share, where the host passes it to what makes an arena: the parameters of the parent that get the same, at each
/// of its launches, and that become the child's in the same way. `why`: which it is isn't known.
fn passed_by_host<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    aggregator: &Aggregator<'db>,
    why: &mut Option<String>,
) -> Option<Vec<String>> {
    const HEADS: [[&str; 5]; 2] = [
        ["gridfuse", ":", ":", "followed_by", "<"],
        ["gridfuse", ":", ":", "followed_at_need", "<"],
    ];
    // For each launch the arguments of the parent, and those of `followed_by`.
    let mut hosts: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    let body = gridfuse_analysis::hir::body(db, parent);
    let arena = aggregator.arguments.first()?;
    let own = body.params.iter().position(|p| body.binding(*p).name == *arena)?;
    for id in launch_sites_of(db, parent) {
        let host = Site::new(db, id).ok()?;
        let tokens = lex::code_tokens_of(db, host.file);
        let texts = |items: Vec<Range<usize>>| -> Option<Vec<String>> {
            items
                .into_iter()
                .map(|item| Some(host.text.get(item)?.to_owned()))
                .collect()
        };
        let arguments = arguments_of(&host)?;
        let start = arguments.get(own)?.start;
        let made = tokens.iter().position(|t| t.start == start)?;
        let head: Vec<&str> = tokens.iter().skip(made).take(5).map(|t| t.text(&host.text)).collect();
        if !HEADS.iter().any(|known| head == known) {
            return None;
        }
        let (_, close) = list(&host.text, tokens, made + head.len() - 1)?;
        let (passed, _) = list(&host.text, tokens, close + 1)?;
        hosts.push((texts(arguments)?, texts(passed)?.get(3..)?.to_vec()));
    }
    let words = |code: &str| lex::code_words(code).concat();
    let kernel = gridfuse_analysis::hir::body(db, aggregator.collected.kernel?);
    let (_, first) = hosts.first()?;
    let mut found = Vec::new();
    for at in 0..first.len() {
        let wanted = kernel.binding(*kernel.params.get(at + 1)?);
        // The host doesn't know a parameter that the parent changes, and a pointer to constants doesn't become one to variables.
        let fits = |index: usize| {
            let param = body.binding(body.params[index]);
            let ty = &param.ty;
            let gets = |(arguments, passed): &(Vec<String>, Vec<String>)| {
                let given = arguments.get(index).cloned();
                let given = given.and_then(|given| stream::converted(ty, &wanted.ty, given));
                given.is_some() && given.as_deref().map(words) == passed.get(at).map(|p| words(p))
            };
            let constants = ty.pointers > 0 && ty.const_base && !wanted.ty.const_base;
            // What a lambda that a rewrite has made for launches without room mentions is one of these parameters, too.
            let in_lambda = body.exprs.iter().any(
                |expr| matches!(&expr.kind, ExprKind::Lambda { mentions, .. } if mentions.contains(&body.params[index])),
            );
            let keeps = pure::keeps_first_value(db, parent, &body, body.params[index])
                || in_lambda && pure::assignments(db, parent, &body, body.params[index]).is_empty();
            !constants && keeps && hosts.iter().all(gets)
        };
        let candidates: Vec<usize> = (0..body.params.len()).filter(|index| fits(*index)).collect();
        let named = |index: &usize| body.binding(body.params[*index]).name == wanted.name;
        let same_type = |index: &usize| body.binding(body.params[*index]).ty.const_base == wanted.ty.const_base;
        let index = match candidates.as_slice() {
            [] => return None,
            [one] => Some(*one),
            several => {
                let same: Vec<usize> = several.iter().copied().filter(same_type).collect();
                match same.as_slice() {
                    [one] => Some(*one),
                    [] => several.iter().copied().find(named),
                    same => same.iter().copied().find(named),
                }
            }
        };
        let Some(index) = index else {
            let names: Vec<String> = candidates
                .iter()
                .map(|index| format!("`{}`", body.binding(body.params[*index]).name))
                .collect();
            *why = Some(format!(
                "the host passes the same for {} of `{}`, and which of them was passed on as `{}` isn't known",
                names.join(", "),
                unqualified(parent.name(db)),
                wanted.name
            ));
            return None;
        };
        found.push(body.binding(body.params[index]).name.clone());
    }
    Some(found)
}

/// Takes the arena's parameter and its arguments away; `written`: the definition is written otherwise.
pub fn remove_arena<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    arena: &str,
    deleted: &[FileRange],
    written: bool,
    edit: &mut EditBuilder<'db>,
) -> Option<()> {
    let body = parent.body_span(db).shift(parent.start(db));
    let text = parent.file(db).text(db);
    let used = lex::code_tokens_of(db, parent.file(db)).iter().any(|t| {
        let range = TextRange::new(t.start as u32, t.end as u32);
        let gone = deleted
            .iter()
            .any(|d| d.file == parent.file(db) && d.range.contains(range));
        t.text(&text) == arena && body.contains(range) && !gone
    });
    if used {
        return None;
    }
    // Among the parameters: a comma in the type of another one divides nothing there.
    let hir = gridfuse_analysis::hir::body(db, parent);
    let position = hir.params.iter().position(|param| hir.binding(*param).name == arena);
    for item in declarations_of(db, parent).into_iter().chain([parent]) {
        let text = item.file(db).text(db);
        let tokens = lex::code_tokens_of(db, item.file(db));
        let params = item.signature(db).params_span.shift(item.start(db));
        let open = tokens.iter().position(|t| t.start as u32 == params.start)?;
        let (params, _) = list(&text, tokens, open)?;
        let at = params.iter().position(|p| {
            text.get(p.clone()).is_some_and(|code| {
                [ARENA, STREAM_ARENA].iter().any(|ty| code.starts_with(ty))
                    && lex::identifiers(code).any(|word| word == arena)
            })
        })?;
        if !(written && item == parent) {
            remove_item(edit, item.file(db), &params, at);
        }
    }
    for id in launch_sites_of(db, parent) {
        let host = Site::new(db, id).ok()?;
        let arguments = arguments_of(&host)?;
        let at = position?;
        let made = arguments
            .get(at)
            .is_some_and(|a| host.text.get(a.clone()).is_some_and(makes_arena));
        if !made {
            return None;
        }
        remove_item(edit, host.file, &arguments, at);
    }
    Some(())
}

/// Removes an item of a list, with the comma in front of it; a comment behind it stays.
pub fn remove_item(edit: &mut EditBuilder<'_>, file: SourceFile, items: &[Range<usize>], at: usize) {
    remove_items(edit, file, items, &[at]);
}

/// Removes several items of a list, given in order, each with a comma.
pub fn remove_items(edit: &mut EditBuilder<'_>, file: SourceFile, items: &[Range<usize>], all: &[usize]) {
    let text = edit.text(file);
    let code_end = |item: &Range<usize>| {
        let last = text.get(item.clone()).and_then(|code| lex::code_tokens(code).pop());
        last.map_or(item.end, |token| item.start + token.end)
    };
    for run in all.chunk_by(|a, b| a + 1 == *b) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            continue;
        };
        let Some(item) = items.get(*first) else { continue };
        let before = first.checked_sub(1).and_then(|before| items.get(before));
        let start = before.map_or(item.start, |before| before.end);
        let end = match (items.get(last + 1), items.get(*last)) {
            (Some(next), _) if *first == 0 => next.start,
            (_, Some(item)) => code_end(item),
            _ => continue,
        };
        let range = TextRange::new(start as u32, end as u32);
        edit.replace(FileRange { file, range }, "");
    }
}
