//! Takes `aggregate-*` back where what is collected launches more: kernels whose bodies have moved to functions that get the collectors, and
//! aggregated kernels with collectors of their own. All of them are taken back together, as one rewrite has made them.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{declarations_of, functions_named, other_mentions};

use super::aggregated;
use super::collector::{self, Aggregator};
use super::launch::Looks;
use super::layer::{Peeled, of_all_looks};
use super::text::{
    child_of, delete_item, delete_with_gap, is_used_elsewhere, list, place, put_body_back, put_head_back, source,
};
use crate::api::rewrite::Rewrite;
use crate::edit::builder::EditBuilder;
use crate::facts::cluster::{Function, NESTED_BATCH};
use crate::facts::site::function_around;

/// How many functions such kernels have at most.
const MOST: usize = 64;

/// A kernel with collectors that a launch of its own starts: no aggregated one.
struct Parent<'db> {
    kernel: FunctionItem<'db>,
    aggregators: Vec<Aggregator<'db>>,
    /// The function that its body has moved to.
    worker: Option<FunctionItem<'db>>,
}

/// Whether a function is a part of what is taken back here.
pub fn is_part<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    takes_collectors(db, function)
        || is_nested(db, function)
        || aggregated_kernels(db, function)
            .iter()
            .any(|kernel| is_nested(db, *kernel))
}

/// Whether a kernel runs what was collected, and collects in its turn.
fn is_nested<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> bool {
    source(db, kernel).contains(&format!("{NESTED_BATCH}<"))
}

/// Whether a function gets the collectors that its launches go to.
fn takes_collectors<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    if function.signature(db).kernel {
        return false;
    }
    !kernels_with_worker(db, function).is_empty()
}

/// The kernels that call a function with collectors of theirs.
fn kernels_with_worker<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<FunctionItem<'db>> {
    if !source(db, function).contains(".launch(") {
        return Vec::new();
    }
    let mentions = other_mentions(db, function).into_iter();
    let around = mentions.filter_map(|mention| function_around(db, mention));
    let mut found: Vec<FunctionItem<'db>> = Vec::new();
    for kernel in around.filter(|f| f.signature(db).kernel && source(db, *f).contains("gridfuse::Aggregator<")) {
        if !found.contains(&kernel) {
            found.push(kernel);
        }
    }
    found
}

/// The aggregated kernels that a function names as those of its collectors.
fn aggregated_kernels<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<FunctionItem<'db>> {
    let text = function.file(db).text(db);
    let tokens = collector::tokens_in(db, function.file(db), place(db, function).range);
    let mut found = Vec::new();
    for index in collector::declared(&text, &tokens) {
        let Some((types, _)) = list(&text, &tokens, index + 4) else {
            continue;
        };
        let [_, kernel] = types.as_slice() else { continue };
        let name = text.get(kernel.clone()).unwrap_or("").split('<').next().unwrap_or("");
        let kernels = functions_named(db, function.file(db), name).into_iter();
        for kernel in kernels.filter(|f| f.has_body(db) && f.signature(db).kernel) {
            if !found.contains(&kernel) {
                found.push(kernel);
            }
        }
    }
    found
}

/// The kernel whose body has moved to a function with collectors.
pub fn child_name<'db>(db: &'db dyn Db, worker: FunctionItem<'db>) -> Option<String> {
    let mut kernels = kernels_with_worker(db, worker)
        .into_iter()
        .filter(|k| !runs_batch(db, *k));
    let kernel = kernels.next()?;
    kernels
        .next()
        .is_none()
        .then(|| unqualified(kernel.name(db)).to_owned())
}

/// Whether a kernel runs what was collected.
fn runs_batch<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> bool {
    Function::new(db, kernel).batch().is_some()
}

/// Takes the aggregation off all the kernels of which `function` is a part.
pub fn peel<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    table: &[Rewrite],
    stream: &str,
    why: &mut Option<String>,
) -> Option<Peeled> {
    of_all_looks(aggregated::looks_of(stream), |looks| {
        peeled(db, function, table, (stream, looks), why)
    })
}

