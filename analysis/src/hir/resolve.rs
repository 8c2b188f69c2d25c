//! What a name means in a file, given its includes and the rest of the workspace.

use std::collections::{BTreeSet, HashMap, HashSet};

use std::path::{Component, Path, PathBuf};

use crate::base::db::{Db, SourceFile, Workspace};
pub use crate::base::include::normalize;
use crate::base::include::{including_files, resolve_include};
use crate::base::place::FileRange;
use crate::base::preprocess::MacroItem;
use crate::base::preprocess::MacroState;
use crate::base::span::{Span, TextRange};
pub use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, FunctionText, GlobalItem, items};
use crate::hir::macros::function_macros;
use crate::hir::mentions::{count_mentions, files_mentioning, functions_mentioning, may_declare, places_of};
use crate::hir::named_in_strings::named_in_strings;
use crate::hir::names::unqualified;
use crate::hir::runtime_header::is_runtime_header;
use crate::hir::scope::hides;
use crate::hir::visible::{Names, Visible, visible, visible_names};
use crate::hir::word::Word;
use crate::hir::{Expr, ExprKind, Name, body, parameters};

/// What a plain name that is not a local variable means in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<'db> {
    /// Functions of that name (overloads, definitions and declarations).
    Functions(Vec<FunctionItem<'db>>),
    /// A variable at namespace scope.
    Global(GlobalItem),
    /// An enumerator, with its value, where a literal says it and all of that name in sight have the same.
    Enumerator(Option<i64>),
    /// A macro with exactly one definition.
    Macro(MacroItem),
    /// A type.
    Type,
    /// Not known: a name from a header outside the workspace, an ambiguous macro, a template parameter.
    Unknown,
}

/// Looks up `name` (possibly qualified) as seen from `file`.
pub fn meaning<'db>(db: &'db dyn Db, file: SourceFile, name: &str) -> Meaning<'db> {
    let names = visible_names(db, file);
    let last = unqualified(name);
    if names.ambiguous_macros.contains(last) {
        return Meaning::Unknown;
    }
    if let Some(item) = names.macros.get(last) {
        return Meaning::Macro(item.clone());
    }
    let visible = visible(db, file);
    // What is blanked may declare another one.
    let blanked = visible.blanked.contains(&Word::new(last));
    if blanked && visible.globals.contains_key(last) {
        return Meaning::Unknown;
    }
    let global = visible.globals.get(last).filter(|global| {
        let scopes = global.scopes.iter();
        !name.trim_start_matches("::").contains("::")
            || scopes
                .map(|scope| format!("{scope}{last}"))
                .any(|full| qualification_fits(&full, name) && !is_elsewhere(visible, names, &full, name))
    });
    // Which of the two is meant, their scopes decide.
    if global.is_some() && visible.enumerators.contains_key(last) {
        return Meaning::Unknown;
    }
    // A variable in sight hides functions of files that aren't.
    if let Some(global) = global
        && !visible.functions.contains_key(last)
    {
        return Meaning::Global(global.clone());
    }
    let functions = functions_named(db, file, name);
    if !functions.is_empty() {
        return Meaning::Functions(functions);
    }
    if let Some(global) = global {
        return Meaning::Global(global.clone());
    }
    if let Some(value) = visible.enumerators.get(last) {
        return Meaning::Enumerator(value.filter(|_| !blanked));
    }
    if names.types.contains(last) || names.aliases.contains_key(last) {
        return Meaning::Type;
    }
    Meaning::Unknown
}

/// Looks up `name` as it is written in `function`: what its own scope has isn't told apart, nor are functions and a variable that other
/// scopes have by that name.
pub fn meaning_in<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> Meaning<'db> {
    if hides(db, function, name) {
        return Meaning::Unknown;
    }
    let file = function.file(db);
    match meaning(db, file, name) {
        Meaning::Functions(_) if shares_its_name(db, file, name) => Meaning::Unknown,
        found => found,
    }
}

/// The functions that `name`, as it is written in `function`, may mean; none where its own scope, or a variable, has the name.
pub fn functions_in<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> Vec<FunctionItem<'db>> {
    match hides(db, function, name) || shares_its_name(db, function.file(db), name) {
        true => Vec::new(),
        false => functions_named(db, function.file(db), name),
    }
}

