//! What a rewrite has declared for collected launches, read: the collector at the top of a kernel, the struct of the arguments that differ,
//! and what runs the child's body.

use std::ops::Range;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;

use super::reused;
use super::text::{constant, list, place, struct_named};
use crate::api::rewrite::{Layer, Options, Rewrite, Undo};
use crate::edit::lex::{self, Token};
use crate::emit::target;
use crate::transforms::aggregate::shared_block;

/// A declaration `gridfuse::Aggregator<Granularity, kernel> name(arena, …);`, or one of what runs launches in the parent's threads.
#[derive(Clone)]
pub struct Aggregator<'db> {
    /// Its name.
    pub name: String,
    /// The whole declaration.
    pub statement: FileRange,
    /// `gridfuse::PerBlock`
    pub granularity: String,
    /// As written: `ns::child_aggregated<T>`; without a kernel the function with the child's body, `ns::child_thread<T>`.
    pub kernel: String,
    /// The arena, where there is one, and what all launches share.
    pub arguments: Vec<String>,
    /// What it collects has other template arguments where it launches, which only notes there say.
    pub noted: bool,
    pub collected: Collected<'db>,
}

impl Aggregator<'_> {
    /// The arena that the launches are written down in.
    pub fn arena(&self) -> Option<&str> {
        self.collected.kernel.and(self.arguments.first()).map(String::as_str)
    }
}

/// What runs the collected launches says.
#[derive(Clone)]
pub struct Collected<'db> {
    /// The kernel that does; none where the parent's threads do.
    pub kernel: Option<FunctionItem<'db>>,
    /// The struct of the arguments that differ, by its name.
    pub record: String,
    /// Types and names of the record's members.
    pub fields: Vec<(String, String)>,
    /// Where the struct stands.
    pub structure: FileRange,
    /// Names of the kernel's parameters behind the batch; without a kernel what all launches share.
    pub parameters: Vec<String>,
    /// The function with the child's body.
    pub worker: FunctionItem<'db>,
    /// The child's arguments: names of parameters, or `args.` and names of members.
    pub arguments: Vec<String>,
    /// The constants that a rewrite has declared for the child's block: the name of each, its value, and the declaration.
    pub block: Vec<(String, String, FileRange)>,
}

/// The code tokens in a part of a file.
pub fn tokens_in(db: &dyn Db, file: SourceFile, range: TextRange) -> Vec<Token> {
    let all = lex::code_tokens_of(db, file).iter().copied();
    all.filter(|t| range.start <= t.start as u32 && t.end as u32 <= range.end)
        .collect()
}

/// The tokens with which the type `gridfuse::Aggregator<…>` begins, or that of what runs launches in the parent's threads.
pub fn declared(text: &str, tokens: &[Token]) -> Vec<usize> {
    const TYPES: [&str; 3] = ["Aggregator", reused::IN_STREAM_TYPE, reused::TYPE];
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(text));
    let begins = |index: &usize| {
        ["gridfuse", ":", ":"]
            .iter()
            .enumerate()
            .all(|(k, w)| word(index + k) == *w)
            && TYPES.contains(&word(index + 3))
            && word(index + 4) == "<"
    };
    (0..tokens.len()).filter(begins).collect()
}

/// The layer that is there when launches are collected at a granularity, and the options of the rewrite that does it.
pub fn layer_of(granularity: &str, table: &[Rewrite]) -> Option<(Layer, Options)> {
    let mut options = Options::default();
    if let Some(assignment) = reused::assignment(granularity) {
        options.0.insert("assignment".to_owned(), assignment.to_owned());
        return Some((Layer::Reused, options));
    }
    let mut name = granularity.strip_prefix("gridfuse::")?;
    if let Some((template, arguments)) = name.split_once('<') {
        options
            .0
            .insert("blocks".to_owned(), arguments.strip_suffix('>')?.to_owned());
        name = template;
    }
    let entry = table
        .iter()
        .find(|r| matches!(r.undo, Undo::Layer(Layer::Collected(known)) if known == name))?;
    match entry.undo {
        Undo::Layer(layer) if entry.options.is_empty() == options.0.is_empty() => Some((layer, options)),
        _ => None,
    }
}

