//! Takes `promote*`, `persistent-loop` and `flatten-recursion` back: kernels whose bodies have become functions, which get an object of the
//! runtime for the launches that stood there.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::launches;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{declarations_of, functions_named, launch_sites_of, other_mentions};
use gridfuse_analysis::hir::{StmtKind, body};

use super::aggregated::{arguments_of, remove_item};
use super::collector::tokens_in;
use super::launch::{put_noted_back, put_statements_back};
use super::layer::Peeled;
use super::text::{delete_item, delete_with_gap, list, place, put_head_back, struct_named};
use crate::api::rewrite::{Layer, Options};
use crate::edit::builder::EditBuilder;
use crate::edit::lex::{self, Token};
use crate::facts::site::{Site, function_around};
use crate::transforms::promotion::{CHAIN_BLOCKS, MEMORY};

/// A kernel that declares an object of the runtime and runs its former body with it.
struct Kernel<'db> {
    item: FunctionItem<'db>,
    /// The function with the body.
    worker: FunctionItem<'db>,
    object: Object,
}

/// `gridfuse::Chain<compact_args> chain(memory, {tile, offset});`
struct Object {
    /// `Chain`
    runner: String,
    /// Its template arguments.
    types: Vec<String>,
    name: String,
    /// Its first argument.
    first: Option<String>,
    /// Where the declaration ends.
    end: usize,
}

/// All that one such rewrite has made.
struct Renewed<'db> {
    layer: Layer,
    kernels: Vec<Kernel<'db>>,
    /// Kernels that launch nothing, whose bodies the kernel that stays runs as well, with the functions that have them.
    leaves: Vec<(FunctionItem<'db>, FunctionItem<'db>)>,
    /// The kernel that stays, whose blocks run those of all grids.
    stays: Option<FunctionItem<'db>>,
    /// The struct of the arguments that differ.
    record: Option<FileRange>,
    /// The function that says whether a link launches another one.
    goes_on: Option<FunctionItem<'db>>,
}

/// Takes it off all the kernels of which `function` is a part; `None` where there is none, `Some(None)` where it was edited.
pub fn peel<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Option<Peeled>> {
    let first = kernel_of(db, function)?;
    Some(renewed(db, first).and_then(|renewed| peeled(db, function, &renewed)))
}

fn peeled<'db>(db: &'db dyn Db, function: FunctionItem<'db>, renewed: &Renewed<'db>) -> Option<Peeled> {
    let mut edit = EditBuilder::new(db);
    let names: Vec<&str> = renewed
        .kernels
        .iter()
        .map(|kernel| kernel.item)
        .chain(renewed.leaves.iter().map(|(item, _)| *item))
        .map(|item| unqualified(item.name(db)))
        .collect();
    let is_own = |kernel: &&Kernel<'db>| kernel.item == function || kernel.worker == function;
    let own = renewed.kernels.iter().find(is_own).or(renewed.kernels.first())?;
    let mut index = None;
    for kernel in &renewed.kernels {
        let at = put_launches_back(db, kernel, &names, &mut edit)?;
        if std::ptr::eq(kernel, own) {
            index = Some(at);
        }
        delete_waits(db, kernel, &mut edit);
        let memory = kernel.object.first.as_deref().filter(|_| renewed.stays.is_none());
        let added: Vec<&str> = memory.filter(|_| is_chain(kernel)).into_iter().collect();
        put_head_back(&mut edit, db, kernel.worker, kernel.item, &added)?;
        if is_chain(kernel) {
            put_entries_back(db, kernel, &mut edit)?;
        }
    }
    for (item, worker) in &renewed.leaves {
        put_head_back(&mut edit, db, *worker, *item, &[])?;
    }
    if let Some(item) = renewed.goes_on {
        delete_item(&mut edit, place(db, item));
    }
    let mut above = renewed.record;
    if let Some(stays) = renewed.stays {
        put_calls_back(db, stays, &names, &mut edit)?;
        delete_item(&mut edit, place(db, stays));
        let declared: Vec<FileRange> = declarations_of(db, stays).into_iter().map(|d| place(db, d)).collect();
        let [declared] = declared.as_slice() else { return None };
        above = above
            .filter(|record| record.file == declared.file)
            .map(|record| FileRange {
                range: TextRange::new(record.range.start, declared.range.end),
                ..record
            });
        above?;
    }
    if let Some(above) = above {
        delete_with_gap(&mut edit, above);
    }
    Some(Peeled {
        edits: vec![edit.finish().ok()?],
        layer: renewed.layer,
        options: Options::default(),
        index: index?,
        function: Some(own.item.name(db).to_owned()),
    })
}