/// Whether a variable in sight has the name, in some scope: which of the two is meant, it or a function, their scopes decide. It may be
/// an object that is called, or a pointer to a kernel. So is it where a macro declares something of that name.
pub fn shares_its_name(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    visible(db, file).globals.contains_key(unqualified(name)) || is_made_by_macros(db, file, name)
}

/// Whether a macro, or what isn't parsed, may declare something of this name: another overload, a specialisation of a kernel.
pub fn is_made_by_macros(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    visible(db, file).blanked.contains(&Word::new(unqualified(name)))
}

/// Functions (definitions and declarations) that `name`, as written in `file`, may mean. A declaration whose definition
/// stands in another file of the workspace brings that definition along; a definition that nothing in sight declares means nothing.
pub fn functions_named<'db>(db: &'db dyn Db, file: SourceFile, name: &str) -> Vec<FunctionItem<'db>> {
    let last = unqualified(name);
    let visible = visible(db, file);
    let names = visible_names(db, file);
    let mut found: Vec<FunctionItem<'db>> = visible
        .functions
        .get(last)
        .into_iter()
        .flatten()
        .copied()
        .filter(|f| qualification_fits(f.name(db), name) && !is_elsewhere(visible, names, f.name(db), name))
        .collect();
    // Nearly always, and quickly found: thousands may have that name.
    if !found.is_empty() && found.iter().all(|f| f.has_body(db)) {
        return found;
    }
    let defined: HashSet<&str> = found.iter().filter(|f| f.has_body(db)).map(|f| f.name(db)).collect();
    let named: HashSet<&str> = found.iter().map(|f| f.name(db)).collect();
    if !found.is_empty() && named.is_subset(&defined) {
        return found;
    }
    let declared = |name: &str| named.contains(name) && !defined.contains(name);
    let elsewhere: Vec<_> = definitions_by_name(db)
        .get(last)
        .into_iter()
        .flatten()
        .copied()
        .filter(|f| {
            if found.is_empty() {
                qualification_fits(f.name(db), name)
                    && !is_elsewhere(visible, names, f.name(db), name)
                    && seen_in_context(db, file).may_contain(f.file(db))
            } else {
                declared(f.name(db)) && !f.signature(db).is_static && may_be_linked(db, file, f.file(db))
            }
        })
        .collect();
    found.extend(elsewhere);
    found
}

/// Includers of a file whose includes are taken into account.
const MAX_INCLUDERS: usize = 64;

/// Files that a file doesn't include and yet may rely on.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
struct Context {
    files: HashSet<SourceFile>,
    /// There are more than were looked at.
    more: bool,
}

impl Context {
    /// Whether a file may be one of them.
    fn may_contain(&self, file: SourceFile) -> bool {
        self.more || self.files.contains(&file)
    }
}

/// Files that a file doesn't include and yet may rely on: what is included by the files that include it, and what an `#include`
/// that isn't found means by the end of its path, because the directories in which the compiler looks aren't known.
#[salsa::tracked]
fn seen_in_context(db: &dyn Db, file: SourceFile) -> Context {
    let mut found = HashSet::new();
    let includers = including_files(db, file);
    for includer in includers.iter().take(MAX_INCLUDERS) {
        found.extend(included_files(db, *includer));
    }
    let own = included_files(db, file).iter().copied();
    let around: HashSet<SourceFile> = own.chain(found.iter().copied()).collect();
    let mut missing: BTreeSet<PathBuf> = BTreeSet::new();
    for from in around {
        for include in from.includes(db).iter() {
            let path = Path::new(&include.path);
            // `<cuda_runtime.h>` is the toolkit's.
            let project = !include.system || include.path.contains('/') || path.extension().is_some_and(|e| e == "cuh");
            if project && resolve_include(db, from, include).is_none() {
                let parts = path.components().filter(|c| matches!(c, Component::Normal(_)));
                missing.insert(parts.collect());
            }
        }
    }
    if let Some(workspace) = Workspace::try_get(db).filter(|_| !missing.is_empty()) {
        for (path, other) in workspace.files(db).iter() {
            if missing
                .iter()
                .any(|end| !end.as_os_str().is_empty() && path.ends_with(end))
            {
                found.extend(included_files(db, *other));
            }
        }
    }
    Context {
        files: found,
        more: includers.len() > MAX_INCLUDERS,
    }
}