/// Reads the declaration that a token begins.
pub fn declaration<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    text: &str,
    tokens: &[Token],
    index: usize,
) -> Option<Aggregator<'db>> {
    let file = parent.file(db);
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(text));
    let (types, close) = list(text, tokens, index + 4)?;
    let written = |range: &Range<usize>| text.get(range.clone()).unwrap_or("").to_owned();
    let name = word(close + 1).to_owned();
    let (arguments, end) = match word(close + 2) {
        "(" => list(text, tokens, close + 2)?,
        _ => (Vec::new(), close + 1),
    };
    let semicolon = tokens.get(end + 1).filter(|t| t.text(text) == ";")?;
    let statement = FileRange {
        file,
        range: TextRange::new(tokens[index].start as u32, semicolon.end as u32),
    };
    if word(index + 3) == reused::TYPE {
        let [assignment, record, block @ ..] = types.as_slice() else {
            return None;
        };
        let block: Vec<String> = block.iter().map(written).collect();
        let (collected, kernel) = in_parent(db, parent, &name, &written(record), &block)?;
        // What stands for the arena, and what all launches share.
        let arguments = std::iter::once(String::new()).chain(collected.parameters.iter().cloned());
        return Some(Aggregator {
            arguments: arguments.collect(),
            granularity: reused::granularity(&written(assignment)),
            noted: false,
            name,
            statement,
            kernel,
            collected,
        });
    }
    let (granularity, kernel) = match types.as_slice() {
        [granularity, kernel] => (written(granularity).split_whitespace().collect(), kernel),
        [kernel] => (reused::IN_STREAM.to_owned(), kernel),
        _ => return None,
    };
    let kernel = written(kernel);
    let plain = kernel.split('<').next().unwrap_or(&kernel);
    let mut found = functions_named(db, file, plain)
        .into_iter()
        .filter(|f| f.has_body(db) && f.signature(db).kernel);
    let aggregated = found.next()?;
    if found.next().is_some() {
        return None;
    }
    Some(Aggregator {
        name,
        statement,
        granularity,
        arguments: arguments.iter().map(written).collect(),
        noted: false,
        collected: collected(db, aggregated)?,
        kernel,
    })
}

/// Reads an aggregated kernel.
pub fn collected<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Option<Collected<'db>> {
    let file = kernel.file(db);
    let text = file.text(db);
    let tokens = tokens_in(db, file, place(db, kernel).range);
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
    let batch = (0..tokens.len())
        .find(|i| matches!(word(*i), "Batch" | "NestedBatch" | "ShapedBatch" | "StreamBatch") && word(i + 1) == "<")?;
    let record = word(batch + 2).to_owned();
    let (types, _) = list(&text, &tokens, batch + 1)?;
    let sizes = types.iter().skip(1).filter_map(|range| text.get(range.clone()));
    let block = sizes.filter_map(|name| block_constant(db, file, name)).collect();
    let params = kernel.signature(db).params_span.shift(kernel.start(db));
    let open = tokens.iter().position(|t| t.start as u32 == params.start)?;
    let (params, _) = list(&text, &tokens, open)?;
    let name_of = |range: &Range<usize>| {
        let code = text.get(range.clone()).unwrap_or("");
        lex::identifiers(code).last().map(str::to_owned)
    };
    let parameters: Option<Vec<String>> = params.iter().skip(1).map(name_of).collect();
    // for_each_block([&](…) { worker<…>(…); }), or for_each_thread
    let each =
        (0..tokens.len()).find(|i| matches!(word(*i), "for_each_block" | "for_each_thread" | "for_each_warp"))?;
    let run = run_of(db, file, &text, &tokens, each)?;
    if run.next != "}" {
        return None;
    }
    let (fields, structure) = record_of(db, file, &record)?;
    Some(Collected {
        kernel: Some(kernel),
        record,
        fields,
        structure,
        parameters: parameters?,
        worker: run.worker,
        arguments: run.arguments,
        block,
    })
}

/// Reads what a kernel's own threads run; and the function with the child's body, as it is named there.
fn in_parent<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    collector: &str,
    record: &str,
    block: &[String],
) -> Option<(Collected<'db>, String)> {
    let file = parent.file(db);
    let text = file.text(db);
    let tokens = tokens_in(db, file, place(db, parent).range);
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
    let each =
        (2..tokens.len()).find(|i| word(*i) == "for_each_thread" && word(i - 1) == "." && word(i - 2) == collector)?;
    let run = run_of(db, file, &text, &tokens, each)?;
    let record = unqualified(record.split('<').next().unwrap_or(record).trim_end()).to_owned();
    let (fields, structure) = record_of(db, file, &record)?;
    let own = format!("{}.", run.record);
    let shared = run.arguments.iter().filter(|argument| !argument.starts_with(&own));
    Some((
        Collected {
            kernel: None,
            record,
            fields,
            structure,
            parameters: shared.cloned().collect(),
            worker: run.worker,
            arguments: run.arguments,
            block: block.iter().filter_map(|name| block_constant(db, file, name)).collect(),
        },
        run.called,
    ))
}