fn is_chain(kernel: &Kernel<'_>) -> bool {
    matches!(kernel.object.runner.as_str(), "Chain" | "DecoupledLookback")
}

/// The kernel of which a function has the body, or that it is.
fn kernel_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<FunctionItem<'db>> {
    let has_object = |f: &FunctionItem<'db>| f.signature(db).kernel && object(db, *f).is_some();
    if function.signature(db).kernel {
        return Some(function).filter(has_object);
    }
    let mentions = other_mentions(db, function).into_iter();
    let mut around = mentions.filter_map(|mention| function_around(db, mention));
    around.find(has_object)
}

/// The object of the runtime that a kernel declares to run a body.
fn object(db: &dyn Db, kernel: FunctionItem<'_>) -> Option<Object> {
    const RUNNERS: [&str; 5] = ["Chain", "DecoupledLookback", "BlockLoop", "Loop", "Recursion"];
    let file = kernel.file(db);
    let (text, tokens) = (&*file.text(db), tokens_in(db, file, body_of(db, kernel)));
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(text));
    let declares = |at: &usize| {
        word(*at) == "gridfuse" && word(at + 1) == ":" && RUNNERS.contains(&word(at + 3)) && word(at + 4) == "<"
    };
    let at = (0..tokens.len()).find(declares)?;
    let (types, close) = list(text, &tokens, at + 4)?;
    let (arguments, end) = match word(close + 2) {
        "(" => list(text, &tokens, close + 2)?,
        _ => (Vec::new(), close + 1),
    };
    let code = |range: std::ops::Range<usize>| text.get(range).unwrap_or("").to_owned();
    Some(Object {
        runner: word(at + 3).to_owned(),
        types: types.into_iter().map(code).collect(),
        name: word(close + 1).to_owned(),
        first: arguments.into_iter().next().map(code),
        end: tokens.get(end)?.end,
    })
}

fn body_of(db: &dyn Db, function: FunctionItem<'_>) -> TextRange {
    function.body_span(db).shift(function.start(db))
}

/// A kernel, with the function that it calls with its object.
fn kernel<'db>(db: &'db dyn Db, item: FunctionItem<'db>) -> Option<Kernel<'db>> {
    let object = object(db, item)?;
    let (file, text) = (item.file(db), item.file(db).text(db));
    let tokens = tokens_in(db, file, body_of(db, item));
    let worker = (0..tokens.len())
        .filter(|at| tokens[*at].start >= object.end)
        .find_map(|at| {
            let open = match tokens.get(at + 1)?.text(&text) {
                "<" => list(&text, &tokens, at + 1)?.1 + 1,
                _ => at + 1,
            };
            let calls = tokens.get(open)?.text(&text) == "(" && tokens.get(open + 1)?.text(&text) == object.name;
            let mut found = functions_named(db, file, tokens[at].text(&text)).into_iter();
            found.find(|f| calls && f.has_body(db) && f.signature(db).device && f.file(db) == file)
        })?;
    Some(Kernel { item, worker, object })
}