/// Whether two files can be parts of one program: not if each defines `main`.
fn may_be_linked(db: &dyn Db, a: SourceFile, b: SourceFile) -> bool {
    let mains = definitions_by_name(db).get("main");
    let has_main = |file: SourceFile| {
        mains
            .into_iter()
            .flatten()
            .any(|f| f.file(db) == file && f.name(db) == "main" && !f.signature(db).conditional)
    };
    a == b || !has_main(a) || !has_main(b)
}

/// Whether what stands in no namespace isn't meant by a qualified name, because nothing in sight stands in the one that is named, which
/// might bring it there (`using ::f;`), or because that is a class, which can't: what it doesn't have itself, its bases may.
fn is_elsewhere(visible: &Visible<'_>, names: &Names, full: &str, written: &str) -> bool {
    let qualifier = written
        .trim_start_matches("::")
        .rsplit_once("::")
        .map(|(scopes, _)| unqualified(scopes));
    let is_class = |scope: &str| names.types.contains(scope) || names.aliases.contains_key(scope);
    !full.contains("::") && qualifier.is_some_and(|scope| !visible.scopes.contains(scope) || is_class(scope))
}

/// Whether a function of the qualified name `full` can be meant by `written`.
fn qualification_fits(full: &str, written: &str) -> bool {
    let written = written.trim_start_matches("::");
    if !written.contains("::") {
        // The runtime header has atomics for one thread, and for a warp, by the names of CUDA's. Nobody opens their namespaces.
        return !full.starts_with("gridfuse::serial::") && !full.starts_with("gridfuse::warp_aggregated::");
    }
    // A namespace alias or a using directive may hide outer parts, so a common suffix is enough.
    full == written || full.ends_with(&format!("::{written}")) || written.ends_with(&format!("::{full}"))
}

/// All function definitions of the workspace by unqualified name.
#[salsa::tracked]
pub fn definitions_by_name<'db>(db: &'db dyn Db) -> HashMap<String, Vec<FunctionItem<'db>>> {
    functions_by_name(db, true)
}

/// Identity of a launch site: the function that contains it, and its index in source order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct LaunchId<'db> {
    /// The function (a kernel, a device function or a host function).
    pub function: FunctionItem<'db>,
    /// Index into [`crate::hir::Body::launches`].
    pub index: u32,
}

/// Which kernel is launched.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum Child<'db> {
    /// Exactly one definition with a body is visible.
    Kernel(FunctionItem<'db>),
    /// Several definitions fit (overloads, `#if` alternatives).
    Ambiguous(Vec<FunctionItem<'db>>),
    /// No definition was found in the workspace (a name, a declaration only, a template parameter, a function pointer).
    Unknown,
}

/// The kernel that a launch of `name` with `args` arguments in `function` means.
pub fn resolve_kernel<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str, args: usize) -> Child<'db> {
    let mut candidates: Vec<FunctionItem<'db>> = functions_in(db, function, name)
        .into_iter()
        .filter(|f| f.has_body(db) && f.signature(db).kernel)
        .collect();
    if candidates.len() > 1 {
        let fits: Vec<_> = candidates.iter().copied().filter(|f| takes(db, *f, args)).collect();
        if !fits.is_empty() {
            candidates = fits;
        }
    }
    match candidates.as_slice() {
        [] => Child::Unknown,
        [one] => Child::Kernel(*one),
        _ => Child::Ambiguous(candidates),
    }
}

/// Whether a function can be called with `args` arguments.
fn takes(db: &dyn Db, function: FunctionItem<'_>, args: usize) -> bool {
    let parameters = parameters(db, function);
    let required = parameters.iter().filter(|p| !p.has_default).count();
    required <= args && args <= parameters.len()
}