/// The call of the function with a child's body in `for_each_block([&](…, const child_args& args) { worker<…>(…); })`.
struct Run<'a, 'db> {
    worker: FunctionItem<'db>,
    /// The function, as it is named there.
    called: String,
    arguments: Vec<String>,
    /// The name of the lambda's last parameter.
    record: String,
    /// The word behind the statement.
    next: &'a str,
}

/// Reads it; `each`: the token of the function that gets the lambda.
fn run_of<'a, 'db>(
    db: &'db dyn Db,
    file: SourceFile,
    text: &'a str,
    tokens: &[Token],
    each: usize,
) -> Option<Run<'a, 'db>> {
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(text));
    let brace = (each..tokens.len()).find(|i| word(*i) == "{")?;
    let record = word(brace.checked_sub(2)?).to_owned();
    // The name may have scopes.
    let mut name = brace + 1;
    while word(name + 1) == ":" && word(name + 2) == ":" {
        name += 3;
    }
    let open = match word(name + 1) {
        "<" => list(text, tokens, name + 1)?.1 + 1,
        _ => name + 1,
    };
    let (arguments, close) = list(text, tokens, open)?;
    let stands = |at: usize, words: &[&str]| words.iter().enumerate().all(|(k, w)| word(at + k) == *w);
    let barrier = [";", "__syncthreads", "(", ")"];
    let end = close + 1 + if stands(close + 1, &barrier) { barrier.len() } else { 0 };
    if !stands(end, &[";", "}", ")", ";"]) {
        return None;
    }
    let builtin = |a: &String| ["threadIdx", "blockIdx", "gridDim", "blockDim"].contains(&a.as_str());
    // In front of these stand the collectors for its launches.
    let arguments: Vec<String> = arguments
        .iter()
        .map(|a| text.get(a.clone()).unwrap_or("").to_owned())
        .skip_while(|a| !builtin(a))
        .skip_while(builtin)
        .collect();
    let written = text.get(tokens.get(brace + 1)?.start..tokens.get(open)?.start)?;
    let called: String = written.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = called.split('<').next().unwrap_or(&called);
    let mut workers = functions_named(db, file, plain).into_iter().filter(|f| f.has_body(db));
    Some(Run {
        worker: workers.next()?,
        called: called.clone(),
        arguments,
        record,
        next: word(end + 4),
    })
}

/// The members of a struct of arguments, types and names, and where it stands with its template header.
fn record_of(db: &dyn Db, file: SourceFile, record: &str) -> Option<(Vec<(String, String)>, FileRange)> {
    let text = file.text(db);
    let structure = struct_named(db, file, record)?;
    let own = tokens_in(db, file, structure.range);
    let word = |index: usize| own.get(index).map_or("", |t| t.text(&text));
    let open = (0..own.len()).find(|at| word(*at) == "struct" && word(at + 2) == "{")? + 2;
    let mut fields = Vec::new();
    let (mut start, mut end) = (open + 1, open + 1);
    while own.get(end)?.text(&text) != "}" {
        // A member function, which says how many threads do something.
        if end == start && word(end) == "__device__" {
            end = (end..own.len()).find(|i| word(*i) == "}")? + 1;
            start = end;
            continue;
        }
        if word(end) == ";" {
            let name = own.get(end.checked_sub(1)?)?;
            let ty = text.get(own.get(start)?.start..name.start)?.trim().to_owned();
            fields.push((ty, name.text(&text).to_owned()));
            start = end + 1;
        }
        end += 1;
    }
    Some((fields, structure))
}

/// The constant that a rewrite has declared for a child's block, if that is one.
fn block_constant(db: &dyn Db, file: SourceFile, name: &str) -> Option<(String, String, FileRange)> {
    let (value, place) = constant(db, file, unqualified(name))?;
    let from = target::above_comment(db, file, place.range.start as usize);
    let ours = file.text(db).get(from..)?.starts_with(shared_block::COMMENT);
    ours.then(|| (unqualified(name).to_owned(), value, place))
}