/// What belongs together with a kernel.
fn renewed<'db>(db: &'db dyn Db, first: FunctionItem<'db>) -> Option<Renewed<'db>> {
    let own = kernel(db, first)?;
    let file = first.file(db);
    let plain = |ty: &str| ty.split('<').next().unwrap_or(ty).trim().to_owned();
    let type_of = |object: &Object| object.types.first().map(|ty| plain(ty));
    if matches!(own.object.runner.as_str(), "Loop" | "Recursion") {
        let layer = match own.object.runner.as_str() {
            "Loop" => Layer::Looped,
            _ => Layer::Flattened,
        };
        let name = type_of(&own.object)?;
        let named = functions_named(db, file, &name).into_iter();
        let stays = named.filter(|f| f.has_body(db) && f.signature(db).kernel).last()?;
        let around = other_mentions(db, stays).into_iter();
        let around = around.filter_map(|mention| function_around(db, mention));
        let mut items: Vec<FunctionItem<'db>> = Vec::new();
        for item in around.filter(|f| f.signature(db).kernel && f.has_body(db) && *f != stays) {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        items.sort_by_key(|item| item.start(db));
        let kernels: Option<Vec<Kernel<'db>>> = items.into_iter().map(|item| kernel(db, item)).collect();
        let record = memory_type(db, stays)?;
        let kernels = kernels.filter(|kernels| !kernels.is_empty())?;
        return Some(Renewed {
            layer,
            leaves: leaves(db, stays, &kernels),
            kernels,
            stays: Some(stays),
            record: Some(struct_named(db, file, &plain(&record))?),
            goes_on: None,
        });
    }
    let goes_on = goes_on(db, first);
    let layer = match own.object.runner.as_str() {
        "BlockLoop" => Layer::Looped,
        "DecoupledLookback" => Layer::Promoted("lookback"),
        _ if goes_on.is_some() => Layer::Promoted("overlap"),
        _ => Layer::Promoted("wait"),
    };
    let record = match own.object.runner.as_str() {
        "DecoupledLookback" => None,
        _ => type_of(&own.object).filter(|name| !name.is_empty()),
    };
    let record = match record {
        Some(name) => Some(struct_named(db, file, &name)?),
        None => None,
    };
    Some(Renewed {
        layer,
        leaves: Vec::new(),
        kernels: vec![own],
        stays: None,
        record,
        goes_on,
    })
}

/// The kernels that launch nothing, of those whose bodies the kernel that stays runs.
fn leaves<'db>(
    db: &'db dyn Db,
    stays: FunctionItem<'db>,
    kernels: &[Kernel<'db>],
) -> Vec<(FunctionItem<'db>, FunctionItem<'db>)> {
    let (file, text) = (stays.file(db), stays.file(db).text(db));
    let tokens = tokens_in(db, file, body_of(db, stays));
    let mut found: Vec<(FunctionItem<'db>, FunctionItem<'db>)> = Vec::new();
    for at in 0..tokens.len() {
        let called = tokens
            .get(at + 1)
            .is_some_and(|next| matches!(next.text(&text), "(" | "<"));
        let named = functions_named(db, file, tokens[at].text(&text)).into_iter();
        let worker = named
            .filter(|f| called && f.has_body(db) && f.signature(db).device && f.file(db) == file)
            .find(|f| !kernels.iter().any(|kernel| kernel.worker == *f) && !found.iter().any(|(_, known)| known == f));
        let Some(worker) = worker else { continue };
        let around = other_mentions(db, worker).into_iter();
        let mut around = around.filter_map(|mention| function_around(db, mention));
        let kernel = around.find(|f| f.signature(db).kernel && f.has_body(db) && *f != stays);
        found.extend(kernel.map(|kernel| (kernel, worker)));
    }
    found
}

/// The template argument of a kernel's first parameter: `gridfuse::Iterations<relax_args> iterations`.
fn memory_type(db: &dyn Db, kernel: FunctionItem<'_>) -> Option<String> {
    let (file, text) = (kernel.file(db), kernel.file(db).text(db));
    let params = kernel.signature(db).params_span.shift(kernel.start(db));
    let tokens = tokens_in(db, file, params);
    let open = tokens.iter().position(|t| t.text(&text) == "<")?;
    let (types, _) = list(&text, &tokens, open)?;
    Some(text.get(types.into_iter().next()?)?.to_owned())
}

/// The function by which a kernel of a chain asks whether there is such a link.
fn goes_on<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Option<FunctionItem<'db>> {
    let (file, text) = (kernel.file(db), kernel.file(db).text(db));
    let tokens = tokens_in(db, file, body_of(db, kernel));
    let returns = tokens.iter().position(|t| t.text(&text) == "return")?;
    let name = tokens.get(returns + 1)?.text(&text);
    let mut found = functions_named(db, file, name).into_iter();
    found.find(|f| f.has_body(db) && f.signature(db).device && f.file(db) == file)
}

/// Puts the launches back that notes tell of, in the function with the body; the number of the first among those of the function.
fn put_launches_back(db: &dyn Db, kernel: &Kernel<'_>, names: &[&str], edit: &mut EditBuilder<'_>) -> Option<u32> {
    let (worker, object) = (kernel.worker, &kernel.object.name);
    let (file, text) = (worker.file(db), worker.file(db).text(db));
    let tokens = tokens_in(db, file, body_of(db, worker));
    let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
    let mut first = None;
    for at in 0..tokens.len() {
        let launches = word(at) == object
            && word(at + 1) == "."
            && matches!(word(at + 2), "launch" | "launch_child" | "launch_at_once");
        if !launches {
            continue;
        }
        let (_, close) = list(&text, &tokens, at + 3)?;
        let range = TextRange::new(tokens[at].start as u32, tokens.get(close)?.end as u32);
        put_back(edit, FileRange { file, range }, names)?;
        first = first.or(Some(range.start));
    }
    put_statements_back(
        edit,
        FileRange {
            file,
            range: body_of(db, worker),
        },
    );
    let before = |start: u32| {
        launches(db, worker)
            .iter()
            .filter(|l| l.span.start + worker.start(db) < start)
            .count()
    };
    first.map(|start| before(start) as u32)
}