/// The launches in a file by unqualified kernel name. Only names: an edit of a launch's arguments leaves this as it is.
#[salsa::tracked]
pub fn launches_by_name<'db>(db: &'db dyn Db, file: SourceFile) -> HashMap<String, Vec<LaunchId<'db>>> {
    let mut found: HashMap<String, Vec<LaunchId<'db>>> = HashMap::new();
    for function in items(db, file).functions.iter().filter(|f| f.has_body(db)) {
        for (index, name) in launched_names(db, *function) {
            let id = LaunchId {
                function: *function,
                index: *index,
            };
            found.entry(name.clone()).or_default().push(id);
        }
    }
    found
}

/// The unqualified names of the kernels that a function launches, with the numbers of the launches.
fn launched_names<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> &'db [(u32, String)] {
    match function.source(db) {
        FunctionText::Kept(_) => launched_in_text(db, function),
        FunctionText::Edited(edited) => &edited.facts(db).launched,
    }
}

/// The same as the function's text says now.
#[salsa::tracked]
pub(crate) fn launched_in_text<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<(u32, String)> {
    // Lowering a body is the dear part: most functions launch nothing.
    if !may_launch(db, function) {
        return Vec::new();
    }
    let body = body(db, function);
    let launches = body.launches.iter().enumerate();
    launches
        .filter_map(|(index, expr)| match &body.expr(*expr).kind {
            ExprKind::Launch(launch) => {
                let name = launch.kernel.as_deref()?;
                Some((index as u32, unqualified(name).to_owned()))
            }
            _ => None,
        })
        .collect()
}

/// The launches of the workspace by unqualified kernel name, by the files' paths and then as they stand.
#[salsa::tracked]
fn all_launches_by_name<'db>(db: &'db dyn Db) -> HashMap<String, Vec<LaunchId<'db>>> {
    let mut found: HashMap<String, Vec<LaunchId<'db>>> = HashMap::new();
    let Some(workspace) = Workspace::try_get(db) else {
        return found;
    };
    for file in workspace.files(db).values() {
        for (name, launches) in launches_by_name(db, *file) {
            found.entry(name.clone()).or_default().extend(launches);
        }
    }
    found
}

/// All launches in the workspace that resolve to `kernel` (also where it is one of several candidates), from device and host.
#[salsa::tracked(returns(clone))]
pub fn launch_sites_of<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Vec<LaunchId<'db>> {
    let last = unqualified(kernel.name(db));
    let named = all_launches_by_name(db).get(last).into_iter().flatten();
    let mut asked: Option<(SourceFile, bool)> = None;
    named
        .copied()
        .filter(|id| {
            let file = id.function.file(db);
            let another = match asked {
                Some((last, another)) if last == file => another,
                _ => means_another(db, file, kernel),
            };
            asked = Some((file, another));
            if another {
                return false;
            }
            let body = body(db, id.function);
            let launch = body.launches.get(id.index as usize).map(|e| &body.expr(*e).kind);
            let Some(ExprKind::Launch(launch)) = launch else {
                return false;
            };
            let name = launch.kernel.as_deref().unwrap_or("");
            match resolve_kernel(db, id.function, name, launch.args.len()) {
                Child::Kernel(child) => child == kernel,
                Child::Ambiguous(children) => children.contains(&kernel),
                Child::Unknown => false,
            }
        })
        .collect()
}

/// Forward declarations of `function` in the workspace (same qualified name, no body), without those in files that have a
/// different definition of that name in sight.
#[salsa::tracked(returns(clone))]
pub fn declarations_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<FunctionItem<'db>> {
    let name = function.name(db);
    let mut found = Vec::new();
    let mut asked: Option<(SourceFile, bool)> = None;
    for declared in declarations_by_name(db).get(unqualified(name)).into_iter().flatten() {
        let file = declared.file(db);
        let means = match asked {
            Some((last, means)) if last == file => means,
            _ => may_mean(db, file, function),
        };
        asked = Some((file, means));
        if means && declared.name(db) == name {
            found.push(*declared);
        }
    }
    found
}