fn peeled<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    table: &[Rewrite],
    launched: (&str, Looks),
    why: &mut Option<String>,
) -> Option<Peeled> {
    let (kernels, parents) = cluster(db, function)?;
    let granularity = &parents.first()?.aggregators.first()?.granularity;
    let all = || parents.iter().flat_map(|parent| &parent.aggregators);
    if all().any(|a| a.granularity != *granularity) {
        return None;
    }
    let (layer, options) = collector::layer_of(granularity, table)?;
    let mut edit = EditBuilder::new(db);
    let mut deleted: Vec<FileRange> = Vec::new();
    for parent in &parents {
        match parent.worker {
            Some(worker) => {
                let range = worker.body_span(db).shift(worker.start(db));
                aggregated::launches(db, &parent.aggregators, worker, range, launched, &mut edit)?;
                put_head_back(
                    &mut edit,
                    db,
                    worker,
                    parent.kernel,
                    &aggregated::arenas_of(&parent.aggregators),
                )?;
                deleted.extend([place(db, parent.kernel), place(db, worker)]);
            }
            None => {
                aggregated::delete_declarations(db, parent.kernel, &parent.aggregators, true, &mut edit);
                deleted.extend(parent.aggregators.iter().map(|a| a.statement));
                let range = place(db, parent.kernel).range;
                aggregated::launches(db, &parent.aggregators, parent.kernel, range, launched, &mut edit)?;
            }
        }
    }
    for kernel in &kernels {
        let collected = collector::collected(db, *kernel)?;
        let declared = declarations_of(db, *kernel);
        let mut gone: Vec<FileRange> = declared.iter().map(|d| place(db, *d)).collect();
        gone.push(place(db, *kernel));
        // A kernel that stands further down is declared above, with the struct.
        match gone.split_last() {
            Some((_, [first])) if first.file == collected.structure.file => {
                let range = TextRange::new(collected.structure.range.start, first.range.end);
                delete_with_gap(&mut edit, FileRange { range, ..*first });
            }
            Some((_, [])) => delete_item(&mut edit, collected.structure),
            _ => return None,
        }
        delete_item(&mut edit, place(db, *kernel));
        deleted.extend(gone);
        deleted.push(collected.structure);
        let own = parents.iter().any(|parent| parent.worker == Some(collected.worker));
        if !own {
            put_body_back(
                &mut edit,
                db,
                collected.worker,
                &child_of(db, collected.worker)?,
                &deleted,
            );
        }
    }
    for kernel in &kernels {
        let mut except = deleted.clone();
        for parent in &parents {
            except.push(place(db, parent.kernel));
            except.extend(aggregated::arena_arguments(db, parent.kernel));
        }
        if is_used_elsewhere(db, kernel.file(db), unqualified(kernel.name(db)), &except) {
            *why = Some(format!(
                "`{}` is used in other places, too, so what it collects can't be taken back",
                unqualified(kernel.name(db))
            ));
            return None;
        }
    }
    for parent in &parents {
        let written = parent.worker.is_some();
        for arena in aggregated::arenas_of(&parent.aggregators) {
            aggregated::remove_arena(db, parent.kernel, arena, &deleted, written, &mut edit)?;
        }
    }
    let own = parents
        .iter()
        .find(|parent| parent.kernel == function || parent.worker == Some(function))
        .or_else(|| parents.iter().find(|parent| parent.worker.is_some()))?;
    Some(Peeled {
        edits: vec![edit.finish().ok()?],
        layer,
        options,
        index: 0,
        function: Some(own.kernel.name(db).to_owned()),
    })
}

/// The aggregated kernels that belong together with a function, and all other kernels with collectors for them.
fn cluster<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<(Vec<FunctionItem<'db>>, Vec<Parent<'db>>)> {
    let (mut kernels, mut parents): (Vec<FunctionItem<'db>>, Vec<FunctionItem<'db>>) = Default::default();
    let mut todo = kernels_with_worker(db, function);
    todo.push(function);
    while let Some(next) = todo.pop() {
        if kernels.len() + parents.len() + todo.len() > MOST {
            return None;
        }
        if kernels.contains(&next) || parents.contains(&next) {
            continue;
        }
        let named = aggregated_kernels(db, next);
        if runs_batch(db, next) {
            kernels.push(next);
            let around = other_mentions(db, next)
                .into_iter()
                .filter_map(|mention| function_around(db, mention));
            let with_collectors = around.filter(|f| source(db, *f).contains("gridfuse::Aggregator<"));
            todo.extend(with_collectors.filter(|f| f.signature(db).kernel));
        } else if next.signature(db).kernel && !named.is_empty() {
            parents.push(next);
        }
        todo.extend(named);
    }
    kernels.sort_by_key(|f| (f.file(db).path(db).to_path_buf(), f.start(db)));
    parents.sort_by_key(|f| (f.file(db).path(db).to_path_buf(), f.start(db)));
    let parents: Option<Vec<_>> = parents.into_iter().map(|kernel| parent(db, kernel)).collect();
    Some((kernels, parents?))
}

/// A kernel with its collectors, and what it calls with them.
fn parent<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Option<Parent<'db>> {
    let text = kernel.file(db).text(db);
    let tokens = collector::tokens_in(db, kernel.file(db), place(db, kernel).range);
    let declared = collector::declared(&text, &tokens).into_iter();
    let aggregators: Option<Vec<_>> = declared
        .map(|index| collector::declaration(db, kernel, &text, &tokens, index))
        .collect();
    let aggregators = aggregators?;
    let last = aggregators.iter().map(|a| a.statement.range.end).max()?;
    let rest: Vec<&str> = tokens
        .iter()
        .filter(|t| t.start as u32 >= last)
        .map(|t| t.text(&text))
        .collect();
    let open = rest.iter().position(|word| *word == "(")?;
    let called = rest.first().zip(rest.get(open + 1));
    let calls = called.filter(|(_, first)| aggregators.iter().any(|a| a.name == **first));
    let worker = match calls {
        Some((name, _)) => {
            let mut found = functions_named(db, kernel.file(db), name).into_iter();
            Some(found.find(|f| f.has_body(db) && f.signature(db).device && f.file(db) == kernel.file(db))?)
        }
        None => None,
    };
    Some(Parent {
        kernel,
        aggregators,
        worker,
    })
}