fn put_back(edit: &mut EditBuilder<'_>, call: FileRange, names: &[&str]) -> Option<()> {
    names.iter().find_map(|name| put_noted_back(edit, call, name))
}

/// Deletes the statements in which a link waits for the one before.
fn delete_waits(db: &dyn Db, kernel: &Kernel<'_>, edit: &mut EditBuilder<'_>) {
    let (worker, object) = (kernel.worker, &kernel.object.name);
    let (file, text) = (worker.file(db), worker.text(db));
    let body = body(db, worker);
    let mut record: Option<String> = None;
    for stmt in body
        .stmts
        .iter()
        .filter(|s| matches!(s.kind, StmtKind::Decl(_) | StmtKind::Expr(_)))
    {
        let code = stmt.span.text(&text);
        let words = lex::code_words(code);
        let waits = ["wait", "wait_at_once", "before"]
            .iter()
            .any(|member| words.windows(3).any(|w| w == [object.as_str(), ".", member]));
        // `int offset = args.offset;`
        let reads = record.as_ref().is_some_and(|record| {
            let at = words.iter().position(|word| *word == "=");
            at.is_some_and(|at| words.get(at + 1) == Some(&record.as_str()) && words.get(at + 2) == Some(&"."))
        });
        if !waits && !reads {
            continue;
        }
        if waits && words.first() == Some(&"const") {
            let at = words.iter().position(|word| *word == "=");
            record = at
                .and_then(|at| words.get(at.checked_sub(1)?))
                .map(|name| (*name).to_owned());
        }
        let range = stmt.span.shift(worker.start(db));
        edit.delete_lines(FileRange { file, range });
    }
}

/// Takes the memory of a chain away, and puts one block in place of many, where the kernel is launched by the host and declared.
fn put_entries_back(db: &dyn Db, kernel: &Kernel<'_>, edit: &mut EditBuilder<'_>) -> Option<()> {
    for declared in declarations_of(db, kernel.item) {
        let (file, text) = (declared.file(db), declared.file(db).text(db));
        let params = declared.signature(db).params_span.shift(declared.start(db));
        let tokens = lex::code_tokens_of(db, file);
        let open = tokens.iter().position(|t| t.start as u32 == params.start)?;
        let (params, _) = list(&text, tokens, open)?;
        let at = params
            .iter()
            .position(|p| text.get(p.clone()).is_some_and(|code| code.starts_with(MEMORY)))?;
        remove_item(edit, file, &params, at);
    }
    for id in launch_sites_of(db, kernel.item)
        .into_iter()
        .filter(|id| id.function != kernel.worker)
    {
        let host = Site::new(db, id).ok()?;
        if put_noted_back(edit, host.here(), unqualified(kernel.item.name(db))).is_some() {
            continue;
        }
        if !host.source(host.facts.grid.operand.span).starts_with(CHAIN_BLOCKS) {
            return None;
        }
        edit.replace(host.place(host.facts.grid.operand.span), "1");
        let arguments = arguments_of(&host)?;
        remove_item(edit, host.file, &arguments, arguments.len().checked_sub(1)?);
    }
    Some(())
}

/// Puts the launches back where the host launches the kernel that stays: `gridfuse::launch_loop<relax_loop>(…)`.
fn put_calls_back(db: &dyn Db, stays: FunctionItem<'_>, names: &[&str], edit: &mut EditBuilder<'_>) -> Option<()> {
    const CALLS: [&str; 3] = ["launch_loop", "launch_growing_loop", "launch_recursion"];
    let mut found = false;
    let mut done: Vec<SourceFile> = Vec::new();
    for FileRange { file, .. } in other_mentions(db, stays) {
        if done.contains(&file) {
            continue;
        }
        done.push(file);
        let (text, tokens): (_, &[Token]) = (file.text(db), lex::code_tokens_of(db, file));
        let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
        for at in 0..tokens.len() {
            let calls = word(at) == "gridfuse" && CALLS.contains(&word(at + 3)) && word(at + 4) == "<";
            if !calls {
                continue;
            }
            let (types, close) = list(&text, tokens, at + 4)?;
            let launched = types.first().and_then(|ty| text.get(ty.clone()));
            let launched = launched.map(|name| unqualified(name.split('<').next().unwrap_or(name)));
            if launched != Some(unqualified(stays.name(db))) {
                continue;
            }
            let (_, end) = list(&text, tokens, close + 1)?;
            let range = TextRange::new(tokens[at].start as u32, tokens.get(end)?.end as u32);
            put_back(edit, FileRange { file, range }, names)?;
            found = true;
        }
    }
    found.then_some(())
}