/// Whether device code may run a function: its head says so, or that of a declaration of it does. nvcc takes a definition without specifiers
/// for what the declaration says.
pub fn runs_on_device<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let says_so = |f: FunctionItem<'db>| f.signature(db).kernel || f.signature(db).device;
    says_so(function) || declarations_of(db, function).into_iter().any(says_so)
}

/// The functions that the workspace declares without body, by unqualified name, by the files' paths and then as they stand.
#[salsa::tracked]
fn declarations_by_name<'db>(db: &'db dyn Db) -> HashMap<String, Vec<FunctionItem<'db>>> {
    functions_by_name(db, false)
}

/// All functions of the workspace with a body, or all without, by unqualified name.
fn functions_by_name<'db>(db: &'db dyn Db, with_body: bool) -> HashMap<String, Vec<FunctionItem<'db>>> {
    let mut found: HashMap<String, Vec<FunctionItem<'db>>> = HashMap::new();
    let Some(workspace) = Workspace::try_get(db) else {
        return found;
    };
    let files = workspace.files(db);
    for function in files.values().flat_map(|file| &items(db, *file).functions) {
        if function.has_body(db) == with_body {
            let last = unqualified(function.name(db)).to_owned();
            found.entry(last).or_default().push(*function);
        }
    }
    found
}

/// Whether the name of `function` means others in a file in any case: all that it sees of that name is defined in sight, and elsewhere.
/// Most programs of a workspace have functions of the same names; what they do with their own isn't looked at.
pub(crate) fn means_another<'db>(db: &'db dyn Db, file: SourceFile, function: FunctionItem<'db>) -> bool {
    let home = function.file(db);
    if file == home {
        return false;
    }
    let seen = visible(db, file).functions.get(unqualified(function.name(db)));
    let mut seen = seen.into_iter().flatten().peekable();
    seen.peek().is_some()
        && seen.all(|f| f.has_body(db) && f.file(db) != home)
        && !seen_in_context(db, file).may_contain(home)
}

/// Whether the name of `function` can mean it in this file: not if nothing declares it there, if the file sees another definition
/// of that name and not this one, or is part of another program. The runtime's header names nothing of the program's.
pub(crate) fn may_mean<'db>(db: &'db dyn Db, file: SourceFile, function: FunctionItem<'db>) -> bool {
    if is_runtime_header(db, file) && file != function.file(db) {
        return false;
    }
    let name = function.name(db);
    let visible = visible(db, file);
    let last = unqualified(name);
    let same = visible.functions.get(last).map(Vec::as_slice).unwrap_or_default();
    if same.is_empty() {
        // A function may declare it for itself.
        return seen_in_context(db, file).may_contain(function.file(db))
            || may_declare(db, file, last) && may_be_linked(db, file, function.file(db));
    }
    let definitions: Vec<_> = same.iter().filter(|f| f.has_body(db)).collect();
    (definitions.is_empty() || definitions.contains(&&function)) && may_be_linked(db, file, function.file(db))
}

/// Whether the name of a template may mean it in this file: only where its definition, or a declaration of a template, is in sight, as no
/// function declares one for itself.
pub(crate) fn may_mean_template<'db>(db: &'db dyn Db, file: SourceFile, template: FunctionItem<'db>) -> bool {
    let home = template.file(db);
    let same = visible(db, file).functions.get(unqualified(template.name(db)));
    let declares = |f: &FunctionItem<'db>| !f.has_body(db) && f.signature(db).template_params.is_some();
    file == home
        || same.into_iter().flatten().any(|f| *f == template || declares(f))
        || seen_in_context(db, file).may_contain(home)
}

/// Whether the last segment of a name stands for nothing but a local variable in a function.
pub(crate) fn is_local_in<'db>(db: &'db dyn Db, function: FunctionItem<'db>, last: &str) -> bool {
    let body = body(db, function);
    let elsewhere = |expr: &Expr| match &expr.kind {
        ExprKind::Name(Name::Other(name)) => unqualified(name) == last,
        ExprKind::Call { name: Some(name), .. } => unqualified(name.as_str()) == last,
        ExprKind::Launch(launch) => launch.kernel.as_deref().is_none_or(|name| unqualified(name) == last),
        ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => true,
        _ => false,
    };
    body.problems.is_empty() && body.bindings.iter().any(|b| b.name == last) && !body.exprs.iter().any(elsewhere)
}

/// Places in code (not in comments) where the name of `function` occurs though it is neither its own declaration or definition nor the
/// callee of a launch that was found: a function pointer, a macro's body, `cudaLaunchKernel`. In strings, where kernels are looked up by
/// their names.
pub fn other_mentions<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<FileRange> {
    let last = unqualified(function.name(db));
    let mut known: HashMap<SourceFile, Vec<TextRange>> = HashMap::new();
    let declared = declarations_of(db, function);
    for item in declared.into_iter().chain([function]) {
        let name = item.signature(db).name_span.shift(item.start(db));
        known.entry(item.file(db)).or_default().push(name);
    }
    for id in launch_sites_of(db, function) {
        let body = body(db, id.function);
        let Some(expr) = body.launches.get(id.index as usize).map(|launch| body.expr(*launch)) else {
            continue;
        };
        // In a macro's use the name may stand for something else as well.
        if let ExprKind::Launch(launch) = &expr.kind
            && !expr.from_macro
        {
            let name = launch.name_span.shift(id.function.start(db));
            known.entry(id.function.file(db)).or_default().push(name);
        }
    }
    let mut found = Vec::new();
    for file in files_mentioning(db, last).iter().copied() {
        if !may_mean(db, file, function) {
            continue;
        }
        let known = known.get(&file).map(Vec::as_slice).unwrap_or_default();
        for mention in places_of(db, file, last) {
            // A qualified name's span covers its last segment.
            let covered = known.iter().any(|range| range.contains(mention.place.range));
            let within = mention.identifier_in.filter(|f| f.has_body(db));
            if !covered && !within.is_some_and(|f| is_local_in(db, f, last)) {
                found.push(mention.place);
            }
        }
    }
    found.extend(named_in_strings(db, function));
    found
}

/// Whether the name of a kernel stands nowhere but in its declarations and in the launches that were found: nothing else can
/// launch it. Says the same as [`other_mentions`] where it can, without the places: an edit elsewhere leaves it as it is.
#[salsa::tracked(returns(copy))]
pub fn only_known_launches<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> bool {
    let last = unqualified(kernel.name(db));
    if Workspace::try_get(db).is_none() {
        return false;
    }
    // A launch whose text is read twice (an `#if` that isn't decided) counts once, as its name stands there once.
    let mut launched: HashMap<SourceFile, HashSet<(FunctionItem<'db>, Span)>> = HashMap::new();
    for id in launch_sites_of(db, kernel) {
        let body = body(db, id.function);
        let expr = body.launches.get(id.index as usize).map(|launch| body.expr(*launch));
        if let Some(Expr {
            kind: ExprKind::Launch(launch),
            from_macro: false,
            ..
        }) = expr
        {
            let place = (id.function, launch.name_span);
            launched.entry(id.function.file(db)).or_default().insert(place);
        }
    }
    let elsewhere = files_mentioning(db, last).iter().any(|file| {
        if !may_mean(db, *file, kernel) {
            return false;
        }
        let named = functions_mentioning(db, *file, last).iter();
        let declared = named.filter(|f| **f == kernel || !f.has_body(db) && f.name(db) == kernel.name(db));
        count_mentions(db, *file, last) != declared.count() + launched.get(file).map_or(0, HashSet::len)
    });
    // Local variables may have that name.
    match elsewhere {
        true => other_mentions(db, kernel).is_empty(),
        false => named_in_strings(db, kernel).is_empty(),
    }
}

/// Whether a function may launch: brackets of a launch stand in its text, or in that of a macro that it uses.
#[salsa::tracked(returns(copy))]
pub fn may_launch<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let brackets = |text: &str| text.contains("<<") && text.contains(">>");
    brackets(&function.text(db))
        || function_macros(db, function)
            .states
            .values()
            .flatten()
            .any(|(_, state)| matches!(state, MacroState::Defined(item) if item.body.contains("<<") || item.body.contains(">>")))
}
